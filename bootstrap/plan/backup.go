package plan

import (
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Outputs of the step that takes what a backup has of a host.
const (
	OutputFiles    = "files"    // lines: name, size, SHA-256 sum, separated by tabs
	OutputSnapshot = "snapshot" // what etcdutl says of the snapshot, JSON
	OutputAbout    = "about"    // lines: key, value
)

// TakeStep is the step that takes what a backup has of a host.
const TakeStep = "backup/take"

// Backup plans what a backup takes of the hosts that have facts. The snapshot is that of the control plane whose API server answers.
func Backup(inv *inventory.Inventory, seen map[string]*facts.Host) (take, clear *graph.Graph, err error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, nil, err
	}
	if !b.APIAnswers() {
		return nil, nil, refuse(reason.APIUnreachable, b.admin.id, "a backup needs a control plane that answers")
	}
	for _, h := range b.hosts {
		values := map[string]string{"criSocket": b.criSocket()}
		if h == b.admin {
			values["etcd"] = "yes"
		}
		b.add(h, graph.Step{Ref: graph.Ref{ID: TakeStep}, Reason: "it is backed up", Input: graph.Input{Values: values}})
	}
	take = b.graph.Only(TakeStep)
	b.graph = graph.Graph{}
	for _, h := range b.hosts {
		h.last = nil
		b.add(h, graph.Step{Ref: graph.Ref{ID: "backup/clear"}, Reason: "the archive has it"})
	}
	return take, &b.graph, b.graph.Validate()
}
