package internet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kgpu.dev/kgpu/scripts/lab/problem"
)

// AuthorityFile is the name of the certificate, below a place's PKI folder, that hosts have to trust.
const AuthorityFile = "ca.crt"

const (
	authorityKey      = "ca.key"
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 30 * 24 * time.Hour
)

// CreateAuthority makes the lab's certificate authority in the folder pki. Its key is for root's eyes only.
func CreateAuthority(pki string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kgpu lab"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(authorityLifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	private = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
	if err := os.WriteFile(filepath.Join(pki, authorityKey), private, 0o600); err != nil {
		return err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	return os.WriteFile(filepath.Join(pki, AuthorityFile), certificate, 0o644)
}

// certificates issues a server certificate, signed by the lab's authority, for whatever name a client asks for.
type certificates struct {
	authority tls.Certificate
	lock      sync.Mutex
	issued    map[string]*tls.Certificate
}

func loadAuthority(pki string) (*certificates, error) {
	authority, err := tls.LoadX509KeyPair(filepath.Join(pki, AuthorityFile), filepath.Join(pki, authorityKey))
	if err != nil {
		return nil, &problem.Problem{Step: "load the lab's certificate authority", Reason: "LAB_NOT_PREPARED", Advice: "Run `lab prepare`.", Err: err}
	}
	return &certificates{authority: authority, issued: map[string]*tls.Certificate{}}, nil
}

func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := hello.ServerName
	if !hostName.MatchString(host) {
		return nil, fmt.Errorf("no host name in the handshake")
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if done := c.issued[host]; done != nil {
		return done, nil
	}
	fresh, err := c.issue(host)
	if err == nil {
		c.issued[host] = fresh
	}
	return fresh, err
}

func (c *certificates) issue(host string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(leafLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.authority.Leaf, key.Public(), c.authority.PrivateKey)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, c.authority.Certificate[0]}, PrivateKey: key}, nil
}
