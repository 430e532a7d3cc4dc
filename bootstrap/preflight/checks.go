package preflight

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// minKernel is kubeadm's minimum since 1.32, the first with all of cgroup v2 and nftables.
// Source: https://kubernetes.io/docs/reference/node/kernel-version-requirements/.
var minKernel = []int{4, 19}

func (c *checker) system(m Machine) {
	f := m.Facts
	switch release, ok := catalog.LookupRelease(f.OS.ID + " " + f.OS.VersionID); {
	case !ok:
		c.problem(m.ID(), reason.HostOSUnsupported, "the host runs %s", f.OS.PrettyName)
	case release.Ended() && !m.InCluster():
		c.problem(m.ID(), reason.HostOSUnsupported, "the host runs %s, which has had no updates for everybody since %s", f.OS.PrettyName, release.End.Format("January 2006"))
	}
	if f.Virt == "wsl" || strings.Contains(f.Kernel, "microsoft-standard") {
		c.problemWithAdvice(m.ID(), reason.HostOSUnsupported, "take a machine of its own, or a virtual machine that has the cards: in WSL, kernel and driver are those of Windows",
			"the host is Windows' WSL (kernel %s)", f.Kernel)
	}
	if f.Arch != "amd64" && f.Arch != "arm64" {
		c.problem(m.ID(), reason.HostArchUnsupported, "the host's architecture is %s", f.Arch)
	}
	if !f.Systemd {
		c.problem(m.ID(), reason.HostNoSystemd, "PID 1 is not systemd")
	}
	if numbers, _ := kernelVersion(f.Kernel); len(numbers) > 0 && slices.Compare(numbers, minKernel) < 0 {
		c.problem(m.ID(), reason.HostKernelTooOld, "kernel %s is older than %d.%d", f.Kernel, minKernel[0], minKernel[1])
	}
	if c.inv.Kubernetes.Version.Minor >= 35 && !f.CgroupV2 && c.inv.Kubernetes.KubeletConfiguration["failCgroupV1"] != false {
		c.problem(m.ID(), reason.HostCgroupV1, "the host uses cgroup v1, which Kubernetes %s refuses", c.inv.Kubernetes.Version.MinorString())
	}
	if is := machine.OldContainerd(c.inv, f); is != "" && c.inv.Kubernetes.Version.Minor >= catalog.ContainerdTwoSince {
		c.problem(m.ID(), reason.HostContainerdOld, "%s, which Kubernetes %s refuses", is, c.inv.Kubernetes.Version.MinorString())
	}
	if newest := newestKernel(f); machine.DriverInterrupted(c.inv, f) {
		return // a reboot for kgpu's own changes is planned already
	} else if f.RebootPending {
		c.problem(m.ID(), reason.HostRebootPending, "an update waits for a reboot")
	} else if newest != f.Kernel {
		c.problem(m.ID(), reason.HostRebootPending, "the host runs kernel %s, %s is installed", f.Kernel, newest)
	}
}

// minimumSize is kubeadm's own minimum for a control plane (2 CPUs, 1700 MB), and a minimum for a useful worker.
func minimumSize(role inventory.Role) (cpus int, mib int64) {
	if role == inventory.ControlPlane {
		return 2, 1700
	}
	return 1, 900
}

// BigEnough reports whether a host has enough CPUs and memory for a role.
func BigEnough(role inventory.Role, f *facts.Host) bool {
	cpus, mib := minimumSize(role)
	return f.CPUs >= cpus && f.MemoryKiB/1024 >= mib
}

func (c *checker) size(m Machine) {
	cpus, mib := minimumSize(m.Role)
	if m.Facts.CPUs < cpus {
		c.problem(m.ID(), reason.HostTooSmall, "%d CPU, a %s needs %d", m.Facts.CPUs, m.Role, cpus)
	}
	if have := m.Facts.MemoryKiB / 1024; have < mib {
		c.problem(m.ID(), reason.HostTooSmall, "%d MiB of memory, a %s needs %d", have, m.Role, mib)
	}
}

func (c *checker) swap(m Machine) {
	if c.inv.Swap == inventory.SwapDisable || c.inv.SwapWanted() {
		return
	}
	var on []string
	for _, s := range m.Facts.Swap {
		if s.Active {
			on = append(on, s.Name)
		}
	}
	if len(on) > 0 {
		c.problem(m.ID(), reason.HostSwapOn, "swap is on: %s", strings.Join(on, ", "))
	}
}

// maxSkew is far below what breaks certificates and tokens, and far above network delays.
const maxSkew = 30 * time.Second

func (c *checker) clock(m Machine) {
	if m.Skew.Abs() > maxSkew {
		c.problem(m.ID(), reason.HostClockSkew, "the clock is %s off", m.Skew.Round(time.Second))
	}
}

func (c *checker) name(m Machine) {
	if name := m.NodeName(); !machine.ValidNodeName(name) {
		c.problem(m.ID(), reason.HostNameInvalid, "%q cannot be a node's name", name)
	}
}

func (c *checker) address(m Machine) {
	switch a := m.NodeAddress(); {
	case !a.IsValid():
		c.problem(m.ID(), reason.HostAddressMissing, "the host has no IPv4 address")
	case !machine.HasAddress(m.Facts, a):
		c.problem(m.ID(), reason.HostAddressMissing, "none of the host's interfaces has %s", a)
	}
}

// resolver refuses hosts whose name servers pods cannot use, as the cluster's DNS would not start.
func (c *checker) resolver(m Machine) {
	if _, why := machine.ResolvConf(c.inv, m.Facts); why != "" && !m.InCluster() {
		c.problem(m.ID(), reason.HostResolverUnusable, "%s", why)
	}
}

// mtu refuses machines with different MTUs: the pod network takes its packet size from each host's own link, so large
// packets would be lost on the way to a host with a smaller MTU.
func (c *checker) mtu(machines []Machine) {
	count := map[int]int{}
	var usual Machine
	for _, m := range machines {
		size := nodeMTU(m)
		if size == 0 {
			continue
		}
		count[size]++
		if usual.Facts == nil || count[size] > count[nodeMTU(usual)] {
			usual = m
		}
	}
	for _, m := range machines {
		if size := nodeMTU(m); size > 0 && size != nodeMTU(usual) {
			c.problem(m.ID(), reason.NetMTUDiffers, "the link has MTU %d, that of %s %d", size, usual.ID(), nodeMTU(usual))
		}
	}
}

// nodeMTU is the MTU of the link with the node's address; zero if unknown.
func nodeMTU(m Machine) int {
	address := m.NodeAddress()
	for _, a := range m.Facts.Addresses {
		if a.Prefix.Addr() == address {
			return a.MTU
		}
	}
	return 0
}

// These are the ports that Kubernetes and weave listen on. Source:
// https://kubernetes.io/docs/reference/networking/ports-and-protocols/.
var (
	workerPorts       = []uint16{10250, 10256}
	controlPlanePorts = []uint16{6443, 2379, 2380, 10250, 10256, 10257, 10259}
	weavePorts        = []uint16{6781, 6782, 6783, 6784} // 6781 and 6782 serve metrics
)

func (c *checker) ports(m Machine) {
	if m.InCluster() {
		return // its own kubelet and control plane listen there
	}
	want := workerPorts
	if m.IsControlPlane() {
		want = controlPlanePorts
	}
	if c.inv.Network == inventory.Weave {
		want = slices.Concat(want, weavePorts)
	}
	for _, s := range m.Facts.Listening {
		if !slices.Contains(want, s.Addr.Port()) {
			continue
		}
		by := ""
		if s.Process != "" {
			by = " by " + s.Process
		}
		c.problem(m.ID(), reason.HostPortTaken, "port %d is taken%s", s.Addr.Port(), by)
	}
}

func (c *checker) packages(m Machine) {
	c.kubernetes(m)
	c.toolkit(m)
	c.shadows(m)
	if _, ok := m.Facts.Packages["podman-docker"]; ok && c.inv.Runtime == inventory.Docker {
		c.problem(m.ID(), reason.HostRuntimeConflict, "podman-docker takes docker's place")
	}
	if m.Facts.Units["snap.docker.dockerd.service"].Active == "active" && c.inv.Runtime == inventory.Docker {
		c.problem(m.ID(), reason.HostRuntimeConflict, "docker runs here as a snap: `sudo snap remove docker`, or choose `runtime: containerd`")
	}
	if have := m.Facts.DaemonJSON; len(have) > 0 && c.inv.Runtime == inventory.Docker && !json.Valid(have) {
		c.problem(m.ID(), reason.HostRuntimeConflict, "/etc/docker/daemon.json is not valid JSON")
	}
}

func (c *checker) firewall(m Machine) {
	if m.Facts.Firewall != "" && !m.InCluster() {
		c.problem(m.ID(), reason.HostFirewallActive, "%s is active", m.Facts.Firewall)
	}
}

// requiredModules are the kernel modules that each pod network needs.
var requiredModules = map[inventory.Network][]string{
	inventory.Weave:   {"dummy"},
	inventory.Flannel: {"vxlan"},
}

func (c *checker) modules(m Machine) {
	missing := func(name, who string) {
		switch s := m.Facts.Modules[name]; {
		case s == facts.ModuleOff:
			c.problem(m.ID(), reason.HostModuleDisabled, "module %s, which %s, is kept out by %s", name, who, m.Facts.ModulesOff[name])
		case !s.Loads():
			c.problem(m.ID(), reason.HostModuleMissing, "the kernel has no module %s, which %s", name, who)
		}
	}
	missing("overlay", "containers need")
	missing("br_netfilter", "every pod network needs")
	for _, name := range requiredModules[c.inv.Network] {
		missing(name, fmt.Sprintf("the pod network %s needs", c.inv.Network))
	}
	if c.inv.Network == inventory.Weave && m.Facts.LegacyRules && !m.InCluster() {
		c.problem(m.ID(), reason.HostIPTablesLegacy, "iptables is iptables-legacy, which the pod network weave does not work with")
	}
	if c.fastWeave && !m.InCluster() {
		missing("openvswitch", "weave's fast datapath needs, which this cluster has")
	}
}

// ranges refuses hosts with routes or addresses inside the cluster's ranges.
func (c *checker) ranges(m Machine) {
	if m.InCluster() {
		return // its routes are the cluster's own
	}
	for _, r := range []struct {
		name   string
		prefix netip.Prefix
	}{{"podCIDR", c.inv.Kubernetes.PodCIDR}, {"serviceCIDR", c.inv.Kubernetes.ServiceCIDR}} {
		stale := machine.StaleCNIOf(c.inv.Network, m.Facts).Known
		for _, route := range m.Facts.Routes {
			if r.prefix.Overlaps(route) && len(stale) == 0 { // nobody knows whose a route is
				c.problem(m.ID(), reason.NetRangeOverlap, "%s %s overlaps with the host's route to %s", r.name, r.prefix, route)
			}
		}
		for _, a := range m.Facts.Addresses {
			if r.prefix.Contains(a.Prefix.Addr()) && !slices.Contains(stale, a.Interface) {
				c.problem(m.ID(), reason.NetRangeOverlap, "%s %s contains the host's address %s", r.name, r.prefix, fmt.Sprint(a.Prefix.Addr()))
			}
		}
	}
}
