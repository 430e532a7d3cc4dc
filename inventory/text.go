package inventory

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text finds the places of YAML nodes in a file's bytes.
type text struct {
	data   []byte
	starts []int // offset of each line
}

func newText(data []byte) *text {
	t := &text{data: data, starts: []int{len(data) - len(bytes.TrimPrefix(data, []byte("\ufeff")))}}
	for i := t.starts[0]; i < len(data); {
		n := lineBreak(data[i:])
		if n == 0 {
			i++
			continue
		}
		i += n
		if i < len(data) {
			t.starts = append(t.starts, i)
		}
	}
	return t
}

// lineBreak returns the length of the line end that data begins with, as YAML 1.1 has them.
func lineBreak(data []byte) int {
	for _, b := range []string{"\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029"} {
		if bytes.HasPrefix(data, []byte(b)) {
			return len(b)
		}
	}
	return 0
}

func (t *text) lines() int { return len(t.starts) }

// lineAt is the line that an offset is in.
func (t *text) lineAt(offset int) int {
	i, found := slices.BinarySearch(t.starts, offset)
	if found {
		return i + 1
	}
	return max(i, 1)
}

// allLines are the lines without their ends.
func (t *text) allLines() []string {
	out := make([]string, t.lines())
	for i := range out {
		out[i] = strings.TrimRight(t.line(i+1), "\r\n\u0085\u2028\u2029")
	}
	return out
}

// end is the offset behind a line and its end.
func (t *text) end(line int) int {
	if line < len(t.starts) {
		return t.starts[line]
	}
	return len(t.data)
}

// line is a line with its end.
func (t *text) line(line int) string { return string(t.data[t.starts[line-1]:t.end(line)]) }

// lineEnd is how the file's lines end.
func (t *text) lineEnd() string {
	if strings.HasSuffix(t.line(1), "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// column is how many bytes of its line are in front of a node.
func (t *text) column(n *yaml.Node) int {
	line := t.line(n.Line)
	bytes := 0
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(line[bytes:])
		bytes += size
	}
	return bytes
}

// offset is where a node begins.
func (t *text) offset(n *yaml.Node) int { return t.starts[n.Line-1] + t.column(n) }

// restOfLine is what follows on the same line, without the line's end.
func (t *text) restOfLine(offset int) string {
	for i := offset; i < len(t.data); i++ {
		if lineBreak(t.data[i:]) > 0 {
			return string(t.data[offset:i])
		}
	}
	return string(t.data[offset:])
}

func (t *text) insert(offset int, s string) []byte {
	return slices.Concat(t.data[:offset], []byte(s), t.data[offset:])
}
