package inventory

import (
	"fmt"
	"maps"
	"net/netip"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/text/plural"
)

// entry is one entry of the file's list of hosts: one machine, or several by a range.
type entry struct {
	addresses, names []string
	private          []netip.Addr
	host             Host
}

func hostKeys() keys[entry] {
	return keys[entry]{
		"address":        several(func(e *entry) *[]string { return &e.addresses }, address),
		"name":           several(func(e *entry) *[]string { return &e.names }, nodeName),
		"privateAddress": several(func(e *entry) *[]netip.Addr { return &e.private }, ipAddress),
		"role":           value(func(e *entry) *Role { return &e.host.Role }, role),
		"labels":         labels,
		"taints":         values(func(e *entry) *[]Taint { return &e.host.Taints }, taint),
		"ssh":            func(d *decoder, e *entry, n *yaml.Node, path string) { d.ssh(&e.host.SSH, n, path) },
	}
}

func role(s string) (Role, error) {
	if s == "master" || s == "controlplane" {
		return "", hint{fmt.Sprintf("%q is not one of %s, %s", s, ControlPlane, Worker), string(ControlPlane)}
	}
	return oneOf(ControlPlane, Worker)(s)
}

// several is a key whose value may be a range; each of what it stands for is parsed.
func several[V any](field func(*entry) *[]V, parse func(string) (V, error)) setter[entry] {
	return func(d *decoder, e *entry, n *yaml.Node, path string) {
		if n.Kind == yaml.SequenceNode && n.Style&yaml.FlowStyle != 0 {
			d.fail(n, path, "must be a single value: write a range that begins with a bracket in quotes")
			return
		}
		s, ok := d.text(n, path)
		if !ok {
			return
		}
		texts, err := ExpandRange(s)
		if err != nil {
			d.failHint(n, path, err)
			return
		}
		list := make([]V, 0, len(texts))
		for _, t := range texts {
			v, err := parse(t)
			if err != nil {
				d.failHint(n, path, err)
				return
			}
			list = append(list, v)
		}
		*field(e) = list
	}
}

func labels(d *decoder, e *entry, n *yaml.Node, path string) {
	e.host.Labels = map[string]string{}
	for key, value := range d.pairs(n, path) {
		at := join(path, key.Value)
		if err := checkLabelKey(key.Value); err != nil {
			d.failHint(key, path, err)
		}
		s, ok := d.text(value, at)
		if !ok {
			continue
		}
		s, err := labelValue(s)
		if err != nil {
			d.failHint(value, at, err)
		}
		e.host.Labels[key.Value] = s
	}
}

// hosts decodes the hosts, once everything they take over is known.
func (d *decoder) hosts(f *file) {
	for i, n := range f.hostNodes {
		path := fmt.Sprintf("hosts[%d]", i)
		before := len(d.problems)
		e := &entry{host: Host{Role: Worker, SSH: f.ssh, Line: n.Line, path: path}}
		mapping(d, n, path, hostKeys(), e)
		if at, ok := d.nodes[path+".address"]; ok {
			e.host.Line = at.Line
		} else if n.Kind == yaml.MappingNode || isNull(n) {
			d.fail(n, path, "address is missing")
		}
		d.sameSize(e, path+".name", len(e.names))
		d.sameSize(e, path+".privateAddress", len(e.private))
		if len(f.Hosts)+len(e.addresses) > maxHosts {
			d.fail(n, path, "the inventory %s", errTooMany)
		}
		if len(d.problems) > before {
			f.broken = true
			continue
		}
		f.add(e, i)
	}
}

// sameSize reports a range that does not give each address its own value.
func (d *decoder) sameSize(e *entry, path string, size int) {
	if n, ok := d.nodes[path]; ok && size > 0 && len(e.addresses) > 0 && size != len(e.addresses) {
		d.fail(n, path, "names %s, the address names %s: each needs its own", plural.Of(size, "host"), plural.Of(len(e.addresses), "host"))
	}
}

// add appends the hosts that an entry stands for.
func (f *file) add(e *entry, index int) {
	for i, address := range e.addresses {
		h := e.host
		h.Address = address
		h.Labels = maps.Clone(h.Labels)
		if len(e.names) > 0 {
			h.Name = e.names[i]
		}
		if len(e.private) > 0 {
			h.PrivateAddress = e.private[i]
		}
		f.Hosts = append(f.Hosts, h)
		f.entries = append(f.entries, index)
	}
}
