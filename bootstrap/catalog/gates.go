package catalog

import (
	"cmp"
	_ "embed" // the table
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed gates.tsv
var gatesTable string

// GateStage is a stage of a feature gate's life.
type GateStage struct {
	Stage    string // Alpha, Beta, GA or Deprecated
	Default  bool
	Locked   bool // it cannot be changed from the default
	From, To int  // first and last minor
}

var gates = sync.OnceValue(func() map[string][]GateStage {
	out := map[string][]GateStage{}
	for line := range strings.Lines(gatesTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, stage, err := parseGate(strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		if err != nil {
			panic(fmt.Sprintf("gates.tsv: %q: %v", line, err))
		}
		out[name] = append(out[name], stage)
	}
	return out
})

func parseGate(columns []string) (string, GateStage, error) {
	if len(columns) != 6 {
		return "", GateStage{}, fmt.Errorf("%d columns", len(columns))
	}
	from, noFrom := strconv.Atoi(columns[4])
	to, noTo := strconv.Atoi(columns[5])
	return columns[0], GateStage{columns[1], columns[2] == "on", columns[3] == "locked", from, to}, cmp.Or(noFrom, noTo)
}

// Gate returns the stage of a feature gate in a version; false if the version does not have it. Kubernetes' programs do
// not start with unknown gates.
func Gate(name string, v Version) (GateStage, bool) {
	for _, s := range gates()[name] {
		if s.From <= v.Minor && v.Minor <= s.To {
			return s, true
		}
	}
	return GateStage{}, false
}

// GateVersions says which versions have a feature gate: "1.6 to 1.10", "1.18", "1.36 and newer"; empty if none has it.
func GateVersions(name string) string {
	stages := gates()[name]
	if len(stages) == 0 {
		return ""
	}
	first, last := stages[0].From, stages[len(stages)-1].To
	switch {
	case last == newestMinor:
		return fmt.Sprintf("1.%d and newer", first)
	case first == last:
		return fmt.Sprintf("1.%d", first)
	}
	return fmt.Sprintf("1.%d to 1.%d", first, last)
}

// AllGateNames lists the feature gates of all versions, sorted.
func AllGateNames() []string { return slices.Sorted(maps.Keys(gates())) }

// GateNames lists the feature gates of a version, sorted.
func GateNames(v Version) []string {
	var out []string
	for _, name := range AllGateNames() {
		if _, ok := Gate(name, v); ok {
			out = append(out, name)
		}
	}
	return out
}
