package plan

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

// apiServer is the file by which a control plane is known that has its own.
const apiServer = "/etc/kubernetes/manifests/kube-apiserver.yaml"

// Tokens of the etcd of this restore, and of a former try of it.
const newToken, formerToken = "kgpu-5a5a5a5a5a5a5a5a-0000000000000002", "kgpu-5a5a5a5a5a5a5a5a-0000000000000001"

// backedUp is the archive of a cluster that is up.
func backedUp(inv *inventory.Inventory, seen map[string]*facts.Host) Archive {
	set := machine.SetOf(inv, seen)
	a := Archive{
		Sum: strings.Repeat("5a", 32), Token: newToken, CA: seen["cp1"].ControlPlane.CAHash, Cluster: inv.Cluster, Kubernetes: set.Versions.Running.String(),
		Endpoint: seen["cp1"].ControlPlane.Endpoint, Made: time.Date(2026, 11, 20, 9, 15, 0, 0, time.UTC), Size: 30 << 20,
		Sums: map[string]string{"etcd.db": strings.Repeat("1b", 32), "files.tar": strings.Repeat("2c", 32)}, Settings: SettingsOf(set), Nodes: map[string]string{},
	}
	for _, m := range set.Machines {
		a.Nodes[m.NodeName()] = m.NodeAddress().String()
	}
	return a
}

// restored plans the restore of an archive as kgpu restore does.
func restored(inv *inventory.Inventory, seen map[string]*facts.Host, a Archive) (*graph.Graph, error) {
	wanted, err := a.For(inv)
	if err == nil {
		wanted, err = a.On(wanted, seen)
	}
	if err != nil {
		return nil, err
	}
	return Restore(wanted, seen, a)
}

// restoring plans the restore of what the cluster was before it was harmed.
func restoring(harm func(map[string]*facts.Host)) planner {
	return func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		seen["cp1"].KubeadmFiles = []string{"/etc/kubernetes/admin.conf", apiServer}
		a := backedUp(inv, seen)
		harm(seen)
		return restored(inv, seen, a)
	}
}

// lost makes a fresh machine of the control plane, at this last number of its address.
func lost(n int) func(map[string]*facts.Host) {
	return func(seen map[string]*facts.Host) {
		seen["cp1"] = bare(n)
		if n != 10 {
			seen["cp1"].Reached = seen["cp1"].Addresses[0].Prefix.Addr()
		}
	}
}

var kept = []scenario{
	onMembers("backup", unharmed, func(inv *inventory.Inventory, seen map[string]*facts.Host) (*graph.Graph, error) {
		take, clear, err := Backup(inv, seen)
		take.Steps = append(take.Steps, clear.Steps...)
		return take, err
	}),
	onMembers("restore", unharmed, restoring(unharmed)),
	onMembers("restore onto another machine", unharmed, restoring(lost(10))),
	onMembers("restore of what was restored already", unharmed, restoring(func(seen map[string]*facts.Host) {
		seen["cp1"].Restoring = &facts.Restoring{Archive: strings.Repeat("5a", 32), Done: true, Token: formerToken, Peers: "cp1=https://10.0.0.10:2380"}
	})),
}

// ids are the steps of a graph, in its order, with their hosts.
func ids(g *graph.Graph) (out []string) {
	for _, s := range g.Steps {
		out = append(out, s.Host+" "+s.ID)
	}
	return out
}

// planned is the restore of a cluster of three hosts after harm.
func plannedRestore(t *testing.T, harm func(map[string]*facts.Host)) (*graph.Graph, error) {
	t.Helper()
	inv, seen := settled(t, threeHosts+containerd)
	return restoring(harm)(inv, seen)
}

// TestRestoreOnTheSameHosts: nothing is prepared, joined or reset; the nodes look at their pods anew when the data is there.
func TestRestoreOnTheSameHosts(t *testing.T) {
	for name, harm := range map[string]func(map[string]*facts.Host){
		"a namespace was deleted": unharmed,
		"nothing answers":         func(seen map[string]*facts.Host) { seen["cp1"].Cluster = nil },
		"it was cut off": func(seen map[string]*facts.Host) {
			seen["cp1"].Restoring = &facts.Restoring{Archive: strings.Repeat("5a", 32)}
		},
		"it was cut off by the end": func(seen map[string]*facts.Host) {
			seen["cp1"].Restoring, seen["cp1"].Cluster = &facts.Restoring{Archive: strings.Repeat("5a", 32), Done: true}, nil
		},
		"another one was cut off": func(seen map[string]*facts.Host) {
			seen["cp1"].Restoring = &facts.Restoring{Archive: strings.Repeat("99", 32), Done: true}
		},
		"a worker is in no cluster":   func(seen map[string]*facts.Host) { away(seen["w2"]) },
		"a worker is not reached now": func(seen map[string]*facts.Host) { delete(seen, "w2") },
	} {
		g, err := plannedRestore(t, harm)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []string{"cp1 restore/begin", "cp1 restore/data", "w1 restore/kubelet", "w2 restore/kubelet", "cp1 restore/end"}
		if strings.HasPrefix(name, "a worker") {
			want = slices.Delete(want, 3, 4)
		}
		if got := ids(g); !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
		input := g.Steps[1].Input.Values
		if input["peers"] != "cp1=https://10.0.0.10:2380" || !strings.Contains(input["sums"], strings.Repeat("1b", 32)+" etcd.db") {
			t.Errorf("%s: %q", name, input)
		}
	}
}

// TestRestoreOntoAnotherMachine: it becomes the control plane that the workers know, by the name that they know; they are not reset.
func TestRestoreOntoAnotherMachine(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	endpoint := seen["cp1"].ControlPlane.Endpoint
	g, err := restoring(lost(10))(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	got := ids(g)
	for _, want := range []string{"cp1 restore/begin", "cp1 runtime/containerd", "cp1 kube/packages", "cp1 cluster/init", "w1 restore/kubelet", "w2 restore/kubelet"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s: %q", want, got)
		}
	}
	for _, never := range []string{"cluster/join", "host/reset", "cluster/token", "restore/data"} {
		if g.Has(never) {
			t.Errorf("%s is planned", never)
		}
	}
	i := slices.IndexFunc(g.Steps, func(s *graph.Step) bool { return s.ID == "cluster/init" })
	input := g.Steps[i].Input.Values
	if !strings.Contains(input["kubeadm"], "controlPlaneEndpoint: "+endpoint) || input["sums"] == "" {
		t.Errorf("%q", input)
	}
}

// TestRestoreAtAnotherAddress: what changes is said, and the workers' name leads there.
func TestRestoreAtAnotherAddress(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	seen["cp1"].KubeadmFiles = []string{apiServer}
	a := backedUp(inv, seen)
	name, _, _ := strings.Cut(a.Endpoint, ":")
	moved := decode(t, strings.Replace(threeHosts, "10.0.0.10", "10.0.0.20", 1)+containerd)
	lost(20)(seen)
	g, err := restored(moved, seen, a)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"cp1", "w1", "w2"} {
		i := slices.IndexFunc(g.Steps, func(s *graph.Step) bool { return s.Ref == graph.Ref{Host: h, ID: "os/hosts"} })
		if i < 0 || g.Steps[i].Input.Values["name"] != name || g.Steps[i].Input.Values["address"] != "10.0.0.20" {
			t.Errorf("%s does not learn where %s leads: %q", h, name, ids(g))
		}
	}
	if !slices.ContainsFunc(g.Warnings, func(w string) bool { return strings.Contains(w, "was at 10.0.0.10 and is at 10.0.0.20") }) {
		t.Errorf("warned of %q", g.Warnings)
	}
	a.Nodes["w9"] = "10.0.0.19"
	if g, err = restored(moved, seen, a); err != nil || !slices.ContainsFunc(g.Warnings, func(w string) bool { return strings.Contains(w, "kubectl delete node w9") }) {
		t.Errorf("%v; warned of %q", err, g.Warnings)
	}
}

// TestRestoreOfSeveralPlanes: those that have their files get the same data, as members of one etcd; one that is fresh joins later.
func TestRestoreOfSeveralPlanes(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	seen["cp1"].KubeadmFiles = []string{apiServer}
	a := backedUp(inv, seen)
	for i := range inv.Hosts {
		inv.Hosts[i].Role = inventory.ControlPlane
	}
	second := *seen["cp1"]
	second.Addresses, second.Hostname, second.Recorded = seen["w1"].Addresses, "w1", &facts.Record{Join: true, Done: true, CAHash: "ca"}
	seen["w1"], seen["w2"] = &second, bare(12)
	g, err := restored(inv, seen, a)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := ids(g), []string{"cp1 restore/begin", "w1 restore/begin", "cp1 restore/data", "w1 restore/data", "w1 restore/end", "cp1 restore/end"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, s := range g.Steps {
		if peers := s.Input.Values["peers"]; s.ID == RestoreStep && peers != "cp1=https://10.0.0.10:2380,w1=https://10.0.0.11:2380" {
			t.Errorf("%s: %q", s.Host, peers)
		}
	}
}

// TestRestoreAfterAnUpgrade: no host goes back to an older version, and kubeadm brings the data to what a control plane has.
func TestRestoreAfterAnUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		was, file, has string // Kubernetes of the archive; of the inventory; of the cluster that comes back, or why it does not
		harm           func(map[string]*facts.Host)
		upgrade        bool
	}{
		"none":                             {"1.36.3", "", "1.36.3", unharmed, false},
		"of a patch":                       {"1.36.1", "", "1.36.3", unharmed, true},
		"of a minor":                       {"1.35.6", `"1.36"`, "1.36.3", unharmed, true},
		"of a minor that the file forgot":  {"1.35.6", `"1.35"`, "has 1.36.3, and the inventory wants 1.35", unharmed, false},
		"with which etcd changed":          {"1.35.6", `"1.36"`, "from minor to minor", func(seen map[string]*facts.Host) { seen["cp1"].ControlPlane.Etcd = "3.6.5-0" }, false},
		"of two minors":                    {"1.34.9", "", "from minor to minor", unharmed, false},
		"to this version, then taken back": {"1.37.1", "", "bring the cluster to Kubernetes 1.37 first", unharmed, false},
		"to a patch that the hosts lack":   {"1.36.9", "", "1.36.9", unharmed, true},
		"and the control plane is lost":    {"1.36.1", "", "1.36.3", lost(10), false},
		"and all is lost": {"1.36.1", "", "1.36.1", func(seen map[string]*facts.Host) {
			for i, id := range []string{"cp1", "w1", "w2"} {
				seen[id] = bare(10 + i)
			}
		}, false},
	} {
		inv, seen := settled(t, threeHosts+containerd+"kubernetes: {version: 1.36.3}\n")
		seen["cp1"].KubeadmFiles = []string{apiServer}
		a := backedUp(inv, seen)
		a.Kubernetes, a.Etcd = c.was, "3.5.26"
		seen["cp1"].ControlPlane.Etcd = "3.5.30-0"
		c.harm(seen)
		file := threeHosts + containerd
		if c.file != "" {
			file += "kubernetes: {version: " + c.file + "}\n"
		}
		inv = decode(t, file)
		g, err := restored(inv, seen, a)
		if err != nil {
			if e := reason.All(err)[0]; !strings.Contains(e.Detail+" "+e.Advice, c.has) {
				t.Errorf("%s: %v → %s", name, err, e.Advice)
			}
			continue
		}
		wanted, _ := a.For(inv)
		wanted, _ = a.On(wanted, seen)
		if got := wanted.Kubernetes.Version.String(); got != c.has {
			t.Errorf("%s: it comes back with %s, want %s", name, got, c.has)
		}
		if warned := slices.ContainsFunc(g.Warnings, func(w string) bool { return strings.Contains(w, "comes back with Kubernetes "+c.has) }); warned != (c.has != c.was) {
			t.Errorf("%s: warned of %q", name, g.Warnings)
		}
		for _, s := range g.Steps {
			if upgrade := s.Input.Values["upgrade"] != ""; upgrade != (c.upgrade && s.ID == RestoreStep) {
				t.Errorf("%s: %s has to upgrade the data: %t", name, s.ID, upgrade)
			}
		}
		if seen["cp1"].ControlPlane == nil {
			continue
		}
		if c.upgrade {
			seen["cp1"].Upgrading = machine.UpgradingPlane
		}
		up, err := Up(wanted, seen)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := slices.Contains(ids(up), "cp1 cluster/upgrade"); got != c.upgrade {
			t.Errorf("%s: then comes %q", name, ids(up))
		}
	}
}

// TestRestoreThatIsRefused: what belongs to somebody else, or was made otherwise, is not touched.
func TestRestoreThatIsRefused(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	seen["cp1"].KubeadmFiles = []string{apiServer}
	a := backedUp(inv, seen)
	for name, c := range map[string]struct {
		want   reason.ID
		change func(*Archive, *inventory.Inventory, map[string]*facts.Host)
	}{
		"of a cluster of another name": {reason.BackupForeign, func(a *Archive, _ *inventory.Inventory, _ map[string]*facts.Host) { a.Cluster = "other" }},
		"of a cluster of this name":    {reason.BackupForeign, func(a *Archive, _ *inventory.Inventory, _ map[string]*facts.Host) { a.CA = strings.Repeat("77", 32) }},
		"onto somebody's worker": {reason.BackupForeign, func(_ *Archive, _ *inventory.Inventory, seen map[string]*facts.Host) {
			seen["cp1"] = bare(10)
			seen["cp1"].Kubelet = &facts.Member{CAHash: strings.Repeat("77", 32), Server: "https://10.9.9.9:6443"}
		}},
		"onto somebody's etcd": {reason.HostEtcdStale, func(_ *Archive, _ *inventory.Inventory, seen map[string]*facts.Host) {
			seen["cp1"] = bare(10)
			seen["cp1"].Etcd = &facts.EtcdData{KiB: 7}
		}},
		"with versions that cannot be": {reason.BackupDamaged, func(a *Archive, _ *inventory.Inventory, _ map[string]*facts.Host) { a.Kubernetes = "new" }},
	} {
		changed, hosts := a, maps.Clone(seen)
		c.change(&changed, inv, hosts)
		_, err := restored(inv, hosts, changed)
		if !errors.Is(firstOf(err), &reason.Error{ID: c.want}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unread := a
	unread.Kubernetes = "new"
	if _, err := unread.For(inv); !errors.Is(err, &reason.Error{ID: reason.BackupDamaged}) { // before any host is asked
		t.Errorf("a version that cannot be: %v", err)
	}
	if _, err := a.For(decode(t, threeHosts+strings.Replace(containerd, "flannel", "calico", 1))); !errors.Is(err, &reason.Error{ID: reason.ClusterSettingFixed}) {
		t.Errorf("another network: %v", err)
	}
}

// firstOf is the first reason of an error, without its host.
func firstOf(err error) error {
	for _, e := range reason.All(err) {
		return &reason.Error{ID: e.ID}
	}
	return err
}

// TestUpRefusesAHalfRestoredCluster: nobody builds on data that may be anything.
func TestUpRefusesAHalfRestoredCluster(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	seen["cp1"].Restoring = &facts.Restoring{Archive: strings.Repeat("5a", 32)}
	if _, err := Up(inv, seen); !errors.Is(firstOf(err), &reason.Error{ID: reason.RestoreUnfinished}) {
		t.Error(err)
	}
}

// TestNoBackupWithoutAnAnswer: a snapshot comes from an etcd that answers.
func TestNoBackupWithoutAnAnswer(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	seen["cp1"].Cluster = nil
	if _, _, err := Backup(inv, seen); !errors.Is(firstOf(err), &reason.Error{ID: reason.APIUnreachable}) {
		t.Error(err)
	}
}
