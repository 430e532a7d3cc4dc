package smoke

import (
	"errors"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/scripts/manifests"
)

// jobLifetime limits Jobs that nobody deletes, so that their GPUs are released. The step is faster.
const jobLifetime = 45 * time.Minute

const (
	namespace = "kgpu-smoke" // scripts/steps/gpu-smoke.sh deletes it
	account   = "smoke"
	jobLabel  = "kgpu.dev/smoke"
)

// podScript is the script of every pod: it prints the GPUs that it sees, runs the program in its argument on them, and then
// keeps the pod alive. As no pod ends before the step has seen all of them ready, each GPU is seen by exactly one pod.
// A pod that sees one GPU computes on that one. If the driver hangs, only one of the two programs is waited for.
const podScript = `timeout -k 5 60 nvidia-smi -L 2>&1
status=$?
echo "` + statusMark + ` $status"
for device in /dev/nvidia[0-9]*; do
  if [ -e "$device" ]; then echo "` + deviceMark + ` $device"; fi
done
if [ "$status" = 0 ] && [ -n "$1" ]; then
  timeout -k 5 60 "$1" >/tmp/said 2>&1
  echo "` + sampleMark + ` $?"
  printf '%s\n' "$(tail -c 2000 /tmp/said | sed 's/^/` + saidMark + ` /')"
fi
echo "` + endMark + `"
: >/tmp/seen
exec sleep 3600
`

type object = map[string]any

// Manifest is a namespace with the Jobs of the proof: one for each GPU of each node, which requests a GPU and computes
// on it (several if pods share it), and two for each node with GPUs that request none. The minor and its feature gates
// decide how pods request GPUs.
func Manifest(nodes []Node, minor catalog.Minor, gates map[string]bool) (string, error) {
	docs := []object{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace, "labels": object{"pod-security.kubernetes.io/enforce": "baseline"}}},
		// Without an account of its own a pod would wait for the namespace's default one.
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": account, "namespace": namespace}, "automountServiceAccountToken": false},
	}
	found := false
	for _, n := range nodes {
		if len(n.GPUs) == 0 {
			continue
		}
		found = true
		var jobs []object
		for i, resource := range n.requests() {
			jobs = append(jobs, job(n.gpuJob(i), withRuntime(withGPU(pod(n), n.Sample.Program, resource))))
		}
		nvidia, plain := n.plainJobs()
		jobs = append(jobs, job(nvidia, withRuntime(pod(n))), job(plain, pod(n)))
		if minor.Mechanism(gates) == catalog.Accelerators {
			if len(n.Driver) == 0 {
				return "", &reason.Error{ID: reason.GPUDriverMissing, Host: n.Name, Doing: "proving the GPUs", Detail: "the linker's cache of the host has no libcuda.so.1"}
			}
			manifest.ForAccelerators(jobs, n.Driver)
		}
		docs = append(docs, jobs...)
	}
	if !found {
		return "", errors.New("no node has a GPU")
	}
	return manifests.Encode(manifest.Adapt(minor, docs)...)
}

func job(name string, pod object) object {
	return object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": name, "namespace": namespace},
		"spec": object{
			"backoffLimit":          0,
			"activeDeadlineSeconds": int(jobLifetime.Seconds()),
			"template": object{
				"metadata": object{"labels": object{jobLabel: name}},
				"spec":     pod,
			},
		},
	}
}

func pod(n Node) object {
	return object{
		"nodeSelector": object{"kubernetes.io/hostname": n.Name},
		"tolerations": []object{
			{"key": "nvidia.com/gpu", "operator": "Exists"},
			{"operator": "Exists", "effect": "NoSchedule"},
			{"operator": "Exists", "effect": "NoExecute"},
		},
		"serviceAccountName":            account,
		"restartPolicy":                 "Never",
		"terminationGracePeriodSeconds": 1, // sleep ignores SIGTERM as the first process of a container
		"containers": []any{object{
			"name": "look", "image": n.Sample.Image, "command": []string{"sh", "-c", podScript},
			"readinessProbe": object{
				"exec":          object{"command": []string{"sh", "-c", "[ -e /tmp/seen ]"}},
				"periodSeconds": 2, "timeoutSeconds": 10, "failureThreshold": 1,
			},
		}},
	}
}

func withRuntime(pod object) object {
	pod["runtimeClassName"] = "nvidia"
	return pod
}

// withGPU makes the pod request a GPU and compute on it. NVIDIA's images refuse drivers that NVIDIA did not list, if
// the toolkit is in legacy mode. That check is switched off, because the program itself finds out whether the driver
// runs it.
func withGPU(pod object, program, resource string) object {
	container := pod["containers"].([]any)[0].(object)
	container["command"] = append(container["command"].([]string), "look", program)
	container["env"] = []any{object{"name": "NVIDIA_DISABLE_REQUIRE", "value": "true"}}
	container["resources"] = object{"limits": object{resource: 1}}
	return pod
}
