package plan

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestStepIDs holds that the list of steps is that of the steps which the sources plan.
func TestStepIDs(t *testing.T) {
	id := regexp.MustCompile(`(?:graph.Ref\{ID: |id := |NotebookStep = )"([a-z]+/[a-z/-]*)"`)
	name := regexp.MustCompile(`repository\{\s*name: "([a-z-]+)"`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range id.FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			found = append(found, "repo/"+m[1])
		}
	}
	if len(found) < len(stepIDs)-5 {
		t.Errorf("only %d steps were found: %q", len(found), found)
	}
	is := func(listed, planned string) bool { // "repo/" and "network/" are followed by names that are found elsewhere
		return listed == strings.TrimSuffix(planned, "/") || strings.Count(planned, "/") == 1 && strings.HasSuffix(planned, "/") && strings.HasPrefix(listed, planned)
	}
	for _, planned := range found {
		if !slices.ContainsFunc(stepIDs, func(listed string) bool { return is(listed, planned) }) {
			t.Errorf("%s is planned and not on the list", planned)
		}
	}
	for _, listed := range stepIDs {
		if strings.HasPrefix(listed, "repo/") && !slices.Contains(found, listed) || !slices.ContainsFunc(found, func(planned string) bool { return is(listed, planned) }) {
			t.Errorf("%s is on the list and not planned", listed)
		}
	}
}
