package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
)

func TestPrintReasons(t *testing.T) {
	var out bytes.Buffer
	must(t, PrintReasons(&out))
	for _, r := range reason.Table() {
		if n := strings.Count(out.String(), " "+string(r.ID)+" "); n != 1 {
			t.Errorf("%s is listed %d times", r.ID, n)
		}
	}
	for i, line := range strings.Split(out.String(), "\n") {
		if strings.ContainsRune(line, '\t') {
			t.Errorf("line %d is not laid out: %q", i+1, line)
		}
	}
	if err := PrintReasons(full{}); err == nil {
		t.Error("the list was written to a full disk")
	}
}

func TestPrintReason(t *testing.T) {
	var out bytes.Buffer
	r := reason.Lookup(reason.HostAptLocked)
	must(t, PrintReason(&out, r))
	contains(t, out.String(), "HOST_APT_LOCKED", "exit status 65", "class host", r.Meaning, r.Advice)
}

func TestReasonsJSON(t *testing.T) {
	var out bytes.Buffer
	must(t, ReasonsJSON(&out, reason.Table()))
	var got []map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != len(reason.Table()) {
		t.Fatalf("%v: %d reasons of %d", err, len(got), len(reason.Table()))
	}
	for _, key := range []string{"id", "exit", "class", "meaning", "advice"} {
		if got[0][key] == nil {
			t.Errorf("no %s in %v", key, got[0])
		}
	}
}
