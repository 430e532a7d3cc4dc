package plan

import (
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// proofNamespace is of the pods that prove the pod network; cluster-ready.sh deletes it.
const proofNamespace = "kgpu-network"

// networkProofSince is the first minor version of Kubernetes whose pod network is proven. Older ones are kept as they were.
const networkProofSince = 30

// provesNetwork reports whether cluster/ready proves the pod network.
func (b *builder) provesNetwork() bool {
	return b.Inventory.Network != inventory.None && b.Minor.Number >= networkProofSince
}

// owesNetworkProof has a step on the control plane, from which on nodes join or their network is another, note that the proof is owed:
// a node may be ready before kgpu, when it was killed, comes again.
func (b *builder) owesNetworkProof(values map[string]string) map[string]string {
	if b.provesNetwork() {
		values["prove"] = "yes"
	}
	return values
}

// networkProof is a pod for each node, which cluster-ready.sh has look for the next one and for the cluster's DNS. Its image is
// the one that every node has, because all pods begin with it; that has no programs, and those of the host are mounted.
func (b *builder) networkProof() (string, error) {
	const account = "proof"
	objects := []object{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": proofNamespace, "labels": object{"pod-security.kubernetes.io/enforce": "privileged"}}},
		// A pod would have to wait until the namespace gets its default account.
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": account, "namespace": proofNamespace}, "automountServiceAccountToken": false},
	}
	image := b.image("registry.k8s.io/pause:" + b.Minor.Pause())
	for _, h := range b.hosts {
		var volumes, mounts []any
		for _, name := range []string{"usr", "bin", "lib", "lib64"} {
			if name == "lib64" && h.Facts.Arch != "amd64" {
				continue
			}
			volumes = append(volumes, object{"name": name, "hostPath": object{"path": "/" + name, "type": "Directory"}})
			mounts = append(mounts, object{"name": name, "mountPath": "/" + name, "readOnly": true})
		}
		pod := object{
			"nodeName":                      h.node,
			"serviceAccountName":            account,
			"terminationGracePeriodSeconds": 1,
			"tolerations":                   []any{object{"operator": "Exists"}},
			"containers": []any{object{
				"name": "proof", "image": image, "imagePullPolicy": "IfNotPresent", "volumeMounts": mounts,
				"securityContext": object{"runAsUser": 65534, "capabilities": object{"drop": []string{"ALL"}}},
			}},
			"volumes": volumes,
		}
		objects = append(objects, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": h.node, "namespace": proofNamespace}, "spec": pod})
	}
	return manifests.Encode(objects...)
}
