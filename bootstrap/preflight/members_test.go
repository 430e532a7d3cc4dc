package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// TestMembershipProblems: a host that is not kgpu's has no other problems, and --adopt accepts what is safe.
func TestMembershipProblems(t *testing.T) {
	for _, c := range []struct {
		name        string
		spoil       func(cp, w *facts.Host)
		want, adopt []string
	}{
		{"fresh hosts", func(_, _ *facts.Host) {}, nil, nil},
		{"the data of an etcd", func(cp, _ *facts.Host) {
			cp.Now = time.Unix(1795000000, 0)
			cp.Etcd = &facts.EtcdData{KiB: 2048, Changed: cp.Now.Add(-72 * time.Hour)}
		}, []string{"cp1 HOST_ETCD_STALE /var/lib/etcd/member has the data of a cluster whose administrator's kubeconfig is gone: 2 MiB, last written 3 days ago"}, []string{"cp1 HOST_ETCD_STALE"}},
		{"half a kubeadm join", func(_, w *facts.Host) { w.KubeadmFiles = []string{"/etc/kubernetes/bootstrap-kubelet.conf"} },
			[]string{"w1 HOST_HALF_MADE there is a part of a cluster, without a kubelet's kubeconfig: /etc/kubernetes/bootstrap-kubelet.conf"}, []string{"w1 HOST_HALF_MADE"}},
		{"what flannel left", func(_, w *facts.Host) {
			w.PodLinks, w.PodNetworkFiles = []string{"cni0"}, []string{"/run/flannel/subnet.env"}
			w.Addresses = append(w.Addresses, facts.Address{Interface: "cni0", Prefix: netip.MustParsePrefix("10.244.1.1/24")})
			w.Routes = append(w.Routes, netip.MustParsePrefix("10.244.1.0/24"))
		}, []string{"w1 HOST_POD_NETWORK_LEFT a former pod network left cni0, /run/flannel/subnet.env"}, nil},
		{"another network's configuration", func(_, w *facts.Host) { w.PodNetworkFiles = []string{"/etc/cni/net.d/05-cilium.conflist"} },
			[]string{"w1 HOST_POD_NETWORK_LEFT runtimes would take the pod network of /etc/cni/net.d/05-cilium.conflist before weave"}, []string{"w1 HOST_POD_NETWORK_LEFT"}},
		{"a node joined by hand", func(cp, w *facts.Host) {
			cp.ControlPlane = &facts.ControlPlane{CAHash: "ca", Finished: true}
			cp.Cluster = &facts.Cluster{Nodes: []facts.Node{{Name: "w1", Runtime: "docker://29.4.3", Version: "v1.36.3", InternalIP: "10.0.0.11"}}}
			cp.Recorded = &facts.Record{Init: true, Done: true, CAHash: "ca"}
			w.Kubelet = &facts.Member{Server: "https://10.0.0.10:6443", CAHash: "ca", NodeName: "w1"}
		}, []string{"w1 HOST_MADE_BY_HAND the host is node w1 of this cluster already, and kgpu did not join it; it fits the inventory"}, nil},
		{"roles that were exchanged", func(cp, w *facts.Host) {
			w.ControlPlane, cp.Kubelet = &facts.ControlPlane{CAHash: "ca", Finished: true}, &facts.Member{Server: "https://10.0.0.11:6443", CAHash: "ca", NodeName: "cp1"}
		}, []string{
			"cp1 CLUSTER_SETTING_FIXED inventory.yaml:3:43: hosts[0].role: the host is a worker of the cluster, and the inventory wants it to be a control plane: " +
				"make it a worker in the inventory again; `kgpu remove-worker cp1`, then `kgpu add-control-plane 10.0.0.10`, make a control plane of it",
			"w1 CLUSTER_SETTING_FIXED inventory.yaml:4:15: hosts[1].role: the host is a control plane of the cluster, and the inventory wants it to be a worker: " +
				"write `role: control-plane` for it again; a cluster whose only control plane is to be another host takes `kgpu reset` and `kgpu up`",
		}, []string{"cp1 CLUSTER_SETTING_FIXED", "w1 CLUSTER_SETTING_FIXED"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := decode(t, "")
			machines := []Machine{{Machine: machine.Machine{Host: inv.Hosts[0], Facts: healthy(10)}}, {Machine: machine.Machine{Host: inv.Hosts[1], Facts: healthy(11)}}}
			c.spoil(machines[0].Facts, machines[1].Facts)
			var got, left []string
			var ids []string
			for _, p := range Check(inv, machines, nil) {
				got, ids = append(got, strings.TrimSuffix(fmt.Sprintf("%s %s %s: %s", p.Host, p.ID, p.Detail, p.Advice), ": ")), append(ids, string(p.ID))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if ignored := Check(inv, machines, ids); len(ignored) > 0 {
				t.Errorf("--ignore leaves %v", ignored)
			}
			for i := range machines {
				machines[i].Adopt = true
			}
			for _, p := range Check(inv, machines, nil) {
				left = append(left, fmt.Sprintf("%s %s", p.Host, p.ID))
			}
			if !slices.Equal(left, c.adopt) {
				t.Errorf("--adopt leaves %q, want %q", left, c.adopt)
			}
		})
	}
}
