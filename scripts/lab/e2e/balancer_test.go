package e2e

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestPlanesBehindABalancer makes a cluster with docker and five control planes behind a load balancer of the owner's. Two of them, also
// the first, lose power: the cluster goes on, and takes a worker. A reset leaves nothing.
func TestPlanesBehindABalancer(t *testing.T) {
	long(t)
	l := newLab(t, []string{"docker"}, "--workers", "5")
	hosts := []string{"cp1", "w1", "w2", "w3", "w4", "w5"}
	planes := hosts[:5]
	balancer := l.addr["cp1"][:strings.LastIndexByte(l.addr["cp1"], '.')] + ".1"
	var behind []string
	for _, h := range planes {
		behind = append(behind, net.JoinHostPort(l.addr[h], "6443"))
	}
	balance(t, net.JoinHostPort(balancer, "6443"), behind)
	knows := func(h string) {
		l.exec(t, h, "grep -q api.owner.example /etc/hosts || echo '"+balancer+" api.owner.example' >>/etc/hosts")
	}
	for _, h := range planes[:2] {
		l.verb(t, "reboot", h) // it loses power: what only a first boot does is not in the snapshot then
	}
	for _, h := range hosts {
		knows(h)
	}
	fresh := l.snapshot(t, hosts...)
	d := desired{version: "1.36", runtime: "docker", network: "flannel", more: l.repositories(), endpoint: "api.owner.example:6443"}
	for _, h := range planes {
		role := ""
		if h != "cp1" {
			role = "role: control-plane"
		}
		d.hosts = append(d.hosts, l.host(h, role))
	}
	c := newCluster(t, l, d)
	nodes := func(want int) {
		t.Helper()
		if out := kgpu(t, 0, "kubectl", "-i", c.inventory, "--", "get", "nodes", "-o", "name").stdout.String(); strings.Count(out, "node/") != want {
			t.Errorf("nodes: %s", out)
		}
	}
	must(t, "from nothing", func(t *testing.T) {
		c.up(t)
		nodes(5)
		c.nothingToDo(t, planes...)
	})
	must(t, "two lose power, and a worker comes", func(t *testing.T) {
		for _, h := range planes[:2] {
			l.verb(t, "kill", h)
		}
		kgpu(t, 0, "add-worker", "--yes", "-i", c.inventory, c.addr["w5"])
		nodes(6)
		for _, h := range planes[:2] {
			l.verb(t, "start", h)
			knows(h)
			c.exec(t, h, "until curl -sk https://127.0.0.1:6443/readyz | grep -q ok; do sleep 1; done")
		}
		c.up(t)
		kgpu(t, 0, "plan", c.inventory)
	})
	must(t, "reset", func(t *testing.T) {
		kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
		l.unchanged(t, fresh)
	})
}

// balance takes connections at an address, and leads each to the first of some addresses that takes it.
func balance(t *testing.T, at string, behind []string) {
	t.Helper()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go lead(client, behind)
		}
	}()
}

func lead(client net.Conn, behind []string) {
	defer client.Close()
	for _, address := range behind {
		server, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			continue
		}
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		_, _ = io.Copy(client, server)
		return
	}
}
