package bootstrap

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kgpu.dev/kgpu/bootstrap/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/remote"
)

// KubectlOptions are what Kubectl needs beyond what all stories need.
type KubectlOptions struct {
	Program string // kubectl on this machine; empty: there is none
	Args    []string

	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Kubectl runs kubectl as the administrator of the cluster: on this machine, through SSH where the API server cannot be
// reached from here, or on the control plane where there is no kubectl here or SSH lets nothing through. A kubectl that fails
// is an *ExitError.
func Kubectl(ctx context.Context, o Options, k KubectlOptions) error {
	s := newSession(o)
	defer s.close()
	path := s.kubeconfigPath()
	var blocked error
	if k.Program != "" {
		if a, err := readKubeconfig(path); err == nil {
			if blocked = reachAPI(ctx, a, directly); blocked == nil {
				return k.here(ctx, path)
			}
		}
	}
	cp := s.controlPlane()
	conn, err := s.dialer.Dial(ctx, cp)
	if err != nil {
		return err
	}
	s.hosts[cp.ID()] = conn
	if k.Program == "" {
		return s.kubectlThere(ctx, k)
	}
	inside, a, err := s.fetched(ctx)
	if err != nil {
		return err
	}
	if blocked == nil || isAnother(blocked) { // there was no file, or one of a former cluster
		if blocked = reachAPI(ctx, a, directly); blocked == nil {
			return k.here(ctx, path)
		}
	}
	if err := reachAPI(ctx, inside, s.through(cp.ID())); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.warn("kubectl runs there, and reads files there: the API server cannot be reached from here (%v), nor through SSH (%v)", blocked, err)
		return s.kubectlThere(ctx, k)
	}
	return s.kubectlThrough(ctx, k, inside, a)
}

func readKubeconfig(path string) (*kubeconfig.Access, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return kubeconfig.Parse(data)
}

// kubectlThrough runs kubectl here, and passes on what it says to the API server.
func (s *session) kubectlThrough(ctx context.Context, k KubectlOptions, inside, named *kubeconfig.Access) error {
	address, err := inside.Address()
	if err != nil {
		return err
	}
	l, err := listen(0)
	if err != nil {
		return err
	}
	defer l.Close()
	text, err := tunnelled(l, inside, named).Encode()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kgpu-") // mode 0700
	if err != nil {
		return local("making a kubeconfig", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "kubeconfig")
	if err := kubeconfig.WriteFile(path, text); err != nil {
		return local("making a kubeconfig", err)
	}
	served, end := context.WithCancel(ctx)
	forwarded := make(chan error, 1)
	go func() { forwarded <- s.forward(served, l, s.controlPlane().ID(), address) }()
	err = k.here(ctx, path)
	end()
	return errors.Join(err, <-forwarded)
}

// here runs the kubectl of this machine.
func (k KubectlOptions) here(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, k.Program, k.Args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = k.Stdin, k.Stdout, k.Stderr
	return runChild(cmd)
}

// childPatience is how long a program may take to end when it is told to.
const childPatience = 5 * time.Second

// runChild runs a program for the user, with what stands for its exit status when it fails. When ctx ends it is told so.
func runChild(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = childPatience
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status := exit.ExitCode()
		if by, ok := exit.Sys().(syscall.WaitStatus); ok && by.Signaled() {
			status = 128 + int(by.Signal())
		}
		return &ExitError{Status: status}
	case err != nil:
		return fmt.Errorf("running %s: %w", cmd.Path, err)
	}
	return nil
}

// kubectlLine reads kubectl's arguments from its first line, in base64, a NUL after each; the rest of its input is kubectl's.
const kubectlLine = `bash -c 'IFS= read -r line || exit
mapfile -t -d "" args < <(base64 -d <<<"$line")
exec kubectl --kubeconfig /etc/kubernetes/admin.conf "${args[@]}"'`

// kubectlThere runs the kubectl of the control plane, without a terminal.
func (s *session) kubectlThere(ctx context.Context, k KubectlOptions) error {
	var args strings.Builder
	for _, a := range k.Args {
		args.WriteString(a + "\x00")
	}
	first := base64.StdEncoding.EncodeToString([]byte(args.String())) + "\n"
	err := s.hosts[s.controlPlane().ID()].Run(ctx, remote.Command{
		Name: "kubectl", Line: kubectlLine, Root: true,
		Stdin: io.MultiReader(strings.NewReader(first), k.Stdin), Stdout: k.Stdout, Stderr: k.Stderr,
	})
	var exit *remote.ExitError
	if errors.As(err, &exit) {
		return &ExitError{Status: exit.Status}
	}
	return err
}
