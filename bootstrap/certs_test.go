package bootstrap

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/schema/schematest"
)

// issued is a line of facts with a certificate of this authority.
func issued(t *testing.T, a *clustertest.Authority, file string, names ...string) string {
	t.Helper()
	der := a.Issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "x"}, DNSNames: names}, clustertest.NewKey(t).Public())
	return fmt.Sprintf("certificate=%s %s\n", file, base64.StdEncoding.EncodeToString(der))
}

// All hosts tell of their certificates, and one that cannot be asked is in the answer, which is as its schema says.
func TestCertificates(t *testing.T) {
	s, o := newSite(t, "cp1", "w1", "w2")
	for _, host := range []string{"cp1", "w1", "w2"} {
		s.joined[host] = true
	}
	authority := clustertest.NewAuthority(t)
	s.more["cp1"] = issued(t, authority, "/etc/kubernetes/pki/apiserver.crt", "api.example.com") + "certificate=/etc/kubernetes/pki/ca.crt\n"
	s.more["w1"] = issued(t, authority, "/var/lib/kubelet/pki/kubelet-client-current.pem")
	s.servers["w2"].Handle(func(*sshtest.Exec) int { return 1 })
	c, err := Certificates(t.Context(), o)
	must(t, err)
	if len(s.did) > 0 || c.Well() || len(c.Hosts) != 3 || c.Hosts[2].Reached || c.Hosts[2].Error == "" {
		t.Errorf("%+v; did %q", c, s.did)
	}
	if got := c.Hosts[0].Certificates; len(got) != 2 || got[0].Ends != nil || got[1].Name != "API server" || got[1].Renews != "kgpu" || !slices.Equal(got[1].Names, []string{"api.example.com"}) {
		t.Errorf("of the control plane: %+v", got)
	}
	var text, object bytes.Buffer
	must(t, report.PrintCertificates(&text, c, "kgpu certs renew", "kgpu up"))
	for _, want := range []string{"cp1   CA", "cannot be read", "cp1   API server", "api.example.com", "w1    kubelet", "the kubelet", "w2: "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	must(t, report.CertificatesJSON(&object, c))
	schematest.Printed(t, "certs", object.String())
}

// A renewal is asked for, and the kubeconfigs here are those of the new certificate: the one beside the inventory and the user's
// own, where kgpu merged the cluster into it.
func TestRenewCertificates(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.joined["cp1"], s.joined["w1"] = true, true
	o.Inventory.Path, o.Inventory.Cluster = filepath.Join(t.TempDir(), "inventory.yaml"), "lab"
	authority := clustertest.NewAuthority(t)
	put(t, s.adminConf, clustertest.AdminConf(t, authority.Admin(t, "https://10.0.0.10:6443")))
	mine := filepath.Join(t.TempDir(), "mine")
	t.Setenv("KUBECONFIG", mine)
	must(t, access.Kubeconfig(t.Context(), o.Options, access.KubeconfigOptions{Merge: true, Out: &bytes.Buffer{}}))

	renewed := authority.Admin(t, "https://10.0.0.10:6443")
	put(t, s.adminConf, clustertest.AdminConf(t, renewed))
	no := errors.New("no, thanks")
	if err := RenewCertificates(t.Context(), o, func(*graph.Graph) error { return no }); !errors.Is(err, no) || len(s.did) > 0 {
		t.Fatalf("%v; did %q", err, s.did)
	}
	must(t, RenewCertificates(t.Context(), o, func(g *graph.Graph) error {
		if !g.Has("certs/renew") {
			t.Error("the plan has no renewal")
		}
		return nil
	}))
	if !slices.Equal(s.did, []string{"cp1 certs/renew"}) {
		t.Errorf("did %q", s.did)
	}
	for _, file := range []string{mine, o.Kubeconfig} {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), base64.StdEncoding.EncodeToString(renewed.Certificate)) {
			t.Errorf("%s is not renewed: %v\n%s", file, err, data)
		}
	}
}
