package run

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// A silent cut over real SSH: the batch goes on, is followed from where it was left, and no line is lost or doubled.
func TestSilentCutOverSSH(t *testing.T) {
	machine := runnertest.NewHost(t)
	local := sshtest.Local(machine.Environ()...)
	server := sshtest.Listen(t, sshtest.Config{Exec: func(x *sshtest.Exec) int {
		x.Line = strings.ReplaceAll(x.Line, DefaultDir, machine.Dir)
		return local(x)
	}})
	link := sshtest.NewLink(t, server.Addr())
	link.SetDelay(5 * time.Millisecond)

	f := newFleet(t)
	f.pipe(t, "is-cut", "is-lost")
	var opened sync.WaitGroup
	defer opened.Wait()
	sink := event.SinkFunc(func(e event.Event) {
		f.Recorder.Emit(e)
		switch {
		case e.Kind == event.Log && e.Text == "line 10":
			link.Cut()
			opened.Go(func() { f.open(t, "is-cut").Close() })
		case e.Kind == event.Wait && e.Millis == 0:
			link.Heal()
			opened.Go(func() { f.open(t, "is-lost").Close() })
		}
	})
	d := remote.NewDialer(remote.Options{Run: f.Run, Events: sink, Keepalive: 50 * time.Millisecond, KeepaliveTimeout: 300 * time.Millisecond})
	defer d.Close()
	host, err := d.Dial(t.Context(), sshtest.At(server.Host(), link.Addr()))
	must(t, err)
	f.Engine.Events = sink
	f.Hosts["a"] = named{host, "a"}
	_, err = f.Execute(t.Context(), graphOf(step("a", "talk", `
		say() { for i in $(seq "$1" "$2"); do echo "line $i"; done; }
		say 1 10; cat is-cut; say 11 15; cat is-lost; say 16 20`)))
	must(t, err)
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("log a talk line %d", i+1))
	}
	if got := f.told(event.Log); !slices.Equal(got, want) {
		t.Errorf("told %q", got)
	}
	got := f.told(event.Wait)
	if len(got) != 2 || !strings.Contains(got[0], "connection lost 0s ago; giving up in 10m0s, trying again") || !strings.Contains(got[1], "the connection is back") {
		t.Errorf("waits are %q", got)
	}
}

// named gives a host the ID that the graph calls it.
type named struct {
	Host
	id string
}

func (n named) ID() string { return n.id }
