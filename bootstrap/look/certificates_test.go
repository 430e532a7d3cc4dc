package look

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/report/schema/schematest"
)

// issued is a line of facts with a certificate of this authority.
func issued(t *testing.T, a *clustertest.Authority, file string, names ...string) string {
	t.Helper()
	der := a.Issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "x"}, DNSNames: names}, clustertest.NewKey(t).Public())
	return fmt.Sprintf("certificate=%s %s\n", file, base64.StdEncoding.EncodeToString(der))
}

// All hosts tell of their certificates, and one that cannot be asked is in the answer, which is as its schema says.
func TestCertificates(t *testing.T) {
	s, o := sitetest.New(t, "../facts/testdata/worker.txt", "cp1", "w1", "w2")
	for _, host := range []string{"cp1", "w1", "w2"} {
		s.Joined[host] = true
	}
	authority := clustertest.NewAuthority(t)
	s.More["cp1"] = issued(t, authority, "/etc/kubernetes/pki/apiserver.crt", "api.example.com") + "certificate=/etc/kubernetes/pki/ca.crt\n"
	s.More["w1"] = issued(t, authority, "/var/lib/kubelet/pki/kubelet-client-current.pem")
	s.Servers["w2"].Handle(func(*sshtest.Exec) int { return 1 })
	c, err := Certificates(t.Context(), o)
	must(t, err)
	if len(s.Did) > 0 || c.Well() || len(c.Hosts) != 3 || c.Hosts[2].Reached || c.Hosts[2].Error == "" {
		t.Errorf("%+v; did %q", c, s.Did)
	}
	if got := c.Hosts[0].Certificates; len(got) != 2 || got[0].Ends != nil || got[1].Name != "API server" || got[1].Renews != "kgpu" || !slices.Equal(got[1].Names, []string{"api.example.com"}) {
		t.Errorf("of the control plane: %+v", got)
	}
	var text, object bytes.Buffer
	must(t, report.PrintCertificates(&text, c, "kgpu certs renew", "kgpu up"))
	for _, want := range []string{"cp1   CA", "cannot be read", "cp1   API server", "api.example.com", "w1    kubelet", "the kubelet",
		"\nw2: gathering facts: ", "[HOST_FACTS_FAILED]\n    → " + reason.Lookup(reason.FactsFailed).Advice + "\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	must(t, report.CertificatesJSON(&object, c))
	schematest.Printed(t, "certs", object.String())

	// Of a version whose certificates kgpu does not renew, it does not say so.
	s.More["cp1"] += "apiserver-image=registry.k8s.io/kube-apiserver:v1.29.15\n"
	c, err = Certificates(t.Context(), o)
	must(t, err)
	if got := c.Hosts[0].Certificates[1]; got.Renews != "nobody" {
		t.Errorf("of an old control plane: %+v", got)
	}
}

// Hosts that cannot be reached are told of once, and what to do about it once for all of them.
func TestCertificatesOfHostsThatAreAway(t *testing.T) {
	s, o := sitetest.New(t, "../facts/testdata/worker.txt", "cp1", "w1")
	s.Servers["cp1"].Stop()
	s.Servers["w1"].Stop()
	c, err := Certificates(t.Context(), o)
	must(t, err)
	var text bytes.Buffer
	must(t, report.PrintCertificates(&text, c, "kgpu certs renew", "kgpu up"))
	if want := c.Hosts[0].Error + "\nw1: " + c.Hosts[1].Error + "\n    → " + reason.Lookup(reason.SSHUnreachable).Advice + "\n"; text.String() != "cp1: "+want ||
		!strings.HasPrefix(want, "connecting to ") {
		t.Errorf("printed\n%s", &text)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
