package facts

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// swap combines /proc/swaps, fstab and systemd's swap units.
func swap(a answer) []Swap {
	found := map[string]*Swap{}
	get := func(name string) *Swap {
		if found[name] == nil {
			found[name] = &Swap{Name: name}
		}
		return found[name]
	}
	for _, line := range a["swap-active"] {
		if f := strings.Fields(line); len(f) == 5 && strings.HasPrefix(f[0], "/") {
			get(f[0]).Active = true
		}
	}
	for _, device := range a["swap-fstab"] {
		get(device).Source = "fstab"
	}
	for _, line := range a["swap-unit"] {
		f := strings.Fields(line)
		if len(f) < 2 || slices.Contains([]string{"masked", "masked-runtime", "disabled", "bad"}, f[1]) {
			continue
		}
		path := unescapeUnit(strings.TrimSuffix(f[0], ".swap"))
		if s := found[path]; s != nil {
			if s.Source == "" {
				s.Source = f[0]
			}
			continue
		}
		// fstab may name a device by a tag, while the unit that is generated from it has the device's name.
		if f[1] == "generated" && slices.ContainsFunc(a["swap-fstab"], func(d string) bool { return !strings.HasPrefix(d, "/") }) {
			continue
		}
		get(path).Source = f[0]
	}
	for name, s := range found {
		if s.Source == "" && strings.HasPrefix(name, "/dev/zram") {
			s.Source = "zram"
		}
	}
	var list []Swap
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, *found[name])
	}
	return list
}

// unescapeUnit returns the path that a unit's name stands for. Source: systemd.unit(5), "String escaping".
func unescapeUnit(name string) string {
	var out strings.Builder
	out.WriteByte('/')
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == '-':
			out.WriteByte('/')
		case strings.HasPrefix(name[i:], `\x`) && len(name) >= i+4:
			var b byte
			if _, err := fmt.Sscanf(name[i+2:i+4], "%02x", &b); err != nil {
				out.WriteByte(name[i])
				continue
			}
			out.WriteByte(b)
			i += 3
		default:
			out.WriteByte(name[i])
		}
	}
	return out.String()
}

// wantedModules are the modules that get a state, ModuleMissing if nothing is known of them.
var wantedModules = []string{"overlay", "br_netfilter", "dummy", "openvswitch", "vxlan", "ip_set", "xt_set", "nf_conntrack", "ipip"}

// modules reads names of loaded modules, and files of available ones: "…/modules.builtin:/overlay.ko".
func modules(a answer) map[string]ModuleState {
	states := map[string]ModuleState{}
	for _, name := range wantedModules {
		states[name] = ModuleMissing
	}
	for _, line := range a["module-file"] {
		file, found, _ := strings.Cut(line, ":")
		name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(found, "/"), ".ko"), "-", "_")
		if strings.HasSuffix(file, "modules.builtin") {
			states[name] = ModuleLoaded
		} else if states[name] != ModuleLoaded {
			states[name] = ModuleAvailable
		}
	}
	for _, name := range a["module-loaded"] {
		states[name] = ModuleLoaded
	}
	for name := range modulesOff(a["module-off"]) {
		if states[name] == ModuleAvailable {
			states[name] = ModuleOff
		}
	}
	return states
}

// modulesOff reads lines of modprobe's configuration and of the kernel's command line, such as
// "/etc/modprobe.d/cis.conf:1:install overlay /bin/false". An install command that does something may still load the
// module. Source: modprobe.d(5).
func modulesOff(lines []string) map[string]string {
	var off map[string]string
	add := func(name, where string) {
		if name = strings.ReplaceAll(name, "-", "_"); off[name] == "" {
			put(&off, name, where)
		}
	}
	for _, line := range lines {
		part := strings.SplitN(line, ":", 3)
		if len(part) < 3 {
			continue
		}
		where := part[0] + ":" + part[1] + ": " + strings.TrimSpace(part[2])
		if _, names, ok := strings.Cut(part[2], "blacklist="); ok && part[0] == "/proc/cmdline" {
			for name := range strings.SplitSeq(names, ",") {
				add(name, where)
			}
			continue
		}
		switch f := strings.Fields(part[2]); {
		case len(f) >= 2 && f[0] == "blacklist",
			len(f) >= 3 && f[0] == "alias" && f[2] == "off",
			len(f) >= 3 && f[0] == "install" && slices.Contains([]string{"true", "false", ":", "echo", "exit"}, path.Base(f[2])):
			add(f[1], where)
		}
	}
	return off
}

func sysctls(lines []string) map[string]string {
	values := map[string]string{}
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, "="); ok {
			values[key] = strings.Join(strings.Fields(value), " ")
		}
	}
	return values
}

// packages reads the holder of apt's locks, and lines of dpkg-query: name, wish, state, error flag, version,
// architecture. A package of a foreign architecture has it in its name, as apt writes it.
func packages(a answer) (Apt, map[string]Package) {
	apt := Apt{Unsettled: a.has("unsettled")}
	if pid, name, ok := strings.Cut(a.first("apt-lock"), " "); ok {
		apt.LockHolder = fmt.Sprintf("%s (pid %s)", name, pid)
	}
	installed := map[string]Package{}
	for _, line := range a["package"] {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		name, state, flag := f[0], f[2], f[3]
		if arch := f[len(f)-1]; len(f) == 6 && arch != "all" && arch != a.first("arch") {
			name += ":" + arch
		}
		switch {
		case flag != "ok" || !slices.Contains([]string{"installed", "config-files", "not-installed"}, state):
			apt.Broken = append(apt.Broken, name)
		case state == "installed" && len(f) >= 5:
			installed[name] = Package{Version: f[4], Held: f[1] == "hold" || installed[name].Held} // without architectures, from an older facts.sh
		}
	}
	return apt, installed
}

func units(lines []string) map[string]Unit {
	all := map[string]Unit{}
	for _, line := range lines {
		f := strings.Fields(line)
		switch len(f) {
		case 2:
			all[f[0]] = Unit{Active: f[1]}
		case 3:
			all[f[0]] = Unit{Active: f[1], Enabled: f[2]}
		}
	}
	return all
}

// timeServices are in the order in which one is preferred if several run.
var timeServices = []string{"chrony", "systemd-timesyncd", "ntpsec", "ntp", "openntpd"}

func timeSync(units map[string]Unit) string {
	for _, name := range timeServices {
		if units[name+".service"].Active == "active" {
			return name
		}
	}
	return ""
}

// firewall names the active firewall. ufw's unit is active even if ufw is switched off in its own configuration.
func firewall(units map[string]Unit, ufw []string) string {
	if units["firewalld.service"].Active == "active" {
		return "firewalld"
	}
	if units["ufw.service"].Active == "active" && slices.Contains(ufw, "ENABLED=yes") {
		return "ufw"
	}
	return ""
}

// foreignPaths maps parts of paths to the distributions that they belong to.
var foreignPaths = []struct{ part, name string }{
	{"k3s", "k3s"}, {"rke2", "rke2"}, {"k0s", "k0s"}, {"microk8s", "microk8s"}, {"minikube", "minikube"}, {"rke", "rke"}, {"origin", "openshift"},
}

// DistributionOf is the Kubernetes distribution that a path belongs to; empty if unknown.
func DistributionOf(path string) string {
	for _, f := range foreignPaths {
		if strings.Contains(path, f.part) {
			return f.name
		}
	}
	return ""
}

// foreignPath restricts these paths, because advice repeats them in commands.
var foreignPath = regexp.MustCompile(`^/(usr|opt|snap|var|etc)(/[a-z0-9][a-z0-9-]*(\.sh)?)+$`)

func foreign(a answer, h *Host) error {
	for _, path := range a["foreign"] {
		name := DistributionOf(path)
		if name == "" || !foreignPath.MatchString(path) {
			continue
		}
		h.DistributionPaths = append(h.DistributionPaths, path)
		if !slices.Contains(h.OtherDistributions, name) {
			h.OtherDistributions = append(h.OtherDistributions, name)
		}
	}
	return nil
}

// files reads lines of sha256sum, which escapes names with a backslash or a newline. kgpu writes no such files.
func files(lines []string) map[string]string {
	sums := map[string]string{}
	for _, line := range lines {
		if sum, path, ok := strings.Cut(line, "  "); ok && !strings.HasPrefix(sum, `\`) {
			sums[path] = sum
		}
	}
	return sums
}

// criDockerdVersion reads "cri-dockerd 0.4.4 (HEAD)".
func criDockerdVersion(line string) string {
	if f := strings.Fields(line); len(f) >= 2 && f[0] == "cri-dockerd" {
		return f[1]
	}
	return ""
}

// dockerFields maps the names that facts.sh and docker use to the keys of Host.DockerInfo.
var dockerFields = map[string]string{
	"ServerVersion": "version", "CgroupDriver": "cgroup-driver", "CgroupVersion": "cgroup-version", "Driver": "storage-driver", "nvidia": "nvidia",
}

func dockerInfo(lines []string) map[string]string {
	if len(lines) == 0 {
		return nil
	}
	info := map[string]string{}
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, " "); ok && dockerFields[key] != "" {
			info[dockerFields[key]] = value
		}
	}
	return info
}
