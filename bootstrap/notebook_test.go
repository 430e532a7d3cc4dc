package bootstrap

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

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/jupyter"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// behind is a door with this server behind it; it can be opened from the n-th try on.
func behind(s *httptest.Server, n int32, tunnel int) *door {
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
		want            int // the tunnel's port
	}{
		{"both", behind(notebook, 1, 0), behind(notebook, 1, 8888), 0},
		{"late", behind(notebook, 2, 0), behind(notebook, 1, 8888), 0},
		{"firewalled", behind(notebook, never, 0), behind(notebook, 2, 8888), 8888},
		{"another server", behind(other, 1, 0), behind(notebook, 1, 8888), 8888},
	} {
		d, err := firstOpen(context.Background(), []*door{c.direct, c.through})
		if err != nil || d.tunnel != c.want {
			t.Errorf("%s: %+v, %v", c.name, d, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := firstOpen(ctx, []*door{behind(notebook, never, 0), behind(notebook, never, 8888)}); err == nil ||
		!strings.Contains(err.Error(), "directly: ") || !strings.Contains(err.Error(), "; through SSH: ") {
		t.Errorf("%v", err)
	}
}

// Wherever the notebook runs, the control plane leads there, as kgpu notebook says; what fails in it is told of its own host.
func TestReachNotebook(t *testing.T) {
	notebook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(`{"version": "7.0.0"}`)) }))
	t.Cleanup(notebook.Close)
	inv := &inventory.Inventory{Notebook: inventory.Notebook{NodePort: 1}} // where this machine has nothing
	servers := map[string]*sshtest.Server{}
	for i, name := range []string{"cp1", "w1"} {
		servers[name] = sshtest.Listen(t, sshtest.Config{Dial: func(network, address string) (net.Conn, error) {
			if address != "10.0.0.10:1" || name != "cp1" {
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
	s, err := enter(t.Context(), Options{Inventory: inv, Run: "r", Events: &event.Recorder{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if s.hosts["w1"], err = s.dialer.Dial(t.Context(), inv.Hosts[1]); err != nil {
		t.Fatal(err)
	}
	d, err := s.reachNotebook(t.Context(), "w1", "token", inv.Notebook.NodePort)
	if err != nil || d.host != "w1" || d.tunnel != notebookTunnel {
		t.Fatalf("%+v, %v", d, err)
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
