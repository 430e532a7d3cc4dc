package proposal

import (
	"fmt"
	"regexp"
	"strings"

	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// maxName is the longest value of the label kubernetes.io/hostname.
const maxName = 63

var unfit = regexp.MustCompile(`[^a-z0-9.-]+`)

// giveNames gives every host a unique node name: that of its machine or of its existing node, if it is valid.
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
		base := validName(own)
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

// ownName is the machine's own name: that of its node, or its host name.
func ownName(c *candidate) string {
	if k := c.Facts.Kubelet; k != nil && ValidName(k.NodeName) {
		return k.NodeName
	}
	return strings.ToLower(c.Facts.Hostname)
}

// ValidName reports whether kgpu writes the name into an inventory: it must be valid for a node and for its label.
func ValidName(name string) bool { return len(name) <= maxName && machine.ValidNodeName(name) }

// validName turns a host name into a valid node name, "node" if nothing of it is valid. It leaves room for a number.
func validName(name string) string {
	name = unfit.ReplaceAllString(name, "-")
	if len(name) > maxName-5 {
		name = name[:maxName-5]
	}
	if name = strings.Trim(name, ".-"); !ValidName(name) {
		return "node"
	}
	return name
}
