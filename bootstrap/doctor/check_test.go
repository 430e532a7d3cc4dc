package doctor

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// world is a control plane and a worker with two cards, by what their scripts printed, and what a test makes of that.
type world struct {
	t       testing.TB
	inv     *inventory.Inventory
	control string // output of doctor.sh
	worker  string
	cp, w1  *facts.Host
}

func newWorld(t testing.TB) *world {
	t.Helper()
	inv, err := inventory.Decode("inventory.yaml", []byte("kubernetes: {version: \"1.36\"}\nruntime: containerd\nnetwork: flannel\nhosts:\n"+
		"  - {address: 10.199.1.10, name: cp1, role: control-plane}\n  - {address: 10.199.1.11, name: w1}\n"), inventory.Options{})
	must(t, err)
	w := &world{t: t, inv: inv, control: read(t, "testdata/healthy-control.txt"), worker: read(t, "testdata/healthy-worker.txt")}
	w.cp, w.w1 = parsed(t, "../facts/testdata/control-plane.txt"), parsed(t, "../facts/testdata/worker.txt")
	for _, f := range []*facts.Host{w.cp, w.w1} {
		f.CgroupV2, f.Kernels = true, []string{f.Kernel}
		f.Packages["containerd"] = facts.Package{Version: "2.2.1-0ubuntu1"}
	}
	w.cp.Recorded = &facts.Record{Init: true, Done: true, CAHash: w.cp.ControlPlane.CAHash, UID: w.cp.Cluster.Nodes[0].UID}
	w.w1.Recorded = &facts.Record{Join: true, Done: true, CAHash: w.w1.Kubelet.CAHash, UID: w.cp.Cluster.Nodes[1].UID}
	w.w1.NVIDIA = facts.NVIDIA{
		Cards:  []facts.Card{{Address: "0000:17:00.0", ID: "20b0", Driver: "nvidia"}, {Address: "0000:65:00.0", ID: "20b0", Driver: "nvidia"}},
		Loaded: "595.91.07", Module: "595.91.07", Library: "595.91.07",
		GPUs: []facts.GPU{{UUID: "GPU-1", Name: "A100", Address: "0000:17:00.0"}, {UUID: "GPU-2", Name: "A100", Address: "0000:65:00.0"}},
	}
	w.w1.ContainerdLoaded["nvidia"] = "runtime"
	return w
}

func read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	return string(data)
}

func parsed(t testing.TB, name string) *facts.Host {
	t.Helper()
	f, err := facts.Parse([]byte(read(t, name)))
	must(t, err)
	return f
}

// says puts lines into an output, before its end.
func says(output *string, lines ...string) {
	*output = strings.TrimSuffix(*output, "end=1\n") + strings.Join(lines, "\n") + "\nend=1\n"
}

// instead replaces the lines that begin so.
func instead(output *string, prefix string, lines ...string) {
	var kept []string
	for line := range strings.Lines(*output) {
		if !strings.HasPrefix(line, prefix) {
			kept = append(kept, line)
		}
	}
	*output = strings.Join(kept, "")
	says(output, lines...)
}

// logs are lines of the kernel's log.
func (w *world) logs(lines ...string) {
	for _, line := range lines {
		says(&w.worker, "kernel-log=2026-11-20T15:00:00+00:00 w1 kernel: "+line)
	}
}

// node replaces what the cluster says of w1: whether it is cordoned, its capacity and what is allocatable, conditions.
func (w *world) node(cordoned, capacity, allocatable, drained, conditions string) {
	labels, ready := "", "False"
	if drained != "" {
		labels = "kgpu.dev/drained=" + drained
	}
	if strings.Contains(conditions, "Ready=True") {
		ready = "True"
	}
	instead(&w.control, "node=node\tw1", strings.Join([]string{
		"node=node", "w1", "", ready, "", "", "", "", cordoned, labels, "", "nvidia.com/gpu=" + capacity, "nvidia.com/gpu=" + allocatable, "", conditions, "", "",
		"kubelet stopped posting node status.",
	}, "\t"))
}

func (w *world) check() []Finding {
	w.t.Helper()
	var machines []Machine
	for _, m := range []struct {
		host   inventory.Host
		facts  *facts.Host
		output string
	}{{w.inv.Hosts[0], w.cp, w.control}, {w.inv.Hosts[1], w.w1, w.worker}} {
		seen, err := ParseEvidence([]byte(m.output))
		if err != nil {
			w.t.Fatal(err)
		}
		machines = append(machines, Machine{Machine: machine.Machine{Host: m.host, Facts: m.facts}, Evidence: seen})
	}
	return Check(w.inv, machines, nil)
}

func ids(found []Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, f.Host+" "+f.ID)
	}
	slices.Sort(out)
	return out
}

func TestHealthyHostHasNoFindings(t *testing.T) {
	if found := newWorld(t).check(); len(found) > 0 {
		t.Errorf("on healthy hosts: %+v", found)
	}
}

// What a real driver (580.159.04, of an H100) says of itself is no fault, nor is an error of a program that computes; what
// it says to libraries of another version, or without the card's node, is one.
func TestRealCard(t *testing.T) {
	for name, want := range map[string]string{
		"h100": "", "h100-xid": "",
		"h100-mismatch": "w1 GPU_DRIVER_MISMATCH", "h100-no-node": "w1 GPU_DEVICE_NODES w1 GPU_NOT_ALL_CARDS",
	} {
		w := newWorld(t)
		w.w1.NVIDIA, w.worker = parsed(t, "../facts/testdata/h100.txt").NVIDIA, read(t, "testdata/"+name+".txt")
		says(&w.worker, "nvidia-cgroup=true") // no container runtime was there
		w.node("", "1", "1", "", "Ready=True")
		if want != "" {
			w.w1.NVIDIA.GPUs = nil
		}
		if got := strings.Join(ids(w.check()), " "); got != want {
			t.Errorf("%s: found %q, want %q", name, got, want)
		}
	}
}

// TestOldDriverWithoutMIG: drivers that do not know MIG answer with words, which are no finding.
func TestOldDriverWithoutMIG(t *testing.T) {
	w := newWorld(t)
	instead(&w.worker, "mig=", `mig=00000000:17:00.0, Disabled, Field "mig.mode.pending" is not a valid field to query.`, "mig=00000000:65:00.0, Disabled, [N/A]")
	if found := w.check(); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// A row's test is named after its ID. The texts of faults are those of the threads, documents and sources that the catalogue
// names, as far as those quote the programs.
var rows = map[string]func(*world){
	"w1 GPU_CONTAINERS_LOST_CARDS": func(w *world) { // 1: nvidia-container-toolkit#48
		says(&w.control, "plugin-said=[pod/nvidia-device-plugin-x7k2p/nvidia-device-plugin] E1120 main.go:173] Failed to initialize NVML: Unknown Error")
	},
	"w1 GPU_DRIVER_MISMATCH": func(w *world) { // 2: homelab#4110
		w.w1.NVIDIA.Library, w.w1.NVIDIA.GPUs, w.w1.NVIDIA.SMI = "595.99.01", nil, 18
		instead(&w.worker, "card", "card-said=Failed to initialize NVML: Driver/library version mismatch", "card-said=NVML library version: 595.99", "card-status=18",
			"driver-upgraded=2026-11-20 06:12:44 /usr/bin/unattended-upgrade")
	},
	"w1 HOST_HOLD_LOST": func(w *world) { says(&w.worker, "hold-lost=nvidia-dkms-open", "hold-lost=kubelet") }, // 2: how it comes about
	"w1 GPU_PLUGIN_NO_DEVICES": func(w *world) { // 3: k8s-device-plugin#1220
		w.node("", "0", "0", "", "Ready=True")
		says(&w.control, "plugin-said=[pod/nvidia-device-plugin-x7k2p/nvidia-device-plugin] E1120 factory.go:112] Incompatible strategy detected auto",
			"plugin-said=[pod/nvidia-device-plugin-x7k2p/nvidia-device-plugin] I1120 main.go:381] No devices found. Waiting indefinitely.")
	},
	"w1 GPU_PLUGIN_FAILS": func(w *world) { // 4: k8s-device-plugin#1470
		w.node("", "0", "0", "", "Ready=True")
		instead(&w.control, "pod=", "pod=\tw1\tnvidia-device-plugin-x7k2p\tRunning\tnvidia-device-plugin CrashLoopBackOff back-off 5m0s restarting failed container; ",
			"plugin-said=[pod/nvidia-device-plugin-x7k2p/nvidia-device-plugin] error starting plugins: unable to create resource manager: invalid device discovery strategy")
	},
	"w1 CONTAINERD_DROPIN_IGNORED": func(w *world) { // 5: nvidia-container-toolkit#1404
		delete(w.w1.ContainerdLoaded, "nvidia")
		says(&w.worker, "containerd-stray=/etc/containerd/config.d/99-nvidia.toml")
	},
	"w1 CONTAINERD_CRI_DISABLED": func(w *world) { // 6: nvidia-container-toolkit#1430
		w.w1.ContainerdLoaded = map[string]string{"cri": "disabled"}
		w.w1.ContainerdTOML = []byte("disabled_plugins = [\"cri\"]\n")
	},
	"w1 GPU_RUNTIME_CGROUP": func(w *world) { instead(&w.worker, "nvidia-cgroup=") }, // 7: nvidia-docker#1788
	"w1 GPU_RUNTIME_MISSING": func(w *world) { // 8: gpu-operator, troubleshooting
		delete(w.w1.ContainerdLoaded, "nvidia")
		says(&w.control, "event=\t"+w.w1.Now.Add(-time.Minute).UTC().Format(time.RFC3339)+"\tw1\tFailedCreatePodSandBox\tkube-system/nvidia-device-plugin-x7k2p\t"+
			`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for \"nvidia\" is configured`)
	},
	"w1 GPU_NOUVEAU_BUSY": func(w *world) { // 9: gpu-operator, troubleshooting
		w.withoutDriver("595.91.07", "595.91.07")
		w.w1.NVIDIA.Cards[0].Driver, w.w1.NVIDIA.Cards[1].Driver = "nouveau", "nouveau"
		w.w1.NVIDIA.Nouveau = facts.Nouveau{Loaded: true, Users: 1}
	},
	"w1 GPU_MODULE_REJECTED": func(w *world) { // 10: gpu-driver-container#44
		w.withoutDriver("595.91.07", "595.91.07")
		w.w1.SecureBoot = true
		w.logs("Loading of module with unavailable key is rejected")
	},
	"w1 GPU_MODULE_BUILD": func(w *world) { // 11: gpu-operator#583
		w.withoutDriver("", "595.91.07")
		instead(&w.worker, "dkms=", "dkms=nvidia/595.91.07, 6.8.0-85-generic, x86_64: installed")
	},
	"w1 GPU_MODULE_NEXT_KERNEL": func(w *world) { says(&w.worker, "kernel=6.8.0-101-generic no no ") }, // 11
	"w1 GPU_COMPILER_DIFFERS":   func(w *world) { instead(&w.worker, "compiler=", "compiler=13 12") },  // 12: void-packages#5287
	"w1 REPO_KEY_EXPIRED":       func(w *world) { w.keyEnds(-time.Hour) },
	"w1 REPO_KEY_ENDS":          func(w *world) { w.keyEnds(59 * 24 * time.Hour) },
	"w1 APT_KEY_RETIRED": func(w *world) { // 14: deepops#1167
		says(&w.worker, "apt-source=/etc/apt/sources.list.d/cuda.list\thttps://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64\t")
	},
	"w1 GPU_DRIVER_MIXED": func(w *world) { // 13: ansible-role-nvidia-driver#11
		w.w1.Packages["libnvidia-compute"] = facts.Package{Version: "595.91.07-1ubuntu1"}
		w.w1.Packages["nvidia-dkms-580-open"] = facts.Package{Version: "580.173.02-0ubuntu0.24.04.1"}
	},
	"w1 APT_SIGNED_BY_CONFLICT": func(w *world) { // 15: container toolkit, troubleshooting
		says(&w.worker, "apt-source=/etc/apt/sources.list.d/docker.list\thttps://download.docker.com/linux/ubuntu\t/etc/apt/keyrings/docker.gpg",
			"apt-source=/etc/apt/sources.list.d/docker.sources\thttps://download.docker.com/linux/ubuntu/\t/etc/apt/keyrings/docker.asc",
			"apt-refuses=Conflicting values set for option Signed-By regarding source https://download.docker.com/linux/ubuntu/ noble: /etc/apt/keyrings/docker.gpg != /etc/apt/keyrings/docker.asc")
	},
	"w1 GPU_FELL_OFF_BUS": func(w *world) { // 16: k8s-device-plugin#231
		w.logs("NVRM: GPU at PCI:0000:65:00: GPU-2", "NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
			"NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.")
		w.oneCard()
		w.node("", "2", "1", "", "Ready=True GPUHealthy=False")
	},
	"w1 GPU_NOT_ALL_CARDS": func(w *world) { w.oneCard(); w.node("", "2", "1", "", "Ready=True") }, // 16: by counting
	"w1 GPU_UNHEALTHY": func(w *world) { // 17: k8s-device-plugin#1014
		w.node("", "2", "1", "", "Ready=True")
		says(&w.control, "plugin-said=[pod/nvidia-device-plugin-x7k2p/nvidia-device-plugin] I1120 health.go:190] XidCriticalError: Xid=94 on Device=GPU-2; marking device as unhealthy.")
	},
	"w1 GPU_XID": func(w *world) { // 17: an error of memory
		w.logs("NVRM: Xid (PCI:0000:17:00): 94, pid=4711, name=python, Contained: CE User Channel (0x9). RST: No, D-RST: No")
	},
	"w1 GPU_HUNG": func(w *world) { // 18: founding document 000
		for line := range strings.Lines(read(w.t, "testdata/founding-hung.txt")) {
			says(&w.worker, "kernel-log="+strings.TrimSpace(line))
		}
	},
	"w1 GPU_GSP_TIMEOUT": func(w *world) { // 19: open-gpu-kernel-modules#446
		w.logs("NVRM: Xid (PCI:0000:17:00): 119, pid=3157, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).")
	},
	"w1 GPU_FABRIC_FAILED": func(w *world) { // 20: gpu-operator#544
		w.w1.NVIDIA.Switches = 4
		says(&w.worker, "nvswitch=0000:c4:00.0", "unit=nvidia-fabricmanager failed exit-code 0 enabled",
			"unit-said=nvidia-fabricmanager fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with driver version 530.41.03")
	},
	"w1 GPU_FABRIC_INCOMPLETE": func(w *world) { // gpu-operator#2781
		w.w1.NVIDIA.Bridges = 4
		for i := range w.w1.NVIDIA.Cards {
			w.w1.NVIDIA.Cards[i].ID = "2901"
		}
		w.w1.NVIDIA.Fabric = []facts.GPUFabric{{Address: "00000000:17:00.0", State: "In Progress", Status: "N/A"}, {Address: "00000000:65:00.0", State: "Completed", Status: "Success"}}
		w.w1.Packages["nvlsm"] = facts.Package{Version: "2025.10.11-1"}
		says(&w.worker, "unit=nvidia-fabricmanager active success 0 enabled")
	},
	"w1 GPU_FABRIC_NEEDLESS": func(w *world) { // 21: gpu-operator#610
		says(&w.worker, "unit=nvidia-fabricmanager failed exit-code 0 enabled",
			"unit-said=nvidia-fabricmanager request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]")
	},
	"w1 GPU_PERSISTENCE_OFF": func(w *world) { // 22: nvidia-container-toolkit#202
		instead(&w.worker, "card=", "card=00000000:17:00.0, Disabled", "card=00000000:65:00.0, Disabled")
		instead(&w.worker, "unit=nvidia-persistenced", "unit=nvidia-persistenced inactive success 0 enabled")
	},
	"w1 GPU_MIG_PENDING": func(w *world) { // 23: mig-parted#485
		instead(&w.worker, "mig=", "mig=00000000:17:00.0, Disabled, Enabled")
	},
	"w1 GPU_MIG_DRIVER": func(w *world) { // 24: gpu-operator#1361
		w.inv.GPU.MIGStrategy = inventory.MIGMixed
		w.w1.NVIDIA.Loaded, w.w1.NVIDIA.Library, w.w1.NVIDIA.Module = "570.133.20", "570.133.20", "570.133.20"
		w.w1.NVIDIA.GPUs[0].MIG, w.w1.NVIDIA.GPUs[0].Instances = true, []facts.Instance{{UUID: "MIG-1", Profile: "1g.5gb"}}
		instead(&w.worker, "cdi=", "cdi=/var/run/cdi/nvidia.yaml 570.133.20")
	},
	"w1 NET_PODS_UNREACHABLE": func(w *world) {
		says(&w.worker, "pod-subnet=10.244.1.1/24", "pod-peer=10.244.0.0 silent", "dns=10.96.0.10 silent")
	},
	"w1 NET_DNS_BROKEN": func(w *world) { says(&w.worker, "pod-peer=10.244.0.0 reached", "dns=10.96.0.10 silent") },
	"w1 CGROUP_DRIVER_MISMATCH": func(w *world) { // 25: cri-dockerd#101
		w.docker()
		w.w1.DockerInfo["cgroup-driver"] = "cgroupfs"
	},
	"w1 CRI_DOCKERD_DOWN": func(w *world) { // 26: holodeck
		w.docker()
		instead(&w.worker, "unit=cri-docker", "unit=cri-docker failed start-limit-hit 3 enabled", "unit-said=cri-docker cri-docker.service: Start request repeated too quickly.")
	},
	"w1 GPU_TOOLKIT_OLD": func(w *world) { // 27: nvidia-container-runtime#127
		w.w1.Packages["libnvidia-container1"] = facts.Package{Version: "1.7.0-1"}
	},
	"w1 GPU_RUNTIME_LEGACY": func(w *world) { // 28: k8s-device-plugin#1400
		says(&w.control, "event=\t"+w.w1.Now.Add(-time.Minute).UTC().Format(time.RFC3339)+"\tw1\tFailed\tdefault/job\t"+
			`Error: failed to create containerd task: nvidia-container-runtime-hook: Auto-detected mode as \'legacy\' nvidia-container-cli: ldcache error: process /sbin/ldconfig.real terminated with signal 9`)
	},
	"w1 GPU_CDI_STALE": func(w *world) { // 29: AgentBaker, cse_config.sh
		instead(&w.worker, "cdi=", "cdi=/var/run/cdi/nvidia.yaml 580.173.02")
	},
	"w1 GPU_INFOROM": func(w *world) { // 30: AgentBaker, validateGPUDrivers
		instead(&w.worker, "card-status", "card-said=WARNING: infoROM is corrupted at gpu 0000:17:00.0", "card-status=14")
	},
	"cp1 WEAVE_BRIDGE": func(w *world) { // 31: weave#3731
		says(&w.control, "weave-pod=weave-net-abcde cp1",
			"weave-said=[pod/weave-net-abcde/weave] Inconsistent bridge state detected. Please do 'weave reset' and try again")
	},
	"w1 IPTABLES_MIXED": func(w *world) { says(&w.worker, "kubernetes-rules=legacy 120", "kubernetes-rules=nft 14") }, // 32: rajch/weave#24
	"w1 GPU_LEAK_POSSIBLE": func(w *world) { // 33: README of the device plugin
		instead(&w.worker, "default-runtime=", "default-runtime=nvidia")
		w.w1.Toolkit = nil
	},
	"w1 GPU_UNSUPPORTED": func(w *world) { // 34: driver guide, kernel modules
		w.w1.NVIDIA.GPUs, w.w1.NVIDIA.SMI = nil, 6
		instead(&w.worker, "card", "card-said=No devices were found", "card-status=6")
		w.logs("NVRM: The NVIDIA GPU 0000:17:00.0 (PCI ID: 10de:102d) installed in this system is not supported by the NVIDIA 595.91.07 driver release.")
		w.node("", "0", "0", "", "Ready=True")
	},
	"w1 HOST_CGROUP_V1": func(w *world) { w.w1.CgroupV2 = false }, // 35: node-problem-detector#1161

	"w1 GPU_DRIVER_MISSING":    func(w *world) { w.withoutDriver("", "") },
	"w1 GPU_MODULE_NOT_LOADED": func(w *world) { w.withoutDriver("595.91.07", "595.91.07") },
	"w1 GPU_DEVICE_NODES":      func(w *world) { instead(&w.worker, "device-node=") },
	"w1 GPU_WATCH_ALARM":       func(w *world) { w.node("", "2", "2", "", "Ready=True GPUHealthy=False") },
	"w1 GPU_NOT_ALLOCATABLE":   func(w *world) { w.node("", "", "", "", "Ready=True"); instead(&w.control, "pod=") },
	"w1 RUNTIME_DOWN": func(w *world) {
		instead(&w.worker, "unit=containerd", "unit=containerd failed exit-code 0 enabled")
		w.w1.ContainerdLoaded = nil
		w.node("", "2", "2", "", "Ready=False")
	},
	"w1 KUBELET_DOWN": func(w *world) {
		instead(&w.worker, "unit=kubelet", "unit=kubelet inactive success 0 enabled")
		w.node("", "2", "2", "", "Ready=Unknown")
	},
	"w1 NODE_NOT_READY": func(w *world) { w.node("", "2", "2", "", "Ready=Unknown") },
	"w1 POD_STUCK": func(w *world) {
		since := w.w1.Now.Add(-time.Hour).UTC().Format(time.RFC3339)
		says(&w.control, "waiting-pod=\tkgpu-dashboard\tweb-1\tw1\t"+since+"\t\t\tweb ImagePullBackOff Back-off pulling image \\\"x\\\"")
	},
	"w1 NODE_CORDONED":         func(w *world) { w.node("true", "0", "0", "kgpu", "Ready=True") },
	"cp1 API_UNREACHABLE":      func(w *world) { w.control = strings.Replace(w.control, "api=1\n", "", 1) },
	"w1 HOST_DISK_FULL":        func(w *world) { instead(&w.worker, "disk=", "disk=/ 93") },
	"w1 HOST_FILES_READONLY":   func(w *world) { w.logs("EXT4-fs (sda1): Remounting filesystem read-only") },
	"w1 HOST_MEMORY_EXHAUSTED": func(w *world) { w.logs("Out of memory: Killed process 4711 (python) total-vm:90000000kB") },
	"w1 APPARMOR_DENIED": func(w *world) {
		w.logs(`audit: type=1400 audit(1): apparmor="DENIED" operation="signal" class="signal" profile="cri-containerd.apparmor.d" pid=1 comm="runc"`)
	},
	"cp1 CLUSTER_UNDEFENDED":  func(w *world) { w.cp.ControlPlane.Defences = facts.Defences{Plugins: "NodeRestriction"} },
	"w1 HOST_CONTAINERD_OLD":  func(w *world) { w.w1.Packages["containerd"] = facts.Package{Version: "1.7.24~ds1-6+deb13u1"} },
	"cp1 CLUSTER_CANNOT_GROW": func(w *world) { w.cp.ControlPlane.Endpoint = "10.199.1.10:6443" },
	"w1 HOST_API_NAME": func(w *world) {
		w.cp.ControlPlane.Endpoint = "api-0123ab.lab.kgpu.internal:6443"
		w.cp.Names = map[string][]netip.Addr{"api-0123ab.lab.kgpu.internal": {netip.MustParseAddr("10.199.1.10")}}
		w.node("", "2", "2", "", "Ready=Unknown")
	},
	"cp1 BACKUP_OVERDUE": func(w *world) {
		w.inv.Backup.Schedule = "daily"
		w.cp.Backups = &facts.Backups{Since: w.cp.Now.Add(-72 * time.Hour)}
	},
	"w1 HOST_CLOCK_SKEW":       nil, // see TestPreflightOnNodes
	"w1 CERTIFICATE_EXPIRED":   nil, // see TestCertificates
	"w1 HOST_CERTIFICATE_ENDS": nil,
	"w1 GPU_OFFERED_LOST":      nil, // see TestLostCardStillOffered
}

// oneCard is a nvidia-smi that cannot reach the second card.
func (w *world) oneCard() {
	w.w1.NVIDIA.GPUs, w.w1.NVIDIA.SMI = nil, 15
	instead(&w.worker, "card", "card=00000000:17:00.0, Enabled", "card-said=Unable to determine the device handle for GPU1: GPU is lost", "card-status=15")
	instead(&w.worker, "mig")
}

// withoutDriver is a host on which no module is loaded.
func (w *world) withoutDriver(module, library string) {
	n := &w.w1.NVIDIA
	n.Loaded, n.Module, n.Library, n.GPUs = "", module, library, nil
	n.Cards[0].Driver, n.Cards[1].Driver = "", ""
	instead(&w.worker, "card")
	instead(&w.worker, "mig")
	instead(&w.worker, "device-node")
	w.node("", "0", "0", "", "Ready=True")
}

// docker makes it the runtime.
func (w *world) docker() {
	w.inv.Runtime = inventory.Docker
	for _, f := range []*facts.Host{w.cp, w.w1} {
		f.DockerInfo = map[string]string{"nvidia": "yes", "cgroup-driver": "systemd"}
		f.ContainerdLoaded = nil
	}
	says(&w.worker, "unit=docker active success 0 enabled", "unit=cri-docker active success 0 enabled")
}

// TestForeignDriverIsChecked: a driver that is not kgpu's (source: none) is checked all the same.
func TestForeignDriverIsChecked(t *testing.T) {
	for want, module := range map[string]string{"GPU_MODULE_NOT_LOADED": "595.91.07", "GPU_MODULE_BUILD": ""} {
		w := newWorld(t)
		w.inv.GPU.Driver.Source = catalog.NoDriver
		w.withoutDriver(module, "595.91.07")
		if module == "" {
			instead(&w.worker, "dkms=", "dkms=nvidia/595.91.07, 6.8.0-85-generic, x86_64: installed")
		}
		var got []string
		for _, f := range w.check() {
			got = append(got, f.Host+" "+f.ID)
		}
		if !slices.Equal(got, []string{"w1 " + want}) {
			t.Errorf("%q, want %s", got, want)
		}
	}
}

// TestRefusedPlanIsAWarning: what a plan refuses for a working cluster is only a warning.
func TestRefusedPlanIsAWarning(t *testing.T) {
	for _, id := range refusals {
		found := Refused(errors.Join(&reason.Error{ID: id, Host: "cp1", Detail: "it is so"}, errors.New("something else")))
		if len(found) != 1 || found[0].ID != string(id) || found[0].Severity != Warning || found[0].Host != "cp1" {
			t.Errorf("%s: %+v", id, found)
		}
	}
}

// TestEachFaultHasOneFinding: each row finds its own fault, and no other row does.
func TestEachFaultHasOneFinding(t *testing.T) {
	for name, plant := range rows {
		if plant == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			plant(w)
			found := w.check()
			if got := ids(found); !slices.Equal(got, []string{name}) {
				t.Fatalf("found %v: %+v", got, found)
			}
			f := found[0]
			if len(f.Evidence) == 0 || len(f.Evidence) > maxEvidence || f.Cause == "" || f.Fix == "" || f.Severity == "" {
				t.Errorf("the finding is %+v", f)
			}
			if strings.Contains(f.Fix, "HOST ") || strings.Contains(f.Fix, "NODE") {
				t.Errorf("the fix does not name the host: %s", f.Fix)
			}
		})
	}
}

// TestClusterThatCanGrow: a cluster can grow if its API server has a name, or an address that is none of its hosts',
// such as a load balancer's.
func TestClusterThatCanGrow(t *testing.T) {
	for _, endpoint := range []string{"10.199.1.100:6443", "k8s.example.com:6443", ""} {
		w := newWorld(t)
		w.cp.ControlPlane.Endpoint = endpoint
		if found := w.check(); len(found) > 0 {
			t.Errorf("%s: %+v", endpoint, found)
		}
	}
}

// TestEveryRowHasATest goes through the catalogue: no row without a test, no mode without a row.
func TestEveryRowHasATest(t *testing.T) {
	modes := map[int]bool{}
	seen := map[string]bool{}
	for _, r := range Catalogue() {
		_, onWorker := rows["w1 "+r.ID]
		_, onControl := rows["cp1 "+r.ID]
		if !onWorker && !onControl {
			t.Errorf("%s has no test", r.ID)
		}
		if seen[r.ID] {
			t.Errorf("%s is there twice", r.ID)
		}
		seen[r.ID] = true
		for _, n := range r.Modes {
			modes[n] = true
		}
		for _, id := range r.explains {
			if !Known(id) {
				t.Errorf("%s explains %s, which is none", r.ID, id)
			}
		}
		if r.Severity != Error && r.Severity != Warning || r.Repair == RestartUnit && r.units == nil {
			t.Errorf("%s: severity %q, repair %q", r.ID, r.Severity, r.Repair)
		}
	}
	for n := 1; n <= 36; n++ {
		if !modes[n] {
			t.Errorf("no row has mode %d", n)
		}
	}
}

// TestRealLogHasOneFix: the kernel's log in the founding document leads to a single thing to do.
func TestRealLogHasOneFix(t *testing.T) {
	w := newWorld(t)
	rows["w1 GPU_HUNG"](w)
	f := w.check()[0]
	if f.Repair != Reboot || !f.Force || f.Node != "w1" {
		t.Errorf("the repair is %q, force %v, node %q", f.Repair, f.Force, f.Node)
	}
	all := strings.Join(f.Evidence, "\n")
	if !strings.HasSuffix(f.Evidence[0], "nvidia-smi answers now") || f.Severity != Error {
		t.Errorf("%s: %q", f.Severity, f.Evidence)
	}
	for _, want := range []string{"task kworker/2:3:1275 blocked for more than 120 seconds", "os_execute_work_item [nvidia]"} {
		if !strings.Contains(all, want) {
			t.Errorf("the evidence has no %q: %q", want, f.Evidence)
		}
	}
	for _, want := range []string{"kgpu doctor w1 --fix", "kubectl drain w1", "systemctl reboot --force", "kubectl uncordon w1"} {
		if !strings.Contains(f.Fix, want) {
			t.Errorf("the fix has no %q: %q", want, f.Fix)
		}
	}
}

// TestHungTaskOfTheDiskIsNotTheDrivers: a task that waits for a disk is not blamed on the driver, even if the driver
// logs soon after.
func TestHungTaskOfTheDiskIsNotTheDrivers(t *testing.T) {
	w := newWorld(t)
	w.logs("INFO: task jbd2/sda1-8:311 blocked for more than 120 seconds.", "Workqueue: writeback wb_workfn", "INFO: task kworker/u8:1:99 blocked for more than 120 seconds.")
	if found := w.check(); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// TestHungSMIMeansAHungDriver: a nvidia-smi that hangs means that the driver hangs, even if there are no facts because
// of it.
func TestHungSMIMeansAHungDriver(t *testing.T) {
	w := newWorld(t)
	w.w1.NVIDIA.GPUs, w.w1.NVIDIA.SMI = nil, 124
	instead(&w.worker, "card", "card-status=124", "stuck=4711 nvidia-smi")
	if got := ids(w.check()); !slices.Equal(got, []string{"w1 GPU_HUNG"}) {
		t.Errorf("found %v", got)
	}
	seen, err := ParseEvidence([]byte(w.worker))
	must(t, err)
	found := Check(w.inv, []Machine{{Machine: machine.Machine{Host: w.inv.Hosts[1]}, Evidence: seen, Err: &reason.Error{ID: reason.HostUnending, Host: "w1"}}}, nil)
	if got := ids(found); !slices.Equal(got, []string{"w1 GPU_HUNG", "w1 HOST_UNENDING"}) {
		t.Errorf("without facts: %v", got)
	}
	closed := errors.Join(&reason.Error{ID: reason.SSHCommandRefused, Doing: "running facts"}, &reason.Error{ID: reason.SSHCommandRefused, Doing: "running doctor"})
	if got := ids(Check(w.inv, []Machine{{Machine: machine.Machine{Host: w.inv.Hosts[1]}, Err: closed}}, nil)); !slices.Equal(got, []string{"w1 SSH_COMMAND_REFUSED"}) {
		t.Errorf("one door, asked at twice: %v", got)
	}
}

// TestSMITimeoutAloneNeedsNoReboot: if nvidia-smi only timed out, the host may be busy, and no reboot is advised or
// offered.
func TestSMITimeoutAloneNeedsNoReboot(t *testing.T) {
	w := newWorld(t)
	w.w1.NVIDIA.GPUs, w.w1.NVIDIA.SMI = nil, 124
	instead(&w.worker, "card", "card-status=124", "stuck=99 jbd2/sda1-8")
	f := w.check()[0]
	if f.ID != "GPU_HUNG" || f.Repair != ByHand || f.Force || strings.Contains(f.Fix, "--fix") || !strings.Contains(f.Fix, "`kgpu doctor w1`") {
		t.Errorf("found %+v", f)
	}
	says(&w.worker, "stuck=4711 nvidia-smi")
	if f = w.check()[0]; f.ID != "GPU_HUNG" || f.Repair != Reboot || !f.Force || !strings.Contains(f.Fix, "`kgpu doctor w1 --fix`") {
		t.Errorf("with a process that waits in the kernel: %+v", f)
	}
}

// TestSlowSMINeedsNoReboot: a nvidia-smi that answers within the longer timeout of facts.sh does not hang, and no
// reboot is advised.
func TestSlowSMINeedsNoReboot(t *testing.T) {
	w := newWorld(t)
	instead(&w.worker, "card", "card-status=124")
	if found := w.check(); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	instead(&w.worker, "unit=nvidia-persistenced", "unit=nvidia-persistenced inactive success 0 enabled")
	if got := ids(w.check()); !slices.Equal(got, []string{"w1 GPU_PERSISTENCE_OFF"}) {
		t.Errorf("where nothing keeps the driver: %v", got)
	}
	w.w1.NVIDIA.GPUs, w.w1.NVIDIA.SMI = nil, 15
	if got := ids(w.check()); !slices.Contains(got, "w1 GPU_NOT_ALL_CARDS") || slices.Contains(got, "w1 GPU_HUNG") {
		t.Errorf("with a late answer that is an error: %v", got)
	}
}

// TestStuckPodsAreFoundOnce: an unschedulable pod is a finding of the control plane, a pod that may only be starting is
// none, and the device plugin has its own row.
func TestStuckPodsAreFoundOnce(t *testing.T) {
	w := newWorld(t)
	ago := func(d time.Duration) string { return w.w1.Now.Add(-d).UTC().Format(time.RFC3339) }
	says(&w.control, "waiting-pod=\tkgpu-notebook\tnotebook\t\t\t"+ago(time.Hour)+"\t0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
		"waiting-pod=\tkgpu-dashboard\tnew\tw1\t"+ago(time.Minute)+"\t\t\tc ImagePullBackOff ",
		"waiting-pod=\tkube-system\told\telsewhere\t"+ago(time.Hour)+"\t\t\tc ImagePullBackOff ",
		"waiting-pod=", "waiting-pod=\tx")
	found := w.check()
	if got := ids(found); !slices.Equal(got, []string{"cp1 POD_STUCK"}) || found[0].Severity != Warning ||
		found[0].Evidence[0] != "pod kgpu-notebook/notebook: no node takes it: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu." {
		t.Errorf("found %+v", found)
	}
	says(&w.control, "waiting-pod=\tkube-system\tcoredns-1\tw1\t"+ago(time.Hour)+"\t\t\tcoredns CrashLoopBackOff back-off 5m0s", "waiting-said=kube-system/coredns-1 plugin/loop: Loop detected")
	if found := w.check(); len(found) != 2 || found[1].Evidence[0] != "pod kube-system/coredns-1: container coredns: CrashLoopBackOff: back-off 5m0s; its log ends: plugin/loop: Loop detected" {
		t.Errorf("found %+v", found)
	}
	w = newWorld(t)
	rows["w1 GPU_PLUGIN_FAILS"](w)
	says(&w.control, "waiting-pod=\tkube-system\tnvidia-device-plugin-x7k2p\tw1\t"+ago(time.Hour)+"\t\t\tnvidia-device-plugin CrashLoopBackOff back-off 5m0s restarting failed container")
	if got := ids(w.check()); !slices.Equal(got, []string{"w1 GPU_PLUGIN_FAILS"}) {
		t.Errorf("found %v", got)
	}
}

// TestPluginFailsInOneOfTwoContainers: a pod's containers are in one line, in the order of their names.
func TestPluginFailsInOneOfTwoContainers(t *testing.T) {
	w := newWorld(t)
	w.node("", "0", "0", "", "Ready=True")
	instead(&w.control, "pod=", "pod=\tw1\tnvidia-device-plugin-x7k2p\tRunning\tgpu-feature-discovery CrashLoopBackOff ; nvidia-device-plugin CrashLoopBackOff ; ")
	found := w.check()
	if got := ids(found); !slices.Equal(got, []string{"w1 GPU_PLUGIN_FAILS"}) || strings.Contains(found[0].Evidence[0], "gpu-feature") {
		t.Errorf("found %+v", found)
	}
}

// TestEventsOfUnknownAgeAreIgnored: without the host's time nobody knows how old its events are.
func TestEventsOfUnknownAgeAreIgnored(t *testing.T) {
	w := newWorld(t)
	says(&w.control, "event=\t2026-11-20T13:00:00Z\tw1\tFailed\tdefault/job\tAuto-detected mode as legacy")
	control, err := ParseEvidence([]byte(w.control))
	must(t, err)
	worker, err := ParseEvidence([]byte(w.worker))
	must(t, err)
	if found := Check(w.inv, []Machine{{Machine: machine.Machine{Host: w.inv.Hosts[0], Facts: w.cp}, Evidence: control}, {Machine: machine.Machine{Host: w.inv.Hosts[1]}, Evidence: worker}}, nil); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// TestLostCardStillOffered: a lost GPU that is still offered gives two findings.
func TestLostCardStillOffered(t *testing.T) {
	w := newWorld(t)
	w.oneCard()
	if got := ids(w.check()); !slices.Equal(got, []string{"w1 GPU_NOT_ALL_CARDS", "w1 GPU_OFFERED_LOST"}) {
		t.Errorf("found %v", got)
	}
}

func TestUnreachableHost(t *testing.T) {
	w := newWorld(t)
	seen, err := ParseEvidence([]byte(w.control))
	must(t, err)
	found := Check(w.inv, []Machine{
		{Machine: machine.Machine{Host: w.inv.Hosts[0], Facts: w.cp}, Evidence: seen},
		{Machine: machine.Machine{Host: w.inv.Hosts[1]}, Err: &reason.Error{ID: reason.SSHUnreachable, Host: "w1", Detail: "connection refused"}},
	}, nil)
	if got := ids(found); !slices.Equal(got, []string{"w1 SSH_UNREACHABLE"}) || found[0].Fix == "" || found[0].Evidence[0] != "connection refused" {
		t.Errorf("found %+v", found)
	}
}

func TestIgnoredFindings(t *testing.T) {
	w := newWorld(t)
	rows["w1 GPU_FELL_OFF_BUS"](w)
	seen, _ := ParseEvidence([]byte(w.worker))
	if found := Check(w.inv, []Machine{{Machine: machine.Machine{Host: w.inv.Hosts[1], Facts: w.w1}, Evidence: seen}}, []string{"GPU_FELL_OFF_BUS"}); len(found) > 0 {
		t.Errorf("what is ignored leaves its consequences: %v", ids(found))
	}
}

// TestPreflightOnNodes: preflight's checks run on existing nodes too.
func TestPreflightOnNodes(t *testing.T) {
	w := newWorld(t)
	seen, _ := ParseEvidence([]byte(w.worker))
	control, _ := ParseEvidence([]byte(w.control))
	w.w1.RebootPending = true
	found := Check(w.inv, []Machine{
		{Machine: machine.Machine{Host: w.inv.Hosts[0], Facts: w.cp}, Evidence: control},
		{Machine: machine.Machine{Host: w.inv.Hosts[1], Facts: w.w1, Skew: time.Hour}, Evidence: seen},
	}, nil)
	if got := ids(found); !slices.Equal(got, []string{"w1 HOST_CLOCK_SKEW", "w1 HOST_REBOOT_PENDING"}) || found[0].Severity != Warning {
		t.Errorf("found %+v", found)
	}
}

// TestEvidenceIsPrintable: what a host sends is printed without effect on a terminal.
func TestEvidenceIsPrintable(t *testing.T) {
	w := newWorld(t)
	w.logs("NVRM: Xid (PCI:0000:65:00): 79, \x1b]0;evil\x07\x1b[2J" + strings.Repeat("x", 5000))
	found := w.check()
	text, err := json.Marshal(found)
	if err != nil || len(found) != 1 || strings.Contains(found[0].Evidence[0], "\x1b") || len(text) > 3000 {
		t.Errorf("%v: %d bytes: %.300s", err, len(text), text)
	}
}

// TestSingularOfCards: one card is "1 card".
func TestSingularOfCards(t *testing.T) {
	if got := driverMissing(&examinee{f: &facts.Host{}, cards: 1}); len(got) != 1 || !strings.HasPrefix(got[0], "1 card, ") {
		t.Errorf("%q", got)
	}
}

// TestDiskLimitOfTheKubelet: a file system is full at the kubelet's limit: that of images, or the inventory's.
func TestDiskLimitOfTheKubelet(t *testing.T) {
	for limit, full := range map[string]bool{"": true, "5%": false} {
		w := newWorld(t)
		if limit != "" {
			w.inv.Kubernetes.KubeletConfiguration = map[string]any{"evictionHard": map[string]any{"imagefs.available": limit}}
		}
		w.w1.FileSystems = []facts.FileSystem{{Path: "/", On: "/", AvailableKiB: 120 << 20, SizeKiB: 1000 << 20, InodesFreePercent: 90}}
		if got := slices.Contains(ids(w.check()), "w1 HOST_DISK_FULL"); got != full {
			t.Errorf("%q: told: %t", limit, got)
		}
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
