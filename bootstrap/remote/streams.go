package remote

import (
	"errors"
	"io"
	"strings"
	"sync"
)

var errShut = errors.New("the command's run is over")

// gate passes what is written on to writers until it is shut, so that nobody writes to them after Run returned.
type gate struct {
	mu   sync.Mutex
	to   []io.Writer
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
		if _, err := w.Write(p); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
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
