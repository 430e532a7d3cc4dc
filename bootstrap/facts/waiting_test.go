package facts

import (
	"strings"
	"testing"
	"time"
)

// TestStuckPods: a pod that may only be starting is not stuck; one that waiting will not help is.
func TestStuckPods(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }
	for name, c := range map[string]struct{ line, want string }{
		"it prepares":                       {"w1|" + ago(time.Hour) + "|||c ContainerCreating ", ""},
		"it is initialised":                 {"w1|" + ago(time.Hour) + "|||c PodInitializing ", ""},
		"an image that was tried just now":  {"w1|" + ago(time.Minute) + "|||c ErrImagePull not found", ""},
		"an image":                          {"w1|" + ago(time.Hour) + `|||c ImagePullBackOff Back-off pulling image \"x\"`, `container c: ImagePullBackOff: Back-off pulling image "x"`},
		"an image's name":                   {"w1|" + ago(time.Hour) + "|||c InvalidImageName ", "container c: InvalidImageName"},
		"a configuration":                   {"w1|" + ago(time.Hour) + `|||c CreateContainerConfigError secret \"s\" not found`, `container c: CreateContainerConfigError: secret "s" not found`},
		"the second of two":                 {"w1|" + ago(time.Hour) + "|||c ContainerCreating |d ErrImageNeverPull x", "container d: ErrImageNeverPull: x"},
		"a crash":                           {"w1|" + ago(3*time.Minute) + "|||c CrashLoopBackOff back-off 20s restarting failed container=c", ""},
		"many crashes":                      {"w1||||c CrashLoopBackOff back-off 40s restarting failed container=c", "container c: CrashLoopBackOff: back-off 40s restarting failed container=c"},
		"crashes, in the words of old ones": {"w1||||c CrashLoopBackOff Back-off 5m0s restarting failed container=c pod=p", "container c: CrashLoopBackOff: Back-off 5m0s restarting failed container=c pod=p"},
		"crashes without a pause":           {"w1|" + ago(time.Hour) + "|||c CrashLoopBackOff ", "container c: CrashLoopBackOff"},
		"no time is told":                   {"w1||||c ImagePullBackOff ", ""},
		"no node for a moment":              {"||" + ago(time.Minute) + "|0/1 nodes are available", ""},
		"no node":                           {"||" + ago(time.Hour) + "|0/1 nodes are available", "no node takes it: 0/1 nodes are available"},
		"no node, and no word":              {"||" + ago(time.Hour), "no node takes it: the scheduler does not say why"},
	} {
		s, err := ParseStatus(statusOf("control-plane=1", "api=1", "cluster=waits\tkube-system\tp\t"+strings.ReplaceAll(c.line, "|", "\t")))
		if err != nil || len(s.API.Waiting) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		if got := s.API.Waiting[0].Stuck(now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if _, err := ParseStatus(statusOf("control-plane=1", "api=1", "cluster=waits\tkube-system")); err == nil {
		t.Error("a pod without a name is taken")
	}
	s, err := ParseStatus(statusOf("control-plane=1", "api=1", "cluster=waits\tn\tp\t\t\t\t"+strings.Repeat("\tc X", 100)))
	if err != nil || len(s.API.Waiting[0].Containers) != maxWaiting {
		t.Errorf("%v, %+v", err, s)
	}
}
