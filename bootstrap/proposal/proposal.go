// Package proposal makes an inventory from the facts of hosts: it chooses the control plane, node names and addresses,
// and adds notes for people. It is pure.
package proposal

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/preflight"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// Observed is a host that kgpu init connected to, or tried to.
type Observed struct {
	inventory.Target
	Facts    *facts.Host   // nil if it was not reached; Left says why
	Skew     time.Duration // of the host's clock
	Excluded *reason.Error // why the host is excluded from the cluster; nil if it is not

	HostKey     string // to pin, as in authorized_keys; empty if known_hosts has it
	HostKeyNote string // how the key was verified
}

// Options are the parts of an inventory that hosts cannot tell.
type Options struct {
	Path    string // of the future file; relative paths in it start from its folder
	Cluster string
	Version string // minor version of Kubernetes
	Modern  bool   // flannel and containerd, whatever the hosts support
	SSH     inventory.DraftSSH
	Decode  inventory.Options
}

// Proposal is a written inventory, with what it was made from.
type Proposal struct {
	Text      []byte
	Inventory *inventory.Inventory
	Machines  []preflight.Machine // the hosts of the inventory
	Excluded  []*reason.Error     // the excluded hosts, which are comments in the file
	Problems  []*reason.Error     // preflight's findings, which are comments in the file too
}

// Make proposes an inventory. At least one host must not be excluded. The error says that the draft is no valid
// inventory.
func Make(seen []Observed, o Options) (*Proposal, error) {
	all, ssh := commonSSH(withoutDuplicates(seen), o.SSH)
	p := &Proposal{}
	var in []*candidate
	var excluded []inventory.DraftHost
	for _, s := range all {
		if s.Excluded == nil {
			in = append(in, &candidate{Observed: s})
			continue
		}
		p.Excluded = append(p.Excluded, s.Excluded)
		excluded = append(excluded, excludedEntry(s))
	}
	plane := chooseControlPlane(in)
	in = first(in, plane)
	giveNames(in)
	givePrivateAddresses(in)
	draft := inventory.Draft{Head: head(len(in)), Cluster: o.Cluster, Version: o.Version, SSH: ssh}
	draft.PodCIDR, draft.ServiceCIDR, draft.RangesNote = chooseRanges(in)
	for _, c := range in {
		draft.Hosts = append(draft.Hosts, c.entry(c == plane))
	}
	// The inventory is made twice: preflight needs it, and it has preflight's findings as comments.
	check := func(pair pair, why string) error {
		chosen(&draft, pair, why, plane.Facts.Cluster)
		var err error
		if p.Inventory, err = inventory.Decode(o.Path, draft.Text(), o.Decode); err != nil {
			return err
		}
		p.Machines = nil
		for i, h := range p.Inventory.Hosts {
			p.Machines = append(p.Machines, preflight.Machine{Machine: machine.Machine{Host: h, Facts: in[i].Facts, Skew: in[i].Skew}})
		}
		p.Problems = preflight.Check(p.Inventory, p.Machines, nil)
		return nil
	}
	pair, why, err := choosePair(in, o.Modern, func(pair pair) ([]*reason.Error, error) {
		err := check(pair, "")
		return p.Problems, err
	})
	if err != nil {
		return nil, err
	}
	if err := check(pair, why); err != nil {
		return nil, err
	}
	if len(p.Problems) > 0 {
		draft.Head = append(draft.Head, "`kgpu up` begins when each WARNING is put right, or ignored by its name: `preflight: {ignore: [REASON]}`.")
	}
	for i, m := range p.Machines {
		draft.Hosts[i].Notes = append(draft.Hosts[i].Notes, warnings(m.ID(), p.Problems)...)
	}
	draft.Hosts = append(draft.Hosts, excluded...)
	p.Text = draft.Text()
	p.Inventory, err = inventory.Decode(o.Path, p.Text, o.Decode)
	return p, err
}

func head(n int) []string {
	return []string{
		fmt.Sprintf("Written by `kgpu init`, out of what it found on %s. It is yours: read it, and change what you like.", plural.Of(n, "host")),
		"`kgpu plan` says what would be done on each host, and changes nothing; `kgpu up` makes the cluster.",
	}
}

// commonSSH moves SSH settings that all hosts share to the section for all hosts.
func commonSSH(seen []Observed, ssh inventory.DraftSSH) ([]Observed, inventory.DraftSSH) {
	if ssh.User == "" {
		ssh.User = commonValue(seen, func(s Observed) string { return s.User })
	}
	ssh.Port = commonValue(seen, func(s Observed) int { return s.Port })
	for i := range seen {
		if seen[i].User == ssh.User {
			seen[i].User = ""
		}
		if seen[i].Port == ssh.Port {
			seen[i].Port = 0
		}
	}
	return seen, ssh
}

// commonValue is the value that all have; zero if they differ.
func commonValue[T comparable](seen []Observed, of func(Observed) T) T {
	for _, s := range seen {
		if of(s) != of(seen[0]) {
			var none T
			return none
		}
	}
	return of(seen[0])
}

// candidate is a host that will be in the cluster, and what was decided about it.
type candidate struct {
	Observed
	name, nameNote string
	private        netip.Addr // its private address, if it was reached by another one
	privateNote    string
	why            string // why it is the control plane
}

// first moves one host to the beginning of the list.
func first(list []*candidate, one *candidate) []*candidate {
	others := slices.DeleteFunc(slices.Clone(list), func(c *candidate) bool { return c == one })
	return slices.Insert(others, 0, one)
}

func (c *candidate) entry(plane bool) inventory.DraftHost {
	h := inventory.DraftHost{
		Address: c.Address, Name: c.name, PrivateAddress: c.private, PrivateNote: c.privateNote, Role: inventory.Worker,
		User: c.User, Port: c.Port, HostKey: c.HostKey, HostKeyNote: c.HostKeyNote,
		Notes: []string{c.note()},
	}
	if plane {
		h.Role = inventory.ControlPlane
		h.Notes = append(h.Notes, "The control plane, because "+c.why+".")
		h.Notes = append(h.Notes, c.workload(c.why == onlyHost)...)
	}
	if c.nameNote != "" {
		h.Notes = append(h.Notes, c.nameNote)
	}
	h.Notes = append(h.Notes, c.remarks()...)
	return h
}

// workload notes what runs on a control plane that could be a worker as well.
func (c *candidate) workload(alone bool) []string {
	if alone {
		return []string{
			"There are no workers, so pods of yours run here, too. To keep them off, also once there are workers:",
			"  taints: [node-role.kubernetes.io/control-plane:NoSchedule]",
		}
	}
	if len(cards(c.Facts)) == 0 {
		return nil
	}
	return []string{
		"Pods of yours do not run on a control plane. This lets them, once the cluster is up:",
		fmt.Sprintf("  kubectl taint nodes %s node-role.kubernetes.io/control-plane-", c.name),
	}
}

// excludedEntry is the entry of an excluded host, which is a comment.
func excludedEntry(s Observed) inventory.DraftHost {
	return inventory.DraftHost{
		Address: s.Address, Role: inventory.Worker, User: s.User, Port: s.Port, Left: true,
		Notes: []string{"Left out: " + withoutHost(s.Excluded), "  → " + s.Excluded.AdviceLine()},
	}
}

// warnings formats the problems of a host for the file, those with the same advice together.
func warnings(host string, problems []*reason.Error) []string {
	var out []string
	last := ""
	for _, e := range problems {
		if e.Host != host {
			continue
		}
		advice := "  → " + e.AdviceLine()
		if advice == last {
			out = out[:len(out)-1]
		}
		out = append(out, "WARNING: "+withoutHost(e), advice)
		last = advice
	}
	return out
}

// withoutHost is an error's text without its host, which stands beside it.
func withoutHost(e *reason.Error) string {
	without := *e
	without.Host = ""
	if without.Doing == preflight.Doing {
		without.Doing = ""
	}
	return without.Error()
}
