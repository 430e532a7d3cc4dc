package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// An addon is what runs in the cluster besides Kubernetes itself: objects that a step applies, and applies again when the
// hash on the workload is not that of what the inventory wants. Its images are those that the manifest names. Another one is a
// row here, a manifest in scripts/manifests, and its images in docs/security.md.
type addon struct {
	graph.Kind            // of the step that applies it; where the row does not say otherwise, by addon-apply.sh
	removal    graph.Kind // of the step that deletes its namespace; without a title there is none

	called   string                                     // by messages: "the dashboard"
	workload string                                     // namespace/kind/name of what tells whether it is there, and as what
	manifest []byte                                     // its objects, as YAML; nil: the host downloads them
	fit      func(*builder, []object) ([]object, error) // makes the objects those of this cluster; nil: they are any's
	values   func(*builder) map[string]string           // what its step reads besides; of what is downloaded the hash
	wanted   func(*builder) (wish, string)              // nil: it comes and goes by a command of its own

	awaitedBy string    // ID of the step that waits until it is ready; empty: its own, until its Deployment is
	failed    reason.ID // why its own step fails when it does not get ready
	needs     []string  // IDs of steps on the control plane that come before its own, besides the start of the cluster
	stage     graph.Stage
}

// A wish is what becomes of an add-on. What is said with it goes into the plan.
type wish int

const (
	leave  wish = iota // it stays as it is; if anything is said, why there is nothing to do
	apply              // it is made what its row says; what else is a reason for its step, or a remark
	remove             // it goes, if kgpu made it; the reason
)

// addons are all that there are, in the order in which they are planned.
var addons = []addon{
	{
		Kind:   graph.Kind{ID: "addon/calico", Title: "apply the pod network calico", Former: "network/calico"},
		called: "the pod network", workload: machine.NetworkWorkload[inventory.Calico], awaitedBy: "cluster/ready",
		values: (*builder).calicoValues, wanted: wantsNetwork(inventory.Calico),
	},
	{
		Kind:   graph.Kind{ID: "addon/flannel", Title: "apply the pod network flannel", Former: "network/flannel"},
		called: "the pod network", workload: machine.NetworkWorkload[inventory.Flannel], awaitedBy: "cluster/ready",
		manifest: manifests.Flannel, fit: (*builder).fitFlannel, wanted: wantsNetwork(inventory.Flannel),
	},
	{
		Kind:   graph.Kind{ID: "addon/weave", Title: "apply the pod network weave", Former: "network/weave"},
		called: "the pod network", workload: machine.NetworkWorkload[inventory.Weave], awaitedBy: "cluster/ready",
		manifest: manifests.Weave, fit: (*builder).fitWeave, wanted: wantsNetwork(inventory.Weave),
	},
	{
		Kind:   graph.Kind{ID: "addon/device-plugin", Title: "let Kubernetes schedule cards", Former: "gpu/device-plugin"},
		called: "the device plugin", workload: devicePluginWorkload, awaitedBy: "gpu/ready",
		manifest: manifests.DevicePlugin, fit: (*builder).fitDevicePlugin, wanted: (*builder).wantsDevicePlugin,
	},
	{
		Kind: graph.Kind{
			ID: NotebookStep, Title: "deploy a Jupyter notebook with a card", Former: "gpu/notebook",
			Script: "addon-notebook", Timeout: time.Hour, // the image has gigabytes, and a slow link takes what it takes
		},
		removal: graph.Kind{Title: "delete the notebook and what is stored in it", Former: "gpu/notebook-remove"},
		called:  "the notebook", workload: notebookWorkload, failed: reason.NotebookFailed,
		manifest: manifests.Notebook, fit: (*builder).fitNotebook,
		values: (*builder).notebookValues, wanted: (*builder).wantsNotebook,
		needs: []string{"cluster/ready", "gpu/ready"}, stage: graph.Proof,
	},
	{
		Kind: graph.Kind{
			ID: dashboardStep, Title: "deploy the dashboard", Former: "dashboard/deploy",
			Timeout: 20 * time.Minute, Resumes: "`kgpu dashboard`", // the image may come over a slow link
		},
		removal: graph.Kind{Title: "delete the dashboard", Former: "dashboard/remove", Resumes: "`kgpu dashboard --remove`"},
		called:  "the dashboard", workload: DashboardNamespace + "/deployment/headlamp", failed: reason.DashboardFailed,
		manifest: manifests.Dashboard, fit: withoutAdmin,
	},
}

// addonKinds are the kinds of the add-ons' steps.
func addonKinds() graph.Kinds {
	var kinds graph.Kinds
	for _, a := range addons {
		a.Retry, a.Script, a.Timeout = transient, cmp.Or(a.Script, "addon-apply"), cmp.Or(a.Timeout, medium)
		kinds = append(kinds, a.Kind)
		if k := a.removal; k.Title != "" {
			k.ID, k.Retry, k.Script, k.Timeout = a.removalID(), transient, "addon-remove", medium
			kinds = append(kinds, k)
		}
	}
	return kinds
}

func (a *addon) removalID() string { return a.ID + "-remove" }

// addonOf is the row whose step has this ID, to be changed at will.
func addonOf(id string) addon {
	return addons[slices.IndexFunc(addons, func(a addon) bool { return a.ID == id })]
}

// addons plans the add-ons that other steps wait for, or else those that wait themselves. It returns the steps that apply
// some, by the ID of the step that waits.
func (b *builder) addons(awaited bool, started []graph.Ref) (map[string][]graph.Ref, error) {
	applied := map[string][]graph.Ref{}
	for _, a := range addons {
		if a.wanted == nil || (a.awaitedBy != "") != awaited {
			continue
		}
		steps, err := b.addon(&a, started)
		if err != nil {
			return nil, err
		}
		applied[a.awaitedBy] = append(applied[a.awaitedBy], steps...)
	}
	return applied, nil
}

// addon plans what makes an add-on what is wanted, and returns the step that applies it, if there is one.
func (b *builder) addon(a *addon, started []graph.Ref) ([]graph.Ref, error) {
	wish, why := a.wanted(b)
	switch {
	case wish == remove && b.Cluster.Workloads[a.workload].Hash != "":
		b.removeAddon(a, why)
	case wish == leave && why != "":
		b.skip(b.admin, a.ID, why)
	}
	if wish != apply {
		return nil, nil
	}
	values, hash, err := b.addonValues(a)
	if err != nil {
		return nil, err
	}
	reason := b.addonMissing(a, hash)
	if reason == "" {
		b.skip(b.admin, a.ID, a.called+" is applied")
		return nil, nil
	}
	return []graph.Ref{b.applyAddon(a, reason+why, values, started)}, nil
}

// addonMissing says why an add-on is to be applied; empty: it is there, and what it shall be.
func (b *builder) addonMissing(a *addon, hash string) string {
	if !b.ClusterExists() {
		return "the cluster is new"
	}
	have, ok := b.Cluster.Workloads[a.workload]
	switch {
	case !ok:
		return a.workload + " is missing"
	case have.Hash == "" && (b.first.Recorded().Adopted || b.Verdict(b.first.Machine).Membership == machine.Unmanaged):
		return "" // its owner's, who put it there without kgpu
	case have.Hash != hash && len(b.hosts) == len(b.Inventory.Hosts): // a part of the hosts does not tell what all of them need
		return a.workload + " is not as the inventory wants it"
	case a.awaitedBy == "" && have.Ready < have.Desired:
		return a.called + " is not ready"
	}
	return ""
}

// applyAddon plans the step that applies an add-on.
func (b *builder) applyAddon(a *addon, reason string, values map[string]string, needs []graph.Ref) graph.Ref {
	for _, id := range a.needs {
		needs = append(slices.Clip(needs), graph.Ref{Host: b.admin.id, ID: id})
	}
	return b.onCluster(graph.Step{
		Ref: graph.Ref{ID: a.ID}, Reason: reason, Needs: needs, Input: graph.Input{Values: values}, Stage: a.stage,
	})
}

// removeAddon plans the step that deletes one.
func (b *builder) removeAddon(a *addon, why string) {
	b.onCluster(graph.Step{Ref: graph.Ref{ID: a.removalID()}, Reason: why, Input: graph.Input{Values: a.names()}})
}

// names are the values that all steps of an add-on read.
func (a *addon) names() map[string]string {
	values := map[string]string{"title": a.called, "workload": a.workload}
	if a.failed != "" {
		values["failed"] = string(a.failed)
	}
	return values
}

// addonValues are what the step that applies an add-on reads, and the hash of its objects.
func (b *builder) addonValues(a *addon) (values map[string]string, hash string, err error) {
	values = a.names()
	if a.values != nil {
		maps.Copy(values, a.values(b))
	}
	switch a.awaitedBy {
	case "":
		values["awaited"] = "yes"
	case "cluster/ready":
		b.owesNetworkProof(values)
	}
	if a.manifest == nil {
		return values, values["hash"], nil
	}
	objects, err := b.objects(a.manifest)
	if err == nil && a.fit != nil {
		objects, err = a.fit(b, objects)
	}
	if err != nil {
		return nil, "", err
	}
	values["manifest"], hash, err = encodeManifest(manifest.Adapt(b.Minor, objects))
	return values, hash, err
}

// objects are those of a manifest, with images from the inventory's registry.
func (b *builder) objects(yaml []byte) ([]object, error) {
	objects, err := decodeManifest(yaml)
	if err != nil {
		return nil, err
	}
	manifest.Containers(objects, func(c object) {
		if image, ok := c["image"].(string); ok {
			c["image"] = b.image(image)
		}
	})
	return objects, nil
}
