package inventory

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kgpu.dev/kgpu/bootstrap/text/nearest"
)

// SwapWanted reports whether the kubelets are told to run beside swap.
func (i *Inventory) SwapWanted() bool {
	return i.Kubernetes.KubeletConfiguration["failSwapOn"] == false
}

// Threshold is below how much of a file system, or of its inodes, the kubelet evicts pods and has its node take no more. Zero: it
// does not look.
type Threshold struct {
	Percent float64
	Amount  float64 // bytes, or inodes
}

// Of is the threshold for a whole of this size.
func (t Threshold) Of(size float64) float64 { return max(t.Amount, size*t.Percent/100) }

// String is "15 %" or "5120 MiB".
func (t Threshold) String() string {
	if t.Percent > 0 {
		return strconv.FormatFloat(t.Percent, 'f', -1, 64) + " %"
	}
	return fmt.Sprintf("%.0f MiB", t.Amount/(1<<20))
}

// The kubelet's signals of file systems: that of its own directory, and that of images.
const (
	NodeSpace   = "nodefs.available"
	NodeInodes  = "nodefs.inodesFree"
	ImageSpace  = "imagefs.available"
	ImageInodes = "imagefs.inodesFree"
)

// defaultEviction is what the kubelet does by itself. Source: pkg/kubelet/eviction/defaults_linux.go of k8s.io/kubernetes 1.36.
var defaultEviction = map[string]Threshold{
	NodeSpace: {Percent: 10}, NodeInodes: {Percent: 5}, ImageSpace: {Percent: 15}, ImageInodes: {Percent: 5},
}

// evictionSignals are those that the kubelet knows. Source: pkg/kubelet/eviction/api/types.go.
var evictionSignals = []string{
	NodeSpace, NodeInodes, ImageSpace, ImageInodes, "containerfs.available", "containerfs.inodesFree", "memory.available", "allocatableMemory.available", "pid.available",
}

// Eviction is the kubelets' hard thresholds, by signal. Who sets one has, without mergeDefaultEvictionSettings, none of the defaults.
func (i *Inventory) Eviction() map[string]Threshold {
	k := i.Kubernetes.KubeletConfiguration
	set, _ := k["evictionHard"].(map[string]any)
	out := map[string]Threshold{}
	if len(set) == 0 || k["mergeDefaultEvictionSettings"] == true {
		maps.Copy(out, defaultEviction)
	}
	for signal, value := range set {
		if text, ok := value.(string); ok {
			out[signal], _ = threshold(text)
		}
	}
	return out
}

// suffixes are those of quantities. Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity.
var suffixes = map[string]float64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60, "m": 1e-3,
}

// threshold reads 10% or 5Gi. The kubelet takes 0% and 100% for none.
func threshold(s string) (Threshold, bool) {
	if percent, ok := strings.CutSuffix(s, "%"); ok {
		n, err := strconv.ParseFloat(percent, 64)
		if n == 100 {
			n = 0
		}
		return Threshold{Percent: n}, err == nil && n >= 0 && n < 100
	}
	digits := strings.TrimRight(s, "kKMGTPEim")
	n, err := strconv.ParseFloat(digits, 64)
	factor, ok := suffixes[s[len(digits):]]
	return Threshold{Amount: n * factor}, err == nil && ok && n >= 0 && !math.IsInf(n, 0)
}

// checkKubelet finds keys that the kubelet could not read, or with which the rest of kgpu would not find what it looks for.
func (f *file) checkKubelet() findings {
	var out findings
	k, c := f.Kubernetes.KubeletConfiguration, f.Kubernetes.ClusterConfiguration
	refuse := func(path, format string, args ...any) {
		out.add("kubernetes."+path, format, args...)
	}
	for _, key := range []string{"failSwapOn", "failCgroupV1", "mergeDefaultEvictionSettings", "registerNode"} {
		if _, ok := k[key].(bool); !ok && k[key] != nil {
			refuse("kubeletConfiguration."+key, "must be true or false")
		}
	}
	if k["registerNode"] == false {
		refuse("kubeletConfiguration.registerNode", "must be left out: kubeadm joins nodes by letting them register themselves")
	}
	etcd, _ := c["etcd"].(map[string]any)
	local, _ := etcd["local"].(map[string]any)
	networking, _ := c["networking"].(map[string]any)
	domain := "cluster.local"
	if d, ok := networking["dnsDomain"].(string); ok {
		domain = d
	}
	for _, fixed := range []struct {
		path      string
		got, want any
		because   string
	}{
		{"kubeletConfiguration.staticPodPath", k["staticPodPath"], "/etc/kubernetes/manifests", "kubeadm puts the control plane there"},
		{"kubeletConfiguration.port", k["port"], 10250, "kgpu looks for kubelets there"},
		{"kubeletConfiguration.clusterDomain", k["clusterDomain"], domain, "that is what the cluster's DNS answers for (`clusterConfiguration.networking.dnsDomain`)"},
		{"clusterConfiguration.certificatesDir", c["certificatesDir"], "/etc/kubernetes/pki", "kgpu looks for the cluster's certificates there"},
		{"clusterConfiguration.etcd.local.dataDir", local["dataDir"], "/var/lib/etcd", "kgpu looks for the cluster's data there"},
	} {
		if fixed.got != nil && fixed.got != fixed.want {
			refuse(fixed.path, "must be %v, or be left out: %s", fixed.want, fixed.because)
		}
	}
	if list, ok := k["clusterDNS"].([]any); k["clusterDNS"] != nil {
		bad := slices.IndexFunc(list, func(item any) bool { _, err := netip.ParseAddr(fmt.Sprint(item)); return err != nil })
		if !ok || bad >= 0 {
			refuse("kubeletConfiguration.clusterDNS", "must be a list of addresses")
		}
	}
	for _, key := range []string{"evictionHard", "evictionSoft", "evictionMinimumReclaim"} {
		set, ok := k[key].(map[string]any)
		if !ok && k[key] != nil {
			refuse("kubeletConfiguration."+key, "must have keys such as %s: \"10%%\"", NodeSpace)
		}
		for signal, value := range set {
			text, ok := value.(string)
			path := join("kubernetes.kubeletConfiguration."+key, signal)
			switch _, good := threshold(text); {
			case !slices.Contains(evictionSignals, signal):
				out = append(out, finding{path: path, message: "the kubelet has no such signal", suggestion: nearest.Word(signal, evictionSignals)})
			case value != nil && (!ok || !good):
				out.add(path, `must be a text such as "10%%" or "5Gi": the kubelet would not start`)
			}
		}
	}
	return out
}
