package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// noticed is how soon a silent cut must be noticed with the default settings.
const noticed = 20 * time.Second

// silent is a command that runs and says nothing.
func silent(e *sshtest.Exec) int {
	<-e.Gone
	return sshtest.Vanish
}

// downloads is a command that writes all the time.
func downloads(e *sshtest.Exec) int {
	block := make([]byte, 32<<10)
	for {
		if _, err := e.Stdout.Write(block); err != nil {
			return sshtest.Vanish
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// uploads is a command that reads all the time.
func uploads(e *sshtest.Exec) int {
	_, _ = io.Copy(io.Discard, e.Stdin)
	return sshtest.Vanish
}

// steady is an input that never ends.
type steady struct{}

func (steady) Read(p []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return len(p), nil
}

func TestSilentCutIsNoticed(t *testing.T) {
	for name, handler := range map[string]sshtest.Handler{"silent": silent, "downloading": downloads, "uploading": uploads} {
		for _, after := range []time.Duration{0, 1, 4999, 5000, 5001, 61_234} {
			after *= time.Millisecond
			t.Run(name+" "+after.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newMemNet()
					in := n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{Exec: handler}))
					h := dialWith(t, n.dialer(t, Options{}), in)
					cut := n.cutAfter(after, "10.0.0.4:22")
					c := Command{Name: "long", Line: "long"}
					if name == "uploading" {
						c.Stdin = steady{}
					}
					err := h.Run(context.Background(), c)
					if !errors.Is(err, ErrLost) || !errors.Is(err, &reason.Error{ID: reason.SSHLost}) {
						t.Errorf("%v", err)
					}
					if took := time.Since(cut); took >= noticed || took < 0 {
						t.Errorf("noticed %s after the cut", took)
					}
				})
			})
		}
	}
}

func TestSilentCutBehindBastions(t *testing.T) {
	for _, cutAt := range []string{"10.0.0.2:22", "10.0.0.3:22", "10.0.0.4:22"} {
		t.Run(cutAt, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet()
				outer := n.host(t, "10.0.0.2:22", sshtest.New(sshtest.Config{Dial: n.dial}))
				inner := sshtest.Behind(n.host(t, "10.0.0.3:22", sshtest.New(sshtest.Config{Dial: n.dial})), outer)
				in := sshtest.Behind(n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{Exec: silent})), inner)
				h := dialWith(t, n.dialer(t, Options{}), in)
				cut := n.cutAfter(time.Minute, cutAt)
				err := h.Run(context.Background(), Command{Name: "long", Line: "long"})
				if !errors.Is(err, ErrLost) {
					t.Errorf("%v", err)
				}
				if took := time.Since(cut); took >= noticed || took < 0 {
					t.Errorf("noticed %s after the cut", took)
				}
			})
		})
	}
}

// A link that is so full that answers to keepalives come late is not dead.
func TestBytesAreASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		server := sshtest.New(sshtest.Config{Deaf: true, Exec: func(e *sshtest.Exec) int {
			for range 120 {
				time.Sleep(5 * time.Second)
				_, _ = e.Stdout.Write([]byte("."))
			}
			return 0
		}})
		h := dialWith(t, n.dialer(t, Options{}), n.host(t, "10.0.0.4:22", server))
		var out strings.Builder
		must(t, h.Run(context.Background(), Command{Name: "dots", Line: "dots", Stdout: &out}))
		if out.Len() != 120 {
			t.Errorf("%d dots", out.Len())
		}
	})
}

// A server whose TCP stack lives but which does nothing any more, such as a wedged sshd, is dead.
func TestWedgedServerIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		h := dialWith(t, n.dialer(t, Options{}), n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{Deaf: true, Exec: silent})))
		start := time.Now()
		if err := h.Run(context.Background(), Command{Name: "long", Line: "long"}); !errors.Is(err, errSilent) {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took >= noticed {
			t.Errorf("noticed after %s", took)
		}
	})
}

func TestIdleConnectionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		h := dialWith(t, n.dialer(t, Options{}), n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{})))
		time.Sleep(24 * time.Hour)
		if !h.current().alive() {
			t.Error("the connection was given up")
		}
	})
}

// stuck is a connection whose writes hang after a while, as when the kernel's buffer is full.
type stuck struct {
	net.Conn
	mu     sync.Mutex
	hang   bool
	closed chan struct{}
	once   sync.Once
}

func (s *stuck) Write(p []byte) (int, error) {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang {
		<-s.closed
		return 0, net.ErrClosed
	}
	return s.Conn.Write(p)
}

func (s *stuck) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// The keepalive itself cannot be sent here. This cannot run under a fake clock, which stands still while a goroutine
// waits for a mutex, so the times are short; nothing depends on how long it takes.
func TestHangingWriteIsNoticed(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{Exec: silent})
	d, _ := newDialer(t, Options{Keepalive: 10 * time.Millisecond, KeepaliveTimeout: 50 * time.Millisecond})
	var s *stuck
	dialTCP := d.dialTCP
	d.dialTCP = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialTCP(ctx, network, address)
		s = &stuck{Conn: c, closed: make(chan struct{})}
		return s, err
	}
	h := dialWith(t, d, server.Host())
	s.mu.Lock()
	s.hang = true
	s.mu.Unlock()
	if err := h.Run(context.Background(), Command{Name: "long", Line: "long"}); !errors.Is(err, ErrLost) {
		t.Errorf("%v", err)
	}
}
