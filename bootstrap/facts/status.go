package facts

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// Status is what scripts/status.sh found: the state of a cluster that changes on its own.
type Status struct {
	API *API // nil if this host has no control plane
	PodNetwork
}

// PodNetwork is what a host reached over the pod network.
type PodNetwork struct {
	PodSubnet netip.Prefix // of the host's pods; zero if unknown
	Peer, DNS Probe        // another host's address in the pod network, and the cluster's DNS
}

// ParsePodNetwork reads the output of scripts/lib/pod-network.sh.
func ParsePodNetwork(a map[string][]string) PodNetwork {
	w := PodNetwork{Peer: probe(answer(a).first("pod-peer")), DNS: probe(answer(a).first("dns"))}
	w.PodSubnet, _ = netip.ParsePrefix(answer(a).first("pod-subnet")) // zero if invalid
	return w
}

// Probe is an address that a host tried to reach; zero if it tried none.
type Probe struct {
	Address netip.Addr
	Silent  bool // no answer came
}

func probe(line string) Probe {
	address, found, _ := strings.Cut(line, " ")
	at, err := netip.ParseAddr(address)
	if err != nil {
		return Probe{}
	}
	return Probe{at, found == "silent"}
}

// API is the cluster's state as a host's API server gave it.
type API struct {
	Answers bool
	Version string // such as v1.36.3; empty if unknown
	Error   string // kubectl's last line, if the API server does not answer
	Nodes   []Node
	Pods    []Pod // those with GPUs, and those of the pod network
	Waiting []WaitingPod

	UnscheduledGPUPods int // number of pods that wait for a node with GPUs, if Pods has only some of them; else zero
}

// Pod is a pod, scheduled or not.
type Pod struct {
	Namespace, Name string
	Node            string // empty if not scheduled
	Phase           string // Pending, Running, Succeeded, Failed, Unknown
	Ready           bool
	Waiting         string         // why a container of it waits, such as CrashLoopBackOff; empty if none does
	Requests        map[string]int // the GPUs it requests, by resource; nil if none
	Scheduler       string         // why it cannot be scheduled; empty if it can, or if the scheduler has not said
}

// ParseStatus reads the output of scripts/status.sh. It skips unknown keys and unreadable fields, as versions of
// Kubernetes differ.
func ParseStatus(output []byte) (*Status, error) {
	a, err := split(output, "kgpu-status=1")
	if err != nil {
		return nil, err
	}
	s := &Status{PodNetwork: ParsePodNetwork(a)}
	if a.has("control-plane") {
		s.API = &API{Answers: a.has("api"), Version: a.first("api-version"), Error: a.first("api-error")}
	}
	for _, line := range a["cluster"] {
		if s.API == nil {
			return nil, bad("cluster", line, errors.New("of a host that is no control plane"))
		}
		if err := s.API.object(strings.Split(line, "\t")); err != nil {
			return nil, bad("cluster", line, err)
		}
	}
	return s, nil
}

// object parses a line of status.sh's template for kubectl.
func (api *API) object(f []string) error {
	switch f[0] {
	case "node":
		n, ok := ParseNode(f)
		if !ok {
			return errors.New("no name")
		}
		api.Nodes = append(api.Nodes, n)
		return nil
	case "waits":
		p, ok := ParseWaitingPod(f[1:])
		if !ok {
			return errors.New("no name")
		}
		api.Waiting = append(api.Waiting, p)
		return nil
	}
	fields := make([]string, 10)
	for i := range min(len(f), len(fields)) { // trailing empty fields are trimmed
		fields[i] = unescaped(f[i])
	}
	f = fields
	switch f[0] {
	case "waiting":
		api.UnscheduledGPUPods, _ = Quantity(f[1]) // zero if invalid
	case "pod":
		if f[1] == "" || f[2] == "" {
			return errors.New("no name")
		}
		api.Pods = append(api.Pods, Pod{
			Namespace: f[1], Name: f[2], Node: f[3], Phase: f[4], Ready: f[5] == "True", Requests: podRequest(amounts(f[6]), largest(f[7])), Waiting: firstWord(f[8]), Scheduler: f[9],
		})
	}
	return nil
}

// podRequest is the request of a pod: its containers run together, after its init containers have run one by one.
func podRequest(together, before map[string]int) map[string]int {
	for what, n := range before {
		put(&together, what, max(together[what], n))
	}
	return together
}

// WaitingPod is a pod in one of the cluster's own namespaces that is not scheduled, or has a waiting container.
type WaitingPod struct {
	Namespace, Name string
	Node            string    // empty if not scheduled
	NotReady        time.Time // since when it is not ready; zero if unknown
	Unscheduled     time.Time // since when it cannot be scheduled; zero if it is
	Scheduler       string    // why it cannot be scheduled
	Containers      []WaitingContainer
	LogEnd          string // last log line of a container that keeps crashing; empty if its log was not read
}

// WaitingContainer is a container that does not run, in the kubelet's words.
type WaitingContainer struct{ Name, Reason, Message string }

// maxWaiting is how many containers of a pod are kept.
const maxWaiting = 20

// ParseWaitingPod parses a line of the templates of status.sh and doctor.sh, without its first word. ok is false if it
// names no pod.
func ParseWaitingPod(fields []string) (p WaitingPod, ok bool) {
	const before = 6 // fields before the containers
	f := make([]string, max(len(fields), before))
	for i, field := range fields {
		f[i] = unescaped(field)
	}
	p = WaitingPod{Namespace: f[0], Name: f[1], Node: f[2], NotReady: parseTime(f[3]), Unscheduled: parseTime(f[4]), Scheduler: f[5]}
	for _, words := range f[before:min(len(f), before+maxWaiting)] {
		name, rest, _ := strings.Cut(words, " ")
		why, message, _ := strings.Cut(rest, " ")
		p.Containers = append(p.Containers, WaitingContainer{name, why, strings.TrimSpace(message)})
	}
	return p, p.Namespace != "" && p.Name != ""
}

// parseTime parses a time; zero if it is none.
func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}

// These are how long a pod may take. The kubelet doubles its back-off from 10 s on: at 40 s a container has crashed
// four times in a row. A node for a pod may still be joining or rebooting.
const (
	startLimit    = 2 * time.Minute
	crashPause    = 40 * time.Second
	crashLimit    = 10 * time.Minute
	scheduleLimit = 10 * time.Minute
)

var (
	// hopeless matches the kubelet's reasons for an attempt that failed: ImagePullBackOff, CreateContainerConfigError.
	hopeless = regexp.MustCompile(`BackOff$|^Err|Error$|^Invalid`)
	pause    = regexp.MustCompile(`(?i)^back-off ([0-9hms.]+) restarting`)
)

// Stuck says what the pod waits for if waiting longer will not help; empty if it may only be starting.
func (p WaitingPod) Stuck(now time.Time) string {
	longer := func(since time.Time, patience time.Duration) bool {
		return !since.IsZero() && now.Sub(since) >= patience
	}
	for _, c := range p.Containers {
		stuck := hopeless.MatchString(c.Reason) && longer(p.NotReady, startLimit)
		if c.Reason == "CrashLoopBackOff" { // it may be ready between two crashes
			stuck = longer(p.NotReady, crashLimit)
			if m := pause.FindStringSubmatch(c.Message); m != nil {
				d, err := time.ParseDuration(m[1])
				stuck = stuck || err == nil && d >= crashPause
			}
		}
		if stuck {
			return strings.TrimSuffix(fmt.Sprintf("container %s: %s: %s", c.Name, c.Reason, c.Message), ": ")
		}
	}
	if p.Node == "" && longer(p.Unscheduled, scheduleLimit) {
		return "no node takes it: " + cmp.Or(p.Scheduler, "the scheduler does not say why")
	}
	return ""
}
