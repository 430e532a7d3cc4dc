package bootstrap

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/archive"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
)

// hostFolder serves the files of a folder as those of a host, by their last names, and takes files.
type hostFolder struct{ dir string }

func (f hostFolder) at(r *sftp.Request) string {
	return filepath.Join(f.dir, filepath.Base(r.Filepath))
}

func (f hostFolder) Fileread(r *sftp.Request) (io.ReaderAt, error) { return os.Open(f.at(r)) }

func (f hostFolder) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	return os.OpenFile(f.at(r), os.O_WRONLY|os.O_CREATE, 0o600)
}

func (f hostFolder) Filecmd(*sftp.Request) error { return nil }

func (f hostFolder) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	info, err := os.Stat(f.at(r))
	return infos{info}, err
}

type infos []os.FileInfo

func (l infos) ListAt(to []os.FileInfo, offset int64) (int, error) {
	n := copy(to, l[min(int(offset), len(l)):])
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}

// exec does what Download and Upload ask for; done: it was that.
func (f hostFolder) exec(e *sshtest.Exec) (done bool) {
	switch {
	case strings.Contains(e.Line, "sftp-server"):
		_ = sftp.NewRequestServer(struct {
			io.Reader
			io.WriteCloser
		}{e.Stdin, writeEnd{e.Stdout}}, sftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f}).Serve()
	case strings.Contains(e.Line, "sha256sum"):
		asked, _ := io.ReadAll(e.Stdin)
		name := filepath.Join(f.dir, filepath.Base(strings.Split(string(asked), "\n")[0]))
		if strings.Contains(e.Line, "mv -fT") {
			_ = os.Rename(name+".kgpu-part", name)
			return true
		}
		content, _ := os.ReadFile(name)
		fmt.Fprintf(e.Stdout, "%x  -\n", sha256.Sum256(content))
	default:
		return false
	}
	return true
}

type writeEnd struct{ io.Writer }

func (writeEnd) Close() error { return nil }

// backedUpSite is a cluster whose hosts have these files to back up.
func backedUpSite(t *testing.T) (*sitetest.Site, Options, hostFolder) {
	t.Helper()
	s, o := newSite(t, "cp1", "w1")
	s.Joined["cp1"], s.Joined["w1"] = true, true
	s.More["cp1"] = "kubeadm-file=/etc/kubernetes/manifests/kube-apiserver.yaml\napiserver-image=registry.k8s.io/kube-apiserver:v1.36.3\n"
	o.Inventory.Path, o.Inventory.Cluster = filepath.Join(t.TempDir(), "inventory.yaml"), "lab"
	put(t, o.Inventory.Path, "hosts: []\n")
	folder := hostFolder{t.TempDir()}
	files := map[string]string{"etcd.db": strings.Repeat("SNAPSHOT", 100_000), "files.tar": "THE-KEYS", "ledger.tar": "LEDGER"}
	for name, content := range files {
		put(t, filepath.Join(folder.dir, name), content)
	}
	listed := func(names ...string) (out string) {
		for _, name := range names {
			out += fmt.Sprintf("%s\t%d\t%x\n", name, len(files[name]), sha256.Sum256([]byte(files[name])))
		}
		return out
	}
	told := map[string]map[string]string{
		"cp1": {"files": listed("etcd.db", "files.tar", "ledger.tar"), "snapshot": `{"revision":71,"totalKey":12}`, "about": "etcd\t3.6.8\n"},
		"w1":  {"files": listed("ledger.tar")},
	}
	for host := range told {
		s.At[host+" backup/take"] = func(e *sshtest.Exec) int {
			for name, value := range told[host] {
				fmt.Fprintf(e.Stdout, "O\tbackup/take\t%s\t%s\n", name, base64.StdEncoding.EncodeToString([]byte(value)))
			}
			fmt.Fprint(e.Stdout, "D\tbackup/take\t0\t1\t\t\nE\t0\n")
			return 0
		}
		s.Servers[host].Handle(func(e *sshtest.Exec) int {
			if folder.exec(e) {
				return 0
			}
			return s.Exec(host, e)
		})
	}
	return s, o, folder
}

// TestBackupAndRestore: what the hosts have taken is in an archive of the operator's only, and is sent back whole.
func TestBackupAndRestore(t *testing.T) {
	s, o, folder := backedUpSite(t)
	file := filepath.Join(t.TempDir(), "backup")
	var words strings.Builder
	_, err := Backup(t.Context(), o, BackupOptions{File: file, Version: "1", Now: time.Now(), Out: &words})
	must(t, err)
	a, err := archive.Check(file, nil)
	must(t, err)
	if a.Cluster != "lab" || a.Kubernetes != "1.36.3" || a.Etcd != "3.6.8" || a.Revision != 71 || len(a.CA) != 64 || len(a.Hosts) != 2 || a.Hosts[1].Node != "w1" {
		t.Errorf("%+v", a.Manifest)
	}
	for _, name := range []string{archive.Snapshot, archive.PlaneFiles, archive.Inventory, archive.Ledger("cp1"), archive.Ledger("w1")} {
		if _, ok := a.Find(name); !ok {
			t.Errorf("no %s", name)
		}
	}
	if !slices.Contains(s.Did, "cp1 backup/clear") || !slices.Contains(s.Did, "w1 backup/clear") || !strings.Contains(words.String(), "not encrypted") {
		t.Errorf("did %q; said %q", s.Did, words.String())
	}
	var usage *reason.UsageError
	if _, err := Backup(t.Context(), o, BackupOptions{File: file, Now: time.Now()}); !errors.As(err, &usage) {
		t.Errorf("written over: %v", err)
	}

	put(t, filepath.Join(folder.dir, "etcd.db"), "of now")
	s.Did = nil
	refused := errors.New("no")
	ro := RestoreOptions{File: file, Show: func(*graph.Graph) error { return nil }, Sure: func(*graph.Graph, *archive.Archive) error { return refused }}
	if err := Restore(t.Context(), o, ro); !errors.Is(err, refused) || len(s.Did) > 0 {
		t.Fatalf("%v; did %q", err, s.Did)
	}
	ro.Sure = func(*graph.Graph, *archive.Archive) error { return nil }
	was := s.More["cp1"]
	s.More["cp1"] = strings.Replace(was, "v1.36.3", "v1.38.0", 1)
	if err := Restore(t.Context(), o, ro); !errors.Is(err, &reason.Error{ID: reason.KubernetesSkew}) || len(s.Did) > 0 {
		t.Fatalf("two minors: %v; did %q", err, s.Did)
	}
	s.More["cp1"] = was
	must(t, Restore(t.Context(), o, ro))
	for _, step := range []string{"cp1 restore/begin", "cp1 restore/data", "w1 restore/kubelet", "cp1 restore/end"} {
		if !slices.Contains(s.Did, step) {
			t.Errorf("no %s: %q", step, s.Did)
		}
	}
	if content, err := os.ReadFile(filepath.Join(folder.dir, "etcd.db")); err != nil || !strings.HasPrefix(string(content), "SNAPSHOT") || len(content) != 800_000 {
		t.Errorf("%d bytes arrived, %v", len(content), err)
	}
}

// TestBackupThatFails leaves no archive, and nothing on the hosts; a worker that cannot be asked is left out.
func TestBackupThatFails(t *testing.T) {
	s, o, _ := backedUpSite(t)
	s.Servers["w1"].Stop()
	file := filepath.Join(t.TempDir(), "backup")
	_, err := Backup(t.Context(), o, BackupOptions{File: file, Now: time.Now()})
	must(t, err)
	a, err := archive.Check(file, nil)
	must(t, err)
	if _, has := a.Find(archive.Ledger("w1")); has || a.Hosts[1].Node != "" {
		t.Errorf("%+v", a.Hosts)
	}
	s.At["cp1 backup/take"] = func(e *sshtest.Exec) int {
		fmt.Fprint(e.Stdout, "D\tbackup/take\t1\t1\tBACKUP_FAILED\tno snapshot\nE\t1\n")
		return 0
	}
	s.Did = nil
	_, err = Backup(t.Context(), o, BackupOptions{File: file + "2", Now: time.Now()})
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.BackupFailed {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*2*")); err != nil || len(left) > 0 || !slices.Contains(s.Did, "cp1 backup/clear") {
		t.Errorf("left %q; did %q", left, s.Did)
	}
}
