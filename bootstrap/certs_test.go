package bootstrap

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/graph"
)

// A renewal is asked for, and the kubeconfigs here are those of the new certificate: the one beside the inventory and the user's
// own, where kgpu merged the cluster into it.
func TestRenewCertificates(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.Joined["cp1"], s.Joined["w1"] = true, true
	o.Inventory.Path, o.Inventory.Cluster = filepath.Join(t.TempDir(), "inventory.yaml"), "lab"
	authority := clustertest.NewAuthority(t)
	put(t, s.AdminConf, clustertest.AdminConf(t, authority.Admin(t, "https://10.0.0.10:6443")))
	mine := filepath.Join(t.TempDir(), "mine")
	t.Setenv("KUBECONFIG", mine)
	must(t, access.Kubeconfig(t.Context(), o.Options, access.KubeconfigOptions{Merge: true, Out: &bytes.Buffer{}}))

	renewed := authority.Admin(t, "https://10.0.0.10:6443")
	put(t, s.AdminConf, clustertest.AdminConf(t, renewed))
	no := errors.New("no, thanks")
	if err := RenewCertificates(t.Context(), o, func(*graph.Graph) error { return no }); !errors.Is(err, no) || len(s.Did) > 0 {
		t.Fatalf("%v; did %q", err, s.Did)
	}
	must(t, RenewCertificates(t.Context(), o, func(g *graph.Graph) error {
		if !g.Has("certs/renew") {
			t.Error("the plan has no renewal")
		}
		return nil
	}))
	if !slices.Equal(s.Did, []string{"cp1 certs/renew"}) {
		t.Errorf("did %q", s.Did)
	}
	for _, file := range []string{mine, o.Kubeconfig} {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), base64.StdEncoding.EncodeToString(renewed.Certificate)) {
			t.Errorf("%s is not renewed: %v\n%s", file, err, data)
		}
	}
}
