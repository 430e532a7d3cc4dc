package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/hosts"
	"kgpu.dev/kgpu/scripts/lab/place"
	"kgpu.dev/kgpu/scripts/lab/process"
)

// lab is the hosts of the benchmark, and one cluster made of them.
type lab struct {
	place.Place
	dir         string // of the benchmark's files
	fingerprint string // of the key of the lab's repositories
	hosts       []host // the control plane first
}

func openLab(dir string) (*lab, error) {
	p, err := place.New("bench")
	return &lab{Place: p, dir: dir}, err
}

// verb runs a verb of the lab's program.
func (l *lab) verb(ctx context.Context, args ...string) error {
	return runCommand(process.Group(ctx, labProgram, append([]string{"--name", l.Name}, args...)...), os.Stdout)
}

// exec runs a command as root on one of the lab's hosts and returns what it printed.
func (l *lab) exec(ctx context.Context, host, stdin string, args ...string) (string, error) {
	cmd := process.Group(ctx, labProgram, append([]string{"--name", l.Name, "exec", host}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out strings.Builder
	err := runCommand(cmd, &out)
	return out.String(), err
}

// destroy takes away all that up made.
func (l *lab) destroy() error { return l.verb(context.Background(), "destroy") }

// up makes so many hosts and their cluster, instead of those that a benchmark which was killed may have left.
func (l *lab) up(ctx context.Context, count int) error {
	if err := l.destroy(); err != nil {
		return err
	}
	for _, verb := range [][]string{{"prepare"}, {"up", "--workers", "1"}} {
		if err := l.verb(ctx, verb...); err != nil {
			return err
		}
	}
	fingerprint, err := os.ReadFile(filepath.Join(l.PKI(), "fingerprint"))
	if err != nil {
		return err
	}
	l.fingerprint = strings.TrimSpace(string(fingerprint))
	made, err := hosts.Open(l.Place, io.Discard)
	if err != nil {
		return err
	}
	if l.hosts, err = realHosts(made); err != nil {
		return err
	}
	inventory, _, err := l.inventory("real hosts", l.hosts)
	if err != nil {
		return err
	}
	if err := runCommand(process.Group(ctx, kgpuProgram, "up", "--kubeconfig", l.kubeconfig(), inventory), os.Stdout); err != nil {
		return err
	}
	fmt.Printf("making %d thin hosts inside %s\n", count-len(l.hosts), l.hosts[1].name)
	thin, err := l.thinHosts(ctx, made.Prefix(), count-len(l.hosts))
	l.hosts = append(l.hosts, thin...)
	return err
}

// kubeconfig is the file that all inventories share: fetching it is no part of having nothing to do.
func (l *lab) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }
