package report

import (
	"fmt"
	"io"

	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/proposal"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// PrintProposal writes what kgpu init found and proposes, and as its last lines what to do next: commands with what they do.
func PrintProposal(w io.Writer, p *proposal.Proposal, where string, next [][2]string) error {
	out := On(w)
	out.say(bold, where+":", fmt.Sprintf(" cluster %s, Kubernetes %s, %s\n", p.Inventory.Cluster, p.Inventory.Kubernetes.Said(), plural.Of(len(p.Machines), "host")))
	g := grid{rows: [][]string{{"HOST", "ADDRESS", "ROLE", "SYSTEM", "CPUS", "MEMORY", "CARDS"}}}
	for _, m := range p.Machines {
		g.rows = append(g.rows, []string{m.Name, m.Address, string(m.Role), proposal.System(m.Facts), fmt.Sprint(m.Facts.CPUs),
			fmt.Sprintf("%d GiB", proposal.GiB(m.Facts.MemoryKiB)), proposal.Cards(m.Facts)})
	}
	out.grid(g)
	fmt.Fprintln(out)
	printProblems(out, p.Problems)
	return PrintNext(out, next)
}

// PrintNext writes commands that come next, each with what it is for.
func PrintNext(w io.Writer, next [][2]string) error {
	p := On(w)
	p.say(bold, "next:", "")
	var rows [][]string
	for _, n := range next {
		rows = append(rows, []string{n[0], "# " + n[1]})
	}
	p.columns(rows)
	return p.to.err
}

// printProblems writes what preflight would refuse: the same of several hosts once, with one advice.
func printProblems(p *Page, problems []*reason.Error) {
	if len(problems) == 0 {
		return
	}
	var errs []error
	for _, problem := range problems {
		errs = append(errs, problem)
	}
	all := together(errs)
	for i, err := range all {
		e := err.(*reason.Error) // as it came
		p.say(yellow, "warning:", fmt.Sprintf(" %s: %s [%s]", e.Host, printable.Line(e.Detail), e.ID))
		if advice := e.AdviceLine(); i == len(all)-1 || advice != adviceOf(all[i+1]) {
			p.say(bold, "  →", " "+advice)
		}
	}
	p.say(dim, "These stand as comments in the inventory, too. `kgpu up` refuses to begin until they are put right, or ignored by name: "+byName+".", "")
	p.say(plain, "", "")
}
