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
	"time"
)

// secondOperator has bob try what ada is doing, and wants him to be told about her.
func (c *cluster) secondOperator(t *testing.T) {
	for _, args := range [][]string{{"up"}, {"reset", "--yes", "--inventory"}, {"smoke"}} {
		begun := time.Now()
		second := startOn(t, "bobs-desk", append(args, c.inventory)...)
		if code := second.wait(t); code != 30 {
			t.Fatalf("the second %s: exit status %d, want 30", args[0], code)
		}
		t.Logf("%s was refused after %s", args[0], time.Since(begun).Round(10*time.Millisecond))
		said := second.stderr.String()
		words := []string{
			`^error: ` + regexp.QuoteMeta(c.addr["cp1"]) + `: another run of kgpu is at work on this cluster: root@adas-desk from [0-9.]+ since 20[0-9-]+ [0-9:]+ UTC \([0-9ms]+ ago\), doing .kgpu up `,
			`; now .*: cluster/ready`, `\[HOST_BUSY\]`, `kgpu attach`,
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
}

// upWatched runs kgpu up while a second operator tries the same, in vain, and watches it: both hear the same, in the same order,
// from when he came.
func (c *cluster) upWatched(t *testing.T, hosts ...string) *session {
	t.Helper()
	c.fault(t, "ghcr.io/v2/flannel-io", "status=503") // so that it takes as long as the others need
	first := startOn(t, "adas-desk", "up", "--output", "json", c.inventory)
	begun := first.await(t, "the first one works", func(e event) bool { return e.Event == "step.start" })
	attached := start(t, "", "attach", "--output", "json", c.inventory)
	first.await(t, "it waits for the nodes", func(e event) bool { return e.Event == "step.start" && e.Step == "cluster/ready" })
	t.Run("a second operator", c.secondOperator)
	c.verb(t, "fault", "clear")
	if code := first.wait(t); code != 0 {
		t.Fatalf("the first one: exit status %d", code)
	}
	if code := attached.wait(t); code != 0 {
		t.Errorf("attach: exit status %d", code)
	}
	if !slices.ContainsFunc(attached.of("wait"), func(e event) bool { return strings.Contains(e.Text, "root@adas-desk") }) {
		t.Errorf("attach watches %v", attached.of("wait"))
	}
	count := 0
	for _, h := range hosts {
		all, heard := stepsDone(first, c.addr[h]), stepsDone(attached, c.addr[h])
		count += len(heard)
		if len(heard) > len(all) || !slices.Equal(heard, all[len(all)-len(heard):]) {
			t.Errorf("%s: attach heard of %q, the first one of %q", h, heard, all)
		}
	}
	if count < 2 {
		t.Errorf("attach heard of %d steps after %v", count, begun)
	}
	if n := len(first.of("error")) + len(attached.of("error")); n > 0 {
		t.Errorf("%d errors", n)
	}
	return first
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
