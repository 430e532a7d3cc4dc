package preflight

import (
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// distribution refuses hosts with another Kubernetes distribution. kgpu supports clusters made by kubeadm only.
func (c *checker) distribution(m Machine) {
	for _, d := range machine.Distributions(m.Facts) {
		if d.Installed {
			found := d.Name
			if len(d.Signs) > 0 {
				found += ": " + strings.Join(d.Signs, ", ")
			}
			c.problemWithAdvice(m.ID(), reason.HostForeignCluster, "where nobody needs it: "+d.RemovedBy+", then run the same command again; kgpu takes nothing over", "found %s", found)
		}
	}
}

// members refuses hosts by their membership, see machine.Verdict.
func (c *checker) members(machines []Machine) {
	c.set.Adopt = slices.ContainsFunc(machines, func(m Machine) bool { return m.Adopt })
	verdicts := c.set.Verdicts()
	for _, m := range machines {
		if v := verdicts[m.ID()]; v.Refused != "" {
			c.problemWithAdvice(m.ID(), v.Refused, v.Advice, "%s", v.Detail)
		}
	}
}

// staleCNI refuses hosts with files of a former pod network, or with CNI configurations that take precedence over the
// inventory's network.
func (c *checker) staleCNI(m Machine) {
	l := machine.StaleCNIOf(c.inv.Network, m.Facts)
	if len(l.Unknown) > 0 {
		c.problem(m.ID(), reason.HostPodNetworkLeft, "runtimes would take the pod network of %s before %s", strings.Join(l.Unknown, ", "), c.inv.Network)
	}
	if len(l.Known) > 0 && !m.Adopt {
		c.problem(m.ID(), reason.HostPodNetworkLeft, "a former pod network left %s", strings.Join(l.Known, ", "))
	}
}
