// Package e2e tries the kgpu program on real hosts, as a user does: an inventory in, a cluster out. It knows kgpu's
// command line, exit statuses and event stream, and none of its packages.
package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kgpu.dev/kgpu/scripts/lab/place"
)

// The programs that the tests run, built for them.
var kgpuProgram, labProgram string

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
	kgpuProgram, labProgram = filepath.Join(dir, "kgpu"), filepath.Join(dir, "lab")
	for program, source := range map[string]string{kgpuProgram: repository, labProgram: ".."} {
		if err := build(program, source); err != nil {
			return 0, err
		}
	}
	// A run that was killed may have left its lab.
	if err := destroyLab(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, destroyLab()) }()
	return m.Run(), nil
}

func build(program, source string) error {
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", source, err, out)
	}
	return nil
}

// labName lets tests run beside others: each lab has hosts and an internet of its own.
var labName = cmp.Or(os.Getenv("KGPU_E2E_LAB"), "e2e")

func labCommand(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, labProgram, append([]string{"--name", labName}, args...)...)
}

func destroyLab() error {
	if out, err := labCommand(context.Background(), "destroy").CombinedOutput(); err != nil {
		return fmt.Errorf("lab destroy: %w\n%s", err, out)
	}
	return nil
}

// kubectl is the newest of the lab's own.
func kubectl() (string, error) {
	p, err := place.New(labName)
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
