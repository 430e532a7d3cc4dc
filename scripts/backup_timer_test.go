package scripts

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/archive"
	"kgpu.dev/kgpu/bootstrap/facts"
)

// backingUp is a control plane, cp1 of the cluster lab, that makes backups by itself into this directory.
func backingUp(t *testing.T, to string) *sandbox {
	t.Helper()
	s := etcdHost(t)
	s.madePlane("then")
	s.write("etc/kubernetes/pki/ca.crt", authority(t))
	s.write("etc/kubernetes/admin.conf", "    server: https://10.0.0.100:6443\n")
	s.write("etc/kubernetes/manifests/kube-apiserver.yaml", "    - --encryption-provider-config=/etc/kubernetes/kgpu/encryption.yaml\n    image: registry.k8s.io/kube-apiserver:v1.36.3\n")
	s.write("var/lib/kgpu/ledger/000001/kind", "dir\n")
	s.write("var/lib/kgpu/ledger/000001/args", "/nothing\n")
	s.stub("kubectl", `#!/bin/bash
case "$*" in
*"get nodes -o"*) printf '{"id":"cp1","node":"cp1","address":"10.0.0.10","role":""},' ;;
*configmap*) echo 'kind: ConfigMap' ;;
esac
`)
	for _, unit := range []string{"timer", "service"} {
		s.write("var/units/kgpu-backup."+unit, "loaded,inactive,disabled\n") // systemd's view of the files that come
		s.file("/etc/systemd/system/kgpu-backup."+unit, "[Unit]\n")
	}
	s.must(os.MkdirAll(s.path("etc/systemd/system"), 0o755))
	s.value("to", to)
	s.value("node", "cp1")
	return s
}

// back runs the program with this directory, and so many archives that stay.
func (s *sandbox) back(to string, keep int) result {
	s.t.Helper()
	return s.bash(fmt.Sprintf("export KGPU_TO=%s KGPU_KEEP=%d KGPU_CLUSTER=lab KGPU_NODE=cp1 KGPU_SOCKET=unix:///run/containerd/containerd.sock\n"+
		"export KGPU_SETTINGS='{\"runtime\":\"containerd\"}'\n%s", to, keep, stubbed(Backup())))
}

// archives are what is in the directory, oldest first.
func (s *sandbox) archives(to string) []string {
	s.t.Helper()
	found, err := filepath.Glob(s.path(to + "/kgpu-backup-*"))
	s.must(err)
	return found
}

// TestTimerMakesArchives: what it makes is an archive of kgpu backup, for root alone; old ones go, those of others never.
func TestTimerMakesArchives(t *testing.T) {
	t.Parallel()
	const to = "var/backups/kgpu"
	s := backingUp(t, "/"+to)
	s.value("own", "yes")
	s.twice("backup-timer")
	s.holds("var/units/kgpu-backup.timer", "loaded,active,enabled\n")
	contains(t, s.read("var/units.log"), "start --no-block -- kgpu-backup.service")
	s.absent("var/units.outdated")
	for name, want := range map[string]os.FileMode{to: 0o700, to + "/.kgpu-backups-cp1": 0o600, "var/lib/kgpu/scheduled": 0o700} {
		info, err := os.Stat(s.path(name))
		s.must(err)
		if info.Mode().Perm() != want {
			t.Errorf("the mode of %s is %s", name, info.Mode())
		}
	}
	stay := []string{"kgpu-backup-lab-cp1-20250101-000000Z.tar.gz", "kgpu-backup-lab-cp1-20260101-000000Z.tar.gz", "kgpu-backup-lab-cp1-20270101-000000Z.tar.gz",
		"kgpu-backup-lab-cp12-20240101-000000Z.tar.gz", "kgpu-backup-lab-20240101-000000Z.tar.gz"}
	for _, name := range stay {
		s.write(to+"/"+name, "an archive")
	}
	s.write(to+"/.kgpu-backup-cp1.part", "of one that was killed")
	s.write("var/lib/kgpu/scheduled/failed", "1\tno space\n")
	r := s.ok(s.back("/"+to, 2))
	contains(t, r.output, "made: /"+to+"/kgpu-backup-lab-cp1-")
	s.absent(to+"/.kgpu-backup-cp1.part", "var/lib/kgpu/scheduled/work", "var/lib/kgpu/scheduled/failed", to+"/"+stay[0], to+"/"+stay[1])
	path := strings.Fields(s.read("var/lib/kgpu/scheduled/good"))[1]
	info, err := os.Stat(s.path(path))
	s.must(err)
	a, err := archive.Check(s.path(path), nil)
	s.must(err)
	ca, err := facts.CAHash([]byte(s.read("etc/kubernetes/pki/ca.crt")))
	s.must(err)
	if a.Cluster != "lab" || a.CA != ca || a.Kubernetes != "1.36.3" || a.Etcd != "3.6.8" || a.Endpoint != "10.0.0.100:6443" || !a.Encrypted || a.Revision != 71 ||
		a.Settings.Runtime != "containerd" || len(a.Hosts) != 1 || a.Hosts[0].Address != "10.0.0.10" || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %+v", info.Mode(), a.Manifest)
	}
	if _, ok := a.Find(archive.Ledger("cp1")); !ok || len(s.archives(to)) != 4 {
		t.Errorf("%v, %v", a.Files, s.archives(to))
	}
	f := parsed(s, stubbed(Facts()), facts.Parse)
	if f.Backups == nil || f.Backups.Archive != path || f.Backups.Good.IsZero() || f.Backups.Why != "" || f.Backups.Gone {
		t.Errorf("the facts are %+v", f.Backups)
	}

	s.ok(s.step("backup-timer-remove"))
	s.absent("etc/systemd/system/kgpu-backup.timer", "var/lib/kgpu/scheduled", to+"/.kgpu-backups-cp1")
	if len(s.archives(to)) != 4 {
		t.Errorf("archives went: %v", s.archives(to))
	}
}

// TestTimerIsPatient: an API server and an etcd that are just starting are no reason for a backup that failed, and none without hosts is made.
func TestTimerIsPatient(t *testing.T) {
	t.Parallel()
	const to = "mnt/share"
	for call, words := range map[string]string{
		"get nodes": "the API server does not tell the nodes", "get configmap": "the API server does not tell the settings of kubeadm",
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			s := backingUp(t, "/"+to)
			s.must(os.MkdirAll(s.path(to), 0o755))
			s.ok(s.step("backup-timer"))
			s.stub("sleep", "#!/bin/sh\n")
			kubectl := s.read("stubs/kubectl")
			s.stub("kubectl", strings.Replace(kubectl, "\n", "\n[[ $* != *'"+call+"'* || -e /asked ]] || { : >/asked; exit 1; }\n", 1))
			r := s.ok(s.back("/"+to, 2))
			contains(t, r.output, "trying again: "+words)
			a, err := archive.Check(s.path(strings.Fields(s.read("var/lib/kgpu/scheduled/good"))[1]), nil)
			s.must(err)
			if len(a.Hosts) != 1 {
				t.Errorf("the hosts are %v", a.Hosts)
			}

			s.stub("kubectl", strings.Replace(kubectl, "\n", "\n[[ $* != *'"+call+"'* ]] || exit 1\n", 1))
			if r := s.back("/"+to, 2); r.status != 1 || !strings.Contains(s.read("var/lib/kgpu/scheduled/failed"), words) || len(s.archives(to)) != 1 {
				t.Errorf("%d: %s; there are %v", r.status, r.output, s.archives(to))
			}
		})
	}
}

// TestTimerFails: what is no backup has no name of one, and the host keeps why.
func TestTimerFails(t *testing.T) {
	t.Parallel()
	const to = "mnt/share"
	for name, c := range map[string]struct {
		harm func(*sandbox)
		want string
	}{
		"not mounted": {func(s *sandbox) { s.remove(to + "/.kgpu-backups-cp1") }, "is not mounted"},
		"not whole":   {func(s *sandbox) { s.write("etcdutl-fails", "") }, "the snapshot of etcd is not whole: expected sha256 [1], got [2]"},
		"a full disk": {func(s *sandbox) {
			large := make([]byte, 64<<10)
			_, _ = rand.Read(large)
			s.write("etc/kubernetes/pki/large.key", string(large))
			s.mounts = "mount -t tmpfs -o size=8k none $0/" + to + "; touch $0/" + to + "/.kgpu-backups-cp1"
		}, "No space left on device"},
		"half a restore": {func(s *sandbox) { s.write("var/lib/kgpu/restore/archive", "5a5a\n") }, "a restore of the cluster has begun"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := backingUp(t, "/"+to)
			s.must(os.MkdirAll(s.path(to), 0o755))
			s.ok(s.step("backup-timer"))
			c.harm(s)
			if r := s.back("/"+to, 2); r.status != 1 {
				t.Errorf("%d: %s", r.status, r.output)
			}
			f := parsed(s, stubbed(Facts()), facts.Parse)
			if f.Backups == nil || !strings.Contains(f.Backups.Why, c.want) || f.Backups.Failed.IsZero() || !f.Backups.Good.IsZero() {
				t.Errorf("the facts are %+v", f.Backups)
			}
			if len(s.archives(to)) != 0 {
				t.Errorf("there are %v", s.archives(to))
			}
			s.absent(to+"/.kgpu-backup-cp1.part", "var/lib/kgpu/scheduled/work")
		})
	}
}

// TestTimerIsRefused where nothing would be kept.
func TestTimerIsRefused(t *testing.T) {
	t.Parallel()
	s := backingUp(t, "/mnt/share")
	s.fails(s.step("backup-timer"), 1, "BACKUP_TARGET")
	s.must(os.MkdirAll(s.path("mnt/share"), 0o755))
	s.must(os.MkdirAll(s.path("var/lib/etcd/backups"), 0o755))
	s.ok(s.step("backup-timer"))
	s.remove("mnt/share/.kgpu-backups-cp1") // as when it is not mounted any more
	s.fails(s.step("backup-timer"), 1, "BACKUP_TARGET")
	s.must(os.Symlink("/var/lib/etcd/backups", s.path("mnt/link")))
	s.value("to", "/mnt/link")
	s.fails(s.step("backup-timer"), 1, "BACKUP_TARGET")
	s.mounts = "mount -t tmpfs none $0/mnt/share"
	s.value("to", "/mnt/share")
	s.fails(s.step("backup-timer"), 1, "BACKUP_TARGET")
}

// TestResetKeepsBackups: the timer goes with all that kgpu put there; archives stay, and are named.
func TestResetKeepsBackups(t *testing.T) {
	t.Parallel()
	s := backingUp(t, "/var/backups/kgpu")
	s.value("own", "yes")
	s.remove("var/lib/kgpu/ledger/000001/kind")
	s.must(os.RemoveAll(s.path("var/lib/kgpu/ledger")))
	before := s.snapshot()
	s.ok(s.step("backup-timer"))
	s.undone(before)
	s.ok(s.step("backup-timer"))
	s.write("var/backups/kgpu/kgpu-backup-lab-cp1-20260101-000000Z.tar.gz", "an archive")
	s.ok(s.script("undo_all"))
	contains(t, s.read(stepDir+"/out/left"), "the backups in /var/backups/kgpu")
	s.holds("var/backups/kgpu/kgpu-backup-lab-cp1-20260101-000000Z.tar.gz", "an archive")
	s.absent("var/backups/kgpu/.kgpu-backups-cp1", "etc/systemd/system/kgpu-backup.timer")
}
