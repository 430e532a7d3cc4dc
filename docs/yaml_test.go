package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/inventory"
)

// yamlBlock is an example in a page, which may be part of a list.
var yamlBlock = regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```$")

// TestYAML holds that kgpu takes every inventory, and every part of one, in the pages. What begins with resources or apiVersion is
// Kubernetes'.
func TestYAML(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	must(t, err)
	blocks := 0
	for _, page := range append(pages, "../README.md", "../scripts/lab/README.md") {
		for _, m := range yamlBlock.FindAllStringSubmatch(read(t, page), -1) {
			blocks++
			text := m[1]
			var top map[string]any
			if err := yaml.Unmarshal([]byte(text), &top); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, text)
				continue
			}
			_, pod := top["resources"]
			_, object := top["apiVersion"]
			if pod || object {
				continue
			}
			if _, whole := top["hosts"]; !whole {
				indent := len(text) - len(strings.TrimLeft(text, " "))
				text += strings.Repeat(" ", indent) + "hosts: [{address: 10.0.0.10, role: control-plane}]\n"
			}
			environment := func(string) (string, bool) { return "secret", true }
			if _, err := inventory.Decode(page, []byte(text), inventory.Options{Env: environment}); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		}
	}
	if blocks < 8 {
		t.Errorf("only %d examples were found", blocks)
	}
}

// link is one to a file of the repository.
var link = regexp.MustCompile(`(?:\]\(|srcset="|src=")([^)#":]+)(#[^)":]*)?[)"]`)

// TestLinks holds that the pages lead to files that are there.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	must(t, err)
	links := 0
	for _, page := range append(pages, "../README.md") {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			links++
			path := filepath.Join(filepath.Dir(page), m[1])
			found, err := filepath.Glob(path)
			if err == nil && len(found) == 0 {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
	if links < 25 {
		t.Errorf("only %d links were found", links)
	}
}
