package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

const twoHosts = "cluster: lab\nhosts:\n- {address: 192.0.2.1, name: cp1, role: control-plane}\n- {address: 192.0.2.2}\n"

// completed is what the last word may become, without what is said about it.
func completed(app *cli.App, words ...string) (out []string) {
	var b strings.Builder
	complete(&b, app, words)
	for line := range strings.Lines(b.String()) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out = append(out, word)
	}
	return out
}

func TestComplete(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KGPU_INVENTORY", "")
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	logs := &cli.Command{Name: "logs", ArgsUsage: "[RUN|last [HOST [STEP]]]", Flags: inventoryFlags}
	user := &cli.Command{Name: "user", Subcommands: []*cli.Command{{Name: "create", ArgsUsage: "NAME", Flags: formatFlags}}}
	ssh := &cli.Command{Name: "ssh", ArgsUsage: "[HOST [-- COMMAND…]]"}
	hidden := &cli.Command{Name: "secret", Hidden: true}
	app := App("test", Group("", Up(), AddWorker(), Reset(), Explain(), Schema(), Completion(), logs, user, ssh, hidden, Runs()))
	for name, content := range map[string]string{
		"inventory.yaml": twoHosts, "other.yaml": strings.ReplaceAll(twoHosts, "cp1", "other"), "bad.yaml": "hosts: 3\n",
		"state/kgpu/runs/lab/20260101-000000-aaaaaa/result.json":   "{}",
		"state/kgpu/runs/lab/20260102-000000-bbbbbb/result.json":   "{}",
		"state/kgpu/runs/other/20260103-000000-cccccc/result.json": "{}",
	} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(content), 0o600))
	}
	for _, c := range []struct{ typed, want string }{
		{"", "up add-worker reset explain schema completion logs user ssh runs"},
		{"re", "reset"},
		{"up", "up"},
		{"help re", "reset"},
		{"nothing ", ""},
		{"--v", "--version"},
		{"up ", ":files"},
		{"up --kube", "--kubeconfig"},
		{"up --o", "--only --output"},
		{"up --quiet --verbose --q", ""},
		{"up --only os/dpkg --only os/swap --onl", "--only"},
		{"up --only os/s", "os/swap os/sysctl"},
		{"up --only os/swap --only os/s", "os/sysctl"},
		{"up --only=os/s", "--only=os/swap --only=os/sysctl"},
		{"up --only = os/s", "os/swap os/sysctl"}, // as bash gives it
		{"up --limit ", "cp1 192.0.2.2"},
		{"up --limit c", "cp1"},
		{"up other.yaml --limit o", "other"},
		{"up -i other.yaml --limit o", "other"},
		{"up --inventory=other.yaml --limit o", "other"},
		{"up bad.yaml --limit ", ""},
		{"up gone.yaml --limit ", ""},
		{"up --ignore HOST_APT_L", "HOST_APT_LOCKED"},
		{"up -o ", "json text"},
		{"up -i ", ":files"},
		{"up --max-unavailable ", ""},
		{"reset cp1 ", "192.0.2.2"},
		{"reset -- cp", ""},
		{"add-worker ", ""},
		{"explain host_apt_locke", "HOST_APT_LOCKED"},
		{"explain HOST_SWAP ", ""},
		{"schema inv", "inventory"},
		{"completion ", "bash zsh fish"},
		{"logs ", "20260102-000000-bbbbbb 20260101-000000-aaaaaa last"},
		{"ssh cp", "cp1"},
		{"ssh cp1 ", ""},
		{"logs -i bad.yaml ", "20260103-000000-cccccc 20260102-000000-bbbbbb 20260101-000000-aaaaaa last"},
		{"logs 20260102-000000-bbbbbb c", "cp1"},
		{"logs 20260102-000000-bbbbbb cp1 kube", "kube/kubeadm kube/packages kube/start kube/upgrade"},
		{"logs 20260102-000000-bbbbbb cp1 kube/packages ", ""},
		{"user ", "create"},
		{"runs ", "list show logs timeline"},
		{"runs list --cl", "--cluster"},
		{"runs show la", "last"},
		{"user create ", ""},
		{"user create -o j", "json"},
	} {
		got := completed(app, strings.Split(c.typed, " ")...)
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%q became %q, want %q", c.typed, got, want)
		}
	}
	t.Setenv("KGPU_INVENTORY", "other.yaml")
	if got := completed(app, "reset", "o"); !slices.Equal(got, []string{"other"}) {
		t.Errorf("of $KGPU_INVENTORY: %q", got)
	}
}

// A word tells what it is, for the shells that show that.
func TestCompleteTellsWhat(t *testing.T) {
	var b strings.Builder
	complete(&b, testApp(), []string{"up", "--lim"})
	if b.String() != "--limit\tonly this HOST and the control planes (may be repeated)\n" {
		t.Errorf("%q", b.String())
	}
}
