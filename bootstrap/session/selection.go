package session

import (
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/nearest"
	"kgpu.dev/kgpu/inventory"
)

// Selected returns the hosts of a story: those of Limit and the control planes, or all.
func (o Options) Selected() ([]inventory.Host, error) {
	if len(o.Limit) == 0 {
		return o.Inventory.Hosts, nil
	}
	named, err := o.Named(o.Limit)
	if err != nil {
		return nil, err
	}
	var out []inventory.Host
	for _, h := range o.Inventory.Hosts {
		if h.IsControlPlane() || slices.Contains(named, h.ID()) {
			out = append(out, h)
		}
	}
	return out, nil
}

// Narrow limits the story to the named hosts and the control planes. It returns the IDs of the named ones, and all
// hosts of the story. Without names it is all hosts.
func (o *Options) Narrow(names []string) (ids []string, hosts []inventory.Host, err error) {
	if ids, err = o.Named(names); err != nil {
		return nil, nil, err
	}
	o.Limit = ids
	hosts, err = o.Selected()
	return ids, hosts, err
}

// Named resolves names, addresses and ranges of these to host IDs. An unknown one is a usage error.
func (o Options) Named(names []string) ([]string, error) {
	names, err := Expand(names)
	if err != nil {
		return nil, err
	}
	var ids, known, words []string
	for _, h := range o.Inventory.Hosts {
		known, words = append(known, h.ID()), append(words, h.ID(), h.Address)
	}
	for _, name := range names {
		if name == "" { // an unset variable in a script; hosts without a name have an empty one
			return nil, &reason.UsageError{Message: "a host's name is empty"}
		}
		i := slices.IndexFunc(o.Inventory.Hosts, func(h inventory.Host) bool { return name == h.Name || name == h.Address })
		if i < 0 {
			return nil, reason.Usagef("no host %q in %s.%s It has %s", name, o.Inventory.Path, nearest.Hint(name, words), strings.Join(known, ", "))
		}
		ids = append(ids, o.Inventory.Hosts[i].ID())
	}
	return ids, nil
}

// Expand expands ranges such as 10.0.0.[11-14].
func Expand(addresses []string) ([]string, error) {
	var out []string
	for _, a := range addresses {
		list, err := inventory.ExpandRange(a)
		if err != nil {
			return nil, &reason.UsageError{Message: err.Error()}
		}
		out = append(out, list...)
	}
	return out, nil
}
