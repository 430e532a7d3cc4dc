package facts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

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
