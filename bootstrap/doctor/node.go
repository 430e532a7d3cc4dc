package doctor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/inventory"
)

func (s *examinee) linesWith(lines []string, parts ...string) []string {
	var out []string
	for _, line := range lines {
		if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) }) {
			out = append(out, line)
		}
	}
	return out
}

// warned returns the recent warnings about this node that contain one of the parts.
func (s *examinee) warned(parts ...string) []string {
	var out []string
	for _, e := range s.events {
		line := fmt.Sprintf("%s %s: %s", e.Object, e.Reason, e.Message)
		out = append(out, s.linesWith([]string{line}, parts...)...)
	}
	return out
}

func lostCards(s *examinee) []string {
	return s.linesWith(s.pluginLog, "Failed to initialize NVML: Unknown Error")
}

func noDevices(s *examinee) []string {
	if s.node == nil || s.node.Allocatable[catalog.GPUResource] > 0 {
		return nil // the message is from before the plugin found the GPUs
	}
	return s.linesWith(s.pluginLog, "Incompatible strategy detected", "No devices found. Waiting indefinitely")
}

func pluginFails(s *examinee) []string {
	var out []string
	for _, p := range s.plugin {
		for _, container := range strings.Split(p.Waiting, "; ") {
			if failing.MatchString(container) && !strings.HasPrefix(container, "gpu-feature-discovery ") {
				out = append(out, p.Name+": "+container)
			}
		}
	}
	if len(out) > 0 {
		out = append(out, s.linesWith(s.pluginLog, "invalid device discovery strategy", "NVML")...)
	}
	return out
}

// failing matches reasons of waiting containers that will not end by themselves.
var failing = regexp.MustCompile(`CrashLoopBackOff|Error|ErrImage|ImagePull|Invalid`)

// offeredLost finds a node that offers more GPUs than the driver can reach.
func offeredLost(s *examinee) []string {
	share := max(s.inv.GPU.Share(), 1)
	if s.node == nil || !s.e.Asked || !s.lostGPU() || s.node.Allocatable[catalog.GPUResource] <= len(s.e.Cards)*share {
		return nil
	}
	return []string{fmt.Sprintf("the node offers %d, the driver reaches %d", s.node.Allocatable[catalog.GPUResource], len(s.e.Cards)*share)}
}

func unhealthy(s *examinee) []string {
	if s.node == nil || s.node.Capacity[catalog.GPUResource] <= s.node.Allocatable[catalog.GPUResource] {
		return nil
	}
	return append([]string{fmt.Sprintf("nvidia.com/gpu: %d of %d can be had", s.node.Allocatable[catalog.GPUResource], s.node.Capacity[catalog.GPUResource])}, s.linesWith(s.pluginLog, "marking device as unhealthy")...)
}

func notAllocatable(s *examinee) []string {
	want := machine.PluginDeviceCount(s.inv, s.f)
	if s.node == nil || !s.member || want == 0 || s.node.Capacity[catalog.GPUResource] != s.node.Allocatable[catalog.GPUResource] || s.node.Allocatable[catalog.GPUResource] >= want {
		return nil
	}
	out := []string{fmt.Sprintf("nvidia.com/gpu: the node offers %d, the driver sees %d", s.node.Allocatable[catalog.GPUResource], want)}
	if len(s.plugin) == 0 {
		return append(out, "no pod of the device plugin is on the node")
	}
	for _, p := range s.plugin {
		out = append(out, strings.TrimSpace(p.Name+": "+p.Phase+" "+p.Waiting))
	}
	return out
}

func watchAlarm(s *examinee) []string {
	if s.node == nil || s.node.Conditions["GPUHealthy"] != "False" {
		return nil
	}
	return []string{"condition GPUHealthy is False: " + s.node.GPUHealthMessage}
}

func backupTrouble(s *examinee) []string { return s.set.BackupTrouble(&s.Machine.Machine) }

// --- the container runtime

func (s *examinee) containerd() bool { return s.inv.Runtime == inventory.Containerd }

// hasRuntime reports whether the runtime nvidia is loaded. known is false if that is unknown.
func (s *examinee) hasRuntime() (has, known bool) {
	if s.containerd() {
		return s.f.ContainerdLoaded["nvidia"] != "", s.f.ContainerdLoaded != nil
	}
	return s.f.DockerInfo["nvidia"] == "yes", s.f.DockerInfo != nil
}

func strayDropIns(s *examinee) []string {
	if has, known := s.hasRuntime(); has || !known || !s.containerd() {
		return nil
	}
	return s.e.ContainerdStray
}

func criDisabled(s *examinee) []string {
	if !s.containerd() || s.f.ContainerdLoaded["cri"] != "disabled" {
		return nil
	}
	out := []string{"containerd has loaded disabled_plugins with cri"}
	for line := range bytes.Lines(s.f.ContainerdTOML) {
		if bytes.Contains(line, []byte("disabled_plugins")) {
			out = append(out, "/etc/containerd/config.toml: "+strings.TrimSpace(string(line)))
		}
	}
	return out
}

func runtimeCgroup(s *examinee) []string {
	runc := s.f.ContainerdLoaded["SystemdCgroup"]
	if has, _ := s.hasRuntime(); !s.containerd() || !has || runc == "" || (s.e.NVIDIACgroup == "true") == (runc == "true") {
		return nil
	}
	return []string{fmt.Sprintf("SystemdCgroup: runc %s, nvidia %s", runc, cmp.Or(s.e.NVIDIACgroup, "false"))}
}

func runtimeMissing(s *examinee) []string {
	out := s.warned(`no runtime for "nvidia" is configured`)
	if has, known := s.hasRuntime(); known && !has && s.member && s.cards > 0 && s.f.NVIDIA.Loaded != "" && s.inv.Kubernetes.Version.Minor >= 10 {
		out = append([]string{string(s.inv.Runtime) + " has loaded no runtime nvidia"}, out...)
	} else if has {
		return nil // the warnings are older than the runtime
	}
	return out
}

func legacyMode(s *examinee) []string { return s.warned("Auto-detected mode as", "ldcache") }

func cdiStale(s *examinee) []string {
	var out []string
	for _, file := range slices.Sorted(maps.Keys(s.e.CDI)) {
		if version := s.e.CDI[file]; s.f.NVIDIA.Loaded != "" && version != s.f.NVIDIA.Loaded {
			out = append(out, fmt.Sprintf("%s is of driver %s, %s is loaded", file, version, s.f.NVIDIA.Loaded))
		}
	}
	if u := s.e.Units["nvidia-cdi-refresh"]; u.State == "failed" {
		out = append(out, append([]string{"nvidia-cdi-refresh has failed"}, u.Log...)...)
	}
	return out
}

func cdiUnit(s *examinee) []string {
	if _, ok := s.e.Units["nvidia-cdi-refresh"]; ok {
		return []string{"nvidia-cdi-refresh.service"}
	}
	return nil
}

func toolkitOld(s *examinee) []string {
	p, ok := s.f.Packages["libnvidia-container1"]
	if !ok || !s.f.CgroupV2 || compareVersions(p.Version, "1.8") >= 0 {
		return nil
	}
	return []string{"libnvidia-container1 " + p.Version + " on cgroup v2"}
}

func leakPossible(s *examinee) []string {
	byDefault := s.containerd() && s.e.DefaultRuntime == "nvidia"
	if !s.containerd() {
		var config struct {
			Default string `json:"default-runtime"`
		}
		_ = json.Unmarshal(s.f.DaemonJSON, &config) // preflight reports invalid JSON
		byDefault = config.Default == "nvidia"
	}
	const setting = "accept-nvidia-visible-devices-envvar-when-unprivileged"
	if !byDefault || s.cards == 0 || s.f.Toolkit[setting] == "false" {
		return nil
	}
	return []string{"nvidia is the default runtime, " + setting + " is " + cmp.Or(s.f.Toolkit[setting], "not set (true)")}
}

// --- units

// down describes the named units of a node that should run and do not. Units that do not exist are skipped.
func (s *examinee) down(names ...string) []string {
	var out []string
	for _, name := range names {
		u, ok := s.e.Units[name]
		if !s.member || !ok || u.State == "active" || u.State == "reloading" {
			continue
		}
		out = append(out, append([]string{strings.TrimSuffix(fmt.Sprintf("%s is %s (%s)", name, u.State, u.Result), " (-)")}, u.Log...)...)
	}
	return out
}

// downUnits returns those of the named units that do not run.
func downUnits(names ...string) func(*examinee) []string {
	return func(s *examinee) []string {
		var out []string
		for _, name := range names {
			if u, ok := s.e.Units[name]; ok && u.State != "active" {
				out = append(out, name+".service")
			}
		}
		return out
	}
}

func runtimes(s *examinee) []string {
	if s.containerd() {
		return []string{"containerd"}
	}
	return []string{"containerd", "docker"}
}

func runtimeDown(s *examinee) []string    { return s.down(runtimes(s)...) }
func criDockerdDown(s *examinee) []string { return s.down("cri-docker") }
func kubeletDown(s *examinee) []string    { return s.down("kubelet") }
func runtimeUnits(s *examinee) []string {
	return downUnits(append(runtimes(s), "cri-docker")...)(s)
}

// --- the node in its cluster

func notReady(s *examinee) []string {
	switch {
	case !s.cluster || !s.member:
		return nil
	case s.node == nil:
		return []string{"the cluster has no node " + s.NodeName()}
	case !s.node.Ready:
		return []string{strings.TrimSpace("Ready is " + cmp.Or(s.node.Conditions["Ready"], "not told") + ": " + s.node.Message)}
	}
	return nil
}

func podsUnreachable(s *examinee) []string {
	if !s.member || s.incomplete || !s.e.PodNetwork.Peer.Silent {
		return nil
	}
	return []string{fmt.Sprintf("no answer from %s, another host's address in the pod network", s.e.PodNetwork.Peer.Address)}
}

func dnsSilent(s *examinee) []string {
	if !s.member || s.incomplete || !s.e.PodNetwork.DNS.Silent {
		return nil
	}
	return []string{fmt.Sprintf("no answer from the cluster's DNS at %s", s.e.PodNetwork.DNS.Address)}
}

// podsStuck leaves out the device plugin, which has a row of its own.
func podsStuck(s *examinee) []string {
	if s.f.Now.IsZero() {
		return nil
	}
	told := map[string]bool{}
	for _, line := range pluginFails(s) {
		name, _, _ := strings.Cut(line, ":")
		told[name] = true
	}
	var out []string
	for _, p := range s.waiting {
		if why := p.Stuck(s.f.Now); why != "" && !told[p.Name] {
			if p.LogEnd != "" {
				why += "; its log ends: " + p.LogEnd
			}
			out = append(out, "pod "+p.Namespace+"/"+p.Name+": "+why)
		}
	}
	return out
}

func cordoned(s *examinee) []string {
	switch {
	case s.node == nil || !s.node.Unschedulable:
		return nil
	case machine.IsDrained(s.node):
		return []string{"kgpu drained it, and did not uncordon it"}
	}
	return []string{"somebody cordoned it"}
}

func drainedByUs(s *examinee) bool { return machine.IsDrained(s.node) }

func apiSilent(s *examinee) []string {
	if !s.IsControlPlane() || !s.e.ControlPlane || s.e.Cluster != nil {
		return nil
	}
	return []string{"kubectl got no answer on the control plane"}
}

func cgroupDriver(s *examinee) []string {
	runtime := s.f.DockerInfo["cgroup-driver"]
	if s.containerd() {
		runtime = map[string]string{"true": "systemd", "false": "cgroupfs"}[s.f.ContainerdLoaded["SystemdCgroup"]]
	}
	if !s.member || runtime == "" || s.e.KubeletCgroup == "" || s.e.KubeletCgroup == runtime {
		return nil
	}
	return []string{fmt.Sprintf("the kubelet has %s, %s has %s", s.e.KubeletCgroup, s.inv.Runtime, runtime)}
}

// runtimeDiffers reports whether the cgroup driver to change is the runtime's, not the kubelet's.
func runtimeDiffers(s *examinee) bool { return s.e.KubeletCgroup == "systemd" }

// fullPercent is the kubelet's default limit for evictions, nodefs.available<10%.
const fullPercent = 90

func diskFull(s *examinee) []string {
	var out []string
	for _, mount := range slices.Sorted(maps.Keys(s.e.Disks)) {
		if used := s.e.Disks[mount]; used >= fullPercent {
			out = append(out, fmt.Sprintf("%s is used by %d %%", mount, used))
		}
	}
	if len(out) == 0 {
		out = preflight.Evicts(s.inv, s.f)
	}
	if s.node != nil && s.node.Conditions["DiskPressure"] == "True" {
		out = append(out, "the kubelet reports DiskPressure")
	}
	return out
}

func oldContainerd(s *examinee) []string {
	if is := machine.OldContainerd(s.inv, s.f); is != "" {
		return []string{is}
	}
	return nil
}

func expired(s *examinee) []string {
	return s.certificates(machine.Certificate.Ended)
}

// renewable reports whether `kgpu up` gives those others that have ended.
func renewable(s *examinee) bool {
	return !slices.ContainsFunc(machine.Certificates(s.f, s.f.Now), func(c machine.Certificate) bool {
		return c.Ended() && c.Renewer == machine.ByNobody && c.Name != "kubelet"
	})
}

func expires(s *examinee) []string {
	return s.certificates(func(c machine.Certificate) bool { return !c.Ended() && c.Due(machine.WarnBefore) })
}

func (s *examinee) certificates(is func(machine.Certificate) bool) []string {
	var out []string
	for _, c := range machine.Certificates(s.f, s.f.Now) {
		if is(c) {
			out = append(out, c.Name+" ("+c.Path+") is valid until "+c.Ends.UTC().Format(time.DateOnly))
		}
	}
	return out
}

// --- the pod network

func weaveBridge(s *examinee) []string {
	return s.linesWith(s.weaveLog, "Inconsistent bridge state", "is different than requested")
}

func iptablesMixed(s *examinee) []string {
	out := s.linesWith(s.weaveLog, "Set cannot be destroyed")
	if s.e.Rules["legacy"] > 0 && s.e.Rules["nft"] > 0 {
		out = append(out, fmt.Sprintf("%d of Kubernetes' rules are in iptables-legacy, %d in iptables-nft", s.e.Rules["legacy"], s.e.Rules["nft"]))
	}
	return out
}
