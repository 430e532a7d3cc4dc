package e2e

import "strings"

// Not here is what hosts of the lab cannot have (cgroup v2, tables of iptables-legacy), what its inventories ignore (a full
// disk), and what shows only on other hosts (compilers, instances of MIG, cards without device nodes, a device plugin that
// finds none): the tests of package doctor plant those in what hosts answer.

var faultsOfCards = []fault{
	{
		name:  "persistence is off",
		plant: "systemctl stop nvidia-persistenced",
		exit:  withWarnings, want: "w1 GPU_PERSISTENCE_OFF", group: "what doctor repairs",
	},
	{
		name:  "the fabric manager is down",
		plant: "systemctl stop nvidia-fabricmanager",
		exit:  withErrors, want: "w1 GPU_FABRIC_FAILED", group: "what doctor repairs",
	},
	{
		name: "a fabric manager without switches", on: "cp1",
		plant: "printf '[Service]\nExecStart=/bin/false\n' >/etc/systemd/system/nvidia-fabricmanager.service; systemctl daemon-reload; systemctl start nvidia-fabricmanager || :",
		heal:  "rm /etc/systemd/system/nvidia-fabricmanager.service; systemctl daemon-reload; systemctl reset-failed",
		exit:  withWarnings, want: "cp1 GPU_FABRIC_NEEDLESS", group: "what a host tells of itself",
	},
	{
		name:  "a card fell off the bus",
		plant: kernelLog("2026-11-20T13:00:01+00:00 w1 kernel: NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"),
		heal:  noKernelLog,
		exit:  withErrors, want: "w1 GPU_FELL_OFF_BUS", group: "cards that the kernel gave up, and sources of apt",
	},
	{
		name:  "the firmware does not answer",
		plant: kernelLog("NVRM: Xid (PCI:0000:17:00): 119, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"),
		heal:  noKernelLog,
		exit:  withErrors, want: "w1 GPU_GSP_TIMEOUT", group: "cards that the kernel gave up, and sources of apt",
	},
	{
		name:  "a card has an error",
		plant: kernelLog("NVRM: Xid (PCI:0000:17:00): 94, pid=4711, name=python, Contained\n"),
		heal:  noKernelLog,
		exit:  withWarnings, want: "w1 GPU_XID", group: "what a host tells of itself",
	},
	{
		name: "the driver is not of this card",
		plant: kernelLog("NVRM: The NVIDIA GPU 0000:17:00.0 (PCI ID: 10de:2330)\nNVRM: installed in this system is not supported by the\nNVRM: NVIDIA 470.256.02 driver release.\n") +
			"; " + smi("echo 'No devices were found'; exit 6"),
		heal: noKernelLog + "; " + noSMI,
		exit: withErrors, want: "w1 GPU_UNSUPPORTED",
	},
	{
		name:  "the card's InfoROM is corrupted",
		plant: smi(`real "$@"; echo 'WARNING: infoROM is corrupted at gpu 0000:17:00.0'; exit 14`),
		heal:  noSMI,
		exit:  withWarnings, want: "w1 GPU_INFOROM", group: "a card's memory of itself, and a file of containerd's",
	},
	{
		name:  "MIG waits for a reset",
		plant: smi(`case $* in *mig.mode.pending*) echo '00000000:17:00.0, Disabled, Enabled' ;; *) real "$@" ;; esac`),
		heal:  noSMI,
		exit:  withErrors, want: "w1 GPU_MIG_PENDING", group: "a card that waits, and no runtime for it",
	},
	{
		name:  "the driver hangs",
		plant: "echo hang >/etc/kgpu-lab/gpu-faults",
		heal:  ": >/etc/kgpu-lab/gpu-faults",
		exit:  withErrors, want: "w1 GPU_HUNG", long: true,
	},
	{
		name:  "the library is another",
		plant: "echo mismatch >/etc/kgpu-lab/gpu-faults",
		heal:  ": >/etc/kgpu-lab/gpu-faults",
		exit:  withErrors, want: "w1 GPU_DRIVER_MISMATCH",
	},
	{
		name:  "a card is lost", // and the device plugin has not seen it
		plant: smi(`real "$@" | head -n 1; echo 'Unable to determine the device handle for GPU1: GPU is lost'; exit 15`),
		heal:  noSMI,
		exit:  withErrors, want: "w1 GPU_OFFERED_LOST", also: "GPU_NOT_ALL_CARDS",
	},
	{
		name:  "the module is not loaded",
		plant: unload,
		slow:  true, exit: withErrors, want: "w1 GPU_MODULE_NOT_LOADED",
	},
	{
		name:  "there is no module for this kernel",
		plant: unload + `f=$(modinfo -F filename nvidia); printf '%s\n' "$f" >/root/module.path; mv "$f" /root/module`,
		heal:  `mv /root/module "$(</root/module.path)"; ` + load,
		exit:  withErrors, want: "w1 GPU_MODULE_BUILD",
	},
	{
		name:  "nouveau has the card",
		plant: unload + "modprobe nouveau",
		heal:  byUp,
		exit:  withErrors, want: "w1 GPU_NOUVEAU_BUSY", long: true,
	},
	{
		name:  "the kernel trusts no such module",
		plant: unload + kernelLog("Loading of module with unavailable key is rejected\n"),
		heal:  noKernelLog + "; " + load,
		exit:  withErrors, want: "w1 GPU_MODULE_REJECTED",
	},
	{
		name:  "the next kernel has no module", // of the one that runs hosts of a lab have no image, and depmod has not read its module
		plant: `r=$(uname -r); touch "/boot/vmlinuz-$r" /boot/vmlinuz-99.0.0; mkdir /lib/modules/99.0.0; cp -a "/lib/modules/$r/modules.dep" /root; echo updates/dkms/nvidia.ko: >>"/lib/modules/$r/modules.dep"`,
		heal:  `r=$(uname -r); mv /root/modules.dep "/lib/modules/$r/"; rm -r "/boot/vmlinuz-$r" /boot/vmlinuz-99.0.0 /lib/modules/99.0.0`,
		exit:  withWarnings, want: "w1 GPU_MODULE_NEXT_KERNEL", also: "HOST_REBOOT_PENDING", group: "drivers that are to come or were",
	},
	{
		name: "parts of another driver",
		plant: `d=$(mktemp -d); mkdir "$d/DEBIAN"
printf '%s\n' 'Package: nvidia-utils-550' 'Version: 550.1-0ubuntu1' 'Architecture: all' 'Maintainer: e2e <e2e@lab>' 'Description: of another driver' >"$d/DEBIAN/control"
dpkg-deb --build "$d" /root/other.deb; dpkg -i /root/other.deb; rm -r "$d" /root/other.deb`,
		heal: "dpkg --purge nvidia-utils-550",
		exit: withWarnings, want: "w1 GPU_DRIVER_MIXED", group: "drivers that are to come or were",
	},
}

var faultsOfContainers = []fault{
	{
		name:  "the cards are described of another driver", // and nothing describes them anew: the toolkit's unit does when modules.dep changes
		plant: "systemctl stop nvidia-cdi-refresh.path; systemctl start nvidia-cdi-refresh.service; cp -a /var/run/cdi/nvidia.yaml /root/cdi.was; sed -i -E 's/\\.so\\.[0-9]{3}\\.[0-9.]+/.so.580.11.22/' /var/run/cdi/nvidia.yaml",
		heal:  "mv /root/cdi.was /var/run/cdi/nvidia.yaml; systemctl start nvidia-cdi-refresh.path",
		exit:  withErrors, want: "w1 GPU_CDI_STALE", group: "drivers that are to come or were",
	},
	{
		name:  "the runtime nvidia is missing",
		plant: edited(dropIn, `s/runtimes\.nvidia/runtimes.other/`),
		heal:  byUp,
		exit:  withErrors, want: "w1 GPU_RUNTIME_MISSING", group: "a card that waits, and no runtime for it",
	},
	{
		name:  "the runtime is where containerd does not look",
		plant: "mkdir /etc/containerd/config.d; touch /etc/containerd/config.d/99-nvidia.toml; " + edited(dropIn, `s/runtimes\.nvidia/runtimes.other/`),
		heal:  "rm -r /etc/containerd/config.d; " + edited(dropIn, `s/runtimes\.other/runtimes.nvidia/`),
		exit:  withErrors, want: "w1 CONTAINERD_DROPIN_IGNORED", group: "a card's memory of itself, and a file of containerd's",
	},
	{
		name:  "the runtimes' drivers for cgroups differ",
		plant: edited(dropIn, `/runtimes\.nvidia\.options/,/SystemdCgroup/s/SystemdCgroup.*/SystemdCgroup = false/`),
		heal:  byUp,
		exit:  withErrors, want: "w1 GPU_RUNTIME_CGROUP", long: true,
	},
	{
		name:  "containerd does not listen to the kubelet",
		plant: edited(mainFile, `/^version/a disabled_plugins = ["io.containerd.grpc.v1.cri"]`),
		heal:  edited(mainFile, `/^disabled_plugins/d`),
		exit:  withErrors, want: "w1 CONTAINERD_CRI_DISABLED",
	},
	{
		name:  "any image gets the cards",
		plant: "sed -i '/envvar-when-unprivileged/s/false/true/' /etc/nvidia-container-runtime/config.toml; " + edited(dropIn, `/\.containerd\]$/a default_runtime_name = "nvidia"`),
		heal:  byUp,
		exit:  withWarnings, want: "w1 GPU_LEAK_POSSIBLE", long: true,
	},
	{
		name: "the toolkit found no description", on: "cp1",
		plant: `now=$(date -u +%FT%TZ); ` + strings.Replace(onCluster(`{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e2e", "namespace": "kube-system"}, "type": "Warning", "reason": "Failed",
"involvedObject": {"kind": "Pod", "name": "job", "namespace": "kube-system"}, "source": {"component": "kubelet", "host": "w1"}, "firstTimestamp": "$now", "lastTimestamp": "$now",
"message": "Error: failed to create containerd task: Auto-detected mode as 'legacy': nvidia-container-cli: ldcache error: open failed"}`), "'END'", "END", 1),
		heal: notOnCluster("event", "e2e"),
		exit: withErrors, want: "w1 GPU_RUNTIME_LEGACY", group: "what the cluster tells, and a kubelet has in its file",
	},
	{
		name: "containers lost their cards", on: "cp1",
		plant: saying("plugin", "app.kubernetes.io/name=nvidia-device-plugin", "Failed to initialize NVML: Unknown Error"),
		heal:  notOnCluster("deployment", "plugin"),
		slow:  true, exit: withErrors, want: "w1 GPU_CONTAINERS_LOST_CARDS", group: "what the cluster tells, and a kubelet has in its file",
	},
	{
		name: "the device plugin does not start", on: "cp1",
		plant: admin + "-n kube-system set image daemonset/nvidia-device-plugin '*=nvcr.io/nvidia/none:1'",
		heal:  admin + "-n kube-system rollout undo daemonset/nvidia-device-plugin",
		slow:  true, exit: withErrors, want: "w1 GPU_PLUGIN_FAILS", long: true,
	},
}

var faultsOfNodes = []fault{
	{
		name:  "a hold is lost",
		plant: "apt-mark unhold kubelet",
		exit:  withWarnings, want: "w1 HOST_HOLD_LOST", group: "what doctor repairs",
	},
	{
		name:  "the kubelet is down",
		plant: "systemctl stop kubelet",
		exit:  withErrors, want: "w1 KUBELET_DOWN",
	},
	{
		name:  "the container runtime is down",
		plant: "systemctl stop containerd",
		slow:  true, exit: withErrors, want: "w1 RUNTIME_DOWN",
	},
	{
		name:  "the kubelet is silent",
		plant: "systemctl kill --signal=STOP kubelet",
		heal:  "systemctl kill --signal=CONT kubelet",
		slow:  true, exit: withErrors, want: "w1 NODE_NOT_READY", long: true,
	},
	{
		name: "the API server is gone", on: "cp1",
		plant: "mv /etc/kubernetes/manifests/kube-apiserver.yaml /root/",
		heal:  "mv /root/kube-apiserver.yaml /etc/kubernetes/manifests/",
		slow:  true, exit: withErrors, want: "cp1 API_UNREACHABLE", long: true,
	},
	{
		name: "the node's own check alarms", on: "cp1",
		plant: admin + `patch node w1 --subresource=status -p '{"status": {"conditions": [{"type": "GPUHealthy", "status": "False", "reason": "E2E", "message": "a card is lost"}]}}'`,
		heal:  admin + `patch node w1 --subresource=status -p '{"status": {"conditions": [{"type": "GPUHealthy", "$patch": "delete"}]}}'`,
		exit:  withWarnings, want: "w1 GPU_WATCH_ALARM", group: "what the cluster tells, and a kubelet has in its file",
	},
	{
		name: "a node is cordoned", on: "cp1",
		plant: admin + "cordon w1",
		heal:  admin + "uncordon w1",
		exit:  withWarnings, want: "w1 NODE_CORDONED", group: "what a host tells of itself",
	},
	{
		name:  "the runtime's driver for cgroups is another",
		plant: edited(dropIn, `/runtimes\.runc\.options/,/SystemdCgroup/s/SystemdCgroup.*/SystemdCgroup = false/`),
		heal:  byUp,
		exit:  withErrors, want: "w1 CGROUP_DRIVER_MISMATCH", also: "GPU_RUNTIME_CGROUP", long: true,
	},
	{
		name:  "the kubelet's driver for cgroups is another",
		plant: "sed -i.was 's/^cgroupDriver: systemd/cgroupDriver: cgroupfs/' /var/lib/kubelet/config.yaml",
		heal:  "mv /var/lib/kubelet/config.yaml.was /var/lib/kubelet/config.yaml",
		exit:  withErrors, want: "w1 CGROUP_DRIVER_MISMATCH", group: "what the cluster tells, and a kubelet has in its file",
	},
	{
		name:  "a file system is read-only",
		plant: kernelLog("EXT4-fs (sda1): Remounting filesystem read-only\n"),
		heal:  noKernelLog,
		exit:  withErrors, want: "w1 HOST_FILES_READONLY", group: "what a host tells of itself",
	},
	{
		name:  "the host has no memory left",
		plant: kernelLog("Out of memory: Killed process 4711 (python)\n"),
		heal:  noKernelLog,
		exit:  withWarnings, want: "w1 HOST_MEMORY_EXHAUSTED", group: "what a host tells of itself",
	},
	{
		name:  "AppArmor is in a container's way",
		plant: kernelLog(`audit: type=1400 audit(1.2:3): apparmor="DENIED" operation="signal" profile="cri-containerd.apparmor.d" pid=9 comm="runc"` + "\n"),
		heal:  noKernelLog,
		exit:  withWarnings, want: "w1 APPARMOR_DENIED", group: "what a host tells of itself",
	},
	{
		name: "a certificate ends soon", on: "cp1",
		plant: "openssl req -x509 -newkey ed25519 -nodes -keyout /dev/null -subj /CN=e2e -not_before 20200101000000Z -not_after $(date -u -d '10 days' +%Y%m%d%H%M%SZ) -out /etc/kubernetes/pki/e2e.crt",
		heal:  "rm /etc/kubernetes/pki/e2e.crt",
		exit:  withWarnings, want: "cp1 HOST_CERTIFICATE_ENDS", group: "what a host tells of itself",
	},
	{
		name: "a certificate has ended", on: "cp1",
		plant: "openssl req -x509 -newkey ed25519 -nodes -keyout /dev/null -subj /CN=e2e -not_before 20200101000000Z -not_after 20210101000000Z -out /etc/kubernetes/pki/e2e-ended.crt",
		heal:  "rm /etc/kubernetes/pki/e2e-ended.crt",
		exit:  withErrors, want: "cp1 CERTIFICATE_EXPIRED", group: "what a host tells of itself",
	},
	{
		name:  "a key of before 2022",
		plant: "echo 'deb https://developer.download.nvidia.com/compute/cuda/repos/ubuntu1804/x86_64 /' >/etc/apt/sources.list.d/cuda.list",
		heal:  "rm /etc/apt/sources.list.d/cuda.list",
		exit:  withWarnings, want: "w1 APT_KEY_RETIRED", group: "what a host tells of itself",
	},
	{
		name: "repositories contradict each other",
		plant: "echo 'deb [signed-by=/etc/a.gpg] https://download.docker.com/linux/debian trixie stable' >/etc/apt/sources.list.d/zz-a.list; " +
			"echo 'deb [signed-by=/etc/b.gpg] https://download.docker.com/linux/debian trixie stable' >/etc/apt/sources.list.d/zz-b.list",
		heal: "rm /etc/apt/sources.list.d/zz-*",
		exit: withErrors, want: "w1 APT_SIGNED_BY_CONFLICT", group: "cards that the kernel gave up, and sources of apt",
	},
	{
		name: "weave found another's bridge", on: "cp1",
		plant: saying("weave", "name=weave-net", "Inconsistent bridge state detected. Please do a weave reset and try again"),
		heal:  notOnCluster("deployment", "weave"),
		slow:  true, exit: withErrors, want: "w1 WEAVE_BRIDGE", group: "what the cluster tells, and a kubelet has in its file",
	},
	{
		name:  "an update waits for a reboot",
		plant: "touch /run/reboot-required",
		heal:  "rm /run/reboot-required",
		exit:  withWarnings, want: "w1 HOST_REBOOT_PENDING", group: "what a host tells of itself",
	},
	{
		name:  "the hosts' networks differ",
		plant: "ip link set eth0 mtu 1400",
		heal:  "ip link set eth0 mtu 1500",
		exit:  withWarnings, want: "w1 NET_MTU_DIFFERS", group: "what a host tells of itself",
	},
}
