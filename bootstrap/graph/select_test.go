package graph

import (
	"errors"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
)

func TestCheckPatterns(t *testing.T) {
	ids := []string{"kube/packages", "node/drain", "os/swap", "os/time"}
	for pattern, known := range map[string]bool{
		"kube/packages": true, "os/*": true, "node/drain/w1": true, "node/drain": true, "*/*": true,
		"os": true, "kube/package": false, "drain": false, "[": false, "": false,
	} {
		err := CheckPatterns([]string{"os/time", pattern}, ids)
		var usage *reason.UsageError
		if known != (err == nil) || !known && (!errors.As(err, &usage) || !strings.HasPrefix(usage.Message, `no step "`+pattern+`".`)) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
