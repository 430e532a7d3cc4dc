// Package status makes the report of `kgpu status` from facts, the API server's answers and the inventory. It is pure:
// no clock, no network, no files. All text of hosts in the report is printable.
package status

import (
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Schema is the version of Report as JSON. It increases when a field is removed or changes its meaning.
const Schema = 1

// Report is the state of a cluster at one time. bootstrap/report/schema/status.schema.json describes it as JSON.
type Report struct {
	Schema     int         `json:"schema"`
	Time       time.Time   `json:"time"`
	Well       bool        `json:"well"` // there are no problems, and kgpu is not at work
	Cluster    Cluster     `json:"cluster"`
	Hosts      []Host      `json:"hosts"`      // in the inventory's order
	OtherNodes []OtherNode `json:"otherNodes"` // nodes of hosts that are not in the inventory
	Problems   []Problem   `json:"problems"`
}

// Cluster is what concerns all hosts.
type Cluster struct {
	Name       string     `json:"name"`
	Inventory  string     `json:"inventory"`  // the inventory's path
	Kubernetes string     `json:"kubernetes"` // the inventory's version
	API        API        `json:"api"`
	Network    Network    `json:"network"`
	DNS        *Workload  `json:"dns,omitempty"` // nil if unknown
	Cards      []Resource `json:"cards"`         // sum over all nodes
	Waiting    Waiting    `json:"waiting"`
	AtWork     string     `json:"atWork,omitempty"` // who changes the cluster with kgpu, since when and how; empty if nobody does
}

// Waiting is the pods that wait for a node with GPUs.
type Waiting struct {
	Count    int          `json:"count"`
	Pods     []WaitingPod `json:"pods"`     // the first ones
	Notebook bool         `json:"notebook"` // the notebook holds a GPU meanwhile
}

// WaitingPod is a pod that waits for a node with GPUs.
type WaitingPod struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Cards     map[string]int `json:"cards"` // requests, by resource
	Why       string         `json:"why"`   // in the scheduler's words
}

// API is the state of the API server.
type API struct {
	Answers bool   `json:"answers"`
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"` // why it is not known to answer
}

// Network is the pod network.
type Network struct {
	Name string    `json:"name"`           // the inventory's name for it
	Pods *Workload `json:"pods,omitempty"` // its DaemonSet; nil if unknown, or if kgpu does not install it
}

// Workload is a DaemonSet or Deployment.
type Workload struct {
	Name    string `json:"name"`
	Desired int    `json:"desired"`
	Ready   int    `json:"ready"`
}

// State is the state of a host's node.
type State string

const (
	Ready    State = "ready"
	NotReady State = "not-ready"
	NoNode   State = "no-node"
	Unknown  State = "unknown" // no API server could be asked
)

// Host is a host of the inventory.
type Host struct {
	Host         string        `json:"host"` // the inventory's name, or its address: the argument of other commands
	Address      string        `json:"address"`
	Role         string        `json:"role"`
	Reached      bool          `json:"reached"` // it answered over SSH
	State        State         `json:"state"`
	Node         *Node         `json:"node,omitempty"` // nil if there is none or it is unknown
	Versions     Versions      `json:"versions"`
	GPU          GPU           `json:"gpu"`
	Certificates []Certificate `json:"certificates"` // the one that expires first comes first
	Network      []NetworkPod  `json:"network"`
	Backups      *Backups      `json:"backups,omitempty"` // that it makes by itself; nil if it makes none
	Drift        Drift         `json:"drift"`
	AtWork       string        `json:"atWork,omitempty"` // current step of a run of kgpu on the host; empty if none
}

// Node is a node object.
type Node struct {
	Name        string     `json:"name"`
	Since       *time.Time `json:"since,omitempty"` // when it entered its state; nil if unknown
	Reason      string     `json:"reason,omitempty"`
	Message     string     `json:"message,omitempty"`
	Schedulable bool       `json:"schedulable"` // it is not cordoned
}

// Versions are of a host's software; empty if unknown or not installed.
type Versions struct {
	Kubelet string `json:"kubelet,omitempty"`
	Runtime string `json:"runtime,omitempty"` // containerd://1.7.24
	Kernel  string `json:"kernel,omitempty"`
	OS      string `json:"os,omitempty"`
}

// GPU is a host's cards, their driver, and their use by pods.
type GPU struct {
	Cards     []Card     `json:"cards"`
	Resources []Resource `json:"resources"` // offered by the node
	Pods      []Pod      `json:"pods"`      // pods that hold GPUs
	Driver    Driver     `json:"driver"`
	Toolkit   string     `json:"toolkit,omitempty"` // version of the installed container toolkit; empty if none
}

// Card is a card on the PCI bus.
type Card struct {
	Address   string `json:"address"` // PCI address
	Name      string `json:"name"`
	UUID      string `json:"uuid,omitempty"` // empty if the driver does not list it
	MemoryMiB int    `json:"memoryMiB,omitempty"`
	Instances int    `json:"instances,omitempty"` // number of its MIG instances
}

// Resource is an NVIDIA resource of nodes: nvidia.com/gpu, nvidia.com/mig-1g.5gb.
type Resource struct {
	Name        string `json:"name"`
	Capacity    int    `json:"capacity"`
	Allocatable int    `json:"allocatable"`
	InUse       int    `json:"inUse"`
}

// Pod is a pod that holds GPUs.
type Pod struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Phase     string         `json:"phase"`
	Cards     map[string]int `json:"cards"` // requests, by resource
}

// Driver is the versions of the driver's parts; empty if a part is missing.
type Driver struct {
	Loaded    string `json:"loaded,omitempty"`    // of the running kernel module
	Installed string `json:"installed,omitempty"` // of the kernel module that a boot would load
	Library   string `json:"library,omitempty"`
}

// Certificate is a certificate of Kubernetes on a host.
type Certificate struct {
	Name string     `json:"name"` // owner: API server, kubelet, admin, CA…
	Path string     `json:"path"`
	Ends *time.Time `json:"ends,omitempty"` // nil if it cannot be read
	Days int        `json:"days"`           // whole days until it expires; negative if it has
}

// Backups are those that a control plane makes by itself.
type Backups struct {
	Last    *time.Time `json:"last,omitempty"`    // when it made the last good one; nil if it made none
	Archive string     `json:"archive,omitempty"` // the last good one
	Failed  string     `json:"failed,omitempty"`  // why the last try failed; empty if it did not
}

// NetworkPod is a pod of a host's network.
type NetworkPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Ready     bool   `json:"ready"`
	Waiting   string `json:"waiting,omitempty"` // why it does not run
}

// Drift is what `kgpu up` would do to a host.
type Drift struct {
	Known   bool   `json:"known"`
	Pending []Step `json:"pending"`
}

// Step is a step that `kgpu up` would do.
type Step struct {
	Step   string `json:"step"`
	Title  string `json:"title"`
	Reason string `json:"reason"`
}

// OtherNode is a node of a host that is not in the inventory.
type OtherNode struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	State   State  `json:"state"`
}

// Problem is something that is wrong.
type Problem struct {
	Host   string    `json:"host,omitempty"`   // empty if it concerns the cluster
	Reason reason.ID `json:"reason,omitempty"` // for `kgpu explain`; may be empty
	Text   string    `json:"text"`             // one line
	Advice string    `json:"advice"`           // one line
}
