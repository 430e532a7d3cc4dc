package scripts

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// oldHost is a clusterHost with the packages of an old version, whose kubectl knows no flags of later ones.
func oldHost(t *testing.T, version string) *sandbox {
	t.Helper()
	s := clusterHost(t)
	s.write("var/lib/dpkg/status", oldPackage(version))
	s.stub("kubectl", `#!/bin/bash
echo "kubectl $*" >>/tmp/calls
case "$*" in
*--cache-dir* | *--server-side* | *--wait=* | *-emptydir-* | *-A* | *--field-selector*) echo "Error: unknown flag" >&2; exit 1 ;;
*"get --raw /healthz") echo -n ok ;;
*"get node w1 --ignore-not-found -o name") echo nodes/w1 ;;
*"get secrets -o name") printf 'secrets/default-token-x\nsecret/bootstrap-token-abcdef\n' ;;
esac
`)
	return s
}

// oldPackage is what dpkg knows of kubectl.
func oldPackage(version string) string {
	return "Package: kubectl\nStatus: install ok installed\nPriority: optional\nSection: misc\nMaintainer: x <x@example.com>\n" +
		"Architecture: amd64\nVersion: " + version + "\nDescription: x\n\n"
}

func TestInitOfOldVersions(t *testing.T) {
	t.Parallel()
	for version, c := range map[string]struct{ want, not []string }{
		"1.6.13-00": {[]string{"init --config " + stepDir + "/values/kubeadm --skip-preflight-checks\n"}, []string{"images pull", "--skip-token-print"}},
		"1.8.15-00": {[]string{"--skip-preflight-checks --skip-token-print\n"}, []string{"images pull"}},
	} {
		s := oldHost(t, version)
		s.value("flags", "--skip-preflight-checks\n")
		s.ok(s.step("cluster-init"))
		calls := s.calls()
		for _, text := range append(c.want, "delete secrets bootstrap-token-abcdef\n") {
			if !strings.Contains(calls, text) {
				t.Errorf("%s: no %q in\n%s", version, text, calls)
			}
		}
		for _, text := range c.not {
			if strings.Contains(calls, text) {
				t.Errorf("%s: %q in\n%s", version, text, calls)
			}
		}
	}
}

// kubeadm 1.6 prints its token.
func TestInitTellsNoToken(t *testing.T) {
	t.Parallel()
	s := oldHost(t, "1.6.13-00")
	s.write("kubeadm-fails", "[token] Using token: abcdef.0123456789abcdef\nerror: no\n")
	r := s.step("cluster-init")
	s.fails(r, 1, "STEP_FAILED")
	if strings.Contains(r.output+s.read(stepDir+"/kubeadm.log"), "0123456789abcdef") || !strings.Contains(r.output, "Using token: (token)") {
		t.Errorf("it says:\n%s", r.output)
	}
}

func TestTokenOfOldVersions(t *testing.T) {
	t.Parallel()
	s := oldHost(t, "1.8.15-00")
	s.stub("kubeadm", "#!/bin/bash\necho \"kubeadm $*\" >>/tmp/calls\necho '[kubeadm] WARNING: a warning'\necho abcdef.0123456789abcdef\n")
	s.write("etc/ssl/openssl.cnf", "[req]\ndistinguished_name=name\n[name]\n")
	s.ok(s.script("mkdir -p /etc/kubernetes/pki && openssl req -x509 -newkey rsa:2048 -nodes -keyout /dev/null -subj /CN=kubernetes -out /etc/kubernetes/pki/ca.crt 2>/dev/null"))
	s.value("ttl", "24h")
	r := s.ok(s.step("cluster-token"))
	if calls := s.calls(); !strings.Contains(calls, "token create") || strings.Contains(calls, "--print-join-command") {
		t.Errorf("calls:\n%s", calls)
	}
	s.holds(stepDir+"/out/token", "abcdef.0123456789abcdef\n")
	lacks(t, r.output, "abcdef.")
	// The hash is what facts make of the same certificate.
	encoded := strings.TrimSpace(s.ok(s.script("base64 -w 0 /etc/kubernetes/pki/ca.crt")).output)
	h, err := facts.Parse([]byte("kgpu-facts=1\nnow=1.0\ncpus=1\nmemory-kib=1\nledger=0\ncontrol-plane=1\ncluster-ca=" + encoded + "\nend=1\n"))
	must(t, err)
	if got := s.read(stepDir + "/out/ca_hash"); got != "sha256:"+h.ControlPlane.CAHash+"\n" {
		t.Errorf("hash %q, facts have %q", got, h.ControlPlane.CAHash)
	}
}

func TestResetOfOldVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"1.8.15-00":  "kubeadm reset\n",
		"1.10.13-00": "kubeadm reset --cri-socket unix:///run/containerd/containerd.sock\n",
		"1.11.10-00": "kubeadm reset -f --cri-socket unix:///run/containerd/containerd.sock\n",
	} {
		s := oldHost(t, version)
		s.ok(s.script(`leave_cluster "$(value criSocket)"`))
		if calls := s.calls(); calls != want {
			t.Errorf("%s: %q, want %q", version, calls, want)
		}
	}
}

func TestApplyAndDrainOfOldVersions(t *testing.T) {
	t.Parallel()
	s := oldHost(t, "1.9.11-00")
	s.value("manifest", "kind: x\n")
	s.value("title", "x")
	s.value("workload", "x/daemonset/x")
	s.ok(s.step("addon-apply"))
	s.ok(s.step("node-evict"))
	calls := s.calls()
	contains(t, calls, " apply -f ", " drain w1 --ignore-daemonsets --delete-local-data ")
}

// A drop-in that changes restarts a kubelet that runs, one that is there already does not, and nothing of it stays in the end.
func TestKubeletDropIn(t *testing.T) {
	t.Parallel()
	const path = "etc/systemd/system/kubelet.service.d/90-kgpu.conf"
	s := newSandbox(t)
	s.repository(deb{name: "kubelet", version: "1.6.13-00"}, deb{name: "kubeadm", version: "1.6.13-00"}, deb{name: "kubectl", version: "1.6.13-00"})
	s.write("var/units/kubelet.service", "loaded,active,enabled\n")
	s.value("version", "1.6.13")
	s.file("/"+path, "[Service]\n")
	s.ok(s.step("kube-packages"))
	contains(t, s.read("var/units.log"), "daemon-reload \n", "restart -- kubelet.service\n")
	s.remove("var/units.log")
	s.ok(s.step("kube-packages"))
	lacks(t, s.read("var/units.log"), "daemon-reload", "restart")
	s.ok(s.script("undo_all"))
	s.absent(path, "etc/systemd/system/kubelet.service.d")
}

// Old versions of kubectl hide pods that have ended, and know no wait.
func TestSmokeOfOldVersions(t *testing.T) {
	t.Parallel()
	s := smokeHost(t)
	s.write("var/lib/dpkg/status", oldPackage("1.9.11-00"))
	s.stub("kubectl", strings.NewReplacer("-l kgpu.dev/smoke ", "-l kgpu.dev/smoke --show-all ", " --wait=false", "", "job.batch", "jobs", "/readyz", "/healthz").Replace(s.read("stubs/kubectl")))
	s.pods(1, smokePods(nil))
	s.allLooked()
	s.ok(s.step("gpu-smoke"))
}

func TestAcceleratorsWithoutDevices(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.fails(s.step("gpu-accelerators"), 1, "GPU_DRIVER_MISSING")
	s.detail("the driver has made no /dev/nvidiactl\n")
}

// What kubectl makes of nodes by the template of facts.sh is read as the cards that they offer under both names.
func TestCardsInFacts(t *testing.T) {
	t.Parallel()
	node := func(name string, allocatable object) object {
		return object{
			"kind": "Node", "metadata": object{"name": name, "labels": object{}},
			"status": object{"allocatable": allocatable, "nodeInfo": object{"kubeletVersion": "v1.9.11", "containerRuntimeVersion": "docker://17.3.2"}},
			"spec":   object{},
		}
	}
	var lines strings.Builder
	err := template.Must(template.New("").Parse(clusterTemplate(t, Facts()))).Execute(&lines, object{"items": []any{
		node("old", object{"cpu": "4", "alpha.kubernetes.io/nvidia-gpu": "2"}),
		node("both", object{"nvidia.com/gpu": "3", "alpha.kubernetes.io/nvidia-gpu": "2"}),
		node("new", object{"nvidia.com/gpu": "3"}),
		node("none", object{"cpu": "4"}),
	}})
	must(t, err)
	text := "kgpu-facts=1\nnow=1.0\ncpus=1\nmemory-kib=1\nledger=0\ncontrol-plane=1\napi=1\n"
	for line := range strings.Lines(lines.String()) {
		if strings.TrimSpace(line) != "" {
			text += "cluster=" + line
		}
	}
	h, err := facts.Parse([]byte(text + "end=1\n"))
	must(t, err)
	var got []string
	for _, n := range h.Cluster.Nodes {
		got = append(got, fmt.Sprint(n.Name, " ", n.Allocatable["nvidia.com/gpu"], " ", n.Allocatable["alpha.kubernetes.io/nvidia-gpu"]))
	}
	if want := []string{"old 0 2", "both 3 2", "new 3 0", "none 0 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The linker's cache tells where the driver is: the libraries of this machine's kind, the names that programs look for, and
// of a name the first path.
func TestDriverFilesInFacts(t *testing.T) {
	t.Parallel()
	found := regexp.MustCompile(`(?s)\n  # What a container needs of the driver.*?\n  \)\n`).Find(Facts())
	if found == nil {
		t.Fatal("facts.sh does not look for the driver's files")
	}
	s := newSandbox(t)
	for _, path := range []string{"opt/nvidia-375/libcuda.so.375.82", "opt/nvidia-375/libnvidia-ml.so.375.82", "opt/32/libcuda.so.1", "opt/second/libcuda.so.1"} {
		s.write(path, "")
	}
	s.must(os.Symlink("libcuda.so.375.82", s.path("opt/nvidia-375/libcuda.so.1")))
	s.must(os.Symlink("libnvidia-ml.so.375.82", s.path("opt/nvidia-375/libnvidia-ml.so.1")))
	s.stub("nvidia-smi", "#!/bin/sh\n")
	s.stub("ldconfig", `#!/bin/sh
cat <<'END'
9 libs found in cache '/etc/ld.so.cache'
	libnvidia-ml.so.1 (libc6,x86-64, OS ABI: Linux 2.3.99) => /opt/nvidia-375/libnvidia-ml.so.1
	libnvidia-gone.so.1 (libc6,x86-64) => /opt/gone
	libcudart.so.8 (libc6,x86-64) => /opt/second/libcuda.so.1
	libcuda.so.1 (libc6) => /opt/32/libcuda.so.1
	libcuda.so.1 (libc6,x86-64) => /opt/nvidia-375/libcuda.so.1
	libcuda.so.1 (libc6,x86-64) => /opt/second/libcuda.so.1
	libcuda.so (libc6,x86-64) => /opt/second/libcuda.so.1
	libnvidia-cfg.so.1 (libc6,x86-64) => /opt/not/there
END
`)
	want := "nvidia-file=libnvidia-ml.so.1 /opt/nvidia-375/libnvidia-ml.so.375.82\nnvidia-file=libcuda.so.1 /opt/nvidia-375/libcuda.so.375.82\n" +
		"nvidia-file=nvidia-smi /stubs/nvidia-smi\n"
	if got := s.ok(s.bash(string(found))).output; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
