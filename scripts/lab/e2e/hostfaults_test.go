package e2e

import (
	"slices"
	"strings"
	"testing"
)

// TestHostFaults has hosts, their package managers, mirrors and registries go wrong while a cluster comes up. Each run of kgpu up
// ends with the reason, and the next one carries on when the fault is gone.
func TestHostFaults(t *testing.T) {
	l := newLab(t, nil, "--workers", "1")
	d := desired{version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories(), hosts: []string{l.host("cp1", ""), l.host("w1", "")}}
	c := newCluster(t, l, d)
	const kubernetes, registry = "pkgs.k8s.io/core:/stable:/v1.36/deb/", "registry.k8s.io/v2/kube-controller-manager/"
	l.interruptDpkg(t, "w1", "socat")
	must(t, "a hold at another version is its owner's to undo", c.heldKubelet)
	fresh := l.snapshot(t, "cp1", "w1")

	t.Run("the data of an etcd", func(t *testing.T) { l.staleEtcd(t, d, "w1") })
	t.Run("a clock an hour wrong", func(t *testing.T) {
		l.setClock(t, "w1", "+61 minutes")
		c.stops(t, stop{exit: 58, host: "w1", reason: "HOST_CLOCK_SKEW", words: []string{"the clock is 1h"}})
	})
	t.Run("no DNS", func(t *testing.T) {
		l.noDNS(t, "w1")
		c.stops(t, stop{exit: 75, host: "w1", reason: "NET_NAME_UNRESOLVED", words: []string{"registry.k8s.io", "does not resolve"}})
	})
	l.unchanged(t, fresh)
	must(t, "a broken file of apt's sources", c.brokenSources)
	t.Run("the key of a repository is another", func(t *testing.T) {
		l.fault(t, kubernetes+"Release.key", "tamper")
		c.stops(t, stop{exit: 83, host: "cp1", step: "repo/kubernetes", reason: "REPO_KEY_MISMATCH", words: []string{l.env["KGPU_LAB_FINGERPRINT"]}},
			"--limit", l.addr["cp1"])
	})
	t.Run("the key of a repository comes cut short", func(t *testing.T) {
		long(t) // make test has scripts.TestKeyThatIsCutShort
		l.fault(t, kubernetes+"Release.key", "truncate")
		c.stops(t, stop{exit: 83, host: "cp1", step: "repo/kubernetes", reason: "REPO_KEY_MISMATCH", words: []string{"cut short", l.env["KGPU_LAB_FINGERPRINT"]}},
			"--limit", l.addr["cp1"])
	})
	t.Run("what a repository lists is another", func(t *testing.T) {
		l.fault(t, kubernetes+"InRelease", "tamper")
		c.stops(t, stop{exit: 34, host: "cp1", step: "repo/kubernetes", reason: "REPO_CONTENT_MISMATCH", words: []string{"signed"}},
			"--limit", l.addr["cp1"])
	})
	t.Run("DNS goes while packages are installed", func(t *testing.T) {
		long(t) // make test has scripts.TestNamesThatDoNotResolve
		l.noDNS(t, "cp1")
		s := c.stops(t, stop{exit: 75, host: "cp1", step: "repo/kubernetes", reason: "NET_NAME_UNRESOLVED", words: []string{"pkgs.k8s.io"}, retried: true},
			"--limit", l.addr["cp1"], "--ignore", "NET_NAME_UNRESOLVED")
		told := false
		for _, e := range s.of("wait") {
			told = told || e.Reason == "NET_NAME_UNRESOLVED" && strings.Contains(e.Text, "pkgs.k8s.io")
		}
		if !told {
			t.Error("nobody was told what is waited for")
		}
	})
	t.Run("a package is another, while somebody upgrades", func(t *testing.T) {
		l.fault(t, kubernetes+"amd64/kubeadm_", "tamper")
		s := c.upgrading(t, "--limit", l.addr["cp1"])
		c.stopped(t, s, stop{exit: 34, host: "cp1", step: "kube/packages", reason: "REPO_CONTENT_MISMATCH", words: []string{"kubeadm_1.36", "it has sha256 ", "expected "}})
		if !slices.ContainsFunc(s.of("log"), func(e event) bool { return strings.Contains(e.Text, "some repositories did not answer") }) {
			t.Error("nothing is said of the dead repositories")
		}
		if left := l.exec(t, "cp1", "dpkg-query -W -f '${db:Status-Status}' kubeadm 2>/dev/null || :"); left == "installed" {
			t.Error("the other package was installed")
		}
	})
	t.Run("a package comes cut short", func(t *testing.T) {
		long(t) // make test has scripts.TestOtherPackageThanTheListsSay
		l.fault(t, kubernetes+"amd64/kubeadm_", "truncate")
		c.stops(t, stop{exit: 34, host: "cp1", step: "kube/packages", reason: "REPO_CONTENT_MISMATCH", words: []string{"kubeadm_1.36"}}, "--limit", l.addr["cp1"])
	})
	t.Run("a package fills the disk", func(t *testing.T) {
		l.exec(t, "cp1", "mount -t tmpfs -o size=8m tmpfs /opt") // dpkg unpacks kubernetes-cni there
		t.Cleanup(func() { l.exec(t, "cp1", "umount /opt") })
		c.stops(t, stop{exit: 55, host: "cp1", step: "kube/packages", reason: "HOST_DISK_FULL",
			words: []string{"/opt has ", " of 8.0MiB free", "most is in /opt (", "No space left on device"}}, "--limit", l.addr["cp1"])
		if got := l.exec(t, "cp1", "dpkg-query -W -f '${db:Status-Status}' kubernetes-cni 2>/dev/null || :"); got == "installed" {
			t.Error("there was room after all")
		}
	})
	t.Run("a layer of an image is another", func(t *testing.T) {
		l.fault(t, registry+"blobs/", "tamper")
		c.stops(t, stop{exit: 33, host: "cp1", step: "cluster/init", reason: "IMAGE_MISMATCH", words: []string{"kube-controller-manager", "digest"}})
	})
	t.Run("a layer of an image comes cut short", func(t *testing.T) {
		l.fault(t, registry+"blobs/", "truncate")
		c.stops(t, stop{exit: 77, host: "cp1", step: "cluster/init", reason: "REGISTRY_UNREACHABLE", words: []string{"kube-controller-manager"}, retried: true})
		if got := l.exec(t, "cp1", "ctr -n k8s.io images list -q | grep kube-controller-manager || :"); got != "" {
			t.Errorf("the image is there: %s", got)
		}
	})
	t.Run("an image fills the disk", func(t *testing.T) {
		l.exec(t, "cp1", "systemctl stop containerd; mount -t tmpfs -o size=24m tmpfs /var/lib/containerd; systemctl start containerd")
		t.Cleanup(func() {
			l.exec(t, "cp1", "systemctl stop containerd; umount /var/lib/containerd; systemctl start containerd")
		})
		c.stops(t, stop{exit: 55, host: "cp1", step: "cluster/init", reason: "HOST_DISK_FULL",
			words: []string{"/var/lib/containerd has ", " of 24MiB free", "most is in /var/lib/containerd (", "no space left on device"}}, "--ignore", "HOST_DISK_FULL")
	})
	must(t, "kubeadm init is killed", c.initIsKilled)
	t.Run("registries recover", func(t *testing.T) {
		// What kubeadm pulls fails a few times; what kubelets pull, until somebody was told.
		l.fault(t, registry+"manifests/", "status=500,times=4")
		l.fault(t, registry+"manifests/", "status=429,times=4,retry-after=1")
		l.fault(t, "ghcr.io/v2/", "status=503")
		s := start(t, "", "up", "--output", "json", c.inventory)
		s.await(t, "it told which image the nodes wait for, and what the registry answers", func(e event) bool {
			return e.Event == "wait" && e.Step == "cluster/ready" && strings.Contains(e.Text, "ghcr.io/flannel-io/") && strings.Contains(e.Text, "503")
		})
		if left := lines(l.verb(t, "fault", "list")); len(left) != 1 {
			t.Errorf("faults that nobody met: %q", left)
		}
		l.verb(t, "fault", "clear")
		if code := s.wait(t); code != 0 {
			t.Fatalf("exit status %d", code)
		}
		c.ready(t, "cp1", "w1")
		if got := l.exec(t, "w1", "apt-mark showhold kubelet; kubelet --version"); !strings.HasPrefix(got, "kubelet\nKubernetes v1.36.") {
			t.Errorf("kubelet on w1: %s", got)
		}
	})
	t.Run("the key of a repository has expired", c.keyExpires)
	t.Run("up again", func(t *testing.T) { c.nothingToDo(t, "cp1", "w1") })
}

// stop is how a run of kgpu up must end.
type stop struct {
	exit               int
	host, step, reason string // no step: before the first one
	words              []string
	retried            bool // the step is tried several times; otherwise it must not be
}

// stops runs kgpu up and wants it to end like this.
func (c *cluster) stops(t *testing.T, want stop, flags ...string) *session {
	t.Helper()
	s := start(t, "", append([]string{"up", "--output", "json", c.inventory}, flags...)...)
	c.stopped(t, s, want)
	return s
}

// stopped waits for the end of a run, and wants it to be like this.
func (c *cluster) stopped(t *testing.T, s *session, want stop) {
	t.Helper()
	if got := s.wait(t); got != want.exit {
		t.Fatalf("exit status %d, want %d", got, want.exit)
	}
	errors := s.of("error")
	if len(errors) == 0 || want.step != "" && len(errors) > 1 {
		t.Errorf("errors: %v", errors)
	}
	var said string
	for _, e := range errors {
		said += e.Text + "\n"
		if e.Reason != want.reason || e.Step != want.step || e.Host != c.addr[want.host] {
			t.Errorf("error %v, want %+v", e, want)
		}
	}
	for _, word := range want.words {
		if !strings.Contains(said, word) {
			t.Errorf("%q is not said:\n%s", word, said)
		}
	}
	tries := 0
	for _, e := range s.of("step.start") {
		if want.step == "" {
			t.Errorf("a step was begun: %v", e)
		}
		if e.Step == want.step && e.Host == c.addr[want.host] {
			tries++
		}
	}
	if want.step != "" && (tries > 1) != want.retried {
		t.Errorf("%d tries", tries)
	}
}

// fault lets the lab's internet go wrong until the test ends.
func (l *lab) fault(t *testing.T, where, what string) {
	t.Helper()
	l.verb(t, "fault", "add", where, what)
	t.Cleanup(func() { l.verb(t, "fault", "clear") })
}

// noDNS takes the names of the lab's internet away from a host until the test ends.
func (l *lab) noDNS(t *testing.T, host string) {
	t.Helper()
	l.exec(t, host, "cp /etc/hosts /root/hosts; sed '/# the lab.s internet$/d' /root/hosts >/etc/hosts; ! getent hosts pkgs.k8s.io")
	t.Cleanup(func() { l.exec(t, host, "cat /root/hosts >/etc/hosts; rm /root/hosts") })
}

// setClock lets what kgpu reads of a host's clock be off by so much until the test ends: see REAL.md.
func (l *lab) setClock(t *testing.T, host, off string) {
	t.Helper()
	l.exec(t, host, `printf '%s\n' '#!/bin/sh' '[ "$*" = -s ] || exec /bin/bash "$@"' \
'exec /bin/bash -c "unset EPOCHREALTIME; EPOCHREALTIME=$(date -d "`+off+`" +%s.%6N); . /dev/stdin"' >/usr/local/sbin/bash
chmod 755 /usr/local/sbin/bash`)
	t.Cleanup(func() { l.exec(t, host, "rm /usr/local/sbin/bash") })
}
