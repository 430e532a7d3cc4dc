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
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// NotebookStep deploys the notebook. Up plans it where something is to be done; it runs after the Jobs of the proof, which
// want all cards.
const NotebookStep = "addon/notebook"

// Outputs of the step.
const (
	OutputNotebookToken   = "token"   // secret
	OutputNotebookNode    = "node"    // where its pod runs
	OutputNotebookService = "service" // its address in the cluster, and the port
	OutputNotebookPort    = "port"    // of every node, that leads there; empty: none does
)

const notebookWorkload = catalog.NotebookNamespace + "/deployment/notebook"

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
		b.warn("the notebook is stopped, and stays so: `kgpu notebook` starts it")
		return &b.graph, nil
	}
	if !b.chooseNotebook() {
		return &b.graph, nil
	}
	a := addonOf(NotebookStep)
	values, _, err := b.addonValues(&a)
	if err != nil {
		return nil, err
	}
	if !agreed {
		values["keep"] = "yes"
	}
	b.applyAddon(&a, "the proof opens it"+b.notebookRemarks(), values, nil)
	return &b.graph, b.graph.Validate()
}

// wantsNotebook wants the notebook that the inventory names, where something computes for it.
func (b *builder) wantsNotebook() (wish, string) {
	_, there := b.Cluster.Workloads[notebookWorkload]
	switch {
	case b.Inventory.Notebook.Framework == catalog.NoFramework:
		return remove, "the inventory says framework: none"
	case !b.hasCards():
		return leave, ""
	case there && len(b.hosts) < len(b.Inventory.Hosts):
		return leave, "the notebook is applied; which image fits the cards is told by all hosts together"
	case b.notebookStopped():
		return leave, "the notebook is stopped: `kgpu notebook` starts it"
	case !b.chooseNotebook():
		return leave, ""
	}
	return apply, b.notebookRemarks()
}

// notebookStopped reports whether somebody, or its idle timeout, has scaled it to nothing: the card is to be others'.
func (b *builder) notebookStopped() bool {
	have, there := b.Cluster.Workloads[notebookWorkload]
	return there && have.Desired == 0
}

// chooseNotebook sets what the notebook computes with. Without anything there is a warning, and no notebook.
func (b *builder) chooseNotebook() bool {
	seen := map[string]*facts.Host{}
	for _, h := range b.hosts {
		seen[h.id] = h.Facts
	}
	var err error
	if b.notebookChoice, err = machine.ChooseNotebook(b.Inventory, seen); err != nil {
		b.warn("no notebook: %v", err)
		return false
	}
	return true
}

// notebookRemarks are what people are told of the notebook beside the reason for its step.
func (b *builder) notebookRemarks() string {
	var remarks string
	if b.notebookChoice.Why != "" {
		remarks = "; " + b.notebookChoice.Why
	}
	if _, why := b.nodePort(); why != "" {
		remarks += "; " + why
	}
	return remarks
}

// notebookValues are what its step reads besides.
func (b *builder) notebookValues() map[string]string {
	return map[string]string{"resource": b.notebookResource()}
}

// fitNotebook gives the notebook its image, card, port and storage.
func (b *builder) fitNotebook(objects []object) (_ []object, err error) {
	n := b.Inventory.Notebook
	if n.IdleTimeout > 0 {
		if objects, err = stopsIdle(objects, n.IdleTimeout); err != nil {
			return nil, err
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
			pod := manifest.PodOf(o)
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
	if b.Minor.Secured() {
		confine(objects)
	}
	if n.Storage != "" {
		objects = slices.Insert(objects, len(objects)-1, object{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": object{"name": "notebooks", "namespace": catalog.NotebookNamespace},
			"spec": object{"accessModes": []any{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": n.Storage}}},
		})
	}
	if b.mechanism() == catalog.Accelerators {
		b.withoutPlugin(objects)
	}
	return objects, nil
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
			pod := manifest.PodOf(o)
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
		for _, o := range machine.PluginDevices(b.Inventory, h.Facts) {
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
	for _, h := range b.Inventory.Hosts {
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
	n := b.Inventory.Notebook
	if n.Image != "" {
		return n.Image
	}
	return b.image(catalog.NotebookImage(b.notebookChoice.Framework, n.Version))
}
