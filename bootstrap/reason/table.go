package reason

// The reasons. Exit statuses are distinct per reason so that a script can tell them apart.
const (
	InventoryInvalid ID = "INVENTORY_INVALID"
	SecretMissing    ID = "SECRET_MISSING"

	SSHUnreachable     ID = "SSH_UNREACHABLE"
	SSHHostKeyUnknown  ID = "SSH_HOST_KEY_UNKNOWN"
	SSHHostKeyMismatch ID = "SSH_HOST_KEY_MISMATCH"
	SSHAuthFailed      ID = "SSH_AUTH_FAILED"
	SSHLost            ID = "SSH_LOST"
	SudoRefused        ID = "SUDO_REFUSED"
	FactsFailed        ID = "HOST_FACTS_FAILED"
	HostOutputTooLarge ID = "HOST_OUTPUT_TOO_LARGE"
	HostUnending       ID = "HOST_UNENDING"

	HostBusy             ID = "HOST_BUSY"
	HostOSUnsupported    ID = "HOST_OS_UNSUPPORTED"
	HostArchUnsupported  ID = "HOST_ARCH_UNSUPPORTED"
	HostNoSystemd        ID = "HOST_NO_SYSTEMD"
	HostKernelTooOld     ID = "HOST_KERNEL_TOO_OLD"
	HostTooSmall         ID = "HOST_TOO_SMALL"
	HostDiskFull         ID = "HOST_DISK_FULL"
	HostInodesFull       ID = "HOST_INODES_FULL"
	HostSwapOn           ID = "HOST_SWAP_ON"
	HostClockSkew        ID = "HOST_CLOCK_SKEW"
	HostNameInvalid      ID = "HOST_NAME_INVALID"
	HostNameDuplicate    ID = "HOST_NAME_DUPLICATE"
	HostMachineIDDup     ID = "HOST_MACHINE_ID_DUPLICATE"
	HostProductUUIDDup   ID = "HOST_PRODUCT_UUID_DUPLICATE"
	HostAddressDuplicate ID = "HOST_ADDRESS_DUPLICATE"
	HostMountNoExec      ID = "HOST_MOUNT_NOEXEC"
	HostAddressMissing   ID = "HOST_ADDRESS_MISSING"
	HostPortTaken        ID = "HOST_PORT_TAKEN"
	HostAptLocked        ID = "HOST_APT_LOCKED"
	HostDpkgBroken       ID = "HOST_DPKG_BROKEN"
	HostRebootPending    ID = "HOST_REBOOT_PENDING"
	HostFirewallActive   ID = "HOST_FIREWALL_ACTIVE"
	HostForeignCluster   ID = "HOST_FOREIGN_CLUSTER"
	HostMadeByHand       ID = "HOST_MADE_BY_HAND"
	HostHalfMade         ID = "HOST_HALF_MADE"
	HostEtcdStale        ID = "HOST_ETCD_STALE"
	HostPodNetworkLeft   ID = "HOST_POD_NETWORK_LEFT"
	HostModuleMissing    ID = "HOST_MODULE_MISSING"
	HostCgroupV1         ID = "HOST_CGROUP_V1"
	HostCgroupV2         ID = "HOST_CGROUP_V2"
	HostRuntimeConflict  ID = "HOST_RUNTIME_CONFLICT"
	HostPackageHeld      ID = "HOST_PACKAGE_HELD"
	HostPackagePinned    ID = "HOST_PACKAGE_PINNED"
	HostAptConfig        ID = "HOST_APT_CONFIG"
	NetRangeOverlap      ID = "NET_RANGE_OVERLAP"
	NetPortBlocked       ID = "NET_PORT_BLOCKED"
	NetNameUnresolved    ID = "NET_NAME_UNRESOLVED"
	NetMTUDiffers        ID = "NET_MTU_DIFFERS"
	RegistryUnreachable  ID = "REGISTRY_UNREACHABLE"
	RegistryBusy         ID = "REGISTRY_BUSY"
	ImageUnavailable     ID = "IMAGE_UNAVAILABLE"
	ImageMismatch        ID = "IMAGE_MISMATCH"
	ProxyUnreachable     ID = "PROXY_UNREACHABLE"

	GPUUnsupported        ID = "GPU_UNSUPPORTED"
	GPUDriverImpossible   ID = "GPU_DRIVER_IMPOSSIBLE"
	GPUSecureBootUnsigned ID = "GPU_SECUREBOOT_UNSIGNED"
	GPUDriverMissing      ID = "GPU_DRIVER_MISSING"
	GPUDriverForeign      ID = "GPU_DRIVER_FOREIGN"
	GPUDriverOther        ID = "GPU_DRIVER_OTHER"
	GPUDriverMismatch     ID = "GPU_DRIVER_MISMATCH"
	GPUNotAllCards        ID = "GPU_NOT_ALL_CARDS"
	GPUHung               ID = "GPU_HUNG"
	GPUModuleRejected     ID = "GPU_MODULE_REJECTED"
	GPUModuleBuild        ID = "GPU_MODULE_BUILD"
	GPUNouveauBusy        ID = "GPU_NOUVEAU_BUSY"
	GPUFabricFailed       ID = "GPU_FABRIC_FAILED"
	GPURuntimeMissing     ID = "GPU_RUNTIME_MISSING"
	GPUNotAllocatable     ID = "GPU_NOT_ALLOCATABLE"
	GPUMIGMismatch        ID = "GPU_MIG_MISMATCH"
	GPUCUDAImpossible     ID = "GPU_CUDA_IMPOSSIBLE"
	SmokeFailed           ID = "SMOKE_FAILED"
	SmokeImage            ID = "SMOKE_IMAGE"
	SmokeCardMissing      ID = "SMOKE_CARD_MISSING"
	SmokeCardTwice        ID = "SMOKE_CARD_TWICE"
	SmokeCardLeaked       ID = "SMOKE_CARD_LEAKED"
	NotebookNoCard        ID = "NOTEBOOK_NO_CARD"
	NotebookFailed        ID = "NOTEBOOK_FAILED"
	NotebookNoGPU         ID = "NOTEBOOK_NO_GPU"
	NotebookUnreachable   ID = "NOTEBOOK_UNREACHABLE"

	StepFailed          ID = "STEP_FAILED"
	StepTimeout         ID = "STEP_TIMEOUT"
	StepInterrupted     ID = "STEP_INTERRUPTED"
	RepoKeyMismatch     ID = "REPO_KEY_MISMATCH"
	RepoUnreachable     ID = "REPO_UNREACHABLE"
	PackageMissing      ID = "PACKAGE_MISSING"
	ChecksumMismatch    ID = "CHECKSUM_MISMATCH"
	RepoContentMismatch ID = "REPO_CONTENT_MISMATCH"
	APIUnreachable      ID = "API_UNREACHABLE"
	NodeNotReady        ID = "NODE_NOT_READY"
	NodeDrainBlocked    ID = "NODE_DRAIN_BLOCKED"
	Cancelled           ID = "CANCELLED"
)

var table = index([]Reason{
	{InventoryInvalid, 10, "correct the lines named above; `kgpu validate` checks the file without touching any host"},
	{SecretMissing, 11, "set the environment variable or create the file that the inventory refers to"},

	{SSHUnreachable, 20, "check the address, the port and that the machine is on: `ssh USER@ADDRESS` from here"},
	{SSHHostKeyUnknown, 21, "compare the fingerprint with the machine's own (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`), then add it with `ssh-keyscan`, pin it as `hostKey:`, or set `hostKeyPolicy: accept-new`"},
	{SSHHostKeyMismatch, 22, "the machine was reinstalled, or somebody is in between: compare fingerprints before you remove the old line from known_hosts"},
	{SSHAuthFailed, 23, "check `ssh.user` and `ssh.key`; the public key must be in the user's authorized_keys on the host"},
	{SSHLost, 24, "check the network and run the same command again: it carries on where it stopped"},
	{SudoRefused, 25, "give the user sudo rights, or name the password by reference: `sudoPassword: ${ENV}`"},
	{FactsFailed, 26, "run the command with -v and look at the host's output"},
	{HostOutputTooLarge, 44, "the host says far more than there can be to say: look at its shell's start-up files and at the file named above, and whether it is the machine that you think"},
	{HostUnending, 45, "the host answers and does not come to an end: look at its load and its disks (`uptime`, `journalctl -p err`), then run the same command again"},

	{HostBusy, 30, "`kgpu attach` shows what the other run does: wait for its end, then run the same command again"},
	{HostAddressDuplicate, 48, "give each host its own address, or set `privateAddress:` in the inventory"},
	{HostMountNoExec, 49, "mount it without noexec: `mount -o remount,exec`, and the same in /etc/fstab"},
	{HostOSUnsupported, 50, "kgpu supports Ubuntu 20.04–26.04 and Debian 12–13"},
	{HostArchUnsupported, 51, "kgpu supports x86-64 and arm64 machines"},
	{HostNoSystemd, 52, "the host must run systemd as PID 1"},
	{HostKernelTooOld, 53, "update the host's kernel"},
	{HostTooSmall, 54, "a control plane needs 2 CPUs and 1700 MiB, a worker 1 CPU and 900 MiB"},
	{HostDiskFull, 55, "free space on the file system named above"},
	{HostInodesFull, 56, "remove files on the file system named above: its inodes are used up"},
	{HostSwapOn, 57, "set `swap: disable` in the inventory and kgpu turns swap off (`kgpu reset` turns it on again)"},
	{HostClockSkew, 58, "correct the clock: install chrony, or check the time server"},
	{HostNameInvalid, 59, "give the host a lower-case RFC 1123 name, or set `name:` in the inventory"},
	{HostNameDuplicate, 60, "give each host its own host name, or set `name:` in the inventory"},
	{HostMachineIDDup, 61, "cloned machines: `rm /etc/machine-id && systemd-machine-id-setup`, then reboot"},
	{HostProductUUIDDup, 62, "cloned virtual machines: give each its own SMBIOS UUID"},
	{HostAddressMissing, 63, "`privateAddress:` must be an address of one of the host's interfaces"},
	{HostPortTaken, 64, "stop the program that listens on the port named above"},
	{HostAptLocked, 65, "another program is installing packages; kgpu waits for it, look at the process named above if it never ends"},
	{HostDpkgBroken, 66, "kgpu ran `dpkg --configure -a`, which did not help: repair the packages named above, or remove them"},
	{HostRebootPending, 67, "reboot the host, or go on with `--ignore HOST_REBOOT_PENDING`"},
	{HostFirewallActive, 68, "open the ports of Kubernetes and of the pod network, or turn the firewall off"},
	{HostForeignCluster, 69, "the host belongs to another cluster: `kubeadm reset` it there first; kgpu takes nothing over"},
	{HostMadeByHand, 38, "`kgpu up --adopt` takes it over as it is, where the message does not say why it cannot; or `kubeadm reset` there, if nobody needs it"},
	{HostHalfMade, 39, "see whose it is (`ls -l /etc/kubernetes`, `journalctl -u kubelet` on the host); where nobody needs it: `kubeadm reset` there, or `kgpu reset` where kgpu made it"},
	{HostEtcdStale, 41, "where nobody needs the data: remove /var/lib/etcd/member; else keep a copy elsewhere, or bring back the /etc/kubernetes that belongs to it"},
	{HostPodNetworkLeft, 42, "remove what the message names (files, and links by `ip link delete`); `kgpu up --adopt` removes what weave, flannel and calico left"},
	{HostModuleMissing, 70, "install the kernel's extra modules (Ubuntu: linux-modules-extra-$(uname -r)), or choose another network"},
	{HostCgroupV1, 71, "boot with cgroup v2, or set `kubeletConfiguration: {failCgroupV1: false}` and `ignorePreflightErrors: [SystemVerification]`"},
	{HostCgroupV2, 89, "choose Kubernetes 1.19 or newer, or boot with cgroup v1 (`systemd.unified_cgroup_hierarchy=0` on the kernel's command line)"},
	{HostRuntimeConflict, 72, "remove the conflicting packages named above"},
	{HostPackageHeld, 35, "whoever holds the package named above decides: `apt-mark unhold` it, or name the held version in the inventory"},
	{HostPackagePinned, 36, "remove the package named above from the file of apt's preferences, or the file: kgpu does not change pins of others"},
	{HostAptConfig, 37, "correct or remove the entry named above: apt refuses all its work until then"},
	{NetRangeOverlap, 73, "choose another `podCIDR` or `serviceCIDR`"},
	{NetPortBlocked, 74, "open the port between the hosts: a firewall or a security group is in between"},
	{NetNameUnresolved, 75, "check the host's DNS (`resolvectl status`, /etc/resolv.conf), set `proxy:`, or name a mirror in the inventory"},
	{NetMTUDiffers, 76, "give the hosts' links the same MTU: `ip link set dev NAME mtu SIZE`, and the same in netplan"},
	{RegistryUnreachable, 77, "check the firewall of the host, set `proxy:`, or name your own registry: `images: {registry: …}`"},
	{ProxyUnreachable, 78, "check the address under `proxy:`, and that the host may connect to it"},
	{RegistryBusy, 31, "the registry answers, but refuses for now: run the same command again later, or name your own registry: `images: {registry: …}`"},
	{ImageUnavailable, 32, "check the image's name, and that the registry lets the host have it: `images: {registry: …}`"},
	{ImageMismatch, 33, "what came is not the image that was asked for: check the registry, and the proxy in between, before you try again"},

	{GPUUnsupported, 100, "put the card into a machine with a release that has a driver for it, or go on without it: `--ignore GPU_UNSUPPORTED`"},
	{GPUDriverImpossible, 101, "leave `gpu.driver` out and kgpu chooses one that fits the card"},
	{GPUSecureBootUnsigned, 102, "turn Secure Boot off in the firmware, or use Ubuntu, whose archive has signed modules"},
	{GPUDriverMissing, 103, "install the driver, or leave `gpu.driver.source: none` out and kgpu does it"},
	{GPUDriverForeign, 104, "remove it with `nvidia-uninstall`, or repair it and set `gpu: {driver: {source: none}}`"},
	{GPUDriverOther, 105, "remove the packages named above yourself (`apt-get purge`), or set `gpu: {driver: {source: none}}` to keep the driver"},
	{GPUDriverMismatch, 106, "an upgrade replaced the driver beneath running programs: drain the node and reboot it"},
	{GPUNotAllCards, 107, "look for the card's Xid in `journalctl -k`; a card that fell off the bus needs a power cycle"},
	{GPUHung, 108, "the driver hangs: drain the node and reboot it; `journalctl -k` says which task is blocked"},
	{GPUModuleRejected, 109, "Secure Boot rejects the driver's module: turn it off in the firmware, or take the signed modules of Ubuntu's archive"},
	{GPUModuleBuild, 110, "there is no module for the kernel that runs: reboot if a newer kernel is installed; the end of a failed build's log is above"},
	{GPUNouveauBusy, 111, "reboot the host: nouveau is blacklisted and does not come back"},
	{GPUFabricFailed, 118, "`journalctl -u nvidia-fabricmanager` on the host says why; its version must be the driver's"},
	{GPURuntimeMissing, 119, "look at what the container runtime loaded: `containerd config dump`, `docker info`"},
	{GPUNotAllocatable, 112, "look at the device plugin: `kubectl -n kube-system logs ds/nvidia-device-plugin`"},
	{GPUMIGMismatch, 124, "cut the cards into instances (`nvidia-smi mig`, nvidia-mig-parted) or turn MIG off (`nvidia-smi -mig 0`), or choose another `gpu.migStrategy`"},
	{GPUCUDAImpossible, 125, "leave `gpu.cuda` out and kgpu chooses a version that driver and cards run, or `gpu: {cuda: none}` does without"},
	{SmokeFailed, 113, "the Job's own words are above; `kgpu smoke` runs the proof again"},
	{SmokeImage, 114, "the nodes cannot pull the image: check the registry, the proxy, or `images: {registry: …}`"},
	{SmokeCardMissing, 115, "another pod may hold the card: `kubectl get pods -A -o wide`; else look at the device plugin's log"},
	{SmokeCardTwice, 116, "the cards are shared between pods: look at the device plugin's settings"},
	{SmokeCardLeaked, 117, "pods see cards that they did not ask for: is nvidia the default runtime, or is NVIDIA_VISIBLE_DEVICES set?"},
	{NotebookNoCard, 120, "stop one of the pods named above, or set `notebook: {framework: none}` and go on without the notebook"},
	{NotebookFailed, 121, "`kubectl -n kgpu-notebook describe pods` and `kubectl -n kgpu-notebook logs deploy/notebook` say more; `kgpu smoke` tries again"},
	{NotebookNoGPU, 122, "the image's libraries may not fit the driver or the card: name another `notebook: {version: …}` or `{image: …}`"},
	{NotebookUnreachable, 123, "look at kube-proxy on the node, and at the port in `kubectl -n kgpu-notebook get service notebook`"},

	{StepFailed, 80, "look at the output above; the same command carries on from this step"},
	{StepTimeout, 81, "look at the output above; the same command carries on from this step"},
	{StepInterrupted, 82, "the host went down during the step; the same command carries on"},
	{RepoKeyMismatch, 83, "the repository's key is not the one kgpu expects: check it, then name its fingerprint under `repositories:`"},
	{RepoUnreachable, 84, "check DNS, the proxy and the firewall of the host, or name a mirror under `repositories:`"},
	{PackageMissing, 85, "the repository does not offer this version: choose another, or name a mirror under `repositories:`"},
	{ChecksumMismatch, 86, "the download is not what kgpu expects: check the mirror, then name its sha256 under `repositories:`"},
	{RepoContentMismatch, 34, "what came is not what the repository's owner signed: check the mirror, and the proxy in between, before you try again"},
	{APIUnreachable, 87, "check that nothing blocks port 6443 between the hosts"},
	{NodeNotReady, 88, "`kubectl describe node` and `journalctl -u kubelet` on the host say why"},
	{NodeDrainBlocked, 90, "end the pods named above, or loosen their disruption budget, then run the same command again"},
	{Cancelled, 130, "run the same command again: it carries on where it stopped"},
})

func index(list []Reason) map[ID]Reason {
	m := make(map[ID]Reason, len(list))
	for _, r := range list {
		m[r.ID] = r
	}
	return m
}

// Lookup returns the reason with this ID; an unknown ID has ExitInternal and no advice.
func Lookup(id ID) Reason {
	if r, ok := table[id]; ok {
		return r
	}
	return Reason{ID: id, Exit: ExitInternal}
}

// Known reports whether there is a reason with this ID.
func Known(id ID) bool {
	_, ok := table[id]
	return ok
}

// Table returns every reason, in no particular order.
func Table() []Reason {
	out := make([]Reason, 0, len(table))
	for _, r := range table {
		out = append(out, r)
	}
	return out
}
