package proposal

import (
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/inventory"
)

// running is what a cluster that is there has: the defaults would change its runtime, and put a second pod network beside its
// own. What nobody can tell is empty.
func running(c *facts.ControlPlane) (inventory.Runtime, inventory.Network) {
	var runtime inventory.Runtime
	var network inventory.Network
	if c == nil {
		return runtime, network
	}
	for _, node := range c.Nodes {
		for _, r := range []inventory.Runtime{inventory.Docker, inventory.Containerd} {
			if strings.HasPrefix(node.Runtime, string(r)+"://") {
				runtime = r
			}
		}
	}
	for _, n := range []inventory.Network{inventory.Weave, inventory.Flannel, inventory.Calico} {
		if _, there := c.Workloads[plan.NetworkWorkload(n)]; there {
			network = n
		}
	}
	return runtime, network
}
