package render

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/scripts/runner/runnertest"
)

const (
	token  = "abcdef.0123456789abcdef"
	caHash = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// hands is a folder that was carried to a machine, on which a person runs its scripts. Its steps say what they do, and do
// nothing.
type hands struct {
	t    *testing.T
	host *runnertest.Host
	dir  string // of the host
}

func newHands(t *testing.T, host string) *hands {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("root runs these scripts")
	}
	all := files(t, twoHosts)
	h := &hands{t, runnertest.NewHost(t), ""}
	for name, f := range all {
		switch filepath.Base(name) {
		case "script.sh":
			script := ". \"$KGPU_STEP/../../lib.sh\"\necho \"I am $(<\"$KGPU_STEP/id\")\"\nwarning \"swap is on\"\n"
			if strings.Contains(name, "cluster-token") {
				script += "echo " + token + " | output token\necho " + caHash + " | output ca_hash\n"
			}
			all[name] = graph.File{Mode: 0o600, Content: []byte(script)}
		default:
			if strings.HasPrefix(filepath.Base(name), "init-") && strings.HasSuffix(name, ".sh") {
				script := strings.Replace(string(f.Content), "base=/var/lib/kgpu\n", "base="+h.host.Dir+"\n", 1)
				script = strings.Replace(script, "[[ -d /run/systemd/system ]]", "true", 1)
				if strings.Count(script, h.host.Dir) != 1 || strings.Contains(script, "/run/systemd/system") {
					t.Fatal("the script is not as this test knows it")
				}
				all[name] = graph.File{Mode: f.Mode, Content: []byte(script)}
			}
		}
	}
	out := t.TempDir()
	if err := Write(out, all); err != nil {
		t.Fatal(err)
	}
	h.dir = filepath.Join(out, host)
	return h
}

func (h *hands) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hands) run(name string) (string, bool) {
	h.t.Helper()
	out, err := h.host.Shell("bash " + filepath.Join(h.dir, name) + ".sh").CombinedOutput()
	return string(out), err == nil
}

// secrets fails the test when a credential is on the machine.
func (h *hands) secrets() {
	h.t.Helper()
	out, err := exec.Command("grep", "-rlE", "--exclude=script.sh", token+"|"+"YWJjZGVmLjAxMjM0NTY3ODlhYmNkZWY", h.host.Dir).CombinedOutput()
	if err == nil || len(out) > 0 {
		h.t.Errorf("the token is in %s", out)
	}
}

func TestControlPlaneByHand(t *testing.T) {
	h := newHands(t, "cp1")
	out, ok := h.run("init-master")
	if !ok || !strings.Contains(out, "== os/packages\n   I am os/packages\n   warning: swap is on\n") || !strings.HasSuffix(out, "Next: init-worker.sh on w1.\n") || strings.Contains(out, token) {
		t.Fatalf("%t:\n%s", ok, out)
	}
	join := filepath.Join(h.dir, "join.env")
	info, err := os.Stat(join)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if text, err := os.ReadFile(join); err != nil || string(text) != "ca_hash="+caHash+"\ntoken="+token+"\n" {
		t.Errorf("join.env: %q, %v", text, err)
	}
	h.secrets()

	// The later run deletes the token; join.env is of no use then. It may be repeated.
	for range 2 {
		if out, ok = h.run("init-master-2"); !ok || !strings.Contains(out, "This was the last one.") {
			t.Fatalf("%t:\n%s", ok, out)
		}
		if _, err := os.Stat(join); err == nil {
			t.Error("join.env is still there")
		}
	}
	h.secrets()
}

func TestWorkerByHand(t *testing.T) {
	h := newHands(t, "w1")
	if out, ok := h.run("init-worker"); ok || !strings.Contains(out, "there is no "+h.dir+"/join.env: copy it here") || strings.Contains(out, "I am") {
		t.Fatalf("without join.env: %t:\n%s", ok, out)
	}
	h.write("join.env", "token=$(reboot)\nca_hash="+caHash+"\n")
	if out, ok := h.run("init-worker"); ok || !strings.Contains(out, "has no good token") || strings.Contains(out, "I am") {
		t.Fatalf("with another token: %t:\n%s", ok, out)
	}
	h.write("join.env", "token="+token+"\nca_hash="+caHash+"\n")
	seen := filepath.Join(t.TempDir(), "seen")
	h.write("09-cluster-join/script.sh", "cp \"$KGPU_STEP/values/kubeadm\" "+seen+"\n")
	h.write("08-kube-packages/script.sh", ". \"$KGPU_STEP/../../lib.sh\"\nfail PACKAGE_MISSING 'no such version'\n")
	if out, ok := h.run("init-worker"); ok || !strings.Contains(out, "kube/packages failed: no such version [PACKAGE_MISSING]\ninit-worker did not come to its end") {
		t.Fatalf("with a step that fails: %t:\n%s", ok, out)
	}
	h.write("08-kube-packages/script.sh", "")
	if out, ok := h.run("init-worker"); !ok || !strings.HasSuffix(out, "Next: init-master-2.sh on cp1.\n") {
		t.Fatalf("%t:\n%s", ok, out)
	}
	text, err := os.ReadFile(seen)
	if err != nil || !strings.Contains(string(text), "    caCertHashes:\n      - '"+caHash+"'\n    token: '"+token+"'\n") || !strings.HasSuffix(string(text), "  name: w1\n") {
		t.Errorf("kubeadm reads %v:\n%s", err, text)
	}
	h.secrets()
}

// TestScriptSurvivesInterrupt: if a person interrupts a script, its steps go on with all that they need.
func TestScriptSurvivesInterrupt(t *testing.T) {
	h := newHands(t, "cp1")
	signals := t.TempDir()
	go1, ended := filepath.Join(signals, "go"), filepath.Join(signals, "ended")
	for _, fifo := range []string{go1, ended} {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.write("03-os-modules/script.sh", "echo here; read -r _ <"+go1+"\n")
	h.write("11-addon-flannel/script.sh", "cat \"$KGPU_STEP/values/workload\" >"+ended+"\n")
	cmd := h.host.Shell("exec bash " + filepath.Join(h.dir, "init-master.sh"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, err := os.Create(filepath.Join(signals, "said")) // no pipe: what waits for the batch's end has it, too
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), "here"); {
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // as a terminal does it
		t.Fatal(err)
	}
	err = cmd.Wait()
	text, problem := os.ReadFile(said.Name())
	if err == nil || problem != nil || !strings.Contains(string(text), "the steps go on") {
		t.Fatalf("%v, %v: %s", err, problem, text)
	}
	if err := os.WriteFile(go1, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(ended); err != nil || !strings.Contains(string(text), "kube-flannel") {
		t.Errorf("the last step reads %q, %v", text, err)
	}
}

// What a person runs is as clean as the rest of the scripts.
func TestRenderedScriptsPassShellcheck(t *testing.T) {
	program, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := Write(dir, files(t, twoHosts)); err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(dir, "*", "init-*.sh"))
	if err != nil || len(scripts) != 3 {
		t.Fatalf("%q, %v", scripts, err)
	}
	if out, err := exec.Command(program, scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
