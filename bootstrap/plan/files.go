package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
)

// text is a world-readable configuration file.
func text(content string) graph.File { return graph.File{Mode: 0o644, Content: []byte(content)} }

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// changed lists the files that are not on the host as they should be, each as a reason.
func changed(f *facts.Host, want map[string]graph.File) []string {
	var reasons []string
	for _, path := range sortedKeys(want) {
		switch have, ok := f.Files[path]; {
		case !ok:
			reasons = append(reasons, path+" is missing")
		case have != sha256Of(want[path].Content):
			reasons = append(reasons, fmt.Sprintf("%s differs", path))
		}
	}
	return reasons
}
