package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/status"
)

// writeJSON writes a value as programs, and people, read it.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// StatusJSON writes a cluster's status as one JSON object, as bootstrap/report/schema/status.schema.json describes it.
func StatusJSON(w io.Writer, r *status.Report) error { return writeJSON(w, r) }

// StatusYAML writes the same object as a document of YAML, with the same keys in the same order.
func StatusYAML(w io.Writer, r *status.Report) error {
	var text bytes.Buffer
	if err := StatusJSON(&text, r); err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text.Bytes(), &node); err != nil { // JSON is YAML, in another style
		return fmt.Errorf("status as YAML: %w", err)
	}
	plainStyle(&node)
	if _, err := io.WriteString(w, "---\n"); err != nil {
		return err
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return err
	}
	return encoder.Close()
}

// plainStyle lets the encoder choose how values are written; empty lists and mappings stay [] and {}.
func plainStyle(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plainStyle(child)
	}
}
