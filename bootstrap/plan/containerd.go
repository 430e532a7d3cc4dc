package plan

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
)

const (
	containerdConfig = "/etc/containerd/config.toml"
	containerdDropIn = "/etc/containerd/conf.d/50-kgpu.toml"
	containerdImport = "/etc/containerd/conf.d/*.toml"
	cniPrograms      = "/opt/cni/bin"
)

func (b *builder) containerd(h *host) {
	cards := len(machine.Cards(b.Inventory, h.Facts)) > 0
	files, reasons, err := containerdFiles(h.Facts.ContainerdTOML, cards, b.image("registry.k8s.io/pause:"+b.Minor.Pause()))
	if err != nil {
		reasons = append(reasons, fmt.Sprintf("%s: %v", containerdConfig, err))
	}
	dropIn := map[string]graph.File{containerdDropIn: files[containerdDropIn]}
	reasons = append(reasons, changed(h.Facts, dropIn)...)
	reasons = slices.Concat(reasons, h.NotRunning("containerd.service"), h.outdated("containerd.service"))
	reasons = append(reasons, containerdLoaded(h.Facts, cards)...)
	if !b.hasRuntimePackage(h) {
		reasons = []string{"containerd is not installed"}
	}
	b.unless(h, reasons, "containerd runs", graph.Step{
		Ref:   graph.Ref{ID: "runtime/containerd"},
		Input: graph.Input{Values: map[string]string{"packages": b.packageSets()}, Files: files},
	})
}

// containerdLoaded compares what the running containerd really loaded.
func containerdLoaded(f *facts.Host, cards bool) []string {
	loaded := f.ContainerdLoaded
	if loaded == nil {
		return nil // not running, which is a reason of its own
	}
	var reasons []string
	if loaded["cri"] == "disabled" {
		reasons = append(reasons, "containerd's CRI plugin is disabled")
	} else if loaded["SystemdCgroup"] != "true" {
		reasons = append(reasons, "containerd runs without the systemd cgroup driver")
	} else if dir := loaded["bin_dir"]; dir != "" && dir != cniPrograms {
		reasons = append(reasons, "containerd looks for the network's programs in "+dir)
	} else if cards && loaded["nvidia"] == "" {
		reasons = append(reasons, "containerd runs without the runtime nvidia")
	}
	return reasons
}

// containerdFiles gives kgpu's drop-in and the main file with what it takes to load it: other people's settings stay.
// The main file is in the result only when it has to change; the reasons say why.
func containerdFiles(have []byte, cards bool, pause string) (files map[string]graph.File, reasons []string, err error) {
	var main struct {
		Version         int            `toml:"version"`
		Imports         []string       `toml:"imports"`
		DisabledPlugins []string       `toml:"disabled_plugins"`
		Plugins         map[string]any `toml:"plugins"`
	}
	if err := toml.Unmarshal(have, &main); err != nil {
		return map[string]graph.File{containerdDropIn: {}}, nil, err
	}
	if main.Version < 2 {
		main.Version = 2 // version 1 is what a file without one is; its plugin names are not used any more
	}
	dropIn, err := toml.Marshal(map[string]any{"version": main.Version, "plugins": criPlugins(main.Version, main.Plugins, cards, pause)})
	if err != nil {
		return nil, nil, err
	}
	files = map[string]graph.File{containerdDropIn: text("# Settings for Kubernetes, written by kgpu. An import replaces a plugin's whole section\n" +
		"# before containerd 2.0, so the settings of config.toml are repeated here.\n" + string(dropIn))}

	edited := have
	if len(bytes.TrimSpace(have)) == 0 {
		edited = fmt.Appendf(nil, "version = %d\nimports = [%q]\n", main.Version, containerdImport)
		reasons = append(reasons, containerdConfig+" is missing")
	} else {
		if !slices.Contains(main.Imports, containerdImport) {
			reasons = append(reasons, containerdConfig+" does not import "+containerdImport)
			edited = setArray(edited, "imports", append(main.Imports, containerdImport))
		}
		if slices.ContainsFunc(main.DisabledPlugins, isCRI) {
			reasons = append(reasons, containerdConfig+" disables the CRI plugin")
			edited = setArray(edited, "disabled_plugins", slices.DeleteFunc(main.DisabledPlugins, isCRI))
		}
		if !versionLine.Match(edited) {
			reasons = append(reasons, containerdConfig+" has no version")
			edited = append([]byte("version = 2\n"), edited...)
		}
	}
	if len(reasons) > 0 {
		if err := toml.Unmarshal(edited, &map[string]any{}); err != nil {
			return nil, nil, fmt.Errorf("kgpu cannot edit this file: %w", err)
		}
		files[containerdConfig] = graph.File{Mode: 0o644, Content: edited}
	}
	return files, reasons, nil
}

func isCRI(plugin string) bool { return slices.Contains(facts.CRIPlugins, plugin) }

var versionLine = regexp.MustCompile(`(?m)^\s*version\s*=\s*\d`)

// setArray sets a top-level array of strings in TOML text and leaves every other byte alone.
func setArray(text []byte, key string, values []string) []byte {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("%q", v)
	}
	line := fmt.Sprintf("%s = [%s]", key, strings.Join(quoted, ", "))
	existing := regexp.MustCompile(`(?ms)^` + key + `\s*=\s*\[[^\]]*\]`)
	if at := existing.FindIndex(text); at != nil {
		return slices.Concat(text[:at[0]], []byte(line), text[at[1]:])
	}
	if at := versionLine.FindIndex(text); at != nil {
		// After the version's line: top-level keys must come before the first table.
		end := at[1] + bytes.IndexByte(append(text[at[1]:len(text):len(text)], '\n'), '\n')
		return slices.Concat(text[:end], []byte("\n"+line), text[end:])
	}
	return append([]byte(line+"\n"), text...)
}

// criPlugins is the CRI plugins' configuration: what the main file has, with what Kubernetes needs, and on hosts with cards
// the runtime nvidia and devices by CDI. The runtime is installed later: containerd looks for it when a pod wants it.
// Without image_pull_with_sync_fs, a power cut leaves images that count as pulled and whose programs are empty, for good. containerd
// 1.7.14 and newer know it, older ones pass over it; 2.1 and newer pull by themselves for it, not by their transfer service.
// Sources: https://github.com/containerd/containerd/blob/main/docs/cri/config.md, https://github.com/containerd/containerd/pull/9401.
func criPlugins(version int, have map[string]any, cards bool, pause string) map[string]any {
	runc := map[string]any{"runtime_type": "io.containerd.runc.v2", "options": map[string]any{"SystemdCgroup": true}}
	cni := map[string]any{"bin_dir": cniPrograms, "conf_dir": "/etc/cni/net.d"}
	theirs, _ := have["io.containerd.cri.v1.runtime"].(map[string]any)
	theirs, _ = theirs["cni"].(map[string]any)
	if dir, _ := theirs["bin_dir"].(string); version >= 3 && dir == "" { // containerd 2.1 to 2.3 takes either, 2.4 the list alone
		delete(cni, "bin_dir")
		cni["bin_dirs"] = []any{cniPrograms}
	}
	runtimes := map[string]any{"runc": runc}
	cri := map[string]any{"containerd": map[string]any{"runtimes": runtimes}, "cni": cni}
	if cards {
		runtimes["nvidia"] = map[string]any{
			"runtime_type": "io.containerd.runc.v2",
			"options":      map[string]any{"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": true},
		}
		cri["enable_cdi"] = true
	}
	want := map[string]any{"io.containerd.grpc.v1.cri": merge(cri, map[string]any{"sandbox_image": pause, "image_pull_with_sync_fs": true})}
	if version >= 3 {
		want = map[string]any{
			"io.containerd.cri.v1.runtime": cri,
			"io.containerd.cri.v1.images":  map[string]any{"pinned_images": map[string]any{"sandbox": pause}, "image_pull_with_sync_fs": true},
		}
	}
	for id := range want {
		base, _ := have[id].(map[string]any)
		want[id] = merge(base, want[id].(map[string]any))
	}
	return want
}

// merge returns base with over's values on top, map by map, and name by name in lists of what has names. Neither is changed.
func merge(base, over map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(over))
	maps.Copy(out, base)
	for k, v := range over {
		below, ok1 := out[k].(map[string]any)
		above, ok2 := v.(map[string]any)
		if ok1 && ok2 {
			out[k] = merge(below, above)
			continue
		}
		if list, ok := mergeNamed(out[k], v); ok {
			v = list
		}
		out[k] = v
	}
	return out
}

// mergeNamed puts the items of over in the place of those of the same names in base, as kubeadm's lists of flags and volumes
// have them; false: they are no such lists. A flag may be there several times.
func mergeNamed(base, over any) (merged []any, ok bool) {
	below, ok1 := base.([]any)
	above, ok2 := over.([]any)
	theirs := map[any]bool{}
	for _, item := range above {
		name := nameOf(item)
		ok2 = ok2 && name != nil
		theirs[name] = true
	}
	for _, item := range below {
		name := nameOf(item)
		ok1 = ok1 && name != nil
		if !theirs[name] {
			merged = append(merged, item)
		}
	}
	return append(merged, above...), ok1 && ok2
}

func nameOf(item any) any {
	if m, ok := item.(map[string]any); ok {
		if name, ok := m["name"].(string); ok {
			return name
		}
	}
	return nil
}

// oldContainerds warns of runtimes that have ended. Sources: RELEASES.md and docs/containerd-2.0.md of containerd.
func (b *builder) oldContainerds() {
	for _, h := range b.hosts {
		if is := machine.OldContainerd(b.Inventory, h.Facts); is != "" {
			b.warn("%s: %s: support for it ended in September 2026, Kubernetes refuses it from 1.%d on, and pods have neither image volumes nor user namespaces in it: %s [%s]",
				h.id, is, catalog.ContainerdTwoSince, reason.Lookup(reason.HostContainerdOld).Advice, reason.HostContainerdOld)
		}
	}
}
