package inventory

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/report/schema/schematest"
)

func TestSchemaAcceptsGoodFiles(t *testing.T) {
	s := schematest.Compile(t, Schema())
	for _, path := range goodFiles(t) {
		data, err := os.ReadFile(path)
		must(t, err)
		var doc any
		must(t, yaml.Unmarshal(data, &doc))
		if err := s.Validate(doc); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What the decoder calls an unknown key must be unknown to the schema too.
func TestSchemaRefusesUnknownKeys(t *testing.T) {
	s := schematest.Compile(t, Schema())
	checked := 0
	for _, path := range badFiles(t) {
		want, err := os.ReadFile(strings.TrimSuffix(path, ".yaml") + ".txt")
		must(t, err)
		if !bytes.Contains(want, []byte("unknown key")) {
			continue
		}
		data, err := os.ReadFile(path)
		must(t, err)
		var doc any
		must(t, yaml.Unmarshal(data, &doc))
		if s.Validate(doc) == nil {
			t.Errorf("%s: the schema accepts it", filepath.Base(path))
		}
		checked++
	}
	if checked < 5 {
		t.Errorf("only %d files with unknown keys", checked)
	}
}

// The schema has exactly the keys that the decoder has, each with a description.
func TestSchemaKeys(t *testing.T) {
	var root map[string]any
	must(t, json.Unmarshal(Schema(), &root))
	defs := root["$defs"].(map[string]any)
	inSchema := func(name string) map[string]any {
		object := root
		if name != "" {
			object = defs[name].(map[string]any)
		}
		return object["properties"].(map[string]any)
	}
	definitions := map[string]string{ // of each section
		"": "", "kubernetes": "kubernetes", "proxy": "proxy", "repositories": "repositories",
		"repositories.kubernetes": "repository", "repositories.docker": "repository",
		"repositories.cuda": "repository", "repositories.nvidiaContainerToolkit": "repository", "repositories.graphicsDrivers": "repository", "gpu": "gpu", "gpu.driver": "driver",
		"gpu.timeSlicing": "timeSlicing", "gpu.mps": "mps",
		"repositories.criDockerd": "artifact", "repositories.calico": "artifact",
		"notebook": "notebook", "security": "security", "backup": "backup", "images": "images", "preflight": "preflight", "timeouts": "timeouts", "ssh": "ssh", "ssh.bastion": "bastion", "hosts[]": "host",
	}
	for section, known := range sections() {
		name, ok := definitions[section]
		if !ok {
			t.Errorf("section %q: which definition of the schema?", section)
			continue
		}
		properties := inSchema(name)
		if got := slices.Sorted(maps.Keys(properties)); !slices.Equal(got, known) {
			t.Errorf("%q: the schema has %v, the decoder has %v", section, got, known)
		}
		for key, p := range properties {
			if d, _ := p.(map[string]any)["description"].(string); d == "" {
				t.Errorf("%s.%s has no description", section, key)
			}
		}
	}
	for name, d := range defs {
		if _, ok := d.(map[string]any)["properties"]; ok && !slices.Contains(slices.Collect(maps.Values(definitions)), name) {
			t.Errorf("the schema has an object %q that the decoder does not have", name)
		}
	}
}
