package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
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
	e, err := ParseEvidence([]byte("kgpu-doctor=1\ncertificate=/x ???\ncertificate-pem=/y LS0t\napi=1\nnode=node\tw1" + strings.Repeat("\t", 10) + "nvidia.com/gpu=1k\tnvidia.com/gpu=many\nnode=node\tw2" + strings.Repeat("\t", 10) + "nvidia.com/gpu=2\tnvidia.com/gpu=1\nend=1\n"))
	must(t, err)
	const gpu = "nvidia.com/gpu"
	if n := e.Cluster.Nodes; len(e.Certificates) > 0 || len(n) != 2 || n[0].Capacity[gpu] != 1000 || n[0].Allocatable[gpu] != 0 || n[1].Capacity[gpu] != 2 || n[1].Allocatable[gpu] != 1 {
		t.Errorf("%+v, %+v", e.Certificates, n)
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

// certified is a certificate that is valid until then, in DER.
func certified(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.AddDate(-1, 0, 0), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	return der
}

func TestCertificates(t *testing.T) {
	for _, c := range []struct {
		left time.Duration
		want []string
	}{
		{90 * 24 * time.Hour, nil},
		{31 * 24 * time.Hour, nil},
		{29 * 24 * time.Hour, []string{"w1 HOST_CERTIFICATE_ENDS"}}, // the ID and the limit of kgpu status
		{-time.Hour, []string{"w1 CERTIFICATE_EXPIRED"}},
	} {
		for key, encode := range map[string]func([]byte) []byte{
			"certificate":     func(der []byte) []byte { return der },
			"certificate-pem": func(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) },
		} {
			w := newWorld(t)
			der := certified(t, w.w1.Now.Add(c.left))
			says(&w.worker, key+"=/etc/kubernetes/pki/apiserver.crt "+base64.StdEncoding.EncodeToString(encode(der)))
			if got := ids(w.check()); !slices.Equal(got, c.want) {
				t.Errorf("%s with %s left: %v", key, c.left, got)
			}
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
	f.Add([]byte("kgpu-doctor=1\ncard=\nmig=,,\nkernel=a b c\nkernel=1 yes no running\ncompiler=1\nunit-said=x\ncertificate=a AAAA\ncertificate-pem=a LS0t\napi=1\nnode=node\ta\t\t\nevent=\t\t\t\nend=1\n"))
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
