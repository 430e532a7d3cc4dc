package report

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
)

var fleetBegins = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// fleet is the events of a run that makes a cluster of so many hosts, of which one fails.
func fleet(hosts int) []event.Event {
	f := &fleetRun{failing: event.Ref{Host: "w2", Step: "driver/install"}, done: map[event.Ref]bool{}, lost: map[event.Ref]bool{}}
	if hosts < 3 {
		f.failing = event.Ref{Host: "cp1", Step: "network/apply"}
	}
	for i := range hosts {
		h := &fleetHost{id: fmt.Sprintf("w%d", i), steps: []string{"os/packages", "runtime/containerd", "kube/packages", "driver/install", "cluster/join", "gpu/toolkit"}}
		if i == 0 {
			h = &fleetHost{id: "cp1", steps: []string{"os/packages", "runtime/containerd", "kube/packages", "cluster/init", "network/apply", "cluster/token", "cluster/ready"}}
		}
		f.hosts = append(f.hosts, h)
	}
	f.emit(0, event.Event{Kind: event.Begin, Schema: event.Schema, Text: "up inventory.yaml"})
	for i, h := range f.hosts {
		f.emit(i*3/hosts, event.Event{Host: h.id, Kind: event.Connect, Millis: 80})
	}
	f.plan(4)
	f.emit(4, event.Event{Kind: event.Warning, Text: "weave has had no release since 2024-12"})
	second := 5
	for busy := true; busy; second++ {
		busy = false
		for _, h := range f.hosts {
			busy = f.at(second, h) || busy
		}
	}
	f.emit(second, event.Event{Kind: event.Result, Reason: "STEP_FAILED", Text: "failed; this carries on: kgpu up --inventory inventory.yaml"})
	return f.events
}

type fleetHost struct {
	id     string
	steps  []string
	next   int
	until  int // second in which the step ends; zero: none runs
	waited bool
}

type fleetRun struct {
	hosts   []*fleetHost
	failing event.Ref
	done    map[event.Ref]bool
	lost    map[event.Ref]bool // failed, or left out
	events  []event.Event
}

func (f *fleetRun) emit(second int, e event.Event) {
	e.Run, e.Time = "r1", fleetBegins.Add(time.Duration(second)*time.Second)
	f.events = append(f.events, e)
}

func (f *fleetRun) plan(second int) {
	var list []event.Planned
	for _, h := range f.hosts {
		for i, id := range h.steps {
			list = append(list, event.Planned{Host: h.id, Step: id, Title: fleetTitles[id], Reason: "it is missing", Needs: f.needs(h, i)})
		}
	}
	// As in a graph, a step is behind those it needs: the control plane waits for the nodes at last.
	last := slices.IndexFunc(list, func(p event.Planned) bool { return p.Step == "cluster/ready" })
	ready := list[last]
	f.emit(second, event.Event{Kind: event.Plan, Plan: append(slices.Delete(list, last, last+1), ready)})
}

func (f *fleetRun) needs(h *fleetHost, i int) []event.Ref {
	var needs []event.Ref
	if i > 0 {
		needs = append(needs, event.Ref{Host: h.id, Step: h.steps[i-1]})
	}
	switch h.steps[i] {
	case "cluster/join":
		needs = append(needs, event.Ref{Host: "cp1", Step: "cluster/token"})
	case "cluster/ready":
		for _, w := range f.hosts[1:] {
			needs = append(needs, event.Ref{Host: w.id, Step: "cluster/join"})
		}
	}
	return needs
}

// at lets a second pass on a host, and reports whether anything is left there.
func (f *fleetRun) at(second int, h *fleetHost) bool {
	if h.until > 0 {
		f.works(second, h)
		if h.until > 0 {
			return true
		}
	}
	if h.next == len(h.steps) {
		return false
	}
	at := event.Ref{Host: h.id, Step: h.steps[h.next]}
	tell := func(e event.Event) {
		e.Host, e.Step = at.Host, at.Step
		f.emit(second, e)
	}
	for _, need := range f.needs(h, h.next) {
		if f.lost[need] {
			f.lost[at] = true
			tell(event.Event{Kind: event.StepSkip, Reason: "STEP_FAILED", Text: "not begun, because " + f.failing.Host + " " + f.failing.Step + " failed"})
			h.next++
			return true
		}
	}
	for _, need := range f.needs(h, h.next) {
		if !f.done[need] {
			if !h.waited {
				tell(event.Event{Kind: event.Wait, Text: "for " + need.Host + ": " + need.Step})
			}
			h.waited = true
			return true
		}
	}
	h.waited = false
	sum := fnv.New32a()
	fmt.Fprint(sum, at)
	h.until = second + fleetSeconds[at.Step] + int(sum.Sum32()%uint32(fleetSeconds[at.Step]))
	tell(event.Event{Kind: event.StepStart, Text: fleetTitles[at.Step]})
	return true
}

// works lets a second pass for the step that runs.
func (f *fleetRun) works(second int, h *fleetHost) {
	at := event.Ref{Host: h.id, Step: h.steps[h.next]}
	tell := func(e event.Event) {
		e.Host, e.Step = at.Host, at.Step
		f.emit(second, e)
	}
	if at.Step == "driver/install" {
		switch left := h.until - second; {
		case left == 20:
			tell(event.Event{Kind: event.Log, Text: "0 upgraded, 4 newly installed, 0 to remove and 11 not upgraded."})
			tell(event.Event{Kind: event.Log, Text: "Need to get 312 MB of archives."})
		case left < 20 && left > 4 && left%4 == 0:
			tell(event.Event{Kind: event.Log, Text: fmt.Sprintf("Get:%d http://repo noble/main amd64 part-%d amd64 1.0 [78.0 MB]", 5-left/4, left)})
		}
	}
	if at.Step == "runtime/containerd" && h.id == "cp1" && h.until-second == 6 {
		tell(event.Event{Kind: event.Wait, Text: "the package manager, held by unattended-upgr (pid 812)"})
	}
	if second < h.until {
		return
	}
	h.until = 0
	h.next++
	if at == f.failing {
		status := 100
		f.lost[at] = true
		tell(event.Event{Kind: event.Log, Text: "Reading package lists..."})
		tell(event.Event{Kind: event.Log, Text: "E: Unable to correct problems, you have held broken packages."})
		tell(event.Event{Kind: event.Error, Reason: "STEP_FAILED", Millis: 33000, Text: "apt-get failed", Exit: &status})
		return
	}
	f.done[at] = true
	tell(event.Event{Kind: event.StepDone, Millis: 1000 * int64(fleetSeconds[at.Step])})
}

var fleetTitles = map[string]string{
	"os/packages": "install the packages that Kubernetes needs", "runtime/containerd": "install containerd", "kube/packages": "install kubeadm, kubelet and kubectl",
	"cluster/init": "start the control plane (kubeadm init)", "network/apply": "deploy the pod network", "cluster/token": "make a token for those who join",
	"cluster/ready": "wait until all nodes are ready", "driver/install": "install the driver of the cards", "cluster/join": "join the cluster", "gpu/toolkit": "install the container toolkit",
}

var fleetSeconds = map[string]int{
	"os/packages": 6, "runtime/containerd": 9, "kube/packages": 8, "cluster/init": 25, "network/apply": 4, "cluster/token": 2,
	"cluster/ready": 5, "driver/install": 24, "cluster/join": 7, "gpu/toolkit": 6,
}
