// Command runc stands in front of the real runc on a machine whose root lacks CAP_SYS_RESOURCE: there runc can neither lower an
// OOM score below its own nor raise a hard resource limit, and every pod sandbox would fail. It moves both within reach in the
// bundle's config.json, then becomes the real runc. The configuration that containerd, docker and kubelet write stays untouched.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The diversions that the lab's base registers with dpkg, for Debian's runc and for Docker's containerd.io.
var diverted = []string{"/usr/sbin/runc.real", "/usr/bin/runc.real"}

func main() {
	if bundle, ok := bundleOf(os.Args[1:]); ok {
		if err := adjust(filepath.Join(bundle, "config.json")); err != nil {
			fmt.Fprintln(os.Stderr, "runc (lab):", err)
			os.Exit(1)
		}
	}
	for _, path := range diverted {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		err := syscall.Exec(path, append([]string{"runc"}, os.Args[1:]...), os.Environ())
		fmt.Fprintln(os.Stderr, "runc (lab):", path, err)
		os.Exit(126)
	}
	fmt.Fprintln(os.Stderr, "runc: command not found")
	os.Exit(127)
}

// bundleOf finds the bundle directory of the commands that read a config.json.
func bundleOf(args []string) (dir string, reads bool) {
	dir = "."
	for i, a := range args {
		switch {
		case a == "create" || a == "run":
			reads = true
		case (a == "--bundle" || a == "-b") && i+1 < len(args):
			dir = args[i+1]
		case strings.HasPrefix(a, "--bundle="):
			dir = strings.TrimPrefix(a, "--bundle=")
		}
	}
	return dir, reads
}

// adjust rewrites only process.oomScoreAdj and process.rlimits; everything else passes through as it was read.
func adjust(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec, process map[string]json.RawMessage
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if spec["process"] == nil {
		return nil
	}
	if err := json.Unmarshal(spec["process"], &process); err != nil {
		return fmt.Errorf("%s: process: %w", path, err)
	}
	if err := raiseScore(process); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := clampLimits(process); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if spec["process"], err = json.Marshal(process); err != nil {
		return err
	}
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func raiseScore(process map[string]json.RawMessage) error {
	if process["oomScoreAdj"] == nil {
		return nil
	}
	var wanted int
	if err := json.Unmarshal(process["oomScoreAdj"], &wanted); err != nil {
		return fmt.Errorf("oomScoreAdj: %w", err)
	}
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return err
	}
	lowest, err := strconv.Atoi(strings.TrimSpace(string(own)))
	if err != nil {
		return err
	}
	process["oomScoreAdj"] = json.RawMessage(strconv.Itoa(max(wanted, lowest)))
	return nil
}

// The limits that containers are given, by their number in Linux's asm-generic/resource.h.
var resources = map[string]int{"RLIMIT_CORE": 4, "RLIMIT_NPROC": 6, "RLIMIT_NOFILE": 7, "RLIMIT_MEMLOCK": 8}

type limit struct {
	Type string `json:"type"`
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

func clampLimits(process map[string]json.RawMessage) error {
	if process["rlimits"] == nil {
		return nil
	}
	var limits []limit
	if err := json.Unmarshal(process["rlimits"], &limits); err != nil {
		return fmt.Errorf("rlimits: %w", err)
	}
	for i := range limits {
		resource, known := resources[limits[i].Type]
		if !known {
			continue
		}
		var own syscall.Rlimit
		if err := syscall.Getrlimit(resource, &own); err != nil {
			return err
		}
		limits[i].Hard = min(limits[i].Hard, own.Max)
		limits[i].Soft = min(limits[i].Soft, own.Max)
	}
	text, err := json.Marshal(limits)
	process["rlimits"] = text
	return err
}
