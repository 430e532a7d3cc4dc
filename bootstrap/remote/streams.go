package remote

import (
	"errors"
	"io"
	"strings"
	"sync"
)

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
