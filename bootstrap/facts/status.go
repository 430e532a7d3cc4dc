package facts

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"time"
)

// Status is what scripts/status.sh found: the state of a cluster that changes on its own.
type Status struct {
	Certificates []Certificate
	API          *API // nil if this host has no control plane
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

// Certificate is a certificate of Kubernetes on a host.
type Certificate struct {
	Path string    // file that has it
	Ends time.Time // zero if it cannot be read
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
	for _, line := range a["certificate"] {
		path, der, _ := strings.Cut(line, " ")
		s.Certificates = append(s.Certificates, Certificate{path, expiry(base64.StdEncoding.DecodeString(der))})
	}
	for _, line := range a["certificate-within"] {
		path, encoded, _ := strings.Cut(line, " ")
		s.Certificates = append(s.Certificates, Certificate{path, expiry(firstCertificate(encoded))})
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

// expiry is when a certificate expires; zero if it cannot be read.
func expiry(der []byte, err error) time.Time {
	if err != nil {
		return time.Time{}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return time.Time{}
	}
	return cert.NotAfter
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
