package catalog

import "time"

// AsOf is the day on which the tables of this package were last compared with their sources, UTC midnight.
var AsOf = day("2026-11-25")

// keeps is for how many months the catalog is taken for right: branches of drivers and minors of Kubernetes end meanwhile, keys
// expire, and images are deleted.
const keeps = 6

// Aged reports whether the catalog is older than six months on the day of now.
func Aged(now time.Time) bool { return now.After(AsOf.AddDate(0, keeps, 0)) }

func day(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}
