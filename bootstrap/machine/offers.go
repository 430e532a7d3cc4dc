package machine

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// DriverMount is a directory or file of the host's driver that is mounted into a container.
type DriverMount struct {
	Name string // of the volume
	From string // path on the host
	To   string // path in the container
}

// These are the paths of the driver in containers. Images of nvidia-docker 1.0's time rely on them; today's still have
// them in LD_LIBRARY_PATH.
// Source: nvidia-docker 1.0's volume (tools/src/nvidia/volumes.go), which was mounted there.
const (
	DriverPrograms  = "/usr/local/nvidia/bin"
	DriverDirectory = "/usr/local/nvidia/lib"
	DriverLibraries = "/usr/local/nvidia/lib64"
)

// ownDirectory matches directories that hold only the driver. Mounting the host's /usr/lib/x86_64-linux-gnu into a
// container would bring the host's C library with it.
var ownDirectory = regexp.MustCompile(`/nvidia(-[0-9.]+)?$`)

// DriverMounts are the mounts of the driver for pods to which Kubernetes gives only the device files. Directories of
// the driver alone are mounted whole, from other directories only its files. It is nil if the host has no libcuda.
func DriverMounts(f *facts.Host) []DriverMount {
	files := f.NVIDIA.Files
	if _, ok := files["libcuda.so.1"]; !ok {
		return nil
	}
	var mounts []DriverMount
	for _, name := range slices.Sorted(maps.Keys(files)) {
		m := DriverMount{From: files[name], To: DriverLibraries + "/" + name}
		if name == "nvidia-smi" {
			m.To = DriverPrograms + "/" + name
		}
		if dir := path.Dir(m.From); ownDirectory.MatchString(strings.TrimSuffix(dir, "/bin")) {
			m = DriverMount{From: dir, To: DriverDirectory}
			if name == "nvidia-smi" {
				m.To = DriverPrograms
			}
		}
		m.Name = volumeName(m.From)
		if !slices.Contains(mounts, m) {
			mounts = append(mounts, m)
		}
	}
	return mounts
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// volumeName turns a path into the name of a volume, which is a DNS label.
func volumeName(file string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(file, "/usr")), "-"), "-")
	return strings.TrimRight(name[:min(len(name), 63)], "-")
}

// PluginDevice is a GPU, or a MIG instance of one, that the device plugin offers to pods.
type PluginDevice struct {
	UUID, Name string
	Resource   string // what pods ask for: nvidia.com/gpu, nvidia.com/mig-1g.5gb
	Share      int    // number of pods that can share it
}

// PluginDevices are the GPUs and instances that the device plugin offers on a host, of those that its nvidia-smi lists.
// Source: k8s-device-plugin 0.20.0, internal/rm/device_map.go and rm.go; it shares what is called nvidia.com/gpu.
func PluginDevices(inv *inventory.Inventory, f *facts.Host) []PluginDevice {
	var out []PluginDevice
	for _, g := range f.NVIDIA.GPUs {
		if !MIGPartitioned(inv, g) {
			out = append(out, PluginDevice{g.UUID, g.Name, catalog.GPUResource, inv.GPU.Share()})
			continue
		}
		for _, i := range g.Instances {
			o := PluginDevice{i.UUID, g.Name + " MIG " + i.Profile, catalog.GPUResource, inv.GPU.Share()}
			if inv.GPU.MIGStrategy == inventory.MIGMixed {
				o.Resource, o.Share = "nvidia.com/mig-"+strings.ReplaceAll(i.Profile, "+", "."), 1
			}
			out = append(out, o)
		}
	}
	return out
}

// PluginDeviceCount is the number of nvidia.com/gpu that the host's node should offer; zero if it is none or unpredictable.
func PluginDeviceCount(inv *inventory.Inventory, f *facts.Host) int {
	if inv.Kubernetes.Version.Minor < 10 || inv.GPU.MIGStrategy != inventory.MIGNone {
		return 0
	}
	n := 0
	for _, o := range PluginDevices(inv, f) {
		if o.Resource == catalog.GPUResource {
			n += o.Share
		}
	}
	return n
}

// MIGPartitioned reports whether MIG instances of the GPU are offered in its place.
func MIGPartitioned(inv *inventory.Inventory, g facts.GPU) bool {
	return g.MIG && inv.GPU.MIGStrategy != inventory.MIGNone
}
