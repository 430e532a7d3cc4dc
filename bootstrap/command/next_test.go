package command

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
	proof "kgpu.dev/kgpu/bootstrap/smoke"
	"kgpu.dev/kgpu/inventory"
)

// What carries on is the same command, as a shell takes it.
func TestAgain(t *testing.T) {
	for typed, want := range map[string]string{
		"up a.yaml": "kgpu up --inventory 'my hosts.yaml'",
		"up --limit w1 --limit w2 --skip os/* -v":  "kgpu up --inventory 'my hosts.yaml' --skip 'os/*' --limit w1 --limit w2",
		"up --max-unavailable 2 --kubeconfig k":    "kgpu up --inventory 'my hosts.yaml' --max-unavailable 2 --kubeconfig k",
		"add-worker 10.0.0.[1-2]":                  "kgpu add-worker --inventory 'my hosts.yaml' '10.0.0.[1-2]'",
		"up --yes --adopt":                         "kgpu up --inventory 'my hosts.yaml' --adopt --yes",
		"user create joe --days 9 --file joe.conf": "kgpu user create --inventory 'my hosts.yaml' joe --days 9 --file joe.conf",
		"reset w1": "kgpu reset --inventory 'my hosts.yaml' w1",
		"render --out by-hand --assume debian-12 a.yaml": "kgpu render --inventory 'my hosts.yaml' --out by-hand --assume debian-12",
		"remove-worker --force w1":                       "kgpu remove-worker --inventory 'my hosts.yaml' w1 --force",
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

// Every option that was given is in the command that carries on, whatever options there will be; how it is told is not.
func TestAgainWithEveryOption(t *testing.T) {
	app := testApp()
	for _, command := range slices.Concat(app.Commands, app.Command("user").Subcommands) {
		for _, flag := range command.Flags {
			name := flag.Names()[0]
			if slices.Contains([]string{"inventory", "output", "verbose", "quiet", "help"}, name) {
				continue
			}
			typed := []string{"--" + name + "=3"}
			switch flag.(type) {
			case *cli.BoolFlag:
				typed = []string{"--" + name}
			case *cli.DurationFlag:
				typed = []string{"--" + name + "=3m"}
			}
			got := ""
			command.Action = func(c *cli.Context) error {
				got = again(c, &inventory.Inventory{Path: "a.yaml"})
				return nil
			}
			words := []string{"kgpu", command.Name}
			if slices.Contains(app.Command("user").Subcommands, command) {
				words = []string{"kgpu", "user", command.Name}
			}
			if err := app.Run(append(words, typed...)); err != nil || !strings.Contains(got, " --"+name) {
				t.Errorf("%s %s: %s (%v)", command.Name, typed, got, err)
			}
		}
	}
}

// Who goes on without a host keeps what else was typed.
func TestOnlyFor(t *testing.T) {
	for want, hosts := range map[string][]string{
		"kgpu up --inventory lab.yaml --ssh-config c --ignore HOST_REBOOT_PENDING --skip 'os/*' --limit w2 --limit w3": {"w2", "w3"},
		"kgpu up --inventory lab.yaml --ssh-config c --ignore HOST_REBOOT_PENDING --skip 'os/*' --limit HOST…":         nil,
	} {
		app := testApp()
		got := ""
		app.Command("up").Action = func(c *cli.Context) error {
			got = onlyFor(c, &inventory.Inventory{Path: "lab.yaml"}, hosts)
			return nil
		}
		typed := "up --ssh-config c --skip os/* --limit w1 --ignore HOST_REBOOT_PENDING"
		if err := app.Run(flagsFirst(app, append([]string{"kgpu"}, strings.Fields(typed)...))); err != nil || got != want {
			t.Errorf("%s, want %s (%v)", got, want, err)
		}
	}
}

// The last line of a run that made a cluster works on this machine, with kubectl or without.
func TestDone(t *testing.T) {
	for name, c := range map[string]struct {
		typed, want string
		kubectl     bool
	}{
		"with kubectl":                   {"up", "done: kubectl --kubeconfig lab.kubeconfig get nodes", true},
		"with kubectl, kubeconfig named": {"up --kubeconfig k", "done: kubectl --kubeconfig k get nodes", true},
		"without kubectl":                {"up --ssh-config conf", "done: kgpu kubectl --inventory lab.yaml --ssh-config conf -- get nodes", false},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			t.Setenv("PATH", bin)
			if c.kubectl {
				must(t, os.WriteFile(filepath.Join(bin, "kubectl"), nil, 0o755))
			}
			app, got := testApp(), ""
			app.Command("up").Action = func(ctx *cli.Context) error {
				got = next(ctx, &inventory.Inventory{Cluster: "lab", Path: "lab.yaml"}, nil)
				return nil
			}
			if err := app.Run(append([]string{"kgpu"}, strings.Fields(c.typed)...)); err != nil || got != c.want {
				t.Errorf("%q, want %q (%v)", got, c.want, err)
			}
		})
	}
}

// Who made a cluster is told what it is good for, by commands that find it.
func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		typed  string
		change func(*terminal, *inventory.Inventory)
		err    error
		want   []string // beginnings of the lines
	}{
		"up": {typed: "up", want: []string{"kgpu status ", "kgpu notebook ", "kgpu kubectl -- get nodes ", "kgpu kubectl -- apply -f FILE "}},
		"another inventory": {typed: "up --ssh-config conf", change: func(_ *terminal, inv *inventory.Inventory) { inv.Path = "my hosts.yaml" }, want: []string{
			"kgpu status --inventory 'my hosts.yaml' --ssh-config conf ", "kgpu notebook --inventory", "kgpu kubectl --inventory 'my hosts.yaml' --ssh-config conf -- get nodes ", "kgpu kubectl ",
		}},
		"no notebook":   {typed: "up", change: func(_ *terminal, inv *inventory.Inventory) { inv.Notebook.Framework = "none" }, want: []string{"kgpu status ", "kgpu kubectl ", "kgpu kubectl "}},
		"nothing to do": {typed: "up", change: func(t *terminal, _ *inventory.Inventory) { t.worked.Store(false) }},
		"for a program": {typed: "up", change: func(t *terminal, _ *inventory.Inventory) { t.kind = report.JSON }},
		"quiet":         {typed: "up", change: func(t *terminal, _ *inventory.Inventory) { t.detail = report.Quiet }},
		"failed":        {typed: "up", err: io.EOF},
		"it is gone":    {typed: "reset"},
		"another story": {typed: "add-worker h"},
	} {
		var out strings.Builder
		app := testApp()
		for _, command := range app.Commands {
			command.Action = func(ctx *cli.Context) error {
				shown := &terminal{out: &out}
				shown.worked.Store(true)
				inv := &inventory.Inventory{Path: usualInventory}
				if c.change != nil {
					c.change(shown, inv)
				}
				return shown.showNext(ctx, inv, c.err)
			}
		}
		must(t, app.Run(append([]string{"kgpu"}, strings.Fields(c.typed)...)))
		var lines []string
		if out.Len() > 0 {
			lines = strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")[2:]
		}
		if !slices.EqualFunc(lines, c.want, func(line, want string) bool { return strings.HasPrefix(line, "  "+want) }) {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
	}
}

// A command that comes next is for the inventory that was named; one that is found is not named.
func TestOnward(t *testing.T) {
	file := inventoryOf(t, &answering{})
	t.Chdir(filepath.Dir(file))
	for file, named := range map[string]string{file: " --inventory " + file, filepath.Base(file): ""} {
		for typed, want := range map[string]string{
			"notebook --stop": "`kgpu notebook" + named + "` starts it again\n",
			"user list":       "there are no users yet: kgpu user create" + named + " NAME\n",
		} {
			var out strings.Builder
			app := App("test", Group("", Notebook(), User()))
			app.Writer, app.ErrWriter = &out, t.Output()
			if status := Run(t.Context(), app, append([]string{"kgpu"}, append(strings.Fields(typed), "--inventory", file)...)); status != 0 || !strings.HasSuffix(out.String(), want) {
				t.Errorf("%s ended with %d: %s", typed, status, out.String())
			}
		}
	}
}

// kgpu itself leads to the notebook: its way has the key, the port and the bastion.
func TestTunnelToTheNotebook(t *testing.T) {
	var out strings.Builder
	app := testApp()
	app.Command("up").Action = func(c *cli.Context) error {
		shown := &terminal{out: &out, notebook: &access.Notebook{Devices: &proof.Devices{Source: "PyTorch", Version: "2.11.0", GPUs: []proof.Device{{Name: "cuda:0", Took: 400 * time.Microsecond}}}, URL: "http://127.0.0.1:8888/?token=x", Tunnel: 8888}}
		return shown.showNotebook(c, &inventory.Inventory{Path: "my hosts.yaml"})
	}
	must(t, app.Run([]string{"kgpu", "up", "--ssh-config", "conf"}))
	contains(t, out.String(), "`kgpu notebook --inventory 'my hosts.yaml' --ssh-config conf --port 8888`",
		"`kgpu notebook --inventory 'my hosts.yaml' --ssh-config conf --stop`")
}

// Who cannot deploy the dashboard, or stops that, is told how what there is of it goes.
func TestTakesAway(t *testing.T) {
	for typed, want := range map[string]string{
		"dashboard --admin --ssh-config conf": "; this takes it away: kgpu dashboard --inventory 'my hosts.yaml' --ssh-config conf --remove",
		"dashboard --remove":                  "",
		"up":                                  "",
	} {
		app := App("test", Group("", Up(), Dashboard()))
		var out strings.Builder
		app.Writer = &out
		got := "nothing"
		for _, command := range app.Commands {
			command.Action = func(c *cli.Context) error {
				failed := &reason.Error{ID: reason.DashboardFailed, Step: "addon/dashboard"}
				inv := &inventory.Inventory{Path: "my hosts.yaml"}
				_, got, _ = strings.Cut(next(c, inv, failed), again(c, inv))
				return sayItStays(c, inv)
			}
		}
		if err := app.Run(append([]string{"kgpu"}, strings.Fields(typed)...)); err != nil || got != want || out.String() != "The dashboard stays in the cluster"+want+"\n" {
			t.Errorf("%s: %q and %q, want %q (%v)", typed, got, out.String(), want, err)
		}
	}
}
