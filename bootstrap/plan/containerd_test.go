package plan

import (
	"reflect"
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

// The drop-in has the names of the main file's version, and of containerd's two settings for the network's programs the one that
// prevails: up to 2.3 both together are an error, and 2.4 does not know the older one.
func TestContainerdDropIn(t *testing.T) {
	const runtime = "[plugins.'io.containerd.cri.v1.runtime'.cni]\n"
	for name, c := range map[string]struct {
		have    string
		version int
		cni     map[string]any
	}{
		"none":               {"", 2, map[string]any{"bin_dir": cniPrograms}},
		"version 2":          {"version = 2\n[plugins.'io.containerd.grpc.v1.cri'.cni]\nbin_dir = '/usr/lib/cni'\n", 2, map[string]any{"bin_dir": cniPrograms}},
		"version 3":          {"version = 3\n", 3, map[string]any{"bin_dirs": []any{cniPrograms}}},
		"version 3, one":     {"version = 3\n" + runtime + "bin_dir = '/usr/lib/cni'\n", 3, map[string]any{"bin_dir": cniPrograms}},
		"version 3, a list":  {"version = 3\n" + runtime + "bin_dirs = ['/usr/lib/cni']\n", 3, map[string]any{"bin_dirs": []any{cniPrograms}}},
		"version 4, default": {"version = 4\n" + runtime + "bin_dir = ''\nbin_dirs = ['/usr/lib/cni']\n", 4, map[string]any{"bin_dir": "", "bin_dirs": []any{cniPrograms}}},
	} {
		t.Run(name, func(t *testing.T) {
			files, _, err := containerdFiles([]byte(c.have), true, "registry.k8s.io/pause:3.10")
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Version int
				Plugins map[string]struct {
					CNI        map[string]any
					Sandbox    string                   `toml:"sandbox_image"`
					Pinned     struct{ Sandbox string } `toml:"pinned_images"`
					Containerd struct{ Runtimes map[string]any }
				}
			}
			if err := toml.Unmarshal(files[containerdDropIn].Content, &got); err != nil {
				t.Fatal(err)
			}
			c.cni["conf_dir"] = "/etc/cni/net.d"
			cri, sandbox := got.Plugins["io.containerd.grpc.v1.cri"], got.Plugins["io.containerd.grpc.v1.cri"].Sandbox
			if c.version > 2 {
				cri, sandbox = got.Plugins["io.containerd.cri.v1.runtime"], got.Plugins["io.containerd.cri.v1.images"].Pinned.Sandbox
			}
			if got.Version != c.version || !reflect.DeepEqual(cri.CNI, c.cni) || sandbox != "registry.k8s.io/pause:3.10" || len(cri.Containerd.Runtimes) != 2 {
				t.Errorf("got\n%s", files[containerdDropIn].Content)
			}
		})
	}
}
