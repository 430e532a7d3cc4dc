package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/plural"
	"kgpu.dev/kgpu/bootstrap/printable"
	"kgpu.dev/kgpu/bootstrap/status"
)

// StatusOptions say how a cluster's status is printed for people.
type StatusOptions struct {
	Wide  bool // every column, certificate and step that is to do
	Width int  // of the terminal, in columns: those of the table that matter least are left out; zero: there is room
}

// PrintStatus writes a cluster's status for people: what concerns all hosts, a line for each, the pods that hold cards, and
// what is not well, with advice.
func PrintStatus(w io.Writer, r *status.Report, o StatusOptions) error {
	out := &writer{w: printable.Writer(w)}
	statusHead(out, r)
	fmt.Fprintln(out)
	statusHosts(out, r, o)
	statusPods(out, r)
	statusWaiting(out, r.Cluster.Waiting)
	if o.Wide {
		statusCertificates(out, r)
		statusSteps(out, r)
	}
	fmt.Fprintln(out)
	statusProblems(out, r)
	return out.err
}

// statusHead writes what concerns all hosts.
func statusHead(w io.Writer, r *status.Report) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", args...) }
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
		line("CARDS", "%s (used/all)", inUse(c.Cards))
	}
	if host, first := firstToEnd(r); first != nil {
		line("CERTIFICATES", "the first to end: %s on %s, %s (%s)", first.Name, host, first.Ends.Format(time.DateOnly), days(first.Days))
	}
	if at := atWork(r); at != "" {
		line("AT WORK", "%s", at)
	}
	_ = table.Flush() // the writer below keeps the error
}

// atWork is who changes the cluster with kgpu now, and at which step each host is; empty: nobody does.
func atWork(r *status.Report) string {
	var now []string
	for _, h := range r.Hosts {
		if h.AtWork != "" {
			now = append(now, nameOf(h)+": "+h.AtWork)
		}
	}
	return joinBy("; now ", r.Cluster.AtWork, strings.Join(now, ", "))
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
		{title: "ADDRESS", cell: func(h status.Host) string { return h.Address }, leave: 4},
		{title: "ROLE", cell: func(h status.Host) string { return h.Role }, leave: 5},
		{title: "STATE", cell: func(h status.Host) string { return stateOf(h, now) }},
		{title: "KUBELET", cell: func(h status.Host) string { return h.Versions.Kubelet }, leave: 3},
		{title: "RUNTIME", cell: func(h status.Host) string { return h.Versions.Runtime }, leave: 1},
		{title: "OS", cell: func(h status.Host) string { return h.Versions.OS }, wide: true},
		{title: "KERNEL", cell: func(h status.Host) string { return h.Versions.Kernel }, wide: true},
		{title: "CARDS", cell: cardsOf, wide: true},
		{title: "CARDS USED", cell: func(h status.Host) string { return inUse(h.GPU.Resources) }},
		{title: "DRIVER", cell: driverOf, leave: 6},
		{title: "TOOLKIT", cell: func(h status.Host) string { return h.GPU.Toolkit }, wide: true},
		{title: "NETWORK", cell: networkOf, leave: 7},
		{title: "CERTIFICATES", cell: certificatesOf, leave: 2},
		{title: "TO DO", cell: driftOf},
	}
}

// statusHosts writes a line for each host.
func statusHosts(w io.Writer, r *status.Report, o StatusOptions) {
	columns := slices.DeleteFunc(hostColumns(r.Time), func(c column) bool { return c.wide && !o.Wide })
	rows := make([][]string, len(r.Hosts)+1)
	for _, c := range columns {
		rows[0] = append(rows[0], c.title)
		for i, h := range r.Hosts {
			rows[i+1] = append(rows[i+1], cmp.Or(c.cell(h), "-"))
		}
	}
	if !o.Wide {
		leave := make([]int, len(columns))
		for i, c := range columns {
			leave[i] = c.leave
		}
		narrow(rows, leave, o.Width)
	}
	table := tabwriter.NewWriter(w, 0, 0, columnGap, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush() // the writer below keeps the error
}

const columnGap = 2

// narrow takes columns out of a table until it fits in width columns of a terminal, or none may leave: those with the
// smallest number in leave first, and none with zero. A width of zero has room for all.
func narrow(rows [][]string, leave []int, width int) {
	for width > 0 && tableWidth(rows) > width {
		first := -1
		for i, n := range leave {
			if n > 0 && (first < 0 || n < leave[first]) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		leave = slices.Delete(leave, first, first+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], first, first+1)
		}
	}
}

// tableWidth is how wide the table of these rows becomes.
func tableWidth(rows [][]string) int {
	all := 0
	for i := range rows[0] {
		most := 0
		for _, row := range rows {
			most = max(most, ansi.StringWidthWc(row[i]))
		}
		all += most + columnGap
	}
	return all - columnGap
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
			text += " for " + shortAge(now.Sub(*h.Node.Since))
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

// shortAge is a duration as kubectl writes it.
func shortAge(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	case d >= 2*time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%ds", max(int(d.Seconds()), 0))
}

// inUse is how much pods have of what they can have: 3/8, and of how many where some cannot be given.
func inUse(resources []status.Resource) string {
	var out []string
	for _, r := range resources {
		text := fmt.Sprintf("%d/%d", r.InUse, r.Allocatable)
		if r.Allocatable != r.Capacity {
			text += fmt.Sprintf(" of %d", r.Capacity)
		}
		if name := shortResource(r.Name); name != "gpu" || len(resources) > 1 {
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

// cardsOf counts a host's cards by their names: 2 NVIDIA A100-SXM4-40GB.
func cardsOf(h status.Host) string {
	count := map[string]int{}
	for _, c := range h.GPU.Cards {
		name := c.Name
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

// certificatesOf is how long the first certificate lasts.
func certificatesOf(h status.Host) string {
	switch {
	case len(h.Certificates) == 0:
		return ""
	case h.Certificates[0].Ends == nil:
		return "unreadable"
	}
	return days(h.Certificates[0].Days)
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
func statusPods(w io.Writer, r *status.Report) {
	table := tabwriter.NewWriter(w, 0, 0, columnGap, ' ', 0)
	title := "\nPOD WITH CARDS\tHOST\tHOLDS\tPHASE\n"
	for _, h := range r.Hosts {
		for _, p := range h.GPU.Pods {
			fmt.Fprintf(table, "%s%s/%s\t%s\t%s\t%s\n", title, p.Namespace, p.Name, nameOf(h), cardsOfPod(p.Cards), p.Phase)
			title = ""
		}
	}
	_ = table.Flush() // the writer below keeps the error
}

func statusCertificates(w io.Writer, r *status.Report) {
	table := tabwriter.NewWriter(w, 0, 0, columnGap, ' ', 0)
	title := "\nCERTIFICATE\tHOST\tENDS\tIN\tFILE\n"
	for _, h := range r.Hosts {
		for _, c := range h.Certificates {
			ends, left := "unreadable", "-"
			if c.Ends != nil {
				ends, left = c.Ends.Format(time.DateOnly), days(c.Days)
			}
			fmt.Fprintf(table, "%s%s\t%s\t%s\t%s\t%s\n", title, c.Name, nameOf(h), ends, left, c.Path)
			title = ""
		}
	}
	_ = table.Flush() // the writer below keeps the error
}

func statusSteps(w io.Writer, r *status.Report) {
	table := tabwriter.NewWriter(w, 0, 0, columnGap, ' ', 0)
	title := "\nTO DO\tHOST\tWHAT\tWHY\n"
	for _, h := range r.Hosts {
		for _, s := range h.Drift.Pending {
			fmt.Fprintf(table, "%s%s\t%s\t%s\t%s\n", title, s.Step, nameOf(h), s.Title, s.Reason)
			title = ""
		}
	}
	_ = table.Flush() // the writer below keeps the error
}

// statusProblems writes what is not well, and what to do about it. Hosts where it is the same stand together, and advice that
// is for several things stands below them.
func statusProblems(w io.Writer, r *status.Report) {
	if n := r.Cluster.Waiting.Count; r.Well && n > 0 {
		fmt.Fprintf(w, "All is well. Pods that wait for cards: %d.\n", n)
		return
	}
	if r.Well {
		fmt.Fprintln(w, "All is well.")
		return
	}
	names := map[string]string{"": ""}
	for _, h := range r.Hosts {
		names[h.Host] = nameOf(h)
	}
	fmt.Fprintln(w, "Not well:")
	alike := map[status.Problem][]string{} // hosts where it is the same
	var order []status.Problem
	for _, p := range r.Problems {
		host := cmp.Or(names[p.Host], p.Host)
		p.Host = ""
		if alike[p] == nil {
			order = append(order, p)
		}
		alike[p] = append(alike[p], host)
	}
	for i, p := range order {
		text := p.Text
		if p.Reason != "" {
			text += fmt.Sprintf(" [%s]", p.Reason)
		}
		fmt.Fprintf(w, "  %s\n", joinBy(": ", joinBy(", ", alike[p]...), text))
		if i == len(order)-1 || order[i+1].Advice != p.Advice {
			fmt.Fprintf(w, "    → %s\n", p.Advice)
		}
	}
}
