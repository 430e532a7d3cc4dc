package bootstrap

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// What a host could not take back is a warning, of however many words that host makes it.
func TestResetTellsWhatIsLeft(t *testing.T) {
	for name, takeApart := range map[string]func(Options) error{
		"reset":         func(o Options) error { return Reset(t.Context(), o, nil, func(*graph.Graph) error { return nil }) },
		"remove-worker": func(o Options) error { return RemoveWorker(t.Context(), o, leave("w2")) },
	} {
		t.Run(name, func(t *testing.T) {
			s, o := leavers(t)
			left := "/etc/hosts was edited since kgpu wrote it\n\x1b[2Jmodule dummy is in use\n" + strings.Repeat("and so on\n", 1000)
			s.At["w2 host/reset"] = func(e *sshtest.Exec) int {
				fmt.Fprintf(e.Stdout, "O\thost/reset\tleft\t%s\nD\thost/reset\t0\t1\t\t\nE\t0\n", base64.StdEncoding.EncodeToString([]byte(left)))
				return 0
			}
			must(t, takeApart(o))
			told := s.Told()
			if !strings.HasPrefix(told, "w2 not taken back: /etc/hosts was edited since kgpu wrote it\nw2 not taken back: module dummy is in use\n") {
				t.Errorf("warned %q", told)
			}
			if n := strings.Count(told, "not taken back"); n != 50 || !strings.HasSuffix(told, "w2 and 952 more, which its log has") {
				t.Errorf("%d warnings, want 50", n)
			}
		})
	}
}

// The unit of a reset whose kgpu was killed goes on, and who follows it hears what it could not take back.
func TestResetTellsWhatAFormerOneLeft(t *testing.T) {
	cp := &actor{
		facts: []string{"ledger=1\nrun=20261120-130501-a1b2c3-2\nrun-by=ada@desk\nrun-step=host/reset\n", "ledger=0\n"},
		tells: fmt.Sprintf("B\thost/reset\t0\nO\thost/reset\tleft\t%s\nD\thost/reset\t0\t1\t\t\nE\t0\n", base64.StdEncoding.EncodeToString([]byte("/etc/hosts was edited\n"))),
	}
	o, events := stage(t, cp)
	must(t, Reset(t.Context(), o, nil, func(*graph.Graph) error { return nil }))
	if !slices.ContainsFunc(events.Events(), func(e event.Event) bool {
		return e.Kind == event.Warning && e.Host == "cp1" && e.Text == "not taken back: /etc/hosts was edited"
	}) {
		t.Errorf("told %+v", events.Events())
	}
}

// A reset that was cut off after its last step, and before the kubeconfig was removed, is repeated to that end: where the whole
// cluster is meant, and there is none any more.
func TestResetForgetsTheKubeconfigLate(t *testing.T) {
	for name, c := range map[string]struct {
		names []string
		set   func(s *sitetest.Site)
		text  string
		goes  bool
	}{
		"nothing is left":       {text: fetched + "clusters: [{name: lab}]\n", goes: true},
		"a worker":              {names: []string{"w1"}, text: fetched + "clusters: [{name: lab}]\n"},
		"the cluster is there":  {set: func(s *sitetest.Site) { s.More = map[string]string{"cp1": "control-plane=1\n"} }, text: fetched + "clusters: [{name: lab}]\n"},
		"others are in it, too": {text: fetched + "clusters: [{name: lab}, {name: merged}]\n"},
		"it is not kgpu's":      {text: "clusters: [{name: lab}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newSite(t, "cp1", "w1")
			s.Clean = map[string]bool{"cp1": true, "w1": true}
			if c.set != nil {
				c.set(s)
			}
			put(t, o.Kubeconfig, c.text)
			err := Reset(t.Context(), o, c.names, func(g *graph.Graph) error {
				if !g.Empty() {
					t.Errorf("%d steps are left", len(g.Steps))
				}
				return nil
			})
			must(t, err)
			if _, err := os.Stat(o.Kubeconfig); os.IsNotExist(err) != c.goes {
				t.Errorf("%v", err)
			}
		})
	}
}

// A run that was killed on a host that knows nothing else of kgpu leaves who it was: a reset takes that along, and notes of steps
// that ended before they changed anything.
func TestResetOfWhatWasHardlyBegun(t *testing.T) {
	for name, tc := range map[string]struct {
		facts string
		holds bool
		steps []string
	}{
		"nothing":         {"ledger=0\n", false, nil},
		"who was at work": {"ledger=0\noperator-left=1\n", true, nil},
		"notes":           {"ledger=0\nnotes=1\n", true, []string{"host/reset"}},
	} {
		t.Run(name, func(t *testing.T) {
			cp := &actor{facts: []string{tc.facts}, tells: "B\thost/reset\t0\nD\thost/reset\t0\t1\t\t\nE\t0\n"}
			o, _ := stage(t, cp)
			var steps []string
			if err := Reset(t.Context(), o, nil, func(g *graph.Graph) error {
				for _, s := range g.Steps {
					steps = append(steps, s.ID)
				}
				return nil
			}); err != nil && len(tc.steps) == 0 {
				t.Error(err)
			}
			if !slices.Equal(steps, tc.steps) {
				t.Errorf("steps %q, want %q", steps, tc.steps)
			}
			if (cp.held > 0) != tc.holds {
				t.Errorf("held %d times", cp.held)
			}
		})
	}
}

// The control plane alone cannot be reset: nobody is contacted for that. With all of its workers it is the whole cluster.
func TestResetOfTheControlPlane(t *testing.T) {
	_, o := newSite(t, "cp1", "w1", "w2")
	for _, c := range []struct {
		ids     []string
		refused bool
	}{
		{nil, false}, {[]string{"w1"}, false}, {[]string{"w1", "w2"}, false}, {[]string{"w2", "cp1", "w1"}, false},
		{[]string{"cp1"}, true}, {[]string{"cp1", "cp1", "cp1"}, true}, {[]string{"w1", "cp1"}, true},
	} {
		usage := (*reason.UsageError)(nil)
		if err := o.wholeOrWorkers(c.ids); errors.As(err, &usage) != c.refused {
			t.Errorf("%v: %v", c.ids, err)
		}
	}
	dead := *o.Inventory
	dead.Hosts = slices.Clone(dead.Hosts)
	for i := range dead.Hosts {
		dead.Hosts[i].SSH.Port = 1
	}
	o.Inventory = &dead
	usage := (*reason.UsageError)(nil)
	if err := Reset(t.Context(), o, []string{"cp1"}, func(*graph.Graph) error { return nil }); !errors.As(err, &usage) {
		t.Errorf("not refused before anything: %v", err)
	}
}
