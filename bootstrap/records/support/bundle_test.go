package support

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	must(t, err)
	out := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		must(t, err)
		content, err := io.ReadAll(archive)
		must(t, err)
		if header.Typeflag != tar.TypeReg || header.Mode != 0o600 {
			t.Errorf("%s has type %c and mode %o", header.Name, header.Typeflag, header.Mode)
		}
		out[header.Name] = string(content)
	}
}

func TestBundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	b, err := Create(file, "top", noon, NewScrubber("hunter22"))
	must(t, err)
	must(t, errors.Join(b.Add("about.txt", []byte("x hunter22")), b.Add("hosts/w1/df.txt", nil)))
	must(t, b.Add("about.txt", []byte("once more")))
	size, err := b.Close()
	info, statErr := os.Stat(file)
	must(t, errors.Join(err, statErr))
	if size != info.Size() || info.Mode() != 0o600 {
		t.Errorf("%d of %d bytes, mode %s", size, info.Size(), info.Mode())
	}
	if got, want := unpack(t, file), map[string]string{"top/about.txt": "x [scrubbed]", "top/about.txt.2": "once more", "top/hosts/w1/df.txt": ""}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if _, err := Create(file, "top", noon, NewScrubber()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a bundle was overwritten: %v", err)
	}
}

func TestBundleThatIsGivenUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	b, err := Create(file, "top", noon, NewScrubber())
	must(t, err)
	must(t, b.Remove())
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}

func TestFolder(t *testing.T) {
	for name, want := range map[string]string{
		"gpu1": "gpu1", "10.0.0.4": "10.0.0.4", "fe80::1%eth0": "fe80-1-eth0", "../../x": "x", "..": "unnamed", "": "unnamed", "a/b": "a-b",
	} {
		if got := Folder(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
	if got, want := Name("my lab", noon), "kgpu-support-my-lab-20260701-120000"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
