package plan

import (
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/inventory"
)

// What a row of the table says of its manifest is so: its workload is in there; who waits for a Deployment finds its pods by
// their label; and who deletes the add-on finds all of it in its namespace, or, in all of the cluster, by labels.
func TestAddons(t *testing.T) {
	for _, a := range addons {
		if a.manifest == nil {
			continue // the host downloads it
		}
		objects := objectsIn(t, a.manifest)
		namespace, rest, _ := strings.Cut(a.workload, "/")
		kind, name, _ := strings.Cut(rest, "/")
		found := false
		for _, o := range objects {
			meta := o["metadata"].(object)
			labels, _ := meta["labels"].(object)
			marked := labels["app.kubernetes.io/name"] == name && labels["app.kubernetes.io/managed-by"] == "kgpu"
			switch {
			case strings.EqualFold(o["kind"].(string), kind) && meta["name"] == name && meta["namespace"] == namespace:
				found = true
				pods := o["spec"].(object)["template"].(object)["metadata"].(object)["labels"].(object)
				if a.awaitedBy == "" && (kind != "deployment" || pods["app.kubernetes.io/name"] != name) {
					t.Errorf("%s: its step does not find the pods of %s", a.ID, a.workload)
				}
			case a.removal.Title != "" && meta["namespace"] != namespace && meta["name"] != namespace && !marked:
				t.Errorf("%s: %v %v would stay", a.removalID(), o["kind"], meta["name"])
			}
		}
		if !found {
			t.Errorf("%s: there is no %s in its manifest", a.ID, a.workload)
		}
		if (a.awaitedBy == "") != (a.failed != "") || a.awaitedBy != "" && Kinds.Of(a.awaitedBy) == nil {
			t.Errorf("%s: who waits until it is ready, and what if it does not get so?", a.ID)
		}
	}
}

// Each pod network that the inventory may name is an add-on, and no cluster has two.
func TestPodNetworksAreAddons(t *testing.T) {
	for _, n := range []inventory.Network{inventory.Calico, inventory.Flannel, inventory.Weave, inventory.None} {
		var want, got []string
		if n != inventory.None {
			want = []string{"addon/" + string(n)}
		}
		inv := decode(t, threeHosts+"network: "+string(n)+"\n")
		g := planUp(t, inv, hostFacts(inv))
		for _, s := range g.Steps {
			if row := Kinds.Of(s.ID); row.Script == "addon-apply" && strings.HasPrefix(row.Former, "network/") {
				got = append(got, s.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: planned %q, want %q", n, got, want)
		}
	}
}
