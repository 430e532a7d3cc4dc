package render

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/plan"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts"
	"kgpu.dev/kgpu/scripts/runner"
)

// credentials are the outputs that other steps take as input. Rendered values have placeholders for them, such as
// @token@, which the script fills in.
var credentials = []string{plan.OutputToken, plan.OutputCAHash, plan.OutputCertificateKey, plan.OutputEncryption}

// tokenStep is the step that makes the credentials.
const tokenStep = "cluster/token"

// Files returns the files that carry out a plan by hand, by slash-separated path: a folder for each host with steps,
// and README.md. The same plan gives the same files. They have no secrets except passwords in the inventory's proxy and
// repository URLs, in files with mode 0600.
func Files(inv *inventory.Inventory, g *graph.Graph) (map[string]graph.File, error) {
	all := hostScripts(inv, g)
	out := map[string]graph.File{}
	for _, t := range all {
		if err := t.write(out); err != nil {
			return nil, err
		}
	}
	for i, t := range all {
		out[path.Join(t.host, t.name+".next")] = text(nextAction(all, i))
		dir := path.Join(t.host, "kgpu")
		for name, content := range runner.BatchFiles(scripts.Lib(), cmp.Or(inv.Timeouts.Lock, inventory.DefaultTimeouts().Lock)) {
			out[path.Join(dir, name)] = graph.File{Mode: 0o600, Content: content}
		}
	}
	out["README.md"] = text(readme(inv, g, all))
	return out, nil
}

// write adds the files of a turn to out.
func (t *hostScript) write(out map[string]graph.File) error {
	var list []string
	for _, s := range t.steps {
		if err := s.write(out, path.Join(t.host, s.folder)); err != nil {
			return fmt.Errorf("%s: %w", s.Ref, err)
		}
		list = append(list, s.folder)
		if s.Script == "cluster-untoken" {
			out[path.Join(t.host, t.name+".last")] = text("the token ends with this run\n")
		}
	}
	out[path.Join(t.host, t.name+".steps")] = text(strings.Join(list, "\n") + "\n")
	out[path.Join(t.host, t.name+".sh")] = graph.File{Mode: 0o700, Content: scripts.Render()}
	return nil
}

// write adds the files of a step below dir.
func (s *step) write(out map[string]graph.File, dir string) error {
	script, err := scripts.Step(s.Script)
	if err != nil {
		return err
	}
	input := s.Input
	if s.LateInput != nil {
		known := graph.Outputs{}
		for _, need := range s.Needs {
			known[need] = map[string][]byte{}
			for _, name := range credentials {
				known[need][name] = []byte("@" + name + "@")
			}
		}
		if input, err = s.LateInput(known); err != nil {
			return err
		}
		for _, name := range credentials {
			for _, value := range input.Values {
				if strings.Contains(value, "@"+name+"@") && !slices.Contains(s.placeholders, name) {
					s.placeholders = append(s.placeholders, name)
				}
			}
		}
		if len(s.placeholders) > 0 {
			out[path.Join(dir, "late")] = text(strings.Join(s.placeholders, "\n") + "\n")
		}
	}
	for name, content := range runner.StepFiles(s.ID, s.Timeout, script, input.Values) {
		out[path.Join(dir, name)] = graph.File{Mode: 0o600, Content: content}
	}
	for file, content := range input.Files {
		out[path.Join(dir, "files", file)] = graph.File{Mode: content.Mode.Perm(), Content: bytes.Clone(content.Content)}
	}
	return nil
}

func text(s string) graph.File { return graph.File{Mode: 0o600, Content: []byte(s)} }
