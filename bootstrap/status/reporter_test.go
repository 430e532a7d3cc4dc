package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/report/schema/schematest"
	"kgpu.dev/kgpu/inventory"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const gpu = "nvidia.com/gpu"

func silentAt(address string) facts.Probe {
	return facts.Probe{Address: netip.MustParseAddr(address), Silent: true}
}

// well is a cluster of a control plane and a worker with two cards, one of which a pod has, where nothing is wrong.
func well(t *testing.T) (*inventory.Inventory, []Observed, *PendingSteps) {
	t.Helper()
	inv, err := inventory.Decode("inventory.yaml", []byte(`
cluster: lab
kubernetes: {version: 1.36.3}
runtime: containerd
network: flannel
hosts:
  - {address: 10.0.0.10, name: cp1, role: control-plane}
  - {address: 10.0.0.11}
`), inventory.Options{Now: now})
	must(t, err)
	host := func(name string) *facts.Host {
		return &facts.Host{Hostname: name, Kernel: "6.8.0-90-generic", OS: facts.OS{PrettyName: "Ubuntu 24.04.3 LTS"}, Now: now, Packages: map[string]facts.Package{}}
	}
	cp, w1 := host("cp1"), host("w1")
	cp.ControlPlane = &facts.ControlPlane{}
	cp.Cluster = &facts.Cluster{Workloads: map[string]facts.Workload{
		"kube-flannel/daemonset/kube-flannel-ds": {Desired: 2, Ready: 2}, "kube-system/deployment/coredns": {Desired: 2, Ready: 2},
	}}
	w1.Packages["nvidia-container-toolkit"] = facts.Package{Version: "1.19.1-1"}
	w1.NVIDIA = facts.NVIDIA{
		Cards:  []facts.Card{{Address: "0000:17:00.0", ID: "20b0", Driver: "nvidia"}, {Address: "0000:18:00.0", ID: "20b0", Driver: "nvidia"}},
		Loaded: "580.95.05", Module: "580.95.05", Library: "580.95.05",
		GPUs: []facts.GPU{{UUID: "GPU-1", Name: "NVIDIA A100-SXM4-40GB", Address: "0000:17:00.0", MemoryMiB: 40960}, {UUID: "GPU-2", Name: "NVIDIA A100-SXM4-40GB", Address: "0000:18:00.0", MemoryMiB: 40960}},
	}
	node := func(name, ip string, cards int) facts.Node {
		n := facts.Node{Name: name, Ready: true, Since: now.Add(-time.Hour), Reason: "KubeletReady", Version: "v1.36.3", Runtime: "containerd://1.7.28", Kernel: "6.8.0-90-generic", OS: "Ubuntu", InternalIP: ip}
		if cards > 0 {
			n.Capacity, n.Allocatable = map[string]int{gpu: cards}, map[string]int{gpu: cards}
		}
		return n
	}
	network := func(name, node string) facts.Pod {
		return facts.Pod{Namespace: "kube-flannel", Name: name, Node: node, Phase: "Running", Ready: true}
	}
	certificate := func(path string, days int) facts.Certificate {
		return facts.Certificate{Path: path, Ends: now.AddDate(0, 0, days)}
	}
	cp.Certificates = []facts.Certificate{certificate("/etc/kubernetes/pki/ca.crt", 3650), certificate("/etc/kubernetes/pki/apiserver.crt", 364)}
	w1.Certificates = []facts.Certificate{certificate("/var/lib/kubelet/pki/kubelet-client-current.pem", 300)}
	return inv, []Observed{
		{Machine: machine.Machine{Host: inv.Hosts[0], Facts: cp}, Status: &facts.Status{
			API: &facts.API{Answers: true, Version: "v1.36.3", Nodes: []facts.Node{node("cp1", "10.0.0.10", 0), node("w1", "10.0.0.11", 2)}, Pods: []facts.Pod{
				network("kube-flannel-ds-aaaaa", "cp1"), network("kube-flannel-ds-bbbbb", "w1"),
				{Namespace: "ml", Name: "train", Node: "w1", Phase: "Running", Ready: true, Requests: map[string]int{gpu: 1}},
				{Namespace: "ml", Name: "done", Node: "w1", Phase: "Succeeded", Requests: map[string]int{gpu: 2}},
				{Namespace: "ml", Name: "waits", Phase: "Pending", Requests: map[string]int{gpu: 2}},
			}},
		}},
		{Machine: machine.Machine{Host: inv.Hosts[1], Facts: w1}, Status: &facts.Status{}},
	}, &PendingSteps{Known: true}
}

// valid fails the test where the report is not as its schema says.
func valid(t *testing.T, r *Report) {
	t.Helper()
	text, err := json.Marshal(r)
	must(t, err)
	schematest.Printed(t, "status", string(text))
}

func TestHealthyCluster(t *testing.T) {
	inv, seen, todo := well(t)
	seen[1].Facts.NVIDIA.Cards = append(seen[1].Facts.NVIDIA.Cards, facts.Card{Address: "0000:01:00.0", ID: "128b", Driver: "nouveau"}) // which the driver is not for
	r := NewReport(inv, seen, todo, now)
	valid(t, r)
	if !r.Well || len(r.Problems) != 0 || len(r.OtherNodes) != 0 || len(r.Hosts) != 2 {
		t.Fatalf("%+v", r)
	}
	c, w1 := r.Cluster, r.Hosts[1]
	if !c.API.Answers || c.API.Version != "v1.36.3" || c.Kubernetes != "v1.36.3" || c.DNS.Ready != 2 || c.Network.Pods.Name != "kube-flannel-ds" || c.AtWork != "" {
		t.Errorf("cluster: %+v", c)
	}
	if want := []Resource{{gpu, 2, 2, 1}}; !slices.Equal(c.Cards, want) || !slices.Equal(w1.GPU.Resources, want) {
		t.Errorf("cards: %+v, %+v", c.Cards, w1.GPU.Resources)
	}
	if w := c.Waiting; w.Count != 1 || len(w.Pods) != 1 || w.Pods[0].Name != "waits" || w.Pods[0].Cards[gpu] != 2 || w.Pods[0].Why == "" || w.Notebook {
		t.Errorf("waiting: %+v", w)
	}
	if p := w1.GPU.Pods; len(p) != 1 || p[0].Name != "train" {
		t.Errorf("pods: %+v", p)
	}
	if w1.State != Ready || w1.Node.Name != "w1" || w1.Host != "10.0.0.11" || w1.Versions.Runtime != "containerd://1.7.28" || w1.Versions.OS != "Ubuntu 24.04.3 LTS" ||
		w1.GPU.Driver.Loaded != "580.95.05" || w1.GPU.Toolkit != "1.19.1-1" || len(w1.GPU.Cards) != 2 || w1.GPU.Cards[1].UUID != "GPU-2" || len(w1.Network) != 1 || !w1.Drift.Known {
		t.Errorf("w1: %+v", w1)
	}
	if first := r.Hosts[0].Certificates[0]; first.Name != "API server" || first.Days != 364 {
		t.Errorf("the first certificate to end: %+v", first)
	}
}

// TestPodsThatWaitForGPUs: pods that wait for GPUs are listed with the scheduler's reason, their number, and whether
// the notebook holds a GPU.
func TestPodsThatWaitForGPUs(t *testing.T) {
	inv, seen, todo := well(t)
	api := seen[0].Status.API
	api.UnscheduledGPUPods, api.Pods[4].Scheduler = 70, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
	api.Pods = append(api.Pods, facts.Pod{Namespace: "ml", Name: "starts", Node: "w1", Phase: "Pending", Requests: map[string]int{gpu: 1}},
		facts.Pod{Namespace: "kgpu-notebook", Name: "notebook-x", Node: "w1", Phase: "Running", Ready: true, Requests: map[string]int{gpu: 1}})
	r := NewReport(inv, seen, todo, now)
	valid(t, r)
	if w := r.Cluster.Waiting; !r.Well || w.Count != 70 || len(w.Pods) != 1 || w.Pods[0].Why != api.Pods[4].Scheduler || !w.Notebook {
		t.Errorf("%+v", w)
	}
}

// TestEachFaultIsOneProblem: each fault is one problem, with its host, reason and text.
func TestEachFaultIsOneProblem(t *testing.T) {
	api := func(s []Observed) *facts.API { return s[0].Status.API }
	w1 := func(s []Observed) *facts.Node { return &api(s).Nodes[1] }
	silent := &reason.Error{ID: reason.SSHUnreachable, Host: "10.0.0.11", Doing: "connecting to 10.0.0.11:22", Err: errors.New("i/o timeout")}
	for name, c := range map[string]struct {
		change func(inv *inventory.Inventory, s []Observed, todo *PendingSteps)
		want   []string // host, reason, words
	}{
		"a host that is off": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			s[1] = Observed{Machine: machine.Machine{Host: s[1].Host}, Err: silent}
			w1(s).Ready, w1(s).Reason, w1(s).Message = false, "NodeStatusUnknown", "Kubelet stopped posting node status."
		}, []string{"10.0.0.11 SSH_UNREACHABLE connecting to 10.0.0.11:22: i/o timeout", "10.0.0.11 NODE_NOT_READY node w1 is not ready since 2026-11-21 11:00:00 UTC: NodeStatusUnknown: Kubelet stopped"}},
		"a node that is not ready": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) { w1(s).Ready = false }, []string{"10.0.0.11 NODE_NOT_READY node w1 is not ready since"}},
		"a node with a full disk": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			w1(s).Conditions = map[string]string{"DiskPressure": "True", "PIDPressure": "True", "MemoryPressure": "False"}
		},
			[]string{"10.0.0.11 NODE_PRESSURE node w1 takes no new pods, and evicts some: DiskPressure, PIDPressure"}},
		"a node without network": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) { w1(s).NetworkUnavailable = true }, []string{"10.0.0.11 NODE_NOT_READY node w1 has no pod network"}},
		"pods that do not reach each other": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			s[0].Status.Peer, s[0].Status.DNS = silentAt("10.244.1.0"), silentAt("10.96.0.10")
			s[1].Status.PodSubnet = netip.MustParsePrefix("10.244.1.1/24")
		}, []string{"cp1 NET_PODS_UNREACHABLE its pods do not reach those of 10.0.0.11: no answer from 10.244.1.0"}},
		"pods that do not reach those of a node that is away": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			s[0].Status.Peer, w1(s).Ready = silentAt("10.244.1.0"), false
		}, []string{"10.0.0.11 NODE_NOT_READY node w1 is not ready since"}},
		"a DNS that does not answer": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) { s[1].Status.DNS = silentAt("10.96.0.10") },
			[]string{"10.0.0.11 NET_DNS_BROKEN the cluster's DNS does not answer there: no answer from 10.96.0.10"}},
		"a proof that is owed": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) { s[0].Facts.NetworkUnproven = true },
			[]string{" NET_PODS_UNREACHABLE the last run did not come to the end of its proof"}},
		"a node that is cordoned": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) { w1(s).Unschedulable = true }, []string{"10.0.0.11  node w1 takes no new pods (SchedulingDisabled)"}},
		"no node":                 {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) { api(s).Nodes = api(s).Nodes[:1] }, []string{"10.0.0.11 NODE_NOT_READY the cluster has no node for it"}},
		"no node, and a plan for it": {func(_ *inventory.Inventory, s []Observed, todo *PendingSteps) {
			api(s).Nodes = api(s).Nodes[:1]
			todo.Steps = map[string][]Step{"10.0.0.11": {{"cluster/join", "join", "the cluster has no node w1"}}}
		}, []string{"10.0.0.11  1 step is to do: cluster/join (the cluster has no node w1)"}},
		"a lot to do": {func(_ *inventory.Inventory, _ []Observed, todo *PendingSteps) {
			todo.Steps = map[string][]Step{"cp1": {{"a/a", "", "x"}, {"b/b", "", "y"}, {"c/c", "", "z"}, {"d/d", "", "q"}, {"e/e", "", "q"}}}
		}, []string{"cp1  5 steps are to do: a/a (x), b/b (y), c/c (z), 2 more"}},
		"a host of another cluster": {func(_ *inventory.Inventory, _ []Observed, todo *PendingSteps) {
			todo.Refused = map[string]machine.Verdict{"10.0.0.11": {Refused: reason.HostForeignCluster, Detail: "the kubelet belongs to another", Advice: "ask its owner"}}
			todo.Steps = map[string][]Step{"10.0.0.11": {{"a/a", "", "x"}}}
		}, []string{"10.0.0.11 HOST_FOREIGN_CLUSTER the kubelet belongs to another: ask its owner"}},
		"no plan": {func(_ *inventory.Inventory, _ []Observed, todo *PendingSteps) {
			*todo = PendingSteps{Err: errors.New("the catalog has no such version")}
		},
			[]string{"  what is to do cannot be told: the catalog has no such version"}},
		"another version than the inventory's": {func(inv *inventory.Inventory, s []Observed, todo *PendingSteps) {
			runsVersion(s, "1.36.3")
			inv.Kubernetes.Version.Minor, inv.Kubernetes.Pin = 35, inventory.PinnedExact
			*todo = *PlanPending(inv, s, plan.Up)
		}, []string{"cp1 KUBERNETES_VERSION_CHANGE planning: inventory.yaml:3:23: the cluster runs Kubernetes 1.36.3, and the inventory wants 1.35.3: " +
			"a cluster does not go back to an older version"}},
		"a node of another version": {func(inv *inventory.Inventory, s []Observed, _ *PendingSteps) {
			runsVersion(s, "1.36.4")
			inv.Kubernetes.Pin = inventory.NotPinned
		}, []string{"10.0.0.11  node w1 has Kubernetes 1.36.3, and the cluster runs 1.36.4: " +
			"with `kubernetes: {version: 1.36.4}` in the inventory, kgpu brings it along"}},
		"a node of somebody else": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			api(s).Nodes = append(api(s).Nodes, facts.Node{Name: "stranger", InternalIP: "10.0.0.99", Ready: true})
		}, []string{" HOST_NOT_IN_INVENTORY node stranger (10.0.0.99) is no host of the inventory"}},
		"a driver that hangs": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			s[1].Facts.NVIDIA.SMI, s[1].Facts.NVIDIA.GPUs = 124, nil
		},
			[]string{"10.0.0.11 GPU_HUNG nvidia-smi gave no answer"}},
		"a driver of two versions": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) { s[1].Facts.NVIDIA.Library = "580.99.01" },
			[]string{"10.0.0.11 GPU_DRIVER_MISMATCH driver 580.95.05 is loaded, and its libraries are 580.99.01"}},
		"a driver that waits for a boot": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) { s[1].Facts.NVIDIA.Module = "590.1" },
			[]string{"10.0.0.11 GPU_DRIVER_MISMATCH driver 580.95.05 is loaded, and 590.1 is installed"}},
		"a card that is lost": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			s[1].Facts.NVIDIA.GPUs = s[1].Facts.NVIDIA.GPUs[:1]
			w1(s).Allocatable = map[string]int{gpu: 1}
		}, []string{"10.0.0.11 GPU_NOT_ALL_CARDS the driver sees 1 of 2 cards: not 0000:18:00.0", "10.0.0.11 GPU_NOT_ALLOCATABLE nvidia.com/gpu: 1 of 2 can be given to pods"}},
		"a network pod that crashes": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			p := &api(s).Pods[1]
			p.Ready, p.Waiting = false, "CrashLoopBackOff"
		}, []string{"10.0.0.11  pod kube-flannel-ds-bbbbb of the network is not ready: CrashLoopBackOff"}},
		"no network pod": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			api(s).Pods = slices.Delete(api(s).Pods, 1, 2)
		},
			[]string{"10.0.0.11  no pod of kube-flannel-ds runs on node w1"}},
		"pods of the cluster that do not come": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			pull := []facts.WaitingContainer{{Name: "web", Reason: "ImagePullBackOff", Message: "Back-off pulling image \"x\""}}
			api(s).Waiting = []facts.WaitingPod{
				{Namespace: "kgpu-dashboard", Name: "web-1", Node: "w1", NotReady: now.Add(-time.Hour), Containers: pull},
				{Namespace: "kgpu-dashboard", Name: "web-2", Node: "w1", NotReady: now.Add(-time.Minute), Containers: pull},
				{Namespace: "kgpu-notebook", Name: "notebook", NotReady: now.Add(-time.Hour), Unscheduled: now.Add(-time.Hour), Scheduler: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."},
				{Namespace: "kube-system", Name: "weave-net-x", Node: "w1", NotReady: now.Add(-time.Hour), Containers: pull},
				{Namespace: "kube-system", Name: "dns", Node: "elsewhere", NotReady: now.Add(-time.Hour), Containers: pull},
			}
		}, []string{
			"10.0.0.11 POD_STUCK pod kgpu-dashboard/web-1: container web: ImagePullBackOff: Back-off pulling image", " POD_STUCK pod kgpu-notebook/notebook: no node takes it: 0/2 nodes are available",
			" POD_STUCK pod kube-system/dns on node elsewhere: container web",
		}},
		"pods on a node that is not ready": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			w1(s).Ready = false
			api(s).Waiting = []facts.WaitingPod{{Namespace: "kube-system", Name: "p", Node: "w1", NotReady: now.Add(-time.Hour), Containers: []facts.WaitingContainer{{Reason: "ErrImagePull"}}}}
		}, []string{"10.0.0.11 NODE_NOT_READY node w1 is not ready since"}},
		"less DNS": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			s[0].Facts.Cluster.Workloads["kube-system/deployment/coredns"] = facts.Workload{Desired: 2, Ready: 1}
		}, []string{"  coredns: 1 of 2 pods are ready"}},
		"no DNS": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			s[0].Facts.Cluster.Workloads["kube-system/deployment/coredns"] = facts.Workload{Desired: 2}
		}, []string{"  coredns: 0 of 2 pods are ready: names of services do not resolve"}},
		"certificates": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			s[0].Facts.Certificates = append(s[0].Facts.Certificates, facts.Certificate{Path: "/etc/kubernetes/admin.conf", Ends: now.Add(29*24*time.Hour + time.Hour)},
				facts.Certificate{Path: "/etc/kubernetes/scheduler.conf", Ends: now.Add(-time.Hour)}, facts.Certificate{Path: "/etc/kubernetes/pki/etcd/ca.crt"},
				facts.Certificate{Path: "/etc/kubernetes/controller-manager.conf", Ends: now.AddDate(0, 0, RenewalDays)})
		}, []string{"cp1 HOST_CERTIFICATE_ENDS certificates: etcd CA (/etc/kubernetes/pki/etcd/ca.crt) cannot be read; scheduler has ended on 2026-11-21; admin ends in 29 days, on 2026-12-20"}},
		"backups": {func(inv *inventory.Inventory, s []Observed, _ *PendingSteps) {
			inv.Backup.Schedule = "daily"
			s[0].Facts.Backups = &facts.Backups{Good: now.Add(-20 * time.Hour), Archive: "/b/x", Failed: now, Why: "no\tspace"}
			s[0].Facts.Now = now
		}, []string{"cp1 BACKUP_OVERDUE the last backup failed: no space; the last good one is 20h old: /b/x"}},
		"no API server": {func(_ *inventory.Inventory, s []Observed, todo *PendingSteps) {
			*api(s) = facts.API{Error: "The connection to the server was refused"}
			s[0].Facts.Cluster = nil
		}, []string{"cp1 API_UNREACHABLE the API server does not answer: The connection to the server was refused"}},
		"no control plane": {func(_ *inventory.Inventory, s []Observed, todo *PendingSteps) {
			s[0] = Observed{Machine: machine.Machine{Host: s[0].Host}, Err: &reason.Error{ID: reason.SSHAuthFailed, Host: "cp1", Doing: "logging in", Detail: "none of the keys was taken"}}
			*todo = *PlanPending(inv(t), s, plan.Up)
		}, []string{"cp1 SSH_AUTH_FAILED logging in: none of the keys was taken"}},
		"a control plane that tells half": {func(_ *inventory.Inventory, s []Observed, _ *PendingSteps) {
			s[0].Status, s[0].Err = nil, &reason.Error{ID: reason.HostUnending, Host: "cp1", Doing: "running status", Detail: "it is not done after 1m0s"}
		}, []string{"cp1 HOST_UNENDING running status: it is not done after 1m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			inv, seen, todo := well(t)
			c.change(inv, seen, todo)
			r := NewReport(inv, seen, todo, now)
			valid(t, r)
			if r.Well || len(r.Hosts) != 2 {
				t.Errorf("well: %t, hosts: %+v", r.Well, r.Hosts)
			}
			for i, p := range r.Problems {
				if got := fmt.Sprintf("%s %s %s: %s", p.Host, p.Reason, p.Text, p.Advice); i >= len(c.want) || !strings.HasPrefix(got, c.want[i]) {
					t.Errorf("problem %d: %s", i, got)
				}
				if p.Advice == "" || strings.Contains(p.Advice, "\n") {
					t.Errorf("the advice is %q", p.Advice)
				}
			}
			if len(r.Problems) != len(c.want) {
				t.Errorf("%d problems, want %q", len(r.Problems), c.want)
			}
		})
	}
}

// runsVersion makes a member of the worker, with Kubernetes 1.36.3, of a cluster of another version.
func runsVersion(s []Observed, version string) {
	s[0].Facts.ControlPlane.Version, s[0].Facts.Cluster.Nodes = "v"+version, []facts.Node{{Name: "cp1"}, {Name: "w1"}}
	s[0].Facts.ControlPlane.Finished, s[0].Facts.Recorded = true, &facts.Record{Init: true, Done: true}
	s[0].Facts.Packages["kubelet"] = facts.Package{Version: version + "-1.1"}
	s[1].Facts.Kubelet, s[1].Facts.Recorded = &facts.Member{}, &facts.Record{Join: true, Done: true}
	s[1].Facts.Packages["kubelet"] = facts.Package{Version: "1.36.3-1.1"}
}

func inv(t *testing.T) *inventory.Inventory { i, _, _ := well(t); return i }

// TestStatusWithoutTheControlPlane: without a control plane the hosts' own state is reported, and nothing that is
// unknown.
func TestStatusWithoutTheControlPlane(t *testing.T) {
	inv, seen, _ := well(t)
	seen[0] = Observed{Machine: machine.Machine{Host: seen[0].Host}, Err: errors.New("gone")}
	seen[1].Facts.Packages["kubelet"] = facts.Package{Version: "1.36.3-1.1"}
	seen[1].Facts.Packages["containerd"] = facts.Package{Version: "1.7.28-0ubuntu1"}
	r := NewReport(inv, seen, PlanPending(inv, seen, plan.Up), now)
	valid(t, r)
	w1 := r.Hosts[1]
	if r.Cluster.API.Answers || r.Cluster.API.Error == "" || w1.State != Unknown || w1.Drift.Known || !w1.Reached || r.Hosts[0].Reached {
		t.Errorf("%+v", r)
	}
	if w1.Versions != (Versions{"v1.36.3", "containerd://1.7.28", "6.8.0-90-generic", "Ubuntu 24.04.3 LTS"}) || len(w1.GPU.Cards) != 2 || len(w1.Certificates) != 1 {
		t.Errorf("w1 tells %+v", w1)
	}
}

// TestStatusOfBareHosts: hosts without a cluster have pending steps and no other problem.
func TestStatusOfBareHosts(t *testing.T) {
	inv, seen, _ := well(t)
	for i := range seen {
		f := seen[i].Facts
		f.ControlPlane, f.Cluster, f.NVIDIA = nil, nil, facts.NVIDIA{}
		f.OS = facts.OS{ID: "ubuntu", VersionID: "24.04", Codename: "noble"}
		f.Arch = "amd64"
		f.Addresses = []facts.Address{{Interface: "eth0", Prefix: netip.MustParsePrefix(fmt.Sprintf("10.0.0.1%d/24", i))}}
		seen[i].Status = &facts.Status{}
	}
	r := NewReport(inv, seen, PlanPending(inv, seen, plan.Up), now)
	valid(t, r)
	if len(r.Problems) != 2 || r.Hosts[0].State != NoNode || r.Cluster.API.Answers {
		t.Fatalf("%+v", r)
	}
	for i, h := range r.Hosts {
		if len(h.Drift.Pending) < 3 || h.Drift.Pending[0].Reason == "" || !strings.Contains(r.Problems[i].Text, "steps are to do") || !strings.Contains(r.Problems[i].Advice, "kgpu up inventory.yaml") {
			t.Errorf("%+v, %+v", h.Drift, r.Problems[i])
		}
	}
}

// TestNodeOfAnUnreachableHost: the node of an unreachable host without a name is found by its address; other unknown
// nodes may be the host's, and that is said.
func TestNodeOfAnUnreachableHost(t *testing.T) {
	inv, seen, todo := well(t)
	seen[1] = Observed{Machine: machine.Machine{Host: seen[1].Host}, Err: errors.New("off")}
	if r := NewReport(inv, seen, todo, now); len(r.OtherNodes) != 0 || r.Hosts[1].State != Ready || r.Hosts[1].Reached {
		t.Errorf("%+v", r)
	}
	seen[0].Status.API.Nodes[1].InternalIP = "192.168.7.7" // behind another address than SSH's
	r := NewReport(inv, seen, todo, now)
	if len(r.OtherNodes) != 1 || !strings.Contains(r.Problems[len(r.Problems)-1].Text, "unless it is one that cannot be asked: 10.0.0.11") {
		t.Errorf("%+v", r)
	}
	valid(t, r)
}

// TestStatusDuringARun: the report says who is at work, and on which hosts.
func TestStatusDuringARun(t *testing.T) {
	inv, seen, todo := well(t)
	seen[0].Facts.LockHolder = &facts.LockHolder{Who: "ada@laptop", Command: "up inventory.yaml"}
	seen[1].Facts.Run = &facts.Run{Step: "driver/install"}
	seen[0].Status.API.Nodes[1].Unschedulable = true // drained by it
	r := NewReport(inv, seen, todo, now)
	valid(t, r)
	if !strings.Contains(r.Cluster.AtWork, "ada@laptop") || r.Hosts[1].AtWork != "driver/install" || r.Well || len(r.Problems) > 0 {
		t.Errorf("%+v", r)
	}
	seen[0].Facts.LockHolder = nil // it has gone, and its step has not
	seen[1].Facts, seen[1].Err = nil, &reason.Error{ID: reason.SSHUnreachable, Host: "w1"}
	seen[0].Facts.Run = &facts.Run{Step: "kube/packages"}
	if r := NewReport(inv, seen, todo, now); r.Well || len(r.Problems) != 1 || r.Problems[0].Reason != reason.SSHUnreachable {
		t.Errorf("%+v", r.Problems)
	}
}

// TestStatusIsPrintable: text from a host reaches a terminal only as plain text of one line.
func TestStatusIsPrintable(t *testing.T) {
	const evil = "\x1b]0;evil\x07\x1b[2J\u009b31m\u202e\xff\x00a\tb\nc"
	inv, seen, todo := well(t)
	f, api := seen[1].Facts, seen[0].Status.API
	f.Hostname, f.Kernel, f.OS.PrettyName, f.NVIDIA.Loaded, f.NVIDIA.GPUs[0].Name = evil, evil, evil, evil, evil
	f.Packages["kubelet"] = facts.Package{Version: evil}
	api.Version = evil
	api.Nodes[1] = facts.Node{Name: evil, Reason: evil, Message: strings.Repeat(evil, 1000), Version: evil, Runtime: evil, InternalIP: evil, Capacity: map[string]int{evil: 1}}
	api.Pods[4] = facts.Pod{Namespace: evil, Name: evil, Phase: "Pending", Requests: map[string]int{evil: 1}, Scheduler: evil}
	api.Pods[2] = facts.Pod{Namespace: evil, Name: evil, Node: evil, Phase: evil, Requests: map[string]int{evil: 1}}
	seen[1].Facts.Certificates[0].Path = evil
	seen[1].Err = errors.New(evil)
	r := NewReport(inv, seen, todo, now)
	valid(t, r)
	text, err := json.Marshal(r)
	must(t, err)
	for _, bad := range []string{`\u001b`, `\u0000`, `\u0007`, `\t`, `\n`, "\u202e", "\u009b"} {
		if bytes.Contains(text, []byte(bad)) {
			t.Errorf("%s is in %s", bad, text)
		}
	}
	if len(text) > 64<<10 {
		t.Errorf("%d bytes", len(text))
	}
}

// TestStatusOfSeveralControlPlanes: the cluster's state comes from a control plane that answers, and those that do not
// are problems.
func TestStatusOfSeveralControlPlanes(t *testing.T) {
	inv, seen, todo := well(t)
	plane := func(name string, api *facts.API) Observed {
		h := inventory.Host{Name: name, Address: name, Role: inventory.ControlPlane}
		inv.Hosts = append(inv.Hosts, h)
		return Observed{Machine: machine.Machine{Host: h, Facts: &facts.Host{Hostname: name, Now: now, ControlPlane: &facts.ControlPlane{}}}, Status: &facts.Status{API: api}}
	}
	silent := plane("cp2", &facts.API{Error: "connection refused"})
	away := plane("cp3", nil)
	away.Facts, away.Status, away.Err = nil, nil, errors.New("gone")
	seen = append([]Observed{silent, away}, seen...)
	r := NewReport(inv, seen, todo, now)
	if !r.Cluster.API.Answers || r.Cluster.DNS == nil || r.Hosts[3].State != Ready {
		t.Errorf("%+v", r.Cluster)
	}
	var found []string
	for _, p := range r.Problems {
		if p.Reason == reason.APIUnreachable {
			found = append(found, p.Host+": "+p.Text)
		}
	}
	if want := []string{"cp2: the API server does not answer: connection refused"}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
	seen[2].Status.API.Answers = false
	if r = NewReport(inv, seen, todo, now); r.Cluster.API.Answers || r.Hosts[3].State != Unknown {
		t.Errorf("when none answers: %+v", r.Cluster)
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
