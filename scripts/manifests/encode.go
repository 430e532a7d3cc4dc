package manifests

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// Encode writes objects as a stream of YAML documents.
func Encode(objects ...map[string]any) (string, error) {
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	for _, o := range objects {
		if err := enc.Encode(o); err != nil {
			return "", err
		}
	}
	return buf.String(), enc.Close()
}
