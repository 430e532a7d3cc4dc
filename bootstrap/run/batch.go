package run

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/text/duration"
	"kgpu.dev/kgpu/scripts/runner"
)

// oddEnds is how often a command may end early over a living connection before the engine gives up: a host that goes down
// ends its programs first, and its connections a moment later.
const oddEnds = 3

// batch is a chain of steps that a host runs by itself while the engine listens, over as many connections as it takes.
type batch struct {
	engine *Engine
	host   Host
	name   string
	stop   bool // it shall come to an end
	reader reader
	away   time.Duration // how long the host was, since something was heard of the batch
	time   *deadline
}

// run hands the bundle to the host and follows the batch to its end. Without a bundle it follows a batch that is there.
// An error means that the end was not heard: ctx ended, the host stayed away, or the batch could not be started.
func (b *batch) run(ctx context.Context, bundle []byte) (ending, error) {
	starting := bundle != nil
	heard, odd, lost := int64(0), 0, 0
	for {
		err := b.listen(ctx, starting, bundle)
		offset, end := b.reader.position()
		if offset > heard {
			heard, odd, lost, b.away = offset, 0, 0, 0
		}
		unheard := offset == 0 && bundle != nil
		switch {
		case given(err) != nil:
			return notYet, given(err)
		case end == ended, end == gone:
			return end, nil
		case ctx.Err() != nil:
			return notYet, context.Cause(ctx)
		case errors.Is(err, remote.ErrLost):
			lost++
			if err := b.reconnect(ctx, lost); err != nil {
				return notYet, err
			}
			starting = false
		case starting && unheard:
			failed := b.startError(err, end)
			if odd++; odd > oddEnds || err == nil || end == never || !mayStart(failed) {
				return notYet, failed
			}
			if err := b.engine.again(ctx, b.host, odd, failed); err != nil {
				return notYet, err
			}
		case unheard:
			starting = true // it never arrived; if it did after all, starting it again changes nothing
		case (end == never || missing(err)) && offset == 0: // nobody started it
			return never, nil
		case end == never, missing(err): // its directory is no longer there
			return gone, nil
		default:
			failed := b.engine.commandError(b.host.ID(), "following the batch "+b.name, err)
			if odd++; odd > oddEnds {
				return notYet, failed
			}
			if odd > 1 {
				if err := b.engine.again(ctx, b.host, odd-1, failed); err != nil {
					return notYet, err
				}
			}
			starting = false
		}
	}
}

// mayStart reports whether a batch that could not be started may be started a moment later: the host may be going down.
func mayStart(failed error) bool {
	return errors.Is(failed, &reason.Error{ID: reason.StepFailed}) || errors.Is(failed, &reason.Error{ID: reason.SSHCommandRefused})
}

// listen starts or follows the batch over the connection there is, until the remote command ends.
func (b *batch) listen(ctx context.Context, starting bool, bundle []byte) error {
	offset, _ := b.reader.position()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	b.reader.onRefusal(giveUp)
	defer b.time.listen(giveUp)()
	c := remote.Command{Root: true, Stdout: b.reader.connect()}
	defer b.reader.disconnect()
	runs := b.engine.dir() + "/run"
	if starting {
		c.Name = "batch"
		c.Line = receiveLine(b.engine.dir(), b.name)
		c.Stdin = bytes.NewReader(bundle)
	} else {
		c.Name = "follow"
		c.Line = fmt.Sprintf("exec bash %s/%s/follow.sh %s %d", runs, b.name, b.name, offset)
		if b.stop {
			c.Line = fmt.Sprintf("touch %s/%s/stop; ", runs, b.name) + c.Line
		}
	}
	err := b.host.Run(ctx, c)
	if met := given(context.Cause(ctx)); met != nil {
		met.Host = b.host.ID()
		return met
	}
	return err
}

// receiveLine runs receive.sh, whose stdin is the batch. It is one line without quotes of its own: not every login shell takes
// more in quotes, and sudo writes it to the log.
func receiveLine(dir, name string) string {
	return fmt.Sprintf(`exec bash -c "$(echo %s | base64 -d)" receive.sh %s %s`, base64.StdEncoding.EncodeToString(runner.Receive), dir, name)
}

// given is the error of a host that was given up on, if err is one: it says too much, or does not come to an end.
func given(err error) *reason.Error {
	for _, e := range reason.All(err) {
		if e.ID == reason.HostOutputTooLarge || e.ID == reason.HostUnending {
			return e
		}
	}
	return nil
}

// reconnect brings the lost host back, or says why it stayed away. When it is lost again and again without a word in
// between, all of it counts as one absence.
func (b *batch) reconnect(ctx context.Context, lost int) error {
	begun := time.Now()
	defer func() { b.away += time.Since(begun) }()
	if err := b.engine.back(ctx, b.host, lost, b.away); err != nil {
		return awayError(b.host.ID(), "the host did not come back; if it is alive, the unit kgpu-"+b.name+" goes on there: ", err)
	}
	return nil
}

// back brings a lost host back, which was away for so long before. When it is lost again and again, the pauses grow.
func (e *Engine) back(ctx context.Context, h Host, lost int, away time.Duration) error {
	t := e.timeouts()
	ctx, cancel := context.WithTimeout(ctx, max(t.Link, t.Reboot)-away)
	defer cancel()
	if lost > 1 {
		pause := e.before(lost - 1)
		e.emit(event.Event{Host: h.ID(), Kind: event.Wait,
			Text: fmt.Sprintf("the connection is lost again and again, the next try is in %s", duration.Short(pause))})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return h.Reconnect(ctx)
}

// again waits before what failed on a host is tried once more, and says so.
func (e *Engine) again(ctx context.Context, h Host, try int, failed error) error {
	pause := e.before(try)
	begun := time.Now()
	e.emit(event.Event{Host: h.ID(), Kind: event.Wait, Reason: string(reason.All(failed)[0].ID),
		Text: fmt.Sprintf("%s; the next try is in %s", oneLine(failed.Error()), duration.Short(pause))})
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		e.emit(event.Event{Host: h.ID(), Kind: event.Wait, Text: "trying again", Millis: max(1, time.Since(begun).Milliseconds())})
		return nil
	}
}
