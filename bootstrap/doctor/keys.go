package doctor

import (
	"maps"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

func keyExpired(s *examinee) []string {
	return s.keyrings(func(k facts.Keyring) bool { return machine.KeyRefused(k, s.f.Now) })
}

func keyEnds(s *examinee) []string {
	return s.keyrings(func(k facts.Keyring) bool {
		ends := machine.KeyEnds(k)
		return !ends.IsZero() && !s.f.Now.IsZero() && ends.Sub(s.f.Now) <= machine.KeySoon && !machine.KeyRefused(k, s.f.Now)
	})
}

// keyrings describes kgpu's keyrings for which is is true, with their expiry.
func (s *examinee) keyrings(is func(facts.Keyring) bool) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(s.f.Keyrings)) {
		if k := s.f.Keyrings[path]; is(k) {
			var names []string
			for _, key := range k.Keys {
				names = append(names, key.Fingerprint)
			}
			out = append(out, path+" is valid until "+machine.KeyEnds(k).UTC().Format(time.DateOnly)+": key "+strings.Join(names, ", "))
		}
	}
	return out
}
