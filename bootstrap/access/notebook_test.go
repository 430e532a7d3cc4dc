package access

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access/jupyter"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// The notebook may open a little later; another server is none, and hears no token.
func TestNotebookOpens(t *testing.T) {
	notebook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token is told before it is known who listens")
		}
		_, _ = w.Write([]byte(`{"version": "7.0.0"}`))
	}))
	t.Cleanup(notebook.Close)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	behind := func(servers ...*httptest.Server) *notebookServer {
		var tries atomic.Int32
		return &notebookServer{client: jupyter.New("10.96.0.8:8888", "token", func(ctx context.Context, network, _ string) (net.Conn, error) {
			n := int(tries.Add(1))
			if n == 1 {
				return nil, errors.New("connection refused")
			}
			return (&net.Dialer{}).DialContext(ctx, network, servers[min(n-2, len(servers)-1)].Listener.Addr().String())
		})}
	}
	if err := behind(other, notebook).opens(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := behind(notebook).opens(ctx); err == nil {
		t.Error("it opened at once")
	}
}

// What a host tells becomes an address and a port, and nothing else.
func TestAnswersOfNotebooks(t *testing.T) {
	for text, want := range map[string]string{
		"10.96.0.8:8888": "10.96.0.8:8888", "fd00::8:8888": "[fd00::8]:8888", "10.96.0.8:0": "", "None:8888": "", ":8888": "", "0.0.0.0:8888": "", "10.96.0.8": "",
		"evil.example.com:80": "", "10.96.0.8:80@127.0.0.1:9999": "", "10.96.0.8:80/x": "", "": "",
	} {
		if got, err := serviceAddress(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]int{"": 0, "30061": 30061, "80@127.0.0.1:9999": -1, "0": -1, "-1": -1, "65536": -1, "<no value>": -1} {
		if got, err := nodePort(text); err == nil && int(got) != want || (err != nil) != (want < 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]bool{"": false, "my own": true, "a\nb": false, "a\x1b[2J": false, "é": false, strings.Repeat("a", maxToken+1): false} {
		if got := isToken(text); got != want {
			t.Errorf("%.40q may be a token: %t", text, got)
		}
	}
}

// Wherever the notebook runs, the control plane leads there, as kgpu notebook says; what fails in it is told of its own host.
func TestReachNotebook(t *testing.T) {
	notebook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(`{"version": "7.0.0"}`)) }))
	t.Cleanup(notebook.Close)
	inv := &inventory.Inventory{}
	servers := map[string]*sshtest.Server{}
	for i, name := range []string{"cp1", "w1"} {
		servers[name] = sshtest.Listen(t, sshtest.Config{Dial: func(network, address string) (net.Conn, error) {
			if address != "10.96.0.8:8888" || name != "cp1" {
				t.Errorf("%s is asked for %s", name, address)
			}
			return net.Dial(network, notebook.Listener.Addr().String())
		}})
		h := servers[name].Host()
		h.Name, h.Role, h.PrivateAddress = name, inventory.Worker, netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)})
		if i == 0 {
			h.Role = inventory.ControlPlane
		}
		inv.Hosts = append(inv.Hosts, h)
	}
	s, err := enter(t.Context(), session.Options{Inventory: inv, Run: "r", Events: &event.Recorder{}})
	must(t, err)
	defer s.Close()
	if _, err := s.Connect(t.Context(), inv.Hosts[1]); err != nil {
		t.Fatal(err)
	}
	d, err := s.reachNotebook(t.Context(), "w1", "token", "10.96.0.8:8888")
	if err != nil || d.host != "w1" {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := s.reachNotebook(t.Context(), "w1", "token", "evil.example.com:80"); !errors.Is(err, &reason.Error{ID: reason.FactsFailed}) {
		t.Error(err)
	}
}

func TestNotebookURL(t *testing.T) {
	if got := notebookURL("127.0.0.1:8888", "a b&c"); got != "http://127.0.0.1:8888/?token=a+b%26c" {
		t.Error(got)
	}
}
