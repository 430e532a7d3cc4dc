package facts

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

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
