package remote

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// A cut, its end, and the same command again: what a run goes through when somebody trips over a cable.
func TestCutAndReconnect(t *testing.T) {
	started := make(chan struct{}, 1)
	server := sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int {
		if strings.Contains(e.Line, "long") {
			started <- struct{}{}
			return silent(e)
		}
		return 0
	}})
	link := sshtest.NewLink(t, server.Addr())
	d, _ := newDialer(t, Options{Keepalive: 10 * time.Millisecond, KeepaliveTimeout: 300 * time.Millisecond})
	h := dialWith(t, d, sshtest.At(server.Host(), link.Addr()))
	for name, interrupt := range map[string]func(){"cut": link.Cut, "reset": link.Reset} {
		t.Run(name, func(t *testing.T) {
			go func() {
				<-started
				interrupt()
			}()
			if err := h.Run(context.Background(), Command{Name: "long", Line: "long"}); !errors.Is(err, ErrLost) {
				t.Errorf("%v", err)
			}
			link.Heal()
			must(t, h.Reconnect(context.Background()))
		})
	}
	d2, _ := newDialer(t, Options{})
	must(t, dialWith(t, d2, sshtest.At(server.Host(), link.Addr())).Run(context.Background(), Command{Name: "short", Line: "short"}))
}
