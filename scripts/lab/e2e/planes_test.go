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

// TestPlanes makes a cluster with three control planes and a worker. Power is cut on the one that has the virtual address: the API
// server answers through it again, measured by a client that connects every 50 ms, and all commands work while one is down. A reset
// leaves nothing.
func TestPlanes(t *testing.T) {
	if testing.Short() {
		t.Skip("three control planes take a quarter of an hour")
	}
	l := newLab(t, nil, "--workers", "3")
	planes, hosts := []string{"cp1", "w1", "w2"}, []string{"cp1", "w1", "w2", "w3"}
	virtual := l.addr["cp1"][:strings.LastIndexByte(l.addr["cp1"], '.')] + ".100"
	for _, h := range hosts { // power is cut later: what only a first boot does is not in the snapshot then
		l.verb(t, "reboot", h)
	}
	fresh := l.snapshot(t, hosts...)
	c := newCluster(t, l, desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories(), virtualIP: virtual,
		hosts: []string{l.host("cp1", ""), l.host("w1", "role: control-plane"), l.host("w2", "role: control-plane"), l.host("w3", "")},
	})
	must(t, "an address that somebody has", func(t *testing.T) {
		l.exec(t, "w3", "ip address add "+virtual+"/32 dev eth0")
		s := kgpu(t, 40, "plan", c.inventory) // several reasons
		for _, id := range []string{"VIRTUAL_IP_TAKEN", "VIRTUAL_IP_UNFIT"} {
			if !strings.Contains(s.stderr.String(), id) {
				t.Errorf("%s is not named:\n%s", id, s.stderr.String())
			}
		}
		l.exec(t, "w3", "ip address delete "+virtual+"/32 dev eth0")
	})
	must(t, "from nothing", func(t *testing.T) {
		c.up(t)
		c.ready(t, hosts...)
		c.nothingToDo(t, hosts...)
		if left := c.k(t, "-n", "kube-system", "get", "secrets", "-o", "name"); strings.Contains(left, "kubeadm-certs") || strings.Contains(left, "bootstrap-token") {
			t.Errorf("secrets of the joins are left: %s", left)
		}
	})
	must(t, "the holder of the address loses power", func(t *testing.T) {
		var gaps []time.Duration
		for range 4 {
			gaps = append(gaps, c.failover(t, planes, virtual))
		}
		slices.Sort(gaps)
		t.Logf("through the virtual address nothing answered for %v", gaps)
		if most := gaps[len(gaps)-1]; most > 10*time.Second {
			t.Errorf("nothing answered for %s", most)
		}
	})
	must(t, "quorum is lost", func(t *testing.T) {
		l.verb(t, "kill", "w1")
		l.verb(t, "kill", "w2")
		s := start(t, "", "up", "--output", "json", c.inventory)
		if s.wait(t) == 0 || len(s.of("error")) == 0 || s.of("error")[0].Reason != "CLUSTER_QUORUM_LOST" {
			t.Errorf("%v", s.of("error"))
		}
		l.verb(t, "start", "w1")
		l.verb(t, "start", "w2")
		c.answers(t, virtual)
	})
	must(t, "reset", func(t *testing.T) {
		kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
		l.unchanged(t, fresh)
		for _, h := range hosts {
			if has := l.exec(t, h, "ip -o address show to "+virtual+"; dpkg -l keepalived 2>/dev/null | grep '^ii' || :"); has != "" {
				t.Errorf("%s has %s", h, has)
			}
		}
	})
}

// failover cuts the power of the control plane with the virtual address, has kgpu work meanwhile, and brings it back. It returns how
// long nothing answered at the address.
func (c *cluster) failover(t *testing.T, planes []string, virtual string) time.Duration {
	t.Helper()
	c.answers(t, virtual)
	at := slices.IndexFunc(planes, func(h string) bool { return c.exec(t, h, "ip -o address show to "+virtual) != "" })
	if at < 0 {
		t.Fatalf("no control plane has %s", virtual)
	}
	holder := planes[at]
	client := watchAPI(virtual)
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
	if nodes := kgpu(t, 0, "kubectl", "-i", c.inventory, "--", "get", "nodes", "-o", "name").stdout.String(); strings.Count(nodes, "node/") != 4 {
		t.Errorf("kubectl: %s", nodes)
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
		if asked(virtual) {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Fatalf("nothing answers at %s", virtual)
}

// asked reports whether the API server at an address says that it lives, over a new connection.
func asked(address string) bool {
	client := http.Client{Timeout: 400 * time.Millisecond, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	r, err := client.Get("https://" + net.JoinHostPort(address, "6443") + "/livez")
	if err != nil {
		return false
	}
	defer r.Body.Close()
	said, _ := io.ReadAll(r.Body)
	return string(said) == "ok"
}

// apiWatch asks an API server every 50 ms.
type apiWatch struct {
	last  atomic.Int64 // when it answered
	end   chan struct{}
	ended chan time.Duration // the longest time without an answer
}

func watchAPI(address string) *apiWatch {
	w := &apiWatch{end: make(chan struct{}), ended: make(chan time.Duration, 1)}
	w.last.Store(time.Now().UnixNano())
	go func() {
		var longest time.Duration
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-w.end:
				w.ended <- longest
				return
			case <-tick.C:
			}
			go func() {
				if asked(address) {
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
