package catalog

import (
	"slices"
	"time"
)

// AsOf is the day when the tables of this package were last compared with their sources, at midnight UTC.
var AsOf = day("2026-11-25")

// maxAgeMonths is for how many months the catalog is considered current. Meanwhile driver branches and minors reach their end,
// keys expire, and images are deleted.
const maxAgeMonths = 6

// Aged reports whether the catalog is older than that.
func Aged(now time.Time) bool { return now.After(AsOf.AddDate(0, maxAgeMonths, 0)) }

func day(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}

// find is the row of a table that is wanted; false: there is none.
func find[T any](table []T, wanted func(T) bool) (row T, ok bool) {
	i := slices.IndexFunc(table, wanted)
	if i < 0 {
		return row, false
	}
	return table[i], true
}
