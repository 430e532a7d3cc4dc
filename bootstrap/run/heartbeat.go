package run

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"kgpu.dev/kgpu/bootstrap/remote"
)

// The rhythm of commands that last as long as kgpu does: it sends them a line every now and then, with the time here. Where
// nothing comes any more, because the link is cut, they end by themselves.
const (
	DefaultHeartbeat        = 5 * time.Second
	DefaultHeartbeatTimeout = 20 * time.Second
)

// runLongLived runs a script of package runner on a host, with these lines as its input, until over is closed, which ends the
// script's input with the line "over", or until the script ends by itself or the connection dies.
func (e *Engine) runLongLived(ctx context.Context, h Host, name string, script []byte, lines []string, over <-chan struct{}, stdout io.Writer) error {
	in, beats := io.Pipe()
	ended := make(chan struct{})
	defer close(ended)
	defer in.Close()
	go func() {
		defer beats.Close()
		for _, line := range lines {
			fmt.Fprintln(beats, oneLine(line)) // fails when the command has ended
		}
		tick := time.NewTicker(e.heartbeat())
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintln(beats, e.awake().Nanoseconds())
			case <-over:
				fmt.Fprintln(beats, "over")
				return
			case <-ended:
				return
			}
		}
	}()
	return h.Run(ctx, remote.Command{
		Name: name, Line: fmt.Sprintf("exec bash -s %s %g", e.dir(), e.heartbeatTimeout().Seconds()), Root: true,
		Stdin: io.MultiReader(bytes.NewReader(script), in), Stdout: stdout,
	})
}

// until is ctx, which also ends when over is closed.
func until(ctx context.Context, over <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-over:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// awake is the time since this machine began, with what it slept: other than Go's clock, this one goes on then.
func (e *Engine) awake() time.Duration {
	if e.clock != nil {
		return e.clock()
	}
	var t unix.Timespec
	if err := unix.ClockGettime(sleeplessClock, &t); err != nil {
		panic(err) // every system that this is built for has the clock
	}
	return time.Duration(t.Nano())
}

func (e *Engine) heartbeat() time.Duration { return cmp.Or(e.Heartbeat, DefaultHeartbeat) }

func (e *Engine) heartbeatTimeout() time.Duration {
	return cmp.Or(e.HeartbeatTimeout, DefaultHeartbeatTimeout)
}
