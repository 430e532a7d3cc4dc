package e2e

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// failover cuts the power of the control plane with the virtual address, has kgpu work meanwhile, and brings it back. It returns how
// long nothing answered at the address.
func (c *cluster) failover(t *testing.T, planes []string, virtual string, nodes int) time.Duration {
	t.Helper()
	c.answers(t, virtual)
	at := slices.IndexFunc(planes, func(h string) bool { return c.exec(t, h, "ip -o address show to "+virtual) != "" })
	if at < 0 {
		t.Fatalf("no control plane has %s", virtual)
	}
	holder := planes[at]
	client := watchAPI(virtual, "livez", 50*time.Millisecond)
	c.verb(t, "kill", holder)
	deadline := time.Now().Add(30 * time.Second)
	cut := time.Now()
	for client.last.Load() < cut.Add(500*time.Millisecond).UnixNano() && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(3 * time.Second) // two may have fought for it
	gap := client.stop()
	t.Logf("%s had the address; nothing answered for %s", holder, gap)

	s := c.up(t)
	for _, did := range c.did(s) {
		if !strings.HasSuffix(did, " cluster/ready") { // for pods that come from there
			t.Errorf("with %s down, up did %s", holder, did)
		}
	}
	if !slices.ContainsFunc(s.of("warning"), func(e event) bool {
		return strings.Contains(e.Text, c.addr[holder]+" is not reached: 2 of 3 control planes go on without it")
	}) {
		t.Errorf("nobody says that %s is down: %v", holder, s.of("warning"))
	}
	if said := kgpu(t, 2, "status", "-i", c.inventory).stdout.String(); !strings.Contains(said, "SSH_UNREACHABLE") {
		t.Errorf("status does not say that %s is down:\n%s", holder, said)
	}
	if out := kgpu(t, 0, "kubectl", "-i", c.inventory, "--", "get", "nodes", "-o", "name").stdout.String(); strings.Count(out, "node/") != nodes {
		t.Errorf("kubectl: %s", out)
	}
	c.k(t, "create", "configmap", "with-"+holder+"-down", "-n", "default")
	c.k(t, "delete", "configmap", "with-"+holder+"-down", "-n", "default")
	c.verb(t, "start", holder)
	c.exec(t, holder, "until curl -sk https://127.0.0.1:6443/readyz | grep -q ok; do sleep 1; done")
	return gap
}

// answers returns when the API server answers at the address.
func (c *cluster) answers(t *testing.T, virtual string) {
	t.Helper()
	for range 240 {
		if asked(virtual, "livez") {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Fatalf("nothing answers at %s", virtual)
}

// asked reports whether the API server at an address says that it lives, or is ready, over a new connection.
func asked(address, check string) bool {
	client := http.Client{Timeout: 400 * time.Millisecond, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	r, err := client.Get("https://" + net.JoinHostPort(address, "6443") + "/" + check)
	if err != nil {
		return false
	}
	defer r.Body.Close()
	said, _ := io.ReadAll(r.Body)
	return string(said) == "ok"
}

// apiWatch asks an API server again and again.
type apiWatch struct {
	last  atomic.Int64 // when it answered
	end   chan struct{}
	ended chan time.Duration // the longest time without an answer
}

// watchAPI asks one as often as that: each time is a new connection, and takes its share of the processors.
func watchAPI(address, check string, every time.Duration) *apiWatch {
	w := &apiWatch{end: make(chan struct{}), ended: make(chan time.Duration, 1)}
	w.last.Store(time.Now().UnixNano())
	go func() {
		var longest time.Duration
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-w.end:
				w.ended <- longest
				return
			case <-tick.C:
			}
			go func() {
				if asked(address, check) {
					w.last.Store(time.Now().UnixNano())
				}
			}()
			longest = max(longest, time.Duration(time.Now().UnixNano()-w.last.Load()))
		}
	}()
	return w
}

func (w *apiWatch) stop() time.Duration {
	close(w.end)
	return <-w.ended
}
