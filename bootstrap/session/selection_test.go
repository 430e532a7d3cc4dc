package session

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

func TestNamed(t *testing.T) {
	o := Options{Inventory: &inventory.Inventory{Path: "lab.yaml", Hosts: []inventory.Host{
		{Address: "10.0.0.10", Name: "cp1"}, {Address: "10.0.0.11", Name: "gpu1"}, {Address: "10.0.0.12", Name: "gpu2"}, {Address: "10.0.0.13"},
	}}}
	if _, err := o.Named([]string{"gpu1", ""}); err == nil || !strings.Contains(err.Error(), "name is empty") {
		t.Errorf("no name at all: %v", err)
	}
	for typed, want := range map[string]string{
		"gpu1 10.0.0.10":   "gpu1 cp1",
		"gpu[1-2]":         "gpu1 gpu2",
		"10.0.0.[11,13]":   "gpu1 10.0.0.13",
		"gpu[2-1]":         "error runs backwards",
		"gpu[1-3]":         `error no host "gpu3" in lab.yaml.`,
		"gpu":              `error Did you mean "gpu1"?`,
		"gpu1 kubernetes1": "error It has cp1, gpu1, gpu2, 10.0.0.13",
	} {
		ids, err := o.Named(strings.Fields(typed))
		wrong, bad := strings.CutPrefix(want, "error ")
		var usage *reason.UsageError
		if bad && (!errors.As(err, &usage) || !strings.Contains(err.Error(), wrong)) || !bad && (err != nil || !slices.Equal(ids, strings.Fields(want))) {
			t.Errorf("%s: %q, %v, want %s", typed, ids, err, want)
		}
	}
}
