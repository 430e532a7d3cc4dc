package scripts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// record runs the recorder of the lab, and returns the header and what the terminal showed, in order.
func record(t *testing.T, commands string) (header map[string]any, shown string, pauses []float64, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recording.cast")
	command := exec.CommandContext(t.Context(), "python3", "lab/cast.py", file, "100", "30")
	command.Stdin = strings.NewReader(commands)
	if out, problem := command.CombinedOutput(); problem != nil {
		if _, there := os.Stat(file); there == nil {
			t.Error("there is a recording of a command that failed")
		}
		return nil, string(out), nil, problem
	}
	text, err := os.ReadFile(file)
	must(t, err)
	var b strings.Builder
	last := 0.0
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if i == 0 {
			must(t, json.Unmarshal([]byte(line), &header))
			continue
		}
		var event []any
		if err := json.Unmarshal([]byte(line), &event); err != nil || len(event) != 3 || event[1] != "o" {
			t.Fatalf("%s: %v", line, err)
		}
		at := event[0].(float64)
		pauses = append(pauses, at-last)
		last = at
		b.WriteString(event[2].(string))
	}
	return header, b.String(), pauses, nil
}

// TestRecording holds that the recorder shows what is typed and what comes of it, on a terminal of that size, without long pauses.
func TestRecording(t *testing.T) {
	t.Parallel()
	header, shown, pauses, err := record(t, "# what now?\n0 echo grüße\n0 stty size; [ -t 1 ] && echo terminal\n2,3 sleep 2.2; echo late; exit 3\n")
	if err != nil {
		t.Fatalf("%v: %s", err, shown)
	}
	if header["version"] != 2.0 || header["width"] != 100.0 || header["height"] != 30.0 {
		t.Errorf("the header is %v", header)
	}
	contains(t, shown, "# what now?", "echo grüße\r\ngrüße\r\n", "30 100\r\nterminal\r\n", "late\r\n")
	for _, pause := range pauses {
		if pause < 0 || pause > 2.001 {
			t.Errorf("a pause of %g seconds", pause)
		}
	}
	if _, said, _, err := record(t, "0 exit 4\n0 echo never\n"); err == nil || !strings.Contains(said, "exit status 4, not 0") {
		t.Errorf("a command that failed: %v, %s", err, said)
	}
}
