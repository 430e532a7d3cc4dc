package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// TestRepairOfAnotherHost: what is not the host any more that was found to need it is left alone.
func TestRepairOfAnotherHost(t *testing.T) {
	inv := decode(t, threeHosts+containerd)
	if g, err := Repair(inv, workersWithCards(t), []Mend{{Host: "w9", Reboot: true}}); err != nil || !g.Empty() {
		t.Errorf("a host that did not tell: %q, %v", refs(g), err)
	}
	was := workersWithCards(t)["w1"]
	was.BootID, was.Ledger = "5f0c", 3
	for name, c := range map[string]struct {
		now  func(*facts.Host)
		want string // in the warning; empty: it is repaired
	}{
		"the same":           {func(*facts.Host) {}, ""},
		"rebooted":           {func(f *facts.Host) { f.BootID = "5f0d" }, "has rebooted"},
		"no node any more":   {func(f *facts.Host) { f.Kubelet = nil }, "has left its cluster"},
		"of another cluster": {func(f *facts.Host) { k := *f.Kubelet; k.CAHash += "0"; f.Kubelet = &k }, "has left its cluster"},
		"reset":              {func(f *facts.Host) { f.Ledger = 0 }, "was taken back"},
	} {
		seen := workersWithCards(t)
		now := *was
		c.now(&now)
		seen["w1"] = &now
		g, err := Repair(inv, seen, []Mend{{Host: "w1", Why: "X", Reboot: true, Seen: was}})
		if err != nil || g.Empty() != (c.want != "") || !strings.Contains(strings.Join(g.Warnings, " "), c.want) {
			t.Errorf("%s: %v, %q, warnings %q", name, err, refs(g), g.Warnings)
		}
	}
	g, err := Repair(inv, workersWithCards(t), []Mend{{Host: "w2", Why: "GPU_HUNG", Reboot: true, Force: true}})
	if err != nil {
		t.Fatal(err)
	}
	if nodes, reasons := g.DrainedNodes(); !slices.Equal(nodes, []string{"w2"}) || reasons["w2"] != "GPU_HUNG" {
		t.Errorf("drained are %v, %v", nodes, reasons)
	}
}

// TestWatch holds that the check comes to nodes with cards, once.
func TestWatch(t *testing.T) {
	inv, seen := decode(t, threeHosts+containerd), workersWithCards(t)
	g, err := Watch(inv, seen, nil, []byte("#!/bin/sh\n"))
	if err != nil {
		t.Fatal(err)
	}
	display := &seen["w1"].NVIDIA
	display.Cards = append(display.Cards, facts.Card{Address: "0000:01:00.0", ID: "0a65", Driver: "nouveau"}, facts.Card{Address: "0000:02:00.0; reboot", ID: "0a65"})
	with, err := Watch(inv, seen, []string{"w1"}, []byte("#!/bin/sh\n"))
	if err != nil || !strings.Contains(string(with.Steps[0].Input.Files[watchService].Content), "\nExecStart=/usr/local/sbin/kgpu-gpu-watch w1 0000:01:00.0\n") {
		t.Errorf("beside cards that are left out: %v, %s", err, with.Steps[0].Input.Files[watchService].Content)
	}
	display.Cards = display.Cards[:len(display.Cards)-2]
	files := g.Steps[0].Input.Files
	for path, file := range files {
		sum := sha256.Sum256(file.Content)
		seen["w1"].Files[path] = hex.EncodeToString(sum[:])
	}
	if g, err = Watch(inv, seen, []string{"w1"}, []byte("#!/bin/sh\n")); err != nil || !g.Empty() {
		t.Errorf("it comes again: %v, %v", err, refs(g))
	}
}
