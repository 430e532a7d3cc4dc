package scripts

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// change changes files in every way that the library has.
const change = `
put_file /etc/theirs.conf 600 <<<changed
put_file /etc/link.conf 644 <<<'no link any more'
put_file /etc/deep/file 644 <<<deep
put_file /etc/theirs.conf 644 <<<'changed again'
claim_tree /var/lib/thing /opt/there
mkdir -p /var/lib/thing/a/b
claim_dir /opt/shared
mkdir /opt/shared
fstab_swap_off
`

func changed(t *testing.T) (*sandbox, map[string]string) {
	t.Helper()
	s := newSandbox(t)
	s.write("etc/theirs.conf", "theirs\n")
	s.must(os.Chmod(s.path("etc/theirs.conf"), 0o604))
	s.must(os.Symlink("theirs.conf", s.path("etc/link.conf")))
	s.write("opt/there/data", "kept")
	s.write("etc/fstab", "UUID=1 / ext4 defaults 0 1\n/swap.img none swap sw 0 0\n")
	before := s.snapshot()
	s.ok(s.script(change))
	return s, before
}

func TestUndoBringsEverythingBack(t *testing.T) {
	t.Parallel()
	s, before := changed(t)
	if got := s.read("etc/theirs.conf") + s.read("etc/deep/file"); got != "changed again\ndeep\n" {
		t.Fatalf("files were not written: %q", got)
	}
	s.undone(before)
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries left", n)
	}
}

// killAt makes undo kill itself at its n-th entry, at one of the two places where an entry may be half gone.
var killAt = map[string]string{
	"undone but still in the ledger": `
n=0
eval "$(declare -f entry_drop | sed '1s/entry_drop/drop/')"
entry_drop() { n=$((n + 1)); if ((n == $(value kill))); then kill -KILL $$; fi; drop "$@"; }
undo_all`,
	"taken out of the ledger but not removed": `
n=0
rm() { if [[ $2 == "$ledger/.old" && -d $2 ]]; then n=$((n + 1)); if ((n == $(value kill))); then kill -KILL $$; fi; fi; command rm "$@"; }
undo_all`,
	"not undone yet": `
n=0
eval "$(declare -f undo_entry | sed '1s/undo_entry/undo/')"
undo_entry() { n=$((n + 1)); if ((n == $(value kill))); then kill -KILL $$; fi; undo "$@"; }
undo_all`,
}

func TestUndoKilledAnywhereAndRunAgain(t *testing.T) {
	t.Parallel()
	host, before := changed(t)
	for name, undo := range killAt {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kill := 1; ; kill++ {
				s := host.clone(t)
				s.value("kill", strconv.Itoa(kill))
				first := s.script(undo)
				s.undone(before)
				if first.status == 0 {
					if kill < 9 { // eight entries
						t.Fatalf("undo was killed at %d places only", kill-1)
					}
					return
				}
			}
		})
	}
}

// A step that dies between the record and the change, or in the middle of the change, leaves a ledger that undoes it.
func TestUndoAfterAChangeThatWasKilled(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"file recorded, not written":   `mv() { [[ $* != *kgpu-new* ]] || kill -KILL $$; command mv "$@"; }; put_file /etc/a/b 644 <<<x`,
		"directory recorded, not made": `mkdir() { [[ $* != *' /etc/a' ]] || kill -KILL $$; command mkdir "$@"; }; put_file /etc/a/b 644 <<<x`,
		"entry being written":          `find() { kill -KILL $$; }; put_file /etc/a/b 644 <<<x`,
		"entry being begun":            `entry_begin() { [[ $1 != file ]] || kill -KILL $$; record_entry "$@"; }; put_file /etc/a/b 644 <<<x`,
		"new file being written":       `sync() { [[ $* != *kgpu-new ]] || kill -KILL $$; command sync "$@"; }; put_file /etc/a/b 644 <<<x`,
		"entry of fstab being written": `find() { kill -KILL $$; }; fstab_swap_off`,
		"fstab being written":          `sync() { [[ $* != *kgpu-new ]] || kill -KILL $$; command sync "$@"; }; fstab_swap_off`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.write("etc/fstab", "/swap.img none swap sw 0 0\n")
			before := s.snapshot()
			if r := s.script("eval \"$(declare -f entry_begin | sed '1s/entry_begin/record_entry/')\"\n" + body); r.status == 0 {
				t.Fatalf("was not killed: %s", r.output)
			}
			s.undone(before)
			s.ok(s.script("put_file /etc/a/b 644 <<<x; undo_all"))
			s.same(before)
		})
	}
}

// The ledger has the only copy of what was there: an entry goes when that is on the disk. See TestUndoAndPowerCuts.
func TestUndoSyncsBeforeItForgets(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/theirs.conf", "theirs\n")
	s.ok(s.script("put_file /etc/theirs.conf 644 <<<ours"))
	s.stub("sync", "#!/bin/sh\necho \"sync $*\" >>/order\n")
	s.ok(s.script(`mv() { echo "mv ${*: -2}" >>/order; command mv "$@"; }; undo_all`))
	want := "sync -d /etc/theirs.conf.kgpu-new\nmv /etc/theirs.conf.kgpu-new /etc/theirs.conf\nsync -f /etc /usr\nmv /var/lib/kgpu/ledger/000001 /var/lib/kgpu/ledger/.old\n"
	if got := s.read("order"); !strings.HasPrefix(got, want) {
		t.Errorf("order:\n%s", got)
	}
}

func TestUndoLeavesWhatWasEditedSince(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/theirs.conf", "theirs\n")
	s.ok(s.script("put_file /etc/theirs.conf 644 <<<ours; put_file /etc/ours.conf 644 <<<ours"))
	s.write("etc/theirs.conf", "edited\n")
	s.write("etc/ours.conf", "edited\n")
	r := s.ok(s.script("undo_all"))
	if s.read("etc/theirs.conf") != "edited\n" || s.read("etc/ours.conf") != "edited\n" {
		t.Error("an edited file was not left alone")
	}
	if strings.Count(r.output, "not undone: ") != 2 {
		t.Errorf("it does not say so: %s", r.output)
	}
	if left := s.read(stepDir + "/out/left"); strings.Count(left, " was edited since kgpu wrote it\n") != 2 {
		t.Errorf("its output says %q", left)
	}
}

// What the first undo left is out of the ledger when the second one begins, and what it left of the entry at which it was
// killed may be undone by then.
func TestUndoThatWasKilledTellsWhatItLeft(t *testing.T) {
	t.Parallel()
	const first, second, third = "/etc/first.conf was edited since kgpu wrote it\n", "/etc/second.conf was edited since kgpu wrote it\n", "/etc/third.conf was edited since kgpu wrote it\n"
	for name, undo := range killAt {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.ok(s.script("put_file /etc/first.conf 644 <<<ours; put_file /etc/second.conf 644 <<<ours; put_file /etc/third.conf 644 <<<ours"))
			for _, file := range []string{"first", "second", "third"} {
				s.write("etc/"+file+".conf", "edited\n")
			}
			s.value("kill", "2")
			const notes = "undo_notes_in /var/lib/kgpu/left\n"
			if r := s.script(notes + "undo_begin cluster; undo_left 'the images'\n" + undo); r.status == 0 {
				t.Fatalf("was not killed: %s", r.output)
			}
			s.write("etc/second.conf", "ours\n") // its owner's change is gone
			s.write("logger", "")
			s.stub("logger", "#!/bin/sh\ncat >>/logger\n")
			s.ok(s.script(notes + "undo_all"))
			want := "the images\n" + third + first
			if name == "taken out of the ledger but not removed" {
				want = "the images\n" + third + second + first // nobody comes back to it
			}
			if left := s.read(stepDir + "/out/left"); left != want {
				t.Errorf("its output says %q", left)
			}
			if told := s.read("logger"); strings.ReplaceAll(told, "kgpu reset: not taken back: ", "") != want {
				t.Errorf("the journal says %q", told)
			}
		})
	}
}

func TestImagesThatCameSince(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	const theirs = "docker.io/library/theirs:1\n"
	s.write("var/lib/containerd/theirs", "")
	s.write("images", theirs)
	s.stub("ctr", `case "$*" in
  "-n k8s.io images list -q") cat /images ;;
  "-n k8s.io images rm --sync "*) shift 5; for image in "$@"; do sed -i "\|^$image\$|d" /images; done ;;
  *) exit 1 ;;
esac`)
	s.ok(s.script("claim_containers; remember_images unix:///run/containerd/containerd.sock"))
	s.write("images", theirs+"registry.k8s.io/pause:3.10\nsha256:0123\n")
	r := s.ok(s.script("remember_images unix:///run/containerd/containerd.sock; undo_all"))
	if got := s.read("images"); got != theirs || strings.Contains(r.output, "not undone") {
		t.Errorf("the images are now %q: %s", got, r.output)
	}

	s.ok(s.script("remember_images unix:///run/containerd/containerd.sock"))
	s.stub("ctr", "exit 1")
	if r := s.ok(s.script("undo_all")); !strings.Contains(r.output, "not undone: images of the cluster in containerd") {
		t.Errorf("it does not say that containerd could not be asked: %s", r.output)
	}

	// A cluster that its owner made stays, with its images.
	s.write("images", theirs)
	s.stub("ctr", `cat /images; [ "$4" != rm ] || : >/images`)
	s.ok(s.script("remember_images unix:///run/containerd/containerd.sock"))
	s.write("images", theirs+"registry.k8s.io/pause:3.10\n")
	s.write("etc/kubernetes/admin.conf", "x")
	s.write("etc/kubernetes/pki/ca.crt", "x")
	if s.ok(s.script("undo_all")); !strings.Contains(s.read("images"), "pause") {
		t.Errorf("the images of a cluster that stays are now %q", s.read("images"))
	}

	// With docker it is docker that has the images, and with a containerd of kgpu's all its images go.
	s.ok(s.script("remember_images unix:///run/cri-dockerd.sock; ! ledger_has images"))
	s.must(os.RemoveAll(s.path("var/lib/containerd")))
	s.ok(s.script("claim_containers; remember_images unix:///run/containerd/containerd.sock; ! ledger_has images"))
}

// The facts need the path of a file in the ledger even when it was right from the beginning; undo leaves such a file.
func TestFileThatIsRightAlready(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/same.conf", "same\n")
	before := s.snapshot()
	for range 2 {
		r := s.ok(s.script(`put_file /etc/same.conf 644 <<<same; changed '/etc/*' && echo CHANGED || true`))
		lacks(t, r.output, "CHANGED") // or an unchanged file counts as changed
		if n := s.entries(); n != 1 {
			t.Errorf("%d entries, want 1", n)
		}
	}
	s.undone(before)
}

func TestInstallFilesKeepsModes(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.file("/etc/secret.conf", "secret")
	s.must(os.Chmod(s.path(stepDir+"/files/etc/secret.conf"), 0o600))
	s.file("/etc/a dir/with blank.conf", "x")
	s.ok(s.script("install_files"))
	info, err := os.Stat(s.path("etc/secret.conf"))
	s.must(err)
	if info.Mode().Perm() != 0o600 || s.read("etc/a dir/with blank.conf") != "x" {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestHowAStepFails(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.fails(s.script("x=$(value nothing)"), 1, "STEP_FAILED")
	s.fails(s.script("fail HOST_SWAP_ON $'two\\nlines\\twith a tab'"), 1, "HOST_SWAP_ON")
	s.holds(stepDir+"/failure", "HOST_SWAP_ON\ttwo; lines with a tab\n")
	s.fails(s.script("fail_transient API_UNREACHABLE later"), 75, "API_UNREACHABLE")
	s.prints("waiting $'for\\ta thing'", "W\tfor a thing\n")
	s.ok(s.script("output token <<<secret"))
	info, err := os.Stat(s.path(stepDir + "/out/token"))
	s.must(err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("an output has mode %v", info.Mode())
	}
}

// A reset that was cut off between its last entry and its end has something to tell still; one that comes to its end has not.
func TestFactsOfAResetThatWasCutOff(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.ok(s.script("put_file /etc/ours.conf 644 <<<ours"))
	s.write("etc/ours.conf", "edited\n")
	reset := readFile(t, "steps/host-reset.sh")
	s.value("criSocket", "unix:///run/containerd/containerd.sock")
	if r := s.bash(strings.Replace(reset, "undo_all\n", "undo_stays() { kill -KILL $$; }\nundo_all\n", 1)); r.status == 0 || s.entries() != 0 {
		t.Fatalf("was not killed at the end: %s", r.output)
	}
	contains(t, s.ok(s.bash(string(Facts()))).output, "\nledger=1\n")
	contains(t, s.ok(s.bash("exec 9>/var/lib/kgpu/lock\nflock 9\n"+string(Facts()))).output, "\nledger=0\n")
	contains(t, s.ok(s.bash(reset)).output, "not undone: /etc/ours.conf was edited")
}
