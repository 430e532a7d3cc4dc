package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// TestDoctorRepair holds that what disturbs is drained before and let in after, and the rest is not.
func TestDoctorRepair(t *testing.T) {
	inv := decode(t, threeHosts+containerd)
	for _, c := range []struct {
		name  string
		mends []Mend
		want  []string
	}{
		{"gentle", []Mend{{Host: "w1", Why: "X", Units: []string{"kubelet.service"}, Packages: []string{"kubelet"}, Module: true, Plugin: true}},
			[]string{"w1 doctor/hold", "w1 doctor/module", "w1 doctor/units", "cp1 doctor/plugin/w1"}},
		{"reboot", []Mend{{Host: "w1", Why: "X", Reboot: true, Units: []string{"kubelet.service"}}, {Host: "w2", Why: "Y", Reboot: true, Force: true}},
			[]string{"cp1 node/drain/w1", "w1 driver/reboot", "cp1 node/uncordon/w1", "cp1 node/drain/w2", "w2 driver/reboot", "cp1 node/uncordon/w2"}},
		{"a host that did not tell", []Mend{{Host: "w9", Reboot: true}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := Repair(inv, workersWithCards(t), c.mends)
			if err != nil {
				t.Fatal(err)
			}
			g.LimitUnavailable(1)
			if err := g.Validate(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range g.Steps {
				got = append(got, s.Ref.String())
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("steps %q, want %q", got, c.want)
			}
		})
	}
	// What is not the host any more that was found to need it is left alone.
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
	drain, reboot, back := g.Steps[0], g.Steps[1], g.Steps[2]
	if drain.Input.Values["patience"] == "" || reboot.Input.Values["force"] != "yes" || back.Input.Values["cards"] != "1" {
		t.Errorf("%+v\n%+v\n%+v", drain, reboot, back)
	}
	if !slices.Contains(reboot.Needs, drain.Ref) || !slices.Contains(back.Needs, reboot.Ref) {
		t.Errorf("the reboot needs %v, the end %v", reboot.Needs, back.Needs)
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
	if got := refs(g); !slices.Equal(got, []string{"w1 doctor/watch", "w2 doctor/watch"}) {
		t.Fatalf("steps %q", got)
	}
	display := &seen["w1"].NVIDIA
	display.Cards = append(display.Cards, facts.Card{Address: "0000:01:00.0", ID: "0a65", Driver: "nouveau"}, facts.Card{Address: "0000:02:00.0; reboot", ID: "0a65"})
	with, err := Watch(inv, seen, []string{"w1"}, []byte("#!/bin/sh\n"))
	if err != nil || !strings.Contains(string(with.Steps[0].Input.Files[watchService].Content), "\nExecStart=/usr/local/sbin/kgpu-gpu-watch w1 0000:01:00.0\n") {
		t.Errorf("beside cards that are left out: %v, %s", err, with.Steps[0].Input.Files[watchService].Content)
	}
	display.Cards = display.Cards[:len(display.Cards)-2]
	files := g.Steps[0].Input.Files
	if unit := string(files[watchService].Content); !strings.Contains(unit, "\nExecStart=/usr/local/sbin/kgpu-gpu-watch w1\n") {
		t.Errorf("the service is\n%s", unit)
	}
	if files[watchProgram].Mode != 0o755 {
		t.Errorf("the check has mode %o", files[watchProgram].Mode)
	}
	for path, file := range files {
		sum := sha256.Sum256(file.Content)
		seen["w1"].Files[path] = hex.EncodeToString(sum[:])
	}
	if g, err = Watch(inv, seen, []string{"w1"}, []byte("#!/bin/sh\n")); err != nil || !g.Empty() {
		t.Errorf("it comes again: %v, %v", err, refs(g))
	}
}
