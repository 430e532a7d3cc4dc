package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"

	"kgpu.dev/kgpu/bootstrap/plan"
)

// Reset takes the named hosts (none: the whole cluster) out of the cluster and undoes what kgpu changed on them.
// confirm is called with the plan before anything is touched.
func Reset(ctx context.Context, o Options, names []string, confirm func(*plan.Graph) error) error {
	ids, err := o.named(names)
	if err != nil {
		return err
	}
	o.Limit = ids
	hosts, err := o.selected()
	if err != nil {
		return err
	}
	s, err := open(ctx, o, hosts)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.stop(ctx); err != nil {
		return err
	}
	graph, err := plan.Reset(s.Inventory, s.facts, ids)
	if err != nil {
		return err
	}
	s.skips(graph)
	if err := confirm(graph); err != nil || graph.Empty() {
		return err
	}
	if _, err := s.engine().Execute(ctx, graph); err != nil {
		return err
	}
	if len(ids) == 0 {
		return s.forgetKubeconfig()
	}
	return nil
}

// forgetKubeconfig removes the kubeconfig of a cluster that is gone, if kgpu wrote it.
func (s *session) forgetKubeconfig() error {
	path := s.Kubeconfig
	if path == "" {
		path = KubeconfigPath(s.Inventory)
	}
	if sourceOf(path) == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	return nil
}
