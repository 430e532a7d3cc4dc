package smoke

import (
	"errors"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/scripts/manifests"
)

// lifetime ends Jobs that nobody is left to delete, so that their cards come back; the step takes less.
const lifetime = 45 * time.Minute

const (
	namespace = "kgpu-smoke" // scripts/steps/gpu-smoke.sh deletes it
	account   = "smoke"
	jobLabel  = "kgpu.dev/smoke"
)

// look is what every pod does: it tells what it sees, has the program that is its argument compute there, and then holds what it was
// given. Cards are seen by exactly one pod only if all pods hold theirs at the same time: none ends before the script has seen all of
// them ready. A pod that sees one card computes on that one. Where the driver hangs, the pod waits for one of the two programs only.
const look = `timeout -k 5 60 nvidia-smi -L 2>&1
status=$?
echo "` + statusMark + `$status"
for device in /dev/nvidia[0-9]*; do
  if [ -e "$device" ]; then echo "` + deviceMark + `$device"; fi
done
if [ "$status" = 0 ] && [ -n "$1" ]; then
  timeout -k 5 60 "$1" >/tmp/said 2>&1
  echo "` + sampleMark + `$?"
  printf '%s\n' "$(tail -c 2000 /tmp/said | sed 's/^/` + saidMark + `/')"
fi
echo "` + endMark + `"
: >/tmp/seen
exec sleep 3600
`

type object = map[string]any

// Manifest is a namespace with the Jobs of the proof: for each card of each node one that asks for a card there and computes on it
// (several where several pods share it), and for each node with cards two that ask for none. How pods ask for cards is up to the
// minor and its feature gates.
func Manifest(nodes []Node, minor catalog.Minor, gates map[string]bool) (string, error) {
	docs := []object{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace, "labels": object{"pod-security.kubernetes.io/enforce": "baseline"}}},
		// A pod would have to wait until the namespace gets its default account.
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": account, "namespace": namespace}, "automountServiceAccountToken": false},
	}
	found := false
	for _, n := range nodes {
		if len(n.Cards) == 0 {
			continue
		}
		found = true
		var jobs []object
		for i, resource := range n.asked() {
			jobs = append(jobs, job(n.cardJob(i), withRuntime(withCard(pod(n), n.Sample.Program, resource))))
		}
		nvidia, plain := n.freeJobs()
		jobs = append(jobs, job(nvidia, withRuntime(pod(n))), job(plain, pod(n)))
		if minor.Mechanism(gates) == catalog.Accelerators {
			if len(n.Driver) == 0 {
				return "", &reason.Error{ID: reason.GPUDriverMissing, Host: n.Name, Doing: "proving the cards", Detail: "the linker's cache of the host has no libcuda.so.1"}
			}
			manifest.ForAccelerators(jobs, n.Driver)
		}
		docs = append(docs, jobs...)
	}
	if !found {
		return "", errors.New("no node has a card")
	}
	return manifests.Encode(manifest.Adapt(minor, docs)...)
}

func job(name string, pod object) object {
	return object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": name, "namespace": namespace},
		"spec": object{
			"backoffLimit":          0,
			"activeDeadlineSeconds": int(lifetime.Seconds()),
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
		"terminationGracePeriodSeconds": 1, // sleep as the first process of a container does not hear SIGTERM
		"containers": []any{object{
			"name": "look", "image": n.Sample.Image, "command": []string{"sh", "-c", look},
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

// withCard has the pod ask for a card, and compute on it. NVIDIA's images refuse to start on drivers that their maker did not list,
// in the container software's mode legacy; the program itself says better whether it can use the driver.
func withCard(pod object, program, resource string) object {
	container := pod["containers"].([]any)[0].(object)
	container["command"] = append(container["command"].([]string), "look", program)
	container["env"] = []any{object{"name": "NVIDIA_DISABLE_REQUIRE", "value": "true"}}
	container["resources"] = object{"limits": object{resource: 1}}
	return pod
}
