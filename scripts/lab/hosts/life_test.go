package hosts_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"kgpu.dev/kgpu/scripts/lab/process"
)

const limit = time.Minute

// TestLife takes one small lab through everything that happens to hosts.
func TestLife(t *testing.T) {
	l := newLab(t, "labtest")
	l.must("up", "--workers", "1")

	t.Run("hosts are machines of their own", func(t *testing.T) {
		l := testLab{l.Place, t}
		for _, cmd := range []string{"hostname", "cat /etc/machine-id", "cat /proc/sys/kernel/random/boot_id", "cat /etc/ssh/ssh_host_ed25519_key.pub", "hostname -I"} {
			if a, b := l.must("ssh", "cp1", cmd), l.must("ssh", "w1", cmd); a == b || a == "" {
				t.Errorf("%s: %q on cp1, %q on w1", cmd, a, b)
			}
		}
		if got := l.must("ssh", "cp1", "sudo id -u; cat /proc/1/comm; systemctl is-system-running --wait"); got != "0\nsystemd\nrunning" {
			t.Errorf("a host says %q", got)
		}
	})

	t.Run("up again changes nothing", func(t *testing.T) {
		l := testLab{l.Place, t}
		before := l.must("exec", "cp1", "cat", "/proc/sys/kernel/random/boot_id")
		l.must("up", "--workers", "1")
		if after := l.must("exec", "cp1", "cat", "/proc/sys/kernel/random/boot_id"); after != before {
			t.Error("cp1 was rebooted")
		}
	})

	t.Run("commands keep their exit status", func(t *testing.T) {
		l := testLab{l.Place, t}
		if _, errs, code := l.run("ssh", "w1", "exit 7"); code != 7 {
			t.Errorf("ssh: exit %d, want 7: %s", code, errs)
		}
		if _, errs, code := l.run("exec", "w1", "--", "sh", "-c", "exit 7"); code != 7 {
			t.Errorf("exec: exit %d, want 7: %s", code, errs)
		}
		l.fails("LAB_HOST_UNKNOWN", "exec", "nobody", "true")
	})

	t.Run("reboot from outside and inside", func(t *testing.T) {
		l := testLab{l.Place, t}
		l.must("exec", "w1", "touch", "/etc/stays", "/var/lib/stays", "/run/goes")
		before := l.boots("w1")
		l.must("reboot", "w1")
		if got := l.must("exec", "w1", "sh", "-c", "ls /etc/stays /var/lib/stays /run/goes 2>/dev/null || true"); got != "/etc/stays\n/var/lib/stays" {
			t.Errorf("after a reboot: %q", got)
		}
		stays := l.command("exec", "w1", "sleep", "86399") // as one who looks at a host, which goes down
		if err := stays.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stays.Process.Kill() }()
		if !process.Poll(limit, func() bool { _, _, code := l.run("exec", "w1", "pgrep", "-fx", "sleep 86399"); return code == 0 }) {
			t.Fatal("a command does not begin")
		}
		l.run("ssh", "w1", "sudo systemctl reboot")
		if !process.Poll(limit, func() bool { return l.boots("w1") == before+2 && l.state("w1") == "up" }) {
			t.Fatalf("w1 did not come back: %d boots, before %d", l.boots("w1"), before)
		}
		if err := stays.Wait(); err == nil {
			t.Error("a command survived its host")
		}
		l.must("up", "--workers", "1") // waits for its sshd
		l.must("ssh", "w1", "true")
	})

	t.Run("power off from inside", func(t *testing.T) {
		l := testLab{l.Place, t}
		l.run("ssh", "w1", "sudo systemctl poweroff")
		if !process.Poll(limit, func() bool { return l.state("w1") == "off" }) {
			t.Fatal("w1 is still on")
		}
		l.must("start", "w1")
		l.wantState("w1", "up")
	})

	t.Run("power cut", func(t *testing.T) {
		l := testLab{l.Place, t}
		for range 2 {
			l.must("kill", "w1")
			l.wantState("w1", "off")
		}
		l.wantState("cp1", "up")
		l.fails("LAB_HOST_OFF", "exec", "w1", "true")
		l.fails("LAB_HOST_OFF", "reboot", "w1")
		for range 2 {
			l.must("start", "w1")
			l.wantState("w1", "up")
		}
	})

	t.Run("cut and heal", func(t *testing.T) {
		l := testLab{l.Place, t}
		address := strings.Fields(l.must("exec", "w1", "hostname", "-I"))[0]
		reach := func() bool {
			_, _, code := l.run("exec", "cp1", "timeout", "1", "bash", "-c", "exec 3<>/dev/tcp/"+address+"/22")
			conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "22"), time.Second)
			if err == nil {
				_ = conn.Close()
			}
			if (code == 0) != (err == nil) {
				t.Errorf("cp1 reaches w1: exit %d; the machine: %v", code, err)
			}
			return code == 0
		}
		if !reach() {
			t.Fatal("w1 is not reachable to begin with")
		}
		for range 2 {
			l.must("cut", "w1")
		}
		if reach() {
			t.Error("w1 is reachable though cut")
		}
		if got := l.must("exec", "w1", "cat", "/sys/class/net/eth0/carrier"); got != "1" {
			t.Error("w1 notices the cut: its link is down")
		}
		l.must("reboot", "w1")
		if reach() {
			t.Error("a reboot healed the cut")
		}
		for range 2 {
			l.must("heal", "w1")
		}
		if !reach() {
			t.Error("w1 is not reachable though healed")
		}
	})

	t.Run("no way out", func(t *testing.T) {
		l := testLab{l.Place, t}
		for _, address := range []string{"10.96.0.1", "192.0.2.1"} { // a Service, and the documentation's internet
			out, errs, _ := l.run("exec", "cp1", "bash", "-c", "exec 3<>/dev/tcp/"+address+"/443")
			if !strings.Contains(errs, "Connection refused") {
				t.Errorf("connect to %s: %s%s", address, out, errs)
			}
		}
		l.must("exec", "cp1", "curl", "-fsS", "-o", "/dev/null", "https://pkgs.k8s.io/core:/stable:/v1.36/deb/InRelease")
	})

	t.Run("machine-wide settings are private", func(t *testing.T) {
		l := testLab{l.Place, t}
		before, err := os.ReadFile("/proc/sys/vm/overcommit_memory")
		if err != nil {
			t.Fatal(err)
		}
		other := "1"
		if strings.TrimSpace(string(before)) == other {
			other = "0"
		}
		l.must("exec", "w1", "sysctl", "-q", "-w", "vm.overcommit_memory="+other)
		if got := l.must("exec", "w1", "sysctl", "-n", "vm.overcommit_memory"); got != other {
			t.Errorf("the host reads back %s, want %s", got, other)
		}
		if after, _ := os.ReadFile("/proc/sys/vm/overcommit_memory"); string(after) != string(before) {
			t.Error("the host changed the machine")
		}
		l.must("exec", "w1", "sh", "-c", `printf 'Filename Type Size Used Priority\n/swap.img file 1 0 -2\n' > /proc/swaps`)
		if got := l.must("exec", "w1", "cat", "/proc/swaps"); !strings.Contains(got, "/swap.img") {
			t.Errorf("swap cannot be shown: %q", got)
		}
	})

	t.Run("snapshot and diff", func(t *testing.T) { snapshots(testLab{l.Place, t}) })

	t.Run("a killed supervisor takes its host along", func(t *testing.T) {
		l := testLab{l.Place, t}
		sup, init := l.supervisor("w1"), l.boot("w1").Init
		if err := sup.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if !sup.WaitGone(limit) || !init.WaitGone(limit) {
			t.Fatal("the host outlived its supervisor")
		}
		l.wantState("w1", "off")
		internet := l.record("internet.json")
		if err := internet.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if !internet.WaitGone(limit) { // a killed process may answer for a moment
			t.Fatal("the internet outlived SIGKILL")
		}
		l.must("up")
		l.wantState("w1", "up")
		l.wantState("internet", "up")
	})

	t.Run("down leaves only files, also of what crashed", func(t *testing.T) {
		l := testLab{l.Place, t}
		sup := l.supervisor("w1")
		if err := sup.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			l.must("down")
			l.nothingLeft(l.bridge())
		}
		l.wantState("cp1", "off")
	})

	t.Run("process ids used again", func(t *testing.T) {
		l := testLab{l.Place, t}
		stale := process.Record{PID: os.Getpid(), Start: 1}
		var err error
		if stale.Boot, err = process.MachineBoot(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{l.Host("cp1") + "/supervisor.json", l.State + "/internet.json"} {
			if err := process.Save(path, stale); err != nil {
				t.Fatal(err)
			}
		}
		l.wantState("cp1", "off")
		l.must("down") // would kill this test
		l.must("up")
		l.wantState("cp1", "up")
		l.wantState("internet", "up")
		l.must("exec", "w1", "test", "-e", "/etc/stays")
	})
}

func (l testLab) record(path ...string) process.Record {
	l.t.Helper()
	var r process.Record
	l.load(&r, path...)
	return r
}

func (l testLab) supervisor(host string) process.Record {
	l.t.Helper()
	return l.record("hosts", host, "supervisor.json")
}

type boot struct {
	Count int
	Init  process.Record
}

func (l testLab) boot(host string) boot {
	l.t.Helper()
	var b boot
	l.load(&b, "hosts", host, "boot.json")
	return b
}

// boots is how often a host booted.
func (l testLab) boots(host string) int {
	l.t.Helper()
	var n int
	l.load(&n, "hosts", host, "boots.json")
	return n
}

func (l testLab) load(v any, path ...string) {
	l.t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{l.State}, path...)...))
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func snapshots(l testLab) {
	t := l.t
	dir := t.TempDir()
	file := func(n int) string { return filepath.Join(dir, fmt.Sprint(n)) }
	l.must("snapshot", "-o", file(0), "cp1")
	l.must("ssh", "cp1", "sudo true")
	// Of so many in a second, systemd takes the last one for mounted a while longer.
	l.must("exec", "cp1", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do mount -t tmpfs gone /mnt; sleep 0.05; umount /mnt; done")
	l.must("diff", "cp1", file(0))
	// Pods' links come and go while a snapshot is taken.
	l.must("exec", "cp1", "systemd-run", "-q", "--unit", "pods", "sh", "-c",
		"while :; do for i in 1 2 3 4 5 6 7 8; do ip link add veth$i type veth peer name peer$i; done; for i in 1 2 3 4 5 6 7 8; do ip link del veth$i; done; done")
	l.must("snapshot", "-o", file(1), "cp1")
	l.must("exec", "cp1", "sh", "-c", "systemctl stop pods; for i in 1 2 3 4 5 6 7 8; do ip link del veth$i 2> /dev/null; done; true")
	l.must("diff", "cp1", file(0))

	for i, c := range []struct{ do, undo, want string }{
		{"touch /etc/new", "rm /etc/new", "+ file /etc/new"},
		{"chmod 700 /opt", "chmod 755 /opt", "~ file /opt"},
		{"echo x >> /etc/issue", "sed -i '$d' /etc/issue", "~ file /etc/issue"},
		{"echo x > /var/lib/new", "rm /var/lib/new", "+ file /var/lib/new"},
		{"apt-mark hold -q bash", "apt-mark unhold -q bash", "~ package bash:amd64"},
		{"systemctl mask -q ssh.socket", "systemctl unmask -q ssh.socket", "~ unit-file ssh.socket"},
		{"systemd-run -q --unit new sleep 999", "systemctl stop new", "+ unit new.service"},
		{"ip link add new type bridge", "ip link del new", "+ link new"},
		{"ip addr add 10.1.2.3/32 dev lo", "ip addr del 10.1.2.3/32 dev lo", "+ address lo 10.1.2.3/32"},
		{"ip route add blackhole 10.9.0.0/16", "ip route del blackhole 10.9.0.0/16", "+ route blackhole 10.9.0.0/16"},
		{"iptables -N NEW", "iptables -X NEW", "+ iptables-save filter :NEW"},
		{"mount -t tmpfs new /mnt", "umount /mnt", "+ mount /mnt"},
		{"sysctl -qw net.ipv4.ip_forward=1", "sysctl -qw net.ipv4.ip_forward=0", "~ sysctl net.ipv4.ip_forward"},
		{"useradd -M new", "userdel new", "+ user new"},
		{"echo dummy > /etc/modules-load.d/new.conf", "rm /etc/modules-load.d/new.conf", "+ module /etc/modules-load.d/new.conf dummy"},
		{"echo '/swap.img none swap sw 0 0' >> /etc/fstab", "sed -i '$d' /etc/fstab", "+ swap /swap.img"},
		{"mkdir /sys/fs/cgroup/pids/kubepods || mkdir /sys/fs/cgroup/kubepods", "rmdir /sys/fs/cgroup/pids/kubepods || rmdir /sys/fs/cgroup/kubepods", "+ cgroup "},
	} {
		l.must("exec", "cp1", "sh", "-c", c.do)
		out, errs, code := l.run("diff", "cp1", file(0))
		if code != 1 || !strings.Contains(out, c.want) {
			t.Errorf("%d: after %q: exit %d, want 1 and %q in\n%s%s", i, c.do, code, c.want, out, errs)
		}
		l.must("exec", "cp1", "sh", "-c", c.undo)
	}
	l.makeSets("cp1")
	out, errs, code := l.run("diff", "cp1", file(0))
	for _, want := range []string{"+ ipset new  hash:ip of 0\n", "+ nft 2 new set addresses\n"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("with sets: exit %d, want 1 and %q in\n%s%s", code, want, out, errs)
		}
	}
	l.fails("LAB_NO_SNAPSHOT", "diff", "cp1")
	kept := l.must("snapshot", "cp1")
	l.must("diff", "cp1")
	l.must("diff", "cp1", kept, kept)
}

// makeSets makes sets of addresses on a host, which has no programs for them: an agent in a container would do so.
func (l testLab) makeSets(host string) {
	l.t.Helper()
	ns, err := netns.GetFromPid(l.boot(host).Init.PID)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	kernel, err := netlink.NewHandleAt(ns, syscall.NETLINK_NETFILTER)
	if err != nil {
		l.t.Fatal(err)
	}
	defer kernel.Close()
	if err := kernel.IpsetCreate("new", "hash:ip", netlink.IpsetCreateOptions{Family: syscall.AF_INET}); err != nil {
		l.t.Fatal(err)
	}
	nft, err := nftables.New(nftables.WithNetNSFd(int(ns)))
	if err != nil {
		l.t.Fatal(err)
	}
	table := nft.AddTable(&nftables.Table{Name: "new", Family: nftables.TableFamilyIPv4})
	if err := nft.AddSet(&nftables.Set{Table: table, Name: "addresses", KeyType: nftables.TypeIPAddr}, nil); err != nil {
		l.t.Fatal(err)
	}
	if err := nft.Flush(); err != nil {
		l.t.Fatal(err)
	}
}

func TestTwoLabsSideBySide(t *testing.T) {
	a, b := newLab(t, "labtest-a"), newLab(t, "labtest-b")
	a.must("up", "--workers", "0")
	b.must("up", "--workers", "0")
	if got := a.must("ssh", "cp1", "hostname -I"); got == b.must("ssh", "cp1", "hostname -I") {
		t.Errorf("both have the address %s", got)
	}
	bridge := a.bridge()
	a.must("destroy")
	a.nothingLeft(bridge)
	b.wantState("cp1", "up")
	b.must("ssh", "cp1", "true")
}

func TestSpecialHosts(t *testing.T) {
	l := newLab(t, "labtest-x")
	l.must("up", "--workers", "0", "--with", "password,bastion")

	password, err := os.ReadFile(l.Password())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(l.Password()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the password's file: %v, %v", info.Mode(), err)
	}
	if _, _, code := l.run("ssh", "password1", "sudo -n true"); code == 0 {
		t.Error("sudo wants no password on password1")
	}
	sudo := l.command("ssh", "password1", "sudo -S -p '' id -u")
	sudo.Stdin = strings.NewReader(string(password))
	if out, err := sudo.Output(); err != nil || strings.TrimSpace(string(out)) != "0" {
		t.Errorf("sudo with the password: %q, %v", out, err)
	}

	if got := l.must("ssh", "inner1", "hostname"); got != "inner1" {
		t.Errorf("through the bastion: %q", got)
	}
	address := strings.Fields(l.must("exec", "inner1", "hostname", "-I"))[0]
	if conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "22"), 5*time.Second); err == nil {
		_ = conn.Close()
		t.Error("inner1 is reachable without the bastion")
	}
	l.must("exec", "inner1", "curl", "-fsS", "-o", "/dev/null", "https://registry.k8s.io/v2/")
}

func TestUpThatIsKilledLeavesNothingThatDownMisses(t *testing.T) {
	l := newLab(t, "labtest-k")
	up := l.command("up", "--workers", "2")
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	// The moment that matters most: some hosts have processes, others only half their files.
	started := process.Poll(limit, func() bool {
		records, _ := filepath.Glob(filepath.Join(l.State, "hosts", "*", "supervisor.json"))
		return len(records) > 0
	})
	_ = up.Process.Kill()
	_ = up.Wait()
	if !started {
		t.Fatal("up started no host")
	}
	l.must("down")
	l.nothingLeft(l.bridge())
	l.must("up", "--workers", "2")
	for _, h := range []string{"cp1", "w1", "w2"} {
		l.wantState(h, "up")
	}
}

// A power cut takes from a host with disks what nobody synced, on each of them by itself, and an orderly reboot takes nothing.
func TestDisks(t *testing.T) {
	l := newLab(t, "labtest-d")
	l.fails("LAB_USAGE", "up", "--workers", "0", "--disks", "w1")
	l.must("up", "--workers", "1", "--disks", "w1")
	l.fails("LAB_HOST_DISKS", "up", "--workers", "1", "--disks", "cp1")
	l.must("up", "--workers", "1", "--disks", "w1")
	if got := strings.Fields(l.must("exec", "w1", "stat", "-f", "-c", "%i", "/", "/var")); len(got) != 2 || got[0] == got[1] {
		t.Errorf("the file systems of / and /var are %q, want two", got)
	}
	l.must("exec", "w1", "sh", "-c", "for d in /etc /var/lib; do echo x >$d/orderly; done")
	l.must("reboot", "w1")
	l.must("exec", "w1", "sh", "-c", "for d in /etc /var/lib; do echo x >$d/synced; done; sync -d /etc/synced /etc /var/lib/synced /var/lib; for d in /etc /var/lib; do echo x >$d/lost; done")
	l.must("kill", "w1")
	l.must("start", "w1")
	// Their names may be there: who syncs anything writes the journal, with the names of all files.
	const left = "cd /; grep -s . etc/orderly etc/synced etc/lost var/lib/orderly var/lib/synced var/lib/lost || true"
	if got := l.must("exec", "w1", "sh", "-c", left); got != "etc/orderly:x\netc/synced:x\nvar/lib/orderly:x\nvar/lib/synced:x" {
		t.Errorf("after a power cut there are %q", got)
	}
	for range 2 {
		l.must("kill", "w1")
		l.must("start", "w1")
	}
	l.must("exec", "w1", "sh", "-c", "echo x >/etc/synced-later && sync /etc/synced-later")
}

func TestVerbsOnALabThatIsNotThere(t *testing.T) {
	l := newLab(t, "labtest-n")
	for _, verb := range []string{"down", "destroy"} {
		l.must(verb)
	}
	for _, args := range [][]string{{"status"}, {"reboot", "cp1"}, {"env"}} {
		l.fails("LAB_UNKNOWN", args...)
	}
	for _, args := range [][]string{{"up", "--workers", "99"}, {"up", "--with", "cake"}, {"kill"}, {"delay", "cp1", "soon"}} {
		l.fails("LAB_USAGE", args...)
	}
}
