package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// The programs, seen from the lab's folder, where `make bench` starts.
const (
	kgpuProgram = "../../bin/kgpu"
	labProgram  = "./lab"
)

// run runs cmd with its output going to out; the error has the end of what it said.
func runCommand(cmd *exec.Cmd, out io.Writer) error {
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[:min(len(cmd.Args), 6)], " "), err, lastLines(stderr.String(), 10))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// buildBare builds the program that kgpu is compared with.
func buildBare(ctx context.Context, dir string) (string, error) {
	program := dir + "/bare"
	cmd := process.Group(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./bench/bare")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	return program, runCommand(cmd, io.Discard)
}
