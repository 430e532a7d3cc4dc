package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOperators has two people at the same cluster.
func TestOperators(t *testing.T) {
	l := newLab(t, nil, "--workers", "1")
	hosts := []string{"cp1", "w1"}
	fresh := l.snapshot(t, hosts...)
	c := newCluster(t, l, desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories(),
		hosts: []string{l.host("cp1", ""), l.host("w1", "")},
	})
	begins := func(step string) func(event) bool {
		return func(e event) bool { return e.Event == "step.start" && e.Step == step }
	}

	must(t, "nothing at work", func(t *testing.T) {
		s := kgpu(t, 0, "attach", c.inventory)
		if said := s.stdout.String(); !strings.Contains(said, "nothing is at work") {
			t.Errorf("attach said %s", said)
		}
		l.unchanged(t, fresh)
	})

	must(t, "the second one", func(t *testing.T) {
		first := startOn(t, "adas-desk", "up", "--output", "json", c.inventory)
		first.await(t, "the first one installs", begins("kube/packages"))
		attached := start(t, "", "attach", "--output", "json", c.inventory)

		for _, args := range [][]string{{"up"}, {"reset", "--yes", "--inventory"}, {"smoke"}} {
			second := startOn(t, "bobs-desk", append(args, c.inventory)...)
			if code := second.wait(t); code != 30 {
				t.Fatalf("the second %s: exit status %d, want 30", args[0], code)
			}
			said := second.stderr.String()
			words := []string{
				`^error: ` + regexp.QuoteMeta(l.addr["cp1"]) + `: another run of kgpu is at work on this cluster: root@adas-desk from [0-9.]+ since 20[0-9-]+ [0-9:]+ UTC \([0-9ms]+ ago\), doing .kgpu up `,
				`\[HOST_BUSY\]`, `kgpu attach`,
			}
			if args[0] == "up" { // the others may come between two steps
				words = append(words, `; now .*: [a-z]+/[a-z]+`)
			}
			for _, want := range words {
				if !regexp.MustCompile(want).MatchString(said) {
					t.Errorf("the second %s did not say %s:\n%s", args[0], want, said)
				}
			}
		}

		// A plan tells the same and goes on.
		s := startOn(t, "bobs-desk", "plan", "--output", "json", c.inventory)
		var plan struct{ Warnings []string }
		if code := s.wait(t); code != 2 {
			t.Errorf("plan: exit status %d, want 2", code)
		} else if err := json.Unmarshal(s.stdout.Bytes(), &plan); err != nil {
			t.Error(err)
		}
		if !slices.ContainsFunc(plan.Warnings, func(w string) bool {
			return strings.Contains(w, "root@adas-desk") && strings.Contains(w, "kgpu attach")
		}) {
			t.Errorf("the plan warns of %q", plan.Warnings)
		}

		waiting := attached.await(t, "attach tells whom it watches", func(e event) bool { return e.Event == "wait" })
		if !strings.Contains(waiting.Text, "root@adas-desk") {
			t.Errorf("attach watches %q", waiting.Text)
		}
		if code := first.wait(t); code != 0 {
			t.Fatalf("the first one: exit status %d", code)
		}
		if code := attached.wait(t); code != 0 {
			t.Errorf("attach: exit status %d", code)
		}
		c.ready(t, hosts...)

		// What was done after kube/packages on a host began there, both heard in the same order.
		for _, h := range hosts {
			all, heard := stepsDone(first, l.addr[h]), stepsDone(attached, l.addr[h])
			at := slices.Index(all, "kube/packages")
			if at < 0 || len(heard) < len(all)-at || !slices.Equal(heard, all[len(all)-len(heard):]) {
				t.Errorf("%s: attach heard of %q, the first one of %q", h, heard, all)
			}
		}
		if n := len(first.of("error")) + len(attached.of("error")); n > 0 {
			t.Errorf("%d errors", n)
		}
		for h, n := range map[string]string{"cp1": "1", "w1": "1"} {
			if got := l.exec(t, h, "grep -c '^Install:.*kubelet' /var/log/apt/history.log"); got != n {
				t.Errorf("%s: kubelet was installed %s times", h, got)
			}
		}
	})

	t.Run("nothing to do", func(t *testing.T) { c.nothingToDo(t, hosts...) })
}

// startOn starts kgpu on a machine of another name.
func startOn(t *testing.T, machine string, args ...string) *session {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kgpu")
	script := fmt.Sprintf("#!/bin/sh\nexec unshare --uts sh -c 'hostname %s && exec \"$0\" \"$@\"' %s \"$@\"\n", machine, kgpuProgram)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return startProgram(t, program, "", args...)
}

// stepsDone are the steps that a run heard to be done on a host, in order.
func stepsDone(s *session, address string) []string {
	var out []string
	for _, e := range s.of("step.done") {
		if e.Host == address {
			out = append(out, e.Step)
		}
	}
	return out
}
