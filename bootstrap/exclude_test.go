package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
)

// newSite is the hosts of a site, and the options of a story about them.
func newSite(t *testing.T, hosts ...string) (*sitetest.Site, Options) {
	t.Helper()
	s, o := sitetest.New(t, "facts/testdata/worker.txt", hosts...)
	out := Options{Options: o, Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	for _, r := range reason.Table() {
		out.Ignore = append(out.Ignore, string(r.ID)) // these machines are not what preflight is about
	}
	return s, out
}

// A worker that never comes back: the others are made ready, the kubeconfig is here, the exit status is that of the loss,
// and the last words are what is left and how to go on.
func TestAWorkerNeverComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		step string
		at   func(s *sitetest.Site) func(e *sshtest.Exec) int
		id   reason.ID
		left []string // rows of the table
	}{
		"lost": {"w1 kube/packages", func(s *sitetest.Site) func(*sshtest.Exec) int {
			return func(e *sshtest.Exec) int {
				go s.Servers["w1"].Stop()
				<-e.Gone
				return sshtest.Vanish
			}
		}, reason.SSHLost, []string{"w1 kube/packages kube/packages, cluster/join SSH_LOST"}},
		"failed": {"w1 kube/packages", func(*sitetest.Site) func(*sshtest.Exec) int {
			return func(e *sshtest.Exec) int {
				fmt.Fprint(e.Stdout, "D\tkube/packages\t1\t1\tPACKAGE_MISSING\tno such version\nE\t1\n")
				return 0
			}
		}, reason.PackageMissing, []string{"w1 kube/packages kube/packages, cluster/join PACKAGE_MISSING"}},
		"lost while it joins": {"w1 cluster/join", func(s *sitetest.Site) func(*sshtest.Exec) int {
			return func(e *sshtest.Exec) int {
				go s.Servers["w1"].Stop()
				<-e.Gone
				return sshtest.Vanish
			}
		}, reason.SSHLost, []string{"w1 cluster/join cluster/join SSH_LOST"}},
		"lost when it has joined": {"cp1 cluster/ready", func(s *sitetest.Site) func(*sshtest.Exec) int {
			return func(e *sshtest.Exec) int {
				s.Mu.Lock()
				s.At = nil
				s.Mu.Unlock()
				s.Servers["w1"].Stop()
				fmt.Fprint(e.Stdout, "D\tcluster/ready\t1\t1\tNODE_NOT_READY\tnot ready: node w1\nE\t1\n")
				return 0
			}
		}, reason.SSHLost, []string{"w1 cluster/join - SSH_LOST"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newSite(t, "cp1", "w1", "w2")
			s.At[c.step] = c.at(s)
			err := Up(t.Context(), o, func(*graph.Graph) error { return nil })
			wantWithoutW1(t, s, o, err, c.id, c.left)
		})
	}
}

// The same holds outside of steps: what is left of a worker's plan, where one was shown, is told with the rest.
func TestAWorkerIsLostOutsideOfSteps(t *testing.T) {
	vanish := func(s *sitetest.Site) func(*sshtest.Exec) int {
		return func(e *sshtest.Exec) int {
			go s.Servers["w1"].Stop()
			<-e.Gone
			return sshtest.Vanish
		}
	}
	for name, c := range map[string]struct {
		set  func(s *sitetest.Site)
		show func(s *sitetest.Site)
		left []string
	}{
		"while the plan is read": {
			show: func(s *sitetest.Site) { s.Servers["w1"].Stop() },
			left: []string{"w1 - os/hosts, os/modules, os/sysctl and 4 more SSH_LOST"},
		},
		"while a former run is followed": {
			set: func(s *sitetest.Site) {
				s.More = map[string]string{"w1": "run=20261120-130501-a1b2c3-2\nrun-by=ada@desk\nrun-step=kube/packages\n"}
				s.At["w1 follow"] = vanish(s)
			},
			left: []string{"w1 - - SSH_LOST"},
		},
		"when a former run has ended": {
			set: func(s *sitetest.Site) {
				s.More = map[string]string{"w1": "run=20261120-130501-a1b2c3-2\nrun-by=ada@desk\nrun-step=kube/packages\n"}
				s.At["w1 follow"] = func(*sshtest.Exec) int { return 1 }
				looks := 0
				s.Looked = func(host string) bool {
					s.Mu.Lock()
					defer s.Mu.Unlock()
					if host != "w1" {
						return false
					}
					if looks++; looks == 2 {
						go s.Servers["w1"].Stop()
					}
					return looks > 1
				}
			},
			left: []string{"w1 - - SSH_LOST"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newSite(t, "cp1", "w1", "w2")
			if c.set != nil {
				c.set(s)
			}
			err := Up(t.Context(), o, func(*graph.Graph) error {
				if show := c.show; show != nil {
					c.show = nil
					show(s)
				}
				return nil
			})
			wantWithoutW1(t, s, o, err, reason.SSHLost, c.left)
		})
	}
}

// What comes after the steps goes on, too: the cards of the others are proven.
func TestAWorkerIsLostBeforeTheProof(t *testing.T) {
	site, o := newSite(t, "cp1", "w1")
	open, err := session.Open(t.Context(), o.Options, o.Inventory.Hosts)
	must(t, err)
	s := &story{Session: open, want: o}
	defer s.Close()
	s.TolerateWorkers = true
	s.Facts["w1"].NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0", Driver: "nvidia"}}
	site.Servers["w1"].Stop()
	err = s.finish(t.Context(), &graph.Graph{Steps: []*graph.Step{
		{Ref: graph.Ref{Host: "w1", ID: "gpu/ready"}}, {Ref: graph.Ref{Host: "w1", ID: "cuda/toolkit"}, Stage: graph.AfterProof},
	}})
	if all := reason.All(s.Excluded); err != nil || len(all) != 1 || all[0].ID != reason.SSHLost || !strings.Contains(site.Told(), "there is nothing to prove") {
		t.Errorf("%v; left %v; told %s", err, s.Excluded, site.Told())
	}
}

// Without the control plane nothing goes on there, either; nor does a story that has no rest without a worker.
func TestWhoIsNotLeftOut(t *testing.T) {
	for name, story := range map[string]func(s *sitetest.Site, o Options) error{
		"the control plane": func(s *sitetest.Site, o Options) error {
			return Up(t.Context(), o, func(*graph.Graph) error { s.Servers["cp1"].Stop(); return nil })
		},
		"reset": func(s *sitetest.Site, o Options) error {
			return Reset(t.Context(), o, nil, func(*graph.Graph) error { s.Servers["w1"].Stop(); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newSite(t, "cp1", "w1")
			if err := story(s, o); !errors.Is(err, &reason.Error{ID: reason.SSHLost}) {
				t.Errorf("%v", err)
			}
			if len(s.Did) > 0 || strings.Contains(s.Told(), "is excluded") {
				t.Errorf("did %q; told %s", s.Did, s.Told())
			}
		})
	}
}

// wantWithoutW1 holds that a run lost w1 for that reason, did all for the others, and told what is left.
func wantWithoutW1(t *testing.T, s *sitetest.Site, o Options, err error, id reason.ID, left []string) {
	t.Helper()
	all := reason.All(err)
	if len(all) != 1 || all[0].ID != id || all[0].Host != "w1" || reason.ExitStatus(err) != reason.Lookup(id).Exit {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"w2 cluster/join", "cp1 cluster/untoken", "cp1 cluster/ready"} {
		if n := len(slices.DeleteFunc(slices.Clone(s.Did), func(did string) bool { return did != want })); n != 1 {
			t.Errorf("%s was done %d times: %q", want, n, s.Did)
		}
	}
	if _, err := os.Stat(o.Kubeconfig); err != nil {
		t.Error(err)
	}
	var out bytes.Buffer
	sink := report.New(report.Plain, &out, report.Quiet)
	for _, e := range s.Events() {
		sink.Emit(e)
	}
	sink.Emit(event.Event{Kind: event.Result, Reason: string(id), Text: "failed; this carries on: kgpu up"})
	_, table, _ := strings.Cut(out.String(), "what is left:\n")
	var rows []string
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := slices.Concat([]string{"HOST REACHED LEFT TO DO REASON"}, left, []string{"00:00:00 failed; this carries on: kgpu up"})
	if !slices.Equal(rows, want) {
		t.Errorf("the last words are %q", rows)
	}
}

// Nodes that are not ready although every host can be reached: nobody is left behind for that.
func TestNobodyIsBehind(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.At["cp1 cluster/ready"] = func(e *sshtest.Exec) int {
		fmt.Fprint(e.Stdout, "D\tcluster/ready\t1\t1\tNODE_NOT_READY\tnot ready: node w1\nE\t1\n")
		return 0
	}
	err := Up(t.Context(), o, func(*graph.Graph) error { return nil })
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.NodeNotReady || all[0].Host != "cp1" {
		t.Errorf("%v", err)
	}
	for _, e := range s.Events() {
		if strings.Contains(e.Text, "is excluded") {
			t.Errorf("told %q", e.Text)
		}
	}
}

// Without the control plane nothing goes on.
func TestTheControlPlaneFails(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.At["cp1 cluster/init"] = func(e *sshtest.Exec) int {
		fmt.Fprint(e.Stdout, "D\tcluster/init\t1\t1\tSTEP_FAILED\tno\nE\t1\n")
		return 0
	}
	err := Up(t.Context(), o, func(*graph.Graph) error { return nil })
	if all := reason.All(err); len(all) != 1 || all[0].Step != "cluster/init" || slices.Contains(s.Did, "w1 cluster/join") {
		t.Errorf("%v; did %q", err, s.Did)
	}
}
