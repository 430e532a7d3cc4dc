package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/session"
)

// drivers is a site whose workers are nodes, and are drained for a driver.
func drivers(t *testing.T) (*sitetest.Site, Options) {
	t.Helper()
	s, o := newSite(t, "cp1", "w1", "w2")
	for _, h := range []string{"cp1", "w1", "w2"} {
		s.Joined[h] = true
	}
	for _, w := range []string{"w1", "w2"} {
		s.More[w] = "pci=0000:17:00.0 030200 20b0 nouveau\nnouveau=3\nkernel-headers=1\n"
	}
	o.Only = []string{"driver/*"}
	return s, o
}

// Whoever is asked about one node is told of all that are drained, and agrees to all. Where nobody was asked the steps do not
// have the agreement, so that pods that come later stop them; an agreement to another plan is none to this one.
func TestAgreementReachesTheDrains(t *testing.T) {
	const all = "map[node/drain/w1:yes node/drain/w2:yes]"
	no := errors.New("no")
	for name, c := range map[string]struct {
		pods    string
		agree   func(asked int, d []session.Disruption) (bool, error)
		changes bool // a worker's, after the plan was shown
		asked   int
		want    string // what the drains were given
		err     error
	}{
		"pods on one":               {pods: "w1\tml/train-0\tcards\n", agree: func(int, []session.Disruption) (bool, error) { return true, nil }, asked: 1, want: all},
		"nobody to ask about":       {agree: func(int, []session.Disruption) (bool, error) { return false, nil }, asked: 1, want: "map[]"},
		"agreed without a question": {agree: func(int, []session.Disruption) (bool, error) { return true, nil }, asked: 1, want: all},
		"no":                        {pods: "w1\tml/train-0\tcards\n", agree: func(int, []session.Disruption) (bool, error) { return false, no }, asked: 1, want: "map[]", err: no},
		"another plan":              {agree: func(asked int, _ []session.Disruption) (bool, error) { return asked == 1, nil }, changes: true, asked: 2, want: "map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := drivers(t)
			s.Pods = c.pods
			asked := 0
			o.Agree = func(d []session.Disruption) (bool, error) {
				asked++
				if len(d) != 2-(asked-1) || session.Disrupting(d) != (c.pods != "") {
					t.Errorf("asked about %+v", d)
				}
				if c.changes {
					s.Mu.Lock()
					s.More["w2"] = ""
					s.Mu.Unlock()
				}
				return c.agree(asked, d)
			}
			err := Up(t.Context(), o, func(*graph.Graph) error { return nil })
			if c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
			if got := fmt.Sprint(s.Agreed); got != c.want || asked != c.asked {
				t.Errorf("asked %d times, the drains were told %s, want %s; %v; did %q", asked, got, c.want, err, s.Did)
			}
		})
	}
}

// What nobody could be asked about before, as the API server did not answer, is asked about when it is planned, once for each node.
func TestAgreementToWhatIsPlannedLater(t *testing.T) {
	site, o := drivers(t)
	site.Pods = "w1\tkgpu-notebook/notebook-1\tcards\nw2\tml/train-0\tcards\n"
	var asked []string
	answer := error(nil)
	o.Agree = func(found []session.Disruption) (bool, error) {
		for _, d := range found {
			if d.Unknown {
				d.Node += ", which nobody knows"
			}
			asked = append(asked, d.Node)
		}
		return true, answer
	}
	open, err := session.Open(t.Context(), o.Options, o.Inventory.Hosts)
	must(t, err)
	s := &story{Session: open, want: o}
	defer s.Close()
	draining := func(nodes ...string) *graph.Graph {
		g := &graph.Graph{}
		for _, node := range nodes {
			g.Steps = append(g.Steps, &graph.Step{Ref: graph.Ref{Host: "cp1", ID: "node/drain/" + node}, Drains: node})
		}
		return g
	}
	must(t, s.agreed(t.Context(), draining()))
	must(t, s.agreedToMore(t.Context(), draining("w1")))
	must(t, s.agreedToMore(t.Context(), draining("w1")))
	must(t, s.agreedToMore(t.Context(), draining("w1", "w2")))
	if want := []string{"w1", "w2"}; !slices.Equal(asked, want) || !slices.Equal(s.drains, want) {
		t.Errorf("asked about %q, and may drain %q", asked, s.drains)
	}
	s.Facts["cp1"].Cluster, asked = nil, nil // its API server does not answer
	must(t, s.agreed(t.Context(), draining("w2")))
	if !slices.Equal(asked, []string{"w2, which nobody knows"}) {
		t.Errorf("asked about %q", asked)
	}
	answer = errors.New("no")
	if err := s.agreed(t.Context(), draining("w1")); !errors.Is(err, answer) || len(s.drains) > 0 {
		t.Errorf("%v, and may drain %q", err, s.drains)
	}
}

// What people run by hand they have agreed to.
func TestRenderedDrains(t *testing.T) {
	_, o := drivers(t)
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := Render(t.Context(), o, dir, ""); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "cp1", "*node-drain-w?", "values", "agreed"))
	if err != nil || len(found) != 2 {
		t.Fatalf("%q, %v", found, err)
	}
	if text, err := os.ReadFile(found[0]); err != nil || string(text) != "yes" {
		t.Errorf("%q, %v", text, err)
	}
}
