package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestWords holds that the places that the page about words names are there.
func TestWords(t *testing.T) {
	page, err := os.ReadFile("words.md")
	must(t, err)
	found := 0
	for _, m := range regexp.MustCompile("`((?:bootstrap|inventory|scripts)[a-z_./-]*)`").FindAllStringSubmatch(string(page), -1) {
		found++
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	if found < 30 {
		t.Errorf("the page names %d places", found)
	}
}
