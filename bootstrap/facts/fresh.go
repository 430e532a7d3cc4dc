package facts

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Releases are freshly installed x86-64 machines of each supported release, without any package that kgpu installs.
var Releases = map[string]Host{
	"debian-12":    {OS: OS{ID: "debian", VersionID: "12", Codename: "bookworm", PrettyName: "Debian GNU/Linux 12"}, Kernel: "6.1.0-18-amd64"},
	"debian-13":    {OS: OS{ID: "debian", VersionID: "13", Codename: "trixie", PrettyName: "Debian GNU/Linux 13"}, Kernel: "6.12.41+deb13-amd64"},
	"ubuntu-22.04": {OS: OS{ID: "ubuntu", VersionID: "22.04", Codename: "jammy", PrettyName: "Ubuntu 22.04 LTS"}, Kernel: "5.15.0-25-generic"},
	"ubuntu-24.04": {OS: OS{ID: "ubuntu", VersionID: "24.04", Codename: "noble", PrettyName: "Ubuntu 24.04 LTS"}, Kernel: "6.8.0-31-generic"},
}

// Fresh returns the facts of a freshly installed machine of a release. It has no cards, as nobody can know which. Name
// and address are its host name and its address in the cluster.
func Fresh(release, name, address string) (*Host, error) {
	h, ok := Releases[release]
	if !ok {
		return nil, fmt.Errorf("no such release; there are %s", strings.Join(slices.Sorted(maps.Keys(Releases)), ", "))
	}
	if name == "" {
		return nil, fmt.Errorf("the inventory has to give its name")
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil, fmt.Errorf("the inventory has to give its IP address, as address or privateAddress")
	}
	h.Hostname, h.Arch, h.Virt, h.Systemd, h.CgroupV2, h.TimeSync = name, "amd64", "none", true, true, "systemd-timesyncd"
	h.Addresses = []Address{{Interface: "eth0", Prefix: netip.PrefixFrom(ip, ip.BitLen())}}
	h.Modules = map[string]ModuleState{}
	for _, m := range []string{"overlay", "br_netfilter", "vxlan", "dummy", "openvswitch"} {
		h.Modules[m] = ModuleAvailable
	}
	h.Packages, h.Units, h.Files, h.Sysctls = map[string]Package{}, map[string]Unit{}, map[string]string{}, map[string]string{}
	return &h, nil
}
