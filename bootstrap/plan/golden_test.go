package plan

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		diff := changes(strings.Split(string(want), "\n"), strings.Split(got, "\n"))
		t.Errorf("%s differs (go test ./bootstrap/plan -update writes it):\n%s", path, strings.Join(diff, "\n"))
	}
}

// scenario is hosts and what is planned for them. Its steps are written down, each with its reason and the steps that
// it waits for; what the steps are given is in the goldens of TestInputs.
type scenario struct {
	name      string
	before    string // the inventory of the cluster that the hosts are; empty: they are none
	facts     func(map[string]*facts.Host)
	harm      func(*testing.T, map[string]*facts.Host) // what has become of that cluster
	inventory string
	plan      planner // nil: Up
	limit     int     // so many nodes at a time are drained; 0: as the plan has it
}

type planner func(*inventory.Inventory, map[string]*facts.Host) (*graph.Graph, error)

// naming is an inventory that says which Kubernetes it wants: only the scenario of the defaults follows the catalog.
func (c scenario) naming(text string) string {
	if c.name == "defaults" || text == "" || strings.Contains(text, "kubernetes:") {
		return text
	}
	return text + "kubernetes: {version: 1.36.3}\n"
}

func (c scenario) planned(t *testing.T) (*inventory.Inventory, map[string]*facts.Host, *graph.Graph) {
	t.Helper()
	inv := decode(t, c.naming(c.inventory))
	seen := hostFacts(inv)
	if c.facts == nil {
		c.facts = func(map[string]*facts.Host) {}
	}
	if c.before != "" {
		_, seen = settled(t, c.naming(c.before), c.facts)
	} else {
		c.facts(seen)
	}
	if c.harm != nil {
		c.harm(t, seen)
	}
	if c.plan == nil {
		c.plan = Up
	}
	g, err := c.plan(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	if c.limit > 0 {
		g.LimitUnavailable(c.limit)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	return inv, seen, g
}

// writeDown holds a golden for each scenario, of the steps that match, and that there is nothing left to do afterwards.
func writeDown(t *testing.T, all []scenario, only ...string) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			inv, seen, g := c.planned(t)
			golden(t, c.name, describe(g, only...))
			settles(t, inv, seen, g)
		})
	}
}

// writeTogether holds one golden for several scenarios.
func writeTogether(t *testing.T, name string, all []scenario, only ...string) {
	t.Helper()
	var b strings.Builder
	for _, c := range all {
		_, _, g := c.planned(t)
		fmt.Fprintf(&b, "# %s\n%s", c.name, describe(g, only...))
	}
	golden(t, name, b.String())
}

// describe is the golden form of a graph, or of its steps that match: who does what, why, and after what.
func describe(g *graph.Graph, only ...string) string {
	var b strings.Builder
	for _, s := range g.Steps {
		if only != nil && !graph.Matches(only, s.ID) {
			continue
		}
		fmt.Fprintf(&b, "%s %s (%s)\n  because %s\n", s.Host, s.ID, s.Title, s.Reason)
		for _, n := range s.Needs {
			fmt.Fprintf(&b, "  after %s\n", n)
		}
		if s.Stage == graph.AfterProof {
			b.WriteString("  when the cards are proven\n")
		}
	}
	for _, w := range g.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	return b.String()
}

// inputLines is what a step is given.
func inputLines(input graph.Input) []string {
	var b strings.Builder
	text := func(head string, content string) {
		fmt.Fprintf(&b, "%s%s\n", head, strings.ReplaceAll(strings.TrimRight(content, "\n"), "\n", "\n  "))
	}
	for _, k := range slices.Sorted(maps.Keys(input.Values)) {
		text(k+": ", input.Values[k])
	}
	for _, k := range slices.Sorted(maps.Keys(input.Files)) {
		text(fmt.Sprintf("file %s %04o\n  ", k, input.Files[k].Mode), string(input.Files[k].Content))
	}
	if b.Len() == 0 {
		return []string{"nothing"}
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// lateInput is what a step is given when it runs, where that takes what others found out before.
func lateInput(t *testing.T, seen map[string]*facts.Host, s *graph.Step) graph.Input {
	t.Helper()
	if s.LateInput == nil {
		return s.Input
	}
	out := graph.Outputs{}
	for _, need := range s.Needs {
		out[need] = map[string][]byte{
			OutputToken: []byte("abcdef.0123456789abcdef"), OutputCAHash: []byte("sha256:00"),
			OutputCertificateKey: []byte(strings.Repeat("0123456789abcdef", 4)), OutputEncryption: []byte("a2luZDogRW5jcnlwdGlvbkNvbmZpZ3VyYXRpb24K"),
			outputFeatures: []byte(featuresOf(seen[need.Host])),
		}
	}
	input, err := s.LateInput(out)
	if err != nil {
		t.Fatalf("%s: %v", s.Ref, err)
	}
	return input
}

// shape is something that steps of a kind are given, with the hosts that are, by scenarios.
type shape struct {
	lines []string
	of    []hostsOfScenario
}

type hostsOfScenario struct{ scenario, hosts string }

// shapes are those of each kind of step.
type shapes map[string][]*shape

// add takes what a step of a host has in a scenario. What is a worker's own is not told apart from what is another's.
func (all shapes) add(name string, seen map[string]*facts.Host, step graph.Ref, lines []string) {
	if step.Host != "cp1" {
		for i, line := range lines {
			line = strings.ReplaceAll(line, seen[step.Host].Addresses[0].Prefix.Addr().String(), "<its address>")
			lines[i] = regexp.MustCompile(`\b`+step.Host+`\b`).ReplaceAllString(line, "<its name>")
		}
	}
	kind := Kinds.Of(step.ID).ID
	i := slices.IndexFunc(all[kind], func(have *shape) bool { return slices.Equal(have.lines, lines) })
	if i < 0 {
		i, all[kind] = len(all[kind]), append(all[kind], &shape{lines: lines})
	}
	have := all[kind][i]
	if last := len(have.of) - 1; last >= 0 && have.of[last].scenario == name {
		have.of[last].hosts += " " + step.Host
	} else {
		have.of = append(have.of, hostsOfScenario{name, step.Host})
	}
}

// who are the hosts that have a shape of a kind: scenarios by their names, with the hosts where others of them have
// another.
func (all shapes) who(kind string, s *shape) string {
	var out []string
	for _, of := range s.of {
		here := func(o hostsOfScenario) bool { return o.scenario == of.scenario }
		apart := func(other *shape) bool { return other != s && slices.ContainsFunc(other.of, here) }
		if slices.ContainsFunc(all[kind], apart) {
			of.scenario += " on " + of.hosts
		}
		out = append(out, of.scenario)
	}
	return strings.Join(out, "; ")
}

// text is the golden form of the shapes of a kind: the one that most have, then each other one, as what differs from
// one before it where that is less.
func (all shapes) text(kind string) string {
	most := slices.MaxFunc(all[kind], func(a, b *shape) int { return len(a.of) - len(b.of) })
	others := slices.DeleteFunc(slices.Clone(all[kind]), func(s *shape) bool { return s == most })
	out := fmt.Sprintf("%s #1: everywhere\n", kind)
	if len(others) > 0 {
		out = fmt.Sprintf("%s #1: everywhere else\n", kind)
	}
	out += indented(most.lines)
	whole := map[int][]string{1: most.lines}
	for i, s := range others {
		lines, like := s.lines, ""
		for _, m := range slices.Sorted(maps.Keys(whole)) {
			if diff := changes(whole[m], s.lines); len(diff) < min(len(lines), len(s.lines)*2/3) {
				lines, like = diff, fmt.Sprintf(" (#%d, but)", m)
			}
		}
		if like == "" {
			whole[i+2] = s.lines
		}
		out += fmt.Sprintf("%s #%d%s: %s\n", kind, i+2, like, all.who(kind, s)) + indented(lines)
	}
	return out
}

func indented(lines []string) string { return "  " + strings.Join(lines, "\n  ") + "\n" }

// changes are the lines that make one text another: those that go, those that come, and before each run of them the
// one that stays.
func changes(from, to []string) []string {
	common := make([][]int, len(from)+1) // of the rest of both texts
	for i := range common {
		common[i] = make([]int, len(to)+1)
	}
	for i := len(from) - 1; i >= 0; i-- {
		for j := len(to) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); from[i] == to[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out []string
	same := true
	change := func(at int, sign, line string) {
		if same && at > 0 {
			out = append(out, "  "+from[at-1])
		}
		out, same = append(out, sign+line), false
	}
	for i, j := 0, 0; i < len(from) || j < len(to); {
		switch {
		case i < len(from) && j < len(to) && from[i] == to[j]:
			i, j, same = i+1, j+1, true
		case j == len(to) || i < len(from) && common[i+1][j] >= common[i][j+1]:
			change(i, "- ", from[i])
			i++
		default:
			change(i, "+ ", to[j])
			j++
		}
	}
	return out
}

// TestInputs writes down what the steps of all scenarios are given, in a golden for each planner: files, settings,
// packages, manifests; and why others have nothing to do. What many are given is there once. Each kind of step is in
// some scenario.
func TestInputs(t *testing.T) {
	given, skipped := shapes{}, shapes{}
	for _, c := range slices.Concat(newClusters, severalPlanes, leavingPlanes, versions, driverChanges, oldKernels, driverSources, sharings, upgrades, dayTwo, kept) {
		_, seen, g := c.planned(t)
		for _, s := range g.Steps {
			given.add(c.name, seen, s.Ref, inputLines(lateInput(t, seen, s)))
		}
		for _, s := range g.Skipped {
			skipped.add(c.name, seen, s.Ref, []string{s.Reason})
		}
	}
	if got, want := slices.Sorted(maps.Keys(given)), Kinds.IDs(); !slices.Equal(got, want) {
		t.Errorf("the scenarios have the steps %q, of %q", got, want)
	}
	files := map[string]string{}
	for _, kind := range slices.Sorted(maps.Keys(given)) {
		file := path.Dir(kind)
		if kind == "cluster/init" || file == "addon" {
			file = strings.ReplaceAll(kind, "/", "-")
		}
		files["inputs/"+file+".golden"] += given.text(kind)
	}
	for file, text := range files {
		t.Run(file, func(t *testing.T) { golden(t, strings.TrimSuffix(file, ".golden"), text) })
	}
	there, err := fs.Glob(os.DirFS("testdata"), "inputs/*")
	if want := slices.Sorted(maps.Keys(files)); err != nil || !slices.Equal(there, want) {
		t.Errorf("there are %q, of %q: %v", there, want, err)
	}
	reasons := ""
	for _, kind := range slices.Sorted(maps.Keys(skipped)) {
		hosts := 0
		for _, s := range skipped[kind] {
			for _, of := range s.of {
				hosts += len(strings.Fields(of.hosts))
			}
		}
		reasons += fmt.Sprintf("of %d hosts: %s", hosts, skipped.text(kind))
	}
	golden(t, "skipped", reasons)
}
