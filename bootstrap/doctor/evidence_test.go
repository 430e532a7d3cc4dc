package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

func TestParseEvidence(t *testing.T) {
	e, err := ParseEvidence([]byte("a banner\n" + read(t, "testdata/healthy-worker.txt")))
	must(t, err)
	if len(e.KernelLog) != 5 || len(e.Cards) != 2 || !e.Cards[0].Persistent || e.SMI != 0 || !e.Asked || len(e.MIG) != 1 || e.CDI["/var/run/cdi/nvidia.yaml"] != "595.91.07" ||
		e.Units["kubelet"].State != "active" || len(e.Sources) != 2 || e.Disks["/"] != 41 || e.Cluster != nil || !e.Kernels[0].Running {
		t.Errorf("%+v", e)
	}
	for _, bad := range []string{"card-status=x", "card-status=-1", "unit=a b", "unit=a b c d e", "disk=/ much", "node=node\t\tu", "kernel=6", "apt-source=x"} {
		if _, err := ParseEvidence([]byte("kgpu-doctor=1\napi=1\n" + bad + "\nend=1\n")); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := ParseEvidence([]byte("kgpu-doctor=1\n")); !errors.Is(err, facts.ErrTruncated) {
		t.Errorf("half an answer: %v", err)
	}
}

// TestParseEvidenceSkipsWhatIsUnreadable: an unreadable object or file hides nothing else.
func TestParseEvidenceSkipsWhatIsUnreadable(t *testing.T) {
	e, err := ParseEvidence([]byte("kgpu-doctor=1\napi=1\nnode=node\tw1" + strings.Repeat("\t", 10) + "nvidia.com/gpu=1k\tnvidia.com/gpu=many\nnode=node\tw2" + strings.Repeat("\t", 10) + "nvidia.com/gpu=2\tnvidia.com/gpu=1\nend=1\n"))
	must(t, err)
	const gpu = "nvidia.com/gpu"
	if n := e.Cluster.Nodes; len(n) != 2 || n[0].Capacity[gpu] != 1000 || n[0].Allocatable[gpu] != 0 || n[1].Capacity[gpu] != 2 || n[1].Allocatable[gpu] != 1 {
		t.Errorf("%+v", n)
	}
}

// TestForeignTextIsUnescapedAndPrintable: text from others is unescaped, on one line, and cannot control a terminal.
func TestForeignTextIsUnescapedAndPrintable(t *testing.T) {
	e, err := ParseEvidence([]byte("kgpu-doctor=1\napi=1\nevent=\t2026-11-20T10:00:00Z\tw1\tBackOff\tPod/x\t" +
		`can\u0027t pull \u0022a\u0022 \u003D\x3D b:\u000A d\u00e9fense \\n \u001b[31mred` + "\nend=1\n"))
	must(t, err)
	if got, want := e.Cluster.Events[0].Message, `can't pull "a" == b:  défense \n `; !strings.HasPrefix(got, want) || strings.Contains(got, "\x1b") {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCertificates: doctor warns 60 days before the end, of what a kubelet renews only when it has failed to, and never of what
// nobody checks.
func TestCertificates(t *testing.T) {
	const (
		apiServer = "/etc/kubernetes/pki/apiserver.crt"
		rotated   = "/var/lib/kubelet/pki/kubelet-client-current.pem"
		embedded  = "/etc/kubernetes/kubelet.conf"
		port      = "/var/lib/kubelet/pki/kubelet.crt"
		day       = 24 * time.Hour
	)
	for _, c := range []struct {
		file string
		left time.Duration
		want []string
	}{
		{apiServer, 61 * day, nil},
		{apiServer, 59 * day, []string{"w1 HOST_CERTIFICATE_ENDS"}}, // the ID of kgpu status
		{apiServer, -time.Hour, []string{"w1 CERTIFICATE_EXPIRED"}},
		{rotated, 59 * day, nil},
		{rotated, 20 * day, []string{"w1 HOST_CERTIFICATE_ENDS"}},
		{rotated, -time.Hour, []string{"w1 CERTIFICATE_EXPIRED"}},
		{embedded, 59 * day, []string{"w1 HOST_CERTIFICATE_ENDS"}},
		{port, -time.Hour, nil},
	} {
		w := newWorld(t)
		end := w.w1.Now.Add(c.left)
		w.w1.Certificates = []facts.Certificate{{Path: c.file, Begins: end.AddDate(-1, 0, 0), Ends: end}}
		got := ids(w.check())
		if !slices.Equal(got, c.want) {
			t.Errorf("%s with %s left: %v", c.file, c.left, got)
		}
	}
}

// FuzzEvidence: what a host says never makes the parser or the checks panic; an answer that is cut anywhere is none.
func FuzzEvidence(f *testing.F) {
	files, err := filepath.Glob("testdata/healthy-*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("kgpu-doctor=1\ncard=\nmig=,,\nkernel=a b c\nkernel=1 yes no running\ncompiler=1\nunit-said=x\napi=1\nnode=node\ta\t\t\nevent=\t\t\t\nend=1\n"))
	f.Add([]byte("kgpu-doctor=1\napi=1\nwaiting-pod=\nwaiting-pod=\tn\tp\tw1\t2020-01-01T00:00:00Z\t\t\tc ErrImagePull m\tc CrashLoopBackOff back-off 9h restarting\nend=1\n"))
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ParseEvidence(data)
		if (e == nil) == (err == nil) {
			t.Fatalf("%v, %v", e, err)
		}
		if err != nil {
			return
		}
		if _, err := ParseEvidence(data[:len(data)-1]); err == nil {
			t.Error("an answer without its last byte is taken")
		}
		Check(w.inv, []Machine{{Machine: machine.Machine{Host: w.inv.Hosts[1], Facts: w.w1}, Evidence: e}}, nil)
	})
}
