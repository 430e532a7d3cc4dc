package scripts

import (
	"strings"
	"testing"
)

// The number of the highest hold is told, and is alone no reason for a reset.
func TestFactsOfTheFence(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("facts.sh", string(Facts()))
	s.stub("systemctl", "#!/bin/sh\n")
	ask := func(before string) string {
		t.Helper()
		return s.ok(s.bash(before + "; bash -s </facts.sh >/out; grep -e ^fence -e ^notes -e ^end=1 /out")).output
	}
	if got := ask("rm -r /var/lib/kgpu/*; echo 1795181111 >/var/lib/kgpu/fence"); got != "fence=1795181111\nend=1\n" {
		t.Errorf("the host says %q", got)
	}
	if got := ask("mkdir -p /var/lib/kgpu/ledger"); got != "notes=1\nfence=1795181111\nend=1\n" {
		t.Errorf("with a ledger the host says %q", got)
	}
}

// The facts name who holds the cluster exactly while somebody does, however many ask at the same time.
func TestFactsOfTheOperator(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("facts.sh", string(Facts()))
	s.stub("systemctl", "#!/bin/sh\n")
	ask := func(before string) string {
		t.Helper()
		return s.ok(s.bash(before + `
			for i in 1 2 3 4; do bash -s </facts.sh >"/out.$i" 9>&- & done
			wait
			grep -h -e ^operator -e ^end=1 /out.*`)).output
	}
	nobody := strings.Repeat("end=1\n", 4)
	if got := ask(""); got != nobody {
		t.Errorf("on a host that nobody ever held: %q", got)
	}
	s.write("var/lib/kgpu/operator/lock", "")
	s.write("var/lib/kgpu/operator/holder", "who=ada@desk\nfrom=192.0.2.7\n")
	if got := ask(""); got != strings.Repeat("operator-left=1\nend=1\n", 4) {
		t.Errorf("after one that was killed: %q", got)
	}
	want := strings.Repeat("operator=held\noperator=who=ada@desk\noperator=from=192.0.2.7\nend=1\n", 4)
	if got := ask("exec 9>>/var/lib/kgpu/operator/lock; flock 9"); got != want {
		t.Errorf("while somebody holds it: %q", got)
	}
	s.remove("var/lib/kgpu/operator/holder")
	if got := ask("exec 9>>/var/lib/kgpu/operator/lock; flock 9"); got != strings.Repeat("operator=held\nend=1\n", 4) {
		t.Errorf("while somebody has only just begun: %q", got)
	}
}
