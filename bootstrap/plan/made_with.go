package plan

import (
	"encoding/json"
	"maps"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// What kubeadm init reads of the inventory, and nobody after it, stays on the control plane as it was: what became of it in the
// cluster has another form. Who changes the cluster by hand removes the file.
const madeWithDir = securityDir + "/made-with/"

// madeWithKeys are the keys of which nothing else on a host says what the cluster was made with.
func madeWithKeys(k inventory.Kubernetes) map[string]any {
	return map[string]any{
		"kubernetes.featureGates":           k.FeatureGates,
		"kubernetes.kubeletConfiguration":   k.KubeletConfiguration,
		"kubernetes.clusterConfiguration":   withoutNames(k.ClusterConfiguration),
		"kubernetes.kubeProxyConfiguration": k.KubeProxyConfiguration,
	}
}

func madeWithFile(key string) string { return madeWithDir + key + ".json" }

// madeWith are the files that remember them; older Kubernetes is kept as it was.
func (b *builder) madeWith() map[string]graph.File {
	files := map[string]graph.File{}
	if !b.Minor.Secured() {
		return files
	}
	for key, value := range madeWithKeys(b.Asked.Kubernetes) {
		files[madeWithFile(key)] = graph.File{Mode: 0o600, Content: madeWithText(value)}
	}
	return files
}

func madeWithText(value any) []byte {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err) // it comes out of YAML
	}
	if string(content) == "null" {
		content = []byte("{}")
	}
	return append(content, '\n')
}

// withoutNames is a ClusterConfiguration without the names of the API server's certificate, which follow the inventory.
func withoutNames(cluster map[string]any) map[string]any {
	server, ok := cluster["apiServer"].(map[string]any)
	if !ok || server["certSANs"] == nil {
		return cluster
	}
	cluster, server = maps.Clone(cluster), maps.Clone(server)
	delete(server, "certSANs")
	if cluster["apiServer"] = server; len(server) == 0 {
		delete(cluster, "apiServer")
	}
	return cluster
}
