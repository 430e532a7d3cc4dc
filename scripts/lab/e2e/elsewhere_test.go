package e2e

import (
	"strings"
	"testing"
)

// TestElsewhere makes a cluster of hosts that are not plain: sudo asks for a password, the way leads through a bastion,
// the system is Ubuntu with Docker's packages of containerd.
func TestElsewhere(t *testing.T) {
	l := newLab(t, []string{"noble"}, "--workers", "0", "--with", "password", "--with", "bastion", "--with", "ubuntu")
	hosts := []string{"cp1", "password1", "ubuntu1", "inner1"}
	// SSH gets to the private segment through the bastion alone. Nodes must reach each other, for which an administrator
	// sets routes.
	segment := l.addr["inner1"][:strings.LastIndex(l.addr["inner1"], ".")] + ".0/24"
	for _, h := range hosts[:3] {
		l.exec(t, h, "ip route add "+segment+" via "+l.addr["bastion1"])
	}
	c := newCluster(t, l, desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories(),
		hosts: []string{
			l.host("cp1", ""),
			l.host("password1", `ssh: {sudoPassword: "file:`+l.Place.Password()+`"}`),
			l.host("ubuntu1", ""),
			l.host("inner1", "ssh: {bastion: {address: "+l.addr["bastion1"]+"}}"),
		},
	})
	must(t, "up", func(t *testing.T) {
		s := c.up(t)
		c.ready(t, hosts...)
		c.noSecrets(t, s, hosts...)
		for _, e := range s.of("connect") {
			if e.Host == l.addr["inner1"] && !strings.Contains(e.Text, l.addr["bastion1"]) {
				t.Errorf("inner1 was not reached through the bastion: %v", e)
			}
		}
	})
	t.Run("packages", func(t *testing.T) {
		for host, want := range map[string]string{"cp1": "containerd", "inner1": "containerd", "ubuntu1": "containerd.io"} {
			if got := l.exec(t, host, "dpkg -S $(readlink -f $(command -v containerd)) | cut -d: -f1"); got != want {
				t.Errorf("%s: containerd is of package %s, want %s", host, got, want)
			}
		}
		if got := l.exec(t, "ubuntu1", "cat /etc/apt/sources.list.d/kgpu-docker.list"); !strings.Contains(got, "https://download.docker.com/linux/ubuntu noble stable") {
			t.Errorf("ubuntu1's repository: %s", got)
		}
	})
	t.Run("proof", func(t *testing.T) { c.proof(t, "password1", "inner1") })
	t.Run("proof on Ubuntu", func(t *testing.T) { c.proof(t, "inner1", "ubuntu1") })
	t.Run("up again", func(t *testing.T) { c.nothingToDo(t, hosts...) })
}
