package facts

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

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
