package remote

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/inventory"
)

func TestMain(m *testing.M) {
	// Neither the keys nor the agent of whoever runs the tests.
	home, err := os.MkdirTemp("", "kgpu-remote-")
	if err != nil {
		panic(err)
	}
	os.Setenv("HOME", home)
	os.Unsetenv("SSH_AUTH_SOCK")
	goleak.VerifyTestMain(cleaner{m, home},
		// A channel that is opened at the moment the connection dies is never answered by the ssh package; nobody waits
		// for it here.
		goleak.IgnoreTopFunction("golang.org/x/crypto/ssh.(*mux).openChannel"))
}

// cleaner removes the home directory before goleak ends the process.
type cleaner struct {
	m    *testing.M
	home string
}

func (c cleaner) Run() int {
	defer os.RemoveAll(c.home)
	return c.m.Run()
}

// newDialer makes a Dialer that is closed with the test, and what it tells.
func newDialer(t testing.TB, opt Options) (*Dialer, *event.Recorder) {
	t.Helper()
	events := &event.Recorder{}
	opt.Run, opt.Events = "run", events
	d := NewDialer(opt)
	t.Cleanup(func() { _ = d.Close() })
	return d, events
}

// dial connects to h with a Dialer of its own.
func dial(t testing.TB, h inventory.Host) *Host {
	t.Helper()
	d, _ := newDialer(t, Options{})
	return dialWith(t, d, h)
}

func dialWith(t testing.TB, d *Dialer, h inventory.Host) *Host {
	t.Helper()
	host, err := d.Dial(context.Background(), h)
	must(t, err)
	t.Cleanup(func() { _ = host.Close() })
	return host
}
