package remote_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/run"
	"kgpu.dev/kgpu/inventory"
)

// stepTakes is how long a step of a unit takes; it says a line each second.
const stepTakes = 40

// unit is a machine that runs a batch by itself, as the runner's scripts do, and tells its events to who follows.
type unit struct {
	mu      sync.Mutex
	more    *sync.Cond
	started bool
	events  []byte
	ended   bool
	wg      sync.WaitGroup
}

func newUnit() *unit {
	u := &unit{}
	u.more = sync.NewCond(&u.mu)
	return u
}

func (u *unit) exec(e *sshtest.Exec) int {
	offset := 0
	if strings.Contains(e.Line, "receive.sh") {
		u.start(e.Stdin)
	} else {
		words := strings.Fields(strings.Trim(e.Line, "'"))
		offset, _ = strconv.Atoi(words[len(words)-1])
	}
	u.wg.Go(func() { // a follower that is gone is waked
		<-e.Gone
		u.more.L.Lock()
		defer u.more.L.Unlock()
		u.more.Broadcast()
	})
	for {
		u.mu.Lock()
		for offset == len(u.events) && !u.ended && !gone(e) {
			u.more.Wait()
		}
		news, ended := bytes.Clone(u.events[offset:]), u.ended
		u.mu.Unlock()
		if _, err := e.Stdout.Write(news); err != nil || gone(e) {
			return sshtest.Vanish
		}
		if offset += len(news); ended {
			return 0
		}
	}
}

func gone(e *sshtest.Exec) bool {
	select {
	case <-e.Gone:
		return true
	default:
		return false
	}
}

// start runs the steps of a bundle, once.
func (u *unit) start(bundle io.Reader) {
	zip, err := gzip.NewReader(bundle)
	if err != nil {
		return // the connection was lost
	}
	var steps []string
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if err != nil {
			break
		}
		if path.Base(h.Name) == "id" {
			id, _ := io.ReadAll(archive)
			steps = append(steps, strings.TrimSpace(string(id)))
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.started || len(steps) == 0 {
		return
	}
	u.started = true
	u.wg.Go(func() {
		for _, id := range steps {
			u.tell("B\t%s\t0\n", id)
			for i := range stepTakes {
				time.Sleep(time.Second)
				u.tell("L\t%s\tline %d\n", id, i)
			}
			u.tell("D\t%s\t0\t%d\t\t\n", id, stepTakes*1000)
		}
		u.mu.Lock()
		u.ended = true
		u.mu.Unlock()
		u.tell("E\t0\n")
	})
}

func (u *unit) tell(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.events = fmt.Appendf(u.events, format, args...)
	u.more.Broadcast()
}

// world is two hosts that work, one of them behind a bastion, and what a run over them tells.
type world struct {
	remote.TestNet
	event.Recorder
	engine  *run.Engine
	bastion *sshtest.Server
	idle    lazy // the first connection to the bastion forwards nothing
	units   map[string]*unit
}

func (w *world) forward(network, address string) (net.Conn, error) {
	first := w.bastion.Accepted() < 2
	for first && w.idle.is() && w.bastion.Accepted() < 2 {
		time.Sleep(time.Second)
	}
	conn, err := w.Dial(network, address)
	if err != nil || !first {
		return conn, err
	}
	return &stalled{conn, &w.idle}, nil
}

const (
	bastionAt = "10.0.0.2:22"
	innerAt   = "10.0.0.4:22"
	outerAt   = "10.0.0.5:22"
)

func newWorld(t *testing.T, timeouts inventory.Timeouts) *world {
	w := &world{TestNet: remote.NewTestNet(), units: map[string]*unit{"inner": newUnit(), "outer": newUnit()}}
	t.Cleanup(func() { // after the connections have ended
		for _, u := range w.units {
			u.wg.Wait()
		}
	})
	w.bastion = sshtest.New(sshtest.Config{Dial: w.forward})
	d := w.Dialer(t, remote.Options{LinkTimeout: timeouts.Link, RebootTimeout: timeouts.Reboot}, w)
	way := w.Host(t, bastionAt, w.bastion)
	inner := sshtest.Behind(w.Host(t, innerAt, sshtest.New(sshtest.Config{Exec: w.units["inner"].exec})), way)
	outer := w.Host(t, outerAt, sshtest.New(sshtest.Config{Exec: w.units["outer"].exec}))
	inner.Name, outer.Name = "inner", "outer"
	w.engine = &run.Engine{
		Run: "r", Hosts: map[string]run.Host{}, Events: w, Timeouts: timeouts,
		Script: func(string) ([]byte, error) { return nil, nil },
	}
	for _, h := range []inventory.Host{inner, outer} {
		host, err := d.Dial(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		w.engine.Hosts[h.Name] = host
	}
	return w
}

// play runs two steps on each host, the second of outer after the first of inner, and does something 10 s after the start.
func (w *world) play(t *testing.T, something func()) (*run.Result, error) {
	time.AfterFunc(10*time.Second, something)
	g := &graph.Graph{}
	for _, host := range []string{"inner", "outer"} {
		for _, id := range []string{"one", "two"} {
			g.Steps = append(g.Steps, &graph.Step{Ref: graph.Ref{Host: host, ID: id}, Script: "x", Timeout: time.Hour})
		}
	}
	return w.engine.Execute(t.Context(), g)
}

// heard wants every line of a host once and in order, and returns when it heard them.
func (w *world) heard(t *testing.T, host string) (at []time.Time) {
	t.Helper()
	var got, want []string
	for _, e := range w.Events() {
		if e.Kind == event.Log && e.Host == host {
			got, at = append(got, e.Step+" "+e.Text), append(at, e.Time)
		}
	}
	for _, id := range []string{"one", "two"} {
		for i := range stepTakes {
			want = append(want, fmt.Sprintf("%s line %d", id, i))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("of %s was heard %q", host, got)
	}
	return at
}

// waits are the events of waiting of a host.
func (w *world) waits(host string) (out []event.Event) {
	for _, e := range w.Events() {
		if e.Kind == event.Wait && e.Host == host {
			out = append(out, e)
		}
	}
	return out
}

// A cut, and a bastion that acknowledges but forwards nothing any more: noticed, told again and again with a countdown,
// connected again, every line heard once, the other host undisturbed.
func TestRunOverABadLink(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(*world)
		dials   int           // of the bastion
		lasts   time.Duration // how long the host is away
	}{
		"cut for 3 s":                               {func(w *world) { w.Cut(innerAt, 3*time.Second) }, 1, 0},
		"cut for 60 s":                              {func(w *world) { w.Cut(innerAt, time.Minute) }, 0, time.Minute},
		"cut for longer than the run":               {func(w *world) { w.Cut(innerAt, 5*time.Minute) }, 0, 5 * time.Minute},
		"the bastion is cut for 60 s":               {func(w *world) { w.Cut(bastionAt, time.Minute) }, 0, time.Minute},
		"the bastion's process hangs":               {func(w *world) { w.Freeze(bastionAt) }, 2, 17 * time.Second},
		"the bastion answers, and forwards no more": {func(w *world) { w.idle.set() }, 2, 17 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, inventory.Timeouts{})
				var cut time.Time
				if _, err := w.play(t, func() { cut = time.Now(); c.disturb(w) }); err != nil {
					t.Fatal(err)
				}
				begun := w.heard(t, "outer")
				if took := begun[len(begun)-1].Sub(begun[0]); took > (2*stepTakes)*time.Second {
					t.Errorf("the other host took %s", took)
				}
				w.heard(t, "inner")
				if n := w.bastion.Accepted(); c.dials > 0 && n != c.dials {
					t.Errorf("%d connections to the bastion, want %d", n, c.dials)
				}
				told := w.waits("inner")
				if c.lasts == 0 {
					if len(told) > 0 {
						t.Errorf("told %v", told)
					}
					return
				}
				checkWaits(t, told, cut, c.lasts)
			})
		})
	}
}

func checkWaits(t *testing.T, told []event.Event, cut time.Time, lasts time.Duration) {
	t.Helper()
	if len(told) < 2 {
		t.Fatalf("told %v", told)
	}
	if noticed := told[0].Time.Sub(cut); noticed >= 20*time.Second {
		t.Errorf("noticed after %s", noticed)
	}
	for i, e := range told[:len(told)-1] {
		if !strings.HasPrefix(e.Text, "connection lost ") || !strings.Contains(e.Text, ", trying again") || !strings.Contains(e.Text, "; giving up in ") || e.Millis != 0 {
			t.Errorf("told %q", e.Text)
		}
		if i > 0 && e.Time.Sub(told[i-1].Time) > 11*time.Second {
			t.Errorf("%q was told only %s after %q", e.Text, e.Time.Sub(told[i-1].Time), told[i-1].Text)
		}
	}
	back := told[len(told)-1]
	if away := time.Duration(back.Millis) * time.Millisecond; back.Text != "the connection is back" || away < lasts-5*time.Second || away > lasts+40*time.Second {
		t.Errorf("the end was told as %q after %s", back.Text, away)
	}
}

// lazy is a switch.
type lazy struct {
	mu sync.Mutex
	on bool
}

func (l *lazy) set() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = true
}

func (l *lazy) is() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.on
}

// stalled is a forwarded connection that swallows everything once its bastion does.
type stalled struct {
	net.Conn
	*lazy
}

func (s *stalled) Read(p []byte) (int, error) {
	for {
		n, err := s.Conn.Read(p)
		if err != nil || !s.is() {
			return n, err
		}
	}
}

func (s *stalled) Write(p []byte) (int, error) {
	if s.is() {
		return len(p), nil
	}
	return s.Conn.Write(p)
}

// A host that never comes back: the other one ends its work, and the time that was allowed is not exceeded. A machine that
// refuses connections is given the time of a reboot.
func TestRunWithoutAHost(t *testing.T) {
	timeouts := inventory.Timeouts{Link: time.Minute, Reboot: 3 * time.Minute}
	for name, c := range map[string]struct {
		host, other string
		disturb     func(*world)
		limit       time.Duration
		why         string
	}{
		"silent":                 {"outer", "inner", func(w *world) { w.Cut(outerAt, time.Hour) }, timeouts.Link, "no answer"},
		"refused":                {"outer", "inner", func(w *world) { w.Vanish(outerAt) }, timeouts.Reboot, "connection refused"},
		"silent behind bastion":  {"inner", "outer", func(w *world) { w.Cut(innerAt, time.Hour) }, timeouts.Link, "no answer"},
		"refused behind bastion": {"inner", "outer", func(w *world) { w.Vanish(innerAt) }, timeouts.Reboot, "connection refused"},
		"the bastion is silent":  {"inner", "outer", func(w *world) { w.Cut(bastionAt, time.Hour) }, timeouts.Link, "no answer"},
		// Whether the host hung up, or the bastion that it is behind, cannot always be told.
		"the bastion refuses": {"inner", "outer", func(w *world) { w.Vanish(bastionAt) }, 0, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, timeouts)
				result, err := w.play(t, func() { c.disturb(w) })
				var lost *reason.Error
				if !errors.As(err, &lost) || lost.ID != reason.SSHLost || lost.Host != c.host || reason.ExitStatus(err) != 24 || !strings.Contains(lost.Error(), c.why) {
					t.Fatalf("%v", err)
				}
				w.heard(t, c.other)
				for _, s := range result.Steps {
					want := run.Done
					switch s.Ref {
					case graph.Ref{Host: c.host, ID: "one"}:
						want = run.Failed
					case graph.Ref{Host: c.host, ID: "two"}:
						want = run.Skipped
					}
					if s.Outcome != want {
						t.Errorf("%s: %s, want %s", s.Ref, s.Outcome, want)
					}
				}
				told := w.waits(c.host)
				if len(told) < 5 {
					t.Fatalf("told %v", told)
				}
				last := told[len(told)-1]
				waited := last.Time.Sub(told[0].Time)
				within := func(limit time.Duration) bool { return waited <= limit && waited >= limit-11*time.Second }
				if !within(c.limit) && (c.limit != 0 || !within(timeouts.Link) && !within(timeouts.Reboot)) {
					t.Errorf("waited %s, the limit is %s", waited, c.limit)
				}
				if !strings.Contains(last.Text, c.why) {
					t.Errorf("the last word is %q", last.Text)
				}
			})
		})
	}
}
