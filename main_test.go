package main

import (
	"os"
	"testing"

	"kgpu.dev/kgpu/bootstrap/command"
)

func TestExitStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	must(t, os.WriteFile("good.yaml", []byte("hosts: [{address: 192.0.2.1, role: control-plane}]\n"), 0o600))
	must(t, os.WriteFile("bad.yaml", []byte("host: []\n"), 0o600))
	must(t, os.WriteFile("named.yaml", []byte("hosts: [{address: 192.0.2.1, name: cp1, role: control-plane}]\n"), 0o600))
	two := "hosts: [{address: 192.0.2.1, name: cp1, role: control-plane}, {address: 192.0.2.2}]\n"
	must(t, os.WriteFile("two.yaml", []byte(two), 0o600))
	three := "kubernetes: {virtualIP: 192.0.2.9}\nhosts: [{address: \"192.0.2.[1-3]\", name: \"cp[1-3]\", role: control-plane}]\n"
	must(t, os.WriteFile("three.yaml", []byte(three), 0o600))
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"kgpu", "--help"}, 0},
		{[]string{"kgpu", "schema"}, 0},
		{[]string{"kgpu", "init"}, 3},
		{[]string{"kgpu", "init", "192.0.2.1", "--file", "good.yaml"}, 3}, // which is there
		{[]string{"kgpu", "init", "not a host"}, 3},
		{[]string{"kgpu", "explain"}, 0},
		{[]string{"kgpu", "explain", "host-apt-locked", "--output", "json"}, 0},
		{[]string{"kgpu", "explain", "65"}, 0},
		{[]string{"kgpu", "explain", "HOST_APT_LOKED"}, 3},
		{[]string{"kgpu", "explain", "65", "66"}, 3},
		{[]string{"kgpu", "explain", "-o", "yaml"}, 3},
		{[]string{"kgpu", "support"}, 3}, // no ./inventory.yaml
		{[]string{"kgpu", "support", "bad.yaml"}, 10},
		{[]string{"kgpu", "support", "good.yaml", "--file", "good.yaml"}, 3}, // which is there
		{[]string{"kgpu", "doctor"}, 3},                                      // no ./inventory.yaml
		{[]string{"kgpu", "doctor", "-i", "good.yaml", "no-such-host"}, 3},
		{[]string{"kgpu", "doctor", "-i", "good.yaml", "--fix", "--install-watch"}, 3},
		{[]string{"kgpu", "doctor", "-i", "good.yaml", "--fix", "--output", "json"}, 3}, // which cannot ask
		{[]string{"kgpu", "doctor", "-i", "good.yaml", "--ignore", "GPU_LOST"}, 3},
		{[]string{"kgpu", "schema", "doctor"}, 0},
		{[]string{"kgpu", "upp"}, 3},
		{[]string{"kgpu", "version"}, 0},
		{[]string{"kgpu", "up", "good.yaml", "--help"}, 0},
		{[]string{"kgpu", "-i", "good.yaml", "up"}, 3},
		{[]string{"kgpu", "validate", "."}, 3},
		{[]string{"kgpu", "reset", "good.yaml"}, 3},
		{[]string{"kgpu", "remove-worker", "good.yaml"}, 3},
		{[]string{"kgpu", "add-worker", "good.yaml"}, 3},
		{[]string{"kgpu", "render", "named.yaml", "--out", "good.yaml", "--assume", "debian-12"}, 92},
		{[]string{"kgpu", "up", "--outptu", "json"}, 3},
		{[]string{"kgpu", "up"}, 3}, // no ./inventory.yaml
		{[]string{"kgpu", "add-worker"}, 3},
		{[]string{"kgpu", "up", "one.yaml", "two.yaml"}, 3},
		{[]string{"kgpu", "up", "good.yaml", "--ignore", "HOST_SWAP"}, 3},
		{[]string{"kgpu", "up", "good.yaml", "--output", "yaml"}, 3},
		{[]string{"kgpu", "up", "good.yaml", "--kubeconfig", "."}, 3},
		{[]string{"kgpu", "up", "good.yaml", "--kubeconfig", "none/admin.conf"}, 3},
		{[]string{"kgpu", "reset", "-i", "good.yaml", "no-such-host", "--yes"}, 3},
		{[]string{"kgpu", "reset", "-i", "two.yaml", "cp1", "--yes"}, 3}, // the control plane alone
		{[]string{"kgpu", "remove-worker", "-i", "good.yaml"}, 3},
		{[]string{"kgpu", "remove-worker", "-i", "good.yaml", "no-such-host", "--yes"}, 3},
		{[]string{"kgpu", "remove-worker", "-i", "good.yaml", "192.0.2.1", "--yes"}, 3},   // the control plane
		{[]string{"kgpu", "remove-control-plane", "-i", "three.yaml", "cp2", "--yes"}, 3}, // two would stay
		{[]string{"kgpu", "add-control-plane", "-i", "good.yaml", "192.0.2.4"}, 3},        // as many would there be
		{[]string{"kgpu", "add-control-plane", "-i", "good.yaml", "--virtual-ip", "foo", "192.0.2.4", "192.0.2.5"}, 3},
		{[]string{"kgpu", "add-control-plane", "-i", "good.yaml", "--virtual-ip", "192.0.2.1", "192.0.2.4", "192.0.2.5"}, 3}, // a host's own
		{[]string{"kgpu", "upgrade", "-i", "good.yaml", "1.29"}, 3},                                                          // out of support
		{[]string{"kgpu", "upgrade", "-i", "good.yaml", "--check", "1.29"}, 3},
		{[]string{"kgpu", "render", "good.yaml"}, 3},
		{[]string{"kgpu", "render", "good.yaml", "--out", "new", "--assume", "debian-3"}, 3},
		{[]string{"kgpu", "render", "good.yaml", "--out", "new", "--assume", "debian-12"}, 3}, // it has no name
		{[]string{"kgpu", "render", "named.yaml", "--out", "new", "--assume", "debian-12"}, 0},
		{[]string{"kgpu", "render", "named.yaml", "--out", "new", "--assume", "debian-13"}, 0},
		{[]string{"kgpu", "render", "named.yaml", "--out", ".", "--assume", "debian-12"}, 92},
		{[]string{"kgpu", "runs"}, 0},
		{[]string{"kgpu", "runs", "-o", "json", "--cluster", "kgpu"}, 0},
		{[]string{"kgpu", "runs", "-o", "yaml"}, 3},
		{[]string{"kgpu", "runs", "last"}, 3},
		{[]string{"kgpu", "runs", "list", "last"}, 3},
		{[]string{"kgpu", "runs", "show"}, 3},
		{[]string{"kgpu", "runs", "show", "./good.yaml"}, 3},
		{[]string{"kgpu", "logs"}, 3},
		{[]string{"kgpu", "timeline", "--file", "-"}, 3},
		{[]string{"kgpu", "runs", "logs"}, 3}, // what was mistyped above left no run
		{[]string{"kgpu", "runs", "logs", "no-such-run"}, 3},
		{[]string{"kgpu", "runs", "logs", "last", "no-such-host"}, 3},
		{[]string{"kgpu", "runs", "logs", "./good.yaml"}, 19},
		{[]string{"kgpu", "runs", "timeline", "--file", "-"}, 3},
		{[]string{"kgpu", "runs", "timeline", "--file", "run.html", "--trace", "run.json"}, 3},
		{[]string{"kgpu", "runs", "timeline", "./no-such-folder"}, 3},
		{[]string{"kgpu", "kubeconfig", "-i", "good.yaml", "--merge", "--tunnel"}, 3},
		{[]string{"kgpu", "kubeconfig", "-i", "good.yaml", "--use"}, 3},
		{[]string{"kgpu", "kubeconfig", "-i", "good.yaml", "--port", "70000", "--tunnel"}, 3},
		{[]string{"kgpu", "kubectl", "get", "nodes"}, 3}, // no ./inventory.yaml
		{[]string{"kgpu", "ssh", "-i", "good.yaml", "no-such-host"}, 3},
		{[]string{"kgpu", "notebook", "-i", "good.yaml", "-o", "yaml"}, 3},
		{[]string{"kgpu", "dashboard", "-i", "good.yaml", "now"}, 3},
		{[]string{"kgpu", "user"}, 0},
		{[]string{"kgpu", "user", "crate"}, 3},
		{[]string{"kgpu", "user", "create", "-i", "good.yaml"}, 3},
		{[]string{"kgpu", "user", "create", "-i", "good.yaml", "Joe"}, 3},
		{[]string{"kgpu", "user", "create", "-i", "good.yaml", "joe", "--rule", "edit"}, 3},
		{[]string{"kgpu", "validate", "good.yaml"}, 0},
		{[]string{"kgpu", "validate", "bad.yaml"}, 10},
	} {
		if got := command.Run(t.Context(), newApp(), c.args); got != c.want {
			t.Errorf("%q ended with %d, want %d", c.args, got, c.want)
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
