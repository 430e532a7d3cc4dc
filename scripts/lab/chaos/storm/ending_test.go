package storm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHowRunsMayEnd: a run that ends by itself has a reason that a fault explains, and nothing excuses a defect.
func TestHowRunsMayEnd(t *testing.T) {
	kill := Hit{Point: Point{Ref{"w1", "os/a"}, Begin, 0}, Fault: Kill}
	for _, c := range []struct {
		name, script string
		kill         bool   // kgpu is killed after the script
		cards        bool   // a host has some
		want         string // in the error; empty: all is well
	}{
		{name: "a reason that a fault explains", script: `rm "$base/ending"; say os/a error CANCELLED cut; say '' result SSH_LOST ''; exit 24`},
		{name: "a reason that none explains", script: `say '' result HOST_FOREIGN_CLUSTER ''; exit 69`, want: "no fault explains that kgpu up ended so: HOST_FOREIGN_CLUSTER (exit status 69)"},
		{name: "one of several that none explains", script: `say os/a error REPO_KEY_MISMATCH x; say '' result SSH_LOST ''; exit 40`, want: "no fault explains REPO_KEY_MISMATCH"},
		{name: "an error without a reason", script: `say os/a error '' x; say '' result SSH_LOST ''; exit 24`, want: "no fault explains an error without a reason"},
		{name: "a proof that a fault ends", cards: true, script: `rm "$base/ending"; say gpu/smoke error SMOKE_FAILED x; say '' result SMOKE_FAILED ''; exit 113`},
		{name: "a proof where no host has cards", script: `say '' result SMOKE_FAILED ''; exit 113`, want: "no fault explains that kgpu up ended so: SMOKE_FAILED"},
		{name: "a card that two pods see", cards: true, script: `say '' result SMOKE_CARD_TWICE ''; exit 116`, want: "no fault explains that kgpu up ended so: SMOKE_CARD_TWICE"},
		{name: "a defect", script: `say '' result INTERNAL ''; exit 1`, want: "INTERNAL"},
		{name: "cancelled by nobody", script: `say '' result CANCELLED ''; exit 130`, want: "CANCELLED"},
		{name: "no result", script: `exit 24`, want: "without a result"},
		{name: "all is well, it says", script: `say '' result ok ''; exit 1`, want: "does not go with the result"},
		{name: "it fails, and nobody sees it", script: `say '' result SSH_LOST ''; exit 0`, want: "does not go with the result"},
		{name: "a panic", script: `printf 'panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n' >&2; exit 2`, want: "died of a defect:\npanic: boom\n\ngoroutine 1"},
		{name: "a panic after a result", script: `say '' result SSH_LOST ''; echo 'fatal error: all goroutines are asleep' >&2; exit 2`, want: "died of a defect"},
		{name: "a panic, and then killed", script: `echo 'panic: boom' >&2`, kill: true, want: "panic: boom"},
		{name: "what a host said of a panic of its own", script: `echo '    | panic: boom' >&2`},
		{name: "no event", script: `echo 'kgpu says hello'`, want: `no event: "kgpu says hello\n"`},
		{name: "no event, and then killed", script: `echo '{"time":'`, kill: true, want: "no event"},
		{name: "JSON that is no event", script: `echo '{}'`, want: "no event"},
		{name: "half a line", script: `say '' result SSH_LOST ''; printf '{"run":'; exit 24`, want: "its last line to the end"},
		{name: "a signal of somebody else", script: `kill -SEGV $$`, want: "a signal that is not the storm's ended kgpu up: signal: segmentation fault"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, dir := onStandIn(t)
			r.disturbed = 1
			if c.cards {
				r.Lab.Cards = []string{"w1=1xT4"}
			}
			if c.kill {
				r.pending = []Hit{kill}
			} else {
				found(t, dir)
			}
			ends(t, dir, c.script)
			err := r.run()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if killed := r.Tally.Faults[Kill].Injected; c.kill != (killed == 1) {
				t.Errorf("%d kills", killed)
			}
		})
	}
}

// TestLastLineOfAKilledRun: it may be cut off, of a run that is killed.
func TestLastLineOfAKilledRun(t *testing.T) {
	r, dir := onStandIn(t)
	ends(t, dir, `printf '{"run":'; touch "$base/printed"; exec sleep 1000`)
	s, err := r.Lab.startUp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "printed")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it prints nothing")
		}
	}
	s.kill()
	if err := s.defect(true); err != nil || s.cutOff == "" {
		t.Errorf("got %v, with %q at the end", err, s.cutOff)
	}
	if s.defect(false) == nil {
		t.Error("a signal of somebody else is none")
	}
}

// TestRunsHaveALimit: a run that does not end is no answer to a fault, however it ends when it is told to.
func TestRunsHaveALimit(t *testing.T) {
	for name, script := range map[string]string{
		"it ends as Ctrl-C ends it": `trap "say '' result SSH_LOST ''; exit 24" TERM; while :; do sleep 0.01; done`,
		"the signal ends it":        `exec sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			r, dir := onStandIn(t)
			r.disturbed, r.Lab.limit = 1, 300*time.Millisecond
			ends(t, dir, script)
			if err := r.run(); err == nil || !strings.Contains(err.Error(), "longer than it may be") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestExplainedReasonsAreKgpus: each of them is in kgpu's table.
func TestExplainedReasonsAreKgpus(t *testing.T) {
	files, err := filepath.Glob("../../../../bootstrap/reason/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var table []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		table = append(table, text...)
	}
	for _, id := range slices.Concat([]string{cancelled}, explained, ofCards) {
		if !strings.Contains(string(table), `ID = "`+id+`"`) {
			t.Errorf("kgpu has no reason %s", id)
		}
	}
}
