package inventory

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// RemoveHosts takes hosts, by name or address, out of the list of hosts in an inventory's text. An entry goes with its
// comments: those on its lines, those below that are indented deeper than its dash, and those directly above it, unless an
// entry that is commented out is among them. A range goes on without the host; everything else stays as it is, byte by byte.
// Hosts that the file does not name are no error. Its errors have the reason INVENTORY_INVALID: one is that no host would be
// left.
func RemoveHosts(data []byte, hosts []string) ([]byte, error) {
	root, list, err := hostList(data)
	if err != nil {
		return nil, err
	}
	var left []int // entries to go, or to be cut, the last first
	for i := range slices.Backward(list.Content) {
		if kept := partOf(list.Content[i], hosts); kept != nil {
			left = append(left, i)
		}
	}
	edited := data
	for _, i := range left {
		at, entries, err := hostList(edited)
		if err != nil {
			return nil, err
		}
		e := &editor{text: newText(edited), root: at, list: entries, last: entries.Content[i]}
		switch kept := partOf(e.last, hosts); {
		case kept.none():
			if len(entries.Content) == 1 {
				return nil, removeError("it would name no host any more")
			}
			cut := e.cutFromBlock
			if entries.Style&yaml.FlowStyle != 0 {
				cut = e.cutFromFlow
			}
			if edited = cut(i); edited == nil {
				return nil, removeError("the hosts cannot be removed without touching the rest of the file: remove them by hand")
			}
		default:
			if edited = e.cutRanges(kept); edited == nil {
				return nil, removeError("a range cannot be split where it stands: remove the hosts by hand")
			}
		}
	}
	if !onlyRemoved(root, list, edited, hosts) {
		return nil, removeError("the hosts cannot be removed without touching the rest of the file: remove them by hand")
	}
	return edited, nil
}

func removeError(detail string) error {
	return &reason.Error{ID: reason.InventoryInvalid, Doing: "removing hosts from the inventory", Detail: detail}
}

// rest is what stays of an entry: new texts for its values that are ranges.
type rest map[*yaml.Node]string

func (r rest) none() bool { return len(r) == 0 }

// partOf is what stays of an entry without the hosts: nil when none of them is in it, and none when all of it goes.
func partOf(entry *yaml.Node, hosts []string) rest {
	values := map[string]*yaml.Node{}
	texts := map[string][]string{}
	for _, key := range []string{"address", "name", "privateAddress"} {
		value := valueOf(entry, key)
		if value == nil {
			continue
		}
		list, err := ExpandRange(value.Value)
		if err != nil || value.Kind != yaml.ScalarNode {
			return nil // the decoder says what is wrong with it
		}
		values[key], texts[key] = value, list
	}
	size := len(texts["address"])
	goes := make([]bool, size)
	for i := range goes {
		for _, key := range []string{"address", "name"} {
			goes[i] = goes[i] || len(texts[key]) == size && slices.Contains(hosts, texts[key][i])
		}
	}
	if !slices.Contains(goes, true) {
		return nil
	}
	kept := rest{}
	if !slices.Contains(goes, false) {
		return kept
	}
	for key, value := range values {
		if len(texts[key]) == size && isRange(value.Value) {
			kept[value] = shrink(value.Value, goes)
		}
	}
	return kept
}

// shrink writes a range without those of the things it stands for that go. Its parts stay parts; one
// that is left alone needs no brackets.
func shrink(s string, goes []bool) string {
	m := brackets.FindStringSubmatchIndex(s)
	var parts []string
	at, alone := 0, 0
	for part := range strings.SplitSeq(s[m[2]:m[3]], ",") {
		numbers, err := expandPart(strings.TrimSpace(part))
		if err != nil {
			return s // ExpandRange took it
		}
		var run []string
		end := func() {
			switch len(run) {
			case 0:
			case 1:
				parts = append(parts, run[0])
			default:
				parts = append(parts, run[0]+"-"+run[len(run)-1])
			}
			run = nil
		}
		for _, n := range numbers {
			if goes[at] {
				end()
			} else {
				run, alone = append(run, n), alone+1
			}
			at++
		}
		end()
	}
	inside := strings.Join(parts, ",")
	if alone > 1 {
		inside = "[" + inside + "]"
	}
	return s[:m[0]] + inside + s[m[1]:]
}

// cutRanges writes new texts in the place of values, in the style they have. It returns nil where a value is not on one line.
func (e *editor) cutRanges(kept rest) []byte {
	behindFirst := func(a, b *yaml.Node) int { return e.offset(b) - e.offset(a) } // offsets in front stay
	edited := e.data
	for _, n := range slices.SortedFunc(maps.Keys(kept), behindFirst) {
		start := e.offset(n)
		end := start + len(n.Value)
		if n.Style&quotes != 0 {
			end = quoteEnd(e.data, start) + 1
		}
		if end > len(e.data) || n.Style&quotes == 0 && string(e.data[start:end]) != n.Value || bytes.ContainsAny(e.data[start:end], "\r\n") {
			return nil
		}
		flow := e.last.Style&yaml.FlowStyle != 0 || e.list.Style&yaml.FlowStyle != 0
		edited = slices.Concat(edited[:start], []byte(scalar(kept[n], n.Style&quotes, flow)), edited[end:])
	}
	return edited
}

// cutFromBlock takes an entry out of a list whose entries begin with dashes.
func (e *editor) cutFromBlock(i int) []byte {
	dash := e.list.Column - 1
	first := e.dashOf(e.last, dash)
	if first == 0 {
		return nil
	}
	limit := e.endOfBlock(dash) + 1 // the first line that is not of the entry
	if i+1 < len(e.list.Content) {
		limit = e.dashOf(e.list.Content[i+1], dash)
	}
	last := e.contentEnd(dash, limit)
	above := 1
	if i > 0 {
		above = e.list.Content[i-1].Line + 1
	}
	first = e.heads(first, above, dash)
	return e.cutLines(first, last, i == 0)
}

// dashOf is the line of the dash that an entry begins with; 0: there is none where it should be.
func (e *editor) dashOf(entry *yaml.Node, dash int) int {
	for line := entry.Line; line > 0; line-- {
		if text := e.line(line); len(text) > dash && text[dash] == '-' && strings.TrimSpace(text[:dash]) == "" {
			return line
		}
	}
	return 0
}

// contentEnd is the last line of the entry and of the comments that are deeper than its dash; it is before limit.
func (e *editor) contentEnd(dash, limit int) int {
	last := lastLine(e.last)
	for line := e.last.Line + 1; line < limit; line++ {
		text := strings.TrimRight(e.line(line), " \t\r\n")
		switch indent := len(text) - len(strings.TrimLeft(text, " ")); {
		case text == "":
		case indent > dash:
			last = max(last, line)
		case line > last:
			return last
		}
	}
	return last
}

// lastLine is the last line that something of a node begins on.
func lastLine(n *yaml.Node) int {
	line := n.Line
	for _, c := range n.Content {
		line = max(line, lastLine(c))
	}
	return line
}

// heads is the first line of the comments directly above a line, not above another: they are of what follows them. Comments
// that are deeper than the list are of the entry before, and an entry that is commented out is its own.
func (e *editor) heads(line, above, dash int) int {
	first := line
	for l := line - 1; l >= above; l-- {
		text := strings.TrimRight(e.line(l), " \t\r\n")
		comment, isComment := strings.CutPrefix(strings.TrimLeft(text, " "), "#")
		if !isComment || len(text)-len(strings.TrimLeft(text, " ")) > dash {
			break
		}
		if comment = strings.TrimLeft(comment, "# "); comment == "-" || strings.HasPrefix(comment, "- ") || strings.HasPrefix(comment, "{") {
			return line
		}
		first = l
	}
	return first
}

// cutLines takes lines out, and of the blank lines on both sides those that are fewer. Behind the first entry there is no
// blank line to keep, nor is there one at the end of the file.
func (e *editor) cutLines(first, last int, behind bool) []byte {
	before, after := 0, 0
	for l := first - 1; l > 0 && strings.TrimSpace(e.line(l)) == ""; l-- {
		before++
	}
	for l := last + 1; l <= e.lines() && strings.TrimSpace(e.line(l)) == ""; l++ {
		after++
	}
	if behind || before >= after && last+after < e.lines() {
		last += after
	} else {
		first -= before
	}
	start, end := e.starts[first-1], e.end(last)
	if text := e.line(e.lines()); end == len(e.data) && strings.TrimRight(text, "\r\n") == text && first > 1 {
		start -= len(e.line(first-1)) - len(strings.TrimRight(e.line(first-1), "\r\n")) // the file does not end with a line end: neither will it now
	}
	return slices.Concat(e.data[:start], e.data[end:])
}

// cutFromFlow takes an entry out of a list in brackets.
func (e *editor) cutFromFlow(i int) []byte {
	start := e.offset(e.last)
	end := flowEnd(e.data, start)
	comma := e.commaAfter(end)
	isLast := i+1 == len(e.list.Content)
	var edited []byte
	if comma >= 0 {
		end = comma + 1
	}
	before := e.line(e.last.Line)[:e.column(e.last)]
	behind := strings.TrimSpace(e.restOfLine(end))
	switch {
	case strings.TrimSpace(before) == "" && (behind == "" || strings.HasPrefix(behind, "#")): // it has lines of its own
		above := e.list.Line + 1
		if i > 0 {
			above = e.lineAt(flowEnd(e.data, e.offset(e.list.Content[i-1]))-1) + 1
		}
		edited = e.cutLines(e.heads(e.last.Line, above, len(before)), e.lineAt(end-1), i == 0)
	case !isLast && e.list.Content[i+1].Line == e.lineAt(end-1):
		edited = slices.Concat(e.data[:start], e.data[e.offset(e.list.Content[i+1]):])
	default:
		start -= len(before) - len(strings.TrimRight(before, " \t"))
		edited = slices.Concat(e.data[:start], e.data[end:])
	}
	if isLast && comma < 0 { // it had none behind it: neither has the one that is the last now
		if at := e.commaAfter(flowEnd(e.data, e.offset(e.list.Content[i-1]))); at >= 0 {
			edited = slices.Concat(edited[:at], edited[at+1:])
		}
	}
	return edited
}

// commaAfter is the offset of the comma that follows an entry of a list in brackets; -1: none does.
func (e *editor) commaAfter(end int) int {
	for i := end; i < len(e.data); i++ {
		switch c := e.data[i]; {
		case c == ',':
			return i
		case c == '#':
			i += len(e.restOfLine(i)) - 1
		case strings.IndexByte(" \t\r\n", c) < 0:
			return -1
		}
	}
	return -1
}

// onlyRemoved reports whether the edited text says what the original says, but for the hosts.
func onlyRemoved(root, list *yaml.Node, edited []byte, hosts []string) bool {
	after, _, err := hostList(edited)
	if err != nil {
		return false
	}
	list.Content = slices.DeleteFunc(slices.Clone(list.Content), func(n *yaml.Node) bool {
		kept := partOf(n, hosts)
		for value, text := range kept {
			value.Value = text
		}
		return kept != nil && kept.none()
	})
	return sameNodes(root, after)
}
