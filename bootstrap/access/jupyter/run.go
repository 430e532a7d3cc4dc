package jupyter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// ExecutionError is an exception that the code raised.
type ExecutionError struct{ Name, Value string }

func (e *ExecutionError) Error() string { return e.Name + ": " + e.Value }

// HungError says that a kernel did not answer before the context ended. It was interrupted and deleted.
type HungError struct {
	Doing string
	Cause error // the context's
}

func (e *HungError) Error() string {
	return fmt.Sprintf("the kernel did not answer while %s: %v", e.Doing, e.Cause)
}

// Unwrap returns the context's cause.
func (e *HungError) Unwrap() error { return e.Cause }

// Limits of what a server may say: lists of devices are some kilobytes.
const (
	maxMessage = 4 << 20
	maxOutput  = 1 << 20
)

// Run starts a kernel, runs the code in it, and deletes it. It returns what the code printed, also when there is an error:
// an *ExecutionError, a *HungError, a *StatusError, or that of the connection.
func (c *Client) Run(ctx context.Context, code string) (output string, err error) {
	id, err := c.startKernel(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return "", &HungError{"starting", context.Cause(ctx)}
		}
		return "", err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
		defer cancel()
		if ctx.Err() != nil {
			_ = c.call(end, http.MethodPost, kernelPath(id)+"/interrupt", c.header(), nil) // what counts is that it goes
		}
		if gone := c.call(end, http.MethodDelete, kernelPath(id), c.header(), nil); gone != nil {
			err = errors.Join(err, fmt.Errorf("deleting the kernel: %w", gone))
		}
	}()
	k, err := c.connect(ctx, id)
	if err != nil {
		return "", err
	}
	defer k.close()
	if err := k.awake(ctx); err != nil {
		return "", err
	}
	return k.execute(ctx, code)
}

// kernel is the websocket of one.
type kernel struct {
	conn     *websocket.Conn
	session  string
	messages chan message // closed when the connection is
	err      error        // why it was closed
	stop     context.CancelFunc
}

func (c *Client) connect(ctx context.Context, id string) (*kernel, error) {
	k := &kernel{session: rand.Text(), messages: make(chan message)}
	conn, _, err := websocket.Dial(ctx, "ws://"+c.host+kernelPath(id)+"/channels?session_id="+k.session, &websocket.DialOptions{
		HTTPClient: c.http, HTTPHeader: c.header(),
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, &HungError{"its websocket opens", context.Cause(ctx)}
		}
		return nil, err
	}
	conn.SetReadLimit(maxMessage)
	k.conn = conn
	reading, stop := context.WithCancel(ctx)
	k.stop = stop
	go k.read(reading)
	return k, nil
}

func (k *kernel) close() {
	k.stop()
	_ = k.conn.CloseNow()
	for range k.messages { // until read has ended
	}
}

// read passes on what is a message; a binary one belongs to widgets, which nobody asked for.
func (k *kernel) read(ctx context.Context) {
	defer close(k.messages)
	for {
		kind, data, err := k.conn.Read(ctx)
		if err != nil {
			k.err = err
			return
		}
		var m message
		if kind != websocket.MessageText {
			continue
		}
		if err := json.Unmarshal(data, &m); err != nil {
			k.err = fmt.Errorf("a message that is none: %w", err)
			return
		}
		select {
		case k.messages <- m:
		case <-ctx.Done():
			k.err = ctx.Err()
			return
		}
	}
}

// next waits for a message. A kernel that died is an error.
func (k *kernel) next(ctx context.Context, doing string, tick <-chan time.Time) (m message, c content, ticked bool, err error) {
	select {
	case <-ctx.Done():
		return m, c, false, &HungError{doing, context.Cause(ctx)}
	case <-tick:
		return m, c, true, nil
	case got, open := <-k.messages:
		switch {
		case !open && ctx.Err() != nil:
			return m, c, false, &HungError{doing, context.Cause(ctx)}
		case !open:
			return m, c, false, fmt.Errorf("the kernel's websocket ended while %s: %w", doing, k.err)
		}
		m = got
	}
	if c, err = m.content(); err != nil {
		return m, c, false, fmt.Errorf("a message %s that is none: %w", shorten(m.Header.Type), err)
	}
	if m.Header.Type == "status" && (c.State == "dead" || strings.HasSuffix(c.State, "restarting")) {
		return m, c, false, fmt.Errorf("the kernel died while %s", doing)
	}
	return m, c, false, nil
}

func (k *kernel) send(ctx context.Context, m message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return k.conn.Write(ctx, websocket.MessageText, data)
}

// awake returns when the kernel answers and what it prints comes through: output of what runs before that is lost.
// Source: jupyter_client, "Kernel info" and the nudge of jupyter_server's channels.
func (k *kernel) awake(ctx context.Context) error {
	const doing = "it starts"
	again := time.NewTicker(time.Second)
	defer again.Stop()
	asked := map[string]bool{}
	ask := func() error {
		m, err := request(k.session, "kernel_info_request", struct{}{})
		if err != nil {
			return err
		}
		asked[m.Header.ID] = true
		return k.send(ctx, m)
	}
	if err := ask(); err != nil {
		return err
	}
	answers, prints := false, false
	for !answers || !prints {
		m, _, ticked, err := k.next(ctx, doing, again.C)
		switch {
		case err != nil:
			return err
		case ticked:
			if err := ask(); err != nil {
				return err
			}
		case !asked[m.Parent.ID]:
		case m.Header.Type == "kernel_info_reply":
			answers = true
		case m.Channel == "iopub":
			prints = true
		}
	}
	return nil
}

// execute is over when the kernel has replied and is idle again: output may come after the reply.
func (k *kernel) execute(ctx context.Context, code string) (string, error) {
	ask, err := request(k.session, "execute_request", map[string]any{
		"code": code, "silent": false, "store_history": false, "user_expressions": struct{}{}, "allow_stdin": false, "stop_on_error": true,
	})
	if err != nil {
		return "", err
	}
	if err := k.send(ctx, ask); err != nil {
		return "", err
	}
	var out strings.Builder
	var raised error
	printed := func() string { return strings.ToValidUTF8(out.String()[:min(out.Len(), maxOutput)], "\uFFFD") }
	replied, idle := false, false
	for !replied || !idle {
		m, c, _, err := k.next(ctx, "the code runs", nil)
		if err != nil {
			return printed(), err
		}
		if m.Parent.ID != ask.Header.ID {
			continue
		}
		out.WriteString(c.text(m.Header.Type))
		if out.Len() > maxOutput {
			return printed(), errors.New("the code prints more than a list of devices")
		}
		switch {
		case m.Header.Type == "error", m.Header.Type == "execute_reply" && c.Status == "error":
			raised = &ExecutionError{shorten(c.Name), shorten(c.Value)}
		case m.Header.Type == "status" && c.State == "idle":
			idle = true
		}
		if m.Header.Type == "execute_reply" {
			replied = true
			if c.Status == "aborted" || c.Status == "abort" {
				raised = errors.New("the kernel did not run the code")
			}
		}
	}
	return printed(), raised
}
