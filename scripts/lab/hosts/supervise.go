package hosts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kgpu.dev/kgpu/scripts/lab/cgroup"
	"kgpu.dev/kgpu/scripts/lab/network"
	"kgpu.dev/kgpu/scripts/lab/process"
)

// The signals by which commands tell a supervisor what to do with its host.
const (
	pressPower = syscall.SIGTERM // shut down, and pull the plug after the grace
	pullPlug   = syscall.SIGINT  // power cut
	askReboot  = syscall.SIGHUP
)

// What systemd as process 1 does at these signals: systemd(1), SIGRTMIN+4 and +5.
const (
	systemdPoweroff = syscall.Signal(34 + 4)
	systemdReboot   = syscall.Signal(34 + 5)
)

const shutdownGrace = 20 * time.Second

// Supervise runs a host until it is switched off, from inside or outside, and
// boots it again when it reboots. It must run on the main thread: the host
// gets a power cut when the thread that started it ends.
func (l *Lab) Supervise(name string) error {
	h, err := l.Host(name)
	if err != nil {
		return err
	}
	unlock, err := h.holdBase()
	if err != nil {
		return err
	}
	defer unlock()
	commands := make(chan os.Signal, 8)
	signal.Notify(commands, pressPower, pullPlug, askReboot)
	for {
		again, err := h.run(commands)
		if err != nil || !again {
			return err
		}
	}
}

// holdBase keeps the base as it is while the host runs over it: who wants to
// replace it must have it alone, see process.TryLock.
func (h *Host) holdBase() (unlock func(), err error) {
	base := h.lab.Base(h.Base)
	if unlock, err = process.LockShared(base); err != nil {
		return nil, err
	}
	if id, err := identity(base); err != nil || id != h.BaseID {
		unlock()
		return nil, errors.Join(err, fmt.Errorf("base system %s is not the one that %s was made over: destroy the lab and make it anew", h.Base, h.Name))
	}
	return unlock, nil
}

// run is one boot: from making the host's namespaces to the end of its last process.
func (h *Host) run(commands <-chan os.Signal) (again bool, err error) {
	group, err := h.group()
	if err != nil {
		return false, err
	}
	if err := h.clear(group); err != nil {
		return false, err
	}
	if err := h.makeGroup(group); err != nil {
		return false, fmt.Errorf("make control group: %w", err)
	}
	disks, err := h.openDisks()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, disks.close()) }()
	cmd, err := h.startInit(group, disks)
	if err != nil {
		_ = h.clear(group)
		return false, err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	var root *os.File
	again = h.obey(cmd.Process, commands, ended, func() { root = cmp.Or(root, disks.pull(cmd.Process)) })
	if root != nil {
		err = errors.Join(disks.cut(), root.Close())
	}
	_ = os.Remove(h.path("boot.json"))
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	log.Printf("%s: process 1 ended: %s", h.Name, cmd.ProcessState)
	// reboot(2) in a pid namespace ends its init by SIGHUP, power off by SIGINT: pid_namespaces(7).
	again = again && status.Signaled() && status.Signal() == syscall.SIGHUP
	return again, errors.Join(err, h.clear(group))
}

// makeGroup makes the host's control group. Together, all hosts of all labs would have as much of the processors as one program beside them,
// such as a compiler; and a control plane that waits too long for them loses its leases.
func (h *Host) makeGroup(group cgroup.Group) error {
	all, err := cgroup.New(groups)
	if err != nil {
		return err
	}
	if err := errors.Join(group.Create(), all.Weigh(800)); err != nil {
		return err
	}
	if h.Number == controlPlane {
		return group.Weigh(300)
	}
	return nil
}

// clear removes what a boot leaves, or an earlier supervisor that was killed. A
// lab whose number another has taken meanwhile has nothing left.
func (h *Host) clear(group cgroup.Group) error {
	if h.lab.Taken() {
		return nil
	}
	if err := group.Clear(); err != nil {
		return err
	}
	for _, c := range h.Cables() {
		if err := network.Unplug(c.Name); err != nil {
			return err
		}
	}
	return nil
}

// obey carries commands to process 1 until it ends, and says whether the host
// may boot again. pull is a power cut.
func (h *Host) obey(init *os.Process, commands <-chan os.Signal, ended <-chan struct{}, pull func()) (again bool) {
	again = true
	var grace <-chan time.Time
	repeat := time.NewTicker(time.Second) // an init that is just starting ignores signals
	defer repeat.Stop()
	for {
		select {
		case <-ended:
			return again
		case c := <-commands:
			switch c {
			case askReboot:
				_ = init.Signal(systemdReboot)
			case pressPower:
				again = false
				grace = time.After(shutdownGrace)
				_ = init.Signal(systemdPoweroff)
			case pullPlug:
				again = false
				pull()
			}
		case <-repeat.C:
			if grace != nil {
				_ = init.Signal(systemdPoweroff)
			}
		case <-grace:
			log.Printf("%s: no end within %s, pulling the plug", h.Name, shutdownGrace)
			pull()
		}
	}
}

// startInit starts process 1 in its namespaces, connects its cables, and lets
// it go on.
func (h *Host) startInit(group cgroup.Group, disks drives) (*exec.Cmd, error) {
	hierarchies, err := cgroup.Hierarchies()
	if err != nil {
		return nil, err
	}
	password, err := h.password()
	if err != nil {
		return nil, err
	}
	names, err := h.names()
	if err != nil {
		return nil, err
	}
	p := plan{
		Hostname: h.Name, Dir: h.path(), Disks: len(disks), Names: names, Base: h.lab.Base(h.Base), Hierarchies: hierarchies,
		Password: password, Cards: h.Cards,
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	cmd := exec.Command("/proc/self/exe", "boot")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Dir = "/"
	cmd.ExtraFiles = append([]*os.File{r}, disks...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true,
	}
	err = cmd.Start()
	_ = r.Close()
	if err != nil {
		return nil, fmt.Errorf("start process 1: %w", err)
	}
	if err := h.equip(cmd.Process.Pid, group); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	return cmd, json.NewEncoder(w).Encode(p)
}

// equip gives process 1 its control groups and cables, and records it.
func (h *Host) equip(pid int, group cgroup.Group) error {
	if err := group.Add(pid); err != nil {
		return fmt.Errorf("enter control group: %w", err)
	}
	for _, c := range h.Cables() {
		if err := network.Plug(c, pid); err != nil {
			return err
		}
	}
	if h.Bastion {
		if err := h.lab.Masquerade(pid, "eth0"); err != nil {
			return fmt.Errorf("masquerade: %w", err)
		}
	}
	var b boot
	if _, err := process.Load(h.path("boots.json"), &b.Count); err != nil {
		return err
	}
	b.Count++
	var err error
	if b.Init, err = process.Of(pid); err != nil {
		return err
	}
	if err := process.Save(h.path("boots.json"), b.Count); err != nil {
		return err
	}
	return process.Save(h.path("boot.json"), b)
}

// password is the one to set at the first boot, if the host wants one.
func (h *Host) password() (string, error) {
	if !h.Password {
		return "", nil
	}
	b, err := os.ReadFile(h.lab.Place.Password())
	return strings.TrimSpace(string(b)), err
}

// names are the lines of a host's hosts file with the names of the lab's internet.
func (h *Host) names() (string, error) {
	names, err := os.ReadFile(h.lab.Names())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var want strings.Builder
	for _, name := range strings.Fields(string(names)) {
		fmt.Fprintf(&want, "%s %s%s\n", h.lab.Gateway(), name, namesMark)
	}
	return want.String(), nil
}
