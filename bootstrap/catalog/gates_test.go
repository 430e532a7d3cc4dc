package catalog

import (
	"slices"
	"testing"
)

func version(t *testing.T, s string) Version {
	t.Helper()
	v, err := ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestGate(t *testing.T) {
	for _, c := range []struct {
		name, version string
		known         bool
		want          GateStage
	}{
		{"Accelerators", "1.6.13", true, GateStage{"Alpha", false, false, 6, 10}},
		{"Accelerators", "1.10.13", true, GateStage{"Alpha", false, false, 6, 10}},
		{"Accelerators", "1.11.10", false, GateStage{}},
		{"Accelerators", "1.36.3", false, GateStage{}},
		{"DevicePlugins", "1.7.16", false, GateStage{}},
		{"DevicePlugins", "1.8.15", true, GateStage{"Alpha", false, false, 8, 9}},
		{"DevicePlugins", "1.10.0", true, GateStage{"Beta", true, false, 10, 25}},
		{"DevicePlugins", "1.27.16", true, GateStage{"GA", true, true, 26, 27}},
		{"DevicePlugins", "1.28.0", false, GateStage{}},
		{"ExtendWebSocketsToKubelet", "1.35.8", false, GateStage{}},
		{"ExtendWebSocketsToKubelet", "1.36.3", true, GateStage{"Beta", true, false, 36, 37}},
		{"AllAlpha", "1.6.0", true, GateStage{"Alpha", false, false, 6, 37}},
		{"AllBeta", "1.16.15", false, GateStage{}},
		{"accelerators", "1.6.13", false, GateStage{}}, // names are case-sensitive
	} {
		got, known := Gate(c.name, version(t, c.version))
		if known != c.known || got != c.want {
			t.Errorf("Gate(%s, %s) = %+v, %t; want %+v, %t", c.name, c.version, got, known, c.want, c.known)
		}
	}
}

func TestGateVersions(t *testing.T) {
	for name, want := range map[string]string{
		"Accelerators":              "1.6 to 1.10",
		"DevicePlugins":             "1.8 to 1.27",
		"ExtendWebSocketsToKubelet": "1.36 and newer",
		"EnableInsecureStuff":       "",
	} {
		if got := GateVersions(name); got != want {
			t.Errorf("GateVersions(%s) = %q, want %q", name, got, want)
		}
	}
}

// TestGatesTable: Gate can search the table: known stages, sorted, without gaps or overlaps, locked only in late
// stages.
func TestGatesTable(t *testing.T) {
	if n := len(gates()); n < 400 {
		t.Fatalf("%d gates", n)
	}
	for name, stages := range gates() {
		for i, s := range stages {
			if !slices.Contains([]string{"Alpha", "Beta", "GA", "Deprecated"}, s.Stage) {
				t.Errorf("%s: stage %q", name, s.Stage)
			}
			if s.From > s.To || s.From < oldestMinor || s.To > newestMinor {
				t.Errorf("%s: 1.%d to 1.%d", name, s.From, s.To)
			}
			if i > 0 && s.From != stages[i-1].To+1 {
				t.Errorf("%s: 1.%d does not follow 1.%d", name, s.From, stages[i-1].To)
			}
			if s.Locked && s.Stage == "Alpha" {
				t.Errorf("%s: locked while alpha", name)
			}
		}
	}
}

func TestGateNames(t *testing.T) {
	names := GateNames(version(t, "1.36.3"))
	if !slices.IsSorted(names) || !slices.Contains(names, "ExtendWebSocketsToKubelet") || slices.Contains(names, "Accelerators") {
		t.Errorf("GateNames(1.36.3) = %v", names)
	}
}
