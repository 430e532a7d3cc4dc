package plan

import (
	"slices"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// What others wrote stays; the CRI plugin is turned on by whatever name it was turned off, and kgpu's drop-in is imported.
func TestContainerdFilesOfOthers(t *testing.T) {
	type config struct {
		Version  int            `toml:"version"`
		Imports  []string       `toml:"imports"`
		Disabled []string       `toml:"disabled_plugins"`
		Root     string         `toml:"root"`
		Plugins  map[string]any `toml:"plugins"`
	}
	for name, c := range map[string]struct {
		have string
		want config
	}{
		"none":                    {"", config{Version: 2, Imports: []string{containerdImport}}},
		"docker's package":        {"#   Copyright\n\ndisabled_plugins = [\"cri\"]\n\n#root = \"/var/lib/containerd\"\n", config{Version: 2, Imports: []string{containerdImport}, Disabled: []string{}}},
		"version 2, off":          {"version = 2\ndisabled_plugins = [\n  \"io.containerd.grpc.v1.cri\",\n  \"io.containerd.snapshotter.v1.btrfs\",\n]\nroot = \"/data\"\n", config{Version: 2, Imports: []string{containerdImport}, Disabled: []string{"io.containerd.snapshotter.v1.btrfs"}, Root: "/data"}},
		"version 3, both off":     {"version = 3\nimports = [\"/etc/containerd/mine/*.toml\"]\ndisabled_plugins = [\"io.containerd.cri.v1.images\", \"io.containerd.cri.v1.runtime\"]\n", config{Version: 3, Imports: []string{"/etc/containerd/mine/*.toml", containerdImport}, Disabled: []string{}}},
		"another plugin, no more": {"version = 2\ndisabled_plugins = [\"io.containerd.snapshotter.v1.btrfs\"]\n", config{Version: 2, Imports: []string{containerdImport}, Disabled: []string{"io.containerd.snapshotter.v1.btrfs"}}},
	} {
		t.Run(name, func(t *testing.T) {
			files, reasons, err := containerdFiles([]byte(c.have), true, "registry.k8s.io/pause:3.10")
			if err != nil || len(reasons) == 0 {
				t.Fatalf("%v, reasons %q", err, reasons)
			}
			var got config
			if err := toml.Unmarshal(files[containerdConfig].Content, &got); err != nil {
				t.Fatal(err)
			}
			if got.Version != c.want.Version || !slices.Equal(got.Imports, c.want.Imports) || !slices.Equal(got.Disabled, c.want.Disabled) || got.Root != c.want.Root || got.Plugins != nil {
				t.Errorf("got %+v of\n%s", got, files[containerdConfig].Content)
			}
			if _, reasons, err = containerdFiles(files[containerdConfig].Content, true, "registry.k8s.io/pause:3.10"); err != nil || len(reasons) > 0 {
				t.Errorf("the second time: %v, %q", err, reasons)
			}
		})
	}
}
