package plan

import (
	"errors"
	"testing"
)

func TestCheckPatterns(t *testing.T) {
	for pattern, known := range map[string]bool{
		"kube/packages": true, "os/*": true, "node/drain/w1": true, "node/drain": true, "*/*": true,
		"os": true, "kube/package": false, "drain": false, "[": false, "": false,
	} {
		err := CheckPatterns([]string{"os/time", pattern})
		var unknown *UnknownStepError
		if known != (err == nil) || !known && (!errors.As(err, &unknown) || unknown.Pattern != pattern) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
