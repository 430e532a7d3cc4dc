package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// The kubelet of a host is given a file with name servers that pods can ask, where it would not take one by itself.
func TestResolvConf(t *testing.T) {
	const own, systemd, manager, dnsmasq = "/etc/resolv.conf", facts.SystemdResolvConf, "/run/NetworkManager/no-stub-resolv.conf", "/run/dnsmasq/resolv.conf"
	type files = map[string]string
	const old = "runtime: docker\nkubernetes: {version: \"1.10\", allowEndOfLife: true}\n" + mirrors
	for name, c := range map[string]struct {
		files    files
		resolved string // systemd-resolved runs on: cp1, w1, both
		more     string
		flag     string // of w1's kubelet; empty: none
		why      string // part of what is wrong
	}{
		"a server of the network":                   {files: files{own: "10.0.0.1 fe80::1%eth0"}},
		"nothing is known":                          {},
		"systemd-resolved":                          {files: files{own: "127.0.0.53", systemd: "10.0.0.1"}, resolved: "both"},
		"systemd-resolved on this host only":        {files: files{own: "127.0.0.53", systemd: "10.0.0.1"}, resolved: "w1", flag: systemd},
		"systemd-resolved on the other host":        {files: files{own: "10.0.0.1"}, resolved: "cp1", flag: own},
		"systemd-resolved that was stopped":         {files: files{own: "127.0.0.53"}, why: "names the server 127.0.0.53"},
		"systemd-resolved that asks dnsmasq":        {files: files{own: "127.0.0.53", systemd: "127.0.0.1", dnsmasq: "10.0.0.1"}, resolved: "both", flag: dnsmasq},
		"dnsmasq of the network manager":            {files: files{own: "127.0.1.1", manager: "10.0.0.1"}, flag: manager},
		"unbound":                                   {files: files{own: "127.0.0.1"}, why: "names the server 127.0.0.1"},
		"unbound by IPv6":                           {files: files{own: "::1"}, why: "names the server ::1"},
		"unbound beside another":                    {files: files{own: "127.0.0.1 10.0.0.1"}, why: "names the server 127.0.0.1"},
		"any address":                               {files: files{own: "0.0.0.0"}, why: "names the server 0.0.0.0"},
		"the cluster's own DNS":                     {files: files{own: "10.96.0.10"}, why: "names the server 10.96.0.10"},
		"no server":                                 {files: files{own: ""}, why: "names no server"},
		"no server by IPv4":                         {files: files{own: "2001:db8::1"}, why: "names no server"},
		"unbound, and the inventory says what else": {files: files{own: "127.0.0.1", manager: "10.0.0.1"}, more: "kubernetes: {kubeletConfiguration: {resolvConf: /etc/mine}}\n"},
		"systemd-resolved before kubeadm knew it":   {files: files{own: "127.0.0.53", systemd: "10.0.0.1"}, resolved: "both", more: old, flag: systemd},
	} {
		t.Run(name, func(t *testing.T) {
			inv := decode(t, threeHosts+c.more)
			seen := hostFacts(inv)
			for id, f := range seen {
				f.Hostname = id
				if strings.Contains("both "+id, c.resolved) && c.resolved != "" {
					f.Units = map[string]facts.Unit{"systemd-resolved.service": {Active: "active"}}
				}
			}
			for file, servers := range c.files {
				if seen["w1"].Resolvers == nil {
					seen["w1"].Resolvers = map[string][]netip.Addr{}
				}
				list := []netip.Addr{}
				for _, s := range strings.Fields(servers) {
					list = append(list, netip.MustParseAddr(s))
				}
				seen["w1"].Resolvers[file] = list
			}
			if _, why := machine.ResolvConf(inv, seen["w1"]); !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("wrong: %q, want %q", why, c.why)
			}
			g := planUp(t, inv, seen)
			var text string
			for _, s := range g.Steps {
				if s.Host == "w1" && s.ID == "cluster/join" {
					text += lateInput(t, seen, s).Values["kubeadm"]
				}
				if s.Host == "w1" && s.ID == "kube/packages" {
					text += string(s.Input.Files[kubeletDropIn].Content)
				}
			}
			if given := strings.Contains(text, "resolv-conf"); given != (c.flag != "") {
				t.Errorf("a flag is given: %t\n%s", given, text)
			}
			if words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" =\"\n", r) }); c.flag != "" && !slices.Contains(words, c.flag) {
				t.Errorf("no %s in\n%s", c.flag, text)
			}
		})
	}
}
