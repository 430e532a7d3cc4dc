package access

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/access/kubeconfig"
	"kgpu.dev/kgpu/bootstrap/access/kubeconfig/clustertest"
	"kgpu.dev/kgpu/inventory"
)

// writtenKeys are all keys that a kubeconfig which kgpu writes has, by the path to them.
var writtenKeys = map[string]bool{
	".apiVersion": true, ".kind": true, ".current-context": true,
	".clusters": true, ".clusters.name": true, ".clusters.cluster": true, ".clusters.cluster.server": true, ".clusters.cluster.certificate-authority-data": true,
	".users": true, ".users.name": true, ".users.user": true, ".users.user.client-certificate-data": true, ".users.user.client-key-data": true,
	".contexts": true, ".contexts.name": true, ".contexts.context": true, ".contexts.context.cluster": true, ".contexts.context.user": true,
}

// strange are the keys of a kubeconfig that kgpu does not write.
func strange(value any, path string) (out []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if at := path + "." + key; !writtenKeys[at] {
				out = append(out, at)
			} else {
				out = append(out, strange(below, at)...)
			}
		}
	case []any:
		for _, below := range v {
			out = append(out, strange(below, path)...)
		}
	}
	return out
}

// FuzzKubeconfig: of whatever a control plane sends as its kubeconfig comes nothing, or one cluster, one user and one
// context, called after the cluster, with no other keys than kgpu writes.
func FuzzKubeconfig(f *testing.F) {
	honest := clustertest.AdminConf(f, clustertest.NewAuthority(f).Admin(f, "https://10.0.0.1:6443"))
	for _, conf := range append([]string{honest, strings.ReplaceAll(honest, "preferences: {}", "preferences: {a: &a [*a]}")}, slices.Collect(maps.Values(clustertest.Evil(honest)))...) {
		if len(conf) <= kubeconfig.MaxFromHost {
			f.Add([]byte(conf))
		}
	}
	cp := inventory.Host{Address: "192.0.2.1", PrivateAddress: netip.MustParseAddr("10.0.0.1"), Role: inventory.ControlPlane}
	f.Fuzz(func(t *testing.T, conf []byte) {
		inside, err := kubeconfig.FromHost(conf)
		if err != nil {
			return
		}
		out, err := withSource(renamed(inside, &inventory.Inventory{Cluster: "lab"}, cp, netip.Addr{}), conf, cp)
		must(t, err)
		var all any
		if err := yaml.Unmarshal(out, &all); err != nil {
			t.Fatalf("%q becomes %q: %v", conf, out, err)
		}
		if keys := strange(all, ""); len(keys) > 0 {
			t.Errorf("%q becomes %q, with %q", conf, out, keys)
		}
		if a, err := kubeconfig.Parse(out); err != nil || !kubeconfig.Alone(out) || a.Cluster != "lab" || a.User != "lab-admin" || a.Context != "lab" {
			t.Errorf("%q becomes %q: %v", conf, out, err)
		}
	})
}
