package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/smoke"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// Smoke proves that every card of the cluster's hosts computes for exactly one pod, and opens the notebook.
func Smoke(ctx context.Context, o Options) error {
	open, err := session.OpenToChange(ctx, o.Options, o.Inventory.Hosts, nil)
	if err != nil {
		return err
	}
	s := &story{Session: open, want: o}
	defer s.Close()
	return s.Locked(ctx, func(ctx context.Context) error {
		if err := s.Attach(ctx); err != nil {
			return err
		}
		return s.prove(ctx, false, s.owesProof())
	})
}

// prove has pods compute in the cluster, one for each card that the hosts list, and then opens the notebook, a new one if that was
// planned. owed says that a former run owes a proof of all cards.
func (s *story) prove(ctx context.Context, newNotebook, owed bool) error {
	nodes, hosts := s.nodesWithCards()
	missing := s.missingCards()
	if len(nodes) == 0 && missing != nil {
		return missing
	}
	if len(nodes) == 0 {
		s.Tell(event.Event{Kind: event.Warning, Text: "no host has a card that its driver sees: there is nothing to prove"})
		return nil
	}
	table, err := s.proveCards(ctx, nodes, hosts)
	if err != nil {
		return errors.Join(missing, err)
	}
	var held []*smoke.Row // by the notebook of a former run, perhaps, which tells its card
	for i := range table.Rows {
		if r := &table.Rows[i]; len(r.Holders) > 0 {
			held = append(held, r)
		} else {
			s.proven(hosts, r)
		}
	}
	devices, err := s.openNotebook(ctx, newNotebook)
	if devices != nil {
		table.AddHolder(catalog.NotebookNamespace, devices.By(), devices.UUIDs)
	}
	for _, r := range held {
		s.proven(hosts, r)
	}
	if err = errors.Join(missing, err); err != nil {
		return err
	}
	if owed && !plan.AllCards(s.Inventory, s.Facts) {
		return nil // this proof was of some of them only
	}
	return s.remember(ctx)
}

// owesProof reports whether a former run did not come to the end of its proof.
func (s *story) owesProof() bool {
	return s.AnyPlane(func(f *facts.Host) bool { return f.Unproven })
}

// remember has the control plane know that the proof came to its end.
func (s *story) remember(ctx context.Context) error {
	g, err := plan.Proven(s.Inventory, s.Facts)
	if err != nil {
		return err
	}
	_, err = s.Execute(ctx, g)
	return err
}

// missingCards are those of the cluster's hosts that the bus has and the driver does not list: no pod can have them.
func (s *story) missingCards() error {
	var errs []error
	for _, h := range s.Inventory.Hosts {
		f := s.Facts[h.ID()]
		if f == nil || f.Kubelet == nil {
			continue
		}
		_, err := machine.ChooseDriver(s.Inventory, f)
		if no, ok := errors.AsType[*machine.Refused](err); ok && no.Kind != machine.DriverMissing {
			continue // there is no driver for its cards, and it is in the cluster without them
		}
		if have, want := machine.ListedCards(s.Inventory, f), len(machine.Cards(s.Inventory, f)); have < want {
			errs = append(errs, &reason.Error{
				ID: reason.SmokeCardMissing, Host: h.ID(), Doing: "proving the GPUs",
				Detail: fmt.Sprintf("nvidia-smi lists %d of %s (status %d)", have, plural.Of(want, "card"), f.NVIDIA.SMI),
			})
		}
	}
	return errors.Join(errs...)
}

// proven tells what became of a card.
func (s *story) proven(hosts map[string]string, r *smoke.Row) {
	s.Tell(event.Event{Host: hosts[r.Node], Kind: event.Proof, Text: r.UUID + "  " + r.Card + "  " + r.By()})
}

// proveCards runs a Job for each card.
func (s *story) proveCards(ctx context.Context, nodes []smoke.Node, hosts map[string]string) (*smoke.Table, error) {
	k := s.settled().Kubernetes
	minor, _ := catalog.Kubernetes(k.Version.Minor)
	manifest, err := smoke.Manifest(nodes, minor, k.FeatureGates)
	if err != nil {
		return nil, err
	}
	cards := 0
	for _, n := range nodes {
		cards += len(n.GPUs)
	}
	g, err := plan.Smoke(s.Inventory, s.Facts, manifest, plural.Of(cards, "card")+" on "+plural.Of(len(nodes), "node"))
	if err != nil {
		return nil, err
	}
	done, err := s.Execute(ctx, g)
	if err != nil {
		return nil, err
	}
	table, err := smoke.CheckProof(nodes, string(done.Outputs[g.Steps[0].Ref][plan.OutputLogs]))
	for _, e := range reason.All(err) {
		e.Host = hosts[e.Host]
	}
	return table, err
}

// nodesWithCards also returns the host of each node.
func (s *story) nodesWithCards() (nodes []smoke.Node, hosts map[string]string) {
	hosts = map[string]string{}
	for _, h := range s.Inventory.Hosts {
		f := s.Facts[h.ID()]
		if f == nil || len(f.NVIDIA.GPUs) == 0 {
			continue
		}
		n := smoke.Node{Name: machine.Machine{Host: h, Facts: f}.NodeName(), Sample: plan.Sample(s.Inventory, f), Driver: machine.DriverMounts(f)}
		for _, o := range machine.PluginDevices(s.Inventory, f) {
			n.GPUs = append(n.GPUs, smoke.GPU(o))
		}
		nodes = append(nodes, n)
		hosts[n.Name] = h.ID()
	}
	return nodes, hosts
}

// proveNew is the last act of a run that did something for cards, or finds no notebook: nothing was proven yet, or not to
// the end. The hosts with cards tell what their drivers see now.
func (s *story) proveNew(ctx context.Context, done *graph.Graph) error {
	if !plan.Proves(done) {
		return nil
	}
	owed := s.owesProof()
	var concerned []inventory.Host
	for _, h := range s.RemainingHosts() {
		if len(machine.Cards(s.Inventory, s.Facts[h.ID()])) > 0 || h.IsControlPlane() {
			concerned = append(concerned, h)
		}
	}
	if err := s.GatherAllFacts(ctx, concerned); err != nil {
		return err
	}
	return s.prove(ctx, done.Has(plan.NotebookStep), owed)
}

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
