package plan

import "slices"

// stepIDs are the IDs of all steps that there are. Those that a node's name follows (node/drain/w1) stand without it.
var stepIDs = []string{
	"cluster/adopt", "cluster/init", "cluster/join", "cluster/nodes", "cluster/ready", "cluster/token", "cluster/untoken",
	"dashboard/deploy", "dashboard/remove",
	"doctor/hold", "doctor/module", "doctor/plugin", "doctor/units", "doctor/watch",
	"driver/drain", "driver/fabric", "driver/fetch", "driver/install", "driver/load", "driver/nouveau", "driver/reboot", "driver/remove", "driver/uncordon",
	"gpu/accelerators", "gpu/cuda", "gpu/device-plugin", "gpu/features", "gpu/labels", NotebookStep, "gpu/notebook-remove", "gpu/proven", "gpu/ready",
	"gpu/smoke", "gpu/toolkit",
	"host/leftovers", "host/reset",
	"kube/packages",
	"network/calico", "network/flannel", "network/weave",
	"node/delete", "node/drain",
	"os/dpkg", "os/hosts", "os/modules", "os/packages", "os/proxy", "os/swap", "os/sysctl", "os/time",
	"repo/cuda", "repo/debian", "repo/docker", "repo/graphics-drivers", "repo/kubernetes", "repo/nvidia-container-toolkit",
	"runtime/containerd", "runtime/cri-dockerd", "runtime/docker",
	"user/create", "user/delete",
}

// StepIDs returns the IDs of all steps that any plan may have, sorted, for those who choose steps before there is a plan.
func StepIDs() []string { return slices.Sorted(slices.Values(stepIDs)) }
