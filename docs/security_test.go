package docs

import (
	"regexp"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// TestImagesAndWhatPinsThem holds that the page says of every image what pins it.
func TestImagesAndWhatPinsThem(t *testing.T) {
	page := read(t, "security.md")
	found := map[string]bool{catalog.DevicePluginImage: true}
	for _, s := range catalog.Samples() {
		found[s.Image] = true
		if !strings.Contains(read(t, "cards.md"), "`"+s.Image+"`") {
			t.Errorf("cards.md does not name %s", s.Image)
		}
	}
	for _, f := range catalog.NotebookFrameworks {
		found[catalog.NotebookImage(f, "")] = true
	}
	named := regexp.MustCompile(`(?m)^[^/\n]*image: ([a-z0-9.]+/[^\s"]+:[^\s"]+)`)
	for _, m := range named.FindAllStringSubmatch(all(t, "../scripts/manifests/*.yaml"), -1) {
		found[m[1]] = true
	}
	if len(found) < 11 {
		t.Errorf("only %v were found in the sources", found)
	}
	for image := range found {
		if !strings.Contains(page, "`"+image+"`") {
			t.Errorf("security.md does not say what pins %s", image)
		}
	}
}
