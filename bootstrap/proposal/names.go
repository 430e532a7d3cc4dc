package proposal

import (
	"fmt"
	"regexp"
	"strings"

	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/printable"
)

// maxName is what the label kubernetes.io/hostname takes.
const maxName = 63

var unfit = regexp.MustCompile(`[^a-z0-9.-]+`)

// giveNames gives every host a name that no other has: that of the machine, or of the node that it is, where it can be one.
func giveNames(in []*candidate) {
	wanted := map[string]int{}
	for _, c := range in {
		wanted[ownName(c)]++
	}
	taken := map[string]bool{}
	for _, c := range in {
		if own := ownName(c); ValidName(own) && wanted[own] == 1 {
			c.name, taken[own] = own, true
		}
	}
	for _, c := range in {
		if c.name != "" {
			continue
		}
		own := ownName(c)
		base := tidy(own)
		c.nameNote = fmt.Sprintf("The machine calls itself %q, which cannot be the name of a node: this one was made up.", printable.Short(own, 80))
		if ValidName(own) {
			c.nameNote = fmt.Sprintf("Other hosts call themselves %s, too: the number was added.", own)
		}
		for n := 1; c.name == ""; n++ {
			name := fmt.Sprintf("%s-%d", base, n)
			if n == 1 && !ValidName(own) && ValidName(base) {
				name = base
			}
			if !taken[name] && wanted[name] == 0 {
				c.name, taken[name] = name, true
			}
		}
	}
}

// ownName is what the machine is called.
func ownName(c *candidate) string {
	if k := c.Facts.Kubelet; k != nil && ValidName(k.NodeName) {
		return k.NodeName
	}
	return strings.ToLower(c.Facts.Hostname)
}

// ValidName tells whether kgpu writes the name into an inventory: a node can have it, and its label, too.
func ValidName(name string) bool { return len(name) <= maxName && machine.ValidNodeName(name) }

// tidy is the name that a machine nearly has; "node" where nothing of it can be one. There is room for a number behind it.
func tidy(name string) string {
	name = unfit.ReplaceAllString(name, "-")
	if len(name) > maxName-5 {
		name = name[:maxName-5]
	}
	if name = strings.Trim(name, ".-"); !ValidName(name) {
		return "node"
	}
	return name
}
