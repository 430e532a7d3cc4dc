package facts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/pelletier/go-toml/v2"
)

// These bound the configuration files that a host sends. kgpu reads and edits them and writes them back.
const (
	maxConfiguration = 1 << 20
	maxDepth         = 100
)

// decodeConfiguration decodes a file. Contents that are neither TOML nor JSON are returned as they are; their user reports
// what is wrong.
func decodeConfiguration(encoded string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	if len(data) > maxConfiguration {
		return nil, fmt.Errorf("the file is longer than %d bytes", maxConfiguration)
	}
	var inJSON, inTOML map[string]any
	_ = json.Unmarshal(data, &inJSON)
	_ = toml.Unmarshal(data, &inTOML)
	if tooDeep(inJSON) || tooDeep(inTOML) {
		return nil, fmt.Errorf("the file has values within values, more than %d levels", maxDepth)
	}
	return data, nil
}

// tooDeep reports whether values in v are nested more than maxDepth levels. It is iterative so that a host cannot exhaust
// the stack.
func tooDeep(v any) bool {
	level := []any{v}
	for range maxDepth {
		var below []any
		for _, v := range level {
			switch v := v.(type) {
			case map[string]any:
				for _, w := range v {
					below = append(below, w)
				}
			case []any:
				below = append(below, v...)
			}
		}
		if len(below) == 0 {
			return false
		}
		level = below
	}
	return true
}
