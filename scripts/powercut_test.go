package scripts

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// disks are the directories that newDisks makes file systems of their own of, as hardened hosts have them.
var disks = []string{"etc", "opt", "var"}

// newDisks is a sandbox with these file systems, each of which loses by itself what nobody synced when the power goes. Their
// journals are not written by time.
func newDisks(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.must(os.Symlink("/usr/bin/sync", s.path("stubs/sync")))
	s.write("batches/of", "this directory is mounted over that of the batches, which is below /var\n")
	s.mounts = `mount --bind "$0` + runDir + `" "$0/batches"
for disk in ` + strings.Join(disks, " ") + `; do mount -o loop,commit=300 "$0/disks/$disk" "$0/$disk"; done
mount --bind "$0/batches" "$0` + runDir + `"
`
	s.write("etc/theirs.conf", "theirs\n")
	s.write("etc/fstab", "UUID=1 / ext4 defaults 0 1\n/swap.img none swap sw 0 0\n")
	s.write("opt/there/data", "kept")
	s.write("disks/made", "")
	for _, disk := range disks {
		s.run("mkfs.ext4", "-q", "-d", s.path(disk), s.path("disks/"+disk), "12M")
	}
	return s
}

const runDir = "/var/lib/kgpu/run"

func (s *sandbox) run(name string, args ...string) {
	s.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// copyDisks copies what is on them.
func (s *sandbox) copyDisks(from, to string) {
	s.t.Helper()
	s.run("rm", "-rf", s.path(to))
	s.run("cp", "-a", "--sparse=always", s.path(from), s.path(to))
}

// blackout is a power cut: EXT4_IOC_SHUTDOWN of linux/ext4.h, without EXT4_GOING_FLAGS_LOGFLUSH, leaves what is on the disk now.
const blackout = `blackout() {
  perl -e 'my $how = pack "L", 2; for (@ARGV) { my $fs; sysopen $fs, $_, 0 and ioctl $fs, 0x8004587d, $how or die "$_: $!" }' /etc /opt /var ||
    printf 'no power cut\n' >/failed
  kill -KILL $$
}
`

// state prints all that the change of changed may touch.
const state = `cd /
find etc opt var/lib ! -path 'var/lib/kgpu/*' -printf '%p %M %l\n' | sort
find etc opt -type f -exec sha256sum {} + | sort
printf '%s\n' var/lib/kgpu/ledger/[0-9]*`

// wayBack wants the host to be as before, when it came back from a power cut and reset was run again.
func (s *sandbox) wayBack(before string) {
	s.t.Helper()
	if r := s.ok(s.script("undo_all")); r.output != "" {
		s.t.Errorf("reset says: %s", r.output)
	}
	if after := s.ok(s.script(state)).output; after != before {
		s.run("rm", "-f", s.path("a"), s.path("b"))
		s.write("a", before)
		s.write("b", after)
		diff, _ := exec.Command("diff", s.path("a"), s.path("b")).Output()
		s.t.Errorf("not as before:\n%s", diff)
	}
}

// cuts lets the power go in a script at every place where it says so, one after the other, and wants the way back from each.
func (s *sandbox) cuts(script, before string, least int) {
	s.t.Helper()
	s.copyDisks("disks", "kept")
	for n := 1; ; n++ {
		s.copyDisks("kept", "disks")
		s.value("kill", strconv.Itoa(n))
		first := s.script(blackout + strings.ReplaceAll(script, "kill -KILL $$", "blackout"))
		if s.exists("failed") {
			s.t.Fatalf("the power does not go: %s", first.output)
		}
		s.wayBack(before)
		if s.t.Failed() {
			s.t.Fatalf("after a power cut at place %d", n)
		}
		if first.status == 0 {
			if n <= least {
				s.t.Fatalf("the power went at %d places only, want %d", n-1, least)
			}
			return
		}
	}
}

// What is undone is on the disk before the ledger forgets it, wherever it is: a journal that both are in is not needed.
func TestUndoAndPowerCuts(t *testing.T) {
	t.Parallel()
	for name, undo := range killAt {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDisks(t)
			before := s.ok(s.script(state)).output
			s.ok(s.script(change))
			s.cuts(undo, before, 8)
		})
	}
}

// What is about to change is in the ledger before, and on the disk, though the change itself is sooner there than all else.
func TestChangesAndPowerCuts(t *testing.T) {
	t.Parallel()
	s := newDisks(t)
	before := s.ok(s.script(state)).output
	s.cuts(`
n=0
struck() { n=$((n + 1)); if ((n == $(value kill))); then command sync -f /etc; command sync -f /opt; kill -KILL $$; fi; }
mv() { command mv "$@"; if [[ $* == *kgpu-new* ]]; then struck; fi; }
mkdir() { command mkdir "$@"; if [[ $* == '-m 755 '* || $* == /opt* ]]; then struck; fi; }
`+change, before, 7)
}

// What kubeadm wrote, which syncs nothing, is on the disk before the ledger says that it came to its end.
func TestMembershipAndPowerCuts(t *testing.T) {
	t.Parallel()
	s := newDisks(t)
	const written = "mkdir -p /etc/kubernetes; echo x >/etc/kubernetes/admin.conf\n"
	if r := s.script(blackout + written + "record_membership kubeadm init-done; blackout"); r.status == 0 || s.exists("failed") {
		t.Fatalf("the power does not go: %s", r.output)
	}
	s.prints("ledger_find kubeadm; cat /etc/kubernetes/admin.conf", "000001\nx\n") // after a power cut
}
