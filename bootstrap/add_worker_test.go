package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/inventory"
)

// growing is a site with a control plane that is one, and a host w1 that its inventory, which is a file, does not have yet.
func growing(t *testing.T) (s *sitetest.Site, o Options, w1 inventory.Target) {
	t.Helper()
	s, o = newSite(t)
	s.Member = strings.ReplaceAll(s.Member, "10.199.1.11", "10.0.0.11") // where the cluster has the node
	key := sshtest.NewKey()
	cp := sshtest.Listen(t, sshtest.Config{HostKeys: []ssh.Signer{key}, Exec: func(e *sshtest.Exec) int { return s.Exec("cp1", e) }})
	s.Servers["w1"] = sshtest.Listen(t, sshtest.Config{
		HostKeys: []ssh.Signer{key}, Authorized: []ssh.PublicKey{cp.ClientKey().PublicKey()}, Exec: func(e *sshtest.Exec) int { return s.Exec("w1", e) },
	})
	s.Joined["cp1"] = true
	path := filepath.Join(t.TempDir(), "inventory.yaml")
	at := cp.Host()
	text := fmt.Sprintf("kubernetes: {version: 1.36.3}\nruntime: containerd\nnetwork: flannel\nnotebook: {framework: none}\ntimeouts: {link: 1s, reboot: 1s}\nssh: {key: %s, hostKey: %q}\n"+
		"hosts:\n  - {address: 127.0.0.1, name: cp1, privateAddress: 10.0.0.10, role: control-plane, ssh: {port: %d}} # the first\n", at.SSH.Key, at.SSH.HostKey, at.SSH.Port)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	inv, err := inventory.Load(path, inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	must(t, err)
	o.Inventory = inv
	return s, o, inventory.Target{User: "root", Address: "localhost", Port: s.Servers["w1"].Host().SSH.Port}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// The new host is reached as the command line says, and stands so in the inventory, by its node's name, before it is changed.
func TestAddWorker(t *testing.T) {
	s, o, w1 := growing(t)
	before := content(t, o.Inventory.Path)
	must(t, AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, func(*graph.Graph) error { return nil }))
	if want := before + fmt.Sprintf("  - {address: localhost, name: w1, ssh: {user: root, port: %d}}\n", w1.Port); content(t, o.Inventory.Path) != want {
		t.Errorf("the inventory is\n%s\nwant\n%s", content(t, o.Inventory.Path), want)
	}
	if !slices.Contains(s.Did, "w1 cluster/join") {
		t.Errorf("done: %q", s.Did)
	}

	// Again, in another spelling or by its name: there is nothing to do.
	inv, err := inventory.Load(o.Inventory.Path, inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	must(t, err)
	o.Inventory, s.Did = inv, nil
	before = content(t, o.Inventory.Path)
	w1.Address = "LOCALHOST."
	must(t, AddWorker(t.Context(), o, []inventory.Target{w1, {Address: "cp1"}, {Address: "w1"}}, inventory.Way{}, func(*graph.Graph) error { return nil }))
	if content(t, o.Inventory.Path) != before || slices.Contains(s.Did, "w1 cluster/join") {
		t.Errorf("again: %q, and the inventory is\n%s", s.Did, content(t, o.Inventory.Path))
	}
	var usage *reason.UsageError
	for _, other := range []inventory.Target{{Address: "localhost", User: "joe"}, {Address: "localhost", Port: 22}} {
		if err := AddWorker(t.Context(), o, []inventory.Target{other}, inventory.Way{}, nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), fmt.Sprintf("as root@localhost:%d", w1.Port)) {
			t.Errorf("%+v: %v", other, err)
		}
	}
}

// Control planes come by twos, and no worker becomes one. The file stays as it is where they cannot.
func TestAddControlPlane(t *testing.T) {
	s, o, w1 := growing(t)
	before := content(t, o.Inventory.Path)
	show := func(*graph.Graph) error { return nil }
	both, v := []inventory.Target{w1, {Address: "10.0.0.12"}}, "10.0.0.100"
	for _, c := range []struct {
		what            string
		hosts           []inventory.Target
		virtualIP, want string
	}{
		{"a second control plane", both[:1], "", "there would be 2 control planes: a cluster has 1, 3 or 5; name one more"},
		{"three, and nothing leads to them", both, "", "3 hosts are control planes, and nothing leads to whichever works: "},
		{"the address of one of them", both, "10.0.0.12", "kubernetes.virtualIP: 10.0.0.12 is the address of a host, "},
	} {
		var usage *reason.UsageError
		err := AddControlPlane(t.Context(), o, c.hosts, c.virtualIP, inventory.Way{}, show)
		if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if now := content(t, o.Inventory.Path); now != before || len(s.Did) > 0 {
		t.Errorf("done: %q; the inventory is\n%s", s.Did, now)
	}
	if edited, err := (growth{inventory.ControlPlane, v}).in([]byte(before), nil); err != nil || !strings.Contains(string(edited), "virtualIP: \"10.0.0.100\"") {
		t.Errorf("%v\n%s", err, edited)
	}
	if now := content(t, o.Inventory.Path); now != before {
		t.Errorf("the inventory is\n%s", now)
	}
	must(t, AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, show))
	var err error
	o.Inventory, err = inventory.Load(o.Inventory.Path, inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	must(t, err)
	if err := AddControlPlane(t.Context(), o, []inventory.Target{{Address: "w1"}}, "", inventory.Way{}, show); err == nil || !strings.Contains(err.Error(), "as a worker") {
		t.Errorf("a worker: %v", err)
	}
}

// There are one, three or five control planes, and whoever names too few or too many new ones is told how many are missing.
func TestMoreControlPlanes(t *testing.T) {
	for numbers, want := range map[[2]int]string{
		{1, 1}: "2 control planes: a cluster has 1, 3 or 5; name one more", {1, 2}: "", {1, 3}: "4 control planes: a cluster has 1, 3 or 5; name one more", {1, 4}: "",
		{3, 1}: "4 control planes: a cluster has 1, 3 or 5; name one more", {3, 2}: "", {3, 4}: "7 control planes: a cluster has 1, 3 or 5; name 2 fewer",
		{5, 1}: "6 control planes: a cluster has 1, 3 or 5",
	} {
		said := ""
		if err := mayGrow(numbers[0], numbers[1]); err != nil {
			said = strings.TrimPrefix(err.Error(), "there would be ")
		}
		if said != want {
			t.Errorf("%v: %q, want %q", numbers, said, want)
		}
	}
}

// A new host is reached by what the command line says of the way, which stands in the inventory then; its key may be asked about, or
// pinned as it comes.
func TestAddWorkerAnotherWay(t *testing.T) {
	for _, asks := range []bool{true, false} {
		s, o, w1 := growing(t)
		text := content(t, o.Inventory.Path)
		_, key, _ := strings.Cut(text, "ssh: {key: ")
		key, pin, _ := strings.Cut(strings.SplitN(key, "}", 2)[0], ", hostKey: ")
		known := filepath.Join(t.TempDir(), "known_hosts")
		text = strings.Replace(text, ", hostKey: "+pin+"}", ", knownHosts: "+known+"}", 1)
		text = strings.Replace(text, "ssh: {port", "ssh: {hostKey: "+pin+", port", 1)
		text = strings.Replace(text, "{key: "+key, "{key: /nowhere/id", 1)
		text = strings.Replace(text, "{hostKey: ", "{key: "+key+", hostKey: ", 1)
		must(t, os.WriteFile(o.Inventory.Path, []byte(text), 0o600))
		inv, err := inventory.Load(o.Inventory.Path, inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
		must(t, err)
		asked := 0
		o.Inventory, w1.User = inv, ""
		o.Trust = func(*remote.UnknownKeyError) bool { asked++; return true }
		if !asks {
			o.Trust = nil
		}
		must(t, AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{User: "root", Key: key, SudoPassword: "${SUDO}", AcceptNew: !asks}, func(*graph.Graph) error { return nil }))
		added, _ := strings.CutPrefix(content(t, o.Inventory.Path), text)
		want := fmt.Sprintf("  - {address: localhost, name: w1, ssh: {user: root, port: %d, key: %s, sudoPassword: \"${SUDO}\"", w1.Port, key)
		if !asks {
			want += ", hostKey: " + s.Servers["w1"].HostKeyLine()
		}
		if added != want+"}}\n" {
			t.Errorf("added %q, want %q", added, want)
		}
		if data, _ := os.ReadFile(known); asks != (asked == 1) || asks != strings.Contains(string(data), "ssh-ed25519") {
			t.Errorf("asked %d times; known: %q", asked, data)
		}
	}
}

// What is wrong with the way is the command line's, and no host is contacted.
func TestAddWorkerWrongWay(t *testing.T) {
	for want, way := range map[string]inventory.Way{"ssh.user: ": {User: "-oProxyCommand"}, "--sudo-password ": {SudoPassword: "hunter22"}} {
		s, o, w1 := growing(t)
		s.Looked = func(host string) bool { t.Errorf("%s was contacted", host); return false }
		usage := (*reason.UsageError)(nil)
		if err := AddWorker(t.Context(), o, []inventory.Target{w1}, way, nil); !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A host that nobody got to is not written.
func TestAddWorkerOutOfReach(t *testing.T) {
	s, o, w1 := growing(t)
	before := content(t, o.Inventory.Path)
	s.Servers["w1"].Stop()
	err := AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, func(*graph.Graph) error { return nil })
	if !errors.Is(err, &reason.Error{ID: reason.SSHUnreachable}) || content(t, o.Inventory.Path) != before {
		t.Errorf("%v; the inventory is\n%s", err, content(t, o.Inventory.Path))
	}
}

// Nor is one that is lost while the plan is read: what it has left is the same command's.
func TestAddWorkerThatIsLost(t *testing.T) {
	s, o, w1 := growing(t)
	before := content(t, o.Inventory.Path)
	err := AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, func(*graph.Graph) error { s.Servers["w1"].Stop(); return nil })
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.SSHLost || all[0].Host != "localhost" || content(t, o.Inventory.Path) != before {
		t.Errorf("%v; the inventory is\n%s", err, content(t, o.Inventory.Path))
	}
	if _, err := os.Stat(o.Kubeconfig); err != nil {
		t.Error(err)
	}
}

// A new host has the name of its node, unless the inventory would not take that, or has it for another host.
func TestNameNew(t *testing.T) {
	for _, c := range []struct{ hostname, want string }{
		{"gpu1", "gpu1"}, {"GPU1", "gpu1"}, {"gpu1.example.org", "gpu1.example.org"}, {"gpu_1", ""}, {strings.Repeat("x", 64), ""}, {"cp1", ""}, {"other.host", ""}, {"new.host", "new.host"},
	} {
		added := []inventory.NewHost{{Address: "new.host"}}
		nameNew(added, []inventory.Host{{Address: "10.0.0.10", Name: "cp1"}, {Address: "other.host"}, {Address: "new.host"}}, map[string]*facts.Host{"new.host": {Hostname: c.hostname}})
		if added[0].Name != c.want {
			t.Errorf("%s is named %q, want %q", c.hostname, added[0].Name, c.want)
		}
	}
}

// What somebody writes into the inventory while the plan is read is not lost.
func TestAddWorkerToAFileThatChanges(t *testing.T) {
	s, o, w1 := growing(t)
	mine := content(t, o.Inventory.Path) + "# mine\n"
	err := AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, func(*graph.Graph) error { return os.WriteFile(o.Inventory.Path, []byte(mine), 0o600) })
	var usage *reason.UsageError
	if !errors.As(err, &usage) || content(t, o.Inventory.Path) != mine || len(s.Did) > 0 {
		t.Errorf("%v; done %q; the inventory is\n%s", err, s.Did, content(t, o.Inventory.Path))
	}
}

// A file that cannot be written is found before any host is contacted: here its name leaves no room for that of its successor.
func TestAddWorkerToAFileThatCannotBeWritten(t *testing.T) {
	s, o, w1 := growing(t)
	path := filepath.Join(t.TempDir(), strings.Repeat("x", 255))
	must(t, os.Rename(o.Inventory.Path, path))
	o.Inventory.Path = path
	s.Looked = func(host string) bool { t.Errorf("%s was contacted", host); return false }
	usage := (*reason.UsageError)(nil)
	if err := AddWorker(t.Context(), o, []inventory.Target{w1}, inventory.Way{}, func(*graph.Graph) error { return nil }); !errors.As(err, &usage) {
		t.Errorf("%v", err)
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contains wants all of the parts in a text.
func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
