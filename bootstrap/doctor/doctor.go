// Package doctor finds out what is wrong with the hosts of a cluster, and above all with their cards: a catalogue of failure
// modes as data, with a pure check each, over what two scripts printed on each host. It touches nothing.
//
// The catalogue began with 36 failures that users of NVIDIA's cards complain of; Row.Modes has their numbers. All of them are
// looked for, these ones as far as they can be seen without disturbing anything:
//
//	 1  containers lose their cards after a daemon-reload: only where the device plugin is such a container and says so; to
//	    ask others, a program would have to be started in containers of yours
//	12  another compiler than the kernel's: only where DKMS compiles here
//	14  a repository key that was rotated: by the files of apt; whether a key is refused only `apt-get update` knows, which
//	    changes the host
//	28  no description of the cards for containers: by the cluster's warnings, which it keeps for an hour
//	33  a pod sees cards that it did not ask for: that it could; `kgpu smoke` tries it with a pod
//	36  a card that is lost and offered: where the driver says that it is lost; one that fails in use only `kgpu smoke` finds
//
// Beyond those it has what makes a node useless, and the checks of package preflight on hosts that are members already.
package doctor

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/machine"
)

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // something does not work
	Warning Severity = "warning" // something will stop working, or works worse than it could
)

// Repair is what kgpu can do about a finding. Nothing of it ends work of yours without asking.
type Repair string

// The repairs.
const (
	ByHand        Repair = ""               // a person has to
	RestartUnit   Repair = "restart-unit"   // (re)starts units that are down, or that nothing depends on
	LoadModule    Repair = "load-module"    // loads the driver's modules that are installed
	RestartPlugin Repair = "restart-plugin" // has the node's device plugin start anew; pods keep their cards
	Hold          Repair = "hold"           // holds packages again that kgpu held
	Converge      Repair = "up"             // what `kgpu up` does
	Reboot        Repair = "reboot"         // cordon, drain, reboot, and pods again; is asked for each time
)

// Finding is something that is wrong.
type Finding struct {
	ID       string // stable: a reason's, where one means the same
	Severity Severity
	Host     string   // the inventory's name of it
	Evidence []string // lines and values that show it; printable
	Cause    string
	Fix      string // what to do: one or two lines, with commands; HOST and NODE are filled in
	Repair   Repair
	Units    []string // of RestartUnit
	Packages []string // of Hold
	Node     string   // name of the host's node; empty: unknown
	Force    bool     // of Reboot: the driver hangs, so that pods may not end and units not stop
}

// Machine is a host with what is known of it.
type Machine struct {
	machine.Machine
	Seen *Evidence // nil: it did not tell
	Err  error     // why it could not be asked, or not everything; may be nil
}

// Worst orders findings: errors first, by ID within.
func Worst(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		switch {
		case a.Severity == b.Severity:
			return 0
		case a.Severity == Error:
			return -1
		}
		return 1
	})
}

// Count is the number of errors and of warnings.
func Count(findings []Finding) (errors, warnings int) {
	for _, f := range findings {
		if f.Severity == Error {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}
