package remote

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

func TestReconnectAfterReboot(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{})
	h := dial(t, server.Host())
	server.Stop()
	if err := h.Run(context.Background(), Command{Name: "true", Line: "true"}); !errors.Is(err, ErrLost) {
		t.Fatalf("%v", err)
	}
	server.Start(t)
	must(t, h.Reconnect(context.Background()))
	must(t, h.Run(context.Background(), Command{Name: "true", Line: "true"}))
}

func TestReconnectWaitsForTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		server := sshtest.New(sshtest.Config{})
		in := n.host(t, "10.0.0.4:22", server)
		h := dialWith(t, n.dialer(t, Options{}), in)
		server.Stop()
		n.serve("10.0.0.4:22", nil)
		server.Refuse(true) // until long after the start
		h.Close()
		time.AfterFunc(5*time.Minute, func() { n.serve("10.0.0.4:22", server) })
		time.AfterFunc(5*time.Minute+20*time.Second, func() { server.Refuse(false) })
		start := time.Now()
		must(t, h.Reconnect(context.Background()))
		if took := time.Since(start); took > 5*time.Minute+40*time.Second {
			t.Errorf("connected only after %s", took)
		}
		if n.dials > 70 {
			t.Errorf("%d attempts in five minutes", n.dials)
		}
	})
}

func TestReconnectEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		h := dialWith(t, n.dialer(t, Options{}), n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{})))
		n.serve("10.0.0.4:22", nil)
		h.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		start := time.Now()
		err := h.Reconnect(ctx)
		if e := wantReason(t, err, reason.SSHUnreachable); e.Host != "10.0.0.4" || !strings.Contains(e.Error(), "connection refused") {
			t.Errorf("the last failure is not told: %v", err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("ended after %s", took)
		}
	})
}

func TestReconnectGivesUp(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*sshtest.Server)
		want   reason.ID
		dials  int
	}{
		{"at once when it is another machine", func(s *sshtest.Server) { s.SetHostKeys(sshtest.NewKey()) }, reason.SSHHostKeyMismatch, 2},
		{"when the keys are refused for good", func(s *sshtest.Server) { s.Refuse(true) }, reason.SSHAuthFailed, 1 + maxRefusals},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet()
				server := sshtest.New(sshtest.Config{})
				h := dialWith(t, n.dialer(t, Options{}), n.host(t, "10.0.0.4:22", server))
				tc.change(server)
				h.Close()
				if err := h.Reconnect(context.Background()); !errors.Is(err, &reason.Error{ID: tc.want}) {
					t.Errorf("%v", err)
				}
				if n.dials != tc.dials {
					t.Errorf("%d connections, want %d", n.dials, tc.dials)
				}
			})
		})
	}
}

// Several who notice the loss do not take each other's connection away.
func TestReconnectTogether(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{})
	h := dial(t, server.Host())
	server.Stop()
	<-h.current().ctx.Done()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := h.Reconnect(context.Background()); err != nil {
				t.Error(err)
			}
			if err := h.Run(context.Background(), Command{Name: "true", Line: "true"}); err != nil {
				t.Error(err)
			}
		})
	}
	server.Start(t)
	wg.Wait()
}

// One whose time is over, or who is told to stop, does not wait for another who reconnects and is more patient.
func TestReconnectBehindAPatientOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		h := dialWith(t, n.dialer(t, Options{}), n.host(t, "10.0.0.4:22", sshtest.New(sshtest.Config{})))
		n.serve("10.0.0.4:22", nil)
		h.Close()
		patient, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = h.Reconnect(patient)
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		err := h.Reconnect(ctx)
		if !errors.Is(err, &reason.Error{ID: reason.SSHUnreachable}) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("told to stop after a second, it ended after %s", took)
		}
		stop()
		<-ended
	})
}

// One who hears of the loss when another has connected again leaves that connection alone.
func TestReconnectLate(t *testing.T) {
	server := sshtest.Listen(t, sshtest.Config{})
	h := dial(t, server.Host())
	h.Close()
	for range 2 {
		must(t, h.Reconnect(context.Background()))
	}
	if n := server.Accepted(); n != 2 {
		t.Errorf("%d connections, want the first and one more", n)
	}
}
