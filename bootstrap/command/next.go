package command

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap"
	"kgpu.dev/kgpu/bootstrap/access"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/inventory"
)

// commandLine is what others are told that this kgpu does: the command and its arguments, which hold no secrets.
func commandLine(c *cli.Context) string {
	return strings.Join(append([]string{commandName(c)}, c.Args().Slice()...), " ")
}

// commandName is how the command is typed: "user create".
func commandName(c *cli.Context) string {
	if words := c.Lineage(); len(words) > 1 && words[1].Command != nil && words[1].Command.Name != c.App.Name {
		return words[1].Command.Name + " " + c.Command.Name
	}
	return c.Command.Name
}

// next is the last line of a run: what to do with the cluster, or again.
func next(c *cli.Context, inv *inventory.Inventory, err error) string {
	switch {
	case err != nil && c.Context != nil && c.Context.Err() != nil:
		return "stopped; this carries on: " + again(c, inv) + takesAway(c, inv)
	case err != nil && slices.ContainsFunc(reason.All(err), func(e *reason.Error) bool { return e.Step != "" || e.ID == reason.SSHLost }):
		return "failed; this carries on: " + again(c, inv) + takesAway(c, inv)
	case err != nil:
		return "failed"
	case c.Command.Name == "reset", c.Command.Name == "smoke":
		return "done"
	}
	return "done: " + shellLine(append(kubectlWords(c, inv), "get", "nodes"))
}

// kubectlWords is how the cluster is asked from here: this machine's kubectl or, where there is none, kgpu's way to the control plane's.
func kubectlWords(c *cli.Context, inv *inventory.Inventory) []string {
	if _, err := exec.LookPath("kubectl"); err == nil {
		return []string{"kubectl", "--kubeconfig", cmp.Or(c.String("kubeconfig"), access.KubeconfigPath(inv))}
	}
	return append(sameCluster(c, inv, "kubectl"), "--")
}

// sameCluster is a command of kgpu's for the cluster that c is about.
func sameCluster(c *cli.Context, inv *inventory.Inventory, command string) []string {
	words := append(strings.Fields("kgpu "+command), "--inventory", inv.Path)
	if c.IsSet("ssh-config") {
		words = append(words, "--ssh-config", c.String("ssh-config"))
	}
	return words
}

// onward is such a command as one that comes next: an inventory that kgpu finds is not named.
func onward(c *cli.Context, inv *inventory.Inventory, command string, more ...string) string {
	words := sameCluster(c, inv, command)
	if inv.Path == cmp.Or(os.Getenv(inventoryVariable), usualInventory) {
		at := slices.Index(words, "--inventory")
		words = slices.Delete(words, at, at+2)
	}
	return shellLine(append(words, more...))
}

// again is the command that carries on with the run that c began: the same, which may be repeated.
func again(c *cli.Context, inv *inventory.Inventory) string {
	return limited(c, inv, c.StringSlice("limit"))
}

// onlyFor is the same command for these hosts only; where there are none, the flag, which may be repeated, is for the
// person to fill in.
func onlyFor(c *cli.Context, inv *inventory.Inventory, hosts []string) string {
	if len(hosts) == 0 {
		return limited(c, inv, nil) + " --limit HOST…"
	}
	return limited(c, inv, hosts)
}

// limited is the same command, for these hosts.
func limited(c *cli.Context, inv *inventory.Inventory, hosts []string) string {
	words := append(strings.Fields("kgpu "+commandName(c)), "--inventory", inv.Path)
	switch {
	case c.Command.Name == "remove-worker":
		words = append(words, bootstrap.StillNamed(inv.Path, c.Args().Slice())...)
	case c.Command.ArgsUsage != inventoryArgument:
		words = append(words, c.Args().Slice()...)
	}
	words = append(words, setFlags(c, "inventory", "limit", "output", "verbose", "quiet")...)
	for _, host := range hosts {
		words = append(words, "--limit", host)
	}
	return shellLine(words)
}

// setFlags are the command's options as they were given, but for some of another meaning: what is left out on purpose is named.
func setFlags(c *cli.Context, but ...string) (words []string) {
	for _, flag := range c.Command.Flags {
		name := flag.Names()[0]
		if !c.IsSet(name) || slices.Contains(but, name) {
			continue
		}
		switch flag.(type) {
		case *cli.BoolFlag:
			if c.Bool(name) {
				words = append(words, "--"+name)
			}
		case *cli.StringSliceFlag:
			for _, value := range c.StringSlice(name) {
				words = append(words, "--"+name, value)
			}
		default:
			words = append(words, "--"+name, fmt.Sprint(c.Value(name)))
		}
	}
	return words
}

// takesAway says, of a dashboard that may be deployed in part, how it goes; empty: that is not what c does.
func takesAway(c *cli.Context, inv *inventory.Inventory) string {
	if c.Command.Name != "dashboard" || c.Bool("remove") {
		return ""
	}
	return "; this takes it away: " + shellLine(append(sameCluster(c, inv, "dashboard"), "--remove"))
}

// shellLine is words as a person types them.
func shellLine(words []string) string {
	quoted := slices.Clone(words)
	for i, word := range words {
		if !plainWord.MatchString(word) {
			quoted[i] = remote.Quote(word)
		}
	}
	return strings.Join(quoted, " ")
}

// plainWord is one that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
