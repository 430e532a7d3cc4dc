package storm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// withEnv is a lab whose program prints what clients need.
func withEnv(t *testing.T) *Lab {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"export KGPU_LAB_KEY='/key'\"\necho \"export KGPU_LAB_KNOWN_HOSTS='/hosts'\"\necho \"export KGPU_LAB_FINGERPRINT='AB12'\"\n"
	if err := os.WriteFile(filepath.Join(dir, "lab"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Lab{
		Program: filepath.Join(dir, "lab"), Hosts: []string{"cp1", "w1"}, dir: dir,
		address: map[string]string{"cp1": "10.0.0.1", "w1": "10.0.0.2"},
	}
}

// TestHostsWithCards: the lab makes them, and the inventory says where what they need comes from; others hear nothing of it.
func TestHostsWithCards(t *testing.T) {
	for _, c := range []struct {
		cards []string
		want  [][]string
	}{
		{nil, [][]string{{"destroy"}, {"prepare"}, {"up", "--workers", "1"}}},
		{[]string{"w1=2xA100"}, [][]string{{"destroy"}, {"prepare", "gpu"}, {"up", "--workers", "1", "--gpus", "w1=2xA100"}}},
	} {
		l := withEnv(t)
		l.Cards = c.cards
		if got := l.making(); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("made by %q, want %q", got, c.want)
		}
		if err := l.writeInventory(t.Context(), "1.36.2"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(l.inventory())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "  version: \"1.36.2\"\n") {
			t.Errorf("another version is wanted by\n%s", text)
		}
		for _, line := range []string{"  cuda: {fingerprint: AB12}\n", "  nvidiaContainerToolkit: {fingerprint: AB12}\n", "preflight: {ignore: [HOST_DISK_FULL]}"} {
			if strings.Contains(string(text), line) != (c.cards != nil) {
				t.Errorf("cards %q, and the inventory is\n%s", c.cards, text)
			}
		}
		if !strings.HasSuffix(string(text), "hosts:\n  - {address: 10.0.0.1, role: control-plane}\n  - {address: 10.0.0.2, role: worker}\n") {
			t.Errorf("the hosts are\n%s", text)
		}
	}
}

// TestHostsWithDisks: all of them have some.
func TestHostsWithDisks(t *testing.T) {
	l := withEnv(t)
	l.Disks = true
	want := [][]string{{"destroy"}, {"prepare"}, {"up", "--workers", "1", "--disks", "cp1", "--disks", "w1"}}
	if got := l.making(); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("made by %q, want %q", got, want)
	}
}

// TestProgramsHaveALimit: a storm does not wait for ever for kgpu plan or kgpu reset, and not for the lab.
func TestProgramsHaveALimit(t *testing.T) {
	sleeper := filepath.Join(t.TempDir(), "sleeper")
	if err := os.WriteFile(sleeper, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := &Lab{Program: sleeper, Kgpu: sleeper, dir: t.TempDir(), limit: 200 * time.Millisecond}
	for _, run := range []func(context.Context, ...string) (string, error){l.verb, l.kgpuTo} {
		if _, err := run(t.Context(), "plan"); err == nil || !strings.Contains(err.Error(), "not done after 200ms") {
			t.Errorf("got %v", err)
		}
	}
}
