package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// wrapper makes a module to build a program in: it requires the program's module, and what that module itself requires and
// replaces, with its checksums. An empty module path gives a module that needs the standard library only.
func (p *preparer) wrapper(ctx context.Context, name, module, version string) (string, error) {
	dir := filepath.Join(p.work(), "build", name+"-"+version)
	if err := emptyDir(dir); err != nil {
		return "", err
	}
	if module == "" {
		return dir, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module lab.invalid/program\n\ngo 1.26\n"), 0o644)
	}
	from, err := download(ctx, module+"@v"+version)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(from, "go.mod"))
	if err != nil {
		return "", err
	}
	theirs, err := modfile.Parse(module+"/go.mod", text, nil)
	if err != nil {
		return "", err
	}
	ours, err := wrap(theirs, version)
	if err != nil {
		return "", err
	}
	if err := copyFile(filepath.Join(from, "go.sum"), filepath.Join(dir, "go.sum"), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "go.mod"), ours, 0o644)
}

// wrap writes the go.mod of a module that requires theirs. k8s.io/kubernetes names its staging modules by v0.0.0 and replaces them
// by folders that its module does not contain: the published modules of a release 1.x.y are v0.x.y. Other replacements by folders
// are for the authors' own work and are left out.
func wrap(theirs *modfile.File, version string) ([]byte, error) {
	ours := new(modfile.File)
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	add(ours.AddModuleStmt("lab.invalid/program"))
	add(ours.AddGoStmt(theirs.Go.Version))
	add(ours.AddRequire(theirs.Module.Mod.Path, "v"+version))
	replaced := map[string]bool{}
	for _, r := range theirs.Replace {
		if r.New.Version != "" {
			add(ours.AddReplace(r.Old.Path, r.Old.Version, r.New.Path, r.New.Version))
			replaced[r.Old.Path] = true
		}
	}
	for _, r := range theirs.Require {
		if r.Mod.Version == "v0.0.0" && !replaced[r.Mod.Path] {
			add(ours.AddReplace(r.Mod.Path, "", r.Mod.Path, "v0."+strings.TrimPrefix(version, "1.")))
			continue
		}
		add(ours.AddRequire(r.Mod.Path, r.Mod.Version))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return ours.Format()
}

// download fetches a module into the module cache and says where it lies.
func download(ctx context.Context, module string) (string, error) {
	answer, err := command{env: []string{"GOFLAGS=-mod=mod"}, dir: os.TempDir()}.
		output(ctx, "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(answer, &m); err != nil {
		return "", fmt.Errorf("go mod download %s: %w", module, err)
	}
	return m.Dir, nil
}
