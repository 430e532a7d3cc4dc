package scripts

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// suiteRepository is a repository at file:///repo/ with suites and components, signed for the step's values, of which kgpu wants noble stable.
func (s *sandbox) suiteRepository() {
	s.t.Helper()
	s.value("fingerprint", s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"}))
	s.value("line", "deb [signed-by=/etc/apt/keyrings/kgpu.gpg] file:///repo noble stable")
	home, fingerprint := s.keyring()
	s.value("fingerprint", fingerprint)
	index := s.read("repo/Packages")
	for _, suite := range []string{"noble", "jammy"} {
		release := "Origin: test\nSuite: " + suite + "\nDate: Fri, 20 Nov 2026 12:00:00 UTC\nComponents: stable test\nArchitectures: " + arch() + "\nSHA256:\n"
		for _, component := range []string{"stable", "test"} {
			for _, list := range [][2]string{{component + "/binary-" + arch() + "/Packages", index}, {component + "/source/Sources", ""}} {
				name, content := list[0], list[1]
				s.write("repo/dists/"+suite+"/"+name, content)
				release += fmt.Sprintf(" %x %d %s\n", sha256.Sum256([]byte(content)), len(content), name)
			}
		}
		s.write("repo/dists/"+suite+"/Release", release)
		s.clearsign(home, "repo/dists/"+suite)
	}
}

// arch is this machine's architecture in dpkg's words.
var arch = sync.OnceValue(func() string {
	out, err := exec.Command("dpkg", "--print-architecture").Output()
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(out))
})

// lists are the package lists that apt would fetch, without the folder that they are kept in.
func (s *sandbox) lists() []string {
	s.t.Helper()
	out := s.ok(s.script("apt-get indextargets --no-release-info --format '$(FILENAME)'")).output
	var lists []string
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "/var/lib/apt/lists/"); ok {
			lists = append(lists, name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(lists)))
}

// Somebody has the same repository, in words that are not kgpu's: apt decides whether it is the same. It works as before after kgpu's
// list has come, has all that it had, and is put back by undo.
func TestRepositoryOfSomebodyInOtherWords(t *testing.T) {
	t.Parallel()
	const key = "/etc/apt/keyrings/theirs.asc"
	stanza := func(fields ...string) string {
		return strings.Join(append([]string{"Types: deb", "Signed-By: " + key}, fields...), "\n") + "\n"
	}
	line := func(more string) string { return "deb [signed-by=" + key + "] " + more + "\n" }
	for name, c := range map[string]struct {
		file, content string
		stays         bool // as it is
	}{
		"a variable":               {"l.list", line("file:///$(ARCH) noble stable"), false},
		"another scheme, a slash":  {"l.list", line("copy:/repo/ noble stable"), false},
		"escaped, twice":           {"l.list", line("file:///rep%6f noble stable") + line("file:/repo noble stable"), false},
		"options, tabs, a comment": {"l.list", "# theirs\n\tdeb\t[ arch=" + arch() + "  signed-by=" + key + " ]\tfile:///repo\tnoble  stable # Docker", false},
		"trusted":                  {"l.list", "deb [trusted=yes] file:///repo noble stable\n\n# deb file:///repo noble stable\ndeb [trusted=yes] file:///other ./\n", false},
		"no key, an architecture":  {"l.list", "deb [arch=armhf] file:///repo noble stable\n", false},
		"sources, another part":    {"l.list", line("file:///repo noble stable test") + "deb-src [lang=none signed-by=" + key + "] file:///repo noble stable\n", false},
		"addresses and suites":     {"s.sources", stanza("URIs: file:///other file:///$(ARCH)", "Suites: noble jammy", "Components: stable"), false},
		"folded":                   {"s.sources", stanza("URIs:", " file:///other", "# a comment", "\tfile:///repo/", "Suites: noble", "Components: stable"), false},
		"parts and sources":        {"s.sources", strings.Replace(stanza("URIs: file:///repo", "Suites: noble jammy", "Components: stable test"), "deb", "deb deb-src", 1), false},
		"small letters, a key in it": {"s.sources", "types: deb\nuris: file:///repo\nsuites: noble\ncomponents: stable test\nenabled: yes\nsigned-by:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n" +
			" .\n bm8ga2V5\n -----END PGP PUBLIC KEY BLOCK-----\n", false},
		"ends of lines of Windows": {"s.sources", strings.ReplaceAll("# theirs\n"+stanza("URIs: file:///repo file:///other", "Suites: noble", "Components: stable")+"\n"+
			stanza("URIs: file:///other", "Suites: jammy", "Components: stable"), "\n", "\r\n"), false},
		"out of use, and in use": {"s.sources", stanza("Enabled: false", "URIs: file:///repo", "Suites: noble", "Components: stable") + "\n\n" + stanza("URIs: file:///repo", "Suites: noble", "Components: stable"), false},
		"out of use":             {"s.sources", stanza("URIs: file:///repo", "Suites: noble", "Components: stable", "Enabled: no") + "\n" + stanza("URIs: file:///repo", "Suites: jammy", "Components: stable"), true},
		"a file apt passes over": {"of mine.list", line("file:///repo noble stable"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.suiteRepository()
			s.ok(s.script("ln -s repo /" + arch()))
			if strings.Contains(c.content, "$(ARCH)") {
				s.value("line", "deb [signed-by=/etc/apt/keyrings/kgpu.gpg] file:///"+arch()+" noble stable")
			}
			s.write("etc/apt/keyrings/theirs.asc", s.read("repo/key"))
			s.write("etc/apt/sources.list.d/"+c.file, c.content)
			s.write("etc/apt/sources.list", "deb [signed-by="+key+"] file:///repo jammy test\n")
			before, had := s.snapshot(), s.lists()
			s.ok(s.step("repository"))
			if got := s.read("etc/apt/sources.list.d/" + c.file); (got == c.content) != c.stays {
				t.Errorf("it is\n%s", got)
			}
			now := s.lists()
			for _, list := range had {
				if !slices.Contains(now, list) {
					t.Errorf("apt had %s, and has %v", list, now)
				}
			}
			s.ok(s.step("repository"))
			s.ok(s.script("apt_install kubelet=1.36.3-1.1; undo_all"))
			s.same(before)
		})
	}
}

// A list that was broken before is not kgpu's to mend: nothing changes, and the reason names the file.
func TestRepositoryBesideABrokenList(t *testing.T) {
	t.Parallel()
	const one, two = "/etc/apt/sources.list.d/one.list", "/etc/apt/sources.list.d/two.sources"
	for name, c := range map[string]struct {
		one, two string
		want     []string
	}{
		"a line":    {"deb file:///repo\n", "", []string{"Malformed entry 1 in list file " + one}},
		"two files": {"deb [signed-by=/a.gpg] http://ada:hidden@example.org/$(ARCH)/x stable main\n", "Types: deb\nURIs: https://example.org/$(ARCH)/x/\nSuites: stable\nComponents: main\nSigned-By: /b.gpg\n", []string{"/a.gpg != /b.gpg", "(" + one + " " + two + ")"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.value("fingerprint", s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"}))
			s.write(one[1:], c.one)
			if c.two != "" {
				s.write(two[1:], c.two)
			}
			before := s.snapshot()
			r := s.step("repository")
			s.fails(r, 1, "HOST_APT_CONFIG")
			contains(t, r.failure, c.want...)
			if strings.Contains(r.failure+r.output, "hidden") || s.entries() != 0 {
				t.Errorf("%d entries, output:\n%s", s.entries(), r.output)
			}
			s.same(before)
		})
	}
}
