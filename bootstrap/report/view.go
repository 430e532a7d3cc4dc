package report

import (
	"bytes"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/report/live"
)

// The rhythm in which a view is drawn.
const (
	tick = time.Second            // at least: times pass
	rest = 100 * time.Millisecond // between two frames
)

// View shows a run on a terminal: what has happened as lines that scroll, and below them the picture of what happens now,
// which changes in place. Whoever else prints writes to it, and says when a question is asked: the picture gives way.
type View struct {
	size func() (width, height int)
	now  func() time.Time
	wake chan struct{}
	over chan struct{}

	mu      sync.Mutex
	state   *live.State
	lines   *lines
	text    bytes.Buffer // lines that are not printed yet
	partial []byte       // the begin of a line
	begun   bool         // there is a picture
	asking  bool         // nothing is drawn until the question is answered
	closed  bool

	drawing sync.Mutex // is held while the terminal is written to; locked before mu
	screen  *live.Screen
	err     error // the first that writing met
}

// NewView shows a run on f, a terminal. detail is Normal, or Verbose for the output of the steps among the lines.
func NewView(f *os.File, detail Detail) *View {
	v := newView(live.NewScreen(f), detail)
	v.size = sizeOf(f)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGCONT)
	go v.follow(signals)
	return v
}

// sizeOf tells how big a terminal is now.
func sizeOf(f *os.File) func() (width, height int) {
	return func() (int, int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil || width < 1 || height < 1 {
			return 80, 24
		}
		return width, height
	}
}

func newView(screen *live.Screen, detail Detail) *View {
	v := &View{now: time.Now, wake: make(chan struct{}, 1), over: make(chan struct{}), state: live.New(), screen: screen}
	if detail < Verbose {
		detail = Quiet // the picture has the steps
	}
	v.lines = &lines{writer: &writer{w: &v.text}, detail: detail, colour: true, elapsed: true, picture: true, tails: map[event.Ref][]string{}}
	v.lines.width = func() int { return v.Look().Width }
	return v
}

// Look is that of the terminal, as it is now.
func (v *View) Look() Look {
	width, _ := v.size()
	return Look{Colour: v.lines.colour, Width: width}
}

// follow draws when something has happened, every second, and when the terminal has another size, until the view is closed.
func (v *View) follow(signals chan os.Signal) {
	defer signal.Stop(signals)
	every := time.NewTicker(tick)
	defer every.Stop()
	for {
		select {
		case <-v.wake:
		case <-every.C:
		case s := <-signals:
			if s == syscall.SIGCONT { // the shell has printed below the picture
				v.leave()
			}
		case <-v.over:
			return
		}
		v.draw()
		select {
		case <-time.After(rest):
		case <-v.over:
			return
		}
	}
}

// Emit shows e.
func (v *View) Emit(e event.Event) {
	e = e.Printed()
	if e.Kind == event.Result {
		v.settle(e)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state.Note(e)
	v.begun = v.begun || e.Kind == event.Begin
	v.lines.Emit(e)
	v.awake()
}

// settle makes the last picture one of the lines that stay, and prints how the run ended below it.
func (v *View) settle(e event.Event) {
	v.mu.Lock()
	v.state.Note(e)
	v.begun = v.begun && v.state.Shown()
	v.mu.Unlock()
	v.draw()
	v.leave()
	v.mu.Lock()
	v.begun = false
	v.lines.Emit(e)
	v.mu.Unlock()
	v.draw()
}

// awake has the picture drawn soon.
func (v *View) awake() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// Write prints text above the picture, to stay. The begin of a line waits for the rest of it, or for Ask.
func (v *View) Write(p []byte) (int, error) {
	v.mu.Lock()
	v.partial = append(v.partial, p...)
	end := bytes.LastIndexByte(v.partial, '\n') + 1
	v.text.Write(v.partial[:end])
	v.partial = append([]byte(nil), v.partial[end:]...)
	closed := v.closed
	v.awake()
	v.mu.Unlock()
	if closed {
		v.flush()
	}
	return len(p), nil
}

// Ask prints what was written, which ends with a question, and lets nothing else appear until Answered is called.
func (v *View) Ask() {
	v.mu.Lock()
	v.asking = true
	v.mu.Unlock()
	v.flush()
}

// Answered says that the question's line is over.
func (v *View) Answered() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asking = false
	v.awake()
}

// Stopping prints a line at once, and says in the picture, in a word, that the run comes to its end.
func (v *View) Stopping(word, line string) {
	v.mu.Lock()
	v.state.Close(word)
	if v.asking {
		line = "\n" + line
	}
	v.text.WriteString(line + "\n")
	v.mu.Unlock()
	v.draw()
}

// Leave lets the picture stay as it is and prints a line below it: the last one.
func (v *View) Leave(line string) {
	v.draw()
	v.leave()
	v.mu.Lock()
	v.begun, v.asking = false, false
	v.text.WriteString(line + "\n")
	v.mu.Unlock()
	v.draw()
}

// Close prints what is left, and returns the first error that writing met. What is written later is printed at once.
func (v *View) Close() error {
	v.mu.Lock()
	if !v.closed {
		close(v.over)
	}
	v.closed, v.begun, v.asking = true, false, false
	v.mu.Unlock()
	v.flush()
	v.drawing.Lock()
	defer v.drawing.Unlock()
	return v.err
}

// leave has what is drawn next begin below the picture.
func (v *View) leave() {
	v.drawing.Lock()
	defer v.drawing.Unlock()
	v.screen.Leave()
}

// draw brings the terminal up to date, unless a question is open.
func (v *View) draw() {
	v.drawing.Lock()
	defer v.drawing.Unlock()
	v.mu.Lock()
	if v.asking {
		v.mu.Unlock()
		return
	}
	width, height := v.size()
	var frame []string
	if v.begun {
		frame = v.state.Frame(width, height, v.now())
	}
	v.print(frame, width)
}

// flush prints all text, also the begin of a line, and takes the picture away.
func (v *View) flush() {
	v.drawing.Lock()
	defer v.drawing.Unlock()
	v.mu.Lock()
	v.text.Write(v.partial)
	v.partial = nil
	width, _ := v.size()
	v.print(nil, width)
}

// print writes the lines and the frame. Both locks are held; it lets go of mu, so that nobody waits for a slow terminal.
func (v *View) print(frame []string, width int) {
	text := v.text.String()
	v.text.Reset()
	v.mu.Unlock()
	if v.err == nil {
		v.err = v.screen.Draw(text, frame, width)
	}
}
