package plan

import (
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
)

// TestDisturbedContainers changes what a runtime has read on a host that serves. Where that ends containers, the node is drained
// before and let in afterwards; where it does not, nothing is.
func TestDisturbedContainers(t *testing.T) {
	const proxy = "proxy: {http: \"http://proxy.example.com:3128\"}\n"
	for _, c := range []struct {
		name, runtime, more string
		harm                func(*facts.Host)
		want                []string // on or about w1
	}{
		{"docker, a setting", "docker", "", func(f *facts.Host) { f.DaemonJSON = []byte("{}") },
			[]string{"cp1 node/drain/w1", "w1 runtime/docker", "w1 gpu/toolkit", "cp1 node/uncordon/w1"}},
		{"docker, without the toolkit", "docker", "", func(f *facts.Host) { delete(f.Packages, "nvidia-container-toolkit") },
			[]string{"cp1 node/drain/w1", "w1 gpu/toolkit", "cp1 node/uncordon/w1"}},
		{"docker, a proxy", "docker", proxy, func(*facts.Host) {},
			[]string{"cp1 node/drain/w1", "w1 os/proxy", "cp1 node/uncordon/w1"}},
		{"docker, a newer cri-dockerd", "docker", "", func(f *facts.Host) { f.CRIDockerd = "0.99.0" }, nil},
		{"docker, a newer toolkit", "docker", "", func(f *facts.Host) {
			for _, name := range catalog.ToolkitPackages {
				f.Packages[name] = facts.Package{Version: "1.21.0-1", Held: true}
			}
		}, nil},
		{"docker, a toolkit that is newer in part", "docker", "", func(f *facts.Host) {
			f.Packages["nvidia-container-toolkit"] = facts.Package{Version: "1.21.0-1", Held: true}
		}, nil},
		{"docker, a setting of the toolkit", "docker", "", func(f *facts.Host) { delete(f.Toolkit, "accept-nvidia-visible-devices-as-volume-mounts") }, []string{"w1 gpu/toolkit"}},
		{"containerd, a setting of the toolkit", "containerd", "", func(f *facts.Host) {
			f.Toolkit["accept-nvidia-visible-devices-envvar-when-unprivileged"] = "true"
		}, []string{"w1 gpu/toolkit"}},
		{"containerd, a setting", "containerd", "", func(f *facts.Host) { f.Files[containerdDropIn] = "other" }, []string{"w1 runtime/containerd"}},
		{"containerd, a proxy", "containerd", proxy, func(*facts.Host) {}, []string{"w1 os/proxy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := threeHosts + "runtime: " + c.runtime + "\nnetwork: flannel\n"
			_, seen := settled(t, text, func(f map[string]*facts.Host) { f["w1"].NVIDIA.Cards = cards("20b0") })
			c.harm(seen["w1"])
			inv := decode(t, text+c.more)
			g := planUp(t, inv, seen)
			hasSteps(t, about(g, "w1"), c.want...)
			if nodes, reasons := g.DrainedNodes(); slices.Contains(nodes, "w1") != slices.Contains(c.want, "cp1 node/drain/w1") {
				t.Errorf("drained: %v %v", nodes, reasons)
			}
			settles(t, inv, seen, g)
		})
	}
}
