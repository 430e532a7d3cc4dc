// Package doctor finds out what is wrong with the hosts of a cluster, above all with their GPUs. It is a catalogue of
// failure modes, each with a pure check of the output of two scripts. It changes nothing.
//
// The catalogue began with 36 failures that users of NVIDIA GPUs report; Row.Modes has their numbers. All are looked
// for, but these only as far as can be seen without disturbing anything:
//
//	 1  containers lose their cards after a daemon-reload: only where the device plugin is such a container and says so; to
//	    ask others, a program would have to be started in containers of yours
//	12  another compiler than the kernel's: only where DKMS compiles here
//	14  a repository key that was rotated: by the files of apt; whether a key is refused only `apt-get update` knows, which
//	    changes the host
//	28  no description of the GPUs for containers: by the cluster's warnings, which it keeps for an hour
//	33  a pod sees cards that it did not ask for: that it could; `kgpu smoke` tries it with a pod
//	36  a card that is lost and offered: where the driver says that it is lost; one that fails in use only `kgpu smoke` finds
//
// It also finds what else makes a node useless, and runs the checks of package preflight on existing nodes.
package doctor

import (
	"slices"

	"kgpu.dev/kgpu/bootstrap/machine"
)

// Severity says how serious a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // something does not work
	Warning Severity = "warning" // something will stop working, or works worse than it could
)

// Repair is what kgpu can do about a finding. None ends work of yours without asking.
type Repair string

// The repairs.
const (
	ByHand        Repair = ""               // kgpu can do nothing
	RestartUnit   Repair = "restart-unit"   // (re)starts units that are down or that nothing depends on
	LoadModule    Repair = "load-module"    // loads the installed modules of the driver
	RestartPlugin Repair = "restart-plugin" // restarts the node's device plugin; pods keep their GPUs
	Hold          Repair = "hold"           // holds packages again that kgpu held before
	Converge      Repair = "up"             // `kgpu up`
	Reboot        Repair = "reboot"         // cordon, drain, reboot and uncordon, after asking each time
)

// Finding is something that is wrong.
type Finding struct {
	ID       string // stable; that of a reason with the same meaning, if there is one
	Severity Severity
	Host     string   // the inventory's name for it
	Evidence []string // printable lines that show it
	Cause    string
	Fix      string // what to do, in one or two lines with commands
	Repair   Repair
	Units    []string // those that RestartUnit starts
	Packages []string // those that Hold holds
	Node     string   // the host's node; empty if unknown
	Force    bool     // Reboot does not wait for pods and units, as the driver hangs
}

// Machine is a host with its facts and doctor's evidence.
type Machine struct {
	machine.Machine
	Evidence *Evidence // nil if the host did not answer
	Err      error     // why the host did not answer, or only in part; may be nil
}

// SortWorst sorts findings: errors first, then by ID.
func SortWorst(findings []Finding) {
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

// Count returns the numbers of errors and of warnings.
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
