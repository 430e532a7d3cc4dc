package facts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// signed is a certificate for these names, DER.
func signed(t *testing.T, names ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: began, NotAfter: began.AddDate(1, 0, 0),
		DNSNames: names, IPAddresses: []net.IP{net.ParseIP("10.96.0.1")},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	return der
}

// TestCertificates: what can be read of a certificate is, and what cannot is told by its path.
func TestCertificates(t *testing.T) {
	der := signed(t, "kubernetes", "bad\x1b[31mname")
	text := base64.StdEncoding.EncodeToString
	within := text(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	output, err := os.ReadFile("testdata/control-plane.txt")
	must(t, err)
	more := strings.Join([]string{
		"certificate=/b.crt " + text(der), "certificate=/c.crt", "certificate=/d.crt !", "certificate-within=/a.conf " + within, "served=" + text(der),
		"renewal-begun=1", "stale-pod=kube-scheduler", "stale-pod=$(reboot)", "end=1\n",
	}, "\n")
	h, err := Parse([]byte(strings.Replace(string(output), "end=1\n", more, 1)))
	must(t, err)
	var paths []string
	for _, c := range h.Certificates {
		paths = append(paths, c.Path)
	}
	if want := []string{"/a.conf", "/b.crt", "/c.crt", "/d.crt"}; !slices.Equal(paths, want) {
		t.Fatalf("certificates: %q", paths)
	}
	b := h.Certificates[1]
	if b.Subject != "kube-apiserver" || b.Issuer != "kube-apiserver" || b.Ends.Year() != 2027 || b.Begins.Year() != 2026 || b.CA || !slices.Equal(b.Names, []string{"kubernetes", "badname", "10.96.0.1"}) {
		t.Errorf("%+v", b)
	}
	if h.Certificates[0].Sum != b.Sum || h.ControlPlane.Served != b.Sum || !h.Certificates[2].Ends.IsZero() || !h.Certificates[3].Ends.IsZero() {
		t.Errorf("%+v, served %s", h.Certificates, h.ControlPlane.Served)
	}
	if !h.RenewalBegun || !slices.Equal(h.StalePods, []string{"kube-scheduler"}) {
		t.Errorf("renewal: %t, %q", h.RenewalBegun, h.StalePods)
	}
}
