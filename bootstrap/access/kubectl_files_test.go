package access

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// A kubectl on the control plane reads the files of this machine that its arguments name; nothing of them is in a command line, or left
// there.
func TestKubectlWithFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"a b.yaml": "first", "c.yml": "second", "d/e.json": "third", "d/f.txt": "no manifest", "k/kustomization.yaml": "fourth", "secret": "hush"} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	shows := `for word in "${@:3}"; do printf '<%s>' "$word"; done; echo; find . -type f | sort | while read -r f; do echo "$f $(<"$f") $(stat -c %a "$f")"; done; pwd >&2; cat`
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a file":        {[]string{"apply", "-f", "a b.yaml"}, "<apply><-f><0/a b.yaml>\n./0/a b.yaml first 600\n"},
		"several":       {[]string{"-n", "cp", "apply", "-f=a b.yaml,c.yml", "--filename", dir + "/c.yml"}, "<-n><cp><apply><-f=0/a b.yaml,1/c.yml><--filename><2/c.yml>\n./0/a b.yaml first 600\n./1/c.yml second 600\n./2/c.yml second 600\n"},
		"joined":        {[]string{"apply", "-fc.yml"}, "<apply><-f=0/c.yml>\n./0/c.yml second 600\n"},
		"a folder":      {[]string{"delete", "-Rf", "d"}, "<delete><-Rf><0/d>\n./0/d/e.json third 600\n"},
		"kustomize":     {[]string{"apply", "-k", "./k/"}, "<apply><-k><0/k>\n./0/k/kustomization.yaml fourth 600\n"},
		"for a secret":  {[]string{"create", "secret", "generic", "x", "--from-file=key=secret", "--from-file", "d"}, "<create><secret><generic><x><--from-file=key=0/secret><--from-file><1/d>\n./0/secret hush 600\n./1/d/e.json third 600\n./1/d/f.txt no manifest 600\n"},
		"a template":    {[]string{"get", "pods", "-o=jsonpath-file=secret"}, "<get><pods><-o=jsonpath-file=0/secret>\n./0/secret hush 600\n"},
		"behind a dash": {[]string{"patch", "x", "--patch-file", "c.yml", "--", "-f", "secret"}, "<patch><x><--patch-file><0/c.yml><--><-f><secret>\n./0/c.yml second 600\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h, o := newAPIHost(t)
			h.program(t, "kubectl", shows+"\n")
			var out, errs bytes.Buffer
			err := Kubectl(t.Context(), o, KubectlOptions{Args: c.args, Stdin: strings.NewReader("input\n"), Stdout: &out, Stderr: &errs})
			if err != nil || out.String() != c.want+"input\n" {
				t.Errorf("%v, %q, want %q", err, out.String(), c.want)
			}
			there := strings.TrimSpace(errs.String())
			if _, err := os.Stat(there); !strings.HasPrefix(there, "/run/kgpu-kubectl.") || !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", there, err)
			}
			if lines := strings.Join(h.server.Lines(), "\n"); strings.Contains(lines, "hush") || strings.Contains(lines, "yaml") {
				t.Errorf("a command line has it: %s", lines)
			}
		})
	}
	t.Run("it fails", func(t *testing.T) {
		h, o := newAPIHost(t)
		h.program(t, "kubectl", "pwd; exit 9\n")
		var out bytes.Buffer
		err := Kubectl(t.Context(), o, KubectlOptions{Args: []string{"apply", "-f", "c.yml"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
		var exit *ExitError
		if _, left := os.Stat(strings.TrimSpace(out.String())); !errors.As(err, &exit) || exit.Status != 9 || !errors.Is(left, os.ErrNotExist) {
			t.Errorf("%v, %v", err, left)
		}
	})
}

// What names no file here stays as it is, and what cannot be sent is refused.
func TestKubectlFilesThatAreNotSent(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("web", nil, 0o600))
	for _, args := range []string{"apply -f -", "apply -f https://example.com/x.yaml", "apply -f missing.yaml", "-n web logs -f web", "logs -f web", "get pods -o web", "apply -f", ""} {
		got, archive, err := KubectlOptions{Args: strings.Fields(args)}.withFiles()
		if strings.Join(got, " ") != args || archive != nil || err != nil {
			t.Errorf("%s: %q, %d bytes, %v", args, got, len(archive), err)
		}
	}
	var usage *reason.UsageError
	if _, _, err := (KubectlOptions{Args: []string{"cp", "web", "pod:/x"}}).withFiles(); !errors.As(err, &usage) {
		t.Error(err)
	}
	must(t, os.Truncate("web", maxSent+1))
	if _, _, err := (KubectlOptions{Args: []string{"apply", "-f", "web"}}).withFiles(); !errors.As(err, &usage) {
		t.Error(err)
	}
}
