// Package facts is what a host is: the output of one script, parsed. It judges nothing.
package facts

import (
	"net/netip"
	"time"
)

// Host is what scripts/facts.sh found on one machine.
type Host struct {
	Hostname      string
	MachineID     string
	ProductUUID   string // empty where the firmware has none or it cannot be read
	BootID        string
	Virt          string // systemd-detect-virt: "none", "kvm", "lxc", …
	OS            OS
	Arch          string   // dpkg's word: amd64, arm64
	Kernel        string   // uname -r
	Kernels       []string // releases that are installed in /boot
	KernelHeaders bool     // of the kernel that runs, what modules are built with is there
	Systemd       bool     // PID 1 is systemd
	CgroupV2      bool     // /sys/fs/cgroup is the unified hierarchy
	LegacyRules   bool     // iptables is iptables-legacy
	CPUs          int
	MemoryKiB     int64
	Now           time.Time // the host's clock when the script started
	TimeSync      string    // active time service: chrony, systemd-timesyncd, ntp…; empty: none

	Addresses []Address
	Reached   netip.Addr              // by SSH, which the host does not tell; zero: unknown, behind a bastion
	Names     map[string][]netip.Addr // that the host may know API servers by → where they lead it; none: it does not resolve
	NodeIP    netip.Addr              // that the kubelet was given for its node; zero: none
	Resolvers map[string][]netip.Addr // file → the name servers in it, of ResolvConfs; nil: unknown
	Routes    []netip.Prefix          // destinations of the main table, without the default route
	Listening []Socket                // TCP sockets that accept connections
	Mounts    []Mount                 // the file systems that hold /, /var, /var/lib, /boot, /tmp
	// FileSystems are those of /, of the packages, of the kubelet and of images, each at the paths that it was looked at.
	FileSystems                []FileSystem
	DockerRoot, ContainerdRoot string // where they keep images; empty: it was not told
	Swap                       []Swap
	Modules                    map[string]ModuleState // of the modules kgpu may want
	ModulesOff                 map[string]string      // those that modprobe is told not to load, and where: FILE:LINE: words
	Sysctls                    map[string]string      // of the keys kgpu may set, current values

	Apt              Apt
	Packages         map[string]Package // installed, of those kgpu cares for
	RebootPending    bool
	Firewall         string             // active firewall: ufw, firewalld; empty: none
	Units            map[string]Unit    // of those kgpu cares for
	Outdated         []string           // units that run with what kgpu's files said before they changed
	Files            map[string]string  // path → hexadecimal SHA-256, of the files that kgpu writes (its ledger's)
	Keyrings         map[string]Keyring // path → what is in it, of those that kgpu made for apt
	DaemonJSON       []byte             // /etc/docker/daemon.json; nil: no such file
	ContainerdTOML   []byte             // /etc/containerd/config.toml; nil: no such file
	ContainerdLoaded map[string]string  // of `containerd config dump`: SystemdCgroup, sandbox, bin_dir, cri ("enabled"|"disabled"), nvidia ("runtime": the runtime is there); nil when containerd does not run
	DockerInfo       map[string]string  // of docker's own answer: version, cgroup-driver, cgroup-version, storage-driver, nvidia ("yes": the runtime is there); nil when dockerd does not answer
	Toolkit          map[string]string  // settings of NVIDIA's container toolkit that decide who gets cards: accept-nvidia-visible-devices-…, "true" or "false"
	CRIDockerd       string             // version of the installed cri-dockerd; empty: none
	Containerd       Containerd         // that the host would get, as it was asked for beside its facts; zero: it was not

	NVIDIA     NVIDIA
	Ways       []Way // to the driver that the host is to get, as it was asked for beside its facts; nil: it was not
	SecureBoot bool  // the firmware lets only signed kernels and modules run

	Shadows []string // paths of programs and units that are run instead of those of the same name that packages bring

	Foreign         []string      // other Kubernetes distributions of which there are signs: k3s, rke2, k0s, microk8s, minikube…
	ForeignPaths    []string      // the signs: directories, programs, uninstallers
	Kubelet         *Member       // nil: this host never joined a cluster
	ControlPlane    *ControlPlane // nil: no control plane here
	Cluster         *Cluster      // nil: no control plane here, or its API server did not answer
	Fence           int64         // the highest number of a hold on a cluster that kgpu has left here; 0: none
	Recorded        *Record       // what kgpu's ledger says of the host's membership; nil: nothing
	KubeadmFiles    []string      // paths that kubeadm writes and that are there: /etc/kubernetes/kubelet.conf…
	Etcd            *EtcdData     // nil: etcd has left nothing here
	PodNetwork      []string      // paths of CNI's configurations, and what flannel keeps below /run
	PodLinks        []string      // links that pod networks make: cni0, flannel.1, weave…
	Run             *Run          // a kgpu run that holds this host now; nil: none
	LockHolder      *LockHolder   // a kgpu that holds the cluster of this control plane now; nil: none
	StaleLock       bool          // one that was killed or cut off has left who it was
	Ledger          int           // number of changes recorded in the ledger
	Notes           bool          // there is what kgpu keeps for itself, the ledger or what its steps told
	NetworkUnproven bool          // pods of this control plane's cluster were to reach each other and its DNS, and that did not come to its end
	Unproven        bool          // a run has waited for cards of this control plane's cluster, and no proof of them came to its end since
}

// OS is /etc/os-release.
type OS struct{ ID, VersionID, Codename, PrettyName string }

// Address is an interface address.
type Address struct {
	Interface string
	Prefix    netip.Prefix
	MTU       int // of the interface, bytes; zero: unknown
}

// Socket is a listening TCP socket.
type Socket struct {
	Addr    netip.AddrPort
	Process string // name of the program, if known
}

// Mount is a file system seen at a path.
type Mount struct {
	Path              string
	AvailableKiB      int64
	InodesFreePercent int
	NoExec            bool // programs on it cannot be run
}

// FileSystem is one as the kubelet sees it.
type FileSystem struct {
	Path                  string // that is on it
	On                    string // where it is mounted
	AvailableKiB, SizeKiB int64  // size zero: unknown
	InodesFreePercent     float64
}

// Swap is an active swap space or one that would come back at boot.
type Swap struct {
	Name   string // /swap.img, /dev/zram0
	Active bool
	Source string // where it comes from: fstab, unit name, zram; empty: unknown
}

// ModuleState says where a kernel module is.
type ModuleState string

// The states of a module.
const (
	ModuleLoaded    ModuleState = "loaded"    // loaded, or built into the kernel
	ModuleAvailable ModuleState = "available" // modprobe can load it
	ModuleMissing   ModuleState = "missing"
	ModuleOff       ModuleState = "off" // it is there, and modprobe is told not to load it
)

// Loads reports whether a module in this state is in the kernel, or can come there.
func (s ModuleState) Loads() bool { return s == ModuleLoaded || s == ModuleAvailable }

// Apt is the state of the package manager.
type Apt struct {
	LockHolder string   // "unattended-upgr (pid 812)"; empty: free
	Broken     []string // packages that an interrupted dpkg left half done
}

// Keyring is a file with keys that sign package repositories.
type Keyring struct {
	Accepted time.Time // when apt last took what they sign, by the host's clock; long ago: it has not yet
	Keys     []Key     // nil: the host has no gpg that could tell
}

// Key is one that signs package repositories.
type Key struct {
	Fingerprint string
	Until       time.Time // when the last of its parts that can sign expires; zero: never
}

// Package is an installed package.
type Package struct {
	Version string
	Held    bool
}

// Unit is a systemd unit.
type Unit struct {
	Active  string // active, inactive, failed, activating
	Enabled string // enabled, disabled, masked, static; empty: no such unit
}

// Member is the kubelet's membership in a cluster.
type Member struct {
	Server   string // API server URL in kubelet.conf
	CAHash   string // hexadecimal SHA-256 of the cluster CA's public key (SubjectPublicKeyInfo), as kubeadm's discovery token hash; empty: the file has none
	NodeName string // common name of its client certificate, without system:node:
}

// Record is what kgpu did itself to make the host a member of a cluster, by its ledger.
type Record struct {
	Init, Join bool   // kubeadm init, kubeadm join was begun
	Done       bool   // and came to its end
	Adopted    bool   // the membership was made by hand, and kgpu was told to take it over
	CAHash     string // of the cluster; empty: the ledger does not say
	UID        string // of the node object; empty: the ledger does not say
}

// EtcdData is what is in etcd's directory.
type EtcdData struct {
	KiB     int64 // zero: the host could not tell in time
	Changed time.Time
}

// ControlPlane is what this host is as a control plane: what its files say, whether its API server answers or not.
type ControlPlane struct {
	CAHash          string
	AdminConfSHA256 string    // of /etc/kubernetes/admin.conf
	Finished        bool      // kubeadm init ran to its end, by kgpu's ledger
	Version         string    // v1.36.3
	Since           time.Time // when its certificate authority was made
	Endpoint        string    // host:port by which its administrator, and the nodes, know the API server; empty: unknown
	Advertised      string    // the address that its API server tells others
	Name            string    // that its controller manager has for the cluster; empty: unknown
	PodCIDR         string    // empty: it gives nodes no ranges
	ServiceCIDR     string
	EtcdMembers     []string // names of the members with which its etcd began
	Defences        Defences
}

// Cluster is what the cluster looks like, as an API server of it says.
type Cluster struct {
	Nodes     []Node
	Workloads map[string]Workload // "kube-system/daemonset/weave-net" → state, of all DaemonSets and Deployments
	Tokens    []string            // IDs (not secrets) of kgpu's bootstrap tokens still there
}

// Defences are flags of the API server, as its manifest has them, by which it defends the cluster; empty: they are not there.
type Defences struct {
	Plugins    string // --enable-admission-plugins
	Admission  string // --admission-control-config-file
	AuditLog   string // --audit-log-path
	Encryption string // --encryption-provider-config
}

// Workload is a DaemonSet or Deployment.
type Workload struct {
	Desired, Ready int    // pods; ready: for as long as the workload's minReadySeconds say
	Hash           string // of kgpu's manifest: annotation kgpu.dev/manifest-sha256
	Bridge         bool   // it is weave without the fast datapath: environment WEAVE_NO_FASTDP
}

// Run is a kgpu run that holds the host.
type Run struct {
	ID    string // name of the batch, to follow it by
	Unit  string
	Step  string // current step
	Since time.Time
	By    string // user@machine of the operator
}
