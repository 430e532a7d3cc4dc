package remote

import (
	"slices"

	"kgpu.dev/kgpu/inventory"
)

// Hop is one SSH server on the way to a host, as another SSH client has to be told about it.
type Hop struct {
	User       string
	Host       string // IP address or DNS name
	Port       int
	Keys       []string // paths of private keys that the user named; none: the usual ones
	Agent      bool     // the agent may be asked
	KnownHosts []string // paths
	Policy     inventory.HostKeyPolicy
	HostKey    string // pinned, as in authorized_keys; wins over KnownHosts; empty: none
}

// Route is the way to a host that Dial takes, bastions first, the host itself last. Nothing is connected.
func (d *Dialer) Route(h inventory.Host) ([]Hop, error) {
	t, err := d.resolve(h)
	if err != nil {
		return nil, inHost(err, h.ID())
	}
	var hops []Hop
	for ; t != nil; t = t.via {
		hops = append(hops, Hop{
			User: t.user, Host: t.host, Port: t.port, Keys: t.keys, Agent: t.agent, KnownHosts: t.knownHosts, Policy: t.policy, HostKey: t.pinned,
		})
	}
	slices.Reverse(hops)
	return hops, nil
}
