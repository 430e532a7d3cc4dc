package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/inventory"
)

// What carries on is the same command, as a shell takes it.
func TestAgain(t *testing.T) {
	for typed, want := range map[string]string{
		"up a.yaml": "kgpu up --inventory 'my hosts.yaml'",
		"up --limit w1 --limit w2 --skip os/* -v": "kgpu up --inventory 'my hosts.yaml' --skip 'os/*' --limit w1 --limit w2",
		"up --max-unavailable 2 --kubeconfig k":   "kgpu up --inventory 'my hosts.yaml' --kubeconfig k --max-unavailable 2",
		"add-worker 10.0.0.[1-2]":                 "kgpu add-worker --inventory 'my hosts.yaml' '10.0.0.[1-2]'",
		"up --yes --adopt":                        "kgpu up --inventory 'my hosts.yaml' --adopt --yes",
		"user create joe --days 9 -o joe.conf":    "kgpu user create --inventory 'my hosts.yaml' joe --days 9 --file joe.conf",
		"reset w1":                                "kgpu reset --inventory 'my hosts.yaml' w1",
		"remove-worker --force w1":                "kgpu remove-worker --inventory 'my hosts.yaml' w1 --force",
	} {
		app := testApp()
		got := ""
		for _, command := range slices.Concat(app.Commands, app.Command("user").Subcommands) {
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
