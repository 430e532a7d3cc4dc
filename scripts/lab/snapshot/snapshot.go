// Package snapshot records what a host is, so that two moments can be
// compared: files, packages, units, network, firewall, mounts, sysctls, users.
package snapshot

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Fact is one thing that is so on a host. Kind and key together are unique in
// a snapshot.
type Fact struct {
	Kind  string // file, package, unit, route…
	Key   string
	Value string // may be empty: the key says it all
}

func compare(a, b Fact) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
}

// Snapshot is all facts of a host, in order.
type Snapshot []Fact

// tidy sorts the facts and numbers those that have one key, as two equal
// firewall rules do.
func tidy(facts []Fact) Snapshot {
	slices.SortFunc(facts, compare)
	for i, n := 1, 1; i < len(facts); i++ {
		before, _, _ := strings.Cut(facts[i-1].Key, again)
		if facts[i].Kind != facts[i-1].Kind || facts[i].Key != before {
			n = 1
			continue
		}
		n++
		facts[i].Key += fmt.Sprintf("%s%d", again, n)
	}
	return facts
}

const again = " #"

// Write writes a fact a line: kind, key and value, separated by tabs.
func (s Snapshot) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, f := range s {
		fmt.Fprintf(b, "%s\t%s\t%s\n", f.Kind, f.Key, f.Value)
	}
	return b.Flush()
}

// Read reads what Write wrote to the file at path.
func Read(path string) (Snapshot, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	facts, err := parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return facts, nil
}

func parse(text string) ([]Fact, error) {
	var facts []Fact
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("not a fact: %q", line)
		}
		facts = append(facts, Fact{f[0], f[1], f[2]})
	}
	return facts, nil
}

// ErrDifferent says that two snapshots are not the same.
var ErrDifferent = errors.New("different")

// Diff lists what is only in a (-), only in b (+), or has another value (~).
func Diff(a, b Snapshot) []string {
	var changes []string
	for len(a) > 0 || len(b) > 0 {
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = cmp.Or(cmp.Compare(a[0].Kind, b[0].Kind), cmp.Compare(a[0].Key, b[0].Key))
		}
		switch {
		case order < 0:
			changes = append(changes, strings.TrimSpace(fmt.Sprintf("- %s %s  %s", a[0].Kind, a[0].Key, a[0].Value)))
			a = a[1:]
		case order > 0:
			changes = append(changes, strings.TrimSpace(fmt.Sprintf("+ %s %s  %s", b[0].Kind, b[0].Key, b[0].Value)))
			b = b[1:]
		default:
			if a[0].Value != b[0].Value {
				changes = append(changes, fmt.Sprintf("~ %s %s  %s -> %s", a[0].Kind, a[0].Key, a[0].Value, b[0].Value))
			}
			a, b = a[1:], b[1:]
		}
	}
	return changes
}
