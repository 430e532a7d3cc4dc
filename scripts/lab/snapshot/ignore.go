package snapshot

import (
	_ "embed"
	"fmt"
	"path"
	"strings"
)

//go:embed ignore.txt
var ignoreText string

// ignore says which facts a snapshot leaves out.
type ignore map[string][]string // patterns by kind

func loadIgnore(text string) (ignore, error) {
	ig := ignore{}
	for line := range strings.Lines(text) {
		rule, reason, _ := strings.Cut(line, "#")
		f := strings.Fields(rule)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("ignore list: %q: want kind, pattern, # reason", line)
		}
		if _, err := path.Match(f[1], ""); err != nil {
			return nil, fmt.Errorf("ignore list: %q: %w", line, err)
		}
		ig[f[0]] = append(ig[f[0]], f[1])
	}
	return ig, nil
}

func (ig ignore) has(kind, key string) bool {
	for _, pattern := range ig[kind] {
		if below, ok := strings.CutSuffix(pattern, "/**"); ok {
			if above := path.Dir(key); above != key && matchesOrIsBelow(below, above) {
				return true
			}
			continue
		}
		if ok, _ := path.Match(pattern, key); ok {
			return true
		}
	}
	return false
}

// allBelow says whether everything below key is left out.
func (ig ignore) allBelow(kind, key string) bool {
	for _, pattern := range ig[kind] {
		if below, ok := strings.CutSuffix(pattern, "/**"); ok && matchesOrIsBelow(below, key) {
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
