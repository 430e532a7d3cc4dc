package docs

import (
	"flag"
	"os"
	"testing"

	"kgpu.dev/kgpu/bootstrap/report"
)

var update = flag.Bool("update", false, "write the pages that are made from the sources")

// TestReasons holds that the page about reasons is the one that the table makes.
func TestReasons(t *testing.T) {
	const page = "reasons.md"
	want := report.ReasonsMarkdown()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what bootstrap/reason makes: go test ./docs -update writes it", page)
	}
}
