package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// awayReasons are the reasons of errors of a host that is down, cut off or hangs. One that answers, and is not who it was or lets
// nobody in, is not away: somebody has to look.
var awayReasons = []reason.ID{reason.SSHUnreachable, reason.SSHLost, reason.FactsFailed, reason.HostUnending}

// isAway reports whether an error is of a host that is down, cut off or hangs.
func isAway(err error) bool {
	return slices.ContainsFunc(reason.All(err), func(e *reason.Error) bool { return slices.Contains(awayReasons, e.ID) })
}

// Meet calls meet for all hosts at the same time. Control planes that are away when it connects to them are done without, where the
// others have the cluster and are a majority; the user is told. All other errors are joined in host order.
func (s *Session) Meet(hosts []inventory.Host, meet func(inventory.Host) error) error {
	var away absent
	err := Each(hosts, func(h inventory.Host) error { return away.take(h, meet(h)) })
	return errors.Join(err, s.without(&away))
}

// absent are the control planes that could not be reached when a session was opened.
type absent struct {
	mu   sync.Mutex
	errs map[string]error // by host ID
}

// take keeps the error of a control plane that is away, and returns all others.
func (a *absent) take(h inventory.Host, err error) error {
	if !h.IsControlPlane() || !isAway(err) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.errs == nil {
		a.errs = map[string]error{}
	}
	a.errs[h.ID()] = err
	return nil
}

// without goes on without control planes that are away, where the others have the cluster and are a majority, and says so. Otherwise
// it returns why not.
func (s *Session) without(a *absent) error {
	var ids []string
	var errs []error
	for _, id := range s.planes() {
		if err := a.errs[id]; err != nil {
			s.Disconnect(id)
			ids, errs = append(ids, id), append(errs, err)
		}
	}
	all := len(s.planes())
	switch need := all/2 + 1; {
	case len(ids) == 0:
		return nil
	case !s.AnyPlane(func(f *facts.Host) bool { return f.ControlPlane != nil }):
		return errors.Join(errs...)
	case all-len(ids) < need:
		return &reason.Error{ID: reason.ClusterQuorumLost, Host: ids[0], Doing: "connecting",
			Detail: fmt.Sprintf("%d of %d control planes can be reached, and etcd needs %d: not %s", all-len(ids), all, need, strings.Join(ids, ", "))}
	}
	for i, id := range ids {
		why := reason.All(errs[i])[0]
		s.Tell(event.Event{Host: id, Kind: event.Warning, Reason: string(why.ID),
			Text: fmt.Sprintf("%s is not reached: %d of %d control planes go on without it", id, all-len(ids), all)})
	}
	return nil
}
