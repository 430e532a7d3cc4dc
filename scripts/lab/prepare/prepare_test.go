package prepare

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kgpu.dev/kgpu/scripts/lab/place"
)

func newPreparer(t *testing.T) *preparer {
	t.Helper()
	dir := t.TempDir()
	p := &preparer{Place: place.Place{Name: "test", Cache: dir, State: filepath.Join(dir, "state"), Extra: filepath.Join(dir, "extra")}, items: newItems(io.Discard)}
	if err := os.MkdirAll(p.work(), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestItemIsMadeOnceForItsInputs(t *testing.T) {
	s, path, made := newItems(io.Discard), filepath.Join(t.TempDir(), "thing"), 0
	do := func(input string) {
		t.Helper()
		err := s.do(t.Context(), item{name: "thing", path: path, inputs: []any{input}, make: func(context.Context) error { made++; return nil }})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		input string
		made  int
	}{{"1.0", 1}, {"1.0", 1}, {"1.1", 2}, {"1.0", 3}} {
		if do(step.input); made != step.made {
			t.Errorf("after %s: made %d times, want %d", step.input, made, step.made)
		}
	}
}

func TestInterruptedItemIsMadeAnew(t *testing.T) {
	s, path := newItems(io.Discard), filepath.Join(t.TempDir(), "thing")
	good := item{name: "thing", path: path, make: func(context.Context) error { return nil }}
	if err := s.do(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	changed := item{name: "thing", path: path, inputs: []any{2}, make: func(context.Context) error { return errors.New("power cut") }}
	if err := s.do(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "thing: power cut") {
		t.Fatalf("error %v", err)
	}
	if good.fresh() {
		t.Error("the stamp of before the failure still counts")
	}
}

func TestRepositoryIsSignedSoThatGpgvAgrees(t *testing.T) {
	p := newPreparer(t)
	if err := p.keys(t.Context()); err != nil {
		t.Fatal(err)
	}
	repository, tree := filepath.Join(p.Site("packages.example"), "deb"), filepath.Join(p.work(), "deb")
	if err := writeFile(filepath.Join(tree, "usr/share/doc/hello/readme"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.buildDeb(t.Context(), deb{name: "hello", version: "1.0-1.1", root: tree}, filepath.Join(repository, "amd64")); err != nil {
		t.Fatal(err)
	}
	if err := p.flatRepository(t.Context(), repository); err != nil {
		t.Fatal(err)
	}
	gpgv := func(files ...string) error {
		return command{dir: repository}.run(t.Context(), "gpgv", append([]string{"--keyring", p.archiveKey()}, files...)...)
	}
	if err := gpgv("InRelease"); err != nil {
		t.Error(err)
	}
	if err := gpgv("Release.gpg", "Release"); err != nil {
		t.Error(err)
	}
	packages, err := os.ReadFile(filepath.Join(repository, "Packages"))
	if err != nil || !bytes.Contains(packages, []byte("Package: hello\n")) || !bytes.Contains(packages, []byte("Filename: ./amd64/hello_1.0-1.1_amd64.deb\n")) {
		t.Errorf("Packages: %s, %v", packages, err)
	}
	fingerprint, err := os.ReadFile(p.fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	shown, err := exec.Command("gpg", "--show-keys", "--with-colons", filepath.Join(repository, "Release.key")).Output()
	if err != nil || !bytes.Contains(shown, append([]byte(":"), bytes.TrimSpace(fingerprint)...)) {
		t.Errorf("gpg shows %s, %v, want %s", shown, err, fingerprint)
	}

	tampered := filepath.Join(repository, "InRelease")
	text, err := os.ReadFile(tampered)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tampered, bytes.Replace(text, []byte("kgpu lab"), []byte("somebody"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if gpgv("InRelease") == nil {
		t.Error("gpgv accepts a changed InRelease")
	}
}

func TestPrivateKeysAreForRootOnly(t *testing.T) {
	p := newPreparer(t)
	if err := p.keys(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{p.ClientKey(), p.signingKey(), filepath.Join(p.PKI(), "ca.key")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", path, info.Mode())
		}
	}
}

func TestImageIsWellFormedAndReproducible(t *testing.T) {
	tree := t.TempDir()
	if err := minimalRoot(tree); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("passwd", filepath.Join(tree, "etc/link")); err != nil {
		t.Fatal(err)
	}
	build := func() v1.Image {
		l, err := packLayer(tree, filepath.Join(t.TempDir(), "layer.tar"))
		if err != nil {
			t.Fatal(err)
		}
		image, err := assemble(v1.Config{Entrypoint: []string{"/x"}}, []v1.Layer{l})
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	first, err := build().Digest()
	if err != nil {
		t.Fatal(err)
	}
	again := build()
	layers, err := again.Layers()
	if err != nil {
		t.Fatal(err)
	}
	config, err := again.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if d, err := layers[0].Digest(); err != nil || len(config.RootFS.DiffIDs) != 1 || config.RootFS.DiffIDs[0] != d {
		t.Errorf("layers %v, the config says %v, %v", d, config.RootFS.DiffIDs, err)
	}
	if second, err := again.Digest(); err != nil || second != first {
		t.Errorf("digests %v and %v, %v", first, second, err)
	}
}

func TestUnknownTargetIsNamed(t *testing.T) {
	err := Run(t.Context(), Options{What: []string{"k8s-9"}, Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), `unknown target "k8s-9": want one of docker, gpu, k8s-1.23, k8s-1.35, noble, all`) {
		t.Errorf("error %v", err)
	}
}
