package plan

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// basePackages are what kgpu and kubeadm need of the distribution: certificates, downloads and keys for the repositories,
// conntrack and iptables for kube-proxy, socat for port-forward, ethtool for kubeadm's preflight.
var basePackages = []string{"ca-certificates", "conntrack", "curl", "ethtool", "gpg", "iptables", "socat"}

// setPackages show and destroy ipsets. The agents of weave and calico, and kube-proxy in its mode ipvs, make them out of their
// containers; without the program of its own a host could not get rid of them.
var setPackages = []string{"ipset"}

func (b *builder) prepareOS(h *host) {
	if !b.nameMoves(h) {
		b.hostNames(h)
	}
	b.proxy(h)
	b.interrupted(h)
	b.basePackages(h)
	b.swap(h)
	b.modules(h)
	b.sysctls(h)
	b.timeSync(h)
	if b.mayHold(h) {
		b.keepalived(h)
	}
	if b.nameMoves(h) {
		b.hostNames(h)
	}
}

func (b *builder) proxy(h *host) {
	p := b.Inventory.Proxy
	if p.HTTP == "" && p.HTTPS == "" {
		return
	}
	var unit strings.Builder
	unit.WriteString("[Service]\n")
	for _, v := range []struct{ scheme, url string }{{"http", p.HTTP}, {"https", p.HTTPS}} {
		if v.url != "" {
			fmt.Fprintf(&unit, "Environment=\"%s_PROXY=%s\"\n", strings.ToUpper(v.scheme), unitText(v.url))
		}
	}
	fmt.Fprintf(&unit, "Environment=\"NO_PROXY=%s\"\n", unitText(strings.Join(b.noProxy(), ",")))
	files := map[string]graph.File{"/etc/apt/apt.conf.d/90-kgpu-proxy": text(aptProxy(p))}
	for _, service := range b.runtimeServices() {
		// Proxies may carry a password: only root reads it.
		files["/etc/systemd/system/"+service+".d/90-kgpu-proxy.conf"] = graph.File{Mode: 0o600, Content: []byte(unit.String())}
	}
	b.unless(h, changed(h.Facts, files), "the proxy is set", graph.Step{
		Ref:   graph.Ref{ID: "os/proxy"},
		Input: graph.Input{Files: files}, Disrupts: b.dockerRestarts(),
	})
}

// unitText is text in a unit file: a percent sign would begin a specifier. Source: systemd.unit(5), "Specifiers". Quotes and
// backslashes the inventory does not take.
func unitText(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// aptProxy is apt's configuration of the proxy, a line for each scheme.
func aptProxy(p inventory.Proxy) string {
	var out strings.Builder
	for _, v := range []struct{ scheme, url string }{{"http", p.HTTP}, {"https", p.HTTPS}} {
		if v.url != "" {
			fmt.Fprintf(&out, "Acquire::%s::Proxy %q;\n", v.scheme, v.url)
		}
	}
	return out.String()
}

// noProxy lists what never goes through the proxy: the hosts, the cluster's ranges and names, and the user's own list.
func (b *builder) noProxy() []string {
	list := []string{"localhost", "127.0.0.1", b.Inventory.Kubernetes.PodCIDR.String(), b.Inventory.Kubernetes.ServiceCIDR.String(), ".svc", "." + b.dnsDomain()}
	for _, h := range b.Inventory.Hosts {
		list = append(list, h.Address)
	}
	return append(list, b.Inventory.Proxy.NoProxy...)
}

// dnsDomain is what the names of the cluster's services end with.
func (b *builder) dnsDomain() string {
	networking, _ := b.Inventory.Kubernetes.ClusterConfiguration["networking"].(map[string]any)
	if domain, ok := networking["dnsDomain"].(string); ok {
		return domain
	}
	return "cluster.local"
}

// interrupted finishes what dpkg left half done. What does not let itself be finished is the step's failure: nothing can be
// installed beside it.
func (b *builder) interrupted(h *host) {
	var why string
	switch apt := h.Facts.Apt; {
	case len(apt.Broken) > 0:
		why = "half-installed packages: " + strings.Join(apt.Broken, ", ")
	case apt.Unsettled:
		why = "the host went down while packages were installed"
	default:
		return
	}
	b.add(h, graph.Step{Ref: graph.Ref{ID: "os/dpkg"}, Reason: why})
}

func (b *builder) basePackages(h *host) {
	want := basePackages
	if b.makesSets() {
		want = slices.Concat(basePackages, setPackages)
	}
	var missing []string
	for _, p := range want {
		if _, ok := h.Facts.Packages[p]; !ok {
			missing = append(missing, p)
		}
	}
	var reasons []string
	if len(missing) > 0 {
		reasons = []string{"missing: " + strings.Join(missing, ", ")}
	}
	b.unless(h, reasons, "all packages are there", graph.Step{
		Ref:   graph.Ref{ID: "os/packages"},
		Input: graph.Input{Values: map[string]string{"packages": lines(missing...)}},
	})
}

// makesSets reports whether something in the cluster makes ipsets.
func (b *builder) makesSets() bool {
	switch b.Inventory.Network {
	case inventory.Weave, inventory.Calico:
		return true
	}
	return b.Inventory.Kubernetes.KubeProxyConfiguration["mode"] == "ipvs"
}

func (b *builder) swap(h *host) {
	var reasons []string
	for _, s := range h.Facts.Swap {
		switch {
		case s.Active:
			reasons = append(reasons, s.Name+" is on")
		default:
			reasons = append(reasons, s.Name+" would come back at boot")
		}
	}
	if b.Inventory.Swap != inventory.SwapDisable {
		return // preflight refuses active swap
	}
	b.unless(h, reasons, "swap is off", graph.Step{
		Ref: graph.Ref{ID: "os/swap"},
	})
}

// kernelModules lists the kernel modules that help and that the host has. Preflight has refused hosts without those that
// are needed, unless the user said to go on.
func (b *builder) kernelModules(f *facts.Host) []string {
	list := []string{"overlay", "br_netfilter"}
	switch b.Inventory.Network {
	case inventory.Flannel, inventory.Calico:
		list = append(list, "vxlan")
	case inventory.Weave:
		list = append(list, "dummy", "openvswitch", "vxlan")
	}
	return slices.DeleteFunc(list, func(m string) bool { return !f.Modules[m].Loads() })
}

func (b *builder) modules(h *host) {
	want := b.kernelModules(h.Facts)
	files := map[string]graph.File{"/etc/modules-load.d/kgpu.conf": text("# Kernel modules for Kubernetes, written by kgpu.\n" + lines(want...) + "\n")}
	reasons := changed(h.Facts, files)
	var missing []string
	for _, m := range want {
		if h.Facts.Modules[m] != facts.ModuleLoaded {
			missing = append(missing, m)
		}
	}
	if len(missing) > 0 {
		reasons = append(reasons, "not loaded: "+strings.Join(missing, ", "))
	}
	b.unless(h, reasons, "all modules are loaded", graph.Step{
		Ref:   graph.Ref{ID: "os/modules"},
		Input: graph.Input{Values: map[string]string{"modules": lines(want...)}, Files: files},
	})
}

// sysctls that kubeadm's preflight and the pod networks want.
// Source: https://kubernetes.io/docs/setup/production-environment/container-runtimes/.
var sysctls = []string{
	"net.bridge.bridge-nf-call-ip6tables = 1",
	"net.bridge.bridge-nf-call-iptables = 1",
	"net.ipv4.ip_forward = 1",
}

func (b *builder) sysctls(h *host) {
	files := map[string]graph.File{"/etc/sysctl.d/90-kgpu.conf": text("# Kernel settings for Kubernetes, written by kgpu.\n" + lines(sysctls...) + "\n")}
	reasons := changed(h.Facts, files)
	var wrong []string
	for _, line := range sysctls {
		key, value, _ := strings.Cut(line, " = ")
		if h.Facts.Sysctls[key] != value {
			wrong = append(wrong, key)
		}
	}
	if len(wrong) > 0 {
		reasons = append(reasons, "not set: "+strings.Join(wrong, ", "))
	}
	b.unless(h, reasons, "kernel settings are right", graph.Step{
		Ref:   graph.Ref{ID: "os/sysctl"},
		Input: graph.Input{Files: files},
	})
}

// containerVirt are systemd-detect-virt's words for containers, which have their host's clock.
var containerVirt = []string{"container-other", "lxc", "lxc-libvirt", "systemd-nspawn", "docker", "podman", "openvz", "wsl", "proot", "pouch"}

func (b *builder) timeSync(h *host) {
	var reasons []string
	if h.Facts.TimeSync == "" && !slices.Contains(containerVirt, h.Facts.Virt) {
		reasons = []string{"no time service is active"}
	}
	b.unless(h, reasons, "the clock is kept", graph.Step{
		Ref:   graph.Ref{ID: "os/time"},
		Input: graph.Input{Values: map[string]string{"package": "systemd-timesyncd"}},
	})
}

// clean plans the removal of what former pod networks left.
func (b *builder) clean(h *host) {
	if l := machine.StaleCNIOf(b.Inventory.Network, h.Facts); b.Adopt && len(l.Known) > 0 {
		b.add(h, graph.Step{
			Ref: graph.Ref{ID: "host/leftovers"}, Reason: "found " + strings.Join(l.Known, ", "),
		})
	}
}
