package access

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
)

// Forget takes back what led from here to a cluster that is gone.
func (c *Cluster) Forget() error {
	path, err := kubeconfig.DefaultPath()
	if err == nil {
		err = c.forgetMerged(path)
	}
	if err != nil { // the file is its owner's, and the hosts are as they were
		c.Warn("what leads to the cluster is left in the kubeconfig: %v; `kubectl config delete-context %s` removes it", err, c.Inventory.Cluster)
	}
	return c.forgetKubeconfig()
}

// forgetMerged takes the cluster's context out of the user's own kubeconfig, where kgpu merged it.
func (c *Cluster) forgetMerged(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	origin, err := filepath.Abs(c.Inventory.Path)
	if err != nil {
		return err
	}
	return kubeconfig.Update(path, func(before []byte) ([]byte, error) { return kubeconfig.Forget(before, c.Inventory.Cluster, origin) })
}

// forgetKubeconfig removes the kubeconfig of a cluster that is gone, if kgpu wrote it.
func (c *Cluster) forgetKubeconfig() error {
	// One that is another cluster's, or has come to open others, too, stays.
	text, err := os.ReadFile(c.kubeconfig)
	if err != nil || !bytes.HasPrefix(text, []byte(sourceMark)) || !kubeconfig.Alone(text) || c.isOfAnother(text) {
		return nil
	}
	if err := os.Remove(c.kubeconfig); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	return nil
}
