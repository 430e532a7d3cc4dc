package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

const threeHosts = `
cluster: lab
hosts:
  - {address: 10.0.0.10, name: cp1, role: control-plane}
  - {address: 10.0.0.11, name: w1, labels: {disk: fast}}
  - {address: 10.0.0.12, name: w2, taints: ["nvidia.com/gpu=present:NoSchedule"]}
`

// bare is a fresh machine.
func bare(n int) *facts.Host {
	return &facts.Host{
		Hostname: fmt.Sprintf("host%d", n), MachineID: fmt.Sprintf("%032x", n), Virt: "none",
		OS: facts.OS{ID: "ubuntu", VersionID: "24.04", Codename: "noble", PrettyName: "Ubuntu 24.04 LTS"}, Arch: "amd64",
		Kernel: "6.8.0-146-generic", Systemd: true, CgroupV2: true, CPUs: 8, MemoryKiB: 32 << 20, TimeSync: "systemd-timesyncd", Ways: []facts.Way{{Name: machine.WayBuilt, Kernel: "6.8.0-146-generic"}},
		Addresses: []facts.Address{{Interface: "eth0", Prefix: netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", n))}},
		Modules: map[string]facts.ModuleState{
			"overlay": facts.ModuleAvailable, "br_netfilter": facts.ModuleAvailable, "vxlan": facts.ModuleAvailable,
			"dummy": facts.ModuleAvailable, "openvswitch": facts.ModuleAvailable,
		},
		Packages: map[string]facts.Package{"ca-certificates": {Version: "20240203"}, "curl": {Version: "8.5.0"}, "gpg": {Version: "2.4.4"}, "iptables": {Version: "1.8.10"}},
	}
}

func decode(t *testing.T, yaml string) *inventory.Inventory {
	t.Helper()
	inv, err := inventory.Decode("inventory.yaml", []byte(yaml), inventory.Options{
		Env: func(string) (string, bool) { return "", false }, Now: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// cards are NVIDIA functions with these device IDs.
func cards(ids ...string) []facts.Card {
	var out []facts.Card
	for i, id := range ids {
		out = append(out, facts.Card{Address: fmt.Sprintf("0000:%02x:00.0", 0x17+i), ID: id})
	}
	return out
}

func hostFacts(inv *inventory.Inventory) map[string]*facts.Host {
	seen := map[string]*facts.Host{}
	for i, h := range inv.Hosts {
		seen[h.ID()] = bare(10 + i)
	}
	return seen
}

// settle turns facts into those of hosts on which the graph was carried out: the effect of every step, as facts.sh would see it.
func settle(t *testing.T, inv *inventory.Inventory, seen map[string]*facts.Host, g *graph.Graph) {
	t.Helper()
	version := inv.Kubernetes.Version.String()
	for _, s := range g.Steps {
		f := seen[s.Host]
		if id, name := path.Split(s.ID); id == "node/uncordon/" {
			for i := range f.Cluster.Nodes {
				if n := &f.Cluster.Nodes[i]; n.Name == name {
					n.Labels[gpuLabel] = "true"
					delete(n.Labels, machine.DrainedLabel)
					cards, err := strconv.Atoi(s.Input.Values["cards"])
					if err != nil {
						t.Fatal(err)
					}
					n.Allocatable = merged(n.Allocatable, catalog.GPUResource, cards)
				}
			}
		}
		if f.Files == nil {
			f.Files, f.Units, f.Sysctls = map[string]string{}, map[string]facts.Unit{}, map[string]string{}
		}
		input := lateInput(t, seen, s)
		for name, file := range input.Files {
			switch name {
			case "/etc/docker/daemon.json":
				f.DaemonJSON = file.Content
			case containerdConfig:
				f.ContainerdTOML = file.Content
			}
			sum := sha256.Sum256(file.Content)
			f.Files[name] = hex.EncodeToString(sum[:])
		}
		up := facts.Unit{Active: "active", Enabled: "enabled"}
		applyAddon(t, s, f.Cluster)
		if s.ID == "cluster/token" || strings.HasPrefix(s.ID, "addon/") {
			f.NetworkUnproven = f.NetworkUnproven || input.Values["prove"] != ""
		}
		switch s.ID {
		case "os/hosts":
			f.Names = map[string][]netip.Addr{input.Values["name"]: {netip.MustParseAddr(input.Values["address"])}}
			f.Units[apiNameUnit] = facts.Unit{Active: "inactive", Enabled: "enabled"}
		case "os/dpkg":
			f.Apt.Broken, f.Apt.Unsettled = nil, false
		case "os/packages":
			for _, p := range strings.Fields(input.Values["packages"]) {
				f.Packages[p] = facts.Package{Version: "1"}
			}
		case "os/modules":
			for _, m := range strings.Fields(input.Values["modules"]) {
				f.Modules[m] = facts.ModuleLoaded
			}
		case "os/sysctl":
			for _, line := range sysctls {
				k, v, _ := strings.Cut(line, " = ")
				f.Sysctls[k] = v
			}
		case "os/swap":
			f.Swap = nil
		case "os/time":
			f.TimeSync = "systemd-timesyncd"
		case "repo/kubernetes", "repo/docker", "repo/cuda", "repo/nvidia-container-toolkit":
			sum := sha256.Sum256([]byte(input.Values["line"] + "\n"))
			f.Files[input.Values["list"]] = hex.EncodeToString(sum[:])
			f.Files[input.Values["keyring"]], f.Files[input.Values["preferences"]] = "x", "x"
		case "runtime/docker":
			f.Packages["docker-ce"] = facts.Package{Version: "5:29.4.3"}
			f.Units["docker.service"] = up
			f.DockerInfo = map[string]string{"cgroup-driver": "systemd"}
		case "runtime/cri-dockerd":
			f.CRIDockerd = input.Values["version"]
			f.Units["cri-docker.service"], f.Units["cri-docker.socket"] = up, up
		case "runtime/containerd":
			f.Packages["containerd.io"] = facts.Package{Version: "2.2.0"}
			f.Units["containerd.service"] = up
			f.ContainerdLoaded = map[string]string{"cri": "enabled", "SystemdCgroup": "true", "nvidia": "runtime"}
		case "driver/nouveau":
			if f.NVIDIA.Nouveau.Users == 0 {
				f.NVIDIA.Nouveau = facts.Nouveau{}
			}
		case "driver/remove":
			for _, p := range strings.Fields(input.Values["packages"]) {
				delete(f.Packages, p)
			}
			f.NVIDIA.Library, f.NVIDIA.Loaded, f.NVIDIA.GPUs = "", "", nil
		case "driver/install":
			version := driverVersion(input)
			for _, p := range strings.Fields(input.Values["headers"] + "\n" + input.Values["packages"]) {
				f.Packages[p] = facts.Package{Version: version + "-1", Held: true}
			}
			f.NVIDIA.Library = version
		case "driver/reboot":
			f.NVIDIA.Nouveau, f.BootID = facts.Nouveau{}, "another"
		case "driver/load":
			f.NVIDIA.Loaded = f.NVIDIA.Library
			if f.NVIDIA.GPUs == nil {
				f.NVIDIA.GPUs = make([]facts.GPU, len(f.NVIDIA.Cards))
			}
			f.Units[persistence] = up
		case "driver/fabric":
			for _, p := range strings.Fields(input.Values["packages"] + "\n" + input.Values["others"]) {
				f.Packages[p] = facts.Package{Version: f.NVIDIA.Library + "-1"}
			}
			f.Units[input.Values["unit"]] = up
		case "gpu/toolkit":
			for _, spec := range strings.Fields(input.Values["packages"]) {
				name, version, _ := strings.Cut(spec, "=")
				f.Packages[name] = facts.Package{Version: version, Held: true}
			}
			f.Toolkit = map[string]string{}
			for _, setting := range strings.Fields(input.Values["settings"]) {
				name, value, _ := strings.Cut(setting, "=")
				f.Toolkit[name] = value
			}
		case "gpu/cuda":
			for _, name := range strings.Fields(input.Values["packages"]) {
				f.Packages[name] = facts.Package{Version: "1"}
			}
		case "gpu/ready":
			for _, line := range strings.Split(input.Values["nodes"], "\n") {
				var name, resource string
				var count int
				if _, err := fmt.Sscan(line, &name, &count, &resource); err != nil {
					t.Fatal(err)
				}
				for i := range f.Cluster.Nodes {
					if n := &f.Cluster.Nodes[i]; n.Name == name {
						n.Allocatable = merged(n.Allocatable, resource, count)
					}
				}
			}
		case "gpu/features":
			var err error
			if f.NVIDIA.Features, err = facts.Features(strings.Split(strings.TrimSpace(featuresOf(f)), "\n")); err != nil {
				t.Fatal(err)
			}
		case "kube/packages":
			for _, p := range catalog.KubernetesPackages {
				f.Packages[p] = facts.Package{Version: version + "-1.1", Held: true}
			}
		case "kube/kubeadm":
			f.Packages["kubeadm"] = facts.Package{Version: input.Values["version"] + "-1.1", Held: true}
		case "cluster/upgrade":
			f.ControlPlane.Version, f.Upgrading = "v"+input.Values["version"], ""
		case "kube/upgrade":
			for _, p := range []string{"kubelet", "kubectl"} {
				f.Packages[p] = facts.Package{Version: input.Values["version"] + "-1.1", Held: true}
			}
			f.Upgrading = ""
			for i := range seen["cp1"].Cluster.Nodes {
				if n := &seen["cp1"].Cluster.Nodes[i]; n.Name == input.Values["node"] {
					n.Version = "v" + input.Values["version"]
				}
			}
		case "kube/start":
			f.Units["kubelet.service"] = up
		case "cluster/init":
			f.ControlPlane = &facts.ControlPlane{CAHash: "ca", Endpoint: "10.0.0.10:6443", Finished: true, Version: "v" + version}
			f.Cluster = &facts.Cluster{Workloads: map[string]facts.Workload{}}
			if m := regexp.MustCompile(`(?m)^ *controlPlaneEndpoint: (.*)$`).FindStringSubmatch(input.Values["kubeadm"]); m != nil {
				f.ControlPlane.Endpoint = m[1]
			}
			flagsOf(f.ControlPlane, input.Values["kubeadm"])
			joinNode(f, f, s.Host, inv.Runtime)
			f.Certificates = append(f.Certificates, certified(machine.APIServerCertificate, input.Values["kubeadm"]), certified("/etc/kubernetes/admin.conf", ""))
			f.Cluster.Nodes[0].Taints, f.Cluster.Nodes[0].Labels = []string{"node-role.kubernetes.io/control-plane:NoSchedule"}, map[string]string{noLoadBalancer: ""}
			f.Recorded = &facts.Record{Init: true, Done: true, CAHash: "ca"}
		case "os/keepalived":
			f.Packages["keepalived"] = facts.Package{Version: "2.2.8"}
			f.Units["keepalived.service"] = up
		case "backup/timer":
			f.Units["kgpu-backup.timer"], f.Backups = up, &facts.Backups{Since: f.Now}
		case "cluster/join-control-plane":
			plane := planeOf(inv, seen)
			made := *plane.ControlPlane
			f.ControlPlane, f.Cluster = &made, plane.Cluster
			joinNode(plane, f, s.Host, inv.Runtime)
			n := &f.Cluster.Nodes[len(f.Cluster.Nodes)-1]
			n.Taints, n.Labels = []string{"node-role.kubernetes.io/control-plane:NoSchedule"}, map[string]string{noLoadBalancer: ""}
			f.Recorded = &facts.Record{Join: true, Plane: true, Done: true, CAHash: "ca", UID: "uid-" + s.Host}
			f.Certificates = append(f.Certificates, joinedCertificate(plane, input.Values["kubeadm"]), certified("/etc/kubernetes/admin.conf", ""))
		case "cluster/join":
			for _, h := range inv.Hosts {
				if h.ID() == s.Host {
					joinNode(planeOf(inv, seen), f, h.Name, inv.Runtime)
					f.Recorded = &facts.Record{Join: true, Done: true, CAHash: "ca", UID: "uid-" + h.Name}
				}
			}
		case "certs/renew":
			for i, c := range f.Certificates {
				if machine.CertificateName(c.Path) != "kubelet" {
					f.Certificates[i] = certified(c.Path, input.Values["kubeadm"])
				}
			}
			f.RenewalBegun, f.StalePods, f.ControlPlane.Served = false, nil, ""
		case "certs/kubelet":
			f.Certificates = slices.DeleteFunc(f.Certificates, func(c facts.Certificate) bool { return machine.CertificateName(c.Path) == "kubelet" })
			f.Certificates = append(f.Certificates, certified(rotated, ""))
		case "cluster/nodes", "gpu/labels":
			for _, line := range strings.Split(input.Values["nodes"], "\n") {
				word := strings.Split(line, "\t")
				for i := range f.Cluster.Nodes {
					n := &f.Cluster.Nodes[i]
					if n.Name != word[0] {
						continue
					}
					k, v, _ := strings.Cut(word[2], "=")
					switch word[1] {
					case "taint":
						n.Taints = append(n.Taints, word[2])
					case "untaint":
						n.Taints = slices.DeleteFunc(n.Taints, func(taint string) bool { return strings.HasPrefix(taint, word[2]+":") })
					case "annotation":
						n.GPULabels = strings.Split(v, ",")
					case "label":
						n.Labels[k] = v
						if gone, ok := strings.CutSuffix(word[2], "-"); ok {
							delete(n.Labels, gone)
							delete(n.Labels, k)
						}
					}
				}
			}
		case "cluster/ready":
			f.NetworkUnproven = false
			for _, w := range strings.Fields(input.Values["workloads"]) {
				have := f.Cluster.Workloads[w]
				have.Desired, have.Ready = 3, 3
				f.Cluster.Workloads[w] = have
			}
			for i := range f.Cluster.Nodes {
				f.Cluster.Nodes[i].Ready = true
			}
		}
	}
}

// applyAddon does the same with the step of an add-on, if this is one.
func applyAddon(t *testing.T, s *graph.Step, c *facts.Cluster) {
	t.Helper()
	for _, a := range addons {
		switch s.ID {
		case a.removalID():
			delete(c.Workloads, a.workload)
		case a.ID:
			text := s.Input.Values["manifest"]
			w := facts.Workload{Hash: cmp.Or(s.Input.Values["hash"], manifestHashOf(t, text)), Bridge: strings.Contains(text, "WEAVE_NO_FASTDP")}
			if a.awaitedBy == "" {
				w.Desired, w.Ready = 1, 1
			}
			c.Workloads[a.workload] = w
		}
	}
}

// manifestHashOf is what facts.sh would read of the workload in a manifest.
func manifestHashOf(t *testing.T, manifest string) string {
	t.Helper()
	objects := objectsIn(t, []byte(manifest))
	for _, o := range objects {
		if o["kind"] == "DaemonSet" || o["kind"] == "Deployment" {
			return o["metadata"].(object)["annotations"].(object)[manifestHash].(string)
		}
	}
	return ""
}

// joinedCertificate is the certificate of an API server that joined: for the names of the cluster's configuration, as another has them,
// and for its own address.
func joinedCertificate(plane *facts.Host, kubeadm string) facts.Certificate {
	c := certified(machine.APIServerCertificate, kubeadm)
	for _, of := range plane.Certificates {
		if of.Path == machine.APIServerCertificate {
			c.Names = slices.Clone(of.Names)
		}
	}
	if m := regexp.MustCompile(`(?m)^ *advertiseAddress: (.*)$`).FindStringSubmatch(kubeadm); m != nil {
		c.Names = append(c.Names, m[1])
	}
	return c
}

// planeOf is a control plane that has the cluster.
func planeOf(inv *inventory.Inventory, seen map[string]*facts.Host) *facts.Host {
	return seen[machine.AdminPlane(inv, seen).ID()]
}

// rotated is where a kubelet has the certificate that it renews.
const rotated = "/var/lib/kubelet/pki/kubelet-client-current.pem"

// today is the clock of hosts whose certificates count.
var today = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// certified is a certificate in its first year, as kubeadm makes it by this configuration.
func certified(file, kubeadm string) facts.Certificate {
	c := facts.Certificate{Path: file, Begins: today.AddDate(0, -1, 0), Ends: today.AddDate(0, 11, 0), Issuer: "kubernetes", Sum: "made of " + kubeadm}
	if _, list, ok := strings.Cut(kubeadm, "certSANs:\n"); ok && file == machine.APIServerCertificate {
		for _, line := range strings.Split(list, "\n") {
			name, isItem := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if !isItem {
				break
			}
			c.Names = append(c.Names, strings.Trim(name, `"'`))
		}
		c.Names = append(c.Names, "kubernetes", "10.96.0.1")
	}
	return c
}

func joinNode(plane, f *facts.Host, name string, runtime inventory.Runtime) {
	f.Kubelet = &facts.Member{Server: "https://10.0.0.10:6443", CAHash: plane.ControlPlane.CAHash, NodeName: name}
	f.Units["kubelet.service"] = facts.Unit{Active: "active", Enabled: "enabled"}
	plane.Cluster.Nodes = append(plane.Cluster.Nodes, facts.Node{Name: name, UID: "uid-" + name, Runtime: string(runtime) + "://1", InternalIP: f.Addresses[0].Prefix.Addr().String(), Labels: map[string]string{}})
}

func planUp(t *testing.T, inv *inventory.Inventory, seen map[string]*facts.Host) *graph.Graph {
	t.Helper()
	g, err := Up(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// settles wants that there is nothing left to do when a plan has been carried out.
func settles(t *testing.T, inv *inventory.Inventory, seen map[string]*facts.Host, g *graph.Graph) {
	t.Helper()
	settle(t, inv, seen, g)
	nothingLeft(t, inv, seen)
}

func nothingLeft(t *testing.T, inv *inventory.Inventory, seen map[string]*facts.Host) {
	t.Helper()
	if g := planUp(t, inv, seen); !g.Empty() {
		t.Errorf("there is something left to do:\n%s", describe(g))
	}
}

// hasSteps holds that a plan has these steps, in this order, and no others.
func hasSteps(t *testing.T, g *graph.Graph, want ...string) {
	t.Helper()
	if got := refs(g); !slices.Equal(got, want) {
		t.Errorf("planned %q, want %q", got, want)
	}
}

// about is the part of a plan that is on a host or, by its name, about it.
func about(g *graph.Graph, host string) *graph.Graph {
	others := func(s *graph.Step) bool { return s.Host != host && path.Base(s.ID) != host }
	return &graph.Graph{Steps: slices.DeleteFunc(slices.Clone(g.Steps), others)}
}

// newClusters are bare machines and machines in many states.
var newClusters = []scenario{
	{name: "defaults", inventory: threeHosts},
	{name: "containerd-flannel", inventory: threeHosts + containerd},
	{name: "docker-1.35", inventory: threeHosts + "kubernetes: {version: 1.35.6}\n"},
	{name: "dockershim", inventory: threeHosts + `
kubernetes: {version: 1.23.17, allowEndOfLife: true}
network: flannel
repositories: {kubernetes: {url: "https://mirror.example.com/kubernetes/v1.23/deb", fingerprint: DE15B14486CD377B9E876E1A234654DA9A296436}}
`},
	{name: "calico", inventory: threeHosts + "runtime: containerd\nnetwork: calico\n"},
	{name: "bring-your-own-network", inventory: threeHosts + "runtime: containerd\nnetwork: none\n"},
	{name: "passthrough", inventory: threeHosts + `
runtime: containerd
network: flannel
proxy: {http: "http://proxy.example.com:3128", noProxy: [.example.com]}
images: {registry: registry.example.com/mirror}
kubernetes:
  version: 1.36.3
  podCIDR: 10.200.0.0/16
  serviceCIDR: 10.201.0.0/16
  controlPlaneEndpoint: cluster.example.com:6443
  featureGates: {DynamicResourceAllocation: true}
  ignorePreflightErrors: [SystemVerification]
  kubeletConfiguration: {failCgroupV1: false, maxPods: 50}
  clusterConfiguration: {controllerManager: {extraArgs: [{name: v, value: "4"}]}}
  kubeProxyConfiguration: {conntrack: {maxPerCore: 0, min: 0}}
`},
	{name: "no-openvswitch", inventory: threeHosts + "runtime: containerd\n", facts: func(f map[string]*facts.Host) {
		f["w2"].Modules["openvswitch"] = facts.ModuleMissing
	}},
	{name: "swap-and-no-clock", inventory: threeHosts + "runtime: containerd\nnetwork: flannel\nswap: disable\n",
		facts: func(f map[string]*facts.Host) {
			f["w1"].Swap = []facts.Swap{{Name: "/swap.img", Active: true, Source: "fstab"}}
			f["w2"].TimeSync = ""
		}},
	{name: "cards-ubuntu", inventory: threeHosts + containerd, facts: func(f map[string]*facts.Host) {
		f["w1"].NVIDIA.Cards, f["w1"].NVIDIA.Nouveau = cards("20b0", "20b0"), facts.Nouveau{Loaded: true, Users: 1}
		f["w1"].BootID = "5f0c"
		f["w2"].NVIDIA.Cards = cards("1eb8")
	}},
	{name: "cards-debian", inventory: threeHosts + "network: flannel\n", facts: func(f map[string]*facts.Host) {
		f["w1"].OS = facts.OS{ID: "debian", VersionID: "13", Codename: "trixie"}
		f["w1"].Kernel = "6.12.41+deb13-amd64"
		f["w1"].NVIDIA.Cards, f["w1"].NVIDIA.Switches = cards("2330", "2330", "2330", "2330", "2330", "2330", "2330", "2330"), 4
	}},
	{name: "cards-nvlink5", inventory: threeHosts + "runtime: containerd\nnetwork: flannel\ngpu: {cuda: none}\n",
		facts: func(f map[string]*facts.Host) {
			f["w1"].NVIDIA.Cards, f["w1"].NVIDIA.Bridges = cards("2901", "2901", "2901", "2901", "2901", "2901", "2901", "2901"), 4
			f["w2"].NVIDIA.Cards, f["w2"].Arch = cards("2941", "2941", "2941", "2941"), "arm64"
		}},
	{name: "driver-there", inventory: threeHosts + containerd, facts: func(f map[string]*facts.Host) {
		f["w1"].NVIDIA = facts.NVIDIA{Cards: cards("2204"), Loaded: "570.133.20", Library: "570.133.20", GPUs: make([]facts.GPU, 1)}
		f["w2"].NVIDIA.Cards = []facts.Card{{Address: "0000:01:00.0", ID: "2204", Driver: "vfio-pci"}}
	}},
	{name: "notebook", inventory: threeHosts + `
runtime: containerd
network: flannel
gpu: {driver: {source: none}}
images: {registry: registry.example.com/mirror}
notebook: {framework: pytorch, version: 2.10.0, nodePort: 32000, storage: 10Gi}
`, facts: func(f map[string]*facts.Host) {
		f["w1"].NVIDIA = facts.NVIDIA{Cards: cards("2204"), Loaded: "570.133.20", Library: "570.133.20", GPUs: make([]facts.GPU, 1)}
	}},
	{name: "used-hosts", inventory: threeHosts + "network: flannel\n", facts: func(f map[string]*facts.Host) {
		f["w2"].Apt.Broken = []string{"one", "two"}

		f["w1"].DaemonJSON = []byte(`{"insecure-registries":["10.0.0.1:5000"],"exec-opts":["native.cgroupdriver=cgroupfs"]}`)
		f["w1"].Packages["docker.io"] = facts.Package{Version: "26.1.5"}
		f["w1"].Units = map[string]facts.Unit{"docker.service": {Active: "active", Enabled: "disabled"}}
	}},
}

// TestUp holds that carrying a plan out leaves nothing to do.
func TestUp(t *testing.T) { writeDown(t, newClusters) }

// settled is a cluster of the inventory that is up, on hosts with these facts.
func settled(t *testing.T, yaml string, with ...func(map[string]*facts.Host)) (*inventory.Inventory, map[string]*facts.Host) {
	t.Helper()
	inv := decode(t, yaml)
	seen := hostFacts(inv)
	for _, change := range with {
		change(seen)
	}
	settle(t, inv, seen, planUp(t, inv, seen))
	return inv, seen
}

// The datapath of a running weave stays when hosts come or go that have openvswitch, or do not: nodes would crash-loop. Nor is it
// told to take another network, which would not leave room for the one that is there.
func TestDatapathOfARunningWeave(t *testing.T) {
	for name, c := range map[string]struct{ before, after facts.ModuleState }{
		"the last host without it has it": {facts.ModuleMissing, facts.ModuleAvailable},
		"the first host loses it":         {facts.ModuleAvailable, facts.ModuleMissing},
	} {
		t.Run(name, func(t *testing.T) {
			inv := decode(t, threeHosts+"runtime: containerd\n")
			_, seen := settled(t, threeHosts+"runtime: containerd\n", func(f map[string]*facts.Host) { f["w2"].Modules["openvswitch"] = c.before })
			seen["w2"].Modules["openvswitch"] = c.after
			g, err := Up(inv, seen)
			if err != nil || len(g.Warnings) > 0 {
				t.Fatal(err, g.Warnings)
			}
			for _, s := range g.Steps {
				if s.Host == "cp1" {
					t.Errorf("%s: %s", s.ID, s.Reason)
				}
			}
		})
	}
}

// TestRepair breaks one thing of a running cluster at a time: the plan mends that and nothing else.
func TestRepair(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(map[string]*facts.Host)
		want []string
	}{
		{"sysctl", func(f map[string]*facts.Host) { f["w1"].Sysctls["net.ipv4.ip_forward"] = "0" }, []string{"w1 os/sysctl"}},
		{"file", func(f map[string]*facts.Host) { delete(f["w1"].Files, "/etc/modules-load.d/kgpu.conf") }, []string{"w1 os/modules"}},
		{"power cut in an installation", func(f map[string]*facts.Host) { f["w1"].Apt.Unsettled = true }, []string{"w1 os/dpkg"}},
		{"apt's preferences", func(f map[string]*facts.Host) {
			delete(f["w1"].Files, preferencesOf("kubernetes"))
			delete(f["w1"].Files, preferencesOf("docker"))
		}, []string{"w1 repo/kubernetes", "w1 repo/docker"}},
		{"unheld", func(f map[string]*facts.Host) { f["w2"].Packages["kubelet"] = facts.Package{Version: "1.36.3-1.1"} }, []string{"w2 kube/packages"}},
		{"network programs elsewhere", func(f map[string]*facts.Host) { f["w2"].ContainerdLoaded["bin_dir"] = "/usr/lib/cni" }, []string{"w2 runtime/containerd"}},
		{"cgroup driver", func(f map[string]*facts.Host) { f["w2"].ContainerdLoaded["SystemdCgroup"] = "false" }, []string{"w2 runtime/containerd"}},
		{"runtime down", func(f map[string]*facts.Host) {
			f["w2"].Units["containerd.service"] = facts.Unit{Active: "failed", Enabled: "enabled"}
		}, []string{"w2 runtime/containerd"}},
		{"label", func(f map[string]*facts.Host) { delete(f["cp1"].Cluster.Nodes[1].Labels, "disk") }, []string{"cp1 cluster/nodes"}},
		{"network", func(f map[string]*facts.Host) {
			f["cp1"].Cluster.Workloads["kube-flannel/daemonset/kube-flannel-ds"] = facts.Workload{Desired: 3, Ready: 3, Hash: "other"}
		}, []string{"cp1 addon/flannel", "cp1 cluster/ready"}},
		{"not ready", func(f map[string]*facts.Host) { f["cp1"].Cluster.Nodes[2].Ready = false }, []string{"cp1 cluster/ready"}},
		{"control plane down", func(f map[string]*facts.Host) {
			*f["cp1"].ControlPlane, f["cp1"].Cluster = facts.ControlPlane{CAHash: "ca", Endpoint: "10.0.0.10:6443"}, nil
		}, []string{"cp1 cluster/init", "cp1 addon/flannel", "cp1 cluster/untoken", "cp1 cluster/nodes", "cp1 cluster/ready"}},
		{"kubelet of the control plane stopped", func(f map[string]*facts.Host) {
			f["cp1"].Units["kubelet.service"] = facts.Unit{Active: "inactive", Enabled: "enabled"}
		}, []string{"cp1 kube/start"}},
		{"kubelet of a worker disabled, and its node not ready", func(f map[string]*facts.Host) {
			f["w1"].Units["kubelet.service"] = facts.Unit{Active: "failed", Enabled: "disabled"}
			f["cp1"].Cluster.Nodes[1].Ready = false
		}, []string{"w1 kube/start", "cp1 cluster/ready"}},
		{"control plane down, as its kubelet is", func(f map[string]*facts.Host) {
			f["cp1"].Units["kubelet.service"], f["cp1"].Cluster = facts.Unit{Active: "inactive", Enabled: "enabled"}, nil
		}, []string{"cp1 kube/start", "cp1 cluster/init", "cp1 addon/flannel", "cp1 cluster/untoken", "cp1 cluster/nodes", "cp1 cluster/ready"}},
		{"init half-way", func(f map[string]*facts.Host) { f["cp1"].ControlPlane.Finished = false }, []string{"cp1 cluster/init"}},
		{"token left", func(f map[string]*facts.Host) { f["cp1"].Cluster.Tokens = []string{"abcdef"} }, []string{"cp1 cluster/untoken"}},
		{"node deleted", func(f map[string]*facts.Host) { f["cp1"].Cluster.Nodes = f["cp1"].Cluster.Nodes[:2] },
			[]string{"cp1 cluster/token", "w2 cluster/join", "cp1 cluster/untoken", "cp1 cluster/nodes", "cp1 cluster/ready"}},
		{"node with another UID", otherUID,
			[]string{"cp1 cluster/token", "cp1 node/drain/w2", "cp1 node/delete/w2", "w2 cluster/join", "cp1 cluster/untoken", "cp1 cluster/nodes", "cp1 cluster/ready"}},
		{"reset by hand", func(f map[string]*facts.Host) { f["w2"].Kubelet = nil },
			[]string{"cp1 cluster/token", "cp1 node/delete/w2", "w2 cluster/join", "cp1 cluster/untoken", "cp1 cluster/nodes", "cp1 cluster/ready"}},
		{"certificates end soon", aging(29), []string{"cp1 certs/renew"}},
		{"certificates last", aging(31), nil},
		{"certificates renewed, and the API server not restarted", func(f map[string]*facts.Host) { f["cp1"].ControlPlane.Served = "of before" }, []string{"cp1 certs/renew"}},
		{"renewal cut off", func(f map[string]*facts.Host) { f["cp1"].RenewalBegun = true }, []string{"cp1 certs/renew"}},
		{"renewal cut off between restarts", func(f map[string]*facts.Host) { f["cp1"].StalePods = []string{"kube-scheduler"} }, []string{"cp1 certs/renew"}},
		{"certificate of an API server that lacks a name", func(f map[string]*facts.Host) {
			f["cp1"].Certificates[0].Names = []string{"kubernetes"}
		}, []string{"cp1 certs/renew"}},
		{"kubelet's certificate ended", func(f map[string]*facts.Host) {
			asleep("w1")(f)
			f["cp1"].Cluster.Nodes[1].Ready = false
		}, []string{"cp1 cluster/token", "w1 certs/kubelet", "cp1 cluster/untoken", "cp1 cluster/ready"}},
		{"token of a kubelet that came back", func(f map[string]*facts.Host) {
			f["w1"].Certificates = []facts.Certificate{certified(rotated, "")}
			f["w1"].KubeadmFiles = append(f["w1"].KubeadmFiles, bootstrapConfig)
		}, []string{"cp1 cluster/token", "w1 certs/kubelet", "cp1 cluster/untoken", "cp1 cluster/ready"}},
		{"everything slept for a year", func(f map[string]*facts.Host) {
			aging(-1)(f)
			asleep("cp1", "w1", "w2")(f)
			f["cp1"].Cluster = nil
		}, []string{"cp1 certs/kubelet", "cp1 certs/renew", "cp1 cluster/token", "cp1 addon/flannel", "w1 certs/kubelet", "w2 certs/kubelet", "cp1 cluster/untoken", "cp1 cluster/nodes", "cp1 cluster/ready"}},
		{"made by hand, and left alone", handMade, []string{"cp1 cluster/init"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, seen := settled(t, threeHosts+containerd)
			c.harm(seen)
			g := planUp(t, inv, seen)
			hasSteps(t, g, c.want...)
		})
	}
}

// aging lets the certificates of the control plane end in so many days.
func aging(days int) func(map[string]*facts.Host) {
	return func(f map[string]*facts.Host) {
		f["cp1"].Now = today
		for i := range f["cp1"].Certificates {
			f["cp1"].Certificates[i].Begins, f["cp1"].Certificates[i].Ends = today.AddDate(-1, 0, days), today.AddDate(0, 0, days)
		}
	}
}

// asleep lets the certificates of kubelets have ended while the hosts were off.
func asleep(hosts ...string) func(map[string]*facts.Host) {
	return func(f map[string]*facts.Host) {
		for _, id := range hosts {
			c := certified(rotated, "")
			c.Begins, c.Ends = today.AddDate(-1, 0, -1), today.AddDate(0, 0, -1)
			f[id].Now, f[id].Certificates = today, append(f[id].Certificates, c)
			f[id].Units["kubelet.service"] = facts.Unit{Active: "activating", Enabled: "enabled"}
		}
	}
}

func otherUID(f map[string]*facts.Host) { f["cp1"].Cluster.Nodes[2].UID = "new" }

func refs(g *graph.Graph) []string {
	var out []string
	for _, s := range g.Steps {
		out = append(out, s.Ref.String())
	}
	return out
}

// addedWorker is a host that comes to a cluster, and the control plane: the only ones that are asked for facts.
var addedWorker = scenario{
	name: "add-worker", before: threeHosts + containerd,
	inventory: strings.Replace(threeHosts, "hosts:", "hosts:\n  - {address: 10.0.0.13, name: w3}", 1) + containerd,
	harm: func(_ *testing.T, seen map[string]*facts.Host) {
		delete(seen, "w1")
		delete(seen, "w2")
		seen["w3"] = bare(13)
	},
}

// TestAddWorkerBesideCards adds a worker where w1 serves with its cards: w1's pods and the device plugin that they depend on
// stay as they are. Only a taint that is new to the cluster makes the notebook anew, which is to tolerate it.
func TestAddWorkerBesideCards(t *testing.T) {
	members := []string{"cp1 cluster/token", "cp1 cluster/untoken", "cp1 cluster/nodes", "cp1 cluster/ready"}
	for _, c := range []struct {
		name, taints string
		cards        []facts.Card
		want         []string // on the control plane
	}{
		{"without cards", "", nil, members},
		{"with cards", "", cards("1eb8"), append(slices.Clone(members), "cp1 gpu/ready", "cp1 gpu/labels")},
		{"with a new taint", ", taints: [a=b:NoSchedule]", nil, append(slices.Clone(members), "cp1 addon/notebook")},
	} {
		for _, runtime := range []string{"containerd", "docker"} {
			t.Run(c.name+", "+runtime, func(t *testing.T) {
				rest := "runtime: " + runtime + "\nnetwork: flannel\n"
				before, _, _ := strings.Cut(threeHosts, "  - {address: 10.0.0.12")
				_, seen := settled(t, before+rest, func(f map[string]*facts.Host) { f["w1"].NVIDIA.Cards = cards("20b0", "20b0") })
				seen["w2"] = bare(12)
				seen["w2"].NVIDIA.Cards = c.cards
				inv := decode(t, before+"  - {address: 10.0.0.12, name: w2"+c.taints+"}\n"+rest)
				got, offered := besideW2(t, inv, seen)
				if !slices.Equal(got, c.want) || c.cards != nil && offered != "w1 2 nvidia.com/gpu\nw2 1 nvidia.com/gpu" {
					t.Errorf("up: planned %q, which waits for %q", got, offered)
				}
				delete(seen, "w1")
				want := slices.DeleteFunc(slices.Clone(c.want), func(s string) bool { return s == "cp1 addon/notebook" })
				got, offered = besideW2(t, inv, seen)
				if !slices.Equal(got, want) || c.cards != nil && offered != "w2 1 nvidia.com/gpu" {
					t.Errorf("add-worker: planned %q, which waits for %q", got, offered)
				}
			})
		}
	}
}

// besideW2 lists the steps of a plan that are not on w2, and what is waited for. Labels and taints are w2's only.
func besideW2(t *testing.T, inv *inventory.Inventory, seen map[string]*facts.Host) (steps []string, offered string) {
	t.Helper()
	g := planUp(t, inv, seen)
	for _, s := range g.Steps {
		if s.Host != "w2" {
			steps = append(steps, s.String())
		}
		switch nodes := s.Input.Values["nodes"]; {
		case s.ID == "gpu/ready":
			offered = nodes
		case s.ID == "cluster/nodes" && strings.Contains(nodes, "w1"):
			t.Errorf("sets %q", nodes)
		}
	}
	return steps, offered
}

func TestReset(t *testing.T) {
	t.Run("a host that kgpu never changed", func(t *testing.T) {
		inv, seen := settled(t, threeHosts+containerd)
		g, err := Reset(inv, seen, nil)
		if err != nil || !g.Empty() {
			t.Errorf("planned %q, %v", refs(g), err)
		}
	})
	t.Run("the control plane from under its workers", func(t *testing.T) {
		inv, seen := settled(t, threeHosts+containerd)
		for _, only := range [][]string{{"cp1"}, {"cp1", "w1", "w1"}} {
			if _, err := Reset(inv, seen, only); err == nil {
				t.Errorf("%q is planned", only)
			}
		}
	})
	t.Run("without an answer of the API server", func(t *testing.T) {
		inv, seen := settled(t, threeHosts+containerd)
		for _, f := range seen {
			f.Ledger = 7
		}
		seen["cp1"].Cluster = nil
		if _, err := Reset(inv, seen, []string{"w2"}); !errors.Is(err, &reason.Error{ID: reason.APIUnreachable}) {
			t.Errorf("a node would stay in the cluster: %v", err)
		}
		if g, err := Reset(inv, seen, nil); err != nil || len(g.Steps) != 3 {
			t.Errorf("all hosts: %v, %v", refs(g), err)
		}
	})
}
