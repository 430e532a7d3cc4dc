// Package inventory is the one file a user writes: which machines, which cluster.
package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// Version is an exact Kubernetes version.
type Version = catalog.Version

// Pin says how much of a cluster's version the file fixes. What it leaves open, a running cluster decides by what it runs, and
// for a new one what the hosts' repositories have.
type Pin string

// The pins.
const (
	NotPinned   Pin = ""      // no version: any
	PinnedMinor Pin = "minor" // 1.36: any patch of it
	PinnedExact Pin = "exact" // 1.36.3
)

// Role says what a host is in the cluster.
type Role string

// The roles.
const (
	ControlPlane Role = "control-plane"
	Worker       Role = "worker"
)

// Runtime is the container runtime.
type Runtime string

// The container runtimes.
const (
	Docker     Runtime = "docker"
	Containerd Runtime = "containerd"
)

// Network is the pod network.
type Network string

// The pod networks.
const (
	Weave   Network = "weave"
	Flannel Network = "flannel"
	Calico  Network = "calico"
	None    Network = "none" // bring your own
)

// Swap says what kgpu does about swap space.
type Swap string

// What to do about swap.
const (
	SwapRefuse  Swap = "refuse"  // preflight fails while swap is on
	SwapDisable Swap = "disable" // kgpu turns it off; reset turns it on again
)

// HostKeyPolicy says how unknown SSH host keys are treated.
type HostKeyPolicy string

// The host key policies.
const (
	Strict    HostKeyPolicy = "strict"     // the key must be in known_hosts
	AcceptNew HostKeyPolicy = "accept-new" // unknown hosts are added; changed keys are refused
)

// Inventory is the decoded, defaulted and valid file: ranges are expanded, ssh settings are resolved per host.
type Inventory struct {
	Path    string // of the file
	Cluster string // name, default "kgpu"

	Kubernetes   Kubernetes
	Runtime      Runtime // default docker
	Network      Network // default weave
	Swap         Swap    // default refuse
	Proxy        Proxy
	GPU          GPU
	Notebook     Notebook
	Security     Security
	Backup       Backup
	Repositories Repositories
	Registry     string   // images.registry: pull every image from here; empty: upstream
	Ignore       []string // preflight.ignore: reason IDs
	Timeouts     Timeouts
	Hosts        []Host // in file order, ranges expanded

	environment []string          // variables whose values it has in it, but for secrets
	places      map[string]string // where the file says what, by the path of the key
}

// At is where the file says a key, such as kubernetes.version: file:line:column; empty: nowhere.
func (inv *Inventory) At(key string) string { return inv.places[key] }

// ControlPlanes are the hosts that are to be control planes, in the order of the file.
func (inv *Inventory) ControlPlanes() []Host {
	return slices.DeleteFunc(slices.Clone(inv.Hosts), func(h Host) bool { return !h.IsControlPlane() })
}

// Kubernetes is the cluster's version and settings.
type Kubernetes struct {
	Version        Version // exact; what the file leaves open is the catalog's, until the hosts have told what they can have
	Pin            Pin     // how much of it the file says
	AllowEndOfLife bool    // accept a version that is out of support

	PodCIDR              netip.Prefix // default 10.244.0.0/16
	ServiceCIDR          netip.Prefix // default 10.96.0.0/12
	ControlPlaneEndpoint string       // host:port; empty: kgpu sees to a name, or to the control plane's address
	VirtualIP            netip.Addr   // an address that moves to a control plane which works; zero: there is none
	FeatureGates         map[string]bool

	// Merged into what kgpu writes; the user's values win.
	KubeletConfiguration   map[string]any
	ClusterConfiguration   map[string]any
	KubeProxyConfiguration map[string]any
	IgnorePreflightErrors  []string // kubeadm's own checks
}

// Said is the version as far as the file fixes it: 1.36.3, or 1.36 where the patch, or all of it, is open.
func (k Kubernetes) Said() string {
	if k.Pin == PinnedExact {
		return k.Version.String()
	}
	return k.Version.MinorString()
}

// GPU says how the hosts' cards are used.
type GPU struct {
	Driver      Driver
	MIGStrategy MIGStrategy // default none
	TimeSlicing Sharing     // pods on one card take turns
	MPS         Sharing     // pods on one card run at the same time, by NVIDIA's Multi-Process Service
	CUDA        string      // version of the toolkit on hosts with cards; catalog.NoCUDA; empty: the newest that the driver is made for
	CUDNN       bool        // with the toolkit, default true
}

// Driver overrides what kgpu chooses for the cards it finds. Empty fields are its choice.
type Driver struct {
	Source  catalog.DriverSource
	Branch  int
	Flavour catalog.Flavour
}

// Proxy is for hosts that reach the internet through one.
type Proxy struct {
	HTTP, HTTPS string
	NoProxy     []string // added to what kgpu computes
}

// Repository is a package repository or mirror. Empty fields take the catalog's values.
type Repository struct {
	URL         string // base URL
	KeyURL      string // where the signing key is; default from the catalog, or <URL>/Release.key
	Fingerprint string // of the signing key: 40 hexadecimal digits, upper case, no spaces
}

// Artifact is a download that is checked by its SHA-256.
type Artifact struct {
	URL    string
	SHA256 string
}

// Repositories overrides where things come from.
type Repositories struct {
	Kubernetes Repository
	Docker     Repository
	CUDA       Repository // NVIDIA's, of drivers and CUDA; the base URL of one distribution and architecture
	Toolkit    Repository // of the NVIDIA container toolkit
	// GraphicsDrivers is the PPA of that name.
	GraphicsDrivers Repository
	CRIDockerd      Artifact
	Calico          Artifact
}

// Host is one machine.
type Host struct {
	Name           string     // node name; empty: the machine's own host name
	Address        string     // where SSH connects to: an IP address or a DNS name; unique
	PrivateAddress netip.Addr // the node's address inside the cluster; zero: the address SSH reached
	Role           Role
	Labels         map[string]string
	Taints         []Taint
	SSH            SSH
	Line           int // where the file names it

	path string // of its entry: hosts[0], which a range shares
}

// IsControlPlane reports whether the host is to be a control plane. All others are workers.
func (h Host) IsControlPlane() bool { return h.Role == ControlPlane }

// Path is that of a key of the host, as At takes it.
func (h Host) Path(key string) string { return join(h.path, key) }

// ID is how kgpu names the host in output: its name when the file gives one, else its address.
func (h Host) ID() string {
	if h.Name != "" {
		return h.Name
	}
	return h.Address
}

// Taint is a node taint, written key=value:Effect in the file.
type Taint struct{ Key, Value, Effect string }

// String is key=value:Effect, or key:Effect without a value.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// SSH is how to reach a host; the file's `ssh:` section gives defaults that each host may override.
type SSH struct {
	User          string // empty: what ssh_config says, else root
	Port          int    // zero: what ssh_config says, else 22
	Key           string // path of a private key; ~ is expanded; empty: agent, then the usual ~/.ssh/id_* files
	Passphrase    Secret // of the key
	Agent         bool   // ask the SSH agent; default true
	KnownHosts    string // path; empty: what ssh_config says, else ~/.ssh/known_hosts
	HostKeyPolicy HostKeyPolicy
	HostKey       string // pinned: "ssh-ed25519 AAAA…"; wins over known_hosts
	SudoPassword  Secret // empty: sudo must not ask
	Bastion       *Bastion
}

// Bastion is an SSH server on the way to a host; its own SSH may have a bastion again.
type Bastion struct {
	Address string
	SSH     SSH
}

// Timeouts are how long kgpu waits each time for what passes by itself.
type Timeouts struct {
	Link      time.Duration // for a host that is cut off; default 10m
	Reboot    time.Duration // for a host that goes down and comes back; default 15m
	Lock      time.Duration // for the package manager's locks; default 30m
	Transient time.Duration // the pauses between the tries of a step; default 5m
}

// DefaultTimeouts are those of an inventory that names none.
func DefaultTimeouts() Timeouts {
	return Timeouts{Link: 10 * time.Minute, Reboot: 15 * time.Minute, Lock: 30 * time.Minute, Transient: 5 * time.Minute}
}

// maxTimeout bounds a typing error: nobody looks at a run that has waited for a day.
const maxTimeout = 24 * time.Hour

func timeoutsKeys() keys[Timeouts] {
	return keys[Timeouts]{
		"link":      rawValue(func(t *Timeouts) *time.Duration { return &t.Link }, timeout),
		"reboot":    rawValue(func(t *Timeouts) *time.Duration { return &t.Reboot }, timeout),
		"lock":      rawValue(func(t *Timeouts) *time.Duration { return &t.Lock }, timeout),
		"transient": rawValue(func(t *Timeouts) *time.Duration { return &t.Transient }, timeout),
	}
}

func timeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s is not a time such as 90s, 10m or 1h30m", shown(s))
	case d <= 0 || d > maxTimeout:
		return 0, fmt.Errorf("must be more than 0s and at most 24h, is %s", s)
	}
	return d, nil
}
