// Package facts is what is known of a host: the parsed output of scripts/facts.sh. It judges nothing.
package facts

import (
	"net/netip"
	"time"
)

// Host is what scripts/facts.sh found on one machine.
type Host struct {
	Hostname      string
	MachineID     string
	ProductUUID   string // empty if the firmware has none or it cannot be read
	BootID        string
	Virt          string // systemd-detect-virt: "none", "kvm", "lxc", …
	OS            OS
	Arch          string   // dpkg's architecture: amd64, arm64
	Kernel        string   // uname -r
	Kernels       []string // installed releases, from /boot
	KernelHeaders bool     // the headers of the running kernel are installed
	Systemd       bool     // PID 1 is systemd
	CgroupV2      bool     // /sys/fs/cgroup is the unified hierarchy
	LegacyRules   bool     // iptables is iptables-legacy
	CPUs          int
	MemoryKiB     int64
	Now           time.Time // the host's clock when the script started
	TimeSync      string    // active time service: chrony, systemd-timesyncd, ntp…; empty if none

	Addresses []Address
	Reached   netip.Addr              // the address that SSH connected to, set by kgpu; zero if unknown, as behind a bastion
	Names     map[string][]netip.Addr // API server names → the addresses they resolve to; one that is missing does not resolve
	NodeIP    netip.Addr              // the kubelet's --node-ip; zero if none
	Resolvers map[string][]netip.Addr // file of ResolvConfs → its name servers; nil if unknown
	Routes    []netip.Prefix          // destinations in the main table, without the default route
	Listening []Socket                // listening TCP sockets
	// FileSystems has an entry for each path that holds packages, the kubelet's data or images, and for /, /boot and /tmp.
	FileSystems                []FileSystem
	DockerRoot, ContainerdRoot string // directories of their images; empty if unknown
	Swap                       []Swap
	Modules                    map[string]ModuleState // of the modules that kgpu may load
	ModulesOff                 map[string]string      // modules that modprobe is told not to load → FILE:LINE: TEXT
	Sysctls                    map[string]string      // current values of the keys that kgpu may set

	Apt            Apt
	Packages       map[string]Package // the installed ones of those that kgpu looks for
	RebootPending  bool
	Firewall       string             // active firewall: ufw, firewalld; empty if none
	Units          map[string]Unit    // of those that kgpu looks for
	OutdatedUnits  []string           // units that still run with older versions of kgpu's files
	Files          map[string]string  // path → hexadecimal SHA-256, of the files that kgpu's ledger has
	Keyrings       map[string]Keyring // path → keys, of kgpu's keyrings for apt
	DaemonJSON     []byte             // /etc/docker/daemon.json; nil if there is none
	ContainerdTOML []byte             // /etc/containerd/config.toml; nil if there is none
	// ContainerdLoaded is from `containerd config dump`; nil if containerd does not run. Keys: SystemdCgroup, sandbox,
	// bin_dir, cri (enabled or disabled), nvidia ("runtime" if that runtime is configured).
	ContainerdLoaded map[string]string
	// DockerInfo is dockerd's answer; nil if it does not answer. Keys: version, cgroup-driver, cgroup-version,
	// storage-driver, nvidia ("yes" if that runtime is configured).
	DockerInfo map[string]string
	// Toolkit has those settings of NVIDIA's container toolkit that decide who gets GPUs:
	// accept-nvidia-visible-devices-…, "true" or "false".
	Toolkit    map[string]string
	CRIDockerd string     // version of the installed cri-dockerd; empty if none
	Containerd Containerd // the one that apt would install; zero if the host was not asked

	NVIDIA     NVIDIA
	Ways       []Way // ways to get the chosen driver, see Way; nil if the host was not asked
	SecureBoot bool  // Secure Boot: the firmware starts only signed kernels and modules

	Certificates []Certificate // of Kubernetes, by their paths
	RenewalBegun bool          // a renewal of the control plane's certificates was cut off before it was whole
	StalePods    []string      // static pods that run with certificates which were renewed since they started

	OtherKeepalived bool // keepalived has a configuration that is not kgpu's

	Shadows []string // programs and units that take precedence over those of the same name in packages

	OtherDistributions []string      // other Kubernetes distributions with traces on the host: k3s, rke2, k0s, microk8s, minikube…
	DistributionPaths  []string      // the traces: directories, programs, uninstallers
	Kubelet            *Member       // nil if this host never joined a cluster
	ControlPlane       *ControlPlane // nil if this host has no control plane
	Cluster            *Cluster      // nil if this host has no control plane, or its API server did not answer
	Fence              int64         // the highest fencing number of a cluster lock that kgpu left here; zero if none
	Recorded           *Record       // what kgpu's ledger says of the membership; nil if nothing
	KubeadmFiles       []string      // existing files of kubeadm: /etc/kubernetes/kubelet.conf…
	Etcd               *EtcdData     // nil if there is no data of etcd
	PodNetworkFiles    []string      // paths of CNI configurations, and flannel's files below /run
	PodLinks           []string      // network links of pod networks: cni0, flannel.1, weave…
	Run                *Run          // the kgpu run that is at work on this host; nil if none
	LockHolder         *LockHolder   // the kgpu that holds the cluster's lock on this control plane; nil if none
	StaleLock          bool          // a killed or disconnected kgpu left its name in the lock's file
	Restoring          *Restoring    // a restore that was begun on this host and has not ended; nil if there is none
	Backups            *Backups      // that this host makes by itself; nil if none
	Ledger             int           // number of changes in the ledger
	HasState           bool          // kgpu's directory has more than the lock: the ledger, or what steps wrote
	// NetworkUnproven means that a test of the pod network and the cluster's DNS was begun and not finished. It is a
	// control plane's.
	NetworkUnproven bool
	// Upgrading is what of the host an upgrade of Kubernetes has begun to change and not finished: machine.UpgradingPlane or
	// machine.UpgradingNode; empty if nothing.
	Upgrading string
	// Busy are pods of the host's node that hold GPUs and are not to be disturbed; no script prints them.
	Busy []string
	// Unproven means that a run waited for GPUs of the cluster and no proof of them has finished since. It is a control
	// plane's.
	Unproven bool
}

// Backups are those that a control plane makes by itself.
type Backups struct {
	Since   time.Time // when kgpu set them up
	Good    time.Time // the last one that was made; zero if none was
	Archive string    // its file
	Gone    bool      // that file cannot be found
	Failed  time.Time // when the last try failed; zero if it did not, or if it could not write that down
	Why     string    // it failed, in the host's words; empty if it did not
}

// OS is /etc/os-release.
type OS struct{ ID, VersionID, Codename, PrettyName string }

// Address is an interface address.
type Address struct {
	Interface string
	Prefix    netip.Prefix
	MTU       int // bytes; zero if unknown
}

// Socket is a listening TCP socket.
type Socket struct {
	Addr    netip.AddrPort
	Process string // name of the program, if known
}

// FileSystem is a file system as the kubelet sees it.
type FileSystem struct {
	Path                  string // a path on it
	On                    string // its mount point
	AvailableKiB, SizeKiB int64  // SizeKiB is zero if unknown
	InodesFreePercent     float64
	NoExec                bool // programs on it cannot be run
}

// Swap is an active swap space, or one that the next boot would activate.
type Swap struct {
	Name   string // /swap.img, /dev/zram0
	Active bool
	Source string // fstab, a unit's name or zram; empty if unknown
}

// ModuleState says whether a kernel module is loaded or can be.
type ModuleState string

// The states of a module.
const (
	ModuleLoaded    ModuleState = "loaded"    // loaded, or built into the kernel
	ModuleAvailable ModuleState = "available" // modprobe can load it
	ModuleMissing   ModuleState = "missing"
	ModuleOff       ModuleState = "off" // it exists, and modprobe is told not to load it
)

// Loads reports whether a module is loaded or can be loaded.
func (s ModuleState) Loads() bool { return s == ModuleLoaded || s == ModuleAvailable }

// Apt is the state of the package manager.
type Apt struct {
	LockHolder string   // process that holds its lock: "unattended-upgr (pid 812)"; empty if none
	Broken     []string // packages that an interrupted dpkg left half installed
	Unsettled  bool     // the host went down while packages were installed: they may lack files
}

// Keyring is a file with the keys of package repositories.
type Keyring struct {
	Accepted time.Time // when apt last accepted a signature by them, by the host's clock; very old if it never did
	Keys     []Key     // nil if the host has no gpg
}

// Key is a key that signs a package repository.
type Key struct {
	Fingerprint string
	Until       time.Time // when its last signing subkey expires; zero if never
}

// Package is an installed package.
type Package struct {
	Version string
	Held    bool
}

// Unit is a systemd unit.
type Unit struct {
	Active  string // active, inactive, failed, activating
	Enabled string // enabled, disabled, masked, static; empty if there is no such unit
}

// Member is the kubelet's membership in a cluster.
type Member struct {
	Server string // API server URL in kubelet.conf
	// CAHash is the hexadecimal SHA-256 of the cluster CA's public key (SubjectPublicKeyInfo), as in kubeadm's
	// discovery token hash. It is empty if the file has no CA.
	CAHash   string
	NodeName string // common name of the kubelet's client certificate, without system:node:
}

// Record is what the ledger says of kgpu's own work on the host's membership.
type Record struct {
	Init, Join bool   // kubeadm init or kubeadm join was begun
	Plane      bool   // that join was one of a control plane
	Done       bool   // and it finished
	Adopted    bool   // the membership was made by hand, and kgpu adopted it
	CAHash     string // of the cluster's CA; empty if the ledger has none
	UID        string // of the node object; empty if the ledger has none
}

// Restoring is a restore of a backup that has not ended.
type Restoring struct {
	Archive string // its sum
	Done    bool   // the control plane has the data already
	Token   string // of the etcd that has the data; empty: it is not told
	Peers   string // the members of that etcd, as etcd takes them
}

// EtcdData describes etcd's data directory.
type EtcdData struct {
	KiB     int64 // its size; zero if the host could not measure it in time
	Changed time.Time
}

// ControlPlane is the control plane on this host, read from its files whether or not its API server answers.
type ControlPlane struct {
	CAHash          string
	AdminConfSHA256 string    // of /etc/kubernetes/admin.conf
	Finished        bool      // kubeadm init, or kubeadm join, finished, by kgpu's ledger
	Version         string    // v1.36.3
	Since           time.Time // when its CA was made
	Endpoint        string    // host:port by which admin.conf and the nodes reach the API server; empty if unknown
	Advertised      string    // the API server's --advertise-address
	Name            string    // the controller manager's --cluster-name; empty if unknown
	PodCIDR         string    // empty if it assigns no pod ranges to nodes
	ServiceCIDR     string
	EtcdMembers     []string // initial members of its etcd, by name
	Etcd            string   // version of its etcd, by the tag of its image: 3.6.8-0; empty if unknown
	Defences        Defences
	Served          string // SHA-256 of the certificate that its API server shows; empty if unknown, or if it is not kubeadm's
}

// Cluster is the state of the cluster as one of its API servers gave it.
type Cluster struct {
	Nodes     []Node
	Workloads map[string]Workload // of all DaemonSets and Deployments: "kube-system/daemonset/weave-net" → its state
	Tokens    []string            // IDs (not secrets) of kgpu's bootstrap tokens that still exist
}

// Defences are flags of the API server, from its manifest, that protect the cluster; empty if they are not set.
type Defences struct {
	Plugins    string // --enable-admission-plugins
	Admission  string // --admission-control-config-file
	AuditLog   string // --audit-log-path
	Encryption string // --encryption-provider-config
}

// Workload is a DaemonSet or Deployment.
type Workload struct {
	Desired, Ready int    // numbers of pods; a pod is ready only after the workload's minReadySeconds
	Hash           string // of kgpu's manifest, from the annotation kgpu.dev/manifest-sha256
	Bridge         bool   // weave without the fast datapath: environment WEAVE_NO_FASTDP
}

// Run is a run of kgpu that is at work on the host.
type Run struct {
	ID    string // ID of its batch, by which kgpu can attach
	Unit  string
	Step  string // the current step
	Since time.Time
	By    string // user@machine of the operator
}
