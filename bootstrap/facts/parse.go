package facts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/text/printable"
)

// ErrTruncated says that a script's output has no beginning or no end.
var ErrTruncated = errors.New("the host's answer is incomplete")

// answer is the output of a script: the values of each key, in order.
type answer map[string][]string

// Parse parses the output of scripts/facts.sh and skips unknown keys. The error is ErrTruncated, or names the line that
// cannot be read.
func Parse(output []byte) (*Host, error) {
	a, err := split(output, "kgpu-facts=1")
	if err != nil {
		return nil, err
	}
	h := &Host{
		Hostname: a.first("hostname"), MachineID: a.first("machine-id"), ProductUUID: a.first("product-uuid"), BootID: a.first("boot-id"),
		Virt: a.first("virt"), OS: osRelease(a["os-release"]), Arch: a.first("arch"), Kernel: a.first("kernel"), Kernels: a["kernel-installed"], KernelHeaders: a.has("kernel-headers"),
		Systemd: a.has("systemd"), CgroupV2: a.has("cgroup2"), LegacyRules: a.has("iptables-legacy"), SecureBoot: a.has("secure-boot"), OtherKeepalived: a.has("other-keepalived"),
		Swap: swap(a), Modules: modules(a), ModulesOff: modulesOff(a["module-off"]), Sysctls: sysctls(a["sysctl"]),
		RebootPending: a.has("reboot-required"), Unproven: a.has("unproven"), NetworkUnproven: a.has("network-unproven"), Upgrading: a.first("upgrading"), HasState: a.has("notes"), StaleLock: a.has("operator-left"),
		Units:         units(a["unit"]),
		OutdatedUnits: a["outdated"],
		KubeadmFiles:  a["kubeadm-file"], PodNetworkFiles: a["pod-network"], PodLinks: podLinks(a["link"]),
		DockerRoot: a.first("docker-root"), ContainerdRoot: a.first("containerd-root"),
		CRIDockerd: criDockerdVersion(a.first("cri-dockerd")), Toolkit: toolkitSettings(a["toolkit-setting"]), Shadows: a["shadow"],
		DockerInfo: dockerInfo(a["docker-info"]),
	}
	h.TimeSync, h.Firewall = timeSync(h.Units), firewall(h.Units, a["ufw"])
	h.Apt, h.Packages = packages(a)
	h.Files = files(a["file"])
	for _, parse := range []func(answer, *Host) error{numbers, addresses, names, resolvers, fileSystems, sockets, keyrings, configurations, containerd, nvidia, record, foreign, etcdData, membership, controlPlane, certificates, currentRun, lockHolder, restoring, backups} {
		if err := parse(a, h); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Lines parses the output of another script in the format of scripts/facts.sh, between a line begin and the line end=1.
// It returns the values of each key, in order. The error is ErrTruncated.
func Lines(output []byte, begin string) (map[string][]string, error) {
	return split(output, begin)
}

// split returns the lines between the line begin and the last line, end=1.
func split(output []byte, begin string) (answer, error) {
	lines := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	// A login banner or a shell's start-up file may have printed something first, without ending its line.
	first := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, begin) })
	if first < 0 || lines[len(lines)-1] != "end=1" || !bytes.HasSuffix(output, []byte("\n")) {
		return nil, ErrTruncated
	}
	a := answer{}
	for _, line := range lines[first:] {
		if key, value, ok := strings.Cut(line, "="); ok {
			a[key] = append(a[key], strings.TrimRight(value, " \t\r"))
		}
	}
	return a, nil
}

func (a answer) has(key string) bool { return len(a[key]) > 0 }

// first returns the first value of a key; empty if there is none.
func (a answer) first(key string) string {
	if !a.has(key) {
		return ""
	}
	return a[key][0]
}

// put puts a value into a map that is nil as long as nothing is in it.
func put[K comparable, V any](into *map[K]V, key K, value V) {
	if *into == nil {
		*into = map[K]V{}
	}
	(*into)[key] = value
}

// bad is the error of a value that cannot be read.
func bad(key, value string, err error) error {
	const most = 200 // bytes, as a host may send anything and errors repeat it
	return fmt.Errorf("the host's answer: %s=%s: %s", key, printable.Short(value, most), printable.Short(err.Error(), most))
}

// number is the first value of a key as a whole number; zero where the key may be missing, and is.
func (a answer) number(key string, optional bool) (int64, error) {
	if optional && !a.has(key) {
		return 0, nil
	}
	n, err := strconv.ParseInt(a.first(key), 10, 64)
	if err != nil {
		return 0, bad(key, a.first(key), err)
	}
	return n, nil
}

func numbers(a answer, h *Host) error {
	seconds, fraction, _ := strings.Cut(a.first("now"), ".")
	s, noSeconds := strconv.ParseInt(seconds, 10, 64)
	nanos, noFraction := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err := cmp.Or(noSeconds, noFraction); err != nil {
		return bad("now", a.first("now"), err)
	}
	cpus, noCPUs := a.number("cpus", false)
	memory, noMemory := a.number("memory-kib", false)
	ledger, noLedger := a.number("ledger", false)
	fence, noFence := a.number("fence", true)
	h.Now, h.CPUs, h.MemoryKiB, h.Ledger, h.Fence = time.Unix(s, nanos), int(cpus), memory, int(ledger), fence
	return cmp.Or(noCPUs, noMemory, noLedger, noFence)
}

// osRelease reads lines of /etc/os-release. Source: os-release(5).
func osRelease(lines []string) OS {
	values := map[string]string{}
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, "="); ok {
			values[key] = strings.Trim(value, `"'`)
		}
	}
	return OS{ID: values["ID"], VersionID: values["VERSION_ID"], Codename: values["VERSION_CODENAME"], PrettyName: values["PRETTY_NAME"]}
}

// addresses reads lines of `ip -o address`, such as "2: eth0    inet 10.0.0.5/24 brd …", and of `ip -o route`.
func addresses(a answer, h *Host) error {
	mtu := mtus(a["link"])
	for _, line := range a["address"] {
		f := strings.Fields(line)
		if len(f) < 4 || (f[2] != "inet" && f[2] != "inet6") {
			continue
		}
		prefix, err := parsePrefix(f[3])
		if err != nil {
			return bad("address", line, err)
		}
		name, _, _ := strings.Cut(f[1], "@")
		h.Addresses = append(h.Addresses, Address{Interface: name, Prefix: prefix, MTU: mtu[name]})
	}
	for _, line := range a["route"] {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if typed := []string{"unicast", "blackhole", "unreachable", "prohibit", "throw"}; slices.Contains(typed, f[0]) && len(f) > 1 {
			f = f[1:]
		}
		if f[0] == "default" || slices.Contains([]string{"local", "broadcast", "anycast", "multicast"}, f[0]) {
			continue
		}
		prefix, err := parsePrefix(f[0])
		if err != nil {
			return bad("route", line, err)
		}
		h.Routes = append(h.Routes, prefix)
	}
	return nil
}

// parsePrefix reads an address with or without a prefix length.
func parsePrefix(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		return netip.ParsePrefix(s)
	}
	addr, err := netip.ParseAddr(s)
	return netip.PrefixFrom(addr, addr.BitLen()), err
}

// mtus reads lines of `ip -o link`, such as "2: eth0@if7: <BROADCAST,UP> mtu 1500 qdisc …".
func mtus(lines []string) map[string]int {
	sizes := map[string]int{}
	for _, line := range lines {
		f := strings.Fields(line)
		at := slices.Index(f, "mtu")
		if at < 2 || at+1 == len(f) {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(f[1], ":"), "@")
		if n, err := strconv.Atoi(f[at+1]); err == nil {
			sizes[name] = n
		}
	}
	return sizes
}

// fileSystems reads lines of `df --output=avail,size,iavail,itotal,target,file -k`, and the mount points with noexec. A path
// that stands for several that are not there yet comes more than once.
func fileSystems(a answer, h *Host) error {
	for _, line := range a["file-system"] {
		f := strings.Fields(line)
		if len(f) != 6 || f[0] == "Avail" { // a heading, or a path with a space
			continue
		}
		if slices.ContainsFunc(h.FileSystems, func(known FileSystem) bool { return known.Path == f[5] }) {
			continue
		}
		var n [4]int64
		for i := range n {
			var err error
			if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil && f[i] != "-" {
				return bad("file-system", line, err)
			}
		}
		fs := FileSystem{Path: f[5], On: f[4], AvailableKiB: n[0], SizeKiB: n[1], InodesFreePercent: 100, NoExec: slices.Contains(a["noexec"], f[4])}
		if n[3] > 0 {
			fs.InodesFreePercent = 100 * float64(n[2]) / float64(n[3])
		}
		h.FileSystems = append(h.FileSystems, fs)
	}
	return nil
}

// sockets reads lines of `ss -Hltnp`, such as `LISTEN 0 4096 *:22 *:* users:(("sshd",pid=1,fd=3))`.
func sockets(a answer, h *Host) error {
	for _, line := range a["listen"] {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		at := strings.LastIndexByte(f[3], ':')
		if at < 0 {
			return bad("listen", line, errors.New("no port"))
		}
		port, err := strconv.ParseUint(f[3][at+1:], 10, 16)
		if err != nil {
			return bad("listen", line, err)
		}
		host, zone, _ := strings.Cut(f[3][:at], "%")
		host, zone = strings.Trim(host, "[]"), strings.TrimRight(zone, "]")
		addr := netip.IPv6Unspecified() // "*" stands for IPv4 and IPv6
		if host != "*" {
			if addr, err = netip.ParseAddr(host); err != nil {
				return bad("listen", line, err)
			}
		}
		if addr.Is6() && zone != "" {
			addr = addr.WithZone(zone)
		}
		var process string
		if _, users, ok := strings.Cut(line, `users:(("`); ok {
			process, _, _ = strings.Cut(users, `"`)
		}
		h.Listening = append(h.Listening, Socket{Addr: netip.AddrPortFrom(addr, uint16(port)), Process: process})
	}
	return nil
}
