package support

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// put writes a file that is so many minutes old.
func put(t *testing.T, path string, content string, minutes int) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
	at := noon.Add(-time.Duration(minutes) * time.Minute)
	must(t, os.Chtimes(path, at, at))
}

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "logs/w1/os+swap.log"), "older\n", 5)
	put(t, filepath.Join(dir, "logs/w2/os+swap.log"), "newer\n", 1)
	put(t, filepath.Join(dir, "result.json"), "{}\n", 9)
	put(t, filepath.Join(dir, "lock"), "", 0)
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	read := func(room int) (names []string, rest int, left []string) {
		entries, left := ReadFolder(dir, &room)
		for _, e := range entries {
			names = append(names, e.Name+"="+string(e.Content))
		}
		return names, room, left
	}
	names, rest, left := read(1000)
	if want := []string{"result.json={}\n", "logs/w2/os+swap.log=newer\n", "logs/w1/os+swap.log=older\n"}; !slices.Equal(names, want) || rest != 1000-15 || len(left) > 0 {
		t.Errorf("%q, %d, %q", names, rest, left)
	}
	names, rest, left = read(9)
	if len(names) != 2 || rest != 0 || !slices.Equal(left, []string{"logs/w1/os+swap.log: 6 of 6 bytes are left out"}) {
		t.Errorf("without room: %q, %d, %q", names, rest, left)
	}
	room := 1000
	if entries, left := ReadFolder(filepath.Join(dir, "nowhere"), &room); len(entries) > 0 || len(left) != 1 {
		t.Errorf("%q, %q", entries, left)
	}
}

// Of what is too long, there is the beginning and the end, in whole lines.
func TestReadFolderWithALongFile(t *testing.T) {
	dir := t.TempDir()
	var all bytes.Buffer
	for i := 0; all.Len() <= 2*MaxFile; i++ {
		fmt.Fprintf(&all, "line %d of many\n", i)
	}
	put(t, filepath.Join(dir, "events.jsonl"), all.String(), 0)
	room := 3 * MaxFile
	entries, left := ReadFolder(dir, &room)
	if len(entries) != 1 || len(left) != 1 || !strings.HasPrefix(left[0], "events.jsonl: ") {
		t.Fatalf("%d entries, %q", len(entries), left)
	}
	got := entries[0].Content
	if len(got) > MaxFile || len(got) < MaxFile-100 || !bytes.HasPrefix(got, []byte("line 0 of")) || !bytes.HasSuffix(all.Bytes(), got[len(got)/2:]) {
		t.Errorf("%d bytes", len(got))
	}
	for line := range bytes.Lines(got) {
		if !bytes.HasPrefix(line, []byte("line ")) || !bytes.HasSuffix(line, []byte(" of many\n")) {
			t.Fatalf("a line is cut: %q", line)
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
