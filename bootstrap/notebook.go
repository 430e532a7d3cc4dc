package bootstrap

import (
	"context"
	"strings"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/smoke"
)

// openNotebook deploys the notebook and has it compute on its card. One that runs is replaced where that was planned only. It
// returns nil where no notebook is wanted.
func (s *story) openNotebook(ctx context.Context, planned bool) (*smoke.Devices, error) {
	if !graph.Selected(s.want.Only, s.want.Skip, plan.NotebookStep) {
		return nil, nil
	}
	g, err := plan.Notebook(s.Inventory, s.Facts, planned)
	if err != nil {
		return nil, err
	}
	if s.TellSkipped(g); g.Empty() {
		return nil, nil
	}
	done, err := s.Execute(ctx, g)
	if err != nil {
		return nil, err
	}
	said := done.Outputs[g.Steps[0].Ref]
	text := func(output string) string { return strings.TrimSpace(string(said[output])) }
	host := s.hostOfNode(text(plan.OutputNotebookNode))
	notebook, err := s.cluster().UseNotebook(ctx, host, text(plan.OutputNotebookService), text(plan.OutputNotebookToken), text(plan.OutputNotebookPort))
	if err != nil {
		return nil, err
	}
	chosen, err := machine.ChooseNotebook(s.Inventory, s.Facts)
	if err != nil {
		return nil, err
	}
	devices := notebook.Devices
	if s.Inventory.Notebook.Image == "" && !strings.EqualFold(devices.Source, string(chosen.Framework)) {
		s.Tell(event.Event{Host: host, Kind: event.Warning, Text: "in the notebook: " + strings.Join(devices.Tried, "; ")})
	}
	kind := event.Proof
	if !devices.Computed() {
		kind = event.Warning
	}
	s.Tell(event.Event{Host: host, Kind: kind, Text: "the notebook " + devices.String()})
	if s.want.Opened != nil {
		s.want.Opened(*notebook)
	}
	return devices, nil
}

// hostOfNode is the host whose node this is, or the control plane's where kgpu has no connection to it.
func (s *story) hostOfNode(node string) string {
	for _, h := range s.Inventory.Hosts {
		if f := s.Facts[h.ID()]; f != nil && s.Conn(h.ID()) != nil && (machine.Machine{Host: h, Facts: f}).NodeName() == node {
			return h.ID()
		}
	}
	return s.AdminPlane().ID()
}
