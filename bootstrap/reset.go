package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"kgpu.dev/kgpu/bootstrap/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/plan"
)

// Reset takes the named hosts (none: the whole cluster) out of the cluster and undoes what kgpu changed on them.
// confirm is called with the plan before anything is touched.
func Reset(ctx context.Context, o Options, names []string, confirm func(*plan.Graph) error) error {
	ids, hosts, err := o.narrow(names)
	if err != nil {
		return err
	}
	s, err := openAlone(ctx, o, hosts)
	if err != nil {
		return err
	}
	defer s.close()
	design := func(ctx context.Context) (*plan.Graph, error) {
		if err := s.stop(ctx); err != nil {
			return nil, err
		}
		return plan.Reset(s.Inventory, s.facts, ids)
	}
	graph, err := design(ctx)
	if err != nil {
		return err
	}
	s.skips(graph)
	if err := confirm(graph); err != nil || graph.Empty() {
		return err
	}
	return s.changing(ctx, graph, design, confirm, func(ctx context.Context, graph *plan.Graph) error {
		if _, err := s.engine().Execute(ctx, graph); err != nil {
			return err
		}
		if len(ids) == 0 || slices.Contains(ids, s.controlPlane().ID()) {
			return s.forgetKubeconfig()
		}
		return nil
	})
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
