package preflight

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// cards refuses hosts with cards that no driver can run.
func (c *checker) cards(m Machine) {
	if len(machine.Cards(c.inv, m.Facts)) == 0 {
		return
	}
	var refused *machine.Refused
	if _, err := machine.ChooseDriver(c.inv, m.Facts); errors.As(err, &refused) {
		c.problemWithAdvice(m.ID(), refusals[refused.Kind], refused.Advice, "%s", refused.Detail)
	}
	for _, name := range []string{"nvidia", "nvidia_uvm"} {
		if off := m.Facts.ModulesOff[name]; off != "" && m.Facts.NVIDIA.Loaded == "" {
			c.problem(m.ID(), reason.HostModuleDisabled, "module %s, which the cards need, is kept out by %s", name, off)
		}
	}
	c.instances(m)
}

// notebook refuses the inventory's framework if it computes on no GPU of the cluster. If kgpu chooses the framework and
// finds none, the plan omits the notebook instead. It is not checked on a part of the hosts.
func (c *checker) notebook(machines []Machine) {
	if f := c.inv.Notebook.Framework; f == "" || f == catalog.NoFramework || len(machines) < len(c.inv.Hosts) {
		return
	}
	seen := map[string]*facts.Host{}
	var first string
	for _, m := range machines {
		seen[m.ID()] = m.Facts
		if first == "" && len(machine.Cards(c.inv, m.Facts)) > 0 {
			first = m.ID()
		}
	}
	var refused *machine.Refused
	if _, err := machine.ChooseNotebook(c.inv, seen); errors.As(err, &refused) {
		c.problem(first, refusals[refused.Kind], "%s", refused.Detail)
	}
}

// instances refuses hosts on which the device plugin would offer nothing: migStrategy single requires that all GPUs
// have MIG instances of one profile, or that none has any. Source: k8s-device-plugin 0.20.0, internal/rm/device_map.go.
func (c *checker) instances(m Machine) {
	if c.inv.GPU.MIGStrategy != inventory.MIGSingle {
		return
	}
	cut := 0
	profiles := map[string]bool{}
	for _, g := range m.Facts.NVIDIA.GPUs {
		if !g.MIG {
			continue
		}
		cut++
		if len(g.Instances) == 0 {
			c.problem(m.ID(), reason.GPUMIGMismatch, "GPU %s (%s) is in MIG mode and has no instances", g.Address, g.Name)
		}
		for _, i := range g.Instances {
			profiles[i.Profile] = true
		}
	}
	if all := len(m.Facts.NVIDIA.GPUs); cut > 0 && cut < all {
		c.problem(m.ID(), reason.GPUMIGMismatch, "%d of %d GPUs are in MIG mode: `migStrategy: single` wants all or none", cut, all)
	}
	if len(profiles) > 1 {
		c.problem(m.ID(), reason.GPUMIGMismatch, "there are instances of the profiles %s: `migStrategy: single` wants one", strings.Join(slices.Sorted(maps.Keys(profiles)), ", "))
	}
}

// refusals are the reasons for a driver, toolkit or framework that is refused.
var refusals = map[machine.Refusal]reason.ID{
	machine.NoSuchDriver:   reason.GPUUnsupported,
	machine.Impossible:     reason.GPUDriverImpossible,
	machine.Unsigned:       reason.GPUSecureBootUnsigned,
	machine.DriverMissing:  reason.GPUDriverMissing,
	machine.DriverForeign:  reason.GPUDriverForeign,
	machine.NoModules:      reason.GPUNoModules,
	machine.NoFabric:       reason.GPUFabricMissing,
	machine.CUDAImpossible: reason.GPUCUDAImpossible,
	machine.NoNotebook:     reason.NotebookNoFramework,
}
