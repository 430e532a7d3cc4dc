package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// expected are tests that the page names and that are about to come.
var expected = []string{}

var (
	named   = regexp.MustCompile("`([a-z0-9_/]+)\\.((?:Test|Fuzz)\\w+)`")
	defined = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// TestPromises holds that every test that the page about promises names is there, and that no promise is without one.
func TestPromises(t *testing.T) {
	page, err := os.ReadFile("promises.md")
	must(t, err)
	missing := map[string]bool{}
	for _, name := range expected {
		missing[name] = true
	}
	tests := map[string]map[string]bool{} // by folder
	all, rows := 0, 0
	for line := range strings.Lines(string(page)) {
		found := named.FindAllStringSubmatch(line, -1)
		if strings.HasPrefix(line, "| ") && !strings.Contains(line, "tests |") && !strings.Contains(line, "caught by |") {
			rows++
			if len(found) == 0 {
				t.Errorf("no test in %s", line)
			}
		}
		for _, test := range found {
			all++
			name, folder := strings.Trim(test[0], "`"), test[1]
			if tests[folder] == nil {
				tests[folder] = testsIn(t, folder)
			}
			switch is := tests[folder][test[2]]; {
			case is && missing[name]:
				t.Errorf("%s is there: take it off the list of those that are about to come", name)
			case !is && !missing[name]:
				t.Errorf("there is no %s", name)
			}
		}
	}
	for name := range missing {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s is on the list and not on the page", name)
		}
	}
	if rows < 10+20 || all < 60 {
		t.Errorf("only %d rows with %d tests were found", rows, all)
	}
}

var command = regexp.MustCompile("`((?:cd scripts/lab && )?go test [^`]*)`")

// TestPromisesCommands holds that the commands of a promise run every test that it names.
func TestPromisesCommands(t *testing.T) {
	page := read(t, "promises.md")
	rows := 0
	for line := range strings.Lines(page) {
		commands := command.FindAllStringSubmatch(strings.ReplaceAll(line, `\|`, "|"), -1)
		if len(commands) == 0 {
			continue
		}
		rows++
		for _, test := range named.FindAllStringSubmatch(line, -1) {
			if !slices.ContainsFunc(commands, func(c []string) bool { return covers(c[1], test[1], test[2]) }) {
				t.Errorf("no command of its row runs %s.%s", test[1], test[2])
			}
		}
	}
	if rows != 10 {
		t.Errorf("%d rows have commands, want one for each of the ten promises", rows)
	}
}

// covers reports whether a command that runs tests runs this one.
func covers(command, folder, test string) bool {
	rest, inLab := strings.CutPrefix(command, "cd scripts/lab && ")
	if inLab != strings.HasPrefix(folder, "scripts/lab/") {
		return false
	}
	words := strings.Fields(rest)
	if !slices.Contains(words, "./"+strings.TrimPrefix(folder, "scripts/lab/")) || slices.Contains(words, "-fuzz") {
		return false
	}
	at := slices.Index(words, "-run")
	return at < 0 || regexp.MustCompile(strings.Trim(words[at+1], "'")).MatchString(test)
}

// testsIn are the tests in a folder of the repository. The command itself is called main.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	if folder == "main" {
		folder = "."
	}
	files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
	must(t, err)
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, test := range defined.FindAllStringSubmatch(string(text), -1) {
			names[test[1]] = true
		}
	}
	return names
}
