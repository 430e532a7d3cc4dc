package hosts

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netns"

	"kgpu.dev/kgpu/scripts/lab/problem"
	"kgpu.dev/kgpu/scripts/lab/process"
)

const (
	bootLimit  = 90 * time.Second
	frontLimit = 20 * time.Second
)

// Up makes the hosts that are wanted and missing, and starts these and all
// others of the lab that are off, with network and internet.
func (l *Lab) Up(ctx context.Context, wanted []Spec) error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := l.Hosts()
	if err != nil {
		return err
	}
	for _, h := range all {
		wanted = append(wanted, h.Spec)
	}
	count := map[string]bool{}
	for _, s := range wanted {
		count[s.Name] = true
	}
	if err := l.equipMachine(len(count)); err != nil {
		return err
	}
	if err := each(wanted, func(s Spec) error {
		_, err := l.create(ctx, s)
		return err
	}); err != nil {
		return err
	}
	if all, err = l.Hosts(); err != nil {
		return err
	}
	if err := l.writeTrust(all); err != nil {
		return err
	}
	err = each(all, func(h *Host) error { return h.start(ctx) })
	return errors.Join(err, l.Status())
}

// equipMachine makes what hosts need of the machine before they boot.
func (l *Lab) equipMachine(hosts int) error {
	if err := l.reserveInotify(hosts); err != nil {
		return err
	}
	if err := l.Ensure(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return l.startFront()
}

// Start starts one host that is off.
func (l *Lab) Start(ctx context.Context, name string) error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	all, err := l.Hosts()
	if err != nil {
		return err
	}
	if err := l.equipMachine(len(all)); err != nil {
		return err
	}
	if err := h.start(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintln(l.Out, h.line())
	return err
}

// start boots the host unless it runs, and waits for its sshd.
func (h *Host) start(ctx context.Context) error {
	sup := h.supervisor()
	if !sup.Alive() {
		var err error
		sup, err = process.Daemon(h.path("console.log"), h.path("supervisor.json"), "--name", h.lab.Name, "supervise", h.Name)
		if err != nil {
			return h.fail("start its supervisor", "LAB_HOST_START", "", err)
		}
	}
	return h.waitSSH(ctx, sup, 0, bootLimit)
}

// waitSSH waits, so long at most, for the banner of the host's sshd in a boot after number after.
func (h *Host) waitSSH(ctx context.Context, sup process.Record, after int, limit time.Duration) error {
	ended := false
	up := process.Poll(limit, func() bool {
		if ctx.Err() != nil || !sup.Alive() {
			ended = true
			return true
		}
		b, running := h.running()
		return running && b.Count > after && hasBanner(b.Init.PID, h.Cables()[0].Address)
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case ended:
		return h.fail("boot", "LAB_HOST_ENDED", "See "+h.path("console.log")+".", errors.New(tail(h.path("console.log"))))
	case !up:
		return h.fail("wait for its sshd", "LAB_HOST_NO_SSHD",
			fmt.Sprintf("`lab exec %s journalctl -b` tells more.", h.Name), fmt.Errorf("no banner within %s", limit))
	}
	return nil
}

// hasBanner says whether sshd answers. It asks from inside the host's network
// namespace: the host may be cut off, or on a segment without a way to it.
func hasBanner(pid int, addr netip.Addr) bool {
	answer := make(chan bool)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with this goroutine
		answer <- func() bool {
			ns, err := netns.GetFromPid(pid)
			if err != nil {
				return false
			}
			defer func() { _ = ns.Close() }()
			if netns.Set(ns) != nil {
				return false
			}
			conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(addr, 22).String(), time.Second)
			if err != nil {
				return false
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(time.Second))
			line, err := bufio.NewReader(conn).ReadString('\n')
			return err == nil && strings.HasPrefix(line, "SSH-")
		}()
	}()
	return <-answer
}

// tail is the last line of a log that says something.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-4096), io.SeekStart)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return lastLine(string(b))
}

func (l *Lab) frontRecord() string { return filepath.Join(l.State, "internet.json") }
func (l *Lab) frontLog() string    { return filepath.Join(l.State, "internet.log") }

func (l *Lab) front() process.Record {
	var r process.Record
	_, _ = process.Load(l.frontRecord(), &r)
	return r
}

// startFront starts the lab's internet unless it runs, and waits until it listens.
func (l *Lab) startFront() error {
	front := l.front()
	if !front.Alive() {
		var err error
		front, err = process.Daemon(l.frontLog(), l.frontRecord(), "--name", l.Name, "internet")
		if err != nil {
			return err
		}
	}
	address := netip.AddrPortFrom(l.Gateway(), 443).String()
	var answer error
	process.Poll(frontLimit, func() bool {
		answer = l.askFront(address)
		return answer == nil || !front.Alive()
	})
	if answer != nil || !front.Alive() {
		return &problem.Problem{
			Step: "start the lab's internet on " + address, Reason: "LAB_INTERNET_DOWN", Advice: "See " + l.frontLog() + ".",
			Err: errors.Join(answer, errors.New(tail(l.frontLog()))),
		}
	}
	return nil
}

// askFront greets the lab's internet as a host does, trusting the lab's authority alone.
func (l *Lab) askFront(address string) error {
	authority, err := os.ReadFile(filepath.Join(l.PKI(), "ca.crt"))
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	dialer := &net.Dialer{Timeout: time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{RootCAs: trusted, ServerName: "registry.k8s.io"})
	if err != nil {
		return err
	}
	return conn.Close()
}

// each runs f for all items at once and returns all their errors.
func each[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	for i, item := range items {
		wg.Go(func() { errs[i] = f(item) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
