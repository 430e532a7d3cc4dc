// Package schema has the JSON schemas of what kgpu prints with --output json: a file for each, named after it.
package schema

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

const suffix = ".schema.json"

// Names lists what there is a schema of.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // it is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), suffix))
	}
	return names
}

// Named is the schema of that name.
func Named(name string) ([]byte, error) {
	text, err := files.ReadFile(name + suffix)
	if err != nil {
		return nil, fmt.Errorf("no schema %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return text, nil
}
