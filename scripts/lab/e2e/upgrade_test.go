package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// upgradeKubernetes has the cluster come to this version while kgpu is killed: when the control plane is at work, and when a node is drained.
// Somebody who says no ends nothing. A node whose cards are at work stays as it is for as long as that is asked for; then its pod goes
// where cards are. stays is how the plan says what that node keeps.
func (c *cluster) upgradeKubernetes(t *testing.T, version, stays string) {
	t.Helper()
	was := c.versions(t)
	kgpu(t, 0, "upgrade", "--check", version, "-i", c.inventory)
	c.asks(t, "upgrade", version, "-i", c.inventory)
	if now := c.versions(t); now != was {
		t.Errorf("nobody agreed, and the cluster went from %s to %s", was, now)
	}
	job := c.job(t)
	busy := strings.Fields(job)[1]
	free := map[string]string{"w1": "w2", "w2": "w1"}[busy]
	client := watchAPI(c.addr["cp1"], "readyz", 250*time.Millisecond)
	began := time.Now()
	first := start(t, "", "upgrade", version, "--yes", "--output", "json", "-i", c.inventory)
	first.await(t, "the control plane is upgraded", func(e event) bool { return e.Event == "step.start" && e.Step == "cluster/upgrade" })
	first.kill()
	second := start(t, "", "up", "--skip-busy", "--yes", "--output", "json", c.inventory)
	second.await(t, free+" is upgraded", func(e event) bool {
		return e.Event == "step.start" && e.Host == c.addr[free] && e.Step == "kube/upgrade"
	})
	second.kill()
	third := kgpu(t, 0, "up", "--skip-busy", "--yes", "--output", "json", c.inventory)
	if now := c.job(t); now != job {
		t.Errorf("the job was %s, and is %s", job, now)
	}
	if !slices.ContainsFunc(third.of("warning"), func(e event) bool { return strings.Contains(e.Text, ": its node stays "+stays) }) {
		t.Errorf("nothing is said of %s, which stays %s: %v", busy, stays, third.of("warning"))
	}
	if now := c.versions(t); !strings.Contains(now, free+"=v"+version) || strings.Contains(now, busy+"=v"+version) {
		t.Errorf("the cards of %s are at work, and the cluster has %s", busy, now)
	}
	fourth := kgpu(t, 0, "up", "--yes", "--output", "json", c.inventory)
	t.Logf("the upgrade took %s; the API did not answer for up to %s", time.Since(began).Round(time.Second), client.stop().Round(100*time.Millisecond))
	now := c.versions(t)
	for _, want := range []string{"cp1=v" + version, "w1=v" + version, "w2=v" + version, `"gitVersion": "v` + version + `"`} {
		if !strings.Contains(now, want) {
			t.Errorf("the cluster has %s, want %s", now, want)
		}
	}
	c.drainedInTurn(t, []string{"cp1", "w1", "w2"}, first, second, third, fourth)
	c.offers(t, "cp1= w1=2 w2=2")
	c.trains(t)
	const kept = "cd /var/lib/kgpu/snapshots; stat -c '%a %U' .; stat -c '%n %a %U' *; [ -z \"$(find . -type f -size -98k)\" ]; test ! -e ../upgrading"
	from, _, _ := strings.Cut(strings.TrimPrefix(was, "cp1=v"), " ")
	if got := lines(c.exec(t, "cp1", kept)); got[0] != "700 root" || !slices.Contains(got, "etcd-"+from+".db 600 root") {
		t.Errorf("the snapshots of etcd are %q", got)
	}
}

// job is the UID of the pod that has all cards of a node, and the node.
func (c *cluster) job(t *testing.T) string {
	t.Helper()
	return c.k(t, "get", "pods", "-l", "app=training", "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].spec.nodeName}")
}

// versions are those of the nodes' kubelets and of the API server.
func (c *cluster) versions(t *testing.T) string {
	t.Helper()
	return strings.Join(lines(c.k(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.nodeInfo.kubeletVersion}{"\n"}{end}`)), " ") +
		" api=" + c.k(t, "get", "--raw", "/version")
}

// drainedInTurn wants these nodes to have been drained by these runs, one after the other: none before the one before it had pods again.
func (c *cluster) drainedInTurn(t *testing.T, nodes []string, runs ...*session) {
	t.Helper()
	var away, all []string
	for _, s := range runs {
		for _, e := range s.seen() {
			switch node := e.Step[strings.LastIndexByte(e.Step, '/')+1:]; {
			case e.Event == "step.start" && strings.HasPrefix(e.Step, "node/drain/") && !slices.Contains(away, node):
				away, all = append(away, node), append(all, node)
			case e.Event == "step.done" && strings.HasPrefix(e.Step, "node/uncordon/"):
				away = slices.DeleteFunc(away, func(n string) bool { return n == node })
			}
			if len(away) > 1 {
				t.Fatalf("%q were drained at the same time", away)
			}
		}
	}
	if slices.Sort(all); !slices.Equal(slices.Compact(all), nodes) || len(away) > 0 {
		t.Errorf("drained were %q, and %q still are", all, away)
	}
}
