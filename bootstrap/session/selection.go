package session

import (
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/nearest"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// Selected are the hosts that a story looks at: all, or those of the limit and the control plane.
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

// Narrow limits the story to the named hosts (none: all) and the control plane: the IDs of those that were named, and all that
// it looks at.
func (o *Options) Narrow(names []string) (ids []string, hosts []inventory.Host, err error) {
	if ids, err = o.Named(names); err != nil {
		return nil, nil, err
	}
	o.Limit = ids
	hosts, err = o.Selected()
	return ids, hosts, err
}

// Named turns names or addresses of hosts, or ranges of these, into host IDs.
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
		if name == "" { // of a variable that a script forgot; hosts without a name have none
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

// Expand writes ranges such as 10.0.0.[11-14] out.
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
