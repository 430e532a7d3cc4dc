package plan

import (
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// The owner of a repository extends its key beneath the same fingerprint, weeks before it ends or on its last day. The key on a
// host stays as it was fetched, and apt refuses the repository when it ends, by the host's clock. So a key that ends soon is
// fetched again by any `kgpu up`, once a week at most: until its owner has extended it that brings nothing newer.
const (
	KeySoon  = 60 * 24 * time.Hour
	keyAgain = 7 * 24 * time.Hour
)

// KeyEnds is when the last key of a keyring expires; zero: never, or the host cannot tell.
func KeyEnds(k facts.Keyring) time.Time {
	var last time.Time
	for _, key := range k.Keys {
		if key.Until.IsZero() {
			return time.Time{}
		}
		if key.Until.After(last) {
			last = key.Until
		}
	}
	return last
}

// KeyRefused reports whether apt refuses what a keyring's keys sign, as far as is known: they have expired, and apt has taken
// nothing since. sqv, of apt 3, takes signatures from before the end of the key.
func KeyRefused(k facts.Keyring, now time.Time) bool {
	ends := KeyEnds(k)
	return !ends.IsZero() && !now.IsZero() && !now.Before(ends) && k.Accepted.Before(ends)
}

// keyDue says why a host's keyring is to be made anew; empty: it is not.
func keyDue(f *facts.Host, path string) string {
	k := f.Keyrings[path]
	ends := KeyEnds(k)
	switch day := ends.UTC().Format(time.DateOnly); {
	case KeyRefused(k, f.Now):
		return "the key in " + path + " has expired on " + day
	case ends.IsZero() || f.Now.IsZero() || ends.Sub(f.Now) > KeySoon || f.Now.Sub(k.Accepted) < keyAgain:
		return ""
	case !f.Now.Before(ends):
		return "the key in " + path + " has expired on " + day + ": there may be a newer one"
	default:
		return "the key in " + path + " ends on " + day + ": there may be a newer one"
	}
}
