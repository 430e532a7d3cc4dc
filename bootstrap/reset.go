package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/run"
)

// Reset takes the named hosts (none: the whole cluster) out of the cluster and undoes what kgpu changed on them.
// confirm is called with the plan before anything is touched.
func Reset(ctx context.Context, o Options, names []string, confirm func(*graph.Graph) error) error {
	ids, hosts, err := o.narrow(names)
	if err != nil {
		return err
	}
	if err := o.wholeOrWorkers(ids); err != nil {
		return err
	}
	s, err := openAlone(ctx, o, hosts)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.awaiting(ctx, s.stop); err != nil {
		return err
	}
	design := func(ctx context.Context) (*graph.Graph, error) {
		if err := s.stop(ctx); err != nil {
			return nil, err
		}
		return plan.Reset(s.Inventory, s.facts, ids)
	}
	g, err := design(ctx)
	if err != nil {
		return err
	}
	s.skips(g)
	if err := confirm(g); err != nil {
		return err
	}
	whole := len(ids) == 0 || slices.ContainsFunc(ids, s.isPlane)
	if g.Empty() {
		if whole {
			return s.forgetRest(ctx)
		}
		return nil
	}
	s.forgets = true
	return s.changing(ctx, g, design, confirm, func(ctx context.Context, g *graph.Graph) error {
		result, err := s.engine().Execute(ctx, g)
		s.tellWhatIsLeft(result)
		if err != nil {
			return err
		}
		if whole {
			return s.forgetAccess()
		}
		return nil
	})
}

// wholeOrWorkers refuses to take the control plane from under the workers of a cluster.
func (o Options) wholeOrWorkers(ids []string) error {
	cp, workers := "", 0
	for _, h := range o.Inventory.Hosts {
		switch named := slices.Contains(ids, h.ID()); {
		case named && h.IsControlPlane():
			cp = h.ID()
		case !named:
			workers++
		}
	}
	if cp == "" || workers == 0 {
		return nil
	}
	return reason.Usagef("%s is the control plane: without it there is no cluster. `kgpu reset` without a host takes the whole cluster apart; name workers only to take those out", cp)
}

// forgetRest is the end of a reset that was cut off after its last step.
func (s *session) forgetRest(ctx context.Context) error {
	// Who takes hold of the cluster and lets go of it takes along what one that was killed has left.
	if s.anyPlane(func(f *facts.Host) bool { return f.OperatorLeft }) {
		if err := s.holding(ctx, func(context.Context) error { return nil }); err != nil {
			return err
		}
	}
	if s.anyPlane(func(f *facts.Host) bool { return f.ControlPlane != nil }) {
		return nil
	}
	return s.forgetAccess()
}

// mostLeft bounds what a host is believed that it could not take back.
const mostLeft = 50

// tellWhatIsLeft warns of what hosts could not take back.
func (s *session) tellWhatIsLeft(result *run.Result) {
	for _, step := range result.Steps {
		s.tellLeft(step.Host, result.Outputs[step.Ref][plan.OutputLeft])
	}
}

// tellLeft does so for one host.
func (s *session) tellLeft(host string, output []byte) {
	left := strings.Split(strings.TrimSpace(string(output)), "\n")
	for _, what := range left[:min(len(left), mostLeft)] {
		if what != "" {
			s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Host: host, Kind: event.Warning, Text: "not taken back: " + printable.Short(what, 300)})
		}
	}
	if more := len(left) - mostLeft; more > 0 {
		s.Events.Emit(event.Event{Time: time.Now(), Run: s.Run, Host: host, Kind: event.Warning, Text: fmt.Sprintf("and %d more, which its log has", more)})
	}
}

// forgetAccess takes back what led from here to a cluster that is gone.
func (s *session) forgetAccess() error {
	path, err := kubeconfig.DefaultPath()
	if err == nil {
		err = s.forgetMerged(path)
	}
	if err != nil { // the file is its owner's, and the hosts are as they were
		s.warn("what leads to the cluster is left in the kubeconfig: %v; `kubectl config delete-context %s` removes it", err, s.Inventory.Cluster)
	}
	return s.forgetKubeconfig()
}

// forgetMerged takes the cluster's context out of the user's own kubeconfig, where kgpu merged it.
func (s *session) forgetMerged(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	origin, err := filepath.Abs(s.Inventory.Path)
	if err != nil {
		return err
	}
	return kubeconfig.Update(path, func(before []byte) ([]byte, error) { return kubeconfig.Forget(before, s.Inventory.Cluster, origin) })
}

// forgetKubeconfig removes the kubeconfig of a cluster that is gone, if kgpu wrote it.
func (s *session) forgetKubeconfig() error {
	path := s.Kubeconfig
	if path == "" {
		path = KubeconfigPath(s.Inventory)
	}
	// One that is another cluster's, or has come to open others, too, stays.
	text, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(text, []byte(sourceMark)) || !kubeconfig.Alone(text) || s.isOfAnother(text) {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	return nil
}
