package render

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/inventory"
)

var update = flag.Bool("update", false, "write the golden file")

const twoHosts = `
cluster: lab
kubernetes: {version: 1.36.3}
runtime: containerd
network: flannel
hosts:
  - {address: 10.0.0.10, name: cp1, role: control-plane}
  - {address: 10.0.0.11, name: w1}
`

// planned is the plan for fresh hosts, with these cards on the workers.
func planned(t *testing.T, yaml string, cards ...facts.Card) (*inventory.Inventory, *graph.Graph) {
	t.Helper()
	inv, err := inventory.Decode("inventory.yaml", []byte(yaml), inventory.Options{
		Env: func(string) (string, bool) { return "", false }, Now: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]*facts.Host{}
	for _, h := range inv.Hosts {
		if seen[h.ID()], err = facts.Fresh("ubuntu-24.04", h.Name, h.Address); err != nil {
			t.Fatal(err)
		}
		if h.Role == inventory.Worker {
			seen[h.ID()].NVIDIA.Cards = cards
		}
	}
	g, err := plan.Up(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	g.LimitUnavailable(1)
	return inv, g
}

func files(t *testing.T, yaml string, cards ...facts.Card) map[string]graph.File {
	t.Helper()
	out, err := Files(planned(t, yaml, cards...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFilesOfTwoHosts: which files there are beside the folders of steps, what a person reads, and what is filled in later.
func TestFilesOfTwoHosts(t *testing.T) {
	all := files(t, twoHosts)
	const joins = "w1/09-cluster-join/values/kubeadm"
	if _, ok := all[joins]; !ok {
		t.Errorf("there is no %s: it has another number", joins)
	}
	var b strings.Builder
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		if own, _ := path.Match("*/kgpu/*", name); own || strings.Count(name, "/") < 2 {
			fmt.Fprintf(&b, "%v %s\n", all[name].Mode, name)
		}
	}
	for _, name := range names {
		switch base := filepath.Base(name); {
		case base == "README.md", base == "late", name == joins, strings.HasSuffix(base, ".next"), strings.HasSuffix(base, ".steps"):
			fmt.Fprintf(&b, "\n==> %s\n%s", name, all[name].Content)
		}
	}
	const golden = "testdata/two-hosts.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("it is now (go test ./bootstrap/render -update writes it):\n%s", b.String())
	}
}

// TestFoldersOfSteps: what a step is given is in its folder as the plan has it, and nothing else is but what runs it.
func TestFoldersOfSteps(t *testing.T) {
	inv, g := planned(t, twoHosts)
	all := files(t, twoHosts)
	for _, turn := range hostScripts(inv, g) {
		for _, s := range turn.steps {
			if s.LateInput != nil {
				continue
			}
			dir := turn.host + "/" + s.folder + "/"
			want := map[string]graph.File{"id": {}, "script.sh": {}, "timeout": {}}
			for name, value := range s.Input.Values {
				want["values/"+name] = graph.File{Mode: 0o600, Content: []byte(value)}
			}
			for name, file := range s.Input.Files {
				want["files"+name] = file
			}
			for name, file := range want {
				got, there := all[dir+name]
				if file.Content != nil && (got.Mode != file.Mode || string(got.Content) != string(file.Content)) || !there {
					t.Errorf("%s%s: mode %o, not %o, or another content:\n%s", dir, name, got.Mode, file.Mode, got.Content)
				}
			}
			if got := slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(name string) bool { return !strings.HasPrefix(name, dir) }); len(got) != len(want) {
				t.Errorf("%s has %q", dir, got)
			}
		}
	}
}

// TestOrderOfSeveralControlPlanes: the scripts of control planes come first, in the inventory's order, and wait for
// each other as those of workers do.
func TestOrderOfSeveralControlPlanes(t *testing.T) {
	inv, _ := planned(t, strings.Replace(twoHosts, "hosts:", "hosts:\n  - {address: 10.0.0.12, name: w2}", 1)+"  - {address: 10.0.0.13, name: cp2}\n")
	inv.Hosts[3].Role = inventory.ControlPlane // which its check allows one host only
	init, joins := &graph.Step{Ref: graph.Ref{Host: "cp1", ID: "init"}}, &graph.Step{Ref: graph.Ref{Host: "cp2", ID: "join"}}
	joins.Needs = []graph.Ref{init.Ref}
	last := &graph.Step{Ref: graph.Ref{Host: "cp1", ID: "ready"}, Needs: []graph.Ref{joins.Ref}}
	var order []string
	for _, turn := range hostScripts(inv, &graph.Graph{Steps: []*graph.Step{{Ref: graph.Ref{Host: "w2", ID: "os"}}, init, joins, last}}) {
		order = append(order, turn.host+" "+turn.name)
	}
	if got, want := strings.Join(order, ", "), "cp1 init-master, cp2 init-master, w2 init-worker, cp1 init-master-2"; got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
}

// TestScriptsFollowDependencies: each script comes after those that its steps need, also on hosts with GPUs.
func TestScriptsFollowDependencies(t *testing.T) {
	_, g := planned(t, strings.Replace(twoHosts, "name: w1}", "name: w1}\n  - {address: 10.0.0.12, name: w2}", 1), facts.Card{Address: "0000:17:00.0", ID: "20b0"})
	inv, _ := planned(t, strings.Replace(twoHosts, "name: w1}", "name: w1}\n  - {address: 10.0.0.12, name: w2}", 1))
	all := hostScripts(inv, g)
	var order []string
	done := map[graph.Ref]bool{}
	for _, s := range byHand(g) {
		done[s.Ref] = false
	}
	for _, turn := range all {
		order = append(order, turn.host+" "+turn.name)
		for _, s := range turn.steps {
			for _, need := range s.Needs {
				if ended, planned := done[need]; planned && !ended {
					t.Errorf("%s comes before %s", s.Ref, need)
				}
			}
			done[s.Ref] = true
		}
	}
	for ref, ended := range done {
		if !ended {
			t.Errorf("%s is left out", ref)
		}
	}
	want := "cp1 init-master, w1 init-worker, w2 init-worker, cp1 init-master-2, w1 init-worker-2, w2 init-worker-2"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
	// Nobody carries to the control plane what hosts find out about their cards: each labels its own node.
	for _, name := range []string{"w1", "w2"} {
		ref := graph.Ref{Host: name, ID: "gpu/labels"}
		if !done[ref] {
			t.Errorf("there is no %s", ref)
		}
	}
	if _, planned := done[graph.Ref{Host: "cp1", ID: "gpu/labels"}]; planned {
		t.Error("the control plane labels the workers")
	}
}

// TestWriteIsRepeatable: the same plan gives the same bytes, writing it again changes nothing, and files of others
// stay.
func TestWriteIsRepeatable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	for range 2 {
		if err := Write(dir, files(t, twoHosts)); err != nil {
			t.Fatal(err)
		}
	}
	first := tree(t, dir)
	other := filepath.Join(t.TempDir(), "other")
	if err := Write(other, files(t, twoHosts)); err != nil {
		t.Fatal(err)
	}
	if second := tree(t, other); !maps.Equal(first, second) {
		t.Error("the second time is not like the first")
	}
	if got := first["cp1/init-master.sh"]; !strings.HasPrefix(got, "-rwx------ #!/usr/bin/env bash\n") {
		t.Errorf("%.60q", got)
	}

	theirs := filepath.Join(dir, "w1", "join.env")
	if err := os.WriteFile(theirs, []byte("token=x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	only := strings.Replace(twoHosts, "\n  - {address: 10.0.0.11, name: w1}", "", 1)
	if err := Write(dir, files(t, only)); err != nil {
		t.Fatal(err)
	}
	for name := range tree(t, dir) {
		if strings.HasPrefix(name, "w1/") && name != "w1/join.env" {
			t.Errorf("%s was left", name)
		}
	}
	if text, err := os.ReadFile(theirs); err != nil || string(text) != "token=x\n" {
		t.Errorf("join.env: %q, %v", text, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "README.md")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, files(t, twoHosts)); err == nil || !strings.Contains(err.Error(), "[RENDER_FOLDER_TAKEN]") {
		t.Errorf("a folder with files: %v", err)
	}
	if got := tree(t, dir); len(got) != 1 {
		t.Errorf("it has %q", slices.Collect(maps.Keys(got)))
	}
	// A folder of kgpu's, in which a file of somebody's is in the way; and a marker that names what is not below.
	if err := os.WriteFile(filepath.Join(dir, marker), []byte("../"+filepath.Base(dir)+"/README.md\n/etc/passwd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, files(t, twoHosts)); err == nil || !strings.Contains(err.Error(), "README.md is there") {
		t.Errorf("a file in the way: %v", err)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

// tree is the files below a folder, with their modes.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out[name] = fmt.Sprintf("%v %s", info.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
