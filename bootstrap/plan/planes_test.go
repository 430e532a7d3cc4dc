package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

const fourHosts = `cluster: lab
runtime: containerd
network: flannel
kubernetes: {version: 1.36.3, virtualIP: 10.0.0.100}
hosts:
  - {address: 10.0.0.10, name: cp2, role: control-plane}
  - {address: 10.0.0.11, name: w1}
  - {address: 10.0.0.12, name: cp1, role: control-plane}
  - {address: 10.0.0.13, name: cp3, role: control-plane}
`

// onePlane is the cluster before the others came.
var onePlane = strings.Join(slices.DeleteFunc(strings.Split(fourHosts, "\n"), func(line string) bool {
	return strings.Contains(line, "cp1") || strings.Contains(line, "cp3")
}), "\n")

// withoutAddress is that cluster with one control plane and no virtual address.
var withoutAddress = strings.Replace(onePlane, ", virtualIP: 10.0.0.100", "", 1)

// severalPlanes are clusters with several control planes.
var severalPlanes = []scenario{
	{name: "planes", inventory: fourHosts},
	{name: "planes-docker", inventory: strings.Replace(fourHosts, "runtime: containerd\nnetwork: flannel\n", "security: {encryptSecrets: true}\n", 1)},
	{name: "planes-balancer", inventory: strings.Replace(fourHosts, "virtualIP: 10.0.0.100", "controlPlaneEndpoint: k8s.example.com:6443", 1)},
	{name: "planes-alone", inventory: strings.Replace(fourHosts, "  - {address: 10.0.0.11, name: w1}\n", "", 1)},
	{name: "planes-grow", before: onePlane, inventory: fourHosts, harm: func(_ *testing.T, seen map[string]*facts.Host) {
		seen["cp1"], seen["cp3"] = bare(12), bare(13)
	}},
	{name: "planes-grow-with-an-address", before: withoutAddress, inventory: fourHosts, harm: func(_ *testing.T, seen map[string]*facts.Host) {
		seen["cp1"], seen["cp3"] = bare(12), bare(13)
	}},
	{name: "planes-half", before: fourHosts, inventory: fourHosts, harm: func(_ *testing.T, seen map[string]*facts.Host) {
		halfJoined(seen["cp3"])
		forgetNode(seen, "cp3")
	}},
	{name: "planes-replaced", before: fourHosts, inventory: fourHosts, harm: func(_ *testing.T, seen map[string]*facts.Host) {
		seen["cp3"] = bare(13)
	}},
}

// leavingPlanes are control planes that leave: the others, or those that are lost, the first among them.
var leavingPlanes = []scenario{
	{name: "to-one-plane", before: fourHosts, inventory: fourHosts, plan: withoutPlanes("cp1", "cp3")},
	{name: "to-one-plane-without-the-first", before: fourHosts, inventory: fourHosts, plan: withoutPlanes("cp2", "cp3"), harm: func(_ *testing.T, seen map[string]*facts.Host) {
		delete(seen, "cp2")
		seen["cp3"].Ledger = 3
	}},
}

func withoutPlanes(ids ...string) planner {
	return func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		g, _, err := RemovePlanes(inv, seen, ids)
		return g, err
	}
}

func TestPlanesLeave(t *testing.T) {
	writeTogether(t, "planes-leave", leavingPlanes)
	inv, seen := settled(t, fourHosts)
	for _, c := range []struct {
		harm func()
		want reason.ID
	}{
		{func() { seen["cp2"].Cluster = nil }, reason.APIUnreachable},
		{func() { delete(seen, "cp2") }, reason.ClusterQuorumLost},
	} {
		c.harm()
		if _, _, err := RemovePlanes(inv, seen, []string{"cp1", "cp3"}); !errors.Is(err, &reason.Error{ID: c.want}) {
			t.Errorf("the one that stays does not work: %v", err)
		}
	}
}

// halfJoined is what a kubeadm join leaves that was killed when it had written the kubeconfigs.
func halfJoined(f *facts.Host) {
	f.Recorded, f.Cluster, f.Kubelet = &facts.Record{Join: true, Plane: true}, nil, nil
	f.ControlPlane.Finished = false
}

func forgetNode(seen map[string]*facts.Host, name string) {
	c := seen["cp2"].Cluster
	c.Nodes = slices.DeleteFunc(c.Nodes, func(n facts.Node) bool { return n.Name == name })
}

func TestSeveralPlanes(t *testing.T) { writeDown(t, severalPlanes) }

// hostsOf are the hosts that have a step.
func hostsOf(g *graph.Graph, id string) (out []string) {
	for _, s := range g.Steps {
		if s.ID == id {
			out = append(out, s.Host)
		}
	}
	return out
}

// noneWaitsInVain fails where a step needs one that is not planned.
func noneWaitsInVain(t *testing.T, g *graph.Graph) {
	t.Helper()
	for _, s := range g.Steps {
		for _, need := range s.Needs {
			if !slices.Contains(refs(g), need.String()) {
				t.Errorf("%s waits for %s, which is not planned", s.Ref, need)
			}
		}
	}
}

func TestThreeControlPlanesOfANewCluster(t *testing.T) {
	inv := decode(t, fourHosts)
	seen := hostFacts(inv)
	g := planUp(t, inv, seen)
	if first, admin := machine.SetOf(inv, seen).First.ID(), machine.AdminPlane(inv, seen).ID(); first != "cp2" || admin != "cp2" {
		t.Errorf("%s is the first, kubectl runs on %s", first, admin)
	}
	for id, want := range map[string][]string{
		"cluster/init": {"cp2"}, joinPlane: {"cp1", "cp3"}, "cluster/join": {"w1"}, "cluster/token": {"cp2"}, "addon/flannel": {"cp2"}, "cluster/ready": {"cp2"},
		"kube/packages": {"cp2", "w1", "cp1", "cp3"}, "os/keepalived": {"cp2", "cp1", "cp3"},
	} {
		if got := hostsOf(g, id); !slices.Equal(got, want) {
			t.Errorf("%s on %q, want %q", id, got, want)
		}
	}
	noneWaitsInVain(t, g)
	for _, s := range g.Steps {
		switch after := func(ref graph.Ref) bool { return slices.Contains(s.Needs, ref) }; {
		case s.Ref == graph.Ref{Host: "cp3", ID: joinPlane} && !after(graph.Ref{Host: "cp1", ID: joinPlane}):
			t.Error("two control planes join at the same time")
		case s.ID == "os/keepalived" && s.Host != "cp2" && !after(graph.Ref{Host: s.Host, ID: joinPlane}):
			t.Errorf("%s may have the address before it has an API server", s.Host)
		case s.ID == "cluster/ready" && s.Input.Values["nodes"] != "cp2\nw1\ncp1\ncp3":
			t.Errorf("these nodes are waited for: %q", s.Input.Values["nodes"])
		}
	}
}

// The first is told by facts: who has the cluster stays it, wherever others come into the file. kubectl runs where it can.
func TestControlPlanesBesideOneThatRuns(t *testing.T) {
	_, seen := settled(t, fourHosts)
	inv := decode(t, fourHosts)
	if first, admin := machine.SetOf(inv, seen).First.ID(), machine.AdminPlane(inv, seen).ID(); first != "cp2" || admin != "cp2" {
		t.Errorf("%s is the first, kubectl runs on %s", first, admin)
	}
	seen["cp2"].Cluster = nil
	if first, admin := machine.SetOf(inv, seen).First.ID(), machine.AdminPlane(inv, seen).ID(); first != "cp2" || admin != "cp1" {
		t.Errorf("%s is the first, kubectl runs on %s", first, admin)
	}
	seen["cp3"].NetworkUnproven = true
	if admin := machine.AdminPlane(inv, seen).ID(); admin != "cp3" {
		t.Errorf("the proof that is owed on cp3 would be made on %s", admin)
	}
	delete(seen, "cp2")
	halfJoined(seen["cp1"])
	if first, admin := machine.SetOf(inv, seen).First.ID(), machine.AdminPlane(inv, seen).ID(); first != "cp3" || admin != "cp3" {
		t.Errorf("%s is the first, kubectl runs on %s", first, admin)
	}
	if c := machine.ClusterOf(inv, seen); c != seen["cp3"].Cluster {
		t.Errorf("the cluster is %+v", c)
	}
}

// The kubelet of any control plane may be stopped while its API server goes on, and another one be away: it is started, before all else,
// and nobody joins anew.
func TestStoppedKubeletOfAControlPlane(t *testing.T) {
	for _, id := range []string{"cp1", "cp2", "cp3"} {
		for _, away := range []string{"", "cp1", "cp2"} {
			inv, seen := settled(t, fourHosts)
			seen[id].Units["kubelet.service"] = facts.Unit{Active: "inactive", Enabled: "enabled"}
			if away == id {
				continue
			}
			delete(seen, away)
			g := planUp(t, inv, seen)
			if !slices.Equal(refs(g), []string{id + " kube/start"}) {
				t.Errorf("%s, without %q: %q", id, away, refs(g))
			}
			settle(t, inv, seen, g)
			nothingLeft(t, inv, seen)
		}
	}
}

// A kubelet that was stopped runs before its node is drained: nobody else ends the pods there.
func TestStoppedKubeletIsStartedBeforeTheDrain(t *testing.T) {
	docker := strings.Replace(fourHosts, "runtime: containerd\n", "runtime: docker\n", 1)
	for name, c := range map[string]scenario{
		"an upgrade": upgradeOfPlanes("1.36.2", "1.36.3"),
		"a proxy":    {before: docker, inventory: docker + aProxy, limit: 1},
	} {
		for _, id := range []string{"cp1", "cp2", "cp3", "w1"} {
			c.harm = func(_ *testing.T, seen map[string]*facts.Host) {
				seen[id].Units["kubelet.service"] = facts.Unit{Active: "inactive", Enabled: "disabled"}
			}
			inv, seen, g := c.planned(t)
			start := graph.Ref{Host: id, ID: "kube/start"}
			for _, s := range g.Steps {
				if s.Drains == id && !waitsFor(g, s, start) || s.Host == id && s.Ref != start && strings.HasPrefix(s.ID, "cluster/upgrade") && !waitsFor(g, s, start) {
					t.Errorf("%s: %s does not wait for the kubelet", name, s.Ref)
				}
			}
			if err := g.Validate(); err != nil || !g.Has("kube/start") || !g.Has("node/drain/"+id) {
				t.Errorf("%s, %s: %v, %q", name, id, err, refs(g))
			}
			upgradeOn(t, inv, seen, g)
		}
	}
}

// An upgrade of a node that was cut off starts the kubelet itself, but where it does not go on yet: without the kubelet no API server comes.
func TestStoppedKubeletOfAnUpgradeThatWasCutOff(t *testing.T) {
	for _, answers := range []bool{true, false} {
		inv, seen, _ := upgrade("", "containerd", "1.36.2", "1.36.3").planned(t)
		seen["cp1"].Upgrading, seen["cp1"].Units["kubelet.service"] = machine.UpgradingNode, facts.Unit{Active: "inactive", Enabled: "enabled"}
		if !answers {
			seen["cp1"].Cluster = nil
		}
		if g := planUp(t, inv, seen); g.Has("kube/start") == answers || g.Has("kube/upgrade") != answers {
			t.Errorf("the API server answers: %t: %q", answers, refs(g))
		}
	}
}

// Nobody knows whose node it is that somebody joined by hand, while no API server answers: what its owner stopped stays so.
func TestStoppedKubeletOfANodeMadeByHand(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd, twoWorkers)
	handMade(seen)
	seen["cp1"].Cluster, seen["w1"].Units["kubelet.service"] = nil, facts.Unit{Active: "inactive", Enabled: "enabled"}
	if g := planUp(t, inv, seen); g.Has("kube/start") || !g.Has("cluster/init") {
		t.Errorf("%q", refs(g))
	}
}

// Any control plane may be down: the others have what they had, and nobody joins or makes a cluster meanwhile.
func TestOneControlPlaneIsDown(t *testing.T) {
	for _, down := range []string{"cp1", "cp2", "cp3"} {
		t.Run(down, func(t *testing.T) {
			inv, seen := settled(t, fourHosts)
			delete(seen, down)
			nothingLeft(t, inv, seen)
			var other string
			for _, id := range []string{"cp1", "cp2", "cp3"} {
				if id != down {
					other = id
				}
			}
			goesAway(seen[other].Cluster, down)
			nothingLeft(t, inv, seen)
			halfJoined(seen[other])
			g := planUp(t, inv, seen)
			if hosts := hostsOf(g, joinPlane); hosts != nil || !slices.ContainsFunc(g.Warnings, func(w string) bool {
				return strings.Contains(w, other+": it joins as a control plane when "+down+" answers again")
			}) {
				t.Errorf("%q join; %q", hosts, g.Warnings)
			}
		})
	}
	inv := decode(t, fourHosts)
	seen := hostFacts(inv)
	delete(seen, "cp2")
	if _, err := Up(inv, seen); !errors.Is(err, &reason.Error{ID: reason.ClusterQuorumLost}) {
		t.Errorf("a cluster beside one that may be there: %v", err)
	}
}

// goesAway lets a cluster notice that a node is away, with a pod of each workload.
func goesAway(c *facts.Cluster, node string) {
	c.Nodes[slices.IndexFunc(c.Nodes, func(n facts.Node) bool { return n.Name == node })].Ready = false
	for name, w := range c.Workloads {
		w.Ready--
		c.Workloads[name] = w
	}
}

// Nobody waits for pods on a control plane that is down, but for the only one of the DNS that there was.
func TestDNSOfAControlPlaneThatIsDown(t *testing.T) {
	for ready, want := range map[int]bool{2: false, 1: false, 0: true} {
		inv, seen := settled(t, fourHosts)
		delete(seen, "cp2")
		goesAway(seen["cp1"].Cluster, "cp2")
		seen["cp1"].Cluster.Workloads["kube-system/deployment/coredns"] = facts.Workload{Desired: 2, Ready: ready}
		if g := planUp(t, inv, seen); g.Has("cluster/ready") != want {
			t.Errorf("%d of 2: %v", ready, refs(g))
		}
	}
}

// A cluster that knows its API server by an address cannot have another control plane.
func TestAClusterWithoutANameCannotGrow(t *testing.T) {
	_, seen := settled(t, onePlane)
	seen["cp2"].ControlPlane.Endpoint = "10.0.0.10:6443"
	seen["cp1"], seen["cp3"] = bare(12), bare(13)
	for _, text := range []string{fourHosts, strings.Replace(fourHosts, "virtualIP: 10.0.0.100", "controlPlaneEndpoint: k8s.example.com:6443", 1)} {
		if _, err := Up(decode(t, text), seen); !errors.Is(err, &reason.Error{ID: reason.ClusterSettingFixed}) {
			t.Errorf("%v", err)
		}
	}
}

// A cluster with one control plane gets a virtual address while it runs: keepalived has it before any host's name leads to it, the name
// stays what it was, and whatever ends the run, the next one goes on.
func TestVirtualIPComes(t *testing.T) {
	inv := decode(t, onePlane)
	_, seen := settled(t, withoutAddress)
	name := machine.SetOf(inv, seen).APIName()
	if cp := seen["cp2"]; name == "" || cp.Names[name] == nil || machine.SetOf(inv, seen).ServesVirtualIP() {
		t.Fatalf("%q, %v", name, cp.Names)
	}
	g := planUp(t, inv, seen)
	hasSteps(t, g, "cp2 os/keepalived", "cp2 os/hosts", "w1 os/hosts", "cp2 certs/renew")
	keepalived := graph.Ref{Host: "cp2", ID: "os/keepalived"}
	for _, s := range g.Steps {
		switch s.ID {
		case "os/keepalived":
			if s.Input.Values["holds"] != "yes" {
				t.Error("nobody waits until the control plane has the address")
			}
		case "os/hosts":
			if v := s.Input.Values; !slices.Contains(s.Needs, keepalived) || v["name"] != name || v["address"] != "10.0.0.100" || v["awaited"] != "yes" {
				t.Errorf("%s after %v: %v", s.Ref, s.Needs, v)
			}
		}
	}
	for done := range g.Steps {
		_, seen := settled(t, withoutAddress)
		settle(t, inv, seen, &graph.Graph{Steps: g.Steps[:done]})
		rest := planUp(t, inv, seen)
		if !slices.Equal(refs(rest), refs(g)[done:]) {
			t.Errorf("after %d steps: %q", done, refs(rest))
		}
		settles(t, inv, seen, rest)
	}
}

// While the API server does not answer nobody waits for it: it may be what is mended.
func TestVirtualIPComesToAClusterThatIsDown(t *testing.T) {
	_, seen := settled(t, withoutAddress)
	seen["cp2"].Cluster = nil
	for _, s := range planUp(t, decode(t, onePlane), seen).Steps {
		if s.ID == "os/hosts" && s.Input.Values["awaited"] != "" {
			t.Errorf("%s waits", s.Ref)
		}
	}
}

// Hosts that join while the address comes are asked for the API server where it is now, and control planes that join get all names.
func TestJoinsWhileTheVirtualIPComes(t *testing.T) {
	_, seen := settled(t, withoutAddress)
	seen["cp1"], seen["cp3"] = bare(12), bare(13)
	inv := decode(t, fourHosts)
	needs, err := RequiredEndpoints(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range needs["cp1"] {
		if n.Purpose == machine.ToAPI && n.Host != "10.0.0.10" {
			t.Errorf("%+v", n)
		}
	}
	for _, s := range planUp(t, inv, seen).Steps {
		if names := s.Input.Values["names"]; s.ID == "cluster/token" && !slices.Contains(strings.Split(names, "\n"), "10.0.0.100") {
			t.Errorf("the names are %q", names)
		}
	}
}

// A cluster that knows its API server by an address, or by a name of its owner's, gets no virtual address.
func TestVirtualIPWithoutANameOfKgpu(t *testing.T) {
	for _, endpoint := range []string{"10.0.0.10:6443", "k8s.example.com:6443"} {
		_, seen := settled(t, withoutAddress)
		seen["cp2"].ControlPlane.Endpoint = endpoint
		if _, err := Up(decode(t, onePlane), seen); !refuses(err, "kubernetes.virtualIP") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// A cluster keeps what its API server is found by: another virtual address or endpoint, or none, is refused by every plan that would
// write it down on a host, with its place in the file and with what has it; whichever control plane tells, and whether it answers or not.
func TestEndpointStays(t *testing.T) {
	const virtual, balancer = "virtualIP: 10.0.0.100", "controlPlaneEndpoint: k8s.example.com:6443"
	has := "; it is in keepalived's configuration (cp2), the certificate of the API server (cp2), /etc/hosts of 2 hosts"
	three := "; it is in keepalived's configuration (cp2, cp1, cp3), the certificate of the API server (cp2, cp1, cp3), /etc/hosts of 4 hosts"
	for name, c := range map[string]struct {
		before, text string
		harm         func(map[string]*facts.Host)
		want         string
	}{
		"another": {onePlane, strings.Replace(onePlane, virtual, "virtualIP: 10.0.0.101", 1), unharmed,
			"inventory.yaml:4:42: kubernetes.virtualIP: the cluster has 10.0.0.100, and the inventory wants 10.0.0.101" + has},
		"of another subnet": {onePlane, strings.Replace(onePlane, virtual, "virtualIP: 10.9.0.101", 1), unharmed,
			"inventory.yaml:4:42: kubernetes.virtualIP: the cluster has 10.0.0.100, and the inventory wants 10.9.0.101" + has},
		"none": {onePlane, withoutAddress, unharmed, "inventory.yaml:4:13: kubernetes.virtualIP: the cluster has 10.0.0.100, and the inventory names none" + has},
		"none, and nothing else of Kubernetes": {onePlane, strings.Replace(onePlane, "kubernetes: {version: 1.36.3, virtualIP: 10.0.0.100}\n", "", 1), unharmed,
			"inventory.yaml:1:1: kubernetes.virtualIP: the cluster has 10.0.0.100, and the inventory names none" + has},
		"another, and nothing answers": {onePlane, strings.Replace(onePlane, virtual, "virtualIP: 10.0.0.101", 1), func(seen map[string]*facts.Host) { seen["cp2"].Cluster = nil },
			"the cluster has 10.0.0.100, and the inventory wants 10.0.0.101" + has},
		"another for three, of which the first has lost its line": {fourHosts, strings.Replace(fourHosts, virtual, "virtualIP: 10.0.0.101", 1), func(seen map[string]*facts.Host) {
			seen["cp2"].Names = nil
		}, "the cluster has 10.0.0.100, and the inventory wants 10.0.0.101" + strings.Replace(three, "4 hosts", "3 hosts", 1)},
		"a balancer instead": {fourHosts, strings.Replace(fourHosts, virtual, balancer, 1), unharmed, "names none" + three},
		"another balancer": {severalPlanes[2].inventory, strings.Replace(fourHosts, virtual, "controlPlaneEndpoint: api.example.com:6443", 1), unharmed,
			"inventory.yaml:4:53: kubernetes.controlPlaneEndpoint: the cluster has k8s.example.com:6443, and the inventory wants api.example.com:6443"},
		"an address instead of a balancer": {severalPlanes[2].inventory, fourHosts, unharmed, "the cluster has its API server at k8s.example.com:6443, and nothing would lead to 10.0.0.100"},
	} {
		_, seen := settled(t, c.before)
		c.harm(seen)
		inv := decode(t, c.text)
		for how, plan := range map[string]planner{"up": Up, "certs renew": RenewCertificates, "remove-control-plane": withoutPlanes("cp1", "cp3")} {
			_, err := plan(inv, seen)
			if all := reason.All(err); len(all) == 0 || all[len(all)-1].ID != reason.ClusterSettingFixed && how != "remove-control-plane" ||
				!slices.ContainsFunc(all, func(e *reason.Error) bool { return strings.Contains(e.Detail, c.want) && e.Advice != "" }) {
				t.Errorf("%s: %s: %v", name, how, err)
			}
		}
	}
}

func TestResetOfThreeControlPlanes(t *testing.T) {
	inv := decode(t, fourHosts)
	seen := hostFacts(inv)
	for _, f := range seen {
		f.Ledger = 3
	}
	g, err := Reset(inv, seen, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The workers, then the other control planes, the first last; each when those before it have gone.
	hasSteps(t, g, "w1 host/reset", "cp1 host/reset", "cp3 host/reset", "cp2 host/reset")
	for i, s := range g.Steps {
		if len(s.Needs) != i || (s.Input.Values["cluster"] == "gone") == (s.Host == "w1") {
			t.Errorf("%s after %v with %v", s.Ref, s.Needs, s.Input.Values)
		}
	}
	if _, err := Reset(inv, seen, []string{"cp3"}); err == nil {
		t.Error("a control plane goes from under the others")
	}
}

// TestVerdictsOfControlPlanes judges one of three by what is on it.
func TestVerdictsOfControlPlanes(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(cp3 *facts.Host)
		want machine.Membership
		why  string
	}{
		{"joined", func(*facts.Host) {}, machine.Member, ""},
		{"it does not answer", func(f *facts.Host) { f.Cluster = nil }, machine.Member, "the control plane does not answer"},
		{"half joined", halfJoined, machine.Rejoin, "kubeadm join did not come to its end; the node object cp3 is of a former one"},
		{"before the kubeconfigs", func(f *facts.Host) { halfJoined(f); f.ControlPlane = nil }, machine.Rejoin, "kubeadm join did not come to its end; the node object cp3 is of a former one"},
		{"joined, which is not recorded", func(f *facts.Host) {
			f.Recorded.Done, f.ControlPlane.Finished = false, false
			f.Etcd, f.KubeadmFiles = &facts.EtcdData{KiB: 1}, []string{"/etc/kubernetes/manifests/etcd.yaml"}
			i := slices.IndexFunc(f.Cluster.Nodes, func(n facts.Node) bool { return n.Name == "cp3" })
			f.Cluster.Nodes[i].Labels["node-role.kubernetes.io/control-plane"] = ""
		}, machine.Member, "kubeadm join came to its end, which is not recorded"},
		{"reset by hand", func(f *facts.Host) { f.ControlPlane, f.Kubelet, f.Cluster = nil, nil, nil }, machine.Rejoin, "the host has left the cluster that kgpu joined it to; the node object cp3 is of a former one"},
		{"fresh", func(f *facts.Host) { *f = *bare(13) }, machine.NotMember, "the cluster does not have this control plane yet; the node object cp3 is of a former one"},
		{"another cluster", func(f *facts.Host) { f.ControlPlane.CAHash, f.Recorded.CAHash = "other", "other" }, machine.Foreign, "it is not kgpu's"},
		{"joined by hand", func(f *facts.Host) { f.Recorded = nil }, machine.Foreign, "made by hand: --adopt takes it over as it is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, seen := settled(t, fourHosts)
			c.harm(seen["cp3"])
			v := machine.SetOf(inv, seen).Verdicts()["cp3"]
			if v.Membership != c.want || v.Why != c.why {
				t.Errorf("%s: %q (%s)", v.Membership, v.Why, v.Detail)
			}
		})
	}
}

// TestPlaneThatWasTakenOut: one that was given up while it was away, and comes back as it was, leaves what is no cluster any more and
// joins, also where it is the one that made the cluster.
func TestPlaneThatWasTakenOut(t *testing.T) {
	for _, away := range []string{"cp1", "cp3"} {
		t.Run(away, func(t *testing.T) {
			inv, seen := settled(t, fourHosts)
			seen[away].ControlPlane.Served = "" // its own API server does not answer: the address leads to another's
			if v := machine.SetOf(inv, seen).Verdicts()[away]; v.Membership != machine.Member || v.Why != "" {
				t.Errorf("while the cluster has its node: %s", v.Membership)
			}
			for _, f := range seen {
				if f.Cluster != nil {
					f.Cluster.Nodes = slices.DeleteFunc(slices.Clone(f.Cluster.Nodes), func(n facts.Node) bool { return n.Name == away })
				}
			}
			if v := machine.SetOf(inv, seen).Verdicts()[away]; v.Membership != machine.Rejoin || v.Why != "the cluster has no node "+away+" any more" || v.Replaces {
				t.Errorf("%+v", v)
			}
			g := planUp(t, inv, seen)
			hasSteps(t, g, "cp2 cluster/token", away+" cluster/join-control-plane", "cp2 cluster/untoken", "cp2 cluster/ready")
			if got := hostsOf(g, "cluster/init"); len(got) > 0 {
				t.Errorf("kubeadm init on %s", got)
			}
			join := stepsOf(t, g, "cluster/join-control-plane")
			if len(join) != 1 || lateInput(t, seen, join[0]).Values["leaves"] != "yes" {
				t.Errorf("it does not leave: %v", refs(g))
			}
		})
	}
}

// TestRouterID: two clusters on one network have different numbers, as far as numbers from 1 to 255 go.
func TestRouterID(t *testing.T) {
	numbers := map[int]bool{}
	for _, at := range []string{"10.0.0.100", "10.0.0.101", "10.0.0.102", "10.0.0.103"} {
		id := machine.RouterID(decode(t, strings.Replace(fourHosts, "10.0.0.100", at, 1)))
		if id < 1 || id > 255 {
			t.Errorf("%s: %d", at, id)
		}
		numbers[id] = true
	}
	if len(numbers) < 3 {
		t.Errorf("%v", numbers)
	}
}
