package preflight

import (
	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// compatibility refuses hosts that are too new for the inventory's Kubernetes, or lack what that version needs.
func (c *checker) compatibility(m Machine) {
	k := c.inv.Kubernetes
	minor, ok := catalog.Kubernetes(k.Version.Minor)
	if !ok {
		return
	}
	version := k.Version.MinorString()
	if m.Facts.CgroupV2 && !minor.Has(catalog.CgroupV2) {
		c.problem(m.ID(), reason.HostCgroupV2, "the host uses cgroup v2, of which the kubelet of Kubernetes %s does not know", version)
	}
	if name := m.NodeName(); name != m.Facts.Hostname && !minor.Has(catalog.KubeadmNodeName) {
		c.problem(m.ID(), reason.HostNameInvalid, "kubeadm %s makes nodes by their hosts' names only: the host is called %s, the node would be %s", version, m.Facts.Hostname, name)
	}
	if docker := minor.NewestDocker(); c.inv.Runtime == inventory.Docker && docker != "" && c.inv.Repositories.Docker.URL == "" && !m.HasFirstOf(minor.DockerPackages()) {
		c.problem(m.ID(), reason.PackageMissing,
			"Kubernetes %s knows docker up to %s, which Docker's repository does not have for %s: install it, or name a mirror as `repositories.docker.url`", version, docker, m.Facts.OS.PrettyName)
	}
}
