package docs

import (
	"regexp"
	"strings"
	"testing"
)

// TestImagesAndWhatPinsThem holds that the page says of every image what pins it.
func TestImagesAndWhatPinsThem(t *testing.T) {
	page := read(t, "security.md")
	found := map[string]bool{}
	named := regexp.MustCompile(`(?m)^[^/\n]*(?:image: |Image = ")([a-z0-9.]+/[^\s"]+:[^\s"]+)`)
	for _, m := range named.FindAllStringSubmatch(all(t, "../bootstrap/catalog/*.go", "../scripts/manifests/*.yaml"), -1) {
		found[m[1]] = true
	}
	if len(found) < 8 {
		t.Errorf("only %v were found in the sources", found)
	}
	for image := range found {
		if !strings.Contains(page, "`"+image+"`") {
			t.Errorf("security.md does not say what pins %s", image)
		}
	}
}
