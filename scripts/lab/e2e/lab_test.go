package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"kgpu.dev/kgpu/scripts/lab/chaos/storm"
	"kgpu.dev/kgpu/scripts/lab/place"
)

// lab is the hosts of a test. It is destroyed when the test ends.
type lab struct {
	place.Place
	env  map[string]string // what `lab env` prints
	addr map[string]string // address by host
}

// newLab prepares what the test needs beyond the default set, and boots fresh hosts.
func newLab(t *testing.T, prepare []string, up ...string) *lab {
	t.Helper()
	name := labs.take(t)
	p, err := place.New(name)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Place: p, env: map[string]string{}}
	t.Cleanup(func() {
		if t.Failed() {
			l.dump(t)
		}
		if err := destroyLab(name); err != nil {
			t.Error(err)
		}
	})
	l.verb(t, append([]string{"prepare"}, prepare...)...)
	l.up(t, up...)
	for _, line := range lines(l.verb(t, "env")) {
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		l.env[name] = strings.Trim(value, "'")
	}
	return l
}

// up boots more hosts.
func (l *lab) up(t *testing.T, args ...string) {
	t.Helper()
	l.verb(t, append([]string{"up"}, args...)...)
	l.addr = map[string]string{}
	for _, line := range lines(l.verb(t, "status")) {
		if f := strings.Fields(line); len(f) > 2 && f[0] != "internet" {
			l.addr[f[0]] = f[1]
			l.exec(t, f[0], storm.Booted)
		}
	}
}

// run runs a verb of the lab and returns what it printed and its exit status; -1: it could not be run.
func (l *lab) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx := t.Context()
	if ctx.Err() != nil { // in a cleanup
		ctx = context.WithoutCancel(ctx)
	}
	if args[0] != "prepare" { // which may have much to build
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	cmd := labCommand(ctx, l.Name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Sprintf("not done after %s; %s", limit, errs.String()), -1
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err.Error(), -1
	}
	return strings.TrimSpace(out.String()), strings.TrimSpace(errs.String()), cmd.ProcessState.ExitCode()
}

// verb is run for a verb that must succeed.
func (l *lab) verb(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := l.run(t, args...)
	if code != 0 {
		t.Fatalf("lab %s: exit status %d\n%s\n%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// exec runs a bash script as root on a host.
func (l *lab) exec(t *testing.T, host, script string) string {
	t.Helper()
	return l.verb(t, "exec", host, "bash", "-ec", script)
}

// names are the hosts', in the lab's order.
func (l *lab) names(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, line := range lines(l.verb(t, "status")) {
		if f := strings.Fields(line); len(f) > 2 && f[0] != "internet" && f[2] == "up" {
			names = append(names, f[0])
		}
	}
	return names
}

// snapshots are the files with what hosts were, by host.
type snapshots map[string]string

func (l *lab) snapshot(t *testing.T, hosts ...string) snapshots {
	t.Helper()
	s := snapshots{}
	dir := t.TempDir()
	var group errgroup.Group
	for _, h := range hosts {
		file := filepath.Join(dir, h)
		s[h] = file
		group.Go(func() error {
			if _, errs, code := l.run(t, "snapshot", "-o", file, h); code != 0 {
				return fmt.Errorf("lab snapshot %s: exit status %d: %s", h, code, errs)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return s
}

// settled takes snapshots of hosts until nothing on them changes by itself any more, and returns the last ones. kubelets, kube-proxies
// and the pod network bring about what the API server knows a moment later.
func (l *lab) settled(t *testing.T, hosts ...string) snapshots {
	t.Helper()
	before := l.snapshot(t, hosts...)
	for range 20 {
		after := l.snapshot(t, hosts...)
		if !slices.ContainsFunc(hosts, func(h string) bool { return read(t, before[h]) != read(t, after[h]) }) {
			return after
		}
		before = after
	}
	l.unchanged(t, before)
	t.Fatal("twenty snapshots, one after the other, and each differs from the one before")
	return nil
}

// unchanged fails the test when hosts differ from their snapshots. What changes by itself is in no snapshot: the lab's
// snapshot/ignore.txt lists it with reasons, and nothing more is allowed here.
func (l *lab) unchanged(t *testing.T, before snapshots) {
	t.Helper()
	var group sync.WaitGroup
	for host, file := range before {
		group.Go(func() {
			switch out, errs, code := l.run(t, "diff", host, file); code {
			case 0:
			case 1:
				t.Errorf("%s has changed:\n%s", host, out)
			default:
				t.Errorf("lab diff %s: exit status %d: %s", host, code, errs)
			}
		})
	}
	group.Wait()
}
