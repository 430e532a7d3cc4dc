package inventory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxSize is far above any real inventory; it keeps a wrong file from filling the memory.
const maxSize = 8 << 20

// parse returns the root of the only document in data, or nil after reporting why there is none.
func (d *decoder) parse(data []byte) *yaml.Node {
	if len(data) > maxSize {
		d.fail(&yaml.Node{Line: 1, Column: 1}, "", "the file has %d MiB: that is no inventory", len(data)>>20)
		return nil
	}
	if n := notText(data); n != nil {
		d.fail(n, "", "%s", n.Value)
		return nil
	}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	err := documents.Decode(&first)
	if errors.Is(err, io.EOF) || err == nil && isNull(first.Content[0]) {
		d.fail(&yaml.Node{Line: 1, Column: 1}, "", "the file is empty")
		return nil
	}
	if err != nil {
		d.syntax(data, err)
		return nil
	}
	switch err := documents.Decode(&second); {
	case err == nil:
		d.fail(&second, "", "a second document begins here: an inventory is one document")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(data, err)
		return nil
	}
	if d.refuse(first.Content[0]); len(d.problems) > 0 {
		return nil
	}
	return first.Content[0]
}

// notText returns the place of the first byte that a text file does not have, and what is wrong with it.
func notText(data []byte) *yaml.Node {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		place := func(message string) *yaml.Node {
			t := newText(data)
			line := t.lineAt(i)
			return &yaml.Node{Line: line, Column: 1 + utf8.RuneCount(data[min(t.starts[line-1], i):i]), Value: message}
		}
		switch {
		case r == utf8.RuneError && size == 1:
			return place("the file is not UTF-8 text")
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			return place(fmt.Sprintf("the file has a control character (%U)", r))
		}
		i += size
	}
	return nil
}

var (
	syntaxLine   = regexp.MustCompile(`^line (\d+): `)
	unknownAlias = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
)

// syntax reports an error of the YAML parser, which knows the line at best.
func (d *decoder) syntax(data []byte, err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	place := &yaml.Node{Line: 1, Column: 1}
	if m := syntaxLine.FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		place.Line, _ = strconv.Atoi(m[1])
		if strings.HasPrefix(message, "did not find expected") {
			place.Line++ // the parser counts the lines of these from 0
		}
	}
	lines := newText(data).allLines()
	place.Line = min(max(place.Line, 1), len(lines))
	switch {
	case strings.Contains(message, "cannot start any token"), strings.Contains(message, "tab character"):
		if line, tab := tabNear(lines, place.Line); tab {
			place.Line = line
			message = "a tab is used for indentation: YAML wants spaces"
		}
	case strings.HasPrefix(message, "mapping values are not allowed"):
		message = `a colon where none can be: the indentation is wrong, or a value with ": " needs quotes`
	case strings.HasSuffix(message, "unexpected end of stream"):
		message = "the file ends inside a value: a quote is not closed"
	}
	if m := unknownAlias.FindStringSubmatch(message); m != nil {
		message = noAliases
		place.Line = 1 + max(0, slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "*"+m[1]) }))
	}
	text := lines[place.Line-1]
	place.Column = 1 + len(text) - len(strings.TrimLeft(text, " "))
	d.fail(place, "", "%s", message)
}

// tabNear finds a line indented by a tab at the line of an error or next to it: the parser counts from its own point of view.
func tabNear(lines []string, line int) (int, bool) {
	for _, n := range []int{line, line + 1, line - 1} {
		if n >= 1 && n <= len(lines) && strings.HasPrefix(strings.TrimLeft(lines[n-1], " -"), "\t") {
			return n, true
		}
	}
	return line, false
}

// refuse reports YAML that an inventory does without: it would make the place of a value, or its meaning, a matter of debate.
// It does not repeat what it found: an unquoted password may begin with one of *&!.
func (d *decoder) refuse(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(n, "", "%s", noAliases)
		return
	case n.Anchor != "":
		d.fail(n, "", "anchors (&name) are not supported: write the value out where it is used, or quote a text that begins with &")
	case n.Tag == "!!merge":
		d.fail(n, "", "merge keys (<<) are not supported: write the values out")
	case !knownTags[n.Tag]:
		d.fail(n, "", "tags (!name) are not supported: quote a text that begins with !")
	}
	for _, c := range n.Content {
		d.refuse(c)
	}
}

const noAliases = "aliases (*name) are not supported: write the value out, or quote a text that begins with *"

var knownTags = map[string]bool{
	"!!map": true, "!!seq": true, "!!str": true, "!!int": true, "!!float": true, "!!bool": true, "!!null": true, "!!timestamp": true,
}
