package inventory

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// SetVersion writes another kubernetes.version into an inventory's text. Everything else stays as it is, to the byte. Whether the
// result is a valid inventory, Decode says. Its errors have the reason INVENTORY_INVALID.
func SetVersion(data []byte, version string) ([]byte, error) { return set(data, "version", version) }

// SetVirtualIP does so with kubernetes.virtualIP.
func SetVirtualIP(data []byte, address string) ([]byte, error) {
	return set(data, "virtualIP", address)
}

// set writes another value of a key below kubernetes.
func set(data []byte, name, value string) ([]byte, error) {
	d := newDecoder("inventory", Options{})
	root := d.parse(data)
	if root == nil {
		return nil, &reason.Error{ID: reason.InventoryInvalid, Doing: "reading the inventory", Err: d.problems.sorted()}
	}
	t, quoted := newText(data), `"`+value+`"`
	var edited []byte
	byHand := "`kubernetes: {" + name + ": " + quoted + "}`"
	key, kubernetes := entryOf(root, "kubernetes")
	if key != nil {
		byHand = fmt.Sprintf("`%s: %s` below kubernetes, in line %d", name, quoted, key.Line)
	}
	switch {
	case kubernetes == nil:
		edited = t.insert(len(data), "kubernetes: {"+name+": "+quoted+"}"+t.lineEnd())
		if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
			edited = slices.Concat(data, []byte(t.lineEnd()), edited[len(data):])
		}
	case isNull(kubernetes) && kubernetes.Value == "": // a line of its own: those below may be comments that are to become settings
		behind := t.offset(key) + len(t.restOfLine(t.offset(key)))
		edited = t.insert(behind, t.lineEnd()+strings.Repeat(" ", key.Column+1)+name+": "+quoted)
	case isNull(kubernetes):
		edited = t.replace(kubernetes, "{"+name+": "+quoted+"}")
	case kubernetes.Kind != yaml.MappingNode:
		edited = nil
	case len(kubernetes.Content) == 0:
		edited = t.insert(t.offset(kubernetes)+len("{"), name+": "+quoted)
	case valueOf(kubernetes, name) != nil:
		edited = t.replace(valueOf(kubernetes, name), quoted)
	case kubernetes.Style&yaml.FlowStyle != 0:
		edited = t.insert(t.offset(kubernetes.Content[0]), name+": "+quoted+", ")
	default:
		first := kubernetes.Content[0]
		edited = t.insert(t.offset(first), name+": "+quoted+t.lineEnd()+strings.Repeat(" ", first.Column-1))
	}
	if !onlySet(root, edited, name, value) {
		return nil, &reason.Error{ID: reason.InventoryInvalid, Doing: "setting kubernetes." + name + " in the inventory",
			Detail: "it cannot be set without touching the rest of the file: write by hand " + byHand}
	}
	return edited, nil
}

// valueOf is the value of a key; nil if the mapping does not have it.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	_, value := entryOf(mapping, key)
	return value
}

// entryOf is a key of a mapping, with its value; nil if the mapping does not have it.
func entryOf(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	if mapping.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// replace puts a text in the place of a scalar on one line; nil if the scalar is written in another way.
func (t *text) replace(n *yaml.Node, with string) []byte {
	start := t.offset(n)
	rest := t.restOfLine(start)
	for _, written := range []string{n.Value, `"` + n.Value + `"`, "'" + n.Value + "'"} {
		if n.Value != "" && strings.HasPrefix(rest, written) {
			return slices.Concat(t.data[:start], []byte(with), t.data[start+len(written):])
		}
	}
	return nil
}

// onlySet reports whether the edited text says what the original says, but for the value of the key below kubernetes.
func onlySet(original *yaml.Node, edited []byte, name, value string) bool {
	root := newDecoder("inventory", Options{}).parse(edited)
	if edited == nil || root == nil {
		return false
	}
	kubernetes := valueOf(root, "kubernetes")
	if kubernetes == nil {
		return false
	}
	now := valueOf(kubernetes, name)
	if now == nil || now.Kind != yaml.ScalarNode || now.Value != value {
		return false
	}
	return sameNodes(without(original, name), without(root, name))
}

// without is an inventory without a key below kubernetes, and without an empty kubernetes.
func without(root *yaml.Node, name string) *yaml.Node {
	out := *root
	out.Content = nil
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value == "kubernetes" && isNull(value) {
			continue
		}
		if key.Value == "kubernetes" && value.Kind == yaml.MappingNode {
			rest := *value
			rest.Content = slices.Clone(value.Content)
			if at := slices.IndexFunc(rest.Content, func(n *yaml.Node) bool { return n == valueOf(value, name) }); at > 0 {
				rest.Content = slices.Delete(rest.Content, at-1, at+1)
			}
			if value = &rest; len(rest.Content) == 0 {
				continue
			}
		}
		out.Content = append(out.Content, key, value)
	}
	return &out
}
