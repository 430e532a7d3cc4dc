package report

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/proposal"
	"kgpu.dev/kgpu/inventory"
)

// TestPrintProposal: the same problem of several hosts has one advice, and the last lines say what to do next.
func TestPrintProposal(t *testing.T) {
	seen := func(name, address string, change func(*facts.Host)) proposal.Observed {
		f := &facts.Host{
			Hostname: name, MachineID: name, OS: facts.OS{ID: "ubuntu", VersionID: "24.04", PrettyName: "Ubuntu 24.04.1 LTS\x1b[2J"}, Arch: "amd64", Kernel: "6.8.0-31-generic",
			Systemd: true, CgroupV2: true, CPUs: 16, MemoryKiB: 64<<20 - 5000,
			Modules: map[string]facts.ModuleState{"overlay": facts.ModuleLoaded, "br_netfilter": facts.ModuleLoaded, "dummy": facts.ModuleLoaded},
		}
		if change != nil {
			change(f)
		}
		return proposal.Observed{Target: inventory.Target{Address: address}, Facts: f}
	}
	swap := func(f *facts.Host) {
		f.NVIDIA.Cards = []facts.Card{{Address: "0000:17:00.0", ID: "20b0"}, {Address: "0000:18:00.0", ID: "1eb8"}, {Address: "0000:19:00.0", ID: "20b0"}}
		f.Swap = []facts.Swap{{Name: "/swap.img", Active: true}}
		f.RebootPending = true
	}
	addressed := func(ip string, also func(*facts.Host)) func(*facts.Host) {
		return func(f *facts.Host) {
			f.Addresses = []facts.Address{{Interface: "eth0", Prefix: netip.MustParsePrefix(ip + "/24")}}
			if also != nil {
				also(f)
			}
		}
	}
	p, err := proposal.Make([]proposal.Observed{
		seen("gpu1", "10.0.0.11", addressed("10.0.0.11", swap)), seen("head", "10.0.0.10", addressed("10.0.0.10", nil)), seen("gpu2", "10.0.0.12", addressed("10.0.0.12", swap)),
	}, proposal.Options{
		Path: "inventory.yaml", Cluster: "lab", Version: "1.36.3", Decode: inventory.Options{Now: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)},
	})
	must(t, err)
	var out bytes.Buffer
	must(t, PrintProposal(&out, p, "inventory.yaml", [][2]string{{"kgpu plan", "says what"}, {"kgpu up", "does it"}}))
	golden(t, "proposal.txt", out.String())
}
