package timeline

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
)

// timed gives events a second each.
func timed(events ...event.Event) []event.Event {
	begun := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for i := range events {
		events[i].Time = begun.Add(time.Duration(i) * time.Second)
	}
	return events
}

// summary is the bars and waits of a model, for comparison.
func summary(m *Model) string {
	var out []string
	for _, h := range m.Hosts {
		for _, w := range h.Waits {
			out = append(out, strings.Join([]string{h.Name, "wait", clock(w.Start), clock(w.End), w.Text}, " "))
		}
		for _, b := range h.Bars {
			line := strings.Join([]string{h.Name, b.Step, string(b.State), clock(b.Start), clock(b.End)}, " ")
			if b.Lane > 0 {
				line += " below"
			}
			for _, w := range b.Waits {
				line += "; " + strings.Join([]string{clock(w.Start), clock(w.End), w.Text}, " ")
			}
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func TestModel(t *testing.T) {
	start, done, log := event.StepStart, event.StepDone, event.Log
	for name, c := range map[string]struct {
		events []event.Event
		want   string
	}{
		"killed in a step": {timed(
			event.Event{Host: "a", Step: "x", Kind: start}, event.Event{Host: "a", Step: "x", Kind: log}),
			"a x running 0:00 0:01"},
		"a wait ends with the next word of the step": {timed(
			event.Event{Host: "a", Step: "x", Kind: start}, event.Event{Host: "a", Step: "x", Kind: event.Wait, Text: "apt"},
			event.Event{Host: "b", Step: "x", Kind: start}, event.Event{Host: "a", Step: "x", Kind: log}, event.Event{Host: "a", Step: "x", Kind: done}, event.Event{Host: "b", Step: "x", Kind: done}),
			"a x done 0:00 0:04; 0:01 0:03 apt\nb x done 0:02 0:05"},
		"another try is the same bar": {timed(
			event.Event{Host: "a", Step: "x", Kind: start}, event.Event{Host: "a", Step: "x", Kind: event.Wait, Text: "try 2"},
			event.Event{Kind: event.Warning}, event.Event{Host: "a", Step: "x", Kind: start}, event.Event{Host: "a", Step: "x", Kind: done}),
			"a x done 0:00 0:04; 0:01 0:03 try 2"},
		"before a step, until any step begins": {timed(
			event.Event{Host: "a", Step: "y", Kind: event.Wait, Text: "for b: z"}, event.Event{Kind: event.Warning},
			event.Event{Host: "a", Step: "x", Kind: start}, event.Event{Host: "a", Step: "x", Kind: done}),
			"a wait 0:00 0:02 for b: z\na x done 0:02 0:03"},
		"a lost connection, told twice, belongs to the step": {timed(
			event.Event{Host: "a", Step: "x", Kind: start}, event.Event{Host: "a", Kind: event.Wait, Reason: "SSH_LOST", Text: "lost"},
			event.Event{Host: "a", Kind: event.Wait, Reason: "SSH_LOST", Text: "lost, still"}, event.Event{Host: "a", Kind: event.Wait, Reason: "SSH_LOST", Text: "back", Millis: 2000},
			event.Event{Kind: event.Warning}, event.Event{Host: "a", Step: "x", Kind: done}),
			"a x done 0:00 0:05; 0:01 0:03 lost"},
		"a beginning that was not heard": {timed(
			event.Event{Kind: event.Begin}, event.Event{Kind: event.Warning}, event.Event{Host: "a", Step: "x", Kind: done, Millis: 1500}),
			"a x done 0:00 0:02"},
		"steps that overlap": {timed(
			event.Event{Host: "a", Step: "x", Kind: start}, event.Event{Host: "a", Step: "y", Kind: start}, event.Event{Host: "a", Step: "x", Kind: done}, event.Event{Host: "a", Step: "y", Kind: done}),
			"a x done 0:00 0:02\na y done 0:01 0:03 below"},
		"left behind by Ctrl-C": {timed(
			event.Event{Host: "a", Step: "x", Kind: start}, event.Event{Host: "a", Step: "x", Kind: event.Error, Reason: "CANCELLED"}, event.Event{Kind: event.Result, Reason: "CANCELLED"}),
			"a x running 0:00 0:02"},
		"a clock that goes back": {[]event.Event{
			{Time: time.Unix(100, 0), Host: "a", Step: "x", Kind: start}, {Time: time.Unix(90, 0), Host: "a", Step: "x", Kind: done}},
			"a x done 0:00 0:00"},
		"a clock that is set back": {[]event.Event{
			{Time: time.Unix(100, 0), Host: "a", Step: "x", Kind: start}, {Time: time.Unix(107, 0), Host: "a", Step: "x", Kind: done},
			{Time: time.Unix(50, 0), Host: "a", Step: "y", Kind: start}, {Time: time.Unix(53, 0), Host: "a", Step: "y", Kind: done}},
			"a x done 0:00 0:07\na y done 0:07 0:10"},
		"a wait that is told again after that": {[]event.Event{
			{Time: time.Unix(100, 0), Host: "a", Step: "y", Kind: event.Wait, Text: "z", Millis: -5000}, {Time: time.Unix(99, 500), Host: "a", Step: "y", Kind: event.Wait, Text: "z"}},
			"a wait 0:00 0:00 z"},
	} {
		if got := summary(model(t, c.events)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	if _, err := Of(slices.Values([]event.Event(nil)), ""); err == nil {
		t.Error("there is a model of nothing")
	}
}

// TestCriticalPath holds that the path goes back over what is needed, on whichever host, and over what was before on the
// host, to the one that ended last.
func TestCriticalPath(t *testing.T) {
	for name, c := range map[string]struct {
		events []event.Event
		want   string
	}{
		"three hosts": {three(), "control-1 os/packages, control-1 os/modules, control-1 os/sysctl, control-1 repo/kubernetes, control-1 repo/docker, " +
			"control-1 runtime/containerd, control-1 kube/packages, control-1 cluster/init, control-1 cluster/token, gpu-1 cluster/join, gpu-1 driver/install, " +
			"gpu-1 driver/load, gpu-1 gpu/toolkit, control-1 gpu/ready, control-1 cluster/ready, control-1 gpu/smoke"},
		"a gate": {timed(
			event.Event{Kind: event.Plan, Plan: []event.Planned{{Host: "b", Step: "y", Needs: []event.Ref{{Host: "a", Step: "x"}}}}},
			event.Event{Host: "a", Step: "x", Kind: event.StepStart}, event.Event{Host: "b", Step: "w", Kind: event.StepStart},
			event.Event{Host: "b", Step: "w", Kind: event.StepDone}, event.Event{Host: "a", Step: "x", Kind: event.StepDone},
			event.Event{Host: "b", Step: "y", Kind: event.StepStart}, event.Event{Host: "b", Step: "y", Kind: event.StepDone}),
			"a x, b y"},
		"a plan after another, and kgpu's own work at the end": {timed(
			event.Event{Kind: event.Plan, Plan: []event.Planned{{Host: "a", Step: "x"}, {Host: "b", Step: "w"}}},
			event.Event{Host: "a", Step: "x", Kind: event.StepStart}, event.Event{Host: "b", Step: "w", Kind: event.StepStart},
			event.Event{Host: "b", Step: "w", Kind: event.StepDone}, event.Event{Host: "a", Step: "x", Kind: event.StepDone},
			event.Event{Kind: event.Plan, Plan: []event.Planned{{Host: "b", Step: "y"}}},
			event.Event{Host: "b", Step: "y", Kind: event.StepStart}, event.Event{Host: "b", Step: "y", Kind: event.StepDone},
			event.Event{Step: "kubeconfig", Kind: event.StepDone, Text: "lab.kubeconfig"}),
			"a x, b y,  kubeconfig"},
		"nothing was done": {timed(event.Event{Kind: event.Begin}, event.Event{Kind: event.Result, Reason: "ok"}), ""},
	} {
		var got []string
		for _, b := range model(t, c.events).Path {
			got = append(got, b.Host+" "+b.Step)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s\nwant %s", name, strings.Join(got, ", "), c.want)
		}
	}
}

// A run in which all happened at the same time has its order, and nothing on its page is outside of it.
func TestNoTimeAtAll(t *testing.T) {
	for name, change := range map[string]func(*event.Event){
		"no time":     func(e *event.Event) { e.Time = time.Unix(100, 0) },
		"below zero":  func(e *event.Event) { e.Millis = -e.Millis * 1000 },
		"without end": func(e *event.Event) { e.Millis = 1 << 62 },
	} {
		events := three()
		for i := range events {
			change(&events[i])
		}
		m := model(t, events)
		path := m.Path
		if len(path) < 9 || path[0].Step != "os/packages" || path[len(path)-1].Step != "gpu/smoke" {
			t.Errorf("%s: the critical path has %d steps", name, len(path))
		}
		for _, h := range m.Hosts {
			for _, l := range h.Looks {
				if l.Start < 0 || l.End < l.Start || l.End > m.Total {
					t.Errorf("%s: %+v", name, l)
				}
			}
			for _, w := range h.Waits {
				if w.Start < 0 || w.End < w.Start || w.End > m.Total {
					t.Errorf("%s: %+v", name, w)
				}
			}
		}
	}
}

// TestTrace holds what the format asks for: a process for each host, and slices of a thread that are beside or in each other.
func TestTrace(t *testing.T) {
	for _, events := range [][]event.Event{three(), forty()} {
		var out bytes.Buffer
		m := model(t, events)
		must(t, Trace(&out, m))
		var trace struct{ TraceEvents []traceEvent }
		must(t, json.Unmarshal(out.Bytes(), &trace))
		names := map[string]bool{}
		type slice struct{ from, to int64 }
		threads := map[[2]int][]slice{}
		for _, e := range trace.TraceEvents {
			if e.Name == "process_name" {
				names[e.Args["name"].(string)] = true
			}
			if e.Phase != "X" {
				continue
			}
			s := slice{e.Time, e.Time + *e.Duration}
			at := [2]int{e.Process, e.Thread}
			for _, other := range threads[at] {
				if s.from < other.to && other.from < s.to && (s.from < other.from || s.to > other.to) {
					t.Errorf("%s cuts across another slice of its thread", e.Name)
				}
			}
			threads[at] = append(threads[at], s)
		}
		for _, h := range m.Hosts {
			if !names[h.Name] {
				t.Errorf("no process for %s", h.Name)
			}
		}
	}
}

// A step that is done again is one step, as in the plan and the picture, and one that nobody wanted is not in place.
func TestStepsAreCountedOnce(t *testing.T) {
	m := model(t, timed(
		event.Event{Host: "a", Step: "w", Kind: event.StepSkip, Reason: event.Unselected, Text: "not selected"},
		event.Event{Host: "a", Step: "v", Kind: event.StepSkip, Reason: event.Satisfied, Text: "as it should be"},
		event.Event{Host: "a", Step: "x", Kind: event.StepStart}, event.Event{Host: "a", Step: "x", Kind: event.StepDone},
		event.Event{Host: "a", Step: "x", Kind: event.StepStart}, event.Event{Host: "a", Step: "x", Kind: event.StepDone}))
	if m.Satisfied != 1 || len(m.Hosts[0].Left) > 0 {
		t.Errorf("%d in place, %v left", m.Satisfied, m.Hosts[0].Left)
	}
	if facts := newPage(m).Facts; facts[2].Name != "Steps done" || facts[2].Value != "1" {
		t.Errorf("%+v", facts)
	}
}
