package scripts

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// etcdHost is a host of a cluster whose runtime shows fakes of etcd's tools in etcd's image. A snapshot is a file with a word; data that is
// made of it has the word in its db. Where there is a file /etcdutl-fails, that tool fails.
func etcdHost(t *testing.T) *sandbox {
	t.Helper()
	s := clusterHost(t)
	s.stub("ctr", `#!/bin/bash
echo "ctr $*" >>/tmp/calls
case "$*" in
*"images mount"*) at=${*: -1}; [[ $* == *registry.k8s.io/etcd:3.6.8-0* ]] || exit 1
  mkdir -p "$at/usr/local/bin"; cp /tools/* "$at/usr/local/bin/" ;;
*"images unmount"*) rm -rf "${*: -1}"/* ;;
esac
`)
	s.write("tools/etcdctl", `#!/bin/bash
echo "etcdctl $*" >>/tmp/calls
if [[ $1 == snapshot ]]; then exit; fi # a status, which is not asked of a server
[[ $* == *"--cert=/etc/kubernetes/pki/etcd/healthcheck-client.crt"* ]] || exit 1
cat /var/lib/etcd/member/snap/db >"${*: -1}"
`)
	s.write("tools/etcdutl", `#!/bin/bash
echo "etcdutl $*" >>/tmp/calls
if [[ -e /etcdutl-fails ]]; then echo 'expected sha256 [1], got [2]' >&2; exit 1; fi
case "$1 $2" in
version*) echo 'etcdutl version: 3.6.8' ;;
"snapshot status") echo '{"hash":1,"revision":71,"totalKey":12,"totalSize":20480,"version":"3.6.0"}' ;;
"snapshot restore") mkdir -p "$5/member/snap"; cp "$3" "$5/member/snap/db" ;;
esac
`)
	for _, tool := range []string{"etcdctl", "etcdutl"} {
		s.must(os.Chmod(s.path("tools/"+tool), 0o755))
	}
	return s
}

// madePlane makes it a control plane that is up, with this data.
func (s *sandbox) madePlane(data string) {
	s.t.Helper()
	s.write("etc/kubernetes/manifests/etcd.yaml", "spec:\n  containers:\n  - command:\n    - etcd\n    image: registry.k8s.io/etcd:3.6.8-0\n")
	s.write("etc/kubernetes/manifests/kube-apiserver.yaml", "    - --encryption-provider-config=/etc/kubernetes/kgpu/encryption.yaml\n")
	s.write("etc/kubernetes/kgpu/encryption.yaml", "THE-KEY\n")
	s.write("etc/kubernetes/admin.conf", "x")
	for _, name := range planeKeys {
		s.write("etc/kubernetes/pki/"+name, "now "+name)
	}
	s.write("etc/kubernetes/pki/etcd/healthcheck-client.crt", "x")
	s.write("var/lib/etcd/member/snap/db", data)
	s.write("var/units/kubelet.service", "loaded,active,enabled\n")
}

var planeKeys = []string{"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd/ca.crt", "etcd/ca.key", "sa.key", "sa.pub"}

// sent puts there what kgpu sends for a restore of this data.
func (s *sandbox) sent(data string) {
	s.t.Helper()
	from := s.t.TempDir()
	for _, name := range planeKeys {
		file := filepath.Join(from, "pki", name)
		s.must(os.MkdirAll(filepath.Dir(file), 0o755))
		s.must(os.WriteFile(file, []byte("then "+name), 0o600))
	}
	s.must(os.WriteFile(filepath.Join(from, "encryption.yaml"), []byte("THEIR-KEY\n"), 0o600))
	tar, err := exec.Command("tar", "-C", from, "-c", "pki", "encryption.yaml").Output()
	s.must(err)
	s.value("archive", "5a5a\n")
	s.value("size", "1000")
	s.ok(s.step("restore-begin"))
	s.write("var/lib/kgpu/restore/etcd.db", data)
	s.write("var/lib/kgpu/restore/files.tar", string(tar))
	s.value("sums", fmt.Sprintf("%x etcd.db\n%x files.tar\n", sha256.Sum256([]byte(data)), sha256.Sum256(tar)))
	s.value("address", "10.0.0.10")
	s.value("peers", "cp1=https://10.0.0.10:2380")
	s.value("token", "kgpu-5a5a5a5a5a5a5a5a-0000000000000001")
	s.write("tmp/calls", "")
}

// TestBackup takes what is asked for into a folder that only root reads, and nothing of it stays.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := etcdHost(t)
	s.madePlane("then")
	s.write("var/lib/kgpu/ledger/000001/kind", "dir\n")
	s.write("var/lib/kgpu/backup/etcd.db", "of one that was killed")
	s.write("run/kgpu-etcd-image/usr/local/bin/etcd", "as of one that was killed while an image was mounted")
	s.value("etcd", "yes")
	s.ok(s.step("backup-take"))
	s.holds("var/lib/kgpu/backup/etcd.db", "then")
	s.absent("run/kgpu-etcd-image")
	for name, want := range map[string]os.FileMode{"": 0o700, "/etcd.db": 0o600, "/files.tar": 0o600, "/ledger.tar": 0o600} {
		info, err := os.Stat(s.path("var/lib/kgpu/backup" + name))
		s.must(err)
		if info.Mode().Perm() != want {
			t.Errorf("the mode of backup%s is %s", name, info.Mode())
		}
	}
	names := s.ok(s.bash("cd /var/lib/kgpu/backup && tar -tf files.tar && tar -tf ledger.tar && ls")).output
	contains(t, names, "pki/ca.key", "kubeadm-config.yaml", "encryption.yaml", "ledger/000001/kind")
	lacks(t, names, "tools")
	contains(t, s.read(stepDir+"/out/about"), "etcd\t3.6.8", "encrypted\tyes")
	contains(t, s.read(stepDir+"/out/snapshot"), `"revision":71`)
	contains(t, s.read(stepDir+"/out/files"), fmt.Sprintf("etcd.db\t4\t%x\n", sha256.Sum256([]byte("then"))), "files.tar\t", "ledger.tar\t")
	lacks(t, s.calls(), "THE-KEY")
	s.ok(s.step("backup-clear"))
	s.absent("var/lib/kgpu/backup")
}

// TestBackupOfAWorker has its ledger only; a snapshot that is not whole is none, and none is taken that no restore could read.
func TestBackupOfAWorker(t *testing.T) {
	t.Parallel()
	s := etcdHost(t)
	s.write("var/lib/kgpu/ledger/000001/kind", "dir\n")
	s.ok(s.step("backup-take"))
	if got := s.read(stepDir + "/out/files"); !strings.HasPrefix(got, "ledger.tar\t") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
	s.madePlane("then")
	s.value("etcd", "yes")
	s.write("etcdutl-fails", "")
	s.fails(s.step("backup-take"), 1, "BACKUP_FAILED")
	s.remove("etcdutl-fails")
	s.remove("tools/etcdutl")
	r := s.step("backup-take")
	s.fails(r, 1, "BACKUP_FAILED")
	contains(t, r.failure, "has no etcdutl")
}

// TestRestoreInPlace: the data is that of the snapshot, what was there is kept and goes with a reset; while there is no data, etcd's
// manifest is away. However often and wherever it was cut off, it comes to the same end.
func TestRestoreInPlace(t *testing.T) {
	t.Parallel()
	s := etcdHost(t)
	s.madePlane("now")
	s.sent("then")
	s.write("etcdutl-fails", "")
	s.fails(s.step("restore-data"), 1, "RESTORE_FAILED")
	s.holds("var/lib/etcd/member/snap/db", "now")
	s.remove("etcdutl-fails")
	s.calls()
	s.ok(s.step("restore-data"))
	contains(t, s.calls(), "--name w1 --initial-advertise-peer-urls https://10.0.0.10:2380 --initial-cluster cp1=https://10.0.0.10:2380 "+
		"--initial-cluster-token kgpu-5a5a5a5a5a5a5a5a-0000000000000001 --bump-revision 1000000000 --mark-compacted")
	s.restored()
	s.ok(s.step("restore-data"))
	s.restored()
	if seen := strings.TrimSpace(s.ok(s.bash("ls -d /var/lib/etcd.before-*")).output); strings.Count(seen, "\n") != 0 {
		t.Errorf("kept twice: %s", seen)
	}
	s.remove("var/lib/kgpu/restore/restored") // as if the host had died when the data was in its place
	s.ok(s.step("restore-data"))
	s.restored()
	s.holds("var/lib/kgpu/restore/restored", "kgpu-5a5a5a5a5a5a5a5a-0000000000000001 cp1=https://10.0.0.10:2380\n")
	s.write("var/lib/etcd/member/snap/db", "what came since")
	s.remove("etc/kubernetes/manifests/etcd.yaml") // as if the host had died before it was back
	s.ok(s.step("restore-data"))
	s.holds("var/lib/etcd/member/snap/db", "what came since") // other members may count on it
	contains(t, s.read("etc/kubernetes/manifests/etcd.yaml"), "registry.k8s.io/etcd")
	s.absent("var/lib/kgpu/upgrading")
	s.value("token", "kgpu-5a5a5a5a5a5a5a5a-0000000000000002")
	s.value("upgrade", "yes") // the data is of another version
	s.write("etcdutl-fails", "")
	s.fails(s.step("restore-data"), 1, "RESTORE_FAILED")
	s.holds("var/lib/kgpu/restore/restored", "none\n") // or other members would go on with the former etcd
	s.absent("var/lib/kgpu/upgrading")
	s.remove("etcdutl-fails")
	s.ok(s.step("restore-data"))
	s.restored()
	s.holds("var/lib/kgpu/upgrading", "plane\n")
	s.ok(s.script("undo_all"))
	if stays, err := filepath.Glob(s.path("var/lib/etcd.before-*")); err != nil || len(stays) > 0 {
		t.Errorf("%q, %v", stays, err)
	}
}

// restored fails unless this host has what sent brought, and what it had is kept.
func (s *sandbox) restored() {
	s.t.Helper()
	s.holds("var/lib/etcd/member/snap/db", "then")
	s.holds("etc/kubernetes/pki/ca.key", "then ca.key")
	s.holds("etc/kubernetes/kgpu/encryption.yaml", "THEIR-KEY\n")
	contains(s.t, s.read("etc/kubernetes/manifests/etcd.yaml"), "registry.k8s.io/etcd")
	kept, err := filepath.Glob(s.path("var/lib/etcd.before-*/member/snap/db"))
	s.must(err)
	if len(kept) != 1 || readFile(s.t, kept[0]) != "now" {
		s.t.Errorf("kept: %q", kept)
	}
}

// TestRestoreOfSomethingElse: what did not arrive whole is not put in the place of anything.
func TestRestoreOfSomethingElse(t *testing.T) {
	t.Parallel()
	s := etcdHost(t)
	s.madePlane("now")
	s.sent("then")
	s.write("var/lib/kgpu/restore/etcd.db", "thEn")
	s.fails(s.step("restore-data"), 1, "RESTORE_FAILED")
	s.holds("var/lib/etcd/member/snap/db", "now")
	lacks(t, s.calls(), "etcdutl")
	s.value("archive", "6b6b\n")
	s.ok(s.step("restore-begin"))
	s.absent("var/lib/kgpu/restore/etcd.db") // of another archive
}

// TestRestoreAfterOneOfAnotherArchive: what the host had before the first one is what is kept, and etcd's manifest comes back.
func TestRestoreAfterOneOfAnotherArchive(t *testing.T) {
	t.Parallel()
	s := etcdHost(t)
	s.madePlane("now")
	s.sent("first")
	s.ok(s.step("restore-data"))
	s.remove("var/lib/kgpu/restore/restored") // as if the host had died between the data and the manifest
	s.must(os.Rename(s.path("etc/kubernetes/manifests/etcd.yaml"), s.path("var/lib/kgpu/restore/etcd.yaml")))
	s.value("archive", "6b6b\n")
	s.ok(s.step("restore-begin"))
	s.sent("then")
	s.ok(s.step("restore-data"))
	s.restored()
	s.value("archive", "7c7c\n")
	s.ok(s.step("restore-begin"))
	s.holds("var/lib/kgpu/restore/restored", "none\n") // its etcd runs, and is no longer the one to go on with
}

// TestRestoreByInit: a fresh host becomes the control plane of the archive's cluster, also when kubeadm init ends half-way at first.
func TestRestoreByInit(t *testing.T) {
	t.Parallel()
	s := etcdHost(t)
	s.stub("kubeadm", `#!/bin/bash
echo "kubeadm $*" >>/tmp/calls
case "$*" in
"config images list"*) printf '%s\n' registry.k8s.io/kube-apiserver:v1.36.3 registry.k8s.io/etcd:3.6.8-0 ;;
"init --config"*) mkdir -p /etc/kubernetes/manifests; : >/etc/kubernetes/manifests/kube-apiserver.yaml; echo x >/etc/kubernetes/admin.conf
  cp /etc/kubernetes/pki/ca.key /seen-key; cp /var/lib/etcd/member/snap/db /seen-data
  if [[ -e /kubeadm-fails ]]; then echo now >/var/lib/etcd/member/snap/db; exit 1; fi ;;
esac
`)
	s.value("encryption", "/etc/kubernetes/kgpu/encryption.yaml\n")
	s.sent("then")
	s.write("kubeadm-fails", "")
	s.fails(s.step("cluster-init"), 1, "STEP_FAILED")
	s.remove("kubeadm-fails")
	s.remove("seen-data")
	s.calls()
	s.ok(s.step("cluster-init"))
	contains(t, s.calls(), "kubeadm reset -f", "--ignore-preflight-errors=DirAvailable--var-lib-etcd", "--initial-cluster cp1=https://10.0.0.10:2380")
	s.holds("seen-data", "then")
	s.holds("seen-key", "then ca.key")
	s.holds("etc/kubernetes/kgpu/encryption.yaml", "THEIR-KEY\n")
	s.ok(s.step("cluster-init"))
	lacks(t, s.calls(), "kubeadm") // or a control plane that was restored is restored again
}

// What looks like etcd in a pod is this control plane's only if it has the host's network: another one may run in a container.
func TestProgramsOfTheControlPlane(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.ok(s.script(`
mkfifo /tmp/ends
unshare --net bash -c 'read; true' </tmp/ends &
theirs=$!
exec 5>/tmp/ends
while in_own_network "/proc/$theirs"; do sleep 0.1; done
kill -0 "$theirs"
process() { # NAME CGROUP PID
  rm -rf /tmp/process
  mkdir -p /tmp/process/ns
  printf '%s\n' "$1" >/tmp/process/comm
  printf '0::%s\n' "$2" >/tmp/process/cgroup
  ln -s "/proc/$3/ns/net" /tmp/process/ns/net
}
pod=/kubepods.slice/kubepods-burstable.slice/cri-containerd-0123.scope
process etcd "$pod" "$$"
of_control_plane /tmp/process
process etcd "$pod" "$theirs"
if of_control_plane /tmp/process; then exit 1; fi
process etcd /system.slice/etcd.service "$$"
if of_control_plane /tmp/process; then exit 1; fi
process nginx "$pod" "$$"
if of_control_plane /tmp/process; then exit 1; fi`))
}

// TestRestoreEnds when the cluster knows which nodes are there: one that is ready by the data, and silent, is waited for.
func TestRestoreEnds(t *testing.T) {
	t.Parallel()
	s := etcdHost(t)
	s.sent("then")
	seen := parsed(s, string(Facts()), facts.Parse)
	if r := seen.Restoring; r == nil || r.Archive != "5a5a" || r.Done {
		t.Errorf("the facts have %+v", r)
	}
	s.stub("kubectl", `#!/bin/bash
echo "kubectl $*" >>/tmp/calls
case "$*" in
*"get --raw /readyz") echo -n ok ;;
*"get nodes"*) echo 'cp1 True'; echo 'w9 Unknown'; if [[ $(grep -c 'get nodes' /tmp/calls) -lt 3 ]]; then echo 'w1 True'; else echo 'w1 Unknown'; fi ;;
*"get lease cp1"*) date -u +%FT%T.000000Z ;;
*"get daemonset kube-proxy"*) echo k8s-app=kube-proxy, ;;
*"get lease w1"*) echo 2026-01-01T00:00:00.000000Z ;;
*"get pods"*)
  looks=$(grep -c 'get pods' /tmp/calls)
  printf '%s\n' 'w1 old-1' 'w9 old-9'
  if [[ $looks -lt 3 ]]; then echo 'cp1 old-0'; fi
  if [[ $looks -gt 3 ]]; then echo 'cp1 new-0'; else echo ' new-0'; fi ;; # it has no node yet
esac
`)
	s.value("agents", "kube-system/daemonset/kube-proxy\nkube-flannel/daemonset/kube-flannel-ds\n")
	r := s.ok(s.step("restore-end"))
	contains(t, s.read("tmp/calls"), "-n kube-system delete pods --wait=false -l k8s-app=kube-proxy\n")
	lacks(t, s.read("tmp/calls"), "-n kube-flannel delete")
	contains(t, r.output, "what the cluster says of its nodes: w1", "kube-system/kube-proxy to begin anew: on cp1\n")
	if n := strings.Count(s.read("tmp/calls"), "get pods"); n != 4 { // before they are deleted, while they end, without a node, and with one
		t.Errorf("it looked at the pods %d times", n)
	}
	s.absent("var/lib/kgpu/restore")
	if !s.exists("var/lib/kgpu/unproven") || !s.exists("var/lib/kgpu/network-unproven") {
		t.Error("the proofs are not owed")
	}
	s.sent("then")
	s.write("tmp/calls", strings.Repeat("get nodes, get pods\n", 4)) // from now on nothing changes
	s.write(stepDir+"/timeout", "15\n")
	contains(t, s.ok(s.step("restore-end")).output, "!\tkube-system/kube-proxy does not make new pods: on cp1\n")
	s.absent("var/lib/kgpu/restore")
	s.remove(stepDir + "/timeout")
	s.sent("then")
	s.remove(stepDir + "/values/agents")
	s.write("tmp/calls", "")
	s.ok(s.step("restore-end")) // one of several that end before the last
	s.absent("var/lib/kgpu/restore")
	lacks(t, s.read("tmp/calls"), "kubectl")
	for _, note := range []string{"unproven", "network-unproven"} {
		s.absent("var/lib/kgpu/" + note) // or two control planes owe the same proofs
	}
	if seen := parsed(s, string(Facts()), facts.Parse); seen.Restoring != nil {
		t.Errorf("the facts have %+v", seen.Restoring)
	}
}
