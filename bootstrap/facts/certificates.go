package facts

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// Certificate is a certificate of Kubernetes on a host.
type Certificate struct {
	Path    string    // file that has it
	Begins  time.Time // zero if it cannot be read
	Ends    time.Time // zero if it cannot be read
	Subject string    // common name of its owner
	Issuer  string    // common name of who signed it
	Names   []string  // DNS names and addresses that it is for
	CA      bool      // it signs others
	Sum     string    // hexadecimal SHA-256
}

// These bound what is kept of a certificate, which any host may make up.
const (
	maxNames    = 100
	maxNameText = 253
)

// staticPods are those of a control plane that read certificates.
var staticPods = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// certificates reads what facts.sh found of a host's certificates. The host sends certificates, never keys.
func certificates(a answer, h *Host) error {
	for key, read := range map[string]func(string) ([]byte, error){"certificate": base64.StdEncoding.DecodeString, "certificate-within": firstCertificate} {
		for _, line := range a[key] {
			path, encoded, _ := strings.Cut(line, " ")
			der, err := read(encoded)
			h.Certificates = append(h.Certificates, newCertificate(path, der, err))
		}
	}
	slices.SortStableFunc(h.Certificates, func(a, b Certificate) int { return strings.Compare(a.Path, b.Path) })
	h.RenewalBegun = a.has("renewal-begun")
	for _, pod := range staticPods {
		if slices.Contains(a["stale-pod"], pod) {
			h.StalePods = append(h.StalePods, pod)
		}
	}
	if encoded := a.first("served"); encoded != "" && h.ControlPlane != nil {
		der, err := base64.StdEncoding.DecodeString(encoded)
		h.ControlPlane.Served = newCertificate("", der, err).Sum
	}
	return nil
}

// newCertificate is the certificate in der. One that cannot be read has a path only.
func newCertificate(path string, der []byte, err error) Certificate {
	c := Certificate{Path: printable.Short(path, maxNameText)}
	if err != nil {
		return c
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return c
	}
	sum := sha256.Sum256(der)
	c.Begins, c.Ends, c.CA, c.Sum = cert.NotBefore, cert.NotAfter, cert.IsCA, hex.EncodeToString(sum[:])
	c.Subject, c.Issuer = printable.Short(cert.Subject.CommonName, maxNameText), printable.Short(cert.Issuer.CommonName, maxNameText)
	for _, name := range cert.DNSNames {
		c.Names = append(c.Names, printable.Short(name, maxNameText))
	}
	for _, address := range cert.IPAddresses {
		c.Names = append(c.Names, address.String())
	}
	c.Names = c.Names[:min(len(c.Names), maxNames)]
	return c
}
