package session

import (
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// connectReasons are the reasons of errors before anything could be asked of a host.
var connectReasons = []reason.ID{
	reason.SSHUnreachable, reason.SSHHostKeyUnknown, reason.SSHHostKeyMismatch, reason.SSHAuthFailed,
	reason.SSHCommandRefused, reason.SSHSessionRefused, reason.SudoRefused, reason.FactsFailed,
}

// Unreached reports whether the error means that nothing could be asked of the host.
func Unreached(e *reason.Error) bool { return e.Step == "" && slices.Contains(connectReasons, e.ID) }

// maxListed is how many hosts an advice lists by name.
const maxListed = 5

// AdviseWithout adds to the errors of unreachable workers the command that runs without them. A run does not exclude a
// worker at its start, because its address may be mistyped.
func (o Options) AdviseWithout(hosts []inventory.Host, err error) error {
	out := map[string]*reason.Error{}
	for _, e := range reason.All(err) {
		if Unreached(e) {
			out[e.Host] = e
		}
	}
	var others, workers []string
	for _, h := range hosts {
		switch {
		case out[h.ID()] == nil:
			others = append(others, h.ID())
			if !h.IsControlPlane() {
				workers = append(workers, h.ID())
			}
		case h.IsControlPlane():
			return err // a control plane cannot be excluded
		}
	}
	if len(workers) > 0 {
		others = workers // the control planes are always included
	}
	if o.Without == nil {
		return err
	}
	if len(others) > maxListed {
		others = nil
	}
	for _, e := range out {
		e.Advice = fmt.Sprintf("%s; or go on without it: `%s`", e.AdviceLine(), o.Without(others))
	}
	return err
}
