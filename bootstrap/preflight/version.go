package preflight

import (
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// maxListed is how many versions of a repository a message lists, newest first.
const maxListed = 4

// version refuses hosts whose repository lacks the patch that they are to get.
func (c *checker) version(m Machine) {
	want := c.inv.Kubernetes
	if m.Available == nil || len(m.Available.Versions) == 0 || slices.Contains(m.Available.Versions, want.Version) || slices.Contains(c.ignore, string(reason.PackageMissing)) {
		return
	}
	var there []string
	for _, v := range m.Available.Versions[:min(maxListed, len(m.Available.Versions))] {
		there = append(there, v.String())
	}
	e := &reason.Error{ID: reason.PackageMissing, Host: m.ID(), Doing: Doing, Detail: fmt.Sprintf("its repository does not have kubelet, kubeadm and kubectl %s; the newest that it has are %s", want.Version, strings.Join(there, ", "))}
	switch {
	case !c.set.Versions.Running.IsZero():
		e.Advice = "a new node gets the version of its cluster: let the mirror have " + want.Version.String() + ", or take it out of `repositories:`"
	case want.Pin == inventory.PinnedExact:
		e.Advice = fmt.Sprintf("%s: take one of these, or %s for the newest patch that all hosts can have", c.inv.At("kubernetes.version"), want.Version.MinorString())
	default:
		e.Advice = "all hosts get one version: let the mirrors of all have the same ones"
	}
	c.problems = append(c.problems, e)
}
