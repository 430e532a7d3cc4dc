package bootstrap

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/report"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// site is machines that answer kgpu as bare hosts would, and do what its steps say only in so far as their facts change.
type site struct {
	event.Recorder
	nodes   []string // names that nodes may have: the first has 10.0.0.10
	servers map[string]*sshtest.Server
	member  string // facts of a host that is a node

	adminConf string                 // path of the control plane's
	more      map[string]string      // host → what facts.sh prints there, too
	offers    map[string]string      // host → what reach.sh prints of the repository there, if it is asked
	warns     map[string]string      // host and step → what it warns of, a line each
	looked    func(host string) bool // by facts.sh; true: the connection is lost by that. nil: never

	mu     sync.Mutex
	did    []string                             // host and step
	joined map[string]bool                      // hosts
	planes map[string]bool                      // hosts that are control planes once they have joined
	gone   map[string]bool                      // nodes that were deleted, of hosts that have not noticed
	clean  map[string]bool                      // hosts on which nothing of kgpu's is left
	pods   string                               // what pods.sh prints
	users  string                               // what users.sh prints between its first and its last line
	token  bool                                 // there is one
	at     map[string]func(e *sshtest.Exec) int // what happens at a step of a host, instead; by both
	agreed map[string]string                    // the value agreed of steps that have it, by their IDs
}

// ofNodes are the lines that a bare host does not have.
var ofNodes = regexp.MustCompile(`(?m)^(kubelet-.*|package=kube.*|unit=kubelet.*|file=.*|.*flannel.*|listen=.*kube.*|end=1)\n`)

var (
	certificates = regexp.MustCompile(`(?m)^kubelet-certificate-der=.*\n`) // of one node
	authority    = regexp.MustCompile(`(?m)^kubelet-ca=.*\n`)
)

func newSite(t *testing.T, hosts ...string) (*site, Options) {
	t.Helper()
	member, err := os.ReadFile("facts/testdata/worker.txt")
	must(t, err)
	s := &site{nodes: []string{"cp1", "w1", "w2"}, servers: map[string]*sshtest.Server{}, member: string(member), joined: map[string]bool{}, planes: map[string]bool{"cp1": true}, gone: map[string]bool{}, clean: map[string]bool{}, at: map[string]func(*sshtest.Exec) int{}, more: map[string]string{}, agreed: map[string]string{}}
	s.adminConf = filepath.Join(t.TempDir(), "admin.conf")
	put(t, s.adminConf, clustertest.AdminConf(t, clustertest.NewAuthority(t).Admin(t, "https://10.0.0.10:6443")))
	inv, err := inventory.Decode("inventory.yaml", []byte("kubernetes: {version: 1.36.3}\nruntime: containerd\nnetwork: flannel\n"+
		"timeouts: {link: 1s, reboot: 1s}\nhosts: [{address: 10.0.0.10, role: control-plane}]\n"), inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	must(t, err)
	inv.Hosts = nil
	for i, name := range hosts {
		s.servers[name] = sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int { return s.exec(name, e) }})
		h := s.servers[name].Host()
		h.Name, h.Role, h.PrivateAddress = name, inventory.Worker, netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", 10+i))
		if i == 0 {
			h.Role = inventory.ControlPlane
		}
		inv.Hosts = append(inv.Hosts, h)
	}
	o := Options{Options: session.Options{Inventory: inv, Run: "r", Events: s}, Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	for _, r := range reason.Table() {
		o.Ignore = append(o.Ignore, string(r.ID)) // these machines are not what preflight is about
	}
	return s, o
}

func (s *site) exec(host string, e *sshtest.Exec) int {
	switch {
	case strings.Contains(e.Line, "receive.sh"):
		return s.batch(host, e)
	case strings.Contains(e.Line, "/follow.sh "):
		return s.at[host+" follow"](e)
	case strings.Contains(e.Line, "exec bash -s "): // the lock, which ends with its input
		runnertest.Lock(e.Stdin, e.Stdout)
		return 0
	case strings.Contains(e.Line, "sftp-server"):
		return clustertest.ServeFile(e, s.adminConf)
	}
	script, err := io.ReadAll(e.Stdin)
	if err != nil {
		return sshtest.Vanish
	}
	if bytes.Contains(script, []byte("kgpu-reach=1")) {
		fmt.Fprintln(e.Stdout, "kgpu-reach=1")
		for line := range strings.Lines(string(script)) {
			if f := strings.Fields(line); len(f) == 2 && strings.Trim(f[1], "0123456789") == "" {
				fmt.Fprintf(e.Stdout, "reach=%s %s open\n", f[0], f[1])
			} else if len(f) > 4 && f[0] == "kubernetes" {
				fmt.Fprint(e.Stdout, s.offers[host])
			}
		}
		fmt.Fprintln(e.Stdout, "end=1")
		return 0
	}
	if bytes.Contains(script, []byte("# Prints the pods of the cluster")) {
		fmt.Fprint(e.Stdout, s.pods)
		return 0
	}
	if bytes.Contains(script, []byte("echo kgpu-deprecated=1")) {
		fmt.Fprint(e.Stdout, "kgpu-deprecated=1\napi=example.com v1 widgets 1.40\nend=1\n")
		return 0
	}
	if bytes.Contains(script, []byte("echo kgpu-users=1")) {
		fmt.Fprintf(e.Stdout, "kgpu-users=1\n%send=1\n", s.users)
		return 0
	}
	if s.looked != nil && s.looked(host) {
		return sshtest.Vanish
	}
	fmt.Fprint(e.Stdout, s.facts(host))
	return 0
}

// facts are what facts.sh would print.
func (s *site) facts(host string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.member
	if !s.joined[host] {
		text = ofNodes.ReplaceAllString(text, "") + "end=1\n"
	}
	if s.clean[host] {
		text = strings.Replace(text, "ledger=37\n", "ledger=0\n", 1)
	}
	text = strings.Replace(text, "end=1\n", s.more[host]+"end=1\n", 1)
	text = strings.Replace(text, "hostname=w1", "hostname="+host, 1)
	text = certificates.ReplaceAllString(text, "")
	if !s.planes[host] && s.joined[host] {
		text = strings.Replace(text, "end=1\n", "kubeadm=join-done uid-"+host+"\nend=1\n", 1)
	}
	if s.planes[host] && s.joined[host] {
		how := "init-done"
		if host != "cp1" {
			how = "join-plane-done uid-" + host
		}
		more := "control-plane=1\nkubeadm=" + how + "\napi=1\n" + strings.Replace(authority.FindString(text), "kubelet-ca=", "cluster-ca=", 1)
		for i, node := range s.nodes {
			if s.joined[node] && !s.gone[node] {
				more += fmt.Sprintf("cluster=node\t%[1]s\tuid-%[1]s\tTrue\t\tv1.36.3\tcontainerd://1.7.24\t10.0.0.%[2]d\n", node, 10+i)
			}
		}
		if s.token {
			more += "token=" + base64.StdEncoding.EncodeToString([]byte("abcdef")) + " " + base64.StdEncoding.EncodeToString([]byte("kgpu")) + "\n"
		}
		text = strings.Replace(text, "end=1\n", more+"end=1\n", 1)
	}
	return text
}

// batch does the steps of a bundle.
func (s *site) batch(host string, e *sshtest.Exec) int {
	zip, err := gzip.NewReader(e.Stdin)
	if err != nil {
		return sshtest.Vanish
	}
	id := ""
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if err != nil {
			break
		}
		if path.Base(h.Name) == "agreed" { // comes after the step's ID
			text, _ := io.ReadAll(archive)
			s.mu.Lock()
			s.agreed[id] = string(text)
			s.mu.Unlock()
		}
		if path.Base(h.Name) != "id" {
			continue
		}
		text, _ := io.ReadAll(archive)
		id = strings.TrimSpace(string(text))
		fmt.Fprintf(e.Stdout, "B\t%s\t0\n", id)
		s.mu.Lock()
		at := s.at[host+" "+id]
		s.mu.Unlock()
		if at != nil {
			return at(e)
		}
		for warning := range strings.Lines(s.warns[host+" "+id]) {
			fmt.Fprintf(e.Stdout, "!\t%s\t%s\n", id, strings.TrimSuffix(warning, "\n"))
		}
		if id == "cluster/token" {
			for name, value := range map[string]string{"token": "abcdef.0123456789abcdef", "ca_hash": "sha256:00"} {
				fmt.Fprintf(e.Stdout, "O\t%s\t%s\t%s\n", id, name, base64.StdEncoding.EncodeToString([]byte(value)))
			}
		}
		s.mu.Lock()
		s.did = append(s.did, host+" "+id)
		s.token = id == "cluster/token" || s.token && id != "cluster/untoken"
		switch node, deletes := strings.CutPrefix(id, "node/delete/"); {
		case id == "cluster/init", id == "cluster/join":
			s.joined[host] = true
			delete(s.gone, host)
			delete(s.clean, host)
		case deletes:
			s.gone[node] = true
		case id == "host/reset":
			delete(s.joined, host)
			s.clean[host] = true
		}
		s.mu.Unlock()
		fmt.Fprintf(e.Stdout, "D\t%s\t0\t1\t\t\n", id)
	}
	fmt.Fprint(e.Stdout, "E\t0\n")
	return 0
}

// A worker that never comes back: the others are made ready, the kubeconfig is here, the exit status is that of the loss,
// and the last words are what is left and how to go on.
func TestAWorkerNeverComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		step string
		at   func(s *site) func(e *sshtest.Exec) int
		id   reason.ID
		left []string // rows of the table
	}{
		"lost": {"w1 kube/packages", func(s *site) func(*sshtest.Exec) int {
			return func(e *sshtest.Exec) int {
				go s.servers["w1"].Stop()
				<-e.Gone
				return sshtest.Vanish
			}
		}, reason.SSHLost, []string{"w1 kube/packages kube/packages, cluster/join SSH_LOST"}},
		"failed": {"w1 kube/packages", func(*site) func(*sshtest.Exec) int {
			return func(e *sshtest.Exec) int {
				fmt.Fprint(e.Stdout, "D\tkube/packages\t1\t1\tPACKAGE_MISSING\tno such version\nE\t1\n")
				return 0
			}
		}, reason.PackageMissing, []string{"w1 kube/packages kube/packages, cluster/join PACKAGE_MISSING"}},
		"lost while it joins": {"w1 cluster/join", func(s *site) func(*sshtest.Exec) int {
			return func(e *sshtest.Exec) int {
				go s.servers["w1"].Stop()
				<-e.Gone
				return sshtest.Vanish
			}
		}, reason.SSHLost, []string{"w1 cluster/join cluster/join SSH_LOST"}},
		"lost when it has joined": {"cp1 cluster/ready", func(s *site) func(*sshtest.Exec) int {
			return func(e *sshtest.Exec) int {
				s.mu.Lock()
				s.at = nil
				s.mu.Unlock()
				s.servers["w1"].Stop()
				fmt.Fprint(e.Stdout, "D\tcluster/ready\t1\t1\tNODE_NOT_READY\tnot ready: node w1\nE\t1\n")
				return 0
			}
		}, reason.SSHLost, []string{"w1 cluster/join - SSH_LOST"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newSite(t, "cp1", "w1", "w2")
			s.at[c.step] = c.at(s)
			err := Up(t.Context(), o, func(*graph.Graph) error { return nil })
			s.wantWithoutW1(t, o, err, c.id, c.left)
		})
	}
}

// The same holds outside of steps: what is left of a worker's plan, where one was shown, is told with the rest.
func TestAWorkerIsLostOutsideOfSteps(t *testing.T) {
	vanish := func(s *site) func(*sshtest.Exec) int {
		return func(e *sshtest.Exec) int {
			go s.servers["w1"].Stop()
			<-e.Gone
			return sshtest.Vanish
		}
	}
	for name, c := range map[string]struct {
		set  func(s *site)
		show func(s *site)
		left []string
	}{
		"while the plan is read": {
			show: func(s *site) { s.servers["w1"].Stop() },
			left: []string{"w1 - os/hosts, os/modules, os/sysctl and 4 more SSH_LOST"},
		},
		"while a former run is followed": {
			set: func(s *site) {
				s.more = map[string]string{"w1": "run=20261120-130501-a1b2c3-2\nrun-by=ada@desk\nrun-step=kube/packages\n"}
				s.at["w1 follow"] = vanish(s)
			},
			left: []string{"w1 - - SSH_LOST"},
		},
		"when a former run has ended": {
			set: func(s *site) {
				s.more = map[string]string{"w1": "run=20261120-130501-a1b2c3-2\nrun-by=ada@desk\nrun-step=kube/packages\n"}
				s.at["w1 follow"] = func(*sshtest.Exec) int { return 1 }
				looks := 0
				s.looked = func(host string) bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					if host != "w1" {
						return false
					}
					if looks++; looks == 2 {
						go s.servers["w1"].Stop()
					}
					return looks > 1
				}
			},
			left: []string{"w1 - - SSH_LOST"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newSite(t, "cp1", "w1", "w2")
			if c.set != nil {
				c.set(s)
			}
			err := Up(t.Context(), o, func(*graph.Graph) error {
				if show := c.show; show != nil {
					c.show = nil
					show(s)
				}
				return nil
			})
			s.wantWithoutW1(t, o, err, reason.SSHLost, c.left)
		})
	}
}

// What comes after the steps goes on, too: the cards of the others are proven.
func TestAWorkerIsLostBeforeTheProof(t *testing.T) {
	site, o := newSite(t, "cp1", "w1")
	open, err := session.Open(t.Context(), o.Options, o.Inventory.Hosts)
	must(t, err)
	s := &story{Session: open, want: o}
	defer s.Close()
	s.TolerateWorkers = true
	s.Facts["w1"].NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0", Driver: "nvidia"}}
	site.servers["w1"].Stop()
	err = s.finish(t.Context(), &graph.Graph{Steps: []*graph.Step{
		{Ref: graph.Ref{Host: "w1", ID: "gpu/ready"}}, {Ref: graph.Ref{Host: "w1", ID: "cuda/toolkit"}, Stage: graph.AfterProof},
	}})
	if all := reason.All(s.Excluded); err != nil || len(all) != 1 || all[0].ID != reason.SSHLost || !strings.Contains(site.told(), "there is nothing to prove") {
		t.Errorf("%v; left %v; told %s", err, s.Excluded, site.told())
	}
}

// Without the control plane nothing goes on there, either; nor does a story that has no rest without a worker.
func TestWhoIsNotLeftOut(t *testing.T) {
	for name, story := range map[string]func(s *site, o Options) error{
		"the control plane": func(s *site, o Options) error {
			return Up(t.Context(), o, func(*graph.Graph) error { s.servers["cp1"].Stop(); return nil })
		},
		"reset": func(s *site, o Options) error {
			return Reset(t.Context(), o, nil, func(*graph.Graph) error { s.servers["w1"].Stop(); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := newSite(t, "cp1", "w1")
			if err := story(s, o); !errors.Is(err, &reason.Error{ID: reason.SSHLost}) {
				t.Errorf("%v", err)
			}
			if len(s.did) > 0 || strings.Contains(s.told(), "is excluded") {
				t.Errorf("did %q; told %s", s.did, s.told())
			}
		})
	}
}

// wantWithoutW1 holds that a run lost w1 for that reason, did all for the others, and told what is left.
func (s *site) wantWithoutW1(t *testing.T, o Options, err error, id reason.ID, left []string) {
	t.Helper()
	all := reason.All(err)
	if len(all) != 1 || all[0].ID != id || all[0].Host != "w1" || reason.ExitStatus(err) != reason.Lookup(id).Exit {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"w2 cluster/join", "cp1 cluster/untoken", "cp1 cluster/ready"} {
		if n := len(slices.DeleteFunc(slices.Clone(s.did), func(did string) bool { return did != want })); n != 1 {
			t.Errorf("%s was done %d times: %q", want, n, s.did)
		}
	}
	if _, err := os.Stat(o.Kubeconfig); err != nil {
		t.Error(err)
	}
	var out bytes.Buffer
	sink := report.New(report.Plain, &out, report.Quiet)
	for _, e := range s.Events() {
		sink.Emit(e)
	}
	sink.Emit(event.Event{Kind: event.Result, Reason: string(id), Text: "failed; this carries on: kgpu up"})
	_, table, _ := strings.Cut(out.String(), "what is left:\n")
	var rows []string
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := slices.Concat([]string{"HOST REACHED LEFT TO DO REASON"}, left, []string{"00:00:00 failed; this carries on: kgpu up"})
	if !slices.Equal(rows, want) {
		t.Errorf("the last words are %q", rows)
	}
}

// Nodes that are not ready although every host can be reached: nobody is left behind for that.
func TestNobodyIsBehind(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.at["cp1 cluster/ready"] = func(e *sshtest.Exec) int {
		fmt.Fprint(e.Stdout, "D\tcluster/ready\t1\t1\tNODE_NOT_READY\tnot ready: node w1\nE\t1\n")
		return 0
	}
	err := Up(t.Context(), o, func(*graph.Graph) error { return nil })
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.NodeNotReady || all[0].Host != "cp1" {
		t.Errorf("%v", err)
	}
	for _, e := range s.Events() {
		if strings.Contains(e.Text, "is excluded") {
			t.Errorf("told %q", e.Text)
		}
	}
}

// Without the control plane nothing goes on.
func TestTheControlPlaneFails(t *testing.T) {
	s, o := newSite(t, "cp1", "w1")
	s.at["cp1 cluster/init"] = func(e *sshtest.Exec) int {
		fmt.Fprint(e.Stdout, "D\tcluster/init\t1\t1\tSTEP_FAILED\tno\nE\t1\n")
		return 0
	}
	err := Up(t.Context(), o, func(*graph.Graph) error { return nil })
	if all := reason.All(err); len(all) != 1 || all[0].Step != "cluster/init" || slices.Contains(s.did, "w1 cluster/join") {
		t.Errorf("%v; did %q", err, s.did)
	}
}
