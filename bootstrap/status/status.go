// Package status is what `kgpu status` knows of a cluster, and what of it is not well: facts and the API server's words,
// held against the inventory. It is pure: no clock, no network, no files. What hosts say in it is printable.
package status

import (
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Schema is the version of a Report as JSON: it grows when a field changes its meaning or goes.
const Schema = 1

// Report is a cluster at one moment. As JSON it is what bootstrap/schema/status.schema.json describes.
type Report struct {
	Schema     int         `json:"schema"`
	Time       time.Time   `json:"time"`
	Well       bool        `json:"well"` // there are no problems, and kgpu is not at work
	Cluster    Cluster     `json:"cluster"`
	Hosts      []Host      `json:"hosts"`      // the inventory's, in its order
	OtherNodes []OtherNode `json:"otherNodes"` // nodes that are none of these hosts
	Problems   []Problem   `json:"problems"`
}

// Cluster is what concerns all hosts.
type Cluster struct {
	Name       string     `json:"name"`
	Inventory  string     `json:"inventory"`  // path of the file
	Kubernetes string     `json:"kubernetes"` // version that the inventory wants
	API        API        `json:"api"`
	Network    Network    `json:"network"`
	DNS        *Workload  `json:"dns,omitempty"` // nil: unknown
	Cards      []Resource `json:"cards"`         // of all nodes together
	Waiting    Waiting    `json:"waiting"`
	AtWork     string     `json:"atWork,omitempty"` // who changes the cluster with kgpu now, since when, doing what; empty: nobody
}

// Waiting is which pods wait for a node with cards.
type Waiting struct {
	Count    int          `json:"count"`
	Pods     []WaitingPod `json:"pods"`     // the first of them
	Notebook bool         `json:"notebook"` // the notebook has a card meanwhile
}

// WaitingPod waits for a node with cards.
type WaitingPod struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Cards     map[string]int `json:"cards"` // by resource
	Why       string         `json:"why"`   // in the scheduler's words
}

// API is the API server.
type API struct {
	Answers bool   `json:"answers"`
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"` // why it is not known to answer
}

// Network is the pod network.
type Network struct {
	Name string    `json:"name"`           // the inventory's word
	Pods *Workload `json:"pods,omitempty"` // its DaemonSet; nil: unknown, or kgpu applies none
}

// Workload is a DaemonSet or Deployment.
type Workload struct {
	Name    string `json:"name"`
	Desired int    `json:"desired"`
	Ready   int    `json:"ready"`
}

// State is what the cluster says of a host's node.
type State string

// The states.
const (
	Ready    State = "ready"
	NotReady State = "not-ready"
	NoNode   State = "no-node"
	Unknown  State = "unknown" // nobody could be asked
)

// Host is a host of the inventory.
type Host struct {
	Host         string        `json:"host"` // the inventory's name, or its address: what other commands take
	Address      string        `json:"address"`
	Role         string        `json:"role"`
	Reached      bool          `json:"reached"` // over SSH, and it told what it is
	State        State         `json:"state"`
	Node         *Node         `json:"node,omitempty"` // nil: there is none, or it is unknown
	Versions     Versions      `json:"versions"`
	GPU          GPU           `json:"gpu"`
	Certificates []Certificate `json:"certificates"` // the one that ends first comes first
	Network      []NetworkPod  `json:"network"`
	Drift        Drift         `json:"drift"`
	AtWork       string        `json:"atWork,omitempty"` // step of a run of kgpu that goes on there now
}

// Node is a node object.
type Node struct {
	Name        string     `json:"name"`
	Since       *time.Time `json:"since,omitempty"` // it is in its state; nil: unknown
	Reason      string     `json:"reason,omitempty"`
	Message     string     `json:"message,omitempty"`
	Schedulable bool       `json:"schedulable"` // it takes new pods
}

// Versions are of what runs on a host. Empty: unknown, or not there.
type Versions struct {
	Kubelet string `json:"kubelet,omitempty"`
	Runtime string `json:"runtime,omitempty"` // containerd://1.7.24
	Kernel  string `json:"kernel,omitempty"`
	OS      string `json:"os,omitempty"`
}

// GPU is a host's cards, what drives them, and what pods have of them.
type GPU struct {
	Cards     []Card     `json:"cards"`
	Resources []Resource `json:"resources"` // that the node offers
	Pods      []Pod      `json:"pods"`      // that hold some of them
	Driver    Driver     `json:"driver"`
	Toolkit   string     `json:"toolkit,omitempty"` // version of the container toolkit that is installed
}

// Card is one on the PCI bus.
type Card struct {
	Address   string `json:"address"` // on the bus
	Name      string `json:"name"`
	UUID      string `json:"uuid,omitempty"` // empty: the driver does not see it
	MemoryMiB int    `json:"memoryMiB,omitempty"`
	Instances int    `json:"instances,omitempty"` // into which MIG cuts it
}

// Resource is something of NVIDIA's that pods ask for: nvidia.com/gpu, nvidia.com/mig-1g.5gb.
type Resource struct {
	Name        string `json:"name"`
	Capacity    int    `json:"capacity"`
	Allocatable int    `json:"allocatable"`
	InUse       int    `json:"inUse"`
}

// Pod holds cards.
type Pod struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Phase     string         `json:"phase"`
	Cards     map[string]int `json:"cards"` // by resource
}

// Driver is the versions of its parts. Empty: the part is not there.
type Driver struct {
	Loaded    string `json:"loaded,omitempty"`    // the kernel's module that runs
	Installed string `json:"installed,omitempty"` // the one that a boot would load
	Library   string `json:"library,omitempty"`
}

// Certificate is one of Kubernetes on a host.
type Certificate struct {
	Name string     `json:"name"` // whose it is: API server, kubelet, admin, CA…
	Path string     `json:"path"`
	Ends *time.Time `json:"ends,omitempty"` // nil: it cannot be read
	Days int        `json:"days"`           // whole ones until then; negative: it has ended
}

// NetworkPod is a pod that makes a host's network.
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

// Step is one of them.
type Step struct {
	Step   string `json:"step"`
	Title  string `json:"title"`
	Reason string `json:"reason"`
}

// OtherNode is a node that is none of the inventory's hosts.
type OtherNode struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	State   State  `json:"state"`
}

// Problem is something that is not well.
type Problem struct {
	Host   string    `json:"host,omitempty"`   // empty: the cluster
	Reason reason.ID `json:"reason,omitempty"` // for `kgpu explain`; empty: it has none
	Text   string    `json:"text"`             // one line
	Advice string    `json:"advice"`           // one line
}
