package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestBundleOf(t *testing.T) {
	for _, c := range []struct {
		args, dir string
		reads     bool
	}{
		{"--root /run/x --log /l create --bundle /b --pid-file /p id", "/b", true},
		{"run -b /b id", "/b", true},
		{"create --bundle=/b id", "/b", true},
		{"create id", ".", true},
		{"delete --force id", ".", false},
	} {
		if dir, reads := bundleOf(strings.Fields(c.args)); reads != c.reads || reads && dir != c.dir {
			t.Errorf("%s: %s %v", c.args, dir, reads)
		}
	}
}

func TestAdjustBringsScoreAndLimitsWithinReachAndKeepsTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	const spec = `{"ociVersion":"1.1.0","linux":{"resources":{"pids":{"limit":-1}}},"process":{"args":["/pause"],"oomScoreAdj":-1000,` +
		`"rlimits":[{"type":"RLIMIT_NOFILE","hard":18446744073709551615,"soft":18446744073709551615},{"type":"RLIMIT_NEW","hard":7,"soft":7}]}}`
	if err := os.WriteFile(path, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := adjust(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		OCIVersion string
		Linux      json.RawMessage
		Process    struct {
			Args        []string
			OOMScoreAdj int
			Rlimits     []limit
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	var own syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	if p := got.Process; p.OOMScoreAdj <= -1000 || p.Rlimits[0] != (limit{"RLIMIT_NOFILE", own.Max, own.Max}) || p.Rlimits[1].Hard != 7 {
		t.Errorf("process %+v, own limit %d", p, own.Max)
	}
	if got.OCIVersion != "1.1.0" || string(got.Linux) != `{"resources":{"pids":{"limit":-1}}}` || got.Process.Args[0] != "/pause" {
		t.Errorf("what is not ours has changed: %s", text)
	}
}
