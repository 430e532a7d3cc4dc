package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

func decode(t *testing.T, more string) *inventory.Inventory {
	t.Helper()
	inv, err := inventory.Decode("inventory.yaml", []byte(`
hosts:
  - {address: 10.0.0.10, name: cp1, role: control-plane}
  - {address: 10.0.0.11, name: w1}
`+more), inventory.Options{Now: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// needing lets a machine find the state at an endpoint.
func needing(m *Machine, host string, purpose machine.Purpose, listens bool, found facts.Reach) {
	at := facts.Endpoint{Host: host, Port: 443}
	m.RequiredEndpoints = []machine.RequiredEndpoint{{Endpoint: at, Purpose: purpose, Listens: listens}}
	m.Reach = map[facts.Endpoint]facts.Reach{at: found}
}

func healthy(n int) *facts.Host {
	loaded := map[string]facts.ModuleState{}
	for _, m := range []string{"overlay", "br_netfilter", "vxlan", "dummy"} {
		loaded[m] = facts.ModuleAvailable
	}
	return &facts.Host{
		Hostname: fmt.Sprintf("host%d", n), MachineID: fmt.Sprint(n), ProductUUID: fmt.Sprint("u", n),
		OS: facts.OS{ID: "ubuntu", VersionID: "24.04", PrettyName: "Ubuntu 24.04 LTS"}, Arch: "amd64", Kernel: "6.8.0-31-generic",
		Systemd: true, CgroupV2: true, CPUs: 4, MemoryKiB: 16 << 20, Modules: loaded,
		Addresses:   []facts.Address{{Interface: "eth0", Prefix: netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", n))}},
		Routes:      []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")},
		FileSystems: []facts.FileSystem{{Path: "/", On: "/", AvailableKiB: 50 << 20, InodesFreePercent: 90}, {Path: "/var", On: "/var", AvailableKiB: 50 << 20, InodesFreePercent: 90}},
		Listening:   []facts.Socket{{Addr: netip.MustParseAddrPort("0.0.0.0:22"), Process: "sshd"}},
	}
}

// cutCards are A100 with a driver, each cut into instances of these profiles.
func cutCards(profiles ...string) facts.NVIDIA {
	n := facts.NVIDIA{Loaded: "580.173.02", Module: "580.173.02", Library: "580.173.02"}
	for i, list := range profiles {
		g := facts.GPU{Address: fmt.Sprintf("0000:%02x:00.0", 0x17+i), Name: "NVIDIA A100-SXM4-40GB", MIG: true}
		for _, p := range strings.Fields(list) {
			g.Instances = append(g.Instances, facts.Instance{Profile: p})
		}
		n.Cards, n.GPUs = append(n.Cards, facts.Card{Address: g.Address, ID: "20b0", Driver: "nvidia"}), append(n.GPUs, g)
	}
	return n
}

// weaveRuns makes the machine the control plane of a cluster with this weave.
func weaveRuns(cp *Machine, weave facts.Workload) {
	cp.Facts.ControlPlane = &facts.ControlPlane{CAHash: "ca", Finished: true}
	cp.Facts.Cluster = &facts.Cluster{Workloads: map[string]facts.Workload{"kube-system/daemonset/weave-net": weave}}
	cp.Facts.Recorded = &facts.Record{Init: true, Done: true, CAHash: "ca"}
}

// TestAdviceNamesThePackages: the advice about packages names them. Only Kubernetes' version has a key in the
// inventory.
func TestAdviceNamesThePackages(t *testing.T) {
	for _, c := range []struct {
		name, more string
		packages   map[string]facts.Package
		want       string
	}{
		{"newer", "", map[string]facts.Package{"kubelet": {Version: "1.36.4-1.1"}},
			"`apt-get remove --allow-change-held-packages kubelet kubeadm kubectl` on the host lets kgpu install its own; or write `kubernetes: {version: 1.36.4}` into the inventory"},
		{"newer than a version that the inventory has", "kubernetes: {version: 1.36.2}\n", map[string]facts.Package{"kubelet": {Version: "1.36.4-1.1", Held: true}},
			"`apt-get remove --allow-change-held-packages kubelet kubeadm kubectl` on the host lets kgpu install its own; or write `kubernetes: {version: 1.36.4}` into the inventory (inventory.yaml:5:23)"},
		{"newer than what kgpu knows", "", map[string]facts.Package{"kubelet": {Version: "1.99.0-1.1"}},
			"`apt-get remove --allow-change-held-packages kubelet kubeadm kubectl` on the host lets kgpu install its own"},
		{"older, held", "", map[string]facts.Package{"kubectl": {Version: "1.36.1-1.1", Held: true}},
			"`apt-mark unhold kubectl` on the host lets kgpu have its version; or write `kubernetes: {version: 1.36.1}` into the inventory"},
		{"older toolkit, held", "", map[string]facts.Package{"nvidia-container-toolkit": {Version: "1.17.8-1", Held: true}, "libnvidia-container1": {Version: "1.17.8-1", Held: true}},
			"`apt-mark unhold libnvidia-container1 nvidia-container-toolkit` on the host lets kgpu have its version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := decode(t, c.more)
			cp, w := Machine{Machine: machine.Machine{Host: inv.Hosts[0], Facts: healthy(10)}}, Machine{Machine: machine.Machine{Host: inv.Hosts[1], Facts: healthy(11)}}
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
			w.Facts.Packages = c.packages
			var got []string
			for _, e := range Check(inv, []Machine{cp, w}, nil) {
				got = append(got, e.AdviceLine())
			}
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// resolvers is what a host has in /etc/resolv.conf and in the file of systemd-resolved; empty: it has no such file.
func resolvers(own, systemd string) map[string][]netip.Addr {
	all := map[string][]netip.Addr{"/etc/resolv.conf": {netip.MustParseAddr(own)}}
	if systemd != "" {
		all[facts.SystemdResolvConf] = []netip.Addr{netip.MustParseAddr(systemd)}
	}
	return all
}

// TestCheck spoils one thing at a time: that is found, on that host, and nothing else.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		more  string
		spoil func(cp, w *Machine)
		want  string // "host ID detail", empty: no problem
	}{
		{name: "healthy"},
		{name: "other distribution", spoil: func(_, w *Machine) { w.Facts.OS = facts.OS{ID: "fedora", VersionID: "42", PrettyName: "Fedora 42"} },
			want: "w1 HOST_OS_UNSUPPORTED the host runs Fedora 42"},
		{name: "a release that has ended", spoil: func(_, w *Machine) {
			w.Facts.OS = facts.OS{ID: "ubuntu", VersionID: "20.04", PrettyName: "Ubuntu 20.04.6 LTS"}
		},
			want: "w1 HOST_OS_UNSUPPORTED the host runs Ubuntu 20.04.6 LTS, which has had no updates for everybody since May 2025"},
		{name: "an interim release that has ended", spoil: func(_, w *Machine) {
			w.Facts.OS = facts.OS{ID: "ubuntu", VersionID: "25.10", PrettyName: "Ubuntu 25.10"}
		},
			want: "w1 HOST_OS_UNSUPPORTED the host runs Ubuntu 25.10, which has had no updates for everybody since July 2026"},
		{name: "architecture", spoil: func(_, w *Machine) { w.Facts.Arch = "riscv64" }, want: "w1 HOST_ARCH_UNSUPPORTED the host's architecture is riscv64"},
		{name: "no systemd", spoil: func(_, w *Machine) { w.Facts.Systemd = false }, want: "w1 HOST_NO_SYSTEMD PID 1 is not systemd"},
		{name: "kernel", spoil: func(_, w *Machine) { w.Facts.Kernel = "4.15.0-20-generic" }, want: "w1 HOST_KERNEL_TOO_OLD kernel 4.15.0-20-generic is older than 4.19"},
		{name: "cgroup v1", spoil: func(_, w *Machine) { w.Facts.CgroupV2 = false }, want: "w1 HOST_CGROUP_V1 the host uses cgroup v1, which Kubernetes 1.36 refuses"},
		{name: "cgroup v1, accepted", more: "kubernetes: {kubeletConfiguration: {failCgroupV1: false}}\n", spoil: func(_, w *Machine) { w.Facts.CgroupV2 = false }},
		{name: "reboot into the kernel of a driver that kgpu began to install", spoil: func(cp, _ *Machine) {
			cp.Facts.RebootPending, cp.Facts.NVIDIA.Cards = true, []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
			cp.Facts.Files = map[string]string{"/etc/apt/apt.conf.d/52kgpu-nvidia": "00"}
		}},
		{name: "reboot", spoil: func(cp, _ *Machine) { cp.Facts.RebootPending = true }, want: "cp1 HOST_REBOOT_PENDING an update waits for a reboot"},
		{name: "newer kernel", spoil: func(cp, _ *Machine) {
			cp.Facts.Kernels = []string{"6.8.0-31-generic", "6.8.0-4-generic", "6.8.0-45-generic", "6.11.0-8-lowlatency"}
		}, want: "cp1 HOST_REBOOT_PENDING the host runs kernel 6.8.0-31-generic, 6.8.0-45-generic is installed"},
		{name: "newer kernels of other lines", spoil: func(cp, _ *Machine) {
			cp.Facts.Kernel, cp.Facts.Kernels = "6.8.0-31-generic-64k", []string{"6.8.0-45-nvidia-64k", "6.8.0-45-generic"}
		}},
		{name: "CPU", spoil: func(cp, _ *Machine) { cp.Facts.CPUs = 1 }, want: "cp1 HOST_TOO_SMALL 1 CPU, a control-plane needs 2"},
		{name: "memory", spoil: func(_, w *Machine) { w.Facts.MemoryKiB = 512 << 10 }, want: "w1 HOST_TOO_SMALL 512 MiB of memory, a worker needs 900"},
		{name: "disk", spoil: func(_, w *Machine) { w.Facts.FileSystems[1].AvailableKiB = 100 << 10 }, want: "w1 HOST_DISK_FULL /var has 100 MiB free, 4096 MiB are needed"},
		{name: "inodes", spoil: func(_, w *Machine) { w.Facts.FileSystems[0].InodesFreePercent = 1 }, want: "w1 HOST_INODES_FULL / has 1 % of its inodes free"},
		{name: "noexec", spoil: func(_, w *Machine) { w.Facts.FileSystems[1].NoExec = true }, want: "w1 HOST_MOUNT_NOEXEC /var is mounted noexec, and the images of containers are there"},
		{name: "noexec elsewhere", spoil: func(_, w *Machine) {
			for _, path := range []string{"/tmp", "/var/cache/apt"} {
				w.Facts.FileSystems = append(w.Facts.FileSystems, facts.FileSystem{Path: path, On: path, AvailableKiB: 50 << 20, InodesFreePercent: 90, NoExec: true})
			}
		}},
		{name: "swap", spoil: func(_, w *Machine) { w.Facts.Swap = []facts.Swap{{Name: "/swap.img", Active: true}} }, want: "w1 HOST_SWAP_ON swap is on: /swap.img"},
		{name: "swap, to be turned off", more: "swap: disable\n", spoil: func(_, w *Machine) { w.Facts.Swap = []facts.Swap{{Name: "/swap.img", Active: true}} }},
		{name: "clock", spoil: func(_, w *Machine) { w.Skew = -2 * time.Minute }, want: "w1 HOST_CLOCK_SKEW the clock is -2m0s off"},
		{name: "address", spoil: func(_, w *Machine) { w.PrivateAddress = netip.MustParseAddr("10.9.9.9") }, want: "w1 HOST_ADDRESS_MISSING none of the host's interfaces has 10.9.9.9"},
		{name: "name server at a loopback address", spoil: func(_, w *Machine) { w.Facts.Resolvers = resolvers("127.0.0.1", "") },
			want: "w1 HOST_RESOLVER_UNUSABLE /etc/resolv.conf names the server 127.0.0.1, which in a pod is not that of the host: the cluster's DNS would ask itself"},
		{name: "name server at a loopback address, of systemd-resolved", spoil: func(_, w *Machine) { w.Facts.Resolvers = resolvers("127.0.0.53", "10.0.0.1") }},
		{name: "name server at a loopback address, another chosen", more: "kubernetes: {kubeletConfiguration: {resolvConf: /etc/resolv-pods.conf}}\n",
			spoil: func(_, w *Machine) { w.Facts.Resolvers = resolvers("127.0.0.1", "") }},
		{name: "same address", spoil: func(cp, w *Machine) {
			cp.PrivateAddress = netip.MustParseAddr("10.0.0.11")
			cp.Facts.Addresses = w.Facts.Addresses
		}, want: "w1 HOST_ADDRESS_DUPLICATE same address as cp1: 10.0.0.11"},
		{name: "MTU", spoil: func(cp, w *Machine) { cp.Facts.Addresses[0].MTU, w.Facts.Addresses[0].MTU = 1500, 9000 }, want: "w1 NET_MTU_DIFFERS the link has MTU 9000, that of cp1 1500"},
		{name: "API port", spoil: func(cp, _ *Machine) {
			cp.Facts.Listening = append(cp.Facts.Listening, facts.Socket{Addr: netip.MustParseAddrPort("[::]:6443"), Process: "haproxy"})
		}, want: "cp1 HOST_PORT_TAKEN port 6443 is taken by haproxy"},
		{name: "API port on a worker", spoil: func(_, w *Machine) {
			w.Facts.Listening = append(w.Facts.Listening, facts.Socket{Addr: netip.MustParseAddrPort("0.0.0.0:6443")})
		}},
		{name: "dpkg, which a step repairs", spoil: func(_, w *Machine) { w.Facts.Apt.Broken = []string{"nvidia-dkms-580"} }},
		{name: "apt at work, which steps wait for", spoil: func(_, w *Machine) { w.Facts.Apt.LockHolder = "unattended-upgr (pid 812)" }},
		{name: "hold at another version", spoil: func(_, w *Machine) {
			w.Facts.Packages = map[string]facts.Package{"kubelet": {Version: "1.30.2-1.1", Held: true}}
		},
			want: "w1 HOST_PACKAGE_HELD kubelet is held at 1.30.2-1.1, the inventory wants Kubernetes 1.36.3"},
		{name: "hold at the version wanted", spoil: func(_, w *Machine) {
			w.Facts.Packages = map[string]facts.Package{"kubelet": {Version: "1.36.3-1.1", Held: true}}
		}},
		{name: "hold that may be kgpu's", spoil: func(_, w *Machine) {
			w.Facts.Packages = map[string]facts.Package{"kubelet": {Version: "1.30.2-1.1", Held: true}}
			w.Facts.Ledger = 3
		}},
		{name: "newer Kubernetes", spoil: func(_, w *Machine) {
			w.Facts.Packages = map[string]facts.Package{"kubelet": {Version: "1.36.4-1.1"}, "kubeadm": {Version: "1.36.3-2.1"}, "kubectl": {Version: "1.37.0-1.1", Held: true}}
		}, want: "w1 HOST_PACKAGE_NEWER kubelet is 1.36.4-1.1, kubectl is 1.37.0-1.1: newer than the Kubernetes 1.36.3 that the host is to get"},
		{name: "older Kubernetes", spoil: func(_, w *Machine) {
			w.Facts.Packages = map[string]facts.Package{"kubelet": {Version: "1.36.2-1.1"}, "kubectl": {Version: "1.30.2-00"}}
		}},
		{name: "older toolkit, held", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
			w.Facts.Packages = map[string]facts.Package{"nvidia-container-toolkit": {Version: "1.17.8-1", Held: true}, "libnvidia-container1": {Version: "1.17.8-1"}}
		}, want: "w1 HOST_PACKAGE_HELD nvidia-container-toolkit is held at 1.17.8-1, kgpu wants 1.20.0-1 or newer"},
		{name: "newer toolkit, held", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
			w.Facts.Packages = map[string]facts.Package{"nvidia-container-toolkit": {Version: "1.21.0-1", Held: true}}
		}},
		{name: "older toolkit, held, without cards", spoil: func(_, w *Machine) {
			w.Facts.Packages = map[string]facts.Package{"nvidia-container-toolkit": {Version: "1.17.8-1", Held: true}}
		}},
		{name: "a runc of the owner's", spoil: func(_, w *Machine) { w.Facts.Shadows = []string{"/usr/local/sbin/runc"} },
			want: "w1 HOST_SHADOWED run instead of what packages bring: /usr/local/sbin/runc"},
		{name: "daemon.json", spoil: func(_, w *Machine) { w.Facts.DaemonJSON = []byte("{") }, want: "w1 HOST_RUNTIME_CONFLICT /etc/docker/daemon.json is not valid JSON"},
		{name: "firewall", spoil: func(_, w *Machine) { w.Facts.Firewall = "ufw" }, want: "w1 HOST_FIREWALL_ACTIVE ufw is active"},
		{name: "docker of a snap", spoil: func(_, w *Machine) {
			w.Facts.Units = map[string]facts.Unit{"snap.docker.dockerd.service": {Active: "active", Enabled: "enabled"}}
		}, want: "w1 HOST_RUNTIME_CONFLICT docker runs here as a snap: `sudo snap remove docker`, or choose `runtime: containerd`"},
		{name: "other distribution of Kubernetes", spoil: func(_, w *Machine) { w.Facts.OtherDistributions = []string{"k3s"} }, want: "w1 HOST_FOREIGN_CLUSTER found k3s"},
		{name: "other distribution that runs", spoil: func(_, w *Machine) {
			w.Facts.OtherDistributions, w.Facts.DistributionPaths = []string{"k3s"}, []string{"/usr/local/bin/k3s", "/var/lib/rancher/k3s"}
			w.Facts.Units = map[string]facts.Unit{"k3s.service": {Active: "active", Enabled: "enabled"}}
		}, want: "w1 HOST_FOREIGN_CLUSTER found k3s: /var/lib/rancher/k3s, /usr/local/bin/k3s, k3s.service"},
		{name: "directory of another distribution", spoil: func(_, w *Machine) {
			w.Facts.OtherDistributions, w.Facts.DistributionPaths = []string{"k3s"}, []string{"/var/lib/rancher/k3s"}
		}},
		{name: "other cluster", spoil: func(_, w *Machine) { w.Facts.Kubelet = &facts.Member{Server: "https://10.1.1.1:6443", CAHash: "x"} },
			want: "w1 HOST_FOREIGN_CLUSTER the kubelet belongs to the cluster at https://10.1.1.1:6443 (CA x), and this one does not exist yet"},
		{name: "weave's fast datapath", spoil: func(cp, _ *Machine) {
			weaveRuns(cp, facts.Workload{})
		}, want: "w1 HOST_MODULE_MISSING the kernel has no module openvswitch, which weave's fast datapath needs, which this cluster has"},
		{name: "weave without it", spoil: func(cp, _ *Machine) {
			weaveRuns(cp, facts.Workload{Bridge: true})
		}},
		{name: "legacy iptables", spoil: func(_, w *Machine) { w.Facts.LegacyRules = true },
			want: "w1 HOST_IPTABLES_LEGACY iptables is iptables-legacy, which the pod network weave does not work with"},
		{name: "legacy iptables under flannel", more: "network: flannel\n", spoil: func(_, w *Machine) { w.Facts.LegacyRules = true }},
		{name: "ports of weave", spoil: func(_, w *Machine) {
			w.Facts.Listening = []facts.Socket{{Addr: netip.MustParseAddrPort("127.0.0.1:6782"), Process: "x"}}
		}, want: "w1 HOST_PORT_TAKEN port 6782 is taken by x"},
		{name: "module", spoil: func(_, w *Machine) { w.Facts.Modules["dummy"] = facts.ModuleMissing }, want: "w1 HOST_MODULE_MISSING the kernel has no module dummy, which the pod network weave needs"},
		{name: "route", spoil: func(_, w *Machine) { w.Facts.Routes = append(w.Facts.Routes, netip.MustParsePrefix("10.244.7.0/24")) },
			want: "w1 NET_RANGE_OVERLAP podCIDR 10.244.0.0/16 overlaps with the host's route to 10.244.7.0/24"},
		{name: "repository", spoil: func(_, w *Machine) { needing(w, "pkgs.k8s.io", machine.Packages, true, facts.Silent) },
			want: "w1 REPO_UNREACHABLE pkgs.k8s.io port 443, for packages: no answer within 10 s"},
		{name: "reached", spoil: func(_, w *Machine) { needing(w, "pkgs.k8s.io", machine.Packages, true, facts.Open) }},
		{name: "DNS", spoil: func(_, w *Machine) { needing(w, "registry.k8s.io", machine.Images, true, facts.Unresolved) },
			want: "w1 NET_NAME_UNRESOLVED registry.k8s.io port 443, for images: the name does not resolve"},
		{name: "registry", spoil: func(_, w *Machine) { needing(w, "registry.k8s.io", machine.Images, true, facts.Unreachable) },
			want: "w1 REGISTRY_UNREACHABLE registry.k8s.io port 443, for images: there is no way there"},
		{name: "proxy", spoil: func(_, w *Machine) { needing(w, "proxy.lan", machine.ByProxy, true, facts.Refused) },
			want: "w1 PROXY_UNREACHABLE proxy.lan port 443, for the proxy: the connection was refused"},
		{name: "the proxy of its own apt", spoil: func(_, w *Machine) { needing(w, "pkgs.k8s.io", machine.Packages, true, "proxy-silent") },
			want: "w1 PROXY_UNREACHABLE pkgs.k8s.io port 443, for packages, by the proxy that apt on the host is set to: no answer within 10 s"},
		{name: "API server that is not there yet", spoil: func(_, w *Machine) { needing(w, "10.0.0.10", machine.ToAPI, false, facts.Refused) }},
		{name: "API server that is there", spoil: func(_, w *Machine) { needing(w, "10.0.0.10", machine.ToAPI, true, facts.Refused) },
			want: "w1 NET_PORT_BLOCKED 10.0.0.10 port 443, for the API server: the connection was refused"},
		{name: "way between nodes", spoil: func(cp, _ *Machine) { needing(cp, "10.0.0.11", machine.ToNode, false, facts.Silent) },
			want: "cp1 NET_PORT_BLOCKED 10.0.0.11 port 443, for another node: no answer within 10 s"},
		{name: "card", spoil: func(_, w *Machine) { w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}} }},
		{name: "card that no driver runs", spoil: func(_, w *Machine) {
			w.Facts.OS.VersionID = "26.04"
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "102d"}}
		}, want: "w1 GPU_UNSUPPORTED no driver for Tesla K80 (Kepler) is offered for ubuntu 26.04"},
		{name: "WSL", spoil: func(_, w *Machine) { w.Facts.Kernel, w.Facts.Virt = "5.15.167.4-microsoft-standard-WSL2", "wsl" },
			want: "w1 HOST_OS_UNSUPPORTED the host is Windows' WSL (kernel 5.15.167.4-microsoft-standard-WSL2)"},
		{name: "a kernel of somebody else's", spoil: func(_, w *Machine) {
			w.Facts.Kernel, w.Facts.NVIDIA.Cards = "6.12.9-x64v3-xanmod1", []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
			w.Facts.Ways = []facts.Way{{Name: "headers", Why: "no"}}
		}, want: "w1 GPU_NO_MODULES kernel 6.12.9-x64v3-xanmod1 is not one of ubuntu's: nobody builds modules for it, and its headers, with which DKMS would, are neither installed nor offered by apt (no)"},
		{name: "a kernel of somebody else's, without cards", spoil: func(_, w *Machine) { w.Facts.Kernel = "6.12.9-x64v3-xanmod1" }},
		{name: "Secure Boot", spoil: func(_, w *Machine) {
			w.Facts.OS, w.Facts.SecureBoot = facts.OS{ID: "debian", VersionID: "13", PrettyName: "Debian"}, true
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
		}, want: "w1 GPU_SECUREBOOT_UNSIGNED Secure Boot is on, and the modules of driver 595 (open) from cuda for A100 SXM4 40GB (Ampere) are not signed"},
		{name: "impossible driver", more: "gpu: {driver: {flavour: proprietary}}\n", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "2b85"}}
		}, want: "w1 GPU_DRIVER_IMPOSSIBLE GeForce RTX 5090 (Blackwell): gpu.driver (flavour proprietary) cannot be had or does not run it on ubuntu 24.04"},
		{name: "no driver where the inventory has one", more: "gpu: {driver: {source: none}}\n", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "2b85"}}
		}, want: "w1 GPU_DRIVER_MISSING the inventory says that the driver is there, but there is no driver"},
		{name: "driver of an installer that does not work", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA = facts.NVIDIA{Cards: []facts.Card{{Address: "0000:17:00.0", ID: "2b85"}}, Runfile: true, Loaded: "575.57.08", Library: "575.64.03"}
		}, want: "w1 GPU_DRIVER_FOREIGN a .run installer put a driver there that does not work: its module is 575.57.08, its library 575.64.03"},
		{name: "another driver's packages", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA = facts.NVIDIA{Cards: []facts.Card{{Address: "0000:17:00.0", ID: "2b85"}}, Library: "550.163.01"}
			w.Facts.Packages = map[string]facts.Package{"libnvidia-compute-550": {Version: "550.163.01-0ubuntu1"}}
		}},
		{name: "another driver of an installer", more: "gpu: {driver: {branch: 595}}\n", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA = facts.NVIDIA{Cards: []facts.Card{{Address: "0000:17:00.0", ID: "2b85"}}, Runfile: true, Loaded: "580.65.06", Library: "580.65.06", GPUs: make([]facts.GPU, 1)}
		}, want: "w1 GPU_DRIVER_FOREIGN a .run installer put driver 580.65.06 there, and the inventory asks for 595 (open) from ubuntu"},
		{name: "cards cut alike", more: "gpu: {migStrategy: single}\n", spoil: func(_, w *Machine) { w.Facts.NVIDIA = cutCards("1g.5gb 1g.5gb", "1g.5gb") }},
		{name: "cards cut differently", more: "gpu: {migStrategy: single}\n", spoil: func(_, w *Machine) { w.Facts.NVIDIA = cutCards("3g.20gb", "1g.5gb") },
			want: "w1 GPU_MIG_MISMATCH there are instances of the profiles 1g.5gb, 3g.20gb: `migStrategy: single` wants one"},
		{name: "cards cut and not", more: "gpu: {migStrategy: single}\n", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA = cutCards("1g.5gb", "1g.5gb")
			w.Facts.NVIDIA.GPUs[1].MIG, w.Facts.NVIDIA.GPUs[1].Instances = false, nil
		}, want: "w1 GPU_MIG_MISMATCH 1 of 2 GPUs are in MIG mode: `migStrategy: single` wants all or none"},
		{name: "card without instances", more: "gpu: {migStrategy: single}\n", spoil: func(_, w *Machine) { w.Facts.NVIDIA = cutCards("") },
			want: "w1 GPU_MIG_MISMATCH GPU 0000:17:00.0 (NVIDIA A100-SXM4-40GB) is in MIG mode and has no instances"},
		{name: "cards cut differently and offered so", more: "gpu: {migStrategy: mixed}\n", spoil: func(_, w *Machine) { w.Facts.NVIDIA = cutCards("3g.20gb", "1g.5gb", "") }},
		{name: "CUDA that dropped the card", more: "gpu: {cuda: \"13.0\"}\n", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "1db6"}}
		}, want: "w1 GPU_CUDA_IMPOSSIBLE gpu.cuda 13.0: it does not compile for Tesla V100 PCIe 32GB (Volta)"},
		{name: "a framework that does not compute on the card", more: "notebook: {framework: tensorflow}\n", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA = facts.NVIDIA{Cards: []facts.Card{{Address: "0000:17:00.0", ID: "2b85"}}}
		}, want: "w1 NOTEBOOK_NO_FRAMEWORK tensorflow does not compute on GeForce RTX 5090 (Blackwell) of w1"},
		{name: "no framework computes on the card, and none is asked for", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA = facts.NVIDIA{Cards: []facts.Card{{Address: "0000:17:00.0", ID: "1180"}}, Loaded: "470.256.02", Library: "470.256.02", GPUs: make([]facts.GPU, 1)}
		}, more: "gpu: {driver: {source: none}, cuda: none}\n"},
		{name: "an image of one's own for the card", more: "notebook: {framework: tensorflow, image: \"reg.lan/notebook:1\"}\n", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA = facts.NVIDIA{Cards: []facts.Card{{Address: "0000:17:00.0", ID: "2b85"}}}
		}},
		{name: "no room for CUDA", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
			w.Facts.FileSystems[0].AvailableKiB = 8 << 20
		}, want: "w1 HOST_DISK_FULL / has 8589 MB free, 9600 are needed for cuda-toolkit-13-0 and cudnn9-cuda-13; `gpu: {cuda: none}` does without"},
		{name: "no room to download CUDA", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
			w.Facts.FileSystems = w.Facts.FileSystems[:1]
			w.Facts.FileSystems[0].AvailableKiB = 12 << 20
		}, want: "w1 HOST_DISK_FULL / has 12884 MB free, 14550 are needed for cuda-toolkit-13-0 and cudnn9-cuda-13; `gpu: {cuda: none}` does without"},
		{name: "no room for CUDA that is not wanted", more: "gpu: {cuda: none}\n", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
			w.Facts.FileSystems[0].AvailableKiB = 8 << 20
		}},
		{name: "no room for CUDA that is there", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}}
			w.Facts.FileSystems[0].AvailableKiB = 8 << 20
			w.Facts.Packages = map[string]facts.Package{"cuda-toolkit-13-0": {}, "cudnn9-cuda-13": {}}
		}},
		{name: "card for virtual machines", spoil: func(_, w *Machine) {
			w.Facts.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "0001", Driver: "vfio-pci"}}
		}},
		{name: "machine-id", spoil: func(cp, w *Machine) { w.Facts.MachineID = cp.Facts.MachineID }, want: "w1 HOST_MACHINE_ID_DUPLICATE same machine-id as cp1: 10"},
		{name: "product UUID", spoil: func(cp, w *Machine) { w.Facts.ProductUUID = cp.Facts.ProductUUID }, want: "w1 HOST_PRODUCT_UUID_DUPLICATE same product UUID as cp1: u10"},
		{name: "name", spoil: func(_, w *Machine) { w.Name, w.Facts.Hostname = "", "GPU_box" }, want: `10.0.0.11 HOST_NAME_INVALID "gpu_box" cannot be a node's name`},
		{name: "same name", spoil: func(_, w *Machine) { w.Name, w.Facts.Hostname = "", "CP1" }, want: "10.0.0.11 HOST_NAME_DUPLICATE same node name as cp1: cp1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := decode(t, c.more)
			machines := []Machine{{Machine: machine.Machine{Host: inv.Hosts[0], Facts: healthy(10)}}, {Machine: machine.Machine{Host: inv.Hosts[1], Facts: healthy(11)}}}
			if c.spoil != nil {
				c.spoil(&machines[0], &machines[1])
			}
			var got []string
			for _, p := range Check(inv, machines, nil) {
				got = append(got, fmt.Sprintf("%s %s %s", p.Host, p.ID, p.Detail))
			}
			want := []string{c.want}
			if c.want == "" {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Fatalf("found %q, want %q", got, want)
			}
			if c.want == "" {
				return
			}
			id := string(Check(inv, machines, nil)[0].ID)
			if left := Check(inv, machines, []string{id}); len(left) > 0 {
				t.Errorf("--ignore %s leaves %v", id, left)
			}
		})
	}
}

// TestNodesMayUseTheirOwnResources: ports, routes and disk space that a running cluster uses are no problems.
func TestNodesMayUseTheirOwnResources(t *testing.T) {
	inv := decode(t, "")
	cp, w := healthy(10), healthy(11)
	cp.ControlPlane = &facts.ControlPlane{CAHash: "ca", Finished: true}
	cp.Recorded, w.Recorded = &facts.Record{Init: true, Done: true}, &facts.Record{Join: true, Done: true}
	for _, f := range []*facts.Host{cp, w} {
		f.Kubelet = &facts.Member{CAHash: "ca"}
		f.Packages = map[string]facts.Package{"kubelet": {Version: inv.Kubernetes.Version.String() + "-1.1"}}
		f.Listening = append(f.Listening, facts.Socket{Addr: netip.MustParseAddrPort("0.0.0.0:10250"), Process: "kubelet"})
		f.Routes = append(f.Routes, netip.MustParsePrefix("10.244.1.0/24"))
		f.FileSystems[1].AvailableKiB = 1 << 20
	}
	machines := []Machine{{Machine: machine.Machine{Host: inv.Hosts[0], Facts: cp}}, {Machine: machine.Machine{Host: inv.Hosts[1], Facts: w}}}
	if found := Check(inv, machines, nil); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	w.OS = facts.OS{ID: "ubuntu", VersionID: "20.04", PrettyName: "Ubuntu 20.04.6 LTS"}
	if found := Check(inv, machines, nil); len(found) > 0 {
		t.Errorf("a node whose release has ended meanwhile: %v", found)
	}
	w.Packages["kubelet"] = facts.Package{Version: "1.35.6-1.1"}
	if found := Check(inv, machines, nil); len(found) > 0 {
		t.Errorf("of what only the plan decides, preflight says: %v", found)
	}
}
