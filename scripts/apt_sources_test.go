package scripts

import (
	"strings"
	"testing"
)

// nobody accepts connections on a port of the sandbox and says nothing; with an answer it says that.
const nobody = `
perl -MIO::Socket::INET -e '$SIG{CHLD} = "IGNORE"; my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8000, Listen => 99, ReuseAddr => 1) or die;
open my $ready, ">", "/tmp/ready"; close $ready;
while (my $c = $s->accept) { if (fork == 0) { if (@ARGV) { <$c>; print $c $ARGV[0]; shutdown $c, 1 } 1 while sysread $c, my $b, 999; exit } close $c }' -- "$@" &
trap "kill $!" EXIT
until [[ -e /tmp/ready ]]; do command sleep 0.05; done
`

// A repository of somebody else that does not work is no failure, whatever is wrong with it; what it does not have is said.
func TestDeadRepositoriesOfSomebody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sources string // of the other one
		server  string
		said    string
		prepare func(s *sandbox)
	}{
		"nothing there":  {"deb [trusted=yes] file:/nowhere ./", "", "file:/nowhere", nil},
		"refused":        {"deb [trusted=yes] http://127.0.0.1:1/x ./", "", "http://127.0.0.1:1/x", nil},
		"no such name":   {"deb https://ppa.example.invalid/x stable main", "", "ppa.example.invalid", nil},
		"says nothing":   {"deb http://127.0.0.1:8000/x stable main", "set --" + nobody, "http://127.0.0.1:8000/x", nil},
		"gone, by lines": {"deb http://127.0.0.1:8000/ kubernetes-xenial main", "set -- $'HTTP/1.1 404 Not Found\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n'" + nobody, "does not have a Release file", nil},
		"gone, by paragraphs": {"Types: deb\nURIs: http://127.0.0.1:8000/\nSuites: kubernetes-xenial\nComponents: main\n",
			"set -- $'HTTP/1.1 404 Not Found\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n'" + nobody, "does not have a Release file", nil},
		"expired": {"deb [signed-by=/etc/apt/keyrings/theirs.asc] file:/old ./", "", "Release file for file:/old/./InRelease is expired", func(s *sandbox) {
			home, _ := s.keyring()
			s.sign(home, "old", "Valid-Until: Sat, 21 Nov 2020 12:00:00 UTC\n")
			s.write("etc/apt/keyrings/theirs.asc", s.read("repo/key"))
		}},
		"an expired key": {"deb [signed-by=/etc/apt/keyrings/theirs.asc] file:/old ./", "", "EXPKEYSIG", func(s *sandbox) {
			k := s.newSigner("theirs", "20250601T000000")
			s.write("etc/apt/keyrings/theirs.asc", k.armored())
			k.extend()
			s.sign(k.home, "old", "")
		}},
		"another key": {"deb [signed-by=/etc/apt/keyrings/theirs.asc] file:/old ./", "", "NO_PUBKEY", func(s *sandbox) {
			home, _ := s.keyring()
			s.sign(home, "old", "")
			s.keyring()
			s.write("etc/apt/keyrings/theirs.asc", s.read("repo/key"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // apt pauses before it tries again
			s := newSandbox(t)
			s.repository(deb{name: "one", version: "1"})
			s.write("old/Packages", "")
			if c.prepare != nil {
				c.prepare(s)
			}
			file := "etc/apt/sources.list.d/theirs.list"
			if strings.HasPrefix(c.sources, "Types") {
				file = "etc/apt/sources.list.d/theirs.sources"
			}
			s.write(file, c.sources+"\n")
			r := s.ok(s.script(c.server + "\napt_silence=1\napt_install one"))
			if s.status("one") != "install installed 1" || !strings.Contains(r.output, "some repositories did not answer") || !strings.Contains(r.output, c.said) {
				t.Errorf("one %q, output:\n%s", s.status("one"), r.output)
			}
		})
	}
}

// apt, which waits for a server that does not come to an end, is ended, and the other repositories are read by themselves.
func TestRepositoryWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "one", version: "1"})
	s.write("etc/apt/sources.list.d/theirs.list", "deb http://127.0.0.1:8000/x stable main\n")
	r := s.ok(s.script("set --" + nobody + "seconds_left() { echo 8; }\napt_silence=600\napt_install one"))
	if s.status("one") != "install installed 1" || !strings.Contains(r.output, "/etc/apt/sources.list.d/theirs.list was left out") {
		t.Errorf("one %q, output:\n%s", s.status("one"), r.output)
	}
}

// What is not offered while lists did not come in time may be in them, whatever is wrong with other repositories.
func TestPackageOfALateRepository(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"to install": "apt_install two", "to choose from": "apt_update\nrefuse_missing 'apt does not offer two' two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(deb{name: "one", version: "1"})
			s.write("etc/apt/apt.conf.d/99quick", "Acquire::Retries::Delay \"false\";\n")
			s.write("etc/apt/sources.list.d/dead.list", "deb http://127.0.0.2:1/x stable main\n")
			s.write("etc/apt/sources.list.d/theirs.list", "deb http://127.0.0.1:8000/x stable main\n")
			s.fails(s.script("set --"+nobody+"seconds_left() { echo 4; }\napt_silence=600\n"+script), 75, "REPO_UNREACHABLE")
			s.detail("/etc/apt/sources.list.d/theirs.list did not come in time") // on a busy machine, others may be late, too
		})
	}
}

// The same entry twice, or the host's own twice: apt says so, and works.
func TestDoubleEntries(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.value("fingerprint", s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"}))
	s.repositoryOf("theirs", deb{name: "theirs", version: "1"})
	s.write("etc/apt/sources.list.d/a.list", "deb [trusted=yes] file:/theirs ./\n")
	s.write("etc/apt/sources.list.d/b.sources", "Types: deb\nURIs: file:/theirs\nSuites: ./\nTrusted: yes\n")
	s.twice("repository")
	r := s.ok(s.script("apt_update; apt_install kubelet=1.36.3-1.1 theirs"))
	contains(t, r.output, "is configured multiple times")
	lacks(t, r.output, "did not answer")
}

// Addresses of sources may hold the passwords of their owner.
func TestPasswordsInSources(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "one", version: "1"})
	s.write("etc/apt/sources.list.d/theirs.list", "deb http://ada:hidden@127.0.0.1:1/x stable main\n")
	r := s.ok(s.script("apt_install one"))
	contains(t, r.output, "//127.0.0.1:1/x")
	lacks(t, r.output, "hidden")
	s.write("etc/apt/sources.list.d/theirs.list", "deb [signed-by=/a.gpg] http://ada:hidden@127.0.0.1:1/x stable main\ndeb [signed-by=/b.gpg] http://ada:hidden@127.0.0.1:1/x stable main\n")
	r = s.script("apt_update")
	s.fails(r, 1, "HOST_APT_CONFIG")
	if strings.Contains(r.output+r.failure+s.read(stepDir+"/apt.log"), "hidden") || !strings.Contains(r.failure, "/etc/apt/sources.list.d/theirs.list") {
		t.Errorf("failure %q, output:\n%s", r.failure, r.output)
	}
}
