package scripts

import (
	"strings"
	"testing"
)

// purged tells whether dpkg has nothing of a package.
func (s *sandbox) purged(name string) bool {
	s.t.Helper()
	got := s.status(name)
	return got == "" || strings.Contains(got, "not-installed")
}

// killsDpkg is a maintainer script that is the end of dpkg, once.
const killsDpkg = `[ -e /tmp/again ] || { : >/tmp/again; kill -KILL $PPID; }`

// interrupt has dpkg die while it installs a package, and wants it to be left in this state.
func (s *sandbox) interrupt(install, name, state string) {
	s.t.Helper()
	r := s.script(install)
	if got := s.status(name); r.status == 0 || !strings.Contains(got, state) {
		s.t.Fatalf("%s is %q after an interruption, want %s; output:\n%s", name, got, state, r.output)
	}
}

// TestPowerCutInAnInstallation: dpkg's word for a package was on the disk, and a file of it was not.
func TestPowerCutInAnInstallation(t *testing.T) {
	t.Parallel()
	const note, former = "var/lib/kgpu/unsettled", "6f1c8a52-0000-4000-8000-000000000000\n"
	start := func(t *testing.T) *sandbox {
		s := newSandbox(t)
		s.repository(deb{name: "one", version: "1", files: map[string]string{"/opt/one/program": "1"}}, deb{name: "two", version: "1"})
		s.ok(s.script("apt_install one two"))
		return s
	}
	t.Run("the end of a step", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		if _, names, _ := strings.Cut(s.read(note), "\n"); names != "one\ntwo\n" {
			t.Errorf("the note has %q", names)
		}
		s.ok(s.script("settle_step"))
		s.absent(note)
	})
	for name, c := range map[string]struct {
		lost, content string // a file, and what it has then: "" if it is gone
		note          string // of the package
		back          bool
	}{
		"gone":                     {"opt/one/program", "", "one", true},
		"torn":                     {"opt/one/program", "\x00", "one", true},
		"gone, of an upgrade":      {"opt/one/program", "", "one upgraded", true},
		"configuration":            {"opt/one/conf", "", "one", true},
		"empty configuration":      {"opt/one/conf", "empty", "one", true},
		"the owner's":              {"opt/one/conf", "mine", "one", false},
		"the owner has it no more": {"opt/one/conf", "", "one upgraded", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			entries := s.entries()
			s.write(note, former+c.note+"\ntwo\nnever-came\n")
			s.ok(s.script("rm /" + c.lost))
			if c.content != "" {
				s.write(c.lost, strings.TrimPrefix(c.content, "empty"))
			}
			s.ok(s.script("settle_step"))
			if !s.exists(note) {
				t.Fatal("a later step takes the note away, and nobody looks at the packages")
			}
			r := s.ok(s.step("os-dpkg"))
			if again := strings.Contains(r.output, "files of one were on the disk"); again != c.back {
				t.Errorf("unpacked again: %v, want %v; output:\n%s", again, c.back, r.output)
			}
			if c.back && s.read(c.lost) != "1" {
				t.Errorf("%s is %q", c.lost, s.read(c.lost))
			}
			s.absent(note)
			if s.entries() != entries {
				t.Errorf("%d entries in the ledger, want %d", s.entries(), entries)
			}
		})
	}
	for name, c := range map[string]struct {
		was       string // the version that was there before
		unsettled string
	}{
		"configuration that was not in its place yet":                {"", "one\n"},
		"configuration that was not in its place yet, of an upgrade": {"1", "one upgraded\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			if c.was != "" {
				s.repository(deb{name: "one", version: c.was})
				s.ok(s.script("apt_install one"))
			}
			s.repository(deb{name: "one", version: "2"})
			s.ok(s.script("apt-get update; dpkg --unpack /repo/one_2_all.deb; : >/opt/one/conf.dpkg-new"))
			s.write(note, former+c.unsettled)
			s.ok(s.step("os-dpkg"))
			s.packageIs("one", "install installed 2")
			if got := s.read("opt/one/conf"); got != "2" {
				t.Errorf("the configuration is %q", got)
			}
			s.prints("dpkg --verify one", "")
			s.absent(note)
		})
	}
	t.Run("pages that the host leaves out", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		s.stub("dpkg", "#!/bin/sh\ncase $* in --verify*) echo 'missing     /usr/share/man/man1/one.1.gz' ;; *) exec /usr/bin/dpkg \"$@\" ;; esac\n")
		s.prints("dpkg_lost", "")
		s.prints("is_lost() { true; }; dpkg_lost", "one /usr/share/man/man1/one.1.gz\ntwo /usr/share/man/man1/one.1.gz\n")
		s.write("opt/one/program.dpkg-new", "")
		s.prints("is_lost /opt/one/program && echo lost", "lost\n")
	})
	t.Run("not to be had any more", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		s.write(note, former+"one\n")
		s.ok(s.script("rm /opt/one/program"))
		s.repository(deb{name: "two", version: "1"})
		s.ok(s.script("apt-get clean; apt-get update"))
		r := s.step("os-dpkg")
		s.fails(r, 1, "HOST_DPKG_BROKEN")
		contains(t, r.failure, "one /opt/one/program")
		if !s.exists(note) {
			t.Error("the note is gone")
		}
	})
}

func TestInterruptedPackages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broken deb
		state  string
	}{
		"while it was configured": {deb{name: "one", version: "1", postinst: killsDpkg}, "half-configured"},
		"while it was unpacked":   {deb{name: "one", version: "1", preinst: killsDpkg}, "half-installed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(c.broken, deb{name: "two", version: "1"})
			s.interrupt("apt-get update; apt-get install -y one", "one", c.state)
			// Somebody else's: it is finished, and stays theirs.
			s.ok(s.step("os-dpkg"))
			s.packageIs("one", "install installed 1")
			if n := s.entries(); n != 0 {
				t.Errorf("what was mended is in the ledger: %d entries", n)
			}
		})
		t.Run(name+", kgpu's own", func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(c.broken, deb{name: "two", version: "1"})
			s.interrupt("apt_install one", "one", c.state)
			s.ok(s.script("apt_install two"))
			s.packageIs("one", "install installed 1")
			s.packageIs("two", "install installed 1")
			s.ok(s.script("undo_all"))
			if !s.purged("one") || !s.purged("two") {
				t.Errorf("after undo: one %q, two %q", s.status("one"), s.status("two"))
			}
		})
		t.Run(name+", undone as it is", func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(c.broken)
			s.interrupt("apt_install one", "one", c.state)
			s.write("repo/Packages", "") // it cannot be had any more
			s.ok(s.script("apt-get update; undo_all"))
			if !s.purged("one") {
				t.Errorf("after undo: one %q", s.status("one"))
			}
		})
	}
}

// A package that another one needs could not be unpacked, and that one was: with room, say, both are installed.
func TestPackagesWhoseDependencyIsMissing(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "one", version: "1", depends: "three"}, deb{name: "two", version: "1"}, deb{name: "three", version: "1", preinst: "[ -e /room ]"})
	if r := s.script("apt_install one"); r.status == 0 {
		t.Fatalf("it is installed:\n%s", r.output)
	}
	if s.status("one") != "install unpacked 1" || s.status("three") == "install installed 1" {
		t.Fatalf("one %q, three %q: nothing is left half done", s.status("one"), s.status("three"))
	}
	s.fails(s.step("os-dpkg"), 1, "HOST_DPKG_BROKEN")
	s.write("room", "")
	s.ok(s.step("os-dpkg"))
	for _, name := range []string{"one", "three"} {
		s.packageIs(name, "install installed 1")
	}
	s.ok(s.script("apt_install two; undo_all"))
	if !s.purged("one") || !s.purged("two") || !s.purged("three") {
		t.Errorf("after undo: one %q, two %q, three %q", s.status("one"), s.status("two"), s.status("three"))
	}
}

// What comes while dpkg is mended in the middle of an undo goes with that undo.
func TestUndoWhereDpkgWasInterrupted(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "one", version: "1", depends: "three"}, deb{name: "three", version: "1", preinst: "[ -e /room ]"})
	if r := s.script("apt_install one"); r.status == 0 {
		t.Fatalf("it is installed:\n%s", r.output)
	}
	s.write("var/lib/dpkg/updates/0001", "Package: one\nStatus: install ok unpacked\nArchitecture: all\nMaintainer: test <test@example.org>\nVersion: 1\nDepends: three\nDescription: test\n")
	s.write("room", "")
	r := s.ok(s.script("undo_all"))
	contains(t, r.output, "dpkg was interrupted") // or nothing was mended
	if n := s.entries(); n != 0 || !s.purged("one") || !s.purged("three") {
		t.Errorf("after undo: one %q, three %q, %d entries", s.status("one"), s.status("three"), n)
	}
}

// dpkg keeps what it did last in a journal, which a killed one leaves.
func TestJournalOfDpkg(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "one", version: "1"}, deb{name: "two", version: "1"})
	s.ok(s.script("apt-get update; apt-get install -y one"))
	s.write("var/lib/dpkg/updates/0001", "Package: one\nStatus: install ok unpacked\nArchitecture: all\nMaintainer: test <test@example.org>\nVersion: 1\nDescription: test\n")
	s.ok(s.script("apt_install two"))
	if s.status("one") != "install installed 1" || s.status("two") != "install installed 1" || s.exists("var/lib/dpkg/updates/0001") {
		t.Errorf("one %q, two %q", s.status("one"), s.status("two"))
	}
}

// What cannot be mended is refused by its name and with the error, before anything is installed or recorded.
func TestPackagesThatStayBroken(t *testing.T) {
	t.Parallel()
	t.Run("a script that fails", func(t *testing.T) {
		t.Parallel()
		s := newSandbox(t)
		s.repository(deb{name: "theirs", version: "1", postinst: "echo 'no such luck'; exit 7"}, deb{name: "two", version: "1"})
		s.script("apt-get update; apt-get install -y theirs")
		for _, r := range []result{s.script("apt_install two"), s.step("os-dpkg")} {
			s.fails(r, 1, "HOST_DPKG_BROKEN")
			contains(t, r.failure, "theirs: dpkg: error processing package theirs", "exit status 7")
		}
		if !s.purged("two") || s.entries() != 0 {
			t.Errorf("two: %q, %d entries", s.status("two"), s.entries())
		}
	})
	t.Run("torn, and not to be had", func(t *testing.T) {
		t.Parallel()
		s := newSandbox(t)
		s.repository(deb{name: "theirs", version: "1", preinst: killsDpkg})
		s.interrupt("apt-get update; apt-get install -y theirs", "theirs", "half-installed")
		s.repository(deb{name: "two", version: "1"})
		r := s.script("apt_install two")
		s.fails(r, 1, "HOST_DPKG_BROKEN")
		contains(t, r.failure, "theirs: ")
	})
	t.Run("dependencies", func(t *testing.T) {
		t.Parallel()
		s := newSandbox(t)
		s.repository(deb{name: "theirs", version: "1", depends: "nowhere"}, deb{name: "two", version: "1"})
		s.script("apt-get update; dpkg --force-depends -i /repo/theirs_1_all.deb")
		r := s.script("apt_install two")
		s.fails(r, 1, "HOST_DPKG_BROKEN")
		contains(t, r.failure, "theirs: Depends: nowhere")
		if !s.purged("two") || s.entries() != 0 {
			t.Errorf("two: %q, %d entries", s.status("two"), s.entries())
		}
	})
}

// What dpkg and apt say may fill a pipe: whoever looks for the first line of a kind finds it nevertheless.
func TestDpkgThatSaysALot(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.ok(s.script(`
for log in "$KGPU_STEP/configure.log" "$apt_log"; do
  {
    printf 'dpkg: error processing package one (--configure):\n installed one package post-installation script subprocess returned error exit status 1\n'
    echo 'E: Sub-process /usr/bin/dpkg returned an error code (1)'
    for _ in {1..20000}; do echo 'E: No space left on device, or something else that is said again and again'; done
  } >"$log"
done
[[ $(dpkg_said 'No space left') == 'E: No space'* ]]
if dpkg_said nonsense; then exit 1; fi
[[ $(dpkg_error "$apt_log") == 'dpkg: error processing package one (--configure): installed one package'* ]]
sed -i 1,2d "$apt_log"
[[ $(dpkg_error "$apt_log") == 'E: Sub-process'* ]]
: >"$apt_log"
[[ $(dpkg_error "$apt_log") == 'it ended badly' ]]`))
}

// TestFilesThatAKilledAptWasWriting: they have random names, and nobody else would ever remove them.
func TestFilesThatAKilledAptWasWriting(t *testing.T) {
	t.Parallel()
	const written = "/var/lib/apt/extended_states."
	start := func(t *testing.T) *sandbox {
		s := newSandbox(t)
		s.repository(deb{name: "one", version: "1", depends: "two"}, deb{name: "two", version: "1"})
		s.ok(s.script("apt_install one; touch -d '1 hour ago' /var/lib/kgpu/ledger/000001/kind"))
		// The kernel ends a program that writes more than it may, as kill -9 does: here, at the first byte of a file.
		r := s.script("(ulimit -f 0; apt-mark auto one) || echo killed; touch -d '1 minute ago' " + written + "??????; echo " + written + "*")
		if !strings.Contains(r.output, "killed") || strings.Contains(r.output, "*") {
			t.Fatalf("an apt that was killed leaves nothing:\n%s", r.output)
		}
		s.ok(s.script("mkdir -p /var/lib/systemd/deb-systemd-helper-enabled; touch -d '1 minute ago' " +
			"/var/cache/apt/pkgcache.bin.Ab3dEf /var/lib/systemd/deb-systemd-helper-enabled/.stateAb3dE.tmp; touch -d '2 hours ago' " + written + "Before"))
		return s
	}
	for name, ends := range map[string]string{"the next step ends": "settle_step", "undo": "undo_all"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.ok(s.script(ends))
			s.prints("find /var/lib/apt /var/cache/apt /var/lib/systemd -name '*.??????' -o -name '.state*'", written+"Before\n")
			s.prints("apt-mark showauto", map[bool]string{true: "two\n"}[ends == "settle_step"])
		})
	}
	t.Run("written now", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		s.ok(s.script("rm " + written + "*; touch " + written + "NowNow; " +
			"exec {fd}>" + written + "IsOpen; touch -d '1 minute ago' " + written + "IsOpen; settle_step"))
		s.prints("ls /var/lib/apt/extended_states.*", written+"IsOpen\n"+written+"NowNow\n")
		s.ok(s.script("sleep 1.1; settle_step"))
		s.prints("find /var/lib/apt -name 'extended_states.*'", "")
	})
}
