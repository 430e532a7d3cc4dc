package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// What an uninstaller left is no cluster; what runs, or has signs of two kinds, is one. Each has what takes it away.
func TestDistributions(t *testing.T) {
	active, disabled := facts.Unit{Active: "active", Enabled: "enabled"}, facts.Unit{Active: "inactive", Enabled: "disabled"}
	for _, tc := range []struct {
		name  string
		paths []string
		units map[string]facts.Unit
		port  string // the program that listens
		here  bool
		away  string
	}{
		{name: "k3s, its data", paths: []string{"/var/lib/rancher/k3s"}, away: "`sudo rm -r /var/lib/rancher/k3s`"},
		{name: "k3s, data at two places", paths: []string{"/var/lib/rancher/k3s", "/etc/rancher/k3s"}, away: "`sudo rm -r /var/lib/rancher/k3s /etc/rancher/k3s`"},
		{name: "k3s, the program only", paths: []string{"/usr/local/bin/k3s"}, away: "`sudo rm -r /usr/local/bin/k3s`"},
		{name: "k3s, uninstaller and data", paths: []string{"/var/lib/rancher/k3s", "/usr/local/bin/k3s-uninstall.sh"}, away: "`sudo /usr/local/bin/k3s-uninstall.sh`"},
		{name: "k3s, stopped", paths: []string{"/var/lib/rancher/k3s", "/usr/local/bin/k3s", "/usr/local/bin/k3s-agent-uninstall.sh"},
			units: map[string]facts.Unit{"k3s-agent.service": disabled}, here: true, away: "`sudo /usr/local/bin/k3s-agent-uninstall.sh`"},
		{name: "k3s, at work", paths: []string{"/usr/local/bin/k3s"}, units: map[string]facts.Unit{"k3s.service": active}, here: true, away: "`sudo k3s-uninstall.sh`"},
		{name: "rke2, data", paths: []string{"/var/lib/rancher/rke2", "/etc/rancher/rke2"}, away: "`sudo rm -r /var/lib/rancher/rke2 /etc/rancher/rke2`"},
		{name: "rke2, a server", paths: []string{"/usr/local/bin/rke2", "/var/lib/rancher/rke2"}, units: map[string]facts.Unit{"rke2-server.service": active}, here: true, away: "rke2-uninstall.sh"},
		{name: "microk8s, the snap is gone", paths: []string{"/var/snap/microk8s"}, away: "`sudo rm -r /var/snap/microk8s`"},
		{name: "microk8s", paths: []string{"/snap/microk8s", "/var/snap/microk8s"}, here: true, away: "`sudo snap remove --purge microk8s`"},
		{name: "minikube, data", paths: []string{"/var/lib/minikube"}, away: "`sudo rm -r /var/lib/minikube`"},
		{name: "k0s, data", paths: []string{"/var/lib/k0s"}, away: "`sudo rm -r /var/lib/k0s`"},
		{name: "k0s", paths: []string{"/usr/local/bin/k0s", "/var/lib/k0s"}, here: true, away: "k0s reset"},
		{name: "k0s from elsewhere", paths: []string{"/var/lib/k0s"}, port: "k0s", here: true, away: "k0s reset"},
		{name: "openshift", paths: []string{"/var/lib/origin"}, port: "openshift", here: true, away: "rm -r /var/lib/origin"},
		{name: "rke, data", paths: []string{"/opt/rke"}, away: "`sudo rm -r /opt/rke`"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := "kgpu-facts=1\nnow=1795181171.6\ncpus=16\nmemory-kib=131072000\nledger=0\n"
			for _, path := range tc.paths {
				text += "foreign=" + path + "\n"
			}
			told, err := facts.Parse([]byte(text + "end=1\n"))
			if err != nil {
				t.Fatal(err)
			}
			f := bare(11)
			f.OtherDistributions, f.DistributionPaths, f.Units = told.OtherDistributions, told.DistributionPaths, tc.units
			if tc.port != "" {
				f.Listening = []facts.Socket{{Addr: netip.MustParseAddrPort("0.0.0.0:10250"), Process: tc.port}}
			}
			found := machine.Distributions(f)
			if len(found) != 1 || found[0].Installed != tc.here || !strings.Contains(found[0].RemovedBy, tc.away) {
				t.Fatalf("%+v", found)
			}
			for _, path := range tc.paths {
				if !strings.HasSuffix(path, "uninstall.sh") && !slices.Contains(found[0].Signs, path) {
					t.Errorf("%s is not named: %q", path, found[0].Signs)
				}
			}
			g := planUp(t, decode(t, threeHosts), map[string]*facts.Host{"cp1": bare(10), "w1": f, "w2": bare(12)})
			if told := slices.ContainsFunc(g.Warnings, func(w string) bool { return strings.Contains(w, tc.paths[0]) && strings.Contains(w, tc.away) }); told == tc.here {
				t.Errorf("warnings: %q", g.Warnings)
			}
		})
	}
	// A host that lies does not write the advice.
	evil, err := facts.Parse(fmt.Appendf(nil, "kgpu-facts=1\nnow=1795181171.6\ncpus=16\nmemory-kib=1\nledger=0\nforeign=/ /var/lib/k0s\nforeign=/var/../k3s\nforeign=/etc/k0s;reboot\nend=1\n"))
	if err != nil || len(evil.OtherDistributions) > 0 || len(evil.DistributionPaths) > 0 {
		t.Errorf("%q %q %v", evil.OtherDistributions, evil.DistributionPaths, err)
	}
}
