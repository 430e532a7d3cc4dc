package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report"
)

// patience is how long a terminal may take for the last line.
const patience = time.Second

// Interruptible is a context that ends with the first Ctrl-C, or SIGTERM, or when the terminal goes away, unless that is
// ignored (nohup): the story stops and says how to go on. With the second the program ends at once. What hosts have begun goes
// on there either way, in its units. The cause of its end has the reason CANCELLED, wherever the story was.
func Interruptible() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		first := <-signals
		tell((*interruption).stopping)
		cancel(&reason.Error{ID: reason.Cancelled, Detail: first.String() + " signal received"})
		second := <-signals
		for second == syscall.SIGHUP { // the kernel and the shell may both say that the terminal is gone
			second = <-signals
		}
		tell((*interruption).leave)
		os.Exit(128 + int(second.(syscall.Signal)))
	}()
	return ctx
}

// told is who hears of signals: the story that is told; nil: none is.
var told atomic.Pointer[interruption]

// tell waits only so long: a terminal may take nothing.
func tell(what func(*interruption)) {
	i := told.Load()
	if i == nil {
		return
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		what(i)
	}()
	select {
	case <-said:
	case <-time.After(patience):
	}
}

// interruption tells a person what becomes of the story that is interrupted.
type interruption struct {
	view    *report.View // nil: there is none, and lines go to errors
	errs    io.Writer
	watches bool // somebody else's run

	mu     sync.Mutex
	atWork map[event.Ref]bool
}

// note knows which steps are at work on hosts.
func (i *interruption) note(e event.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch at := (e.Ref()); e.Kind {
	case event.StepStart:
		i.atWork[at] = true
	case event.StepDone, event.Error:
		delete(i.atWork, at)
	}
}

func (i *interruption) stopping() {
	word, what := "stopping", "nothing more is begun. Ctrl-C again leaves at once"
	if i.watches {
		word, what = "leaving", "the run that was watched goes on"
	}
	line := word + ": " + what
	if i.view != nil {
		i.view.Stopping(word, line)
		return
	}
	fmt.Fprintln(report.On(i.errs), line)
}

func (i *interruption) leave() {
	line := "left"
	i.mu.Lock()
	if len(i.atWork) > 0 {
		line = "left: the steps at work go on on their hosts; kgpu attach shows them"
	}
	i.mu.Unlock()
	if i.view != nil {
		i.view.Leave(line)
		return
	}
	fmt.Fprintln(report.On(i.errs), line)
}
