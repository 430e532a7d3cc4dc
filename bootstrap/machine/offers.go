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

// DriverMount is a directory or a file of the host's driver in a container.
type DriverMount struct {
	Name string // of the volume
	From string // path on the host
	To   string // path in the container
}

// Where containers have the driver. Images of the time name these places, and those of today in LD_LIBRARY_PATH as well.
// Source: nvidia-docker 1.0's volume (tools/src/nvidia/volumes.go), which was mounted there.
const (
	DriverPrograms  = "/usr/local/nvidia/bin"
	DriverDirectory = "/usr/local/nvidia/lib"
	DriverLibraries = "/usr/local/nvidia/lib64"
)

// ownDirectory is one that holds nothing but the driver; the host's /usr/lib/x86_64-linux-gnu in a container would bring the
// host's C library with it.
var ownDirectory = regexp.MustCompile(`/nvidia(-[0-9.]+)?$`)

// DriverMounts are what a pod needs of the driver where Kubernetes gives it the devices only: directories that are the
// driver's own as they are, from others the files, one by one. None where the host has told of no libcuda.
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

// volumeName makes a path the name of a volume: a DNS label.
func volumeName(file string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(file, "/usr")), "-"), "-")
	return strings.TrimRight(name[:min(len(name), 63)], "-")
}

// Offer is a card, or an instance of one, that pods can ask for.
type Offer struct {
	UUID, Name string
	Resource   string // what pods ask for: nvidia.com/gpu, nvidia.com/mig-1g.5gb
	Share      int    // how many pods can have it at the same time
}

// Offers are the cards and instances that the device plugin offers on a host, of those that its nvidia-smi lists.
// Source: k8s-device-plugin 0.20.0, internal/rm/device_map.go and rm.go; it shares what is called nvidia.com/gpu.
func Offers(inv *inventory.Inventory, f *facts.Host) []Offer {
	var out []Offer
	for _, g := range f.NVIDIA.Seen {
		if !Cut(inv, g) {
			out = append(out, Offer{g.UUID, g.Name, catalog.GPUResource, inv.GPU.Share()})
			continue
		}
		for _, i := range g.Instances {
			o := Offer{i.UUID, g.Name + " MIG " + i.Profile, catalog.GPUResource, inv.GPU.Share()}
			if inv.GPU.MIGStrategy == inventory.MIGMixed {
				o.Resource, o.Share = "nvidia.com/mig-"+strings.ReplaceAll(i.Profile, "+", "."), 1
			}
			out = append(out, o)
		}
	}
	return out
}

// Offered is how many cards (nvidia.com/gpu) the host's node should offer; 0: none, or it depends.
func Offered(inv *inventory.Inventory, f *facts.Host) int {
	if inv.Kubernetes.Version.Minor < 10 || inv.GPU.MIGStrategy != inventory.MIGNone {
		return 0
	}
	n := 0
	for _, o := range Offers(inv, f) {
		if o.Resource == catalog.GPUResource {
			n += o.Share
		}
	}
	return n
}

// Cut tells whether instances of the card are offered in its place.
func Cut(inv *inventory.Inventory, g facts.GPU) bool {
	return g.MIG && inv.GPU.MIGStrategy != inventory.MIGNone
}
