package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asKgpu makes the tests' program be kgpu itself.
const asKgpu = "KGPU_TEST_AS_KGPU"

func TestMain(m *testing.M) {
	if os.Getenv(asKgpu) != "" {
		main()
	}
	os.Exit(m.Run())
}

// kgpuInPath puts a kgpu into $PATH, and the test into a folder of its own with an inventory.
func kgpuInPath(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink(self, filepath.Join(dir, "kgpu")))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv(asKgpu, "yes")
	t.Setenv("KGPU_INVENTORY", "")
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"inventory.yaml": "hosts:\n- {address: 192.0.2.1, name: cp1, role: control-plane}\n- {address: 192.0.2.2, name: gpu1}\n",
		"my lab.yaml":    "",
	} {
		must(t, os.WriteFile(name, []byte(content), 0o600))
	}
}

// TestBash has bash complete words with the script that kgpu prints.
func TestBash(t *testing.T) {
	kgpuInPath(t)
	const asked = `set -u
source <(kgpu completion bash)
[[ $(complete -p kgpu) == 'complete -F _kgpu kgpu' ]]
COMP_WORDS=(kgpu "$@")
COMP_CWORD=$#
_kgpu
printf '%s\n' "${COMPREPLY[@]-}"`
	for typed, want := range map[string]string{
		"rese":                 "reset",
		"explain HOST_APT_LOC": "HOST_APT_LOCKED",
		"up --limit g":         "gpu1",
		"up --only os/sy":      "os/sysctl",
		"up --only = os/sy":    "os/sysctl",
		"up --limit =":         "cp1\ngpu1",
		"up inv":               "inventory.yaml",
		"plan my":              "my lab.yaml",
		"reset -i gone.yaml ":  "",
		"reset -- gp":          "", // no command is run for that
	} {
		out, err := exec.CommandContext(t.Context(), "bash", append([]string{"-c", asked, "bash"}, strings.Split(typed, " ")...)...).CombinedOutput()
		got := strings.TrimSuffix(string(out), "\n")
		if err != nil || got != want {
			t.Errorf("%q became %q, want %q (%v)", typed, got, want, err)
		}
	}
}

// TestShells has each shell that is here read its script.
func TestShells(t *testing.T) {
	kgpuInPath(t)
	for shell, arg := range map[string]string{"bash": "-n", "zsh": "-n", "fish": "--no-execute"} {
		script := filepath.Join(t.TempDir(), shell)
		text, err := exec.CommandContext(t.Context(), "kgpu", "completion", shell).Output()
		if err != nil || !strings.Contains(string(text), "__complete") {
			t.Fatalf("%s: %v", shell, err)
		}
		if _, err := exec.LookPath(shell); err != nil {
			continue // only bash is on every machine
		}
		must(t, os.WriteFile(script, text, 0o600))
		if out, err := exec.CommandContext(t.Context(), shell, arg, script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}

// TestManualPage has the system's formatter read the page, where there is one.
func TestManualPage(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff here")
	}
	command := exec.CommandContext(t.Context(), groff, "-man", "-ww", "-z", "-Kutf8")
	command.Stdin = strings.NewReader(said(t, "man"))
	if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v: %s", err, out)
	}
}
