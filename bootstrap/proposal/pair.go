package proposal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// pair is a pod network with a container runtime.
type pair struct {
	network inventory.Network
	runtime inventory.Runtime
}

var (
	defaultPair = pair{inventory.Weave, inventory.Docker} // the inventory's defaults
	modernPair  = pair{inventory.Flannel, inventory.Containerd}
)

// choosePair returns the pair for the hosts, and why. wanted means that the user asked for the modern one. problems
// returns preflight's findings for a pair.
func choosePair(in []*candidate, wanted bool, problems func(pair) ([]*reason.Error, error)) (pair, string, error) {
	if wanted {
		return modernPair, "As `kgpu init --modern` chose: kgpu's defaults are weave and docker.", nil
	}
	ofUsual, err := problems(defaultPair)
	if err != nil {
		return defaultPair, "", err
	}
	ofModern, err := problems(modernPair)
	if err != nil {
		return defaultPair, "", err
	}
	against := findings{}
	against.addUnique(ofUsual, ofModern)
	for _, c := range in {
		for _, module := range []string{"openvswitch", "vxlan"} {
			if !c.Facts.Modules[module].Loads() {
				against.add(c.name, fmt.Sprintf("the kernel does not load %s, without which weave is slow", module))
			}
		}
	}
	switch others := (findings{}); {
	case len(against.what) == 0:
		return defaultPair, "kgpu's defaults: every host has what weave needs. `kgpu init --modern` takes flannel and containerd.", nil
	case others.addUnique(ofModern, ofUsual):
		return defaultPair, fmt.Sprintf("kgpu's defaults, although %s. Flannel and containerd are no better off: %s.", against, others), nil
	}
	return modernPair, fmt.Sprintf("Not kgpu's defaults, weave and docker: %s.", against), nil
}

// findings are problems of a pair, with the hosts that have them.
type findings struct {
	what  []string
	hosts map[string][]string
}

func (f *findings) add(host, what string) {
	if f.hosts == nil {
		f.hosts = map[string][]string{}
	}
	if len(f.hosts[what]) == 0 {
		f.what = append(f.what, what)
	}
	f.hosts[what] = append(f.hosts[what], host)
}

// addUnique adds the problems that the other pair does not have, and reports whether there are any.
func (f *findings) addUnique(problems, others []*reason.Error) bool {
	for _, e := range problems {
		if !slices.ContainsFunc(others, func(o *reason.Error) bool { return o.Host == e.Host && o.ID == e.ID && o.Detail == e.Detail }) {
			f.add(e.Host, e.Detail)
		}
	}
	return len(f.what) > 0
}

// maxHostsNamed is how many hosts a reason lists.
const maxHostsNamed = 4

func (f findings) String() string {
	out := slices.Clone(f.what)
	for i, what := range out {
		hosts := f.hosts[what]
		if n := len(hosts) - maxHostsNamed; n > 1 {
			hosts = append(slices.Clone(hosts[:maxHostsNamed]), plural.Of(n, "more host"))
		}
		out[i] = fmt.Sprintf("%s (%s)", what, strings.Join(hosts, ", "))
	}
	return strings.Join(out, "; ")
}

// chosen writes the pair, or that of the existing cluster, into the draft.
func chosen(draft *inventory.Draft, p pair, why string, c *facts.Cluster) {
	const there = "of the cluster that is there."
	draft.Runtime, draft.Network = runningPair(c)
	switch {
	case draft.Network != "" && draft.Runtime != "":
		why = "Network and runtime " + there
	case draft.Network != "":
		why = "The network is that " + there + " " + why
	case draft.Runtime != "":
		why = "The runtime is that " + there + " " + why
	}
	draft.Network, draft.Runtime, draft.Why = cmp.Or(draft.Network, p.network), cmp.Or(draft.Runtime, p.runtime), why
}

// runningPair returns the runtime and the network of an existing cluster, because the defaults could change its runtime and
// add a second pod network. Unknown ones are empty.
func runningPair(c *facts.Cluster) (inventory.Runtime, inventory.Network) {
	var runtime inventory.Runtime
	var network inventory.Network
	if c == nil {
		return runtime, network
	}
	for i := range c.Nodes {
		runtime = cmp.Or(machine.RuntimeOf(&c.Nodes[i]), runtime)
	}
	for _, n := range []inventory.Network{inventory.Weave, inventory.Flannel, inventory.Calico} {
		if _, there := c.Workloads[machine.NetworkWorkload[n]]; there {
			network = n
		}
	}
	return runtime, network
}
