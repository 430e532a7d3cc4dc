package manifest

import (
	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// MountDriver gives the containers of a pod's specification the driver.
func MountDriver(pod map[string]any, mounts []machine.DriverMount) {
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
		SetEnv(c, "LD_LIBRARY_PATH", machine.DriverDirectory+":"+machine.DriverLibraries)
		SetEnv(c, "PATH", machine.DriverPrograms+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
}

// ForAccelerators writes workloads of today for clusters that give pods the devices only: containers ask for cards by their
// older name, and pods that ask for some, or for the runtime that could give some, get the driver from the host.
func ForAccelerators(workloads []map[string]any, mounts []machine.DriverMount) {
	for _, o := range workloads {
		pod := PodOf(o)
		if pod == nil {
			continue
		}
		wants := pod["runtimeClassName"] == "nvidia"
		delete(pod, "runtimeClassName")
		Containers([]object{o}, func(c object) {
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
