package scripts

import (
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// deb is a package of the test's own repository.
type deb struct {
	name, version, depends, conflicts string
	preinst, postinst                 string
	files                             map[string]string
	arch                              string // none: all; otherwise others of its name may be installed beside it
}

// repository puts packages where apt of the sandbox finds them.
func (s *sandbox) repository(debs ...deb) {
	s.t.Helper()
	s.repositoryOf("repo", debs...)
	s.write("etc/apt/sources.list", "deb [trusted=yes] file:/repo ./\n")
}

// built are the packages that were built, by what is in them.
var built sync.Map

// build makes the file of a package.
func (s *sandbox) build(d deb, control, arch string) []byte {
	s.t.Helper()
	key := fmt.Sprintf("%#v", d)
	if data, ok := built.Load(key); ok {
		return data.([]byte)
	}
	dir := s.t.TempDir()
	s.must(os.MkdirAll(dir+"/DEBIAN", 0o755))
	s.must(os.MkdirAll(dir+"/opt/"+d.name, 0o755))
	s.must(os.WriteFile(dir+"/DEBIAN/control", []byte(control), 0o644))
	s.must(os.WriteFile(dir+"/DEBIAN/conffiles", []byte("/opt/"+d.name+"/conf\n"), 0o644))
	s.must(os.WriteFile(dir+"/opt/"+d.name+"/conf", []byte(d.version), 0o644))
	var sums strings.Builder // as dh_md5sums makes them: without configuration
	for path, content := range d.files {
		s.must(os.MkdirAll(filepath.Dir(dir+path), 0o755))
		s.must(os.WriteFile(dir+path, []byte(content), 0o644))
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum([]byte(content)), path[1:])
	}
	s.must(os.WriteFile(dir+"/DEBIAN/md5sums", []byte(sums.String()), 0o644))
	for name, script := range map[string]string{"preinst": d.preinst, "postinst": d.postinst} {
		if script != "" {
			s.must(os.WriteFile(dir+"/DEBIAN/"+name, []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o755))
		}
	}
	s.run("dpkg-deb", "--root-owner-group", "-Zgzip", "-b", dir, dir+".deb")
	data := []byte(readFile(s.t, dir+".deb"))
	built.Store(key, data)
	return data
}

// repositoryOf makes a directory of the sandbox a repository of these packages.
func (s *sandbox) repositoryOf(directory string, debs ...deb) {
	s.t.Helper()
	var index strings.Builder
	for _, d := range debs {
		arch, control := "all", ""
		if d.arch != "" {
			arch, control = d.arch, "Multi-Arch: same\n"
		}
		control += fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: test <test@example.org>\nDescription: test\n", d.name, d.version, arch)
		if d.depends != "" {
			control += "Depends: " + d.depends + "\n"
		}
		if d.conflicts != "" {
			control += "Conflicts: " + d.conflicts + "\n"
		}
		file := fmt.Sprintf("%s_%s_%s.deb", d.name, d.version, arch)
		data := s.build(d, control, arch)
		s.write(directory+"/"+file, string(data))
		fmt.Fprintf(&index, "%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n", control, file, len(data), sha256.Sum256(data))
	}
	s.write(directory+"/Packages", index.String())
}

// status is dpkg's word for a package.
func (s *sandbox) status(name string) string {
	s.t.Helper()
	out, _ := exec.Command("dpkg-query", "--admindir", s.path("var/lib/dpkg"), "-W", "-f", "${db:Status-Want} ${db:Status-Status} ${Version}", name).Output()
	return string(out)
}

// packageIs wants a package to have this status; "" is that of one that dpkg does not know.
func (s *sandbox) packageIs(name, want string) {
	s.t.Helper()
	if got := s.status(name); got != want {
		s.t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func TestPackagesComeAndGo(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(
		deb{name: "kubelet", version: "1.36.3-1.1", depends: "kubernetes-cni"}, deb{name: "kubernetes-cni", version: "1.8.0-1.1"},
		deb{name: "old", version: "2"}, deb{name: "was-there", version: "1"},
	)
	s.ok(s.script("apt-get update; apt-get install -y was-there"))
	before := s.snapshot()
	s.ok(s.script("apt_install kubelet=1.36.3-1.1 was-there; hold kubelet"))
	s.packageIs("kubelet", "hold installed 1.36.3-1.1")
	entries := s.entries()
	s.ok(s.script("apt_install kubelet=1.36.3-1.1 was-there; hold kubelet"))
	if n := s.entries(); n != entries || n != 2 {
		t.Errorf("%d entries, then %d, want 2", entries, n)
	}
	s.ok(s.script("undo_all"))
	for name, want := range map[string]string{"kubelet": "", "kubernetes-cni": "", "was-there": "install installed 1"} {
		if got := s.status(name); got != want && !strings.Contains(got, "not-installed") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	s.same(before)
}

func TestPackageThatIsNotOffered(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "kubelet", version: "1.36.2-1.1"})
	s.fails(s.script("apt_install no-such-package"), 1, "PACKAGE_MISSING")
	s.fails(s.script("apt_install kubelet=1.36.3-1.1"), 1, "PACKAGE_MISSING")
	s.value("version", "1.36.3")
	s.fails(s.step("kube-packages"), 1, "PACKAGE_MISSING")
}

// The revision is looked up, not guessed, and 1.36.3 is not 1.36.30.
func TestExactVersion(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("var/units/kubelet.service", "loaded,inactive,disabled\n")
	var debs []deb
	for _, name := range []string{"kubelet", "kubeadm", "kubectl"} {
		debs = append(debs, deb{name: name, version: "1.36.30-1.1"}, deb{name: name, version: "1.36.3-2.7"}, deb{name: name, version: "1.36.3-1.1"})
	}
	s.repository(debs...)
	s.value("version", "1.36.3")
	for range 2 {
		s.ok(s.step("kube-packages"))
		for _, name := range []string{"kubelet", "kubeadm", "kubectl"} {
			s.packageIs(name, "hold installed 1.36.3-2.7")
		}
	}
	s.holds("var/units/kubelet.service", "loaded,active,enabled\n")
}

func TestAlternativesOfPackages(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "docker.io", version: "26"}, deb{name: "docker-cli", version: "26"}, deb{name: "docker-ce", version: "28"})
	s.value("packages", "docker-ce docker-ce-cli\ndocker.io docker-cli\n")
	s.ok(s.script("apt_install_first packages"))
	s.packageIs("docker.io", "install installed 26")
	s.packageIs("docker-ce", "")
	s.repository(deb{name: "docker-ce", version: "28"}, deb{name: "docker-ce-cli", version: "28"})
	s.ok(s.script("apt-get update; apt_install_first packages"))
	s.packageIs("docker-ce", "") // or what is installed was replaced by an earlier alternative
}

func TestNothingOfTheOwnersIsRemoved(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "theirs", version: "1"}, deb{name: "ours", version: "1", conflicts: "theirs"})
	s.ok(s.script("apt-get update; apt-get install -y theirs"))
	s.fails(s.script("apt_install ours"), 1, "HOST_RUNTIME_CONFLICT")
	if s.status("theirs") != "install installed 1" || s.entries() != 0 {
		t.Errorf("theirs: %q", s.status("theirs"))
	}
}

// Somebody installed a package that needs one of ours: that one stays, and undo says so.
func TestPackageThatSomethingNeedsByNow(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "socat", version: "1"}, deb{name: "conntrack", version: "1"}, deb{name: "theirs", version: "1", depends: "socat"})
	s.ok(s.script("apt_install socat conntrack; apt-get install -y theirs"))
	r := s.ok(s.script("undo_all"))
	if !strings.HasPrefix(s.status("socat"), "install installed") || !strings.HasPrefix(s.status("theirs"), "install installed") || strings.HasPrefix(s.status("conntrack"), "install") {
		t.Errorf("socat %q, theirs %q, conntrack %q", s.status("socat"), s.status("theirs"), s.status("conntrack"))
	}
	contains(t, r.output, "not undone: package socat, needed by theirs")
}

// signingKey is a key that repositories are signed with.
type signingKey struct{ home, fingerprint, armored string }

// signingKeys are keys that all sandboxes share: to make one takes as many programs as a test.
var signingKeys struct {
	sync.Mutex
	made []*signingKey
}

// keyring is a signing key of which the sandbox has not had any before; its public part is in the sandbox's /repo/key.
func (s *sandbox) keyring() (home, fingerprint string) {
	s.t.Helper()
	signingKeys.Lock()
	defer signingKeys.Unlock()
	if s.keys == len(signingKeys.made) {
		signingKeys.made = append(signingKeys.made, s.newSigningKey())
	}
	k := signingKeys.made[s.keys]
	s.keys++
	s.write("repo/key", k.armored)
	return k.home, k.fingerprint
}

func (s *sandbox) newSigningKey() *signingKey {
	s.t.Helper()
	home, err := os.MkdirTemp("", "key")
	s.must(err)
	k := &signingKey{home: home}
	gpg := func(args ...string) string {
		out, err := exec.Command("gpg", append([]string{"--homedir", home, "--batch", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)...).Output()
		s.must(err)
		return string(out)
	}
	gpg("--quick-gen-key", "test <test@example.org>", "ed25519", "sign", "never")
	for line := range strings.Lines(gpg("--with-colons", "--list-keys")) {
		if f := strings.Split(line, ":"); f[0] == "fpr" {
			k.fingerprint = f[9]
		}
	}
	k.armored = gpg("--armor", "--export")
	return k
}

// endSigning ends gpg's agents, which would stay behind.
func endSigning() {
	for _, k := range signingKeys.made {
		_ = exec.Command("gpgconf", "--homedir", k.home, "--kill", "all").Run()
	}
}

// signed are the InReleases that were made, by key and Release.
var signed sync.Map

// clearsign signs the Release of a directory of the sandbox.
func (s *sandbox) clearsign(home, directory string) {
	s.t.Helper()
	what := [2]string{home, s.read(directory + "/Release")}
	if text, ok := signed.Load(what); ok {
		s.write(directory+"/InRelease", text.(string))
		return
	}
	s.run("gpg", "--homedir", home, "--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase", "", "--clearsign",
		"-o", s.path(directory+"/InRelease"), s.path(directory+"/Release"))
	signed.Store(what, s.read(directory+"/InRelease"))
}

// sign signs a flat repository of the origin test, whose Release gets more fields.
func (s *sandbox) sign(home, repository, more string) {
	s.t.Helper()
	s.signAs(home, repository, "Origin: test\n"+more)
}

func (s *sandbox) signAs(home, repository, fields string) {
	s.t.Helper()
	index := s.read(repository + "/Packages")
	s.write(repository+"/Release", "Date: Fri, 20 Nov 2026 12:00:00 UTC\n"+fields+fmt.Sprintf("SHA256:\n %x %d Packages\n", sha256.Sum256([]byte(index)), len(index)))
	s.clearsign(home, repository)
}

// signedRepository is a repository at file:///repo/ whose key is file:///repo/key, and the step's values for it.
func (s *sandbox) signedRepository(debs ...deb) (fingerprint string) {
	s.t.Helper()
	s.repository(debs...)
	s.write("etc/apt/sources.list", "")
	home, fingerprint := s.keyring()
	s.sign(home, "repo", "")
	for name, v := range map[string]string{
		"name": "kubernetes", "key_url": "file:///repo/key", "keyring": "/etc/apt/keyrings/kgpu.gpg", "list": "/etc/apt/sources.list.d/kgpu.list",
		"line":        "deb [signed-by=/etc/apt/keyrings/kgpu.gpg] file:///repo/ /",
		"preferences": "/etc/apt/preferences.d/zz-kgpu", "packages": "kubelet\n",
	} {
		s.value(name, v)
	}
	return fingerprint
}

func TestRepository(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	fingerprint := s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"})
	before := s.snapshot()

	s.value("fingerprint", strings.Repeat("A", 40))
	s.fails(s.step("repository"), 1, "REPO_KEY_MISMATCH")
	s.same(before)

	s.value("fingerprint", strings.Repeat("A", 40)+"\n"+strings.ToLower(fingerprint)+"\n")
	s.twice("repository")
	s.ok(s.script("apt_install kubelet=1.36.3-1.1"))

	s.value("line", "deb [signed-by=/etc/apt/keyrings/kgpu.gpg] file:///nothing trixie stable")
	s.value("list", "/etc/apt/sources.list.d/nothing.list")
	s.value("optional", "yes")
	s.ok(s.step("repository"))
	s.absent("etc/apt/sources.list.d/nothing.list")
	s.value("optional", "no")
	if r := s.step("repository"); r.status == 0 || !strings.HasPrefix(r.failure, "REPO_UNREACHABLE\t") {
		t.Errorf("status %d, failure %q", r.status, r.failure)
	}

	s.undone(before)
	lists, err := filepath.Glob(s.path("var/lib/apt/lists/*repo*"))
	s.must(err)
	if len(lists) > 0 {
		t.Errorf("package lists stayed behind: %q", lists)
	}
}

// Somebody has the same repository with a key of their own, for which apt would refuse both.
func TestRepositoryOfSomebody(t *testing.T) {
	t.Parallel()
	const line, stanza = "deb [arch=amd64 signed-by=/etc/apt/keyrings/theirs.asc] file:///repo /\n", "Types: deb\nURIs: file:///repo/\nSuites: /\nSigned-By: /etc/apt/keyrings/theirs.asc\n"
	const otherLine, otherStanza = "#deb file:///repo /\ndeb [trusted=yes] file:///other /\n", "# another\nTypes: deb\nURIs: file:///other/\nSuites: /\nTrusted: yes\n"
	for _, c := range []struct{ file, content, want string }{
		{"theirs.list", line + otherLine, "# " + line + otherLine},
		{"theirs.sources", stanza + "\n" + otherStanza, stanza + "Enabled: no\n\n" + otherStanza},
		{"theirs.sources", "Enabled: yes\n" + stanza, stanza + "Enabled: no\n"},
	} {
		s := newSandbox(t)
		s.value("fingerprint", s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"}))
		s.write("other/Packages", "")
		s.write("etc/apt/keyrings/theirs.asc", s.read("repo/key"))
		s.write("etc/apt/sources.list.d/"+c.file, c.content)
		before := s.snapshot()
		s.twice("repository")
		s.ok(s.script("apt_install kubelet=1.36.3-1.1"))
		if got := s.read("etc/apt/sources.list.d/" + c.file); strings.TrimSpace(got) != strings.TrimSpace(c.want) {
			t.Errorf("%s of\n%s became\n%s\nwant\n%s", c.file, c.content, got, c.want)
		}
		if got := s.read("etc/apt/preferences.d/zz-kgpu"); !strings.HasPrefix(got, "# apt had this repository before") || strings.Contains(got, "Package:") {
			t.Errorf("what somebody had of it has less priority now:\n%s", got)
		}
		s.undone(before)
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("data", "content")
	sum := fmt.Sprintf("%X", sha256.Sum256([]byte("content")))
	s.ok(s.script("fetch file:///data /tmp/got " + sum + "; fetch file:///data /tmp/got2"))
	if s.read("tmp/got") != "content" {
		t.Error("content differs")
	}
	s.fails(s.script("fetch file:///data /tmp/bad "+strings.Repeat("0", 64)), 1, "CHECKSUM_MISMATCH")
	s.absent("tmp/bad")
	s.fails(s.script("fetch http://user:hidden@127.0.0.1:1/x /tmp/x"), 75, "REPO_UNREACHABLE")
	lacks(t, s.read(stepDir+"/failure"), "hidden")
}

// overHTTP begins a script in which /repo is served at http://127.0.0.1:8000/.
const overHTTP = "python3 -m http.server 8000 --bind 127.0.0.1 -d /repo >/dev/null 2>&1 &\ntrap \"kill $!\" EXIT\n" +
	"until curl -fs -o /dev/null http://127.0.0.1:8000/key; do command sleep 0.05; done\n"

// apt takes a package list that is there for whole as long as its repository says that nothing is new. A power cut leaves empty ones.
func TestListsThatAPowerCutEmptied(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.value("fingerprint", s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"}))
	s.value("line", "deb [signed-by=/etc/apt/keyrings/kgpu.gpg] http://127.0.0.1:8000/ /")
	text, err := Step("repository")
	s.must(err)
	s.ok(s.bash(overHTTP + string(text)))
	r := s.ok(s.script(overHTTP + `
rm -f /var/cache/apt/*.bin
for list in /var/lib/apt/lists/*Packages*; do : >"$list"; done
[[ -z $(apt_versions kubelet) ]]
apt_install_version 1.36.3 kubelet
dpkg-query -W kubelet`))
	contains(t, r.output, "kubelet\t1.36.3-1.1")
	s.ok(s.script("for list in /var/lib/apt/lists/*Packages*; do : >\"$list\"; done"))
	s.ok(s.bash(overHTTP + string(text)))
	s.prints("apt_versions kubelet", "1.36.3-1.1\n")
}
