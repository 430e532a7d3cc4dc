package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
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
	stream  bool     // --output json is asked for, too
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
		{name: "wrong host key", hosts: []string{cp, with("w1", "knownHosts", l.knownAs(t, "w1", "cp1"))},
			exit: 22, reasons: []string{"w1 SSH_HOST_KEY_MISMATCH SHA256:"}},
		{name: "unknown host key", hosts: []string{cp, with("w1", "knownHosts", file(t, "known_hosts", ""))},
			exit: 21, reasons: []string{"w1 SSH_HOST_KEY_UNKNOWN SHA256:"}},
		{name: "wrong client key", hosts: []string{cp, with("w1", "key", file(t, "key", newKey(t)))},
			exit: 23, reasons: []string{"w1 SSH_AUTH_FAILED ubuntu"}},
		{name: "sudo without its password", hosts: []string{cp, l.host("password1", "")},
			exit: 25, reasons: []string{"password1 SUDO_REFUSED password"}},
		{name: "sudo with a wrong password", hosts: []string{cp, with("password1", "sudoPassword", "file:"+file(t, "password", "not-the-password\n"))},
			exit: 25, reasons: []string{"password1 SUDO_REFUSED password"}},
		{name: "several hosts out of reach", hosts: []string{cp, with("w1", "knownHosts", file(t, "known_hosts", "")), with("w2", "key", file(t, "key", newKey(t))), l.host("password1", "")},
			exit: 40, reasons: []string{"w1 SSH_HOST_KEY_UNKNOWN", "w2 SSH_AUTH_FAILED", "password1 SUDO_REFUSED"}, stream: true},
		{name: "port taken", hosts: []string{cp, w1, w2}, flags: ignoring(ids, swap, blocked),
			exit: 64, reasons: []string{"cp1 " + ports + " 6443"}},
		{name: "duplicate machine-id", hosts: []string{cp, w1, w2}, flags: ignoring(ports, swap, blocked),
			exit: 61, reasons: []string{"w1 " + ids + " " + l.addr["cp1"]}},
		{name: "swap on", hosts: []string{cp, w1, w2}, flags: ignoring(ports, ids, blocked),
			exit: 57, reasons: []string{"w2 " + swap + " /e2e.swap"}},
		{name: "no way to the API server", hosts: []string{cp, w1, w2}, flags: ignoring(ports, ids, swap),
			exit: 74, reasons: []string{"w1 " + blocked + " port 6443"}},
		{name: "a registry that does not exist", hosts: []string{cp, w1, w2}, more: "images: {registry: registry.no-such.lab}\n", flags: ignoring(ports, ids, swap, blocked),
			exit: 75, reasons: []string{"cp1 NET_NAME_UNRESOLVED registry.no-such.lab", "w1 NET_NAME_UNRESOLVED", "w2 NET_NAME_UNRESOLVED"}},
		{name: "all at once", hosts: []string{cp, w1, w2},
			exit: 40, reasons: []string{"cp1 " + ports, "w1 " + blocked, "w1 " + ids, "w2 " + swap}},
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

// refuses runs kgpu up for people, and reads what it recorded of that: the events that programs get. Both must tell the same.
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

	told := newestRun(t, inventory)
	if begun := told.of("step.start"); len(begun) > 0 {
		t.Errorf("steps were begun: %v", begun)
	}
	result := told.of("result")
	if len(result) != 1 || result[0].Reason != strings.Fields(r.reasons[0])[1] {
		t.Errorf("results: %v, want %s", result, r.reasons[0])
	}
	if !r.stream {
		return
	}
	stream := kgpu(t, r.exit, append([]string{"up", "--output", "json", inventory}, r.flags...)...)
	if got, want := stream.outcome(), told.outcome(); !slices.Equal(got, want) {
		t.Errorf("programs are told %q, want %q", got, want)
	}
}

// outcome is what a run told of its hosts and its end, without times.
func (s *session) outcome() (told []string) {
	for _, e := range s.events {
		if e.Event == "error" || e.Event == "step.start" || e.Event == "result" {
			told = append(told, strings.Join([]string{e.Event, e.Host, e.Step, e.Reason, e.Text}, " "))
		}
	}
	slices.Sort(told)
	return told
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
