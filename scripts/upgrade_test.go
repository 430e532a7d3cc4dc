package scripts

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// upgradeHost is a host of a cluster, whose kubeadm and apt do nothing but say what they were asked. kubeadm fails with what is in
// /kubeadm-fails, once. /kubelet-config is the configuration of kubelets that the cluster has.
func upgradeHost(t *testing.T) *sandbox {
	t.Helper()
	s := clusterHost(t)
	s.stub("kubeadm", `#!/bin/bash
echo "kubeadm $*; $(cat /var/lib/kgpu/upgrading 2>/dev/null) begun" >>/tmp/calls
if [[ -e /kubeadm-fails ]]; then cat /kubeadm-fails; rm /kubeadm-fails; exit 1; fi
`)
	s.stub("kubectl", strings.Replace(s.read("stubs/kubectl"), `case "$*" in`, `case "$*" in
*"get configmap kubelet-config"*) cat /kubelet-config ;;
*"create configmap kubelet-config --from-file=kubelet="*) all=$*; file=${all#*=kubelet=}; cat "${file%% *}" ;;
*"apply --server-side"*) cp "${@: -1}" /kubelet-config ;;
*"get node w1 -o go-template={{.status.nodeInfo.kubeletVersion}}"*) [[ -e /tmp/installed ]] && echo v1.36.3 ;;`, 1))
	s.library("apt_install_version() { echo \"apt $*\" >>/tmp/calls; : >/tmp/installed; }\nhold() { echo \"hold $*\" >>/tmp/calls; }\n")
	s.value("version", "1.36.3")
	return s
}

// TestUpgradeOfAControlPlane: what is begun is noted until it is done, and facts tell it. It is done when this host's own API server is
// ready, whoever else answers.
func TestUpgradeOfAControlPlane(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		"apply": "kubeadm upgrade apply v1.36.3 -y --ignore-preflight-errors=NumCPU; plane begun\n",
		"node":  "kubeadm upgrade node --ignore-preflight-errors=NumCPU; plane begun\n",
	} {
		s := upgradeHost(t)
		s.value("how", how)
		s.value("flags", "--ignore-preflight-errors=NumCPU")
		s.write("kubeadm-fails", "error execution phase control-plane: couldn't upgrade control plane: it broke\n")
		s.fails(s.step("cluster-upgrade"), 1, "UPGRADE_FAILED")
		if f := s.facts(); f.Upgrading != "plane" {
			t.Errorf("after a failure facts tell %q", f.Upgrading)
		}
		s.calls()
		s.ok(s.step("cluster-upgrade"))
		contains(t, s.calls(), want, "--server https://")
		if f := s.facts(); f.Upgrading != "" {
			t.Errorf("afterwards facts tell %q", f.Upgrading)
		}
	}
}

// planned is a file that a step is given, as the plans that are kept first show it.
func planned(t *testing.T, step, path string) string {
	t.Helper()
	_, text, _ := strings.Cut(readFile(t, "../bootstrap/plan/testdata/inputs/os.golden"), "\n"+step+" #1: ")
	_, text, there := strings.Cut(text, "\n  file "+path+" ")
	if !there {
		t.Fatalf("no plan gives %s a file %s", step, path)
	}
	var file strings.Builder
	for line := range strings.Lines(text[strings.Index(text, "\n")+1:]) {
		line, within := strings.CutPrefix(line, "    ")
		if !within {
			break
		}
		file.WriteString(line)
	}
	return file.String()
}

// keptAddress sets keepalived up as plans do. The host has the virtual address until the check of its API server has failed twice.
func (s *sandbox) keptAddress() {
	s.t.Helper()
	s.write("etc/keepalived/keepalived.conf", planned(s.t, "os/keepalived", "/etc/keepalived/keepalived.conf"))
	s.write("etc/keepalived/kgpu-api-check", planned(s.t, "os/keepalived", "/etc/keepalived/kgpu-api-check"))
	s.must(os.Chmod(s.path("etc/keepalived/kgpu-api-check"), 0o755))
	s.ok(s.script("record virtual-ip 10.0.0.100 eth0"))
	s.stub("curl", "#!/bin/sh\nprintf 200\n")
	s.stub("sleep", "#!/bin/sh\n")
	s.stub("ip", `#!/bin/bash
[[ "$*" == "-o -4 address show dev eth0 to 10.0.0.100" ]] || exit 1
if /etc/keepalived/kgpu-api-check || [[ $(grep -c holds /tmp/calls) -lt 2 ]]; then echo holds | tee -a /tmp/calls; fi
`)
}

// keeps wants the check of the API server to succeed: the host may have the virtual address.
func (s *sandbox) keeps() {
	s.t.Helper()
	s.ok(s.bash("/etc/keepalived/kgpu-api-check"))
}

// TestVirtualIPGoesBeforeTheAPIServer: another control plane has the virtual address before the API server restarts, in every step that
// restarts it on purpose, and this one may have it again when the step has ended, however it did. Where there is no other, nobody waits
// for one.
func TestVirtualIPGoesBeforeTheAPIServer(t *testing.T) {
	t.Parallel()
	s := upgradeHost(t)
	s.keptAddress()
	s.stub("kubeadm", strings.Replace(s.read("stubs/kubeadm"), "\n", "\n/etc/keepalived/kgpu-api-check || echo away >>/tmp/calls\n", 1))
	s.value("how", "node")
	run := func(want ...string) {
		t.Helper()
		s.keeps()
		s.write("tmp/calls", "")
		said := s.ok(s.step("cluster-upgrade")).output
		if did := regexp.MustCompile("(?m)^(holds|away|kubeadm .*)$").FindAllString(s.calls(), -1); !slices.Equal(did, want) {
			t.Errorf("it did %q, want %q", did, want)
		}
		if got, want := strings.Count(said, "W\tanother control plane to take the virtual address\n"), min(len(want)-1, 1); got != want {
			t.Errorf("it says %d times what it waits for, want %d:\n%s", got, want, said)
		}
		s.keeps()
	}
	const upgrade = "kubeadm upgrade node; plane begun"
	run("holds", "holds", "away", upgrade)
	conf := s.read("etc/keepalived/keepalived.conf")
	s.write("etc/keepalived/keepalived.conf", strings.ReplaceAll(conf, "unicast", "no"))
	run(upgrade)
	s.write("etc/keepalived/keepalived.conf", conf)
	s.write("kubeadm-fails", "error execution phase control-plane: it broke\n")
	s.fails(s.step("cluster-upgrade"), 1, "UPGRADE_FAILED")
	s.keeps()
	for worker, want := range map[string]int{"yes": 0, "no": 2} {
		s.write("tmp/calls", "")
		s.value("worker", worker)
		s.ok(s.step("kube-upgrade"))
		if got := strings.Count(s.calls(), "holds\n"); got != want {
			t.Errorf("a kubelet's upgrade, of a worker: %s, looked %d times who has the address, want %d", worker, got, want)
		}
	}

	s = certifiedPlane(t)
	s.keptAddress()
	s.value("renew", "all")
	s.ok(s.step("certs-renew"))
	if calls := s.calls(); strings.LastIndex(calls, "holds") < strings.Index(calls, "kubeadm certs renew") || strings.LastIndex(calls, "holds") > strings.Index(calls, "restart") {
		t.Errorf("a renewal did\n%s", calls)
	}
	s.keeps()
}

// TestUpgradeThatIsSlow: what passes is tried again; what does not, is not.
func TestUpgradeThatIsSlow(t *testing.T) {
	t.Parallel()
	s := upgradeHost(t)
	s.value("how", "apply")
	for says, want := range map[string]struct {
		status int
		reason string
	}{
		"static Pod hash for component kube-apiserver on Node cp1 did not change after 5m0s: timed out waiting for the condition\n": {75, "UPGRADE_FAILED"},
		"\t[ERROR ImagePull]: failed to pull image registry.k8s.io/kube-apiserver:v1.36.3: toomanyrequests: slow down\n":            {75, "REGISTRY_BUSY"},
		"\t[ERROR ControlPlaneNodesReady]: there are NotReady control-planes in the cluster: [cp1]\n":                               {1, "STEP_FAILED"},
		"[upgrade/version] FATAL: the --version argument is invalid due to these fatal errors:\n- kubelets are too old\n":           {1, "UPGRADE_FAILED"},
	} {
		s.write("kubeadm-fails", says)
		s.fails(s.step("cluster-upgrade"), want.status, want.reason)
	}
}

// TestGatesOfAnUpgrade: kubelets get the gates that the version needs, and keep what their owner has said of them.
func TestGatesOfAnUpgrade(t *testing.T) {
	t.Parallel()
	s := upgradeHost(t)
	s.value("how", "apply")
	s.value("gates", "ExtendWebSocketsToKubelet=false")
	const kind, gates, off = "kind: KubeletConfiguration\n", "featureGates:\n", "  ExtendWebSocketsToKubelet: false\n"
	for have, want := range map[string]string{
		kind:                                    kind + gates + off,
		gates + "  NodeLogQuery: true\n" + kind: gates + off + "  NodeLogQuery: true\n" + kind,
		gates + "  ExtendWebSocketsToKubelet: true\n" + kind: gates + "  ExtendWebSocketsToKubelet: true\n" + kind,
	} {
		s.write("kubelet-config", have)
		s.ok(s.step("cluster-upgrade"))
		if got := s.read("kubelet-config"); got != want {
			t.Errorf("of\n%s became\n%s", have, got)
		}
	}
}

// TestUpgradeOfAKubelet: a worker's configuration comes first, and the step ends when the cluster knows the new kubelet.
func TestUpgradeOfAKubelet(t *testing.T) {
	t.Parallel()
	for worker, want := range map[string]string{
		"yes": "kubeadm upgrade node; node begun\napt 1.36.3 kubelet kubectl\nhold kubelet kubeadm kubectl\n",
		"no":  "apt 1.36.3 kubelet kubectl\nhold kubelet kubeadm kubectl\n",
	} {
		s := upgradeHost(t)
		s.value("worker", worker)
		s.ok(s.step("kube-upgrade"))
		if calls := s.calls(); !strings.HasPrefix(calls, want) {
			t.Errorf("worker %s: it did\n%s", worker, calls)
		}
		contains(t, s.read("var/units.log"), "restart -- kubelet.service")
		s.absent("var/lib/kgpu/upgrading")
	}
	s := upgradeHost(t)
	s.value("version", "1.36.3; reboot")
	s.fails(s.step("kube-upgrade"), 1, "STEP_FAILED")
	s.absent("tmp/calls")
}

// TestSnapshot: what etcd has is kept for root alone, if it is whole; of several the newest three. An image without etcdutl has what checks
// a snapshot in etcdctl.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	s := etcdHost(t)
	s.madePlane("")
	for _, version := range []string{"1.34.1", "1.35.1", "1.36.2", "1.36.3"} {
		s.write("var/lib/etcd/member/snap/db", "as of "+version)
		s.value("version", version)
		s.ok(s.step("cluster-snapshot"))
	}
	const dir = "var/lib/kgpu/snapshots/"
	s.absent(dir + "etcd-1.34.1.db")
	s.absent(dir + ".new")
	for _, version := range []string{"1.35.1", "1.36.2", "1.36.3"} {
		s.holds(dir+"etcd-"+version+".db", "as of "+version)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, "etcd-1.36.3.db": 0o600} {
		if info, err := os.Stat(s.path(dir + name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
	s.write("var/lib/etcd/member/snap/db", "another")
	s.write("etcdutl-fails", "")
	s.fails(s.step("cluster-snapshot"), 1, "UPGRADE_SNAPSHOT")
	s.holds(dir+"etcd-1.36.3.db", "as of 1.36.3")
	s.remove("etcdutl-fails")
	s.remove("tools/etcdutl")
	s.calls()
	s.ok(s.step("cluster-snapshot"))
	s.holds(dir+"etcd-1.36.3.db", "another")
	contains(t, s.calls(), "etcdctl snapshot status")
	s.remove("var/lib/etcd/member/snap/db")
	s.fails(s.step("cluster-snapshot"), 75, "UPGRADE_SNAPSHOT")
	s.holds(dir+"etcd-1.36.3.db", "another")
}

// TestDeprecated: what the host's own API server counts is told, with the objects that were last written by it; what no version
// takes away is not, nor a name that is none.
func TestDeprecated(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	const metric = "apiserver_requested_deprecated_apis"
	s.write("metrics", "# TYPE "+metric+" gauge\n"+
		metric+`{group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="",version="v1beta3"} 1`+"\n"+
		metric+`{group="flowcontrol.apiserver.k8s.io",removed_release="1.32",resource="flowschemas",subresource="status",version="v1beta3"} 1`+"\n"+
		metric+`{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1`+"\n"+
		metric+`{group="",removed_release="1.40",resource="$(reboot)",subresource="",version="v1"} 1`+"\n"+
		metric+`{group="",removed_release="1.40",resource="widgets",subresource="",version="v1"} 0`+"\n")
	s.write("etc/kubernetes/manifests/kube-apiserver.yaml", "    - --advertise-address=10.0.0.11\n    - --tls-cert-file=/etc/kubernetes/pki/apiserver.crt\n")
	s.stub("kubectl", `#!/bin/bash
[[ "$*" == *"--server https://10.0.0.11:6443 "* ]] || exit 1
case "$*" in
*"get --raw /metrics") cat /metrics ;;
*"get flowschemas.v1beta3.flowcontrol.apiserver.k8s.io --all-namespaces"*'eq .apiVersion "flowcontrol.apiserver.k8s.io/v1beta3"'*) printf 'object=flowschemas kubectl /mine\n%.0s' 1 2 ;;
*) exit 1 ;;
esac
`)
	got := parsed(s, stubbed(Deprecated()), facts.ParseDeprecated)
	want := []facts.Deprecated{
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas", Removed: "1.32", Objects: []string{"mine (kubectl)"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it tells %+v", got)
	}
}

// TestUndoOfAnUpgrade: that a package was upgraded stays where its owner had it, and is no word worth where kgpu brought it.
func TestUndoOfAnUpgrade(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	r := s.ok(s.script(`mkdir -p "$ledger"
entry_begin packages kubectl kubelet; entry_commit
entry_begin packages; printf '%s\n' 'kubelet [1.36.2-1.1] (1.36.3-1.1 lab [amd64])' 'libfoo1 [1] (2 debian [amd64])' >"$entry/before/upgraded"; entry_commit
undo_left() { echo "left: $1"; }
undo_packages_away() { :; }
undo_kept() { :; }
before=$ledger/$(ledger_last)/before
undo_packages`))
	if r.output != "left: the upgrade of libfoo1 [1] (2 debian [amd64])\n" {
		t.Errorf("it says\n%s", r.output)
	}
}
