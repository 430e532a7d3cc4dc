package scripts

import (
	"strings"
	"testing"
)

// warnings are what a step's output warns of.
func (r result) warnings() string {
	var out strings.Builder
	for line := range strings.Lines(r.output) {
		if text, ok := strings.CutPrefix(line, "!\t"); ok {
			out.WriteString(text)
		}
	}
	return out.String()
}

// warningHost is a clusterHost whose kubeadm says first what is in /says.
func warningHost(t *testing.T) *sandbox {
	t.Helper()
	s := clusterHost(t)
	s.stub("kubeadm", strings.Replace(s.read("stubs/kubeadm"), "#!/bin/bash\n", "#!/bin/bash\ncat /says >&2\n", 1))
	return s
}

// What kubeadm warns of is told as warnings, also where it fails, and stays in the log.
func TestKubeadmWarns(t *testing.T) {
	t.Parallel()
	const says = "[preflight] Running pre-flight checks\n" +
		"\t[WARNING Swap]: swap is supported for cgroup v2 only\n" +
		"W1126 00:16:28.431991    2634 checks.go:907] detected that the sandbox image \"pause:3.8\" is inconsistent\n" +
		"W1126 00:16:28.431991    2634 kubelet.go:43] [kubelet-start] WARNING: unable to start the kubelet service: [exit status 1]\n" +
		"[preflight] WARNING: firewalld is active\n" + // of 1.8
		"I1126 00:16:28.431991    2634 version.go:261] [config] WARNING: no warning to us\n" +
		"a line with [WARNING Swap]: in it\n"
	const want = "kubeadm: Swap: swap is supported for cgroup v2 only\n" +
		"kubeadm: detected that the sandbox image \"pause:3.8\" is inconsistent\n" +
		"kubeadm: [kubelet-start] unable to start the kubelet service: [exit status 1]\n" +
		"kubeadm: [preflight] firewalld is active\n"
	for _, step := range []string{"cluster-join", "cluster-token"} {
		s := warningHost(t)
		s.write("says", says)
		s.value("ttl", "24h")
		r := s.ok(s.step(step))
		if got := r.warnings(); got != want {
			t.Errorf("%s warns of\n%s", step, got)
		}
		if step == "cluster-join" && !strings.Contains(r.output, says) {
			t.Errorf("the log is\n%s", r.output)
		}
	}
	s := warningHost(t)
	s.write("says", says)
	if got := s.ok(s.step("cluster-init")).warnings(); got != want+want { // it pulls the images first
		t.Errorf("cluster-init warns of\n%s", got)
	}
	s = warningHost(t)
	s.write("says", says)
	s.write("kubeadm-fails", "[ERROR Port-10250]: Port 10250 is in use\n")
	r := s.step("cluster-join")
	s.fails(r, 1, "HOST_PORT_TAKEN")
	if got := r.warnings(); got != want {
		t.Errorf("a join that fails warns of\n%s", got)
	}
}

// A warning that kgpu causes, or has answered, is for nobody; its like is.
func TestKubeadmWarningsForNobody(t *testing.T) {
	t.Parallel()
	s := warningHost(t)
	for _, c := range []struct{ version, says, want string }{
		{"1.36.3-1.1", "\t[WARNING SystemVerification]: cgroups v1 support is deprecated and will be removed in a future release.\n", ""},
		{"1.33.2-1.1", "\t[WARNING SystemVerification]: cgroups v1 support is in maintenance mode, please migrate to cgroups v2\n",
			"kubeadm: SystemVerification: cgroups v1 support is in maintenance mode, please migrate to cgroups v2\n"},
		{"1.36.3-1.1", "\t[WARNING SystemVerification]: missing optional cgroups: hugetlb\n", "kubeadm: SystemVerification: missing optional cgroups: hugetlb\n"},
		{"1.36.3-1.1", "\t[WARNING Hostname]: hostname \"w1\" could not be reached\n\t[WARNING Hostname]: hostname \"w1\": lookup w1 on 10.0.0.2:53: no such host\n", ""},
		{"1.36.3-1.1", "\t[WARNING Hostname]: invalid node name format \"W_1\": a lowercase RFC 1123 subdomain\n",
			"kubeadm: Hostname: invalid node name format \"W_1\": a lowercase RFC 1123 subdomain\n"},
		{"1.36.3-1.1", klog("utils.go:69", `The recommended value for "bindAddress" in "KubeProxyConfiguration" is: ::; the provided value is: 0.0.0.0`), ""},
		{"1.36.3-1.1", klog("utils.go:69", `The recommended value for "bindAddress" in "KubeProxyConfiguration" is: 0.0.0.0; the provided value is: 10.0.0.1`),
			"kubeadm: The recommended value for \"bindAddress\" in \"KubeProxyConfiguration\" is: 0.0.0.0; the provided value is: 10.0.0.1\n"},
		{"1.36.3-1.1", klog("endpoint.go:56", "[endpoint] WARNING: port specified in controlPlaneEndpoint overrides bindPort in the controlplane address"), ""},
		{"1.23.17-00", "\t[WARNING SystemVerification]: this Docker version is not on the list of validated versions: 28.0.1. Latest validated version: 20.10\n", ""},
		{"1.19.16-00", klog("configset.go:348", "WARNING: kubeadm cannot validate component configs for API groups [kubelet.config.k8s.io kubeproxy.config.k8s.io]"), ""},
		{"1.18.20-00", klog("manifests.go:225", `the default kube-apiserver authorization-mode is "Node,RBAC"; using "Node,RBAC"`), ""},
		{"1.18.20-00", klog("manifests.go:225", `the default kube-apiserver authorization-mode is "Node,RBAC"; using "RBAC"`),
			"kubeadm: the default kube-apiserver authorization-mode is \"Node,RBAC\"; using \"RBAC\"\n"},
		{"1.17.17-00", klog("validation.go:28", "Cannot validate kube-proxy config - no validator is available"), ""},
		{"1.10.13-00", "\t[WARNING FileExisting-crictl]: crictl not found in system path\nSuggestion: go get github.com/kubernetes-incubator/cri-tools/cmd/crictl\n", ""},
		{"1.10.13-00", "\t[WARNING FileExisting-ebtables]: ebtables not found in system path\n", "kubeadm: FileExisting-ebtables: ebtables not found in system path\n"},
		{"1.8.15-00", "[kubeadm] WARNING: kubeadm is in beta, please do not use it for production clusters.\n" +
			"[preflight] WARNING: docker version is greater than the most recently validated version. Docker version: 17.09.0-ce. Max validated version: 17.03\n" +
			"[kubeadm] WARNING: starting in 1.8, tokens expire after 24 hours by default (if you require a non-expiring token use --token-ttl 0)\n", ""},
	} {
		s.write("var/lib/dpkg/status", oldPackage(c.version))
		s.write("says", c.says)
		if got := s.ok(s.script("run_kubeadm kubeadm config")).warnings(); got != c.want {
			t.Errorf("%s, %q: it warns of %q", c.version, c.says, got)
		}
	}
}

// That the runtime is old the plan says of a containerd only.
func TestKubeadmWarnsOfTheRuntime(t *testing.T) {
	t.Parallel()
	const says = "ContainerRuntimeVersion]: You must update your container runtime to a version that supports the CRI method RuntimeConfig. Falling back\n"
	for socket, want := range map[string]string{
		"unix:///run/containerd/containerd.sock": "",
		"unix:///run/cri-dockerd.sock":           "kubeadm: " + strings.Replace(says, "]", "", 1),
	} {
		s := warningHost(t)
		s.write("says", "\t[WARNING "+says)
		s.value("criSocket", socket)
		if got := s.ok(s.step("cluster-join")).warnings(); got != want {
			t.Errorf("%s: it warns of %q", socket, got)
		}
	}
}

// klog is a warning as klog writes it.
func klog(place, text string) string {
	return "W1126 00:16:28.431991    2634 " + place + "] " + text + "\n"
}

// What kubeadm reset could not do, kgpu does itself.
func TestKubeadmResetWarnsOfNothing(t *testing.T) {
	t.Parallel()
	s := warningHost(t)
	s.write("says", klog("reset.go:141", "[reset] Unable to fetch the kubeadm-config ConfigMap from cluster: failed to get config map: connection refused")+
		klog("removeetcdmember.go:105", "[reset] No kubeadm config, using etcd pod spec to get data directory")+
		klog("cleanupnode.go:87", `[reset] Skipping unmount of directories in "/var/lib/kubelet": no such file or directory`))
	r := s.ok(s.script(`leave_cluster "$(value criSocket)"`))
	if calls := s.calls(); !strings.Contains(calls, "kubeadm reset") || r.warnings() != "" || !strings.Contains(r.output, "Skipping unmount") {
		t.Errorf("it warns of %q, and says\n%s", r.warnings(), r.output)
	}
}
