package docs

import (
	"flag"
	"testing"

	"kgpu.dev/kgpu/bootstrap/report"
)

var update = flag.Bool("update", false, "write the pages that are made from the sources")

// TestReasons holds that the page about reasons is the one that the table makes.
func TestReasons(t *testing.T) {
	made(t, "reasons.md", report.ReasonsMarkdown())
}
