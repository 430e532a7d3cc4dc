package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMinorUpgrade has a cluster with docker come to the next minor version of Kubernetes and then to a patch of it, while pods have all
// cards of a node, and kgpu is killed in each. What belongs to a minor follows it: the package repository, kubeadm's images, the
// sandboxes' image. No minor is skipped, and no version is gone back to.
func TestMinorUpgrade(t *testing.T) {
	long(t)
	l := newLab(t, []string{"k8s-1.35", "docker", "gpu"}, "--workers", "2", "--gpus", "w1=2xA100", "--gpus", "w2=2xA100")
	hosts := []string{"cp1", "w1", "w2"}
	fresh := l.snapshot(t, hosts...)
	d := desired{
		version: "1.35", endOfLife: true, runtime: "docker", network: "flannel",
		more: l.repositories() + "gpu: {cuda: none}\nnotebook: {framework: none}\n",
	}
	for _, h := range hosts {
		d.hosts = append(d.hosts, l.host(h, ""))
	}
	c := newCluster(t, l, d)
	must(t, "up", func(t *testing.T) {
		s := c.up(t)
		c.ready(t, hosts...)
		c.offers(t, "cp1= w1=2 w2=2")
		c.proven(t, s, 4)
		c.runtime(t, "docker://")
		c.ofMinor(t, "1.35", "3.10.1")
		c.startTraining(t)
	})
	t.Run("two minors are two rounds", func(t *testing.T) {
		const way = "Kubernetes 1.35.4, then 1.36.3, then 1.37."
		if said := kgpu(t, 0, "upgrade", "--check", "1.37", "-i", c.inventory).stdout.String(); !strings.Contains(said, way) {
			t.Errorf("no %q in\n%s", way, said)
		}
		two := d
		two.version = "1.37"
		planned := kgpu(t, 2, "plan", l.write(t, t.TempDir(), two)).stdout.String()
		if !strings.Contains(planned, "Kubernetes 1.35.4 becomes 1.36.3, node after node") || strings.Contains(planned, "kubeadm 1.37") {
			t.Errorf("the plan is\n%s", planned)
		}
		c.goesBackNever(t, "1.34")
	})
	must(t, "the next minor", func(t *testing.T) { c.upgradeKubernetes(t, "1.36.2", "at Kubernetes 1.35.") })
	t.Run("what belongs to the minor", func(t *testing.T) {
		c.ofMinor(t, "1.36", "3.10.2")
		c.followed(t, "1.36.2")
	})
	t.Run("nothing is left to do", func(t *testing.T) { kgpu(t, 0, "plan", c.inventory) })
	t.Run("back", func(t *testing.T) { c.goesBackNever(t, "1.35") })
	t.Run("proof", func(t *testing.T) { c.proof(t, "w1", "w2") })
	must(t, "a patch of it", func(t *testing.T) { c.upgradeKubernetes(t, "1.36.3", "at Kubernetes 1.36.2") })
	t.Run("what belongs to the patch", func(t *testing.T) {
		c.ofMinor(t, "1.36", "3.10.2")
		c.followed(t, "1.36.3")
	})
	t.Run("nothing is left to do after it", func(t *testing.T) { kgpu(t, 0, "plan", c.inventory) })
	t.Run("reset", func(t *testing.T) {
		kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
		l.unchanged(t, fresh)
	})
}

// ofMinor wants what hosts have to be that of this minor version: the only repository of Kubernetes, and the image of sandboxes, by which
// cri-dockerd runs, whose version is the one for all of them.
func (c *cluster) ofMinor(t *testing.T, minor, pause string) {
	t.Helper()
	for _, h := range []string{"cp1", "w1", "w2"} {
		if got := c.exec(t, h, "grep -rhoE 'core:/stable:/v[0-9.]+' /etc/apt/sources.list.d | sort -u"); got != "core:/stable:/v"+minor {
			t.Errorf("the repositories of Kubernetes on %s: %q, want that of %s", h, got, minor)
		}
		for _, version := range lines(c.exec(t, h, "apt-cache madison kubelet kubeadm kubectl | tr -d ' ' | cut -d'|' -f2")) {
			if !strings.HasPrefix(version, minor+".") {
				t.Errorf("apt on %s offers %s, and Kubernetes is %s", h, version, minor)
			}
		}
		runs := c.exec(t, h, `tr '\0' ' ' </proc/$(systemctl show -P MainPID cri-docker.service)/cmdline; cri-dockerd --version`)
		if !strings.Contains(runs, "--pod-infra-container-image=registry.k8s.io/pause:"+pause+" ") || !strings.Contains(runs, "cri-dockerd 0.4.4 ") {
			t.Errorf("on %s runs %s, want the sandboxes' image %s", h, runs, pause)
		}
	}
}

// followed wants all parts of the cluster to be those of this version of 1.36, and what kubelets need of it with docker to be set. A pod
// that came since has the sandbox of this version, and somebody can have a shell in it.
func (c *cluster) followed(t *testing.T, version string) {
	t.Helper()
	images := strings.Fields(c.k(t, "-n", "kube-system", "get", "pods", "-o", "jsonpath={.items[*].spec.containers[*].image}"))
	slices.Sort(images)
	var want []string
	for _, name := range []string{"coredns/coredns:v1.14.2", "etcd:3.6.8-0", "kube-apiserver:v", "kube-controller-manager:v", "kube-proxy:v", "kube-scheduler:v"} {
		if strings.HasSuffix(name, ":v") {
			name += version
		}
		want = append(want, "registry.k8s.io/"+name)
	}
	ours := slices.DeleteFunc(slices.Compact(images), func(image string) bool { return !strings.HasPrefix(image, "registry.k8s.io/") })
	if !slices.Equal(ours, want) {
		t.Errorf("the images of kube-system are %q, want %q", ours, want)
	}
	c.k(t, "-n", "kube-flannel", "rollout", "status", "daemonset/kube-flannel-ds", "--timeout=60s")
	for _, h := range []string{"cp1", "w1", "w2"} {
		if got := c.exec(t, h, "grep -c '^  ExtendWebSocketsToKubelet: false$' /var/lib/kubelet/config.yaml || :"); got != "1" {
			t.Errorf("the kubelet of %s has the gate that breaks exec with cri-dockerd", h)
		}
	}
	const sandboxes = `curl -fsS --unix-socket /run/docker.sock http://localhost/containers/json | grep -oE '"/k8s_POD_training[^]]*\],"Image":"[^"]*"'`
	if got := c.exec(t, strings.Fields(c.job(t))[1], sandboxes); !strings.HasSuffix(got, `"registry.k8s.io/pause:3.10.2"`) {
		t.Errorf("the sandbox of the pod with cards is %s", got)
	}
}

// goesBackNever wants an older version to be refused, with the reason, before anything is touched: also the inventory.
func (c *cluster) goesBackNever(t *testing.T, version string) {
	t.Helper()
	was, before := c.versions(t), c.text(t)
	s := kgpu(t, 43, "upgrade", version, "--yes", "--output", "json", "-i", c.inventory)
	said := s.stdout.String() + s.stderr.String()
	if !strings.Contains(said, "KUBERNETES_VERSION_CHANGE") || !strings.Contains(said, "a cluster does not go back to an older version") {
		t.Errorf("kgpu says\n%s", said)
	}
	if begun := s.of("step.start"); len(begun) > 0 {
		t.Errorf("steps were begun: %v", begun)
	}
	if now := c.versions(t); now != was {
		t.Errorf("the cluster went from %s to %s", was, now)
	}
	if now := c.text(t); now != before {
		t.Errorf("the inventory was\n%s\nand is\n%s", before, now)
	}
}

// text is the inventory as it is.
func (c *cluster) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(c.inventory)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
