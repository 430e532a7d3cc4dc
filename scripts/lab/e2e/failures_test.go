package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// refusal is a run of kgpu up that must end before it changes anything.
type refusal struct {
	name    string
	hosts   []string // of the inventory
	more    string   // of the inventory
	flags   []string
	exit    int
	reasons []string // "HOST REASON what else the message says", one for each problem
}

// TestFailures runs kgpu up against hosts with a fault each. The reasons are clear, the exit statuses distinct, and no
// host is different afterwards.
func TestFailures(t *testing.T) {
	l := newLab(t, nil, "--workers", "2", "--with", "password")
	d := desired{version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories()}

	// The faults stay for the whole test: those that a run is not about are on hosts that it does not name, or ignored.
	l.exec(t, "cp1", "systemd-run --quiet --unit=e2e-listener perl -MIO::Socket::INET -e "+
		"'my $s = IO::Socket::INET->new(LocalPort => 6443, Listen => 9) or die; while (my $c = $s->accept) { close $c }'; "+
		"timeout 60 bash -c \"until ss -Hltn | grep -q ':6443 '; do sleep 0.1; done\"")
	l.exec(t, "w1", "echo "+l.exec(t, "cp1", "cat /etc/machine-id")+" >/etc/machine-id")
	l.exec(t, "w2", `printf '/e2e.swap\tfile\t1048572\t0\t-2\n' >>/proc/swaps`)
	l.exec(t, "cp1", "iptables -A INPUT -p tcp -s "+l.addr["w1"]+" --dport 6443 -j DROP")
	before := l.snapshot(t, "cp1", "w1", "w2", "password1")

	cp, w1, w2 := l.host("cp1", ""), l.host("w1", ""), l.host("w2", "")
	with := func(host, key, path string) string { return l.host(host, "ssh: {"+key+": \""+path+"\"}") }
	ports, ids, swap, blocked := "HOST_PORT_TAKEN", "HOST_MACHINE_ID_DUPLICATE", "HOST_SWAP_ON", "NET_PORT_BLOCKED"
	ignoring := func(ids ...string) (flags []string) {
		for _, id := range ids {
			flags = append(flags, "--ignore", id)
		}
		return flags
	}
	for _, r := range []refusal{
		{"wrong host key", []string{cp, with("w1", "knownHosts", l.knownAs(t, "w1", "cp1"))}, "", nil,
			22, []string{"w1 SSH_HOST_KEY_MISMATCH SHA256:"}},
		{"unknown host key", []string{cp, with("w1", "knownHosts", file(t, "known_hosts", ""))}, "", nil,
			21, []string{"w1 SSH_HOST_KEY_UNKNOWN SHA256:"}},
		{"wrong client key", []string{cp, with("w1", "key", file(t, "key", newKey(t)))}, "", nil,
			23, []string{"w1 SSH_AUTH_FAILED ubuntu"}},
		{"sudo without its password", []string{cp, l.host("password1", "")}, "", nil,
			25, []string{"password1 SUDO_REFUSED password"}},
		{"sudo with a wrong password", []string{cp, with("password1", "sudoPassword", "file:"+file(t, "password", "not-the-password\n"))}, "", nil,
			25, []string{"password1 SUDO_REFUSED password"}},
		{"several hosts out of reach", []string{cp, with("w1", "knownHosts", file(t, "known_hosts", "")), with("w2", "key", file(t, "key", newKey(t))), l.host("password1", "")}, "", nil,
			40, []string{"w1 SSH_HOST_KEY_UNKNOWN", "w2 SSH_AUTH_FAILED", "password1 SUDO_REFUSED"}},
		{"port taken", []string{cp, w1, w2}, "", ignoring(ids, swap, blocked),
			64, []string{"cp1 " + ports + " 6443"}},
		{"duplicate machine-id", []string{cp, w1, w2}, "", ignoring(ports, swap, blocked),
			61, []string{"w1 " + ids + " " + l.addr["cp1"]}},
		{"swap on", []string{cp, w1, w2}, "", ignoring(ports, ids, blocked),
			57, []string{"w2 " + swap + " /e2e.swap"}},
		{"no way to the API server", []string{cp, w1, w2}, "", ignoring(ports, ids, swap),
			74, []string{"w1 " + blocked + " port 6443"}},
		{"a registry that does not exist", []string{cp, w1, w2}, "images: {registry: registry.no-such.lab}\n", ignoring(ports, ids, swap, blocked),
			75, []string{"cp1 NET_NAME_UNRESOLVED registry.no-such.lab", "w1 NET_NAME_UNRESOLVED", "w2 NET_NAME_UNRESOLVED"}},
		{"all at once", []string{cp, w1, w2}, "", nil,
			40, []string{"cp1 " + ports, "w1 " + blocked, "w1 " + ids, "w2 " + swap}},
	} {
		t.Run(r.name, func(t *testing.T) {
			if len(r.flags) > 0 && r.more == "" { // the last one tells of all of these
				long(t)
			}
			l.refuses(t, d, r)
		})
	}
	l.unchanged(t, before)

	l.verb(t, "kill", "w2")
	delete(before, "w2")
	t.Run("host down", func(t *testing.T) {
		l.refuses(t, d, refusal{hosts: []string{cp, w1, w2}, exit: 20, reasons: []string{"w2 SSH_UNREACHABLE"}})
	})
	l.unchanged(t, before)
}

// refuses runs kgpu up for people and for programs: both must tell the same.
func (l *lab) refuses(t *testing.T, d desired, r refusal) {
	t.Helper()
	d.hosts, d.more = r.hosts, d.more+r.more
	inventory := l.write(t, t.TempDir(), d)
	s := kgpu(t, r.exit, append([]string{"up", inventory}, r.flags...)...)
	errors := errorLines(s.stderr.String())
	if len(errors) != len(r.reasons) {
		t.Errorf("%d errors, want %d:\n%s", len(errors), len(r.reasons), s.stderr.String())
	}
	for _, want := range r.reasons {
		f := strings.Fields(want)
		found := false
		for _, e := range errors {
			found = found || strings.HasPrefix(e, "error: "+l.addr[f[0]]+": ") && strings.Contains(e, "["+f[1]+"]") &&
				strings.Contains(e, strings.Join(f[2:], " ")) && strings.Contains(e, "\n  → ")
		}
		if !found {
			t.Errorf("no error of %s with %q and an advice:\n%s", f[0], f[1:], s.stderr.String())
		}
	}
	if said := s.stdout.String() + s.stderr.String(); strings.Contains(said, "not-the-password") {
		t.Errorf("kgpu printed the password:\n%s", said)
	}

	stream := kgpu(t, r.exit, append([]string{"up", "--output", "json", inventory}, r.flags...)...)
	if begun := stream.of("step.start"); len(begun) > 0 {
		t.Errorf("steps were begun: %v", begun)
	}
	result := stream.of("result")
	if len(result) != 1 || result[0].Reason != strings.Fields(r.reasons[0])[1] {
		t.Errorf("results: %v, want %s", result, r.reasons[0])
	}
}

// errorLines splits what kgpu printed into errors with the lines that belong to each: what is told once of several hosts is an
// error of each. Advice that several share stands below the last of them.
func errorLines(text string) []string {
	var out []string
	for _, line := range lines(text) {
		switch {
		case strings.HasPrefix(line, "error: "):
			out = append(out, line)
		case len(out) > 0:
			out[len(out)-1] += "\n" + line
		}
	}
	const advice = "\n  → "
	for i := len(out) - 2; i >= 0; i-- {
		if _, below, found := strings.Cut(out[i+1], advice); found && !strings.Contains(out[i], advice) {
			out[i] += advice + below
		}
	}
	var each []string
	for _, e := range out {
		hosts, text, _ := strings.Cut(strings.TrimPrefix(e, "error: "), ": ")
		for h := range strings.SplitSeq(hosts, ", ") {
			each = append(each, "error: "+h+": "+text)
		}
	}
	return each
}

// knownAs is a known_hosts file in which a host has another one's keys.
func (l *lab) knownAs(t *testing.T, host, other string) string {
	t.Helper()
	known, err := os.ReadFile(l.KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, line := range lines(string(known)) {
		if names, key, _ := strings.Cut(line, " "); strings.Contains(names, l.addr[other]) {
			text += l.addr[host] + " " + key + "\n"
		}
	}
	return file(t, "known_hosts", text)
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newKey is a private key that no host knows.
func newKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "e2e")
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}
