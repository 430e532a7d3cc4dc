package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// rounds of each contest, after one that is not counted.
const rounds = 7

// contest is kgpu and the bare program on the same hosts.
type contest struct {
	name      string
	inventory string
	hosts     []string // as events name them
	kgpu      []string // arguments after `up`
	bare      []string // the program with its arguments
}

func newContest(l *lab, name string, list []host, bare string) (*contest, error) {
	inventory, trust, err := l.inventory(name, list)
	if err != nil {
		return nil, err
	}
	c := &contest{
		name: name, inventory: inventory,
		kgpu: []string{"up", "--output", "json", "--kubeconfig", l.kubeconfig(), inventory},
		bare: []string{bare, "-user", user, "-key", l.ClientKey(), "-known-hosts", trust, "-script", factsScript},
	}
	for _, h := range list {
		c.hosts = append(c.hosts, h.name)
		c.bare = append(c.bare, h.sshd.String())
	}
	return c, nil
}

// prove wants nothing to do for kgpu, and one connection and one command per host when it does so.
func (c *contest) prove(ctx context.Context) error {
	var plan bytes.Buffer
	if err := runCommand(process.Group(ctx, kgpuProgram, "plan", c.inventory), &plan); err != nil {
		return fmt.Errorf("kgpu finds something to do: %w\n%s", err, lastLines(plan.String(), 10))
	}
	_, err := c.runKgpu(ctx)
	return err
}

// measure lets the two take turns.
func (c *contest) measure(ctx context.Context) (result, error) {
	r := result{name: c.name}
	for round := range rounds + 1 {
		kgpu, err := c.runKgpu(ctx)
		if err != nil {
			return r, err
		}
		bare, err := clock(process.Group(ctx, c.bare[0], c.bare[1:]...), io.Discard)
		if err != nil {
			return r, err
		}
		if round > 0 {
			r.kgpu, r.bare = append(r.kgpu, kgpu), append(r.bare, bare)
		}
	}
	slices.Sort(r.kgpu)
	slices.Sort(r.bare)
	fmt.Println(r)
	return r, nil
}

func (c *contest) runKgpu(ctx context.Context) (time.Duration, error) {
	var out bytes.Buffer
	took, err := clock(process.Group(ctx, kgpuProgram, c.kgpu...), &out)
	return took, errors.Join(err, onceEach(&out, c.hosts))
}

// clock runs a program and says how long it took, from its start to its end.
func clock(cmd *exec.Cmd, out io.Writer) (time.Duration, error) {
	start := time.Now()
	err := runCommand(cmd, out)
	return time.Since(start), err
}
