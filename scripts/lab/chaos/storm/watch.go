package storm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// Watch looks ten times a second for two package managers, or two kubeadm, that change one host at the same time.
type Watch struct {
	machine process.Recent
	group   string          // the control group above those of the lab's hosts
	workers map[string]bool // folders of those that were at work at the last look
	found   map[string]bool
	looks   int
	most    int // processes that were watched in one look

	stop context.CancelFunc
	done chan struct{}
}

// NewWatch begins to watch the hosts of the lab whose control groups lie below group.
func NewWatch(ctx context.Context, group string) *Watch {
	w := newWatch("/proc", group)
	ctx, w.stop = context.WithCancel(ctx)
	go func() {
		defer close(w.done)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			w.look()
			<-ticker.C
		}
	}()
	return w
}

func newWatch(proc, group string) *Watch {
	return &Watch{machine: process.Recent{Proc: proc}, group: group, found: map[string]bool{}, done: make(chan struct{})}
}

// Found ends the watch and says what was at work at the same time. It is an error to have watched nothing.
func (w *Watch) Found() ([]string, error) {
	w.stop()
	<-w.done
	var list []string
	for text := range w.found {
		list = append(list, text)
	}
	slices.Sort(list)
	if w.most == 0 {
		return list, fmt.Errorf("in %d looks no process of a package manager or kubeadm was seen: the watch is blind", w.looks)
	}
	return list, nil
}

// worker is a process that changes what another of its kind must not change at the same time.
type worker struct {
	pid     int
	host    string
	kind    string // of which there must be one
	unit    string // the unit it is in
	command string
}

// look notes what two samples show, one after the other: a host that goes down ends processes while one is taken, and a child
// is seen without its parent then.
func (w *Watch) look() {
	first := overlaps(w.sample(), w.parent)
	if len(first) == 0 {
		return
	}
	for _, text := range inBoth(first, overlaps(w.sample(), w.parent)) {
		w.found[text] = true
	}
}

// inBoth are the overlaps of the first sample that the second one has, too.
func inBoth(first, second map[[2]int]string) (texts []string) {
	for pids, text := range first {
		if second[pids] != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// sample finds the workers that there are: those of the last look that go on, and what may have become one.
func (w *Watch) sample() (workers []worker) {
	dirs := w.machine.Changed()
	for dir := range w.workers {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	w.workers = map[string]bool{}
	for _, dir := range dirs {
		comm, _, ok := stat(dir)
		if !ok {
			continue
		}
		switch comm {
		case "apt-get", "apt", "dpkg", "kubeadm":
		default:
			continue
		}
		arguments, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue
		}
		words := strings.Split(strings.TrimRight(string(arguments), "\x00"), "\x00")
		kind := changes(comm, words)
		host, unit := w.where(dir)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if kind != "" && host != "" && err == nil {
			w.workers[dir] = true
			workers = append(workers, worker{pid, host, kind, unit, strings.Join(words, " ")})
		}
	}
	w.looks++
	w.most = max(w.most, len(workers))
	return workers
}

// overlaps finds two workers of a kind on a host, neither of which is at work for the other, by their process IDs.
func overlaps(workers []worker, parent func(pid int) int) map[[2]int]string {
	found := map[[2]int]string{}
	for i, a := range workers {
		for _, b := range workers[i+1:] {
			if a.host == b.host && a.kind == b.kind && !descends(a.pid, b.pid, parent) && !descends(b.pid, a.pid, parent) {
				found[[2]int{min(a.pid, b.pid), max(a.pid, b.pid)}] = fmt.Sprintf("%s: two of %s: %q in %s and %q in %s", a.host, a.kind, a.command, a.unit, b.command, b.unit)
			}
		}
	}
	return found
}

// descends says whether the process is a child of the other, or a child's child.
func descends(pid, other int, parent func(pid int) int) bool {
	for ; pid > 1; pid = parent(pid) {
		if pid == other {
			return true
		}
	}
	return false
}

// parent is that of a process; zero: there is no such process any more.
func (w *Watch) parent(pid int) int {
	_, parent, _ := stat(filepath.Join(w.machine.Proc, strconv.Itoa(pid)))
	return parent
}

// changes says of what kind a command is that changes something; empty: it only asks.
func changes(comm string, words []string) string {
	has := func(list ...string) bool {
		return slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(list, w) })
	}
	switch comm {
	case "kubeadm":
		if len(words) > 1 && slices.Contains([]string{"init", "join", "reset", "upgrade"}, words[1]) {
			return "kubeadm"
		}
	case "dpkg":
		if has("--configure", "--unpack", "--install", "-i", "--remove", "-r", "--purge", "-P", "--triggers-only") {
			return "apt"
		}
	default:
		if has("update") && has("-c") {
			return "" // with a configuration of its own, as scripts/reach.sh reads a repository: its lists lie apart from the host's
		}
		if has("update", "install", "remove", "purge", "autoremove", "upgrade", "dist-upgrade") && !has("-s", "--simulate", "--print-uris") {
			return "apt"
		}
	}
	return ""
}

// where finds the host and the unit of a process by its control group.
func (w *Watch) where(dir string) (host, unit string) {
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(groups)) {
		_, path, ok := strings.Cut(strings.TrimSpace(line), "/"+w.group+"/")
		if !ok {
			continue
		}
		parts := strings.Split(path, "/")
		// Not every hierarchy of version 1 has a group for each unit.
		host = parts[0]
		if inside := strings.Join(parts[1:], "/"); len(inside) > len(unit) {
			unit = inside
		}
	}
	return host, unit
}

// stat reads the name of a process and that of its parent.
func stat(dir string) (comm string, parent int, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return "", 0, false
	}
	text := string(b)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return "", 0, false
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 2 || fields[0] == "Z" {
		return "", 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return text[open+1 : end], parent, err == nil
}
