package inventory

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// decoder walks the nodes of one file and collects every problem it meets.
type decoder struct {
	file     string
	env      func(string) (string, bool)
	used     map[string]bool       // variables of the environment whose values are in the text
	nodes    map[string]*yaml.Node // value by path, for checks that compare fields
	sections map[string][]string   // sections(), once an unknown key has asked for them
	problems Errors
}

func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.failHint(n, path, hint{message: fmt.Sprintf(format, args...)})
}

func (d *decoder) failHint(n *yaml.Node, path string, err error) {
	// Keys and values of the file are in both.
	p := Problem{File: d.file, Line: n.Line, Column: n.Column, Path: printable.Line(path), Message: printable.Line(err.Error())}
	if h, ok := errors.AsType[hint](err); ok {
		p.Suggestion = h.suggestion
	}
	d.problems = append(d.problems, p)
}

// failed reports whether something is wrong with one of these values.
func (d *decoder) failed(paths ...string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool { return slices.Contains(paths, p.Path) })
}

// setter puts a value of the file, which is at a path, into a T.
type setter[T any] func(d *decoder, into *T, n *yaml.Node, path string)

// keys are the keys a mapping may have.
type keys[T any] map[string]setter[T]

// mapping decodes a mapping; one without a value is an empty one.
func mapping[T any](d *decoder, n *yaml.Node, path string, ks keys[T], into *T) {
	for key, value := range d.pairs(n, path) {
		at := join(path, key.Value)
		decode, ok := ks[key.Value]
		if !ok {
			d.failHint(key, path, d.unknownKey(key.Value, names(ks)))
			continue
		}
		d.nodes[at] = value
		decode(d, into, value, at)
	}
}

// pairs yields the keys and values of a mapping with each key once.
func (d *decoder) pairs(n *yaml.Node, path string) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if isNull(n) {
			return
		}
		if n.Kind != yaml.MappingNode {
			d.fail(n, path, "must be a mapping (key: value), is %s", kindName(n))
			return
		}
		lines := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Kind != yaml.ScalarNode {
				d.fail(key, path, "a key must be a word, is %s", kindName(key))
				continue
			}
			if line, ok := lines[key.Value]; ok {
				d.fail(key, path, "key %q is there twice, first in line %d", key.Value, line)
				continue
			}
			lines[key.Value] = key.Line
			if !yield(key, value) {
				return
			}
		}
	}
}

func join(path, key string) string {
	if !plainKey.MatchString(key) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)

// items decodes a list; one without a value is an empty one.
func (d *decoder) items(n *yaml.Node, path string, item func(n *yaml.Node, path string)) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "must be a list, is %s", kindName(n))
		return
	}
	for i, c := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.nodes[at] = c
		item(c, at)
	}
}

// text returns a string with references to the environment replaced.
func (d *decoder) text(n *yaml.Node, path string) (string, bool) {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!str" && !isNull(n) {
		d.failHint(n, path, hint{message: fmt.Sprintf("must be a string, is %s: write it in quotes", kindName(n))})
		return "", false
	}
	return d.rawText(n, path)
}

// rawText is text of which YAML may think that it is a number: 1.30 is a version, 40 digits may be a fingerprint.
func (d *decoder) rawText(n *yaml.Node, path string) (string, bool) {
	switch {
	case isNull(n):
		d.fail(n, path, "has no value")
		return "", false
	case n.Kind != yaml.ScalarNode:
		d.fail(n, path, "must be a single value, is %s", kindName(n))
		return "", false
	}
	value, err := expand(n.Value, func(name string) (string, bool) {
		d.used[name] = true
		return d.env(name)
	})
	if err != nil {
		d.failHint(n, path, err)
		return "", false
	}
	return value, true
}

// value is a key whose text is parsed into a V. When that fails the V is its zero value.
func value[T, V any](field func(*T) *V, parse func(string) (V, error)) setter[T] {
	return parsed((*decoder).text, field, parse)
}

// rawValue is value over rawText.
func rawValue[T, V any](field func(*T) *V, parse func(string) (V, error)) setter[T] {
	return parsed((*decoder).rawText, field, parse)
}

func parsed[T, V any](text func(*decoder, *yaml.Node, string) (string, bool), field func(*T) *V, parse func(string) (V, error)) setter[T] {
	return func(d *decoder, into *T, n *yaml.Node, path string) {
		var v V
		if s, ok := text(d, n, path); ok {
			var err error
			if v, err = parse(s); err != nil {
				d.failHint(n, path, err)
			}
		}
		*field(into) = v
	}
}

// values is a key with a list of parsed texts.
func values[T, V any](field func(*T) *[]V, parse func(string) (V, error)) setter[T] {
	return func(d *decoder, into *T, n *yaml.Node, path string) {
		var list []V
		d.items(n, path, func(n *yaml.Node, path string) {
			s, ok := d.text(n, path)
			if !ok {
				return
			}
			v, err := parse(s)
			if err != nil {
				d.failHint(n, path, err)
				return
			}
			list = append(list, v)
		})
		*field(into) = list
	}
}

// boolean is a key that is true or false.
func boolean[T any](field func(*T) *bool) setter[T] {
	return func(d *decoder, into *T, n *yaml.Node, path string) {
		if b, ok := d.bool(n, path); ok {
			*field(into) = b
		}
	}
}

func (d *decoder) bool(n *yaml.Node, path string) (value, ok bool) {
	s, ok := d.rawText(n, path)
	if !ok {
		return false, false
	}
	if n.Tag == "!!bool" || fromEnvironment(n) {
		switch strings.ToLower(s) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	d.fail(n, path, "must be true or false, is %q", s)
	return false, false
}

// integer is a key with a whole number.
func integer[T any](field func(*T) *int, low, high int) setter[T] {
	return func(d *decoder, into *T, n *yaml.Node, path string) {
		s, ok := d.rawText(n, path)
		if !ok {
			return
		}
		i, err := strconv.Atoi(s)
		if err != nil || i < low || i > high || n.Tag != "!!int" && !fromEnvironment(n) {
			d.fail(n, path, "must be a number from %d to %d, is %q", low, high, s)
			return
		}
		*field(into) = i
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// fromEnvironment reports whether an unquoted value refers to the environment: YAML saw a string where a number may come out.
func fromEnvironment(n *yaml.Node) bool {
	return n.Style&quotes == 0 && strings.Contains(n.Value, "${")
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "empty"
	case "!!timestamp":
		return "a date"
	default:
		return "a string"
	}
}

var reference = regexp.MustCompile(`\$?\$\{[^}]*(\}|$)`)

// expand replaces ${NAME} by the environment's value; $${ stands for ${.
func expand(s string, env func(string) (string, bool)) (string, error) {
	var failed error
	out := reference.ReplaceAllStringFunc(s, func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		name, closed := strings.CutSuffix(ref[len("${"):], "}")
		if !closed || !environmentName.MatchString(name) {
			failed = fmt.Errorf("%q is not a reference to the environment: write ${NAME}, or $${ for a literal ${", ref)
			return ""
		}
		v, ok := env(name)
		if !ok {
			failed = fmt.Errorf("the environment variable %s is not set", name)
		}
		return v
	})
	return out, failed
}
