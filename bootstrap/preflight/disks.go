package preflight

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// spaceNeed is the space that an installation needs below a path, and the kubelet's limits for the path's file system.
type spaceNeed struct {
	path          string
	needKiB       int64
	space, inodes string // names of the kubelet's eviction signals; empty if it does not monitor the path
}

// spaceNeeds returns the needs of an installation: packages, the cluster's data, and images.
func (c *checker) spaceNeeds(f *facts.Host) []spaceNeed {
	out := []spaceNeed{
		{path: "/", needKiB: 1 << 20},
		{path: "/var", needKiB: 1 << 20},
		{path: "/tmp", needKiB: 64 << 10},
		{path: "/boot"},
		{path: "/var/lib/kubelet", needKiB: 1 << 20, space: inventory.NodeSpace, inodes: inventory.NodeInodes},
	}
	if images, told := imagesOf(c.inv.Runtime, f); told {
		out = append(out, spaceNeed{path: images, needKiB: 4 << 20, space: inventory.ImageSpace, inodes: inventory.ImageInodes})
	}
	return out
}

// imagesOf is the directory of the container runtime's images; false if the host did not tell.
func imagesOf(runtime inventory.Runtime, f *facts.Host) (string, bool) {
	var docker struct {
		DataRoot string          `json:"data-root"`
		Graph    string          `json:"graph"`
		Features map[string]bool `json:"features"`
	}
	_ = json.Unmarshal(f.DaemonJSON, &docker) // the check of packages reports invalid JSON
	// docker may keep images in containerd, whose snapshotter is overlayfs; docker's own driver is overlay2.
	if runtime == inventory.Containerd || docker.Features["containerd-snapshotter"] || f.DockerInfo["storage-driver"] == "overlayfs" {
		return cmp.Or(f.ContainerdRoot, "/var/lib/containerd"), true
	}
	return cmp.Or(f.DockerRoot, "/var/lib/docker"), f.DockerRoot != "" || docker.DataRoot == "" && docker.Graph == ""
}

// fileSystemOf returns the file system that a path is on.
func fileSystemOf(f *facts.Host, path string) (best facts.FileSystem, ok bool) {
	for _, fs := range f.FileSystems {
		if on := strings.TrimSuffix(fs.Path, "/") + "/"; strings.HasPrefix(path+"/", on) && len(fs.Path) > len(best.Path) {
			best, ok = fs, true
		}
	}
	return best, ok
}

// Evicts describes the file systems of a node that are so full that the kubelet evicts pods.
func Evicts(inv *inventory.Inventory, f *facts.Host) []string {
	var out []string
	c := &checker{inv: inv}
	for _, s := range c.spaceNeeds(f) {
		fs, ok := fileSystemOf(f, s.path)
		limit := inv.Eviction()[s.space]
		if free := float64(fs.AvailableKiB) * 1024; ok && fs.SizeKiB > 0 && free < limit.Of(float64(fs.SizeKiB)*1024) {
			out = append(out, fmt.Sprintf("%s has %d MiB free: the kubelet evicts pods below %s (%s)", fs.On, fs.AvailableKiB/1024, limit, s.space))
		}
	}
	return out
}

// disks reports each file system once, for the path with the highest need and limit.
func (c *checker) disks(m Machine) {
	eviction := c.inv.Eviction()
	const fewInodes = 5.0
	type verdict struct{ full, inodes string }
	found := map[string]verdict{}
	most := map[string]float64{}
	var order []string
	for _, s := range c.spaceNeeds(m.Facts) {
		fs, ok := fileSystemOf(m.Facts, s.path)
		if !ok || s.path == "/tmp" && fs.Path != "/tmp" || s.path == "/boot" && fs.Path != "/boot" {
			continue
		}
		if !slices.Contains(order, fs.On) {
			order = append(order, fs.On)
		}
		v := found[fs.On]
		kept := eviction[s.space].Of(float64(fs.SizeKiB)*1024) / 1024
		if need := float64(s.needKiB) + kept; !m.InCluster() && float64(fs.AvailableKiB) < need && need > most[fs.On] {
			most[fs.On] = need
			v.full = fmt.Sprintf("%s has %d MiB free, %.0f MiB are needed", fs.On, fs.AvailableKiB/1024, need/1024)
			if kept > 0 {
				v.full += fmt.Sprintf(": the kubelet evicts pods below %s (%s)", eviction[s.space], s.space)
			}
		}
		if few := max(fewInodes, eviction[s.inodes].Percent); fs.InodesFreePercent < few {
			v.inodes = fmt.Sprintf("%s has %.0f %% of its inodes free", fs.On, fs.InodesFreePercent)
		}
		found[fs.On] = v
	}
	for _, on := range order {
		if v := found[on]; v.full != "" {
			c.problem(m.ID(), reason.HostDiskFull, "%s", v.full)
		}
		if v := found[on]; v.inodes != "" {
			c.problem(m.ID(), reason.HostInodesFull, "%s", v.inodes)
		}
	}
	for _, fs := range m.Facts.FileSystems {
		if fs.NoExec && (fs.Path == "/var" || fs.Path == "/var/lib") {
			c.problem(m.ID(), reason.HostMountNoExec, "%s is mounted noexec, and the images of containers are there", fs.Path)
		}
	}
}
