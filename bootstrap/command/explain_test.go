package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		word    string
		json    bool
		want    string
		problem string
	}{
		{"", false, "HOST_APT_LOCKED", ""},
		{"", true, `"id": "HOST_APT_LOCKED"`, ""},
		{"host-apt-locked", false, "HOST_APT_LOCKED (exit status 65, class host)", ""},
		{"65", false, "HOST_APT_LOCKED (exit", ""},
		{"65", true, `"exit": 65`, ""},
		{"40", false, "several different reasons", ""},
		{"HOST_APT_LOKED", false, "", `Did you mean "HOST_APT_LOCKED"?`},
		{"99", false, "", "exit status 99"},
		{"xyzzy", false, "", "kgpu explain lists them"},
	} {
		var out bytes.Buffer
		err := explainWord(&out, c.word, c.json)
		var usage *reason.UsageError
		switch {
		case c.problem == "" && err != nil, !strings.Contains(out.String(), c.want):
			t.Errorf("%q: %v, %s", c.word, err, &out)
		case c.problem != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), c.problem) || out.Len() > 0):
			t.Errorf("%q: %v, want %s", c.word, err, c.problem)
		}
	}
}
