package prepare

import (
	"path/filepath"
	"slices"
)

// kernelUpdate offers the machine's kernel as the newest of its line, with which hosts that run an older one get its modules.
func (p *preparer) kernelUpdate() item {
	kernel := kernelRelease()
	image := standIn{"linux-image-" + kernel, kernelPackageVersion(), nil, "", []part{
		text("boot/vmlinuz-"+kernel, "A stand-in of the kgpu lab: there is no kernel in it.\n"),
	}}
	// The suite is made, empty, with the archive of the distribution.
	archive := identities(stampOf(filepath.Join(p.Site("archive.ubuntu.com"), "ubuntu/dists")))
	i := p.inArchive("security.ubuntu.com/ubuntu", "noble-security", []string{"main", "restricted", "universe", "multiverse"}, []standIn{image}, []any{archive})
	i.name = "kernel in noble-security"
	i.files = append(slices.Clone(i.files), "nvidia_kernel.go")
	return i
}
