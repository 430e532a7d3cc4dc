package doctor

import (
	"slices"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// keyEnds lets the key of w1's Kubernetes repository end after so long.
func (w *world) keyEnds(left time.Duration) {
	now := w.w1.Now
	w.w1.Keyrings = map[string]facts.Keyring{"/etc/apt/keyrings/kgpu-kubernetes.gpg": {Accepted: now.Add(-90 * 24 * time.Hour), Keys: []facts.Key{{Until: now.Add(left)}}}}
}

// TestRepositoryKeyExpiry: a repository's key is reported 60 days before it expires, and is an error once apt refuses
// it.
func TestRepositoryKeyExpiry(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		left, accepted time.Duration // from now
		want           []string
	}{
		"far away":          {61 * day, -day, nil},
		"soon":              {59 * day, -day, []string{"w1 REPO_KEY_ENDS"}},
		"today":             {time.Hour, -90 * day, []string{"w1 REPO_KEY_ENDS"}},
		"over":              {-time.Hour, -90 * day, []string{"w1 REPO_KEY_EXPIRED"}},
		"over and accepted": {-30 * day, -day, []string{"w1 REPO_KEY_ENDS"}},
	} {
		w := newWorld(t)
		w.w1.Keyrings = map[string]facts.Keyring{
			"/etc/apt/keyrings/kgpu-docker.gpg":     {Keys: []facts.Key{{Fingerprint: "A"}}},
			"/etc/apt/keyrings/kgpu-kubernetes.gpg": {Accepted: w.w1.Now.Add(c.accepted), Keys: []facts.Key{{Fingerprint: "B", Until: w.w1.Now.Add(c.left)}}},
		}
		found := w.check()
		if got := ids(found); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for _, f := range found {
			if want := "/etc/apt/keyrings/kgpu-kubernetes.gpg is valid until " + w.w1.Now.Add(c.left).UTC().Format(time.DateOnly) + ": key B"; !slices.Equal(f.Evidence, []string{want}) {
				t.Errorf("%s: %q, want %q", name, f.Evidence, want)
			}
		}
	}
}
