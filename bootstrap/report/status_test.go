package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/status"
)

var looked = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// healthy is a cluster of three hosts where all is well.
func healthy() *status.Report {
	certificates := func(more ...status.Certificate) []status.Certificate {
		ca := time.Date(2036, 11, 17, 9, 0, 0, 0, time.UTC)
		return append(more, status.Certificate{Name: "CA", Path: "/etc/kubernetes/pki/ca.crt", Ends: &ca, Days: 3648})
	}
	until := func(days int) *time.Time { at := looked.AddDate(0, 0, days); return &at }
	since := looked.Add(-27 * time.Hour)
	host := func(id, node, role string) status.Host {
		return status.Host{
			Host: id, Address: "10.0.0.1" + id[len(id)-1:], Role: role, Reached: true, State: status.Ready, Node: &status.Node{Name: node, Since: &since, Schedulable: true},
			Versions: status.Versions{Kubelet: "v1.36.3", Runtime: "containerd://1.7.28", Kernel: "6.8.0-90-generic", OS: "Ubuntu 24.04.3 LTS"},
			GPU:      status.GPU{Cards: []status.Card{}, Resources: []status.Resource{}, Pods: []status.Pod{}},
			Network:  []status.NetworkPod{{Namespace: "kube-flannel", Name: "kube-flannel-ds-abcde", Ready: true}, {Namespace: "kube-system", Name: "kube-proxy-abcde", Ready: true}},
			Drift:    status.Drift{Known: true, Pending: []status.Step{}},
		}
	}
	cp, w1, w2 := host("cp0", "cp0", "control-plane"), host("10.0.0.11", "gpu-one", "worker"), host("gpu-two2", "gpu-two2", "worker")
	cp.Certificates = certificates(status.Certificate{Name: "API server", Path: "/etc/kubernetes/pki/apiserver.crt", Ends: until(364), Days: 364})
	made := looked.Add(-7 * time.Hour)
	cp.Backups = &status.Backups{Last: &made, Archive: "/var/backups/kgpu/kgpu-backup-lab-cp0-20261119-023412Z.tar.gz"}
	w1.Certificates = certificates(status.Certificate{Name: "kubelet", Path: "/var/lib/kubelet/pki/kubelet-client-current.pem", Ends: until(300), Days: 300})
	w2.Certificates = w1.Certificates
	a100 := status.Card{Address: "0000:17:00.0", Name: "NVIDIA A100-SXM4-40GB", UUID: "GPU-8f0e", MemoryMiB: 40960}
	for _, h := range []*status.Host{&w1, &w2} {
		h.GPU.Driver, h.GPU.Toolkit = status.Driver{Loaded: "580.95.05", Installed: "580.95.05", Library: "580.95.05"}, "1.19.1-1"
	}
	w1.GPU.Cards, w1.GPU.Resources = []status.Card{a100, a100}, []status.Resource{{Name: "nvidia.com/gpu", Capacity: 2, Allocatable: 2, InUse: 1}}
	w1.GPU.Pods = []status.Pod{{Namespace: "kgpu-notebook", Name: "notebook-5b7c6d7f9-x2v4b", Phase: "Running", Cards: map[string]int{"nvidia.com/gpu": 1}}}
	a100.Instances = 7
	w2.GPU.Cards, w2.GPU.Resources = []status.Card{a100}, []status.Resource{{Name: "nvidia.com/mig-1g.5gb", Capacity: 7, Allocatable: 7}}
	return &status.Report{
		Schema: status.Schema, Time: looked, Well: true,
		Cluster: status.Cluster{
			Name: "lab", Inventory: "inventory.yaml", Kubernetes: "v1.36.3", API: status.API{Answers: true, Version: "v1.36.3"},
			Network: status.Network{Name: "flannel", Pods: &status.Workload{Name: "kube-flannel-ds", Desired: 3, Ready: 3}}, DNS: &status.Workload{Name: "coredns", Desired: 2, Ready: 2},
			Cards:   []status.Resource{{Name: "nvidia.com/gpu", Capacity: 2, Allocatable: 2, InUse: 1}, {Name: "nvidia.com/mig-1g.5gb", Capacity: 7, Allocatable: 7}},
			Waiting: status.Waiting{Pods: []status.WaitingPod{}},
		},
		Hosts: []status.Host{cp, w1, w2}, OtherNodes: []status.OtherNode{}, Problems: []status.Problem{},
	}
}

// troubled is the same cluster on a bad day.
func troubled() *status.Report {
	r := healthy()
	r.Well = false
	r.Cluster.API.Version, r.Cluster.DNS.Ready, r.Cluster.Network.Pods.Ready = "v1.35.1", 1, 2
	cp, w1, w2 := &r.Hosts[0], &r.Hosts[1], &r.Hosts[2]
	cp.Node.Schedulable = false
	cp.Certificates[0].Ends, cp.Certificates[0].Days = &looked, 0
	cp.Drift.Pending = []status.Step{
		{Step: "kube/packages", Title: "install kubelet, kubeadm and kubectl 1.36.3", Reason: "kubelet is 1.35.1"}, {Step: "os/time", Title: "install chrony", Reason: "no time service runs"},
	}
	late := looked.Add(-5 * time.Minute)
	w1.State, w1.Node.Since, w1.Node.Reason = status.NotReady, &late, "KubeletNotReady"
	w1.GPU.Cards[1].UUID, w1.GPU.Resources[0].Allocatable = "", 1
	w1.GPU.Driver.Installed = "590.44.01"
	w1.Network[0].Ready, w1.Certificates = false, append([]status.Certificate{{Name: "kubelet", Path: "/x"}}, w1.Certificates...)
	gone := looked.Add(-72 * time.Hour)
	*w2 = status.Host{
		Host: "gpu-two2", Address: "10.0.0.12", Role: "worker", State: status.NotReady, Node: &status.Node{Name: "gpu-two2", Since: &gone, Schedulable: true},
		GPU: status.GPU{Cards: []status.Card{}, Resources: []status.Resource{}, Pods: []status.Pod{}}, Certificates: []status.Certificate{}, Network: []status.NetworkPod{}, Drift: status.Drift{Pending: []status.Step{}},
	}
	r.Problems = []status.Problem{
		{Host: "cp0", Reason: reason.HostCertificateEnds, Text: "certificates: API server ends in 0 days, on 2026-11-21", Advice: reason.Lookup(reason.HostCertificateEnds).Advice},
		{Host: "10.0.0.11", Reason: reason.NodeNotReady, Text: "node gpu-one is not ready since 2026-11-21 11:55:00 UTC: KubeletNotReady", Advice: reason.Lookup(reason.NodeNotReady).Advice},
		{Host: "gpu-two2", Reason: reason.SSHUnreachable, Text: "connecting to 10.0.0.12:22: i/o timeout", Advice: reason.Lookup(reason.SSHUnreachable).Advice},
		{Text: "coredns: 1 of 2 pods are ready", Advice: "`kubectl -n kube-system describe deployment coredns`"},
	}
	return r
}

func TestStatus(t *testing.T) {
	without := healthy() // a control plane that is off
	without.Well = false
	without.Cluster.API, without.Cluster.DNS, without.Cluster.Network.Pods, without.Cluster.Cards = status.API{Error: "the control plane cp0 cannot be asked: nodes, pods and drift are unknown until it can"}, nil, nil, nil
	without.Hosts = without.Hosts[:2]
	for i := range without.Hosts {
		h := &without.Hosts[i]
		h.Reached, h.State, h.Node, h.Drift.Known, h.Network, h.GPU.Resources, h.GPU.Pods = i > 0, status.Unknown, nil, false, nil, nil, nil
	}
	without.Problems = []status.Problem{{Host: "cp0", Reason: reason.SSHUnreachable, Text: "connecting to 10.0.0.10:22: connection refused", Advice: "check"}}
	waiting, wants := healthy(), map[string]int{"nvidia.com/gpu": 1}
	waiting.Cluster.Waiting = status.Waiting{Count: 53, Notebook: true, Pods: []status.WaitingPod{
		{Namespace: "ml", Name: "train-0", Cards: wants, Why: "0/3 nodes are available: 1 node(s) had untolerated taint, 2 Insufficient nvidia.com/gpu."},
		{Namespace: "ml", Name: "train-1", Cards: wants, Why: "0/3 nodes are available: 1 node(s) had untolerated taint, 2 Insufficient nvidia.com/gpu."},
		{Namespace: "web", Name: "model", Cards: map[string]int{"nvidia.com/mig-1g.5gb": 2}, Why: "the scheduler has not said why"},
	}}
	for name, c := range map[string]struct {
		report *status.Report
		wide   bool
		width  int
	}{
		"status-waiting.txt": {waiting, false, 0},
		"status-healthy.txt": {healthy(), false, 0}, "status-healthy-wide.txt": {healthy(), true, 80},
		"status-trouble.txt": {troubled(), false, 0}, "status-trouble-wide.txt": {troubled(), true, 0},
		"status-narrow.txt": {healthy(), false, 80}, "status-trouble-narrow.txt": {troubled(), false, 80},
		"status-very-narrow.txt": {healthy(), false, 20}, "status-no-control-plane.txt": {without, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			out := &Sheet{As: Look{Width: c.width}}
			must(t, PrintStatus(out, c.report, StatusOptions{Wide: c.wide}))
			golden(t, name, out.String())
		})
	}
}

// Hosts that are alike are told of once.
func TestStatusFolds(t *testing.T) {
	r := healthy()
	r.Well = false
	for i, text := range []string{"14 steps are to do: a", "9 steps are to do: a", "9 steps are to do: a", "it is off", "9 steps are to do: b"} {
		p := status.Problem{Host: r.Hosts[min(i, 2)].Host, Text: text, Advice: "`kgpu up`"}
		if text == "it is off" {
			p.Reason, p.Advice = reason.SSHUnreachable, "turn it on"
		}
		r.Problems = append(r.Problems, p)
	}
	var out bytes.Buffer
	must(t, PrintStatus(&out, r, StatusOptions{}))
	const want = "Not well:\n  cp0: 14 steps are to do: a\n  gpu-one, gpu-two2: 9 steps are to do: a\n    → `kgpu up`\n" +
		"  gpu-two2: it is off [SSH_UNREACHABLE]\n    → turn it on\n  gpu-two2: 9 steps are to do: b\n    → `kgpu up`\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("it says\n%s", &out)
	}
}

// In a terminal of 80 columns a host is a line.
func TestStatusFits(t *testing.T) {
	out := &Sheet{As: Look{Width: 80}}
	must(t, PrintStatus(out, healthy(), StatusOptions{}))
	_, table, _ := strings.Cut(out.String(), "HOST ")
	for line := range strings.Lines(table) {
		if len([]rune(line)) > 81 {
			t.Errorf("too long: %q", line)
		}
	}
}

// JSON and YAML are one object, whatever its strings look like.
// A character may take two columns of a terminal, or none.
func TestTableOfWideCharacters(t *testing.T) {
	for _, c := range []struct {
		row  []string
		want int
	}{
		{[]string{"w1", "Ready"}, 2 + columnGap + 5},
		{[]string{"計算機", "Ready"}, 6 + columnGap + 5},
		{[]string{"nœud", "e\u0301tat"}, 4 + columnGap + 4},
	} {
		if got := tableWidth([][]string{c.row}); got != c.want {
			t.Errorf("%q takes %d columns, want %d", c.row, got, c.want)
		}
	}
}

func TestStatusAsData(t *testing.T) {
	for _, r := range []*status.Report{healthy(), troubled()} {
		r.Hosts[0].Versions = status.Versions{Kubelet: "1.30", Runtime: "no", Kernel: "- x: [", OS: `<&> "ü" 0x10`}
		var asJSON, asYAML bytes.Buffer
		must(t, StatusJSON(&asJSON, r))
		must(t, StatusYAML(&asYAML, r))
		var one, two any
		must(t, json.Unmarshal(asJSON.Bytes(), &one))
		if err := yaml.Unmarshal(asYAML.Bytes(), &two); err != nil {
			t.Fatalf("%v in\n%s", err, &asYAML)
		}
		text, err := json.Marshal(two)
		must(t, err)
		var again any
		must(t, json.Unmarshal(text, &again))
		if !reflect.DeepEqual(one, again) {
			t.Errorf("YAML says something else:\n%s\n%s", &asYAML, &asJSON)
		}
		if !strings.HasPrefix(asYAML.String(), "---\nschema: 1\n") || strings.Contains(asYAML.String(), `"cluster"`) {
			t.Errorf("as YAML:\n%s", &asYAML)
		}
	}
}
