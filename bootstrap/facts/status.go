package facts

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// Status is what scripts/status.sh found: what changes by itself while a cluster works.
type Status struct {
	Certificates []Certificate
	API          *API // nil: no control plane here
	PodNetwork
}

// PodNetwork is what a host reached by the pod network.
type PodNetwork struct {
	PodSubnet netip.Prefix // of the host's pods; zero: unknown
	Peer, DNS Tried        // another host, by the pod network, and the cluster's DNS
}

// ParsePodNetwork reads what scripts/lib/pod-network.sh printed.
func ParsePodNetwork(a map[string][]string) PodNetwork {
	w := PodNetwork{Peer: tried(answer(a).first("pod-peer")), DNS: tried(answer(a).first("dns"))}
	w.PodSubnet, _ = netip.ParsePrefix(answer(a).first("pod-subnet")) // zero where it is none
	return w
}

// Tried is an address that a host tried to reach; zero: it tried none.
type Tried struct {
	Address netip.Addr
	Silent  bool // nothing came back
}

func tried(line string) Tried {
	address, found, _ := strings.Cut(line, " ")
	at, err := netip.ParseAddr(address)
	if err != nil {
		return Tried{}
	}
	return Tried{at, found == "silent"}
}

// Certificate is one of Kubernetes on a host.
type Certificate struct {
	Path string    // of the file that it is in
	Ends time.Time // zero: it cannot be read
}

// API is what the API server of a host says of the cluster.
type API struct {
	Answers bool
	Version string // v1.36.3; empty: it did not say
	Error   string // kubectl's last words, where it does not answer
	Nodes   []Node
	Pods    []Pod // those that hold cards, and those that make the network
	Waiting []WaitingPod

	WithoutNode int // pods that wait for a node with cards, where those are more than Pods has; zero: it has all
}

// Pod is a pod that was given to a node, or waits for one.
type Pod struct {
	Namespace, Name string
	Node            string // empty: none yet
	Phase           string // Pending, Running, Succeeded, Failed, Unknown
	Ready           bool
	Waiting         string         // why a container of it does not run: CrashLoopBackOff; empty: none waits
	Cards           map[string]int // that it asks for, by resource; nil: none
	Scheduler       string         // why no node takes it; empty: one does, or the scheduler has not said
}

// ParseStatus reads what scripts/status.sh printed. What it does not know is skipped, and so is what it cannot read of one
// object, as other versions of Kubernetes may say more, or less.
func ParseStatus(output []byte) (*Status, error) {
	a, err := split(output, "kgpu-status=1")
	if err != nil {
		return nil, err
	}
	s := &Status{PodNetwork: ParsePodNetwork(a)}
	for _, line := range a["certificate"] {
		path, der, _ := strings.Cut(line, " ")
		s.Certificates = append(s.Certificates, Certificate{path, ends(base64.StdEncoding.DecodeString(der))})
	}
	for _, line := range a["certificate-within"] {
		path, encoded, _ := strings.Cut(line, " ")
		s.Certificates = append(s.Certificates, Certificate{path, ends(firstCertificate(encoded))})
	}
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

// ends is when a certificate does; zero where there is none.
func ends(der []byte, err error) time.Time {
	if err != nil {
		return time.Time{}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return time.Time{}
	}
	return cert.NotAfter
}

// object reads a line of status.sh's template for kubectl.
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
		api.WithoutNode, _ = Quantity(f[1]) // zero where it is none
	case "pod":
		if f[1] == "" || f[2] == "" {
			return errors.New("no name")
		}
		api.Pods = append(api.Pods, Pod{
			Namespace: f[1], Name: f[2], Node: f[3], Phase: f[4], Ready: f[5] == "True", Cards: needed(amounts(f[6]), most(f[7])), Waiting: firstWord(f[8]), Scheduler: f[9],
		})
	}
	return nil
}

// needed is what a pod takes: its containers run together, and those that prepare it before them, one after the other.
func needed(together, before map[string]int) map[string]int {
	for what, n := range before {
		put(&together, what, max(together[what], n))
	}
	return together
}

// WaitingPod is a pod of the cluster's own namespaces that waits for a node, or with a container.
type WaitingPod struct {
	Namespace, Name string
	Node            string    // empty: none yet
	NotReady        time.Time // since then; zero: unknown
	Unscheduled     time.Time // no node takes it since then; zero: one did
	Scheduler       string    // why none does
	Containers      []WaitingContainer
	LogEnd          string // the last line of the log of a container that ends again and again; empty: nobody looked
}

// WaitingContainer is a container that does not run, in the kubelet's words.
type WaitingContainer struct{ Name, Reason, Message string }

// maxWaiting bounds the containers of a pod that are kept.
const maxWaiting = 20

// ParseWaitingPod reads a line of the templates of status.sh and doctor.sh, without the word that it begins with. ok is false
// where it names no pod.
func ParseWaitingPod(fields []string) (p WaitingPod, ok bool) {
	const before = 6 // the containers
	f := make([]string, max(len(fields), before))
	for i, field := range fields {
		f[i] = unescaped(field)
	}
	p = WaitingPod{Namespace: f[0], Name: f[1], Node: f[2], NotReady: moment(f[3]), Unscheduled: moment(f[4]), Scheduler: f[5]}
	for _, words := range f[before:min(len(f), before+maxWaiting)] {
		name, rest, _ := strings.Cut(words, " ")
		why, message, _ := strings.Cut(rest, " ")
		p.Containers = append(p.Containers, WaitingContainer{name, why, strings.TrimSpace(message)})
	}
	return p, p.Namespace != "" && p.Name != ""
}

// moment is zero for what is no time.
func moment(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}

// How long a pod may take. The kubelet doubles its pauses from 10 s on: after 40 s a container has ended four times in a
// row. A node that takes a pod may be on its way: it joins, or reboots.
const (
	startPatience    = 2 * time.Minute
	crashPause       = 40 * time.Second
	crashPatience    = 10 * time.Minute
	schedulePatience = 10 * time.Minute
)

var (
	// hopeless are the kubelet's words for what it has tried and what has failed: ImagePullBackOff, CreateContainerConfigError.
	hopeless = regexp.MustCompile(`BackOff$|^Err|Error$|^Invalid`)
	pause    = regexp.MustCompile(`(?i)^back-off ([0-9hms.]+) restarting`)
)

// Stuck says what the pod waits for, where time alone will not bring it; empty: it may only be starting.
func (p WaitingPod) Stuck(now time.Time) string {
	longer := func(since time.Time, patience time.Duration) bool {
		return !since.IsZero() && now.Sub(since) >= patience
	}
	for _, c := range p.Containers {
		stuck := hopeless.MatchString(c.Reason) && longer(p.NotReady, startPatience)
		if c.Reason == "CrashLoopBackOff" { // between two crashes it may be ready
			stuck = longer(p.NotReady, crashPatience)
			if m := pause.FindStringSubmatch(c.Message); m != nil {
				d, err := time.ParseDuration(m[1])
				stuck = stuck || err == nil && d >= crashPause
			}
		}
		if stuck {
			return strings.TrimSuffix(fmt.Sprintf("container %s: %s: %s", c.Name, c.Reason, c.Message), ": ")
		}
	}
	if p.Node == "" && longer(p.Unscheduled, schedulePatience) {
		return "no node takes it: " + cmp.Or(p.Scheduler, "the scheduler does not say why")
	}
	return ""
}
