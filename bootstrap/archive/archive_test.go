package archive

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"kgpu.dev/kgpu/bootstrap/reason"
)

var made = time.Date(2026, 11, 26, 9, 15, 0, 0, time.UTC)

// written is the path of an archive with these contents.
func written(t *testing.T, to []age.Recipient, change func(*Manifest)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup")
	w, err := Create(path, to, made)
	must(t, err)
	must(t, w.AddBytes(Inventory, []byte("hosts: []\n")))
	snapshot := bytes.Repeat([]byte("etcd"), 1<<20)
	must(t, w.Add(Snapshot, int64(len(snapshot)), fmt.Sprintf("%x", sha256.Sum256(snapshot)), func(to io.Writer) error {
		_, err := io.Copy(to, bytes.NewReader(snapshot))
		return err
	}))
	must(t, w.AddBytes(PlaneFiles, []byte("THE-FILES")))
	m := Manifest{Kgpu: "1.2", Cluster: "lab", CA: strings.Repeat("ab", 32), Hosts: []Host{{ID: "cp1", Node: "cp1"}}}
	change(&m)
	_, err = w.Close(m)
	must(t, err)
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func unchanged(*Manifest) {}

func TestWhatIsWrittenIsRead(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	must(t, err)
	other, err := age.GenerateX25519Identity()
	must(t, err)
	for name, to := range map[string][]age.Recipient{"plain": nil, "encrypted": {other.Recipient(), key.Recipient()}} {
		path := written(t, to, unchanged)
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s: its mode is %s", name, info.Mode())
		}
		content, err := os.ReadFile(path)
		must(t, err)
		if name == "encrypted" && bytes.Contains(content, []byte("THE-FILES")) {
			t.Error("it is readable")
		}
		a, err := Check(path, []age.Identity{key})
		must(t, err)
		if a.Cluster != "lab" || !a.Made.Equal(made) || len(a.Files) != 3 || a.Format != Format {
			t.Errorf("%s: %+v", name, a.Manifest)
		}
		var out bytes.Buffer
		must(t, a.Extract(PlaneFiles, &out))
		if out.String() != "THE-FILES" {
			t.Errorf("%s: %q", name, out.String())
		}
		if beside, err := os.ReadDir(filepath.Dir(path)); err != nil || len(beside) != 1 {
			t.Errorf("%s: %v, %v", name, beside, err)
		}
	}
}

// TestRefused: what is not whole, not known or not for these eyes is refused, each by its own reason.
func TestRefused(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	must(t, err)
	plain, sealed := written(t, nil, unchanged), written(t, []age.Recipient{key.Recipient()}, unchanged)
	changed := func(path string, change func([]byte) []byte) string {
		content, err := os.ReadFile(path)
		must(t, err)
		out := filepath.Join(t.TempDir(), "changed")
		must(t, os.WriteFile(out, change(content), 0o600))
		return out
	}
	cut := func(content []byte) []byte { return content[:len(content)*2/3] }
	flip := func(at func(int) int) func([]byte) []byte {
		return func(content []byte) []byte {
			content[at(len(content))] ^= 4
			return content
		}
	}
	late := func(n int) int { return n - 20 }
	middle := func(n int) int { return n / 2 }
	rezipped := func(change func([]byte) []byte) func([]byte) []byte {
		return func(content []byte) []byte {
			zip, err := gzip.NewReader(bytes.NewReader(content))
			must(t, err)
			tar, err := io.ReadAll(zip)
			must(t, err)
			var out bytes.Buffer
			again := gzip.NewWriter(&out)
			_, err = again.Write(change(tar))
			must(t, errors.Join(err, again.Close()))
			return out.Bytes()
		}
	}
	for name, c := range map[string]struct {
		path string
		want reason.ID
	}{
		"cut off":              {changed(plain, cut), reason.BackupDamaged},
		"cut off between":      {changed(plain, rezipped(func(tar []byte) []byte { return tar[:1<<20] })), reason.BackupDamaged},
		"without its manifest": {changed(plain, rezipped(func(tar []byte) []byte { return append(tar[:1024:1024], make([]byte, 1024)...) })), reason.BackupDamaged},
		"another byte":         {changed(plain, flip(middle)), reason.BackupDamaged},
		"another snapshot":     {changed(plain, rezipped(func(tar []byte) []byte { return bytes.Replace(tar, []byte("etcdetcd"), []byte("etcdEtcd"), 1) })), reason.BackupDamaged},
		"another manifest":     {changed(plain, rezipped(func(tar []byte) []byte { return bytes.Replace(tar, []byte(`"lab"`), []byte(`"lob"`), 1) })), reason.BackupDamaged},
		"empty":                {changed(plain, func([]byte) []byte { return nil }), reason.BackupDamaged},
		"something else":       {changed(plain, func([]byte) []byte { return []byte("hosts: []\n") }), reason.BackupDamaged},
		"encrypted, cut off":   {changed(sealed, cut), reason.BackupDamaged},
		"encrypted, another":   {changed(sealed, flip(late)), reason.BackupDamaged},
		"without the snapshot": {func() string {
			path := filepath.Join(t.TempDir(), "without")
			w, err := Create(path, nil, made)
			must(t, err)
			_, err = w.Close(Manifest{Cluster: "lab", CA: strings.Repeat("ab", 32)})
			must(t, err)
			return path
		}(), reason.BackupDamaged},
	} {
		if a, err := Check(c.path, []age.Identity{key}); !errors.Is(err, &reason.Error{ID: c.want}) {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
	other, err := age.GenerateX25519Identity()
	must(t, err)
	for _, identities := range [][]age.Identity{nil, {other}} {
		if _, err := Check(sealed, identities); !errors.Is(err, &reason.Error{ID: reason.BackupLocked}) {
			t.Errorf("with %d identities: %v", len(identities), err)
		}
	}
	if _, err := Check(filepath.Join(t.TempDir(), "nothing"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

func TestNewerFormat(t *testing.T) {
	_, err := parseManifest([]byte(`{"format": 2, "kgpu": "9.9", "files": "otherwise"}`))
	if !errors.Is(err, &reason.Error{ID: reason.BackupNewer}) || !strings.Contains(err.Error(), "9.9") {
		t.Error(err)
	}
}

// TestArchiveThatIsGivenUp leaves nothing, and one that is there stays.
func TestArchiveThatIsGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup")
	w, err := Create(path, nil, made)
	must(t, err)
	if err := w.Add("x", 3, "", func(to io.Writer) error { return io.ErrUnexpectedEOF }); err == nil {
		t.Error("half a file is none")
	}
	must(t, w.Remove())
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	must(t, os.WriteFile(path, []byte("mine"), 0o600))
	if _, err := Create(path, nil, made); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	w, err = Create(path+"2", nil, made)
	must(t, err)
	if err := w.Add("x", 3, strings.Repeat("0", 64), func(to io.Writer) error { _, err := to.Write([]byte("abc")); return err }); err == nil {
		t.Error("another sum than was told")
	}
	must(t, w.Remove())
}

func TestName(t *testing.T) {
	if got := Name("lab", made, true); got != "kgpu-backup-lab-20261126-091500Z.tar.gz.age" {
		t.Error(got)
	}
	if _, err := Recipients([]string{"age1nonsense"}); err == nil {
		t.Error("nonsense is a recipient")
	}
}
