package main

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// relays make the way to hosts longer: each passes the connections of a loopback address of its own on to one host, in
// order and as fast as they come, but later.
type relays struct {
	hosts []host // the same, through the relays
	delay time.Duration

	mu        sync.Mutex
	stopped   bool
	listeners []net.Listener
	conns     map[net.Conn]bool
	wg        sync.WaitGroup
}

// relayAddress is where the relay of a host listens: 127.1.x.y, where x.y is the end of the host's address.
func relayAddress(h host) netip.Addr {
	b := h.address.As4()
	return netip.AddrFrom4([4]byte{127, 1, b[2], b[3]})
}

// startRelays listens for these hosts. The delay is one way's: half of what a round trip takes more.
func startRelays(list []host, delay time.Duration) (*relays, error) {
	r := &relays{delay: delay, conns: map[net.Conn]bool{}}
	for _, h := range list {
		target := h.sshd.String()
		h.sshd = netip.AddrPortFrom(relayAddress(h), relayPort)
		listener, err := net.Listen("tcp", h.sshd.String())
		if err != nil {
			r.stop()
			return nil, err
		}
		r.hosts = append(r.hosts, h)
		r.listeners = append(r.listeners, listener)
		r.wg.Go(func() { r.accept(listener, target) })
	}
	return r, nil
}

const relayPort = 2222

// stop ends the relays and their connections.
func (r *relays) stop() {
	r.mu.Lock()
	r.stopped = true
	for _, l := range r.listeners {
		_ = l.Close()
	}
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *relays) accept(listener net.Listener, target string) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.pass(c, target) })
	}
}

// keep closes c when the relays stop; done must be called when c is not needed any more.
func (r *relays) keep(c net.Conn) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c] = true
	if r.stopped {
		_ = c.Close()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, c)
		_ = c.Close()
	}
}

// pass is one connection. The kernel opened it at once, where a long way would have taken a round trip to do so: until
// then nothing that the client sent is on its way, and one delay later the server sees it.
func (r *relays) pass(near net.Conn, target string) {
	defer r.keep(near)()
	opened := time.Now().Add(2 * r.delay)
	there := make(chan parcel, queue)
	r.wg.Go(func() { r.read(near, opened, there) })
	time.Sleep(time.Until(opened.Add(r.delay)))
	far, err := net.Dial("tcp", target)
	if err != nil {
		_ = near.Close()
		for range there {
		}
		return
	}
	defer r.keep(far)()
	back := make(chan parcel, queue)
	r.wg.Go(func() { r.read(far, opened, back) })
	var both sync.WaitGroup
	both.Go(func() { deliver(far, there) })
	both.Go(func() { deliver(near, back) })
	both.Wait()
}

// parcel is some bytes on their way.
type parcel struct {
	data []byte
	due  time.Time
}

// queue is how many parcels may be on their way: more than any case has.
const queue = 4096

// read sends on what comes from c, and closes the way when c ends.
func (r *relays) read(c net.Conn, opened time.Time, to chan<- parcel) {
	defer close(to)
	for {
		data := make([]byte, 32<<10)
		n, err := c.Read(data)
		if n > 0 {
			sent := time.Now()
			if sent.Before(opened) {
				sent = opened
			}
			to <- parcel{data[:n], sent.Add(r.delay)}
		}
		if err != nil {
			to <- parcel{due: time.Now().Add(r.delay)} // the end takes its time too
			return
		}
	}
}

// deliver writes each parcel when it is due, and then the end.
func deliver(c net.Conn, from <-chan parcel) {
	var err error
	for p := range from {
		time.Sleep(time.Until(p.due))
		if err == nil && len(p.data) > 0 {
			_, err = c.Write(p.data)
		}
	}
	if half, ok := c.(*net.TCPConn); ok && err == nil {
		_ = half.CloseWrite()
	} else {
		_ = c.Close() // nobody is there any more: what comes from there ends, too
	}
}
