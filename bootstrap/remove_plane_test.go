package bootstrap

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

const threePlanes = `cluster: lab
kubernetes: {version: 1.36.3, controlPlaneEndpoint: api.example.com:6443}
runtime: containerd
network: flannel
hosts:
  - {address: 10.0.0.10, name: cp1, role: control-plane}
  - {address: 10.0.0.11, name: cp2, role: control-plane}
  - {address: 10.0.0.12, name: cp3, role: control-plane}
`

// planes is a site with three control planes, each with an admin.conf of its own, and a function that serves that of one of them.
func planes(t *testing.T) (s *sitetest.Site, o Options, serve func(host string)) {
	t.Helper()
	s, o = newSite(t, "cp1", "cp2", "cp3")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "mine"))
	authority, confs := clustertest.NewAuthority(t), map[string]string{}
	s.Nodes = []string{"cp1", "cp2", "cp3"}
	for i, name := range s.Nodes {
		s.Planes[name], s.Joined[name] = true, true
		o.Inventory.Hosts[i].Role = inventory.ControlPlane
		confs[name] = clustertest.AdminConf(t, authority.Admin(t, "https://api.example.com:6443"))
		s.More[name] = fmt.Sprintf("file=%x  /etc/kubernetes/admin.conf\n", sha256.Sum256([]byte(confs[name])))
	}
	o.Inventory.Cluster, o.Inventory.Path = "lab", filepath.Join(t.TempDir(), "inventory.yaml")
	must(t, os.WriteFile(o.Inventory.Path, []byte(threePlanes), 0o600))
	return s, o, func(host string) { put(t, s.AdminConf, confs[host]) }
}

// fetches counts how often the kubeconfig came here.
func fetches(s *sitetest.Site) int {
	return len(slices.DeleteFunc(s.Events(), func(e event.Event) bool { return e.Kind != event.StepDone || e.Step != "kubeconfig" }))
}

// TestKubeconfigOfAPlaneThatLeft: a kubeconfig that was made of what one of those who leave had is another one when they have left, so
// that the next run has nothing to do; one that was made of what stays is left alone.
func TestKubeconfigOfAPlaneThatLeft(t *testing.T) {
	for of, want := range map[string]int{"cp1": 1, "cp2": 0} {
		s, o, serve := planes(t)
		serve(of)
		must(t, access.Kubeconfig(t.Context(), o.Options, access.KubeconfigOptions{File: o.Kubeconfig, Out: t.Output()}))
		serve("cp2")
		must(t, RemoveControlPlane(t.Context(), o, leave("cp1", "cp3")))
		if !slices.Contains(s.Did, "cp1 host/reset") || !slices.Contains(s.Did, "cp3 host/reset") || strings.Contains(content(t, o.Inventory.Path), "cp1") {
			t.Errorf("did %q; the file is\n%s", s.Did, content(t, o.Inventory.Path))
		}
		if fetches(s) != want {
			t.Errorf("of %s: it was fetched %d times", of, fetches(s))
		}
		var err error
		o.Inventory, err = inventory.Load(o.Inventory.Path, inventory.Options{})
		must(t, err)
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(content(t, s.AdminConf))))
		if got := content(t, o.Kubeconfig); !strings.Contains(got, sum) {
			t.Errorf("of %s: it is not made of %s:\n%s", of, sum, got)
		}
	}
}

// TestKubeconfigHasNoPlace: what could not be written at the end is found before anything is changed.
func TestKubeconfigHasNoPlace(t *testing.T) {
	s, o, serve := planes(t)
	serve("cp2")
	put(t, o.Kubeconfig, "something else\n")
	err := RemoveControlPlane(t.Context(), o, leave("cp1", "cp3"))
	if !errors.Is(err, &reason.Error{ID: reason.KubeconfigConflict}) || len(s.Did) > 0 || content(t, o.Inventory.Path) != threePlanes {
		t.Errorf("%v; did %q", err, s.Did)
	}
}

// TestAddressThatMoves: what the cluster keeps is refused before hosts are judged by it, and before any is changed.
func TestAddressThatMoves(t *testing.T) {
	s, o, serve := planes(t)
	serve("cp2")
	for _, host := range s.Nodes {
		s.More[host] += "control-plane-server=https://k8s.example.com:6443\n"
	}
	text := strings.Replace(threePlanes, "{version", "{virtualIP: 10.9.0.100, version", 1)
	text = strings.Replace(text, ", controlPlaneEndpoint: api.example.com:6443", "", 1)
	must(t, os.WriteFile(o.Inventory.Path, []byte(text), 0o600))
	asked, err := inventory.Load(o.Inventory.Path, inventory.Options{})
	must(t, err)
	asked.Hosts, o.Inventory, o.Ignore = o.Inventory.Hosts, asked, nil
	for how, err := range map[string]error{
		"up": Up(t.Context(), o, func(*graph.Graph) error { return nil }), "certs renew": RenewCertificates(t.Context(), o, func(*graph.Graph) error { return nil }),
		"remove-control-plane": RemoveControlPlane(t.Context(), o, leave("cp1", "cp3")),
	} {
		all := reason.All(err)
		if len(all) != 1 || all[0].ID != reason.ClusterSettingFixed || !strings.Contains(all[0].Detail, "inventory.yaml:2:25: kubernetes.virtualIP: ") {
			t.Errorf("%s: %v", how, err)
		}
	}
	if len(s.Did) > 0 {
		t.Errorf("did %q", s.Did)
	}
}

// TestAdviceToForce: it stands where it helps, which is where a majority of the control planes goes on without the one that is lost.
func TestAdviceToForce(t *testing.T) {
	for _, c := range []struct {
		name    string
		stopped []string
		force   bool
		want    bool
	}{
		{"one is lost", []string{"cp3"}, false, true},
		{"all are lost", []string{"cp1", "cp2", "cp3"}, false, false},
		{"all are lost, forced", []string{"cp1", "cp2", "cp3"}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, o, _ := planes(t)
			for _, host := range c.stopped {
				s.Servers[host].Stop()
			}
			r := leave("cp2", "cp3")
			r.Force = c.force
			all := reason.All(RemoveControlPlane(t.Context(), o, r))
			advised := slices.ContainsFunc(all, func(e *reason.Error) bool { return strings.Contains(e.AdviceLine(), "--force") })
			if len(all) != len(c.stopped) || advised != c.want || len(s.Did) > 0 {
				t.Errorf("%v; advised: %t; did %q", all, advised, s.Did)
			}
		})
	}
}
