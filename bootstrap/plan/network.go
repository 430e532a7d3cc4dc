package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// network plans the pod network on the control plane and returns its step, or nothing when it is there.
func (b *builder) network(needs []graph.Ref) ([]graph.Ref, error) {
	id := "network/" + string(b.inv.Network)
	workload := machine.NetworkWorkload[b.inv.Network]
	values := map[string]string{"title": "the pod network", "workload": workload}
	var hash string
	switch b.inv.Network {
	case inventory.None:
		b.skip(b.admin, id, "the inventory says network: none")
		return nil, nil
	case inventory.Calico:
		values["url"], values["sha256"] = b.calicoDownload()
		values["environment"] = calicoAddress
		sum := sha256.Sum256([]byte(values["sha256"] + "\n" + calicoAddress))
		hash = hex.EncodeToString(sum[:])
		values["hash"] = hash
	case inventory.Flannel, inventory.Weave:
		manifest, h, err := b.networkManifest()
		if err != nil {
			return nil, err
		}
		values["manifest"], hash = manifest, h
	}
	reason := b.networkMissing(workload, hash)
	if reason == "" {
		b.skip(b.admin, id, "the pod network is applied")
		return nil, nil
	}
	ref := b.onCluster(graph.Step{
		Ref: graph.Ref{ID: id}, Title: "apply the pod network " + string(b.inv.Network), Reason: reason,
		Needs: needs, Input: graph.Input{Values: b.owesNetworkProof(values)},
	})
	return []graph.Ref{ref}, nil
}

func (b *builder) networkMissing(workload, hash string) string {
	if !b.made() {
		return "the cluster is new"
	}
	have, ok := b.cluster.Workloads[workload]
	switch {
	case !ok:
		return workload + " is missing"
	case have.Hash == "" && b.first.Recorded().Adopted, have.Hash == "" && b.standing(b.first).Membership == ByHand:
		return "" // its owner's, who put it there without kgpu
	case hash != "" && have.Hash != hash && len(b.hosts) == len(b.inv.Hosts): // a part of the hosts does not tell what all of them need
		return workload + " is not as the inventory wants it"
	}
	return ""
}

// calicoAddress has calico's hosts talk over the network of their nodes' addresses, where it would take the first interface.
// Source: https://docs.tigera.io/calico/latest/reference/configure-calico-node, IP autodetection methods.
const calicoAddress = "IP_AUTODETECTION_METHOD=kubernetes-internal-ip"

// calicoDownload is where its manifest comes from, and what it must be.
func (b *builder) calicoDownload() (url, sha256 string) {
	r := b.inv.Repositories.Calico
	return cmp.Or(r.URL, catalog.Calico.URL), cmp.Or(r.SHA256, catalog.Calico.SHA256["all"])
}

func (b *builder) networkManifest() (manifest, hash string, err error) {
	objects, err := b.networkObjects()
	if err != nil {
		return "", "", err
	}
	return encodeManifest(objects)
}

// networkObjects is kgpu's own manifest of flannel or weave, as this cluster needs it.
func (b *builder) networkObjects() ([]object, error) {
	source := manifests.Flannel
	if b.inv.Network == inventory.Weave {
		source = manifests.Weave
	}
	objects, err := decodeManifest(source)
	if err != nil {
		return nil, err
	}
	if b.inv.Network == inventory.Weave {
		b.setWeave(objects)
	} else if err := b.setFlannel(objects); err != nil {
		return nil, err
	}
	objects = manifest.Adapt(b.minor, objects)
	b.pullFromRegistry(objects)
	return objects, nil
}

// setWeave gives weave the pod range, and keeps it off the fast datapath where a host has no openvswitch: it would start
// once and crash at every restart ('Existing bridge type "bridge" is different than requested "bridged_fastdp"'). So would all
// of a cluster whose datapath changed: it keeps the one that it has.
func (b *builder) setWeave(objects []object) {
	manifest.Containers(objects, func(c object) {
		if c["name"] != "weave" {
			return
		}
		manifest.SetEnv(c, "IPALLOC_RANGE", b.inv.Kubernetes.PodCIDR.String())
		if b.weaveBridge() {
			manifest.SetEnv(c, "WEAVE_NO_FASTDP", "1")
		}
	})
}

func (b *builder) weaveBridge() bool {
	if fast, runs := machine.WeaveDatapath(&b.cluster); runs {
		return !fast
	}
	for _, h := range b.hosts {
		if !h.Facts.Modules["openvswitch"].Loads() {
			return true
		}
	}
	return false
}

func (b *builder) setFlannel(objects []object) error {
	for _, o := range objects {
		if o["kind"] != "ConfigMap" {
			continue
		}
		data := o["data"].(object)
		var conf object
		if err := json.Unmarshal([]byte(data["net-conf.json"].(string)), &conf); err != nil {
			return fmt.Errorf("net-conf.json of flannel: %w", err)
		}
		conf["Network"] = b.inv.Kubernetes.PodCIDR.String()
		out, err := json.Marshal(conf)
		if err != nil {
			return err
		}
		data["net-conf.json"] = string(out)
	}
	return nil
}
