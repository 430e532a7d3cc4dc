package kubeconfig

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

// authority is a certificate authority and an administrator's certificate of it, PEM.
func authority(t *testing.T) (ca, certificate []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	own := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	admin := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "admin"}, NotBefore: own.NotBefore, NotAfter: own.NotAfter}
	for _, c := range []struct {
		cert *x509.Certificate
		to   *[]byte
	}{{own, &ca}, {admin, &certificate}} {
		der, err := x509.CreateCertificate(rand.Reader, c.cert, own, &key.PublicKey, key)
		must(t, err)
		*c.to = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	return ca, certificate
}

func access(t *testing.T) *Access {
	t.Helper()
	ca, certificate := authority(t)
	return &Access{Cluster: "lab", User: "lab-admin", Context: "lab", Server: "https://10.0.0.10:6443", CA: ca, Certificate: certificate, Key: []byte("THE-KEY")}
}

const others = `# mine, do not touch
apiVersion: v1
kind: Config
current-context: work # every day
clusters:
  - name: work # the big one
    cluster: {server: "https://work:6443", certificate-authority: /etc/work.crt}
contexts:
  - name: work
    context: {cluster: work, user: me, namespace: dev}
users:
  # hardware token
  - name: me
    user:
      exec: {command: token, apiVersion: client.authentication.k8s.io/v1}
preferences: {colors: true}
x-mine: kept
`

func TestMerge(t *testing.T) {
	ours, theirs := access(t), access(t)
	b64 := base64.StdEncoding.EncodeToString
	entry := func(a *Access, cluster, more string) string {
		return "apiVersion: v1\nkind: Config\nclusters:\n- name: lab\n  cluster: {server: \"https://old:6443\", proxy-url: \"http://proxy\", certificate-authority-data: " + b64(a.CA) + cluster + "}\n" +
			"contexts:\n- name: lab\n  context: {cluster: lab, user: lab-admin, namespace: mine" + more + "}\n" +
			"users:\n- name: lab-admin\n  user: {token: old, client-certificate-data: " + b64(a.Certificate) + more + "}\ncurrent-context: \"\"\n"
	}
	made := `, extensions: [{name: their.own, extension: 1}, {name: kgpu.dev, extension: {inventory: /home/me/inventory.yaml}}]`
	elsewhere := strings.ReplaceAll(made, "/home/me/", "/home/you/")
	file := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(file, ours.CA, 0o600))
	for _, c := range []struct {
		name, before string
		use          bool
		conflict     string // kind
		fails        string
	}{
		{name: "nothing", use: true},
		{name: "kubectls-own-empty-file", use: true, before: "apiVersion: v1\nclusters: []\ncontexts: null\ncurrent-context: \"\"\nkind: Config\npreferences: {}\nusers: []\n"},
		{name: "only-a-comment", use: true, before: "# later\n"},
		{name: "others", before: others},
		{name: "others-use", before: others, use: true},
		{name: "same-cluster", use: true, before: entry(ours, "", "")},
		{name: "same-cluster-by-file", use: true, before: strings.Replace(entry(ours, "", ""), "certificate-authority-data: "+b64(ours.CA), "certificate-authority: "+filepath.Base(file), 1)},
		{name: "made-anew", use: true, before: entry(theirs, made, made)},
		{name: "json", before: `{"apiVersion":"v1","kind":"Config","clusters":[],"users":[],"contexts":[],"current-context":"x"}`},
		{name: "another cluster", before: entry(theirs, "", ""), conflict: "cluster"},
		{name: "another inventory's cluster", before: entry(theirs, elsewhere, elsewhere), conflict: "cluster"},
		{name: "another user", before: "users: [{name: lab-admin, user: {token: x}}]\n", conflict: "user"},
		{name: "another context", before: "contexts: [{name: lab, context: {cluster: other, user: x}}]\n", conflict: "context"},
		{name: "a pod", before: "apiVersion: v1\nkind: Pod\n", fails: "not a kubeconfig"},
		{name: "a list", before: "[]\n", fails: "not a kubeconfig"},
		{name: "two documents", before: "kind: Config\n---\nkind: Config\n", fails: "more than one document"},
		{name: "broken", before: "clusters: [secret-word\n", fails: "not YAML"},
		{name: "clusters are a word", before: "clusters: x\n", fails: "not a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			merge := func(before []byte) ([]byte, error) {
				return Merge(before, ours, "/home/me/inventory.yaml", filepath.Dir(file), c.use)
			}
			after, err := merge([]byte(c.before))
			var conflict *ConflictError
			switch {
			case c.conflict != "":
				if !errors.As(err, &conflict) || conflict.Kind != c.conflict {
					t.Errorf("%v, want a conflict of the %s", err, c.conflict)
				}
				return
			case c.fails != "":
				if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "secret-word") {
					t.Errorf("%v", err)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			golden(t, c.name, strings.NewReplacer(b64(ours.CA), "THE-CA", b64(ours.Certificate), "THE-CERTIFICATE", b64(ours.Key), "VEhFLUtFWQ==").Replace(string(after)))
			again, err := merge(after)
			if err != nil || !bytes.Equal(again, after) {
				t.Errorf("it is not the same when repeated: %v\n%s", err, again)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		must(t, errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got), 0o644)))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What was merged goes, also under another context's name, and nothing of another inventory or cluster.
func TestForget(t *testing.T) {
	a := access(t)
	merged, err := Merge([]byte(others), a, "/lab.yaml", "/", false)
	must(t, err)
	merged = bytes.ReplaceAll(merged, []byte("name: lab\n    context:"), []byte("name: mine\n    context:"))
	plain, err := Forget(merged, "lab", "/lab.yaml")
	if err != nil || bytes.Contains(plain, []byte("lab")) || !bytes.Contains(plain, []byte("current-context: work # every day")) || !bytes.Contains(plain, []byte("# the big one")) {
		t.Errorf("%v\n%s", err, plain)
	}
	for _, other := range [][2]string{{"lab", "/other.yaml"}, {"other", "/lab.yaml"}} {
		if got, err := Forget(merged, other[0], other[1]); err != nil || !bytes.Equal(got, merged) {
			t.Errorf("%s: %v\n%s", other, err, got)
		}
	}
}

func TestEncode(t *testing.T) {
	a := access(t)
	a.TLSServerName, a.Namespace = "10.0.0.10", "dev"
	text, err := a.Encode()
	must(t, err)
	got, err := Parse(text)
	must(t, err)
	got.Namespace = a.Namespace // Parse has no use for it
	if got.Server != a.Server || got.Name() != "10.0.0.10" || got.Context != "lab" || string(got.Key) != "THE-KEY" || !bytes.Equal(got.CA, a.CA) {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(string(text), "namespace: dev") {
		t.Errorf("%s", text)
	}
	for _, broken := range []string{"", "clusters: []", strings.Replace(string(text), "https://", "http://", 1), strings.Replace(string(text), "client-key-data: ", "client-key-data: !", 1), "}"} {
		if _, err := Parse([]byte(broken)); err == nil || strings.Contains(err.Error(), "VEhFLUtFWQ") {
			t.Errorf("%v of %s", err, broken)
		}
	}
}

func TestUpdate(t *testing.T) {
	write := func(text string) func([]byte) ([]byte, error) {
		return func([]byte) ([]byte, error) { return []byte(text), nil }
	}
	dir := t.TempDir()
	path, target := filepath.Join(dir, "home", ".kube", "config"), filepath.Join(dir, "dotfiles", "kubeconfig")
	must(t, Update(path, write("new\n")))
	mode(t, path, "new\n")

	// A link stays one, also where nothing is behind it yet.
	must(t, errors.Join(os.Remove(path), os.Symlink("../../dotfiles/kubeconfig", path)))
	for _, text := range []string{"first\n", "second\n"} {
		must(t, Update(path, write(text)))
		mode(t, target, text)
		if to, err := os.Readlink(path); err != nil || to != "../../dotfiles/kubeconfig" {
			t.Errorf("the link leads to %q, %v", to, err)
		}
	}

	// What fails changes nothing, and lets go of the lock.
	wrong := errors.New("wrong")
	if err := Update(path, func([]byte) ([]byte, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Error(err)
	}
	mode(t, target, "second\n")
	must(t, os.WriteFile(target+".lock", nil, 0o600))
	if err := Update(path, write("third\n")); err == nil || !strings.Contains(err.Error(), "kubeconfig.lock") {
		t.Errorf("kubectl's lock: %v", err)
	}
	mode(t, target, "second\n")
	must(t, os.Remove(target+".lock"))
	if left, _ := filepath.Glob(filepath.Join(dir, "dotfiles", ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}

	// A place where nothing can be written.
	if err := Update(filepath.Join(target, "config"), write("x")); err == nil {
		t.Error("a file was taken for a folder")
	}
	round := filepath.Join(dir, "round")
	must(t, os.Symlink("round", round))
	if err := Update(round, write("x")); err == nil || !strings.Contains(err.Error(), "too many symbolic links") {
		t.Error(err)
	}
}

func mode(t *testing.T, path, want string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != want {
		t.Errorf("%s has %q, %v; want %q", path, data, err, want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, mode %v", err, info.Mode())
	}
}

// Of several files, kubectl takes the first current context that there is.
func TestHasCurrent(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	for name, text := range map[string]string{"none": "kind: Config\n", "empty": "current-context: \"\"\n", "one": "current-context: x\n", "broken": "{"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for files, want := range map[string]bool{"": false, "none:empty": false, "absent:none:one": true, "broken:one": true, "broken": false} {
		var paths []string
		for _, name := range strings.Split(files, ":") {
			paths = append(paths, filepath.Join(dir, name))
		}
		t.Setenv("KUBECONFIG", strings.Join(paths, ":"))
		if got := HasCurrent(); got != want {
			t.Errorf("%q: %v", files, got)
		}
	}
}

func TestDefaultPath(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for env, want := range map[string]string{"": "/home/me/.kube/config", "/a:/b": "/a", ":/b": "/b"} {
		t.Setenv("KUBECONFIG", env)
		if got, err := DefaultPath(); err != nil || got != want {
			t.Errorf("%q: %s, %v", env, got, err)
		}
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
