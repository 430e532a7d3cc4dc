package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/status"
	"kgpu.dev/kgpu/bootstrap/text/duration"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// StatusOptions say how a cluster's status is printed for people.
type StatusOptions struct {
	Wide bool // every column, and the steps that are to do
}

// PrintStatus writes a cluster's status for people: what concerns all hosts, a line for each, the pods that hold cards, and
// what is not well, with advice.
func PrintStatus(w io.Writer, r *status.Report, o StatusOptions) error {
	p := On(w)
	statusHead(p, r)
	p.say(plain, "", "")
	statusHosts(p, r, o)
	statusPods(p, r)
	statusWaiting(p, r.Cluster.Waiting)
	if o.Wide {
		statusSteps(p, r)
	}
	p.say(plain, "", "")
	statusProblems(p, r)
	return p.to.err
}

// statusHead writes what concerns all hosts.
func statusHead(p *Page, r *status.Report) {
	const label = len("CERTIFICATES") + columnGap
	line := func(name, format string, args ...any) {
		for _, text := range words(fmt.Sprintf(format, args...), p.room(label), p.room(label)) {
			p.say(bold, padded(name, label), text)
			name = ""
		}
	}
	c := r.Cluster
	line("CLUSTER", "%s, of %s", c.Name, c.Inventory)
	switch {
	case !c.API.Answers:
		line("KUBERNETES", "%s wanted; API server: %s", c.Kubernetes, c.API.Error)
	case c.API.Version == c.Kubernetes:
		line("KUBERNETES", "%s, the API server answers", c.API.Version)
	default:
		line("KUBERNETES", "%s, the API server answers; the inventory wants %s", cmp.Or(c.API.Version, "unknown version"), c.Kubernetes)
	}
	var network []string
	if p := c.Network.Pods; p != nil {
		network = append(network, fmt.Sprintf("%s %d/%d", c.Network.Name, p.Ready, p.Desired))
	} else {
		network = append(network, c.Network.Name)
	}
	if d := c.DNS; d != nil {
		network = append(network, fmt.Sprintf("%s %d/%d", d.Name, d.Ready, d.Desired))
	}
	line("NETWORK", "%s", strings.Join(network, ", "))
	if len(c.Cards) > 0 {
		line("CARDS", "%s (used/all)", inUse(c.Cards, gpus(r.Hosts...)))
	}
	if last := backups(r); last != "" {
		line("BACKUPS", "the last good one: %s", last)
	}
	if host, first := firstToEnd(r); first != nil && first.Days < status.RenewalDays {
		line("CERTIFICATES", "the first to end: %s on %s, %s (%s)", first.Name, host, first.Ends.Format(time.DateOnly), days(first.Days))
	}
}

// backups says of each control plane that makes backups by itself how old the last good one is; empty: none does.
func backups(r *status.Report) string {
	var out []string
	for _, h := range r.Hosts {
		switch {
		case h.Backups == nil:
		case h.Backups.Last == nil:
			out = append(out, nameOf(h)+" none yet")
		default:
			out = append(out, fmt.Sprintf("%s %s ago", nameOf(h), duration.Age(r.Time.Sub(*h.Backups.Last))))
		}
	}
	return strings.Join(out, ", ")
}

// atWork is who changes the cluster with kgpu now, and at which step each host is; empty: nobody does.
func atWork(r *status.Report) string {
	var now []string
	for _, h := range r.Hosts {
		if h.AtWork != "" {
			now = append(now, nameOf(h)+": "+h.AtWork)
		}
	}
	if len(now) > 0 && r.Cluster.AtWork == "" {
		return "a run goes on whose kgpu has ended; now " + strings.Join(now, ", ")
	}
	return printable.Join("; now ", r.Cluster.AtWork, strings.Join(now, ", "))
}

// firstToEnd is the certificate that ends before all others, and its host.
func firstToEnd(r *status.Report) (host string, first *status.Certificate) {
	for _, h := range r.Hosts {
		for i := range h.Certificates {
			if c := &h.Certificates[i]; c.Ends != nil && (first == nil || c.Ends.Before(*first.Ends)) {
				host, first = nameOf(h), c
			}
		}
	}
	return host, first
}

// nameOf is what people call a host: the inventory's name, or its node's, or its address.
func nameOf(h status.Host) string {
	if h.Node != nil && h.Host == h.Address {
		return h.Node.Name
	}
	return h.Host
}

// column is one of the table of hosts.
type column struct {
	title string
	cell  func(status.Host) string
	wide  bool // only where everything is shown
	leave int  // in a narrow terminal those with the smallest number leave first; zero: never
}

func hostColumns(now time.Time) []column {
	return []column{
		{title: "HOST", cell: nameOf},
		{title: "ADDRESS", cell: func(h status.Host) string { return h.Address }, leave: 2},
		{title: "ROLE", cell: func(h status.Host) string { return h.Role }, leave: 5},
		{title: "STATE", cell: func(h status.Host) string { return stateOf(h, now) }},
		{title: "KUBELET", cell: func(h status.Host) string { return h.Versions.Kubelet }, leave: 3},
		{title: "RUNTIME", cell: func(h status.Host) string { return h.Versions.Runtime }, leave: 1},
		{title: "OS", cell: func(h status.Host) string { return h.Versions.OS }, wide: true},
		{title: "KERNEL", cell: func(h status.Host) string { return h.Versions.Kernel }, wide: true},
		{title: "CARDS", cell: cardsOf},
		{title: "CARDS USED", cell: func(h status.Host) string { return inUse(h.GPU.Resources, gpus(h)) }},
		{title: "DRIVER", cell: driverOf, leave: 4},
		{title: "TOOLKIT", cell: func(h status.Host) string { return h.GPU.Toolkit }, wide: true},
		{title: "NETWORK", cell: networkOf, leave: 6},
		{title: "TO DO", cell: driftOf},
	}
}

// statusHosts writes a line for each host.
func statusHosts(p *Page, r *status.Report, o StatusOptions) {
	columns := slices.DeleteFunc(hostColumns(r.Time), func(c column) bool { return c.wide && !o.Wide })
	g := grid{rows: make([][]string, len(r.Hosts)+1), colour: func(row int) string {
		switch h := r.Hosts[row-1]; {
		case !h.Reached || h.State == status.NotReady:
			return red
		case h.State != status.Ready || !h.Node.Schedulable:
			return yellow
		}
		return plain
	}}
	for _, c := range columns {
		g.rows[0] = append(g.rows[0], c.title)
		for i, h := range r.Hosts {
			g.rows[i+1] = append(g.rows[i+1], cmp.Or(c.cell(h), "-"))
		}
		if !o.Wide {
			g.leave = append(g.leave, c.leave)
		}
	}
	p.grid(g)
}

// stateOf is what a person wants to know first of a host.
func stateOf(h status.Host, now time.Time) string {
	var out []string
	if !h.Reached {
		out = append(out, "unreachable")
	}
	switch h.State {
	case status.Ready:
		out = append(out, "Ready")
	case status.NotReady:
		text := "NotReady"
		if h.Node.Since != nil {
			text += " for " + duration.Age(now.Sub(*h.Node.Since))
		}
		out = append(out, text)
	case status.NoNode:
		out = append(out, "no node")
	case status.Unknown:
		if h.Reached {
			out = append(out, "unknown")
		}
	}
	if h.Node != nil && !h.Node.Schedulable {
		out = append(out, "SchedulingDisabled")
	}
	return strings.Join(out, ",")
}

// gpus is how many GPUs hosts have that their nodes offer in shares; zero: none is shared.
func gpus(hosts ...status.Host) int {
	offered, all := 0, 0
	for _, h := range hosts {
		for _, r := range h.GPU.Resources {
			if r.Name != catalog.GPUResource {
				continue
			}
			offered += r.Capacity
			for _, c := range h.GPU.Cards {
				if c.Instances > 0 {
					return 0 // of MIG
				}
				all++
			}
		}
	}
	if offered <= all {
		return 0
	}
	return all
}

// inUse is how much pods have of what they can have: 3/8, and of how many where some cannot be given. So many GPUs are shared.
func inUse(resources []status.Resource, shared int) string {
	var out []string
	for _, r := range resources {
		text := fmt.Sprintf("%d/%d", r.InUse, r.Allocatable)
		if r.Allocatable != r.Capacity {
			text += fmt.Sprintf(" of %d", r.Capacity)
		}
		switch name := shortResource(r.Name); {
		case r.Name == catalog.GPUResource && shared > 0:
			text += " shares of " + plural.Of(shared, "GPU")
		case name != "gpu" || len(resources) > 1:
			text = name + " " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func shortResource(name string) string {
	for _, prefix := range []string{"nvidia.com/", "alpha.kubernetes.io/nvidia-"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}

// cardsOf counts a host's cards by their names: 2 A100-SXM4-40GB.
func cardsOf(h status.Host) string {
	count := map[string]int{}
	for _, c := range h.GPU.Cards {
		name := strings.TrimPrefix(c.Name, "NVIDIA ")
		if c.UUID == "" {
			name += " (not seen)"
		}
		count[name]++
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%d %s", count[name], name))
	}
	return strings.Join(out, ", ")
}

// driverOf is the driver's version, and that of the one which a boot would load where it is another.
func driverOf(h status.Host) string {
	switch d := h.GPU.Driver; {
	case d.Loaded == "" && d.Installed != "":
		return "not loaded (" + d.Installed + ")"
	case d.Installed != "" && d.Installed != d.Loaded:
		return d.Loaded + " (installed: " + d.Installed + ")"
	default:
		return d.Loaded
	}
}

func networkOf(h status.Host) string {
	ready := 0
	for _, p := range h.Network {
		if p.Ready {
			ready++
		}
	}
	if len(h.Network) == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", ready, len(h.Network))
}

func days(n int) string {
	if n < 0 {
		return "ended"
	}
	return plural.Of(n, "day")
}

func driftOf(h status.Host) string {
	if !h.Drift.Known {
		return "?"
	}
	return fmt.Sprint(len(h.Drift.Pending))
}

// statusPods writes which pods hold cards.
func statusPods(p *Page, r *status.Report) {
	g := grid{rows: [][]string{{"POD WITH CARDS", "HOST", "HOLDS", "PHASE"}}}
	for _, h := range r.Hosts {
		for _, pod := range h.GPU.Pods {
			g.rows = append(g.rows, []string{pod.Namespace + "/" + pod.Name, nameOf(h), cardsOfPod(pod.Cards, gpus(h) > 0), pod.Phase})
		}
	}
	p.below(g)
}

// below prints a table that has rows, with an empty line above it.
func (p *Page) below(g grid) {
	if len(g.rows) > 1 {
		p.say(plain, "", "")
		p.grid(g)
	}
}

func statusSteps(p *Page, r *status.Report) {
	g := grid{rows: [][]string{{"TO DO", "HOST", "WHAT", "WHY"}}}
	for _, h := range r.Hosts {
		for _, s := range h.Drift.Pending {
			g.rows = append(g.rows, []string{s.Step, nameOf(h), s.Title, s.Reason})
		}
	}
	p.below(g)
}

// statusProblems writes what is not well, and what to do about it. Hosts where it is the same stand together, and advice that
// is for several things stands below them.
func statusProblems(p *Page, r *status.Report) {
	switch who, n := atWork(r), r.Cluster.Waiting.Count; {
	case r.Well && n > 0:
		p.say(green, "All is well.", fmt.Sprintf(" Pods that wait for cards: %d.", n))
		return
	case r.Well:
		p.say(green, "All is well.", "")
		return
	case who != "":
		p.atWork(who)
		if len(r.Problems) == 0 {
			return
		}
	}
	names := map[string]string{"": ""}
	for _, h := range r.Hosts {
		names[h.Host] = nameOf(h)
	}
	p.say(bold, "Not well:", "")
	alike := map[status.Problem][]string{} // hosts where it is the same
	var order []status.Problem
	for _, problem := range r.Problems {
		host := cmp.Or(names[problem.Host], problem.Host)
		problem.Host = ""
		if alike[problem] == nil {
			order = append(order, problem)
		}
		alike[problem] = append(alike[problem], host)
	}
	for i, problem := range order {
		where := printable.Join(", ", alike[problem]...)
		if where != "" {
			where += ":"
		}
		text := problem.Text
		if problem.Reason != "" {
			text += fmt.Sprintf(" [%s]", problem.Reason)
		}
		p.say(red, "  "+where, strings.Repeat(" ", min(len(where), 1))+text)
		if i == len(order)-1 || order[i+1].Advice != problem.Advice {
			p.say(bold, "    →", " "+problem.Advice)
		}
	}
}
