package preflight

import (
	"fmt"
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// Hosts of today and versions of long ago: what stands in the way is said before anything is installed.
func TestOldVersions(t *testing.T) {
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
			for _, p := range Check(inv, []Machine{{Host: inv.Hosts[1], Facts: f}}, nil) {
				got = append(got, fmt.Sprintf("%s %s", p.ID, p.Detail))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
