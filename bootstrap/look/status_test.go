package look

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/report/schema/schematest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/bootstrap/status"
	"kgpu.dev/kgpu/inventory"
)

// watched is a host that answers the scripts of Status.
type watched struct {
	name   string
	facts  func(e *sshtest.Exec) int // nil: an honest answer
	status func(e *sshtest.Exec) int // nil: no certificates, no control plane
}

func (w *watched) exec(e *sshtest.Exec) int {
	script, err := io.ReadAll(e.Stdin)
	if err != nil {
		return sshtest.Vanish
	}
	what, answer := "facts", w.facts
	if bytes.Contains(script, []byte("kgpu-status=1")) {
		what, answer = "status", w.status
	}
	switch {
	case answer != nil:
		return answer(e)
	case what == "facts":
		fmt.Fprint(e.Stdout, sitetest.Bare(w.name))
	default:
		fmt.Fprint(e.Stdout, "kgpu-status=1\nend=1\n")
	}
	return 0
}

// watch is the servers of a control plane and workers, and the options of a look at them.
func watch(t *testing.T, hosts ...*watched) (session.Options, []*sshtest.Server, *event.Recorder) {
	t.Helper()
	inv, err := inventory.Decode("inventory.yaml", []byte("kubernetes: {version: 1.36.3}\nruntime: containerd\nnetwork: flannel\n"+
		"hosts: [{address: 10.0.0.10, role: control-plane}]\n"), inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	must(t, err)
	inv.Hosts = nil
	var servers []*sshtest.Server
	for i, w := range hosts {
		server := sshtest.Listen(t, sshtest.Config{Exec: w.exec})
		h := server.Host()
		h.Name, h.Role, h.PrivateAddress = w.name, inventory.Worker, netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", 10+i))
		if i == 0 {
			h.Role = inventory.ControlPlane
		}
		inv.Hosts, servers = append(inv.Hosts, h), append(servers, server)
	}
	events := &event.Recorder{}
	return session.Options{Inventory: inv, Run: "r-1", Events: events}, servers, events
}

// controls answers as a control plane whose cluster has these nodes.
func controls(nodes ...string) func(e *sshtest.Exec) int {
	return func(e *sshtest.Exec) int {
		fmt.Fprint(e.Stdout, "kgpu-status=1\ncontrol-plane=1\napi-version=v1.36.3\napi=1\n")
		for i, n := range nodes {
			fmt.Fprintf(e.Stdout, "cluster=node\t%s\tu\tTrue\t\tv1.36.3\tcontainerd://1.7.28\t10.0.0.%d\t\t\t\t\t\t\tReady=True \t2026-11-21T11:40:00Z\tKubeletReady\tok\t\tk\tUbuntu\n", n, 10+i)
			fmt.Fprintf(e.Stdout, "cluster=pod\tkube-flannel\tkube-flannel-ds-%d\t%s\tRunning\tTrue\n", i, n)
		}
		fmt.Fprint(e.Stdout, "end=1\n")
		return 0
	}
}

// once looks at the hosts, and wants the report to be as its schema says.
func once(t *testing.T, o session.Options) *status.Report {
	t.Helper()
	var got *status.Report
	must(t, Status(t.Context(), o, 0, func(r *status.Report) error { got = r; return nil }))
	var out bytes.Buffer
	must(t, report.StatusJSON(&out, got))
	schematest.Printed(t, "status", out.String())
	return got
}

// reasons are the problems' hosts and reasons, where they have one.
func reasons(r *status.Report) []string {
	var out []string
	for _, p := range r.Problems {
		if p.Reason != "" {
			out = append(out, p.Host+" "+string(p.Reason))
		}
	}
	return out
}

// perHost counts the events of a kind.
func perHost(events *event.Recorder, kind event.Kind) map[string]int {
	count := map[string]int{}
	for _, e := range events.Events() {
		if e.Kind == kind {
			count[e.Host]++
		}
	}
	return count
}

// A look is one connection and two commands for each host, and tells of all of them.
func TestStatus(t *testing.T) {
	cp, w1 := &watched{name: "cp1", status: controls("cp1", "w1", "stranger")}, &watched{name: "w1"}
	o, _, events := watch(t, cp, w1)
	r := once(t, o)
	for _, h := range []string{"cp1", "w1"} {
		if c, n := perHost(events, event.Connect)[h], perHost(events, event.Command)[h]; c != 1 || n != 2 {
			t.Errorf("%s: %d connections and %d commands", h, c, n)
		}
	}
	if !r.Cluster.API.Answers || r.Cluster.API.Version != "v1.36.3" || len(r.Hosts) != 2 || r.Hosts[1].State != status.Ready || r.Hosts[1].Versions.Runtime != "containerd://1.7.28" ||
		len(r.Hosts[1].Network) != 1 || len(r.OtherNodes) != 1 || r.Well {
		t.Errorf("%+v", r)
	}
	if got := reasons(r); !slices.Contains(got, " HOST_NOT_IN_INVENTORY") {
		t.Errorf("%q", got)
	}
}

// A host that hangs is a row, with whatever becomes of the others in so little time.
func TestStatusOfHangingHost(t *testing.T) {
	was := statusBounds
	defer func() { statusBounds = was }()
	statusBounds.Time = time.Second
	o, _, _ := watch(t, &watched{name: "cp1"}, &watched{name: "hangs", facts: func(e *sshtest.Exec) int { <-e.Gone; return 0 }})
	r := once(t, o)
	if h := r.Hosts[1]; h.Host != "hangs" || h.Reached {
		t.Errorf("%+v", h)
	}
	if got := reasons(r); !slices.Contains(got, "hangs HOST_UNENDING") {
		t.Errorf("%q", got)
	}
}

// Hosts that are off, refuse, or lie are rows.
func TestStatusOfSickHosts(t *testing.T) {
	says := func(text string, code int) func(*sshtest.Exec) int {
		return func(e *sshtest.Exec) int { fmt.Fprint(e.Stdout, text); return code }
	}
	hosts := []*watched{
		{name: "cp1", status: controls("cp1", "off", "gone")}, {name: "off"},
		{name: "gone", facts: says("", sshtest.Vanish)},
		{name: "half", status: says("kgpu-status=1\ncertificate=/a", 0)}, {name: "fails", status: says(sitetest.Evil, 7)}, {name: "talks", status: func(e *sshtest.Exec) int { sitetest.Pour(e.Stdout, sitetest.Evil, 1<<28); return 0 }},
	}
	o, servers, _ := watch(t, hosts...)
	servers[1].Stop()
	r := once(t, o)
	if len(r.Hosts) != len(hosts) {
		t.Fatalf("%d rows", len(r.Hosts))
	}
	for i, reached := range []bool{true, false, false, true, true, true} {
		if h := r.Hosts[i]; h.Host != hosts[i].name || h.Reached != reached {
			t.Errorf("%s reached: %t", h.Host, h.Reached)
		}
	}
	got := reasons(r)
	for _, want := range []string{"off SSH_UNREACHABLE", "gone SSH_LOST", "half HOST_FACTS_FAILED", "fails HOST_FACTS_FAILED", "talks HOST_OUTPUT_TOO_LARGE"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	if r.Hosts[1].State != status.Ready {
		t.Errorf("the node of a host that is off is %s", r.Hosts[1].State)
	}
	var out bytes.Buffer
	must(t, report.PrintStatus(&out, r, report.StatusOptions{Wide: true}))
	if strings.ContainsAny(out.String(), "\x1b\x00\x07") {
		t.Errorf("%q", out.String())
	}
}

// Without the control plane the others tell what they know, and the advice is there.
func TestStatusWithoutControlPlane(t *testing.T) {
	o, servers, _ := watch(t, &watched{name: "cp1"}, &watched{name: "w1"})
	servers[0].Stop()
	r := once(t, o)
	w1 := r.Hosts[1]
	if r.Cluster.API.Error == "" || r.Hosts[0].Reached || !w1.Reached || w1.State != status.Unknown || w1.Versions.Kernel == "" || w1.Drift.Known {
		t.Errorf("%+v", r)
	}
	if p := r.Problems[0]; p.Host != "cp1" || p.Reason != reason.SSHUnreachable || p.Advice == "" {
		t.Errorf("%+v", p)
	}
}

// Watching uses the connections again, and dials again where one was lost. Its end is no error.
func TestStatusAgain(t *testing.T) {
	cp, w1 := &watched{name: "cp1", status: controls("cp1", "w1")}, &watched{name: "w1"}
	o, _, events := watch(t, cp, w1)
	const looks, lost = 4, 1
	var look atomic.Int32
	w1.facts = func(e *sshtest.Exec) int {
		if look.Load() == lost {
			return sshtest.Vanish
		}
		fmt.Fprint(e.Stdout, sitetest.Bare("w1"))
		return 0
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := Status(ctx, o, time.Millisecond, func(r *status.Report) error {
		if reached := r.Hosts[1].Reached; reached != (look.Load() != lost) {
			t.Errorf("look %d: reached %t", look.Load(), reached)
		}
		if look.Add(1) == looks {
			cancel()
		}
		return nil
	})
	if err != nil || look.Load() != looks {
		t.Errorf("%d looks: %v", look.Load(), err)
	}
	connections, commands := perHost(events, event.Connect), perHost(events, event.Command)
	if connections["cp1"] != 1 || connections["w1"] != 2 || commands["cp1"] != 2*looks || commands["w1"] != 2*looks-1 {
		t.Errorf("connections: %v, commands: %v", connections, commands)
	}
}

// Who stops it before there is anything to show hears that there is nothing; a terminal that is gone ends it.
func TestStatusThatIsStopped(t *testing.T) {
	o, _, _ := watch(t, &watched{name: "cp1"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	show := func(*status.Report) error { t.Error("shown"); return nil }
	if err := Status(ctx, o, time.Hour, show); !errors.Is(err, &reason.Error{ID: reason.Cancelled}) {
		t.Errorf("%v", err)
	}
	if err := Status(t.Context(), o, time.Hour, func(*status.Report) error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}
