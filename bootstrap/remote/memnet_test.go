package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// memNet is a network in memory, which works under the clock of testing/synctest. Like a kernel it takes what is written
// into a buffer, larger than SSH's windows.
type memNet struct {
	mu      sync.Mutex
	cond    sync.Cond
	cut     map[string]bool // addresses nothing passes to or from
	delay   time.Duration   // of every byte: half a round trip
	servers map[string]*sshtest.Server
	dials   int
	buffers []*memBuffer
	wg      sync.WaitGroup
}

func newMemNet() *memNet {
	n := &memNet{cut: map[string]bool{}, servers: map[string]*sshtest.Server{}}
	n.cond.L = &n.mu
	return n
}

// serve puts a server at an address; nil is one that refuses connections.
func (n *memNet) serve(address string, s *sshtest.Server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[address] = s
}

// cutAfter silently cuts everything to and from address after a while; it returns when that will be.
func (n *memNet) cutAfter(d time.Duration, address string) time.Time {
	at := time.Now().Add(d)
	time.AfterFunc(d, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.cut[address] = true
		n.cond.Broadcast()
	})
	return at
}

// freeze stops what there is between address and others: its kernel goes on acknowledging, the process that serves does
// nothing any more. Who connects later gets another process.
func (n *memNet) freeze(address string, yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.buffers {
		if b.address == address {
			b.frozen = yes
		}
	}
	n.cond.Broadcast()
}

// heal ends a cut.
func (n *memNet) heal(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cut, address)
	n.cond.Broadcast()
}

func (n *memNet) dial(_, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	server := n.servers[address]
	if server == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	there, back := &memBuffer{net: n, address: address}, &memBuffer{net: n, address: address}
	n.buffers = append(n.buffers, there, back)
	near, far := &memConn{read: back, write: there}, &memConn{read: there, write: back}
	n.wg.Go(func() { server.Serve(far) })
	return near, nil
}

func (n *memNet) dialContext(_ context.Context, network, address string) (net.Conn, error) {
	return n.dial(network, address)
}

// dialer is a Dialer in the network; its connections end with the test.
func (n *memNet) dialer(t *testing.T, opt Options) *Dialer {
	d, _ := newDialer(t, opt)
	d.dialTCP = n.dialContext
	t.Cleanup(func() {
		_ = d.Close()
		n.mu.Lock()
		clear(n.cut)
		for _, b := range n.buffers {
			b.frozen = false
		}
		n.cond.Broadcast()
		n.mu.Unlock()
		n.wg.Wait()
	})
	return d
}

// host describes server at address for the inventory.
func (n *memNet) host(t *testing.T, address string, server *sshtest.Server) inventory.Host {
	n.serve(address, server)
	key := filepath.Join(t.TempDir(), "id")
	server.ClientKey().Write(t, key)
	h := sshtest.At(server.Host(), address)
	h.SSH.Key = key
	return h
}

// memBuffer is one direction of a connection.
type memBuffer struct {
	net     *memNet
	address string
	parcels []parcel
	size    int
	closed  bool // by the writer: it ends after the data
	broken  bool // by the reader
	frozen  bool // nobody reads
}

type parcel struct {
	data []byte
	due  time.Time
}

const memBufferSize = 4 << 20

func (b *memBuffer) Read(p []byte) (int, error) {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	for !b.broken && (b.frozen || b.net.cut[b.address] || !b.arrived() && !(b.closed && len(b.parcels) == 0)) {
		b.net.cond.Wait()
	}
	switch {
	case b.broken:
		return 0, net.ErrClosed
	case len(b.parcels) == 0:
		return 0, io.EOF
	}
	first := &b.parcels[0]
	c := copy(p, first.data)
	b.size -= c
	if first.data = first.data[c:]; len(first.data) == 0 {
		b.parcels = b.parcels[1:]
	}
	b.net.cond.Broadcast()
	return c, nil
}

func (b *memBuffer) arrived() bool {
	return len(b.parcels) > 0 && !time.Now().Before(b.parcels[0].due)
}

func (b *memBuffer) Write(p []byte) (int, error) {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	for !b.broken && !b.closed && b.size+len(p) > memBufferSize {
		b.net.cond.Wait()
	}
	if b.broken || b.closed {
		return 0, errors.Join(net.ErrClosed, syscall.EPIPE)
	}
	b.size += len(p)
	b.parcels = append(b.parcels, parcel{bytes.Clone(p), time.Now().Add(b.net.delay)})
	if b.net.delay == 0 { // the race detector may crash in timers of synctest that fire at once
		b.net.cond.Broadcast()
		return len(p), nil
	}
	time.AfterFunc(b.net.delay, func() {
		b.net.mu.Lock()
		defer b.net.mu.Unlock()
		b.net.cond.Broadcast()
	})
	return len(p), nil
}

type memConn struct {
	net.Conn
	read, write *memBuffer
}

func (c *memConn) Read(p []byte) (int, error)  { return c.read.Read(p) }
func (c *memConn) Write(p []byte) (int, error) { return c.write.Write(p) }
func (c *memConn) LocalAddr() net.Addr         { return tunnelAddr("10.0.0.1:40000") }
func (c *memConn) RemoteAddr() net.Addr        { return tunnelAddr(c.read.address) }

func (c *memConn) Close() error {
	n := c.read.net
	n.mu.Lock()
	defer n.mu.Unlock()
	c.read.broken, c.write.closed = true, true
	n.cond.Broadcast()
	return nil
}
