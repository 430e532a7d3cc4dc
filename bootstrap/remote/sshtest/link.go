package sshtest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Link is a way to a TCP server that can be slow and can be cut.
type Link struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup
	ended    chan struct{}

	mu    sync.Mutex
	delay time.Duration
	whole chan struct{} // closed while the link is whole
	conns map[net.Conn]bool
}

// NewLink listens on a free port of the loopback address and passes connections on to target; it ends with the test.
func NewLink(tb testing.TB, target string) *Link {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	l := &Link{target: target, listener: listener, ended: make(chan struct{}), whole: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(l.whole)
	l.wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.pass(c) })
		}
	})
	tb.Cleanup(func() {
		close(l.ended)
		listener.Close()
		l.closeAll()
		l.wg.Wait()
	})
	return l
}

// Addr is where the link listens, host:port.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// SetDelay sets how long bytes take in each direction: half a round trip.
func (l *Link) SetDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// Cut silently stops everything: connections stay, nothing is read or passed on, not even their end.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
		l.whole = make(chan struct{})
	default:
	}
}

// Heal ends a cut; what was on the way arrives.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

// Reset ends every connection with a TCP reset.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

func (l *Link) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Close()
	}
}

func (l *Link) keep(c net.Conn, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if yes {
		l.conns[c] = true
	} else {
		delete(l.conns, c)
		c.Close()
	}
}

// wait returns when the link is whole, false when it has ended.
func (l *Link) wait() bool {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	select {
	case <-l.ended:
		return false
	case <-whole:
		return true
	}
}

func (l *Link) pass(near net.Conn) {
	l.keep(near, true)
	defer l.keep(near, false)
	if !l.wait() {
		return
	}
	far, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	l.keep(far, true)
	defer l.keep(far, false)
	var wg sync.WaitGroup
	wg.Go(func() { l.pump(far, near) })
	wg.Go(func() { l.pump(near, far) })
	wg.Wait()
}

type parcel struct {
	data []byte
	due  time.Time
}

func (l *Link) pump(to, from net.Conn) {
	onTheWay := make(chan parcel, 256)
	l.wg.Go(func() {
		defer close(onTheWay)
		for l.wait() {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 {
				l.mu.Lock()
				due := time.Now().Add(l.delay)
				l.mu.Unlock()
				select {
				case onTheWay <- parcel{buf[:n], due}:
				case <-l.ended:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	for p := range onTheWay {
		select {
		case <-time.After(time.Until(p.due)):
		case <-l.ended:
			return
		}
		if !l.wait() {
			return
		}
		if _, err := to.Write(p.data); err != nil {
			from.Close()
			return
		}
	}
	if l.wait() {
		if w, ok := to.(interface{ CloseWrite() error }); ok {
			_ = w.CloseWrite()
		}
	}
}
