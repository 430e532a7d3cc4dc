package remote

import (
	"net"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// TestNet is a network in memory, for the tests of whole runs, which are in a package of their own.
type TestNet struct{ n *memNet }

// NewTestNet makes a network that works under the clock of testing/synctest.
func NewTestNet() TestNet { return TestNet{newMemNet()} }

// Dialer is a Dialer in the network; it tells events to a sink.
func (n TestNet) Dialer(t *testing.T, opt Options, events event.Sink) *Dialer {
	d := n.n.dialer(t, opt)
	d.opt.Events = events
	return d
}

// Host puts a server at an address and describes it for the inventory.
func (n TestNet) Host(t *testing.T, address string, server *sshtest.Server) inventory.Host {
	return n.n.host(t, address, server)
}

// Dial connects to an address.
func (n TestNet) Dial(network, address string) (net.Conn, error) { return n.n.dial(network, address) }

// Cut silently cuts everything to and from an address for a while, and returns when that began.
func (n TestNet) Cut(address string, length time.Duration) time.Time {
	at := n.n.cutAfter(0, address)
	time.AfterFunc(length, func() { n.n.heal(address) })
	return at
}

// Freeze stops the processes that serve the connections there are to an address.
func (n TestNet) Freeze(address string) { n.n.freeze(address, true) }

// Vanish takes the server at an address away, as when it is shut down: connections end, new ones are refused.
func (n TestNet) Vanish(address string) {
	n.n.mu.Lock()
	server := n.n.servers[address]
	n.n.mu.Unlock()
	n.n.serve(address, nil) // before the connections end: who is quick is refused, too
	server.Stop()
}
