package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kgpu.dev/kgpu/bootstrap/event"
)

var begin = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// state is one after these events, a second apart.
func state(events ...event.Event) *State {
	s := New()
	for i, e := range events {
		e.Time = begin.Add(time.Duration(i) * time.Second)
		s.Note(e)
	}
	return s
}

func planned(steps ...string) event.Event {
	e := event.Event{Kind: event.Plan}
	for _, s := range steps {
		what, needs, _ := strings.Cut(s, " < ")
		at := refTo(what)
		p := event.Planned{Host: at.Host, Step: at.Step, Title: "do " + at.Step}
		for need := range strings.SplitSeq(needs, ", ") {
			if need != "" {
				p.Needs = append(p.Needs, refTo(need))
			}
		}
		e.Plan = append(e.Plan, p)
	}
	return e
}

func refTo(s string) event.Ref {
	host, step, _ := strings.Cut(s, ":")
	return event.Ref{Host: host, Step: step}
}

func at(place string, kind event.Kind, text string) event.Event {
	r := refTo(place)
	return event.Event{Host: r.Host, Step: r.Step, Kind: kind, Text: text}
}

func broken(place string) event.Event {
	e := at(place, event.Error, "no")
	e.Reason = "STEP_FAILED"
	return e
}

func leftOutFor(place, failed string) event.Event {
	e := at(place, event.StepSkip, "not begun, because "+failed+" failed")
	e.Reason = "STEP_FAILED"
	return e
}

func TestCriticalPath(t *testing.T) {
	plan := planned("cp:a", "cp:init < cp:a", "w1:a", "w1:b < w1:a", "cp:token < cp:init", "w1:join < w1:b, cp:token", "w1:end < w1:join", "cp:ready < w1:join")
	for _, c := range []struct {
		name   string
		events []event.Event
		width  int
		want   string
	}{
		{"whole", []event.Event{plan}, 200, "cp a → init → token → w1 join → end"},
		{"cut", []event.Event{plan}, 31, "cp a → init → … → w1 end"},
		{"no room for its end", []event.Event{plan}, 12, "cp a → …"},
		{"no room", []event.Event{plan}, 4, "cp …"},
		{"cut on one host", []event.Event{planned("w1:a", "w1:b < w1:a", "w1:c < w1:b", "w1:d < w1:c")}, 14, "w1 a → … → d"},
		{"what is done is no part of it", []event.Event{plan, at("cp:a", event.StepDone, ""), at("cp:init", event.StepDone, "")}, 200, "w1 a → b → join → end"},
		{"another way", []event.Event{plan, at("w1:a", event.StepDone, ""), at("w1:b", event.StepDone, ""), at("cp:a", event.StepDone, "")}, 200, "cp init → token → w1 join → end"},
		{"what failed is no part of it", []event.Event{plan, broken("w1:b"), leftOutFor("w1:join", "w1 b"), leftOutFor("w1:end", "w1 b"), leftOutFor("cp:ready", "w1 b")}, 200, "cp a → init → token"},
		{"planned again", []event.Event{plan, broken("w1:b"), leftOutFor("w1:join", "w1 b"), planned("w1:b", "w1:join < w1:b", "w1:end < w1:join", "w1:more < w1:end")}, 200, "w1 b → join → end → more"},
	} {
		if got := pathWords(state(c.events...).criticalPath(), c.width); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What a line says about a host.
func TestRows(t *testing.T) {
	plan := planned("cp:init", "w1:a", "w1:join < w1:a, cp:init")
	retry := at("w1:a", event.Wait, "no route; try 2 of 3 in 4s")
	retry.Reason = "REPO_UNREACHABLE"
	for _, c := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"not begun", nil, "· w1  0/2  next: do a"},
		{"at work", []event.Event{at("w1:a", event.StepStart, "do a")}, "● w1  0/2  do a"},
		{"a lock", []event.Event{at("w1:a", event.StepStart, "do a"), at("w1:a", event.Wait, "the package manager,\nheld by apt")}, "○ w1  0/2  a waits: the package manager, held by apt"},
		{"no lock any more", []event.Event{at("w1:a", event.StepStart, "do a"), at("w1:a", event.Wait, "the package manager"), at("w1:a", event.Log, "Reading")}, "● w1  0/2  do a"},
		{"a gate", []event.Event{at("w1:a", event.StepDone, "")}, "○ w1  1/2  waits for init on cp"},
		{"its turn", []event.Event{at("w1:a", event.Wait, "for its turn: as many hosts as may are at work (30)")}, "○ w1  0/2  a waits for its turn: as many hosts as may are at work (30)"},
		{"another try", []event.Event{at("w1:a", event.StepStart, "do a"), retry}, "○ w1  0/2  a waits: no route; try 2 of 3 in 4s"},
		{"lost", []event.Event{at("w1:a", event.StepStart, "do a"), at("w1:", event.Wait, "connection lost 17s ago")}, "○ w1  0/2  waits: connection lost 17s ago"},
		{"back", []event.Event{at("w1:a", event.StepStart, "do a"), at("w1:", event.Wait, "connection lost 17s ago"), at("w1:a", event.Log, "x")}, "● w1  0/2  do a"},
		{"failed", []event.Event{broken("w1:a"), leftOutFor("w1:join", "w1 a")}, "✗ w1  0/2  failed: a [STEP_FAILED]; 1 step left out"},
		{"failed, and at work", []event.Event{broken("w1:join"), at("w1:a", event.StepStart, "do a")}, "✗ w1  0/2  failed: join [STEP_FAILED]; now do a"},
		{"left out", []event.Event{at("w1:a", event.StepDone, ""), broken("cp:init"), leftOutFor("w1:join", "cp init")}, "– w1  1/2  left out: join, because cp init failed"},
		{"cut short", []event.Event{at("w1:a", event.StepStart, "do a"), {Host: "w1", Step: "a", Kind: event.Error, Reason: "CANCELLED"}}, "● w1  0/2  do a"},
		{"done", []event.Event{at("w1:a", event.StepDone, ""), at("w1:join", event.StepDone, "")}, "✓ 1 host done: w1"},
		{"looked at when it is done", []event.Event{at("w1:a", event.StepDone, ""), at("w1:join", event.StepDone, ""), at("w1:", event.Wait, "for its facts: x")}, "○ w1  2/2  waits for its facts: x"},
		{"lost, and done without", []event.Event{at("w1:", event.Wait, "connection lost 17s ago"), {Host: "w1", Kind: event.Warning, Reason: "SSH_LOST"}, leftOutFor("w1:a", "w1 x"), leftOutFor("w1:join", "w1")},
			"– w1  0/2  left out: a and 1 more, because w1 x failed"},
		{"planned again", []event.Event{broken("w1:a"), leftOutFor("w1:join", "w1 a"), planned("w1:a")}, "· w1  0/2  next: do a"},
		{"a step of another run", []event.Event{at("w1:x", event.StepStart, "")}, "● w1  0/3  x"},
	} {
		s := state(append([]event.Event{{Kind: event.Begin}, plan}, c.events...)...)
		var got string
		for _, line := range s.Frame(100, 24, begin) {
			if line = ansi.Strip(line); strings.Contains(line, " w1 ") || strings.HasSuffix(line, "done: w1") {
				got = strings.Join(strings.Fields(strings.Replace(line, "  0:00  ", "  ", 1)), " ")
			}
		}
		if want := strings.Join(strings.Fields(c.want), " "); got != want {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}

// A step that is heard of late has been at work since it began.
func TestTimeOfAStepThatIsHeardOfLate(t *testing.T) {
	late := at("w1:a", event.StepStart, "do a")
	late.Millis = 192_000
	if frame := strings.Join(state(event.Event{Kind: event.Begin}, late).Frame(100, 24, begin.Add(11*time.Second)), "\n"); !strings.Contains(ansi.Strip(frame), "w1    3:22  do a") {
		t.Errorf("the frame is\n%s", frame)
	}
}

func TestProgress(t *testing.T) {
	for _, c := range []struct{ log, want string }{
		{"Reading package lists...", ""},
		{"Get:1 http://x noble InRelease [256 kB]", ""}, // lists: nobody knows how many
		{"4 upgraded, 8 newly installed, 0 to remove and 3 not upgraded.\nNeed to get 312 MB/400 MB of archives.", "0 of 312 MB"},
		{"Need to get 312 MB of archives.\nGet:1 http://x noble/main amd64 a amd64 1 [1,200 kB]\nGet:2 http://x noble/main amd64 b amd64 1 [78.0 MB]\nGet:3 http://x noble/main amd64 c amd64 1 [9 B]", "79 of 312 MB"},
		{"Need to get 3,500 kB of archives.\nGet:1 http://x a [1.2 MB]\nGet:2 http://x b [1 B]", "1.2 of 3.5 MB"},
		{"Need to get 3 MB of archives.\nGet:1 http://x a [3 MB]\nFetched 3 MB in 1s (3 MB/s)", ""},
		{"0 upgraded, 2 newly installed, 0 to remove\nUnpacking a (1) ...", "unpacks 1 of 2 packages"},
		{"0 upgraded, 2 newly installed, 0 to remove\nUnpacking a (1) ...\nUnpacking b (1) ...\nSetting up a (1) ...", "sets up 1 of 2 packages"},
		{"Unpacking a (1) ...", ""},
		{"Need to get .. MB of archives.", ""},
		{"99999999999999999999999 upgraded, 1 newly installed", ""},
	} {
		var p progress
		for line := range strings.SplitSeq(c.log, "\n") {
			p.note(line)
		}
		if got := p.String(); got != c.want {
			t.Errorf("%q: %q, want %q", c.log, got, c.want)
		}
	}
}

// Whatever the terminal's size and the names: no line is wider than it, and the lines leave room for what scrolls.
func TestFramesFit(t *testing.T) {
	for _, hosts := range []int{0, 1, 7, 300} {
		events := []event.Event{{Kind: event.Begin, Text: "up 我的机器.yaml"}}
		var steps []string
		for i := range hosts {
			host := fmt.Sprintf("機器-%d-with-a-name-that-is-much-too-long-for-a-column", i)
			steps = append(steps, host+":os/packages", host+":cluster/join < "+host+":os/packages")
			events = append(events, at(host+":", event.Connect, ""))
		}
		events = append(events, planned(steps...))
		for i := range hosts {
			place := steps[2*i]
			switch i % 4 {
			case 0:
				events = append(events, at(place, event.StepStart, "インストール\tof packages"))
			case 1:
				events = append(events, at(place, event.Wait, "for the 包管理器, held by "+strings.Repeat("長い", 50)))
			case 2:
				events = append(events, broken(place))
			}
		}
		s := state(events...)
		for width := 1; width < 130; width += 3 {
			for _, height := range []int{1, 2, 5, 24, 60} {
				lines := s.Frame(width, height, begin.Add(time.Hour))
				if most := max(height-1-min(above, height/3), 1); len(lines) > most {
					t.Errorf("%d hosts on %d×%d: %d lines", hosts, width, height, len(lines))
				}
				for _, line := range lines {
					if ansi.StringWidthWc(line) > width || strings.ContainsAny(line, "\n\t") {
						t.Errorf("%d hosts on %d×%d: %q", hosts, width, height, line)
					}
				}
			}
		}
	}
}

// A host that names ever more steps makes the picture keep only so many.
func TestStateKeepsLittleOfMuch(t *testing.T) {
	s := New()
	for i := range 2 * maxSteps {
		s.Note(event.Event{Host: "h", Step: fmt.Sprint("s", i), Kind: event.Log, Text: "x"})
	}
	if len(s.steps) != maxSteps {
		t.Errorf("%d steps are kept", len(s.steps))
	}
}

// Of somebody else's run nobody knows how many steps there are, so no host is done before the run is.
func TestARunThatIsWatched(t *testing.T) {
	events := []event.Event{
		{Kind: event.Begin, Text: "attach"}, at("w1:", event.Connect, ""), at("w2:", event.Connect, ""), {Kind: event.Wait, Text: "for the end of a run"},
		at("w1:a", event.StepStart, ""), at("w1:a", event.StepDone, ""), at("w2:a", event.StepStart, ""),
	}
	frame := func(n int) string {
		return ansi.Strip(strings.Join(state(events[:n]...).Frame(100, 24, begin.Add(10*time.Second)), "\n"))
	}
	for n, want := range map[int]string{
		4: "kgpu attach  0:10  watching  no step was heard of yet",
		7: "kgpu attach  0:10  1 step done\n· w1  1 done  0:05  between two steps\n● w2          0:04  a",
	} {
		if got := frame(n); got != want {
			t.Errorf("after %d events:\n%s\nwant\n%s", n, got, want)
		}
	}
	events = append(events, at("w2:a", event.StepDone, ""), event.Event{Kind: event.Result})
	if got := frame(len(events)); !strings.HasSuffix(got, "✓ 2 hosts done: w1, w2") {
		t.Errorf("at its end:\n%s", got)
	}
}

// The hosts stand as in the plan, whoever connected first; and however much was typed, the numbers are there.
func TestOrderAndTitle(t *testing.T) {
	s := state(event.Event{Kind: event.Begin, Text: "add-worker " + strings.Repeat("10.0.0.21 ", 40)}, at("w2:", event.Connect, ""), at("w1:", event.Connect, ""), planned("w1:a", "w2:a"))
	lines := s.Frame(80, 24, begin)
	for i, want := range []string{"0 of 2 steps", "w1 ", "w2 "} {
		if !strings.Contains(ansi.Strip(lines[i]), want) {
			t.Errorf("no %q in %q", want, lines[i])
		}
	}
}
