package reason

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository is the root of kgpu's sources.
const repository = "../.."

// said are the places in scripts at which a reason is named.
var said = []*regexp.Regexp{
	regexp.MustCompile(`\bfail(?:_transient)? ([A-Z][A-Z0-9_]+)`),
	regexp.MustCompile(`\breason=([A-Z][A-Z0-9_]+)`),
	regexp.MustCompile(`\btell D .* ([A-Z]+_[A-Z0-9_]+|CANCELLED) `),
	regexp.MustCompile(`\bclear_away '[^']*' ([A-Z][A-Z0-9_]+)`),
}

var (
	comments = regexp.MustCompile(`(?m)^\s*#.*`)
	words    = regexp.MustCompile(`\b[A-Z][A-Z0-9_]+\b`)
)

// TestSources holds the table against what kgpu says: every reason that Go code or a script names is in the table, and
// every reason of the table is named by one of them.
func TestSources(t *testing.T) {
	used := map[ID]bool{}
	constants := constants(t)
	constant := regexp.MustCompile(`\breason\.(\w+)`)
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, repository+"/"))
		switch {
		case d.IsDir() && (name == ".git" || name == "bin" || name == "scripts/lab" || name == "bootstrap/reason" || d.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go"):
		case strings.HasSuffix(name, ".go"):
			for _, match := range constant.FindAllStringSubmatch(read(t, path), -1) {
				if id, ok := constants[match[1]]; ok {
					used[id] = true
				}
			}
		case strings.HasSuffix(name, ".sh"):
			text := comments.ReplaceAllString(read(t, path), "")
			for _, what := range said {
				for _, match := range what.FindAllStringSubmatch(text, -1) {
					if !Known(ID(match[1])) {
						t.Errorf("%s says %s, which is not in the table", name, match[1])
					}
				}
			}
			for _, word := range words.FindAllString(text, -1) {
				used[ID(word)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range constants {
		if !Known(id) {
			t.Errorf("%s has a constant, and is not in the table", id)
		}
	}
	for _, r := range Table() {
		if !used[r.ID] {
			t.Errorf("nothing says %s: take it out of the table", r.ID)
		}
	}
}

// constants are the IDs of this package by their names in Go.
func constants(t *testing.T) map[string]ID {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^\t(\w+) +ID = "(\w+)"$`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]ID{}
	for _, file := range files {
		for _, match := range declared.FindAllStringSubmatch(read(t, file), -1) {
			out[match[1]] = ID(match[2])
		}
	}
	if len(out) < len(Table()) {
		t.Fatalf("only %d constants are found for %d reasons", len(out), len(Table()))
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
