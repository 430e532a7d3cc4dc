package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"kgpu.dev/kgpu/scripts/lab/network"
	"kgpu.dev/kgpu/scripts/lab/problem"
)

// stopLimit is how long systemd may wait for the units of a host that shuts down: DefaultTimeoutStopSec= of systemd-system.conf(5),
// which a container that takes no signal makes use of, and a little for the rest.
const stopLimit = 100 * time.Second

// Reboot shuts a running host down and boots it again, and returns when its
// sshd answers.
func (l *Lab) Reboot(ctx context.Context, name string) error {
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	b, err := h.needRunning()
	if err != nil {
		return err
	}
	sup := h.supervisor()
	if err := sup.Signal(askReboot); err != nil {
		return err
	}
	if err := h.waitSSH(ctx, sup, b.Count, stopLimit+bootLimit); err != nil {
		return err
	}
	_, err = fmt.Fprintln(l.Out, h.line())
	return err
}

// Kill is a power cut: every process of the host is gone at once, and it stays off.
func (l *Lab) Kill(name string) error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	if err := h.off(pullPlug); err != nil {
		return err
	}
	_, err = fmt.Fprintln(l.Out, h.line())
	return err
}

// off switches the host off and returns when nothing of it runs any more.
func (h *Host) off(how os.Signal) error {
	sup := h.supervisor()
	if err := sup.Signal(how); err != nil {
		return err
	}
	if !sup.WaitGone(shutdownGrace + 15*time.Second) {
		// Its host ends with it.
		if err := sup.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		sup.WaitGone(5 * time.Second)
	}
	group, err := h.group()
	if err != nil {
		return err
	}
	if err := h.clear(group); err != nil {
		return h.fail("clear what it left", "LAB_HOST_REMAINS", "`lab down` tries again.", err)
	}
	return nil
}

// Cut takes a host off the network without its noticing: everything is dropped.
func (l *Lab) Cut(name string) error { return l.wire(name, l.Network.Cut) }

// Heal undoes Cut.
func (l *Lab) Heal(name string) error { return l.wire(name, l.Network.Heal) }

func (l *Lab) wire(name string, f func(...network.Cable) error) error {
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	if err := f(h.Cables()...); err != nil {
		return h.fail("change its network", "LAB_NETWORK", "`lab up` repairs the network.", err)
	}
	_, err = fmt.Fprintln(l.Out, h.line())
	return err
}

// Delay adds d to every round trip to the running host; zero ends that.
func (l *Lab) Delay(name string, d time.Duration) error {
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	if _, err := h.needRunning(); err != nil {
		return err
	}
	err = network.Delay(h.Cables()[0], d)
	if errors.Is(err, network.ErrNoNetem) {
		return h.fail("delay its packets", "LAB_NO_NETEM", "Delay them in the client, or use a machine whose kernel has it.", err)
	}
	return err
}

// Down shuts all hosts down and takes network and internet away. Only files stay.
func (l *Lab) Down() error { return l.down(pressPower) }

// down switches all hosts off so.
func (l *Lab) down(how os.Signal) error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := l.Hosts()
	if err != nil {
		return err
	}
	errs := each(all, func(h *Host) error { return h.off(how) })
	front := l.front()
	errs = errors.Join(errs, front.Signal(syscall.SIGTERM))
	if !front.WaitGone(5 * time.Second) {
		errs = errors.Join(errs, front.Signal(syscall.SIGKILL))
	}
	errs = errors.Join(errs, l.removeGroups(), l.Remove(), l.releaseInotify())
	if errs != nil {
		return &problem.Problem{Step: "take the lab down", Reason: "LAB_DOWN", Advice: "Run `lab down` again.", Err: errs}
	}
	_, err = fmt.Fprintf(l.Out, "%s is down\n", l.Name)
	return err
}

// Destroy takes the lab down, with a power cut of all hosts, and removes its files.
func (l *Lab) Destroy() error {
	if err := l.down(pullPlug); err != nil {
		return err
	}
	if err := os.RemoveAll(l.State); err != nil {
		return err
	}
	_, err := fmt.Fprintf(l.Out, "%s is gone\n", l.Name)
	return err
}
