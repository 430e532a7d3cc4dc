package report

import (
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
)

func TestPrintUpgradeCheck(t *testing.T) {
	v := func(minor, patch int) catalog.Version { return catalog.Version{Major: 1, Minor: minor, Patch: patch} }
	flow := facts.Deprecated{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas", Removed: "1.37", Objects: []string{"mine (kubectl)", "theirs (\x1b[31m)"}}
	for name, c := range map[string]UpgradeCheck{
		"upgrade-check.txt": {
			Running: v(35, 4), Rounds: []catalog.Version{v(36, 3), v(37, 2)}, Deprecated: []facts.Deprecated{{Version: "v1", Resource: "widgets", Removed: "1.40"}, flow},
			Took: []NodeTime{{"cp1", 50 * time.Second}, {"w1", 125 * time.Second}}, Asked: []string{"cp1"},
		},
		"upgrade-check-later.txt":   {Running: v(35, 4), Rounds: []catalog.Version{v(36, 3)}, Deprecated: []facts.Deprecated{flow}, Asked: []string{"cp1"}},
		"upgrade-check-nothing.txt": {Running: v(37, 2), Asked: []string{"cp1", "cp2", "cp3"}},
		"upgrade-check-away.txt":    {Running: v(37, 2), Asked: []string{"cp1", "cp3"}, Silent: []string{"cp2"}},
		"upgrade-check-one.txt":     {Running: v(37, 2), Asked: []string{"cp1"}, Silent: []string{"cp2", "cp3"}},
	} {
		out := &Sheet{}
		must(t, PrintUpgradeCheck(out, &c))
		golden(t, name, out.String())
	}
}
