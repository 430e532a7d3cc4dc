package plan

import (
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

const keyAgain = 7 * 24 * time.Hour

// keyDue says why a host's keyring is to be made anew; empty: it is not.
func keyDue(f *facts.Host, path string) string {
	k := f.Keyrings[path]
	ends := machine.KeyEnds(k)
	switch day := ends.UTC().Format(time.DateOnly); {
	case machine.KeyRefused(k, f.Now):
		return "the key in " + path + " has expired on " + day
	case ends.IsZero() || f.Now.IsZero() || ends.Sub(f.Now) > machine.KeySoon || f.Now.Sub(k.Accepted) < keyAgain:
		return ""
	case !f.Now.Before(ends):
		return "the key in " + path + " has expired on " + day + ": there may be a newer one"
	default:
		return "the key in " + path + " ends on " + day + ": there may be a newer one"
	}
}
