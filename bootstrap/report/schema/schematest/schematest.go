// Package schematest holds JSON against its schemas, for tests.
package schematest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"kgpu.dev/kgpu/bootstrap/report/schema"
)

// Compile reads a schema; formats such as date-time count.
func Compile(t testing.TB, text []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Fits reports what is wrong with a JSON text by a schema.
func Fits(s *jsonschema.Schema, text string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(value)
}

// Named is the schema of that name, of what kgpu prints.
func Named(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	text, err := schema.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return Compile(t, text)
}

// Printed fails the test where one of these texts is not as the schema of that name says.
func Printed(t testing.TB, name string, texts ...string) {
	t.Helper()
	s := Named(t, name)
	for _, text := range texts {
		if err := Fits(s, text); err != nil {
			t.Errorf("%v: %.500s", err, text)
		}
	}
}
