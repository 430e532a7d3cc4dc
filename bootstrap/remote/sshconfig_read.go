package remote

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Bounds of a user's ssh_config with all that it includes. ssh(1) has the same depth and no other bound.
const (
	mostIncluded = 1000    // files
	mostConfig   = 4 << 20 // bytes
	maxIncluded  = 16      // files in files
)

// setting is a keyword that a ssh_config gives a value, for the hosts that match all of these lists of patterns.
type setting struct {
	hosts      [][]string
	key, value string // key in lower case
}

// configReader reads a ssh_config as ssh_config(5) describes it, from the files of root: a file that is included is read where it
// is included, and only for the hosts of its block.
type configReader struct {
	root     fs.FS
	home     string // below which what is included by ~ or a relative path lies
	files    int
	bytes    int64
	settings []setting
}

// read reads a text, whose name is told in errors, for these hosts.
func (r *configReader) read(text io.Reader, name string, hosts [][]string, depth int) error {
	content, err := io.ReadAll(io.LimitReader(text, mostConfig-r.bytes+1))
	if err != nil {
		return err
	}
	if r.bytes += int64(len(content)); r.bytes > mostConfig {
		return fmt.Errorf("%s: with all that is included it is longer than %d MiB", name, mostConfig>>20)
	}
	block, n := hosts, 0
	for line := range strings.Lines(string(content)) {
		n++
		key, value := keyword(line)
		var err error
		switch key {
		case "":
		case "host":
			block = append(slices.Clip(hosts), words(value))
		case "match":
			var patterns []string
			if patterns, err = criteria(words(value)); err == nil {
				block = append(slices.Clip(hosts), patterns)
			}
		case "include":
			err = r.include(words(value), block, depth+1)
		default:
			if only := words(value); len(only) == 1 {
				value = only[0]
			}
			r.settings = append(r.settings, setting{block, key, value})
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	return nil
}

// include reads files. Like ssh, it lets be what is not there and folders, and refuses what cannot be read or goes too deep. Unlike
// ssh, it refuses devices and whatever else may have no end.
func (r *configReader) include(patterns []string, hosts [][]string, depth int) error {
	if depth > maxIncluded {
		return fmt.Errorf("more than %d files that include each other", maxIncluded)
	}
	for _, pattern := range patterns {
		below, ours := strings.CutPrefix(pattern, "~/")
		switch {
		case ours:
			pattern = path.Join(r.home, below)
		case !path.IsAbs(pattern):
			pattern = path.Join(r.home, ".ssh", pattern)
		}
		names, err := fs.Glob(r.root, strings.TrimPrefix(path.Clean(pattern), "/"))
		if err != nil {
			return fmt.Errorf("%s: %w", pattern, err)
		}
		for _, name := range names {
			if err := r.file(name, hosts, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *configReader) file(name string, hosts [][]string, depth int) error {
	info, err := fs.Stat(r.root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.IsDir():
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("/%s is no regular file", name)
	}
	if r.files++; r.files > mostIncluded {
		return fmt.Errorf("more than %d files are included", mostIncluded)
	}
	f, err := r.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.read(f, "/"+name, hosts, depth)
}

// keyword takes a line apart, into the keyword in lower case and its value without a comment. Both are empty where there is none.
func keyword(line string) (key, value string) {
	line = strings.TrimSpace(line)
	end := strings.IndexAny(line, " \t=")
	if end < 0 || line[0] == '#' {
		return "", ""
	}
	key = strings.ToLower(line[:end])
	value = strings.TrimLeft(line[end:], " \t")
	value = strings.TrimLeft(strings.TrimPrefix(value, "="), " \t")
	if value = strings.TrimSpace(value[:uncommented(value)]); len(words(value)) == 0 {
		return "", ""
	}
	return key, value
}

// uncommented is where the comment at the end of a value begins.
func uncommented(value string) int {
	quoted := false
	for i, c := range value {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '#' && !quoted && (i == 0 || value[i-1] == ' ' || value[i-1] == '\t'):
			return i
		}
	}
	return len(value)
}

// words are the arguments of a keyword: those in double quotes may have blanks.
func words(value string) (words []string) {
	quoted := false
	for _, word := range strings.FieldsFunc(value, func(c rune) bool {
		if c == '"' {
			quoted = !quoted
		}
		return !quoted && (c == ' ' || c == '\t')
	}) {
		words = append(words, strings.ReplaceAll(word, `"`, ""))
	}
	return words
}

// criteria are the patterns of hosts that a Match is for.
func criteria(words []string) ([]string, error) {
	switch criterion := strings.ToLower(words[0]); {
	case criterion == "all" && len(words) == 1:
		return []string{"*"}, nil
	case criterion == "host" && len(words) == 2:
		return strings.Split(words[1], ","), nil
	}
	return nil, fmt.Errorf("kgpu understands no Match but for all, or for host with a list, not for %q", words)
}

// is reports whether the setting is for the host that the user calls alias.
func (s setting) is(alias string) bool {
	return !slices.ContainsFunc(s.hosts, func(patterns []string) bool { return !anyMatches(patterns, alias) })
}

// anyMatches reports whether one of the patterns matches, and none that has an exclamation mark before it.
func anyMatches(patterns []string, alias string) bool {
	found := false
	for _, p := range patterns {
		unwanted, not := strings.CutPrefix(p, "!")
		switch {
		case not && wild(unwanted, alias):
			return false
		case !not && wild(p, alias):
			found = true
		}
	}
	return found
}

// wild reports whether text matches a pattern, in which * stands for any text and ? for any character.
func wild(pattern, text string) bool {
	p, t, star, from := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
