package scripts

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// flip changes a byte in the middle of a file.
func (s *sandbox) flip(name string) {
	s.t.Helper()
	data := []byte(s.read(name))
	data[len(data)/2] ^= 1
	s.must(os.WriteFile(s.path(name), data, 0o644))
}

// A package that is not what the lists say is got once more, and then refused: what was expected and what came is told.
func TestOtherPackageThanTheListsSay(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *sandbox, deb string){
		"tampered":  func(s *sandbox, deb string) { s.flip(deb) },
		"truncated": func(s *sandbox, deb string) { s.must(os.Truncate(s.path(deb), 100)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(deb{name: "one", version: "1"})
			good := s.read("repo/one_1_all.deb")
			spoil(s, "repo/one_1_all.deb")
			bad := s.read("repo/one_1_all.deb")
			r := s.script("apt_install one")
			s.fails(r, 1, "REPO_CONTENT_MISMATCH")
			failure := s.read(stepDir + "/failure")
			for _, text := range []string{good, bad} {
				if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); !strings.Contains(failure, sum) {
					t.Errorf("%q does not name %s", failure, sum)
				}
			}
			if n := strings.Count(r.output, "getting it once more"); n != 1 {
				t.Errorf("it was tried again %d times, want once", n)
			}
			lacks(t, s.status("one"), " installed")

			// What is whole at the second try is no failure.
			s.write("repo/good", good)
			s.ok(s.script(`echo() { builtin echo "$@"; if [[ $* == *'once more'* ]]; then cp /repo/good /repo/one_1_all.deb; fi; }
apt_install one`))
		})
	}
}

func TestTamperedRepository(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.value("fingerprint", s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"}))
	before := s.snapshot()
	release := s.read("repo/InRelease")
	s.write("repo/InRelease", strings.Replace(release, "Origin: test", "Origin: evil", 1))
	r := s.step("repository")
	s.fails(r, 1, "REPO_CONTENT_MISMATCH")
	lacks(t, r.output, "once more") // or a bad signature was tried again
	s.ok(s.script("undo_all"))
	s.write("repo/InRelease", release)
	s.same(before)

	s.write("repo/Packages", s.read("repo/Packages")+"\n")
	s.fails(s.step("repository"), 1, "REPO_CONTENT_MISMATCH")

	s.flip("repo/key")
	s.fails(s.step("repository"), 1, "REPO_KEY_MISMATCH")
	contains(t, s.read(stepDir+"/failure"), s.read(stepDir+"/values/fingerprint"))
}

// A key that is cut short is refused, also where gpg can tell its fingerprint. Nothing of it is installed.
func TestKeyThatIsCutShort(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.value("fingerprint", s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"}))
	s.value("key_url", "file:///tmp/key")
	s.ok(s.script("mkdir -m 700 /tmp/home; gpg --batch --homedir /tmp/home --dearmor </repo/key >/tmp/binary"))
	before := s.snapshot()
	for _, key := range []string{s.read("repo/key"), s.read("tmp/binary")} {
		said := map[string]bool{}
		for _, part := range []int{2, 8, 13} {
			s.write("tmp/key", key[:len(key)*part/16])
			s.fails(s.step("repository"), 1, "REPO_KEY_MISMATCH")
			_, words, _ := strings.Cut(s.read(stepDir+"/failure"), "sent is ")
			word, _, _ := strings.Cut(words, ";")
			said[word] = true
		}
		if !said["cut short"] {
			t.Errorf("said: %v", said)
		}
	}
	s.same(before)
	s.write("tmp/key", s.read("repo/key"))
	s.ok(s.step("repository"))
}

// Nothing resolves in the sandbox, whose network has nobody else in it.
func TestNamesThatDoNotResolve(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/apt/sources.list", "deb [trusted=yes] http://mirror.invalid/x ./\n")
	s.write("var/lib/apt/lists/mirror.invalid_x_._Packages", "Package: one\nVersion: 1\nArchitecture: all\nMaintainer: t <t@example.org>\nDescription: t\nFilename: ./one.deb\nSize: 9\nSHA256: "+strings.Repeat("0", 64)+"\n\n")
	for _, script := range []string{"apt_install one", "fetch http://mirror.invalid/x /tmp/x"} {
		s.fails(s.script(script), 75, "NET_NAME_UNRESOLVED")
		if failure := s.read(stepDir + "/failure"); !strings.Contains(failure, "mirror.invalid") {
			t.Errorf("%s: %q does not name the name", script, failure)
		}
	}
}

// serve answers http://127.0.0.1:8080 in the sandbox: each request with the next of these statuses, the last one for ever,
// and with the file /served.
const serve = `
ip link set lo up
exec perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8080, Listen => 9, ReuseAddr => 1) or die; print "\n"; close STDOUT;
  while (my $c = $s->accept) { my $n = @ARGV > 1 ? shift @ARGV : $ARGV[0]; while (<$c>) { last if /^\r?$/ }
  open my $f, "<", "/served"; local $/; my $t = <$f>; print $c "HTTP/1.1 $n x\r\nConnection: close\r\nContent-Length: " . length($t) . "\r\n\r\n$t"; close $c }' `

func TestServersThatRefuse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		statuses, reason string
		exit             int
	}{
		{"500 503 429 200", "", 0},
		{"429", "REPO_UNREACHABLE", 75},
		{"500", "REPO_UNREACHABLE", 75},
		{"403", "REPO_UNREACHABLE", 1},
		{"404", "REPO_UNREACHABLE", 1},
	} {
		t.Run(c.statuses, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.write("served", "content")
			r := s.script(`curl() { command curl --retry-delay 1 "$@"; }
coproc server { ` + serve + c.statuses + ` 2>&1; }
read -r <&"${server[0]}"; trap 'kill "$server_PID"' EXIT
fetch http://127.0.0.1:8080/x /tmp/got`)
			if c.reason == "" {
				s.ok(r)
				return
			}
			s.fails(r, c.exit, c.reason)
			contains(t, s.read(stepDir+"/failure"), c.statuses)
		})
	}
}

// A download that was cut short is whole the second time; one that stays another is refused.
func TestFetchTriesAnotherContentOnce(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("data", "cont")
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("content")))
	r := s.ok(s.script(`echo() { builtin echo "$@"; if [[ $* == *'once more'* ]]; then printf content >/data; fi; }
fetch file:///data /tmp/got ` + sum))
	if s.read("tmp/got") != "content" || strings.Count(r.output, "once more") != 1 {
		t.Errorf("got %q\n%s", s.read("tmp/got"), r.output)
	}
}

// A download that began with TLS does not end without.
func TestDownloadsDoNotLeaveTLS(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("served", "content")
	s.write("web/x", "HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:8080/x\r\nContent-Length: 0\r\n\r\n")
	s.write("web/y", "HTTP/1.0 200 OK\r\n\r\ncontent")
	certify := exec.Command("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=localhost", "-days", "1", "-keyout", s.path("tmp/key.pem"), "-out", s.path("tmp/cert.pem"))
	if out, err := certify.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := s.script(`curl() { command curl --insecure "$@"; }
coproc server { ` + serve + `200 2>&1; }
read -r <&"${server[0]}"; trap 'kill $(jobs -p)' EXIT
cd /web
coproc tls { exec env OPENSSL_CONF=/dev/null openssl s_server -accept 4433 -key /tmp/key.pem -cert /tmp/cert.pem -HTTP 2>&1; }
until [[ $REPLY == ACCEPT* ]]; do read -r <&"${tls[0]}"; done
fetch https://127.0.0.1:4433/y /tmp/y
fetch http://127.0.0.1:8080/x /tmp/plain
fetch https://127.0.0.1:4433/x /tmp/got`)
	s.fails(r, 1, "REPO_UNREACHABLE")
	if s.read("tmp/y") != "content" || s.read("tmp/plain") != "content" || s.exists("tmp/got") {
		t.Errorf("y %q, plain %q, got: %v", s.read("tmp/y"), s.read("tmp/plain"), s.exists("tmp/got"))
	}
}
