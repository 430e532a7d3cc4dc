package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestAfternoon does what the README's first afternoon says, and nothing else: every command of it, in its order, in a folder of
// somebody who has a key and kgpu and has read nothing but that page. What the output of a command suggests is done, too. Before
// it gives the hosts back, as they were, the cluster shows what its cards can do.
func TestAfternoon(t *testing.T) {
	commands := afternoonCommands(t)
	for _, name := range []string{"ssh", "kgpu init", "kgpu plan", "kgpu up", "kgpu notebook", "kgpu doctor", "kgpu reset"} {
		if !slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(c, name) }) {
			t.Fatalf("the README's first afternoon has no %s: %q", name, commands)
		}
	}
	l := newLab(t, []string{"gpu"}, "--workers", "2", "--gpus", "w1=2xA100", "--gpus", "w2=1xT4")
	p := newNewcomer(t, l)
	fresh := l.snapshot(t, "cp1", "w1", "w2")
	t.Run("without CUDA", l.planWithoutCUDA)
	for _, command := range commands {
		if strings.HasPrefix(command, "kgpu reset") {
			t.Run("cards", func(t *testing.T) { p.cluster(t).cards(t, p.made(t)) })
		}
		must(t, command, func(t *testing.T) {
			said := p.does(t, command)
			for _, next := range suggested(said) {
				p.follows(t, next)
			}
			if strings.HasPrefix(command, "kgpu init ") {
				p.labInventory(t)
			}
		})
	}
	l.unchanged(t, fresh)
}

// afternoonCommands are those of the README's blocks that are marked for it.
func afternoonCommands(t *testing.T) (commands []string) {
	t.Helper()
	block := regexp.MustCompile("(?ms)^<!-- afternoon -->\n```sh\n(.*?)^```$")
	for _, m := range block.FindAllStringSubmatch(read(t, filepath.Join(repository, "README.md")), -1) {
		commands = append(commands, lines(m[1])...)
	}
	return commands
}

// newcomer is a person with a folder, a key and kgpu.
type newcomer struct {
	*lab
	home string
	env  []string
	done map[string]bool // commands, by what they begin with
}

func newNewcomer(t *testing.T, l *lab) *newcomer {
	t.Helper()
	// Not the test's temporary folder: its name is too long for the sockets that programs make in it.
	home, err := os.MkdirTemp(operatorHome, "newcomer-")
	if err != nil {
		t.Fatal(err)
	}
	p := &newcomer{lab: l, home: home, done: map[string]bool{}}
	bin, keys := filepath.Join(home, "bin"), filepath.Join(home, ".ssh")
	client, err := kubectl()
	err = errors.Join(err, os.Mkdir(bin, 0o755), os.Mkdir(keys, 0o700), os.Symlink(kgpuProgram, filepath.Join(bin, "kgpu")), os.Symlink(client, filepath.Join(bin, "kubectl")),
		os.WriteFile(filepath.Join(keys, "id_ed25519"), []byte(read(t, l.env["KGPU_LAB_KEY"])), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	// ssh has the home that the system's list of users names, and asks about keys that it does not know: this one is told where to
	// look, and answers yes.
	ssh := fmt.Sprintf("#!/bin/sh\nexec %s -i %[2]s/id_ed25519 -o IdentitiesOnly=yes -o UserKnownHostsFile=%[2]s/known_hosts -o StrictHostKeyChecking=accept-new \"$@\"\n", sshProgram(t), keys)
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(ssh), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "KGPU_") && !strings.HasPrefix(name, "XDG_") && !slices.Contains([]string{"HOME", "PATH", "TMPDIR", "SSH_AUTH_SOCK", "KUBECONFIG"}, name) {
			p.env = append(p.env, variable)
		}
	}
	p.env = append(p.env, "HOME="+home, "TMPDIR="+home, "PATH="+bin+":"+os.Getenv("PATH"))
	return p
}

func sshProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// exits are the exit statuses with which commands may end when all is well, other than 0.
var exits = map[string][]int{
	"kgpu plan":     {2},      // there is something to do
	"kgpu status":   {2},      // something is not as it should be: hosts of the lab have marks of the machine they share
	"kgpu doctor":   {2},      // warnings, for the same reason
	"kgpu notebook": {0, 130}, // it may lead there until Ctrl-C
}

// saysOfNotebook fits what a person reads of the notebook's part of the proof: the device, how long, and by what.
var saysOfNotebook = regexp.MustCompile(`(?m)^The notebook fills and reads memory on cuda:0 .* in [0-9.]+ ms \(CUDA [0-9.]+\)$`)

// does runs a command as the person's shell does, and returns what it said.
func (p *newcomer) does(t *testing.T, command string) string {
	t.Helper()
	p.done[kind(command)] = true
	command = strings.NewReplacer("10.0.0.10", p.addr["cp1"], "10.0.0.11", p.addr["w1"], "10.0.0.12", p.addr["w2"]).Replace(command)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", "exec "+command) // so that a signal is the command's
	shell.Dir, shell.Env = p.home, p.env
	shell.Stdin = strings.NewReader("kgpu\n") // the name of the cluster: the answer to what reset asks
	out := &watched{}
	shell.Stdout, shell.Stderr = out, out
	if kind(command) == "kgpu notebook" {
		out.until, out.seen = "token=", func() { _ = shell.Process.Signal(os.Interrupt) } // it may have ended
	}
	_ = shell.Run() // the exit status is in ProcessState
	said := out.String()
	if code := shell.ProcessState.ExitCode(); code != 0 && !slices.Contains(exits[kind(command)], code) {
		t.Fatalf("%s ended with exit status %d:\n%s", command, code, said)
	}
	if kind(command) == "kgpu up" && !saysOfNotebook.MatchString(said) {
		t.Errorf("%s does not say what the notebook does on its card:\n%s", command, said)
	}
	if kind(command) == "kgpu notebook" && !strings.Contains(said, "token=") {
		t.Errorf("%s does not say how to get into the notebook:\n%s", command, said)
	}
	return said
}

// follows does what an output suggested, unless it has been done or comes in the README later.
func (p *newcomer) follows(t *testing.T, command string) {
	t.Helper()
	later := []string{"kgpu plan", "kgpu up", "kgpu reset"}
	if p.done[kind(command)] || slices.Contains(later, kind(command)) {
		return
	}
	t.Run("suggested: "+command, func(t *testing.T) { p.does(t, command) })
}

// kind is a command without its arguments: kgpu up, kubectl get.
func kind(command string) string {
	words := strings.Fields(command)
	for i := 1; i < len(words); i++ {
		if words[i-1] == "--kubeconfig" || strings.HasPrefix(words[i], "-") {
			continue
		}
		return words[0] + " " + words[i]
	}
	return words[0]
}

// suggestion is a command that an output names as the next one: behind a colon or an arrow, or at the beginning of a line; two blanks, or
// the end of the line, end it. Those with places to fill in are for people.
var suggestion = regexp.MustCompile("(?m)(?:^[ \t]*|: |→ |`)((?:kgpu|kubectl) [a-z-][^`\n]*?)(?:  .*|`.*|)$")

func suggested(said string) (commands []string) {
	for _, m := range suggestion.FindAllStringSubmatch(said, -1) {
		command := strings.TrimSpace(m[1])
		if regexp.MustCompile(`[A-Z]{3,}|…`).MatchString(regexp.MustCompile(`/\S*`).ReplaceAllString(command, "")) {
			continue
		}
		commands = append(commands, command)
	}
	return commands
}

// TestSuggested needs no hosts: it holds what the test above takes for a suggestion.
func TestSuggested(t *testing.T) {
	said := "done: kubectl --kubeconfig /tmp/kgpu.kubeconfig get nodes\nnext:\n  kgpu plan                 what would be done\n" +
		"  kgpu up -i lab.yaml       makes the cluster\nkgpu explain HOST_SWAP_ON says more\nrun `kgpu doctor` now\nabout kgpu itself\n"
	want := []string{"kubectl --kubeconfig /tmp/kgpu.kubeconfig get nodes", "kgpu plan", "kgpu up -i lab.yaml", "kgpu doctor"}
	if got := suggested(said); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for command, want := range map[string]string{"kubectl --kubeconfig /tmp/x get nodes": "kubectl get", "kgpu up -i lab.yaml": "kgpu up", "kgpu": "kgpu"} {
		if got := kind(command); got != want {
			t.Errorf("%s is of the kind %q, want %q", command, got, want)
		}
	}
}

// labInventory gives the inventory what only hosts of the lab need: they have an internet of their own, with its own keys, no image of
// weave, and share a kernel. The hosts stay as kgpu init wrote them.
func (p *newcomer) labInventory(t *testing.T) {
	t.Helper()
	path := filepath.Join(p.home, "inventory.yaml")
	_, hosts, ok := strings.Cut(read(t, path), "\nhosts:\n")
	if !ok {
		t.Fatalf("kgpu init wrote\n%s", read(t, path))
	}
	for _, name := range []string{"cp1", "w1", "w2"} {
		if !strings.Contains(hosts, p.addr[name]) {
			t.Errorf("kgpu init did not write %s", p.addr[name])
		}
	}
	if strings.Count(hosts, "role: control-plane") != 1 {
		t.Errorf("not one control plane in\n%s", hosts)
	}
	head := `cluster: kgpu
kubernetes:
  version: "1.36"
  kubeletConfiguration: {failCgroupV1: false, ` + ownDisk + `}
  ignorePreflightErrors: [SystemVerification]
  kubeProxyConfiguration: {conntrack: {maxPerCore: 0, min: 0}}
runtime: containerd
network: flannel
ssh: {user: ubuntu}
` + p.forCards()
	if err := os.WriteFile(path, []byte(head+"hosts:\n"+hosts), 0o644); err != nil {
		t.Fatal(err)
	}
}

// cluster is the person's cluster, seen from an inventory that says the same of it.
func (p *newcomer) cluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, p.lab, desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: p.forCards(),
		hosts: []string{p.host("cp1", ""), p.host("w1", ""), p.host("w2", "")},
	})
	c.rename(t, "kgpu")
	kgpu(t, 0, "kubeconfig", "-i", c.inventory)
	return c
}

// made is the run that made the cluster, as it recorded itself.
func (p *newcomer) made(t *testing.T) *session {
	t.Helper()
	var runs []recordedRun
	if err := json.Unmarshal([]byte(p.does(t, "kgpu runs -o=json")), &runs); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(runs, func(r recordedRun) bool { return strings.HasPrefix(r.Command, "up") })
	if i < 0 {
		t.Fatalf("no run of kgpu up among %+v", runs)
	}
	s := runs[i].told(t)
	for j := range s.events {
		e := &s.events[j]
		e.Host = cmp.Or(p.addr[e.Host], e.Host) // kgpu init gave hosts their names
	}
	return s
}

// watched is an output that something waits for.
type watched struct {
	mu    sync.Mutex
	text  bytes.Buffer
	until string // what seen is called for, once; empty: nothing
	seen  func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(p)
	if w.until != "" && strings.Contains(w.text.String(), w.until) {
		w.until = ""
		w.seen()
	}
	return n, err
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
