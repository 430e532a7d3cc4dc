// Package cgroup keeps the control groups of a lab's hosts: in every hierarchy
// that the machine has mounted, version 1 or 2, a host has one group, which
// becomes the root of the host's cgroup namespace.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"kgpu.dev/kgpu/scripts/lab/process"
)

const top = "/sys/fs/cgroup"

// Hierarchy is one cgroup file system of the machine.
type Hierarchy struct {
	Path    string `json:"path"`    // mount point below /sys/fs/cgroup, "." for a pure version 2 machine
	Type    string `json:"type"`    // cgroup or cgroup2
	Options string `json:"options"` // what to mount it with: controllers or the hierarchy's name
}

func (h Hierarchy) dir() string { return filepath.Join(top, h.Path) }

// Hierarchies lists the machine's cgroup file systems.
func Hierarchies() ([]Hierarchy, error) {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return m.FSType != "cgroup" && m.FSType != "cgroup2", false
	})
	if err != nil {
		return nil, err
	}
	var all []Hierarchy
	for _, m := range mounts {
		rel, err := filepath.Rel(top, m.Mountpoint)
		if err != nil || strings.HasPrefix(rel, "..") {
			continue
		}
		h := Hierarchy{Path: rel, Type: m.FSType}
		if h.Type == "cgroup" {
			h.Options = v1Options(m.VFSOptions)
		}
		all = append(all, h)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no cgroup file system is mounted at or below %s", top)
	}
	return all, nil
}

// v1Options keeps the controllers and the name of a version 1 hierarchy.
func v1Options(super string) string {
	keep := strings.Split(super, ",")
	keep = slices.DeleteFunc(keep, func(o string) bool {
		return o == "rw" || o == "ro" || o == "xattr" || o == "clone_children" || strings.HasPrefix(o, "release_agent=")
	})
	o := strings.Join(keep, ",")
	if strings.HasPrefix(o, "name=") {
		o = "none," + o
	}
	return o
}

// Group is the same path in every hierarchy, such as kgpu-lab/lab/cp1.
type Group struct {
	Path        string
	hierarchies []Hierarchy
}

// New names a group; nothing is created yet.
func New(path string) (Group, error) {
	hs, err := Hierarchies()
	return Group{Path: path, hierarchies: hs}, err
}

func (g Group) dirs() []string {
	dirs := make([]string, len(g.hierarchies))
	for i, h := range g.hierarchies {
		dirs[i] = filepath.Join(h.dir(), g.Path)
	}
	return dirs
}

// Create makes the group and its parents.
func (g Group) Create() error {
	for _, h := range g.hierarchies {
		dir := h.dir()
		for _, part := range strings.Split(g.Path, "/") {
			if h.Type == "cgroup2" {
				if err := passControllers(dir); err != nil {
					return err
				}
			}
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if err := inheritCPUs(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// passControllers gives all controllers of a version 2 group to its children.
func passControllers(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(b)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
			return fmt.Errorf("pass controller %s on: %w", c, err)
		}
	}
	return nil
}

// inheritCPUs fills a new version 1 cpuset group, which is empty at first and
// takes no process until it has processors and memory nodes.
func inheritCPUs(parent, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.clone_children")); err != nil {
		return nil
	}
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(parent, f))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f), b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.clone_children"), []byte("1"), 0o644)
}

// Weigh says how much of the processors the group gets beside others of its parent when all want more than there is: 100 is what a group
// has by itself, and in version 1 each process beside it, too.
func (g Group) Weigh(weight int) error {
	for _, dir := range g.dirs() {
		for file, value := range map[string]int{"cpu.weight": weight, "cpu.shares": weight * 1024 / 100} {
			if path := filepath.Join(dir, file); exists(path) {
				if err := os.WriteFile(path, []byte(strconv.Itoa(value)), 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Add moves a process into the group.
func (g Group) Add(pid int) error {
	for _, dir := range g.dirs() {
		if err := join(dir, pid); err != nil {
			return err
		}
	}
	return nil
}

// AddBesideInit moves a process into the group of a running host, where its
// init is: a version 2 group with children takes no process itself.
func (g Group) AddBesideInit(pid int) error {
	for _, dir := range g.dirs() {
		if scope := filepath.Join(dir, "init.scope"); exists(scope) {
			dir = scope
		}
		if err := join(dir, pid); err != nil {
			return err
		}
	}
	return nil
}

func join(dir string, pid int) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// PIDs lists the processes in the group and below it.
func (g Group) PIDs() []int {
	var pids []int
	for _, dir := range g.dirs() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // groups come and go while we look
			}
			b, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			for _, f := range strings.Fields(string(b)) {
				if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
					pids = append(pids, pid)
				}
			}
			return nil
		})
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// Clear ends every process in the group and removes it with everything below.
// A group that does not exist is no error.
func (g Group) Clear() error {
	var err error
	cleared := process.Poll(10*time.Second, func() bool {
		for _, pid := range g.PIDs() {
			g.kill(pid)
		}
		err = g.remove()
		return err == nil
	})
	if !cleared {
		return fmt.Errorf("clear control group %s: %w", g.Path, err)
	}
	return nil
}

// kill ends a process of the group. The handle comes first and the look at the
// group after it, so that a process id used again cannot hit a stranger.
func (g Group) kill(pid int) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }()
	if slices.Contains(g.PIDs(), pid) {
		_ = p.Signal(syscall.SIGKILL)
	}
}

func (g Group) remove() error {
	for _, dir := range g.dirs() {
		if err := removeTree(dir); err != nil {
			return err
		}
	}
	return nil
}

func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	// unix.Rmdir and not os.Remove: the files of a group cannot be unlinked.
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("rmdir %s: %w", dir, err)
	}
	return nil
}

// RemoveIfEmpty removes the group itself when it has no children.
func (g Group) RemoveIfEmpty() {
	for _, dir := range g.dirs() {
		_ = unix.Rmdir(dir)
	}
}

// Mount mounts the machine's hierarchies below root/sys/fs/cgroup, as the
// caller's cgroup namespace shows them. root/sys must be a sysfs.
func Mount(root string, hierarchies []Hierarchy) error {
	at := filepath.Join(root, top)
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if len(hierarchies) > 1 || hierarchies[0].Path != "." {
		if err := unix.Mount("tmpfs", at, "tmpfs", flags, "mode=755"); err != nil {
			return fmt.Errorf("mount tmpfs at %s: %w", at, err)
		}
	}
	for _, h := range hierarchies {
		dir := filepath.Join(at, h.Path)
		if h.Path != "." {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(h.Type, dir, h.Type, flags, h.Options); err != nil {
			return fmt.Errorf("mount %s (%s) at %s: %w", h.Type, h.Options, dir, err)
		}
	}
	return nil
}
