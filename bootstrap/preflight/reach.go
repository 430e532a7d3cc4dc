package preflight

import (
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// reach refuses hosts that could not reach a required endpoint.
func (c *checker) reach(m Machine) {
	for _, n := range m.RequiredEndpoints {
		state, tried := m.Reach[n.Endpoint]
		if !tried || state == facts.Open || state == facts.Refused && !n.Listens {
			continue
		}
		id := unreached[n.Purpose]
		if state, ok := state.ByProxy(); ok {
			c.problem(m.ID(), reason.ProxyUnreachable, "%s port %d, for %s, by the proxy that apt on the host is set to: %s", n.Host, n.Port, n.Purpose, unreachedBecause[state])
			continue
		}
		if state == facts.Unresolved {
			id = reason.NetNameUnresolved
		}
		c.problem(m.ID(), id, "%s port %d, for %s: %s", n.Host, n.Port, n.Purpose, unreachedBecause[state])
	}
}

var unreached = map[machine.Purpose]reason.ID{
	machine.Packages: reason.RepoUnreachable,
	machine.Images:   reason.RegistryUnreachable,
	machine.ByProxy:  reason.ProxyUnreachable,
	machine.ToAPI:    reason.NetPortBlocked,
	machine.ToNode:   reason.NetPortBlocked,
	machine.ToEtcd:   reason.NetPortBlocked,
}

var unreachedBecause = map[facts.Reach]string{
	facts.Refused:     "the connection was refused",
	facts.Silent:      "no answer within 10 s",
	facts.Unresolved:  "the name does not resolve",
	facts.Unreachable: "there is no way there",
}
