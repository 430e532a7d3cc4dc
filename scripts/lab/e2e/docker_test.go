package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// withDocker is the inventory of dockerLife.
func (l *lab) withDocker(t *testing.T, hosts ...string) *cluster {
	t.Helper()
	d := desired{version: "1.36", runtime: "docker", network: "flannel", more: l.repositories()}
	for _, h := range hosts {
		d.hosts = append(d.hosts, l.host(h, ""))
	}
	return newCluster(t, l, d)
}

// dockerLife is docker behind cri-dockerd: the distribution's docker, its owner's where he has one, and Docker's own on ubuntu1. A
// package manager is at work on w1 when kgpu comes, and kgpu is killed while docker comes.
func (c *cluster) dockerLife(t *testing.T, hosts ...string) {
	must(t, "up waits for the package manager", func(t *testing.T) {
		release := c.lockPackages(t, "w1")
		s := start(t, "", "up", "--output", "json", c.inventory)
		e := s.await(t, "it waited for the package manager", func(e event) bool {
			return e.Event == "wait" && e.Host == c.addr["w1"] && strings.Contains(e.Text, lockHolder)
		})
		t.Log(e.Text)
		release()
		s.await(t, "docker comes to w1", func(e event) bool {
			return e.Event == "step.start" && e.Host == c.addr["w1"] && e.Step == "runtime/docker"
		})
		s.kill()
		s = start(t, "", "up", "--output", "json", c.inventory)
		if code := s.wait(t); code != 0 {
			t.Fatalf("exit status %d", code)
		}
		c.ready(t, hosts...)
		c.noSecrets(t, s, hosts...)
	})
	t.Run("packages", func(t *testing.T) {
		for host, want := range map[string]string{"cp1": "docker.io", "w1": "docker.io", "ubuntu1": "docker-ce"} {
			if got := c.exec(t, host, "dpkg -S $(readlink -f $(command -v dockerd)) | cut -d: -f1"); got != want {
				t.Errorf("%s: dockerd is of package %s, want %s", host, got, want)
			}
			if got := c.exec(t, host, "curl -fsS --unix-socket /run/docker.sock http://localhost/info"); !strings.Contains(got, `"CgroupDriver":"systemd"`) {
				t.Errorf("%s: docker has another cgroup driver: %s", host, got)
			}
		}
		for _, host := range []string{"w1", "ubuntu1"} {
			if got := c.exec(t, host, "cat /etc/docker/daemon.json"); !strings.Contains(got, `"log-level": "warn"`) || !strings.Contains(got, "native.cgroupdriver=systemd") {
				t.Errorf("%s: daemon.json was not merged: %s", host, got)
			}
		}
		c.runtime(t, "docker://")
	})
	t.Run("proof", func(t *testing.T) { c.proof(t, "w1", "ubuntu1") })
	t.Run("up again", func(t *testing.T) { c.nothingIsDifferent(t, hosts) })
	t.Run("cri-dockerd is down", func(t *testing.T) {
		c.diagnoses(t, fault{slow: true, plant: "systemctl stop cri-docker.socket cri-docker.service", exit: withErrors, want: "w1 CRI_DOCKERD_DOWN"})
	})
}

// TestDockershim is Kubernetes 1.23, the last with docker support of its own, from a company's mirror; its cards come by
// docker's runtime nvidia.
func TestDockershim(t *testing.T) {
	long(t)
	l := newLab(t, []string{"k8s-1.23", "gpu"}, "--workers", "1", "--gpus", "w1=2xA100")
	c := newCluster(t, l, desired{
		// HTTPProxyCIDR looks for a proxy with the URL https://[10.96.0.1]:1234/, which today's Go refuses to parse.
		version: "1.23.17", endOfLife: true, ignore: ", HTTPProxyCIDR", runtime: "docker", network: "flannel",
		more: fmt.Sprintf("repositories:\n  kubernetes: {url: \"https://mirror.example.internal/kubernetes/v1.23/deb/\", fingerprint: %[1]s}\n  docker: {fingerprint: %[1]s}\n"+
			"  cuda: {fingerprint: %[1]s}\n  nvidiaContainerToolkit: {fingerprint: %[1]s}\ngpu: {cuda: none}\n",
			l.env["KGPU_LAB_FINGERPRINT"]),
		hosts: []string{l.host("cp1", ""), l.host("w1", "")},
	})
	hosts := []string{"cp1", "w1"}
	must(t, "up", func(t *testing.T) {
		s := c.up(t)
		c.ready(t, hosts...)
		c.offers(t, "cp1= w1=2")
		c.proven(t, s, 2)
		c.runtime(t, "docker://")
		for _, h := range hosts {
			if out := l.exec(t, h, "ls /usr/local/bin/cri-dockerd 2>/dev/null || :"); out != "" {
				t.Errorf("%s has cri-dockerd", h)
			}
		}
	})
	t.Run("proof", func(t *testing.T) { c.proof(t, "cp1", "w1") })
	t.Run("a pod has what it asked for", c.podsWithCards)
	t.Run("up again", func(t *testing.T) { c.nothingIsDifferent(t, hosts) })
}

// runtime wants every node to run this one.
func (c *cluster) runtime(t *testing.T, prefix string) {
	t.Helper()
	for _, got := range strings.Fields(c.k(t, "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.containerRuntimeVersion}")) {
		if !strings.HasPrefix(got, prefix) {
			t.Errorf("a node runs %s, want %s", got, prefix)
		}
	}
}

// lockHolder is the name of the process that holds a host's package manager.
const lockHolder = "unattended-upgr"

// lockPackages lets a process hold the lock that apt takes first, until release is called.
func (l *lab) lockPackages(t *testing.T, host string) (release func()) {
	t.Helper()
	const hold = `$0 = "` + lockHolder + `"; open(my $f, ">", "/var/lib/dpkg/lock-frontend") or die $!;
		my $lock = pack("s s x4 q q l x4", 1, 0, 0, 0, 0); fcntl($f, 6, $lock) or die $!;
		open(my $told, ">", "/run/e2e-locked") or die $!; close $told; sleep 600`
	l.verb(t, "exec", host, "systemd-run", "--quiet", "--expand-environment=no", "--unit=e2e-lock", "perl", "-e", hold)
	l.exec(t, host, "for i in $(seq 100); do [ ! -e /run/e2e-locked ] || exit 0; sleep 0.1; done; exit 1")
	return func() { l.exec(t, host, "systemctl stop e2e-lock; rm /run/e2e-locked") }
}
