package bootstrap

import (
	"bytes"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
)

// A host that cannot be reached at the start ends the run before anything is changed; the advice names the command that
// does without it, where there is one.
func TestHostOutOfReachAtTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		down   []string
		advice string // the end of it
	}{
		"one of two workers": {[]string{"w1"}, "; or go on without it: `kgpu up --limit w2 inventory.yaml`"},
		"all workers":        {[]string{"w1", "w2"}, "; or go on without it: `kgpu up --limit cp1 inventory.yaml`"},
		"the control plane":  {[]string{"cp1"}, "`ssh USER@ADDRESS` from here"},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newSite(t, "cp1", "w1", "w2")
			o.Without = func(hosts []string) string {
				return "kgpu up --limit " + strings.Join(hosts, " --limit ") + " inventory.yaml"
			}
			for _, h := range c.down {
				s.Servers[h].Stop()
			}
			err := Up(t.Context(), o, func(*graph.Graph) error { t.Error("there is a plan"); return nil })
			all := reason.All(err)
			if len(all) != len(c.down) || reason.ExitStatus(err) != 20 || len(s.Did) > 0 {
				t.Fatalf("%v; did %q", err, s.Did)
			}
			var out bytes.Buffer
			report.PrintError(&out, err)
			if strings.Count(out.String(), c.advice+"\n") != 1 { // once, also for two
				t.Errorf("%q is not in\n%s", c.advice, out.String())
			}
		})
	}
}

// A connection that is lost while facts are gathered is opened again.
func TestLostWhileLooking(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	lost := false
	s.Looked = func(host string) bool {
		if host != "w1" || lost {
			return false
		}
		lost = true
		s.Servers["w1"].Stop()
		s.Servers["w1"].Start(t)
		return true
	}
	if err := Up(t.Context(), o, func(*graph.Graph) error { return nil }); err != nil {
		t.Error(err)
	}
	if !lost {
		t.Error("nothing was lost")
	}
}
