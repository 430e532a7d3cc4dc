package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"filippo.io/age"
)

// kept are objects that a backup has; their UIDs tell whether they came back or were made anew.
const kept = `
apiVersion: v1
kind: Namespace
metadata: {name: kept, labels: {pod-security.kubernetes.io/enforce: privileged}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: kept}
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: kept}
stringData: {password: THE-PASSWORD}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: stays, namespace: kept}
spec:
  selector: {matchLabels: {app: stays}}
  template:
    metadata: {labels: {app: stays}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: stays, image: "docker.io/library/busybox:1.37", command: [netbox, sleep]}]
`

// backedUp makes objects and an archive that has them, with more arguments of kgpu backup. It returns its path, and what there was.
func (c *cluster) backedUp(t *testing.T, more ...string) (archive, was string) {
	t.Helper()
	c.k(t, "apply", "-f", file(t, "kept.yaml", kept))
	c.k(t, "-n", "kept", "rollout", "status", "deployment/stays", "--timeout=120s")
	archive = filepath.Join(t.TempDir(), "backup.tar.gz")
	kgpu(t, 0, append([]string{"backup", "--file", archive, "--output", "json", "-i", c.inventory}, more...)...)
	if info, err := os.Stat(archive); err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if left := c.exec(t, "cp1", "ls -d /var/lib/kgpu/backup* 2>/dev/null || :"); left != "" {
		t.Errorf("it left %s", left)
	}
	return archive, c.identities(t)
}

// identities are the UIDs of what a backup has, and of all nodes.
func (c *cluster) identities(t *testing.T) string {
	t.Helper()
	format := `jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.uid}{"\n"}{end}`
	return c.k(t, "-n", "kept", "get", "configmap/settings", "secret/password", "deployment/stays", "-o", format) + "\n" +
		c.k(t, "get", "namespace/kept", "namespace/default", "-o", format) + "\n" + c.k(t, "get", "nodes", "-o", format)
}

// cameBack wants what the archive has to be there, running, and nothing that came later.
func (c *cluster) cameBack(t *testing.T, was string) {
	t.Helper()
	if is := c.identities(t); is != was {
		t.Errorf("there was\n%s\nand is\n%s", was, is)
	}
	c.k(t, "-n", "kept", "rollout", "status", "deployment/stays", "--timeout=120s")
	if got := c.k(t, "-n", "kept", "get", "secret", "password", "-o", "jsonpath={.data.password}"); got != "VEhFLVBBU1NXT1JE" {
		t.Errorf("the Secret is %q", got)
	}
	if got := c.k(t, "get", "namespaces", "-o", "name"); strings.Contains(got, "namespace/later") {
		t.Errorf("what came later is there: %s", got)
	}
	kgpu(t, 0, "plan", c.inventory)
}

// changes deletes by mistake what the backup has, and makes something that it has not, with a pod.
func (c *cluster) changes(t *testing.T) {
	t.Helper()
	c.k(t, "delete", "namespace", "kept")
	later := strings.NewReplacer("namespace: kept", "namespace: later", "name: kept", "name: later").Replace(kept)
	c.k(t, "apply", "-f", file(t, "later.yaml", later))
	c.k(t, "-n", "later", "rollout", "status", "deployment/stays", "--timeout=120s")
}

// laterEnds wants the pods of which the backup does not know to end.
func (c *cluster) laterEnds(t *testing.T, hosts ...string) {
	t.Helper()
	for _, h := range hosts {
		c.exec(t, h, `for i in $(seq 60); do
			left=; for id in $(ctr -n k8s.io containers list -q 'labels."io.kubernetes.pod.namespace"==later'); do left+=$(ctr -n k8s.io tasks list | grep "^$id .*RUNNING") || :; done
			[ -n "$left" ] || exit 0; sleep 1
		done; echo "$left" >&2; exit 1`)
	}
}

// restored deletes by mistake what an encrypted backup has: it comes back, and the cards are proven.
func (c *cluster) restored(t *testing.T, cards int, hosts ...string) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := file(t, "key.txt", key.String()+"\n")
	archive, was := c.backedUp(t, "--recipient", key.Recipient().String())
	c.changes(t)
	broken := file(t, "broken.tar.gz", read(t, archive)[:10_000])
	kgpu(t, 225, "restore", broken, "--identity", identity, "--yes", "-i", c.inventory)
	s := kgpu(t, 0, "restore", archive, "--identity", identity, "--yes", "--output", "json", "-i", c.inventory)
	c.cameBack(t, was)
	c.laterEnds(t, hosts...)
	if cards > 0 {
		c.proven(t, s, cards)
	}
	c.k(t, "delete", "namespace", "kept")
}

// TestRestore backs a cluster up and loses it in all ways: what is stored, while kgpu is killed in each step of the restore, or after an upgrade; the control plane
// with its disk, which comes back as a fresh machine; and for good, so that another machine with another address takes its place. The
// worker is never reset, and its card is proven each time.
func TestRestore(t *testing.T) {
	long(t)
	l := newLab(t, []string{"gpu"}, "--workers", "2", "--gpus", "w1=1xT4")
	d := desired{version: "1.36.2", runtime: "containerd", network: "flannel", more: l.forCards(), hosts: []string{l.host("cp1", "name: cp1"), l.host("w1", "name: w1")}}
	c := newCluster(t, l, d)
	must(t, "up", func(t *testing.T) { c.up(t) })
	archive, was := c.backedUp(t)
	joined := func() string { return c.exec(t, "w1", "stat -c '%i %Y' /etc/kubernetes/kubelet.conf") }
	before := joined()
	restore := func(t *testing.T) {
		t.Helper()
		s := kgpu(t, 0, "restore", archive, "--yes", "--output", "json", "-i", c.inventory)
		c.cameBack(t, was)
		if proven := s.cards(); len(proven) != 1 {
			t.Errorf("proven are %q", proven)
		}
		c.laterEnds(t, "w1")
		if now := joined(); now != before {
			t.Errorf("the worker was joined again: %s, it was %s", now, before)
		}
	}
	must(t, "killed in each step", func(t *testing.T) {
		c.changes(t)
		for _, step := range []string{"restore/begin", "restore/data", "restore/kubelet", "restore/end"} {
			s := start(t, "", "restore", archive, "--yes", "--output", "json", "-i", c.inventory)
			s.await(t, step+" began", func(e event) bool { return e.Event == "step.start" && e.Step == step })
			s.kill()
		}
		restore(t)
	})
	must(t, "the host loses power while its data is changed", func(t *testing.T) {
		s := start(t, "", "restore", archive, "--yes", "--output", "json", "-i", c.inventory)
		s.await(t, "the data is being changed", func(e event) bool { return e.Event == "step.start" && e.Step == "restore/data" })
		l.verb(t, "kill", "cp1")
		s.kill()
		l.verb(t, "start", "cp1")
		restore(t)
	})
	must(t, "after an upgrade", func(t *testing.T) {
		c.changes(t)
		d.version = "1.36.3"
		c.inventory = l.write(t, filepath.Dir(c.inventory), d)
		kgpu(t, 0, "up", "--yes", c.inventory)
		restore(t)
		if got := c.k(t, "-n", "kube-system", "get", "configmap", "kubeadm-config", "-o", "yaml"); !strings.Contains(got, "kubernetesVersion: v1.36.3") {
			t.Errorf("kubeadm has\n%s", got)
		}
	})
	must(t, "on a fresh machine with the same address", func(t *testing.T) {
		c.changes(t)
		l.verb(t, "kill", "cp1")
		if err := os.RemoveAll(l.Host("cp1")); err != nil {
			t.Fatal(err)
		}
		l.up(t, "--workers", "2")
		restore(t)
	})
	must(t, "on another machine with another address", func(t *testing.T) {
		c.changes(t)
		l.verb(t, "kill", "cp1")
		d.hosts[0] = fmt.Sprintf("{address: %s, name: cp1, role: control-plane}", l.addr["w2"])
		c.inventory = l.write(t, filepath.Dir(c.inventory), d)
		restore(t)
	})
	kgpu(t, 0, "reset", "--yes", "-i", c.inventory)
}

// share stands in for a directory of the owner's that control planes write their backups to.
const share = "/srv/backups"

// TestRestoreOfPlanes backs a cluster with three control planes up by its timers, to a directory of its owner's, and has it back: with all three alive, and when two of
// them are lost with their disks and the archive of the third is what is left. kgpu is killed on the way.
func TestRestoreOfPlanes(t *testing.T) {
	long(t)
	l := newLab(t, nil, "--workers", "3")
	virtual := l.addr["cp1"][:strings.LastIndexByte(l.addr["cp1"], '.')] + ".100"
	d := desired{
		version: "1.36", runtime: "containerd", network: "flannel", virtualIP: virtual, more: l.repositories() + "backup: {schedule: \"02:30\", keep: 2, to: " + share + "}\n",
		hosts: []string{l.host("cp1", ""), l.host("w1", "role: control-plane"), l.host("w2", "role: control-plane"), l.host("w3", "")},
	}
	c := newCluster(t, l, d)
	for _, h := range []string{"cp1", "w1", "w2"} {
		c.exec(t, h, "mkdir "+share)
	}
	must(t, "up", func(t *testing.T) { c.up(t) })
	c.k(t, "apply", "-f", file(t, "kept.yaml", kept))
	c.k(t, "-n", "kept", "rollout", "status", "deployment/stays", "--timeout=120s")
	was := c.identities(t)
	archive := c.madeByTimer(t, "w2")
	killedIn := func(t *testing.T, steps ...string) {
		t.Helper()
		for _, step := range steps {
			s := start(t, "", "restore", archive, "--yes", "--output", "json", "-i", c.inventory)
			s.await(t, step+" began", func(e event) bool { return e.Event == "step.start" && e.Step == step })
			s.kill()
		}
	}
	restored := func(t *testing.T, lost ...string) {
		t.Helper()
		kgpu(t, 0, "restore", archive, "--yes", "--output", "json", "-i", c.inventory)
		c.cameBack(t, c.withNodesOf(t, was, lost...))
		c.ready(t, "cp1", "w1", "w2", "w3")
		c.laterEnds(t, "w3")
		if members := c.etcdMembers(t, "w2"); members != "cp1 w1 w2" {
			t.Errorf("etcd has %s", members)
		}
	}
	must(t, "all are alive", func(t *testing.T) {
		c.changes(t)
		killedIn(t, "restore/begin", "restore/data", "restore/end")
		restored(t)
	})
	must(t, "while some are away", func(t *testing.T) {
		l.verb(t, "kill", "cp1")
		if s := kgpu(t, 98, "restore", archive, "--yes", "-i", c.inventory); !strings.Contains(s.stderr.String(), "would come back with the data that it has") {
			t.Errorf("it does not say why not:\n%s", s.stderr.String())
		}
		l.verb(t, "kill", "w1")
		if s := kgpu(t, 248, "restore", archive, "--yes", "-i", c.inventory); !strings.Contains(s.stderr.String(), "1 of 3 control planes can be reached") {
			t.Errorf("it does not say why not:\n%s", s.stderr.String())
		}
	})
	must(t, "two are lost with their disks", func(t *testing.T) {
		for _, h := range []string{"cp1", "w1"} {
			if err := os.RemoveAll(l.Host(h)); err != nil {
				t.Fatal(err)
			}
		}
		l.up(t, "--workers", "3")
		for _, h := range []string{"cp1", "w1"} {
			c.exec(t, h, "mkdir "+share)
		}
		killedIn(t, "restore/data", "cluster/join-control-plane")
		restored(t, "cp1", "w1")
		for _, h := range []string{"cp1", "w1"} {
			c.madeByTimer(t, h)
		}
	})
}

// madeByTimer is an archive that the timer of a control plane has made.
func (c *cluster) madeByTimer(t *testing.T, host string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(c.exec(t, host, "systemctl start kgpu-backup; base64 -w 0 $(ls "+share+"/kgpu-backup-* | tail -n 1)"))
	if err != nil {
		t.Fatal(err)
	}
	return file(t, "made-by-a-timer.tar.gz", string(text))
}

// withNodesOf is what identities told, with the UIDs that the nodes of these hosts have now: another machine is another node.
func (c *cluster) withNodesOf(t *testing.T, was string, hosts ...string) string {
	t.Helper()
	for _, h := range hosts {
		uid := c.k(t, "get", "node", h, "-o", "jsonpath={.metadata.uid}")
		was = regexp.MustCompile("Node/"+h+"=.*").ReplaceAllString(was, "Node/"+h+"="+uid)
	}
	return was
}
