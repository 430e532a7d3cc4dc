package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/inventory"
)

const oneCard = threeHosts + "runtime: containerd\nnetwork: flannel\ngpu: {driver: {source: none}}\n"

// withNotebook is a cluster with a card and a notebook that is up.
func withNotebook(t *testing.T) map[string]*facts.Host {
	t.Helper()
	_, seen := settled(t, oneCard, func(f map[string]*facts.Host) {
		f["w1"].NVIDIA = facts.NVIDIA{Cards: cards("2204"), Loaded: "570.133.20", Library: "570.133.20", GPUs: make([]facts.GPU, 1)}
	})
	return seen
}

// The notebook comes back when it is missing, another one or not ready, goes when nobody wants it, and nothing else changes.
func TestNotebook(t *testing.T) {
	for _, c := range []struct {
		name, inventory string
		harm            func(map[string]facts.Workload)
		want            []string
		reason          string
	}{
		{name: "as it is", want: nil},
		{name: "deleted", harm: func(w map[string]facts.Workload) { delete(w, notebookWorkload) },
			want: []string{"cp1 addon/notebook"}, reason: "kgpu-notebook/deployment/notebook is missing"},
		{name: "not ready", harm: func(w map[string]facts.Workload) {
			w[notebookWorkload] = facts.Workload{Desired: 1, Hash: w[notebookWorkload].Hash}
		}, want: []string{"cp1 addon/notebook"}, reason: "the notebook is not ready"},
		{name: "scaled to nothing", harm: func(w map[string]facts.Workload) {
			w[notebookWorkload] = facts.Workload{Hash: w[notebookWorkload].Hash}
		}, want: nil},
		{name: "stopped, and another port", inventory: "notebook: {nodePort: 30062}\n", harm: func(w map[string]facts.Workload) {
			w[notebookWorkload] = facts.Workload{Hash: w[notebookWorkload].Hash}
		}, want: nil},
		{name: "an idle timeout", inventory: "notebook: {idleTimeout: 1h}\n",
			want: []string{"cp1 addon/notebook"}, reason: "kgpu-notebook/deployment/notebook is not as the inventory wants it"},
		{name: "another port", inventory: "notebook: {nodePort: 30062}\n",
			want: []string{"cp1 addon/notebook"}, reason: "kgpu-notebook/deployment/notebook is not as the inventory wants it"},
		{name: "another image", inventory: "notebook: {image: \"reg.lan/notebook:1\"}\n",
			want: []string{"cp1 addon/notebook"}, reason: "kgpu-notebook/deployment/notebook is not as the inventory wants it"},
		{name: "none", inventory: "notebook: {framework: none}\n",
			want: []string{"cp1 addon/notebook-remove"}, reason: "the inventory says framework: none"},
		{name: "none, and another's", inventory: "notebook: {framework: none}\n", harm: func(w map[string]facts.Workload) {
			w[notebookWorkload] = facts.Workload{Desired: 1, Ready: 1}
		}, want: nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, seen := decode(t, oneCard+c.inventory), withNotebook(t)
			if c.harm != nil {
				c.harm(seen["cp1"].Cluster.Workloads)
			}
			g := planUp(t, inv, seen)
			if got := refs(g); !slices.Equal(got, c.want) {
				t.Fatalf("planned %q, want %q", got, c.want)
			}
			if !g.Empty() && g.Steps[0].Reason != c.reason {
				t.Errorf("because %s, want %s", g.Steps[0].Reason, c.reason)
			}
			settles(t, inv, seen, g)
			if without := g.InStages(graph.BeforeProof); without.Has(NotebookStep) || len(g.Steps) != len(c.want) {
				t.Errorf("%q without the notebook: %q", refs(g), refs(without))
			}
		})
	}
}

// What the proof deploys is what up deploys: the next up has nothing to do.
func TestNotebookOfTheProof(t *testing.T) {
	seen := withNotebook(t)
	g, err := Notebook(decode(t, oneCard), seen, true)
	if err != nil || !slices.Equal(refs(g), []string{"cp1 addon/notebook"}) {
		t.Fatalf("planned %q, %v", refs(g), err)
	}
	if got := manifestHashOf(t, g.Steps[0].Input.Values["manifest"]); got != seen["cp1"].Cluster.Workloads[notebookWorkload].Hash {
		t.Error("the proof deploys another notebook")
	}
	for agreed, keep := range map[bool]string{true: "", false: "yes"} {
		if g, err := Notebook(decode(t, oneCard), seen, agreed); err != nil || g.Steps[0].Input.Values["keep"] != keep {
			t.Errorf("agreed: %t: %v, keep is %q, want %q", agreed, err, g.Steps[0].Input.Values["keep"], keep)
		}
	}
	workloads := seen["cp1"].Cluster.Workloads
	workloads[notebookWorkload] = facts.Workload{Hash: workloads[notebookWorkload].Hash} // somebody wanted the card back
	for agreed, steps := range map[bool]int{true: 1, false: 0} {
		if g, err := Notebook(decode(t, oneCard), seen, agreed); err != nil || len(g.Steps) != steps || len(g.Warnings) != 1-steps {
			t.Errorf("agreed: %t: planned %q, warned %q, %v", agreed, refs(g), g.Warnings, err)
		}
	}
	g, err = Notebook(decode(t, oneCard+"notebook: {framework: none}\n"), seen, true)
	if err != nil || !g.Empty() {
		t.Errorf("planned %q, %v", refs(g), err)
	}
}

// TestNotebookAsksForWhatThereIs: a card, an instance where all cards are cut, and the card of an old Kubernetes.
func TestNotebookAsksForWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		name, more string
		harm       func(*facts.Host)
		want       string
	}{
		{"whole", containerd, func(*facts.Host) {}, "nvidia.com/gpu"},
		{"cut, as cards", containerd + "gpu: {driver: {source: none}, migStrategy: single}\n", cutCard, "nvidia.com/gpu"},
		{"cut", containerd + "gpu: {driver: {source: none}, migStrategy: mixed}\n", cutCard, "nvidia.com/mig-1g.5gb"},
		{"cut and whole", containerd + "gpu: {driver: {source: none}, migStrategy: mixed}\n", func(f *facts.Host) {
			cutCard(f)
			f.NVIDIA.GPUs = append(f.NVIDIA.GPUs, facts.GPU{UUID: "GPU-2", Name: "A100"})
		}, "nvidia.com/gpu"},
		{"of old", "kubernetes: {version: \"1.9\", allowEndOfLife: true}\n" + mirrors, func(f *facts.Host) { f.NVIDIA.Files = driver375 }, "alpha.kubernetes.io/nvidia-gpu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := withNotebook(t)
			for _, f := range seen {
				if len(f.NVIDIA.Cards) > 0 {
					c.harm(f)
				}
			}
			inv := decode(t, threeHosts+c.more)
			seen["cp1"].ControlPlane.Version = "v" + inv.Kubernetes.Version.String()
			g, err := Notebook(inv, seen, true)
			if err != nil {
				t.Fatal(err)
			}
			values := g.Steps[0].Input.Values
			if !strings.Contains(values["manifest"], c.want+": 1") || values["resource"] != c.want {
				t.Errorf("it waits for %s, and asks for another:\n%s", values["resource"], values["manifest"])
			}
		})
	}
}

// cutCard is a host whose only card is cut in two.
func cutCard(f *facts.Host) {
	f.NVIDIA.GPUs = []facts.GPU{{UUID: "GPU-1", Name: "A100", MIG: true, Instances: []facts.Instance{{UUID: "MIG-1", Profile: "1g.5gb"}, {UUID: "MIG-2", Profile: "1g.5gb"}}}}
}

// notebookObjects are what the notebook of the inventory consists of, in a cluster that has one.
func notebookObjects(t *testing.T, inv *inventory.Inventory) []object {
	t.Helper()
	g, err := Notebook(inv, withNotebook(t), true)
	if err != nil {
		t.Fatal(err)
	}
	objects := objectsIn(t, []byte(g.Steps[0].Input.Values["manifest"]))
	return objects
}

// TestTaintsOfTheInventory: what keeps others away from the nodes does not keep away what kgpu makes there.
func TestTaintsOfTheInventory(t *testing.T) {
	inv := decode(t, strings.Replace(oneCard, "name: w1", "taints: [\"dedicated=ml:NoSchedule\", \"x:NoExecute\"], name: w1", 1))
	objects := notebookObjects(t, inv)
	tolerations := objects[len(objects)-1]["spec"].(object)["template"].(object)["spec"].(object)["tolerations"].([]any)
	for _, want := range []object{
		{"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}, {"key": "x", "operator": "Equal", "value": "", "effect": "NoExecute"},
	} {
		if !slices.ContainsFunc(tolerations, func(have any) bool { return maps.Equal(have.(object), want) }) {
			t.Errorf("%v is not among %v", want, tolerations)
		}
	}
}

// What stops an idle notebook asks for no card, has the only token, and nothing of it is there unless it is wanted.
func TestNotebookIdleTimeout(t *testing.T) {
	inv := decode(t, oneCard+"notebook: {idleTimeout: 1h30m, storage: 10Gi}\n")
	objects := notebookObjects(t, inv)
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o["kind"].(string))
	}
	if got := strings.Join(kinds, " "); got != "Namespace Service ServiceAccount Role RoleBinding PersistentVolumeClaim Deployment" {
		t.Errorf("kinds %s", got)
	}
	pod := objects[len(objects)-1]["spec"].(object)["template"].(object)["spec"].(object)
	if pod["automountServiceAccountToken"] != false || len(pod["volumes"].([]any)) != 2 {
		t.Errorf("the pod has %v", pod)
	}
	for i, mount := range []string{"notebooks", "idle-token"} {
		c := pod["containers"].([]any)[i].(object)
		mounts := c["volumeMounts"].([]any)
		if len(mounts) != 1 || mounts[0].(object)["name"] != mount || (c["resources"] != nil) != (i == 0) || c["securityContext"] == nil {
			t.Errorf("%v", c)
		}
		if idle := slices.ContainsFunc(c["env"].([]any), func(e any) bool { return maps.Equal(e.(object), object{"name": "IDLE_SECONDS", "value": "5400"}) }); idle != (i == 1) {
			t.Errorf("environment %v", c["env"])
		}
	}
}

// What the inventory says stays one value in the manifest.
func TestNotebookStorage(t *testing.T) {
	inv := decode(t, oneCard)
	inv.Notebook.Storage, inv.Notebook.Image = "10Gi\n  x: y", "reg.lan/nb: x\nprivileged: true #"
	objects := notebookObjects(t, inv)
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o["kind"].(string))
		if o["kind"] == "PersistentVolumeClaim" && o["spec"].(object)["resources"].(object)["requests"].(object)["storage"] != inv.Notebook.Storage {
			t.Errorf("%v", o)
		}
	}
	manifest.Containers(objects, func(c object) {
		if c["image"] != inv.Notebook.Image || c["privileged"] != nil {
			t.Errorf("container %v", c)
		}
	})
	if got := strings.Join(kinds, " "); got != "Namespace Service PersistentVolumeClaim Deployment" {
		t.Errorf("kinds %s", got)
	}
}
