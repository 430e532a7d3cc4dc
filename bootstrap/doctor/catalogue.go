package doctor

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
	"kgpu.dev/kgpu/inventory"
)

// Row is a failure mode in the catalogue.
type Row struct {
	ID       string // stable, as it is an API
	Modes    []int  // numbers among the first 36 failure modes; nil if it was added later
	Severity Severity
	Cause    string
	Fix      string // may name HOST and NODE, which are filled in
	Repair   Repair

	find         func(*examinee) []string // returns the evidence, nil if the failure is absent; nil for rows that preflight finds
	explains     []string                 // IDs of findings that follow from this one and are left out
	units        func(*examinee) []string // the units for RestartUnit
	repairable   func(*examinee) bool     // whether Repair helps; nil if it always does
	unrepairable *wording                 // replaces Cause and Fix if it is not repairable; nil to keep them
	force        bool
}

// wording is the text of a row.
type wording struct{ cause, fix string }

// Catalogue returns all failure modes that doctor itself looks for.
func Catalogue() []Row { return slices.Clone(catalogue) }

// withoutDriver are the findings that follow from a driver that does not work.
var withoutDriver = []string{
	"GPU_NOT_ALL_CARDS", "GPU_NOT_ALLOCATABLE", "GPU_UNHEALTHY", "GPU_OFFERED_LOST", "GPU_PLUGIN_FAILS", "GPU_PLUGIN_NO_DEVICES", "GPU_PERSISTENCE_OFF",
	"GPU_DEVICE_NODES", "GPU_CDI_STALE", "GPU_MODULE_NOT_LOADED", "GPU_DRIVER_MISSING", "GPU_MODULE_BUILD", "GPU_WATCH_ALARM", "GPU_FABRIC_NEEDLESS", "GPU_FABRIC_INCOMPLETE", "POD_STUCK",
}

const (
	rebootFix = "`kgpu doctor HOST --fix` cordons and drains the node, and reboots the host; by hand: `kubectl drain NODE --ignore-daemonsets --delete-emptydir-data`, reboot, `kubectl uncordon NODE`"
	pluginFix = "`kgpu doctor HOST --fix` restarts the device plugin of the node: `kubectl -n kube-system delete pod -l app.kubernetes.io/name=nvidia-device-plugin --field-selector spec.nodeName=NODE`; its log says why"
)

// smiUnanswered is the text for a nvidia-smi that timed out without other signs of a hang.
var smiUnanswered = wording{
	"nvidia-smi gave no answer in time, and the kernel tells of no task that is stuck in the driver: it hangs, or the host is only busy.",
	"wait and look again: `kgpu doctor HOST`; `uptime` on the host says how busy it is. If nvidia-smi never answers, only a reboot helps: `kubectl drain NODE --ignore-daemonsets --delete-emptydir-data --timeout=120s`, then `systemctl reboot --force` on the host, `kubectl uncordon NODE`",
}

var catalogue = []Row{
	// The cards and what the kernel says of them.
	{ID: "GPU_HUNG", Modes: []int{18}, Severity: Error, find: hung, Repair: Reboot, force: true, repairable: stuck, unrepairable: &smiUnanswered, explains: withoutDriver,
		Cause: "A task of the driver is stuck in the kernel. Programs that use the GPU hang with it, pods do not end, and the driver does not recover by itself.",
		Fix:   "only a reboot helps: `kgpu doctor HOST --fix` cordons and drains the node and reboots it; by hand: `kubectl drain NODE --ignore-daemonsets --delete-emptydir-data --timeout=120s`, then `systemctl reboot --force` on the host, `kubectl uncordon NODE`. If it comes again: a newer driver, or the card"},
	{ID: "GPU_FELL_OFF_BUS", Modes: []int{16}, Severity: Error, find: fellOff, Repair: Reboot, explains: []string{"GPU_NOT_ALL_CARDS", "GPU_NOT_ALLOCATABLE", "GPU_UNHEALTHY", "GPU_WATCH_ALARM"},
		Cause: "The kernel lost a card: Xid 79, it does not answer on the PCI bus any more. Power, heat, a riser or the card itself.",
		Fix:   rebootFix + ". A card that does not come back needs a power cycle; one that is lost again, another slot or its replacement"},
	{ID: "GPU_GSP_TIMEOUT", Modes: []int{19}, Severity: Error, find: xids("119", "120"), Repair: Reboot, explains: []string{"GPU_NOT_ALL_CARDS", "GPU_UNHEALTHY", "GPU_NOT_ALLOCATABLE", "GPU_WATCH_ALARM"},
		Cause: "The firmware on the card (GSP) does not answer the driver: Xid 119 or 120.",
		Fix:   rebootFix + ". If it comes again: a newer driver (`gpu.driver.branch`)"},
	{ID: "GPU_NOT_ALL_CARDS", Modes: []int{16}, Severity: Error, find: notAllCards, Repair: Reboot, explains: []string{"GPU_NOT_ALLOCATABLE", "GPU_UNHEALTHY", "GPU_WATCH_ALARM"},
		Cause: "The PCI bus has more cards than the driver sees.",
		Fix:   rebootFix + ". A card that fell off the bus may need a power cycle"},
	{ID: "GPU_XID", Modes: []int{17}, Severity: Warning, find: otherXids,
		Cause: "The driver reported an error of a card (Xid) that is not an application's.",
		Fix:   "look its number up at https://docs.nvidia.com/deploy/xid-errors/; errors of memory (48, 63, 64, 92, 94, 95) that come again mean a reboot, then the card's replacement"},
	{ID: "GPU_INFOROM", Modes: []int{30}, Severity: Warning, find: infoROM, explains: []string{"GPU_NOT_ALL_CARDS"},
		Cause: "The card's InfoROM is corrupted. The card computes all the same.",
		Fix:   "nothing on the host helps: ask the card's vendor for its replacement"},
	{ID: "GPU_UNSUPPORTED", Modes: []int{34}, Severity: Error, find: unsupported, Repair: ByHand, explains: withoutDriver,
		Cause: "The driver that is installed does not run this card: its branch is too new or too old for it, or the card wants the open kernel modules.",
		Fix:   "leave `gpu.driver` out of the inventory and run `kgpu up`: it chooses the driver by the card"},
	{ID: "GPU_WATCH_ALARM", Severity: Warning, find: watchAlarm,
		Cause: "The node's own check (kgpu doctor --install-watch) holds a card for lost or hung.",
		Fix:   "`journalctl -u kgpu-gpu-watch` on the host says more; the check runs every minute"},

	// The driver.
	{ID: "GPU_NOUVEAU_BUSY", Modes: []int{9}, Severity: Error, find: nouveau, Repair: Converge, explains: withoutDriver,
		Cause: "nouveau, the kernel's own driver, has the card, so that NVIDIA's cannot take it.",
		Fix:   "`kgpu up` blacklists nouveau and reboots the host where that is needed"},
	{ID: "GPU_MODULE_REJECTED", Modes: []int{10}, Severity: Error, find: rejected, explains: append([]string{string(reason.GPUSecureBootUnsigned)}, withoutDriver...),
		Cause: "Secure Boot: the kernel does not trust the signature of the driver's module.",
		Fix:   "turn Secure Boot off in the firmware, or take the signed modules of Ubuntu's archive (`gpu: {driver: {source: ubuntu}}`) and run `kgpu up`; a key of your own must be enrolled at the console"},
	{ID: "GPU_DRIVER_MISMATCH", Modes: []int{2}, Severity: Error, find: mismatch, Repair: Reboot, explains: withoutDriver,
		Cause: "The module that the kernel has loaded and the driver's libraries are of different versions: an upgrade replaced the driver beneath running programs.",
		Fix:   rebootFix + "; `kgpu up` exchanges the module without a reboot where nothing uses it"},
	{ID: "GPU_DRIVER_MISSING", Severity: Error, find: driverMissing, Repair: Converge, explains: withoutDriver,
		Cause: "The host has cards and no driver.",
		Fix:   "`kgpu up` installs it"},
	{ID: "GPU_MODULE_BUILD", Modes: []int{11}, Severity: Error, find: noModule, explains: withoutDriver,
		Cause: "The driver is installed, and there is no module of it for the kernel that runs: it was not built after an upgrade of the kernel, or building it failed.",
		Fix:   "on the host: `apt-get install linux-headers-$(uname -r)`, `dkms autoinstall`, `modprobe nvidia`; the end of /var/lib/dkms/nvidia/*/build/make.log says why a build failed"},
	{ID: "GPU_MODULE_NOT_LOADED", Severity: Error, find: notLoaded, Repair: LoadModule, explains: withoutDriver,
		Cause: "The driver's module is installed and not loaded.",
		Fix:   "`kgpu doctor HOST --fix` loads it: `modprobe nvidia && modprobe nvidia_uvm`"},
	{ID: "GPU_MODULE_NEXT_KERNEL", Modes: []int{11}, Severity: Warning, find: nextKernel,
		Cause: "A newer kernel is installed, which the next boot starts, and it has no module of the driver.",
		Fix:   "before a reboot, on the host: install the kernel's headers (`apt-get install linux-headers-generic` or linux-headers-amd64) and run `dkms autoinstall -k RELEASE`"},
	{ID: "GPU_COMPILER_DIFFERS", Modes: []int{12}, Severity: Warning, find: compiler,
		Cause: "The compiler on the host is not of the version that built the kernel: the driver's module may not build at the next upgrade.",
		Fix:   "on the host: `apt-get install gcc-N` of the kernel's version"},
	{ID: "GPU_DRIVER_MIXED", Modes: []int{13}, Severity: Warning, find: mixed,
		Cause: "Parts of the driver have different versions or come from different repositories; the next upgrade may not work or tear them apart.",
		Fix:   "decide for one source (`gpu: {driver: {source: …}}`), remove the other's packages, and run `kgpu up`"},
	{ID: "GPU_DEVICE_NODES", Severity: Warning, find: deviceNodes, Repair: LoadModule,
		Cause: "The driver runs and its device nodes below /dev are missing: containers cannot be given the GPU.",
		Fix:   "`kgpu doctor HOST --fix` makes them: `nvidia-modprobe -u -c 0`"},
	{ID: "GPU_PERSISTENCE_OFF", Modes: []int{22}, Severity: Warning, find: persistence, Repair: RestartUnit, units: persistenceUnit,
		Cause: "Nothing keeps the driver initialised: each program that starts waits for the GPUs, and containers run into time limits (`driver rpc error: timed out`).",
		Fix:   "`kgpu doctor HOST --fix` starts nvidia-persistenced where it does not run; where it runs with --no-persistence-mode: `nvidia-smi -pm 1` on the host"},
	{ID: "GPU_FABRIC_FAILED", Modes: []int{20}, Severity: Error, find: fabric, Repair: RestartUnit, units: downUnits("nvidia-fabricmanager"), explains: []string{"GPU_FABRIC_INCOMPLETE"},
		Cause: "The cards are connected by NVSwitch or NVLink 5, and the fabric manager does not run, is not of the driver's version or lacks nvlsm: CUDA fails with error 802, system not yet initialized.",
		Fix:   "`journalctl -u nvidia-fabricmanager` on the host says why; `kgpu up` installs the one of the driver's version"},
	{ID: "GPU_FABRIC_INCOMPLETE", Severity: Error, find: fabricIncomplete,
		Cause: "Cards have not got their place in their NVLink fabric: CUDA fails on them with error 802, system not yet initialized, although nvidia-smi lists them.",
		Fix:   "`journalctl -u nvidia-fabricmanager` and `nvidia-smi -q` (Fabric) on the host say more. To restart the fabric manager ends what computes on the host's cards: drain the node (`kubectl drain NODE --ignore-daemonsets --delete-emptydir-data`), then `systemctl restart nvidia-fabricmanager`, `kubectl uncordon NODE`. Cards of GB200 and GB300 wait for the switch trays of their rack"},
	{ID: "GPU_FABRIC_NEEDLESS", Modes: []int{21}, Severity: Warning, find: fabricNeedless,
		Cause: "The fabric manager is installed on a host that has no NVSwitch, where it cannot start (NV_WARN_NOTHING_TO_DO).",
		Fix:   "on the host: `apt-get purge nvidia-fabricmanager`, with its version where the package's name has one"},
	{ID: "GPU_MIG_PENDING", Modes: []int{23}, Severity: Error, find: migPending, explains: []string{"GPU_NOT_ALLOCATABLE"},
		Cause: "The mode of MIG was changed and waits for a reset of the GPU, or it is on and the GPU has no instances: the device plugin offers nothing.",
		Fix:   "drain the node, then `nvidia-smi --gpu-reset` or a reboot; cut the GPU with `nvidia-smi mig -cgi PROFILES -C`, or turn MIG off (`nvidia-smi -mig 0`)"},
	{ID: "GPU_MIG_DRIVER", Modes: []int{24}, Severity: Warning, find: migDriver,
		Cause: "Drivers 570.124 to 570.158 do not serve instances and whole GPUs of one host at the same time: pods stay Pending.",
		Fix:   "choose another branch in the inventory (`gpu: {driver: {branch: 580}}`) and run `kgpu up`"},

	// Containers and their GPUs.
	{ID: "GPU_CONTAINERS_LOST_CARDS", Modes: []int{1}, Severity: Error, find: lostCards, Repair: RestartPlugin, explains: []string{"GPU_NOT_ALLOCATABLE", "GPU_UNHEALTHY"},
		Cause: "Containers that had GPUs lost them when systemd was told to reload (daemon-reload): `Failed to initialize NVML: Unknown Error`.",
		Fix:   "restart the pods that have GPUs, the device plugin's first (`kgpu doctor HOST --fix`); with `runtime: containerd` kgpu hands GPUs out by CDI, which keeps them"},
	{ID: "GPU_PLUGIN_NO_DEVICES", Modes: []int{3}, Severity: Error, find: noDevices, Repair: RestartPlugin, explains: []string{"GPU_NOT_ALLOCATABLE", "GPU_PLUGIN_FAILS"},
		Cause: "The device plugin found no driver in its container and waits for ever: it runs without the runtime nvidia.",
		Fix:   pluginFix + "; `kgpu up` puts the runtime and the plugin's manifest right"},
	{ID: "GPU_PLUGIN_FAILS", Modes: []int{4}, Severity: Error, find: pluginFails, Repair: RestartPlugin, explains: []string{"GPU_NOT_ALLOCATABLE", "GPU_UNHEALTHY"},
		Cause: "The device plugin of the node does not start, so that no GPU can be had.",
		Fix:   pluginFix},
	{ID: "GPU_OFFERED_LOST", Modes: []int{36}, Severity: Error, find: offeredLost,
		Cause: "The node offers more GPUs than its driver sees: pods are given one that is lost.",
		Fix:   "`kubectl cordon NODE` now, so that no more pods come; then see to the lost card"},
	{ID: "GPU_UNHEALTHY", Modes: []int{17}, Severity: Error, find: unhealthy, Repair: RestartPlugin, repairable: seesAll,
		Cause: "The device plugin holds a GPU for unhealthy. It never takes back what it has given up, although the driver may see it again.",
		Fix:   pluginFix},
	{ID: "GPU_NOT_ALLOCATABLE", Modes: []int{3}, Severity: Error, find: notAllocatable, Repair: RestartPlugin,
		Cause: "The driver sees the GPUs, and the node does not offer them.",
		Fix:   pluginFix + "; `kgpu up` puts its manifest right"},
	{ID: "CONTAINERD_DROPIN_IGNORED", Modes: []int{5}, Severity: Error, find: strayDropIns, explains: []string{"GPU_RUNTIME_MISSING"},
		Cause: "The container toolkit wrote its settings where containerd does not look for them (toolkit 1.18.0), so that there is no runtime nvidia.",
		Fix:   "`kgpu up` installs a newer toolkit and the settings that containerd reads; then remove the file"},
	{ID: "CONTAINERD_CRI_DISABLED", Modes: []int{6}, Severity: Error, find: criDisabled, Repair: Converge, explains: []string{"GPU_RUNTIME_MISSING", "KUBELET_DOWN", "NODE_NOT_READY", "POD_STUCK"},
		Cause: "containerd's interface for the kubelet is turned off (disabled_plugins has cri), as in the configuration that docker's package brings: the kubelet can start no pod.",
		Fix:   "`kgpu up` puts the configuration right and restarts containerd"},
	{ID: "GPU_RUNTIME_CGROUP", Modes: []int{7}, Severity: Error, find: runtimeCgroup, Repair: Converge,
		Cause: "containerd's runtime nvidia has another driver for cgroups than its runtime runc: pods with GPUs are restarted again and again.",
		Fix:   "`kgpu up` writes the settings anew; a file of another tool in /etc/containerd/conf.d may be in its way"},
	{ID: "GPU_RUNTIME_MISSING", Modes: []int{8}, Severity: Error, find: runtimeMissing, Repair: Converge, explains: []string{"GPU_PLUGIN_FAILS", "GPU_NOT_ALLOCATABLE", "POD_STUCK"},
		Cause: "The container runtime has no runtime called nvidia loaded (`no runtime for \"nvidia\" is configured`): the toolkit is not installed, or the runtime was not restarted.",
		Fix:   "`kgpu up` configures it; what is loaded: `containerd config dump`, `docker info`"},
	{ID: "GPU_RUNTIME_LEGACY", Modes: []int{28}, Severity: Error, find: legacyMode, Repair: RestartUnit, units: cdiUnit,
		Cause: "The container toolkit found no description of the GPUs (CDI), fell back to its old way, and failed in that.",
		Fix:   "describe the GPUs: `systemctl restart nvidia-cdi-refresh`, or `nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml`"},
	{ID: "GPU_CDI_STALE", Modes: []int{29}, Severity: Error, find: cdiStale, Repair: RestartUnit, units: cdiUnit,
		Cause: "The description of the GPUs for containers (CDI) is of another driver than the one that runs: containers are given libraries that do not fit, or that are not there.",
		Fix:   "`kgpu doctor HOST --fix` describes them anew: `systemctl restart nvidia-cdi-refresh`, or `nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml`"},
	{ID: "GPU_TOOLKIT_OLD", Modes: []int{27}, Severity: Error, find: toolkitOld, Repair: Converge,
		Cause: "libnvidia-container is older than 1.8 and does not know cgroup v2, which the host uses: containers with GPUs do not start.",
		Fix:   "`kgpu up` installs a newer container toolkit"},
	{ID: "GPU_LEAK_POSSIBLE", Modes: []int{33}, Severity: Warning, find: leakPossible, Repair: Converge,
		Cause: "nvidia is the default runtime, and images may ask for GPUs by NVIDIA_VISIBLE_DEVICES: a pod that asks for none sees all of them.",
		Fix:   "`kgpu up` sets `accept-nvidia-visible-devices-envvar-when-unprivileged=false`"},

	// The node.
	{ID: "RUNTIME_DOWN", Severity: Error, find: runtimeDown, Repair: RestartUnit, units: runtimeUnits, explains: []string{"NODE_NOT_READY", "API_UNREACHABLE", "GPU_RUNTIME_MISSING", "GPU_NOT_ALLOCATABLE", "GPU_PLUGIN_FAILS", "GPU_WATCH_ALARM", "CRI_DOCKERD_DOWN", "POD_STUCK"},
		Cause: "The container runtime does not run.",
		Fix:   "`kgpu doctor HOST --fix` starts it; `journalctl -u containerd -u docker` on the host says why it ended"},
	{ID: "CRI_DOCKERD_DOWN", Modes: []int{26}, Severity: Error, find: criDockerdDown, Repair: RestartUnit, units: downUnits("cri-docker"), explains: []string{"NODE_NOT_READY", "API_UNREACHABLE", "POD_STUCK"},
		Cause: "cri-dockerd, through which the kubelet talks to docker, does not run; systemd gives up on it when docker restarts too often.",
		Fix:   "`kgpu doctor HOST --fix` starts it: `systemctl reset-failed cri-docker && systemctl restart cri-docker`"},
	{ID: "KUBELET_DOWN", Severity: Error, find: kubeletDown, Repair: RestartUnit, units: downUnits("kubelet"), explains: []string{"NODE_NOT_READY", "API_UNREACHABLE", "POD_STUCK"},
		Cause: "The kubelet does not run: the node starts no pods and is not ready.",
		Fix:   "`kgpu doctor HOST --fix` starts it; `journalctl -u kubelet` on the host says why it ended"},
	{ID: "NODE_NOT_READY", Severity: Error, find: notReady, explains: []string{"GPU_NOT_ALLOCATABLE", "POD_STUCK"},
		Cause: "The cluster has no such node, or its kubelet says that it is not ready, or says nothing any more.",
		Fix:   "`kubectl describe node NODE`, and `journalctl -u kubelet` on the host; `kgpu up` carries on with a node that is not there yet"},
	{ID: string(reason.NetPodsUnreachable), Severity: Error, find: podsUnreachable, explains: []string{string(reason.NetDNSBroken)},
		Cause: "Packets of pods do not get from this host to another: the pod network wraps them into packets between the nodes' addresses, and something on the way drops those.",
		Fix:   "let the nodes' addresses (`kubectl get nodes -o wide`) reach each other, flannel by UDP 8472: look at the firewalls of both hosts, of the cloud and of the network between them"},
	{ID: string(reason.NetDNSBroken), Severity: Error, find: dnsSilent,
		Cause: "The cluster's DNS does not answer on this host, while all nodes are ready: its pods do not run, or packets do not get to them.",
		Fix:   "`kubectl -n kube-system get pods -l k8s-app=kube-dns -o wide` shows where they run, their logs what they meet"},
	{ID: string(reason.PodStuck), Severity: Warning, find: podsStuck,
		Cause: "A pod of the cluster itself, in a namespace kube-… or kgpu-…, does not come by waiting: its image cannot be pulled, what it is configured with is not there, it ends again and again, or no node takes it.",
		Fix:   "`kubectl -n NAMESPACE describe pod POD` says why; of one that ends again and again, `kubectl -n NAMESPACE logs POD --all-containers`; an image that cannot be pulled: does the host reach its registry, or the mirror?"},
	{ID: "NODE_CORDONED", Severity: Warning, find: cordoned, explains: []string{"GPU_NOT_ALLOCATABLE"}, Repair: Converge, repairable: drainedByUs,
		Cause: "The node takes no new pods.",
		Fix:   "`kubectl uncordon NODE`, if nobody wants it so; a node that kgpu drained has pods again after `kgpu up`"},
	{ID: "API_UNREACHABLE", Severity: Error, find: apiSilent,
		Cause: "The API server on the control plane does not answer.",
		Fix:   "on the host: `crictl ps -a` shows whether kube-apiserver and etcd run, `journalctl -u kubelet` why not"},
	{ID: "CGROUP_DRIVER_MISMATCH", Modes: []int{25}, Severity: Error, find: cgroupDriver, Repair: Converge, repairable: runtimeDiffers,
		Cause: "The kubelet and the container runtime have different drivers for cgroups: limits of pods are wrong, and under load the node becomes unstable.",
		Fix:   "`kgpu up` sets systemd for the runtime. A kubelet that has another: drain the node; on the host set `cgroupDriver: systemd` in /var/lib/kubelet/config.yaml, and `systemctl restart kubelet`"},
	{ID: "HOST_DISK_FULL", Severity: Error, find: diskFull,
		Cause: "A file system is almost full. The kubelet evicts pods and pulls no images below 10 % of free space.",
		Fix:   "free space: `crictl rmi --prune`, `docker system prune`, `journalctl --vacuum-size=500M`, `du -xh --max-depth=2 PATH`"},
	{ID: "HOST_FILES_READONLY", Severity: Error, find: readOnly,
		Cause: "The kernel found errors on a file system and made it read-only.",
		Fix:   "drain the node; look at the disk (`smartctl -a`), reboot with a check of the file system"},
	{ID: "HOST_MEMORY_EXHAUSTED", Severity: Warning, find: outOfMemory,
		Cause: "The whole host ran out of memory since it booted, and the kernel killed a process. (A pod that only met its own limit is not meant.)",
		Fix:   "give pods limits of memory, or reserve some for the system (`kubernetes: {kubeletConfiguration: {systemReserved: {memory: 1Gi}}}` in the inventory)"},
	{ID: "APPARMOR_DENIED", Severity: Warning, find: apparmor,
		Cause: "AppArmor kept a container, or the runtime, from something: containers that do not end, or that do not see the GPU.",
		Fix:   "look at the profile in the line; `aa-status` on the host lists them; update the container runtime"},
	{ID: "CERTIFICATE_EXPIRED", Severity: Error, find: expired, Repair: Converge, repairable: renewable, explains: []string{"API_UNREACHABLE", "KUBELET_DOWN", "NODE_NOT_READY"},
		Cause: "A certificate of Kubernetes is no longer valid: its owner is refused.",
		Fix:   "`kgpu up` renews what has ended on control planes, and takes the node of a kubelet back in whose certificate has ended; before Kubernetes 1.30, on the control plane: `kubeadm certs renew all`, then restart its static pods"},
	{ID: string(reason.HostCertificateEnds), Severity: Warning, find: expires,
		Cause: "A certificate of Kubernetes ends in less than 60 days. kubelets that rotate theirs are told of only when they failed to.",
		Fix:   "`kgpu certs renew`; in the last 30 days `kgpu up` does it, too. `kgpu certs` shows all certificates, and who renews them"},

	{ID: string(reason.HostContainerdOld), Severity: Warning, find: oldContainerd,
		Cause: reason.Lookup(reason.HostContainerdOld).Meaning,
		Fix:   reason.Lookup(reason.HostContainerdOld).Advice},

	{ID: "CLUSTER_UNDEFENDED", Severity: Warning, find: undefended,
		Cause: "The API server has less against its own users than that of a new cluster: it is older than what kgpu gives those, or was made by hand. `kgpu up` does not change a control plane that runs.",
		Fix:   "docs/security.md, \"A cluster that exists\", has the commands; what you do not want, the inventory says (`security: {podSecurity: privileged, auditLog: false}`), or `kgpu doctor --ignore CLUSTER_UNDEFENDED`"},

	{ID: "CLUSTER_CANNOT_GROW", Severity: Warning, find: cannotGrow,
		Cause: "The cluster's nodes know its API server by the address of its only control plane: it works as it is, and can never have a second one. New clusters get a name for it, and a cluster keeps what it was made with.",
		Fix:   "where one control plane is enough, nothing: `kgpu doctor --ignore CLUSTER_CANNOT_GROW`; else make the cluster anew (`kgpu reset`, `kgpu up`), or give it a name by hand: docs/troubleshooting.md, \"A cluster that cannot grow\", has the commands"},
	{ID: string(reason.HostAPIName), Severity: Error, find: apiNameLost, Repair: Converge, explains: []string{"API_UNREACHABLE", "NODE_NOT_READY"},
		Cause: reason.Lookup(reason.HostAPIName).Meaning,
		Fix:   "`kgpu up` writes the line again; where it does not help: `getent ahosts` with the name on the host, other lines of it in /etc/hosts, the line `hosts:` of /etc/nsswitch.conf"},

	// Packages.
	{ID: "HOST_HOLD_LOST", Modes: []int{2}, Severity: Warning, find: holdLost, Repair: Hold,
		Cause: "Packages that kgpu held at their version are held no more: the next upgrade replaces a driver or a kubelet beneath running pods.",
		Fix:   "`kgpu doctor HOST --fix` holds them again (apt-mark hold)"},
	{ID: string(reason.RepoKeyExpired), Severity: Error, find: keyExpired, Repair: Converge,
		Cause: "The key of a package repository that kgpu added has expired on the host: apt refuses the repository, and nothing of it is updated.",
		Fix:   "`kgpu up` fetches the key again, which its owner extends beneath the same fingerprint; a mirror of yours (`keyURL`) has to serve the extended one"},
	{ID: KeyEnds, Severity: Warning, find: keyEnds, Repair: Converge,
		Cause: "The key of a package repository that kgpu added ends soon: apt on the host will refuse the repository.",
		Fix:   "`kgpu up` fetches the key again, once a week at most, until its owner has extended it; a mirror of yours (`keyURL`) has to serve the extended one"},
	{ID: "APT_KEY_RETIRED", Modes: []int{14}, Severity: Warning, find: retiredKey,
		Cause: "A list of NVIDIA's CUDA repository names no key, as those from before 2022 whose key (7fa2af80) is revoked: `apt-get update` ends with NO_PUBKEY A4B469963BF863CC.",
		Fix:   "on the host: remove that file; `kgpu up` adds the repository with its present key where it is needed"},
	{ID: "APT_SIGNED_BY_CONFLICT", Modes: []int{15}, Severity: Error, find: signedBy,
		Cause: "Two files of apt have the same repository with different keys: apt refuses to do anything (Conflicting values set for option Signed-By).",
		Fix:   "on the host: remove the older of the files above, then `apt-get update`"},

	// The pod network.
	{ID: "WEAVE_BRIDGE", Modes: []int{31}, Severity: Error, find: weaveBridge, explains: []string{"POD_STUCK"},
		Cause: "weave found a bridge of a former network: after a reset that left it, or with other settings.",
		Fix:   "drain the node; on the host: `ip link delete weave; ip link delete datapath`, remove /var/lib/weave, and delete the node's weave pod"},
	{ID: "IPTABLES_MIXED", Modes: []int{32}, Severity: Warning, find: iptablesMixed,
		Cause: "Kubernetes' rules are in both backends of iptables, legacy and nf_tables: which ones take effect is chance, and weave-npc cannot remove its sets.",
		Fix:   "decide for one (`update-alternatives --config iptables`), drain the node and reboot it: the other's rules are gone"},

	// Found by preflight on facts.
	{ID: string(reason.BackupOverdue), Severity: Warning, find: backupTrouble,
		Cause: reason.Lookup(reason.BackupOverdue).Meaning,
		Fix:   "on the host: `journalctl -u kgpu-backup` says more; when it is mended, `systemctl start kgpu-backup` makes one at once"},
	{ID: "HOST_CGROUP_V1", Modes: []int{35}, Severity: Error,
		Cause: "The host uses cgroup v1, which the kubelet refuses from Kubernetes 1.35 on.",
		Fix:   "boot with systemd.unified_cgroup_hierarchy=1, or a newer release; or `kubernetes: {kubeletConfiguration: {failCgroupV1: false}}` in the inventory"},
}

const driftID = "HOST_DRIFT"

// KeyEnds is the ID of the finding that a repository's key expires soon.
const KeyEnds = "REPO_KEY_ENDS"

// Drift is the finding that `kgpu up` would change the host. steps are those of the plan, with their reasons.
func Drift(h inventory.Host, steps []string) Finding {
	f := Finding{
		ID: driftID, Severity: Warning, Host: h.ID(), Repair: Converge,
		Cause: "The host is not as the inventory wants it: somebody changed it, or the inventory, or this kgpu is newer than the one that set the host up.",
		Fix:   "`kgpu plan` says what would be done, `kgpu up` does it",
	}
	for _, line := range steps[:min(len(steps), maxEvidence)] {
		f.Evidence = append(f.Evidence, printable.Short(line, 300))
	}
	if more := len(steps) - maxEvidence; more > 0 {
		f.Evidence = append(f.Evidence, "and "+plural.Of(more, "more step"))
	}
	return f
}

// Known reports whether findings can have this ID.
func Known(id string) bool {
	return id == driftID || reason.Known(reason.ID(id)) || slices.ContainsFunc(catalogue, func(r Row) bool { return r.ID == id })
}
