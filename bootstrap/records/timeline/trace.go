package timeline

import (
	"cmp"
	"encoding/json"
	"io"
	"strings"
)

// traceEvent is one of the Trace Event Format, which chrome://tracing and Perfetto read. Times are microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Time     int64          `json:"ts"`
	Duration *int64         `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// The threads of a host's process: waits and looks between steps may overlap with steps, which have a thread a lane.
const (
	waitThread = 1
	lookThread = 2
	firstLane  = 3
)

// Trace writes the model as a Chrome trace: a process for each host.
func Trace(w io.Writer, m *Model) error {
	events := []traceEvent{}
	for i, h := range m.Hosts {
		p := i + 1
		about := func(what string, thread int, args map[string]any) {
			events = append(events, traceEvent{Name: what, Phase: "M", Process: p, Thread: thread, Args: args})
		}
		about("process_name", 0, map[string]any{"name": cmp.Or(h.Name, here)})
		about("process_sort_index", 0, map[string]any{"sort_index": i})
		about("thread_name", waitThread, map[string]any{"name": "waits"})
		about("thread_name", lookThread, map[string]any{"name": "connections and questions"})
		for lane := range h.Lanes {
			about("thread_name", firstLane+lane, map[string]any{"name": "steps"})
		}
		span := func(name, category string, thread int, start, end int64, args map[string]any) {
			took := (end - start) * 1000
			events = append(events, traceEvent{Name: name, Category: category, Phase: "X", Time: start * 1000, Duration: &took, Process: p, Thread: thread, Args: args})
		}
		for _, l := range h.Looks {
			span(l.Text, "look", lookThread, l.Start, l.End, nil)
		}
		for _, wait := range h.Waits {
			span(wait.Text, "wait", waitThread, wait.Start, wait.End, map[string]any{"step": wait.Step})
		}
		for _, bar := range h.Bars {
			span(bar.Step, "step", firstLane+bar.Lane, bar.Start, bar.End, bar.args())
			for _, wait := range bar.Waits { // in the step
				span(wait.Text, "wait", firstLane+bar.Lane, wait.Start, wait.End, nil)
			}
		}
	}
	for _, n := range m.Notes {
		events = append(events, traceEvent{Name: n.Text, Category: string(n.Kind), Phase: "i", Time: n.At * 1000, Scope: "g", Args: map[string]any{"host": n.Host, "reason": n.Reason}})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(map[string]any{
		"traceEvents": events, "displayTimeUnit": "ms",
		"otherData": map[string]any{"cluster": m.Cluster, "run": m.Run, "command": m.Command, "begun": m.Begun, "result": m.Reason},
	})
}

// args is what there is to say about a step.
func (b *Bar) args() map[string]any {
	args := map[string]any{"title": b.Title, "state": b.State, "critical": b.Critical, "tries": b.Tries}
	for name, value := range map[string]string{"why": b.Why, "reason": b.Reason, "failure": b.Text, "log": strings.Join(b.Tail, "\n")} {
		if value != "" {
			args[name] = value
		}
	}
	return args
}
