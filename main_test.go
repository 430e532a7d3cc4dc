package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/inventory"
)

func TestFlagsFirst(t *testing.T) {
	for _, c := range []struct{ typed, want []string }{
		{[]string{"kgpu"}, []string{"kgpu"}},
		{[]string{"kgpu", "--help"}, []string{"kgpu", "--help"}},
		{[]string{"kgpu", "up"}, []string{"kgpu", "up", "--"}},
		{[]string{"kgpu", "up", "a.yaml", "--output", "json"}, []string{"kgpu", "up", "--output", "json", "--", "a.yaml"}},
		{[]string{"kgpu", "up", "a.yaml", "-v"}, []string{"kgpu", "up", "-v", "--", "a.yaml"}},
		{[]string{"kgpu", "reset", "w1", "--yes", "w2"}, []string{"kgpu", "reset", "--yes", "--", "w1", "w2"}},
		{[]string{"kgpu", "reset", "w1", "--inventory=a.yaml"}, []string{"kgpu", "reset", "--inventory=a.yaml", "--", "w1"}},
		{[]string{"kgpu", "add-worker", "-i", "a.yaml", "10.0.0.1", "--", "--odd"}, []string{"kgpu", "add-worker", "-i", "a.yaml", "--", "10.0.0.1", "--odd"}},
	} {
		if got := flagsFirst(newApp(), c.typed); !slices.Equal(got, c.want) {
			t.Errorf("%q became %q, want %q", c.typed, got, c.want)
		}
	}
}

// What carries on is the same command, as a shell takes it.
func TestAgain(t *testing.T) {
	for typed, want := range map[string]string{
		"up a.yaml": "kgpu up --inventory 'my hosts.yaml'",
		"up --limit w1 --limit w2 --skip os/* -v": "kgpu up --inventory 'my hosts.yaml' --skip 'os/*' --limit w1 --limit w2",
		"up --max-unavailable 2 --kubeconfig k":   "kgpu up --inventory 'my hosts.yaml' --kubeconfig k --max-unavailable 2",
		"add-worker 10.0.0.[1-2]":                 "kgpu add-worker --inventory 'my hosts.yaml' '10.0.0.[1-2]'",
		"up --yes --adopt":                        "kgpu up --inventory 'my hosts.yaml' --adopt --yes",
		"reset w1":                                "kgpu reset --inventory 'my hosts.yaml' w1",
	} {
		app := newApp()
		got := ""
		for _, command := range app.Commands {
			command.Action = func(c *cli.Context) error {
				got = again(c, &inventory.Inventory{Path: "my hosts.yaml"})
				return nil
			}
		}
		if err := app.Run(flagsFirst(app, append([]string{"kgpu"}, strings.Fields(typed)...))); err != nil || got != want {
			t.Errorf("%s: %s, want %s (%v)", typed, got, want, err)
		}
	}
}

func TestExitStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("good.yaml", []byte("hosts: [{address: 192.0.2.1, role: control-plane}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("bad.yaml", []byte("host: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"kgpu", "--help"}, 0},
		{[]string{"kgpu", "schema"}, 0},
		{[]string{"kgpu", "explain"}, 0},
		{[]string{"kgpu", "explain", "host-apt-locked", "--output", "json"}, 0},
		{[]string{"kgpu", "explain", "65"}, 0},
		{[]string{"kgpu", "explain", "HOST_APT_LOKED"}, 3},
		{[]string{"kgpu", "explain", "65", "66"}, 3},
		{[]string{"kgpu", "explain", "-o", "yaml"}, 3},
		{[]string{"kgpu", "support"}, 3}, // no ./inventory.yaml
		{[]string{"kgpu", "support", "bad.yaml"}, 10},
		{[]string{"kgpu", "support", "good.yaml", "-o", "good.yaml"}, 3}, // which is there
		{[]string{"kgpu", "upp"}, 3},
		{[]string{"kgpu", "up", "--outptu", "json"}, 3},
		{[]string{"kgpu", "up"}, 3}, // no ./inventory.yaml
		{[]string{"kgpu", "add-worker"}, 3},
		{[]string{"kgpu", "up", "one.yaml", "two.yaml"}, 3},
		{[]string{"kgpu", "up", "good.yaml", "--ignore", "HOST_SWAP"}, 3},
		{[]string{"kgpu", "up", "good.yaml", "--output", "yaml"}, 3},
		{[]string{"kgpu", "reset", "-i", "good.yaml", "no-such-host", "--yes"}, 3},
		{[]string{"kgpu", "validate", "good.yaml"}, 0},
		{[]string{"kgpu", "validate", "bad.yaml"}, 10},
	} {
		if got := run(t.Context(), c.args); got != c.want {
			t.Errorf("%q ended with %d, want %d", c.args, got, c.want)
		}
	}
}
