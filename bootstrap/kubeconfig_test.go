package bootstrap

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// fetched begins a kubeconfig that kgpu has fetched, and fetchedElsewhere one of a control plane at another address.
const (
	fetched          = "# kgpu: made of admin.conf with sha256 0\n"
	fetchedElsewhere = fetched + "# kgpu: of the control plane 10.9.9.9\n"
)

// What keeps the kubeconfig from being written is found before a plan is shown, and by looking only.
func TestNoPlaceForTheKubeconfig(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, path string)
		id      reason.ID
	}{
		"something else": {func(t *testing.T, path string) { put(t, path, "notes\n") }, reason.KubeconfigConflict},
		"another cluster": {func(t *testing.T, path string) {
			put(t, path, fetchedElsewhere+"clusters: [{name: c}]\n")
		}, reason.KubeconfigConflict},
		"a pipe": {func(t *testing.T, path string) {
			must(t, syscall.Mkfifo(path, 0o600))
		}, reason.KubeconfigUnwritable},
		"no folder": {func(t *testing.T, path string) {
			must(t, os.Remove(filepath.Dir(path)))
		}, reason.KubeconfigUnwritable},
	} {
		for command, story := range map[string]func(t *testing.T, prepare func(path string)) (*sitetest.Site, Options, error){
			"up": func(t *testing.T, prepare func(string)) (*sitetest.Site, Options, error) {
				s, o := newSite(t, "cp1")
				prepare(o.Kubeconfig)
				return s, o, Up(t.Context(), o, noPlan(t))
			},
			"add-worker": func(t *testing.T, prepare func(string)) (*sitetest.Site, Options, error) {
				s, o, w1 := growing(t)
				prepare(o.Kubeconfig)
				before := content(t, o.Inventory.Path)
				err := AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, noPlan(t))
				if content(t, o.Inventory.Path) != before {
					t.Error("the inventory was changed")
				}
				return s, o, err
			},
		} {
			t.Run(command+" "+name, func(t *testing.T) {
				var before []string
				s, o, err := story(t, func(path string) { c.prepare(t, path); before, _ = filepath.Glob(filepath.Dir(path) + "/*") })
				if all := reason.All(err); len(all) != 1 || all[0].ID != c.id || len(s.Did) > 0 {
					t.Errorf("%v; did %q", err, s.Did)
				}
				if after, _ := filepath.Glob(filepath.Dir(o.Kubeconfig) + "/*"); !slices.Equal(before, after) {
					t.Errorf("%q became %q", before, after)
				}
			})
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func noPlan(t *testing.T) func(*graph.Graph) error {
	return func(*graph.Graph) error { t.Error("a plan was shown"); return nil }
}

// A file that was fetched from another address of the same control plane is no other cluster's.
func TestKubeconfigOfTheSameClusterElsewhere(t *testing.T) {
	s, o, w1 := growing(t)
	_, encoded, _ := strings.Cut(strings.TrimSpace(sitetest.Authority.FindString(s.Member)), "=")
	ca, err := base64.StdEncoding.DecodeString(encoded)
	must(t, err)
	a := kubeconfig.Access{Cluster: "c", User: "u", Context: "c", Server: "https://10.9.9.9:6443", CA: ca, Certificate: []byte("cert"), Key: []byte("key")}
	text, err := a.Encode()
	must(t, err)
	put(t, o.Kubeconfig, fetchedElsewhere+""+string(text))
	no := errors.New("no, thanks")
	if err := AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, func(*graph.Graph) error { return no }); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
}

// Where the kubeconfig loses its place later, that is an error beside the rest, which is done.
func TestTheProofGoesOnWithoutTheKubeconfig(t *testing.T) {
	site, o := newSite(t, "cp1")
	open, err := session.Open(t.Context(), o.Options, o.Inventory.Hosts)
	must(t, err)
	s := &story{Session: open, want: o}
	defer s.Close()
	put(t, o.Kubeconfig, "notes\n")
	err = s.finish(t.Context(), &graph.Graph{Steps: []*graph.Step{
		{Ref: graph.Ref{Host: "cp1", ID: "gpu/ready"}},
		{Ref: graph.Ref{Host: "cp1", ID: "cuda/toolkit"}, Script: "os-modules", Timeout: time.Minute, Stage: graph.AfterProof},
	}})
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.KubeconfigConflict || content(t, o.Kubeconfig) != "notes\n" {
		t.Errorf("%v", err)
	}
	if !strings.Contains(site.Told(), "there is nothing to prove") || !slices.Equal(site.Did, []string{"cp1 cuda/toolkit"}) {
		t.Errorf("told %s; did %q", site.Told(), site.Did)
	}
}
