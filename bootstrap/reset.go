package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
)

// Reset takes the named hosts (none: the whole cluster) out of the cluster and undoes what kgpu changed on them.
// confirm is called with the plan before anything is touched.
func Reset(ctx context.Context, o Options, names []string, confirm func(*plan.Graph) error) error {
	ids, hosts, err := o.Narrow(names)
	if err != nil {
		return err
	}
	if err := o.wholeOrWorkers(ids); err != nil {
		return err
	}
	open, err := session.OpenAlone(ctx, o.Options, hosts, nil)
	if err != nil {
		return err
	}
	s := &story{Session: open, want: o}
	defer s.Close()
	whole := len(ids) == 0 || slices.ContainsFunc(ids, s.IsPlane)
	return session.Change{
		Former:  (*session.Session).Stop,
		Plan:    func() (*plan.Graph, error) { return plan.Reset(s.Inventory, s.Facts, ids) },
		Ask:     func(_ context.Context, graph *plan.Graph) error { return confirm(graph) },
		Forgets: true,
		Do: func(ctx context.Context, graph *plan.Graph) error {
			result, err := s.Execute(ctx, graph)
			s.TellUnreverted(result)
			switch {
			case err != nil || !whole:
				return err
			case graph.Empty():
				return s.forgetRest(ctx)
			}
			return s.forgetAccess()
		},
	}.Run(ctx, s.Session)
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
func (s *story) forgetRest(ctx context.Context) error {
	// Who takes hold of the cluster and lets go of it takes along what one that was killed has left.
	if s.AnyPlane(func(f *facts.Host) bool { return f.OperatorLeft }) {
		if err := s.Locked(ctx, func(context.Context) error { return nil }); err != nil {
			return err
		}
	}
	if s.AnyPlane(func(f *facts.Host) bool { return f.ControlPlane != nil }) {
		return nil
	}
	return s.forgetAccess()
}

// forgetAccess takes back what led from here to a cluster that is gone.
func (s *story) forgetAccess() error {
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
func (s *story) forgetMerged(path string) error {
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
func (s *story) forgetKubeconfig() error {
	path := s.want.Kubeconfig
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
