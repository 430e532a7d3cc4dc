package reason

import (
	"fmt"
	"slices"
	"strings"
)

// Class says what kind of failure a reason is, so that a script can act on a kind without knowing every reason.
type Class string

// The classes.
const (
	Inventory   Class = "inventory"
	Local       Class = "local"
	Connection  Class = "connection"
	Operator    Class = "operator"
	Machine     Class = "host"
	Network     Class = "network"
	Step        Class = "step"
	GPU         Class = "gpu"
	Proof       Class = "proof"
	Interrupted Class = "interrupted"
)

// Range is exit statuses from the first to the last.
type Range struct{ First, Last int }

// String is one number, or two with a dash between them.
func (r Range) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d–%d", r.First, r.Last)
}

func (r Range) has(exit int) bool { return r.First <= exit && exit <= r.Last }

// ClassInfo describes a class.
type ClassInfo struct {
	Class   Class
	Exits   []Range // that belong to it, those of reasons to come too
	Meaning string  // one line
}

// Ranges is the exit statuses as text: "35–39, 41–72, 89".
func (c ClassInfo) Ranges() string {
	var out []string
	for _, r := range c.Exits {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}

// classes is in the order of the run: what can go wrong first comes first. Exit statuses are never given to another class.
var classes = []ClassInfo{
	{Inventory, []Range{{10, 11}}, "what you wrote: the inventory, and the secrets that it refers to"},
	{Local, []Range{{19, 19}, {225, 229}}, "what kgpu keeps on the machine that it runs on"},
	{Connection, []Range{{12, 18}, {20, 26}, {220, 224}}, "the way to a host, or into the cluster: SSH, keys, sudo, kubeconfigs"},
	{Operator, []Range{{27, 30}}, "somebody else is at work there"},
	{Machine, []Range{{35, 39}, {41, 72}, {89, 89}, {230, 249}}, "what a host is, or lacks"},
	{Network, []Range{{31, 34}, {73, 79}}, "the network between the hosts, and to what they download from"},
	{Step, []Range{{80, 88}, {90, 99}, {210, 219}}, "something that kgpu did on a host, or waited for there"},
	{GPU, []Range{{100, 112}, {118, 119}, {124, 125}, {200, 209}}, "cards, their driver and what hands them to pods"},
	{Proof, []Range{{113, 117}, {120, 123}, {193, 199}}, "the proof at the end: a pod for each card, and the notebook"},
	{Interrupted, []Range{{130, 130}}, "you, or another run, stopped it"},
}

// Classes returns every class, in the order of a run.
func Classes() []ClassInfo { return slices.Clone(classes) }

// ClassOf returns the class of a reason's exit status; empty for one that is no reason's.
func ClassOf(exit int) Class {
	for _, c := range classes {
		if slices.ContainsFunc(c.Exits, func(r Range) bool { return r.has(exit) }) {
			return c.Class
		}
	}
	return ""
}

// Class is the class of the reason's exit status.
func (r Reason) Class() Class { return ClassOf(r.Exit) }

// Of returns the reasons of a class by exit status.
func Of(c Class) []Reason {
	return slices.DeleteFunc(Table(), func(r Reason) bool { return r.Class() != c })
}

// General is an exit status that is not bound to one reason.
type General struct {
	Exit    int
	Meaning string
}

// Generals returns the exit statuses that are not bound to one reason.
func Generals() []General {
	return []General{
		{ExitOK, "done, or nothing to do"},
		{ExitInternal, "a defect of kgpu, or a failure that has no reason of its own; `kgpu doctor`: something does not work"},
		{ExitPending, "`kgpu plan`: changes are pending; `kgpu status`: something is not well; `kgpu doctor`: there are warnings only"},
		{ExitUsage, "the command line is wrong, or names what is not there; or a question was not answered with the word that it wants"},
		{ExitSeveral, "several different reasons at once: each is printed, and is in the events with `--output json`"},
	}
}
