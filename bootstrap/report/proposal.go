package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/proposal"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
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

// leastNote is the narrowest column, beside commands, that what they are for stands in.
const leastNote = 30

// PrintNext writes commands that come next, each with what it is for. Commands stay whole, so that they can be copied: where there
// is no room beside them, what they are for stands below.
func PrintNext(w io.Writer, next [][2]string) error {
	p := On(w)
	p.say(bold, "next:", "")
	const in = "  "
	commands := 0
	next = slices.Clone(next)
	for i := range next {
		next[i][0] = printable.Line(next[i][0]) // an inventory's name is somebody's
		commands = max(commands, ansi.StringWidthWc(next[i][0]))
	}
	widths := []int{commands, p.room(len(in) + commands + columnGap)}
	for _, n := range next {
		command, what := n[0], "# "+n[1]
		if widths[1] < leastNote {
			_, _ = io.WriteString(p.to, in+command+"\n") // it keeps the error
			p.say(plain, "", in+in+in+what)
			continue
		}
		for _, line := range aligned([]string{command, what}, widths) {
			p.say(plain, "", in+line)
		}
	}
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
