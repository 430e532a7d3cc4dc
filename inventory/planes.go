package inventory

import "kgpu.dev/kgpu/bootstrap/catalog"

// maxPlanes is the most control planes that a cluster may have: each change of the cluster is written by a majority of them, so
// that more make it slower and no safer.
const maxPlanes = 5

// checkPlanes finds numbers of control planes that etcd makes nothing good of, and several without an address in common.
func (f *file) checkPlanes(planes []Host) findings {
	n := len(planes)
	if n == 0 {
		return found("hosts", "no host has `role: control-plane`")
	}
	last := planes[n-1].Path("role")
	switch {
	case n == 1:
		return nil
	case n%2 == 0:
		return found(last,
			"%d hosts are control planes: etcd needs a majority of them, %d of %d, so that no more may fail than with %d: write 1, 3 or 5", n, n/2+1, n, n-1)
	case n > maxPlanes:
		return found(last,
			"%d hosts are control planes: etcd writes each change on a majority of them, %d of %d, which gets slower the more they are: write 1, 3 or 5", n, n/2+1, n)
	}
	if k := f.Kubernetes; !f.astray && !k.VirtualIP.IsValid() && k.ControlPlaneEndpoint == "" {
		return found(last, "%d hosts are control planes, and nothing leads to whichever works: name a free address of their subnet as `kubernetes.virtualIP`, "+
			"or what leads to your load balancer as `kubernetes.controlPlaneEndpoint`", n)
	}
	return f.tooOldFor(last, "several control planes")
}

// tooOldFor refuses what kgpu does from the first Kubernetes on that has its name for the API server.
func (f *file) tooOldFor(path, what string) findings {
	if m, ok := catalog.Kubernetes(f.Kubernetes.Version.Minor); !ok || m.Has(catalog.APIName) {
		return nil
	}
	return found(path, "%s: kgpu does that with Kubernetes 1.30 and newer, not with %s", what, f.Kubernetes.Version.MinorString())
}

// checkVirtualIP finds a virtual address that cannot be one.
func (f *file) checkVirtualIP() findings {
	const path = "kubernetes.virtualIP"
	v := f.Kubernetes.VirtualIP
	if !v.IsValid() {
		return nil
	}
	out := f.tooOldFor(path, "a virtual address")
	f.outside(&out, path, v)
	if f.Kubernetes.ControlPlaneEndpoint != "" {
		out.add(path, "`kubernetes.controlPlaneEndpoint` leads to a load balancer of yours, and this has kgpu set up an address of its own: name one of the two")
	}
	for i, h := range f.Hosts {
		if canonical(h.Address) == v.String() || h.PrivateAddress == v {
			out.add(path, "%s is the address of a host, at %s: name one that nobody has", v, f.path(i))
		}
	}
	return out
}
