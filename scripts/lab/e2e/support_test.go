package e2e

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seededJournal has a host's journal tell secrets.
func (l *lab) seededJournal(t *testing.T, host string) (secrets []string) {
	t.Helper()
	const jwt, bearer, word = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJlMmUifQ.c2lnbmF0dXJl", "e2e-bearer-0123456789", "e2e-hunter22"
	l.exec(t, host, "systemd-run --quiet --wait --unit=kgpu-seeded printf '%s\\n' "+
		"'seeded --token abcdef.0123456789abcdef' 'seeded "+jwt+"' 'seeded Authorization: Bearer "+bearer+"' 'seeded http://joe:"+word+"@proxy:3128'")
	return []string{jwt, bearer, word, "0123456789abcdef"}
}

// TestSupport gathers bundles of bare hosts: what helps is in them, and none of the secrets that are on the hosts, nor does
// gathering leave anything there. TestDoctor gathers one of a cluster that is half made.
func TestSupport(t *testing.T) {
	l := newLab(t, nil, "--workers", "0", "--with", "password")
	secrets := append(l.seededJournal(t, "cp1"), strings.TrimSpace(read(t, l.Place.Password())))
	d := desired{version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories(), hosts: []string{l.host("cp1", "")}}
	d.hosts = append(d.hosts, l.host("password1", `ssh: {sudoPassword: "file:`+l.Place.Password()+`"}`), "{address: 127.0.0.1, name: nobody, ssh: {port: 1}}")
	everybody := l.write(t, t.TempDir(), d)

	must(t, "bare hosts", func(t *testing.T) {
		before := l.snapshot(t, "cp1", "password1")
		s, files := bundle(t, 0, everybody)
		l.unchanged(t, before)
		for _, host := range []string{l.addr["cp1"], l.addr["password1"]} {
			wants(t, files, "hosts/"+host+"/facts.txt", "kgpu-facts=1")
			wants(t, files, "hosts/"+host+"/facts.json", `"Hostname"`)
			wants(t, files, "hosts/"+host+"/ip-address.txt", host)
			wants(t, files, "hosts/"+host+"/df.txt", "Filesystem")
		}
		wants(t, files, "hosts/"+l.addr["cp1"]+"/journal-kgpu.txt", "seeded --token")
		wants(t, files, "hosts/nobody/error.txt", "SSH_UNREACHABLE")
		wants(t, files, "inventory.yaml", "cluster: e2e")
		wants(t, files, "about.txt", "go1.")
		wantsNone(t, s, files, secrets)
		if said := s.stdout.String(); !strings.Contains(said, "2 of 3 hosts") || !strings.Contains(said, "warning: ") {
			t.Errorf("kgpu said %q", said)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		d.hosts = []string{"{address: 127.0.0.1, name: nobody, role: control-plane, ssh: {port: 1}}"}
		_, files := bundle(t, 20, l.write(t, t.TempDir(), d))
		wants(t, files, "hosts/nobody/error.txt", "SSH_UNREACHABLE")
	})
	t.Run("explain", func(t *testing.T) {
		s := kgpu(t, 0, "explain", "ssh-unreachable")
		if said := s.stdout.String(); !strings.Contains(said, "SSH_UNREACHABLE (exit status 20, class connection)") {
			t.Errorf("kgpu explained %q", said)
		}
		kgpu(t, 3, "explain", "SSH_UNREACHABEL")
	})
}

// supportOfHalfACluster gathers a bundle of a cluster whose kubeadm init has ended.
func (c *cluster) supportOfHalfACluster(t *testing.T, secrets []string) {
	s, files := bundle(t, 0, c.inventory)
	cp := "hosts/" + c.addr["cp1"] + "/"
	for name, want := range map[string]string{
		"cluster-nodes": "cp1", "cluster-pods": "kube-system", "cluster-kubeadm": "ClusterConfiguration", "cluster-version": "v1.36",
		"kubelet-config": "KubeletConfiguration", "journal-kubelet": "kubelet", "journal-containerd": "containerd", "ledger": "package",
		"nvidia-smi": "nvidia-smi", "batches": "cluster/init", "units": "kubelet.service",
	} {
		wants(t, files, cp+name+".txt", want)
	}
	events := ""
	for name, content := range files {
		if strings.HasPrefix(name, cp+"run-") {
			events += content
		}
	}
	if !strings.Contains(events, "B\tcluster/init\t") {
		t.Errorf("no events of cluster/init: %q", events)
	}
	recorded := ""
	for name, content := range files {
		if strings.HasPrefix(name, "runs/") && strings.HasSuffix(name, "/events.jsonl") {
			recorded += content
		}
	}
	if !strings.Contains(recorded, `"cluster/init"`) {
		t.Errorf("what the run recorded here is not there: %q", recorded)
	}
	// The first 288 bytes of an RSA key of 2048 bits have its modulus, which its certificate has, too.
	keys := c.exec(t, "cp1", "find /etc/kubernetes/pki -name '*.key' -exec awk 'FNR > 7 && !/-----/ && NF' {} +; grep -oh 'client-key-data: .*' /etc/kubernetes/*.conf | cut -d' ' -f2")
	wantsNone(t, s, files, append(secrets, lines(keys)...))
}

// bundle runs kgpu support and returns the files of the bundle by their names, without the folder that all are in.
func bundle(t *testing.T, exit int, inventory string) (*session, map[string]string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	s := kgpu(t, exit, "support", inventory, "--file", file)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the bundle: %v, %v", info, err)
	}
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return s, files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		top, name, _ := strings.Cut(header.Name, "/")
		if !strings.HasPrefix(top, "kgpu-support-") || !filepath.IsLocal(name) {
			t.Errorf("a file is called %q", header.Name)
		}
		files[name] = string(content)
	}
}

func wants(t *testing.T, files map[string]string, name, text string) {
	t.Helper()
	if got, ok := files[name]; !ok || !strings.Contains(got, text) {
		t.Errorf("%s: %d bytes without %q: %.300q", name, len(got), text, got)
	}
}

func wantsNone(t *testing.T, s *session, files map[string]string, secrets []string) {
	t.Helper()
	all := maps.Clone(files)
	all["what kgpu said"] = s.stdout.String() + s.stderr.String()
	for name, content := range all {
		for _, secret := range secrets {
			if strings.Contains(content, secret) {
				t.Errorf("%s has the secret %q", name, secret)
			}
		}
	}
}
