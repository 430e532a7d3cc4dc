package jupyter

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// server is a Jupyter server with one kernel, as the protocol has it. behave says what the kernel does with code.
type server struct {
	*httptest.Server
	behave func(k *fakeKernel, ask message)

	mu    sync.Mutex
	calls []string // method and path, without the websocket
	deaf  int      // as many requests for its information get a reply and nothing on iopub, like a kernel nobody hears yet
}

const testToken = "s3cret-token"

func newServer(t *testing.T, behave func(*fakeKernel, message)) *server {
	t.Helper()
	s := &server{behave: behave}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token goes to a server that nobody knows yet")
		}
		_, _ = w.Write([]byte(`{"version": "2.14.2"}`))
	})
	mux.HandleFunc("POST /api/kernels", s.with(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id": "k/1", "name": "python3", "execution_state": "starting"}`))
	}))
	mux.HandleFunc("POST /api/kernels/{id}/interrupt", s.with(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	mux.HandleFunc("DELETE /api/kernels/{id}", s.with(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	mux.HandleFunc("GET /api/kernels/{id}/channels", s.with(s.channels))
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// with lets in who has the token.
func (s *server) with(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "token "+testToken {
			http.Error(w, `{"message": "Forbidden"}`, http.StatusForbidden)
			return
		}
		s.mu.Lock()
		s.calls = append(s.calls, r.Method+" "+r.URL.EscapedPath())
		s.mu.Unlock()
		next(w, r)
	}
}

func (s *server) called(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.calls, call)
}

func (s *server) client() *Client { return s.as(testToken) }

func (s *server) as(token string) *Client {
	return New(strings.TrimPrefix(s.URL, "http://"), token, (&net.Dialer{}).DialContext)
}

// fakeKernel is the server's end of a websocket.
type fakeKernel struct {
	conn *websocket.Conn
	ctx  context.Context
}

func (s *server) channels(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	k := &fakeKernel{conn, r.Context()}
	k.status(message{}, "starting") // not of this session
	for {
		_, data, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		var ask message
		if err := json.Unmarshal(data, &ask); err != nil {
			return
		}
		switch ask.Header.Type {
		case "kernel_info_request":
			if s.deaf == 0 {
				k.status(ask, "busy")
			} else {
				s.deaf--
			}
			k.say(ask, "shell", "kernel_info_reply", map[string]any{"status": "ok", "protocol_version": "5.3"})
		case "execute_request":
			s.behave(k, ask)
		}
	}
}

// say sends a message to whoever asked; the client may be gone.
func (k *fakeKernel) say(ask message, channel, kind string, content any) {
	data, _ := json.Marshal(content)
	k.raw(ask, channel, kind, string(data))
}

func (k *fakeKernel) raw(ask message, channel, kind, content string) {
	parent, _ := json.Marshal(ask.Header)
	text := `{"channel":"` + channel + `","header":{"msg_id":"x","msg_type":"` + kind + `"},"parent_header":` + string(parent) + `,"metadata":{},"content":` + content + `,"buffers":[]}`
	_ = k.conn.Write(k.ctx, websocket.MessageText, []byte(text))
}

func (k *fakeKernel) status(ask message, state string) {
	k.say(ask, "iopub", "status", map[string]any{"execution_state": state})
}

func (k *fakeKernel) print(ask message, text string) {
	k.say(ask, "iopub", "stream", map[string]any{"name": "stdout", "text": text})
}

func (k *fakeKernel) reply(ask message, status string) {
	k.say(ask, "shell", "execute_reply", map[string]any{"status": status, "execution_count": 1})
}
