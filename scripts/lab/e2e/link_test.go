package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLink makes a cluster of hosts that are not plain: one is Ubuntu with Docker's packages of containerd, the way to another
// leads through a bastion, the control plane asks itself for names. They are taken away while the cluster comes up: one for good,
// one by a bastion that acknowledges and forwards nothing, one by a cut.
func TestLink(t *testing.T) {
	l := newLab(t, []string{"noble"}, "--workers", "0", "--with", "ubuntu", "--with", "bastion")
	hosts := []string{"cp1", "ubuntu1", "inner1"}
	// cp1 asks itself for names: systemd-resolved, which knows the servers. In a pod, that address is the pod's own. The lab's
	// names are in /etc/hosts.
	const behind = "/run/systemd/resolve/resolv.conf"
	l.exec(t, "cp1", "install -D -m 644 /etc/resolv.conf "+behind+"; echo 'nameserver 127.0.0.53' >/etc/resolv.conf")
	// Docker's repository has nothing for Debian: its own containerd, which is older than 2, is what there is.
	l.fault(t, "download.docker.com/linux/debian/dists", "status=404")
	// SSH gets to the private segment through the bastion alone. Nodes must reach each other, for which an administrator
	// sets routes.
	segment := l.addr["inner1"][:strings.LastIndex(l.addr["inner1"], ".")] + ".0/24"
	for _, h := range hosts[:2] {
		l.exec(t, h, "ip route add "+segment+" via "+l.addr["bastion1"])
	}
	d := desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories() + "timeouts: {link: 25s, reboot: 25s}\n",
		hosts: []string{l.host("cp1", ""), l.host("ubuntu1", ""), l.host("inner1", "ssh: {bastion: {address: "+l.addr["bastion1"]+"}}")},
	}
	c := newCluster(t, l, d)

	must(t, "a worker never comes back, a bastion is deaf", func(t *testing.T) {
		s := start(t, "", "up", "--verbose", c.inventory)
		s.awaitText(t, `:\d\d  `+l.addr["inner1"]+`\s+runtime/containerd`) // the plan, which comes first, has no times
		// Those that serve the connection; who connects from now on gets others.
		frozen := strings.Join(strings.Fields(l.exec(t, "bastion1", "pids=$(pgrep -f '^sshd(-session)?: ubuntu'); kill -STOP $pids; echo $pids")), " ")
		s.awaitText(t, `:\d\d  `+l.addr["ubuntu1"]+`\s+(repo/kubernetes|runtime/containerd|kube/packages)`)
		l.verb(t, "kill", "ubuntu1")
		code := s.wait(t)
		l.exec(t, "bastion1", "kill -KILL "+frozen+" 2>/dev/null || :")
		said := s.stdout.String()
		if code != 24 {
			t.Fatalf("exit status %d, want 24\n%s", code, said)
		}
		for host, want := range map[string]string{"ubuntu1": `giving up in 25s`, "inner1": `giving up in 25s`} {
			lost := regexp.MustCompile(l.addr[host] + `\s+waiting: connection lost (\d+)s ago.*` + want).FindStringSubmatch(said)
			if lost == nil {
				t.Fatalf("%s: the loss was not told:\n%s", host, said)
			}
			if after, _ := strconv.Atoi(lost[1]); after >= 20 {
				t.Errorf("%s: noticed %d s after its last sign of life", host, after)
			}
		}
		for _, want := range []string{
			l.addr["inner1"] + `\s+waited: the connection is back after`,
			`\n  ` + l.addr["ubuntu1"] + `\s+\S+\s+\S+, .*SSH_LOST\n`,
			`this carries on: kgpu up --inventory ` + regexp.QuoteMeta(c.inventory),
			`warning: ` + l.addr["ubuntu1"] + ` is excluded`,
		} {
			if !regexp.MustCompile(want).MatchString(said) {
				t.Errorf("%s is not in\n%s", want, said)
			}
		}
		c.ready(t, "cp1", "inner1")
		if got := l.exec(t, "cp1", "tr '\\0' ' ' </proc/$(pidof kubelet)/cmdline"); !strings.Contains(got, behind) {
			t.Errorf("pods on cp1 ask the servers that are not in %s: %s", behind, got)
		}
	})
	must(t, "the worker is back, and its link is cut", func(t *testing.T) {
		l.verb(t, "start", "ubuntu1")
		l.exec(t, "ubuntu1", "ip route add "+segment+" via "+l.addr["bastion1"])
		d.more = l.repositories()
		l.write(t, filepath.Dir(c.inventory), d)
		s := start(t, "", "up", "--output", "json", c.inventory)
		s.await(t, "ubuntu1 works", func(e event) bool { return e.Event == "step.start" && e.Host == l.addr["ubuntu1"] })
		l.verb(t, "cut", "ubuntu1")
		time.Sleep(3 * time.Second)
		l.verb(t, "heal", "ubuntu1")
		s.await(t, "ubuntu1 installs", func(e event) bool {
			return e.Event == "step.start" && e.Host == l.addr["ubuntu1"] && e.Step == "kube/packages"
		})
		l.verb(t, "cut", "ubuntu1")
		cut := time.Now()
		var healed sync.WaitGroup
		healed.Go(func() {
			time.Sleep(time.Until(cut.Add(time.Minute)))
			// Longer than the step, and all that was to follow it.
			l.exec(t, "ubuntu1", "while systemctl list-units --plain --no-legend 'kgpu-*' | grep -q .; do sleep 0.2; done")
			l.verb(t, "heal", "ubuntu1")
		})
		code := s.wait(t)
		healed.Wait()
		if code != 0 {
			t.Fatalf("exit status %d", code)
		}
		var waits []event
		for _, e := range s.of("wait") {
			if e.Host == l.addr["ubuntu1"] && e.Reason == "SSH_LOST" {
				waits = append(waits, e)
			}
		}
		if len(waits) < 4 {
			t.Fatalf("the cut was told as %v", waits)
		}
		if after := waits[0].Time.Sub(cut); after <= 0 || after >= 20*time.Second {
			t.Errorf("noticed %s after the cut: %v", after, waits[0])
		}
		if last := waits[len(waits)-1]; last.Millis < 40_000 || last.Time.Sub(cut) < time.Minute {
			t.Errorf("the end of the cut was told as %v", last)
		}
		c.ready(t, hosts...)
		c.noSecrets(t, s, hosts...)
		l.heardOnce(t, s, "ubuntu1")
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
		if said := kgpu(t, 0, "plan", c.inventory).stdout.String(); strings.Count(said, "HOST_CONTAINERD_OLD") != 1 || !strings.Contains(said, l.addr["cp1"]+", "+l.addr["inner1"]+": containerd is 1.7.") {
			t.Errorf("the plan says\n%s", said)
		}
		if got := l.exec(t, "ubuntu1", "cat /etc/apt/sources.list.d/kgpu-docker.list"); !strings.Contains(got, "https://download.docker.com/linux/ubuntu noble stable") {
			t.Errorf("ubuntu1's repository: %s", got)
		}
	})
	t.Run("proof", func(t *testing.T) { c.proof(t, "inner1", "ubuntu1") })
	t.Run("up again", func(t *testing.T) { c.nothingToDo(t, hosts...) })
	t.Run("reset of a worker", func(t *testing.T) {
		s := kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory, "--output", "json", l.addr["ubuntu1"])
		wantSteps(t, c.did(s), "cp1 node/delete/ubuntu1", "cp1 node/drain/ubuntu1", "ubuntu1 host/reset")
		c.ready(t, "cp1", "inner1")
	})
}

// awaitText waits until what kgpu said so far has the expression.
func (s *session) awaitText(t *testing.T, expression string) {
	t.Helper()
	want := regexp.MustCompile(expression)
	s.mu.Lock()
	defer s.mu.Unlock()
	for !want.Match(s.stdout.Bytes()) {
		if s.closed {
			t.Fatalf("kgpu ended before it said %s", expression)
		}
		s.more.Wait()
	}
}

// colour is what kgpu takes out of lines.
var colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// heardOnce compares what a run heard of a host with what the host wrote: every line once, in order.
func (l *lab) heardOnce(t *testing.T, s *session, host string) {
	t.Helper()
	var heard []string
	for _, e := range s.events {
		if e.Event == "log" && e.Host == l.addr[host] {
			heard = append(heard, strings.TrimSpace(e.Step+"\t"+e.Text))
		}
	}
	run := s.events[0].Run
	wrote := lines(l.exec(t, host, fmt.Sprintf("cd /var/lib/kgpu/run; for b in $(ls -d %[1]s-* | sort --version-sort); do grep $'^L\\t' $b/events | cut -f 2- || :; done", run)))
	for i := range wrote {
		wrote[i] = strings.TrimSpace(colour.ReplaceAllString(wrote[i], ""))
	}
	if !slices.Equal(heard, wrote) {
		t.Errorf("%s wrote %d lines, kgpu heard %d:\n%s\n--- heard\n%s", host, len(wrote), len(heard), strings.Join(wrote, "\n"), strings.Join(heard, "\n"))
	}
}
