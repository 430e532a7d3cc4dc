package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFuzzTargets holds that fuzz.sh finds every target by itself, in files that are not committed, too, and fails where one
// finds something or is hardly executed.
func TestFuzzTargets(t *testing.T) {
	script, err := os.ReadFile("fuzz.sh")
	must(t, err)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"scripts/fuzz.sh":       string(script),
		"a/a_test.go":           "func FuzzOne(f *testing.F) {\nfunc TestNone(t *testing.T) {\nfunc FuzzTwo(f *testing.F) {\n",
		"a/a.go":                "func FuzzNone() {\n",
		"b/c/new_test.go":       "func FuzzThree(f *testing.F) {\n",
		"scripts/lab/a_test.go": "func FuzzNone(f *testing.F) {\n",
		"cache/fuzz/m.example/m/b/c/FuzzThree/0123": "kept",
		"cache/fuzz/m.example/m/b/c/FuzzThree/4567": "kept",
		"bin/go": "#!/bin/sh\ncase $1 in env) echo $PWD/cache; exit ;; list) echo m.example/m; exit ;; esac\necho \"$*\" >>calls\necho 'fuzz: elapsed: 1s, execs: 7 (7/sec), new interesting: 0 (total: 1)'\necho \"fuzz: elapsed: 3s, execs: $EXECUTED (9/sec), new interesting: 0 (total: 1)\"\nexit $STATUS\n",
	} {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o700))
	}
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const told = "a.FuzzOne\n a.FuzzTwo\n b/c.FuzzThree\n"
	const seconds = "-fuzz ^FuzzThree$ -fuzztime 30s -fuzzminimizetime 5x ./b/c\n"
	executions := "-v ./b/c -args -test.fuzz=^FuzzThree$ -test.fuzztime=1002x -test.fuzzminimizetime=5x -test.fuzzcachedir=" + dir + "/cache/fuzz/m.example/m/b/c\n"
	for _, c := range []struct {
		amount, executed, status string
		call                     string // for FuzzThree
		well                     bool
	}{
		{"90", "1500", "0", seconds, true}, {"90", "1499", "0", seconds, false}, {"90", "1500", "1", seconds, false},
		{"1000x", "1000", "0", executions, true}, {"1000x", "999", "0", executions, false},
	} {
		run := exec.Command("bash", "scripts/fuzz.sh", c.amount)
		run.Dir = dir
		run.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "EXECUTED="+c.executed, "STATUS="+c.status)
		out, err := run.Output()
		if (err == nil) != c.well {
			t.Errorf("%+v: %v: %s", c, err, out)
		}
		for want := range strings.Lines(told) {
			if want = strings.TrimSpace(want); !strings.Contains(string(out), c.executed+"  "+want+"\n") {
				t.Errorf("%+v: no %s in %s", c, want, out)
			}
		}
		if strings.Contains(string(out), "None") {
			t.Errorf("what is no target ran: %s", out)
		}
		calls, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil || !strings.Contains(string(calls), c.call) {
			t.Errorf("%+v: %v, %s", c, err, calls)
		}
		must(t, os.Remove(filepath.Join(dir, "calls")))
	}
}
