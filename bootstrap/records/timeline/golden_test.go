package timeline

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/event"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("%s differs (go test -update writes it), first at\n%s", path, got[at:min(len(got), at+400)])
	}
}

func model(t *testing.T, events []event.Event) *Model {
	t.Helper()
	m, err := Of(slices.Values(events), "lab")
	must(t, err)
	return m
}

// TestGolden holds the model and the trace of a whole run, and the recorded run that the screenshots are made of.
func TestGolden(t *testing.T) {
	golden(t, "three.jsonl", lines(t, three()))
	m := model(t, three())
	text, err := json.MarshalIndent(m, "", "  ")
	must(t, err)
	golden(t, "three.model.json", append(text, '\n'))
	var trace bytes.Buffer
	must(t, Trace(&trace, m))
	golden(t, "three.trace.json", trace.Bytes())
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
