package reason

import (
	"cmp"
	"maps"
	"slices"
)

// table is every reason. A file for each subject has the IDs and the rows. Exit statuses are distinct, so that a script can tell reasons apart,
// and their ranges are the classes (class.go).
var table = index(slices.Concat(
	operatorReasons,
	connectionReasons,
	accessReasons,
	backupReasons,
	hostReasons,
	packagesReasons,
	runtimeReasons,
	networkReasons,
	clusterReasons,
	gpuReasons,
	proofReasons,
	stepReasons,
))

func index(list []Reason) map[ID]Reason {
	m := make(map[ID]Reason, len(list))
	for _, r := range list {
		m[r.ID] = r
	}
	return m
}

// Lookup returns the reason with this ID; an unknown ID has ExitInternal and no advice.
func Lookup(id ID) Reason {
	if r, ok := table[id]; ok {
		return r
	}
	return Reason{ID: id, Exit: ExitInternal}
}

// Known reports whether there is a reason with this ID.
func Known(id ID) bool {
	_, ok := table[id]
	return ok
}

// Table returns every reason by exit status.
func Table() []Reason {
	return slices.SortedFunc(maps.Values(table), func(a, b Reason) int { return cmp.Compare(a.Exit, b.Exit) })
}
