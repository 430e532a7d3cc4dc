package run

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/inventory"
)

// A host that does nothing says which step of which host it waits for, once.
func TestHostsSayWhatTheyWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stages, events := newTheatre(), &event.Recorder{}
		e := &Engine{Run: "r", Hosts: map[string]Host{}, Events: events, Limit: 2, Script: func(string) ([]byte, error) { return nil, nil }}
		alone := func(s *graph.Step) *graph.Step {
			s.Mutex = "reboot"
			return s
		}
		g := graphOf(
			step("cp1", "init", "x"), step("cp1", "token", "x", ref("cp1", "init")),
			step("w1", "prepare", "x"), step("w1", "join", "x", ref("w1", "prepare"), ref("cp1", "token")),
			step("w2", "join", "x", ref("cp1", "token")),
			step("cp1", "ready", "x", ref("w1", "join"), ref("w2", "join")),
			alone(step("w1", "reboot", "x", ref("cp1", "ready"))), alone(step("w2", "reboot", "x", ref("cp1", "ready"))),
			step("cp1", "end", "x", ref("w1", "reboot")),
		)
		for _, s := range g.Steps {
			e.Hosts[s.Host] = stage{stages, s.Host}
		}
		over := make(chan error)
		go func() {
			_, err := e.Execute(t.Context(), g)
			over <- err
		}()
		for synctest.Wait(); len(stages.running()) > 0; synctest.Wait() {
			stages.end(stages.running()[0], 0)
		}
		must(t, <-over)
		var told []string
		for _, ev := range events.Events() {
			if ev.Kind == event.Wait {
				told = append(told, ev.Host+" "+ev.Step+": "+ev.Text)
			}
		}
		for _, want := range []string{"w2 join: for cp1: token", "cp1 ready: for w1: join, and 1 more", "w1 reboot: for cp1: ready"} {
			if n := len(slices.DeleteFunc(slices.Clone(told), func(s string) bool { return s != want })); n != 1 {
				t.Errorf("%q was told %d times: %q", want, n, told)
			}
		}
		if !slices.ContainsFunc(told, func(s string) bool {
			return s == "w2 reboot: for w1: reboot, one host at a time" || s == "w1 reboot: for w2: reboot, one host at a time"
		}) {
			t.Errorf("nobody waits for the other's reboot: %q", told)
		}
	})
}

// At the limit, a host says that it waits for its turn.
func TestHostsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stages, events := newTheatre(), &event.Recorder{}
		e := &Engine{Run: "r", Hosts: map[string]Host{}, Events: events, Limit: 1, Script: func(string) ([]byte, error) { return nil, nil }}
		g := graphOf(step("a", "one", "x"), step("b", "one", "x"))
		for _, s := range g.Steps {
			e.Hosts[s.Host] = stage{stages, s.Host}
		}
		over := make(chan error)
		go func() {
			_, err := e.Execute(t.Context(), g)
			over <- err
		}()
		synctest.Wait()
		waits := 0
		for _, ev := range events.Events() {
			if ev.Kind == event.Wait && ev.Text == "for its turn: as many hosts as may are at work (1)" {
				waits++
			}
		}
		if waits != 1 {
			t.Errorf("told %v", events.Events())
		}
		for ; len(stages.running()) > 0; synctest.Wait() {
			stages.end(stages.running()[0], 0)
		}
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// The pauses between the tries of a step are bounded in all, and the tries by their number.
func TestTransientTimeIsUsedUp(t *testing.T) {
	for _, c := range []struct {
		allowed time.Duration
		tries   int
		waits   time.Duration
	}{{time.Second, 2, time.Second}, {2 * time.Second, 2, 2 * time.Second}, {3 * time.Second, 3, 3 * time.Second}, {time.Hour, 3, 4 * time.Second}} {
		t.Run(c.allowed.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stages := newTheatre()
				e := &Engine{
					Run: "r", Hosts: map[string]Host{"h": stage{stages, "h"}}, Script: func(string) ([]byte, error) { return nil, nil },
					Timeouts: inventory.Timeouts{Transient: c.allowed}, pause: func(int) time.Duration { return 2 * time.Second },
				}
				flaky := step("h", "flaky", "x")
				flaky.Retry = graph.Transient
				begun := time.Now()
				over := make(chan *Result)
				go func() {
					r, _ := e.Execute(t.Context(), graphOf(flaky))
					over <- r
				}()
				for {
					synctest.Wait()
					select {
					case r := <-over:
						if r.Steps[0].Tries != c.tries || time.Since(begun) != c.waits {
							t.Errorf("%d tries in %s", r.Steps[0].Tries, time.Since(begun))
						}
						return
					default:
					}
					if len(stages.running()) > 0 {
						stages.end(stages.running()[0], exitTransient)
					} else {
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		})
	}
}

// flapping is a host that comes back every time, and is lost again before it says anything.
type flapping struct{ away time.Duration }

func (flapping) ID() string                                { return "h" }
func (flapping) Run(context.Context, remote.Command) error { return remote.ErrLost }

func (f flapping) Reconnect(ctx context.Context) error {
	select {
	case <-time.After(f.away):
		return nil
	case <-ctx.Done():
		return errors.New("still away")
	}
}

// Losses with nothing heard in between count as one.
func TestLossesAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{Timeouts: inventory.Timeouts{Link: 10 * time.Minute, Reboot: 12 * time.Minute}, pause: func(int) time.Duration { return time.Minute }}
		p := e.withDeadline(new(notes), "h", nil)
		b := &batch{engine: e, host: flapping{4 * time.Minute}, name: "r-1", reader: reader{listener: p}, time: p}
		begun := time.Now()
		_, err := b.run(t.Context(), []byte("bundle"))
		if !errors.Is(err, &reason.Error{ID: reason.SSHLost}) || time.Since(begun) != 12*time.Minute {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}
