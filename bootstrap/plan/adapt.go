package plan

import "kgpu.dev/kgpu/bootstrap/catalog"

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
			if !m.HasBackoffLimit() {
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
	spec, _ := workload["spec"].(object)
	template, _ := spec["template"].(object)
	pod, ok := template["spec"].(object)
	if !ok {
		return
	}
	if m.RuntimeClassAPI() == "" {
		delete(pod, "runtimeClassName")
	}
	if !m.HasServiceLinks() {
		delete(pod, "enableServiceLinks")
	}
	meta, _ := workload["metadata"].(object)
	if !m.HasPriorityClasses() || !m.TakesPriorityAnywhere() && meta["namespace"] != "kube-system" {
		delete(pod, "priorityClassName")
	}
	if selector, ok := pod["nodeSelector"].(object); ok && !m.HasOSLabel() {
		if delete(selector, "kubernetes.io/os"); len(selector) == 0 {
			delete(pod, "nodeSelector")
		}
	}
	if !m.HasHostPathType() {
		volumes, _ := pod["volumes"].([]any)
		for _, v := range volumes {
			if path, ok := v.(object)["hostPath"].(object); ok {
				delete(path, "type")
			}
		}
	}
}
