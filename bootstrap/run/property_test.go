package run

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
)

// theatre is a set of hosts whose steps do what the test says, when it says so.
type theatre struct {
	mu      sync.Mutex
	playing map[graph.Ref]chan int // steps that run → where their exit status is expected
	batches []string               // the steps of each batch so far
}

func newTheatre() *theatre { return &theatre{playing: map[graph.Ref]chan int{}} }

// running lists the steps that run.
func (th *theatre) running() []graph.Ref {
	th.mu.Lock()
	defer th.mu.Unlock()
	return slices.SortedFunc(maps.Keys(th.playing), func(a, b graph.Ref) int { return cmp.Compare(a.String(), b.String()) })
}

// end lets a running step end.
func (th *theatre) end(r graph.Ref, status int) {
	th.mu.Lock()
	exit := th.playing[r]
	delete(th.playing, r)
	th.mu.Unlock()
	exit <- status
}

// stage is one host of a theatre; it understands bundles, not scripts.
type stage struct {
	*theatre
	id string
}

func (s stage) ID() string                      { return s.id }
func (s stage) Reconnect(context.Context) error { return nil }

func (s stage) Run(ctx context.Context, c remote.Command) error {
	steps, err := stepsIn(c.Stdin)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.batches = append(s.batches, s.id+": "+strings.Join(steps, " "))
	s.mu.Unlock()
	for _, id := range steps {
		exit := make(chan int)
		ref := graph.Ref{Host: s.id, ID: id}
		s.mu.Lock()
		s.playing[ref] = exit
		s.mu.Unlock()
		fmt.Fprintf(c.Stdout, "B\t%s\t0\n", id)
		status := <-exit
		if status != 0 {
			fmt.Fprintf(c.Stdout, "D\t%s\t%d\t0\t\t\nE\t%d\n", id, status, status)
			return nil
		}
		fmt.Fprintf(c.Stdout, "O\t%s\tname\t\nD\t%s\t0\t0\t\t\n", id, id)
	}
	fmt.Fprint(c.Stdout, "E\t0\n")
	return nil
}

// stepsIn lists the step IDs of a bundle, in order.
func stepsIn(bundle io.Reader) ([]string, error) {
	zip, err := gzip.NewReader(bundle)
	if err != nil {
		return nil, err
	}
	var ids []string
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return ids, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Base(h.Name) == "id" {
			id, err := io.ReadAll(archive)
			if err != nil {
				return nil, err
			}
			ids = append(ids, strings.TrimSpace(string(id)))
		}
	}
}

// randomGraph makes a graph with needs across hosts, late inputs and words.
func randomGraph(r *rand.Rand, late func(*graph.Step, graph.Outputs)) *graph.Graph {
	g := &graph.Graph{}
	hosts := 1 + r.IntN(5)
	for i := range 1 + r.IntN(30) {
		s := step(fmt.Sprintf("h%d", r.IntN(hosts)), fmt.Sprintf("s%d", i), "")
		for range r.IntN(3) {
			if len(g.Steps) > 0 {
				s.Needs = append(s.Needs, g.Steps[r.IntN(len(g.Steps))].Ref)
			}
		}
		if r.IntN(6) == 0 {
			s.Needs = append(s.Needs, ref("h0", "not-planned"))
		}
		if r.IntN(4) == 0 {
			s.LateInput = func(o graph.Outputs) (graph.Input, error) {
				late(s, o)
				return graph.Input{}, nil
			}
		}
		if r.IntN(5) == 0 {
			s.Mutex = fmt.Sprintf("word%d", r.IntN(2))
		}
		g.Steps = append(g.Steps, s)
	}
	return g
}

// oracle knows what must be so at every moment, from nothing but the graph and what became of its steps.
type oracle struct {
	steps map[graph.Ref]*graph.Step
	fate  map[graph.Ref]Outcome
}

func (o *oracle) needsDone(s *graph.Step) bool {
	return !slices.ContainsFunc(s.Needs, func(n graph.Ref) bool { return o.steps[n] != nil && o.fate[n] != Done })
}

// fail records a failure and what it makes impossible.
func (o *oracle) fail(failed graph.Ref, order []*graph.Step) {
	o.fate[failed] = Failed
	for _, s := range order {
		if o.fate[s.Ref] == "" && slices.ContainsFunc(s.Needs, func(n graph.Ref) bool { return o.fate[n] == Failed || o.fate[n] == Skipped }) {
			o.fate[s.Ref] = Skipped
		}
	}
}

// TestRandomGraphs plays random graphs with random failures. Whenever everything stands still it checks that no host
// idles that could do something, that every running step had what it needs, that words are respected and nothing is
// begun twice; at the end, that exactly the right steps were done and left out.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { playRandomGraph(t, seed) })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

func playRandomGraph(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	stages := newTheatre()
	know := &oracle{steps: map[graph.Ref]*graph.Step{}, fate: map[graph.Ref]Outcome{}}
	g := randomGraph(r, func(s *graph.Step, o graph.Outputs) {
		for _, need := range s.Needs {
			if know.steps[need] != nil && o[need] == nil {
				t.Errorf("%s was asked for its input before %s had ended", s.Ref, need)
			}
		}
	})
	events := &event.Recorder{}
	e := &Engine{Run: "r", Hosts: map[string]Host{}, Events: events, Limit: 1 + r.IntN(6), Script: func(string) ([]byte, error) { return nil, nil }}
	for _, s := range g.Steps {
		s.Script = "x"
		know.steps[s.Ref] = s
		e.Hosts[s.Host] = stage{stages, s.Host}
	}
	over := make(chan struct{})
	var result *Result
	var err error
	go func() {
		defer close(over)
		result, err = e.Execute(t.Context(), g)
	}()
	for {
		synctest.Wait()
		running := stages.running()
		checkStandstill(t, e, g, running, know)
		if len(running) == 0 || t.Failed() {
			break
		}
		next := running[r.IntN(len(running))]
		status := 0
		if know.fate[next] = Done; r.IntN(12) == 0 {
			status = 1 + r.IntN(100)
			know.fail(next, g.Steps)
		}
		stages.end(next, status)
	}
	if t.Failed() {
		t.FailNow() // what still runs ends the bubble with a panic that says where it stands
	}
	<-over
	checkEnd(t, g, events, result, err, know)
}

func checkStandstill(t *testing.T, e *Engine, g *graph.Graph, running []graph.Ref, know *oracle) {
	busy, words := map[string]bool{}, map[string]bool{}
	for _, ref := range running {
		s := know.steps[ref]
		if busy[ref.Host] || s.Mutex != "" && words[s.Mutex] {
			t.Errorf("%s runs beside another step of its host or word", ref)
		}
		busy[ref.Host], words[s.Mutex] = true, true
		if know.fate[ref] != "" || !know.needsDone(s) {
			t.Errorf("%s runs although it must not (%q)", ref, know.fate[ref])
		}
	}
	if len(busy) > e.Limit {
		t.Errorf("%d batches run, the limit is %d", len(busy), e.Limit)
	}
	if len(busy) == e.Limit {
		return
	}
	for _, s := range g.Steps {
		if know.fate[s.Ref] == "" && !busy[s.Host] && know.needsDone(s) && (s.Mutex == "" || !words[s.Mutex]) {
			t.Errorf("%s could run, but its host idles", s.Ref)
		}
	}
}

func checkEnd(t *testing.T, g *graph.Graph, events *event.Recorder, result *Result, err error, know *oracle) {
	count := map[event.Kind]map[graph.Ref]int{}
	for _, e := range events.Events() {
		if count[e.Kind] == nil {
			count[e.Kind] = map[graph.Ref]int{}
		}
		count[e.Kind][graph.Ref{Host: e.Host, ID: e.Step}]++
	}
	failures := 0
	for i, s := range g.Steps {
		fate := know.fate[s.Ref]
		if result.Steps[i].Ref != s.Ref || result.Steps[i].Outcome != fate {
			t.Errorf("%s is %s, not %s", s.Ref, result.Steps[i].Outcome, fate)
		}
		want := map[event.Kind]int{}
		switch fate {
		case Done:
			want[event.StepStart], want[event.StepDone] = 1, 1
		case Failed:
			want[event.StepStart], want[event.Error] = 1, 1
			failures++
		case Skipped:
			want[event.StepSkip] = 1
		}
		for _, kind := range []event.Kind{event.StepStart, event.StepDone, event.Error, event.StepSkip} {
			if got := count[kind][s.Ref]; got != want[kind] {
				t.Errorf("%s (%s): %d %s events", s.Ref, fate, got, kind)
			}
		}
	}
	if got := len(reason.All(err)); got != failures {
		t.Errorf("%d failures, %d errors: %v", failures, got, err)
	}
}

// play runs g on stages, ending with status 0 whatever runs, one after the other in the order of their names.
func play(t *testing.T, g *graph.Graph, status func(graph.Ref) int) (*theatre, *Result, error) {
	stages := newTheatre()
	e := &Engine{Run: "r", Hosts: map[string]Host{}, Script: func(string) ([]byte, error) { return nil, nil }}
	for _, s := range g.Steps {
		s.Script = "x"
		e.Hosts[s.Host] = stage{stages, s.Host}
	}
	over := make(chan struct{})
	var result *Result
	var err error
	go func() {
		defer close(over)
		result, err = e.Execute(t.Context(), g)
	}()
	for {
		synctest.Wait()
		select {
		case <-over:
			return stages, result, err
		default:
		}
		if running := stages.running(); len(running) > 0 {
			stages.end(running[0], status(running[0]))
		} else {
			time.Sleep(time.Second) // of the bubble's clock: another try is due
		}
	}
}

// A step that is tried again does not keep its host from doing something else meanwhile.
func TestHostWorksOnDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flaky := step("h", "flaky", "x")
		flaky.Retry = graph.Transient
		tried, begun := 0, time.Now()
		stages, _, err := play(t, graphOf(flaky, step("h", "free", "x")), func(r graph.Ref) int {
			if r.ID == "flaky" {
				if tried++; tried < 3 {
					return 75
				}
			}
			return 0
		})
		must(t, err)
		if want := []string{"h: flaky free", "h: free", "h: flaky", "h: flaky"}; !slices.Equal(stages.batches, want) {
			t.Errorf("batches are %q", stages.batches)
		}
		if waited := time.Since(begun); waited < 3*time.Second || waited > 8*time.Second {
			t.Errorf("two more tries took %s on the bubble's clock", waited)
		}
	})
}

// A host's next steps go in one batch as long as they need no news from elsewhere; a step that waits is overtaken by
// one step at a time.
func TestBatches(t *testing.T) {
	late := func(s *graph.Step) *graph.Step {
		s.LateInput = func(graph.Outputs) (graph.Input, error) { return graph.Input{}, nil }
		return s
	}
	serial := func(s *graph.Step) *graph.Step {
		s.Mutex = "word"
		return s
	}
	for name, c := range map[string]struct {
		graph *graph.Graph
		want  []string
	}{
		"one host": {
			graphOf(step("a", "1", ""), step("a", "2", "", ref("a", "1")), step("a", "3", "")),
			[]string{"a: 1 2 3"},
		},
		"waiting for another host": {
			graphOf(step("b", "1", ""), step("a", "1", ""), step("a", "2", "", ref("a", "1")), step("a", "3", "", ref("b", "1")), step("a", "4", "")),
			[]string{"a: 1 2", "b: 1", "a: 4", "a: 3"},
		},
		"late input from the same batch": {
			graphOf(step("a", "1", ""), late(step("a", "2", "", ref("a", "1"))), step("a", "3", "")),
			[]string{"a: 1", "a: 2 3"},
		},
		"late input that is known": {
			graphOf(step("a", "1", ""), late(step("a", "2", "")), step("a", "3", "")),
			[]string{"a: 1 2 3"},
		},
		"a word": {
			graphOf(step("a", "1", ""), serial(step("a", "2", "")), step("a", "3", "")),
			[]string{"a: 1", "a: 2 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stages, _, err := play(t, c.graph, func(graph.Ref) int { return 0 })
				must(t, err)
				slices.Sort(stages.batches)
				slices.Sort(c.want)
				if !slices.Equal(stages.batches, c.want) {
					t.Errorf("batches are %q, not %q", stages.batches, c.want)
				}
			})
		})
	}
}
