// Command bench times `kgpu up` with nothing to do beside a bare program (package main in ./bare) that runs the very same
// facts script over one SSH connection per host: for 1, 10 and 50 hosts, near and with 20 ms more of round trip. Then it
// times `kgpu doctor` and `kgpu status` for 10 hosts in the same way, with their scripts. The two take turns on the same
// hosts. Exit status 1: kgpu took more than 1.5 times as long, or doctor more than 10 s; 2: there is no result.
//
// One machine cannot carry fifty kubelets, so the cluster has two real hosts, cp1 and w1 of a lab of its own, and the
// others are thin hosts inside w1 (thin.sh): each a real sshd with its own host key, address, host name, machine-id and
// kubelet's certificate. Everything else is w1's own, systemd, packages, containerd, kubelet, so that the facts script has all of its work to do.
// Their nodes are made by hand: with `network: none` kgpu waits for nodes to be registered, not to be ready. All of them
// see the board of the one machine, as every lab's hosts do: the inventory ignores HOST_PRODUCT_UUID_DUPLICATE, and
// nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// What is compared. delay is what a round trip takes more.
var (
	counts = []int{1, 10, 50}
	delays = []time.Duration{0, 20 * time.Millisecond}
)

// lookedAt is how many hosts doctor and status are measured with.
const lookedAt = 10

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop() // not before: a second Ctrl-C must not end the cleaning up
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	if errors.Is(err, errSlow) || errors.Is(err, errLate) {
		os.Exit(1)
	}
	os.Exit(2)
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kgpu-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Setenv("XDG_STATE_HOME", dir); err != nil { // where kgpu's runs leave their folders
		return err
	}
	bare, err := buildBare(ctx, dir)
	if err != nil {
		return err
	}
	l, err := openLab(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.destroy()) }()
	if err := l.up(ctx, slices.Max(counts)); err != nil {
		return err
	}

	var results []result
	for _, count := range counts {
		for _, delay := range delays {
			r, err := compete(ctx, l, bare, count, delay)
			if err != nil {
				return fmt.Errorf("%s: %w", caseName(count, delay), err)
			}
			results = append(results, r)
		}
	}
	for _, k := range looks {
		c, err := newLook(l, k, l.hosts[:lookedAt], bare)
		if err != nil {
			return err
		}
		r, err := c.measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		results = append(results, r)
	}
	if err := printTable(os.Stdout, results); err != nil {
		return err
	}
	return judge(results)
}

// compete measures one case. Both programs go through the relays where the way is to be longer.
func compete(ctx context.Context, l *lab, bare string, count int, delay time.Duration) (result, error) {
	hosts := l.hosts[:count]
	if delay > 0 {
		far, err := startRelays(hosts, delay/2)
		if err != nil {
			return result{}, err
		}
		defer far.stop()
		hosts = far.hosts
	}
	c, err := newContest(l, caseName(count, delay), hosts, bare)
	if err != nil {
		return result{}, err
	}
	if err := c.prove(ctx); err != nil {
		return result{}, err
	}
	return c.measure(ctx)
}

func caseName(count int, delay time.Duration) string {
	name := fmt.Sprintf("%d hosts", count)
	if count == 1 {
		name = "1 host"
	}
	if delay > 0 {
		name += fmt.Sprintf(", +%s", delay)
	}
	return name
}
