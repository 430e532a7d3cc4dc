package storm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/scripts/lab/place"
)

// standIn acts as kgpu up does with one host: it starts the steps of a batch in a process of their own, or follows those
// that a former run started, and tells of them. A step ends when one more run has found the batch.
const standIn = `#!/bin/bash
set -euo pipefail
base=$(dirname "$0")
runs=$base/state/hosts/w1/var/lib/kgpu/run
run=$(date +%s%N)
say() { printf '{"run":"%s","host":"10.0.0.1","step":"%s","event":"%s","reason":"%s","text":"%s"}\n' "$run" "$1" "$2" "$3" "$4"; }
say '' connect '' ''
if [[ -e $base/ending ]]; then . "$base/ending"; fi
if [[ -e $base/batch ]]; then
	say os/a wait '' 'a former run (x, by me) is still at work here'
	batch=$(<"$base/batch")
	echo found >>"$base/found"
else
	batch=$runs/$run-1
	mkdir -p "$batch"
	echo "$batch" >"$base/batch"
	setsid "$base/unit" "$batch/events" >/dev/null 2>&1 </dev/null &
	until [[ -e $batch/events ]]; do sleep 0.01; done
fi
while IFS=$'\t' read -r kind step _; do
	case $kind in
	B) say "$step" step.start '' '' ;;
	D) say "$step" step.done '' '' ;;
	E) break ;;
	esac
done < <(exec tail -n +1 -f --pid=$$ --sleep-interval=0.01 "$batch/events" 2>/dev/null)
say '' result ok ''
`

const unitStandIn = `#!/bin/bash
set -euo pipefail
base=$(dirname "$0")
touch "$base/found"
found=0
for step in os/a os/b os/c; do
	printf 'B\t%s\t1\n' "$step" >>"$1"
	found=$((found + 1))
	if [[ $step != os/c ]]; then
		until [[ $(wc -l <"$base/found") -ge $found ]]; do sleep 0.01; done
	fi
	printf 'D\t%s\t0\t1\t\t\n' "$step" >>"$1"
done
printf 'E\t0\n' >>"$1"
`

// ends lets the stand-in do something as soon as it is connected.
func ends(t *testing.T, dir, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "ending"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
}

// found lets no step wait for more runs.
func found(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "found"), []byte("1\n2\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// letEnd waits for the end of a batch that nobody follows any more.
func letEnd(t *testing.T, dir string) {
	batch, err := os.ReadFile(filepath.Join(dir, "batch"))
	if err != nil {
		return // none was begun
	}
	found(t, dir)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		events, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(batch)), "events"))
		if err == nil && strings.Contains(string(events), "\nE\t") {
			return
		}
	}
	t.Error("the batch does not end")
}

// onStandIn is a round with the stand-in for kgpu.
func onStandIn(t *testing.T, hits ...Hit) (*round, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"kgpu": standIn, "unit": unitStandIn} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { letEnd(t, dir) })
	l := &Lab{
		Place: place.Place{Name: "x", State: filepath.Join(dir, "state")}, Kgpu: filepath.Join(dir, "kgpu"), Hosts: []string{"w1"},
		address: map[string]string{"w1": "10.0.0.1"}, dir: dir,
	}
	s := &Storm{Lab: l, Out: t.Output(), Steps: []Ref{{"w1", "os/a"}, {"w1", "os/b"}, {"w1", "os/c"}}, Tally: newTally()}
	return newRound(t.Context(), s, hits), dir
}

func TestRunIsKilledAndFoundAgain(t *testing.T) {
	kill := func(step string, p Phase) Hit {
		return Hit{Point: Point{Ref{"w1", step}, p, 0}, Fault: Kill, Must: p == Begin}
	}
	never := Hit{Point: Point{Ref{"w1", "os/z"}, Begin, 0}, Fault: Kill}
	r, _ := onStandIn(t, kill("os/a", Begin), never, kill("os/b", Begin))
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	if n := r.Tally.Faults[Kill].Injected; n != 2 || r.Tally.Attached != 2 {
		t.Errorf("%d kills, %d attachments; want 2 and 2", n, r.Tally.Attached)
	}
	if len(r.Tally.Hit[Kill]) != 2 || !r.Tally.Struck(Kill, "os/a") || !r.Tally.Struck(Kill, "os/b") {
		t.Errorf("struck: %v", r.Tally.Hit)
	}
	if len(r.passed) != 1 || r.passed[0] != never {
		t.Errorf("without occasion: %v", r.passed)
	}
	record, err := os.ReadFile(r.Lab.Record())
	if err != nil || strings.Count(string(record), `"event":"connect"`) != 3 {
		t.Errorf("the record is not that of three runs: %v\n%s", err, record)
	}
}

// TestHoldOfAKilledRun: who is told that another run is at work does not ask at once again.
func TestHoldOfAKilledRun(t *testing.T) {
	r, dir := onStandIn(t)
	r.disturbed, r.Lab.silence = 1, 200*time.Millisecond
	found(t, dir)
	ends(t, dir, `rm "$base/ending"; say '' result HOST_BUSY ''; exit 30`)
	begun := time.Now()
	if err := r.run(); err != nil || r.refused != 1 {
		t.Errorf("refused %d times, %v", r.refused, err)
	}
	if took := time.Since(begun); took < r.Lab.silence {
		t.Errorf("the next run began after %s", took)
	}
}

func TestRunThatFailsUndisturbedIsAFailure(t *testing.T) {
	r, dir := onStandIn(t)
	ends(t, dir, `say os/a error STEP_FAILED 'it does not work'; say '' result STEP_FAILED ''; exit 10`)
	err := r.run()
	if err == nil || !strings.Contains(err.Error(), "STEP_FAILED (exit status 10); 10.0.0.1 os/a: it does not work [STEP_FAILED]") {
		t.Errorf("got %v", err)
	}
}

// TestBatchesThatAHostForgets: a host keeps its last few batches, and the steps of all are noted.
func TestBatchesThatAHostForgets(t *testing.T) {
	r, dir := onStandIn(t)
	s := r.Storm
	s.Steps = nil
	ends(t, dir, `for step in os/a os/b gpu/a os/a; do
	rm -rf "$runs"
	mkdir -p "$runs/$(date +%s%N)-1"
	printf 'B\t%s\t1\nD\t%s\t0\t1\t\t\n' $step $step >"$(echo "$runs"/*)/events"
	sleep 0.5
done
exit 0`)
	if err := s.undisturbed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []Ref{{"w1", "os/a"}, {"w1", "os/b"}, {"w1", "gpu/a"}}; !slices.Equal(s.Steps, want) {
		t.Errorf("noted are %v, want %v", s.Steps, want)
	}
	if want := []string{"os/a", "os/b", "gpu/a"}; !slices.Equal(s.Tally.Steps, want) {
		t.Errorf("counted are %v, want %v", s.Tally.Steps, want)
	}
}
