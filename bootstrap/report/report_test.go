package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// story is a run in which one step fails.
func story() []event.Event {
	begin := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	status, ok := 100, 0
	events := []event.Event{
		{Host: "control-1", Kind: event.Connect, Millis: 120, Text: "via bastion"},
		{Host: "worker-12", Kind: event.Connect, Millis: 95},
		{Host: "control-1", Kind: event.Command, Millis: 80, Text: "facts", Exit: &ok},
		{Kind: event.Plan, Plan: []event.Planned{{Host: "control-1", Step: "runtime/docker", Title: "install docker", Reason: "docker is not installed"}}},
		{Kind: event.Warning, Text: "weave has had no release since 2024-12"},
		{Host: "control-1", Step: "os/swap", Kind: event.StepSkip, Reason: "satisfied", Text: "no swap is on"},
		{Host: "control-1", Step: "os/time", Kind: event.StepSkip, Reason: "satisfied", Text: "chrony runs"},
		{Host: "control-1", Step: "runtime/docker", Kind: event.StepStart, Text: "install docker"},
		{Host: "control-1", Step: "runtime/docker", Kind: event.Wait, Text: "the package manager, held by unattended-upgr (pid 812)"},
		{Host: "worker-12", Step: "repo/kubernetes", Kind: event.StepStart, Text: "add the repository of Kubernetes"},
		{Host: "worker-12", Step: "repo/kubernetes", Kind: event.StepDone, Millis: 1234},
		{Host: "control-1", Step: "runtime/docker", Kind: event.Log, Text: "Reading package lists..."},
		{Host: "control-1", Step: "runtime/docker", Kind: event.Log, Text: "E: Unable to correct problems"},
		{Host: "control-1", Step: "runtime/docker", Kind: event.Error, Reason: "STEP_FAILED", Millis: 73400, Text: "apt-get failed", Exit: &status},
		{Host: "worker-12", Step: "cluster/join", Kind: event.StepSkip, Reason: "STEP_FAILED", Text: "not begun, because control-1 runtime/docker failed"},
		{Kind: event.Result, Reason: "STEP_FAILED", Millis: 75000, Text: "1 step failed"},
	}
	for i := range events {
		events[i].Time, events[i].Run = begin.Add(time.Duration(i)*5300*time.Millisecond), "r1"
	}
	return events
}

func told(t *testing.T, kind Kind, detail Detail) string {
	t.Helper()
	var out bytes.Buffer
	s := New(kind, &out, detail)
	for _, e := range story() {
		s.Emit(e)
	}
	must(t, s.Close())
	return out.String()
}

func TestLines(t *testing.T) {
	golden(t, "plain.txt", told(t, Plain, Normal))
	golden(t, "verbose.txt", told(t, Plain, Verbose))
	golden(t, "quiet.txt", told(t, Plain, Quiet))
}

func TestTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	golden(t, "terminal.txt", told(t, Terminal, Normal))
	t.Setenv("NO_COLOR", "1")
	if got := told(t, Terminal, Normal); strings.Contains(got, "\x1b") {
		t.Errorf("NO_COLOR is set, but there are escape sequences: %q", got)
	}
}

func TestJSONHasEveryFieldAlways(t *testing.T) {
	text := told(t, JSON, Quiet)
	golden(t, "events.json", text)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(story()) {
		t.Fatalf("%d lines for %d events", len(lines), len(story()))
	}
	for _, line := range lines {
		var fields map[string]any
		must(t, json.Unmarshal([]byte(line), &fields))
		for _, name := range []string{"time", "run", "host", "step", "event", "reason", "ms"} {
			if _, there := fields[name]; !there {
				t.Errorf("no %s in %s", name, line)
			}
		}
	}
}

func TestConcurrentEventsStayWhole(t *testing.T) {
	for _, kind := range []Kind{Plain, JSON} {
		var out bytes.Buffer
		s := New(kind, &out, Normal)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				for range 50 {
					s.Emit(event.Event{Host: fmt.Sprint("h", i), Step: "s", Kind: event.Wait, Text: "for whatever it is"})
				}
			})
		}
		all.Wait()
		if n := strings.Count(out.String(), "for whatever it is"); n != 1000 {
			t.Errorf("%s: %d of 1000 events", kind, n)
		}
		if n := strings.Count(out.String(), "\n"); n != 1000 {
			t.Errorf("%s: %d lines for 1000 events", kind, n)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestAStepThatIsHeardOfLate(t *testing.T) {
	var out bytes.Buffer
	s := New(Plain, &out, Normal)
	s.Emit(event.Event{Host: "w1", Step: "os/x", Kind: event.StepStart, Millis: 192_000})
	if err := s.Close(); err != nil || !strings.HasSuffix(out.String(), "  begun 3m12s ago\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}

// A warning that is an error's words names its host once.
func TestWarningsNameTheHostOnce(t *testing.T) {
	for text, want := range map[string]string{
		"w1: connecting to 10.0.0.1:22: refused":                     "w1  warning: connecting to 10.0.0.1:22: refused",
		"this host is not watched: w1: connecting to w1:22: refused": "w1  warning: this host is not watched: connecting to w1:22: refused",
		"w1 is excluded; the other hosts are made ready":             "w1  warning: w1 is excluded; the other hosts are made ready",
	} {
		var out bytes.Buffer
		s := New(Plain, &out, Normal)
		s.Emit(event.Event{Host: "w1", Kind: event.Warning, Text: text})
		if err := s.Close(); err != nil || !strings.HasSuffix(out.String(), "  "+want+"\n") {
			t.Errorf("%v: %q, want %q", err, out.String(), want)
		}
	}
}

func TestCloseReturnsTheWriteError(t *testing.T) {
	for _, kind := range []Kind{Plain, JSON} {
		s := New(kind, full{}, Normal)
		s.Emit(event.Event{Kind: event.Warning, Text: "x"})
		if err := s.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: Close returned %v", kind, err)
		}
	}
}

func TestDetect(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must(t, err)
	defer f.Close()
	if got := Detect(f); got != Plain {
		t.Errorf("a file is %s", got)
	}
}

func aGraph() *graph.Graph {
	prepare := graph.Ref{Host: "worker-12", ID: "os/packages"}
	join := graph.Ref{Host: "worker-12", ID: "cluster/join"}
	return &graph.Graph{
		Steps: []*graph.Step{
			{Ref: prepare, Title: "install packages", Reason: "conntrack is missing", Timeout: time.Minute},
			{Ref: join, Title: "join the cluster", Reason: "not a member <yet>", Needs: []graph.Ref{prepare}, Timeout: 90 * time.Second,
				Input: graph.Input{Values: map[string]string{"kubeadm": "top secret"}}},
		},
		Skipped: []graph.Skipped{
			{Ref: graph.Ref{Host: "control-1", ID: "os/packages"}, Reason: "installed"},
			{Ref: graph.Ref{Host: "control-1", ID: "cluster/init"}, Reason: "is a control plane"},
			{Ref: graph.Ref{Host: "worker-12", ID: "os/swap"}, Reason: "no swap is on"},
		},
		Warnings:   []string{"weave has had no release since 2024-12"},
		Kubernetes: "Kubernetes 1.36.5, the newest patch that pkgs.k8s.io offers; kgpu was proven with 1.36.3, by 2026-11-25",
		Rounds:     []string{"Kubernetes 1.37.2"},
	}
}

func TestPrintPlan(t *testing.T) {
	for name, c := range map[string]struct {
		graph   *graph.Graph
		options PlanOptions
		width   int
	}{
		"plan.txt":          {aGraph(), PlanOptions{}, 0},
		"plan-verbose.txt":  {aGraph(), PlanOptions{Verbose: true}, 0},
		"plan.json":         {aGraph(), PlanOptions{JSON: true}, 0},
		"plan-nothing.txt":  {&graph.Graph{Skipped: aGraph().Skipped}, PlanOptions{}, 0},
		"plan-nothing.json": {&graph.Graph{}, PlanOptions{JSON: true}, 0},
		"plan-narrow.txt":   {joining(), PlanOptions{Verbose: true}, 60},
		"plan-alike.txt":    {joining(), PlanOptions{}, 0},
		"plan-told.txt":     {aGraph(), PlanOptions{Told: true}, 0},
	} {
		out := &Sheet{As: Look{Width: c.width}}
		must(t, PrintPlan(out, plan.WithProof(c.graph), c.options))
		golden(t, name, out.String())
		for line := range strings.Lines(out.String()) {
			if width := c.width; width > 0 && len([]rune(line)) > width+1 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line of %d: %s", name, len([]rune(line)), line)
			}
		}
		if strings.Contains(out.String(), "top secret") {
			t.Errorf("%s has the input", name)
		}
	}
	if err := PrintPlan(full{}, aGraph(), PlanOptions{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("PrintPlan returned %v", err)
	}
}

// What a run counts first is told where it is less than the plan has.
func TestPlanInTurns(t *testing.T) {
	step := func(id string, stage graph.Stage) *graph.Step {
		return &graph.Step{Ref: graph.Ref{Host: "w1", ID: id}, Stage: stage}
	}
	packages, ready, notebook, cuda := step("os/packages", graph.BeforeProof), step("gpu/ready", graph.BeforeProof), step(plan.NotebookStep, graph.Proof), step("gpu/cuda", graph.AfterProof)
	cuda.Download = 4990
	for want, steps := range map[string][]*graph.Step{
		"1 host, 4 steps to do: 2 first, 2 with the proof of the cards":                              {packages, ready},
		"1 host, 6 steps to do: 2 first, 4 with the proof of the cards; at least 5.0 GB to download": {packages, ready, notebook, cuda},
		"1 host, 2 steps to do: 1 first, and then 1; at least 5.0 GB to download":                    {packages, cuda},
		"1 host, 3 steps to do": {notebook},
	} {
		var out bytes.Buffer
		if err := PrintPlan(&out, plan.WithProof(&graph.Graph{Steps: steps}), PlanOptions{}); err != nil || !strings.HasPrefix(out.String(), want+"\n") {
			t.Errorf("%v: %q, want %q", err, out.String(), want)
		}
	}
}

func TestPrintError(t *testing.T) {
	status := 100
	err := fmt.Errorf("up: %w", errors.Join(
		&reason.Error{ID: reason.StepFailed, Host: "control-1", Step: "runtime/docker", Doing: "install docker", Exit: &status,
			Detail: "apt-get failed", Stderr: "Reading package lists...\nE: Unable to correct problems\n"},
		errors.Join(
			&reason.Error{ID: reason.SSHLost, Host: "worker-1", Doing: "reconnecting", Err: errors.New("no route to host")},
			&reason.Error{ID: "NEW_REASON", Detail: "first line\nsecond line", Advice: "do this"},
		),
		errors.New("something else"),
	))
	var out bytes.Buffer
	PrintError(&out, err)
	PrintError(&out, nil)
	golden(t, "errors.txt", out.String())
}

// Who stops a run on many hosts is told once, and advice that is the same stands once.
func TestPrintErrorOfMany(t *testing.T) {
	var all []error
	for _, host := range []string{"w1", "w2", "w3"} {
		all = append(all, &reason.Error{ID: reason.Cancelled, Host: host, Step: "os/packages", Doing: "install basic packages", Detail: "cancelled; what was begun goes on"})
	}
	for _, host := range []string{"w4", "w5"} {
		all = append(all, &reason.Error{ID: reason.SSHUnreachable, Host: host, Detail: "no route to host"})
	}
	var out bytes.Buffer
	PrintError(&out, errors.Join(all...))
	golden(t, "errors-many.txt", out.String())
}

// How preflight's problems are ignored is said once, behind them.
func TestPrintPreflight(t *testing.T) {
	var all []error
	for _, host := range []string{"w1", "w2"} {
		all = append(all, &reason.Error{ID: reason.HostFirewallActive, Host: host, Doing: preflight.Doing, Detail: "ufw is active"})
	}
	var out bytes.Buffer
	PrintError(&out, errors.Join(all...))
	golden(t, "errors-preflight.txt", out.String())
}

// A step that is cut short goes on: it did not fail, and its output is no explanation.
func TestACutShortStepIsNoFailure(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	var out bytes.Buffer
	s := New(Terminal, &out, Normal)
	s.Emit(event.Event{Host: "w1", Step: "a", Kind: event.Log, Text: "Reading"})
	s.Emit(event.Event{Host: "w1", Step: "a", Kind: event.Error, Reason: "CANCELLED", Text: "cancelled; what was begun goes on on the host"})
	if got, want := out.String(), yellow+" 0:00.0  w1  a                   cancelled; what was begun goes on on the host"+reset+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a step fails with it has printed as its last line, too: it stands there once.
func TestAFailureIsToldOnce(t *testing.T) {
	var out bytes.Buffer
	s := New(Plain, &out, Normal)
	for _, line := range []string{"Reading", "no such image"} {
		s.Emit(event.Event{Host: "w1", Step: "a", Kind: event.Log, Text: line})
	}
	s.Emit(event.Event{Host: "w1", Step: "a", Kind: event.Error, Reason: "IMAGE_UNAVAILABLE", Text: "no such image"})
	if got := out.String(); strings.Count(got, "no such image") != 1 || !strings.Contains(got, "    | Reading\n") {
		t.Errorf("%s", got)
	}
}

// Programs are told the same steps as people, the proof too: with what it needs and how long it may take.
func TestPlanOfTheProofAsJSON(t *testing.T) {
	step := func(id string) *graph.Step {
		return &graph.Step{Ref: graph.Ref{Host: "cp", ID: id}, Title: id, Reason: "new", Timeout: time.Minute}
	}
	for first, want := range map[string]string{
		"gpu/ready":       "gpu/ready 60 [] gpu/smoke 1800 [{cp gpu/ready}] gpu/proven 120 [{cp gpu/smoke}]",
		plan.NotebookStep: "addon/notebook 60 [] gpu/smoke 1800 [] gpu/proven 120 [{cp gpu/smoke}]",
	} {
		var out bytes.Buffer
		must(t, PrintPlan(&out, plan.WithProof(&graph.Graph{Steps: []*graph.Step{step(first)}}), PlanOptions{JSON: true}))
		var got jsonPlan
		must(t, json.Unmarshal(out.Bytes(), &got))
		var steps []string
		for _, s := range got.Steps {
			steps = append(steps, fmt.Sprint(s.Step, " ", s.Timeout, " ", s.Needs))
		}
		if got := strings.Join(steps, " "); got != want {
			t.Errorf("%s: the plan has %s", first, got)
		}
	}
}
