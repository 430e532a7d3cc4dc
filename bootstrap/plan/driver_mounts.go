package plan

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
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
	driverPrograms  = "/usr/local/nvidia/bin"
	driverDirectory = "/usr/local/nvidia/lib"
	driverLibraries = "/usr/local/nvidia/lib64"
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
	for _, name := range sortedKeys(files) {
		m := DriverMount{From: files[name], To: driverLibraries + "/" + name}
		if name == "nvidia-smi" {
			m.To = driverPrograms + "/" + name
		}
		if dir := path.Dir(m.From); ownDirectory.MatchString(strings.TrimSuffix(dir, "/bin")) {
			m = DriverMount{From: dir, To: driverDirectory}
			if name == "nvidia-smi" {
				m.To = driverPrograms
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

// MountDriver gives the containers of a pod's specification the driver.
func MountDriver(pod map[string]any, mounts []DriverMount) {
	var volumes, inside []any
	for _, m := range mounts {
		volumes = append(volumes, object{"name": m.Name, "hostPath": object{"path": m.From}})
		inside = append(inside, object{"name": m.Name, "mountPath": m.To, "readOnly": true})
	}
	have, _ := pod["volumes"].([]any)
	pod["volumes"] = append(have, volumes...)
	for _, c := range pod["containers"].([]any) {
		c := c.(object)
		have, _ := c["volumeMounts"].([]any)
		c["volumeMounts"] = append(have, inside...)
		setEnv(c, "LD_LIBRARY_PATH", driverDirectory+":"+driverLibraries)
		setEnv(c, "PATH", driverPrograms+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
}

// ForAccelerators writes workloads of today for clusters that give pods the devices only: containers ask for cards by their
// older name, and pods that ask for some, or for the runtime that could give some, get the driver from the host.
func ForAccelerators(workloads []map[string]any, mounts []DriverMount) {
	for _, o := range workloads {
		spec, _ := o["spec"].(object)
		template, _ := spec["template"].(object)
		pod, ok := template["spec"].(object)
		if !ok {
			continue
		}
		wants := pod["runtimeClassName"] == "nvidia"
		delete(pod, "runtimeClassName")
		containers([]object{o}, func(c object) {
			resources, _ := c["resources"].(object)
			limits, _ := resources["limits"].(object)
			if count, ok := limits[catalog.DevicePlugins.Resource()]; ok {
				delete(limits, catalog.DevicePlugins.Resource())
				limits[catalog.Accelerators.Resource()], wants = count, true
			}
		})
		if wants {
			MountDriver(pod, mounts)
		}
	}
}
