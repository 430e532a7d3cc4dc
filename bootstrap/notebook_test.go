package bootstrap

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"kgpu.dev/kgpu/bootstrap/jupyter"
	"kgpu.dev/kgpu/inventory"
)

// behind is a door with this server behind it; it can be opened from the n-th try on.
func behind(s *httptest.Server, n int32, tunnel string) *door {
	var tries atomic.Int32
	at := strings.TrimPrefix(s.URL, "http://")
	return &door{at: at, tunnel: tunnel, client: jupyter.New(at, "token", func(ctx context.Context, network, address string) (net.Conn, error) {
		if tries.Add(1) < n {
			return nil, errors.New("connection refused")
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})}
}

// The way that needs no tunnel is preferred, also when it opens a little later; another server's port is no way.
func TestFirstOpen(t *testing.T) {
	notebook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token is told before it is known who listens")
		}
		_, _ = w.Write([]byte(`{"version": "7.0.0"}`))
	}))
	t.Cleanup(notebook.Close)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	const never = 1 << 30
	for _, c := range []struct {
		name            string
		direct, through *door
		want            string // the tunnel's command
	}{
		{"both", behind(notebook, 1, ""), behind(notebook, 1, "ssh"), ""},
		{"late", behind(notebook, 2, ""), behind(notebook, 1, "ssh"), ""},
		{"firewalled", behind(notebook, never, ""), behind(notebook, 2, "ssh"), "ssh"},
		{"another server", behind(other, 1, ""), behind(notebook, 1, "ssh"), "ssh"},
	} {
		d, err := firstOpen(context.Background(), []*door{c.direct, c.through})
		if err != nil || d.tunnel != c.want {
			t.Errorf("%s: %+v, %v", c.name, d, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := firstOpen(ctx, []*door{behind(notebook, never, ""), behind(notebook, never, "ssh")}); err == nil ||
		!strings.Contains(err.Error(), "directly: ") || !strings.Contains(err.Error(), "; through SSH: ") {
		t.Errorf("%v", err)
	}
}

func TestNotebookURL(t *testing.T) {
	d := &door{at: "10.0.0.11:30061"}
	if got := d.url("a b&c"); got != "http://10.0.0.11:30061/?token=a+b%26c" {
		t.Error(got)
	}
	if got := d.url(""); got != "http://10.0.0.11:30061/" {
		t.Error(got)
	}
}

func TestSSHTarget(t *testing.T) {
	inner := &inventory.Bastion{Address: "inner", SSH: inventory.SSH{User: "b"}}
	outer := &inventory.Bastion{Address: "outer", SSH: inventory.SSH{User: "a", Port: 2222}}
	inner.SSH.Bastion = outer
	s := &session{Options: Options{Inventory: &inventory.Inventory{Hosts: []inventory.Host{
		{Address: "10.0.0.1"}, {Name: "w1", Address: "10.0.0.2", SSH: inventory.SSH{User: "me", Port: 22, Bastion: inner}},
	}}}}
	for id, want := range map[string]string{"10.0.0.1": "root@10.0.0.1", "w1": "-J a@outer:2222,b@inner -p 22 me@10.0.0.2"} {
		if got := s.sshTarget(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	s.SSHConfig = "/home/me/.ssh/config"
	if got := s.sshTarget("10.0.0.1"); got != "10.0.0.1" {
		t.Error(got)
	}
}
