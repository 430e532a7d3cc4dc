package facts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/pelletier/go-toml/v2"
)

// Bounds of the configuration files that a host sends: they are read, edited and written again.
const (
	maxConfiguration = 1 << 20
	maxDepth         = 100
)

// configuration decodes a file. What is neither TOML nor JSON is passed on: whoever wants it says what is wrong with it.
func configuration(encoded string) ([]byte, error) {
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
	if deep(inJSON) || deep(inTOML) {
		return nil, fmt.Errorf("the file has values within values, more than %d levels", maxDepth)
	}
	return data, nil
}

// deep tells whether there are more levels below v than anybody writes. It does not go down by recursion, which would be
// the host's way to use up the stack.
func deep(v any) bool {
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
