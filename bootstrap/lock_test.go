package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/look"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

const held = "operator=held\noperator=who=ada@desk\noperator=from=192.0.2.7\noperator=since=1795181111\noperator=command=up inventory.yaml\n"

// actor is a host that answers what the test tells it to.
type actor struct {
	mu    sync.Mutex
	facts []string // lines beyond the least, of one look after the other; the last stays; "hang": no answer; "killed": 143
	held  int      // how often the cluster was held
	holds bool     // it is held now
	heard []bool   // the batch of a former run was followed: whether the cluster was held then
	stays bool     // somebody goes on to hold it
	tells string   // the events of the batch of a former run; empty: it is gone
}

func (a *actor) run(x *sshtest.Exec) int {
	switch {
	case strings.Contains(x.Line, "exec bash -s /var/lib/kgpu "):
		a.mu.Lock()
		a.held++
		a.holds = true
		a.mu.Unlock()
		_, _ = io.WriteString(x.Stdout, "held\n") // as watch.sh
		if !a.stays {
			_, _ = io.WriteString(x.Stdout, "free\n")
		}
		_, _ = io.WriteString(x.Stdout, "looked\n")
		runnertest.Lock(x.Stdin, x.Stdout) // as lock.sh
		a.mu.Lock()
		a.holds = false
		a.mu.Unlock()
		return 0
	case strings.Contains(x.Line, "/follow.sh "):
		a.mu.Lock()
		a.heard = append(a.heard, a.holds)
		a.mu.Unlock()
		_, _ = io.WriteString(x.Stdout, a.tells)
		if a.tells == "" {
			return 1
		}
		return 0
	case x.Line != "bash -s":
		return 1
	}
	a.mu.Lock()
	facts := a.facts[0]
	if len(a.facts) > 1 {
		a.facts = a.facts[1:]
	}
	a.mu.Unlock()
	if facts == "hang" {
		<-x.Gone
		return sshtest.Vanish
	}
	if facts == "killed" {
		return 143
	}
	fmt.Fprintf(x.Stdout, "kgpu-facts=1\nnow=1795181171.5\ncpus=2\nmemory-kib=2048\n%send=1\n", facts)
	return 0
}

// stage makes an inventory of these hosts, the first of which is the control plane.
func stage(t *testing.T, actors ...*actor) (Options, *event.Recorder) {
	t.Helper()
	text := "hosts:\n- {address: 192.0.2.1, role: control-plane, name: cp1}\n"
	for i := range actors[1:] {
		text += fmt.Sprintf("- {address: 192.0.2.%d, name: w%d}\n", i+2, i+1)
	}
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	inv, err := inventory.Load(path, inventory.Options{})
	must(t, err)
	for i, a := range actors {
		h := sshtest.Listen(t, sshtest.Config{Exec: a.run}).Host()
		inv.Hosts[i].Address, inv.Hosts[i].SSH = h.Address, h.SSH
	}
	events := &event.Recorder{}
	return Options{Options: session.Options{Inventory: inv, Run: "test", Events: events, Command: "test"}}, events
}

// Whoever wants to change a cluster that somebody else holds hears so, without waiting for hosts that are slower.
func TestTheSecondOperator(t *testing.T) {
	never := func(*graph.Graph) error { t.Error("a plan was shown"); return nil }
	for name, story := range map[string]func(Options) error{
		"up":    func(o Options) error { return Up(t.Context(), o, never) },
		"reset": func(o Options) error { return Reset(t.Context(), o, nil, never) },
		"smoke": func(o Options) error { return Smoke(t.Context(), o) },
		"add-worker": func(o Options) error {
			return AddWorker(t.Context(), o, []inventory.Target{{Address: o.Inventory.Hosts[1].Address}}, inventory.Way{}, never)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cp := &actor{facts: []string{"ledger=1\nrun=20261120-130501-a1b2c3-2\nrun-step=kube/packages\n" + held}}
			o, _ := stage(t, cp, &actor{facts: []string{"hang"}})
			if name == "add-worker" { // it reads the file, which has other addresses
				path := o.Inventory.Path
				if err := os.WriteFile(path, fmt.Appendf(nil, "ssh: {user: root, key: %s, hostKey: %q, port: %d}\nhosts:\n- {address: 127.0.0.1, role: control-plane, name: cp1}\n",
					o.Inventory.Hosts[0].SSH.Key, o.Inventory.Hosts[0].SSH.HostKey, o.Inventory.Hosts[0].SSH.Port), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := story(o)
			if reason.ExitStatus(err) != 30 {
				t.Fatalf("%v, want HOST_BUSY alone", err)
			}
			contains(t, err.Error(), "cp1: ", "ada@desk from 192.0.2.7 since 2026-11-20 13:25:11 UTC (1m0s ago)",
				"`kgpu up inventory.yaml`", "now cp1: kube/packages")
			contains(t, reason.All(err)[0].AdviceLine(), "kgpu attach")
			if cp.held > 0 {
				t.Error("it tried to hold the cluster")
			}
		})
	}
}

// Somebody was at work while the plan was read: what they did is not done again, and the plan that holds now is shown.
func TestChangedBeforeTheLock(t *testing.T) {
	cp := &actor{facts: []string{"ledger=7\n", "ledger=0\n"}}
	o, events := stage(t, cp)
	var shown []int
	err := Reset(t.Context(), o, nil, func(g *graph.Graph) error {
		if len(shown) == 0 && cp.held > 0 {
			t.Error("the cluster was held before the plan was shown")
		}
		shown = append(shown, len(g.Steps))
		return nil
	})
	if err != nil || fmt.Sprint(shown) != "[1 0]" || cp.held != 1 {
		t.Errorf("%v, shown %v, held %d times", err, shown, cp.held)
	}
	warned := false
	for _, e := range events.Events() {
		warned = warned || e.Kind == event.Warning && strings.Contains(e.Text, "changed since the plan")
	}
	if !warned {
		t.Error("nobody was told")
	}
}

// Who waits for the end of a run that lost its kgpu holds the cluster meanwhile, so that others hear of it at once; to think
// about the plan, it does not.
func TestWaitingForAFormerRunLocks(t *testing.T) {
	const former = "ledger=1\nrun=20261120-130501-a1b2c3-2\nrun-by=ada@desk\nrun-step=kube/packages\n"
	for name, story := range map[string]func(Options, func(*graph.Graph) error) error{
		"up":    func(o Options, show func(*graph.Graph) error) error { return Up(t.Context(), o, show) },
		"reset": func(o Options, show func(*graph.Graph) error) error { return Reset(t.Context(), o, nil, show) },
		"remove-worker": func(o Options, show func(*graph.Graph) error) error {
			return RemoveWorker(t.Context(), o, Removal{Names: []string{"w1"}, Show: show})
		},
		"smoke": func(o Options, _ func(*graph.Graph) error) error { return Smoke(t.Context(), o) },
	} {
		t.Run(name, func(t *testing.T) {
			cp, w := &actor{facts: []string{former, "ledger=1\n"}}, &actor{facts: []string{"ledger=1\n"}}
			o, _ := stage(t, cp, w)
			shown := 0
			no := errors.New("no, thanks")
			err := story(o, func(*graph.Graph) error {
				if shown++; cp.holds {
					t.Error("the cluster is held while the plan is shown")
				}
				return no
			})
			if shows := name == "reset" || name == "remove-worker"; shows != (shown == 1) || shows != errors.Is(err, no) { // the others want hosts that a cluster can be made of
				t.Errorf("%d plans were shown: %v", shown, err)
			}
			if len(cp.heard) == 0 || slices.Contains(cp.heard, false) {
				t.Errorf("followed %d times, holding the cluster: %v", len(cp.heard), cp.heard)
			}
			if cp.holds || cp.held != 1 {
				t.Errorf("held %d times, and now: %t", cp.held, cp.holds)
			}
		})
	}
}

// A host that goes down kills what looks at it, and is back a moment later; one that does so again has something else.
func TestLookThatIsKilled(t *testing.T) {
	none := func(*graph.Graph) error { return nil }
	o, _ := stage(t, &actor{facts: []string{"killed", "ledger=0\n"}})
	if err := Reset(t.Context(), o, nil, none); err != nil {
		t.Error(err)
	}
	o, _ = stage(t, &actor{facts: []string{"killed"}})
	if err := Reset(t.Context(), o, nil, none); !errors.Is(err, &reason.Error{ID: reason.FactsFailed}) {
		t.Error(err)
	}
}

// A run without anything to do holds nothing.
func TestNothingToDoLocksNothing(t *testing.T) {
	cp := &actor{facts: []string{"ledger=0\n"}}
	o, events := stage(t, cp)
	must(t, Reset(t.Context(), o, nil, func(*graph.Graph) error { return nil }))
	commands := 0
	for _, e := range events.Events() {
		if e.Kind == event.Command {
			commands++
		}
	}
	if cp.held != 0 || commands != 1 {
		t.Errorf("held %d times, %d commands", cp.held, commands)
	}
}

func TestAttachWhereNothingIsAtWork(t *testing.T) {
	o, events := stage(t, &actor{facts: []string{"ledger=0\n"}})
	if said, err := look.Attach(t.Context(), o.Options); err != nil || said != "nothing is at work on the cluster" {
		t.Errorf("%q, %v", said, err)
	}
	for _, e := range events.Events() {
		if e.Kind != event.Connect && e.Kind != event.Command {
			t.Errorf("told %+v", e)
		}
	}
}

func TestLeavingAttach(t *testing.T) {
	cp := &actor{facts: []string{"ledger=1\n" + held}, stays: true}
	o, events := stage(t, cp)
	ctx, leave := context.WithCancel(t.Context())
	o.Events = event.SinkFunc(func(e event.Event) {
		events.Emit(e)
		if e.Kind == event.Wait {
			leave()
		}
	})
	said, err := look.Attach(ctx, o.Options)
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.Cancelled || !strings.Contains(all[0].AdviceLine(), "kgpu attach") || said != "left; the run goes on" {
		t.Errorf("%q, %v", said, err)
	}
}

// A worker that cannot be reached is not watched; the others are.
func TestAttachWithoutAWorker(t *testing.T) {
	o, events := stage(t, &actor{facts: []string{"ledger=1\n" + held}}, &actor{facts: []string{"ledger=x\n"}})
	if said, err := look.Attach(t.Context(), o.Options); err != nil || said != "the run has ended" {
		t.Errorf("%q, %v", said, err)
	}
	var told []string
	for _, e := range events.Events() {
		if e.Kind == event.Warning || e.Kind == event.Wait {
			told = append(told, e.Host+" "+string(e.Kind)+" "+e.Text)
		}
	}
	if all := strings.Join(told, "\n"); len(told) != 2 || !strings.Contains(all, "w1 warning this host is not watched: ") || !strings.Contains(all, " wait for the end of a run: ada@desk from 192.0.2.7") {
		t.Errorf("told:\n%s", all)
	}
}
