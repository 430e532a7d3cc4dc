package scripts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// fabricSays is nvidia-smi -q of two cards, with what it says of their fabric and of much else.
func fabricSays(state, status string) string {
	out := "\n==============NVSMI LOG==============\n\nDriver Version                            : 580.173.02\nAttached GPUs                             : 2\n"
	for _, card := range []string{"00000000:17:00.0", "00000000:3D:00.0"} {
		out += fmt.Sprintf("GPU %s\n    Product Name                          : NVIDIA B200\n    Performance State                     : P0\n"+
			"    GSP\n        Status                            : Ready\n    Fabric\n        State                             : %s\n        Status                            : %s\n"+
			"        CliqueId                          : 0\n        ClusterUUID                       : 00000000-0000-0000-0000-000000000000\n        Health\n"+
			"            Summary                       : Healthy\n    Clocks\n        State                             : Idle\n        Status                            : N/A\n", card, state, status)
	}
	return out
}

// hgxHost is a host with a driver, a kernel that has what reaches NVLink 5 switches, and a repository with what sets them up.
func hgxHost(t *testing.T) gpuHost {
	t.Helper()
	s := newGPUHost(t, "0000:17:00.0", "0000:3d:00.0")
	s.driver("580.173.02")
	s.repository(
		deb{name: "nvidia-fabricmanager-580", version: "580.173.02-1", postinst: "test -e /gpu/sys/module/ib_umad -a -e /gpu/nvlsm"},
		deb{name: "nvlsm", version: "2025.10.11-1", postinst: ": >/gpu/nvlsm"},
		deb{name: "infiniband-diags", version: "50.0-2"}, deb{name: "nvidia-imex-580", version: "580.173.02-1"},
	)
	s.write("gpu/modules/mlx5_ib", "")
	s.write("gpu/modules/ib_umad", "")
	s.write("gpu/smi", fabricSays("Completed", "Success"))
	s.write("var/units/nvidia-fabricmanager.service", "loaded,inactive,disabled\n")
	s.write("var/units/nvidia-imex.service", "loaded,inactive,disabled\n")
	s.value("packages", "nvidia-fabricmanager-580\n")
	s.value("others", "nvlsm\ninfiniband-diags\n")
	s.value("modules", "mlx5_ib\nib_umad\n")
	s.value("unit", "nvidia-fabricmanager.service")
	s.file("/etc/modules-load.d/kgpu-nvlink.conf", "mlx5_ib\nib_umad\n")
	return s
}

// What the fabric manager wants is there before it comes, and all of it goes again.
func TestFabricOfNVLinkSwitches(t *testing.T) {
	t.Parallel()
	s := hgxHost(t)
	s.stub("rmmod", "#!/bin/sh\nshift\nrm -rf \"/sys/module/$1\"\n")
	before := s.snapshot()
	s.twice("driver-fabric")
	for name, want := range map[string]string{
		"nvidia-fabricmanager-580": "hold installed 580.173.02-1", "nvlsm": "hold installed 2025.10.11-1", "infiniband-diags": "hold installed 50.0-2",
	} {
		s.packageIs(name, want)
	}
	if !s.loaded("ib_umad") || !s.loaded("mlx5_ib") || s.read("etc/modules-load.d/kgpu-nvlink.conf") != "mlx5_ib\nib_umad\n" {
		t.Error("the kernel does not have what reaches the switches")
	}
	s.holds("var/units/nvidia-fabricmanager.service", "loaded,active,enabled\n")
	s.remove("gpu/nvlsm")
	s.undone(before)
}

// IMEX has nothing to do before it is told of other hosts, and ends.
func TestFabricOfARack(t *testing.T) {
	t.Parallel()
	s := hgxHost(t)
	s.value("packages", "nvidia-imex-580\n")
	s.value("others", "")
	s.value("modules", "")
	s.write("var/units.log", "")
	s.value("unit", "nvidia-imex.service")
	s.value("ends", "yes")
	before := s.snapshot()
	s.ok(s.step("driver-fabric"))
	s.write("var/units/nvidia-imex.service", "loaded,inactive,enabled\n") // it has ended
	s.write("var/units.log", "")
	s.ok(s.step("driver-fabric"))
	s.packageIs("nvidia-imex-580", "hold installed 580.173.02-1")
	lacks(t, s.read("var/units.log"), "enable -q") // or started again
	s.undone(before)
}

// A kernel for clouds has the modules in a package of its own.
func TestFabricModulesOfACloud(t *testing.T) {
	t.Parallel()
	s := hgxHost(t)
	s.remove("gpu/modules/ib_umad")
	s.stub("uname", "#!/bin/sh\necho 6.8.0-1040-aws\n")
	s.fails(s.step("driver-fabric"), 1, "GPU_FABRIC_MISSING")
	s.detail("modprobe: FATAL: Module ib_umad not found in directory /lib/modules/6.8.0; apt does not offer linux-modules-extra-6.8.0-1040-aws")
	s.repository(deb{name: "linux-modules-extra-6.8.0-1040-aws", version: "6.8.0-1040.42", postinst: ": >/gpu/modules/ib_umad"},
		deb{name: "nvidia-fabricmanager-580", version: "580.173.02-1"}, deb{name: "nvlsm", version: "2025.10.11-1"}, deb{name: "infiniband-diags", version: "50.0-2"})
	s.ok(s.step("driver-fabric"))
	if !s.loaded("ib_umad") {
		t.Error("ib_umad is not loaded")
	}
}

func TestFabricThatDoesNotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(gpuHost)
		reason string
		detail []string
	}{
		"no nvlsm": {func(s gpuHost) {
			s.repository(deb{name: "nvidia-fabricmanager-580", version: "580.173.02-1"}, deb{name: "infiniband-diags", version: "50.0-2"})
		}, "GPU_FABRIC_MISSING", []string{"apt does not offer nvlsm"}},
		"in progress for ever": {func(s gpuHost) { s.write("gpu/smi", fabricSays("In Progress", "N/A")) }, "GPU_FABRIC_INCOMPLETE", []string{
			"card 00000000:17:00.0: fabric State: In Progress, Status: N/A; card 00000000:3D:00.0: fabric State: In Progress, Status: N/A; nvidia-fabricmanager.service says: no trunk links",
		}},
		"no success":        {func(s gpuHost) { s.write("gpu/smi", fabricSays("Completed", "Insufficient Resources")) }, "GPU_FABRIC_INCOMPLETE", []string{"State: Completed, Status: Insufficient Resources"}},
		"nvidia-smi fails":  {func(s gpuHost) { s.write("gpu/smi", "No devices were found\n"); s.write("gpu/smi-status", "6") }, "GPU_FABRIC_INCOMPLETE", []string{"nvidia-smi ends with status 6: No devices were found"}},
		"nvidia-smi hangs":  {func(s gpuHost) { s.write("gpu/smi-status", "124") }, "GPU_HUNG", nil},
		"it does not start": {func(s gpuHost) { s.remove("var/units/nvidia-fabricmanager.service") }, "GPU_FABRIC_FAILED", []string{"nvidia-fabricmanager.service does not start: no trunk links"}},
		"it ends": {func(s gpuHost) {
			s.stub("nvidia-smi", "#!/bin/sh\necho loaded,failed,enabled >/var/units/nvidia-fabricmanager.service\ncat /gpu/smi\n")
			s.write("gpu/smi", fabricSays("In Progress", "N/A"))
		}, "GPU_FABRIC_FAILED", []string{"nvidia-fabricmanager.service has ended: no trunk links"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hgxHost(t)
			s.stub("journalctl", "#!/bin/sh\ncase $* in *-u*) echo no trunk links ;; esac\n")
			s.write(stepDir+"/timeout", "15") // what is left of it is nothing
			c.change(s)
			s.fails(s.step("driver-fabric"), 1, c.reason)
			s.detail(c.detail...)
		})
	}
}

// What a real driver says of a card that needs no fabric: its answer has much else called state, status and GPU.
func TestFabricOfARealCardWithoutOne(t *testing.T) {
	t.Parallel()
	s := hgxHost(t)
	s.write("gpu/smi", readFile(t, "testdata/nvidia-smi/h100-q.txt"))
	s.ok(s.step("driver-fabric"))
	h := newHostForFacts(t)
	h.write("gpu/sys/bus/pci/devices/0000:17:00.0/device", "0x2901\n") // facts.sh asks for the fabric of some cards only
	h.write("gpu/smi", readFile(t, "testdata/nvidia-smi/h100-q.txt"))
	h.stub("nvidia-smi", "#!/bin/sh\n[ \"$1\" = -q ] || exec echo 'GPU-0, B200, 00000000:17:00.0, 183359 MiB, Disabled'\nexec cat /gpu/smi\n")
	f := h.factsBy(factsOf())
	want := []facts.GPUFabric{{Address: "00000000:00:06.0", State: "N/A", Status: "N/A"}}
	if !slices.Equal(f.NVIDIA.Fabric, want) || f.NVIDIA.FabricNotReady() != nil {
		t.Errorf("%+v", f.NVIDIA.Fabric)
	}
}

// Switches take their time to connect the cards, and the step waits for it.
func TestFabricThatTakesItsTime(t *testing.T) {
	t.Parallel()
	s := hgxHost(t)
	s.write("gpu/later", fabricSays("Completed", "Success"))
	s.write("gpu/smi", fabricSays("In Progress", "N/A"))
	s.stub("nvidia-smi", "#!/bin/sh\ncat /gpu/smi\nmv /gpu/later /gpu/smi 2>/dev/null || :\n")
	if r := s.ok(s.step("driver-fabric")); strings.Count(r.output, "W\tthe fabric of the cards: card 00000000:17:00.0: fabric State: In Progress") != 1 {
		t.Errorf("it says:\n%s", r.output)
	}
}

// The facts have the bridges to NVLink 5 switches, of which no network card of the same kind is one, and how far the cards are.
func TestFactsOfNVLinkSwitches(t *testing.T) {
	t.Parallel()
	s := newHostForFacts(t)
	for address, vpd := range map[string]string{"0000:a0:00.0": "\x82\x05\x00CX7\x90V0\x06SMDL=SW_MNG\x00", "0000:a0:00.1": "SMDL=SW_MNG", "0000:05:00.0": "\x82\x05\x00ConnectX-7 NIC\x00", "0000:06:00.0": "SMDL=SW_MNG"} {
		s.pci(address, "0x15b3", "0x020700")
		s.write("gpu/sys/bus/pci/devices/"+address+"/vpd", vpd)
	}
	s.write("gpu/sys/bus/pci/devices/0000:a0:00.1/physfn", "") // a virtual function
	s.bound("0000:06:00.0", "vfio-pci")
	s.pci("0000:07:00.0", "0x15b3", "0x020700") // without vital product data
	look := func() facts.NVIDIA {
		t.Helper()
		h := s.factsBy(factsOf())
		return h.NVIDIA
	}
	s.stub("nvidia-smi", "#!/bin/sh\n[ \"$1\" = -q ] || exec echo 'GPU-0, B200, 00000000:17:00.0, 183359 MiB, Disabled'\nexec cat /gpu/smi\n")
	s.write("gpu/smi", fabricSays("In Progress", "N/A"))
	for _, card := range []struct {
		id      string
		bridges int
		fabric  []facts.GPUFabric
	}{
		{"0x2901", 1, []facts.GPUFabric{{Address: "00000000:17:00.0", State: "In Progress", Status: "N/A"}, {Address: "00000000:3D:00.0", State: "In Progress", Status: "N/A"}}},
		{"0x20b0", 0, nil},
	} {
		for _, address := range []string{"0000:17:00.0", "0000:65:00.0"} {
			s.pci(address, "0x10de", "0x030200")
			s.write("gpu/sys/bus/pci/devices/"+address+"/device", card.id+"\n")
		}
		if n := look(); n.Bridges != card.bridges || !slices.Equal(n.Fabric, card.fabric) {
			t.Errorf("with cards %s: %d bridges, %+v", card.id, n.Bridges, n.Fabric)
		}
	}
}
