package catalog

import "time"

// Release is a distribution release that kgpu supports, or once did.
type Release struct {
	Name string    // ID and VERSION_ID of /etc/os-release: ubuntu 24.04
	End  time.Time // last day with free updates that need no account, midnight UTC
}

// The releases. Ends: endoflife.date/ubuntu (standard support) and endoflife.date/debian (long-term support).
var releases = []Release{
	{"ubuntu 20.04", day("2025-05-31")},
	{"ubuntu 22.04", day("2027-04-01")},
	{"ubuntu 24.04", day("2029-05-31")},
	{"ubuntu 25.10", day("2026-07-01")},
	{"ubuntu 26.04", day("2031-04-30")},
	{"debian 12", day("2028-06-30")},
	{"debian 13", day("2030-06-30")},
}

// LookupRelease returns the release with this name; false if kgpu does not know it.
func LookupRelease(name string) (Release, bool) {
	return find(releases, func(r Release) bool { return r.Name == name })
}

// Ended reports whether the release had reached its end at AsOf, so that it is not tested any more.
func (r Release) Ended() bool { return r.End.Before(AsOf) }
