package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/proposal"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// PrintProposal writes what kgpu init found and proposes, and as its last lines what to do next: commands with what they do.
func PrintProposal(w io.Writer, p *proposal.Proposal, where string, next [][2]string) error {
	out := &writer{w: printable.Writer(w)}
	fmt.Fprintf(out, "%s: cluster %s, Kubernetes %s, %s\n\n", where, p.Inventory.Cluster, p.Inventory.Kubernetes.Said(), plural.Of(len(p.Machines), "host"))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "HOST\tADDRESS\tROLE\tSYSTEM\tCPUS\tMEMORY\tCARDS")
	for _, m := range p.Machines {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d GiB\t%s\n",
			m.Name, m.Address, m.Role, proposal.System(m.Facts), m.Facts.CPUs, proposal.GiB(m.Facts.MemoryKiB), proposal.Cards(m.Facts))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	printProblems(out, p.Problems)
	return PrintNext(out, next)
}

// PrintNext writes commands that come next, each with what it is for.
func PrintNext(w io.Writer, next [][2]string) error {
	out := &writer{w: printable.Writer(w)}
	fmt.Fprintln(out, "next:")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, n := range next {
		fmt.Fprintf(table, "  %s\t# %s\n", n[0], n[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return out.err
}

// printProblems writes what preflight would refuse: the same of several hosts with one advice.
func printProblems(w io.Writer, problems []*reason.Error) {
	told := map[reason.ID]bool{}
	for _, first := range problems {
		if told[first.ID] {
			continue
		}
		told[first.ID] = true
		for _, p := range problems {
			if p.ID == first.ID {
				fmt.Fprintf(w, "warning: %s: %s [%s]\n", p.Host, printable.Line(p.Detail), p.ID)
			}
		}
		fmt.Fprintf(w, "  → %s\n", first.AdviceLine())
	}
	if len(problems) > 0 {
		fmt.Fprintln(w, "These stand as comments in the inventory, too. `kgpu up` refuses to begin until they are put right, or ignored by name: "+byName+".")
		fmt.Fprintln(w)
	}
}
