package scripts

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// asKubectl is what `kubectl get -o go-template` makes of what an API server answers.
func asKubectl(t *testing.T, answer any) string {
	t.Helper()
	var out strings.Builder
	must(t, template.Must(template.New("").Parse(clusterTemplate(t, Status()))).Execute(&out, answer))
	return out.String()
}

// recorded is the answer of a version of Kubernetes.
func recorded(t *testing.T, version string) any {
	t.Helper()
	var answer any
	must(t, json.Unmarshal([]byte(readFile(t, filepath.Join("testdata/kubectl", version+".json"))), &answer))
	return answer
}

// kubectlStub answers as an API server of this version that has these nodes and pods.
func (s *sandbox) kubectlStub(version, list string) {
	s.t.Helper()
	s.write("list", list)
	s.stub("kubectl", `#!/bin/sh
case "$*" in
  *'get --raw /version') printf '{\n  "major": "1",\n  "gitVersion": "`+version+`"\n}' ;;
  *'get nodes,pods --all-namespaces'*) cat /list ;;
  *) echo "what is $*?" >&2; exit 1 ;;
esac
`)
}

// What keeps a node from taking pods is told, and only while it does.
func TestStatusOfANodeUnderPressure(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	condition := func(what, status string) any { return object{"type": what, "status": status} }
	s := newSandbox(t)
	s.write("etc/kubernetes/admin.conf", "")
	s.kubectlStub("v1.36.3", asKubectl(t, object{"items": []any{object{"kind": "Node", "metadata": object{"name": "w1"}, "spec": object{}, "status": object{"conditions": []any{
		condition("MemoryPressure", "False"), condition("DiskPressure", "True"), condition("PIDPressure", "Unknown"), condition("Ready", "True"), condition("Other", "True"),
	}}}}}))
	if got := s.told().API.Nodes[0].Pressure(); !slices.Equal(got, []string{"DiskPressure"}) {
		t.Errorf("pressure: %q", got)
	}
}

// told runs status.sh with the sandbox's stubs in front and little patience.
func (s *sandbox) told() *facts.Status {
	s.t.Helper()
	text := strings.NewReplacer("timeout -k 2 20", "timeout -k 1 1").Replace(stubbed(Status()))
	r := s.ok(s.bash(text))
	if strings.Contains(r.output, "the-key") {
		s.t.Errorf("a key is printed:\n%s", r.output)
	}
	got, err := facts.ParseStatus([]byte(r.output))
	if err != nil {
		s.t.Fatalf("%v in\n%s", err, r.output)
	}
	return got
}

// On a worker nothing is known of the cluster, and nothing is changed by looking.
func TestStatusOfAWorker(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	before := s.snapshot()
	got := s.told()
	s.same(before)
	if got.API != nil {
		t.Errorf("a worker speaks for the API server: %+v", got.API)
	}
}

// On a control plane there is what the API server knows.
func TestStatusOfAControlPlane(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/kubernetes/admin.conf", "")
	s.kubectlStub("v1.36.3", asKubectl(t, recorded(t, "1.36.3")))
	before := s.snapshot()
	got := s.told()
	s.same(before)
	if api := got.API; api == nil || !api.Answers || api.Version != "v1.36.3" || len(api.Nodes) != 4 {
		t.Fatalf("API: %+v", api)
	}
	var pods []string // CoreDNS is no part of a node's network
	for _, p := range got.API.Pods {
		pods = append(pods, p.Name)
	}
	if want := []string{"weave-net-abcde", "kube-proxy-abcde", "notebook-5b7c6d7f9-x2v4b", "slice", "prepare"}; !slices.Equal(pods, want) {
		t.Errorf("pods: %q", pods)
	}
}

// An API server that does not answer is told with kubectl's last words.
func TestStatusWithoutAPIServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ kubectl, want string }{
		"refused": {"echo 'E1121 memcache.go:265' >&2; echo 'The connection to the server 10.0.0.10:6443 was refused' >&2; exit 1", "The connection to the server 10.0.0.10:6443 was refused"},
		"hangs":   {"exec sleep 20", "no answer within 20 s"},
		"is mute": {"exit 7", "kubectl ended with status 7"},
		"lists nothing": {`case "$*" in *--raw*) echo '{"gitVersion":"v1.36.3"}' ;; *) echo 'Error from server (Forbidden): nodes is forbidden' >&2; exit 1 ;; esac`,
			"Error from server (Forbidden): nodes is forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.write("etc/kubernetes/admin.conf", "")
			s.stub("kubectl", "#!/bin/sh\n"+c.kubectl+"\n")
			if api := s.told().API; api == nil || api.Answers || api.Error != c.want {
				t.Errorf("%+v, want %q", api, c.want)
			}
		})
	}
}

// Every version of Kubernetes tells its nodes and cards, in its own words.
func TestStatusOfVersions(t *testing.T) {
	t.Parallel()
	const gpu, accelerator = "nvidia.com/gpu", "alpha.kubernetes.io/nvidia-gpu"
	type amounts = map[string]int
	for version, c := range map[string]struct {
		node     string
		ready    string
		runtime  string
		capacity amounts
		given    amounts
		pods     map[string]amounts // that hold cards
	}{
		"1.6.13":  {"w1", "True", "docker://1.12.6", amounts{accelerator: 2}, amounts{accelerator: 2}, map[string]amounts{"train": {accelerator: 1}}},
		"1.10.13": {"w1", "True", "docker://18.6.3", amounts{accelerator: 0, gpu: 4}, amounts{accelerator: 0, gpu: 3}, map[string]amounts{"train-0": {gpu: 2}, "done": {gpu: 1}}},
		"1.23.17": {"w1", "True", "docker://20.10.24", amounts{gpu: 1000, gpu + ".shared": 8}, amounts{gpu: 1000, gpu + ".shared": 8},
			map[string]amounts{"shared": {gpu + ".shared": 1}, "waits": {gpu: 1}}},
		"1.36.3": {"w2", "Unknown", "containerd://1.7.28", amounts{gpu: 2}, amounts{gpu: 2},
			map[string]amounts{"notebook-5b7c6d7f9-x2v4b": {gpu: 1}, "slice": {"nvidia.com/mig-1g.5gb": 2}, "prepare": {gpu: 2}}},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.write("etc/kubernetes/admin.conf", "")
			s.kubectlStub("v"+version, asKubectl(t, recorded(t, version)))
			api := s.told().API
			if api == nil || !api.Answers || api.Version != "v"+version {
				t.Fatalf("API: %+v", api)
			}
			i := slices.IndexFunc(api.Nodes, func(n facts.Node) bool { return n.Name == c.node })
			if i < 0 {
				t.Fatalf("nodes: %+v", api.Nodes)
			}
			n := api.Nodes[i]
			if n.Conditions["Ready"] != c.ready || n.Ready != (c.ready == "True") || n.Since.IsZero() || n.Runtime != c.runtime || n.Version != "v"+version || n.Kernel == "" || n.OS == "" || n.InternalIP == "" ||
				!maps.Equal(n.Capacity, c.capacity) || !maps.Equal(n.Allocatable, c.given) || n.Unschedulable != (version == "1.23.17") {
				t.Errorf("node: %+v", n)
			}
			pods := map[string]amounts{}
			for _, p := range api.Pods {
				if p.Requests != nil {
					pods[p.Name] = p.Requests
				} else if p.Waiting != "" && (p.Ready || p.Waiting != "CrashLoopBackOff") {
					t.Errorf("%+v", p)
				}
			}
			if !maps.EqualFunc(pods, c.pods, maps.Equal[amounts, amounts]) {
				t.Errorf("pods with cards: %v", pods)
			}
		})
	}
}

// What a condition says comes out as it was, whatever is in it.
func TestStatusSaysWhatANodeSays(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/kubernetes/admin.conf", "")
	s.kubectlStub("v1.36.3", asKubectl(t, recorded(t, "1.36.3")))
	n := s.told().API.Nodes[3]
	const want = `container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized; it's "down"`
	if n.Reason != "KubeletNotReady" || n.Message != want || !n.NetworkUnavailable || n.Ready {
		t.Errorf("%+v", n)
	}
}

// A kubelet may write into its node and its pods what it likes. It stays in their own lines.
func TestStatusOfANodeThatLiesAboutAnother(t *testing.T) {
	t.Parallel()
	const lie = "x\tTrue\nnode\tcp1\tTrue\ncluster=node\tcp1\tTrue\nend=1\n"
	list := asKubectl(t, object{"items": []any{
		object{"kind": "Node", "metadata": object{"name": "w1"}, "spec": object{}, "status": object{
			"nodeInfo":   object{"kubeletVersion": lie, "containerRuntimeVersion": lie, "kernelVersion": lie, "osImage": lie},
			"conditions": []any{object{"type": "Ready", "status": lie, "reason": lie, "message": lie, "lastTransitionTime": lie}, object{"type": "NetworkUnavailable", "status": lie}},
			"addresses":  []any{object{"type": "InternalIP", "address": lie}},
			"capacity":   object{"nvidia.com/" + lie: lie}, "allocatable": object{"nvidia.com/gpu": lie},
		}},
		object{"kind": "Pod", "metadata": object{"name": "kube-proxy-1", "namespace": "kube-system"}, "spec": object{"nodeName": "w1"}, "status": object{
			"phase": lie, "conditions": []any{object{"type": "Ready", "status": lie, "lastTransitionTime": lie}, object{"type": "PodScheduled", "status": "False", "lastTransitionTime": lie, "message": lie}},
			"containerStatuses": []any{object{"name": "c", "state": object{"waiting": object{"reason": lie, "message": lie}}}},
		}},
		object{"kind": "Node", "metadata": object{"name": "w2"}, "spec": object{}, "status": object{}}, // and one that says nothing
	}})
	s := newSandbox(t)
	s.write("etc/kubernetes/admin.conf", "")
	s.kubectlStub("v1.36.3", list)
	api := s.told().API
	if len(api.Nodes) != 2 || api.Nodes[0].Name != "w1" || api.Nodes[0].Ready || api.Nodes[1].Ready || len(api.Pods) != 1 || api.Pods[0].Node != "w1" ||
		len(api.Waiting) != 1 || api.Waiting[0].Node != "w1" || len(api.Waiting[0].Containers) != 1 {
		t.Errorf("%+v", api)
	}
}

// Of the pods in the cluster's own namespaces those are told that wait: for a node, or with a container.
func TestStatusOfPodsThatWait(t *testing.T) {
	t.Parallel()
	pod := func(namespace, name string, status object) any {
		return object{"kind": "Pod", "metadata": object{"name": name, "namespace": namespace}, "spec": object{}, "status": status}
	}
	const at = "2026-11-21T11:40:00Z"
	pulls := object{"conditions": []any{object{"type": "Ready", "status": "False", "lastTransitionTime": at}},
		"containerStatuses": []any{object{"name": "web", "state": object{"waiting": object{"reason": "ImagePullBackOff", "message": `Back-off pulling image "x"`}}}}}
	prepares := object{"initContainerStatuses": []any{object{"name": "i", "state": object{"waiting": object{"reason": "CrashLoopBackOff"}}}}}
	ending := pod("kube-system", "ends", pulls)
	ending.(object)["metadata"].(object)["deletionTimestamp"] = at
	s := newSandbox(t)
	s.write("etc/kubernetes/admin.conf", "")
	s.kubectlStub("v1.6.13", asKubectl(t, object{"items": []any{
		pod("ml", "train", pulls), pod("kgpu", "mine", pulls), pod("kgpu-dashboard", "web", pulls), pod("kube-system", "weave-net-x", prepares), ending,
		pod("kube-system", "new", object{}), pod("kube-system", "runs", object{"conditions": []any{object{"type": "Ready", "status": "True"}}, "containerStatuses": []any{object{"name": "c", "state": object{"running": object{}}}}}),
		pod("kgpu-notebook", "notebook", object{"conditions": []any{object{"type": "PodScheduled", "status": "False", "lastTransitionTime": at, "message": "no card"}}}),
	}}))
	since := time.Date(2026, 11, 21, 11, 40, 0, 0, time.UTC)
	want := []facts.WaitingPod{
		{Namespace: "kgpu-dashboard", Name: "web", NotReady: since, Containers: []facts.WaitingContainer{{Name: "web", Reason: "ImagePullBackOff", Message: `Back-off pulling image "x"`}}},
		{Namespace: "kube-system", Name: "weave-net-x", Containers: []facts.WaitingContainer{{Name: "i", Reason: "CrashLoopBackOff"}}},
		{Namespace: "kgpu-notebook", Name: "notebook", Unscheduled: since, Scheduler: "no card"},
	}
	if got := s.told().API.Waiting; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Pods of all namespaces that wait for a node with cards are told, with the scheduler's words: so many that one can read them.
func TestStatusOfPodsThatWaitForCards(t *testing.T) {
	t.Parallel()
	wants := object{"containers": []any{object{"name": "c", "resources": object{"limits": object{"nvidia.com/gpu": "2"}}}}}
	pending := object{"phase": "Pending", "conditions": []any{object{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available:\n1 Insufficient nvidia.com/gpu."}}}
	var all []any
	for i := range 70 {
		all = append(all, object{"kind": "Pod", "metadata": object{"name": fmt.Sprint("train-", i), "namespace": "ml"}, "spec": wants, "status": pending})
	}
	for _, many := range []int{70, 2} {
		s := newSandbox(t)
		s.write("etc/kubernetes/admin.conf", "")
		s.kubectlStub("v1.6.13", asKubectl(t, object{"items": append(all[:many:many], object{"kind": "Pod", "metadata": object{"name": "idle", "namespace": "ml"}, "spec": object{}, "status": pending})}))
		api := s.told().API
		told, count := 50, 70
		if many < told {
			told, count = many, 0
		}
		if len(api.Pods) != told || api.UnscheduledGPUPods != count || api.Pods[1].Name != "train-1" || api.Pods[1].Requests["nvidia.com/gpu"] != 2 ||
			api.Pods[1].Scheduler != "0/1 nodes are available:\n1 Insufficient nvidia.com/gpu." {
			t.Errorf("of %d: %d and %d, %+v", many, len(api.Pods), api.UnscheduledGPUPods, api.Pods[1])
		}
	}
}

// A host tries the next of flannel's hosts in a ring, and the DNS that its kubelet gives to pods.
func TestStatusOfThePodNetwork(t *testing.T) {
	t.Parallel()
	for own, peer := range map[string]string{"10.244.0.1/24": "10.244.2.0", "10.244.3.1/24": "10.244.10.0", "10.244.11.1/24": "10.244.2.0"} {
		s := newSandbox(t)
		s.write("run/flannel/subnet.env", "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET="+own+"\nFLANNEL_MTU=1450\n")
		s.write("var/lib/kubelet/config.yaml", "cgroupDriver: systemd\nclusterDNS:\n- 10.96.0.10\nclusterDomain: cluster.local\n")
		s.stub("ip", "#!/bin/sh\nfor n in 10 2; do echo \"10.244.$n.0/24 via 10.244.$n.0 dev flannel.1 onlink \"; done; echo '10.244.0.0/24 dev cni0 proto kernel'\n")
		s.stub("timeout", `#!/bin/bash
case $* in
*/dev/tcp/*' 10.96.0.10 53') exit 124 ;;
*/dev/tcp/*' '*' 9') echo 'connect: Connection refused' >&2; exit 1 ;;
esac
exec /usr/bin/timeout "$@"
`)
		got := s.told()
		if got.Peer != (facts.Probe{Address: netip.MustParseAddr(peer)}) || got.DNS != (facts.Probe{Address: netip.MustParseAddr("10.96.0.10"), Silent: true}) || got.PodSubnet.String() != own {
			t.Errorf("%s: %+v", own, got)
		}
	}
}
