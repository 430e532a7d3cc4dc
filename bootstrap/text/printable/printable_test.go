package printable

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                                "plain",
		"a\ttab":                               "a\ttab",
		"two\nlines":                           "two\nlines",
		"\x1b[31mred\x1b[0m":                   "red",
		"\x1b]0;title\x07bell\x07":             "bell",
		"\x1b]52;c;ZXZpbA==\x1b\\clip":         "clip",
		"\x1bP1$tdevice\x1b\\ctl":              "ctl",
		"\x1bc reset":                          " reset",
		"\u009b31mC1\u009d0;t\u009c":           "C1",
		"\u202eesrever":                        "esrever",
		"\u200bhidden":                         "hidden",
		"line\u2028separator":                  "line separator",
		"over\rwritten\x08\x7f\x00":            "overwritten",
		"\xff\xfe bytes":                       "\uFFFD bytes",
		"Grüße, 机器, ✓ 👍":                       "Grüße, 机器, ✓ 👍",
		"\x1b[\x1b]0;":                         "",
		"\x1b\x1b[31m[31m":                     "[31m",
		"unfinished \x1b]0;never ends \n next": "unfinished \n next",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := Line("two\nlines"); got != "twolines" {
		t.Errorf("a line with a newline: %q", got)
	}
}

func TestShort(t *testing.T) {
	for in, want := range map[string]string{"short": "short", "12345678": "12345678", "123456789": "12345678 [cut]", "1234567ü": "1234567 [cut]"} {
		if got := Short(in, 8); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := Writer(&out)
	if n, err := fmt.Fprint(w, "a\x1b[2J\u009b\xffb\n"); n != 10 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if out.String() != "a[2J\uFFFDb\n" {
		t.Errorf("%q", out.String())
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[31mred\x1b]0;title\x07\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q is no UTF-8", got)
		}
		if i := strings.IndexFunc(got, func(c rune) bool {
			return c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c))
		}); i >= 0 {
			t.Errorf("%q does something to a terminal", got)
		}
		if again := Text(got); again != got {
			t.Errorf("%q becomes %q, and that %q", s, got, again)
		}
	})
}
