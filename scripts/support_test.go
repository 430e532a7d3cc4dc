package scripts

import (
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/records/support"
)

// supported runs support.sh with the sandbox's stubs in front and little patience.
func (s *sandbox) supported() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, e := range parsed(s, strings.ReplaceAll(stubbed(Support()), "patience=20", "patience=1"), support.Read) {
		out[e.Name] = string(e.Content)
	}
	return out
}

// TestSupport holds that the script changes nothing, tells what kgpu did, and takes no keys.
func TestSupport(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/os-release", "ID=debian\n")
	s.write("var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n")
	s.write("etc/kubernetes/admin.conf", "client-key-data: the-key\n")
	s.write("etc/kubernetes/pki/ca.key", "the-key\n")
	s.write("etc/kubernetes/manifests/etcd.yaml", "kind: Pod\n")
	s.write("var/lib/kgpu/run/20260701-120000-abcdef-1/events", "B\tos/swap\t1\nE\t0\n")
	s.write("var/lib/kgpu/run/20260701-120000-abcdef-1/steps/01/values/token", "the-key")
	s.stub("kubectl", "#!/bin/sh\nmkdir -p \"$HOME/.kube/cache\"\necho \"kubectl $*\"\n")
	s.ok(s.script("put_file /etc/ours.conf 644 <<<x"))
	before := s.snapshot()
	got := s.supported()
	s.same(before)
	for name, want := range map[string]string{
		"machine":                      "ID=debian",
		"df":                           "Filesystem",
		"kubelet-config":               "KubeletConfiguration",
		"run-20260701-120000-abcdef-1": "B\tos/swap",
		"ledger":                       "/etc/ours.conf",
		"cluster-pods":                 "--request-timeout=10s get pods --all-namespaces",
		"cluster-device-plugin":        "nvidia-device-plugin",
		"ip-address":                   "LOOPBACK",
		"nvidia-smi":                   "there is no nvidia-smi here",
	} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s: %q, want %q in it", name, got[name], want)
		}
	}
	for name, content := range got {
		if strings.Contains(content, "the-key") {
			t.Errorf("%s has a key: %q", name, content)
		}
	}
}

// TestSupportOfSickPrograms holds that neither a program that hangs, whatever one does to it, nor one that prints without
// an end keeps the rest from being told.
func TestSupportOfSickPrograms(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	// Nobody can end what left the group, and it holds the pipe: as if it were stuck in the kernel.
	s.stub("nvidia-smi", "#!/bin/sh\necho begun\nsetsid sh -c 'trap \"\" TERM; sleep 20' &\nwait\n")
	s.stub("lspci", "#!/bin/sh\nexec yes\n")
	s.stub("lsblk", "#!/bin/sh\necho broken >&2\nexit 7\n")
	got := s.supported()
	if !strings.Contains(got["nvidia-smi"], "begun\n") || !strings.Contains(got["nvidia-smi"], "[it hangs]") {
		t.Errorf("nvidia-smi: %q", got["nvidia-smi"])
	}
	if n := len(got["lspci"]); n == 0 || n > 262144 {
		t.Errorf("lspci: %d bytes", n)
	}
	if got["blocks"] != "broken\n\n[exit status 7]\n" {
		t.Errorf("blocks: %q", got["blocks"])
	}
}
