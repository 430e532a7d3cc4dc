package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// stepsOf are the steps with this ID, with their hosts, in the order in which one waits for another.
func stepsOf(t *testing.T, g *graph.Graph, id string) (out []*graph.Step) {
	t.Helper()
	for _, s := range g.Steps {
		if s.ID != id {
			continue
		}
		if len(out) > 0 && !waitsFor(g, s, out[len(out)-1].Ref) {
			t.Errorf("%s does not wait for %s", s.Ref, out[len(out)-1].Ref)
		}
		out = append(out, s)
	}
	return out
}

// waitsFor reports whether a step needs another one, by way of others perhaps.
func waitsFor(g *graph.Graph, s *graph.Step, other graph.Ref) bool {
	return slices.ContainsFunc(s.Needs, func(need graph.Ref) bool {
		i := slices.IndexFunc(g.Steps, func(s *graph.Step) bool { return s.Ref == need })
		return need == other || i >= 0 && waitsFor(g, g.Steps[i], other)
	})
}

// TestUpgradeOfThreePlanes: the first is upgraded by kubeadm upgrade apply, after a snapshot, the others one after the other by kubeadm
// upgrade node, and no kubelet changes before all of them have.
func TestUpgradeOfThreePlanes(t *testing.T) {
	_, _, g := upgradeOfPlanes("1.35.4", "1.36.3").planned(t)
	var how []string
	planes := stepsOf(t, g, "cluster/upgrade")
	for _, s := range planes {
		how = append(how, s.Host+" "+s.Input.Values["how"])
	}
	if !slices.Equal(how, []string{"cp2 apply", "cp1 node", "cp3 node"}) || !slices.Equal(hostsOf(g, "cluster/snapshot"), []string{"cp2"}) {
		t.Errorf("%q, snapshots of %q", how, hostsOf(g, "cluster/snapshot"))
	}
	for _, s := range stepsOf(t, g, "kube/upgrade") {
		if !waitsFor(g, s, planes[2].Ref) {
			t.Errorf("%s does not wait for the last API server", s.Ref)
		}
	}
}

// TestUpgradeWaitsForAPlane: while a control plane is away none is upgraded, and nodes go on whose control planes have all been.
func TestUpgradeWaitsForAPlane(t *testing.T) {
	inv, seen, _ := upgradeOfPlanes("1.35.4", "1.36.3").planned(t)
	delete(seen, "cp3")
	seen["w1"].Recorded, seen["w1"].Kubelet = nil, nil // it joins with the version that runs
	forgetNode(seen, "w1")
	waits := planUp(t, inv, seen)
	warning := "cp3: the cluster stays at Kubernetes 1.35.4 until it answers again: control planes are upgraded when all are there"
	if waits.Has("cluster/upgrade") || waits.Has("kube/upgrade") || waits.Has("kube/kubeadm") || !waits.Has("cluster/join") || !slices.Contains(waits.Warnings, warning) {
		t.Errorf("%v, %q", refs(waits), waits.Warnings)
	}
	inv, seen, g := upgradeOfPlanes("1.35.4", "1.36.3").planned(t)
	last := slices.IndexFunc(g.Steps, func(s *graph.Step) bool { return s.Ref == graph.Ref{Host: "cp3", ID: "cluster/upgrade"} })
	carryOut(t, inv, seen, g.Steps[:last+1])
	delete(seen, "cp3")
	if g = planUp(t, inv, seen); g.Has("cluster/upgrade") || !g.Has("kube/upgrade") {
		t.Errorf("%v", refs(g))
	}
}

// TestJoinsWaitForTheUpgrade: who joins meets control planes that all have the version of the cluster.
func TestJoinsWaitForTheUpgrade(t *testing.T) {
	inv, seen, g := upgradeOfPlanes("1.35.4", "1.36.3").planned(t)
	carryOut(t, inv, seen, g.Steps)
	for _, id := range []string{"cp1", "cp3"} {
		seen[id].ControlPlane.Version, seen[id].Upgrading = "v1.35.4", ""
	}
	seen["w1"].Recorded, seen["w1"].Kubelet = nil, nil
	forgetNode(seen, "w1")
	g = planUp(t, inv, seen)
	i := slices.IndexFunc(g.Steps, func(s *graph.Step) bool { return s.ID == "cluster/join" })
	if i < 0 || !waitsFor(g, g.Steps[i], graph.Ref{Host: "cp3", ID: "cluster/upgrade"}) {
		t.Errorf("%v", refs(g))
	}
}

// TestNamesOfJoinedPlanes: one that joined has its own address and the names that all have in common, so that neither it nor the one
// before it needs another certificate; a name that comes later is missing on all.
func TestNamesOfJoinedPlanes(t *testing.T) {
	_, seen := settled(t, onePlane)
	seen["cp1"], seen["cp3"] = bare(12), bare(13)
	inv := decode(t, strings.Replace(fourHosts, "address: 10.0.0.12, ", "address: second.example.com, ", 1))
	g := planUp(t, inv, seen)
	if !g.Has(joinPlane) || g.Has("certs/renew") {
		t.Errorf("%v", refs(g))
	}
	settle(t, inv, seen, g)
	nothingLeft(t, inv, seen)
	inv = decode(t, strings.Replace(fourHosts, "virtualIP: 10.0.0.100", "virtualIP: 10.0.0.100, clusterConfiguration: {apiServer: {certSANs: [k8s.example.com]}}", 1))
	g = planUp(t, inv, seen)
	renewals := stepsOf(t, g, "certs/renew")
	if len(renewals) != 3 || len(g.Steps) != 3 {
		t.Fatalf("%v", refs(g))
	}
	for _, s := range renewals {
		if s.Reason != "the API server's certificate lacks k8s.example.com" || s.Input.Values["alone"] != "" {
			t.Errorf("%s: %s, %q", s.Ref, s.Reason, s.Input.Values["alone"])
		}
	}
	settles(t, inv, seen, g)
}

// endCertificates lets the certificates of control planes have ended while the hosts were off.
func endCertificates(seen map[string]*facts.Host, ids ...string) {
	for _, id := range ids {
		peer := facts.Certificate{Path: "/etc/kubernetes/pki/etcd/peer.crt"}
		seen[id].Now, seen[id].Certificates = today, append(seen[id].Certificates, peer)
		for i := range seen[id].Certificates {
			seen[id].Certificates[i].Begins, seen[id].Certificates[i].Ends = today.AddDate(-1, 0, -1), today.AddDate(0, 0, -1)
		}
	}
}

// TestAllPlanesSlept: no API server gets ready before etcd has a majority whose certificates others take, so that none is waited for;
// from then on each is, before the next has its turn.
func TestAllPlanesSlept(t *testing.T) {
	for _, c := range []struct {
		ended []string
		alone []string
	}{
		{[]string{"cp1", "cp2", "cp3"}, []string{"cp2"}},
		{[]string{"cp1", "cp3"}, []string{"cp2"}},
		{[]string{"cp3"}, nil},
	} {
		inv, seen := settled(t, fourHosts)
		endCertificates(seen, c.ended...)
		if len(c.ended) > 1 {
			for _, id := range []string{"cp1", "cp2", "cp3"} {
				seen[id].Cluster = nil
			}
		}
		g, err := RenewCertificates(inv, seen)
		if err != nil {
			t.Fatal(err)
		}
		var alone []string
		for _, s := range stepsOf(t, g, "certs/renew") {
			if s.Input.Values["alone"] == "yes" {
				alone = append(alone, s.Host)
			}
		}
		if len(hostsOf(g, "certs/renew")) != 3 || !slices.Equal(alone, c.alone) {
			t.Errorf("of %q: %v, not waited for: %q", c.ended, refs(g), alone)
		}
		noneWaitsInVain(t, planUp(t, inv, seen))
	}
}

// restoredPlanes plans the restore of a cluster with three control planes after harm.
func restoredPlanes(t *testing.T, harm func(map[string]*facts.Host)) (*graph.Graph, error) {
	t.Helper()
	inv, seen := settled(t, fourHosts)
	set := machine.SetOf(inv, seen)
	a := Archive{
		Sum: strings.Repeat("5a", 32), Token: newToken, CA: "ca", Cluster: inv.Cluster, Kubernetes: set.Versions.Running.String(), Endpoint: seen["cp2"].ControlPlane.Endpoint,
		Made: time.Date(2026, 11, 20, 9, 15, 0, 0, time.UTC), Settings: SettingsOf(set),
	}
	for _, id := range []string{"cp1", "cp2", "cp3"} {
		seen[id].KubeadmFiles = []string{"/etc/kubernetes/admin.conf", apiServer}
	}
	harm(seen)
	return restored(inv, seen, a)
}

// TestRestoreOfThreePlanes: those that have their files get the same data, those that joined like the one that was the first; who
// is fresh, or never came to the end of its join, joins again when the cluster is there.
func TestRestoreOfThreePlanes(t *testing.T) {
	all := "cp2=https://10.0.0.10:2380,cp1=https://10.0.0.12:2380,cp3=https://10.0.0.13:2380"
	for name, c := range map[string]struct {
		harm  func(map[string]*facts.Host)
		step  string
		hosts []string
		peers string
	}{
		"a namespace was deleted": {unharmed, RestoreStep, []string{"cp2", "cp1", "cp3"}, all},
		"nothing answers": {func(seen map[string]*facts.Host) {
			seen["cp1"].Cluster, seen["cp2"].Cluster, seen["cp3"].Cluster = nil, nil, nil
		}, RestoreStep, []string{"cp2", "cp1", "cp3"}, all},
		"two are lost with their disks": {func(seen map[string]*facts.Host) {
			seen["cp2"], seen["cp3"], seen["cp1"].Cluster = bare(10), bare(13), nil
		}, RestoreStep, []string{"cp1"}, "cp1=https://10.0.0.12:2380"},
		"one did not come to the end of its join": {func(seen map[string]*facts.Host) { halfJoined(seen["cp3"]) }, RestoreStep, []string{"cp2", "cp1"},
			"cp2=https://10.0.0.10:2380,cp1=https://10.0.0.12:2380"},
		"all are lost": {func(seen map[string]*facts.Host) {
			seen["cp1"], seen["cp2"], seen["cp3"] = bare(12), bare(10), bare(13)
		}, "cluster/init", []string{"cp2"}, "cp2=https://10.0.0.10:2380"},
		"all are lost, and their etcd is left": {func(seen map[string]*facts.Host) {
			for _, id := range []string{"cp1", "cp2", "cp3"} {
				seen[id].ControlPlane, seen[id].Cluster, seen[id].Kubelet, seen[id].KubeadmFiles, seen[id].Etcd = nil, nil, nil, nil, &facts.EtcdData{KiB: 7}
			}
		}, "cluster/init", []string{"cp2"}, "cp2=https://10.0.0.10:2380"},
	} {
		g, err := restoredPlanes(t, c.harm)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ends := hostsOf(g, "restore/end")
		slices.Reverse(ends)
		if got := hostsOf(g, c.step); !slices.Equal(got, c.hosts) || !slices.Equal(ends, c.hosts) || g.Has(joinPlane) {
			t.Errorf("%s: %v", name, refs(g))
		}
		for i, s := range stepsOf(t, g, "restore/end") {
			if sees := s.Input.Values["agents"] != ""; sees != (i == len(ends)-1) {
				t.Errorf("%s: %s looks at the nodes: %t", name, s.Ref, sees)
			}
		}
		for _, s := range g.Steps {
			if s.ID == c.step && s.Input.Values["peers"] != c.peers {
				t.Errorf("%s: the members are %q", name, s.Input.Values["peers"])
			}
			if s.Ref == (graph.Ref{Host: "cp2", ID: "os/keepalived"}) && s.Input.Values["holds"] != "yes" {
				t.Errorf("%s: kubeadm init does not find the virtual address", name)
			}
		}
		if name == "all are lost" && !g.Has("os/keepalived") {
			t.Errorf("%s: nobody has the virtual address: %v", name, refs(g))
		}
	}
	inv, seen := settled(t, fourHosts)
	seen["cp3"].Restoring = &facts.Restoring{Archive: strings.Repeat("5a", 32)}
	if _, _, err := RemovePlanes(inv, seen, []string{"cp1", "cp3"}); !errors.Is(firstOf(err), &reason.Error{ID: reason.RestoreUnfinished}) {
		t.Errorf("a control plane leaves a cluster that is half restored: %v", err)
	}
	if _, err := restoredPlanes(t, func(seen map[string]*facts.Host) { delete(seen, "cp3") }); !errors.Is(firstOf(err), &reason.Error{ID: reason.RestoreFailed}) {
		t.Errorf("one that keeps the data it has: %v", err)
	}
}

// TestRestoreIsCarriedOn: control planes go on with the etcd that they began to make, as long as all of them can; else all get the data
// anew, as another etcd. None gets it anew by itself: what it had agreed to with the others would be lost.
func TestRestoreIsCarriedOn(t *testing.T) {
	sum, peers := strings.Repeat("5a", 32), "cp2=https://10.0.0.10:2380,cp1=https://10.0.0.12:2380,cp3=https://10.0.0.13:2380"
	begun, done := &facts.Restoring{Archive: sum}, &facts.Restoring{Archive: sum, Done: true, Token: formerToken, Peers: peers}
	other := &facts.Restoring{Archive: strings.Repeat("99", 32), Done: true, Token: formerToken, Peers: peers}
	fewer := &facts.Restoring{Archive: sum, Done: true, Token: formerToken, Peers: "cp2=https://10.0.0.10:2380"}
	elsewhere := &facts.Restoring{Archive: sum, Done: true, Token: newToken, Peers: peers}
	anew := &facts.Restoring{Archive: sum, Done: true}
	all := []string{"cp2", "cp1", "cp3"}
	for name, c := range map[string]struct {
		of    [3]*facts.Restoring // cp2, cp1, cp3
		token string
		hosts []string
	}{
		"none has the data":                       {[3]*facts.Restoring{begun, begun, nil}, newToken, all},
		"one has":                                 {[3]*facts.Restoring{begun, done, begun}, formerToken, all},
		"all have":                                {[3]*facts.Restoring{done, done, done}, formerToken, all},
		"one came to the end":                     {[3]*facts.Restoring{done, nil, done}, formerToken, []string{"cp2", "cp3"}},
		"all came to the end":                     {[3]*facts.Restoring{}, newToken, all},
		"one began with another archive":          {[3]*facts.Restoring{done, done, other}, newToken, all},
		"one has it as the only member":           {[3]*facts.Restoring{fewer, begun, begun}, newToken, all},
		"they are of two etcds":                   {[3]*facts.Restoring{done, elsewhere, begun}, newToken, all},
		"one was to get it anew":                  {[3]*facts.Restoring{done, done, anew}, newToken, all},
		"one has nothing, another has only begun": {[3]*facts.Restoring{done, nil, begun}, newToken, all},
	} {
		g, err := restoredPlanes(t, func(seen map[string]*facts.Host) {
			seen["cp2"].Restoring, seen["cp1"].Restoring, seen["cp3"].Restoring = c.of[0], c.of[1], c.of[2]
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ends := hostsOf(g, "restore/end")
		if !slices.Equal(hostsOf(g, RestoreStep), c.hosts) || !slices.Equal(hostsOf(g, BeginRestoreStep), c.hosts) || len(ends) != len(c.hosts) {
			t.Errorf("%s: %v", name, refs(g))
		}
		for _, s := range g.Steps {
			if s.ID == RestoreStep && s.Input.Values["token"] != c.token {
				t.Errorf("%s: %s makes the etcd %s", name, s.Ref, s.Input.Values["token"])
			}
		}
	}
}
