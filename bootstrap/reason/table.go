package reason

import (
	"cmp"
	"maps"
	"slices"
)

// The reasons. Exit statuses are distinct per reason so that a script can tell them apart; their ranges are the classes.
const (
	InventoryInvalid  ID = "INVENTORY_INVALID"
	SecretMissing     ID = "SECRET_MISSING"
	HistoryUnreadable ID = "HISTORY_UNREADABLE"

	SSHUnreachable     ID = "SSH_UNREACHABLE"
	SSHHostKeyUnknown  ID = "SSH_HOST_KEY_UNKNOWN"
	SSHHostKeyMismatch ID = "SSH_HOST_KEY_MISMATCH"
	SSHAuthFailed      ID = "SSH_AUTH_FAILED"
	SSHCommandRefused  ID = "SSH_COMMAND_REFUSED"
	SSHSessionRefused  ID = "SSH_SESSION_REFUSED"
	SSHLost            ID = "SSH_LOST"
	SudoRefused        ID = "SUDO_REFUSED"
	FactsFailed        ID = "HOST_FACTS_FAILED"
	HostOutputTooLarge ID = "HOST_OUTPUT_TOO_LARGE"
	HostUnending       ID = "HOST_UNENDING"

	KubeconfigConflict   ID = "KUBECONFIG_CONFLICT"
	KubeconfigUnwritable ID = "KUBECONFIG_UNWRITABLE"
	BackupDamaged        ID = "BACKUP_DAMAGED"
	BackupNewer          ID = "BACKUP_NEWER"
	BackupLocked         ID = "BACKUP_LOCKED"
	BackupForeign        ID = "BACKUP_FOREIGN"
	RestoreUnfinished    ID = "RESTORE_UNFINISHED"
	KubeconfigUntrusted  ID = "KUBECONFIG_UNTRUSTED"
	ClusterMissing       ID = "CLUSTER_MISSING"
	UserRefused          ID = "USER_REFUSED"
	UserRightsLeft       ID = "USER_RIGHTS_LEFT"
	DashboardFailed      ID = "DASHBOARD_FAILED"

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
	HostAPIName          ID = "HOST_API_NAME"
	HostKeepalivedTaken  ID = "HOST_KEEPALIVED_TAKEN"
	VirtualIPUnfit       ID = "VIRTUAL_IP_UNFIT"
	VirtualIPTaken       ID = "VIRTUAL_IP_TAKEN"
	VirtualRouterTaken   ID = "VIRTUAL_ROUTER_TAKEN"
	ClusterQuorumLost    ID = "CLUSTER_QUORUM_LOST"

	KubernetesVersionChange ID = "KUBERNETES_VERSION_CHANGE"
	KubernetesSkew          ID = "KUBERNETES_SKEW"
	EtcdTooOld              ID = "ETCD_TOO_OLD"
	ClusterSettingFixed     ID = "CLUSTER_SETTING_FIXED"

	HostPodNetworkLeft    ID = "HOST_POD_NETWORK_LEFT"
	HostModuleMissing     ID = "HOST_MODULE_MISSING"
	HostIPTablesLegacy    ID = "HOST_IPTABLES_LEGACY"
	HostCgroupV1          ID = "HOST_CGROUP_V1"
	HostCgroupV2          ID = "HOST_CGROUP_V2"
	HostRuntimeConflict   ID = "HOST_RUNTIME_CONFLICT"
	HostRuntimeOverridden ID = "HOST_RUNTIME_OVERRIDDEN"
	HostContainerdOld     ID = "HOST_CONTAINERD_OLD"
	HostModuleDisabled    ID = "HOST_MODULE_DISABLED"
	HostPackageHeld       ID = "HOST_PACKAGE_HELD"
	HostPackageNewer      ID = "HOST_PACKAGE_NEWER"
	HostShadowed          ID = "HOST_SHADOWED"
	HostResolverUnusable  ID = "HOST_RESOLVER_UNUSABLE"
	HostPackagePinned     ID = "HOST_PACKAGE_PINNED"
	HostAptConfig         ID = "HOST_APT_CONFIG"
	HostAptHook           ID = "HOST_APT_HOOK"
	HostAptSource         ID = "HOST_APT_SOURCE"
	HostCertificateEnds   ID = "HOST_CERTIFICATE_ENDS"
	HostNotInInventory    ID = "HOST_NOT_IN_INVENTORY"
	NetRangeOverlap       ID = "NET_RANGE_OVERLAP"
	NetPortBlocked        ID = "NET_PORT_BLOCKED"
	NetNameUnresolved     ID = "NET_NAME_UNRESOLVED"
	NetMTUDiffers         ID = "NET_MTU_DIFFERS"
	RegistryUnreachable   ID = "REGISTRY_UNREACHABLE"
	RegistryBusy          ID = "REGISTRY_BUSY"
	ImageUnavailable      ID = "IMAGE_UNAVAILABLE"
	ImageMismatch         ID = "IMAGE_MISMATCH"
	ProxyUnreachable      ID = "PROXY_UNREACHABLE"

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
	GPUNoModules          ID = "GPU_NO_MODULES"
	GPUDriverStays        ID = "GPU_DRIVER_STAYS"
	GPUKernelNotBooted    ID = "GPU_KERNEL_NOT_BOOTED"
	GPUNouveauBusy        ID = "GPU_NOUVEAU_BUSY"
	GPUFabricFailed       ID = "GPU_FABRIC_FAILED"
	GPUFabricMissing      ID = "GPU_FABRIC_MISSING"
	GPUFabricIncomplete   ID = "GPU_FABRIC_INCOMPLETE"
	GPURuntimeMissing     ID = "GPU_RUNTIME_MISSING"
	GPUNotAllocatable     ID = "GPU_NOT_ALLOCATABLE"
	GPUMIGMismatch        ID = "GPU_MIG_MISMATCH"
	GPUCUDAImpossible     ID = "GPU_CUDA_IMPOSSIBLE"
	SmokeFailed           ID = "SMOKE_FAILED"
	SmokeImage            ID = "SMOKE_IMAGE"
	SmokeCardMissing      ID = "SMOKE_CARD_MISSING"
	SmokeCardTwice        ID = "SMOKE_CARD_TWICE"
	SmokeCardLeaked       ID = "SMOKE_CARD_LEAKED"
	SmokeCannotCompute    ID = "SMOKE_CANNOT_COMPUTE"
	NotebookNoCard        ID = "NOTEBOOK_NO_CARD"
	NotebookFailed        ID = "NOTEBOOK_FAILED"
	NotebookNoGPU         ID = "NOTEBOOK_NO_GPU"
	NotebookUnreachable   ID = "NOTEBOOK_UNREACHABLE"
	NotebookCannotCompute ID = "NOTEBOOK_CANNOT_COMPUTE"
	NotebookNoFramework   ID = "NOTEBOOK_NO_FRAMEWORK"

	StepFailed              ID = "STEP_FAILED"
	StepTimeout             ID = "STEP_TIMEOUT"
	StepInterrupted         ID = "STEP_INTERRUPTED"
	RepoKeyMismatch         ID = "REPO_KEY_MISMATCH"
	RepoKeyExpired          ID = "REPO_KEY_EXPIRED"
	RepoUnreachable         ID = "REPO_UNREACHABLE"
	PackageMissing          ID = "PACKAGE_MISSING"
	ChecksumMismatch        ID = "CHECKSUM_MISMATCH"
	RepoContentMismatch     ID = "REPO_CONTENT_MISMATCH"
	APIUnreachable          ID = "API_UNREACHABLE"
	NodeNotReady            ID = "NODE_NOT_READY"
	NodePressure            ID = "NODE_PRESSURE"
	NetPodsUnreachable      ID = "NET_PODS_UNREACHABLE"
	NetDNSBroken            ID = "NET_DNS_BROKEN"
	CertificateNotRenewed   ID = "CERTIFICATE_NOT_RENEWED"
	KubeletCertificateEnded ID = "KUBELET_CERTIFICATE_ENDED"
	BackupFailed            ID = "BACKUP_FAILED"
	BackupTarget            ID = "BACKUP_TARGET"
	BackupOverdue           ID = "BACKUP_OVERDUE"
	RestoreFailed           ID = "RESTORE_FAILED"
	NodeDrainBlocked        ID = "NODE_DRAIN_BLOCKED"
	UpgradeFailed           ID = "UPGRADE_FAILED"
	UpgradeSnapshot         ID = "UPGRADE_SNAPSHOT"
	NodeUnknown             ID = "NODE_UNKNOWN"
	RenderFolderTaken       ID = "RENDER_FOLDER_TAKEN"
	PodStuck                ID = "POD_STUCK"
	Cancelled               ID = "CANCELLED"
)

var table = index([]Reason{
	{InventoryInvalid, 10,
		"The inventory, or the ssh_config that it is read with, cannot be read or says something that cannot be. kgpu found that before it contacted any host, and names every such line at once.",
		"correct the lines named above; `kgpu validate` checks the file without touching any host"},
	{SecretMissing, 11,
		"The inventory refers to a secret (a password, or the passphrase of a key) by an environment variable or a file, and that is not there or is empty.",
		"set the environment variable or create the file that the inventory refers to"},
	{HistoryUnreadable, 19,
		"What a former run left on this machine, or the recorded events that were named, cannot be read, or are not what kgpu wrote. The clusters are not touched by that.",
		"look at the file named above; runs are folders below ~/.local/state/kgpu/runs, of which any can be removed"},

	{SSHUnreachable, 20,
		"No SSH connection came about: the name does not resolve, nothing answers at the address and port, or the server hung up or fell silent before the login. The same is said when a bastion does not let kgpu through.",
		"check the address, the port and that the machine is on: `ssh USER@ADDRESS` from here"},
	{SSHHostKeyUnknown, 21,
		"The machine showed a host key that neither `hostKey:` in the inventory nor known_hosts has, so kgpu cannot know whether it is the right machine, and sent nothing to it.",
		"compare the fingerprint with the machine's own (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`), then run the same command on a terminal, which asks, or add it with `ssh-keyscan`, pin it as `ssh: {hostKey: …}`, or set `ssh: {hostKeyPolicy: accept-new}` in the inventory"},
	{SSHHostKeyMismatch, 22,
		"The machine showed another host key than the one that the inventory or known_hosts has for it, or one that is revoked there. kgpu broke off before the login.",
		"the machine was reinstalled, or somebody is in between: compare fingerprints before you remove the old line from known_hosts"},
	{SSHAuthFailed, 23,
		"The SSH server answered and refused the login: it took none of the keys that kgpu offered, which are the inventory's, the agent's and the usual files. The message lists what was tried.",
		"check `ssh.user` and `ssh.key`; the public key must be in the user's authorized_keys on the host"},
	{SSHCommandRefused, 220,
		"The login worked, and the host did not run the command that kgpu gave it, but something else in its place: the key has a forced command (many cloud images refuse root by one), the user's shell is nologin or a menu, the server has a ForceCommand, or the password has expired. The message has what the host said.",
		"log in as a user who may run commands: `ssh: {user: …}` in the inventory; `ssh USER@ADDRESS true` from here shows what the host says to any command"},
	{SSHSessionRefused, 221,
		"The login worked, and the SSH server opened no session on the connection, nor on a second one. kgpu needs a session for every command, and at times several at once; those that one connection is not allowed it opens on others.",
		"allow sessions in the host's sshd_config (`MaxSessions 10` is the usual value; `sshd -T` as root says what holds), or let a second connection in (`MaxStartups`, fail2ban, `ufw limit`), then restart sshd"},
	{SSHLost, 24,
		"A connection that worked ended or fell silent, and the host did not come back in time. What was begun on the host goes on there, in a systemd unit.",
		"check the network and run the same command again: it carries on where it stopped"},
	{SudoRefused, 25,
		"The login worked, and sudo did not let the user run a command as root: it is not installed, wants a password that the inventory does not name or another one, or does not allow it.",
		"give the user sudo rights, or name the password by reference: `sudoPassword: ${ENV}` under `ssh:` in the inventory"},
	{FactsFailed, 26,
		"The script that looks at a host, which changes nothing, failed there, or printed something that kgpu does not understand. Without it kgpu does not know what the host is, and does nothing to it.",
		"mend what the host's words above name (a program that it lacks, a disk that is full or broken, a shell's start-up file), then run the same command again; `ssh USER@ADDRESS bash --version` from here shows whether the host runs scripts at all"},
	{HostOutputTooLarge, 44,
		"A host answered a short question, or its steps told, more than there can be to say, and kgpu stopped to listen: such a host could otherwise fill the memory and the disk of the machine that kgpu runs on.",
		"the host says far more than there can be to say: look at its shell's start-up files, at the file or the step named above, and whether it is the machine that you think"},
	{HostUnending, 45,
		"A host answered and did not come to an end, long after the step that it was at had to be over.",
		"the host answers and does not come to an end: look at its load and its disks (`uptime`, `journalctl -p err`), then run the same command again"},
	{KubeconfigConflict, 14,
		"Your kubeconfig has a cluster, a user or a context of the same name that belongs to another cluster, and that kgpu did not make of this inventory; or the file that kgpu was to write is there, with something else in it. Nothing was changed in it.",
		"rename the other entry (`kubectl config rename-context`), give the cluster another name (`cluster:` in the inventory), or use a file of its own: `kgpu kubeconfig --file FILE`"},
	{KubeconfigUnwritable, 15,
		"A kubeconfig on this machine cannot be read or written, is not one, or another program changes it just now.",
		"look at the file named above, its folder and who owns them; `kgpu kubeconfig --file FILE` takes another one"},
	{KubeconfigUntrusted, 12,
		"The administrator's kubeconfig on the control plane is not one that kubeadm makes: it has something else in it than a server, a certificate authority, a certificate and its key, or those do not belong together. Such a file can have kubectl run programs and send files of the machine that it is used on, so kgpu wrote none.",
		"ask who changed it; where nobody did, the host is not to be trusted. `kubeadm init phase kubeconfig admin` on the control plane makes it anew when it was moved away"},
	{ClusterMissing, 16,
		"The control plane was reached, and there is no cluster on it: it has no kubeconfig of an administrator.",
		"`kgpu up` makes the cluster, `kgpu plan` says what is missing"},
	{UserRefused, 17,
		"The API server refused an object that a user needs, or nobody in the cluster signed the user's certificate. The message has the words of the API server.",
		"look at the words above; `kubectl get certificatesigningrequests` and `kubectl -n kube-system logs -l component=kube-controller-manager` say more; the same command begins again"},
	{UserRightsLeft, 13,
		"A user was deleted, and the API server says that who has their certificate still has rights: by a binding that names others, too, or all users, or by a group, which kgpu leaves to its owner. The message says what they may, and names the bindings that kgpu knows of.",
		"take the user out of the bindings named above (`kubectl edit`), or delete these; `kgpu user delete NAME` looks again"},
	{DashboardFailed, 18,
		"The API server refused the dashboard, its pod did not get ready in time, or its namespace did not go away.",
		"`kubectl -n kgpu-dashboard describe pods` says why; the same command carries on, and `kgpu dashboard --remove` takes it away"},

	{HostBusy, 30,
		"Another run of kgpu is at work: it holds the cluster, or a unit of it holds the host. The message says whose run it is, from where, since when and what it does. Of a run that was killed while the link was cut, the host learns after 20 s of silence.",
		"`kgpu attach` shows what the other run does: wait for its end, then run the same command again"},
	{HostAddressDuplicate, 48,
		"Two hosts would have the same address in the cluster, where nodes find each other by their addresses. That is the `privateAddress:` of the inventory, or the one that SSH reached.",
		"give each host its own address, or set `privateAddress:` in the inventory"},
	{HostMountNoExec, 49,
		"/var, or a folder below it, is a file system mounted with noexec: programs on it cannot be started, and container images are unpacked there.",
		"mount it without noexec: `mount -o remount,exec`, and the same in /etc/fstab"},
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
	{HostSwapOn, 57,
		"The host uses swap space, with which the kubelet does not start as kubeadm sets it up; `swap: refuse`, the default, leaves it alone. Also said when kgpu turned swap off and something turned it on again.",
		"set `swap: disable` in the inventory and kgpu turns swap off (`kgpu reset` turns it on again), or keep it: `kubernetes: {kubeletConfiguration: {failSwapOn: false}}`"},
	{HostClockSkew, 58,
		"The host's clock is more than 30 s away from the clock of the machine that runs kgpu. Certificates and join tokens are valid by the clock.",
		"correct the clock: install chrony, or check the time server"},
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
	{HostAddressMissing, 63,
		"The address that the node is to have in the cluster is on none of the host's interfaces, or the host has no IPv4 address at all.",
		"`privateAddress:` must be an address of one of the host's interfaces"},
	{HostResolverUnusable, 238,
		"Pods get the name servers of their host, and the cluster's DNS asks them for all names that are not the cluster's. The host's own are at an address that only the host itself can ask, such as 127.0.0.1 of dnsmasq or unbound, or there are none, and no file of a resolver that kgpu knows has others. The cluster's DNS would ask itself, and end (plugin/loop).",
		"write the servers that the host's own resolver asks into a file on the host, a line \"nameserver ADDRESS\" each, and name it in the inventory: `kubernetes: {kubeletConfiguration: {resolvConf: /etc/resolv-pods.conf}}`"},
	{HostPortTaken, 64,
		"A port that Kubernetes or the pod network listens on is taken by another program, on a host that is no node yet.",
		"stop the program that listens on the port named above"},
	{HostAptLocked, 65,
		"Another program, often unattended-upgrades, holds the lock of apt or dpkg. kgpu waited for it as long as `timeouts.lock` allows, and never ended it.",
		"another program is installing packages; kgpu waits for it, look at the process named above if it never ends"},
	{HostDpkgBroken, 66,
		"dpkg lists packages that are half-installed, after an installation that was cut off, or apt finds dependencies that are not met; nothing can be installed before that is put right. kgpu finishes what can be finished, which did not help here.",
		"kgpu ran `dpkg --configure -a` and `apt-get --fix-broken install`, which did not help: repair the packages named above, or remove them"},
	{HostRebootPending, 67,
		"An update wants a reboot (/run/reboot-required), or a newer kernel than the running one is installed. Modules that are built now would be for the wrong kernel.",
		"reboot the host, or go on with `kgpu up --ignore HOST_REBOOT_PENDING`"},
	{HostFirewallActive, 68,
		"ufw or firewalld is active on a host that is no node yet. kgpu changes no rules of yours, and the default rules keep nodes and pods from each other.",
		"open the ports of Kubernetes and of the pod network, or turn the firewall off"},
	{HostForeignCluster, 69,
		"The host is a node of another cluster, has another kind of Kubernetes on it (k3s, microk8s …), or was set up with kubeadm by somebody else. kgpu tells clusters apart by their certificates; of another kind of Kubernetes it wants to see that it runs, or two signs of it: a directory that was left is only told.",
		"the host belongs to another cluster: where nobody needs it, `kubeadm reset` there first, or the uninstaller of the other kind of Kubernetes, which the message names; kgpu takes nothing over"},
	{HostMadeByHand, 38,
		"The host works in a cluster, and it was not kgpu that made it a part of that: somebody ran kubeadm by hand. The message has the evidence, and what does not fit the inventory if it cannot be taken over.",
		"`kgpu up --adopt` takes it over as it is, where the message does not say why it cannot; or `kubeadm reset` there, if nobody needs it"},
	{HostHalfMade, 39,
		"There is a part of a cluster on the host that does not work, and that kgpu did not leave there: a control plane without answer, or files of kubeadm without a node.",
		"see whose it is (`ls -l /etc/kubernetes`, `journalctl -u kubelet` on the host); where nobody needs it: `kubeadm reset` there, or `kgpu reset` where kgpu made it"},
	{HostEtcdStale, 41,
		"The host has the data of an etcd, with all that a cluster knew, and no cluster around it. kubeadm would refuse to begin, and nobody but you knows whether the data is needed.",
		"where nobody needs the data: remove /var/lib/etcd/member; else keep a copy elsewhere, or bring back the /etc/kubernetes that belongs to it"},
	{HostAPIName, 230,
		"The host does not know the cluster's API server by its name, or the name leads it somewhere else. The kubelet and kube-proxy reach the API server by that name, which kgpu keeps as a line in /etc/hosts.",
		"on the host, `getent ahosts NAME` says where the name leads: remove other lines of that name from /etc/hosts, have `files` come first in the line `hosts:` of /etc/nsswitch.conf, then run `kgpu up`"},
	{HostKeepalivedTaken, 247,
		"keepalived on the host has a configuration that is not kgpu's. kgpu would have to replace it, and takes nothing over.",
		"where nobody needs it: remove /etc/keepalived/keepalived.conf on the host; else leave out `virtualIP`, and name what leads to all control planes as `kubernetes.controlPlaneEndpoint`"},
	{VirtualIPUnfit, 245,
		"The virtual address is in no subnet of a control plane, or is the own address of a host. keepalived moves it from one control plane to another, so that all of them must be where it is.",
		"name a free address of the subnet in which all control planes are as `kubernetes.virtualIP`; in different subnets, a load balancer of yours as `kubernetes.controlPlaneEndpoint`"},
	{VirtualIPTaken, 79,
		"A machine answers at the virtual address before any control plane has it: two would fight for it, and the cluster's nodes would reach one or the other.",
		"name another address of the subnet as `kubernetes.virtualIP`, one that nobody has and that no DHCP server gives away"},
	{VirtualRouterTaken, 246,
		"Another router of the Virtual Router Redundancy Protocol on the control planes' network has the number that kgpu makes out of the cluster's name and its virtual address. Such routers must have numbers of their own.",
		"name another address of the subnet as `kubernetes.virtualIP`, which makes another number; where the other router cannot hear the control planes: `preflight: {ignore: [VIRTUAL_ROUTER_TAKEN]}`"},
	{ClusterQuorumLost, 248,
		"Fewer than a majority of the control planes can be reached. etcd writes nothing without its majority, so that the API server changes nothing; what runs on the nodes goes on. kgpu changes nothing either, because another kgpu could have the others.",
		"bring back the control planes that are down: their power, their network, their kubelet; docs/operations.md says what to do when they never come back"},
	{KubernetesVersionChange, 43,
		"The inventory wants another version of Kubernetes than the cluster runs, and the cluster cannot be brought there: it is an older one, the cluster is older than what kgpu upgrades, or it runs one that this kgpu does not know. Nothing is planned, and no option changes that.",
		"write the version that the cluster runs into the inventory as `kubernetes: {version: …}`, or leave `version` out: then the cluster's own counts; for a version that kgpu does not know, take a newer kgpu"},
	{KubernetesSkew, 243,
		"An upgrade of the control plane would leave a node further behind than Kubernetes supports, which is three minor versions, or a node has a newer minor version than the control plane is to get. Such a node may be one that the inventory does not have. Nothing is planned.",
		"upgrade the node that the message names first, or take it out of the cluster (`kgpu remove-worker`, `kubectl delete node`)"},
	{EtcdTooOld, 244,
		"The cluster's etcd is an older 3.5 than the one that etcd 3.6 may follow: members that were removed could come back in the new one. Nothing is planned.",
		"upgrade to the newest patch of the minor version that runs first, which may bring a newer etcd; else give etcd the tag 3.5.26-0 (etcd, local, imageTag in `kubectl -n kube-system edit configmap kubeadm-config`), and on the control plane run `kubeadm upgrade apply` for the version that runs"},
	{ClusterSettingFixed, 241,
		"The inventory wants something else than the cluster that runs, of what a cluster or a node keeps as it was made with: the message names the key, its place in the file, what runs and what is wanted. Nothing is planned, and no option changes that. docs/inventory.md has all keys and what becomes of them while the cluster runs.",
		"write what runs into the inventory, or leave the key out: then what runs counts; a cluster made with something else takes `kgpu reset` and `kgpu up`"},
	{HostPodNetworkLeft, 42,
		"A pod network that kgpu did not make has left its configuration, its links or its addresses on the host. Pods would get addresses of the wrong range, or two hosts the same one.",
		"remove what the message names (files, and links by `ip link delete`); `kgpu up --adopt` removes what weave, flannel and calico left"},
	{HostIPTablesLegacy, 240,
		"The host's iptables is iptables-legacy, and the pod network is weave. Its weave-npc writes to nf_tables whatever the host has, so that no packet would get from pods of one node to pods of another.",
		"`update-alternatives --set iptables /usr/sbin/iptables-nft` and the same for ip6tables, then reboot the host; or `network: flannel`"},
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
	{HostRuntimeConflict, 72,
		"Something of yours is in the way of the chosen container runtime: podman-docker, docker as a snap, a package that apt would have to remove, or a daemon.json that is not valid JSON.",
		"remove the conflicting packages named above"},
	{HostRuntimeOverridden, 239,
		"A file of yours undoes what kgpu sets for the container runtime: an import of containerd's that comes after kgpu's own, which before containerd 2 replaces a section as a whole, as `nvidia-ctk runtime configure` writes it; or a drop-in of the runtime's unit with another configuration or with flags of its own.",
		"move the file named above away; what you need of it goes into /etc/containerd/config.toml or /etc/docker/daemon.json, whose settings kgpu keeps"},
	{HostContainerdOld, 242,
		"The host's containerd is older than 2: its authors support none of those since September 2026, and Kubernetes refuses it from 1.38 on. Pods have no image volumes (from containerd 2.1 on) and no user namespaces there. Up to Kubernetes 1.37 it is only a warning. kgpu takes `containerd.io` of Docker's repository, which is 2, for hosts that have no containerd, and leaves the one that is there.",
		"docs/troubleshooting.md, \"A containerd before 2\", has the commands that put containerd 2 in its place, node by node"},
	{HostPackageHeld, 35,
		"A package that kgpu needs in another version is held at the one that is there, and it was not kgpu that held it.",
		"whoever holds the package named above decides: `apt-mark unhold PACKAGE` on the host lets kgpu have its version. A held Kubernetes may stay where the inventory names its version (`kubernetes: {version: …}`)"},
	{HostPackageNewer, 234,
		"A package is newer on the host than kgpu wants it. kgpu replaces no package by an older one.",
		"`apt-get remove PACKAGE` on the host lets kgpu install its own; a newer Kubernetes may stay where the inventory names its version (`kubernetes: {version: …}`)"},
	{HostShadowed, 233,
		"The host has a program in /usr/local, or a unit of its own, that is run instead of the one of the same name that comes with the packages which kgpu installs. The message has the path. kgpu's own calls take the packages' programs; containerd, docker and systemd do not.",
		"move what is named above out of the way: `mv PATH PATH.old`, and after a unit `systemctl daemon-reload`"},
	{HostPackagePinned, 36,
		"A file of apt's preferences keeps a package away that kgpu needs. The message names the file.",
		"remove the package named above from the file of apt's preferences, or the file: kgpu does not change pins of others"},
	{HostAptConfig, 37,
		"apt cannot read one of its own files, or two of them contradict each other, and refuses all its work. The message names file and line.",
		"correct or remove the entry named above: apt refuses all its work until then"},
	{HostAptHook, 231,
		"A program that the host's owner has apt or dpkg run before, during or after its work (a hook, such as APT::Update::Pre-Invoke or DPkg::Pre-Install-Pkgs) fails, and apt gives up. The message names the file that has it. Hooks that would run after an update of the package lists are not run for kgpu's own.",
		"mend the program named above, or take the hook out of the file named above"},
	{HostAptSource, 232,
		"apt would take a package from a disc or a folder of the host, because one of its sources says so, and it is not there. The message has apt's words, and the file and the line.",
		"comment out the source at the line named above (or put in the disc, or mount the folder), and let the host have a mirror of its distribution beside it; then `apt-get update`"},
	{HostCertificateEnds, 46,
		"A certificate of Kubernetes on the host ends soon, has ended, or cannot be read: `kgpu doctor` says so 60 days before the end, `kgpu status` 30. When it has ended, those who show it are refused: the kubelet, the API server, or you.",
		"`kgpu certs` shows all certificates and who renews them; `kgpu certs renew` renews those of the control planes; where a kubelet did not renew its own, `journalctl -u kubelet` there says why"},
	{HostNotInInventory, 47,
		"The cluster has a node, and the inventory no host that it is. Nothing that kgpu does reaches it.",
		"add the host to the inventory, or take it out of the cluster: `kubectl drain` and `kubectl delete node`"},
	{NetRangeOverlap, 73,
		"The range of pod or service addresses contains an address of the host, or overlaps with one of its routes: packets for the one would go to the other.",
		"choose another `podCIDR` or `serviceCIDR` under `kubernetes:` in the inventory"},
	{NetPortBlocked, 74,
		"A host that is no node yet tried to connect to another one, at a port of Kubernetes, and nothing answered, or the connection was refused where something must listen.",
		"open the port between the hosts: a firewall or a security group is in between"},
	{NetNameUnresolved, 75,
		"A host could not find the address of a repository, a registry, the proxy or the control plane by its name.",
		"check the host's DNS (`resolvectl status`, /etc/resolv.conf), set `proxy:`, or name a mirror in the inventory"},
	{NetMTUDiffers, 76,
		"The links of the hosts carry packets of different sizes. The pod network takes the size from each host's own link, and the large packets of one are lost on the way to another.",
		"give the hosts' links the same MTU: `ip link set dev NAME mtu SIZE`, and the same in netplan"},
	{RegistryUnreachable, 77,
		"A host could not connect to a registry that container images come from: no answer in 5 s, a refusal, or no route there; or what it sent was cut short again and again.",
		"check the firewall of the host and the proxy in between, set `proxy:`, or name your own registry: `images: {registry: …}`"},
	{ProxyUnreachable, 78,
		"A host could not connect to the proxy that the inventory names, or to the one that its own apt is set to.",
		"check the address under `proxy:`, and that the host may connect to it; of a proxy that the inventory does not name, `apt-config dump Acquire` on the host says where it is"},
	{RegistryBusy, 31,
		"A registry answered that it is overloaded or has a fault (429, 500 to 504), and did so again and again until the time for that was over.",
		"the registry answers, but refuses for now: run the same command again later, or name your own registry: `images: {registry: …}`"},
	{ImageUnavailable, 32,
		"A registry answered that there is no such image, or that the host may not have it (401, 403, 404).",
		"check the image's name, and that the registry lets the host have it: `images: {registry: …}`"},
	{ImageMismatch, 33,
		"What a registry delivered has another digest than the image that was asked for: it was cut off or changed on the way. Nothing of it is run.",
		"what came is not the image that was asked for: check the registry, and the proxy in between, before you try again"},

	{GPUUnsupported, 100,
		"The host has a card for which no driver is offered for its release: too old for the drivers that there are, too new, or not in kgpu's table.",
		"put the card into a machine with a release that has a driver for it, or go on without it: `kgpu up --ignore GPU_UNSUPPORTED`"},
	{GPUDriverImpossible, 101,
		"The source, branch or flavour under `gpu.driver` does not go with the card, or cannot be had on the host's release.",
		"leave `gpu.driver` out and kgpu chooses one that fits the card"},
	{GPUSecureBootUnsigned, 102,
		"Secure Boot is on, so that the kernel loads signed modules only, and the modules of the driver for this card and release are not signed.",
		"turn Secure Boot off in the firmware, or use Ubuntu, whose archive has signed modules"},
	{GPUDriverMissing, 103,
		"The driver, or a part of it, is not on the host: its libraries, its module or its devices. With `gpu.driver.source: none` it is yours to install.",
		"install the driver, or leave `gpu.driver.source: none` out and kgpu does it"},
	{GPUDriverForeign, 104,
		"NVIDIA's .run installer put a driver on the host that does not work, or another one than the inventory asks for. Packages over it would leave a mixture of both, so kgpu left it alone.",
		"remove it with `nvidia-uninstall`, or repair it and set `gpu: {driver: {source: none}}`"},
	{GPUDriverOther, 105,
		"The driver that is there has to give way to the chosen one, and packages that are not of the driver depend on it and would have to go, too.",
		"remove the packages named above yourself (`apt-get purge`), or set `gpu: {driver: {source: none}}` to keep the driver"},
	{GPUDriverMismatch, 106,
		"The module that the kernel has loaded and the driver's libraries are of different versions, so that nothing can use the cards, and the module could not be exchanged because programs use it or there is none for the running kernel.",
		"an upgrade replaced the driver beneath running programs: drain the node and reboot it"},
	{GPUNotAllCards, 107,
		"The PCI bus has more NVIDIA cards than the driver sees. The message names those that are missing, and the driver's last words in the kernel's log.",
		"look for the card's Xid in `journalctl -k`; a card that fell off the bus needs a power cycle"},
	{GPUHung, 108,
		"A program of the driver, nvidia-smi or nvidia-ctk, gave no answer and could not be ended: it is stuck in the driver.",
		"the driver hangs: drain the node and reboot it; `journalctl -k` says which task is blocked"},
	{GPUModuleRejected, 109,
		"The kernel refused the driver's module because it does not trust its signature, as it does under Secure Boot.",
		"Secure Boot rejects the driver's module: turn it off in the firmware, or take the signed modules of Ubuntu's archive"},
	{GPUModuleBuild, 110,
		"The driver is installed, and there is no module of it for the running kernel: it was not built, or building it failed.",
		"there is no module for the kernel that runs: reboot if a newer kernel is installed; the end of a failed build's log is above"},
	{GPUDriverStays, 202,
		"Another driver is to take the place of the one that is there, and apt would not install it on this host, by a simulation of removing the one and installing the other. The message has apt's words. Nothing was removed: the host works as before.",
		"mend what apt says above, or leave the driver as it is: take `gpu: {driver: …}` out of the inventory"},
	{GPUNoModules, 200,
		"apt can install the driver neither with kernel modules that come built for the running kernel, nor with a newer kernel of its line that has such modules, nor, where the firmware lets modules run that nobody signed, with DKMS. Of each way that the host may take, the message says what it lacks. A host whose pods run is not rebooted for that.",
		"bring the host's packages up to date and reboot it (`apt-get update && apt-get full-upgrade`, then `reboot`), and run the same command again; a mirror may lack the package that is named above"},
	{GPUKernelNotBooted, 201,
		"The driver was installed with a newer kernel, for which its modules are, and the reboot started another one: the boot loader prefers it.",
		"look which kernel the boot loader starts (GRUB_DEFAULT in /etc/default/grub, `grub-editenv list`), reboot into the newest one, and run the same command again"},
	{GPUNouveauBusy, 111,
		"nouveau, the free driver that the kernel brings, has the cards and cannot be unloaded, most often because it shows the console.",
		"reboot the host: nouveau is blacklisted and does not come back"},
	{GPUFabricFailed, 118,
		"The host's cards are connected by NVSwitch or NVLink 5 and need the service nvidia-fabricmanager (nvidia-imex on GB200 and GB300), which does not start.",
		"`journalctl -u nvidia-fabricmanager` (`journalctl -u nvidia-imex`) on the host says why; its version must be the driver's"},
	{GPUFabricMissing, 205,
		"What sets up the NVLink fabric of the host's cards cannot be had: the driver's source has no fabric manager, NVIDIA's repository no nvlsm, or the running kernel no ib_umad. Without it CUDA fails on all cards with error 802.",
		"leave `gpu.driver` out, or take `gpu: {driver: {source: cuda}}`; a mirror (`repositories.cuda`) must have nvlsm, and the kernel's ib_umad is in linux-modules-extra of its version, or in a kernel of another line"},
	{GPUFabricIncomplete, 206,
		"Cards have not got their place in the NVLink fabric in time: nvidia-smi does not say `State: Completed`, `Status: Success` of them. CUDA fails on them with error 802, system not yet initialized.",
		"`nvidia-smi -q` (Fabric) and `journalctl -u nvidia-fabricmanager` on the host say more; the cards of GB200 and GB300 wait for the switch trays of their rack: see to its NMX controller. Then run `kgpu up` again"},
	{GPURuntimeMissing, 119,
		"The container toolkit is installed, and docker or containerd does not know the runtime `nvidia`, has it with other settings than runc, or has CDI turned off. kgpu looks at what they have loaded, not at their files.",
		"look at what the container runtime loaded: `containerd config dump`, `docker info`"},
	{GPUNotAllocatable, 112,
		"The node's GPUs did not become something that pods can ask for in time: the device plugin, which offers them to the kubelet, does not run or offers another number.",
		"look at the device plugin: `kubectl -n kube-system logs ds/nvidia-device-plugin`"},
	{GPUMIGMismatch, 124,
		"The GPUs are not cut into instances as `gpu.migStrategy: single` wants it: all GPUs of a host alike, or none. NVIDIA's device plugin would offer nothing.",
		"cut the GPUs into instances (`nvidia-smi mig`, nvidia-mig-parted) or turn MIG off (`nvidia-smi -mig 0`), or choose another `gpu.migStrategy`"},
	{GPUCUDAImpossible, 125,
		"The CUDA version under `gpu.cuda` does not compile for the GPU, is not made for the driver, or is not offered for the host's release.",
		"leave `gpu.cuda` out and kgpu chooses a version that driver and GPUs run, or `gpu: {cuda: none}` does without"},
	{SmokeFailed, 113,
		"A Job of the proof did not do what it was to do: its pod did not start or end, nvidia-smi failed or hung in it, its image has no program that computes, or it saw a GPU that no host has.",
		"the Job's own words are above; `kgpu smoke` runs the proof again"},
	{SmokeImage, 114,
		"A node could not pull the image of the proof or of the notebook: the kubelet reports ErrImagePull or the like.",
		"the nodes cannot pull the image: check the registry, the proxy, or `images: {registry: …}`"},
	{SmokeCardMissing, 115,
		"Every Job of the proof asked for a GPU, and together they did not see all of the host's.",
		"another pod may hold the GPU: `kubectl get pods -A -o wide`; else look at the device plugin's log"},
	{SmokeCardTwice, 116,
		"Two Jobs of the proof saw the same GPU, although the inventory does not share GPUs.",
		"the GPUs are shared between pods: look at the device plugin's settings"},
	{SmokeCardLeaked, 117,
		"A pod of the proof saw more GPUs than it asked for, or saw some and asked for none.",
		"pods see GPUs that they did not ask for: is nvidia the default runtime, or is NVIDIA_VISIBLE_DEVICES set?"},
	{SmokeCannotCompute, 193,
		"nvidia-smi lists the GPU in a pod, and it does not compute there: NVIDIA's sample that adds two vectors on it failed, got wrong sums, or did not end.",
		"the sample's own words are above, and `kgpu doctor` looks at the host's driver and fabric; `kgpu smoke` runs the proof again"},
	{NotebookNoCard, 120,
		"The notebook asks for one GPU, and none is free: other pods have them all.",
		"stop one of the pods named above, or set `notebook: {framework: none}` and go on without the notebook"},
	{NotebookFailed, 121,
		"The notebook's pod did not get ready, or its server did not do what kgpu asked of it, such as to start a kernel and compute in it.",
		"`kubectl -n kgpu-notebook describe pods` and `kubectl -n kgpu-notebook logs deploy/notebook` say more; `kgpu smoke` tries again"},
	{NotebookNoFramework, 195,
		"The framework that the inventory asks for computes on none of the cluster's GPUs, or has no image for the hosts' processors. The message names the GPUs and their hosts. Nothing was changed.",
		"leave `notebook: {framework: …}` out and kgpu takes the one that computes, name an image of your own (`notebook: {image: …}`), or do without (`notebook: {framework: none}`)"},
	{NotebookCannotCompute, 194,
		"The notebook's framework lists a GPU and cannot compute on it: it has no code for GPUs of this kind, or its result was wrong. The message names the framework, the GPU, and what the framework says. Where nothing in the notebook but the driver itself lists the GPU, the GPU failed.",
		"`notebook: {framework: …}` names the other framework, `{version: …}` another release of this one, and `{image: …}` an image of your own, which the next `kgpu up` takes; where all of them fail, `kgpu doctor` looks at the GPU"},
	{NotebookNoGPU, 122,
		"The notebook's kernel listed its devices, and no GPU is among them, or the listing failed.",
		"the image's libraries may not fit the driver or the GPU: name another `notebook: {version: …}` or `{image: …}`"},
	{NotebookUnreachable, 123,
		"The notebook runs, and its service does not answer on the control plane, from where kgpu asks through SSH, and which leads to every node's pods.",
		"look at kube-proxy and the pod network on the control plane, and at the address in `kubectl -n kgpu-notebook get service notebook`"},

	{StepFailed, 80,
		"A command of a step failed, for a reason that has no name of its own. The message has its last words.",
		"look at the output above; the same command carries on from this step"},
	{StepTimeout, 81,
		"A step was not done in its time and was ended, with all its processes.",
		"look at the output above; the same command carries on from this step"},
	{StepInterrupted, 82,
		"The host went down, or somebody killed the unit, while the step ran. kgpu begins such a step once more by itself, and says this if it happens again, or if nobody was there to do so.",
		"the host went down during the step; the same command carries on"},
	{RepoKeyMismatch, 83,
		"A package repository is signed with a key that is not the one that kgpu knows or the inventory names, or that key was revoked, or no signature is there. Nothing was installed from it.",
		"the repository's key is not the one kgpu expects: check it, then name its fingerprint under `repositories:`"},
	{RepoKeyExpired, 94,
		"The key that signs a package repository has expired on the host, where apt refuses it. Owners extend a key beneath the same fingerprint; kgpu fetches one of its own repositories again when it has expired, and got the old one.",
		"a mirror of yours (`keyURL`) has to serve the key as its owner extended it: `curl KEYURL | gpg --show-keys` says when it ends; then run the same command again. Of a repository that is not kgpu's, put the new key where its `signed-by` says, or disable it. A host whose clock is ahead says so too early"},
	{RepoUnreachable, 84,
		"A host could not fetch from a package repository or download a file: no connection, a failed transfer, a server whose certificate is not trusted, or an address that is not there.",
		"check DNS, the proxy and the firewall of the host, or name a mirror under `repositories:`"},
	{PackageMissing, 85,
		"apt does not offer a package, or not in the version that is wanted. The message says which versions there are.",
		"`apt-get update` on the host says whether its repositories answer. A package that follows the kernel is offered for newer kernels only: upgrade the host and reboot it. Where a version is missing, choose another, or name a mirror under `repositories:`"},
	{ChecksumMismatch, 86,
		"A downloaded file has another SHA-256 than the catalog or the inventory says. It was thrown away.",
		"the download is not what kgpu expects: check the mirror, then name its sha256 under `repositories:`"},
	{RepoContentMismatch, 34,
		"A package or a list of a repository has another hash, size or signature than its owner signed: it was cut off or changed on the way, and it was so again when it was fetched once more. Nothing of it is installed.",
		"what came is not what the repository's owner signed: check the mirror, and the proxy in between, before you try again"},
	{APIUnreachable, 87,
		"The Kubernetes API server, which runs on the control plane at port 6443, did not answer in time, or could not be reached from the host that wanted to join.",
		"check that nothing blocks port 6443 between the hosts"},
	{NodeNotReady, 88,
		"A host joined, and its node did not appear in the cluster or did not get ready in time. The kubelet reports readiness; it waits for the runtime and the pod network.",
		"`kubectl describe node` and `journalctl -u kubelet` on the host say why"},
	{NodePressure, 235,
		"The kubelet finds too little room on the node's disks (DiskPressure), too little memory (MemoryPressure), or too many processes (PIDPressure). Until that is over the node takes no new pods, and the kubelet ends some of those that it has.",
		"make room on the node: `df -h` and `free -m` there, `kubectl describe node` for the kubelet's words; it takes pods again some minutes after"},
	{NetPodsUnreachable, 216,
		"All nodes are ready, and a pod on one of them does not reach a pod on another, which the message names. The pod network wraps the packets of pods into packets between the nodes' addresses, and something on the way drops those: mostly the firewall of a host, of the cloud (its security group) or of the network between them.",
		"let the hosts' addresses in the cluster (`kubectl get nodes -o wide`) reach each other: flannel needs UDP 8472, calico TCP 179 and IP protocol 4, weave TCP 6783 and UDP 6783 and 6784; then run `kgpu up` again"},
	{NetDNSBroken, 217,
		"Pods reach each other, and one of them does not get an answer from the cluster's DNS: programs in it find no Service by its name.",
		"`kubectl -n kube-system logs -l k8s-app=kube-dns` says what the DNS meets, `kubectl -n kube-system logs -l k8s-app=kube-proxy` whether its address leads to it; then run `kgpu up` again"},
	{CertificateNotRenewed, 95,
		"kubeadm did not make new certificates on a control plane. Where the key of a certificate authority is not on the host (an external CA), nobody but its owner can. What was there before is there again.",
		"look at the words of kubeadm above. With an external CA, have new certificates made where its key is and put them into /etc/kubernetes; `kgpu up` then has the control plane use them"},
	{KubeletCertificateEnded, 96,
		"The certificate of a kubelet has ended, and it did not get another in time: it asks the API server with a token, and the controller manager signs.",
		"`journalctl -u kubelet` on the host says what it meets, `kubectl get csr` whether its request was approved; then run `kgpu up` again"},
	{NodeDrainBlocked, 90,
		"The node has pods that would be lost, because nothing starts them again elsewhere, or that do not go away in time, because a disruption budget keeps them; or pods with GPUs have come since the plan was shown, when it had none, so that nobody agreed to their end. The node takes pods again as before, and what it was to be drained for was not done.",
		"end the pods named above, or loosen their disruption budget, then run the same command again; it asks about pods that have come meanwhile"},
	{UpgradeFailed, 210,
		"kubeadm could not upgrade the control plane or the kubelet's configuration of a node. A control plane that does not get up with the new version has its former one back, as kubeadm puts it there; nodes that were not reached keep theirs.",
		"look at what kubeadm said (`kgpu runs logs`), and at `kubectl -n kube-system get pods` on the control plane; then run the same command again, which goes on where this stopped"},
	{UpgradeSnapshot, 211,
		"etcd gave no snapshot, or what came is not whole. An upgrade of the control plane does not begin without one.",
		"see whether etcd is well (`kubectl -n kube-system logs etcd-NODE` for the control plane's node); then run the same command again"},
	{NodeUnknown, 91,
		"A worker that cannot be asked for its name is to leave the cluster: the inventory does not give its name either, none of the nodes has its address, and there are nodes that no other host of the inventory accounts for.",
		"write the `name:` of its node, one of those named above, into the inventory, then run the same command again"},
	{RenderFolderTaken, 92,
		"The folder that `kgpu render` is to write is a file, cannot be made, or has files in it that it did not write.",
		"name another folder, or an empty one"},
	{PodStuck, 93,
		"A pod of the cluster itself, in a namespace kube-… or kgpu-…, does not come by waiting: its image cannot be pulled, what it is configured with is not there, it ends again and again, or no node takes it.",
		"`kubectl -n NAMESPACE describe pod POD` says why; of one that ends again and again, `kubectl -n NAMESPACE logs POD --all-containers`"},
	{BackupFailed, 97,
		"etcd gave no snapshot of its data, the snapshot is not whole, or the tools to take one are not in etcd's image. There is no archive.",
		"`kgpu status` and `kgpu doctor` say whether the control plane is well; then run `kgpu backup` again"},
	{BackupTarget, 212,
		"The directory of `backup.to` is not there, is not mounted, keeps nothing, or cannot be written to. The control plane makes no backups by itself.",
		"mount it, or make it, on the control plane that is named, or write another one as `backup.to`; then run `kgpu up` again"},
	{BackupOverdue, 213,
		"A control plane that is to make backups by itself has made none for two periods of its schedule, or its last try failed, or the last archive is gone.",
		"`journalctl -u kgpu-backup` on that host says more; when it is mended, `systemctl start kgpu-backup` there makes one at once"},
	{RestoreFailed, 98,
		"A control plane could not be given the data of a backup: its programs do not end, the tools of etcd refuse the snapshot, or what was sent is not whole. The data that etcd had is in /var/lib/etcd or, by then, in /var/lib/etcd.before-TIME there.",
		"`kgpu runs logs` shows what the step printed; run the same `kgpu restore` again"},
	{BackupDamaged, 225,
		"The archive is not what `kgpu backup` wrote: it was cut off, a byte of it has changed, or it is no archive of kgpu. Nothing was touched.",
		"take another copy of it, or an older backup"},
	{BackupNewer, 226,
		"The archive was written by a newer kgpu, in a format that this one does not know. Nothing was touched.",
		"restore it with a kgpu that is as new as the one that wrote it"},
	{BackupLocked, 227,
		"The archive is encrypted, and none of the age identities that kgpu was given opens it. Nothing was touched.",
		"name the file with the identity (AGE-SECRET-KEY-…) of one of its recipients: `kgpu restore FILE --identity KEYFILE`"},
	{BackupForeign, 228,
		"The archive is of another cluster than the inventory, or than the one that runs on its hosts. Nothing was touched.",
		"name the inventory of the archive's cluster; hosts that are to become that cluster leave theirs first: `kgpu reset`"},
	{RestoreUnfinished, 229,
		"A restore was begun on a control plane, and did not come to its end: its data may be the old one, the restored one, or none.",
		"run the same `kgpu restore` with the same archive again: it carries on where it stopped"},
	{Cancelled, 130,
		"The run was stopped, by Ctrl-C or by another run. What the hosts had begun goes on there to its end, and they were given nothing more.",
		"run the same command again: it carries on where it stopped"},
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

// Table returns every reason by exit status.
func Table() []Reason {
	return slices.SortedFunc(maps.Values(table), func(a, b Reason) int { return cmp.Compare(a.Exit, b.Exit) })
}
