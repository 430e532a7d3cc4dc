package preflight

import (
	"fmt"
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

// TestOldKubernetesOnNewHosts: what keeps an old version from running on a new host is reported before anything is
// installed.
func TestOldKubernetesOnNewHosts(t *testing.T) {
	const kubernetes = "kubernetes: {version: %q, allowEndOfLife: true}\nrepositories: {kubernetes: {url: \"https://mirror.example.com\"}%s}\n"
	const noDocker = "Kubernetes %s knows docker up to %s, which Docker's repository does not have for Ubuntu 24.04 LTS: install it, or name a mirror as `repositories.docker.url`"
	mirror := `, docker: {url: "https://mirror.example.com"}`
	for _, c := range []struct {
		name, version, more string
		spoil               func(*facts.Host)
		want                []string
	}{
		{"fits", "1.6", mirror, nil, nil},
		{"fits by packages", "1.6", "", func(f *facts.Host) {
			f.Packages = map[string]facts.Package{"docker-engine": {Version: "1.12.6-0~ubuntu-xenial"}}
		}, nil},
		{"no docker", "1.6", "", nil, []string{"PACKAGE_MISSING " + fmt.Sprintf(noDocker, "1.6", "1.12")}},
		{"no docker", "1.13", "", nil, []string{"PACKAGE_MISSING " + fmt.Sprintf(noDocker, "1.13", "18.06")}},
		{"docker of today", "1.14", "", nil, nil},
		{"another name", "1.6", mirror, func(f *facts.Host) { f.Hostname = "gpu-7" },
			[]string{"HOST_NAME_INVALID kubeadm 1.6 makes nodes by their hosts' names only: the host is called gpu-7, the node would be w1"}},
		{"another name", "1.7", mirror, func(f *facts.Host) { f.Hostname = "gpu-7" }, nil},
		{"cgroup v2", "1.18", mirror, func(f *facts.Host) { f.CgroupV2 = true },
			[]string{"HOST_CGROUP_V2 the host uses cgroup v2, of which the kubelet of Kubernetes 1.18 does not know"}},
		{"cgroup v2", "1.19", mirror, func(f *facts.Host) { f.CgroupV2 = true }, nil},
	} {
		t.Run(c.name+" "+c.version, func(t *testing.T) {
			inv := decode(t, fmt.Sprintf(kubernetes, c.version, c.more))
			f := healthy(11)
			f.Hostname, f.CgroupV2 = "w1", false
			if c.spoil != nil {
				c.spoil(f)
			}
			var got []string
			for _, p := range Check(inv, []Machine{{Machine: machine.Machine{Host: inv.Hosts[1], Facts: f}}}, nil) {
				got = append(got, fmt.Sprintf("%s %s", p.ID, p.Detail))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestOldContainerd: an old containerd is a warning up to Kubernetes 1.37, and refused from the minor whose kubelet
// does not start with it.
func TestOldContainerd(t *testing.T) {
	for minor, want := range map[int]int{37: 0, 38: 1} {
		inv := decode(t, "runtime: containerd\nnetwork: flannel\n")
		inv.Kubernetes.Version = catalog.Version{Major: 1, Minor: minor}
		w := Machine{Machine: machine.Machine{Host: inv.Hosts[1], Facts: healthy(11)}}
		w.Facts.Packages = map[string]facts.Package{"containerd": {Version: "1.7.24~ds1-6+deb13u1"}}
		found := Check(inv, []Machine{{Machine: machine.Machine{Host: inv.Hosts[0], Facts: healthy(10)}}, w}, nil)
		found = slices.DeleteFunc(found, func(e *reason.Error) bool { return e.ID != reason.HostContainerdOld })
		if len(found) != want || want > 0 && found[0].Host != "w1" {
			t.Errorf("1.%d: %v", minor, found)
		}
	}
}
