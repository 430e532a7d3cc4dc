package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kgpu.dev/kgpu/bootstrap/access/sitetest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// newcomers are hosts as a person has them before there is an inventory: names in an ssh_config, and a known_hosts.
type newcomers struct {
	t       *testing.T
	dir     string
	config  strings.Builder
	known   string // path
	servers map[string]*sshtest.Server
	targets []inventory.Target
}

func newNewcomers(t *testing.T) *newcomers {
	n := &newcomers{t: t, dir: t.TempDir(), servers: map[string]*sshtest.Server{}}
	n.known = filepath.Join(n.dir, "known_hosts")
	return n
}

// host adds a host that answers with these lines of facts, and is known or not.
func (n *newcomers) host(name string, known bool, more ...string) *sshtest.Server {
	n.t.Helper()
	address := len(n.targets) + 1
	f := &fakeHost{name: name, facts: func(e *sshtest.Exec) int {
		fmt.Fprint(e.Stdout, sitetest.Bare(name, append([]string{"boot-id=" + name, "address=2: eth0    inet 10.7.0." + fmt.Sprint(address) + "/24 scope global eth0"}, more...)...))
		return 0
	}}
	s := sshtest.Listen(n.t, sshtest.Config{Exec: f.exec})
	n.add(name, s)
	if known {
		n.know(s.Addr(), s.HostKey())
	}
	return s
}

func (n *newcomers) add(name string, s *sshtest.Server) {
	n.t.Helper()
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		n.t.Fatal(err)
	}
	fmt.Fprintf(&n.config, "Host %s\n  HostName 127.0.0.1\n  Port %s\n  IdentityFile %s\n  UserKnownHostsFile %s\n", name, port, s.Host().SSH.Key, n.known)
	n.servers[name] = s
	n.targets = append(n.targets, inventory.Target{Address: name})
}

func (n *newcomers) know(address string, key ssh.PublicKey) {
	n.t.Helper()
	f, err := os.OpenFile(n.known, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, knownhosts.Line([]string{address}, key))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		n.t.Fatal(err)
	}
}

// written is what a run of Init left.
type written struct {
	err  error
	file string
	text string // of the file; empty: there is none
	inv  *inventory.Inventory
	said string
}

func (n *newcomers) init(change func(*InitOptions)) written {
	n.t.Helper()
	return n.initUntil(n.t.Context(), change)
}

func (n *newcomers) initUntil(ctx context.Context, change func(*InitOptions)) written {
	n.t.Helper()
	config := filepath.Join(n.dir, "ssh_config")
	if err := os.WriteFile(config, []byte(n.config.String()), 0o600); err != nil {
		n.t.Fatal(err)
	}
	var said bytes.Buffer
	o := InitOptions{
		Options: session.Options{Run: "r-1", Events: event.Discard, SSHConfig: config},
		Targets: n.targets, File: filepath.Join(n.dir, "inventory.yaml"), Out: &said, Talk: &said,
		Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
	}
	if change != nil {
		change(&o)
	}
	w := written{err: Init(ctx, o), file: o.File}
	w.said = said.String()
	text, err := os.ReadFile(o.File)
	if errors.Is(err, fs.ErrNotExist) {
		return w
	}
	if err != nil {
		n.t.Fatal(err)
	}
	w.text = string(text)
	if w.inv, err = inventory.Decode(o.File, text, inventory.Options{Now: o.Now}); err != nil && w.err == nil {
		n.t.Fatalf("%v\n%s", err, text)
	}
	return w
}

func (w written) wants(t *testing.T, parts ...string) {
	t.Helper()
	contains(t, w.text, parts...)
}

const anA100 = "pci=0000:17:00.0 030200 20b0 -"

// TestInit looks at three known hosts and writes what they are; that inventory leads to the same hosts.
func TestInit(t *testing.T) {
	n := newNewcomers(t)
	n.host("gpu1", true, anA100, "swap-active=Filename Type Size Used Priority", "swap-active=/swap.img file 1048572 0 -2")
	n.host("head", true)
	n.host("gpu-three", true, anA100)
	w := n.init(func(o *InitOptions) { o.Cluster, o.Follow = "lab", " --ssh-config x" })
	must(t, w.err)
	var got []string
	for _, h := range w.inv.Hosts {
		got = append(got, h.Name+" "+h.Address+" "+string(h.Role)+" "+h.PrivateAddress.String())
	}
	if want := "head head control-plane 10.7.0.2, gpu1 gpu1 worker 10.7.0.1, gpu-three gpu-three worker 10.7.0.3"; strings.Join(got, ", ") != want || w.inv.Cluster != "lab" {
		t.Errorf("%s: %s, want %s", w.inv.Cluster, strings.Join(got, ", "), want)
	}
	w.wants(t, "because it is the only host without cards", "1 card: A100", "WARNING: swap is on: /swap.img [HOST_SWAP_ON]", "swap: disable")
	if strings.Contains(w.text, "hostKey:") {
		t.Error("keys are pinned that known_hosts has")
	}
	if !strings.Contains(w.said, "warning: gpu1: swap is on") || !strings.HasSuffix(w.said, "kgpu up --ssh-config x    # makes the cluster\n") {
		t.Errorf("said:\n%s", w.said)
	}
	for name, s := range n.servers {
		if lines := s.Lines(); len(lines) != 1 || s.Accepted() != 1 {
			t.Errorf("%s was asked %q over %d connections", name, lines, s.Accepted())
		}
	}
	o := session.Options{Inventory: w.inv, Run: session.NewRunID(time.Now()), Events: event.Discard, SSHConfig: filepath.Join(n.dir, "ssh_config")}
	if _, err := session.Open(t.Context(), o, w.inv.Hosts); err != nil {
		t.Errorf("the inventory does not lead to the hosts: %v", err)
	}
}

// TestInitAsks asks for hosts that nobody knows, and adds the keys they showed to the file of known hosts that they have.
func TestInitAsks(t *testing.T) {
	n := newNewcomers(t)
	n.host("head", true)
	n.host("new1", false)
	n.host("newer1", false)
	asked := map[string]string{}
	ask := func(o *InitOptions) {
		o.Trust = func(k *remote.UnknownKeyError) bool { asked[k.SHA256()] = k.KnownHosts; return true }
	}
	w := n.init(ask)
	must(t, w.err)
	if len(asked) != 2 || asked[ssh.FingerprintSHA256(n.servers["new1"].HostKey())] != n.known || asked[ssh.FingerprintSHA256(n.servers["newer1"].HostKey())] != n.known {
		t.Errorf("asked for %v", asked)
	}
	if len(w.inv.Hosts) != 3 || strings.Contains(w.text, "hostKey:") {
		t.Errorf("written:\n%s", w.text)
	}
	clear(asked)
	if w = n.init(func(o *InitOptions) { ask(o); o.File = filepath.Join(n.dir, "again.yaml") }); w.err != nil || len(asked) > 0 {
		t.Errorf("%v; asked again for %v", w.err, asked)
	}
}

// TestInitPins trusts hosts that nobody knows where it is told to, and pins the keys they showed; known_hosts stays as it is.
func TestInitPins(t *testing.T) {
	n := newNewcomers(t)
	n.host("head", true)
	n.host("new1", false)
	n.host("newer1", false)
	before, err := os.ReadFile(n.known)
	must(t, err)
	w := n.init(func(o *InitOptions) { o.AcceptNew = true })
	must(t, w.err)
	pinned := map[string]string{}
	for _, h := range w.inv.Hosts {
		pinned[h.Address] = h.SSH.HostKey
	}
	if pinned["head"] != "" || pinned["new1"] != n.servers["new1"].HostKeyLine() || pinned["newer1"] != n.servers["newer1"].HostKeyLine() {
		t.Errorf("pinned: %q", pinned)
	}
	w.wants(t, ssh.FingerprintSHA256(n.servers["new1"].HostKey())+", taken as it was shown")
	if after, err := os.ReadFile(n.known); err != nil || !bytes.Equal(before, after) {
		t.Errorf("known_hosts has changed (%v)", err)
	}
}

// TestInitTrustsNobody: without somebody who says so, a host that is not known is not logged in to, and nothing is written.
func TestInitTrustsNobody(t *testing.T) {
	for name, trust := range map[string]func(*remote.UnknownKeyError) bool{
		"nobody to ask": nil,
		"refused":       func(*remote.UnknownKeyError) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNewcomers(t)
			n.host("head", true)
			n.host("stranger", false)
			w := n.init(func(o *InitOptions) { o.Trust = trust })
			if reason.ExitStatus(w.err) != reason.Lookup(reason.SSHHostKeyUnknown).Exit || !strings.Contains(reason.All(w.err)[0].AdviceLine(), "--accept-new") {
				t.Errorf("%v", w.err)
			}
			if w.text != "" || len(n.servers["stranger"].Lines()) > 0 {
				t.Errorf("written: %q; the stranger was asked %q", w.text, n.servers["stranger"].Lines())
			}
		})
	}
}

// TestInitInterruptedQuestion: Ctrl-C at the question is no refusal.
func TestInitInterruptedQuestion(t *testing.T) {
	n := newNewcomers(t)
	n.host("stranger", false)
	ctx, cancel := context.WithCancel(t.Context())
	w := n.initUntil(ctx, func(o *InitOptions) {
		o.Trust = func(*remote.UnknownKeyError) bool {
			cancel()
			return false
		}
	})
	if !errors.Is(w.err, &reason.Error{ID: reason.Cancelled}) || w.text != "" {
		t.Errorf("%v, written: %q", w.err, w.text)
	}
}

// TestInitMismatch: trusting new hosts is no word about one that shows another key than it had.
func TestInitMismatch(t *testing.T) {
	n := newNewcomers(t)
	n.host("head", true)
	liar := n.host("liar", true)
	liar.SetHostKeys(sshtest.NewKey())
	w := n.init(func(o *InitOptions) {
		o.Trust = func(k *remote.UnknownKeyError) bool { t.Errorf("asked for %v", k); return false }
	})
	if !errors.Is(w.err, &reason.Error{ID: reason.SSHHostKeyMismatch}) || len(w.inv.Hosts) != 1 || len(liar.Lines()) > 0 {
		t.Errorf("%v; %q", w.err, liar.Lines())
	}
	w.wants(t, "  # - address: liar\n", "[SSH_HOST_KEY_MISMATCH]")
}

// TestInitUnreached writes those that it reached, has the others as comments, and ends with all their reasons.
func TestInitUnreached(t *testing.T) {
	n := newNewcomers(t)
	n.host("head", true)
	n.host("off", true).Stop()
	n.host("closed", true).Refuse(true)
	liar := sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int { fmt.Fprintln(e.Stderr, "no bash"); return 127 }})
	n.add("liar", liar)
	n.know(liar.Addr(), liar.HostKey())
	w := n.init(nil)
	var ids []string
	for _, e := range reason.All(w.err) {
		ids = append(ids, e.Host+" "+string(e.ID))
	}
	if got, want := strings.Join(ids, ", "), "off SSH_UNREACHABLE, closed SSH_AUTH_FAILED, liar HOST_FACTS_FAILED"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(w.inv.Hosts) != 1 {
		t.Errorf("%d hosts", len(w.inv.Hosts))
	}
	w.wants(t, "  # - address: off\n  #   role: worker\n", "  # - address: closed\n", "  # - address: liar\n", "[SSH_UNREACHABLE]", "--user USER")
}

// TestInitOfNobody writes nothing.
func TestInitOfNobody(t *testing.T) {
	n := newNewcomers(t)
	n.host("off", true).Stop()
	n.host("offline", true).Stop()
	w := n.init(nil)
	if got := reason.ExitStatus(w.err); got != reason.Lookup(reason.SSHUnreachable).Exit || w.text != "" {
		t.Errorf("exit status %d, written %q", got, w.text)
	}
}

// TestInitOverwritesNothing: what is there stays, and no host is contacted for nothing.
func TestInitOverwritesNothing(t *testing.T) {
	n := newNewcomers(t)
	n.host("head", true)
	file := filepath.Join(n.dir, "there.yaml")
	must(t, os.Symlink(filepath.Join(n.dir, "nowhere"), file))
	var usage *reason.UsageError
	if w := n.init(func(o *InitOptions) { o.File = file }); !errors.As(w.err, &usage) || !strings.Contains(w.err.Error(), "stays as it is") {
		t.Error(w.err)
	}
	if w := n.init(func(o *InitOptions) { o.File = filepath.Join(n.dir, "no", "inventory.yaml") }); !errors.As(w.err, &usage) {
		t.Error(w.err)
	}
	if n.servers["head"].Accepted() != 0 {
		t.Error("the host was contacted")
	}
	// It comes while the hosts are looked at.
	n = newNewcomers(t)
	n.host("new", false)
	w := n.init(func(o *InitOptions) {
		o.Trust = func(*remote.UnknownKeyError) bool {
			return os.WriteFile(o.File, []byte("cluster: mine\n"), 0o600) == nil
		}
	})
	if text, _ := os.ReadFile(w.file); !errors.As(w.err, &usage) || string(text) != "cluster: mine\n" {
		t.Errorf("%v; the file has %q", w.err, text)
	}
}

// A folder may be there that takes no files.
func TestInitWhereNothingCanBeWritten(t *testing.T) {
	n := newNewcomers(t)
	n.host("head", true)
	usage := (*reason.UsageError)(nil)
	if w := n.init(func(o *InitOptions) { o.File = "/proc/self/inventory.yaml" }); !errors.As(w.err, &usage) {
		t.Errorf("%v", w.err)
	}
}

// TestInitToStdout prints the inventory and nothing else where it goes.
func TestInitToStdout(t *testing.T) {
	n := newNewcomers(t)
	n.host("head", true)
	var out bytes.Buffer
	w := n.init(func(o *InitOptions) { o.File, o.Out = "-", &out })
	if _, err := inventory.Decode("x", out.Bytes(), inventory.Options{}); errors.Join(err, w.err) != nil || !strings.Contains(w.said, "kgpu up") {
		t.Errorf("%v, %v; said %q", err, w.err, w.said)
	}
}

// TestInitCommandLine: what is wrong with the words is said before any host is contacted.
func TestInitCommandLine(t *testing.T) {
	for want, change := range map[string]func(*InitOptions){
		"cluster: ":        func(o *InitOptions) { o.Cluster = "My_Cluster" },
		"ssh.user: ":       func(o *InitOptions) { o.User = "-oProxyCommand" },
		"--sudo-password ": func(o *InitOptions) { o.SudoPassword = "hunter22" },
	} {
		n := newNewcomers(t)
		n.host("head", true)
		w := n.init(change)
		var usage *reason.UsageError
		if !errors.As(w.err, &usage) || !strings.HasPrefix(w.err.Error(), want) || strings.Contains(w.err.Error(), "hunter22") || n.servers["head"].Accepted() != 0 {
			t.Errorf("%v, want %q", w.err, want)
		}
	}
}

// TestInitBastion: the key of a host on the way cannot be pinned for the host, and is not; who can be asked is.
func TestInitBastion(t *testing.T) {
	n := newNewcomers(t)
	bastion := n.host("bastion", false)
	n.host("inner", true)
	n.config.WriteString("  ProxyJump bastion\n")
	n.targets = n.targets[1:]
	w := n.init(func(o *InitOptions) { o.AcceptNew = true })
	if !errors.Is(w.err, &reason.Error{ID: reason.SSHHostKeyUnknown}) || !strings.Contains(reason.All(w.err)[0].AdviceLine(), "on the way") || w.text != "" {
		t.Errorf("%v", w.err)
	}
	asked := ""
	w = n.init(func(o *InitOptions) {
		o.Trust = func(k *remote.UnknownKeyError) bool { asked += k.SHA256(); return true }
	})
	if w.err != nil || asked != ssh.FingerprintSHA256(bastion.HostKey()) {
		t.Errorf("%v; asked for %q", w.err, asked)
	}
}

// TestInitHostile: whatever a host says of itself, the file is an inventory, and a terminal is not obeyed.
func TestInitHostile(t *testing.T) {
	n := newNewcomers(t)
	n.host("head", true)
	n.host("evil", true, "hostname=evil", "os-release=PRETTY_NAME=\"x\ufffe"+sitetest.Evil+"\u0085hosts: []\"", "nvidia-loaded="+sitetest.Evil, anA100, "swap-active=h", "swap-active="+strings.Repeat("long", 300)+" file 1 0 -2")
	w := n.init(nil)
	if w.err != nil || len(w.inv.Hosts) != 2 {
		t.Fatalf("%v", w.err)
	}
	if strings.ContainsAny(w.text+w.said, "\x1b\x07\u009b\u202e\u0085\x00") {
		t.Errorf("%q %q", w.text, w.said)
	}
	for i, line := range strings.Split(w.text, "\n") {
		if len([]rune(line)) > 120 {
			t.Errorf("line %d has %d columns: %s", i+1, len([]rune(line)), line)
		}
	}
}

// TestInitPaths: paths of the command line start where kgpu runs, those of an inventory where it is.
func TestInitPaths(t *testing.T) {
	n := newNewcomers(t)
	head := n.host("head", true)
	n.config.Reset() // the key is named by the command line alone
	_, port, err := net.SplitHostPort(head.Addr())
	must(t, err)
	fmt.Fprintf(&n.config, "Host head\n  HostName 127.0.0.1\n  Port %s\n  UserKnownHostsFile %s\n", port, n.known)
	t.Setenv("HOME", filepath.Join(n.dir, "home"))
	elsewhere := filepath.Join(n.dir, "elsewhere")
	for _, dir := range []string{elsewhere, filepath.Join(n.dir, "home", ".ssh")} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	head.ClientKey().Write(t, filepath.Join(n.dir, "home", ".ssh", "id"))
	t.Chdir(elsewhere)
	w := n.init(func(o *InitOptions) { o.Key, o.SudoPassword = "../home/.ssh/id", "file:password" })
	must(t, w.err)
	w.wants(t, "  key: ~/.ssh/id\n", "  sudoPassword: file:"+filepath.Join(elsewhere, "password")+" #")
	if got := w.inv.Hosts[0].SSH; got.Key != filepath.Join(n.dir, "home", ".ssh", "id") {
		t.Errorf("%+v", got)
	}
}
