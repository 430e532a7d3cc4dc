package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/scripts/lab/snapshot"
)

// TestReset makes a cluster and takes it apart twice, on hosts whose owners have firewall rules, links, routes, containers and
// images of their own: afterwards, nothing is different. The first cluster has a whole life; its reset is interrupted on every host,
// and that of cp1 by a power cut half way, which takes from its two disks what was not synced. The second one (make test-all) is half made,
// and a step of it waits.
func TestReset(t *testing.T) {
	l := newLab(t, nil, "--workers", "2", "--disks", "cp1")
	hosts := []string{"cp1", "w1", "w2"}
	l.exec(t, "w2", "update-alternatives --set iptables /usr/sbin/iptables-legacy; update-alternatives --set ip6tables /usr/sbin/ip6tables-legacy")
	l.verb(t, "reboot", "cp1") // it will have a power cut: what only a first boot does is not in the snapshot then
	l.owned(t, hosts...)
	t.Logf("what a host may differ in afterwards:\n%s", snapshot.AllowList)
	fresh := l.snapshot(t, hosts...)
	begins := func(host, step string) func(event) bool {
		return func(e event) bool { return e.Event == "step.start" && e.Host == l.addr[host] && e.Step == step }
	}

	c := l.withContainerd(t)
	must(t, "containerd", func(t *testing.T) {
		c.containerdLife(t)
		look := start(t, "", "doctor", "--output=json", "-i", c.inventory)
		if code := look.wait(t); code == withErrors {
			t.Errorf("kgpu doctor finds %v", c.found(t, look))
		}
		for backend, want := range map[string]string{"legacy": "KUBE-SERVICES", "nft": ""} {
			if got := l.exec(t, "w2", "iptables-"+backend+"-save -t nat | grep -o '^:KUBE-SERVICES' | tr -d : || :"); got != want {
				t.Errorf("iptables-%s of w2 has the chain %q, want %q", backend, got, want)
			}
		}
		l.stillOwned(t)
	})
	must(t, "reset that is interrupted", func(t *testing.T) {
		s := start(t, "", "reset", "--yes", "--inventory", c.inventory, "--output", "json")
		s.await(t, "w1 began to reset", begins("w1", "host/reset"))
		s.kill()
		for _, h := range []string{"w1", "w2"} {
			l.exec(t, h, "systemctl kill --signal=KILL 'kgpu-*' || :")
		}
		s = start(t, "", "reset", "--yes", "--inventory", c.inventory, "--output", "json")
		s.await(t, "cp1 began to reset", begins("cp1", "host/reset"))
		l.exec(t, "cp1", `cd /var/lib/kgpu/ledger; set -- *; half=$(($# / 2)); exec 9<> <(:); until set -- *; (($# <= half)); do read -r -t 0.02 -u 9 || :; done`)
		l.verb(t, "kill", "cp1")
		l.verb(t, "start", "cp1")
		if code := s.wait(t); code != 0 {
			t.Fatalf("exit status %d", code)
		}
		wantSteps(t, c.did(kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory, "--output", "json")))
		// What lives in the kernel only did not outlive the power cut.
		l.ownedUntilBoot(t, "cp1")
		l.unchanged(t, fresh)
		l.stillOwned(t)
		l.noImagesOfTheCluster(t)
		if _, err := os.Stat(c.kubeconfig); !os.IsNotExist(err) {
			t.Errorf("the kubeconfig of a cluster that is gone: %v", err)
		}
	})
	must(t, "reset of a cluster that is half made", func(t *testing.T) {
		long(t)
		c = newCluster(t, l, desired{
			version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories(), hosts: []string{l.host("cp1", "")},
		})
		l.fault(t, "ghcr.io/v2/flannel-io", "status=503") // so that it waits as long as it takes
		s := start(t, "", "up", "--output", "json", c.inventory)
		s.await(t, "cp1 waits for the cluster", begins("cp1", "cluster/ready"))
		s.kill()
		reset := kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
		if said := reset.stdout.String(); !strings.Contains(said, "another run asked this one to stop; not ready: ") {
			t.Errorf("the step that waits was not stopped:\n%s", said)
		}
		l.unchanged(t, snapshots{"cp1": fresh["cp1"]})
	})
}

// TestDocker is docker behind cri-dockerd, from up to reset, on hosts whose owners have what those of TestReset have.
func TestDocker(t *testing.T) {
	long(t)
	l := newLab(t, []string{"docker", "noble"}, "--workers", "2", "--with", "ubuntu")
	hosts := []string{"cp1", "w1", "w2", "ubuntu1"}
	l.owned(t, hosts...)
	fresh := l.snapshot(t, hosts...)
	c := l.withDocker(t, hosts...)
	c.dockerLife(t, hosts...)
	t.Run("reset", func(t *testing.T) {
		s := kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory, "--output", "json")
		if n := len(s.of("error")); n > 0 {
			t.Errorf("%d errors", n)
		}
		// Among the images of an owner's docker nothing tells those of the cluster.
		var told []string
		for _, e := range s.of("warning") {
			if strings.HasPrefix(e.Text, "not taken back: ") && strings.Contains(e.Text, "docker image list") {
				told = append(told, e.Host)
			}
		}
		if !slices.Equal(told, []string{l.addr["w1"]}) {
			t.Errorf("images that stay in docker are told of %q, want w1 alone", told)
		}
		l.unchanged(t, fresh)
		l.stillOwned(t)
	})
}

// owned gives hosts what their owners may have: all of them a network and firewall rules, w1 docker with settings and a container,
// w2 containerd with one that runs, ubuntu1 settings of a docker that is not there.
func (l *lab) owned(t *testing.T, hosts ...string) {
	t.Helper()
	for _, h := range hosts {
		l.exec(t, h, "echo 'net.ipv4.ip_local_port_range = 20000 60999' >/etc/sysctl.d/50-owner.conf; sysctl -q -p /etc/sysctl.d/50-owner.conf")
		l.ownedUntilBoot(t, h)
	}
	const install = "apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends %s >/dev/null 2>&1; "
	const settings = `mkdir -p /etc/docker; printf '{"log-level": "warn"}\n' >/etc/docker/daemon.json; `
	if slices.Contains(hosts, "ubuntu1") {
		l.exec(t, "ubuntu1", settings)
	}
	l.exec(t, "w1", settings+fmt.Sprintf(install, "docker.io docker-cli")+
		"docker run --rm --network host docker.io/library/busybox:1.37 true 2>/dev/null; docker pull -q registry.k8s.io/pause:3.10; docker create --name owner --network none registry.k8s.io/pause:3.10; apt-mark hold docker.io")
	l.exec(t, "w2", fmt.Sprintf(install, "containerd")+
		"ip netns add owner; ctr -n owner images pull docker.io/library/busybox:1.37 >/dev/null; ctr -n owner run -d --null-io docker.io/library/busybox:1.37 owner sleep 86400")
}

// ownedUntilBoot gives a host what is gone after a boot.
func (l *lab) ownedUntilBoot(t *testing.T, host string) {
	t.Helper()
	l.exec(t, host, `ip link add br-owner address 02:00:5e:00:53:01 type bridge; ip address add 192.0.2.1/24 dev br-owner; ip link set br-owner up
		ip route add 198.51.100.0/24 via 192.0.2.9
		iptables -N OWNER; iptables -A OWNER -p tcp --dport 12345 -j ACCEPT; iptables -A INPUT -j OWNER
		iptables -A FORWARD -i br-owner -j ACCEPT
		iptables -t nat -A POSTROUTING -s 192.0.2.0/24 ! -o br-owner -j MASQUERADE`)
}

// stillOwned looks at what no snapshot holds: running containers and images.
func (l *lab) stillOwned(t *testing.T) {
	t.Helper()
	if got := l.exec(t, "w1", "docker inspect --format '{{.Name}} {{.State.Status}}' owner; docker image inspect --format '{{.Id}}' registry.k8s.io/pause:3.10; docker run --rm --network none docker.io/library/busybox:1.37 echo runs"); !strings.HasPrefix(got, "/owner created\nsha256:") || !strings.HasSuffix(got, "\nruns") {
		t.Errorf("docker's container and image on w1 are now, and what it starts says: %s", got)
	}
	if got := l.exec(t, "w2", "ctr -n owner tasks list -q; ctr -n owner tasks list | grep -c RUNNING; ctr -n owner images list -q"); strings.Join(lines(got), " ") != "owner 1 docker.io/library/busybox:1.37" {
		t.Errorf("containerd's container and image on w2 are now: %s", got)
	}
}

// noImagesOfTheCluster wants none in the containerd that w2's owner has.
func (l *lab) noImagesOfTheCluster(t *testing.T) {
	t.Helper()
	if got := l.exec(t, "w2", "ctr -n k8s.io images list -q; ctr -n k8s.io containers list -q"); got != "" {
		t.Errorf("the cluster left on w2:\n%s", got)
	}
}
