package storm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/scripts/lab/process"
)

// program is one in a made-up /proc.
type program struct {
	pid, parent int
	group       string
	command     string // its first word is the name
}

func (p program) write(t *testing.T, proc string) {
	t.Helper()
	dir := filepath.Join(proc, fmt.Sprint(p.pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(p.command)
	for file, text := range map[string]string{
		"stat":    fmt.Sprintf("%d (%s) S %d 1 1", p.pid, words[0], p.parent),
		"cmdline": strings.Join(words, "\x00") + "\x00",
		"cgroup":  "9:name=systemd:" + p.group + "\n8:pids:" + strings.Join(strings.Split(p.group, "/")[:2], "/") + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const unitOf = "/kgpu-lab/kgl3/%s/system.slice/kgpu-%s.service"

func TestWatch(t *testing.T) {
	in := func(host, batch string) string { return fmt.Sprintf(unitOf, host, batch) }
	for name, c := range map[string]struct {
		list []program
		want int
	}{
		"two batches": {[]program{{10, 1, in("w1", "a"), "apt-get -q install x"}, {11, 1, in("w1", "b"), "apt-get -q update"}}, 1},
		"two kubeadm": {[]program{{10, 1, in("w1", "a"), "kubeadm join --config x"}, {11, 1, in("w1", "b"), "kubeadm reset"}}, 1},
		"one batch, side by side": {[]program{{9, 1, in("w1", "a"), "bash x"}, {10, 9, in("w1", "a"), "apt-get install x"},
			{11, 9, in("w1", "a"), "dpkg --configure -a"}}, 1},
		"three":     {[]program{{10, 1, in("w1", "a"), "apt-get install x"}, {11, 1, in("w1", "b"), "apt install y"}, {12, 1, in("w1", "c"), "dpkg -i z"}}, 3},
		"by a user": {[]program{{10, 1, in("w1", "a"), "apt-get install x"}, {11, 1, "/kgpu-lab/kgl3/w1/init.scope", "dpkg --purge y"}}, 1},

		"apt's own dpkg":  {[]program{{10, 1, in("w1", "a"), "apt-get install x"}, {11, 10, in("w1", "a"), "sh -c y"}, {12, 11, in("w1", "a"), "dpkg --unpack x"}}, 0},
		"two hosts":       {[]program{{10, 1, in("w1", "a"), "apt-get install x"}, {11, 1, in("w2", "b"), "apt-get install x"}}, 0},
		"apt and kubeadm": {[]program{{10, 1, in("w1", "a"), "apt-get install x"}, {11, 1, in("w1", "b"), "kubeadm init"}}, 0},
		"those that ask":  {[]program{{10, 1, in("w1", "a"), "apt-get install x"}, {11, 1, in("w1", "b"), "apt-get -s install x"}, {12, 1, in("w1", "b"), "dpkg -l"}, {13, 1, in("w1", "b"), "kubeadm version"}}, 0},
		"lists of their own": {[]program{{10, 1, in("w1", "a"), "apt-get -c /tmp/a/apt.conf -q update"}, {11, 1, in("w1", "b"), "apt-get -c /tmp/b/apt.conf -q update"},
			{12, 1, in("w1", "c"), "apt-get -q update"}}, 0},
		"a configuration of its own": {[]program{{10, 1, in("w1", "a"), "apt-get -c /tmp/a/apt.conf install x"}, {11, 1, in("w1", "b"), "apt-get -q update"}}, 1},
		"another lab":                {[]program{{10, 1, in("w1", "a"), "apt-get install x"}, {11, 1, "/kgpu-lab/kgl30/w1/system.slice/x.service", "apt-get install x"}}, 0},
		"the machine itself":         {[]program{{10, 1, in("w1", "a"), "apt-get install x"}, {11, 1, "/", "apt-get install x"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t.TempDir(), "kgpu-lab/kgl3")
			for _, p := range c.list {
				p.write(t, w.machine.Proc)
			}
			w.look()
			var found []string
			for text := range w.found {
				found = append(found, text)
			}
			slices.Sort(found)
			if len(found) != c.want {
				t.Errorf("%d found, want %d: %q", len(found), c.want, found)
			}
		})
	}
}

// A sample that is taken while a host goes down shows a dpkg whose apt-get was read when it lived, and has another parent by now.
func TestWatchOfProcessesThatEnd(t *testing.T) {
	apt, child, other := worker{pid: 10, host: "w1", kind: "apt"}, worker{pid: 11, host: "w1", kind: "apt"}, worker{pid: 12, host: "w1", kind: "apt"}
	sample := func(workers ...worker) map[[2]int]string { return overlaps(workers, func(int) int { return 1 }) }
	for _, c := range []struct {
		first, second map[[2]int]string
		want          int
	}{
		{sample(apt, child), sample(child), 0},
		{sample(apt, child), sample(child, other), 0},
		{sample(apt, child), sample(), 0},
		{sample(apt, child), sample(apt, child), 1},
		{sample(apt, child), sample(apt, child, other), 1},
	} {
		if got := inBoth(c.first, c.second); len(got) != c.want {
			t.Errorf("%v and then %v: %q, want %d", c.first, c.second, got, c.want)
		}
	}
}

// Of a process that is not young, all is looked at once in a second; one that is at work is looked at every time.
func TestWatchOfProcessesThatGoOn(t *testing.T) {
	w := newWatch(t.TempDir(), "kgpu-lab/kgl3")
	program{10, 1, fmt.Sprintf(unitOf, "w1", "a"), "apt-get install x"}.write(t, w.machine.Proc)
	w.look()
	w.machine = process.Recent{Proc: filepath.Join(w.machine.Proc, "none")} // which finds nothing that has changed
	if got := w.sample(); len(got) != 1 || got[0].pid != 10 {
		t.Errorf("at work are %v", got)
	}
}

func TestWatchThatSawNothingIsAnError(t *testing.T) {
	w := NewWatch(t.Context(), "kgpu-lab/no-such-lab")
	if _, err := w.Found(); err == nil {
		t.Error("a watch that is blind says that all is well")
	}
}
