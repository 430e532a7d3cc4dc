// Package manifest writes Kubernetes' objects as a minor version has them, and as its nodes give pods their cards.
package manifest

import "kgpu.dev/kgpu/bootstrap/catalog"

type object = map[string]any

// Adapt writes objects as a minor has them: they come in the API versions and with the fields of today. Kinds that it does not
// have are left out; the objects themselves are changed.
func Adapt(m catalog.Minor, objects []map[string]any) []map[string]any {
	var out []object
	for _, o := range objects {
		switch o["kind"] {
		case "DaemonSet", "Deployment":
			o["apiVersion"] = m.WorkloadsAPI()
		case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
			o["apiVersion"] = m.RBACAPI()
		case "RuntimeClass":
			if m.RuntimeClassAPI() == "" {
				continue
			}
			o["apiVersion"] = m.RuntimeClassAPI()
		case "Job":
			if !m.Has(catalog.BackoffLimit) {
				delete(o["spec"].(object), "backoffLimit")
			}
		}
		adaptPod(m, o)
		out = append(out, o)
	}
	return out
}

// adaptPod takes what the minor does not know out of a workload's pods.
func adaptPod(m catalog.Minor, workload object) {
	pod := PodOf(workload)
	if pod == nil {
		return
	}
	if m.RuntimeClassAPI() == "" {
		delete(pod, "runtimeClassName")
	}
	if !m.Has(catalog.ServiceLinks) {
		delete(pod, "enableServiceLinks")
	}
	meta, _ := workload["metadata"].(object)
	if !m.Has(catalog.PriorityClasses) || !m.Has(catalog.PriorityAnywhere) && meta["namespace"] != "kube-system" {
		delete(pod, "priorityClassName")
	}
	if selector, ok := pod["nodeSelector"].(object); ok && !m.Has(catalog.OSLabel) {
		if delete(selector, "kubernetes.io/os"); len(selector) == 0 {
			delete(pod, "nodeSelector")
		}
	}
	if !m.Has(catalog.HostPathType) {
		volumes, _ := pod["volumes"].([]any)
		for _, v := range volumes {
			if path, ok := v.(object)["hostPath"].(object); ok {
				delete(path, "type")
			}
		}
	}
}

// PodOf is the specification of a workload's pods; nil if it has none.
func PodOf(workload object) object {
	spec, _ := workload["spec"].(object)
	template, _ := spec["template"].(object)
	pod, _ := template["spec"].(object)
	return pod
}

// Containers calls f for every container of every workload.
func Containers(objects []object, f func(object)) {
	for _, o := range objects {
		pod := PodOf(o)
		for _, list := range []string{"initContainers", "containers"} {
			items, _ := pod[list].([]any)
			for _, c := range items {
				f(c.(object))
			}
		}
	}
}

// SetEnv sets an environment variable of a container.
func SetEnv(container object, name, value string) {
	list, _ := container["env"].([]any)
	for _, have := range list {
		if v, ok := have.(object); ok && v["name"] == name {
			v["value"] = value
			return
		}
	}
	container["env"] = append(list, object{"name": name, "value": value})
}
