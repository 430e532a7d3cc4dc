package plan

import (
	"slices"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// onMembers is what is planned for a cluster that is up: both workers have cards, and kgpu can take it back.
func onMembers(name string, harm func(map[string]*facts.Host), plan planner) scenario {
	c := scenario{name: name, before: threeHosts + containerd, facts: twoWorkers, inventory: threeHosts + containerd}
	c.limit, c.plan = 1, plan
	c.harm = func(_ *testing.T, seen map[string]*facts.Host) {
		for _, f := range seen {
			f.Ledger = 7
		}
		harm(seen)
	}
	return c
}

func unharmed(map[string]*facts.Host) {}

func resetting(only ...string) planner {
	return func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		return Reset(inv, seen, only)
	}
}

func removing(force bool, ids ...string) planner {
	return func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		g, _, err := Remove(inv, seen, ids, force)
		return g, err
	}
}

func mending(mends ...Mend) planner {
	return func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		return Repair(inv, seen, mends)
	}
}

// dayTwo is what people do with a cluster that is up, but for changing what it is made of.
var dayTwo = []scenario{
	addedWorker, adopted,
	onMembers("reset", unharmed, resetting()),
	onMembers("reset of a worker", unharmed, resetting("w2")),
	onMembers("remove-worker", unharmed, removing(false, "w2", "w1")),
	onMembers("remove-worker by force", unready("w2"), removing(true, "w2")),
	onMembers("repair", unharmed, mending(Mend{
		Host: "w1", Why: "X", Units: []string{"kubelet.service"}, Packages: []string{"kubelet"}, Module: true, Plugin: true,
	})),
	onMembers("repair by a reboot", unharmed, mending(
		Mend{Host: "w1", Why: "X", Reboot: true, Units: []string{"kubelet.service"}},
		Mend{Host: "w2", Why: "GPU_HUNG", Reboot: true, Force: true},
	)),
	onMembers("watch", unharmed, func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		return Watch(inv, seen, nil, []byte("#!/bin/sh\n"))
	}),
	onMembers("user", unharmed, func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		two := 2
		user := User{Name: "joe", Namespace: "lab", Role: "edit", GPUs: &two}
		user.Request, user.Lifetime = []byte("THE-REQUEST"), 48*time.Hour
		return CreateUser(inv, seen, user)
	}),
	onMembers("user who goes", unharmed, func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		return DeleteUser(inv, seen, "joe")
	}),
	onMembers("dashboard", unharmed, func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		return Dashboard(inv, seen, true)
	}),
	onMembers("dashboard that goes", unharmed, RemoveDashboard),
	onMembers("proof", unharmed, func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		return Smoke(inv, seen, "THE-JOBS", "you asked for it")
	}),
	onMembers("proof that was had", unharmed, Proven),
	onMembers("certificates", unharmed, RenewCertificates),
	onMembers("certificates that end, and a kubelet that slept", func(seen map[string]*facts.Host) {
		aging(9)(seen)
		asleep("w2")(seen)
	}, Up),
	onMembers("a node that somebody made anew", otherUID, Up),
	onMembers("a kubelet that somebody stopped", func(seen map[string]*facts.Host) {
		seen["cp1"].Units["kubelet.service"] = facts.Unit{Active: "inactive", Enabled: "enabled"}
	}, Up),
	onMembers("a cluster that was made by hand, and is not taken over", handMade, Up),
	onMembers("leftovers of a former network", func(seen map[string]*facts.Host) {
		away(seen["w1"])
		seen["cp1"].Cluster.Nodes, seen["w1"].PodLinks = seen["cp1"].Cluster.Nodes[:1], []string{"cni0"}
		delete(seen, "w2")
	}, UpAdopting),
	{name: "backups", before: threeHosts + containerd, facts: twoWorkers, inventory: threeHosts + containerd + "backup: {schedule: \"02:30\", to: /mnt/backups}\n"},
	{name: "backups that go", before: threeHosts + containerd + "backup: {schedule: daily}\n", facts: twoWorkers, inventory: threeHosts + containerd},
	{name: "notebook that goes", before: threeHosts + containerd, facts: twoWorkers,
		inventory: threeHosts + containerd + "notebook: {framework: none}\n"},
}

// TestDayTwo writes down what becomes of a cluster that is up.
func TestDayTwo(t *testing.T) { writeTogether(t, "day-two", slices.Concat(dayTwo, kept)) }
