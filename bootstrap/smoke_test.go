package bootstrap

import (
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/session"
	"kgpu.dev/kgpu/inventory"
)

// A card that the driver does not list is no reason to prove the others only.
func TestCardsThatNoDriverLists(t *testing.T) {
	inv, err := inventory.Decode("lab.yaml", []byte("hosts:\n- {address: 10.0.0.10, name: cp1, role: control-plane}\n- {address: 10.0.0.11, name: w1}\n"), inventory.Options{})
	must(t, err)
	two := []facts.Card{{Address: "0000:17:00.0", ID: "20b0", Driver: "nvidia"}, {Address: "0000:65:00.0", ID: "20b0", Driver: "nvidia"}}
	for _, c := range []struct {
		name   string
		node   bool
		nvidia facts.NVIDIA
		want   string
	}{
		{"all are there", true, facts.NVIDIA{Cards: two, Loaded: "580.1", GPUs: make([]facts.GPU, 2)}, ""},
		{"one is a display, which this driver is not for", true, facts.NVIDIA{
			Cards: append(two[:1:1], facts.Card{Address: "0000:01:00.0", ID: "128b"}), Loaded: "580.1", Library: "580.1", GPUs: []facts.GPU{{Address: "0000:17:00.0"}},
		}, ""},
		{"one is lost", true, facts.NVIDIA{Cards: two, Loaded: "580.1", GPUs: make([]facts.GPU, 1), SMI: 14}, "nvidia-smi lists 1 of 2 cards (status 14)"},
		{"it hangs", true, facts.NVIDIA{Cards: two, Loaded: "580.1", SMI: 124}, "nvidia-smi lists 0 of 2 cards (status 124)"},
		{"no node yet", false, facts.NVIDIA{Cards: two}, ""},
		{"no cards", true, facts.NVIDIA{}, ""},
		{"an unknown card, for which there is no driver", true, facts.NVIDIA{Cards: []facts.Card{{Address: "0000:17:00.0", ID: "0001"}}}, ""},
	} {
		s := fresh(Options{Options: session.Options{Inventory: inv}})
		h := &facts.Host{OS: facts.OS{ID: "ubuntu", VersionID: "24.04", Codename: "noble"}, Kernel: "6.8.0-85-generic", NVIDIA: c.nvidia}
		if c.node {
			h.Kubelet = &facts.Member{}
		}
		s.Facts = map[string]*facts.Host{"w1": h}
		var got []string
		for _, e := range reason.All(s.missingCards()) {
			if e.ID != reason.SmokeCardMissing || e.Host != "w1" {
				t.Errorf("%s: %+v", c.name, e)
			}
			got = append(got, e.Detail)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
