package snapshot

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A file is read again if anything may have changed in it, whatever its size and the time that programs can set.
func TestSumsOfFiles(t *testing.T) {
	dir := t.TempDir()
	file, kept := filepath.Join(dir, "file"), filepath.Join(dir, "sums")
	old := time.Now().Add(-time.Hour)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	// reads tells whether the file was read, when its last change has been long enough ago or not.
	reads := func(settled bool) (read bool) {
		t.Helper()
		s, err := readSums(kept)
		if err != nil {
			t.Fatal(err)
		}
		if settled {
			s.settled = time.Now().Add(time.Hour)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.of(info.Sys().(*syscall.Stat_t), func() (string, error) {
			read = true
			b, err := os.ReadFile(file)
			return string(b), err
		})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != text {
			t.Errorf("%v: %q is taken for %q", err, b, text)
		}
		if err := s.write(); err != nil {
			t.Fatal(err)
		}
		return read
	}
	write("one")
	if !reads(false) || !reads(true) || reads(true) {
		t.Error("only what has settled is known")
	}
	time.Sleep(20 * time.Millisecond) // the clock of a file system is coarse
	write("two")
	if !reads(true) || reads(true) {
		t.Error("what has changed is read, once")
	}
}
