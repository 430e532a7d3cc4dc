package timeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/event"
)

// work is a step of a run that is told here.
type work struct {
	host, id, title, why string
	took                 int // milliseconds
	needs                []event.Ref
	log                  []string
	wait                 string // in the step, for a third of its time
	fails                string // what it says when it does
	again                bool   // its first try fails
}

// teller tells a run: each host does its steps one after the other, when what they need is done.
type teller struct {
	begun  time.Time
	looks  map[string]int // milliseconds until a host has told what it is
	works  []work
	events []event.Event
}

func (t *teller) at(ms int, e event.Event) {
	e.Time, e.Run = t.begun.Add(time.Duration(ms)*time.Millisecond), "20260314-150926-5f3a9c"
	t.events = append(t.events, e)
}

// tell tells all of it, and how it ended.
func (t *teller) tell(command, reason, text string) []event.Event {
	t.at(0, event.Event{Kind: event.Begin, Schema: event.Schema, Text: command})
	first, zero := 0, 0
	for _, host := range slices.Sorted(maps.Keys(t.looks)) {
		ms := t.looks[host]
		t.at(ms/3, event.Event{Host: host, Kind: event.Connect, Millis: int64(ms / 3)})
		t.at(ms, event.Event{Host: host, Kind: event.Command, Text: "facts", Millis: int64(ms * 3 / 5), Exit: &zero})
		first = max(first, ms+40)
		for _, step := range []string{"os/time", "os/swap", "os/dpkg"} {
			t.at(first, event.Event{Host: host, Step: step, Kind: event.StepSkip, Reason: event.Satisfied, Text: "as it should be"})
		}
	}
	var planned []event.Planned
	for _, w := range t.works {
		planned = append(planned, event.Planned{Host: w.host, Step: w.id, Title: w.title, Reason: w.why, Needs: w.needs})
	}
	t.at(first+20, event.Event{Kind: event.Plan, Plan: planned})
	free, ends, failed := map[string]int{}, map[event.Ref]int{}, map[event.Ref]string{}
	last := first
	for _, w := range t.works { // in an order in which what is needed comes first
		ref := event.Ref{Host: w.host, Step: w.id}
		start := cmp.Or(free[w.host], first+60)
		idle := start
		var late event.Ref
		cause := ""
		for _, need := range w.needs {
			if f := failed[need]; f != "" {
				cause = f
			}
			if ends[need] > start {
				start, late = ends[need], need
			}
		}
		if cause != "" {
			failed[ref] = cause
			t.at(start, event.Event{Host: w.host, Step: w.id, Kind: event.StepSkip, Reason: "REPO_UNREACHABLE", Text: "not begun, because " + cause + " failed"})
			continue
		}
		if start > idle {
			t.at(idle, event.Event{Host: w.host, Step: w.id, Kind: event.Wait, Text: fmt.Sprintf("for %s: %s", late.Host, late.Step)})
		}
		t.at(start, event.Event{Host: w.host, Step: w.id, Kind: event.StepStart, Text: w.title})
		if w.again {
			t.at(start+w.took/3, event.Event{Host: w.host, Step: w.id, Kind: event.Wait, Reason: "REPO_UNREACHABLE", Text: "the mirror hung up; try 2 of 3 in 4s"})
			t.at(start+w.took/3+4000, event.Event{Host: w.host, Step: w.id, Kind: event.StepStart, Text: w.title})
			start += 4000
		}
		if w.wait != "" {
			t.at(start+300, event.Event{Host: w.host, Step: w.id, Kind: event.Wait, Text: w.wait})
		}
		for i, line := range w.log {
			t.at(start+w.took/3+(i+1)*w.took/(2*len(w.log)), event.Event{Host: w.host, Step: w.id, Kind: event.Log, Text: line})
		}
		end := start + w.took
		free[w.host], ends[ref], last = end, end, max(last, end)
		if w.fails != "" {
			exit := 100
			failed[ref] = w.host + " " + w.id
			t.at(end, event.Event{Host: w.host, Step: w.id, Kind: event.Error, Reason: "REPO_UNREACHABLE", Millis: int64(w.took), Text: w.fails, Exit: &exit})
			continue
		}
		t.at(end, event.Event{Host: w.host, Step: w.id, Kind: event.StepDone, Millis: int64(w.took), Text: w.title})
	}
	if reason == "ok" {
		t.at(last+200, event.Event{Kind: event.Proof, Text: "3 of 3 cards run nvidia-smi, each in a pod of its own"})
	}
	t.at(last+260, event.Event{Kind: event.Result, Reason: reason, Text: text})
	slices.SortStableFunc(t.events, func(a, b event.Event) int {
		return a.Time.Compare(b.Time)
	})
	return t.events
}

func ref(host, step string) event.Ref { return event.Ref{Host: host, Step: step} }

// apt is what a package manager prints.
func apt(packages ...string) []string {
	lines := []string{"Reading package lists...", "Building dependency tree...", "The following NEW packages will be installed:", "  " + strings.Join(packages, " ")}
	for i, p := range packages {
		lines = append(lines, fmt.Sprintf("Get:%d http://archive.ubuntu.com/ubuntu noble/main amd64 %s [182 kB]", i+1, p), "Selecting previously unselected package "+p+".", "Setting up "+p+" ...")
	}
	return lines
}

// common are the steps of every host.
func common(host string, pace int) []work {
	ms := func(base int) int { return base * pace / 100 }
	return []work{
		{host: host, id: "os/packages", title: "install basic packages", why: "missing: conntrack, ethtool, socat", took: ms(9400), log: apt("conntrack", "ethtool", "socat")},
		{host: host, id: "os/modules", title: "load kernel modules", why: "not loaded: overlay, br_netfilter, vxlan", took: ms(310)},
		{host: host, id: "os/sysctl", title: "set kernel settings", why: "not set: net.ipv4.ip_forward", took: ms(260)},
		{host: host, id: "repo/kubernetes", title: "add the package repository of Kubernetes 1.36", why: "/etc/apt/sources.list.d/kgpu-kubernetes.list is missing", took: ms(2700)},
		{host: host, id: "repo/docker", title: "add the package repository of Docker", why: "/etc/apt/sources.list.d/kgpu-docker.list is missing", took: ms(2300)},
		{host: host, id: "runtime/containerd", title: "install and set up containerd", why: "containerd is not installed", took: ms(13100), log: apt("containerd.io")},
		{host: host, id: "kube/packages", title: "install kubelet, kubeadm and kubectl 1.36.3", why: "not installed: kubelet, kubeadm, kubectl", took: ms(15800), log: apt("kubelet", "kubeadm", "kubectl")},
	}
}

// cards are the steps of a host with cards, before and after it joins.
func cards(host string, pace int) []work {
	return []work{
		{host: host, id: "driver/install", title: "install the driver 580 (open modules)", why: "2 cards, no driver", took: 620 * pace, log: apt("nvidia-driver-580-server-open", "nvidia-dkms-580-server-open")},
		{host: host, id: "driver/load", title: "load the driver", why: "the module nvidia is not loaded", took: 24 * pace},
		{host: host, id: "gpu/toolkit", title: "install the container toolkit", why: "nvidia-container-toolkit is not installed", took: 61 * pace, log: apt("nvidia-container-toolkit")},
	}
}

var initLog = []string{
	"[init] Using Kubernetes version: v1.36.3", "[preflight] Running pre-flight checks", "[certs] Generating \"ca\" certificate and key",
	"[kubeconfig] Writing \"admin.conf\" kubeconfig file", "[etcd] Creating static Pod manifest for local etcd in \"/etc/kubernetes/manifests\"",
	"[kubelet-start] Starting the kubelet", "[api-check] The API server is healthy after 6.5s", "[addons] Applied essential addon: CoreDNS", "Your Kubernetes control-plane has initialized successfully!",
}

// three is the run that makes a cluster of three hosts, all well.
func three() []event.Event {
	t := &teller{begun: time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), looks: map[string]int{"control-1": 900, "gpu-1": 1240, "gpu-2": 1010}}
	cp, w1, w2 := common("control-1", 100), common("gpu-1", 112), common("gpu-2", 127)
	w1[0].wait = "the package manager, held by unattended-upgr (pid 812)"
	w2[5].again = true
	t.works = slices.Concat(cp, w1, w2)
	add := func(w ...work) { t.works = append(t.works, w...) }
	add(work{host: "control-1", id: "cluster/init", title: "start the control plane (kubeadm init)", why: "no control plane is there", took: 31200, log: initLog, needs: []event.Ref{ref("control-1", "kube/packages")}},
		work{host: "control-1", id: "cluster/token", title: "make a short-lived bootstrap token", why: "2 hosts join", took: 700, needs: []event.Ref{ref("control-1", "cluster/init")}},
		work{host: "control-1", id: "addon/flannel", title: "apply the pod network flannel", why: "no pod network is there", took: 2100, needs: []event.Ref{ref("control-1", "cluster/init")}})
	for i, host := range []string{"gpu-1", "gpu-2"} {
		join := work{host: host, id: "cluster/join", title: "join the cluster (kubeadm join)", why: "it is no node of this cluster", took: 6200 + 900*i, needs: []event.Ref{ref("control-1", "cluster/token"), ref(host, "kube/packages")}, log: []string{"[preflight] Reading configuration from the cluster", "[kubelet-start] Starting the kubelet", "This node has joined the cluster"}}
		if i == 0 {
			add(join)
			add(cards(host, 100)...)
		} else {
			add(cards(host, 78)...)
			add(join)
		}
	}
	add(work{host: "control-1", id: "cluster/untoken", title: "delete the bootstrap token", why: "nobody needs it any more", took: 400, needs: []event.Ref{ref("gpu-1", "cluster/join"), ref("gpu-2", "cluster/join")}},
		work{host: "control-1", id: "cluster/nodes", title: "set labels and taints", why: "2 nodes lack labels", took: 900, needs: []event.Ref{ref("gpu-1", "cluster/join"), ref("gpu-2", "cluster/join")}},
		work{host: "control-1", id: "addon/device-plugin", title: "apply the device plugin", why: "the cluster has cards", took: 1600},
		work{host: "control-1", id: "gpu/ready", title: "wait until the cards can be used", why: "3 cards", took: 8800, wait: "nvidia.com/gpu of gpu-1", needs: []event.Ref{ref("gpu-1", "gpu/toolkit"), ref("gpu-2", "gpu/toolkit")}},
		work{host: "control-1", id: "cluster/ready", title: "wait until all nodes, the pod network and DNS are ready", why: "it has to be so", took: 3900, needs: []event.Ref{ref("control-1", "gpu/ready")}},
		work{host: "control-1", id: "gpu/smoke", title: "run nvidia-smi on every card", why: "3 cards are new", took: 14200, needs: []event.Ref{ref("control-1", "cluster/ready")}, log: []string{"gpu-1: NVIDIA A100-SXM4-80GB, 580.82", "gpu-1: NVIDIA A100-SXM4-80GB, 580.82", "gpu-2: Tesla T4, 580.82"}})
	return t.tell("up lab.yaml", "ok", "done: kubectl --kubeconfig lab.kubeconfig get nodes")
}

// forty is a run of forty hosts, one of which fails.
func forty() []event.Event { return many(40) }

// many is such a run of so many hosts.
func many(hosts int) []event.Event {
	t := &teller{begun: time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), looks: map[string]int{"control-1": 900}}
	t.works = common("control-1", 100)
	t.works = append(t.works, work{host: "control-1", id: "cluster/init", title: "start the control plane (kubeadm init)", why: "no control plane is there", took: 31200, log: initLog},
		work{host: "control-1", id: "cluster/token", title: "make a short-lived bootstrap token", why: fmt.Sprintf("%d hosts join", hosts-1), took: 700},
		work{host: "control-1", id: "addon/flannel", title: "apply the pod network flannel", why: "no pod network is there", took: 2100})
	var joins []event.Ref
	for i := range hosts - 1 {
		host := fmt.Sprintf("gpu-%02d", i+1)
		t.looks[host] = 700 + 37*(i*7%23)
		works := common(host, 90+i*13%60)
		if i%9 == 4 {
			works[0].wait = "the package manager, held by unattended-upgr (pid 812)"
			works[0].took += 12000
		}
		if i == 16 {
			works[5].fails = "E: Failed to fetch https://download.docker.com/linux/ubuntu/dists/noble/pool/stable/amd64/containerd.io_1.7.27-1_amd64.deb  Could not connect to download.docker.com:443, connection timed out"
			works[6].needs = []event.Ref{ref(host, "runtime/containerd")}
		}
		join := work{host: host, id: "cluster/join", title: "join the cluster (kubeadm join)", why: "it is no node of this cluster", took: 5200 + 90*(i*11%17), needs: []event.Ref{ref("control-1", "cluster/token"), ref(host, "kube/packages")}}
		joins = append(joins, ref(host, "cluster/join"))
		t.works = append(t.works, works...)
		t.works = append(t.works, join)
		if i%3 > 0 {
			t.works = append(t.works, cards(host, 60+i*17%50)...)
		}
	}
	t.works = append(t.works, work{host: "control-1", id: "cluster/untoken", title: "delete the bootstrap token", why: "nobody needs it any more", took: 400},
		work{host: "control-1", id: "cluster/ready", title: "wait until all nodes, the pod network and DNS are ready", why: "it has to be so", took: 3900, needs: joins})
	return t.tell("up cluster.yaml", "REPO_UNREACHABLE", "failed; this carries on: kgpu up --inventory cluster.yaml")
}

// lines is events as they are recorded.
func lines(t *testing.T, events []event.Event) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, e := range events {
		must(t, encoder.Encode(e))
	}
	return out.Bytes()
}
