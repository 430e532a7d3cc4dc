package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// TestNamesOfTheAPIServer: a name that comes into the inventory is planned, one that goes from it stays in the certificate, and
// nothing of what a host says of its names gets into kubeadm's file but names.
func TestNamesOfTheAPIServer(t *testing.T) {
	named := func(names string) string {
		return threeHosts + containerd + "kubernetes: {version: 1.36.3, clusterConfiguration: {apiServer: {certSANs: [" + names + "]}}}\n"
	}
	_, seen := settled(t, named("old.example.com"))
	nothingLeft(t, decode(t, named("old.example.com")), seen)
	nothingLeft(t, decode(t, named("")), seen)
	seen["cp1"].Certificates[0].Names = append(seen["cp1"].Certificates[0].Names, "*.example.org", "x\n- evil", "fd00:0:0::1")
	inv := decode(t, named("New.example.com., old.example.com"))
	g := planUp(t, inv, seen)
	hasSteps(t, g, "cp1 certs/renew")
	s := g.Steps[0]
	if s.Reason != "the API server's certificate lacks new.example.com" || s.Input.Values["renew"] != "apiserver" {
		t.Errorf("because %s: %s", s.Reason, s.Input.Values["renew"])
	}
	config := s.Input.Values["kubeadm"]
	for _, want := range []string{"- new.example.com\n", "- old.example.com\n", "- fd00::1\n", "- '*.example.org'\n"} {
		if !strings.Contains(strings.ReplaceAll(config, `"`, "'"), want) {
			t.Errorf("no %q in\n%s", want, config)
		}
	}
	if strings.Contains(config, "evil") {
		t.Errorf("a host's words are in\n%s", config)
	}
	settles(t, inv, seen, g)
}

// TestNamesOfAClusterOfBefore: the names that an older kgpu remembered with the rest of the configuration are no difference.
func TestNamesOfAClusterOfBefore(t *testing.T) {
	text := threeHosts + containerd + "kubernetes: {version: 1.36.3, clusterConfiguration: {apiServer: {certSANs: [a.example.com]}}}\n"
	inv, seen := settled(t, text)
	file := madeWithFile("kubernetes.clusterConfiguration")
	seen["cp1"].Files[file] = sha256Of(madeWithText(inv.Kubernetes.ClusterConfiguration))
	nothingLeft(t, inv, seen)
	changed := decode(t, strings.Replace(text, "apiServer: {", "apiServer: {timeoutForControlPlane: 9m, ", 1))
	if _, err := Up(changed, seen); !errors.Is(err, &reason.Error{ID: reason.ClusterSettingFixed}) {
		t.Errorf("%v", err)
	}
}

// TestPlanesOneAfterTheOther: no control plane restarts before the one before it is whole again.
func TestPlanesOneAfterTheOther(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	second := inv.Hosts[0]
	second.Name = "cp2"
	inv.Hosts = append(inv.Hosts, second)
	f := *seen["cp1"]
	f.Cluster, f.Addresses = nil, bare(20).Addresses
	seen["cp1"].Cluster.Nodes = append(seen["cp1"].Cluster.Nodes, facts.Node{Name: "cp2"})
	seen["cp2"] = &f
	asleep("cp2")(seen)
	g, err := RenewCertificates(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	hasSteps(t, g, "cp1 certs/renew", "cp2 certs/kubelet", "cp2 certs/renew")
	for i, s := range g.Steps[1:] {
		if !slices.Contains(s.Needs, g.Steps[i].Ref) {
			t.Errorf("%s needs %v", s.Ref, s.Needs)
		}
	}
}

// TestOldKubernetesIsNotRenewed: kubeadm before 1.30 has other commands, which a warning and an error say.
func TestOldKubernetesIsNotRenewed(t *testing.T) {
	inv, seen := settled(t, threeHosts+"runtime: containerd\nnetwork: flannel\nkubernetes: {version: 1.29.15, allowEndOfLife: true}\n"+
		"repositories: {kubernetes: {url: \"https://mirror.example.com/kubernetes/v1.29/deb\", fingerprint: DE15B14486CD377B9E876E1A234654DA9A296436}}\n")
	aging(9)(seen)
	asleep("w1")(seen)
	g := planUp(t, inv, seen)
	if warned := strings.Join(g.Warnings, "\n"); g.Has("certs/renew") || g.Has("certs/kubelet") || strings.Count(warned, "kgpu renews the certificates of Kubernetes 1.30 and newer") != 2 {
		t.Errorf("planned %q, warned\n%s", refs(g), warned)
	}
	var usage *reason.UsageError
	if _, err := RenewCertificates(inv, seen); !errors.As(err, &usage) {
		t.Errorf("%v", err)
	}
}

// TestAdoptedKeepsItsNames: what was made by hand keeps the names that its owner gave it, and is renewed before it ends.
func TestAdoptedKeepsItsNames(t *testing.T) {
	inv, seen := settled(t, threeHosts+containerd)
	seen["cp1"].Recorded = &facts.Record{Adopted: true, CAHash: "ca"}
	seen["cp1"].Certificates = []facts.Certificate{{Path: machine.APIServerCertificate, Begins: today.AddDate(-1, 0, 0), Ends: today.AddDate(0, 3, 0)}}
	seen["cp1"].Now = today
	nothingLeft(t, inv, seen)
	aging(9)(seen)
	hasSteps(t, planUp(t, inv, seen), "cp1 certs/renew")
}

// TestRenewalCutOff: whichever command comes next, a control plane whose renewal was cut off gets whole certificates, and one on which
// static pods run on with what was replaced restarts these, before the next has its turn.
func TestRenewalCutOff(t *testing.T) {
	inv, seen := settled(t, fourHosts)
	seen["cp1"].RenewalBegun, seen["cp3"].StalePods = true, []string{"kube-scheduler"}
	g := planUp(t, inv, seen)
	hasSteps(t, g, "cp1 certs/renew", "cp3 certs/renew")
	for i, want := range []struct{ renew, reason string }{
		{"all", "an earlier renewal was cut off"}, {"", "certificates were renewed, and not restarted since: kube-scheduler"},
	} {
		if s := g.Steps[i]; s.Input.Values["renew"] != want.renew || s.Reason != want.reason {
			t.Errorf("%s: %q, because %s", s.Ref, s.Input.Values["renew"], s.Reason)
		}
	}
	asked, err := RenewCertificates(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stepsOf(t, asked, "certs/renew") {
		if s.Input.Values["renew"] != "all" {
			t.Errorf("%s: %q", s.Ref, s.Input.Values["renew"])
		}
	}
	if len(stepsOf(t, g, "certs/renew")) != 2 || len(hostsOf(asked, "certs/renew")) != 3 {
		t.Errorf("%v, asked for: %v", refs(g), refs(asked))
	}
	settles(t, inv, seen, g)
}
