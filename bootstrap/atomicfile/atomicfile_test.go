package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// has holds what is in a file that is no link, and its mode.
func has(t *testing.T, path, want string, mode fs.FileMode) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s has %q, %v; want %q", path, got, err, want)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
		t.Errorf("%s: %v, %v; want the mode %v", path, info, err, mode)
	}
}

// holds holds what is in a folder: nothing is left behind in it.
func holds(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want) {
		t.Errorf("%v, %v; want %q", entries, err, want)
	}
}

func put(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	must(t, errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)))
}

func link(t *testing.T, to, path string) {
	t.Helper()
	must(t, os.Symlink(to, path))
}

// Nothing of a longer file before it stays behind the end. Write gives the mode, Update keeps it.
func TestReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path, fresh := filepath.Join(dir, "file"), filepath.Join(dir, "fresh")
	put(t, path, strings.Repeat("an older, longer file\n", 100), 0o644)
	must(t, Write(path, []byte("new\n"), 0o600))
	has(t, path, "new\n", 0o600)
	put(t, path, "longer\n", 0o640)
	must(t, Update(path, []byte("new\n"), 0o644))
	has(t, path, "new\n", 0o640)
	must(t, Update(fresh, []byte("x"), 0o644))
	has(t, fresh, "x", 0o644)
	holds(t, dir, "file", "fresh")
}

// A link stays one, also where it is in a folder that is one, and where nothing is behind it yet.
func TestFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	real, folder := filepath.Join(dir, "deep", "real"), filepath.Join(dir, "folder")
	must(t, os.MkdirAll(real, 0o700))
	link(t, "deep/real", folder)
	link(t, "../target", filepath.Join(real, "link"))
	for _, text := range []string{"first", "second"} {
		must(t, Update(filepath.Join(folder, "link"), []byte(text), 0o644))
		has(t, filepath.Join(dir, "deep", "target"), text, 0o644)
	}
	holds(t, dir, "deep", "folder")
	holds(t, real, "link")
	round := filepath.Join(dir, "round")
	link(t, "round", round)
	for _, err := range []error{Write(round, nil, 0o600), Writable(round)} {
		if err == nil || !strings.Contains(err.Error(), "too many symbolic links") {
			t.Error(err)
		}
	}
}

// Whoever asks before hears what would hinder.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	put(t, file, "", 0o644)
	must(t, syscall.Mkfifo(pipe, 0o600))
	for name, c := range map[string]struct {
		path string
		ok   bool
	}{
		"a file":                            {file, true},
		"nothing yet":                       {filepath.Join(dir, "fresh"), true},
		"what is no file":                   {pipe, false},
		"a folder that is missing":          {filepath.Join(dir, "none", "x"), false},
		"a folder that is a file":           {filepath.Join(file, "x"), false},
		"a name without room for the other": {filepath.Join(dir, strings.Repeat("x", 250)), false},
	} {
		before := Writable(c.path)
		if err := Write(c.path, []byte("x"), 0o600); (err == nil) != c.ok || (before == nil) != c.ok {
			t.Errorf("%s: %v was said, and then %v", name, before, err)
		}
	}
	holds(t, dir, "file", "pipe", "fresh")
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path, to := filepath.Join(dir, "x.yaml"), filepath.Join(dir, "link.yaml")
	must(t, Create(path, []byte("one"), 0o600))
	link(t, "nowhere", to)
	for _, there := range []string{path, to} {
		if err := Create(there, []byte("two"), 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", there, err)
		}
	}
	has(t, path, "one", 0o600)
	if err := Create(filepath.Join(dir, "no", "x.yaml"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := Create(filepath.Join(dir, strings.Repeat("x", 250)), nil, 0o600); err == nil {
		t.Error("a file was made that cannot be replaced")
	}
	holds(t, dir, "x.yaml", "link.yaml")
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
