package proposal

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
)

var update = flag.Bool("update", false, "write the golden files")

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ7kEMAjVUGCuxU6xK0vjXbP3UPHeKXbU5NoeZvYhSSD"

// options are those of a day on which the version is supported.
func options() Options {
	home := func(name string) (string, bool) { return "/home/me", name == "HOME" || name == "SUDO_PASSWORD" }
	return Options{Path: "inventory.yaml", Cluster: "kgpu", Version: "1.36", Decode: inventory.Options{Env: home, Now: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}}
}

// host is one at 10.0.0.N, called hostN, with which nothing is wrong.
func host(n int, change ...func(*Observed)) Observed {
	modules := map[string]facts.ModuleState{}
	for _, m := range []string{"overlay", "br_netfilter", "vxlan", "dummy", "openvswitch"} {
		modules[m] = facts.ModuleAvailable
	}
	s := Observed{Target: inventory.Target{Address: fmt.Sprintf("10.0.0.%d", n)}, Facts: &facts.Host{
		Hostname: fmt.Sprintf("host%d", n), MachineID: fmt.Sprint(n), ProductUUID: fmt.Sprint("u", n), BootID: fmt.Sprint("b", n),
		OS: facts.OS{ID: "ubuntu", VersionID: "24.04", PrettyName: "Ubuntu 24.04.1 LTS"}, Arch: "amd64", Kernel: "6.8.0-31-generic",
		Systemd: true, CgroupV2: true, CPUs: 16, MemoryKiB: 64 << 20, Modules: modules,
		Addresses:   []facts.Address{address("lo", "127.0.0.1/8"), address("eth0", fmt.Sprintf("10.0.0.%d/24", n))},
		Routes:      []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")},
		FileSystems: []facts.FileSystem{{Path: "/", On: "/", AvailableKiB: 50 << 20, InodesFreePercent: 90}},
	}}
	for _, f := range change {
		f(&s)
	}
	return s
}

func address(link, prefix string) facts.Address {
	return facts.Address{Interface: link, Prefix: netip.MustParsePrefix(prefix)}
}

func withCards(ids ...string) func(*Observed) {
	return func(s *Observed) {
		for i, id := range ids {
			s.Facts.NVIDIA.Cards = append(s.Facts.NVIDIA.Cards, facts.Card{Address: fmt.Sprintf("0000:%02x:00.0", 0x17+i), ID: id})
		}
	}
}

func named(name string) func(*Observed)      { return func(s *Observed) { s.Facts.Hostname = name } }
func reached(address string) func(*Observed) { return func(s *Observed) { s.Address = address } }
func memoryGiB(n int64) func(*Observed)      { return func(s *Observed) { s.Facts.MemoryKiB = n << 20 } }
func in(prefixes ...string) func(*Observed) {
	return func(s *Observed) {
		s.Facts.Addresses = nil
		for i, p := range prefixes {
			s.Facts.Addresses = append(s.Facts.Addresses, address(fmt.Sprintf("eth%d", i), p))
		}
	}
}

// bridged gives a host the bridge that docker makes everywhere.
func bridged(s *Observed) {
	s.Facts.Addresses = append([]facts.Address{address("docker0", "172.17.0.1/16")}, s.Facts.Addresses...)
}

func unreached(address string) Observed {
	return Observed{Target: inventory.Target{Address: address}, Excluded: &reason.Error{ID: reason.SSHUnreachable, Host: address, Doing: "connecting to root@" + address + ":22", Detail: "no answer within 15s"}}
}

const (
	a100 = "20b0"
	t4   = "1eb8"
)

// shapes are what people have.
var shapes = map[string]struct {
	seen   []Observed
	change func(*Options)
}{
	"rack": {seen: []Observed{
		host(11, named("gpu1"), withCards(a100, a100), func(s *Observed) {
			s.User = "ubuntu"
			s.Facts.SecureBoot = true
			s.Facts.Swap = []facts.Swap{{Name: "/swap.img", Active: true}}
			s.Facts.NVIDIA.Nouveau.Loaded = true
			s.HostKey, s.HostKeyNote = hostKey, "ssh-ed25519 SHA256:8sMIO0hmUfGyCNDDKbnJ4LJyOTIsgBsvzcL9VeIJr4g, confirmed when this was written"
		}),
		host(10, named("Head"), func(s *Observed) { s.User = "ubuntu" }),
		host(12, named("gpu2"), withCards(t4, a100), func(s *Observed) {
			s.User, s.Port = "admin", 2222
			s.Facts.NVIDIA.Cards[0].Driver = "vfio-pci"
			s.Facts.NVIDIA.Loaded, s.Facts.NVIDIA.Library = "580.95.05", "580.95.05"
			s.Facts.NVIDIA.GPUs = []facts.GPU{{UUID: "GPU-1", Name: "NVIDIA A100-SXM4-40GB"}}
		}),
	}},
	"single": {seen: []Observed{host(1, withCards(a100))}, change: func(o *Options) {
		o.Cluster = "desk"
		o.SSH = inventory.DraftSSH{User: "me", Key: "~/.ssh/id_${work}", SudoPassword: "${SUDO_PASSWORD}"}
	}},
	"cloud": {seen: []Observed{
		host(1, reached("203.0.113.1"), named("ubuntu"), withCards(t4), in("203.0.113.1/24", "192.168.7.1/24"), bridged),
		host(2, reached("203.0.113.2"), named("ubuntu"), withCards(t4), memoryGiB(128), in("203.0.113.2/24", "192.168.7.2/24"), bridged),
		host(3, reached("gpu.example.com"), named("GPU_box"), withCards(t4), in("192.168.7.3/24"), bridged, func(s *Observed) {
			s.Facts.Modules["openvswitch"], s.Facts.LegacyRules = facts.ModuleMissing, true
		}),
		host(4, reached("203.0.113.4"), named("localhost"), withCards(t4), in("192.168.7.4/24"), bridged),
	}},
	"left-out": {seen: []Observed{
		host(1, func(s *Observed) { s.Port = 2222 }), unreached("10.0.0.2"),
		host(3, func(s *Observed) {
			s.Port = 2222
			s.Facts.OS = facts.OS{ID: "fedora", VersionID: "42", PrettyName: "Fedora 42"}
		}),
		{Target: inventory.Target{Address: "again", User: "me", Port: 2222}, Facts: host(1).Facts},
	}},
	"ranges": {seen: []Observed{
		host(1, reached("10.96.0.1"), in("10.96.0.1/12")),
		host(2, reached("10.96.0.2"), in("10.96.0.2/12"), func(s *Observed) { s.Facts.Routes = []netip.Prefix{netip.MustParsePrefix("10.240.0.0/12")} }),
	}},
	"again": {seen: []Observed{
		host(2, func(s *Observed) { s.Facts.Kubelet = &facts.Member{NodeName: "worker"} }),
		host(1, withCards(a100), func(s *Observed) {
			s.Facts.Kubelet = &facts.Member{NodeName: "plane"}
			s.Facts.ControlPlane = &facts.ControlPlane{Finished: true, Version: "v1.36.3"}
			s.Facts.Cluster = &facts.Cluster{
				Nodes:     []facts.Node{{Name: "plane", Runtime: "containerd://1.7.28"}},
				Workloads: map[string]facts.Workload{"kube-flannel/daemonset/kube-flannel-ds": {Desired: 2, Ready: 2}},
			}
			s.Facts.Routes = append(s.Facts.Routes, netip.MustParsePrefix("10.244.1.0/24"))
		}),
	}},
}

// TestProposalGolden: the inventory that is written for each kind of hosts is its golden file.
func TestProposalGolden(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			o := options()
			if shape.change != nil {
				shape.change(&o)
			}
			p, err := Make(shape.seen, o)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".yaml", string(p.Text))
			checkText(t, o, p)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", path, got, want)
	}
}

var (
	commentedSetting = regexp.MustCompile(`(?m)^( *)# ( *[A-Za-z]+:( .*)?)$`)
	commentedHost    = regexp.MustCompile(`(?m)^  # (- address: .*| +(name|role|ssh|user|port):.*)$`)
)

// checkText holds what the file promises: a commented setting has its default value, an entry that is a comment can be made
// one of the others, and lines end in time.
func checkText(t *testing.T, o Options, p *Proposal) {
	t.Helper()
	text := string(p.Text)
	for i, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > 120 {
			t.Errorf("line %d has %d columns: %s", i+1, utf8.RuneCountInString(line), line)
		}
	}
	settings, hosts, _ := strings.Cut(text, "\nhosts:\n")
	spelled := commentedSetting.ReplaceAllString(settings, "$1$2")
	if strings.Count(spelled, "#") >= strings.Count(settings, "#") {
		t.Error("no setting is a comment")
	}
	with, err := inventory.Decode(o.Path, []byte(spelled+"\nhosts:\n"+hosts), o.Decode)
	if err != nil {
		t.Fatalf("with its defaults spelled out: %v", err)
	}
	// Where ssh_config may have a say, no user and no port are something else than the defaults.
	for _, inv := range []*inventory.Inventory{with, p.Inventory} {
		for i := range inv.Hosts {
			h := &inv.Hosts[i]
			h.Line = 0
			if h.SSH.User == "" {
				h.SSH.User = "root"
			}
			if h.SSH.Port == 0 {
				h.SSH.Port = 22
			}
		}
	}
	a, _ := json.MarshalIndent(with, "", " ") // places in the file apart
	b, _ := json.MarshalIndent(p.Inventory, "", " ")
	if !bytes.Equal(a, b) {
		t.Errorf("a commented setting has not its default:\n%s\n%s", a, b)
	}
	all, err := inventory.Decode(o.Path, []byte(settings+"\nhosts:\n"+commentedHost.ReplaceAllString(hosts, "  $1")), o.Decode)
	if err != nil {
		t.Fatalf("with all hosts: %v", err)
	}
	if got, want := len(all.Hosts), len(p.Inventory.Hosts)+len(p.Excluded); got != want {
		t.Errorf("with all hosts there are %d, want %d", got, want)
	}
}

// TestChooseControlPlane: by which rules the control plane is chosen.
func TestChooseControlPlane(t *testing.T) {
	small := func(s *Observed) { s.Facts.CPUs = 1 }
	is := func(s *Observed) { s.Facts.ControlPlane = &facts.ControlPlane{} }
	for name, c := range map[string]struct {
		seen []Observed
		want string
	}{
		"alone":           {[]Observed{host(1)}, "host1 it is the only host"},
		"without cards":   {[]Observed{host(1, withCards(t4)), host(2)}, "host2 it is the only host without cards"},
		"most memory":     {[]Observed{host(1), host(2, memoryGiB(128)), host(3, withCards(t4), memoryGiB(512))}, "host2 it has the most memory of the hosts without cards"},
		"first":           {[]Observed{host(3), host(1), host(2, memoryGiB(32))}, "host3 it was named first of the hosts without cards that have the most memory"},
		"fewest cards":    {[]Observed{host(1, withCards(t4, t4)), host(2, withCards(t4))}, "host2 it is the only host with the fewest cards"},
		"nearly the same": {[]Observed{host(1), host(2, func(s *Observed) { s.Facts.MemoryKiB += 1000 })}, "host1 it was named first of the hosts without cards that have the most memory"},
		"large enough":    {[]Observed{host(1, small), host(2, withCards(t4))}, "host2 it is the only host that is large enough for it"},
		"of the large":    {[]Observed{host(1, small), host(2, withCards(t4)), host(3, withCards(t4, t4))}, "host2 it is the only host with the fewest cards (others are too small for it)"},
		"already":         {[]Observed{host(1), host(2, withCards(t4), is)}, "host2 it is one already"},
	} {
		p, err := Make(c.seen, options())
		if err != nil {
			t.Fatal(err)
		}
		h := p.Inventory.Hosts[0]
		if h.Role != inventory.ControlPlane || h.Name+" "+between(string(p.Text), "because ", ".\n") != c.want {
			t.Errorf("%s: %s is the %s because %s; want %s", name, h.Name, h.Role, between(string(p.Text), "because ", ".\n"), c.want)
		}
	}
}

func between(text, a, b string) string {
	_, text, _ = strings.Cut(text, a)
	text, _, _ = strings.Cut(text, b)
	return text
}

// TestChooseNetworkAndRuntime: hosts get kgpu's default network and runtime, unless these run badly there and others do
// not.
func TestChooseNetworkAndRuntime(t *testing.T) {
	without := func(modules ...string) func(*Observed) {
		return func(s *Observed) {
			for _, m := range modules {
				s.Facts.Modules[m] = facts.ModuleMissing
			}
		}
	}
	off := func(s *Observed) {
		s.Facts.Modules["openvswitch"], s.Facts.ModulesOff = facts.ModuleOff, map[string]string{"openvswitch": "/etc/modprobe.d/own.conf"}
	}
	legacy := func(s *Observed) { s.Facts.LegacyRules = true }
	for name, c := range map[string]struct {
		second []func(*Observed)
		modern bool
		want   string
		why    string // a part of it
	}{
		"all can":         {nil, false, "weave docker", "every host has what weave needs"},
		"asked for":       {nil, true, "flannel containerd", "--modern"},
		"no openvswitch":  {[]func(*Observed){without("openvswitch")}, false, "flannel containerd", "openvswitch"},
		"it is kept out":  {[]func(*Observed){off}, false, "flannel containerd", "openvswitch"},
		"no dummy":        {[]func(*Observed){without("dummy")}, false, "flannel containerd", "dummy"},
		"legacy iptables": {[]func(*Observed){legacy}, false, "flannel containerd", "iptables-legacy"},
		"neither":         {[]func(*Observed){without("vxlan", "openvswitch")}, false, "weave docker", "vxlan"},
		"needed by both":  {[]func(*Observed){without("overlay")}, false, "weave docker", "every host"},
		"no vxlan, asked": {[]func(*Observed){without("vxlan")}, true, "flannel containerd", "--modern"},
	} {
		o := options()
		o.Modern = c.modern
		p, err := Make([]Observed{host(1), host(2, c.second...)}, o)
		if err != nil {
			t.Fatal(err)
		}
		text := string(p.Text)
		line := func(key string) string { return strings.Fields(between(text, "\n"+key+": ", "\n"))[0] }
		if got := line("network") + " " + line("runtime"); got != c.want || got != string(p.Inventory.Network)+" "+string(p.Inventory.Runtime) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		before, _, _ := strings.Cut(text, "\nnetwork: ")
		before = before[strings.LastIndex(before, "\n\n"):]
		if !strings.Contains(before, c.why) || len(c.second) > 0 && strings.HasPrefix(c.want, "flannel") && !c.modern && !strings.Contains(before, "(host2)") {
			t.Errorf("%s: because %s; want %s", name, before, c.why)
		}
	}
}

// TestNodeNamesAreValidAndUnique: no two hosts get the same name, and each name is valid for a node.
func TestNodeNamesAreValidAndUnique(t *testing.T) {
	long := strings.Repeat("x", 70)
	for name, c := range map[string]struct {
		machines []string
		want     string
	}{
		"their own":           {[]string{"a", "b.example.com"}, "a b.example.com"},
		"case":                {[]string{"Head", "GPU1"}, "head gpu1"},
		"twins":               {[]string{"node", "node", "node"}, "node-1 node-2 node-3"},
		"a twin's number":     {[]string{"node", "node", "node-1"}, "node-2 node-3 node-1"},
		"no names":            {[]string{"", "localhost", "___"}, "node node-2 node-3"},
		"nearly names":        {[]string{"GPU_box", "gpu-box"}, "gpu-box-2 gpu-box"},
		"too long":            {[]string{long, long + "y"}, long[:58] + " " + long[:58] + "-2"},
		"what is no language": {[]string{"-Größe-", "\x1b[2J"}, "gr-e 2j"},
	} {
		var seen []Observed
		for i, machine := range c.machines {
			seen = append(seen, host(i+1, named(machine)))
		}
		p, err := Make(seen, options())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, h := range p.Inventory.Hosts {
			got = append(got, h.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPrivateAddresses: when nodes get another address than the one by which they were reached.
func TestPrivateAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		seen []Observed
		want string
	}{
		"reached by their own":     {[]Observed{host(1, in("10.0.0.1/24", "192.168.7.1/24")), host(2, in("10.0.0.2/24", "192.168.7.2/24"))}, "- -"},
		"a private network":        {[]Observed{host(1, reached("203.0.113.1"), in("203.0.113.1/24", "192.168.7.1/24")), host(2, in("10.0.0.2/24", "192.168.7.2/24"))}, "192.168.7.1 192.168.7.2"},
		"behind translation":       {[]Observed{host(1, reached("203.0.113.1")), host(2, reached("203.0.113.2"))}, "10.0.0.1 10.0.0.2"},
		"by name":                  {[]Observed{host(1, reached("a.example.com")), host(2)}, "10.0.0.1 -"},
		"no network has all":       {[]Observed{host(1, reached("203.0.113.1"), in("192.168.7.1/24")), host(2, reached("203.0.113.2"), in("192.168.8.1/24"))}, "- -"},
		"the same on every host":   {[]Observed{host(1, reached("203.0.113.1"), in("192.168.7.1/24")), host(2, reached("203.0.113.2"), in("192.168.7.1/24"))}, "- -"},
		"only bridges have all":    {[]Observed{host(1, reached("203.0.113.1"), in("203.0.113.1/24"), bridged), host(2, reached("203.0.113.2"), in("203.0.113.2/24"), bridged)}, "- -"},
		"a pod network's own link": {[]Observed{pods(host(1, reached("203.0.113.1"), in("172.30.0.1/16"))), pods(host(2, reached("203.0.113.2"), in("172.30.0.2/16")))}, "- -"},
		"alone":                    {[]Observed{host(1, reached("203.0.113.1"))}, "-"},
	} {
		p, err := Make(c.seen, options())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, h := range p.Inventory.Hosts {
			if h.PrivateAddress.IsValid() {
				got = append(got, h.PrivateAddress.String())
			} else {
				got = append(got, "-")
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// pods lets a host's first link be one that a pod network made.
func pods(s Observed) Observed {
	s.Facts.PodLinks = []string{"eth0"}
	return s
}

// TestRangesHaveRoomForManyHosts: the pod range has room for as many nodes as there are hosts.
func TestRangesHaveRoomForManyHosts(t *testing.T) {
	var seen []Observed
	for i := range 300 {
		a := fmt.Sprintf("172.16.%d.%d", i/200, 1+i%200)
		seen = append(seen, host(1+i%200, reached(a), in(a+"/16"), named(fmt.Sprint("node", i))))
	}
	p, err := Make(seen, options())
	if err != nil {
		t.Fatal(err)
	}
	if bits := p.Inventory.Kubernetes.PodCIDR.Bits(); bits != 15 {
		t.Errorf("the pods' range has %d bits", bits)
	}
}

// TestInvalidDraftIsAnError: a draft that is no valid inventory is an error, and there is nothing to write.
func TestInvalidDraftIsAnError(t *testing.T) {
	everything := func(s *Observed) {
		s.Facts.Routes = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("128.0.0.0/1")}
	}
	if p, err := Make([]Observed{host(1, reached("10.244.0.1"), in("10.244.0.1/24"), everything)}, options()); !errors.Is(err, &reason.Error{ID: reason.InventoryInvalid}) {
		t.Errorf("%v, %v", p, err)
	}
}
