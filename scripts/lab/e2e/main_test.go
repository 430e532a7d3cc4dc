// Package e2e tries the kgpu program on real hosts, as a user does: an inventory in, a cluster out. It knows kgpu's
// command line, exit statuses and event stream, and none of its packages.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/scripts/lab/place"
	"kgpu.dev/kgpu/scripts/lab/process"
)

// The programs that the tests run, built for them.
var kgpuProgram, labProgram string

// operatorHome is the home of the user who runs kgpu, with its temporary files.
var operatorHome string

// repository is the root of kgpu's sources.
const repository = "../../.."

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("these tests boot hosts and need root")
	}
	dir, err := os.MkdirTemp("", "kgpu-e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	kgpuProgram, labProgram, operatorHome = filepath.Join(dir, "kgpu"), filepath.Join(dir, "lab"), filepath.Join(dir, "home")
	if err := os.Mkdir(operatorHome, 0o700); err != nil {
		return 0, err
	}
	for program, source := range map[string]string{kgpuProgram: repository, labProgram: ".."} {
		if err := build(program, source); err != nil {
			return 0, err
		}
	}
	if eventSchema, err = schemaOf("event"); err != nil {
		return 0, err
	}
	if err := destroyLabs(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, destroyLabs()) }()
	if err := labs.open(); err != nil {
		return 0, err
	}
	if code = m.Run(); code != 0 {
		return code, nil
	}
	return 0, unrun()
}

// long leaves what takes long, and what tests one more version, runtime or network, to `make test-all`.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
}

func build(program, source string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, ".") // what make build has compiled is at hand then
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", source, err, out)
	}
	return nil
}

func labCommand(ctx context.Context, name string, args ...string) *exec.Cmd {
	return process.Group(ctx, labProgram, append([]string{"--name", name}, args...)...)
}

func destroyLab(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if out, err := labCommand(ctx, name, "destroy").CombinedOutput(); err != nil {
		return fmt.Errorf("lab %s: destroy: %w\n%s", name, errors.Join(ctx.Err(), err), out)
	}
	return nil
}

// destroyLabs destroys what tests that were killed left.
func destroyLabs() error {
	var problems []error
	for i := range mostLabs {
		problems = append(problems, destroyLab(labName(i)))
	}
	return errors.Join(problems...)
}

// kubectl is the newest of the lab's own.
func kubectl() (string, error) {
	p, err := place.New("e2e")
	if err != nil {
		return "", err
	}
	all, err := filepath.Glob(p.Bin("kubernetes", "1.36.*") + "/kubectl")
	if err != nil || len(all) == 0 {
		return "", errors.Join(err, fmt.Errorf("no kubectl in %s: lab prepare makes it", filepath.Dir(p.Bin("kubernetes", "x"))))
	}
	return all[len(all)-1], nil
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}
