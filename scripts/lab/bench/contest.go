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
	hosts     []string                                  // as events name them
	kgpu      []string                                  // its arguments
	bare      []string                                  // the program with its arguments
	check     func(out io.Reader, hosts []string) error // of what kgpu printed
	findings  bool                                      // kgpu may end with status 1 or 2: it has something to tell
	most      time.Duration                             // that kgpu may take; zero: no matter
}

// look is a command that asks all hosts how they are, with the scripts that it runs on each.
type look struct {
	verb     string
	scripts  []string
	together bool
	most     time.Duration
}

// kgpu doctor promises to take less than ten seconds for ten healthy hosts.
var looks = []look{
	{"doctor", []string{"facts", "doctor"}, true, 10 * time.Second},
	{"status", []string{"facts", "status"}, false, 0},
}

// newLook is kgpu doctor or status, and the bare program with the same scripts. The nodes of thin hosts are not ready, so
// that there is something to find.
func newLook(l *lab, k look, list []host, bare string) (*contest, error) {
	name := k.verb + ", " + caseName(len(list), 0)
	inventory, trust, err := l.inventory(name, list)
	if err != nil {
		return nil, err
	}
	c := &contest{
		name: name, inventory: inventory, check: allReached, findings: true, most: k.most,
		kgpu: []string{k.verb, "--output", "json", "--inventory", inventory},
	}
	c.against(l, bare, trust, list, k.scripts...)
	if k.together {
		c.bare = slices.Insert(c.bare, 1, "-together")
	}
	return c, nil
}

// against sets the bare program up.
func (c *contest) against(l *lab, bare, trust string, list []host, scripts ...string) {
	c.bare = []string{bare, "-user", user, "-key", l.ClientKey(), "-known-hosts", trust}
	for _, script := range scripts {
		c.bare = append(c.bare, "-script", script)
	}
	for _, h := range list {
		c.hosts = append(c.hosts, h.name)
		c.bare = append(c.bare, h.sshd.String())
	}
}

func newContest(l *lab, name string, list []host, bare string) (*contest, error) {
	inventory, trust, err := l.inventory(name, list)
	if err != nil {
		return nil, err
	}
	c := &contest{
		name: name, inventory: inventory, check: onceEach,
		kgpu: []string{"up", "--output", "json", "--kubeconfig", l.kubeconfig(), inventory},
	}
	c.against(l, bare, trust, list, "facts")
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
	r := result{name: c.name, most: c.most}
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
	var exit *exec.ExitError
	if errors.As(err, &exit) && c.findings && (exit.ExitCode() == 1 || exit.ExitCode() == 2) {
		err = nil
	}
	return took, errors.Join(err, c.check(&out, c.hosts))
}

// clock runs a program and says how long it took, from its start to its end.
func clock(cmd *exec.Cmd, out io.Writer) (time.Duration, error) {
	start := time.Now()
	err := runCommand(cmd, out)
	return time.Since(start), err
}
