package e2e

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recordedRun is what `runs -o json` says of a run, as far as it is wanted here.
type recordedRun struct {
	Run, State, Reason, Command, Folder string
	Inventory                           string
	Exit                                *int
	Hosts                               []string
}

// history makes a cluster: kills two runs, looks at what goes on without them, and lets a third one come to its end, which a second
// operator is told of and watches. All leave a folder, and kgpu shows what was in it.
func (c *cluster) history(t *testing.T, hosts ...string) {
	c.rename(t, "history") // other tests' runs of the cluster e2e are in the same state directory
	secrets := c.seededJournal(t, "cp1")
	t.Run("nothing at work", func(t *testing.T) {
		before := c.snapshot(t, hosts...)
		s := kgpu(t, 0, "attach", c.inventory)
		if said := s.stdout.String(); !strings.Contains(said, "nothing is at work") {
			t.Errorf("attach said %s", said)
		}
		c.unchanged(t, before)
	})

	first := start(t, "", "up", "--output", "json", c.inventory)
	id := first.await(t, "a host installs", func(e event) bool { return e.Event == "step.start" && e.Step == "kube/packages" }).Run
	if got := recordedRuns(t); len(got) != 1 || got[0].Run != id || got[0].State != "at work" || got[0].Exit != nil {
		t.Errorf("while it is at work: %+v", got)
	}
	first.kill()
	if got := recordedRuns(t); len(got) != 1 || got[0].State != "killed" || got[0].Exit != nil || !strings.HasPrefix(got[0].Command, "up ") {
		t.Errorf("after kill -9: %+v", got)
	}
	if out := kgpu(t, 0, "runs", "--cluster", "history").stdout.String(); !strings.Contains(out, "killed") {
		t.Errorf("runs says\n%s", out)
	}
	if page := kgpu(t, 0, "runs", "timeline", id, "--file", "-").stdout.String(); !strings.Contains(page, ">killed</span>") {
		t.Error("its timeline does not say that it was killed")
	}
	attached := start(t, "", "attach", "--output", "json", c.inventory)
	attached.await(t, "attach says that nobody steers", func(e event) bool {
		return e.Event == "warning" && strings.Contains(e.Text, "nobody steers")
	})

	second := start(t, "", "up", "--output", "json", c.inventory)
	second.await(t, "it found its former run", func(e event) bool {
		return e.Event == "wait" && strings.Contains(e.Text, "a former run")
	})
	second.await(t, "kubeadm init", func(e event) bool { return e.Event == "step.done" && e.Step == "cluster/init" })
	second.kill()
	if code := attached.wait(t); code != 0 {
		t.Errorf("attach: exit status %d", code)
	}
	t.Run("support", func(t *testing.T) { c.supportOfHalfACluster(t, secrets) })

	s := c.upWatched(t, hosts...)
	c.ready(t, hosts...)
	for _, h := range hosts {
		if n := c.exec(t, h, "grep -c '^Install:.*kubelet' /var/log/apt/history.log"); n != "1" {
			t.Errorf("%s: kubelet was installed %s times, want once", h, n)
		}
	}
	got := recordedRuns(t)
	if len(got) != 3 || got[0].Run != s.events[0].Run || got[0].State != "ended" || got[0].Reason != "ok" || *got[0].Exit != 0 || len(got[0].Hosts) != 2 {
		t.Fatalf("after up: %+v", got)
	}
	run, inited := got[0], got[1]
	t.Run("logs", func(t *testing.T) {
		out := kgpu(t, 0, "runs", "logs", inited.Run, c.addr["cp1"], "cluster/init").stdout.String()
		if !strings.Contains(out, "control-plane has initialized successfully") {
			t.Errorf("kubeadm init said\n%s", out)
		}
		if log, err := os.ReadFile(filepath.Join(inited.Folder, "logs", c.addr["cp1"], "cluster+init.log")); err != nil || !strings.Contains(string(log), "control-plane has initialized successfully") {
			t.Errorf("%v\n%s", err, log)
		}
		if out := kgpu(t, 3, "runs", "logs", inited.Run, c.addr["cp1"], "cluster/inti").stderr.String(); !strings.Contains(out, `Did you mean "cluster/init"?`) {
			t.Errorf("a step that is none: %s", out)
		}
	})
	t.Run("timeline", func(t *testing.T) {
		page := kgpu(t, 0, "runs", "timeline", run.Run, "--file", "-").stdout.String()
		for _, host := range hosts {
			if !strings.Contains(page, `title="`+c.addr[host]+`"`) {
				t.Errorf("no row for %s", host)
			}
		}
		for _, e := range s.of("step.done") {
			if !strings.Contains(page, `aria-label="`+e.Step+" on "+cmp.Or(e.Host, "kgpu")+", done") {
				t.Errorf("no bar for %v", e)
			}
		}
		var trace struct{ TraceEvents []json.RawMessage }
		// by its former name
		if err := json.Unmarshal(kgpu(t, 0, "timeline", run.Run, "--trace", "-").stdout.Bytes(), &trace); err != nil || len(trace.TraceEvents) < len(s.of("step.done")) {
			t.Errorf("the trace has %d events: %v", len(trace.TraceEvents), err)
		}
	})
}

// rename gives the cluster another name, before it is made.
func (c *cluster) rename(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(c.inventory)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.inventory, []byte(strings.Replace(string(text), "cluster: e2e", "cluster: "+name, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	c.kubeconfig = filepath.Join(filepath.Dir(c.inventory), name+".kubeconfig")
}

// recordedRuns are the runs of the cluster history, the newest first, without those that found it taken.
func recordedRuns(t *testing.T) (runs []recordedRun) {
	t.Helper()
	out := kgpu(t, 0, "runs", "--cluster", "history", "-o=json").stdout.Bytes() // one array: -o json is for streams of events
	if err := json.Unmarshal(out, &runs); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return slices.DeleteFunc(runs, func(r recordedRun) bool { return r.Reason == "HOST_BUSY" })
}

// newestRun is the newest run with an inventory, by the events in its folder.
func newestRun(t *testing.T, inventory string) *session {
	t.Helper()
	var runs []recordedRun
	if err := json.Unmarshal(kgpu(t, 0, "runs", "-o=json").stdout.Bytes(), &runs); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(runs, func(r recordedRun) bool { return r.Inventory == inventory })
	if i < 0 {
		t.Fatalf("no run with %s among %+v", inventory, runs)
	}
	return runs[i].told(t)
}

// told is what a run recorded.
func (r recordedRun) told(t *testing.T) *session {
	t.Helper()
	s := &session{}
	for line := range strings.Lines(read(t, filepath.Join(r.Folder, "events.jsonl"))) {
		e, err := decode([]byte(line))
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		s.events = append(s.events, e)
		s.stdout.WriteString(line)
	}
	return s
}
