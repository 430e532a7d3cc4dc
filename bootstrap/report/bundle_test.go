package report

import (
	"bytes"
	"strings"
	"testing"
)

func TestPrintBundle(t *testing.T) {
	for size, want := range map[int64]string{1: "b.tar.gz: 1 kB, from 2 of 3 hosts\n", 99_001: "100 kB", 1_250_000: "1.2 MB"} {
		var out bytes.Buffer
		if err := PrintBundle(&out, "b.tar.gz", size, 2, 3); err != nil || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "scrubbed") {
			t.Errorf("%v: no %q in %q", err, want, &out)
		}
	}
}
