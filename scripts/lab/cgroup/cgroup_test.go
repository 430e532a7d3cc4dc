package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestV1Options(t *testing.T) {
	for super, want := range map[string]string{
		"rw,cpu,cpuacct":                         "cpu,cpuacct",
		"rw,xattr,release_agent=/x,name=systemd": "none,name=systemd",
		"rw,cpuset,clone_children":               "cpuset",
	} {
		if got := v1Options(super); got != want {
			t.Errorf("%s: got %s, want %s", super, got, want)
		}
	}
}

func TestClearEndsProcessesAndRemovesChildren(t *testing.T) {
	g, err := New("kgpu-lab-test/group")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Clear(); err != nil {
			t.Error(err)
		}
		top, err := New("kgpu-lab-test")
		if err != nil {
			t.Fatal(err)
		}
		top.RemoveIfEmpty()
	})
	for range 2 {
		if err := g.Create(); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Weigh(250); err != nil {
		t.Fatal(err)
	}
	var weights []string
	for _, dir := range g.dirs() {
		for _, file := range []string{"cpu.weight", "cpu.shares"} {
			if got, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
				weights = append(weights, file+"="+strings.TrimSpace(string(got)))
			}
		}
	}
	if len(weights) != 1 || weights[0] != "cpu.weight=250" && weights[0] != "cpu.shares=2560" {
		t.Errorf("weights: %q", weights)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	if err := g.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if got := g.PIDs(); !slices.Equal(got, []int{cmd.Process.Pid}) {
		t.Errorf("processes: %v, want %d", got, cmd.Process.Pid)
	}
	for _, dir := range g.dirs() {
		if err := os.Mkdir(filepath.Join(dir, "child"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := g.Clear(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err == nil {
		t.Error("the process ended by itself")
	}
	for _, dir := range g.dirs() {
		if exists(dir) {
			t.Errorf("%s is still there", dir)
		}
	}
}
