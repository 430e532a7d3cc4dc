package report

import (
	"fmt"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
)

// act is a step of a scene, or a moment that is looked at.
type act struct {
	second int
	event.Event
	graph *graph.Graph // that is shown; nil: none
	look  string
}

// joining is what two new hosts have to do, and the control plane for them.
func joining() *graph.Graph {
	g := &graph.Graph{}
	add := func(host, id, title, reason string, needs ...graph.Ref) graph.Ref {
		ref := graph.Ref{Host: host, ID: id}
		g.Steps = append(g.Steps, &graph.Step{Ref: ref, Title: title, Reason: reason, Needs: needs})
		return ref
	}
	token := add("control-1", "cluster/token", "make a short-lived bootstrap token", "2 to join")
	var joined []graph.Ref
	for _, host := range []string{"10.0.0.21", "10.0.0.22"} {
		packages := add(host, "os/packages", "install basic packages", "missing: ca-certificates, conntrack, curl, ethtool, gpg, iptables, socat")
		kube := add(host, "kube/packages", "install kubelet, kubeadm and kubectl 1.36.3", "not installed: kubelet, kubeadm, kubectl", packages)
		driver := add(host, "driver/install", "install the driver 580", "driver 580 (open) from ubuntu for A100 SXM4 40GB (Ampere); modules come built and signed", kube)
		add(host, "repo/nvidia-container-toolkit", "add the package repository of the NVIDIA container toolkit", "/etc/apt/sources.list.d/kgpu-nvidia-container-toolkit.list is missing", driver)
		joined = append(joined, add(host, "cluster/join", "join the cluster (kubeadm join)", "the host is in no cluster", kube, token))
	}
	add("control-1", "cluster/untoken", "delete the bootstrap token", "all workers have joined", joined...)
	add("control-1", "gpu/ready", "wait until all cards can be had", "10.0.0.21 offers 0 of 8 cards, 10.0.0.22 offers 0 of 8 cards", joined...)
	for _, id := range []string{"os/packages", "kube/packages", "cluster/init"} {
		g.Skipped = append(g.Skipped, graph.Skipped{Ref: graph.Ref{Host: "control-1", ID: id}, Reason: "as it should be"})
	}
	return g
}

// announced is the event that tells a graph.
func announced(g *graph.Graph) event.Event {
	e := event.Event{Kind: event.Plan}
	for _, s := range g.Steps {
		p := event.Planned{Host: s.Host, Step: s.ID, Title: s.Title, Reason: s.Reason}
		for _, n := range s.Needs {
			p.Needs = append(p.Needs, event.Ref{Host: n.Host, Step: n.ID})
		}
		e.Plan = append(e.Plan, p)
	}
	return e
}

// of is an event of a step, or of a host as a whole.
func of(host, step string, kind event.Kind, text string) event.Event {
	return event.Event{Host: host, Step: step, Kind: kind, Text: text}
}

// taken is the events of a step that goes well.
func taken(host, step string, from, to int) []act {
	return []act{{second: from, Event: of(host, step, event.StepStart, "")}, {second: to, Event: event.Event{Host: host, Step: step, Kind: event.StepDone, Millis: int64(to-from) * 1000}}}
}

func begins(command string, hosts ...string) []act {
	out := []act{{Event: event.Event{Kind: event.Begin, Text: command}}}
	for _, h := range hosts {
		out = append(out, act{second: 1, Event: of(h, "", event.Connect, "root@"+h+":22")})
	}
	return out
}

func ends(second int, reason, text string) []act {
	return []act{{second: second, Event: event.Event{Kind: event.Result, Reason: reason, Text: text}}}
}

// scenes are runs that are not an up, as a person sees them.
func scenes() map[string][][]act {
	g := joining()
	reset := &graph.Graph{}
	var workers []graph.Ref
	for _, host := range []string{"gpu-1", "gpu-2", "control-1"} {
		ref := graph.Ref{Host: host, ID: "host/reset"}
		reset.Steps = append(reset.Steps, &graph.Step{Ref: ref, Title: "kubeadm reset, then undo what kgpu changed", Reason: "17 recorded changes"})
		workers = append(workers, ref)
	}
	reset.Steps[2].Needs = workers[:2]
	return map[string][][]act{
		"add-worker": {
			begins("add-worker 10.0.0.[21-22]", "10.0.0.22", "control-1", "10.0.0.21"),
			{{second: 2, graph: g}, {second: 2, Event: announced(g)}, {second: 2, Event: of("10.0.0.21", "os/packages", event.StepStart, "install basic packages")}, {second: 2, Event: of("10.0.0.22", "os/packages", event.StepStart, "install basic packages")}, {second: 4, look: "begun"}},
			taken("control-1", "cluster/token", 2, 5),
			{{second: 9, Event: of("10.0.0.22", "os/packages", event.Wait, "the package manager, held by unattended-upgr (pid 812)")}, {second: 10, Event: of("10.0.0.21", "os/packages", event.StepDone, "")}},
			taken("10.0.0.21", "kube/packages", 10, 25),
			{{second: 25, Event: of("10.0.0.21", "driver/install", event.StepStart, "install the driver 580")}, {second: 26, Event: of("10.0.0.21", "driver/install", event.Log, "Need to get 312 MB of archives.")}, {second: 30, Event: of("10.0.0.22", "", event.Wait, "connection lost 17s ago; giving up in 10m0s, trying again")}, {second: 40, look: "lost"}},
			{{second: 44, Event: event.Event{Host: "10.0.0.22", Kind: event.Wait, Text: "the connection is back", Millis: 31000}}, {second: 45, Event: of("10.0.0.22", "os/packages", event.StepDone, "")}},
			taken("10.0.0.22", "kube/packages", 45, 61), taken("10.0.0.22", "driver/install", 61, 100),
			{{second: 101, Event: of("10.0.0.21", "driver/install", event.StepDone, "")}},
			taken("10.0.0.21", "repo/nvidia-container-toolkit", 101, 103), taken("10.0.0.22", "repo/nvidia-container-toolkit", 100, 103),
			taken("10.0.0.21", "cluster/join", 103, 110), taken("10.0.0.22", "cluster/join", 103, 111), taken("control-1", "cluster/untoken", 111, 112),
			{{second: 112, Event: of("control-1", "gpu/ready", event.StepStart, "wait until all cards can be had")}, {second: 120, look: "last"}, {second: 130, Event: of("control-1", "gpu/ready", event.StepDone, "")}},
			{{second: 131, Event: of("", "", event.Proof, "16 of 16 cards run nvidia-smi, each in a pod of its own")}, {second: 131, Event: of("", "", event.Warning, "10.0.0.21, 10.0.0.22: kubeadm: Swap: swap is supported for cgroup v2 only. The kubelet must be properly configured to use swap. Please refer to https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory, or disable swap on the node")}},
			ends(131, "ok", "done: kubectl --kubeconfig lab.kubeconfig get nodes"), {{second: 131, look: "end"}},
		},
		"attach": {
			begins("attach inventory.yaml", "control-1", "gpu-1", "gpu-2"),
			{{second: 1, Event: of("", "", event.Wait, "for the end of a run: ada@adas-desk from 10.0.0.9 since 2026-03-14 15:02:10 UTC (7m16s ago), doing `kgpu up inventory.yaml`; now gpu-1: driver/install")}, {second: 3, look: "nothing"}},
			{{second: 4, Event: of("gpu-1", "os/packages", event.StepStart, "")}, {second: 4, Event: of("gpu-1", "os/packages", event.StepDone, "")}, {second: 4, Event: of("gpu-1", "driver/install", event.StepStart, "")},
				{second: 5, Event: of("gpu-1", "driver/install", event.Log, "Need to get 312 MB of archives.")}, {second: 5, Event: of("gpu-1", "driver/install", event.Log, "Get:1 http://repo noble/main amd64 part-16 amd64 1.0 [78.0 MB]")}},
			taken("control-1", "cluster/init", 4, 20),
			{{second: 6, Event: of("gpu-2", "driver/install", event.StepStart, "")}, {second: 25, look: "middle"}},
			{{second: 40, Event: event.Event{Host: "gpu-2", Step: "driver/install", Kind: event.Error, Reason: "STEP_FAILED", Text: "E: Unable to correct problems, you have held broken packages."}}},
			{{second: 60, Event: of("gpu-1", "driver/install", event.StepDone, "")}, {second: 61, look: "failed"}},
			ends(70, "STEP_FAILED", "the run has ended. Seen from here: 3 steps done on 2 hosts, 1 failed"), {{second: 70, look: "end"}},
		},
		"reset": {
			begins("reset", "gpu-2", "gpu-1", "control-1"),
			{{second: 2, graph: reset}, {second: 10, Event: announced(reset)}, {second: 10, Event: of("gpu-1", "host/reset", event.StepStart, "kubeadm reset, then undo what kgpu changed")}, {second: 10, Event: of("gpu-2", "host/reset", event.StepStart, "kubeadm reset, then undo what kgpu changed")}, {second: 20, look: "begun"}},
			{{second: 30, Event: of("gpu-1", "host/reset", event.StepDone, "")}, {second: 31, Event: event.Event{Host: "gpu-2", Step: "host/reset", Kind: event.Error, Reason: "STEP_FAILED", Text: "umount: /var/lib/kubelet/pods/8f0e: target is busy"}}},
			{{second: 31, Event: event.Event{Host: "control-1", Step: "host/reset", Kind: event.StepSkip, Reason: "STEP_FAILED", Text: "not begun, because gpu-2 host/reset failed"}}},
			ends(31, "STEP_FAILED", "failed; this carries on: kgpu reset --inventory inventory.yaml"), {{second: 31, look: "failed"}},
		},
	}
}

func TestScenes(t *testing.T) {
	for name, parts := range scenes() {
		for _, size := range [][2]int{{80, 24}, {120, 30}} {
			w := watch(t, size[0], size[1], Normal)
			for _, part := range parts {
				for _, a := range part {
					at := fleetBegins.Add(time.Duration(a.second) * time.Second)
					switch {
					case a.look != "":
						w.draw()
						if at.After(w.clock) {
							w.clock = at
						}
						w.draw()
						golden(t, fmt.Sprintf("view/%s-%dx%d-%s.txt", name, size[0], size[1], a.look), w.seen())
					case a.graph != nil:
						must(t, PrintPlan(w, plan.WithProof(a.graph), PlanOptions{Told: true}))
					default:
						a.Time = at
						w.tell(a.Event)
					}
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
