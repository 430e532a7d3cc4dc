// Package reporttest looks at what people see of a story.
package reporttest

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"kgpu.dev/kgpu/bootstrap/event"
	"kgpu.dev/kgpu/bootstrap/report"
)

// Shown runs a story and returns what the terminal gets, and the error. Nothing that a terminal would obey may be in it.
func Shown(t *testing.T, story func(event.Sink) error) (string, error) {
	t.Helper()
	var out bytes.Buffer
	sink := report.New(report.Plain, &out, report.Verbose)
	err := story(sink)
	report.PrintError(&out, err)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool {
		return c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c))
	}) {
		t.Errorf("this reaches the terminal: %.2000q", text)
	}
	return text, err
}
