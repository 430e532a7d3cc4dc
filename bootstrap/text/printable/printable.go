// Package printable makes text that came from elsewhere (a host, a server, a pod) fit for a terminal: what is printed looks
// like what it is, and does nothing else.
package printable

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapeSequence is one of ECMA-48: a control sequence, a control string with its end, or a short one.
var escapeSequence = regexp.MustCompile(`(\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(\x1b[\]PX^_]|[\x{90}\x{98}\x{9d}-\x{9f}])[^\n\x07\x1b\x{9c}]*(\x07|\x1b\\|\x{9c})?|\x1b[ -/]*[0-~]`)

// Line is s as one line of valid UTF-8 without what a terminal obeys: escape sequences, control characters, and marks that
// turn the direction of text round. Tabs stay.
func Line(s string) string { return clean(s, false) }

// Text is Line for text of several lines.
func Text(s string) string { return clean(s, true) }

// Short is Line of at most so many bytes, and says when it left something out.
func Short(s string, most int) string {
	// What is cleaned may be much longer than what is wanted: a server's banner, a list of its algorithms.
	cut := len(s) > most
	if cut {
		s = s[:most]
		for i := 0; i < utf8.UTFMax && s != "" && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]); i++ {
			s = s[:len(s)-1] // a rune that was cut in halves
		}
	}
	s = Line(s)
	if cut {
		s += " [cut]"
	}
	return s
}

func clean(s string, lines bool) string {
	if plain(s, lines) {
		return s
	}
	return strip(escapeSequence.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), ""), lines)
}

// strip drops single characters only.
func strip(s string, lines bool) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\t', c == '\n' && lines:
			return c
		case c == '\u2028', c == '\u2029': // separators of lines and paragraphs
			return ' '
		case unicode.IsControl(c), unicode.Is(unicode.Cf, c):
			return -1
		}
		return c
	}, s)
}

// plain reports whether there is nothing to do, as nearly always.
func plain(s string, lines bool) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\t' && (c != '\n' || !lines) {
			return false
		}
	}
	return true
}

// Writer drops the characters that a terminal obeys from what is written to w, and leaves what else there is of an escape
// sequence: its end may be the beginning of something else. A piece that is written at once ends with a whole character.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ to io.Writer }

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, strip(strings.ToValidUTF8(string(p), "\uFFFD"), true)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Join is the parts that are not empty, with the separator between them.
func Join(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), separator)
}
