package docs

import (
	"regexp"
	"strings"
	"testing"
)

// TestServers holds that the page names every server that hosts contact.
func TestServers(t *testing.T) {
	page := read(t, "mirrors.md")
	server := regexp.MustCompile(`(?m)^[^/\n]*(?:"https?://|image: |Image = "|: +\{")((?:[a-z0-9-]+\.)+(?:io|com))[/"]`)
	found := map[string]bool{}
	for _, m := range server.FindAllStringSubmatch(all(t, "../bootstrap/catalog/*.go", "../scripts/manifests/*.yaml"), -1) {
		found[m[1]] = true
	}
	if len(found) < 10 {
		t.Errorf("only %v were found in the sources", found)
	}
	for name := range found {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("mirrors.md does not name %s", name)
		}
	}
}
