package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInit has an inventory written of hosts that nobody knows yet, and goes on with it: what is found is true, no host is
// changed, and kgpu takes the file.
func TestInit(t *testing.T) {
	l := newLab(t, nil)
	file := filepath.Join(t.TempDir(), "inventory.yaml")
	hosts := []string{l.addr["w1"], l.addr["cp1"], "ubuntu@" + l.addr["w2"] + ":22"}
	initialize := func(t *testing.T, exit int, more ...string) *session {
		return kgpu(t, exit, append([]string{"init", "--user", "ubuntu", "--key", l.env["KGPU_LAB_KEY"], "--file", file}, append(more, hosts...)...)...)
	}
	before := l.snapshot(t, "cp1", "w1", "w2")

	must(t, "strangers", func(t *testing.T) {
		s := initialize(t, 21) // nobody is at a terminal
		if said := s.stderr.String(); strings.Count(said, "[SSH_HOST_KEY_UNKNOWN]") != 3 || !strings.Contains(said, "--accept-new") {
			t.Errorf("kgpu said %q", said)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("there is an inventory: %v", err)
		}
	})
	must(t, "written", func(t *testing.T) {
		s := initialize(t, 0, "--accept-new", "--cluster", "e2e", "--modern")
		if said := strings.TrimSpace(s.stdout.String()); !strings.Contains(lines(said)[len(lines(said))-1], "kgpu up "+file) {
			t.Errorf("kgpu said %q", said)
		}
		text := read(t, file)
		for _, want := range []string{"cluster: e2e", "name: cp1", "name: w1", "name: w2", "role: control-plane", "user: ubuntu", "--accept-new", "network: flannel", "runtime: containerd"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		if strings.Count(text, "hostKey: ") != 3 || strings.Count(text, "\n    role: worker") != 2 {
			t.Errorf("not three keys, or not two workers in\n%s", text)
		}
		if _, err := os.Stat(filepath.Join(operatorHome, ".ssh", "known_hosts")); !os.IsNotExist(err) {
			t.Errorf("the user's known_hosts was written: %v", err)
		}
		l.unchanged(t, before)
	})
	must(t, "never again", func(t *testing.T) {
		was := read(t, file)
		initialize(t, 3, "--accept-new")
		if read(t, file) != was {
			t.Error("the inventory has changed")
		}
	})
	must(t, "taken", func(t *testing.T) {
		kgpu(t, 0, "validate", file)
		// The lab's machine may have cgroup v1.
		text := strings.Replace(read(t, file), "kubernetes:\n", "kubernetes:\n  kubeletConfiguration: {failCgroupV1: false}\n", 1)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		plan := kgpu(t, 2, "plan", "--output", "json", file).stdout.String()
		for _, want := range []string{"cluster/init", "cp1", "w1", "w2"} {
			if !strings.Contains(plan, want) {
				t.Errorf("no %q in the plan: %s", want, plan)
			}
		}
		l.unchanged(t, before)
	})
	t.Run("known hosts, and one that is not there", func(t *testing.T) {
		// Names, keys and known_hosts are those of the lab's ssh_config.
		s := kgpu(t, 20, "init", "--ssh-config", l.env["KGPU_LAB_SSH_CONFIG"], "--file", "-", "w1", "cp1", "127.0.0.1:1")
		text := s.stdout.String()
		if strings.Contains(text, "hostKey: ") || !strings.Contains(text, "\n  # - address: 127.0.0.1\n") || !strings.Contains(text, "\n  - address: cp1\n") {
			t.Errorf("kgpu wrote\n%s", text)
		}
	})
}
