package doctor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// Evidence is the parsed output of scripts/doctor.sh on one machine. It judges nothing.
type Evidence struct {
	KernelLog   []string // lines of this boot about GPUs, memory, disks and AppArmor
	DeviceNodes []string // /dev/nvidia0, …
	Switches    int      // number of NVSwitches that the driver has
	Asked       bool     // nvidia-smi was run
	SMI         int      // its exit status; 124 if it hangs
	SMIOutput   []string // its output besides the list of GPUs
	Cards       []Card   // its list of GPUs
	MIG         []MIG
	Stuck       []string // "PID NAME" of tasks that are stuck in the kernel
	Kernels     []Kernel
	DKMS        []string // lines of `dkms status nvidia`
	KernelGCC   string   // major version of the compiler that built the kernel; empty if DKMS compiles nothing here
	GCC         string   // major version of the installed compiler
	Units       map[string]Unit

	ContainerdStray []string          // drop-ins in a folder that containerd does not read
	NVIDIACgroup    string            // loaded SystemdCgroup of containerd's runtime nvidia: true, false; empty if not set
	DefaultRuntime  string            // containerd's default runtime, as loaded
	CDI             map[string]string // specification → driver version in it
	KubeletCgroup   string            // cgroupDriver in the kubelet's configuration

	Sources        []Source // apt's sources, those that kgpu knows
	AptRefuses     string   // apt's error if it refuses all of its sources; else empty
	HoldsLost      []string // packages that kgpu held and that are not held any more
	DriverUpgraded string   // when and by what the driver was last upgraded; empty if unknown

	Disks map[string]int // mount point → used space in per cent
	Rules map[string]int // backend of iptables → number of Kubernetes' rules in it

	PodNetwork facts.PodNetwork

	ControlPlane bool
	Cluster      *Cluster // the API server's answer; nil if there is no control plane or no answer
}

// Card is a GPU in nvidia-smi's list.
type Card struct {
	Address    string // 00000000:17:00.0
	Persistent bool   // persistence mode is on
}

// MIG is the MIG mode of a GPU that supports it.
type MIG struct{ Address, Current, Pending string } // Enabled, Disabled

// Kernel is an installed kernel.
type Kernel struct {
	Release                  string
	Module, Headers, Running bool // it has the driver's module, headers to build one, and is running
}

// Unit is the state of an existing systemd unit.
type Unit struct {
	State    string // active, inactive, failed, activating
	Result   string // systemd's result: exit-code, start-limit-hit, …
	Restarts int
	Log      []string // its last log lines, if it is not running well
}

// Source is a package repository as a file of apt names it.
type Source struct{ File, URL, SignedBy string }

// Cluster is the API server's answer.
type Cluster struct {
	Nodes     []facts.Node
	Pods      []Pod // of the device plugin
	Waiting   []facts.WaitingPod
	Events    []Event
	PluginLog []string // log lines: "[pod/NAME/CONTAINER] TEXT"
	WeaveLog  []string
	WeavePods map[string]string // pod → its node
}

// Pod is a pod of the device plugin.
type Pod struct {
	Node, Name, Phase string
	Waiting           string // why a container of it waits; empty if none does
}

// Event is a warning event of the cluster.
type Event struct {
	Time                          time.Time
	Node, Reason, Object, Message string
}

// maxLine is how many bytes of a line are kept.
const maxLine = 600

// ParseEvidence parses the output of scripts/doctor.sh and skips unknown keys. The error is facts.ErrTruncated, or
// names the line that cannot be read.
func ParseEvidence(output []byte) (*Evidence, error) {
	a, err := facts.Lines(output, "kgpu-doctor=1")
	if err != nil {
		return nil, err
	}
	e := &Evidence{
		KernelLog: short(a["kernel-log"]), DeviceNodes: short(a["device-node"]), Switches: len(a["nvswitch"]), SMIOutput: short(a["card-said"]),
		Stuck: short(a["stuck"]), DKMS: short(a["dkms"]), ContainerdStray: short(a["containerd-stray"]), HoldsLost: short(a["hold-lost"]),
		NVIDIACgroup: first(a["nvidia-cgroup"]), DefaultRuntime: first(a["default-runtime"]), KubeletCgroup: first(a["kubelet-cgroup"]),
		DriverUpgraded: first(a["driver-upgraded"]), AptRefuses: first(a["apt-refuses"]), ControlPlane: len(a["control-plane"]) > 0, Asked: len(a["card-status"]) > 0,
		PodNetwork: facts.ParsePodNetwork(a), Units: map[string]Unit{}, CDI: map[string]string{}, Disks: map[string]int{}, Rules: map[string]int{},
	}
	if e.Asked {
		if e.SMI, err = number("card-status", first(a["card-status"])); err != nil {
			return nil, err
		}
	}
	for _, parse := range []func(map[string][]string, *Evidence) error{parseWords, units, cluster} {
		if err := parse(a, e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func short(lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, printable.Short(line, maxLine))
	}
	return out
}

func first(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return printable.Short(lines[0], maxLine)
}

// bad is the error of a value that cannot be read.
func bad(key, value string) error {
	return fmt.Errorf("the host's answer: %s=%s cannot be read", key, printable.Short(value, 200))
}

func number(key, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, bad(key, value)
	}
	return n, nil
}

// parseWords reads the values that consist of words.
func parseWords(a map[string][]string, e *Evidence) error {
	for _, line := range short(a["card"]) {
		f := strings.Split(line, ", ")
		e.Cards = append(e.Cards, Card{Address: f[0], Persistent: len(f) < 2 || f[1] != "Disabled"})
	}
	for _, line := range short(a["mig"]) {
		if f := strings.Split(line, ", "); len(f) == 3 && f[1] != "[N/A]" {
			e.MIG = append(e.MIG, MIG{f[0], f[1], f[2]})
		}
	}
	for _, line := range short(a["kernel"]) {
		f := strings.Fields(line)
		if len(f) < 3 {
			return bad("kernel", line)
		}
		e.Kernels = append(e.Kernels, Kernel{Release: f[0], Module: f[1] == "yes", Headers: f[2] == "yes", Running: len(f) > 3})
	}
	if f := strings.Fields(first(a["compiler"])); len(f) == 2 {
		e.KernelGCC, e.GCC = f[0], f[1]
	}
	for _, line := range short(a["cdi"]) {
		if file, version, ok := strings.Cut(line, " "); ok {
			e.CDI[file] = strings.TrimRight(version, ".")
		}
	}
	for _, line := range short(a["apt-source"]) {
		f := strings.Split(line, "\t")
		if len(f) < 2 {
			return bad("apt-source", line)
		}
		s := Source{File: f[0], URL: f[1]}
		if len(f) > 2 {
			s.SignedBy = f[2]
		}
		e.Sources = append(e.Sources, s)
	}
	for key, into := range map[string]map[string]int{"disk": e.Disks, "kubernetes-rules": e.Rules} {
		for _, line := range short(a[key]) {
			name, value, _ := strings.Cut(line, " ")
			n, err := number(key, value)
			if err != nil {
				return err
			}
			into[name] = n
		}
	}
	return nil
}

// units reads lines "NAME STATE RESULT RESTARTS FILE-STATE", and "NAME TEXT" of logs.
func units(a map[string][]string, e *Evidence) error {
	for _, line := range short(a["unit"]) {
		f := strings.Fields(line)
		if len(f) != 5 {
			return bad("unit", line)
		}
		restarts, err := number("unit", f[3])
		if err != nil {
			return err
		}
		e.Units[f[0]] = Unit{State: f[1], Result: f[2], Restarts: restarts}
	}
	for _, line := range short(a["unit-said"]) {
		name, words, _ := strings.Cut(line, " ")
		if u, ok := e.Units[name]; ok {
			u.Log = append(u.Log, words)
			e.Units[name] = u
		}
	}
	return nil
}

// cluster reads a control plane's lines, whose fields are separated by tabs.
func cluster(a map[string][]string, e *Evidence) error {
	if len(a["api"]) == 0 {
		return nil
	}
	c := &Cluster{PluginLog: short(a["plugin-said"]), WeaveLog: short(a["weave-said"]), WeavePods: map[string]string{}}
	e.Cluster = c
	for _, line := range a["node"] {
		n, ok := facts.ParseNode(strings.Split(line, "\t"))
		if !ok {
			return bad("node", line)
		}
		c.Nodes = append(c.Nodes, n)
	}
	for _, line := range a["pod"] {
		f := fields(line, 5)
		if f == nil {
			return bad("pod", line)
		}
		c.Pods = append(c.Pods, Pod{Node: f[1], Name: f[2], Phase: f[3], Waiting: inLine(strings.TrimSpace(f[4]))})
	}
	for _, line := range a["waiting-pod"] {
		f := fields(line, 2)
		if p, ok := facts.ParseWaitingPod(f[min(1, len(f)):]); ok {
			c.Waiting = append(c.Waiting, p)
		}
	}
	for _, line := range short(a["waiting-said"]) {
		pod, said, _ := strings.Cut(line, " ")
		for i, p := range c.Waiting {
			if pod == p.Namespace+"/"+p.Name {
				c.Waiting[i].LogEnd = said
			}
		}
	}
	for _, line := range short(a["weave-pod"]) {
		if name, node, ok := strings.Cut(line, " "); ok {
			c.WeavePods[name] = node
		}
	}
	for _, line := range a["event"] {
		f := fields(line, 6)
		if f == nil {
			return bad("event", line)
		}
		at, err := time.Parse(time.RFC3339, f[1])
		if err != nil {
			continue // it has no time
		}
		c.Events = append(c.Events, Event{Time: at, Node: f[2], Reason: f[3], Object: f[4], Message: inLine(f[5])})
	}
	return nil
}

// inLine is facts.InLine with a limit.
func inLine(escaped string) string {
	return printable.Short(facts.InLine(escaped), 4*maxLine)
}

// fields splits a line at tabs and adds missing empty fields at its end. It returns nil if more than half are missing.
func fields(line string, want int) []string {
	f := strings.Split(printable.Short(line, 4*maxLine), "\t")
	if len(f) < want/2 {
		return nil
	}
	for len(f) < want {
		f = append(f, "")
	}
	return f
}
