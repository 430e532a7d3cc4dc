package snapshot

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDiffSaysWhatCameWentAndChanged(t *testing.T) {
	a := tidy([]Fact{{"file", "/a", "1"}, {"file", "/b", "1"}, {"unit", "x", "active"}})
	b := tidy([]Fact{{"file", "/b", "2"}, {"file", "/c", "1"}, {"unit", "x", "active"}, {"user", "new", ""}})
	want := []string{"- file /a  1", "~ file /b  1 -> 2", "+ file /c  1", "+ user new"}
	if got := Diff(a, b); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Diff(a, a); len(got) != 0 {
		t.Errorf("a differs from itself: %q", got)
	}
}

func TestEqualFactsAreCounted(t *testing.T) {
	once := tidy([]Fact{{"rule", "-A X", ""}})
	thrice := tidy([]Fact{{"rule", "-A X", ""}, {"rule", "-A X", ""}, {"rule", "-A X", ""}})
	want := []string{"+ rule -A X #2", "+ rule -A X #3"}
	if got := Diff(once, thrice); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWrittenSnapshotReadsBack(t *testing.T) {
	s := tidy([]Fact{{"file", "/with blank", ""}, {"swap", "/x", "a\tb"}})
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil || !slices.Equal(got, s) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestIgnorePatterns(t *testing.T) {
	ig, err := loadIgnore("file /var/log/** # logs\nfile /home/*/.cache/** # caches\nfile /run/motd* # login\nsysctl a.*.b # x\n")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{
		"/var/log": false, "/var/log/a": true, "/var/log/a/b": true, "/var/logs": false, "/": false,
		"/home/ubuntu/.cache": false, "/home/ubuntu/.cache/x/y": true, "/run/motd.dynamic": true, "/run/motd/x": false,
	} {
		if got := ig.has("file", key); got != want {
			t.Errorf("file %s: ignored is %v", key, got)
		}
	}
	if !ig.has("sysctl", "a.x.b") || ig.has("unit", "a.x.b") {
		t.Error("patterns do not keep to their kind")
	}
	if !ig.allBelow("file", "/var/log") || ig.allBelow("file", "/var") || !ig.allBelow("file", "/home/x/.cache/y") {
		t.Error("allBelow is wrong")
	}
}

func TestIgnoreListNeedsReasons(t *testing.T) {
	if _, err := loadIgnore(AllowList); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"file /x\n", "file # why\n", "file /x /y # why\n", "file [ # why\n"} {
		if _, err := loadIgnore(bad); err == nil {
			t.Errorf("%q was accepted", strings.TrimSpace(bad))
		}
	}
}

func TestFilesTellContentModeOwnerAndTarget(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"var/log", "run", "tmp", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"etc/a": "1", "etc/.hidden": "", "var/log/noise": "x", "etc/tab\there": ""} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/outside", filepath.Join(root, "etc/link")); err != nil {
		t.Fatal(err)
	}
	ig, err := loadIgnore("file /var/log/** # noise\n")
	if err != nil {
		t.Fatal(err)
	}
	facts, err := files(t.Context(), root, ig, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range facts {
		got[f.Key] = f.Value
	}
	// sha256 of "1"
	const one = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
	if v := got["/etc/a"]; !strings.HasPrefix(v, "0600 ") || !strings.HasSuffix(v, one) {
		t.Errorf("/etc/a: %q", v)
	}
	if v := got["/etc/link"]; !strings.HasSuffix(v, " -> /outside") {
		t.Errorf("/etc/link: %q", v)
	}
	for key, want := range map[string]bool{"/": true, "/etc/.hidden": true, "/var/log": true, "/var/log/noise": false, `"/etc/tab\there"`: true} {
		if _, ok := got[key]; ok != want {
			t.Errorf("%s recorded: %v", key, ok)
		}
	}
}

func TestWhichContainersRunIsNotRecorded(t *testing.T) {
	const (
		pod    = `115 1276 0:173 / /run/containerd/io.containerd.grpc.v1.cri/sandboxes/281810b1ecb034d8f67414427b75e6d2a9bac4fd2393c0d177f487ee17ee4193/shm rw - tmpfs shm rw,size=65536k` + "\n"
		one    = `129 1276 0:187 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/81be06906b95a9b246a0f4f11f34289fe7b6b1f6c46edfb3678b3a9639882423/rootfs rw - overlay overlay rw,lowerdir=/a` + "\n"
		other  = `129 1276 0:188 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/f7468e7c9ed44a2d114b873325449ce462ff09f255e21b57c84e1a9efb7fdaaa/rootfs rw - overlay overlay rw,lowerdir=/b` + "\n"
		docker = `206 1276 0:196 / /var/lib/docker/overlay2/a3ff873b1b44f512588d89aed246451e4f3b65225e65a46c2981fff7f423bc50/merged rw - overlay overlay rw` + "\n"
		anew   = `207 1276 0:196 / /var/lib/docker/overlay2/f7468e7c9ed44a2d114b873325449ce462ff09f255e21b57c84e1a9efb7fdaaa/merged rw - overlay overlay rw` + "\n"
	)
	recorded := func(infos string) Snapshot {
		facts, err := mounted(strings.NewReader(infos))
		if err != nil {
			t.Fatal(err)
		}
		return tidy(facts)
	}
	if changed := Diff(recorded(pod+one+docker), recorded(pod+other+anew)); len(changed) > 0 {
		t.Errorf("a container that was started anew: %q", changed)
	}
	for before, left := range map[string]string{"": pod, pod: pod + one, one: one + docker, docker: docker + anew} {
		if changed := Diff(recorded(before), recorded(left)); len(changed) != 1 {
			t.Errorf("%s is left: %q", left, changed)
		}
	}
}
