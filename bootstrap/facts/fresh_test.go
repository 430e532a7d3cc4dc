package facts

import (
	"net/netip"
	"testing"
)

func TestFreshMachine(t *testing.T) {
	one, err := Fresh("ubuntu-24.04", "w1", "10.0.0.11")
	if err != nil || one.OS.Codename != "noble" || one.Hostname != "w1" || one.Addresses[0].Prefix.Addr() != netip.MustParseAddr("10.0.0.11") {
		t.Fatalf("%+v, %v", one, err)
	}
	one.Packages["kubelet"] = Package{Version: "1"}
	if two, err := Fresh("ubuntu-24.04", "w2", "fd00::2"); err != nil || len(two.Packages) > 0 || two.Hostname != "w2" {
		t.Errorf("it is not fresh: %+v, %v", two, err)
	}
	for _, c := range [][3]string{{"ubuntu-3", "w1", "10.0.0.1"}, {"debian-12", "", "10.0.0.1"}, {"debian-12", "w1", "w1.example"}} {
		if got, err := Fresh(c[0], c[1], c[2]); err == nil {
			t.Errorf("%q: %+v", c, got)
		}
	}
}
