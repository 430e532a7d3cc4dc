package e2e

import (
	"strings"
	"testing"
)

// heldKubelet has somebody's kubelet of another version on w1, which is held: kgpu refuses, and changes nothing.
func (c *cluster) heldKubelet(t *testing.T) {
	c.exec(t, "w1", oldKubelet)
	before := c.snapshot(t, "cp1", "w1")
	s := kgpu(t, 35, "up", c.inventory)
	if said := s.stderr.String(); !strings.Contains(said, "kubelet is held at 1.30.2-1.1") || !strings.Contains(said, "[HOST_PACKAGE_HELD]") {
		t.Errorf("said %s", said)
	}
	c.unchanged(t, before)
	c.exec(t, "w1", "apt-mark unhold kubelet")
}

// brokenSources has a file of apt's on cp1 that apt does not understand, and a dpkg on w1 that was interrupted.
func (c *cluster) brokenSources(t *testing.T) {
	const broken = "/etc/apt/sources.list.d/broken.list"
	c.exec(t, "cp1", "rm -rf /var/lib/apt/lists/*; echo 'deb https://ppa.example.invalid' >"+broken)
	s := kgpu(t, 37, "up", "--output", "json", c.inventory)
	if e := s.of("error"); len(e) == 0 || e[0].Reason != "HOST_APT_CONFIG" || !strings.Contains(e[0].Text, "Malformed entry 1 in list file "+broken) {
		t.Errorf("errors: %v", e)
	}
	if got := c.exec(t, "w1", "dpkg-query -W -f '${db:Status-Abbrev}' socat; dpkg --audit"); got != "ii" {
		t.Errorf("socat, whose installation was interrupted, on w1: %q", got)
	}
	if did := strings.Join(c.did(s), "\n"); !strings.Contains(did, "w1 os/dpkg") || strings.Contains(did, "cp1 os/dpkg") {
		t.Errorf("steps:\n%s", did)
	}
	c.exec(t, "cp1", "rm "+broken)
}

// upgrading starts kgpu up while somebody upgrades cp1, which has dead repositories, too: kgpu names who has the lock, and waits
// until that one has ended by itself.
func (c *cluster) upgrading(t *testing.T, flags ...string) *session {
	t.Helper()
	const dead = "/etc/apt/sources.list.d/dead.list"
	c.exec(t, "cp1", "rm -rf /var/lib/apt/lists/*; printf '%s\\n' 'deb http://127.0.0.1:1/x stable main' 'deb https://ppa.example.invalid/x stable main' >"+dead)
	t.Cleanup(func() { c.exec(t, "cp1", "rm "+dead) })
	pid := c.upgrade(t, "cp1")
	s := start(t, "", append([]string{"up", "--output", "json", c.inventory}, flags...)...)
	warned := s.await(t, "it warned of the one that has the lock", func(e event) bool { return e.Event == "warning" && strings.Contains(e.Text, "unattended-upgr") })
	if !strings.Contains(warned.Text, "unattended-upgr (pid "+pid+")") {
		t.Errorf("the warning is %v", warned)
	}
	waits := s.await(t, "cp1 waits for the lock", func(e event) bool {
		return e.Event == "wait" && e.Host == c.addr["cp1"] && strings.Contains(e.Text, "the package manager")
	})
	if !strings.Contains(waits.Text, "held by unattended-upgr (pid "+pid+", of e2e-upgrade.service, for ") || !strings.Contains(waits.Text, "; kgpu waits for another ") {
		t.Errorf("the wait is %v", waits)
	}
	c.exec(t, "cp1", "kill -0 "+pid+"; : >/run/e2e-let-go; while kill -0 "+pid+" 2>/dev/null; do sleep 0.1; done; [ -e /run/e2e-went-by-itself ]")
	return s
}

// oldKubelet installs a kubelet of somebody else's, and holds it.
const oldKubelet = `d=$(mktemp -d); mkdir -p $d/DEBIAN
printf '%s\n' 'Package: kubelet' 'Version: 1.30.2-1.1' 'Architecture: all' 'Maintainer: e2e <e2e@example.org>' 'Description: e2e' >$d/DEBIAN/control
dpkg-deb -b $d /tmp/kubelet.deb >/dev/null; dpkg -i --force-all /tmp/kubelet.deb; rm -r $d /tmp/kubelet.deb; apt-mark hold kubelet`

// interruptDpkg kills dpkg while it unpacks a package of the distribution's.
func (l *lab) interruptDpkg(t *testing.T, host, name string) {
	t.Helper()
	l.exec(t, host, `name=`+name+`
cd $(mktemp -d)
{ apt-get download $name || { apt-get update && apt-get download $name; }; } >/dev/null 2>&1
printf '%s\n' '#!/bin/bash' 'if [[ $1 != --fsys-tarfile ]]; then exec /usr/bin/dpkg-deb "$@"; fi' \
  '/usr/bin/dpkg-deb "$@" | head -c 20000' ': >half' 'exec sleep 600' >dpkg-deb
chmod +x dpkg-deb
PATH=$PWD:$PATH dpkg -i --force-all ./$name*.deb >log 2>&1 &
timeout 60 bash -c 'until [ -e half ]; do sleep 0.1; done' || { cat log; exit 1; }
kill -KILL $!
wait $! 2>/dev/null || :
pkill -x -f "sleep 600" || :
dir=$PWD; cd /; rm -r "$dir"
dpkg-query -W -f '${db:Status-Status} ${db:Status-Eflag}' $name | grep -qx 'half-installed reinstreq'`)
}

// upgrade has a program with the name of unattended-upgrades' hold a lock until /run/e2e-let-go is there.
func (l *lab) upgrade(t *testing.T, host string) (pid string) {
	t.Helper()
	return l.exec(t, host, `systemd-run --quiet --unit=e2e-upgrade perl -MFcntl -e '
$0 = "unattended-upgr";
open my $lock, ">>", "/var/lib/dpkg/lock-frontend" or die;
my $flock = pack("s s x4 q q l x4", F_WRLCK, 0, 0, 0, 0);
fcntl $lock, F_SETLK, $flock or die;
open my $has, ">", "/run/e2e-has-it"; close $has;
select undef, undef, undef, 0.1 until -e "/run/e2e-let-go";
open my $went, ">", "/run/e2e-went-by-itself"; close $went;'
until [ -e /run/e2e-has-it ]; do systemctl is-active -q e2e-upgrade; sleep 0.1; done
systemctl show --value -p MainPID e2e-upgrade`)
}
