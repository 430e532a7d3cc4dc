package kubeconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"time"
)

// NewRequest makes a key, and asks for a certificate that says whose it is; both PEM.
func NewRequest(user, group string) (key, request []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: user, Organization: []string{group}},
	}, private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}), nil
}

// UserCertificate reads what the cluster has signed: it must be the user's, for their key, and signed by the cluster's authority.
// It returns the certificate written anew, and its end.
func UserCertificate(sent, key, authority []byte, user string) (text []byte, end time.Time, err error) {
	if text, err = ClientCertificate(sent, authority); err != nil {
		return nil, end, err
	}
	pair, err := tls.X509KeyPair(text, key)
	if err != nil {
		return nil, end, err
	}
	if name := pair.Leaf.Subject.CommonName; name != user {
		return nil, end, fmt.Errorf("the certificate is %q's", name)
	}
	return text, pair.Leaf.NotAfter, nil
}
