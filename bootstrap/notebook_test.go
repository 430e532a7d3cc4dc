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

func TestNotebookURL(t *testing.T) {
	d := &door{at: "10.0.0.11:30061"}
	if got := d.url("a b&c"); got != "http://10.0.0.11:30061/?token=a+b%26c" {
		t.Error(got)
	}
	if got := d.url(""); got != "http://10.0.0.11:30061/" {
		t.Error(got)
	}
}
