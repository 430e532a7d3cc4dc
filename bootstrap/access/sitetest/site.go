// Package sitetest has hosts for tests that look at them and run steps on them over SSH.
package sitetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/remote/sshtest"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

// Site is machines that answer kgpu as bare hosts would, and do what its steps say only in so far as their facts change.
type Site struct {
	event.Recorder
	Nodes   []string // names that nodes may have: the first has 10.0.0.10
	Servers map[string]*sshtest.Server
	Member  string // facts of a host that is a node

	AdminConf string                 // path of the control plane's
	More      map[string]string      // host → what facts.sh prints there, too
	Offers    map[string]string      // host → what reach.sh prints of the repository there, if it is asked
	Warns     map[string]string      // host and step → what it warns of, a line each
	Looked    func(host string) bool // by facts.sh; true: the connection is lost by that. nil: never

	Mu     sync.Mutex                           // guards what follows
	Did    []string                             // host and step
	Joined map[string]bool                      // hosts
	Planes map[string]bool                      // hosts that are control planes once they have joined
	Gone   map[string]bool                      // nodes that were deleted, of hosts that have not noticed
	Clean  map[string]bool                      // hosts on which nothing of kgpu's is left
	Pods   string                               // what pods.sh prints
	Users  string                               // what users.sh prints between its first and its last line
	Token  bool                                 // there is one
	At     map[string]func(e *sshtest.Exec) int // what happens at a step of a host, instead; by both
	Agreed map[string]string                    // the value agreed of steps that have it, by their IDs
}

// OfNodes are the lines that a bare host does not have.
var OfNodes = regexp.MustCompile(`(?m)^(kubelet-.*|package=kube.*|unit=kubelet.*|file=.*|.*flannel.*|listen=.*kube.*|end=1)\n`)

var certificates = regexp.MustCompile(`(?m)^kubelet-certificate-der=.*\n`) // of one node

// Authority is the line with the cluster's certificate authority.
var Authority = regexp.MustCompile(`(?m)^kubelet-ca=.*\n`)

// New starts the hosts of a site, the first of which is the control plane, and returns what a session with them needs. Recorded is a file
// with the facts of a host that is a node.
func New(t *testing.T, recorded string, hosts ...string) (*Site, session.Options) {
	t.Helper()
	member, err := os.ReadFile(recorded)
	must(t, err)
	s := &Site{Nodes: []string{"cp1", "w1", "w2"}, Servers: map[string]*sshtest.Server{}, Member: string(member), Joined: map[string]bool{}, Planes: map[string]bool{"cp1": true}, Gone: map[string]bool{}, Clean: map[string]bool{}, At: map[string]func(*sshtest.Exec) int{}, More: map[string]string{}, Agreed: map[string]string{}}
	s.AdminConf = filepath.Join(t.TempDir(), "admin.conf")
	must(t, os.WriteFile(s.AdminConf, []byte(clustertest.AdminConf(t, clustertest.NewAuthority(t).Admin(t, "https://10.0.0.10:6443"))), 0o600))
	inv, err := inventory.Decode("inventory.yaml", []byte("kubernetes: {version: 1.36.3}\nruntime: containerd\nnetwork: flannel\n"+
		"timeouts: {link: 1s, reboot: 1s}\nhosts: [{address: 10.0.0.10, role: control-plane}]\n"), inventory.Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
	must(t, err)
	inv.Hosts = nil
	for i, name := range hosts {
		s.Servers[name] = sshtest.Listen(t, sshtest.Config{Exec: func(e *sshtest.Exec) int { return s.Exec(name, e) }})
		h := s.Servers[name].Host()
		h.Name, h.Role, h.PrivateAddress = name, inventory.Worker, netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", 10+i))
		if i == 0 {
			h.Role = inventory.ControlPlane
		}
		inv.Hosts = append(inv.Hosts, h)
	}
	return s, session.Options{Inventory: inv, Run: "r", Events: s}
}

// Exec answers what a host is asked over SSH.
func (s *Site) Exec(host string, e *sshtest.Exec) int {
	switch {
	case strings.Contains(e.Line, "receive.sh"):
		return s.batch(host, e)
	case strings.Contains(e.Line, "/follow.sh "):
		return s.At[host+" follow"](e)
	case strings.Contains(e.Line, "exec bash -s "): // the lock, which ends with its input
		runnertest.Lock(e.Stdin, e.Stdout)
		return 0
	case strings.Contains(e.Line, "sftp-server"):
		return clustertest.ServeFile(e, s.AdminConf)
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
				fmt.Fprint(e.Stdout, s.Offers[host])
			}
		}
		fmt.Fprintln(e.Stdout, "end=1")
		return 0
	}
	if bytes.Contains(script, []byte("# Prints the pods of the cluster")) {
		fmt.Fprint(e.Stdout, s.Pods)
		return 0
	}
	if bytes.Contains(script, []byte("echo kgpu-deprecated=1")) {
		if at := s.At[host+" deprecated"]; at != nil {
			return at(e)
		}
		fmt.Fprint(e.Stdout, "kgpu-deprecated=1\napi=example.com v1 widgets 1.40\nend=1\n")
		return 0
	}
	if bytes.Contains(script, []byte("echo kgpu-users=1")) {
		fmt.Fprintf(e.Stdout, "kgpu-users=1\n%send=1\n", s.Users)
		return 0
	}
	if s.Looked != nil && s.Looked(host) {
		return sshtest.Vanish
	}
	fmt.Fprint(e.Stdout, s.facts(host))
	return 0
}

// facts are what facts.sh would print.
func (s *Site) facts(host string) string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	text := s.Member
	if !s.Joined[host] {
		text = OfNodes.ReplaceAllString(text, "") + "end=1\n"
	}
	if s.Clean[host] {
		text = strings.Replace(text, "ledger=37\n", "ledger=0\n", 1)
	}
	text = strings.Replace(text, "end=1\n", s.More[host]+"end=1\n", 1)
	text = strings.Replace(text, "hostname=w1", "hostname="+host, 1)
	text = certificates.ReplaceAllString(text, "")
	if !s.Planes[host] && s.Joined[host] {
		text = strings.Replace(text, "end=1\n", "kubeadm=join-done uid-"+host+"\nend=1\n", 1)
	}
	if s.Planes[host] && s.Joined[host] {
		how := "init-done"
		if host != "cp1" {
			how = "join-plane-done uid-" + host
		}
		more := "control-plane=1\nkubeadm=" + how + "\napi=1\n" + strings.Replace(Authority.FindString(text), "kubelet-ca=", "cluster-ca=", 1)
		for i, node := range s.Nodes {
			if s.Joined[node] && !s.Gone[node] {
				more += fmt.Sprintf("cluster=node\t%[1]s\tuid-%[1]s\tTrue\t\tv1.36.3\tcontainerd://1.7.24\t10.0.0.%[2]d\n", node, 10+i)
			}
		}
		if s.Token {
			more += "token=" + base64.StdEncoding.EncodeToString([]byte("abcdef")) + " " + base64.StdEncoding.EncodeToString([]byte("kgpu")) + "\n"
		}
		text = strings.Replace(text, "end=1\n", more+"end=1\n", 1)
	}
	return text
}

// batch does the steps of a bundle.
func (s *Site) batch(host string, e *sshtest.Exec) int {
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
			s.Mu.Lock()
			s.Agreed[id] = string(text)
			s.Mu.Unlock()
		}
		if path.Base(h.Name) != "id" {
			continue
		}
		text, _ := io.ReadAll(archive)
		id = strings.TrimSpace(string(text))
		fmt.Fprintf(e.Stdout, "B\t%s\t0\n", id)
		s.Mu.Lock()
		at := s.At[host+" "+id]
		s.Mu.Unlock()
		if at != nil {
			return at(e)
		}
		for warning := range strings.Lines(s.Warns[host+" "+id]) {
			fmt.Fprintf(e.Stdout, "!\t%s\t%s\n", id, strings.TrimSuffix(warning, "\n"))
		}
		if id == "cluster/token" {
			for name, value := range map[string]string{"token": "abcdef.0123456789abcdef", "ca_hash": "sha256:00"} {
				fmt.Fprintf(e.Stdout, "O\t%s\t%s\t%s\n", id, name, base64.StdEncoding.EncodeToString([]byte(value)))
			}
		}
		s.Mu.Lock()
		s.Did = append(s.Did, host+" "+id)
		s.Token = id == "cluster/token" || s.Token && id != "cluster/untoken"
		switch node, deletes := strings.CutPrefix(id, "node/delete/"); {
		case id == "cluster/init", id == "cluster/join":
			s.Joined[host] = true
			delete(s.Gone, host)
			delete(s.Clean, host)
		case deletes:
			s.Gone[node] = true
		case id == "host/reset":
			delete(s.Joined, host)
			s.Clean[host] = true
		}
		s.Mu.Unlock()
		fmt.Fprintf(e.Stdout, "D\t%s\t0\t1\t\t\n", id)
	}
	fmt.Fprint(e.Stdout, "E\t0\n")
	return 0
}

// Told are the warnings of a run.
func (s *Site) Told() string {
	var out []string
	for _, e := range s.Events() {
		if e.Kind == event.Warning {
			out = append(out, e.Host+" "+e.Text)
		}
	}
	return strings.Join(out, "\n")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
