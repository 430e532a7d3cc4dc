package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// cardIDs are PCI device IDs of one card of each kind that people have.
var cardIDs = []struct{ name, id string }{
	{"K80", "102d"}, {"M60", "13f2"}, {"P100", "15f8"}, {"V100", "1db6"}, {"T4", "1eb8"}, {"RTX 3090", "2204"}, {"A100", "20b0"},
	{"L40S", "26b9"}, {"H100 SXM", "2330"}, {"H200", "2335"}, {"B200", "2901"}, {"RTX 4090", "2684"}, {"RTX 5090", "2b85"},
}

var releases = []facts.OS{
	{ID: "ubuntu", VersionID: "20.04"}, {ID: "ubuntu", VersionID: "22.04"}, {ID: "ubuntu", VersionID: "24.04"}, {ID: "ubuntu", VersionID: "26.04"},
	{ID: "debian", VersionID: "12"}, {ID: "debian", VersionID: "13"},
}

// TestDrivers writes down what every kind of card gets on every release, with and without Secure Boot.
func TestDrivers(t *testing.T) {
	inv := decode(t, threeHosts)
	var out strings.Builder
	for _, card := range cardIDs {
		for _, release := range releases {
			for _, secure := range []bool{false, true} {
				f := bare(10)
				f.OS, f.SecureBoot = release, secure
				f.Kernel = map[string]string{"ubuntu": "6.8.0-31-generic", "debian": "6.12.41+deb13-amd64"}[release.ID]
				f.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: card.id}}
				boot := ""
				if secure {
					boot = ", Secure Boot"
				}
				fmt.Fprintf(&out, "%s on %s %s%s: ", card.name, release.ID, release.VersionID, boot)
				c, err := ChooseDriver(inv, f)
				var refused *Refused
				switch {
				case errors.As(err, &refused):
					fmt.Fprintf(&out, "refused (%s): %s\n", refused.Kind, refused.Detail)
				case err != nil:
					t.Fatal(err)
				default:
					p := c.Packages(f.OS.ID, f.Kernel)
					fmt.Fprintf(&out, "%s for %s: %s\n", c.Driver, c.Why, strings.Join(append(p.First, p.Driver...), " "))
				}
			}
		}
	}
	golden(t, "drivers", out.String())
}
