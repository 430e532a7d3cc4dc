package run

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/scripts/runner"
)

// payload is what a host needs for one step.
type payload struct {
	id      string
	timeout time.Duration
	script  []byte
	input   graph.Input
}

// payloadOf gathers what step needs; known are the outputs of the steps that ended.
func (e *Engine) payloadOf(step *graph.Step, known graph.Outputs) (payload, error) {
	p := payload{id: step.ID, timeout: step.Timeout, input: step.Input}
	var err error
	if p.script, err = e.Script(step.Script); err != nil {
		return p, fmt.Errorf("script %s: %w", step.Script, err)
	}
	if step.LateInput != nil {
		if p.input, err = step.LateInput(known); err != nil {
			return p, err
		}
	}
	for name := range p.input.Values {
		if name == "." || name == ".." || name != path.Base(name) {
			return p, fmt.Errorf("value %q: not a name", name)
		}
	}
	for file := range p.input.Files {
		if !path.IsAbs(file) || file == "/" || file != path.Clean(file) {
			return p, fmt.Errorf("file %q: not an absolute, clean path", file)
		}
	}
	return p, nil
}

// bundle packs a batch as a tar.gz: everything the host needs to run these steps without further news. fence is the number
// of the lock that it is begun under; 0: of none. The same payloads make the same bytes.
func (e *Engine) bundle(name string, fence int64, payloads []payload) []byte {
	p := &packer{made: map[string]bool{}}
	for file, content := range runner.BatchFiles(e.Lib, e.timeouts().Lock) {
		p.add(path.Join(name, file), 0o600, content)
	}
	p.add(path.Join(name, "by"), 0o600, []byte(oneLine(e.By)+"\n"))
	if fence > 0 {
		p.add(path.Join(name, "fence"), 0o600, []byte(strconv.FormatInt(fence, 10)+"\n"))
	}
	for i, step := range payloads {
		dir := path.Join(name, "steps", fmt.Sprintf("%03d", i+1))
		for file, content := range runner.StepFiles(step.id, step.timeout, step.script, step.input.Values) {
			p.add(path.Join(dir, file), 0o600, content)
		}
		for file, content := range step.input.Files {
			p.add(path.Join(dir, "files", file), content.Mode.Perm(), content.Content)
		}
	}
	return p.pack()
}

// packer collects files and packs them, and the directories above them, in the order of their names.
type packer struct {
	entries []entry
	made    map[string]bool
}

type entry struct {
	header  tar.Header
	content []byte
}

func (p *packer) add(name string, mode fs.FileMode, content []byte) {
	for dir := path.Dir(name); dir != "." && !p.made[dir]; dir = path.Dir(dir) {
		p.made[dir] = true
		p.entries = append(p.entries, entry{header: tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o700}})
	}
	p.entries = append(p.entries, entry{
		header:  tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode), Size: int64(len(content))},
		content: content,
	})
}

// pack cannot fail: it writes to memory what add put together.
func (p *packer) pack() []byte {
	slices.SortFunc(p.entries, func(a, b entry) int { return strings.Compare(a.header.Name, b.header.Name) })
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	var problems []error
	for _, e := range p.entries {
		problems = append(problems, archive.WriteHeader(&e.header))
		_, err := archive.Write(e.content)
		problems = append(problems, err)
	}
	problems = append(problems, archive.Close(), zip.Close())
	if err := errors.Join(problems...); err != nil {
		panic(err)
	}
	return packed.Bytes()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
