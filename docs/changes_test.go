package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/inventory"
)

// onlyRead are paths in the planner's sources that kgpu looks at, and others write.
var onlyRead = []string{
	"/etc/cni/net.d", // what a pod network put there, or a former one left
	"/etc/cni/net.d/05-cilium.conflist", "/etc/cni/net.d/10-flannel.conflist", "/etc/cni/net.d/10-weave.conf", "/etc/cni/net.d/87-podman-bridge.conflist",
	"/etc/kubernetes/bootstrap-kubelet.conf", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/manifests", "/etc/kubernetes/manifests/etcd.yaml",
	"/etc/kubernetes/manifests/kube-apiserver.yaml",
	"/etc/kubernetes/pki/ca.crt", // kubeadm's
}

// recorders are the functions of the scripts' library whose literal arguments end up in the ledger.
var (
	recorders = regexp.MustCompile(`^\s*(?:if |then |\|\| )?(claim_tree|claim_dir|claim_group|claim_user|put_file|make_dir|unit_enable|unit_restart|unit_off|remember_unit|remember_sysctls|apt_install) (.*)`)
	literal   = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)
	kinds     = regexp.MustCompile(`(?m)^    ([a-z][a-z |-]*)\) `)
	written   = regexp.MustCompile("`(/[a-z][^`]*)`")
	planned   = regexp.MustCompile(`"(/(?:etc|usr/local/bin)/[A-Za-z0-9_./-]*[A-Za-z0-9_-])`)
)

// TestChanges holds that the page names what the scripts and the planner put on hosts, and nothing else.
func TestChanges(t *testing.T) {
	page := read(t, "changes.md")
	scripts := all(t, "../scripts/steps/*.sh", "../scripts/lib/*.sh", "../scripts/runner/*.sh")
	planner := all(t, "../bootstrap/machine/*.go", "../bootstrap/plan/*.go", "../bootstrap/run/*.go")

	var changed []string
	joined := strings.ReplaceAll(scripts, "\\\n", " ")
	for line := range strings.Lines(joined) {
		m := recorders.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		for _, word := range strings.Fields(m[2]) {
			if !literal.MatchString(word) {
				if word == "<" || strings.ContainsAny(word, "<>|&;") {
					break
				}
				continue // of a variable
			}
			if word != "600" && word != "644" && word != "755" && word[0] != '-' {
				changed = append(changed, word)
			}
		}
	}
	if len(changed) < 60 {
		t.Errorf("only %d changes were found in the scripts: %q", len(changed), changed)
	}
	for _, m := range planned.FindAllStringSubmatch(planner, -1) {
		if !slices.Contains(onlyRead, m[1]) {
			changed = append(changed, m[1])
		}
	}
	changed = slices.Concat(changed, catalog.KubernetesPackages, catalog.ToolkitPackages, listed(t, planner, "basePackages = "), listed(t, planner, "setPackages = "), listed(t, planner, "(f *facts.Host) []string {\n\tlist := "))
	for _, line := range listed(t, planner, "sysctls = ") {
		key, _, _ := strings.Cut(line, " = ")
		changed = append(changed, key)
	}
	for n := range 100 {
		minor, ok := catalog.Kubernetes(n)
		if !ok {
			continue
		}
		for _, runtime := range []inventory.Runtime{inventory.Docker, inventory.Containerd} {
			for _, set := range plan.RuntimePackages(minor, runtime) {
				changed = append(changed, set...)
			}
		}
	}
	for _, what := range slices.Compact(slices.Sorted(slices.Values(changed))) {
		if !strings.Contains(page, "`"+what+"`") && !(strings.HasPrefix(what, "/") && strings.Contains(page, "`"+what)) {
			t.Errorf("the page does not name %s", what)
		}
	}

	undo := read(t, "../scripts/lib/undo.sh")
	undo = undo[strings.Index(undo, "case $kind in"):]
	undo = undo[:strings.Index(undo, "esac")]
	found := 0
	for _, m := range kinds.FindAllStringSubmatch(undo, -1) {
		for _, kind := range strings.Split(m[1], " | ") {
			found++
			if !strings.Contains(page, "`"+kind+"`") {
				t.Errorf("the page does not name the ledger's entries of the kind %s", kind)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d kinds of entries were found", found)
	}

	sources := scripts + planner
	for _, m := range written.FindAllStringSubmatch(page, -1) {
		if path := strings.TrimSuffix(m[1], "…"); !strings.Contains(sources, path) {
			t.Errorf("the page names %s, which no script and no plan does", path)
		}
	}
}

// listed are the texts of the list in braces that follows a mark in Go source.
func listed(t *testing.T, source, mark string) (out []string) {
	t.Helper()
	_, rest, ok := strings.Cut(source, mark+"[]string{")
	inside, _, closed := strings.Cut(rest, "}")
	if !ok || !closed {
		t.Fatalf("no list %s", mark)
	}
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(inside, -1) {
		out = append(out, m[1])
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// all is the text of the files, without those of tests.
func all(t *testing.T, patterns ...string) string {
	t.Helper()
	var b strings.Builder
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				b.WriteString(read(t, file))
			}
		}
	}
	return b.String()
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
