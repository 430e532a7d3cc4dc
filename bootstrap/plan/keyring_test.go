package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// A host whose key has expired, or ends soon, gets it again; where that has brought nothing newer there is nothing to do.
func TestKeysThatEnd(t *testing.T) {
	const day, path = 24 * time.Hour, "/etc/apt/keyrings/kgpu-kubernetes.gpg"
	inv := decode(t, threeHosts+containerd)
	seen := map[string]*facts.Host{"cp1": bare(10), "w1": bare(11), "w2": bare(12)}
	graph, err := Up(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	settle(t, inv, seen, graph)
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		left, accepted time.Duration // from now
		want           string
	}{
		"far away":                         {61 * day, -300 * day, ""},
		"soon, and fetched this week":      {59 * day, -6 * day, ""},
		"soon":                             {59 * day, -8 * day, "the key in " + path + " ends on 2027-01-29: there may be a newer one"},
		"expired since it was fetched":     {-time.Hour, -6 * day, "the key in " + path + " has expired on 2026-11-30"},
		"refused when it was fetched":      {-30 * day, -20700 * day, "the key in " + path + " has expired on 2026-11-01"},
		"apt takes it all the same":        {-30 * day, -6 * day, ""},
		"apt took it all the same once":    {-30 * day, -8 * day, "the key in " + path + " has expired on 2026-11-01: there may be a newer one"},
		"the clock of the host went wrong": {59 * day, 8 * day, ""},
	} {
		w := *seen["w1"]
		w.Now = now
		w.Keyrings = map[string]facts.Keyring{path: {Accepted: now.Add(c.accepted), Keys: []facts.Key{{Fingerprint: "OLD", Until: now.Add(-400 * day)}, {Fingerprint: "A", Until: now.Add(c.left)}}}}
		graph, err := Up(inv, map[string]*facts.Host{"cp1": seen["cp1"], "w1": &w, "w2": seen["w2"]})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range graph.Steps {
			got = append(got, s.Host+" "+s.ID+": "+s.Reason)
		}
		var want []string
		if c.want != "" {
			want = []string{"w1 repo/kubernetes: " + c.want}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// The key of Kubernetes' repositories is the same for all minors: others serve it where this one's has expired. A mirror has one.
func TestOtherAddressesOfAKey(t *testing.T) {
	for more, want := range map[string]string{
		"": "https://pkgs.k8s.io/core:/stable:/v1.30/deb/Release.key https://pkgs.k8s.io/core:/stable:/v1.37/deb/Release.key https://pkgs.k8s.io/core:/stable:/v1.36/deb/Release.key",
		"repositories: {kubernetes: {url: \"https://mirror.example.com/k\"}}\n":        "https://mirror.example.com/k/Release.key",
		"repositories: {kubernetes: {keyURL: \"https://mirror.example.com/k.asc\"}}\n": "https://mirror.example.com/k.asc",
	} {
		graph, err := Up(decode(t, threeHosts+"kubernetes: {version: \"1.30\", allowEndOfLife: true}\nruntime: containerd\nnetwork: flannel\n"+more), map[string]*facts.Host{"cp1": bare(10)})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range graph.Steps {
			if got := strings.Join(strings.Fields(s.Input.Values["key_url"]), " "); s.ID == "repo/kubernetes" && got != want {
				t.Errorf("%q: %s, want %s", more, got, want)
			}
		}
	}
}
