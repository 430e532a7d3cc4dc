package internet

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"kgpu.dev/kgpu/scripts/lab/internet/store"
)

// world is a front over fresh folders, and a client that trusts its authority and finds every name there.
type world struct {
	images, extra, sites string
	faults               Faults
	client               *http.Client
	log                  bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{images: t.TempDir(), extra: t.TempDir(), sites: t.TempDir(), faults: Faults{File: filepath.Join(t.TempDir(), "faults.json")}}
	pki := t.TempDir()
	if err := CreateAuthority(pki); err != nil {
		t.Fatal(err)
	}
	authority, err := loadAuthority(pki)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(accessLog(&w.log, faulty(w.faults, newFront(w.images, w.extra, w.sites))))
	server.TLS = &tls.Config{GetCertificate: authority.get}
	server.StartTLS()
	t.Cleanup(server.Close)
	server.TLS.Certificates = nil // httptest puts its own there, which would win

	roots := x509.NewCertPool()
	text, err := os.ReadFile(filepath.Join(pki, AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	roots.AppendCertsFromPEM(text)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	w.client = &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return w
}

func (w *world) get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := w.client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSitesByHostName(t *testing.T) {
	w := newWorld(t)
	put(t, filepath.Join(w.sites, "pkgs.k8s.io/core:/stable:/v1.36/deb/Release.key"), "key")
	put(t, filepath.Join(w.sites, "example.com/a"), "ours")
	put(t, filepath.Join(w.extra, "example.com/a"), "the tester's")
	put(t, filepath.Join(w.sites, "example.com/b"), "b")
	put(t, filepath.Join(filepath.Dir(w.sites), "secret"), "s")
	for _, c := range []struct {
		url    string
		status int
		text   string
	}{
		{"https://pkgs.k8s.io/core:/stable:/v1.36/deb/Release.key", 200, "key"},
		{"https://example.com/a", 200, "the tester's"},
		{"https://example.com/b", 200, "b"},
		{"https://example.com/c", 404, "not in the lab: example.com/c\n"},
		{"https://elsewhere.example/a", 404, "not in the lab: elsewhere.example/a\n"},
		{"https://example.com/..%2f..%2fsecret", 404, "not in the lab: example.com/../../secret\n"},
	} {
		if status, text := w.get(t, c.url); status != c.status || text != c.text {
			t.Errorf("%s: %d %q, want %d %q", c.url, status, text, c.status, c.text)
		}
	}
	if lines := strings.Split(w.log.String(), "\n"); !strings.HasSuffix(lines[0], "GET pkgs.k8s.io/core:/stable:/v1.36/deb/Release.key") {
		t.Errorf("access log: %s", lines[0])
	}
}

func TestImagesArePulledUnderTheirOwnNames(t *testing.T) {
	w := newWorld(t)
	images := store.Store{Dir: w.images}
	first, second := randomImage(t), randomImage(t)
	for ref, image := range map[string]v1.Image{
		"registry.k8s.io/pause:3.10": first, "registry.k8s.io/pause:3.9": second,
		"busybox:1.37": second, "ghcr.io/flannel-io/flannel:v1": second,
	} {
		if err := images.Put(ref, image); err != nil {
			t.Fatal(err)
		}
	}
	for ref, image := range map[string]v1.Image{
		"registry.k8s.io/pause:3.10": first, "k8s.gcr.io/pause:3.10": first,
		"docker.io/library/busybox:1.37": second, "registry-1.docker.io/library/busybox:1.37": second,
		"ghcr.io/flannel-io/flannel@" + digest(t, second): second,
		store.Mirror + "/pause:3.10":                      first,
		store.Mirror + "/library/busybox:1.37":            second,
	} {
		got, err := crane.Pull(ref, crane.WithTransport(w.client.Transport))
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if err := validate.Image(got); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
		if digest(t, got) != digest(t, image) {
			t.Errorf("%s is another image", ref)
		}
	}
	for _, ref := range []string{"ghcr.io/pause:3.10", "registry.k8s.io/pause:3", "registry.k8s.io/flannel-io/flannel@" + digest(t, second)} {
		if _, err := crane.Pull(ref, crane.WithTransport(w.client.Transport)); err == nil || !strings.Contains(err.Error(), "MANIFEST_UNKNOWN") {
			t.Errorf("%s: %v, want MANIFEST_UNKNOWN", ref, err)
		}
	}
	tags, err := crane.ListTags("registry.k8s.io/pause", crane.WithTransport(w.client.Transport))
	if err != nil || !slices.Equal(tags, []string{"3.10", "3.9"}) {
		t.Errorf("tags %v, %v", tags, err)
	}
	want := []string{"docker.io", "ghcr.io", "index.docker.io", "k8s.gcr.io", store.Mirror, "registry-1.docker.io", "registry.k8s.io"}
	if hosts, err := images.Hosts(); err != nil || !slices.Equal(hosts, want) {
		t.Errorf("hosts %v, %v", hosts, err)
	}
}

func TestAPutImageReplacesTheOneOfItsName(t *testing.T) {
	images := store.Store{Dir: t.TempDir()}
	first, second := randomImage(t), randomImage(t)
	for _, image := range []v1.Image{first, second} {
		if err := images.Put("quay.io/a/b:1", image); err != nil {
			t.Fatal(err)
		}
	}
	d, _, err := images.Manifest(store.Repository{Host: "quay.io", Name: "a/b"}, "1")
	if err != nil || d.Digest.String() != digest(t, second) {
		t.Errorf("%v, %v", d.Digest, err)
	}
}

func TestAuthorityVouchesOnlyForHostNames(t *testing.T) {
	w := newWorld(t)
	if _, err := w.client.Get(fmt.Sprintf("https://%s/", "127.0.0.1")); err == nil {
		t.Error("a client that asked for no name got a certificate")
	}
}

func randomImage(t *testing.T) v1.Image {
	t.Helper()
	image, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	h, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}
