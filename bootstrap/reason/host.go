package reason

// Reasons of what a host is, has and lacks, before anything is a part of a cluster.
const (
	HostOSUnsupported    ID = "HOST_OS_UNSUPPORTED"
	HostArchUnsupported  ID = "HOST_ARCH_UNSUPPORTED"
	HostNoSystemd        ID = "HOST_NO_SYSTEMD"
	HostKernelTooOld     ID = "HOST_KERNEL_TOO_OLD"
	HostTooSmall         ID = "HOST_TOO_SMALL"
	HostDiskFull         ID = "HOST_DISK_FULL"
	HostInodesFull       ID = "HOST_INODES_FULL"
	HostMountNoExec      ID = "HOST_MOUNT_NOEXEC"
	HostSwapOn           ID = "HOST_SWAP_ON"
	HostClockSkew        ID = "HOST_CLOCK_SKEW"
	HostRebootPending    ID = "HOST_REBOOT_PENDING"
	HostModuleMissing    ID = "HOST_MODULE_MISSING"
	HostModuleDisabled   ID = "HOST_MODULE_DISABLED"
	HostCgroupV1         ID = "HOST_CGROUP_V1"
	HostCgroupV2         ID = "HOST_CGROUP_V2"
	HostNameInvalid      ID = "HOST_NAME_INVALID"
	HostNameDuplicate    ID = "HOST_NAME_DUPLICATE"
	HostMachineIDDup     ID = "HOST_MACHINE_ID_DUPLICATE"
	HostProductUUIDDup   ID = "HOST_PRODUCT_UUID_DUPLICATE"
	HostAddressDuplicate ID = "HOST_ADDRESS_DUPLICATE"
	HostAddressMissing   ID = "HOST_ADDRESS_MISSING"
)

var hostReasons = []Reason{
	{HostOSUnsupported, 50,
		"/etc/os-release on the host names a distribution or a release that kgpu does not know, or one that gets no more updates: neither its packages nor its drivers are tried there.",
		"kgpu supports Ubuntu 22.04, 24.04 and 26.04 and Debian 12 and 13: install the host anew with one of them, or go on without a promise: `kgpu up --ignore HOST_OS_UNSUPPORTED`"},
	{HostArchUnsupported, 51,
		"The host's processor is of a kind for which Kubernetes, the runtime or the drivers have no packages that kgpu knows.",
		"kgpu supports x86-64 and arm64 machines"},
	{HostNoSystemd, 52,
		"The first process of the host is not systemd, or systemd-run does not work there. kgpu's steps, the kubelet and the runtime run as systemd units.",
		"the host must run systemd as PID 1"},
	{HostKernelTooOld, 53,
		"The running kernel is older than 4.19, the oldest that kubeadm takes.",
		"update the host's kernel"},
	{HostTooSmall, 54,
		"The host has less memory or fewer CPUs than its role needs. kgpu saw that before it began, or kubeadm said so.",
		"a control plane needs 2 CPUs and 1700 MiB, a worker 1 CPU and 900 MiB"},
	{HostDiskFull, 55,
		"A file system has not the room for what would come onto it: packages, images, the CUDA toolkit, or kgpu's own files. The kubelet keeps 10 % of it free, 15 % where images are (unless `kubernetes: {kubeletConfiguration: {evictionHard: …}}` says otherwise), and takes no pods below that. It was seen before the run began, or a program said \"No space left on device\" during it.",
		"free space on the file system named above, or keep images on a larger one (`data-root` in /etc/docker/daemon.json, `root` in /etc/containerd/config.toml)"},
	{HostInodesFull, 56,
		"Less than 5 % of a file system's inodes are free. Each file takes one, so that no more files can be made, however much space there is.",
		"remove files on the file system named above: its inodes are used up"},
	{HostMountNoExec, 49,
		"/var, or a folder below it, is a file system mounted with noexec: programs on it cannot be started, and container images are unpacked there.",
		"mount it without noexec: `mount -o remount,exec`, and the same in /etc/fstab"},
	{HostSwapOn, 57,
		"The host uses swap space, with which the kubelet does not start as kubeadm sets it up; `swap: refuse`, the default, leaves it alone. Also said when kgpu turned swap off and something turned it on again.",
		"set `swap: disable` in the inventory and kgpu turns swap off (`kgpu reset` turns it on again), or keep it: `kubernetes: {kubeletConfiguration: {failSwapOn: false}}`"},
	{HostClockSkew, 58,
		"The host's clock is more than 30 s away from the clock of the machine that runs kgpu. Certificates and join tokens are valid by the clock.",
		"correct the clock: install chrony, or check the time server"},
	{HostRebootPending, 67,
		"An update wants a reboot (/run/reboot-required), or a newer kernel than the running one is installed. Modules that are built now would be for the wrong kernel.",
		"reboot the host, or go on with `kgpu up --ignore HOST_REBOOT_PENDING`"},
	{HostModuleMissing, 70,
		"The host's kernel has no module that containers or the chosen pod network need, cannot load it, or lacks a setting that comes with it. Small kernels for the cloud leave modules out.",
		"install the kernel's other modules (Ubuntu: `apt-get install linux-modules-extra-$(uname -r)`; Debian: `apt-get install linux-image-$(dpkg --print-architecture)` in the place of a cloud kernel, then reboot); if it is the pod network that needs the module, another `network:` may do without"},
	{HostModuleDisabled, 236,
		"A line of modprobe's configuration, or of the kernel's command line, keeps out a module that containers, the pod network or the cards need. Profiles that harden hosts (CIS, STIG) write such lines, with /bin/false or /bin/true in the module's place.",
		"take the line named above out of its file, have the profile that wrote it make an exception for this module, and run the same command again"},
	{HostCgroupV1, 71,
		"The host groups processes by cgroup v1 (an old default of the boot loader), and the kubelet of the chosen Kubernetes refuses to run there.",
		"boot with cgroup v2, or set `kubernetes: {kubeletConfiguration: {failCgroupV1: false}, ignorePreflightErrors: [SystemVerification]}` in the inventory"},
	{HostCgroupV2, 89,
		"The host groups processes by cgroup v2, of which the kubelet of the chosen, old Kubernetes does not know.",
		"choose Kubernetes 1.19 or newer, or boot with cgroup v1 (`systemd.unified_cgroup_hierarchy=0` on the kernel's command line)"},
	{HostNameInvalid, 59,
		"A node is called like its host, or by `name:` in the inventory, and Kubernetes takes only lower-case letters, digits, hyphens and dots, and not localhost. Before Kubernetes 1.8 it must be the host's own name.",
		"give the host a lower-case RFC 1123 name, or set `name:` in the inventory"},
	{HostNameDuplicate, 60,
		"Two hosts would have the same node name: Kubernetes would take them for one node that keeps changing.",
		"give each host its own host name, or set `name:` in the inventory"},
	{HostMachineIDDup, 61,
		"Two hosts have the same /etc/machine-id, as copies of one disk image do. Pod networks and the kubelet tell machines apart by it.",
		"cloned machines: `rm /etc/machine-id && systemd-machine-id-setup`, then reboot"},
	{HostProductUUIDDup, 62,
		"Two hosts report the same product UUID (/sys/class/dmi/id/product_uuid), as virtual machines that were copied do.",
		"cloned virtual machines: give each its own SMBIOS UUID"},
	{HostAddressDuplicate, 48,
		"Two hosts would have the same address in the cluster, where nodes find each other by their addresses. That is the `privateAddress:` of the inventory, or the one that SSH reached.",
		"give each host its own address, or set `privateAddress:` in the inventory"},
	{HostAddressMissing, 63,
		"The address that the node is to have in the cluster is on none of the host's interfaces, or the host has no IPv4 address at all.",
		"`privateAddress:` must be an address of one of the host's interfaces"},
}
