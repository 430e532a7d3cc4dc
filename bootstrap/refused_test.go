package bootstrap

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// What a host says in the place of an answer is in the error, with advice that the command can follow.
func TestHostsThatRunSomethingElse(t *testing.T) {
	cloud := func(e *sshtest.Exec) int {
		fmt.Fprint(e.Stdout, "Please login as the user \"ubuntu\" rather than the user \"root\".\n"+sitetest.Evil+"\n")
		return 142
	}
	o, servers := fakes(t, &fakeHost{name: "cp"})
	servers[0].Force(cloud)
	text, err := shown(t, o, onlyPlan)
	if !errors.Is(err, &reason.Error{ID: reason.SSHCommandRefused}) {
		t.Fatal(err)
	}
	contains(t, text, `Please login as the user "ubuntu"`, "exit status 142", "`ssh: {user: ubuntu}`")
	if n := len(servers[0].Lines()); n != 1 {
		t.Errorf("it was asked %d times", n)
	}

	for _, c := range []struct {
		forced sshtest.Handler
		advice string
	}{
		{cloud, "`kgpu init --user ubuntu …`"},
		{func(e *sshtest.Exec) int { fmt.Fprintln(e.Stderr, "no"); return 1 }, "`kgpu init --user USER …`"},
	} {
		n := newNewcomers(t)
		n.host("head", true)
		n.servers["head"].Force(c.forced)
		w := n.init(nil)
		var e *reason.Error
		if !errors.As(w.err, &e) || e.ID != reason.SSHCommandRefused || !strings.Contains(e.AdviceLine(), c.advice) {
			t.Errorf("%v, want the advice %s", w.err, c.advice)
		}
	}
}

// The end of an answer that is not whole is the host's own word.
func TestHalfAnAnswerIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		says  string
		exit  int
		words []string
	}{
		"half":    {"kgpu-facts=1\nhostname=cp\nbash: fork: Cannot allocate memory\n", 0, []string{"incomplete", "| bash: fork: Cannot allocate memory"}},
		"nothing": {"", 0, []string{"the host said nothing"}},
		"failed":  {"", 3, []string{"the script ended there and said nothing (exit status 3)"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := fakes(t, &fakeHost{name: "cp", facts: func(e *sshtest.Exec) int { fmt.Fprint(e.Stdout, c.says); return c.exit }})
			text, err := shown(t, o, onlyPlan)
			if !errors.Is(err, &reason.Error{ID: reason.FactsFailed}) {
				t.Fatal(err)
			}
			contains(t, text, c.words...)
		})
	}
}
