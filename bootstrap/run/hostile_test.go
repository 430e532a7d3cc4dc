package run

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
)

// liar is a host that says what it likes.
type liar struct {
	says       func(ctx context.Context, w io.Writer) error
	runs       int
	reconnects int
}

func (*liar) ID() string { return "h" }

func (l *liar) Reconnect(ctx context.Context) error { l.reconnects++; return ctx.Err() }

func (l *liar) Run(ctx context.Context, c remote.Command) error {
	l.runs++
	return l.says(ctx, c.Stdout)
}

// lied is what an engine makes of the steps a and b of a host that says this.
func lied(t *testing.T, l *liar, keep event.Sink) (*Result, error) {
	t.Helper()
	e := &Engine{
		Run: "r", Hosts: map[string]Host{"h": l}, Events: keep, Script: func(string) ([]byte, error) { return nil, nil },
		pause: func(int) time.Duration { return time.Second },
	}
	return e.Execute(t.Context(), graphOf(step("h", "a", "x"), step("h", "b", "x", ref("h", "a"))))
}

func says(text string) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error { _, _ = io.WriteString(w, text); return nil }
}

func TestHostsThatNeverEnd(t *testing.T) {
	drip := func(begin, piece string) func(context.Context, io.Writer) error {
		return func(ctx context.Context, w io.Writer) error {
			_, _ = io.WriteString(w, begin)
			for ctx.Err() == nil {
				_, _ = io.WriteString(w, piece)
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
				}
			}
			return context.Cause(ctx)
		}
	}
	for name, story := range map[string]struct {
		says func(context.Context, io.Writer) error
		step string // that it is stuck in
	}{
		"silent":                           {drip("", ""), ""},
		"a line without end":               {drip("L\ta\t", "x"), ""},
		"stuck in a step":                  {drip("B\ta\t0\n", ""), "a"},
		"a step that says much":            {drip("B\ta\t0\n", "L\ta\tstill here\n"), "a"},
		"begins one step again and again":  {drip("", "B\ta\t0\n"), "a"},
		"begins steps that nobody ordered": {drip("", "B\tother\t0\nD\tother\t0\t0\t\t\n"), ""},
		"stuck between steps":              {drip("B\ta\t0\nD\ta\t0\t5\t\t\n", ""), ""},
		"ends one step again and again":    {drip("B\ta\t0\n", "D\ta\t0\t5\t\t\n"), ""},
		"hangs up again and again": {func(_ context.Context, w io.Writer) error {
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, "L\ta\tx\n")
			return remote.ErrLost
		}, ""},
		"follows again and again": {func(ctx context.Context, w io.Writer) error {
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, "L\ta\tx\n")
			return context.Cause(ctx)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				_, err := lied(t, &liar{says: story.says}, event.Discard)
				var e *reason.Error
				if !errors.As(err, &e) || e.ID != reason.HostUnending || e.Host != "h" {
					t.Fatalf("%v", err)
				}
				if story.step != "" && !strings.Contains(e.Detail, "the step "+story.step) {
					t.Errorf("%v", e)
				}
				if took := time.Since(begun); took > 2*time.Hour { // by a clock that only this test has
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// A control plane that does not say who has the cluster, or says so and lets go of it, does not hold a run up for ever.
func TestControlPlanesThatNeverSayWhoHasTheLock(t *testing.T) {
	mute := func(ctx context.Context, _ io.Writer) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for name, story := range map[string]struct {
		says func(context.Context, io.Writer) error
		want reason.ID
	}{
		"mute":            {mute, reason.HostUnending},
		"lost every time": {func(context.Context, io.Writer) error { return remote.ErrLost }, reason.SSHLost},
		"lets go at once": {says("held 1\n"), reason.StepFailed},
		"mute after a cut": {func() func(context.Context, io.Writer) error {
			begun := false
			return func(ctx context.Context, w io.Writer) error {
				if begun {
					return mute(ctx, w)
				}
				begun = true
				_, _ = io.WriteString(w, "held 1\n")
				return remote.ErrLost
			}
		}(), reason.HostUnending},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := &event.Recorder{}
				e := &Engine{Run: "r", Hosts: map[string]Host{"h": &liar{says: story.says}}, Events: told, pause: func(int) time.Duration { return time.Second }}
				err := e.Locked(t.Context(), []string{"h"}, "up", func(ctx context.Context) error {
					<-ctx.Done()
					return &reason.Error{ID: reason.Cancelled, Err: ctx.Err()}
				})
				if all := reason.All(err); len(all) != 1 || all[0].ID != story.want || all[0].Host != "h" {
					t.Errorf("%v", err)
				}
				waits := 0
				for _, ev := range told.Events() {
					if ev.Kind == event.Wait {
						waits++
					}
				}
				if waits == 0 && story.want != reason.StepFailed {
					t.Error("it was not told what was waited for")
				}
			})
		})
	}
}

func TestWatchOfHostsThatAreMute(t *testing.T) {
	for name, says := range map[string]func(context.Context, io.Writer) error{
		"for ever": func(ctx context.Context, _ io.Writer) error {
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"and end":     says("\n"),
		"and hang up": func(context.Context, io.Writer) error { return remote.ErrLost },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Engine{Run: "r", Hosts: map[string]Host{"h": &liar{says: says}}, pause: func(int) time.Duration { return time.Second }}
				err := e.Watch(t.Context(), []string{"h"}, func() {})
				if all := reason.All(err); len(all) != 1 || all[0].Host != "h" {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// An honest host has all the time that its steps have, however often the link goes.
func TestPatienceWithAnHonestHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := []string{"B\ta\t0\n", "L\ta\tx\n", "D\ta\t0\t1\t\t\n", "B\tb\t0\n", "D\tb\t0\t1\t\t\n", "E\t0\n"}
		l := &liar{}
		l.says = func(_ context.Context, w io.Writer) error {
			time.Sleep(46 * time.Minute)
			_, _ = io.WriteString(w, told[0])
			if told = told[1:]; len(told) > 0 {
				return remote.ErrLost
			}
			return nil
		}
		if _, err := lied(t, l, event.Discard); err == nil || !errors.Is(err, &reason.Error{ID: reason.HostUnending}) {
			t.Errorf("92 minutes for a step that has one: %v", err)
		}
		told = []string{"B\ta\t0\n", "L\ta\tx\nD\ta\t0\t1\t\t\n", "B\tb\t0\n", "D\tb\t0\t1\t\t\n", "E\t0\n"}
		if _, err := lied(t, l, event.Discard); err != nil {
			t.Error(err)
		}
	})
}

func TestAttachToAHostThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := &liar{says: func(ctx context.Context, w io.Writer) error {
			for ctx.Err() == nil {
				n++
				fmt.Fprintf(w, "B\tstep-%d\t0\nL\tstep-%[1]d\twords\nD\tstep-%[1]d\t1\t0\tSTEP_FAILED\tx\n", n)
				time.Sleep(time.Minute)
			}
			return context.Cause(ctx)
		}}
		e := &Engine{Run: "r", Hosts: map[string]Host{"h": l}}
		err := e.Attach(t.Context(), "h", "other-1")
		if !errors.Is(err, &reason.Error{ID: reason.HostUnending}) {
			t.Errorf("%v", err)
		}
	})
}

// heapBeyond runs f and tells whether what is in use of the heap ever grew by so much meanwhile; look is for f to call.
func heapBeyond(size uint64, f func(look func())) bool {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, m.HeapAlloc
	f(func() {
		runtime.GC() // what nobody needs any more is as much as GOGC says
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	})
	return most > before+size
}

func TestEventsOfAGigabyte(t *testing.T) {
	block := strings.Repeat("x", 1<<20)
	output := "O\ta\tname\t" + base64.StdEncoding.EncodeToString([]byte(block)) + "\n"
	for name, c := range map[string]struct {
		begin, piece, end string
		want              reason.ID
	}{
		"a line":             {"B\ta\t0\nL\ta\t", block, "\nD\ta\t0\t1\t\t\nB\tb\t0\nD\tb\t0\t1\t\t\nE\t0\n", ""},
		"a detail":           {"B\ta\t0\nD\ta\t1\t1\tSTEP_FAILED\t", block, "\nE\t1\n", reason.StepFailed},
		"no kind of line":    {"B\ta\t0\n", block, "\nD\ta\t0\t1\t\t\nB\tb\t0\nD\tb\t0\t1\t\t\nE\t0\n", ""},
		"an output":          {"B\ta\t0\nO\ta\tname\t", block, "\n", reason.HostOutputTooLarge},
		"outputs":            {"B\ta\t0\n", output, "E\t0\n", reason.HostOutputTooLarge},
		"outputs of nothing": {"B\ta\t0\n", strings.Repeat("O\ta\tn\t\n", 1<<10), "E\t0\n", reason.HostOutputTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			const size = 1 << 30
			if heapBeyond(96<<20, func(look func()) {
				_, err = lied(t, &liar{says: func(ctx context.Context, w io.Writer) error {
					_, _ = io.WriteString(w, c.begin)
					for n := 0; n < size && ctx.Err() == nil; n += len(c.piece) {
						_, _ = io.WriteString(w, c.piece)
						if n>>23 != (n+len(c.piece))>>23 {
							look()
						}
					}
					_, _ = io.WriteString(w, c.end)
					return context.Cause(ctx)
				}}, event.Discard)
			}) {
				t.Error("the heap grew by more than 96 MiB")
			}
			switch {
			case c.want == "" && err != nil, c.want != "" && !errors.Is(err, &reason.Error{ID: c.want}):
				t.Errorf("%v, want %q", err, c.want)
			}
			var e *reason.Error
			if errors.As(err, &e) && (len(e.Detail) > 2*maxText || e.Host != "h") {
				t.Errorf("%d bytes of detail, host %q", len(e.Detail), e.Host)
			}
		})
	}
}

// endless has lines of each kind that there is, which a host may send for ever.
var endless = map[string]func(n int) string{
	"B": func(n int) string { return fmt.Sprintf("B\t%c\t0\n", 'a'+n%2) },
	"L": func(int) string { return "L\ta\twords\n" },
	"W": func(n int) string { return fmt.Sprintf("W\ta\tthe lock of %d\n", n) },
	"O": func(n int) string { return fmt.Sprintf("O\ta\tname-%d\t\n", n) },
	"!": func(n int) string { return fmt.Sprintf("!\ta\twarning %d\n", n) },
	"D": func(n int) string { return fmt.Sprintf("B\tb\t0\nD\tb\t75\t0\t\ttry %d\n", n) },
	"X": func(int) string { return "X\n" },
	"N": func(int) string { return "N\n" },
	"E": func(int) string { return "E\t0\n" },
	"":  func(n int) string { return fmt.Sprintf("no kind of line %d\n", n) },
}

// counter counts what a run told, as --output json writes it.
type counter struct{ bytes, waits int }

func (c *counter) Emit(e event.Event) {
	text, _ := json.Marshal(e)
	c.bytes += len(text)
	if e.Kind == event.Wait {
		c.waits++
	}
}

// A host that sends lines without an end, of whatever kind, is ended, and before that has told no more than it may: to a run
// of its own, and to one that only follows.
func TestLinesWithoutEnd(t *testing.T) {
	known := append(slices.Collect(maps.Keys(kinds)), slices.Collect(maps.Keys(marks))...)
	for _, kind := range append(known, "E", "") {
		for name, follow := range map[string]func(*Engine) error{
			"its own": func(e *Engine) error {
				_, err := e.Execute(t.Context(), graphOf(step("h", "a", "x"), step("h", "b", "x", ref("h", "a"))))
				return err
			},
			"another's": func(e *Engine) error { return e.Attach(t.Context(), "h", "other-1") },
		} {
			t.Run(fmt.Sprintf("%q of %s", kind, name), func(t *testing.T) {
				line := endless[kind]
				if line == nil {
					t.Fatal("there is a kind of line that this test does not know")
				}
				n := 0
				l := &liar{says: func(ctx context.Context, w io.Writer) error {
					_, _ = io.WriteString(w, "B\ta\t0\n")
					for ; ctx.Err() == nil && n < 1<<16; n++ {
						_, _ = io.WriteString(w, line(n))
					}
					_, _ = io.WriteString(w, "E\t0\n")
					return context.Cause(ctx)
				}}
				const left = 4 << 20
				heard, budget := &counter{}, &event.Budget{}
				budget.Spend("h", event.MaxHostBytes-left)
				err := follow(&Engine{
					Run: "r", Budget: budget, Hosts: map[string]Host{"h": l}, Events: heard, Script: func(string) ([]byte, error) { return nil, nil },
					pause: func(int) time.Duration { return 0 },
				})
				if _, mark := marks[kind]; !mark && !errors.Is(err, &reason.Error{ID: reason.HostOutputTooLarge}) {
					t.Errorf("after %d lines: %v", n, err)
				}
				if heard.bytes > left {
					t.Errorf("%d bytes are told", heard.bytes)
				}
			})
		}
	}
}

// What a host may tell is counted over all batches of a run, and over nobody else's.
func TestBudgetOfARun(t *testing.T) {
	budget := &event.Budget{}
	budget.Spend("h", event.MaxHostBytes-3*event.RecordOverhead)
	e := &Engine{Run: "r", Hosts: map[string]Host{}, Events: event.Discard, Budget: budget}
	for _, host := range []string{"h", "other"} {
		e.Hosts[host] = &liar{says: says("B\ta\t0\nL\ta\tx\nL\ta\ty\nL\ta\tz\nD\ta\t0\t1\t\t\nE\t0\n")}
	}
	if err := e.Attach(t.Context(), "h", "b-1"); !errors.Is(err, &reason.Error{ID: reason.HostOutputTooLarge}) {
		t.Errorf("%v", err)
	}
	if err := e.Attach(t.Context(), "other", "b-1"); err != nil {
		t.Errorf("another host: %v", err)
	}
}

// A wait that is told again and again is one, until something else is told.
func TestWaitsThatAreToldAgain(t *testing.T) {
	heard := &counter{}
	_, err := lied(t, &liar{says: says("B\ta\t0\n" + strings.Repeat("W\ta\tthe lock\n", 1000) + "L\ta\tx\nW\ta\tthe lock\nW\ta\tanother\n" +
		"D\ta\t0\t1\t\t\nB\tb\t0\nD\tb\t0\t1\t\t\nE\t0\n")}, heard)
	if err != nil || heard.waits != 3 {
		t.Errorf("%d waits, %v", heard.waits, err)
	}
}

// A control plane that says again and again that this run has the cluster is heard once.
func TestLockedThatIsToldAgain(t *testing.T) {
	n := 0
	r := &reply{held: func(int64) { n++ }}
	_, _ = io.WriteString(r, strings.Repeat("held 1\n", 1000))
	if n != 1 {
		t.Errorf("it was heard %d times", n)
	}
}

// A line that is too long is cut, and counted whole: following goes on behind it.
func TestReaderCutsLines(t *testing.T) {
	long := "L\ta\t" + strings.Repeat("x", 3*maxText) + "\n"
	for cut := range 4 {
		var n notes
		r := reader{listener: &n}
		first := r.connect()
		at := cut * len(long) / 3
		_, _ = first.Write([]byte("B\ta\t0\n" + long[:at]))
		second := r.connect()
		offset, _ := r.position()
		_, _ = second.Write([]byte(("B\ta\t0\n" + long + "D\ta\t0\t1\t\t\n")[offset:]))
		if len(n) != 3 || len(n[1]) > maxText+100 || !strings.HasSuffix(n[1], "x [cut]") {
			t.Fatalf("cut at %d: %d events, %d bytes", at, len(n), len(n[1]))
		}
		if offset, _ = r.position(); offset != int64(len("B\ta\t0\n")+len(long)+len("D\ta\t0\t1\t\t\n")) {
			t.Errorf("cut at %d: offset %d", at, offset)
		}
	}
}

// What a host claims about steps that it was not given, or that ended, changes nothing.
func TestLiesAboutSteps(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		want reason.ID
	}{
		"another's step":          {"B\tcluster/init\t0\nO\tcluster/init\ttoken\tZXZpbA==\nD\tcluster/init\t1\t1\tSTEP_FAILED\tx\nB\ta\t0\nD\ta\t0\t1\t\t\nB\tb\t0\nD\tb\t0\t1\t\t\nE\t0\n", ""},
		"ended twice":             {"B\ta\t0\nD\ta\t0\t1\t\t\nD\ta\t1\t1\tSTEP_FAILED\tx\nD\ta\t75\t1\tSTEP_FAILED\tx\nB\tb\t0\nD\tb\t0\t1\t\t\nD\ta\t1\t1\tx\ty\nE\t0\n", ""},
		"outputs of another":      {"B\ta\t0\nO\tb\ttoken\tZXZpbA==\nD\ta\t0\t1\t\t\nB\tb\t0\nD\tb\t0\t1\t\t\nO\tb\ttoken\tZXZpbA==\nE\t0\n", ""},
		"outputs after the end":   {"B\ta\t0\nD\ta\t0\t1\t\t\nO\ta\ttoken\tZXZpbA==\nB\tb\t0\nD\tb\t0\t1\t\t\nE\t0\n", ""},
		"a reason of its own":     {"B\ta\t0\nD\ta\t1\t1\t\x1b]0;x\x07OK\twhy\nE\t1\n", reason.StepFailed},
		"numbers that are none":   {"B\ta\t0\nD\ta\t99999999999999999999\t1\t\t\nD\ta\t0\t-\t\t\nD\ta\t3\t-9223372036854775808\tSTEP_FAILED\tx\nE\t1\n", reason.StepFailed},
		"ended, and nothing said": {"E\t0\n", reason.StepFailed},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := lied(t, &liar{says: says(c.says)}, event.Discard)
			switch {
			case c.want == "" && err != nil, c.want != "" && !errors.Is(err, &reason.Error{ID: c.want}):
				t.Errorf("%v, want %q", err, c.want)
			}
			for ref, outputs := range r.Outputs {
				if len(outputs) > 0 {
					t.Errorf("%s has the outputs %q", ref, outputs)
				}
			}
		})
	}
}

// A host that names batches without end is not followed for ever.
func TestBatchesWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &liar{}
		l.says = func(ctx context.Context, w io.Writer) error {
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = fmt.Fprintf(w, "ended b-%d\n", i)
				if i%100 == 0 {
					time.Sleep(time.Second)
				}
			}
			return ctx.Err()
		}
		e := &Engine{Run: "r", Hosts: map[string]Host{"h": l}, Events: event.Discard, pause: func(int) time.Duration { return time.Second }}
		err := e.Watch(t.Context(), []string{"h"}, func() {})
		var r *reason.Error
		if !errors.As(err, &r) || r.ID != reason.HostOutputTooLarge {
			t.Errorf("%v", err)
		}
	})
}

// A control plane that says again and again that the cluster was taken and let go of has that told once, when it comes to rest.
func TestLeftThatIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := &watcher{engine: &Engine{}, planes: []string{"h"}, locked: map[string]bool{}, left: func() { n++ }, unseen: 1, following: 1, over: make(chan struct{})}
		v := &view{watcher: w, host: &liar{}}
		for range 1000 {
			v.line("held")
			v.line("free")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n != 1 {
			t.Errorf("it was told %d times", n)
		}
	})
}
