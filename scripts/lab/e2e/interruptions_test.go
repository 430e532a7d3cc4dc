package e2e

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// TestInterruptions stops kgpu, the network and hosts while a cluster comes up.
func TestInterruptions(t *testing.T) {
	l := newLab(t, nil, "--workers", "2")
	hosts := []string{"cp1", "w1", "w2"}
	c := newCluster(t, l, desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories(),
		hosts: []string{l.host("cp1", ""), l.host("w1", ""), l.host("w2", "")},
	})
	begins := func(host, step string) func(event) bool {
		return func(e event) bool { return e.Event == "step.start" && e.Host == l.addr[host] && e.Step == step }
	}

	must(t, "kgpu is killed", func(t *testing.T) {
		for i, at := range []struct{ host, step string }{{"w1", "kube/packages"}, {"cp1", "cluster/init"}, {"w2", "cluster/join"}} {
			s := start(t, "", "up", "--output", "json", c.inventory)
			if i > 0 {
				s.await(t, "it found its former run", func(e event) bool {
					return e.Event == "wait" && strings.Contains(e.Text, "a former run")
				})
			}
			s.await(t, at.host+" began "+at.step, begins(at.host, at.step))
			s.kill()
		}
		c.up(t)
		c.ready(t, hosts...)
		for _, h := range hosts {
			if n := l.exec(t, h, "grep -c '^Install:.*kubelet' /var/log/apt/history.log"); n != "1" {
				t.Errorf("%s: kubelet was installed %s times, want once", h, n)
			}
		}
		if n := l.exec(t, "cp1", "ls -d /var/lib/kgpu/ledger/*/ | wc -l"); n == "0" {
			t.Error("cp1 has no ledger")
		}
		left := l.exec(t, "cp1", "kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get secrets --field-selector type=bootstrap.kubernetes.io/token -o name")
		if left != "" {
			t.Errorf("bootstrap tokens of killed runs are left: %s", left)
		}
	})
	must(t, "reset", func(t *testing.T) { kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory) })
	must(t, "reset of a run that waits", func(t *testing.T) {
		l.fault(t, "ghcr.io/v2/flannel-io", "status=503") // so that it waits as long as it takes
		s := start(t, "", "up", "--output", "json", c.inventory)
		s.await(t, "cp1 waits for the cluster", begins("cp1", "cluster/ready"))
		s.kill()
		reset := kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
		if said := reset.stdout.String(); !strings.Contains(said, "another run asked this one to stop; not ready: ") {
			t.Errorf("the step that waits was not stopped:\n%s", said)
		}
	})
	t.Run("a host reboots and another is cut off", func(t *testing.T) {
		s := start(t, "", "up", "--output", "json", c.inventory)
		var both sync.WaitGroup
		s.await(t, "w1 began to install", begins("w1", "runtime/containerd"))
		both.Go(func() { l.verb(t, "reboot", "w1") })
		l.verb(t, "cut", "w2")
		// Long enough for kgpu to notice, which takes it less than 20 s.
		time.Sleep(25 * time.Second)
		l.verb(t, "heal", "w2")
		both.Wait()
		if code := s.wait(t); code != 0 {
			t.Fatalf("exit status %d", code)
		}
		for _, h := range []string{"w1", "w2"} {
			if n := s.perHost("connect")[l.addr[h]]; n < 2 {
				t.Errorf("%s: %d connections: the interruption was not one", h, n)
			}
		}
		c.ready(t, hosts...)
	})
}
