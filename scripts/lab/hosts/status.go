package hosts

import (
	"fmt"
	"net/netip"

	"kgpu.dev/kgpu/scripts/lab/cgroup"
)

// Status prints a line for the lab's internet and one for each host.
func (l *Lab) Status() error {
	state := "off"
	if l.front().Alive() {
		state = "up"
	}
	if _, err := fmt.Fprintf(l.Out, "%-10s %-13s %s\n", "internet", l.Gateway(), state); err != nil {
		return err
	}
	all, err := l.Hosts()
	if err != nil {
		return err
	}
	for _, h := range all {
		if _, err := fmt.Fprintln(l.Out, h.line()); err != nil {
			return err
		}
	}
	return nil
}

// line is the host's line in Status: name, address, up or off, base kind, and
// what is unusual.
func (h *Host) line() string {
	state := "off"
	if _, up := h.running(); up {
		state = "up"
	}
	cable := h.Cables()[0]
	line := fmt.Sprintf("%-10s %-13s %-4s %s", h.Name, cable.Address, state, h.Base)
	if h.lab.IsCut(cable) {
		line += " cut"
	}
	return line
}

// Address is the host's address.
func (h *Host) Address() netip.Addr { return h.Cables()[0].Address }

// removeGroups removes the lab's control groups, and the one above when it was
// the last lab.
func (l *Lab) removeGroups() error {
	if l.Taken() {
		return nil
	}
	lab, err := l.group()
	if err != nil {
		return err
	}
	if err := lab.Clear(); err != nil {
		return err
	}
	top, err := cgroup.New(groups)
	if err != nil {
		return err
	}
	top.RemoveIfEmpty()
	return nil
}
