package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// evil is what a terminal would obey: a title, a cleared screen, the clipboard, a C1 control, turned text; and no UTF-8.
const evil = "\x1b]0;evil\x07\x1b[2J\x1b]52;c;ZXZpbA==\x07\u009b31m\u202e\x7f\xff\x00"

// dangerous is the first thing in text that would do something to a terminal.
func dangerous(text string) string {
	if !utf8.ValidString(text) {
		return "bytes that are no UTF-8"
	}
	for _, c := range text {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
			return fmt.Sprintf("%U", c)
		}
	}
	return ""
}

func TestNothingThatIsPrintedIsObeyed(t *testing.T) {
	var out bytes.Buffer
	status := 7
	for _, kind := range []Kind{Plain, JSON} {
		for _, detail := range []Detail{Quiet, Verbose} {
			s := New(kind, &out, detail)
			for _, k := range []event.Kind{event.Connect, event.Command, event.StepStart, event.Log, event.Wait, event.StepDone, event.StepSkip, event.Proof, event.Warning, event.Error, event.Result} {
				s.Emit(event.Event{Time: time.Now(), Host: "h", Step: "s" + evil, Kind: k, Reason: "R" + evil, Text: evil + "words", Exit: &status,
					Plan: []event.Planned{{Host: "h" + evil, Step: evil, Title: evil, Reason: evil, Needs: []event.Ref{{Host: evil, Step: evil}}}}})
			}
		}
	}
	g := &graph.Graph{
		Steps:    []*graph.Step{{Ref: graph.Ref{Host: "h", ID: "a/b" + evil}, Title: evil, Reason: "because" + evil, Needs: []graph.Ref{{Host: "h", ID: evil}}}},
		Skipped:  []graph.Skipped{{Ref: graph.Ref{Host: "h", ID: "c" + evil}, Reason: evil}},
		Warnings: []string{"careful" + evil},
	}
	for _, o := range []PlanOptions{{}, {Verbose: true}, {JSON: true}} {
		must(t, PrintPlan(&out, g, o))
	}
	PrintError(&out, errors.Join(
		&reason.Error{ID: "X" + evil, Host: "h", Doing: "doing" + evil, Detail: "found" + evil, Stderr: evil + "\n" + evil, Advice: evil},
		&reason.Error{ID: reason.SSHLost, Err: errors.New("lost" + evil)},
		errors.New("other"+evil),
	))
	must(t, PrintNotebook(&out, "multiplies on /gpu:0"+evil, "http://x/"+evil, "ssh"+evil, "stop"+evil, 30061))
	if what := dangerous(out.String()); what != "" {
		t.Errorf("%s in:\n%q", what, out.String())
	}
	contains(t, out.String(), "words", "because", "careful", "found", "lost", "other", "/gpu:0")
}

// An escape sequence without an end takes nothing along that is kgpu's own.
func TestAnUnfinishedSequenceTakesNothingAlong(t *testing.T) {
	for _, start := range []string{"\x1b[", "\x1b]", "\u009b", "\u009d", "\x1b"} {
		var out bytes.Buffer
		PrintError(&out, &reason.Error{ID: reason.StepFailed, Detail: "found " + start})
		s := New(JSON, &out, Normal)
		s.Emit(event.Event{Kind: event.Warning, Text: start})
		first, second, _ := strings.Cut(out.String(), "\n")
		if !strings.HasSuffix(first, "[STEP_FAILED]") {
			t.Errorf("%q: %q", start, first)
		}
		if _, event, ok := strings.Cut(second, "{"); !ok || !json.Valid([]byte("{"+strings.TrimSpace(event))) {
			t.Errorf("%q: %q is no JSON", start, second)
		}
	}
}

func TestTheReportKeepsLittleOfMuch(t *testing.T) {
	l := New(Plain, &bytes.Buffer{}, Quiet).(*lines)
	for i := range 10 * maxTails {
		l.Emit(event.Event{Host: "h", Step: fmt.Sprint("step-", i), Kind: event.Log, Text: "x"})
	}
	if len(l.tails) > maxTails+1 {
		t.Errorf("%d tails are kept", len(l.tails))
	}
}
