// Package preflight checks hosts before anything on them is changed. It reports all problems of all hosts at once, each
// with a reason that can be ignored. It is pure.
package preflight

import (
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Machine is a host with what the checks need to know of it.
type Machine struct {
	machine.Machine
	// RequiredEndpoints are the endpoints that the host must reach, and Reach the results of its attempts.
	RequiredEndpoints []machine.RequiredEndpoint
	Reach             map[facts.Endpoint]facts.Reach
	// Available is what its package repository has of Kubernetes; nil if it was not asked.
	Available *facts.AvailableVersions
	// VirtualIP is what it found of the cluster's virtual address; nil if it was not asked.
	VirtualIP *facts.VirtualIP
	// Adopt means that the operator lets kgpu adopt memberships that were made by hand.
	Adopt bool
}

// Doing is the activity in the errors of Check.
const Doing = "preflight"

// Check returns the problems of all machines, in the inventory's order, without those whose reasons are in ignore.
func Check(inv *inventory.Inventory, machines []Machine, ignore []string) []*reason.Error {
	seen := map[string]*facts.Host{}
	for _, m := range machines {
		seen[m.ID()] = m.Facts
	}
	c := &checker{inv: inv, ignore: ignore, set: machine.SetOf(inv, seen)}
	for _, m := range machines {
		if fast, _ := machine.WeaveDatapath(m.Facts.Cluster); fast && m.IsControlPlane() {
			c.fastWeave = true
		}
	}
	for _, m := range machines {
		for _, check := range hostChecks {
			check(c, m)
		}
	}
	c.duplicates(machines)
	c.mtu(machines)
	c.members(machines)
	c.notebook(machines)
	c.virtualIP(machines)
	return c.problems
}

// hostChecks are the checks of single hosts.
var hostChecks = []func(*checker, Machine){
	(*checker).system,
	(*checker).size,
	(*checker).disks,
	(*checker).swap,
	(*checker).clock,
	(*checker).name,
	(*checker).address,
	(*checker).resolver,
	(*checker).ports,
	(*checker).packages,
	(*checker).firewall,
	(*checker).distribution,
	(*checker).staleCNI,
	(*checker).modules,
	(*checker).ranges,
	(*checker).reach,
	(*checker).version,
	(*checker).cards,
	(*checker).cuda,
	(*checker).compatibility,
}

type checker struct {
	inv       *inventory.Inventory
	set       *machine.Set
	fastWeave bool // the pod network is weave on the fast datapath
	ignore    []string
	problems  []*reason.Error
}

func (c *checker) problem(host string, id reason.ID, format string, args ...any) {
	c.problemWithAdvice(host, id, "", format, args...)
}

// problemWithAdvice adds a problem with its own advice instead of the reason's.
func (c *checker) problemWithAdvice(host string, id reason.ID, advice, format string, args ...any) {
	if slices.Contains(c.ignore, string(id)) {
		return
	}
	c.problems = append(c.problems, &reason.Error{ID: id, Host: host, Doing: Doing, Detail: fmt.Sprintf(format, args...), Advice: advice})
}

// nodeAddress is the machine's address in the cluster; empty if it has none.
func nodeAddress(m Machine) string {
	if a := m.NodeAddress(); a.IsValid() {
		return a.String()
	}
	return ""
}

// duplicates refuses machines that share what must be unique.
func (c *checker) duplicates(machines []Machine) {
	for _, check := range []struct {
		id   reason.ID
		what string
		of   func(Machine) string
	}{
		{reason.HostNameDuplicate, "node name", Machine.NodeName},
		{reason.HostAddressDuplicate, "address", nodeAddress},
		{reason.HostMachineIDDup, "machine-id", func(m Machine) string { return m.Facts.MachineID }},
		{reason.HostProductUUIDDup, "product UUID", func(m Machine) string { return m.Facts.ProductUUID }},
	} {
		first := map[string]string{}
		for _, m := range machines {
			value := check.of(m)
			if value == "" {
				continue
			}
			if other, ok := first[value]; ok {
				c.problem(m.ID(), check.id, "same %s as %s: %s", check.what, other, value)
				continue
			}
			first[value] = m.ID()
		}
	}
}
