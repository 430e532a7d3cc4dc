package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/atomicfile"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

const threeNamed = `kubernetes: {version: 1.36.3}
runtime: containerd
network: flannel
hosts:
  - {address: 10.0.0.10, name: cp1, role: control-plane}
  # by the window
  - {address: 10.0.0.11, name: w1}
  - {address: 10.0.0.12, name: w2} # its fan is loud
`

// leavers is a site whose hosts are nodes, with an inventory file.
func leavers(t *testing.T) (*sitetest.Site, Options) {
	t.Helper()
	s, o := newSite(t, "cp1", "w1", "w2")
	for _, h := range []string{"cp1", "w1", "w2"} {
		s.Joined[h] = true
	}
	o.Inventory.Path = filepath.Join(t.TempDir(), "inventory.yaml")
	must(t, os.WriteFile(o.Inventory.Path, []byte(threeNamed), 0o600))
	o.Agree = func(d []session.Disruption) (bool, error) { t.Errorf("asked about %+v", d); return false, nil }
	return s, o
}

// leave is a removal that is agreed to.
func leave(names ...string) Removal {
	return Removal{Names: names, Show: func(*graph.Graph) error { return nil }, Sure: func() error { return nil }}
}

func wantFile(t *testing.T, o Options, gone ...string) {
	t.Helper()
	want := threeNamed
	for _, line := range gone {
		want = strings.Replace(want, line, "", 1)
	}
	if got, err := os.ReadFile(o.Inventory.Path); err != nil || string(got) != want {
		t.Errorf("%v: the file is\n%s\nwant\n%s", err, got, want)
	}
}

const (
	w1Entry = "  # by the window\n  - {address: 10.0.0.11, name: w1}\n"
	w2Entry = "  - {address: 10.0.0.12, name: w2} # its fan is loud\n"
)

// A worker leaves; the pods that its drain concerns are named, with those that hold cards; the other worker is not touched.
// It may come again afterwards.
func TestRemoveWorker(t *testing.T) {
	s, o := leavers(t)
	s.Pods = "w2\tml/train-0\tcards\nw2\tweb/shop\t\nw1\tml/other\tcards\n"
	var asked []session.Disruption
	o.Agree = func(d []session.Disruption) (bool, error) { asked = d; wantFile(t, o); return true, nil }
	must(t, RemoveWorker(t.Context(), o, leave("w2")))
	if want := []string{"cp1 node/drain/w2", "cp1 node/delete/w2", "w2 host/reset"}; !slices.Equal(s.Did, want) {
		t.Errorf("did %q, want %q", s.Did, want)
	}
	if len(asked) != 1 || fmt.Sprint(asked[0]) != "{w2 it leaves the cluster [ml/train-0 web/shop] [ml/train-0] false}" {
		t.Errorf("asked about %+v", asked)
	}
	wantFile(t, o, w2Entry)
	if told := s.Told(); told != "" {
		t.Errorf("warned %q", told)
	}
	for _, e := range s.Events() {
		if e.Kind == event.Connect && e.Host == "w1" {
			t.Error("w1 was contacted")
		}
	}

	// The same again, as add-worker would: the file is written by it.
	data, err := os.ReadFile(o.Inventory.Path)
	must(t, err)
	edited, err := inventory.AddHosts(data, []inventory.NewHost{{Address: "10.0.0.12", Name: "w2"}})
	must(t, err)
	must(t, atomicfile.Update(o.Inventory.Path, edited, 0o644))
	s.Did = nil
	o.Limit = []string{"w2"}
	must(t, Up(t.Context(), o, func(*graph.Graph) error { return nil }))
	if !slices.Contains(s.Did, "w2 cluster/join") || !s.Joined["w2"] {
		t.Errorf("did %q", s.Did)
	}
}

func TestRemoveWorkerAsks(t *testing.T) {
	no := errors.New("no")
	t.Run("about pods", func(t *testing.T) {
		s, o := leavers(t)
		s.Pods = "w2\tml/train-0\tcards\n"
		o.Agree = func([]session.Disruption) (bool, error) { return false, no }
		if err := RemoveWorker(t.Context(), o, leave("w2")); !errors.Is(err, no) || len(s.Did) > 0 {
			t.Errorf("%v; did %q", err, s.Did)
		}
		wantFile(t, o)
	})
	t.Run("where there are none", func(t *testing.T) {
		s, o := leavers(t)
		r := leave("w2")
		r.Sure = func() error { return no }
		if err := RemoveWorker(t.Context(), o, r); !errors.Is(err, no) || len(s.Did) > 0 {
			t.Errorf("%v; did %q", err, s.Did)
		}
		wantFile(t, o)
	})
}

// What was interrupted is repeated: nothing is done twice, and what has left is only edited out.
func TestRemoveWorkerCarriesOn(t *testing.T) {
	t.Run("the node is gone", func(t *testing.T) {
		s, o := leavers(t)
		s.Gone["w2"] = true
		if err := RemoveWorker(t.Context(), o, leave("w2")); err != nil || !slices.Equal(s.Did, []string{"w2 host/reset"}) {
			t.Errorf("%v; did %q", err, s.Did)
		}
		wantFile(t, o, w2Entry)
	})
	t.Run("the host is clean, too", func(t *testing.T) {
		s, o := leavers(t)
		s.Clean["w1"] = true
		delete(s.Joined, "w1")
		r := leave("w1")
		r.Sure = func() error { t.Error("asked, and nothing is to be done"); return nil }
		if err := RemoveWorker(t.Context(), o, r); err != nil || len(s.Did) > 0 {
			t.Errorf("%v; did %q", err, s.Did)
		}
		wantFile(t, o, w1Entry)
	})
	t.Run("one fails", func(t *testing.T) {
		s, o := leavers(t)
		s.At["w1 host/reset"] = func(e *sshtest.Exec) int {
			fmt.Fprint(e.Stdout, "D\thost/reset\t1\t1\tSTEP_FAILED\tno\nE\t1\n")
			return 0
		}
		err := RemoveWorker(t.Context(), o, leave("w1", "w2", "w1"))
		if all := reason.All(err); len(all) != 1 || all[0].Host != "w1" || all[0].ID != reason.StepFailed {
			t.Errorf("%v", err)
		}
		wantFile(t, o, w2Entry)
		if left := StillNamed(o.Inventory.Path, []string{"w1", "w2"}); !slices.Equal(left, []string{"w1"}) {
			t.Errorf("still named: %q", left)
		}
		s.At, s.Did = nil, nil
		if err := RemoveWorker(t.Context(), o, leave("w1")); err != nil || !slices.Equal(s.Did, []string{"w1 host/reset"}) {
			t.Errorf("%v; did %q", err, s.Did)
		}
		wantFile(t, o, w1Entry, w2Entry)
	})
}

// A worker that is dead stops the story, unless somebody says that it is.
func TestRemoveWorkerThatIsDead(t *testing.T) {
	s, o := leavers(t)
	s.Servers["w2"].Stop()
	err := RemoveWorker(t.Context(), o, leave("w2"))
	all := reason.All(err)
	if len(all) != 1 || all[0].Host != "w2" || !strings.Contains(all[0].AdviceLine(), "--force") || len(s.Did) > 0 {
		t.Fatalf("%v; did %q", err, s.Did)
	}
	wantFile(t, o)
	r := leave("w2")
	r.Force = true
	must(t, RemoveWorker(t.Context(), o, r))
	if want := []string{"cp1 node/delete/w2"}; !slices.Equal(s.Did, want) {
		t.Errorf("did %q, want %q", s.Did, want)
	}
	wantFile(t, o, w2Entry)
	contains(t, s.Told(), "w2 going on without it: ", "w2 the host itself was not cleaned", "`kgpu remove-worker w2`")
	t.Run("with the control plane", func(t *testing.T) {
		s, o := leavers(t)
		s.Servers["cp1"].Stop()
		err := RemoveWorker(t.Context(), o, leave("w2"))
		if all := reason.All(err); len(all) != 1 || all[0].Host != "cp1" || strings.Contains(all[0].AdviceLine(), "--force") { // which cannot do without it
			t.Errorf("%v", err)
		}
		if err := RemoveWorker(t.Context(), o, r); len(reason.All(err)) != 1 || reason.All(err)[0].Host != "cp1" {
			t.Errorf("%v", err)
		}
		wantFile(t, o)
	})
}

func TestRemoveWorkerRefuses(t *testing.T) {
	s, o := leavers(t)
	for name, want := range map[string]string{
		"cp1":          "control plane",
		"w3":           `no host "w3"`,
		"10.0.0.[5-1]": "runs backwards",
	} {
		err := RemoveWorker(t.Context(), o, leave("w2", name))
		var usage *reason.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A file that cannot be edited is found before a host is touched.
	text := content(t, o.Inventory.Path)
	t.Setenv("W2", "w2")
	must(t, os.WriteFile(o.Inventory.Path, []byte(strings.Replace(text, "name: w2", "name: \"${W2}\"", 1)), 0o600))
	if err := RemoveWorker(t.Context(), o, leave("w2")); err == nil || !strings.Contains(err.Error(), "names w2 by a variable") {
		t.Errorf("%v", err)
	}
	must(t, os.WriteFile(o.Inventory.Path, []byte("hosts: [{address: 10.0.0.12, name: w2}]\n"), 0o600))
	if err := RemoveWorker(t.Context(), o, leave("w2")); !errors.Is(err, &reason.Error{ID: reason.InventoryInvalid}) {
		t.Errorf("%v", err)
	}
	if len(s.Events()) > 0 {
		t.Errorf("a host was contacted: %+v", s.Events())
	}
}

// TestPlanesAreNoWorkers: who takes a control plane for a worker is told how it leaves: beside others, or with the whole cluster.
func TestPlanesAreNoWorkers(t *testing.T) {
	t.Parallel()
	const planes = ", role: control-plane}\n- {address: 10.0.0.11, name: cp2, role: control-plane}\n- {address: 10.0.0.12, name: cp3"
	for others, want := range map[string]string{"": "`kgpu reset` without a host", planes: "`kgpu remove-control-plane cp1`"} {
		text := "kubernetes: {controlPlaneEndpoint: api.example.com:6443}\nhosts:\n- {address: 10.0.0.10, name: cp1" + others + ", role: control-plane}\n- {address: 10.0.0.20, name: w1}\n"
		inv, err := inventory.Decode("inventory.yaml", []byte(text), inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
		must(t, err)
		o := Options{Options: session.Options{Inventory: inv}}
		_, leaves := o.leaving([]string{"cp1"})
		for _, err := range []error{leaves, o.wholeOrWorkers([]string{"cp1"})} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if err := RemoveControlPlane(t.Context(), o, leave("cp2")); others != "" && (err == nil || err.Error() != "2 control planes would stay: a cluster has 1, 3 or 5; name one more") {
			t.Errorf("one of three: %v", err)
		}
		all := map[string]string{"": "cp1 is the only control plane: ", planes: "cp1, cp2, cp3 are all of its control planes: "}[others]
		var usage *reason.UsageError
		err = RemoveControlPlane(t.Context(), o, leave("10.0.0.10", "cp[2-3]"))
		if others == "" {
			err = RemoveControlPlane(t.Context(), o, leave("10.0.0.10"))
		}
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), all) || !strings.Contains(err.Error(), "`kgpu reset` without a host") {
			t.Errorf("%v, want %s", err, all)
		}
	}
}
