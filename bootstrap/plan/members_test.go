package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// told is a verdict in one line.
func told(v machine.Verdict) string {
	text := fmt.Sprintf("%s|%s", v.Membership, v.Why)
	if v.Replaces {
		text += "|replaces"
	}
	if v.Drain {
		text += "|drain"
	}
	if v.Refused != "" {
		text = fmt.Sprintf("%s|%s|%s", v.Membership, v.Refused, v.Detail)
	}
	return text
}

// verdicts are those of the hosts; adopt takes over what was made by hand.
func verdicts(inv *inventory.Inventory, seen map[string]*facts.Host, adopt bool) map[string]machine.Verdict {
	set := machine.SetOf(inv, seen)
	set.Adopt = adopt
	return set.Verdicts()
}

// handMade is a running cluster of which the ledger knows nothing. It fits the inventory.
func handMade(seen map[string]*facts.Host) {
	for _, f := range seen {
		f.Recorded = nil
	}
	f := seen["cp1"]
	f.Now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := f.ControlPlane
	c.Finished, c.Since, c.Advertised = false, time.Date(2026, 11, 8, 10, 0, 0, 0, time.UTC), "10.0.0.10"
	c.PodCIDR, c.ServiceCIDR, c.EtcdMembers = "10.244.0.0/16", "10.96.0.0/12", []string{"cp1"}
	for i := range f.Cluster.Nodes {
		f.Cluster.Nodes[i].Runtime, f.Cluster.Nodes[i].Version = "containerd://2.2.0", c.Version
	}
}

// away takes every trace of membership from a host.
func away(f *facts.Host) { f.Kubelet, f.Recorded = nil, nil }

// TestVerdicts holds the rule: who belongs where, by the CA's hash and the node's UID, and what is refused.
func TestVerdicts(t *testing.T) {
	const ca, other = "0123456789abcdef", "fedcba9876543210"
	evidence := "a control plane made by hand is here: API server https://10.0.0.10:6443, CA 0123456789ab, v1.36.3, 3 nodes, made 12 days ago"
	for _, c := range []struct {
		name   string
		host   string
		change func(map[string]*facts.Host)
		want   string
		adopt  string // with --adopt; empty: the same
	}{
		{name: "running control plane", host: "cp1", want: "member|"},
		{name: "control plane that does not answer", host: "cp1", change: func(f map[string]*facts.Host) { f["cp1"].Cluster = nil },
			want: "member|the control plane does not answer"},
		{name: "init without its end, complete", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane.Finished, f["cp1"].Recorded = false, &facts.Record{Init: true}
		}, want: "member|kubeadm init came to its end, which is not recorded"},
		{name: "init without its end, half-way", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane.Finished, f["cp1"].Recorded = false, &facts.Record{Init: true}
			delete(f["cp1"].Cluster.Workloads, "kube-system/daemonset/kube-proxy")
		}, want: "rejoin|kubeadm init did not come to its end"},
		{name: "init without its end, silent", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane.Finished, f["cp1"].Cluster, f["cp1"].Recorded = false, nil, &facts.Record{Init: true}
		}, want: "rejoin|kubeadm init did not come to its end, and the control plane does not answer"},
		{name: "init that died early", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane, f["cp1"].Cluster, f["cp1"].Kubelet, f["cp1"].Recorded = nil, nil, nil, &facts.Record{Init: true}
			f["cp1"].Etcd, f["cp1"].KubeadmFiles = &facts.EtcdData{}, []string{"/etc/kubernetes/pki/ca.crt"}
		}, want: "rejoin|kubeadm init did not come to its end"},
		{name: "control plane that its owner reset", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane, f["cp1"].Cluster, f["cp1"].Kubelet = nil, nil, nil
		},
			want: "rejoin|the control plane that kgpu made is gone"},
		{name: "no control plane", host: "cp1", change: func(f map[string]*facts.Host) { f["cp1"].ControlPlane, f["cp1"].Cluster = nil, nil; away(f["cp1"]) }, want: "not a member|there is no control plane yet"},
		{name: "control plane without its kubeconfig", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane, f["cp1"].Cluster, f["cp1"].KubeadmFiles = nil, nil, []string{"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/manifests/etcd.yaml"}
		}, want: "foreign|HOST_HALF_MADE|there is a part of a cluster, without an administrator's kubeconfig: /etc/kubernetes/kubelet.conf, /etc/kubernetes/manifests/etcd.yaml"},
		{name: "data of the cluster that kgpu made", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane, f["cp1"].Cluster, f["cp1"].Kubelet = nil, nil, nil
			f["cp1"].Etcd = &facts.EtcdData{KiB: 70000, Changed: f["cp1"].Now.Add(-30 * time.Minute)}
		}, want: "foreign|HOST_ETCD_STALE|/var/lib/etcd/member has the data of a cluster whose administrator's kubeconfig is gone: 69 MiB, last written 30 minutes ago"},
		{name: "somebody's data", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane, f["cp1"].Cluster = nil, nil
			away(f["cp1"])
			f["cp1"].Etcd = &facts.EtcdData{KiB: 10, Changed: f["cp1"].Now.Add(-5 * time.Hour)}
		}, want: "foreign|HOST_ETCD_STALE|/var/lib/etcd/member has the data of a cluster whose administrator's kubeconfig is gone: 1 MiB, last written 5 hours ago"},
		{name: "worker that is to be a control plane", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane, f["cp1"].Cluster, f["cp1"].Recorded = nil, nil, &facts.Record{Join: true, Done: true}
		},
			want: "foreign|HOST_FOREIGN_CLUSTER|the host is a worker of the cluster at https://10.0.0.10:6443 (CA 0123456789ab)"},
		{name: "control plane by hand", host: "cp1", change: handMade, want: "unmanaged|HOST_MADE_BY_HAND|" + evidence + "; it fits the inventory",
			adopt: "unmanaged|made by hand: --adopt takes it over as it is"},
		{name: "control plane by hand, that does not fit", host: "cp1", change: func(f map[string]*facts.Host) {
			handMade(f)
			c := f["cp1"].ControlPlane
			c.Version, c.PodCIDR, c.ServiceCIDR, c.Advertised = "v1.35.2", "", "10.43.0.0/16", "10.0.0.9"
			c.EtcdMembers = append(c.EtcdMembers, "cp2")
			f["cp1"].Cluster.Nodes[0].Runtime, f["cp1"].Cluster.Nodes[0].Version = "docker://29.4.3", "v1.36.3"
			f["cp1"].PodNetworkFiles = []string{"/etc/cni/net.d/05-cilium.conflist"}
		}, want: "foreign|HOST_MADE_BY_HAND|" + strings.Replace(evidence, "v1.36.3", "v1.35.2", 1) + "; it cannot be adopted: " +
			"its podCIDR is unknown, the inventory's 10.244.0.0/16, its address is 10.0.0.9, the inventory's 10.0.0.10, " +
			"it has 2 control planes, its pod network is another (/etc/cni/net.d/05-cilium.conflist), the inventory's flannel, its runtime is docker://29.4.3, the inventory's containerd, " +
			"its kubelet is v1.36.3, its cluster's version v1.35.2"},
		{name: "control plane by hand, with weave", host: "cp1", change: func(f map[string]*facts.Host) {
			handMade(f)
			f["cp1"].Cluster.Workloads["kube-system/daemonset/weave-net"] = facts.Workload{}
		}, want: "foreign|HOST_MADE_BY_HAND|" + evidence + "; it cannot be adopted: its pod network is another (kube-system/daemonset/weave-net), the inventory's flannel"},
		{name: "control plane by hand, half-made", host: "cp1", change: func(f map[string]*facts.Host) {
			handMade(f)
			f["cp1"].Cluster, f["cp1"].KubeadmFiles = nil, []string{"/etc/kubernetes/manifests/etcd.yaml"}
		}, want: "foreign|HOST_HALF_MADE|there is a control plane that kgpu did not make, and it does not answer: API server https://10.0.0.10:6443, CA 0123456789ab, v1.36.3, made 12 days ago, /etc/kubernetes/manifests/etcd.yaml"},
		{name: "control plane by hand where kgpu's was", host: "cp1", change: func(f map[string]*facts.Host) {
			handMade(f)
			f["cp1"].ControlPlane.Finished, f["cp1"].Recorded = true, &facts.Record{Init: true, Done: true, CAHash: other}
		}, want: "unmanaged|HOST_MADE_BY_HAND|" + evidence + "; it fits the inventory", adopt: "unmanaged|made by hand: --adopt takes it over as it is"},
		{name: "adopted control plane", host: "cp1", change: func(f map[string]*facts.Host) {
			handMade(f)
			f["cp1"].Recorded = &facts.Record{Adopted: true, CAHash: ca}
		}, want: "member|"},
		{name: "adopted control plane, silent", host: "cp1", change: func(f map[string]*facts.Host) {
			f["cp1"].Cluster, f["cp1"].ControlPlane.Finished, f["cp1"].Recorded = nil, false, &facts.Record{Adopted: true, CAHash: ca}
		}, want: "member|the control plane does not answer"},

		{name: "member", host: "w1", want: "member|"},
		{name: "new host", host: "w1", change: func(f map[string]*facts.Host) { away(f["w1"]); f["cp1"].Cluster.Nodes = nil }, want: "not a member|the host is in no cluster"},
		{name: "reinstalled host", host: "w1", change: func(f map[string]*facts.Host) { away(f["w1"]) }, want: "not a member|the host is in no cluster; the node object w1 is of a former one|replaces"},
		{name: "another machine with the name", host: "w1", change: func(f map[string]*facts.Host) {
			away(f["w1"])
			f["cp1"].Cluster.Nodes[1].InternalIP, f["cp1"].Cluster.Nodes[1].Ready = "10.0.0.77", true
		}, want: "foreign|HOST_NAME_DUPLICATE|the cluster has a node w1 already, another machine at 10.0.0.77"},
		{name: "dead machine with the name", host: "w1", change: func(f map[string]*facts.Host) {
			away(f["w1"])
			f["cp1"].Cluster.Nodes[1].InternalIP, f["cp1"].Cluster.Nodes[1].Ready = "10.0.0.77", false
		}, want: "not a member|the host is in no cluster; the node object w1 is of a former one|replaces"},
		{name: "other cluster", host: "w1", change: func(f map[string]*facts.Host) {
			f["w1"].Kubelet = &facts.Member{Server: "https://10.9.9.9:6443", CAHash: other, NodeName: "w1"}
			f["w1"].Recorded = nil
		}, want: "foreign|HOST_FOREIGN_CLUSTER|the kubelet belongs to the cluster at https://10.9.9.9:6443 (CA fedcba987654), not to this one (CA 0123456789ab)"},
		{name: "other cluster of kgpu", host: "w1", change: func(f map[string]*facts.Host) {
			f["w1"].Kubelet = &facts.Member{Server: "https://10.9.9.9:6443", CAHash: other, NodeName: "w1"}
			f["w1"].Recorded.CAHash = other
		}, want: "foreign|HOST_FOREIGN_CLUSTER|the kubelet belongs to the cluster at https://10.9.9.9:6443 (CA fedcba987654), not to this one (CA 0123456789ab)"},
		{name: "former cluster of kgpu, made anew", host: "w1", change: func(f map[string]*facts.Host) {
			f["w1"].Kubelet.CAHash, f["w1"].Recorded.CAHash = other, other
		}, want: "rejoin|the cluster at https://10.0.0.10:6443 was made anew: its CA is 0123456789ab, the kubelet's fedcba987654"},
		{name: "former cluster of somebody, made anew", host: "w1", change: func(f map[string]*facts.Host) { f["w1"].Kubelet.CAHash = other },
			want: "foreign|HOST_FOREIGN_CLUSTER|the kubelet belongs to the cluster at https://10.0.0.10:6443 (CA fedcba987654), not to this one (CA 0123456789ab)"},
		{name: "former cluster of kgpu, gone", host: "w1", change: func(f map[string]*facts.Host) { f["cp1"].ControlPlane, f["cp1"].Cluster = nil, nil },
			want: "rejoin|the cluster that it was in, at https://10.0.0.10:6443, is gone"},
		{name: "cluster of somebody, and none here", host: "w1", change: func(f map[string]*facts.Host) {
			f["cp1"].ControlPlane, f["cp1"].Cluster, f["w1"].Recorded = nil, nil, nil
		},
			want: "foreign|HOST_FOREIGN_CLUSTER|the kubelet belongs to the cluster at https://10.0.0.10:6443 (CA 0123456789ab), and this one does not exist yet"},
		{name: "control plane of its own", host: "w1", change: func(f map[string]*facts.Host) {
			f["w1"].ControlPlane, f["w1"].Cluster = &facts.ControlPlane{CAHash: other, Version: "v1.36.3"}, &facts.Cluster{Nodes: make([]facts.Node, 1)}
			f["w1"].Kubelet = &facts.Member{Server: "https://10.0.0.11:6443", CAHash: other}
		}, want: "foreign|HOST_FOREIGN_CLUSTER|the host is the control plane of a cluster of its own: API server https://10.0.0.11:6443, CA fedcba987654, v1.36.3, 1 node"},
		{name: "silent cluster", host: "w1", change: func(f map[string]*facts.Host) {
			f["cp1"].Cluster = nil
		}, want: "member|"},
		{name: "node deleted", host: "w1", change: func(f map[string]*facts.Host) { f["cp1"].Cluster.Nodes = nil }, want: "rejoin|the cluster has no node w1"},
		{name: "node deleted, joined by hand", host: "w1", change: func(f map[string]*facts.Host) {
			f["cp1"].Cluster.Nodes, f["w1"].Recorded, f["w1"].KubeadmFiles = nil, nil, []string{"/etc/kubernetes/kubelet.conf"}
		}, want: "foreign|HOST_HALF_MADE|the kubelet belongs to this cluster, which has no node w1, and kgpu did not join it: /etc/kubernetes/kubelet.conf"},
		{name: "node with another UID", host: "w1", change: func(f map[string]*facts.Host) { f["cp1"].Cluster.Nodes[1].UID = "new" },
			want: "rejoin|the node object has another UID (new, it was uid-w1): somebody deleted the node and its kubelet made it anew|replaces|drain"},
		{name: "node of a ledger without a UID", host: "w1", change: func(f map[string]*facts.Host) { f["w1"].Recorded.UID = "" }, want: "member|"},
		{name: "node whose kubeadm join was cut off", host: "w1", change: func(f map[string]*facts.Host) { f["w1"].Recorded = &facts.Record{Join: true} },
			want: "member|kubeadm join did not come to its end, and the kubelet made the node without it"},
		{name: "node that is another machine", host: "w1", change: func(f map[string]*facts.Host) { f["cp1"].Cluster.Nodes[1].InternalIP = "10.0.0.77" },
			want: "foreign|HOST_NAME_DUPLICATE|the cluster's node w1 is another machine, at 10.0.0.77"},
		{name: "node at another address of the host", host: "w1", change: func(f map[string]*facts.Host) {
			f["cp1"].Cluster.Nodes[1].InternalIP = "192.168.0.11"
			f["w1"].Addresses = append(f["w1"].Addresses, facts.Address{Interface: "eth1", Prefix: netip.MustParsePrefix("192.168.0.11/24")})
		}, want: "member|"},
		{name: "certificate of another node", host: "w1", change: func(f map[string]*facts.Host) { f["w1"].Kubelet.NodeName = "w7" }, want: "rejoin|the kubelet's certificate is that of node w7"},
		{name: "certificate of another node, by hand", host: "w1", change: func(f map[string]*facts.Host) { f["w1"].Kubelet.NodeName, f["w1"].Recorded = "w7", nil },
			want: "foreign|HOST_MADE_BY_HAND|the host is node w7 of this cluster, and kgpu did not join it; it cannot be adopted as w1: name it so in the inventory"},
		{name: "kubelet stopped", host: "w1", change: func(f map[string]*facts.Host) {
			f["w1"].Units["kubelet.service"] = facts.Unit{Active: "inactive", Enabled: "enabled"}
		}, want: "member|"},
		{name: "joined by hand", host: "w1", change: handMade, want: "unmanaged|HOST_MADE_BY_HAND|the host is node w1 of this cluster already, and kgpu did not join it; it fits the inventory",
			adopt: "unmanaged|made by hand: --adopt takes it over as it is"},
		{name: "joined by hand, with docker", host: "w1", change: func(f map[string]*facts.Host) {
			handMade(f)
			f["cp1"].Cluster.Nodes[1].Runtime = "docker://29.4.3"
		}, want: "foreign|HOST_MADE_BY_HAND|the host is node w1 of this cluster already, and kgpu did not join it; it cannot be adopted: its runtime is docker://29.4.3, the inventory's containerd"},
		{name: "adopted", host: "w1", change: func(f map[string]*facts.Host) {
			handMade(f)
			f["w1"].Recorded = &facts.Record{Adopted: true, CAHash: ca, UID: "u"}
		}, want: "member|"},
		{name: "join interrupted", host: "w1", change: func(f map[string]*facts.Host) {
			f["w1"].Kubelet, f["w1"].Recorded, f["w1"].KubeadmFiles = nil, &facts.Record{Join: true}, []string{"/etc/kubernetes/bootstrap-kubelet.conf"}
			f["cp1"].Cluster.Nodes = nil
		}, want: "rejoin|kubeadm join did not come to its end"},
		{name: "join interrupted, by hand", host: "w1", change: func(f map[string]*facts.Host) {
			away(f["w1"])
			f["w1"].KubeadmFiles = []string{"/etc/kubernetes/bootstrap-kubelet.conf"}
		}, want: "foreign|HOST_HALF_MADE|there is a part of a cluster, without a kubelet's kubeconfig: /etc/kubernetes/bootstrap-kubelet.conf"},
		{name: "join interrupted while it wrote", host: "w1", change: func(f map[string]*facts.Host) {
			f["w1"].Kubelet.CAHash, f["w1"].Recorded = "", &facts.Record{Join: true}
		},
			want: "rejoin|the kubelet's kubeconfig is half written"},
		{name: "leaving, interrupted", host: "w1", change: func(f map[string]*facts.Host) {
			f["w1"].Kubelet, f["w1"].KubeadmFiles, f["cp1"].Cluster.Nodes = nil, []string{"/etc/kubernetes/pki/ca.crt"}, nil
		}, want: "rejoin|the host has left the cluster that kgpu joined it to"},
		{name: "reset by hand, and another init begun", host: "w1", change: func(f map[string]*facts.Host) {
			f["w1"].Kubelet, f["w1"].KubeadmFiles = nil, []string{"/etc/kubernetes/manifests/etcd.yaml"}
		}, want: "foreign|HOST_HALF_MADE|there is a part of a cluster, without a kubelet's kubeconfig: /etc/kubernetes/manifests/etcd.yaml"},
		{name: "reset by hand", host: "w1", change: func(f map[string]*facts.Host) { f["w1"].Kubelet = nil },
			want: "rejoin|the host has left the cluster that kgpu joined it to; the node object w1 is of a former one|replaces"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, seen := settled(t, threeHosts+containerd)
			for _, f := range seen {
				f.Kubelet.CAHash, f.Recorded.CAHash = ca, ca
			}
			seen["cp1"].ControlPlane.CAHash = ca
			if c.change != nil {
				c.change(seen)
			}
			if got := told(verdicts(inv, seen, false)[c.host]); got != c.want {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
			want := c.adopt
			if want == "" {
				want = c.want
			}
			if got := told(verdicts(inv, seen, true)[c.host]); got != want {
				t.Errorf("with --adopt:\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// adopted is a cluster that was made by hand, with flannel by hand, too.
var adopted = scenario{name: "adopt", before: threeHosts + containerd, inventory: threeHosts + containerd, plan: UpAdopting,
	harm: func(_ *testing.T, seen map[string]*facts.Host) {
		handMade(seen)
		flannel := seen["cp1"].Cluster.Workloads["kube-flannel/daemonset/kube-flannel-ds"]
		flannel.Hash = ""
		seen["cp1"].Cluster.Workloads["kube-flannel/daemonset/kube-flannel-ds"] = flannel
	}}

// TestAdopting takes a cluster over as it is: nothing is started, joined or applied again.
func TestAdopting(t *testing.T) {
	inv, seen, g := adopted.planned(t)
	hasSteps(t, g, "cp1 cluster/adopt", "w1 cluster/adopt", "w2 cluster/adopt")
	for id, f := range seen {
		f.Recorded = &facts.Record{Adopted: true, CAHash: "ca", UID: "uid-" + id}
	}
	nothingLeft(t, inv, seen)
}

// TestLeftovers tells what stands in a pod network's way from what does not.
func TestLeftovers(t *testing.T) {
	for _, c := range []struct {
		name    string
		network string
		change  func(*facts.Host)
		want    string
	}{
		{"none", "flannel", nil, "[] []"},
		{"links", "flannel", func(f *facts.Host) { f.PodLinks = []string{"cni0", "weave"} }, "[cni0 weave] []"},
		{"its own configuration, of a former life", "flannel", func(f *facts.Host) {
			f.PodNetworkFiles = []string{"/etc/cni/net.d/10-flannel.conflist", "/run/flannel/subnet.env"}
		}, "[/etc/cni/net.d/10-flannel.conflist /run/flannel/subnet.env] []"},
		{"another network's that comes first", "weave", func(f *facts.Host) { f.PodNetworkFiles = []string{"/etc/cni/net.d/05-cilium.conflist"} }, "[] [/etc/cni/net.d/05-cilium.conflist]"},
		{"podman's, which comes last", "weave", func(f *facts.Host) { f.PodNetworkFiles = []string{"/etc/cni/net.d/87-podman-bridge.conflist"} }, "[] []"},
		{"the operator's own network", "none", func(f *facts.Host) {
			f.PodNetworkFiles, f.PodLinks = []string{"/etc/cni/net.d/05-cilium.conflist"}, []string{"cni0"}
		}, "[] []"},
		{"a member's", "flannel", func(f *facts.Host) { f.Kubelet, f.PodLinks = &facts.Member{}, []string{"cni0"} }, "[] []"},
		{"of kgpu's interrupted join", "flannel", func(f *facts.Host) { f.Recorded, f.PodLinks = &facts.Record{Join: true}, []string{"cni0"} }, "[] []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := decode(t, threeHosts+"runtime: containerd\nnetwork: "+c.network+"\n")
			f := bare(11)
			if c.change != nil {
				c.change(f)
			}
			l := machine.StaleCNIOf(inv.Network, f)
			if got := fmt.Sprint(l.Known, l.Unknown); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Only --adopt removes what a former network left, before anything else on the host.
func TestLeftoversAreRemoved(t *testing.T) {
	inv := decode(t, threeHosts+containerd)
	seen := hostFacts(inv)
	seen["w1"].PodLinks = []string{"cni0"}
	for _, adopt := range []bool{false, true} {
		g, err := up(inv, seen, adopt)
		if err != nil {
			t.Fatal(err)
		}
		s := stepOf(g, "w1", "host/leftovers")
		if (s != nil) != adopt || s != nil && (len(s.Needs) > 0 || s.Reason != "found cni0") {
			t.Errorf("adopt %t: %+v of %q", adopt, s, refs(g))
		}
	}
}

func TestResetOfAdopted(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	for _, f := range seen {
		f.Ledger = 7
	}
	for _, id := range []string{"cp1", "w1"} {
		seen[id].Recorded = &facts.Record{Adopted: true, CAHash: "ca"}
	}
	g, err := Reset(inv, seen, nil)
	if err != nil {
		t.Fatal(err)
	}
	// w2 is kgpu's: it leaves the cluster, which goes on.
	hasSteps(t, g, "w1 host/reset", "cp1 node/drain/w2", "cp1 node/delete/w2", "w2 host/reset", "cp1 host/reset")
	if g.Steps[0].Title != "undo what kgpu changed; the cluster stays: it was made by hand" || len(g.Warnings) != 2 {
		t.Errorf("%s; warnings %q", g.Steps[0].Title, g.Warnings)
	}
}

// What somebody made on kgpu's hosts since is not taken apart.
func TestResetOfAnotherCluster(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	seen["w1"].Ledger, seen["w1"].Kubelet.CAHash = 7, "fedcba9876543210"
	_, err := Reset(inv, seen, nil)
	if all := reason.All(err); len(all) != 1 || all[0].ID != reason.HostForeignCluster || all[0].Host != "w1" {
		t.Errorf("%v", err)
	}
	// An old ledger does not say which cluster kgpu joined the host to; it was no control plane then.
	seen["w1"].Recorded, seen["w1"].ControlPlane = &facts.Record{Join: true, Done: true}, &facts.ControlPlane{CAHash: "fedcba9876543210"}
	if _, err := Reset(inv, seen, []string{"w1"}); len(reason.All(err)) != 1 {
		t.Errorf("a control plane: %v", err)
	}
	if _, err := Reset(inv, seen, []string{"w2"}); err != nil {
		t.Errorf("another host: %v", err)
	}
}
