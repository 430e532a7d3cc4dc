package session

import (
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// connecting are the reasons why nothing could be asked of a host.
var connecting = []reason.ID{
	reason.SSHUnreachable, reason.SSHHostKeyUnknown, reason.SSHHostKeyMismatch, reason.SSHAuthFailed,
	reason.SSHCommandRefused, reason.SSHSessionRefused, reason.SudoRefused, reason.FactsFailed,
}

// Unreached reports whether an error says that nothing could be asked of its host.
func Unreached(e *reason.Error) bool { return e.Step == "" && slices.Contains(connecting, e.ID) }

// longList is how many hosts an advice names before it is too long to be read.
const longList = 5

// AdviseWithout adds to the errors of workers that could not be reached, or asked, the command that does without them. A run
// does not leave a host out by itself at its start: it may be a typing error.
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
			return err // nothing goes without it
		}
	}
	if len(workers) > 0 {
		others = workers // the control plane is always among them
	}
	if o.Without == nil {
		return err
	}
	if len(others) > longList {
		others = nil
	}
	for _, e := range out {
		e.Advice = fmt.Sprintf("%s; or go on without it: `%s`", e.AdviceLine(), o.Without(others))
	}
	return err
}
