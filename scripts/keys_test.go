package scripts

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// signer is a key that signs repositories, with a home of gpg's to itself.
type signer struct {
	s                 *sandbox
	home, fingerprint string
}

// newSigner makes a key that ends at a time such as "20250601T000000", or "never".
func (s *sandbox) newSigner(name, ends string) *signer {
	s.t.Helper()
	k := &signer{s: s, home: s.t.TempDir()}
	s.must(os.Chmod(k.home, 0o700))
	s.t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", k.home, "--kill", "all").Run() })
	k.gpg("--faked-system-time", "20250101T000000", "--quick-gen-key", name+" <"+name+"@example.org>", "ed25519", "sign", ends)
	for line := range strings.Lines(k.gpg("--with-colons", "--list-keys")) {
		if f := strings.Split(line, ":"); f[0] == "fpr" {
			k.fingerprint = f[9]
		}
	}
	return k
}

func (k *signer) gpg(args ...string) string {
	k.s.t.Helper()
	out, err := exec.Command("gpg", append([]string{"--homedir", k.home, "--batch", "--passphrase", "", "--pinentry-mode", "loopback"}, args...)...).Output()
	k.s.must(err)
	return string(out)
}

func (k *signer) armored() string { return k.gpg("--armor", "--export") }

// extend lets the key end a year from now: what was exported before stays as it was.
func (k *signer) extend() { k.s.t.Helper(); k.gpg("--quick-set-expire", k.fingerprint, "1y") }

const keyring = "/etc/apt/keyrings/kgpu.gpg"

// keysIn lists the fingerprints of the primary keys in a file, such as a keyring; none where there is no file, or nothing in it.
func (s *sandbox) keysIn(file string) string {
	s.t.Helper()
	home := s.t.TempDir()
	s.must(os.Chmod(home, 0o700))
	out, _ := exec.Command("gpg", "--homedir", home, "--batch", "--with-colons", "--show-keys", s.path(file)).Output() // it fails of an empty one
	var found []string
	primary := false
	for line := range strings.Lines(string(out)) {
		f := strings.Split(line, ":")
		if f[0] == "fpr" && primary {
			found = append(found, f[9])
		}
		primary = f[0] == "pub"
	}
	return strings.Join(found, " ")
}

// Whoever answers the address of a key cannot get another key in beside the one that is known: the download is refused, and the
// keyring is made of the known key alone in any case. A repository that the other key signed is refused by apt.
func TestNoOtherKeyGetsIn(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	fingerprint := s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"})
	s.value("fingerprint", fingerprint)
	s.value("key_url", "file:///tmp/key")
	evil := s.newSigner("evil", "never")
	honest, other := s.read("repo/key"), evil.armored()
	headed := func(head string) string { return strings.ReplaceAll(other, "PGP PUBLIC KEY BLOCK", head) }
	binary := func(text string) string {
		s.write("tmp/text", text)
		s.ok(s.script("rm -rf /tmp/home; mkdir -m 700 /tmp/home; gpg --batch --homedir /tmp/home --dearmor </tmp/text >/tmp/binary"))
		return s.read("tmp/binary")
	}
	before := s.snapshot()
	for name, key := range map[string]string{
		"another beside it":     honest + other,
		"another before it":     other + honest,
		"both in one keyring":   binary(honest) + binary(other),
		"behind a message":      honest + headed("PGP MESSAGE"),
		"before it, a message":  headed("PGP MESSAGE") + honest,
		"behind an armored one": honest + headed("PGP ARMORED FILE"),
		"before it, an armored": headed("PGP ARMORED FILE") + honest,
		"a message after bytes": binary(honest) + headed("PGP MESSAGE"),
		"a secret one":          honest + evil.gpg("--armor", "--export-secret-keys"),
	} {
		s.write("tmp/key", key)
		s.fails(s.step("repository"), 1, "REPO_KEY_MISMATCH")
		if failure := s.read(stepDir + "/failure"); !strings.Contains(failure, fingerprint) {
			t.Errorf("%s: %q does not say which key was expected", name, failure)
		}
		s.same(before)

		// Whatever the check overlooks, nothing but the known key comes out of it.
		s.ok(s.script(`key_for kubernetes "$KGPU_STEP/values/key_url" "$KGPU_STEP/values/fingerprint"
key_check() { :; }
if (key_load file:///tmp/key /tmp/keyring); then touch /tmp/loaded; fi`))
		if got := s.keysIn("tmp/keyring"); got != "" && got != fingerprint {
			t.Errorf("%s: %s come out", name, got)
		}
	}
	if !s.exists("tmp/loaded") {
		t.Error("nothing was loaded past the check")
	}
	for name, key := range map[string]string{"armored": honest, "with words around it": "a key\n" + honest + "its end\n", "binary": binary(honest), "twice": honest + honest} {
		s.write("tmp/key", key)
		s.ok(s.step("repository"))
		if got := s.keysIn(keyring); got != fingerprint {
			t.Errorf("%s: the keyring has %s, want %s", name, got, fingerprint)
		}
	}
	s.sign(evil.home, "repo", "Codename: evil\n")
	s.fails(s.step("repository"), 1, "REPO_KEY_MISMATCH")
	contains(t, s.script("apt-get update").output, "NO_PUBKEY") // or apt takes what the other key signed
}

// endedRepository is a signed repository with a key that has ended, and was extended since: the sandbox's /repo/key is the key
// as it was, /repo/new as it is.
func (s *sandbox) endedRepository(debs ...deb) *signer {
	s.t.Helper()
	s.signedRepository(debs...)
	k := s.newSigner("ours", "20250601T000000")
	s.write("repo/key", k.armored())
	k.extend()
	s.write("repo/new", k.armored())
	s.sign(k.home, "repo", "")
	s.value("fingerprint", k.fingerprint)
	return k
}

// The key at the first address has expired: the same key, extended, is taken from another one; a foreign key there is not.
func TestKeyThatHasExpiredIsTakenFromElsewhere(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	k := s.endedRepository(deb{name: "kubelet", version: "1.36.3-1.1"})
	s.fails(s.step("repository"), 1, "REPO_KEY_EXPIRED")

	s.write("repo/foreign", s.newSigner("evil", "never").armored())
	s.value("key_url", "file:///repo/key\nfile:///repo/foreign\nfile:///repo/gone\n")
	s.fails(s.step("repository"), 1, "REPO_KEY_EXPIRED")

	s.value("key_url", "file:///repo/key\nfile:///repo/gone\nfile:///repo/foreign\nfile:///repo/new\n")
	s.ok(s.step("repository"))
	if got := s.keysIn(keyring); got != k.fingerprint {
		t.Errorf("the keyring has %s, want %s", got, k.fingerprint)
	}
	s.ok(s.script("apt_install kubelet=1.36.3-1.1"))
}

// The keyring's time is that of the last success: it says whether the key is worth another try.
func TestTimeOfAKeyring(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.endedRepository(deb{name: "kubelet", version: "1.36.3-1.1"})
	s.fails(s.step("repository"), 1, "REPO_KEY_EXPIRED")
	if info, err := os.Stat(s.path(keyring)); err != nil || info.ModTime().Unix() != 0 {
		t.Errorf("apt has refused what it signed, and its time is %v (%v)", info.ModTime(), err)
	}
	s.value("key_url", "file:///repo/new")
	s.ok(s.step("repository"))
	if info, err := os.Stat(s.path(keyring)); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("apt has taken what it signed, and its time is %v (%v)", info.ModTime(), err)
	}
}

// A key of kgpu's that expires between two runs is fetched again by whoever reads the package lists, and apt asked once more.
func TestKeyThatExpiresLater(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	k := s.endedRepository(deb{name: "kubelet", version: "1.36.3-1.1"})
	old := s.read("repo/key")
	s.write("repo/key", s.read("repo/new"))
	s.ok(s.step("repository"))
	expired := func() {
		t.Helper()
		s.write("tmp/old", old)
		s.ok(s.script("rm -rf /tmp/home; mkdir -m 700 /tmp/home; gpg --batch --homedir /tmp/home --dearmor </tmp/old >" + keyring))
	}
	expired()
	s.repositoryOf("repo", deb{name: "kubelet", version: "1.36.4-1.1"})
	s.sign(k.home, "repo", "")
	r := s.ok(s.script("apt_update; apt_install kubelet=1.36.4-1.1"))
	if n := strings.Count(r.output, "fetching it again"); n != 1 {
		t.Errorf("it was fetched %d times, want once:\n%s", n, r.output)
	}

	// Where what is served has expired too, or is another, apt goes on without the repository.
	for _, served := range []string{old, s.newSigner("evil", "never").armored()} {
		expired()
		s.write("repo/key", served)
		contains(t, s.ok(s.script("apt_update")).output, "goes on with the others")
		s.absent(stepDir + "/failure")
		// What is missing may be there.
		s.fails(s.script("apt_install kubelet=1.36.5-1.1"), 1, "REPO_KEY_EXPIRED")
		if got := s.keysIn(keyring); got != k.fingerprint {
			t.Errorf("the keyring has %s, want %s", got, k.fingerprint)
		}
	}
}
