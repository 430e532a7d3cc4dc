package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Bounds are what a host may take that is asked for something. They are far above what an honest one takes.
type Bounds struct {
	Bytes int64
	Time  time.Duration
}

// Output runs c and returns what it prints to its standard output, whole. A host that prints more than its bounds, or takes
// longer, is not listened to any more: the error has the reason HOST_OUTPUT_TOO_LARGE or HOST_UNENDING.
func (h *Host) Output(ctx context.Context, c Command, b Bounds) ([]byte, error) {
	ctx, end := b.watch(ctx, h.id, "running "+c.Name)
	defer end(nil)
	out := bounded{limit: b.Bytes, full: end, host: h.id, doing: "running " + c.Name}
	c.Stdout = &out
	err := out.explain(ctx, h.Run(ctx, c))
	if err == nil {
		err = context.Cause(ctx) // a command may end well when it is told to end
	}
	if err != nil {
		return nil, err
	}
	return out.buf.Bytes(), nil
}

// watch ends ctx when the time is over. The cause is the error to return.
func (b Bounds) watch(ctx context.Context, host, doing string) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(b.Time, func() {
		end(&reason.Error{ID: reason.HostUnending, Host: host, Doing: doing, Detail: fmt.Sprintf("it is not done after %s", b.Time)})
	})
	context.AfterFunc(ctx, func() { timer.Stop() })
	return ctx, end
}

// bounded is a buffer that does not grow beyond its limit: full hears of it once.
type bounded struct {
	buf   bytes.Buffer
	limit int64
	full  context.CancelCauseFunc
	host  string
	doing string
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(b.buf.Len()+len(p)) > b.limit {
		err := &reason.Error{ID: reason.HostOutputTooLarge, Host: b.host, Doing: b.doing, Detail: tooLong(b.limit, b.buf.Bytes(), p)}
		b.full(err)
		return 0, err
	}
	return b.buf.Write(p)
}

// tooLong says that there is no end to what a host says, and how that begins.
func tooLong(limit int64, said ...[]byte) string {
	begin := bytes.Join(said, nil)
	return fmt.Sprintf("it is longer than %d bytes, and begins: %s", limit, spoken(string(begin[:min(len(begin), saidMost)])))
}

// explain prefers the bound that was met to what the end of the command looks like.
func (b *bounded) explain(ctx context.Context, err error) error {
	if errors.Is(err, &reason.Error{ID: reason.SSHCommandRefused}) {
		return err // it does not end because something else runs there
	}
	met, ok := errors.AsType[*reason.Error](context.Cause(ctx))
	if ok && met.Doing == b.doing && (met.ID == reason.HostOutputTooLarge || met.ID == reason.HostUnending) {
		return met
	}
	return err
}

var errShut = errors.New("the command's run is over")

// gate passes what is written on to writers until one of them fails, and drops the rest: a command whose output nobody
// takes would hang. When it is shut, nobody writes to them any more.
type gate struct {
	mu   sync.Mutex
	to   []io.Writer
	err  error // of the first writer that failed
	over bool
}

func newGate(to ...io.Writer) *gate {
	g := &gate{}
	for _, w := range to {
		if w != nil {
			g.to = append(g.to, w)
		}
	}
	return g
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return 0, errShut
	}
	for _, w := range g.to {
		if g.err == nil {
			_, g.err = w.Write(p)
		}
	}
	return len(p), nil
}

// shut ends the gate and returns the error of the writer that failed, if one did.
func (g *gate) shut() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	return g.err
}

// tail keeps the end of what is written.
type tail struct {
	limit int
	mu    sync.Mutex
	buf   []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) >= t.limit {
		t.buf = append(t.buf[:0], p[len(p)-t.limit:]...)
		return len(p), nil
	}
	if over := len(t.buf) + len(p) - t.limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return len(p), nil
}

// String is the end of the text without a rune cut in halves.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.buf), "")
}
