package facts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
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
	var apt Apt
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

func configurations(a answer, h *Host) error {
	for key, into := range map[string]*[]byte{"daemon-json": &h.DaemonJSON, "containerd-toml": &h.ContainerdTOML} {
		if !a.has(key) {
			continue
		}
		data, err := decodeConfiguration(a.first(key))
		if err != nil {
			return bad(key, "…", err)
		}
		*into = data
	}
	return nil
}

// toolkitSettings reads lines of the container toolkit's TOML file and drops comments.
func toolkitSettings(lines []string) map[string]string {
	settings := map[string]string{}
	for _, line := range lines {
		line, _, _ = strings.Cut(line, "#")
		if key, value, ok := strings.Cut(line, "="); ok {
			settings[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return settings
}

// CRIPlugins are the IDs of the plugins that make up containerd's CRI, in configuration files of version 1 and of later
// ones.
// Source: https://github.com/containerd/containerd/blob/main/docs/man/containerd-config.toml.5.md, disabled_plugins.
var CRIPlugins = []string{"cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images"}

// containerd parses `containerd config dump` of version 2 (containerd 1.x), 3 (2.0 to 2.2) or 4. If any plugin of the
// CRI is disabled, under any of its names, the CRI is.
// Source: https://github.com/containerd/containerd/blob/main/docs/cri/config.md.
func containerd(a answer, h *Host) error {
	if a.first("containerd-dump") == "" {
		return nil
	}
	dump, err := decodeConfiguration(a.first("containerd-dump"))
	if err != nil {
		return bad("containerd-dump", "…", err)
	}
	var config struct {
		Disabled []string                  `toml:"disabled_plugins"`
		Plugins  map[string]map[string]any `toml:"plugins"`
	}
	if err := toml.Unmarshal(dump, &config); err != nil {
		return bad("containerd-dump", "…", err)
	}
	loaded := map[string]string{"cri": "disabled"}
	for id, sandbox := range map[string][]string{
		"io.containerd.grpc.v1.cri":   {"sandbox_image"},
		"io.containerd.cri.v1.images": {"pinned_images", "sandbox"},
	} {
		if image, ok := at(config.Plugins[id], sandbox...).(string); ok {
			loaded["sandbox"] = image
		}
	}
	off := slices.ContainsFunc(config.Disabled, func(plugin string) bool { return slices.Contains(CRIPlugins, plugin) })
	for _, id := range CRIPlugins {
		plugin := config.Plugins[id]
		runc, ok := at(plugin, "containerd", "runtimes", "runc", "options").(map[string]any)
		if !ok || off {
			continue
		}
		loaded["cri"] = "enabled"
		if _, ok := at(plugin, "containerd", "runtimes", "nvidia").(map[string]any); ok {
			loaded["nvidia"] = "runtime"
		}
		loaded["SystemdCgroup"] = fmt.Sprint(runc["SystemdCgroup"] == true)
		if dir, ok := at(plugin, "cni", "bin_dir").(string); ok && dir != "" {
			loaded["bin_dir"] = dir
		} else if dirs, ok := at(plugin, "cni", "bin_dirs").([]any); ok && len(dirs) > 0 {
			loaded["bin_dir"] = fmt.Sprint(dirs[0])
		}
	}
	h.ContainerdLoaded = loaded
	return nil
}

// at returns the value at a path of keys in nested tables; nil if there is none.
func at(table map[string]any, keys ...string) any {
	var here any = table
	for _, key := range keys {
		t, ok := here.(map[string]any)
		if !ok {
			return nil
		}
		here = t[key]
	}
	return here
}

// These bound the configuration files that a host sends. kgpu reads and edits them and writes them back.
const (
	maxConfiguration = 1 << 20
	maxDepth         = 100
)

// decodeConfiguration decodes a file. Contents that are neither TOML nor JSON are returned as they are; their user reports
// what is wrong.
func decodeConfiguration(encoded string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, err
	}
	if len(data) > maxConfiguration {
		return nil, fmt.Errorf("the file is longer than %d bytes", maxConfiguration)
	}
	var inJSON, inTOML map[string]any
	_ = json.Unmarshal(data, &inJSON)
	_ = toml.Unmarshal(data, &inTOML)
	if tooDeep(inJSON) || tooDeep(inTOML) {
		return nil, fmt.Errorf("the file has values within values, more than %d levels", maxDepth)
	}
	return data, nil
}

// tooDeep reports whether values in v are nested more than maxDepth levels. It is iterative so that a host cannot exhaust
// the stack.
func tooDeep(v any) bool {
	level := []any{v}
	for range maxDepth {
		var below []any
		for _, v := range level {
			switch v := v.(type) {
			case map[string]any:
				for _, w := range v {
					below = append(below, w)
				}
			case []any:
				below = append(below, v...)
			}
		}
		if len(below) == 0 {
			return false
		}
		level = below
	}
	return true
}
