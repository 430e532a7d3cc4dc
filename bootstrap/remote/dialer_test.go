package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

func TestAddresses(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{})
	loopback := netip.MustParseAddr("127.0.0.1")
	named := server.Host()
	named.Address = "localhost"
	for _, h := range []*Host{dial(t, server.Host()), dial(t, named)} {
		if h.Addr() != loopback || h.LocalAddr() != loopback {
			t.Errorf("%s: address %s, from %s", h.ID(), h.Addr(), h.LocalAddr())
		}
	}
	behind := dial(t, sshtest.Behind(server.Host(), server.Host()))
	if behind.Addr() != loopback || behind.LocalAddr().IsValid() {
		t.Errorf("behind a bastion: address %s, from %s", behind.Addr(), behind.LocalAddr())
	}
	behind = dial(t, sshtest.Behind(named, server.Host()))
	if behind.Addr().IsValid() {
		t.Errorf("a name behind a bastion has the address %s", behind.Addr())
	}
}

func TestUnreachable(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{})
	in := server.Host()
	server.Stop()
	for name, h := range map[string]struct {
		bastion *sshtest.Server
		want    string
	}{
		"refused":            {nil, "connection refused"},
		"behind a bastion":   {sshtest.Listen(t, sshtest.Config{}), "the bastion cannot reach it: "},
		"bastion forbids it": {sshtest.Listen(t, sshtest.Config{NoTCP: true}), "the bastion does not allow TCP forwarding"},
	} {
		t.Run(name, func(t *testing.T) {
			in := in
			if h.bastion != nil {
				in = sshtest.Behind(in, h.bastion.Host())
			}
			d, _ := newDialer(t, Options{})
			_, err := d.Dial(context.Background(), in)
			var e *reason.Error
			if !errors.As(err, &e) || e.ID != reason.SSHUnreachable || e.Host != "127.0.0.1" ||
				!strings.Contains(e.Doing, "root@"+server.Addr()) || !strings.Contains(e.Detail, h.want) {
				t.Errorf("%+v", err)
			}
			if h.bastion != nil && !strings.Contains(e.Doing, "through root@"+h.bastion.Addr()) {
				t.Errorf("the bastion is not named: %v", err)
			}
		})
	}
}

func TestServerThatSaysNothing(t *testing.T) {
	for name, behind := range map[string]bool{"direct": false, "behind a bastion": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet()
				in := n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{Mute: true}))
				if behind {
					in = sshtest.Behind(in, n.host(t, "10.0.0.2:22", sshtest.New(sshtest.Config{Dial: n.dial})))
				}
				start := time.Now()
				_, err := n.dialer(t, Options{}).Dial(context.Background(), in)
				if e := wantReason(t, err, reason.SSHUnreachable); e.Detail != "the port is open; no answer to the login within 30s" {
					t.Errorf("%v", err)
				}
				if took := time.Since(start); took != 3*DefaultConnectTimeout {
					t.Errorf("given up after %s", took)
				}
			})
		})
	}
}

// A host that is very busy takes the connection at once, its kernel does that, and its SSH server is slow then.
func TestServerThatIsSlow(t *testing.T) {
	for name, behind := range map[string]bool{"direct": false, "behind a bastion": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet()
				in := n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{Slow: 29 * time.Second}))
				if behind {
					in = sshtest.Behind(in, n.host(t, "10.0.0.2:22", sshtest.New(sshtest.Config{Dial: n.dial})))
				}
				var told []string
				d := n.dialer(t, Options{})
				d.opt.Events = event.SinkFunc(func(e event.Event) {
					if e.Host != "" {
						told = append(told, string(e.Kind)+" "+e.Reason+" "+e.Text)
					}
				})
				if _, err := d.Dial(context.Background(), in); err != nil {
					t.Fatal(err)
				}
				if len(told) != 3 || !strings.HasPrefix(told[0], "wait SSH_UNREACHABLE for the login, which took longer than 15s; giving up in 30s") || !strings.HasPrefix(told[1], "connect ") || !strings.HasPrefix(told[2], "wait ") {
					t.Errorf("told %q", told)
				}
			})
		})
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		in := n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{Mute: true}))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := n.dialer(t, Options{}).Dial(ctx, in)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// The network decides how long things take: few round trips matter more than anything done here.
func TestRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 100 * time.Millisecond
		n := newMemNet()
		n.delay = trip / 2
		server := sshtest.New(sshtest.Config{Exec: func(e *sshtest.Exec) int {
			if strings.Contains(e.Line, "cat") {
				_, _ = io.Copy(e.Stdout, e.Stdin)
			}
			return 0
		}})
		in := n.host(t, "10.0.0.4:22", server)
		d := n.dialer(t, Options{})
		trips := func(what string, want int, do func()) {
			t.Helper()
			start := time.Now()
			do()
			if took := int(time.Since(start) / trip); took > want {
				t.Errorf("%s: %d round trips, want %d", what, took, want)
			}
		}
		var h *Host
		trips("connecting", 7, func() { h = dialWith(t, d, in) })
		trips("a command", 2, func() {
			if err := h.Run(context.Background(), Command{Name: "true", Line: "true", Root: true}); err != nil {
				t.Error(err)
			}
		})
		trips("a command with input", 3, func() {
			if err := h.Run(context.Background(), Command{Name: "cat", Line: "cat", Root: true, Stdin: strings.NewReader("input")}); err != nil {
				t.Error(err)
			}
		})
	})
}

// sshd hangs up when too many log in at once; that passes.
func TestBusyServer(t *testing.T) {
	for _, tc := range []struct{ hangUps, accepted int }{{3, 4}, {1000, connectTries}} {
		t.Run(fmt.Sprint(tc.hangUps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet()
				server := sshtest.New(sshtest.Config{HangUps: tc.hangUps})
				_, err := n.dialer(t, Options{}).Dial(context.Background(), n.host(t, "10.0.0.4:22", server))
				switch {
				case tc.hangUps < connectTries && err != nil:
					t.Error(err)
				case tc.hangUps > connectTries && (!errors.Is(err, &reason.Error{ID: reason.SSHUnreachable}) || !strings.Contains(reason.All(err)[0].AdviceLine(), "MaxStartups")):
					t.Errorf("%v", err)
				case server.Accepted() != tc.accepted:
					t.Errorf("%d connections, want %d", server.Accepted(), tc.accepted)
				}
			})
		})
	}
}

func TestHundredHostsBehindOneBastion(t *testing.T) {
	bastion := sshtest.Listen(t, sshtest.Config{})
	server := sshtest.Listen(t, sshtest.Config{})
	d, events := newDialer(t, Options{})
	var wg sync.WaitGroup
	for i := range 100 {
		in := sshtest.Behind(server.Host(), bastion.Host())
		in.Name = fmt.Sprintf("gpu%02d", i)
		wg.Go(func() {
			h, err := d.Dial(context.Background(), in)
			if err != nil {
				t.Error(err)
				return
			}
			var out strings.Builder
			if err := h.Run(context.Background(), Command{Name: "echo", Line: "echo hello", Stdout: &out}); err != nil || out.String() != "hello\n" {
				t.Errorf("%v, %q", err, out.String())
			}
		})
	}
	wg.Wait()
	if bastion.Accepted() != 1 || server.Accepted() != 100 {
		t.Errorf("%d connections to the bastion, %d to the server", bastion.Accepted(), server.Accepted())
	}
	connects := map[string]int{}
	for _, e := range events.Events() {
		if e.Kind == event.Connect {
			connects[e.Host]++
		}
	}
	if len(connects) != 101 || connects[""] != 1 {
		t.Errorf("connect events: %v", connects)
	}
}

func TestBastionsInARow(t *testing.T) {
	outer := sshtest.Listen(t, sshtest.Config{})
	inner := sshtest.Listen(t, sshtest.Config{})
	server := sshtest.Listen(t, sshtest.Config{})
	d, events := newDialer(t, Options{})
	way := sshtest.Behind(inner.Host(), outer.Host())
	for range 2 {
		h := dialWith(t, d, sshtest.Behind(server.Host(), way))
		must(t, h.Run(context.Background(), Command{Name: "true", Line: "true"}))
	}
	dialWith(t, d, sshtest.Behind(server.Host(), outer.Host())) // shares the outer one
	for name, s := range map[string]*sshtest.Server{"outer": outer, "inner": inner} {
		if s.Accepted() != 1 {
			t.Errorf("%s bastion: %d connections", name, s.Accepted())
		}
	}
	want := fmt.Sprintf("root@%s through root@%s through root@%s", server.Addr(), inner.Addr(), outer.Addr())
	if got := events.Events()[2].Text; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// One connection to a bastion is shared only by those who log in there in the same way.
func TestBastionIsNotSharedAcrossUsers(t *testing.T) {
	bastion := sshtest.Listen(t, sshtest.Config{})
	server := sshtest.Listen(t, sshtest.Config{})
	d, _ := newDialer(t, Options{})
	other := bastion.Host()
	other.SSH.User = "other"
	dialWith(t, d, sshtest.Behind(server.Host(), bastion.Host()))
	dialWith(t, d, sshtest.Behind(server.Host(), other))
	if bastion.Accepted() != 2 {
		t.Errorf("%d connections", bastion.Accepted())
	}
}

func TestBastionThatIsLostIsDialledAgain(t *testing.T) {
	bastion := sshtest.Listen(t, sshtest.Config{})
	server := sshtest.Listen(t, sshtest.Config{})
	d, _ := newDialer(t, Options{})
	h := dialWith(t, d, sshtest.Behind(server.Host(), bastion.Host()))
	bastion.Stop()
	<-h.current().ctx.Done()
	bastion.Start(t)
	must(t, h.Reconnect(context.Background()))
	must(t, h.Run(context.Background(), Command{Name: "true", Line: "true"}))
}

// A hundred hosts whose bastion refuses the key are not a hundred attempts to break in there.
func TestRefusalByABastionIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		bastion := sshtest.New(sshtest.Config{Dial: n.dial})
		bastion.Refuse(true)
		in := sshtest.Behind(n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{})), n.host(t, "10.0.0.2:22", bastion))
		d := n.dialer(t, Options{})
		link := make(chan struct{})
		d.dialTCP = func(ctx context.Context, network, address string) (net.Conn, error) {
			<-link
			return n.dial(network, address)
		}
		var wg sync.WaitGroup
		for i := range 100 {
			in := in
			in.Name = fmt.Sprintf("gpu%02d", i)
			wg.Go(func() {
				_, err := d.Dial(context.Background(), in)
				if e := wantReason(t, err, reason.SSHAuthFailed); e.Host != in.Name || !strings.HasSuffix(e.Doing, "root@10.0.0.2:22") {
					t.Errorf("%+v", err)
				}
			})
		}
		synctest.Wait()
		close(link)
		wg.Wait()
		if bastion.Accepted() != 1 {
			t.Errorf("%d connections", bastion.Accepted())
		}
	})
}

func TestHandshakesAreLimited(t *testing.T) {
	for _, tc := range []struct {
		name    string
		servers int
		most    int
	}{{"per server", 1, limitPerServer}, {"at all", 40, DefaultLimit}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet()
				d := n.dialer(t, Options{})
				var mu sync.Mutex
				now, most := 0, 0
				d.dialTCP = func(ctx context.Context, network, address string) (net.Conn, error) {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					now--
					mu.Unlock()
					return nil, syscall.ECONNREFUSED
				}
				in := n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{}))
				var wg sync.WaitGroup
				for i := range 100 {
					in := in
					in.Address = fmt.Sprintf("10.0.1.%d", i%tc.servers)
					wg.Go(func() { _, _ = d.Dial(context.Background(), in) })
				}
				wg.Wait()
				if most != tc.most {
					t.Errorf("%d at once, want %d", most, tc.most)
				}
			})
		})
	}
}

func TestDialTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "welcome")
		all, _ := io.ReadAll(c)
		got <- string(all)
	}()
	h := dial(t, sshtest.Listen(t, sshtest.Config{}).Host())
	c, err := h.DialTCP(context.Background(), l.Addr().String())
	must(t, err)
	greeting := make([]byte, 7)
	if _, err := io.ReadFull(c, greeting); err != nil || string(greeting) != "welcome" {
		t.Errorf("%q, %v", greeting, err)
	}
	// What was written just before the end arrives.
	text := strings.Repeat("x", 1<<20) + "end"
	if _, err := io.WriteString(c, text); err != nil {
		t.Error(err)
	}
	c.Close()
	if s := <-got; s != text {
		t.Errorf("%d bytes of %d arrived", len(s), len(text))
	}
	if c.RemoteAddr().String() != l.Addr().String() {
		t.Errorf("remote address %s", c.RemoteAddr())
	}
}

func TestDialTCPFails(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{})
	h := dial(t, server.Host())
	if _, err := h.DialTCP(context.Background(), "127.0.0.1:1"); err == nil || errors.Is(err, ErrLost) {
		t.Errorf("%v", err)
	}
	server.Stop()
	<-h.current().ctx.Done()
	if _, err := h.DialTCP(context.Background(), "127.0.0.1:1"); !errors.Is(err, ErrLost) {
		t.Errorf("%v", err)
	}
}

// A tunnel whose other side never answers can be closed, and honours deadlines.
func TestTunnelToNowhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, nobody reads
	must(t, err)
	defer l.Close()
	h := dial(t, sshtest.Listen(t, sshtest.Config{}).Host())
	c, err := h.DialTCP(context.Background(), l.Addr().String())
	must(t, err)
	must(t, c.SetDeadline(time.Now()))
	var timeout net.Error
	if _, err := c.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v", err)
	}
	_ = c.SetDeadline(time.Time{})
	ended := make(chan error)
	go func() {
		_, err := io.Copy(c, steadyNow{})
		ended <- err
	}()
	c.Close()
	if err := <-ended; err == nil {
		t.Error("writing to a closed tunnel succeeds")
	}
}

type steadyNow struct{}

func (steadyNow) Read(p []byte) (int, error) { return len(p), nil }
