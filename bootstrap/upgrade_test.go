package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// upgrading is a cluster of one host with Kubernetes 1.35.4, which has 1.36.3 and then 1.37.2 once it was upgraded.
func upgrading(t *testing.T) (*sitetest.Site, Options) {
	t.Helper()
	s, o, _ := growing(t)
	text := strings.Replace(content(t, o.Inventory.Path), "version: 1.36.3", "version: 1.35.4", 1)
	must(t, os.WriteFile(o.Inventory.Path, []byte(text), 0o600))
	member := s.Member
	s.Looked = func(string) bool {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		rounds := 0
		for _, step := range s.Did {
			if step == "cp1 kube/upgrade" {
				rounds++
			}
		}
		s.Member = strings.ReplaceAll(member, "1.36.3", []string{"1.35.4", "1.36.3", "1.37.2"}[rounds])
		return false
	}
	return s, o
}

// Two minors are two rounds of one run. Whoever agreed to the first has agreed to both, and the file has the version before anything
// is changed.
func TestUpgrade(t *testing.T) {
	s, o := upgrading(t)
	asked, shown := 0, ""
	o.Agree = func([]session.Disruption) (bool, error) { asked++; return true, nil }
	want := strings.Replace(content(t, o.Inventory.Path), "version: 1.35.4", `version: "1.37"`, 1)
	must(t, Upgrade(t.Context(), o, "1.37", func(g *graph.Graph) error {
		shown += g.Kubernetes + ", then " + strings.Join(g.Rounds, ", ")
		return nil
	}))
	var did []string
	for _, step := range s.Did {
		if strings.Contains(step, "upgrade") {
			did = append(did, step)
		}
	}
	if want := []string{"cp1 cluster/upgrade", "cp1 kube/upgrade"}; !slices.Equal(did, slices.Concat(want, want)) {
		t.Errorf("done: %q", s.Did)
	}
	if shown != "Kubernetes 1.35.4 becomes 1.36.3, node after node, then Kubernetes 1.37.2" || asked != 1 {
		t.Errorf("asked %d times, shown: %s", asked, shown)
	}
	if got := content(t, o.Inventory.Path); got != want {
		t.Errorf("the inventory is\n%s", got)
	}
}

// Who says no has the file and the hosts as they were; so has who changes the file meanwhile.
func TestUpgradeThatIsDeclined(t *testing.T) {
	s, o := upgrading(t)
	before := content(t, o.Inventory.Path)
	no := errors.New("no")
	o.Agree = func([]session.Disruption) (bool, error) { return false, no }
	if err := Upgrade(t.Context(), o, "1.36", func(*graph.Graph) error { return nil }); !errors.Is(err, no) || content(t, o.Inventory.Path) != before || len(s.Did) > 0 {
		t.Errorf("%v, done: %q, the inventory is\n%s", err, s.Did, content(t, o.Inventory.Path))
	}
	o.Agree = func([]session.Disruption) (bool, error) {
		return true, os.WriteFile(o.Inventory.Path, []byte(before+"# mine\n"), 0o600)
	}
	err := Upgrade(t.Context(), o, "1.36", func(*graph.Graph) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "was changed since this began") || content(t, o.Inventory.Path) != before+"# mine\n" || len(s.Did) > 0 {
		t.Errorf("%v, done: %q", err, s.Did)
	}
}

// With --skip-busy nobody's pods with cards are ended: not those that are there, nor those that come after the plan was shown. The
// notebook is no hindrance.
func TestUpgradeBesideWork(t *testing.T) {
	for pods, want := range map[string]bool{"w1\tml/train-0\tcards\n": false, "w1\tkgpu-notebook/notebook-1\tcards\nw1\tml/web-0\t\n": true} {
		s, o := newSite(t, "cp1", "w1")
		s.Joined["cp1"], s.Joined["w1"], s.Pods = true, true, pods
		o.Inventory.Kubernetes.Version.Patch, o.Inventory.Kubernetes.Pin, o.SkipBusy = 4, inventory.PinnedExact, true
		o.Agree = func([]session.Disruption) (bool, error) { return true, nil }
		_ = Up(t.Context(), o, func(*graph.Graph) error { return nil }) // what these hosts tell does not change
		if got := slices.Contains(s.Did, "w1 kube/upgrade"); got != want || !slices.Contains(s.Did, "cp1 kube/upgrade") {
			t.Errorf("pods %q: done: %q", pods, s.Did)
		}
		if len(s.Agreed) > 0 {
			t.Errorf("pods %q: the drains were told %v", pods, s.Agreed)
		}
	}
}

// The check names the way, also to a version that the file does not have, and changes neither hosts nor file.
func TestCheckUpgrade(t *testing.T) {
	s, o := upgrading(t)
	before := content(t, o.Inventory.Path)
	for version, want := range map[string]string{"1.37": "[1.36.3 1.37.2]", "": "[1.36.3]"} {
		check, err := look.CheckUpgrade(t.Context(), o.Options, version)
		must(t, err)
		if fmt.Sprint(check.Rounds) != want || check.Running.String() != "1.35.4" || len(check.Deprecated) != 1 {
			t.Errorf("%q: %+v", version, check)
		}
	}
	if content(t, o.Inventory.Path) != before || len(s.Did) > 0 {
		t.Errorf("done: %q", s.Did)
	}
	s.At["cp1 deprecated"] = func(*sshtest.Exec) int { return 1 }
	if _, err := look.CheckUpgrade(t.Context(), o.Options, ""); !errors.Is(err, &reason.Error{ID: reason.FactsFailed}) {
		t.Errorf("no API server tells: %v", err)
	}
	s.Joined["cp1"] = false
	if _, err := look.CheckUpgrade(t.Context(), o.Options, ""); !errors.Is(err, &reason.Error{ID: reason.ClusterMissing}) {
		t.Errorf("without a cluster: %v", err)
	}
}

// Each API server counts for itself: all are asked, and who did not tell is named. What two of them tell is told once.
func TestCheckUpgradeOfThree(t *testing.T) {
	s, o, _ := planes(t)
	s.At["cp2 deprecated"] = func(e *sshtest.Exec) int {
		fmt.Fprint(e.Stdout, "kgpu-deprecated=1\napi=example.com v1 widgets 1.40\nobject=widgets kubectl a/b\napi=- v1 gadgets 1.39\nend=1\n")
		return 0
	}
	const all = "[gadgets.v1 [] widgets.v1.example.com [a/b (kubectl)]]"
	for _, c := range []struct {
		harm                func()
		asked, silent, told string
	}{
		{func() {}, "[cp1 cp2 cp3]", "[]", all},
		{func() { s.Joined["cp3"] = false }, "[cp1 cp2]", "[]", all}, // it has none yet
		{func() { s.At["cp1 deprecated"] = func(*sshtest.Exec) int { return 1 } }, "[cp2]", "[cp1]", all},
		{func() { s.Joined["cp3"] = true; delete(s.At, "cp1 deprecated"); s.Servers["cp2"].Stop() }, "[cp1 cp3]", "[cp2]", "[widgets.v1.example.com []]"},
	} {
		c.harm()
		check, err := look.CheckUpgrade(t.Context(), o.Options, "")
		must(t, err)
		var told []string
		for _, d := range check.Deprecated {
			told = append(told, d.String(), fmt.Sprint(d.Objects))
		}
		if fmt.Sprint(check.Asked) != c.asked || fmt.Sprint(check.Silent) != c.silent || fmt.Sprint(told) != c.told {
			t.Errorf("asked %v, not %v: %q, want %v, %v, %v", check.Asked, check.Silent, told, c.asked, c.silent, c.told)
		}
	}
}
