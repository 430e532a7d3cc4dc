// Package storm brings a cluster up while kgpu, its hosts and their network fail, at points that a seed chooses, and
// judges what came of it. Tests and the program above it use it.
package storm

import (
	"fmt"
	"time"
)

// Ref is a step on a host of the lab.
type Ref struct {
	Host string // its name in the lab: cp1
	Step string // kgpu's ID of the step: kube/packages
}

// String is the host and the step.
func (r Ref) String() string { return r.Host + " " + r.Step }

// Phase is when, within a step, a point comes.
type Phase string

// The phases of a step. The host's own log of events tells them, before kgpu hears of them over the network.
const (
	Begin   Phase = "begin"   // the step has begun
	During  Phase = "during"  // it has been at work for some time, or is just done with its work
	End     Phase = "end"     // it is done, and kgpu may not know yet
	Between Phase = "between" // it has been done for some time
	Connect Phase = "connect" // a run of kgpu has just connected to the host, where some step of a former run is at work
)

// Point is a place in a run.
type Point struct {
	Ref
	Phase Phase
	After time.Duration // for During and Between
}

// String is how points are printed: "w1 kube/packages during+2s".
func (p Point) String() string {
	switch p.Phase {
	case Connect:
		return fmt.Sprintf("%s %s", p.Host, p.Phase)
	case During, Between:
		return fmt.Sprintf("%s %s+%s", p.Ref, p.Phase, p.After)
	default:
		return fmt.Sprintf("%s %s", p.Ref, p.Phase)
	}
}
