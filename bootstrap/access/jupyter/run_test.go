package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	s := newServer(t, func(k *fakeKernel, ask message) {
		var c struct {
			Code  string
			Stdin *bool `json:"allow_stdin"`
		}
		if err := json.Unmarshal(ask.Content, &c); err != nil || c.Code != "list()" || c.Stdin == nil || *c.Stdin || ask.Channel != "shell" || ask.Header.Version != "5.3" {
			t.Errorf("asked %+v with %s, %v", ask, ask.Content, err)
		}
		k.status(ask, "busy")
		k.print(message{Header: header{ID: "another's"}}, "not for us\n")
		k.print(ask, "one\n")
		k.reply(ask, "ok") // what was printed may come later
		_ = k.conn.Write(k.ctx, websocket.MessageBinary, []byte{0, 0, 0, 1})
		k.say(ask, "iopub", "comm_open", map[string]any{"data": "anything"})
		k.say(ask, "iopub", "execute_result", map[string]any{"data": map[string]any{"text/plain": "['/gpu:0']", "text/html": "<b>"}})
		k.print(ask, "two")
		k.status(ask, "idle")
	})
	s.deaf = 1
	if v, err := s.client().Version(context.Background()); err != nil || v != "2.14.2" {
		t.Errorf("version %q, %v", v, err)
	}
	got, err := s.client().Run(context.Background(), "list()")
	if err != nil || got != "one\n['/gpu:0']\ntwo" {
		t.Errorf("output %q, error %v", got, err)
	}
	if !s.called("DELETE /api/kernels/k%2F1") || s.called("POST /api/kernels/k%2F1/interrupt") {
		t.Errorf("calls %q", s.calls)
	}
}

func TestRunThatFails(t *testing.T) {
	endless := strings.Repeat("x", 1<<16)
	for _, c := range []struct {
		name   string
		behave func(*fakeKernel, message)
		output string // its beginning
		want   string // in the error
	}{
		{"an exception", func(k *fakeKernel, ask message) {
			k.print(ask, "so far")
			k.say(ask, "iopub", "error", map[string]any{"ename": "ImportError", "evalue": "no\nmodule\x1b[31m " + endless, "traceback": []string{endless}})
			k.say(ask, "shell", "execute_reply", map[string]any{"status": "error", "ename": "ImportError", "evalue": "no\nmodule\x1b[31m " + endless})
			k.status(ask, "idle")
		}, "so far", "ImportError: no module xxx"},
		{"a kernel that dies", func(k *fakeKernel, ask message) {
			k.print(ask, "so far")
			k.status(message{}, "restarting")
		}, "so far", "the kernel died while the code runs"},
		{"a connection that ends", func(k *fakeKernel, _ message) { _ = k.conn.CloseNow() }, "", "the kernel's websocket ended while the code runs"},
		{"too much in one message", func(k *fakeKernel, ask message) { k.print(ask, strings.Repeat(endless, 80)) }, "", "read limited"},
		{"too much in many", func(k *fakeKernel, ask message) {
			for range 32 {
				k.print(ask, endless)
			}
		}, endless, "prints more than a list of devices"},
		{"no message", func(k *fakeKernel, _ message) { _ = k.conn.Write(k.ctx, websocket.MessageText, []byte("\xff{")) }, "", "a message that is none"},
		{"a message without sense", func(k *fakeKernel, ask message) { k.raw(ask, "iopub", "status", `{"execution_state": {}}`) }, "", "a message status that is none"},
		{"code that was not run", func(k *fakeKernel, ask message) {
			k.reply(ask, "aborted")
			k.status(ask, "idle")
		}, "", "the kernel did not run the code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, c.behave)
			output, err := s.client().Run(context.Background(), "list()")
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 || strings.Contains(err.Error(), testToken) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if !strings.HasPrefix(output, c.output) || len(output) > maxOutput {
				t.Errorf("output of %d bytes", len(output))
			}
			if !s.called("DELETE /api/kernels/k%2F1") {
				t.Errorf("the kernel stays: %q", s.calls)
			}
		})
	}
}

// What is not UTF-8 is printed as a replacement, and nothing breaks.
func TestRunInvalidText(t *testing.T) {
	s := newServer(t, func(k *fakeKernel, ask message) {
		k.raw(ask, "iopub", "stream", "{\"name\":\"stdout\",\"text\":\"a\xffb \\ud800\"}")
		k.say(ask, "iopub", "stream", map[string]any{"text": []string{"of another type"}})
		k.reply(ask, "ok")
		k.status(ask, "idle")
	})
	got, err := s.client().Run(context.Background(), "list()")
	if err != nil || got != "a\uFFFDb \uFFFD" {
		t.Errorf("%q, %v", got, err)
	}
}

// A kernel that hangs is interrupted and deleted, and what it printed before is told.
func TestRunThatHangs(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := newServer(t, func(k *fakeKernel, ask message) {
		k.status(ask, "busy")
		k.print(ask, "before")
		k.print(message{Header: header{ID: "later"}}, "")
		cancel(errors.New("time is up")) // as the deadline does
	})
	output, err := s.client().Run(ctx, "list()")
	var hung *HungError
	if !errors.As(err, &hung) || !strings.Contains(err.Error(), "time is up") {
		t.Errorf("%v", err)
	}
	if output != "" && output != "before" {
		t.Errorf("output %q", output)
	}
	if !s.called("POST /api/kernels/k%2F1/interrupt") || !s.called("DELETE /api/kernels/k%2F1") {
		t.Errorf("calls %q", s.calls)
	}
}

func TestWrongToken(t *testing.T) {
	s := newServer(t, nil)
	_, err := s.as("wrong-token").Run(context.Background(), "list()")
	var status *StatusError
	if !errors.As(err, &status) || status.Status != http.StatusForbidden || !strings.Contains(err.Error(), "Forbidden") || strings.Contains(err.Error(), "wrong-token") {
		t.Errorf("%v", err)
	}
}

// What listens on the port may be anything.
func TestNoJupyter(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"a web page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "no Jupyter server"},
		{"other JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }, "no Jupyter server"},
		{"an error", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("\x1bno\xff ", 1000), http.StatusBadGateway)
		}, "HTTP status 502"},
		{"another place", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
		}, "HTTP status 302"},
		{"no end", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "no Jupyter server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := httptest.NewServer(c.handler)
			t.Cleanup(h.Close)
			s := &server{Server: h}
			_, err := s.client().Version(context.Background())
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%v", err)
			}
			if _, err := s.client().Run(context.Background(), ""); err == nil {
				t.Error("it ran something")
			}
		})
	}
}
