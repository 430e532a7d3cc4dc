package plan

import (
	"slices"
	"strconv"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// NotebookStep deploys the notebook. Up plans it where something is to be done; it runs after the Jobs of the proof, which
// want all cards.
const NotebookStep = "gpu/notebook"

// Outputs of the step.
const (
	OutputNotebookToken   = "token"   // secret
	OutputNotebookNode    = "node"    // where its pod runs
	OutputNotebookService = "service" // its address in the cluster, and the port
	OutputNotebookPort    = "port"    // of every node, that leads there; empty: none does
)

// NotebookNamespace has the notebook and nothing else.
const NotebookNamespace = "kgpu-notebook"

const notebookWorkload = NotebookNamespace + "/deployment/notebook"

// Notebook plans the deployment of the notebook, whether or not it is there: the step tells its token. One that runs stays as it
// is unless another one was agreed to. There are no steps where the inventory wants none, or where somebody scaled it to nothing
// and so has the card back.
func Notebook(inv *inventory.Inventory, seen map[string]*facts.Host, agreed bool) (*graph.Graph, error) {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return nil, err
	}
	if inv.Notebook.Framework == catalog.NoFramework {
		return &b.graph, nil
	}
	if !agreed && b.notebookStopped() {
		b.graph.Warnings = append(b.graph.Warnings, "the notebook is stopped, and stays so: `kgpu notebook` starts it")
		return &b.graph, nil
	}
	if !b.chooseNotebook() {
		return &b.graph, nil
	}
	manifest, _, err := b.notebookManifest()
	if err != nil {
		return nil, err
	}
	b.deployNotebook(manifest, "the proof opens it")
	if !agreed {
		b.graph.Steps[0].Input.Values["keep"] = "yes"
	}
	return &b.graph, b.graph.Validate()
}

// notebook plans what makes the notebook that the inventory wants, or takes away the one that it does not.
func (b *builder) notebook() error {
	if b.inv.Notebook.Framework == catalog.NoFramework {
		b.removeNotebook()
		return nil
	}
	if !b.hasCards() {
		return nil
	}
	if len(b.hosts) < len(b.inv.Hosts) {
		if _, there := b.cluster.Workloads[notebookWorkload]; there {
			b.skip(b.admin, NotebookStep, "the notebook is deployed; which image fits the cards is told by all hosts together")
			return nil
		}
	}
	if b.notebookStopped() {
		b.skip(b.admin, NotebookStep, "the notebook is stopped: `kgpu notebook` starts it")
		return nil
	}
	if !b.chooseNotebook() {
		return nil
	}
	manifest, hash, err := b.notebookManifest()
	if err != nil {
		return err
	}
	reason := b.networkMissing(notebookWorkload, hash)
	if reason == "" {
		if have := b.cluster.Workloads[notebookWorkload]; have.Ready < have.Desired {
			reason = "the notebook is not ready"
		}
	}
	if reason == "" {
		b.skip(b.admin, NotebookStep, "the notebook is deployed")
		return nil
	}
	b.deployNotebook(manifest, reason)
	return nil
}

// notebookStopped reports whether somebody, or its idle timeout, has scaled it to nothing: the card is to be others'.
func (b *builder) notebookStopped() bool {
	have, there := b.cluster.Workloads[notebookWorkload]
	return there && have.Desired == 0
}

// chooseNotebook sets what the notebook computes with. Without anything there is a warning, and no notebook.
func (b *builder) chooseNotebook() bool {
	seen := map[string]*facts.Host{}
	for _, h := range b.hosts {
		seen[h.id] = h.Facts
	}
	var err error
	if b.notebookChoice, err = machine.ChooseNotebook(b.inv, seen); err != nil {
		b.graph.Warnings = append(b.graph.Warnings, "no notebook: "+err.Error())
		return false
	}
	return true
}

func (b *builder) deployNotebook(manifest, why string) {
	if b.notebookChoice.Why != "" {
		why += "; " + b.notebookChoice.Why
	}
	if _, none := b.nodePort(); none != "" {
		why += "; " + none
	}
	b.onCluster(graph.Step{
		Ref: graph.Ref{ID: NotebookStep}, Reason: why,
		Needs: []graph.Ref{{Host: b.admin.id, ID: "cluster/ready"}, {Host: b.admin.id, ID: "gpu/ready"}},
		Input: graph.Input{Values: map[string]string{
			"title": "the notebook", "workload": notebookWorkload, "failed": string(reason.NotebookFailed), "manifest": manifest, "resource": b.notebookResource(),
		}},
		Stage: graph.Proof,
	})
}

// removeNotebook plans the end of a notebook that kgpu made.
func (b *builder) removeNotebook() {
	if b.cluster.Workloads[notebookWorkload].Hash == "" {
		return
	}
	b.onCluster(graph.Step{
		Ref:    graph.Ref{ID: "gpu/notebook-remove"},
		Reason: "the inventory says framework: none",
		Input:  graph.Input{Values: map[string]string{"title": "the notebook", "workload": notebookWorkload, "failed": string(reason.NotebookFailed)}},
	})
}

func (b *builder) notebookManifest() (encoded, hash string, err error) {
	objects, err := decodeManifest(manifests.Notebook)
	if err != nil {
		return "", "", err
	}
	n := b.inv.Notebook
	if n.IdleTimeout > 0 {
		if objects, err = stopsIdle(objects, n.IdleTimeout); err != nil {
			return "", "", err
		}
	}
	manifest.Containers(objects, func(c object) {
		c["image"] = b.notebookImage()
		if c["name"] != "notebook" {
			return
		}
		c["resources"] = object{"limits": object{b.notebookResource(): 1}}
		if n.Storage != "" {
			c["workingDir"] = notebookDir
			c["volumeMounts"] = []any{object{"name": "notebooks", "mountPath": notebookDir}}
		}
	})
	for _, o := range objects {
		spec, _ := o["spec"].(object)
		switch o["kind"] {
		case "Service":
			if port, _ := b.nodePort(); port == 0 {
				spec["type"] = "ClusterIP"
				delete(spec["ports"].([]any)[0].(object), "nodePort")
			} else {
				spec["ports"].([]any)[0].(object)["nodePort"] = port
			}
		case "Deployment":
			pod := spec["template"].(object)["spec"].(object)
			if b.notebookChoice.Pinned {
				pod["affinity"] = onNodes(b.notebookChoice.Nodes)
			}
			pod["tolerations"] = append(pod["tolerations"].([]any), b.tolerated()...)
			if n.Storage != "" {
				pod["securityContext"] = object{"fsGroup": usersGroup}
				volumes, _ := pod["volumes"].([]any)
				pod["volumes"] = append(volumes, object{"name": "notebooks", "persistentVolumeClaim": object{"claimName": "notebooks"}})
			}
		}
	}
	if b.minor.Secured() {
		confine(objects)
	}
	if n.Storage != "" {
		objects = slices.Insert(objects, len(objects)-1, object{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": object{"name": "notebooks", "namespace": NotebookNamespace},
			"spec": object{"accessModes": []any{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": n.Storage}}},
		})
	}
	if b.mechanism() == catalog.Accelerators {
		b.withoutPlugin(objects)
	}
	return encodeManifest(manifest.Adapt(b.minor, objects))
}

// stopsIdle adds what stops the notebook when nobody has used it for so long. Its Deployment stays the last object.
func stopsIdle(objects []object, after time.Duration) ([]object, error) {
	more, err := decodeManifest(manifests.NotebookIdle)
	if err != nil {
		return nil, err
	}
	last := len(objects) - 1
	patch(objects[last], more[len(more)-1])
	manifest.Containers(objects[last:], func(c object) {
		if c["name"] == "idle" {
			manifest.SetEnv(c, "IDLE_SECONDS", strconv.Itoa(int(after.Seconds())))
		}
	})
	return slices.Insert(objects, last, more[:len(more)-1]...), nil
}

// needless are the capabilities that containers have by default and the notebook does not need: those of packages that it may be
// told to install (changing owners and users) stay.
var needless = []any{"AUDIT_WRITE", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SYS_CHROOT"}

// confine has the pod of a manifest do what a program of a user does, and its namespace take no pod that could do more.
// Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/.
func confine(objects []object) {
	manifest.Containers(objects, func(c object) {
		c["securityContext"] = object{"allowPrivilegeEscalation": false, "capabilities": object{"drop": needless}}
	})
	for _, o := range objects {
		switch o["kind"] {
		case "Namespace":
			o["metadata"].(object)["labels"] = object{"pod-security.kubernetes.io/enforce": "baseline"}
		case "Deployment":
			pod := o["spec"].(object)["template"].(object)["spec"].(object)
			have, _ := pod["securityContext"].(object)
			pod["securityContext"] = merge(have, object{"seccompProfile": object{"type": "RuntimeDefault"}})
		}
	}
}

// notebookResource is what the notebook asks for: a whole card, or else an instance of one, where all are cut.
func (b *builder) notebookResource() string {
	if b.mechanism() == catalog.Accelerators {
		return catalog.Accelerators.Resource()
	}
	offered := map[string]bool{}
	for _, h := range b.hosts {
		if !slices.Contains(b.notebookChoice.Nodes, h.node) {
			continue
		}
		for _, o := range machine.Offers(b.inv, h.Facts) {
			offered[o.Resource] = true
		}
	}
	if len(offered) == 0 || offered[catalog.GPUResource] {
		return catalog.GPUResource
	}
	return sortedKeys(offered)[0]
}

// onNodes lets a pod run on these nodes only.
func onNodes(names []string) object {
	term := object{"matchExpressions": []any{object{"key": "kubernetes.io/hostname", "operator": "In", "values": names}}}
	return object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": []any{term}}}}
}

// tolerated are the taints that the inventory puts on nodes: they keep others away, not what is to prove the cards.
func (b *builder) tolerated() []any {
	var out []any
	seen := map[inventory.Taint]bool{}
	for _, h := range b.inv.Hosts {
		for _, t := range h.Taints {
			if !seen[t] {
				out = append(out, object{"key": t.Key, "operator": "Equal", "value": t.Value, "effect": t.Effect})
			}
			seen[t] = true
		}
	}
	return out
}

// withoutPlugin writes the notebook for kubelets that give pods the devices only: it runs where the driver that is mounted is.
func (b *builder) withoutPlugin(objects []object) {
	at := slices.IndexFunc(b.hosts, func(h *host) bool { return slices.Contains(b.notebookChoice.Nodes, h.node) })
	if at < 0 {
		return
	}
	manifest.ForAccelerators(objects, machine.DriverMounts(b.hosts[at].Facts))
	for _, o := range objects {
		if o["kind"] == "Deployment" {
			patch(o, object{"spec": object{"template": object{"spec": object{"nodeSelector": object{"kubernetes.io/hostname": b.hosts[at].node}}}}})
		}
	}
}

const (
	notebookDir = "/notebooks"
	// usersGroup is the group of the user of Jupyter's own images; the others run as root.
	// Source: NB_GID in https://jupyter-docker-stacks.readthedocs.io/en/latest/using/common.html.
	usersGroup = 100
)

// notebookImage is the one that the inventory names, from where it names it, or that of the framework that was chosen.
func (b *builder) notebookImage() string {
	n := b.inv.Notebook
	if n.Image != "" {
		return n.Image
	}
	return b.image(catalog.NotebookImage(b.notebookChoice.Framework, n.Version))
}
