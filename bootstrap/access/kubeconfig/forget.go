package kubeconfig

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Forget is a kubeconfig without what Merge added to it for the cluster of this name and of the inventory origin; a current context
// that goes is none. What was renamed by its owner since is theirs.
func Forget(data []byte, cluster, origin string) ([]byte, error) {
	root, top, err := decode(data)
	if err != nil {
		return nil, err
	}
	m := merger{origin: origin}
	gone := false
	drop := func(list, key string, mine func(name string, value *yaml.Node) bool) {
		all := get(top, list)
		if all == nil {
			return
		}
		all.Content = slices.DeleteFunc(all.Content, func(e *yaml.Node) bool {
			name, value := get(e, "name"), get(e, key)
			goes := name != nil && m.ours(value) && mine(name.Value, value)
			if current := get(top, "current-context"); goes && list == "contexts" && current != nil && current.Value == name.Value {
				set(top, "current-context", text(""))
			}
			gone = gone || goes
			return goes
		})
		if len(all.Content) == 0 && all.Kind == yaml.SequenceNode {
			all.Style = yaml.FlowStyle // as kubectl writes an empty list
		}
	}
	called := func(want string) func(string, *yaml.Node) bool {
		return func(name string, _ *yaml.Node) bool { return name == want }
	}
	drop("contexts", "context", func(_ string, value *yaml.Node) bool {
		of := get(value, "cluster")
		return of != nil && of.Value == cluster
	})
	drop("clusters", "cluster", called(cluster))
	drop("users", "user", called(cluster+"-admin"))
	if !gone {
		return data, nil
	}
	return encode(root)
}
