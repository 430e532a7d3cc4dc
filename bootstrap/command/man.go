package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/urfave/cli/v2"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Man is kgpu man.
func Man() *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print kgpu's page of the manual",
		Action: func(c *cli.Context) error {
			_, err := c.App.Writer.Write(md2man.Render([]byte(manual(c.App))))
			return err
		},
	}
}

// manual is the page as Markdown, from the same table of commands as --help. The library's own page leaves out arguments and
// groups.
func manual(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, `%% %[1]s 1 "" "%[1]s %[2]s" "User Commands"

# NAME

%[1]s - %[3]s

# SYNOPSIS

**%[1]s** *COMMAND* *OPTION* … *ARGUMENT* …

# DESCRIPTION

An inventory names the machines; **kgpu up** makes a cluster of them over SSH, with kubeadm, and proves every card with a pod.
Every command takes ./inventory.yaml when no other file is named. After a failure the same command carries on.

`, app.Name, app.Version, app.Usage)
	group := ""
	for _, command := range app.VisibleCommands() {
		if command.Category != group {
			group = command.Category
			fmt.Fprintf(&b, "# %s\n\n", strings.ToUpper(group))
		}
		manualOf(&b, app.Name, command)
	}
	b.WriteString("# EXIT STATUS\n\n")
	for _, g := range reason.Generals() {
		fmt.Fprintf(&b, "%d\n: %s\n\n", g.Exit, g.Meaning)
	}
	for _, c := range reason.Classes() {
		fmt.Fprintf(&b, "%s\n: %s\n\n", c.Ranges(), c.Meaning)
	}
	b.WriteString(`**kgpu explain** lists every reason with its exit status.

# ENVIRONMENT

KGPU_INVENTORY
: the inventory, where none is named

NO_COLOR
: no colours, when it is set and not empty; nor are there any where TERM is dumb

XDG_STATE_HOME
: the folder in which kgpu/runs keeps what runs said; ~/.local/state without it

# FILES

./inventory.yaml
: the inventory, where none is named

CLUSTER.kubeconfig
: beside the inventory: the administrator's way into the cluster, which kgpu up writes

/var/lib/kgpu/ledger
: on each host: what kgpu changed there, and what was there before
`)
	return b.String()
}

func manualOf(b *strings.Builder, parent string, command *cli.Command) {
	name := parent + " " + command.Name
	fmt.Fprintf(b, "## %s\n\n%s\n\n", strings.TrimSpace(name+" "+command.ArgsUsage), manualText(command.Usage))
	if command.Description != "" {
		fmt.Fprintf(b, "%s\n\n", manualText(command.Description))
	}
	if command.UsageText != "" {
		b.WriteString("```\n" + command.UsageText + "```\n\n")
	}
	for _, flag := range command.Flags {
		if slices.Contains(flag.Names(), "help") {
			continue
		}
		var names []string
		for _, n := range flag.Names() {
			names = append(names, "**"+dashes(n)+"**")
		}
		word, usage := described(flag)
		if documented(flag).TakesValue() {
			names[len(names)-1] += " *" + word + "*"
		}
		fmt.Fprintf(b, "%s\n: %s\n\n", strings.Join(names, ", "), manualText(usage))
	}
	for _, sub := range commandsBelow(command) {
		manualOf(b, name, sub)
	}
}

// manualText keeps Markdown from taking a pattern such as os/* for emphasis.
func manualText(text string) string { return strings.NewReplacer("*", `\*`, "_", `\_`).Replace(text) }
