package inventory

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// NewHost is a host to be written into an inventory. Only the address is needed; it and the name may be ranges.
type NewHost struct {
	Address      string
	Name         string
	Role         Role   // empty: a worker, whose role is not written
	User         string // that SSH logs in as
	Port         int    // of SSH; zero: left out
	Key          string // path of the private key
	SudoPassword string // a reference: ${NAME} or file:PATH
	HostKey      string // pinned, as in authorized_keys
}

// AddHosts appends hosts to the list of hosts in an inventory's text, in the style of the last one there. It only inserts:
// comments, order, quotes and line ends of the rest stay as they are. Whether the result is a valid inventory, Decode says.
// Its errors have the reason INVENTORY_INVALID.
func AddHosts(data []byte, hosts []NewHost) ([]byte, error) {
	if len(hosts) == 0 {
		return data, nil
	}
	root, list, err := hostList(data)
	if err != nil {
		return nil, err
	}
	e := &editor{text: newText(data), root: root, list: list, last: list.Content[len(list.Content)-1]}
	var edited []byte
	if list.Style&yaml.FlowStyle != 0 {
		edited = e.addToFlow(hosts)
	} else {
		edited = e.addToBlock(hosts)
	}
	if !onlyAdded(root, edited, hosts) {
		return nil, editError("the hosts cannot be added without touching the rest of the file: add them by hand")
	}
	return edited, nil
}

func editError(detail string) error {
	return &reason.Error{ID: reason.InventoryInvalid, Doing: "adding hosts to the inventory", Detail: detail}
}

// hostList parses an inventory's text and finds the list of hosts.
func hostList(data []byte) (root, list *yaml.Node, err error) {
	d := newDecoder("inventory", Options{})
	if root = d.parse(data); root == nil {
		return nil, nil, &reason.Error{ID: reason.InventoryInvalid, Doing: "reading the inventory", Err: d.problems.sorted()}
	}
	if list = valueOf(root, "hosts"); list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return nil, nil, editError("the file has no list of hosts to add to")
	}
	return root, list, nil
}

type editor struct {
	*text
	root, list, last *yaml.Node
}

// addToBlock adds hosts to a list whose entries begin with dashes.
func (e *editor) addToBlock(hosts []NewHost) []byte {
	dash := e.list.Column - 1
	eol := e.lineEnd()
	indent := strings.Repeat(" ", dash)
	gap := 1 // between the dash and the entry
	if on := e.column(e.last) - dash; e.last.Style&yaml.FlowStyle == 0 && on > 1 && strings.TrimSpace(e.line(e.last.Line)[:e.column(e.last)]) == "-" {
		gap = on - 1
	}
	var b strings.Builder
	for _, h := range hosts {
		if e.last.Style&yaml.FlowStyle != 0 {
			b.WriteString(indent + "- " + e.flowHost(h) + eol)
			continue
		}
		for i, field := range e.fields(h, false) {
			lead := indent + "-" + strings.Repeat(" ", gap)
			if i > 0 {
				lead = strings.Repeat(" ", len(lead))
			}
			b.WriteString(lead + field + eol)
		}
	}
	at := e.endOfBlock(dash)
	if last := e.line(at); strings.TrimRight(last, "\r\n") == last { // the file does not end with a line end: neither will it now
		return e.insert(e.end(at), eol+strings.TrimSuffix(b.String(), eol))
	}
	return e.insert(e.end(at), b.String())
}

// endOfBlock returns the last line that belongs to the list. Comments behind it do when they are indented like its entries.
func (e *editor) endOfBlock(dash int) int {
	last := e.lines()
	for i := 0; i+1 < len(e.root.Content); i += 2 {
		if key := e.root.Content[i]; key.Line > e.last.Line {
			last = key.Line - 1
			break
		}
	}
	for ; last > e.last.Line; last-- {
		line := e.line(last)
		content := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		blank := content == ""
		foreign := strings.HasPrefix(content, "#") && indent < max(dash, 1)
		if !blank && !foreign && !strings.HasPrefix(line, "...") {
			break
		}
	}
	return last
}

// addToFlow adds hosts to a list in brackets.
func (e *editor) addToFlow(hosts []NewHost) []byte {
	start := e.offset(e.last)
	end := flowEnd(e.data, start)
	before := e.line(e.last.Line)[:e.column(e.last)]
	items := make([]string, len(hosts))
	for i, h := range hosts {
		items[i] = e.flowHost(h)
	}
	if strings.TrimSpace(before) != "" {
		return e.insert(end, ", "+strings.Join(items, ", "))
	}
	// Each entry has its own line.
	eol := e.lineEnd()
	separator := "," + eol + before
	added := strings.Join(items, separator)
	rest := e.restOfLine(end)
	behind := strings.TrimSpace(rest)
	switch comma := strings.HasPrefix(behind, ","); {
	case behind == "" || strings.HasPrefix(behind, "#"):
		at := end + len(rest)
		return bytes.Join([][]byte{e.data[:end], []byte(","), e.data[end:at], []byte(eol + before + added), e.data[at:]}, nil)
	case comma && (behind == "," || strings.HasPrefix(strings.TrimSpace(behind[1:]), "#")):
		return e.insert(end+len(rest), eol+before+added+",")
	default:
		return e.insert(end, separator+added)
	}
}

// flowEnd returns the offset behind the bracket or brace that closes the one at start.
func flowEnd(data []byte, start int) int {
	depth := 0
	token := byte('[') // the last character that was no blank: quotes open a string only where a value may begin
	for i := start; i < len(data); i++ {
		c := data[i]
		switch {
		case c == '#' && i > 0 && strings.IndexByte(" \t\r\n", data[i-1]) >= 0:
			for i+1 < len(data) && data[i+1] != '\n' {
				i++
			}
			continue
		case (c == '"' || c == '\'') && strings.IndexByte("[{,:", token) >= 0:
			i = quoteEnd(data, i)
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		if strings.IndexByte(" \t\r\n", c) < 0 {
			token = c
		}
	}
	return len(data)
}

// quoteEnd returns the offset of the quote that closes the one at start.
func quoteEnd(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch {
		case data[start] == '"' && data[i] == '\\':
			i++
		case data[i] != data[start]:
		case data[start] == '\'' && i+1 < len(data) && data[i+1] == '\'':
			i++
		default:
			return i
		}
	}
	return len(data) - 1
}

// flowHost writes a host in braces.
func (e *editor) flowHost(h NewHost) string {
	pad := ""
	if at := e.offset(e.last); at+1 < len(e.data) && e.data[at+1] == ' ' {
		pad = " "
	}
	return "{" + pad + strings.Join(e.fields(h, true), ", ") + pad + "}"
}

// fields writes the settings of a host, one text each.
func (e *editor) fields(h NewHost, flow bool) []string {
	keyStyle, valueStyle := e.styles()
	out := []string{scalar("address", keyStyle, flow) + ": " + scalar(h.Address, valueStyle, flow)}
	if h.Name != "" {
		out = append(out, scalar("name", keyStyle, flow)+": "+scalar(h.Name, valueStyle, flow))
	}
	if h.Role != "" {
		out = append(out, scalar("role", keyStyle, flow)+": "+scalar(string(h.Role), valueStyle, flow))
	}
	var ssh []string
	add := func(name, value string) { ssh = append(ssh, scalar(name, keyStyle, true)+": "+value) }
	if h.User != "" {
		add("user", scalar(h.User, valueStyle, true))
	}
	if h.Port != 0 {
		add("port", strconv.Itoa(h.Port))
	}
	for _, setting := range [][2]string{{"key", literal(h.Key)}, {"sudoPassword", h.SudoPassword}, {"hostKey", h.HostKey}} {
		if setting[1] != "" {
			add(setting[0], scalar(setting[1], valueStyle, true))
		}
	}
	if len(ssh) > 0 {
		out = append(out, scalar("ssh", keyStyle, flow)+": {"+strings.Join(ssh, ", ")+"}")
	}
	return out
}

// literal is a text in which nothing is a reference to a variable.
func literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// styles are how the last host quotes its keys and its address.
func (e *editor) styles() (key, value yaml.Style) {
	if e.last.Kind != yaml.MappingNode || len(e.last.Content) < 2 {
		return 0, 0
	}
	address := cmp.Or(valueOf(e.last, "address"), e.last.Content[1])
	return e.last.Content[0].Style & quotes, address.Style & quotes
}

// quotes are the styles of a text that stands in some.
const quotes = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle

// scalar writes a string in a style, or in double quotes where the style would change its meaning.
func scalar(s string, style yaml.Style, flow bool) string {
	text := s
	switch style {
	case yaml.SingleQuotedStyle:
		text = "'" + strings.ReplaceAll(s, "'", "''") + "'"
	case yaml.DoubleQuotedStyle:
		return strconv.Quote(s)
	}
	document := "- " + text
	if flow {
		document = "[" + text + "]"
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(document), &n); err == nil {
		if list := n.Content[0].Content; len(list) == 1 && list[0].Kind == yaml.ScalarNode && list[0].Tag == "!!str" && list[0].Value == s && list[0].LineComment == "" {
			return text
		}
	}
	return strconv.Quote(s)
}

// onlyAdded reports whether the edited text says what the original says, and the new hosts.
func onlyAdded(original *yaml.Node, edited []byte, hosts []NewHost) bool {
	root, list, err := hostList(edited)
	if err != nil || len(list.Content) <= len(hosts) {
		return false
	}
	kept := len(list.Content) - len(hosts)
	for i, n := range list.Content[kept:] {
		var got struct {
			Address, Name string
			Role          Role
			SSH           struct {
				User, Key    string
				Port         int
				SudoPassword string `yaml:"sudoPassword"`
				HostKey      string `yaml:"hostKey"`
			}
		}
		want, ssh := hosts[i], &got.SSH
		want.Key = literal(want.Key)
		if n.Decode(&got) != nil ||
			want != (NewHost{got.Address, got.Name, got.Role, ssh.User, ssh.Port, ssh.Key, ssh.SudoPassword, ssh.HostKey}) {
			return false
		}
	}
	list.Content = list.Content[:kept]
	return sameNodes(original, root)
}

func sameNodes(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, sameNodes)
}
