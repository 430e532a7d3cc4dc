package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/reason"
)

// Options are what an inventory depends on besides its text.
type Options struct {
	Env func(string) (string, bool) // environment for ${NAME} and ~; default os.LookupEnv
	Now time.Time                   // the day on which Kubernetes must be in support; default today
}

// Load reads the inventory at path. Its error is a reason.Error INVENTORY_INVALID, around Errors when the file could be read.
func Load(path string, opts Options) (*Inventory, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &reason.Error{ID: reason.InventoryInvalid, Doing: "reading the inventory", Err: err}
	}
	return Decode(path, data, opts)
}

// Decode reads an inventory. The name is the file's: it stands in messages, and paths in the file are relative to its directory.
// The error is as that of Load; it holds every problem at once.
func Decode(name string, data []byte, opts Options) (*Inventory, error) {
	if opts.Env == nil {
		opts.Env = os.LookupEnv
	}
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	d := newDecoder(name, opts)
	f := d.decode(data, opts.Now)
	if len(d.problems) > 0 {
		return nil, &reason.Error{ID: reason.InventoryInvalid, Doing: "reading the inventory", Err: d.problems.sorted()}
	}
	f.environment = slices.Sorted(maps.Keys(d.used))
	f.places = map[string]string{}
	for key, n := range d.nodes {
		f.places[key] = fmt.Sprintf("%s:%d:%d", d.file, n.Line, n.Column)
	}
	return &f.Inventory, nil
}

// DecodeEdited reads the text that a command has made of an inventory's. What is wrong with it and not with the original is wrong with
// the command line, a reason.UsageError; the user's file has no such place.
func DecodeEdited(name string, original, edited []byte) (*Inventory, error) {
	inv, err := Decode(name, edited, Options{})
	if err == nil {
		return inv, nil
	}
	if _, err := Decode(name, original, Options{}); err != nil {
		return nil, err
	}
	return nil, misused(err)
}

// misused is the error of an inventory that was made of a command line.
func misused(err error) error {
	wrong, ok := errors.AsType[Errors](err)
	if !ok {
		return err
	}
	var said []string
	for _, p := range wrong {
		p.File, p.Line = "", 0
		if strings.HasPrefix(p.Path, "hosts[") { // which the user's file may not have, or has for another
			p.Path = ""
		}
		said = append(said, strings.TrimPrefix(p.String(), ": "))
	}
	return &reason.UsageError{Message: strings.Join(said, "\n")}
}

func (d *decoder) decode(data []byte, now time.Time) *file {
	root := d.parse(data)
	if root == nil {
		return nil
	}
	d.nodes[""] = root
	f := newFile(d.file)
	mapping(d, root, "", fileKeys(), f)
	f.broken = d.failed("", "hosts")
	f.astray = d.failed("kubernetes", "kubernetes.virtualIP", "kubernetes.controlPlaneEndpoint")
	d.hosts(f)
	for _, p := range f.check(now) {
		d.failHint(d.nearest(p.path), p.path, hint{p.message, p.suggestion})
	}
	return f
}

func newDecoder(name string, opts Options) *decoder {
	return &decoder{file: name, env: opts.Env, nodes: map[string]*yaml.Node{}, used: map[string]bool{}}
}

// nearest returns the node at path, or that of what it would be in: a default that the file does not spell out has no place of its own.
func (d *decoder) nearest(path string) *yaml.Node {
	for {
		if n, ok := d.nodes[path]; ok {
			return n
		}
		path = parent(path)
	}
}

func parent(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			return path[:i]
		}
	}
	return ""
}

// dir is the directory that relative paths in the file start from.
func (d *decoder) dir() string { return filepath.Dir(d.file) }

// Problem is one thing that is wrong with an inventory.
type Problem struct {
	File       string
	Line       int // from 1; 0 when the problem has no place in the file
	Column     int // from 1, in characters
	Path       string
	Message    string
	Suggestion string // what the user probably meant; may be empty
}

// String is file:line:col: path: message (did you mean "x"?).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Suggestion != "" {
		fmt.Fprintf(&b, " (did you mean %q?)", p.Suggestion)
	}
	return b.String()
}

// Errors is everything that is wrong with an inventory, in the order of the file. Load and Decode wrap it into a
// reason.Error; errors.As finds it.
type Errors []Problem

// Error has one line per problem.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted orders problems by position and drops repetitions.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(e)
}

// hint is an error with a suggestion.
type hint struct{ message, suggestion string }

func (h hint) Error() string { return h.message }
