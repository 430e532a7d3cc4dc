package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// finding is a problem of several values together, at the path where it is best put right.
type finding struct{ path, message, suggestion string }

type findings []finding

func (f *findings) add(path, format string, args ...any) {
	*f = append(*f, finding{path: path, message: fmt.Sprintf(format, args...)})
}

// found is one finding.
func found(path, format string, args ...any) findings {
	return findings{{path: path, message: fmt.Sprintf(format, args...)}}
}

// check compares what the parts of a decoded inventory say with each other and with what Kubernetes can do.
func (f *file) check(now time.Time) findings {
	var out findings
	if !f.Kubernetes.Version.IsZero() {
		out = slices.Concat(f.checkVersion(now), f.checkGates())
	}
	return slices.Concat(out, f.checkSharing(), f.checkPassthrough(), f.checkKubelet(), f.checkRanges(), f.checkNames(), f.checkRoles(),
		f.checkVirtualIP(), f.checkBastions())
}

func (f *file) checkVersion(now time.Time) findings {
	const path = "kubernetes.version"
	v := f.Kubernetes.Version
	minor, ok := catalog.Kubernetes(v.Minor)
	if !ok {
		return found(path, "Kubernetes %s is not known", v)
	}
	var out findings
	if !minor.Supported(now) && !f.Kubernetes.AllowEndOfLife {
		out.add(path, "Kubernetes %s is out of support since %s: choose %s, or set `allowEndOfLife: true`",
			v.MinorString(), minor.EndOfLife.Format(time.DateOnly), alternatives(now))
	}
	if !minor.Published() && f.Repositories.Kubernetes.URL == "" {
		out.add(path, "pkgs.k8s.io has packages of Kubernetes 1.24 and newer only: name a mirror that has %s as `repositories.kubernetes.url`", v.MinorString())
	}
	return slices.Concat(out, f.checkOld(minor), f.checkSecurity(minor), f.checkBackup(minor), f.checkNotebook(minor))
}

func alternatives(now time.Time) string {
	if s := catalog.SupportedMinors(now); len(s) > 0 {
		return strings.Join(s, " or ")
	}
	return "a newer kgpu"
}

func (f *file) checkGates() findings {
	k := &f.Kubernetes
	var out findings
	for name, on := range k.FeatureGates {
		if p, ok := gateProblem(name, on, k.Version); ok {
			p.path = join("kubernetes.featureGates", name)
			out = append(out, p)
		}
	}
	for section, m := range map[string]map[string]any{
		"kubeletConfiguration":   k.KubeletConfiguration,
		"kubeProxyConfiguration": k.KubeProxyConfiguration,
	} {
		gates, _ := m["featureGates"].(map[string]any)
		for name, value := range gates {
			on, isBool := value.(bool)
			p, bad := gateProblem(name, on, k.Version)
			if !isBool {
				p, bad = finding{message: "must be true or false"}, true
			}
			if bad {
				p.path = join("kubernetes."+section+".featureGates", name)
				out = append(out, p)
			}
		}
	}
	return out
}

// gateProblem says why Kubernetes refuses a feature gate: it would not start.
func gateProblem(name string, on bool, v Version) (finding, bool) {
	gate, known := catalog.Gate(name, v)
	switch {
	case !known && catalog.GateVersions(name) != "":
		return finding{message: fmt.Sprintf("Kubernetes %s does not have this feature gate, only %s", v.MinorString(), catalog.GateVersions(name))}, true
	case !known:
		return unknownGate(name, v), true
	case gate.Locked && on != gate.Default:
		return finding{message: fmt.Sprintf("Kubernetes %s has locked this feature gate to %t", v.MinorString(), gate.Default)}, true
	}
	return finding{}, false
}

// unknownGate names a gate that was probably meant, in this version or in another.
func unknownGate(name string, v Version) finding {
	if c := nearest.Word(name, catalog.GateNames(v)); c != "" {
		return finding{message: "no such feature gate", suggestion: c}
	}
	if c := nearest.Word(name, catalog.AllGateNames()); c != "" {
		return finding{message: fmt.Sprintf("no such feature gate; %s is one, but only of %s", c, catalog.GateVersions(c))}
	}
	return finding{message: "no such feature gate"}
}

// Limits of the ranges: kubeadm gives each node a /24 of the pods' range and refuses one more than 16 bits larger than that;
// the API server takes at most 20 bits of service addresses, kubeadm wants at least 10 addresses.
// Source: kubernetes/cmd/kubeadm/app/apis/kubeadm/validation and kubernetes/cmd/kube-apiserver/app/options.
const (
	nodeBits       = 24
	minPodBits     = nodeBits - 16
	minServiceBits = 12
	maxServiceBits = 28
)

func (f *file) checkRanges() findings {
	pods, services := f.Kubernetes.PodCIDR, f.Kubernetes.ServiceCIDR
	var out findings
	if pods.IsValid() {
		switch bits := pods.Bits(); {
		case bits < minPodBits:
			out.add("kubernetes.podCIDR", "%s is too large: kubeadm takes at most a /%d", pods, minPodBits)
		case bits > nodeBits:
			out.add("kubernetes.podCIDR", "%s is too small: each node needs a /%d", pods, nodeBits)
		case len(f.Hosts) > 1<<(nodeBits-bits):
			out.add("kubernetes.podCIDR", "%s has room for %s with a /%d each, the inventory has %d", pods, plural.Of(1<<(nodeBits-bits), "node"), nodeBits, len(f.Hosts))
		}
	}
	if services.IsValid() {
		switch bits := services.Bits(); {
		case bits < minServiceBits:
			out.add("kubernetes.serviceCIDR", "%s is too large: the API server takes at most a /%d", services, minServiceBits)
		case bits > maxServiceBits:
			out.add("kubernetes.serviceCIDR", "%s is too small: kubeadm wants at least a /%d", services, maxServiceBits)
		}
	}
	if pods.IsValid() && services.IsValid() && pods.Overlaps(services) {
		out.add("kubernetes.podCIDR", "%s overlaps with the services' range %s", pods, services)
	}
	for i, h := range f.Hosts {
		at := f.path(i)
		if ip, err := netip.ParseAddr(h.Address); err == nil {
			f.outside(&out, at+".address", ip)
			if !ip.Unmap().Is4() && !h.PrivateAddress.IsValid() {
				out.add(at+".address", "%s is an IPv6 address and kgpu makes IPv4 clusters for now: name the node's IPv4 address as `privateAddress`", h.Address)
			}
		}
		if h.PrivateAddress.IsValid() {
			f.outside(&out, at+".privateAddress", h.PrivateAddress)
		}
	}
	return out
}

// path is where the file has the host.
func (f *file) path(host int) string { return fmt.Sprintf("hosts[%d]", f.entries[host]) }

func (f *file) outside(out *findings, path string, ip netip.Addr) {
	for _, r := range []struct {
		name string
		cidr netip.Prefix
	}{{"pods", f.Kubernetes.PodCIDR}, {"services", f.Kubernetes.ServiceCIDR}} {
		if r.cidr.IsValid() && r.cidr.Contains(ip.Unmap()) {
			out.add(path, "%s is inside the %s' range %s", ip, r.name, r.cidr)
		}
	}
}

// checkNames finds machines that are named twice.
func (f *file) checkNames() findings {
	var out findings
	first := map[string]string{}
	claim := func(kind, key, path, shown string) {
		if at, ok := first[kind+key]; ok && at != path {
			out.add(path, "%s %s is taken by %s already", kind, shown, at)
			return
		}
		first[kind+key] = path
	}
	for i, h := range f.Hosts {
		at := f.path(i)
		claim("address", canonical(h.Address), at+".address", h.Address)
		if h.Name != "" {
			claim("name", h.Name, at+".name", h.Name)
		}
		if h.PrivateAddress.IsValid() {
			claim("privateAddress", h.PrivateAddress.String(), at+".privateAddress", h.PrivateAddress.String())
		}
	}
	for i, h := range f.Hosts { // output names a host by its name or its address: they must not be mixed up
		if at, ok := first["name"+h.Address]; ok && h.Name == "" {
			out.add(f.path(i)+".address", "address %s is the name of another host, at %s", h.Address, at)
		}
	}
	for i, h := range f.Hosts {
		seen := map[string]bool{}
		for j, t := range h.Taints {
			if key := t.Key + ":" + t.Effect; seen[key] {
				out.add(fmt.Sprintf("%s.taints[%d]", f.path(i), j), "the host has a taint %s already", key)
			} else {
				seen[key] = true
			}
		}
	}
	return out
}

// canonical makes spellings of one address equal.
func canonical(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.Unmap().String()
	}
	return strings.TrimSuffix(strings.ToLower(address), ".")
}

func (f *file) checkRoles() findings {
	if f.broken {
		return nil
	}
	if len(f.Hosts) == 0 {
		return found("hosts", "the inventory has no hosts")
	}
	return f.checkPlanes(f.ControlPlanes())
}

// checkBastions finds hosts whose way leads through themselves.
func (f *file) checkBastions() findings {
	var out findings
	for i, h := range f.Hosts {
		var way []string
		for b := h.SSH.Bastion; b != nil; b = b.SSH.Bastion {
			way = append(way, canonical(b.Address))
		}
		if slices.Contains(way, canonical(h.Address)) && h.SSH.Bastion.SSH.Port == h.SSH.Port {
			out.add(f.path(i), "%s would be reached through itself: set `ssh: {bastion: none}` for it", h.Address)
		}
	}
	return out
}

// checkOld finds what a version that has long ended cannot do yet.
func (f *file) checkOld(m catalog.Minor) findings {
	k := &f.Kubernetes
	version := k.Version.MinorString()
	var out findings
	refuse := func(wrong bool, path, format string, args ...any) {
		if wrong {
			out.add(path, format, args...)
		}
	}
	refuse(f.Runtime == Containerd && m.RuntimeClassAPI() == "", "runtime",
		"Kubernetes %s cannot choose the runtime that gives pods their cards, as containerd needs it to (RuntimeClass, since 1.14): write docker", version)
	refuse(f.Network == Flannel && !m.Has(catalog.CNILists), "network",
		"the kubelet of Kubernetes %s does not read what flannel writes (CNI lists, since 1.7): write weave", version)
	refuse(f.Network == Calico && m.Number < calicoSince, "network",
		"the objects of Calico %s are those of Kubernetes 1.%d and newer: write weave or flannel", catalog.Calico.Version, calicoSince)
	refuse(f.Registry != "" && !m.Has(catalog.ImageRepositoryKey), "images.registry", "kubeadm %s takes no other registry (since 1.8)", version)
	refuse(k.ControlPlaneEndpoint != "" && !m.Has(catalog.ControlPlaneEndpoint), "kubernetes.controlPlaneEndpoint", "kubeadm %s does not know it (since 1.11)", version)
	for section, settings := range map[string]map[string]any{"kubeletConfiguration": k.KubeletConfiguration, "kubeProxyConfiguration": k.KubeProxyConfiguration} {
		refuse(len(settings) > 0 && !m.Has(catalog.KubeletConfig), "kubernetes."+section, "Kubernetes %s is configured by flags (by this since 1.11)", version)
	}
	refuse(len(k.IgnorePreflightErrors) > 0 && !m.Has(catalog.IgnorePreflightErrors) && !slices.Equal(k.IgnorePreflightErrors, []string{"all"}),
		"kubernetes.ignorePreflightErrors", "kubeadm %s can only leave out all of its checks (single ones since 1.9): write [all]", version)
	return out
}

// calicoSince is the minor whose API has all kinds of Calico's manifest: policy/v1.
const calicoSince = 21
