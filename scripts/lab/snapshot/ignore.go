package snapshot

import (
	_ "embed"
	"fmt"
	"path"
	"strings"
)

// AllowList is what may differ between two moments, a kind and a pattern a line, with reasons.
//
//go:embed ignore.txt
var AllowList string

// ignore says which facts a snapshot leaves out.
type ignore map[string][]rule // by kind

type rule struct {
	pattern string // a glob
	below   bool   // everything below what the pattern names, too deep for path.Match
	literal string // what every key begins with that the pattern names
}

func loadIgnore(list string) (ignore, error) {
	ig := ignore{}
	for line := range strings.Lines(list) {
		text, reason, _ := strings.Cut(line, "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("ignore list: %q: want kind, pattern, # reason", line)
		}
		if _, err := path.Match(f[1], ""); err != nil {
			return nil, fmt.Errorf("ignore list: %q: %w", line, err)
		}
		pattern, below := strings.CutSuffix(f[1], "/**")
		literal := pattern
		if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
			literal = pattern[:i]
		}
		ig[f[0]] = append(ig[f[0]], rule{pattern, below, literal})
	}
	return ig, nil
}

func (ig ignore) has(kind, key string) bool {
	for _, r := range ig[kind] {
		if !strings.HasPrefix(key, r.literal) {
			continue
		}
		if r.below {
			if above := path.Dir(key); above != key && matchesOrIsBelow(r.pattern, above) {
				return true
			}
			continue
		}
		if ok, _ := path.Match(r.pattern, key); ok {
			return true
		}
	}
	return false
}

// allBelow says whether everything below key is left out.
func (ig ignore) allBelow(kind, key string) bool {
	for _, r := range ig[kind] {
		if r.below && strings.HasPrefix(key, r.literal) && matchesOrIsBelow(r.pattern, key) {
			return true
		}
	}
	return false
}

// matchesOrIsBelow says whether the pattern names key or a folder above it.
func matchesOrIsBelow(pattern, key string) bool {
	depth := strings.Count(pattern, "/") + 1
	parts := strings.Split(key, "/")
	if len(parts) < depth {
		return false
	}
	ok, _ := path.Match(pattern, strings.Join(parts[:depth], "/"))
	return ok
}
