package scripts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// clusterHost is a sandbox in which kubeadm and kubectl only do what a test of the scripts needs of them, and write down
// what they were asked. kubeadm fails when /kubeadm-fails is there, in the way that a half-way death leaves things. Each line of
// /fails is a part of a call of kubectl that fails, once, and after a tab what it says. The API server is not ready while
// /api-down is there.
func clusterHost(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.stub("kubeadm", `#!/bin/bash
echo "kubeadm $*" >>/tmp/calls
case "$1 $2" in
"init --config") mkdir -p /etc/kubernetes/manifests; : >/etc/kubernetes/manifests/kube-apiserver.yaml
  if [[ -e /kubeadm-fails ]]; then cat /kubeadm-fails; exit 1; fi; : >/etc/kubernetes/admin.conf
  if [[ -e /ca ]]; then mkdir -p /etc/kubernetes/pki; cp /ca /etc/kubernetes/pki/ca.crt; echo x >/etc/kubernetes/admin.conf; fi ;;
"join --config") mkdir -p /etc/kubernetes; echo "    server: https://10.0.0.10:6443" >/etc/kubernetes/kubelet.conf
  if [[ -e /kubeadm-fails ]]; then cat /kubeadm-fails; exit 1; fi; echo u1 >/node-is-there
  if [[ -e /ca ]]; then mkdir -p /etc/kubernetes/pki; cp /ca /etc/kubernetes/pki/ca.crt; fi
  if [[ -e /plane ]]; then bash /plane; fi ;;
"init phase") cat /printed ;;
"reset -f") rm -f /node-is-there ;;
"token create") echo "kubeadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:00ff " ;;
esac
exit 0
`)
	s.stub("kubectl", `#!/bin/bash
echo "kubectl $*" >>/tmp/calls
if [[ -s /fails ]]; then
  IFS=$'\t' read -r part words </fails
  if [[ $* == *"$part"* ]]; then sed -i 1d /fails; echo "$words" >&2; exit 1; fi
fi
case "$*" in
*"get --raw /readyz") [[ -e /api-down ]] || echo -n ok ;;
*"--ignore-not-found -o name") [[ -e /no-add-ons ]] || echo "$5/$6" ;;
*"get --raw /api/v1/nodes/"*)
  if [[ ! -e /node-is-there ]]; then echo 'Error from server (NotFound): nodes "w1" not found' >&2; exit 1; fi
  printf '{"metadata":{"name":"w1","uid":"%s"}}' "$(</node-is-there)" ;;
*get\ nodes,*) cat /cluster ;;
*get\ pods\ -l\ k8s-app=kube-dns*) [[ ! -e /dns ]] || cat /dns ;;
*delete\ pod\ coredns-*) mv /dns-then /dns ;;
*get\ node\ w1*labels*) [[ ! -e /labels ]] || cat /labels ;;
*get\ secrets*) cat /tokens ;;
*get\ daemonset\ calico-node*) [[ ! -e /environment ]] || cat /environment ;;
esac
`)
	s.stub("timeout", `#!/bin/bash
[[ $* != */dev/tcp/* ]] || exit 0
exec /usr/bin/timeout "$@"
`)
	s.write("var/units/kubelet.service", "loaded,active,enabled\n")
	s.value("criSocket", "unix:///run/containerd/containerd.sock")
	s.value("endpoint", "10.0.0.10:6443")
	s.value("node", "w1")
	s.value("kubeadm", "token: hidden-secret\n")
	return s
}

// calls returns what kubeadm and kubectl were asked since the last time.
func (s *sandbox) calls() string {
	s.t.Helper()
	text := s.read("tmp/calls")
	s.write("tmp/calls", "")
	return text
}

func TestInit(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	r := s.ok(s.step("cluster-init"))
	calls := s.calls()
	contains(t, calls, "kubeadm init --config "+stepDir+"/values/kubeadm --skip-token-print")
	lacks(t, calls, "kubeadm reset")
	contains(t, calls, "delete secrets --field-selector type=bootstrap.kubernetes.io/token") // that kubeadm init makes
	lacks(t, calls+r.output, "hidden-secret")
	s.ok(s.step("cluster-init"))
	lacks(t, s.calls(), "kubeadm") // or a finished control plane was touched
}

// A kubelet that somebody stopped runs again, now and at boot where kgpu had it so. Of one that was taken over its owner decides that.
func TestStoppedKubelet(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{"": "loaded,active,enabled\n", "record adopted worker": "loaded,active,disabled\n"} {
		s := clusterHost(t)
		s.ok(s.script(before))
		s.write("var/units/kubelet.service", "loaded,failed,disabled\n")
		s.twice("kube-start")
		s.holds("var/units/kubelet.service", want)
	}
	s := clusterHost(t)
	s.remove("var/units/kubelet.service")
	s.fails(s.step("kube-start"), 1, "STEP_FAILED")
}

func TestInitAfterOneThatDied(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("kubeadm-fails", "[preflight] Some fatal errors occurred:\n\t[ERROR Port-6443]: Port 6443 is in use\n")
	s.fails(s.step("cluster-init"), 1, "HOST_PORT_TAKEN")
	s.calls()
	s.remove("kubeadm-fails")
	s.ok(s.step("cluster-init"))
	calls := s.calls()
	reset, again := strings.Index(calls, "kubeadm reset -f"), strings.Index(calls, "kubeadm init")
	if reset < 0 || again < reset {
		t.Errorf("calls:\n%s", calls)
	}
}

func TestForeignClusterIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"cluster-init", "cluster-join"} {
		s := clusterHost(t)
		s.write("etc/kubernetes/kubelet.conf", "theirs")
		s.write("tmp/calls", "")
		before := s.snapshot()
		s.fails(s.step(step), 1, "HOST_FOREIGN_CLUSTER")
		s.same(before)
		if calls := s.calls(); strings.Contains(calls, "kubeadm") {
			t.Errorf("%s: %s", step, calls)
		}
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("var/units/kubelet.service", "loaded,active,enabled\n")
	s.write("kubeadm-fails", "error execution phase kubelet-start: timed out\n")
	s.fails(s.step("cluster-join"), 1, "STEP_FAILED")
	lacks(t, s.calls(), "reset")
	s.remove("kubeadm-fails")
	r := s.ok(s.step("cluster-join"))
	if calls := s.calls(); !strings.Contains(calls, "kubeadm reset -f") || !strings.Contains(calls, "kubeadm join --config") || strings.Contains(calls+r.output, "hidden-secret") {
		t.Errorf("a half-joined host: calls:\n%s", calls)
	}
	s.write("node-is-there", "u1\n")
	s.ok(s.step("cluster-join"))
	lacks(t, s.calls(), "kubeadm") // or a member joined again
	s.remove("node-is-there")
	s.ok(s.step("cluster-join"))
	contains(t, s.calls(), "kubeadm reset -f") // its node is gone
}

func TestToken(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.value("ttl", "24h")
	s.value("prove", "yes")
	r := s.ok(s.step("cluster-token"))
	if !s.exists("var/lib/kgpu/network-unproven") {
		t.Error("a run that is cut off after a join would not know that the network is to be proven")
	}
	contains(t, s.read("tmp/calls"), " --ttl 24h ")
	if got := s.read(stepDir+"/out/token") + s.read(stepDir+"/out/ca_hash"); got != "abcdef.0123456789abcdef\nsha256:00ff\n" {
		t.Errorf("outputs %q", got)
	}
	lacks(t, r.output+s.calls(), "abcdef.")
	// This run's, one of a run that was interrupted, somebody else's, and one that says nothing of itself.
	s.write("tokens", "bootstrap-token-abcdef a2dwdSBqb2lu\nbootstrap-token-ghijkl a2dwdSBqb2lu\nbootstrap-token-others bWluZQ==\nbootstrap-token-silent <no value>\n")
	s.ok(s.step("cluster-untoken"))
	contains(t, s.calls(), "delete secrets --ignore-not-found bootstrap-token-abcdef bootstrap-token-ghijkl\n")
	s.write("tokens", "bootstrap-token-others bWluZQ==\n")
	s.ok(s.step("cluster-untoken"))
	lacks(t, s.calls(), "delete") // there are no tokens of kgpu's
}

func TestNodes(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("node-is-there", "u1\n")
	s.value("nodes", "w1\tlabel\tdisk=fast\nw2\ttaint\tgpu=yes:NoSchedule\nw1\tlabel\tnode-role.kubernetes.io/worker=\n")
	s.ok(s.step("cluster-nodes"))
	calls := s.calls()
	contains(t, calls, "label --overwrite node w1 disk=fast node-role.kubernetes.io/worker=\n",
		"taint --overwrite node w2 gpu=yes:NoSchedule\n")
}

// A taint that is gone already, or never came, does not keep another one.
func TestNodesUntainted(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("node-is-there", "u1\n")
	s.write("fails", "taint --overwrite node w1 x/new-\terror: taint \"x/new\" not found\n")
	s.value("nodes", "w1\tuntaint\tx/new\nw1\tuntaint\tx/old\n")
	s.ok(s.step("cluster-nodes"))
	calls := s.calls()
	contains(t, calls, "taint --overwrite node w1 x/new-\n", "taint --overwrite node w1 x/old-\n")
}

// What is refused is not tried again.
func TestNodesRefused(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("node-is-there", "u1\n")
	s.value("nodes", "w1\tlabel\tdisk=fast\n")
	for _, words := range []string{
		`The Node "w1" is invalid: metadata.labels: Invalid value: "fast!": a valid label must be an empty string`,
		`error: invalid label value: "disk=fast!": a valid label must be an empty string`,
		"Error from server (BadRequest): the body of the request was in an unknown format",
	} {
		s.write("fails", "label --overwrite\t"+words+"\n")
		r := s.step("cluster-nodes")
		s.fails(r, 1, "STEP_FAILED")
		contains(t, r.output, words)
	}
}

// What can be done again is, where the API server was too busy for it once.
func TestWritesThatTimeOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ step, fails string }{
		"labels":      {"cluster-nodes", "label --overwrite"},
		"annotations": {"cluster-nodes", "annotate --overwrite"},
		"taints":      {"cluster-nodes", "taint --overwrite"},
		"a node":      {"node-delete", "delete node w1"},
		"tokens":      {"cluster-untoken", "delete secrets"},
		"add-ons":     {"cluster-init", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterHost(t)
			s.write("node-is-there", "u1\n")
			s.write("tokens", "bootstrap-token-abcdef a2dwdSBqb2lu\n")
			s.value("nodes", "w1\tlabel\tdisk=fast\nw1\tannotation\ta=b\nw1\ttaint\tgpu=yes:NoSchedule\n")
			if c.fails != "" {
				s.write("fails", c.fails+"\tError from server (Timeout): the server was unable to return a response\n")
			} else {
				s.write("etc/kubernetes/admin.conf", "")
				s.ok(s.script("record kubeadm init"))
				s.stub("kubeadm", "#!/bin/bash\n[[ $* != *addon* || -e /again ]] || { : >/again; exit 1; }\n")
			}
			s.fails(s.step(c.step), 75, "API_UNREACHABLE")
			s.ok(s.step(c.step))
		})
	}
}

// The API server has as long to say that it is ready as what follows gives it, and less when there is less.
func TestAPIReadyIsPatient(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	for limit, want := range map[string]string{"600": "--request-timeout=30s get", "0": "--request-timeout=5s get"} {
		s.write(stepDir+"/timeout", limit)
		s.ok(s.script("api_ready"))
		if calls := s.calls(); !strings.Contains(calls, want) {
			t.Errorf("with a limit of %s s it asks %s", limit, calls)
		}
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.value("nodes", "cp1\nw1\n")
	s.value("workloads", "kube-system/daemonset/weave-net\nkube-system/deployment/coredns\n")
	const ready = "node cp1 NetworkUnavailable=False Ready=True\nnode w1 Ready=True\nnode w10 Ready=False\n" +
		"kube-system/daemonset/weave-net 3 2 2\nkube-system/deployment/coredns 2 2 2\n" // w10 is away and not asked for
	s.write("cluster", ready)
	s.ok(s.step("cluster-ready"))
	s.write(stepDir+"/timeout", "0")
	s.write("cluster", strings.Replace(ready, "coredns 2 2 2", "coredns 2 1 2", 1)) // the other one was on w10
	s.ok(s.step("cluster-ready"))
	for name, c := range map[string]struct{ cluster, late string }{
		"node":                 {strings.Replace(ready, "node w1 Ready=True", "node w1 Ready=False", 1), "node w1"},
		"node is not there":    {strings.Replace(ready, "node w1 Ready=True\n", "", 1), "node w1"},
		"network of a node":    {strings.Replace(ready, "NetworkUnavailable=False", "NetworkUnavailable=True", 1), "node cp1"},
		"old pods":             {strings.Replace(ready, "weave-net 3 2 2", "weave-net 3 2 1", 1), "kube-system/daemonset/weave-net (2 of 3)"},
		"no pod of a node":     {strings.Replace(ready, "weave-net 3 2 2", "weave-net 3 1 2", 1), "kube-system/daemonset/weave-net (1 of 3)"},
		"nobody is away":       {strings.Replace(ready, "node w10 Ready=False", "node w10 Ready=True", 1), "kube-system/daemonset/weave-net (2 of 3)"},
		"a deployment":         {strings.Replace(ready, "coredns 2 2 2", "coredns 3 1 3", 1), "kube-system/deployment/coredns (1 of 3)"},
		"none of the only one": {strings.Replace(ready, "coredns 2 2 2", "coredns 1 0 1", 1), "kube-system/deployment/coredns (0 of 1)"},
		"no pods":              {strings.Replace(ready, "weave-net 3 2 2", "weave-net 0 0 0", 1), "kube-system/daemonset/weave-net (0 of 0)"},
		"workload is missing":  {strings.Replace(ready, "kube-system/deployment/coredns 2 2 2\n", "", 1), "kube-system/deployment/coredns (0 of ?)"},
	} {
		s.write("cluster", c.cluster)
		s.fails(s.step("cluster-ready"), 1, "NODE_NOT_READY")
		if got := s.read(stepDir + "/failure"); got != "NODE_NOT_READY\tnot ready: "+c.late+"\n" {
			t.Errorf("%s: %q", name, got)
		}
	}
	// What is under pressure takes no pods; to wait for that alone would be for nothing.
	full := strings.Replace(ready, "node w1 Ready=True", "node w1 MemoryPressure=False DiskPressure=True Ready=True", 1)
	for late, c := range map[string]struct{ cluster, timeout string }{
		"node w1 (DiskPressure)": {full, "600"},
		"node w1 (DiskPressure), kube-system/deployment/coredns (1 of 3)": {strings.Replace(full, "coredns 2 2 2", "coredns 3 1 3", 1), "0"},
	} {
		s.write("cluster", c.cluster)
		s.write(stepDir+"/timeout", c.timeout)
		s.fails(s.step("cluster-ready"), 1, "NODE_PRESSURE")
		s.holds(stepDir+"/failure", "NODE_PRESSURE\tnot ready: "+late+"\n")
	}
	s.write("cluster", strings.ReplaceAll(ready, "Ready=True", "Ready=False"))
	s.value("network", "none")
	s.ok(s.step("cluster-ready"))
}

// Of pods that do not come while all nodes are ready, it says what keeps the first of them.
func TestReadyTellsWhatKeepsAPod(t *testing.T) {
	t.Parallel()
	pods := template.Must(template.New("").Parse(quoted(t, stepText(t, "cluster-ready"), "stuck_template")))
	pod := func(name string, status object) object {
		return object{"metadata": object{"name": name}, "status": status}
	}
	waiting := func(state object) object {
		return object{"containerStatuses": []any{object{"name": "c", "state": object{"waiting": state}}}}
	}
	other := pod("weave-net-1", conditions(object{"type": "PodScheduled", "status": "False", "message": "of another workload"}))
	for name, c := range map[string]struct {
		pod  object
		node string
		want string
	}{
		"a taint":                      {pod("coredns-1", conditions(object{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }. preemption: none"})), "True", "; pod kube-system/coredns-1: 0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }; node.kubernetes.io/disk-pressure on cp1, w1"},
		"a taint that is not named":    {pod("coredns-1", conditions(object{"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 2 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."})), "True", "; pod kube-system/coredns-1: 0/2 nodes are available: 2 node(s) had untolerated taint(s); node.kubernetes.io/disk-pressure on cp1, w1"},
		"a program that fails":         {pod("coredns-1", waiting(object{"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"})), "True", "; pod kube-system/coredns-1: CrashLoopBackOff: back-off 10s restarting; its log ends: [FATAL] plugin/loop: Loop detected [31m"},
		"an init container that fails": {pod("coredns-1", object{"initContainerStatuses": []any{object{"name": "c", "state": object{"waiting": object{"reason": "CrashLoopBackOff"}}}}}), "True", "; pod kube-system/coredns-1: CrashLoopBackOff; its log ends: [FATAL] plugin/loop: Loop detected [31m"},
		"no node is ready for it":      {pod("coredns-1", waiting(object{"reason": "CrashLoopBackOff"})), "False", "; pod kube-system/coredns-1: CrashLoopBackOff; its log ends: [FATAL] plugin/loop: Loop detected [31m"},
		"a reason without words":       {pod("coredns-1", waiting(object{"reason": "CreateContainerError"})), "True", "; pod kube-system/coredns-1: CreateContainerError"},
		"it starts":                    {pod("coredns-1", waiting(object{"reason": "ContainerCreating"})), "True", ""},
		"its init containers run":      {pod("coredns-1", waiting(object{"reason": "PodInitializing"})), "True", ""},
		"it runs":                      {pod("coredns-1", conditions(object{"type": "PodScheduled", "status": "True"})), "True", ""},
		"the node is not ready itself": {pod("coredns-1", conditions(object{"type": "PodScheduled", "status": "False", "message": "not ready"})), "False", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.stub("kubectl", `#!/bin/bash
case $* in
  *' get nodes,'*) cat /cluster ;;
  *' -n kube-system get pods -o'*) cat /pods ;;
  *' -n kube-system logs coredns-1 -c c '*) printf 'begins\n[FATAL] plugin/loop: Loop detected \033[31m\n\n' ;;
  *' get nodes -o'*) printf '%s node.kubernetes.io/disk-pressure\n' cp1 w1; echo cp1 node-role.kubernetes.io/control-plane ;;
esac
`)
			var out strings.Builder
			must(t, pods.Execute(&out, object{"items": []any{other, c.pod}}))
			s.write("pods", out.String())
			s.write("cluster", "node cp1 Ready="+c.node+"\nkube-system/deployment/coredns 2 0 2\n")
			s.write(stepDir+"/timeout", "0")
			s.value("nodes", "cp1\n")
			s.value("workloads", "kube-system/deployment/coredns\n")
			s.fails(s.step("cluster-ready"), 1, "NODE_NOT_READY")
			if got := strings.TrimSpace(s.read(stepDir + "/failure")); !strings.HasSuffix(got, "kube-system/deployment/coredns (0 of 2)"+c.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// The DNS does not stay on one of several nodes: one of its pods comes on another, and is waited for.
func TestDNSIsSpread(t *testing.T) {
	t.Parallel()
	pods := template.Must(template.New("").Parse(quoted(t, stepText(t, "cluster-ready"), "dns_template")))
	pod := func(name, node, ready string, more object) object {
		meta := object{"name": name}
		maps.Copy(meta, more)
		return object{"metadata": meta, "spec": object{"nodeName": node}, "status": object{"conditions": []any{
			object{"type": "Initialized", "status": "True"}, object{"type": "Ready", "status": ready},
		}}}
	}
	a, b := pod("coredns-a", "cp1", "True", nil), pod("coredns-b", "cp1", "True", nil)
	ends := pod("coredns-a", "cp1", "True", object{"deletionTimestamp": "2026-01-01T00:00:00Z"})
	const dns = "kube-system/deployment/coredns"
	for name, c := range map[string]struct {
		nodes, workloads string
		before, then     []any
		deletes          bool
		late             string // what is waited for in vain
	}{
		"on one of two nodes":    {"cp1\nw1\n", dns, []any{a, b}, []any{ends, b, pod("coredns-c", "w1", "True", nil)}, true, ""},
		"the new one is no good": {"cp1\nw1\n", dns, []any{a, b}, []any{ends, b, pod("coredns-c", "w1", "False", nil)}, true, dns + " (1 of 2)"},
		"on two nodes":           {"cp1\nw1\n", dns, []any{a, pod("coredns-b", "w1", "True", nil)}, nil, false, ""},
		"one goes already":       {"cp1\nw1\n", dns, []any{ends, b}, nil, false, ""},
		"one is not ready":       {"cp1\nw1\n", dns, []any{a, pod("coredns-b", "cp1", "False", nil)}, nil, false, ""},
		"the only node":          {"cp1\n", dns, []any{a, b}, nil, false, ""},
		"somebody else's":        {"cp1\nw1\n", "kube-system/daemonset/kube-proxy", []any{a, b}, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterHost(t)
			for file, list := range map[string][]any{"dns": c.before, "dns-then": c.then} {
				var out strings.Builder
				must(t, pods.Execute(&out, object{"items": list}))
				s.write(file, out.String())
			}
			s.value("nodes", c.nodes)
			s.value("workloads", c.workloads+"\n")
			s.write("cluster", "node cp1 Ready=True\nnode w1 Ready=True\n"+c.workloads+" 2 2 2\n") // older than the pod's end
			s.write(stepDir+"/timeout", "0")
			if c.late == "" {
				s.ok(s.step("cluster-ready"))
			} else {
				s.fails(s.step("cluster-ready"), 1, "NODE_NOT_READY")
				s.holds(stepDir+"/failure", "NODE_NOT_READY\tnot ready: "+c.late+"\n")
			}
			if calls := s.calls(); strings.Contains(calls, "-n kube-system delete pod coredns-a --wait=false\n") != c.deletes {
				t.Errorf("calls:\n%s", calls)
			}
		})
	}
}

// A pod of a crash loop is ready for a moment now and then: one that began again just now is looked at once more.
func TestReadySeesCrashLoops(t *testing.T) {
	t.Parallel()
	pods := template.Must(template.New("").Parse(quoted(t, stepText(t, "cluster-ready"), "restarts_template")))
	for name, c := range map[string]struct {
		namespace string
		restarts  int
		ago       string // when it began, in words of date; the next time it is asked, it began a while ago
		waits     bool
	}{
		"began again":                  {"kube-flannel", 3, "now", true},
		"began again a while ago":      {"kube-flannel", 3, "1 minute ago", false},
		"began":                        {"kube-flannel", 0, "now", false},
		"somebody else's":              {"theirs", 3, "now", false},
		"by a clock that is far ahead": {"kube-flannel", 3, "1 hour", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.stub("kubectl", `#!/bin/bash
case $* in
  *' get nodes,'*) printf '%s\n' 'node cp1 Ready=True' 'kube-flannel/daemonset/kube-flannel-ds 1 1 1' ;;
  *' get pods --all-namespaces -o go-template='*) sed "s/BEGAN/$(date -u -d "$(cat /ago)" +%FT%TZ)/" /pods; echo '1 minute ago' >/ago ;;
esac
`)
			var out strings.Builder
			pod := object{"metadata": object{"namespace": c.namespace, "name": "kube-flannel-ds-x"}, "status": object{"containerStatuses": []any{
				object{"restartCount": c.restarts, "state": object{"running": object{"startedAt": "BEGAN"}}},
			}}}
			must(t, pods.Execute(&out, object{"items": []any{pod}}))
			s.write("pods", out.String())
			s.write("ago", c.ago)
			s.value("nodes", "cp1\n")
			s.value("workloads", "kube-flannel/daemonset/kube-flannel-ds\n")
			s.write(stepDir+"/timeout", "0")
			if !c.waits {
				s.ok(s.step("cluster-ready"))
				return
			}
			s.fails(s.step("cluster-ready"), 1, "NODE_NOT_READY")
			s.holds(stepDir+"/failure", "NODE_NOT_READY\tnot ready: pod kube-flannel/kube-flannel-ds-x began again just now\n")
			s.write("ago", c.ago)
			s.write(stepDir+"/timeout", "60")
			s.ok(s.step("cluster-ready"))
		})
	}
}

// An API server that does not answer is not asked for pods.
func TestReadyWithoutAPIServer(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.value("nodes", "cp1\n")
	s.write(stepDir+"/timeout", "0")
	s.fails(s.step("cluster-ready"), 1, "NODE_NOT_READY")
	s.holds(stepDir+"/failure", "NODE_NOT_READY\tnot ready: the API server\n")
	lacks(t, s.calls(), "-n the API server")
}

func TestResetOfAHostThatKgpuDidNotJoin(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("etc/kubernetes/kubelet.conf", "theirs")
	s.write("tmp/calls", "")
	before := s.snapshot()
	s.ok(s.script("put_file /etc/x 644 <<<x"))
	s.ok(s.step("host-reset"))
	s.same(before)
	if calls := s.calls(); calls != "" {
		t.Errorf("calls:\n%s", calls)
	}
	if !s.exists("var/lib/kgpu/forget") {
		t.Error("the runner is not told to remove its directory")
	}
}

// facts.sh runs on any machine, writes nothing, and what it prints can be read.
func TestFactsWriteNothing(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/os-release", "ID=debian\nVERSION_ID=\"13\"\nVERSION_CODENAME=trixie\n")
	s.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n")
	s.write("etc/fstab", "/swap.img none swap sw 0 0\n")
	s.repository(deb{name: "kubelet", version: "1.36.3-1.1"})
	s.ok(s.script("apt_install kubelet; hold kubelet; put_file /etc/ours.conf 644 <<<x"))
	ledger := s.entries()
	before := s.snapshot()
	h := s.facts()
	s.same(before)
	if p := h.Packages["kubelet"]; p.Version != "1.36.3-1.1" || !p.Held {
		t.Errorf("kubelet: %+v", p)
	}
	if h.Ledger != ledger || len(h.Files) != 1 || h.Files["/etc/ours.conf"] != "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac" {
		t.Errorf("ledger %d of %d, files %v", h.Ledger, ledger, slices.Collect(maps.Keys(h.Files)))
	}
	if len(h.Swap) != 1 || h.Swap[0] != (facts.Swap{Name: "/swap.img", Source: "fstab"}) {
		t.Errorf("swap: %+v", h.Swap)
	}
	if h.OS.Codename != "trixie" || h.MachineID != "0123456789abcdef0123456789abcdef" || h.CPUs == 0 || h.MemoryKiB == 0 || h.Kubelet != nil || h.ControlPlane != nil {
		t.Errorf("%+v", h)
	}
}

// Who waits leaves a slow control plane more time.
func TestPause(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.ok(s.script(`sleep() { echo "$1" >>/tmp/slept; }
pause
read -r up _ </proc/uptime; pause_ended=$((10#${up/./} + 100000)); pause # a look that took no time
pause_ended=0; pause # one that took as long as the machine is up`))
	s.holds("tmp/slept", "1.0\n1.0\n5.0\n")
}

// What the API server reads is there for nobody else before kubeadm starts it, with room for its audit log, and all of it goes.
func TestInitSecuresTheAPIServer(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.file("/etc/kubernetes/kgpu/admission.yaml", "kind: AdmissionConfiguration\n")
	s.must(os.Chmod(s.path(stepDir+"/files/etc/kubernetes/kgpu/admission.yaml"), 0o600))
	s.value("auditLog", "/var/log/kubernetes/audit")
	s.write("kubeadm-fails", "error execution phase wait-control-plane\n")
	s.fails(s.step("cluster-init"), 1, "STEP_FAILED")
	s.remove("kubeadm-fails")
	s.write("var/log/kubernetes/audit/audit.log", "{}\n")
	s.ok(s.step("cluster-init"))
	for path, mode := range map[string]os.FileMode{
		"etc/kubernetes/kgpu/admission.yaml": 0o600, "var/log/kubernetes/audit": 0o700 | os.ModeDir,
	} {
		if info, err := os.Stat(s.path(path)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, err, info)
		}
	}
	s.ok(s.script("undo_all"))
	s.absent("etc/kubernetes/kgpu", "var/log/kubernetes")
}

// The key for Secrets is made on the host, is told to nobody, and stays the same when kubeadm has to try again.
func TestInitMakesAKeyForSecrets(t *testing.T) {
	t.Parallel()
	const path = "/etc/kubernetes/kgpu/encryption.yaml"
	keys := map[string]bool{}
	for range 2 {
		s := clusterHost(t)
		s.value("encryption", path)
		s.write("kubeadm-fails", "error execution phase wait-control-plane\n")
		r := s.step("cluster-init")
		s.fails(r, 1, "STEP_FAILED")
		made := s.read(path)
		s.remove("kubeadm-fails")
		again := s.ok(s.step("cluster-init"))
		if s.read(path) != made {
			t.Error("another try made another key")
		}
		info, err := os.Stat(s.path(path))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", err, info)
		}
		key := regexp.MustCompile(`secret: ([A-Za-z0-9+/]{43}=)}`).FindStringSubmatch(made)
		if key == nil {
			t.Fatalf("no key of 32 bytes: %s", made)
		}
		keys[key[1]] = true
		if strings.Contains(r.output+again.output+s.calls(), key[1]) || s.exists(stepDir+"/values/.new") {
			t.Error("the key is told, or elsewhere")
		}
		s.ok(s.script("undo_all"))
		s.absent(path)
	}
	if len(keys) != 2 {
		t.Error("two clusters have one key")
	}
}

// Calico takes the nodes' addresses, unless its owner's manifest says which.
func TestCalicoTakesTheNodesAddresses(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("manifest.yaml", "kind: x\n")
	s.value("url", "file:///manifest.yaml")
	sum := sha256.Sum256([]byte("kind: x\n"))
	s.value("sha256", hex.EncodeToString(sum[:]))
	s.value("workload", "kube-system/daemonset/calico-node")
	s.value("title", "the pod network")
	s.value("environment", "IP_AUTODETECTION_METHOD=kubernetes-internal-ip")
	s.value("hash", "00ff")
	const set, mark = "set env daemonset/calico-node IP_AUTODETECTION_METHOD=kubernetes-internal-ip", "annotate --overwrite daemonset calico-node kgpu.dev/manifest-sha256=00ff"
	s.ok(s.step("addon-apply"))
	if calls := s.calls(); strings.Index(calls, " apply ") > strings.Index(calls, set) || !strings.Contains(calls, set) || strings.Index(calls, mark) < strings.Index(calls, set) {
		t.Errorf("calls:\n%s", calls)
	}
	s.write("fails", set+"\trefused\n")
	s.fails(s.step("addon-apply"), 75, "STEP_FAILED")
	lacks(t, s.calls(), mark) // or what is not done is marked as done
	s.write("environment", "NODENAME IP_AUTODETECTION_METHOD ")
	s.ok(s.step("addon-apply"))
	if calls := s.calls(); strings.Contains(calls, set) || !strings.Contains(calls, mark) {
		t.Errorf("the owner's choice is not kept:\n%s", calls)
	}
}

// The end of the wait is a proof: pods reach each other in a ring, and the DNS. What they do not is told with both nodes' names,
// and owed until a proof comes to its end.
func TestReadyProvesTheNetwork(t *testing.T) {
	t.Parallel()
	const owed, good = "var/lib/kgpu/network-unproven", "reached\nresolved\n"
	for name, c := range map[string]struct {
		pods    string
		then    string            // those that there are after pods were sent anew
		nodes   string            // their states; empty: all are ready
		refused string            // what kubectl says to the pods
		said    map[string]string // by node; of the others: all is well
		want    string            // the failure; empty: none
	}{
		"all is well": {},
		"nothing comes through": {
			said: map[string]string{"w1": "does not reach no answer within 5 s\ndoes not resolve no answer within 5 s\n", "w2": "reached\ndoes not resolve no answer within 5 s\n"},
			want: "NET_PODS_UNREACHABLE\ta pod on w1 does not reach a pod on w2 (10.244.2.2): no answer within 5 s",
		},
		"the last reaches the first": {
			said: map[string]string{"w2": "does not reach No route to host\nresolved\n"},
			want: "NET_PODS_UNREACHABLE\ta pod on w2 does not reach a pod on cp1 (10.244.0.2): No route to host",
		},
		"no DNS": {
			said: map[string]string{"w1": "reached\ndoes not resolve the name is not known\n"},
			want: "NET_DNS_BROKEN\ta pod on w1 does not resolve kubernetes.default: the name is not known",
		},
		"a kubelet that is not reached": {
			said: map[string]string{"w1": "fails"},
			want: "NET_PODS_UNREACHABLE\ta pod on w1 does not reach a pod on w2 (10.244.2.2): kubectl exec: error dialing backend",
		},
		"silence": {
			said: map[string]string{"w1": ""},
			want: "NET_PODS_UNREACHABLE\ta pod on w1 does not reach a pod on w2 (10.244.2.2): it does not tell why",
		},
		"a pod without an address": {
			pods: "cp1 10.244.0.2\nw1 10.244.1.2\nw2 - \"no space \\\"left\\\"\"\n",
			want: `NODE_NOT_READY	the pod of the proof on w2 does not run: no space "left"`,
		},
		"an address that is none": {
			pods: "cp1 10.244.0.2\nw1 10.244.1.2\nw2 $(reboot)\n",
			want: "NODE_NOT_READY\tthe pod of the proof on w2 does not run: it has no address",
		},
		"a pod that was evicted is made anew": {
			pods: "cp1 10.244.0.2\nw1 ended \"The node was low on resource: ephemeral-storage. \"\nw2 10.244.2.2\n",
			then: "cp1 10.244.0.2\nw1 10.244.1.2\nw2 10.244.2.2\n",
		},
		"a pod that somebody deleted is made anew": {
			pods: "cp1 10.244.0.2\nw2 10.244.2.2\n",
			then: "cp1 10.244.0.2\nw1 10.244.1.2\nw2 10.244.2.2\n",
		},
		"a pod that ends again and again": {
			pods: "cp1 10.244.0.2\nw1 ended \"Pod was rejected: node is shutting down\"\nw2 10.244.2.2\n",
			want: "NODE_NOT_READY\tthe pod of the proof on w1 does not run: Pod was rejected: node is shutting down",
		},
		"a pod that was evicted from a node under pressure": {
			pods:  "cp1 10.244.0.2\nw1 ended \"The node was low on resource: ephemeral-storage. \"\nw2 10.244.2.2\n",
			nodes: "node cp1 Ready=True\nnode w1 Ready=True DiskPressure=True\nnode w2 Ready=True\n",
			want:  "NODE_PRESSURE\tnot ready: node w1 (DiskPressure)",
		},
		"pods that nobody will take": {
			refused: `Error from server: admission webhook "policy.example.com" denied the request: no host paths`,
			want:    "STEP_FAILED\tthe API server does not take the pods of the proof: Error from server: admission webhook \"policy.example.com\" denied the request: no host paths",
		},
		"an API server that is away": {
			refused: "The connection to the server was refused",
			want:    "NODE_NOT_READY\tthe API server does not take the pods of the proof: The connection to the server was refused",
		},
		"an API server that goes away before kubectl knows its schema": {
			refused: `error: error validating "proof": error validating data: failed to download openapi: Get "https://cp1:6443/openapi/v2": dial tcp: connect: connection refused`,
			want: "NODE_NOT_READY\tthe API server does not take the pods of the proof: error: error validating \"proof\": error validating data: " +
				"failed to download openapi: Get \"https://cp1:6443/openapi/v2\": dial tcp: connect: connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterHost(t)
			s.stub("kubectl", `#!/bin/bash
echo "kubectl $*" >>/tmp/calls
while [[ $1 == --* ]]; do case $1 in --request-timeout=*) shift ;; *) shift 2 ;; esac; done
case "$*" in
*"get nodes,"*) cat /nodes; if [[ -s /under ]]; then mv /under /nodes; fi ;;
"-n kgpu-network get pods -o"*) cat /pods ;;
"apply "*) [[ ! -s /refused ]] || { cat /refused >&2; exit 1; }
  if [[ -e /sent && -s /then ]]; then mv /then /pods; fi; : >/sent ;;
"-n kgpu-network exec "*) said=$(</said.$4); [[ $said != fails ]] || { echo error dialing backend >&2; exit 1; }; printf '%s\n' "$said" ;;
esac
`)
			s.stub("timeout", "#!/bin/bash\nexec /usr/bin/timeout \"$@\"\n")
			s.write("refused", c.refused)
			s.write("nodes", "node cp1 Ready=True\nnode w1 Ready=True\nnode w2 Ready=True\n")
			s.write("under", c.nodes) // from the second look on
			s.write("then", c.then)
			s.write("pods", cmp.Or(c.pods, "cp1 10.244.0.2\nw1 10.244.1.2\nw2 10.244.2.2\n"))
			for _, node := range []string{"cp1", "w1", "w2"} {
				said, ok := c.said[node]
				if !ok {
					said = good
				}
				s.write("said."+node, said)
			}
			s.value("nodes", "cp1\nw1\nw2\n")
			s.value("proof", "the pods\n")
			if !strings.HasPrefix(c.want, "STEP_FAILED") && c.then == "" && c.nodes == "" { // which do not wait
				s.write(stepDir+"/timeout", "0")
			}
			r := s.step("cluster-ready")
			if r.failure != c.want || (r.status == 0) != (c.want == "") || s.exists(owed) != (c.want != "") {
				t.Errorf("status %d, failure %q, owed %t, output\n%s", r.status, r.failure, s.exists(owed), r.output)
			}
			calls := s.calls()
			if c.refused == "" && !strings.Contains(calls, " delete namespace kgpu-network ") || c.want == "" && !strings.Contains(calls, " exec w2 -- /bin/bash -c ") {
				t.Errorf("calls:\n%s", calls)
			}
			if told := s.facts().NetworkUnproven; told != (c.want != "") {
				t.Errorf("%t is told", told)
			}
		})
	}
}

func TestPodsOfTheProof(t *testing.T) {
	t.Parallel()
	tell := template.Must(template.New("").Parse(quoted(t, stepText(t, "cluster-ready"), "proof_template")))
	for want, status := range map[string]object{
		"w1 10.244.1.2\n":                  {"phase": "Running", "podIP": "10.244.1.2"},
		"w1 -\n":                           {"phase": "Pending"},
		"w1 - \"no space \\\"left\\\"\"\n": {"phase": "Pending", "containerStatuses": []any{object{"state": object{"waiting": object{"reason": "ErrImagePull", "message": `no space "left"`}}}}},
		"w1 ended \"The node was low on resource\"\n": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource", "podIP": "10.244.1.2"},
		"w1 ended \"OutOfpods\"\n":                    {"phase": "Failed", "reason": "OutOfpods"},
		"w1 ended \"it ended\"\n":                     {"phase": "Succeeded", "containerStatuses": []any{object{"state": object{"terminated": object{"exitCode": 0}}}}},
	} {
		var out strings.Builder
		if err := tell.Execute(&out, object{"items": []any{object{"metadata": object{"name": "w1"}, "status": status}}}); err != nil || out.String() != want {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
	}
}

// A port that is refused is one that was reached.
func TestLooksOfAPod(t *testing.T) {
	t.Parallel()
	looks := quoted(t, stepText(t, "cluster-ready"), "looks")
	for address, want := range map[string]string{"127.0.0.1": "reached\n", "255.255.255.255": "does not reach "} {
		out, err := exec.Command("/bin/bash", "-c", looks, address).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), want) || strings.Count(string(out), "resol") != 1 {
			t.Errorf("%s: %v\n%s", address, err, out)
		}
	}
}
