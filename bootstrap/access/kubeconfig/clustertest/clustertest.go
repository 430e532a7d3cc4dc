// Package clustertest is a cluster's certificate authority for tests, and the kubeconfigs that a control plane could send.
package clustertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// Authority is a cluster's certificate authority.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// NewAuthority makes one.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{key: NewKey(t), cert: &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	cert, err := x509.ParseCertificate(a.Issue(t, a.cert, a.key.Public()))
	if err != nil {
		t.Fatal(err)
	}
	a.cert = cert
	return a
}

// NewKey makes a private key.
func NewKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Issue is a certificate, DER, that the authority has signed for a public key. It is valid from when the authority is, and
// as long, unless the template says otherwise.
func (a *Authority) Issue(t testing.TB, template *x509.Certificate, key crypto.PublicKey) []byte {
	t.Helper()
	template.NotBefore = a.cert.NotBefore
	if template.NotAfter.IsZero() {
		template.NotAfter = a.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// PEM is its certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Admin is the administrator's way in as kubeadm makes it.
func (a *Authority) Admin(t testing.TB, server string) *kubeconfig.Access {
	t.Helper()
	key := NewKey(t)
	der := a.Issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes-admin"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, key.Public())
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &kubeconfig.Access{
		Cluster: "kubernetes", User: "kubernetes-admin", Context: "kubernetes-admin@kubernetes", Server: server, CA: a.PEM(),
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}
}

// AdminConf is a kubeconfig as kubeadm writes it.
func AdminConf(t testing.TB, a *kubeconfig.Access) string {
	t.Helper()
	text, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "preferences: {}\n"
}

// Sign signs what a CertificateSigningRequest asks for, for a year at most.
func (a *Authority) Sign(t testing.TB, object []byte) []byte {
	t.Helper()
	var request struct {
		Spec struct {
			Request           string
			ExpirationSeconds int64 `yaml:"expirationSeconds"`
		}
	}
	if err := yaml.Unmarshal(object, &request); err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(request.Spec.Request)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		t.Fatalf("the request is %q", data)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := csr.CheckSignature(); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(time.Duration(request.Spec.ExpirationSeconds) * time.Second)
	if year := time.Now().AddDate(1, 0, 0); end.After(year) {
		end = year
	}
	template := &x509.Certificate{
		Subject: csr.Subject, NotAfter: end, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Issue(t, template, csr.PublicKey)})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// servedFile is one file over sftp.
type servedFile struct{ path string }

// ServeFile is an sftp-server with one file.
func ServeFile(e *sshtest.Exec, path string) int {
	f := servedFile{path}
	_ = sftp.NewRequestServer(struct {
		io.Reader
		io.WriteCloser
	}{e.Stdin, nopCloser{e.Stdout}}, sftp.Handlers{FileGet: f, FileList: f}).Serve()
	return 0
}

func (f servedFile) Fileread(*sftp.Request) (io.ReaderAt, error) { return os.Open(f.path) }

func (f servedFile) Filelist(*sftp.Request) (sftp.ListerAt, error) {
	info, err := os.Stat(f.path)
	return oneFile{info}, err
}

type oneFile struct{ info os.FileInfo }

func (f oneFile) ListAt(to []os.FileInfo, offset int64) (int, error) {
	if offset > 0 || len(to) == 0 {
		return 0, io.EOF
	}
	to[0] = f.info
	return 1, io.EOF
}

// Evil are what a control plane could send instead of an honest kubeconfig.
func Evil(honest string) map[string]string {
	user := func(more string) string {
		return strings.Replace(honest, "        client-key-data: ", "        "+more+"\n        client-key-data: ", 1)
	}
	cluster := func(more string) string {
		return strings.Replace(honest, "        server: ", "        "+more+"\n        server: ", 1)
	}
	return map[string]string{
		"exec":            user("exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, id], interactiveMode: Never}"),
		"tokenFile":       user("tokenFile: ~/vault-token"),
		"auth-provider":   user("auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}"),
		"client-key":      user("client-key: /root/.ssh/id_ed25519"),
		"token":           user("token: x"),
		"impersonation":   user("as-user-extra: {scopes: [x]}"),
		"proxy-url":       cluster("proxy-url: http://192.0.2.66:3128"),
		"insecure":        cluster("insecure-skip-tls-verify: true"),
		"tls-server-name": cluster("tls-server-name: elsewhere"),
		"extensions":      strings.Replace(honest, "preferences: {}", "extensions: [{name: x, extension: {command: sh}}]", 1),
		"alias bomb":      strings.Replace(honest, "preferences: {}", "preferences: &a [x]\nextensions: ["+strings.Repeat("*a,", 1<<20/3)+"]", 1),
		"a small bomb":    strings.Replace(honest, "preferences: {}", "preferences: &a [x]\nextensions: [*a,*a]", 1),
		"http":            strings.Replace(honest, "https://", "http://", 1),
		"a path":          strings.Replace(honest, ":6443", ":6443/../", 1),
		"escapes":         user(`"\e]0;evil\a": x`),
	}
}
