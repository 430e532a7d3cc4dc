package access

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// The file tells what it was made of, so that it is fetched anew for another cluster; the server is where SSH reaches it.
func TestKubeconfigTellsItsSource(t *testing.T) {
	inside := clustertest.NewAuthority(t).Admin(t, "https://10.0.0.4:6443")
	for name, c := range map[string]struct {
		cp   inventory.Host
		want string
	}{
		"as it is":  {inventory.Host{Address: "192.0.2.4"}, "https://10.0.0.4:6443"},
		"elsewhere": {inventory.Host{Address: "192.0.2.4", PrivateAddress: netip.MustParseAddr("10.0.0.4")}, "https://192.0.2.4:6443"},
		"by a name": {inventory.Host{Address: "cp", PrivateAddress: netip.MustParseAddr("10.0.0.4")}, "https://10.0.0.4:6443"},
		"a bastion": {inventory.Host{Address: "192.0.2.4", PrivateAddress: netip.MustParseAddr("10.0.0.4"), SSH: inventory.SSH{Bastion: &inventory.Bastion{}}}, "https://10.0.0.4:6443"},
		"version 6": {inventory.Host{Address: "2001:db8::4", PrivateAddress: netip.MustParseAddr("10.0.0.4")}, "https://[2001:db8::4]:6443"},
	} {
		a := renamed(inside, &inventory.Inventory{Cluster: "lab"}, c.cp, netip.Addr{})
		out, err := withSource(a, []byte("the admin.conf"), c.cp)
		must(t, err)
		path := filepath.Join(t.TempDir(), "lab.kubeconfig")
		put(t, path, string(out))
		if sum := sourceOf(path); len(sum) != 64 || hostOf(out) != c.cp.Address || a.Server != c.want || a.Context != "lab" || a.User != "lab-admin" {
			t.Errorf("%s: made of %q, on %q: %s of %s at %s", name, sum, hostOf(out), a.Context, a.User, a.Server)
		}
	}
}

// The name of an API server that only its cluster's hosts resolve is what it is known by from here, and no address.
func TestKubeconfigOfANamedCluster(t *testing.T) {
	const name = "api-78e651.lab.kgpu.internal"
	inside := clustertest.NewAuthority(t).Admin(t, "https://"+name+":6443")
	private, bastion := netip.MustParseAddr("10.0.0.4"), inventory.SSH{Bastion: &inventory.Bastion{}}
	for why, c := range map[string]struct {
		cp      inventory.Host
		reached string
		want    string
	}{
		"an address":                 {inventory.Host{Address: "192.0.2.4"}, "192.0.2.4", "192.0.2.4"},
		"another than inside":        {inventory.Host{Address: "192.0.2.4", PrivateAddress: private}, "192.0.2.4", "192.0.2.4"},
		"a name":                     {inventory.Host{Address: "cp"}, "192.0.2.4", "192.0.2.4"},
		"a name, another inside":     {inventory.Host{Address: "cp", PrivateAddress: private}, "192.0.2.4", "10.0.0.4"},
		"behind a bastion":           {inventory.Host{Address: "192.0.2.4", PrivateAddress: private, SSH: bastion}, "192.0.2.4", "10.0.0.4"},
		"of one address there":       {inventory.Host{Address: "10.0.0.4", SSH: bastion}, "10.0.0.4", "10.0.0.4"},
		"nobody knows, from here on": {inventory.Host{Address: "cp", SSH: bastion}, "", ""},
	} {
		reached, _ := netip.ParseAddr(c.reached)
		a := renamed(inside, &inventory.Inventory{Cluster: "lab"}, c.cp, reached)
		server, known := "https://"+c.want+":6443", name
		if c.want == "" {
			server, known = inside.Server, ""
		}
		if a.Server != server || a.TLSServerName != known || a.Name() != name {
			t.Errorf("%s: %s, known as %q", why, a.Server, a.TLSServerName)
		}
	}
	virtual := &inventory.Inventory{Cluster: "lab", Kubernetes: inventory.Kubernetes{VirtualIP: netip.MustParseAddr("10.0.0.100")}}
	for want, cp := range map[string]inventory.Host{
		"https://10.0.0.100:6443": {Address: "10.0.0.4"},
		"https://192.0.2.4:6443":  {Address: "192.0.2.4", PrivateAddress: private},
	} {
		if a := renamed(inside, virtual, cp, netip.Addr{}); a.Server != want || a.TLSServerName != name {
			t.Errorf("with a virtual address: %s, known as %q", a.Server, a.TLSServerName)
		}
	}
	if a := renamed(clustertest.NewAuthority(t).Admin(t, "https://k8s.example.com:6443"), &inventory.Inventory{Cluster: "lab"}, inventory.Host{Address: "192.0.2.4"}, netip.Addr{}); a.Server != "https://k8s.example.com:6443" || a.TLSServerName != "" {
		t.Errorf("its owner's name: %s, known as %q", a.Server, a.TLSServerName)
	}
}

// What somebody else's file has in it is not lost; a file of this cluster alone is brought up to date, also without kgpu's mark,
// which kubectl drops. It is for its owner only, whatever its mode was.
func TestWriteKubeconfig(t *testing.T) {
	s := To(session.New(session.Options{
		Inventory: &inventory.Inventory{Cluster: "lab", Hosts: []inventory.Host{{Address: "10.0.0.1", Role: inventory.ControlPlane}}}, Events: event.Discard,
	}), "")
	defer s.Close()
	a := kubeconfig.Access{Cluster: "lab", User: "u", Context: "c", Server: "https://10.0.0.1:6443", CA: []byte("ca"), Certificate: []byte("cert"), Key: []byte("key")}
	alone, err := a.Encode()
	must(t, err)
	a.Cluster = "another"
	another, err := a.Encode()
	must(t, err)
	path := filepath.Join(t.TempDir(), "config")
	for before, may := range map[string]bool{
		"": true, string(alone): true, sourceMark + "0\n" + string(another): true,
		sourceMark + "0\n" + "clusters: [{name: a}, {name: lab}]\n":  false,
		sourceMark + "0\n" + hostMark + "10.0.0.1\n" + string(alone): true, sourceMark + "0\n" + hostMark + "10.0.0.2\n" + string(alone): false,
		string(another): false, "clusters: [{name: a}, {name: lab}]\n": false, "notes\n": false,
	} {
		must(t, errors.Join(os.WriteFile(path, []byte(before), 0o600), os.Chmod(path, 0o644)))
		err := s.writeKubeconfig(path, []byte("new"))
		after := content(t, path)
		info, statErr := os.Stat(path)
		switch {
		case may && (err != nil || after != "new" || statErr != nil || info.Mode() != 0o600):
			t.Errorf("%q: %v, %v", before, err, info)
		case !may && (!errors.Is(err, &reason.Error{ID: reason.KubeconfigConflict}) || after != before):
			t.Errorf("%q became %q: %v", before, after, err)
		}
	}
}

// A kubeconfig from before the cluster had its virtual address is fetched anew, once, whatever ended the run that brought the address.
func TestKubeconfigFromBeforeTheVirtualIP(t *testing.T) {
	inv := &inventory.Inventory{Cluster: "lab", Hosts: []inventory.Host{{Address: "10.0.0.4", Role: inventory.ControlPlane}}}
	s := To(session.New(session.Options{Inventory: inv, Events: event.Discard}), filepath.Join(t.TempDir(), "lab.kubeconfig"))
	defer s.Close()
	write := func() {
		t.Helper()
		a := renamed(clustertest.NewAuthority(t).Admin(t, "https://api-78e651.lab.kgpu.internal:6443"), inv, inv.Hosts[0], netip.Addr{})
		text, err := withSource(a, []byte("conf"), inv.Hosts[0])
		must(t, err)
		must(t, os.WriteFile(s.kubeconfig, text, 0o600))
	}
	if write(); s.leadsElsewhere() {
		t.Error("without an address")
	}
	inv.Kubernetes.VirtualIP = netip.MustParseAddr("10.0.0.100")
	if !s.leadsElsewhere() {
		t.Error("it leads to the control plane, and is not fetched anew")
	}
	if write(); s.leadsElsewhere() {
		t.Error("it leads to the address, and is fetched anew")
	}
}

// A reset takes the kubeconfig of its cluster along, and nobody else's.
func TestForgetKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.kubeconfig")
	s := To(session.New(session.Options{
		Inventory: &inventory.Inventory{Cluster: "lab", Hosts: []inventory.Host{{Address: "10.0.0.1", Role: inventory.ControlPlane}}}, Events: event.Discard,
	}), path)
	defer s.Close()
	for text, goes := range map[string]bool{
		sourceMark + "0\nclusters: [{name: lab}]\n":                              true,
		sourceMark + "0\n" + hostMark + "10.0.0.1\nclusters: [{name: lab}]\n":    true,
		sourceMark + "0\n" + hostMark + "10.0.0.2\nclusters: [{name: lab}]\n":    false,
		sourceMark + "0\nclusters: [{name: lab}, {name: merged}]\nusers: [{}]\n": false,
		"clusters: [{name: lab}]\n":                                              false,
	} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		must(t, s.forgetKubeconfig())
		if _, err := os.Stat(path); os.IsNotExist(err) != goes {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A reset takes the context that kgpu merged along, and leaves the rest of the user's file; a file that it cannot change does not
// stop it, and one that has nothing of it is not written.
func TestForgetMerged(t *testing.T) {
	h, o := newAPIHost(t)
	path := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", path)
	const theirs = "apiVersion: v1\nkind: Config\nclusters:\n  - name: work # the big one\n    cluster: {server: https://work}\n"
	put(t, path, theirs)
	s := To(session.New(o), "")
	defer s.Close()
	must(t, Kubeconfig(t.Context(), o, KubeconfigOptions{Merge: true, Use: true, Out: io.Discard}))
	merged := content(t, path)
	must(t, s.Forget())
	if got := content(t, path); !strings.Contains(merged, "kgpu.dev") || strings.Contains(got, o.Inventory.Cluster+"-admin") || strings.Contains(got, "kgpu.dev") ||
		!strings.Contains(got, "name: work # the big one") || !strings.Contains(got, "current-context: \"\"") {
		t.Errorf("merged:\n%s\nthen:\n%s", merged, got)
	}
	for _, text := range []string{theirs, "no: [yaml"} {
		put(t, path, text)
		if err := s.Forget(); err != nil || content(t, path) != text {
			t.Errorf("%v, %q became %q", err, text, content(t, path))
		}
	}
	if !strings.Contains(h.said(), "kubectl config delete-context") {
		t.Errorf("told %s", h.said())
	}
	must(t, os.Remove(path))
	if err := s.Forget(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a kubeconfig is made")
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
