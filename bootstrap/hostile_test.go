package bootstrap

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/report/reporttest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// fakeHost answers as a host with kgpu's scripts would, where nothing else is said.
type fakeHost struct {
	name  string
	facts func(e *sshtest.Exec) int
	reach func(e *sshtest.Exec) int
	pods  func(e *sshtest.Exec) int
	batch func(e *sshtest.Exec, steps []string) int
	sftp  func(e *sshtest.Exec) int

	script func(e *sshtest.Exec, script []byte) int // answers all that is asked by a script
}

func (f *fakeHost) exec(e *sshtest.Exec) int {
	switch {
	case strings.Contains(e.Line, "receive.sh"):
		steps := stepsOf(e.Stdin)
		if f.batch != nil {
			return f.batch(e, steps)
		}
		for _, step := range steps {
			fmt.Fprintf(e.Stdout, "B\t%s\t0\n", step)
			if step == "cluster/token" {
				for name, value := range map[string]string{"token": "abcdef.0123456789abcdef", "ca_hash": "sha256:00"} {
					fmt.Fprintf(e.Stdout, "O\t%s\t%s\t%s\n", step, name, base64.StdEncoding.EncodeToString([]byte(value)))
				}
			}
			fmt.Fprintf(e.Stdout, "D\t%s\t0\t1\t\t\n", step)
		}
		fmt.Fprint(e.Stdout, "E\t0\n")
		return 0
	case strings.Contains(e.Line, "sftp-server"):
		if f.sftp != nil {
			return f.sftp(e)
		}
		return 127
	case strings.Contains(e.Line, "exec bash -s "): // the lock, which ends with its input
		runnertest.Lock(e.Stdin, e.Stdout)
		return 0
	case strings.Contains(e.Line, "bash -s"):
		script, _ := io.ReadAll(e.Stdin)
		if f.script != nil {
			return f.script(e, script)
		}
		if f.pods != nil && bytes.Equal(script, scripts.Pods()) {
			return f.pods(e)
		}
		asked := f.facts
		if bytes.Contains(script, []byte("kgpu-reach=1")) {
			if asked = f.reach; asked == nil {
				fmt.Fprint(e.Stdout, "kgpu-reach=1\nend=1\n")
				return 0
			}
		}
		if asked != nil {
			return asked(e)
		}
		fmt.Fprint(e.Stdout, sitetest.Bare(f.name))
		return 0
	}
	return 127
}

// stepsOf are the steps of a bundle, in order.
func stepsOf(bundle io.Reader) []string {
	zip, err := gzip.NewReader(bundle)
	if err != nil {
		return nil
	}
	var steps []string
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if err != nil {
			return steps
		}
		if path.Base(h.Name) == "id" {
			id, _ := io.ReadAll(archive)
			steps = append(steps, strings.TrimSpace(string(id)))
		}
	}
}

// fakes is the servers of some hosts and the options of a run for them.
func fakes(t *testing.T, hosts ...*fakeHost) (Options, []*sshtest.Server) {
	t.Helper()
	text := "kubernetes: {version: 1.36}\nruntime: containerd\nnetwork: flannel\nhosts:\n"
	for i := range hosts {
		role := inventory.Worker
		if i == 0 {
			role = inventory.ControlPlane
		}
		text += fmt.Sprintf("  - {address: 10.0.0.%d, role: %s}\n", i+1, role)
	}
	inv, err := inventory.Decode(filepath.Join(t.TempDir(), "inventory.yaml"), []byte(text), inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	must(t, err)
	var servers []*sshtest.Server
	for i, h := range hosts {
		s := sshtest.Listen(t, sshtest.Config{Exec: h.exec})
		servers = append(servers, s)
		at := s.Host()
		own := &inv.Hosts[i]
		own.PrivateAddress = netip.MustParseAddr(own.Address)
		own.Address, own.SSH = at.Address, at.SSH
		if h.name != "" {
			own.Name = h.name
		}
	}
	o := Options{Options: session.Options{Inventory: inv, Run: session.NewRunID(time.Now())}}
	for _, r := range reason.Table() { // what preflight would say to these hosts is not the matter here
		o.Ignore = append(o.Ignore, string(r.ID))
	}
	return o, servers
}

// shown runs a story and returns what the terminal gets, and the error.
func shown(t *testing.T, o Options, story func(Options) error) (string, error) {
	t.Helper()
	return reporttest.Shown(t, func(events event.Sink) error {
		o.Events = events
		return story(o)
	})
}

func up(o Options) error {
	return Up(context.Background(), o, func(g *graph.Graph) error { return report.PrintPlan(io.Discard, g, report.PlanOptions{Verbose: true}) })
}

func onlyPlan(o Options) error { _, err := Plan(context.Background(), o); return err }

// wantReasons fails the test unless each part of the error has a reason.
func wantReasons(t *testing.T, err error) {
	t.Helper()
	if err == nil || len(reason.All(err)) == 0 || reason.ExitStatus(err) <= reason.ExitUsage {
		t.Errorf("no reason in %v", err)
	}
}

// A host that lies about itself in whatever way ends the story with a reason, and neither memory nor the terminal suffers.
func TestHostsThatLieInFacts(t *testing.T) {
	was := session.FactsBounds
	defer func() { session.FactsBounds = was }()
	says := func(text string, status int) func(*sshtest.Exec) int {
		return func(e *sshtest.Exec) int { fmt.Fprint(e.Stdout, text); return status }
	}
	whole := sitetest.Bare("cp")
	r := rand.New(rand.NewPCG(4, 10))
	cut := func() string { return whole[:1+r.IntN(len(whole)-2)] }
	for name, c := range map[string]struct {
		facts func(*sshtest.Exec) int
		want  reason.ID
		time  time.Duration
	}{
		"a gigabyte of lines":  {func(e *sshtest.Exec) int { sitetest.Pour(e.Stdout, "hostname="+sitetest.Evil+"\n", 1<<30); return 0 }, reason.HostOutputTooLarge, 0},
		"a gigabyte of a line": {func(e *sshtest.Exec) int { sitetest.Pour(e.Stdout, "x", 1<<30); return 0 }, reason.HostOutputTooLarge, 0},
		"errors without end":   {func(e *sshtest.Exec) int { sitetest.Pour(e.Stderr, sitetest.Evil+"\n", 1<<30); return 0 }, reason.HostUnending, time.Second},
		"nothing, for ever":    {func(e *sshtest.Exec) int { <-e.Gone; return 0 }, reason.HostUnending, time.Second},
		"nothing":              {says("", 0), reason.FactsFailed, 0},
		"escapes":              {says(sitetest.Evil+"\n"+whole[:40]+"cpus="+sitetest.Evil+"\nend=1\n", 0), reason.FactsFailed, 0},
		"escapes and failure": {func(e *sshtest.Exec) int {
			fmt.Fprint(e.Stdout, sitetest.Evil)
			fmt.Fprint(e.Stderr, "no:\n"+sitetest.Evil+sitetest.Evil+"\n")
			return 3
		}, reason.FactsFailed, 0},
		"half of it":      {says(cut(), 0), reason.FactsFailed, 0},
		"less of it":      {says(cut(), 0), reason.FactsFailed, 0},
		"half, then gone": {says(cut(), sshtest.Vanish), "", 0},
		"gone":            {says("", sshtest.Vanish), "", 0},
		"two answers":     {says(whole+whole+"more", 0), reason.FactsFailed, 0},
		"deep files":      {says(sitetest.Bare("cp", "containerd-toml="+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a.", 1<<16)+"b=1"))), 0), reason.FactsFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			session.FactsBounds = was
			if c.time > 0 {
				session.FactsBounds.Time = c.time
			}
			o, _ := fakes(t, &fakeHost{name: "cp", facts: c.facts})
			percent := debug.SetGCPercent(100) // whatever GOGC says: what nobody needs any more is in the heap, too
			defer debug.SetGCPercent(percent)
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			text, err := shown(t, o, onlyPlan)
			runtime.ReadMemStats(&after)
			wantReasons(t, err)
			if c.want != "" && !errors.Is(err, &reason.Error{ID: c.want}) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if len(text) > 64<<10 {
				t.Errorf("%d bytes reach the terminal", len(text))
			}
			// The heap that was ever asked of the system, which the server in this process asks for too.
			if after.HeapSys > before.HeapSys+100<<20 {
				t.Errorf("the heap grew from %d to %d bytes", before.HeapSys, after.HeapSys)
			}
		})
	}
}

func TestHostsThatLieInBatches(t *testing.T) {
	for name, c := range map[string]struct {
		batch func(e *sshtest.Exec, steps []string) int
		want  reason.ID
	}{
		"a gigabyte of an output": {func(e *sshtest.Exec, steps []string) int {
			fmt.Fprintf(e.Stdout, "B\t%s\t0\nO\t%[1]s\tx\t", steps[0])
			sitetest.Pour(e.Stdout, "QUJD", 1<<30)
			return 0
		}, reason.HostOutputTooLarge},
		"a line without end": {func(e *sshtest.Exec, steps []string) int {
			fmt.Fprintf(e.Stdout, "B\t%s\t0\nL\t%[1]s\t", steps[0])
			sitetest.Pour(e.Stdout, sitetest.Evil, 1<<28)
			fmt.Fprintf(e.Stdout, "\nD\t%s\t1\t5\tSTEP_FAILED\t%s\nE\t1\n", steps[0], sitetest.Evil)
			return 0
		}, reason.StepFailed},
		"waits without an end": {func(e *sshtest.Exec, steps []string) int {
			sitetest.Pour(e.Stdout, fmt.Sprintf("W\t%s\t%[2]s1\nW\t%[1]s\t%[2]s2\n", steps[0], strings.Repeat("x", 60<<10)), 1<<28)
			return 0
		}, reason.HostOutputTooLarge},
		"escapes": {func(e *sshtest.Exec, steps []string) int {
			fmt.Fprintf(e.Stdout, "%s\nB\t%s\t0\nL\t%[2]s\t%[1]s\nW\t%[2]s\t%[1]s\nL\t%[1]s\t%[1]s\nD\t%[2]s\t1\t5\t%[1]s\t%[1]s\nE\t1\n", sitetest.Evil, steps[0])
			return 0
		}, reason.StepFailed},
		"an error of escapes": {func(e *sshtest.Exec, _ []string) int {
			fmt.Fprint(e.Stderr, sitetest.Evil+"\n"+sitetest.Evil)
			return 9
		}, reason.StepFailed},
		"nothing": {func(*sshtest.Exec, []string) int { return 0 }, reason.StepFailed},
		"noise": {func(e *sshtest.Exec, _ []string) int {
			r := rand.New(rand.NewPCG(1, 2))
			for range 1 << 12 {
				fmt.Fprintf(e.Stdout, "%c\t%c%c\t\n", "BLWODEXN"[r.IntN(7)], r.IntN(256), r.IntN(256))
			}
			return 1
		}, reason.StepFailed},
		"its end only": {func(e *sshtest.Exec, _ []string) int { fmt.Fprint(e.Stdout, "E\t0\n"); return 0 }, reason.StepFailed},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := fakes(t, &fakeHost{name: "cp", batch: c.batch})
			text, err := shown(t, o, up)
			wantReasons(t, err)
			if !errors.Is(err, &reason.Error{ID: c.want}) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if len(text) > event.MaxHostBytes+1<<20 || c.want != reason.HostOutputTooLarge && len(text) > 1<<20 {
				t.Errorf("%d bytes reach the terminal", len(text))
			}
		})
	}
}

// The end of up writes nothing of such a file either.
func TestUpWithAnEvilKubeconfig(t *testing.T) {
	for name, conf := range clustertest.Evil(clustertest.AdminConf(t, clustertest.NewAuthority(t).Admin(t, "https://10.0.0.10:6443"))) {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "admin.conf")
			put(t, file, conf)
			o, _ := fakes(t, &fakeHost{name: "cp", sftp: func(e *sshtest.Exec) int { return clustertest.ServeFile(e, file) }})
			_, err := shown(t, o, up)
			want := reason.KubeconfigUntrusted
			if len(conf) > kubeconfig.MaxFromHost {
				want = reason.HostOutputTooLarge
			}
			if !errors.Is(err, &reason.Error{ID: want}) {
				t.Errorf("%v, want the reason %s", err, want)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(o.Inventory.Path), "*")); len(left) > 0 {
				t.Errorf("files were written: %q", left)
			}
		})
	}
}

// A control plane that never ends its list of pods is not listened to for ever.
func TestListOfPodsWithoutEnd(t *testing.T) {
	o, _ := fakes(t, &fakeHost{name: "cp", pods: func(e *sshtest.Exec) int { sitetest.Pour(e.Stdout, "cp\tdefault/pod\t\n", 1<<30); return 0 }})
	_, err := shown(t, o, func(o Options) error {
		open, err := session.Open(context.Background(), o.Options, o.Inventory.Hosts)
		if err != nil {
			return err
		}
		s := &story{Session: open, want: o}
		defer s.Close()
		id := o.Inventory.Hosts[0].ID()
		s.Facts[id].ControlPlane, s.Facts[id].Cluster = &facts.ControlPlane{}, &facts.Cluster{} // its API server answers
		drain := &graph.Step{Ref: graph.Ref{Host: id, ID: "node/drain/cp"}, Drains: "cp"}
		return s.agreed(context.Background(), &graph.Graph{Steps: []*graph.Step{drain}})
	})
	if !errors.Is(err, &reason.Error{ID: reason.HostOutputTooLarge}) {
		t.Errorf("%v, want the reason %s", err, reason.HostOutputTooLarge)
	}
}

// A worker that calls itself the control plane, another worker, or an option, has no step planned for it anywhere.
func TestAWorkerThatCallsItselfAnother(t *testing.T) {
	for _, name := range []string{"cp", "w1", "--all", "$(touch /tmp/pwned)", sitetest.Evil} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			liar := &fakeHost{facts: func(e *sshtest.Exec) int {
				fmt.Fprint(e.Stdout, sitetest.Bare(name, "control-plane=1", "api=1", "cluster=node\tcp\tu\tTrue", "kubelet-server=https://10.0.0.1:6443"))
				return 0
			}}
			o, servers := fakes(t, &fakeHost{name: "cp"}, &fakeHost{name: "w1"}, liar)
			o.Inventory.Hosts[2].Address = "localhost" // or it would be called as the others
			for _, story := range []func(Options) error{up, onlyPlan, func(o Options) error {
				return Reset(context.Background(), o, []string{"localhost"}, func(*graph.Graph) error { return nil })
			}} {
				_, err := shown(t, o, story)
				wantReasons(t, err)
			}
			for i, s := range servers {
				if slices.ContainsFunc(s.Lines(), func(line string) bool { return !strings.Contains(line, "bash -s") }) {
					t.Errorf("host %d was told %q", i, s.Lines())
				}
			}
		})
	}
}

// Whatever a worker answers, the others are told what they would be told anyway.
func TestAWorkerThatLiesReachesNobodyElse(t *testing.T) {
	told := func(worker *fakeHost) []string {
		var bundles []string
		cp := &fakeHost{name: "cp"}
		cp.batch = func(e *sshtest.Exec, steps []string) int {
			bundles = append(bundles, strings.Join(steps, " "))
			for _, step := range steps {
				fmt.Fprintf(e.Stdout, "B\t%s\t0\n", step)
				if step == "cluster/token" {
					fmt.Fprintf(e.Stdout, "O\t%s\ttoken\tYWJjZGVmLjAxMjM0NTY3ODlhYmNkZWY=\nO\t%[1]s\tca_hash\tc2hhMjU2OjAw\n", step)
				}
				fmt.Fprintf(e.Stdout, "D\t%s\t0\t1\t\t\n", step)
			}
			fmt.Fprint(e.Stdout, "E\t0\n")
			return 0
		}
		o, _ := fakes(t, cp, worker)
		_, _ = shown(t, o, up)
		return bundles
	}
	all := strings.Join(told(&fakeHost{name: "w1"}), " ")
	if !strings.Contains(all, "cluster/nodes") {
		t.Fatalf("an honest worker: %q", all)
	}
	lies := strings.Join(told(&fakeHost{name: "w1", batch: func(e *sshtest.Exec, steps []string) int {
		for _, step := range append([]string{"cluster/init", "cluster/token", "cluster/nodes"}, steps...) {
			fmt.Fprintf(e.Stdout, "B\t%s\t0\nO\t%[1]s\ttoken\tZXZpbA==\nO\t%[1]s\tnodes\tZXZpbA==\nO\t%[1]s\t../../../etc/passwd\tZXZpbA==\nD\t%[1]s\t0\t1\t\t\n", step)
		}
		fmt.Fprint(e.Stdout, "E\t0\n")
		return 0
	}}), " ")
	if lies != all {
		t.Errorf("the control plane is told %q, not %q", lies, all)
	}
}
