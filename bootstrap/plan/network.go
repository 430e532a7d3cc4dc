package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/inventory"
)

// wantsNetwork is what makes a pod network wanted.
func wantsNetwork(n inventory.Network) func(*builder) (wish, string) {
	return func(b *builder) (wish, string) {
		if b.Inventory.Network == n {
			return apply, ""
		}
		return leave, ""
	}
}

// calicoValues have the host download calico, and say which it is.
func (b *builder) calicoValues() map[string]string {
	url, sum := b.calicoDownload()
	hash := sha256.Sum256([]byte(sum + "\n" + calicoAddress))
	return map[string]string{"url": url, "sha256": sum, "environment": calicoAddress, "hash": hex.EncodeToString(hash[:])}
}

// calicoAddress has calico's hosts talk over the network of their nodes' addresses, where it would take the first interface.
// Source: https://docs.tigera.io/calico/latest/reference/configure-calico-node, IP autodetection methods.
const calicoAddress = "IP_AUTODETECTION_METHOD=kubernetes-internal-ip"

// calicoDownload is where its manifest comes from, and what it must be.
func (b *builder) calicoDownload() (url, sha256 string) {
	r := b.Inventory.Repositories.Calico
	return cmp.Or(r.URL, catalog.Calico.URL), cmp.Or(r.SHA256, catalog.Calico.SHA256["all"])
}

// fitWeave gives weave the pod range, and keeps it off the fast datapath where a host has no openvswitch: it would start
// once and crash at every restart ('Existing bridge type "bridge" is different than requested "bridged_fastdp"'). So would all
// of a cluster whose datapath changed: it keeps the one that it has.
func (b *builder) fitWeave(objects []object) ([]object, error) {
	manifest.Containers(objects, func(c object) {
		if c["name"] != "weave" {
			return
		}
		manifest.SetEnv(c, "IPALLOC_RANGE", b.Inventory.Kubernetes.PodCIDR.String())
		if b.weaveBridge() {
			manifest.SetEnv(c, "WEAVE_NO_FASTDP", "1")
		}
	})
	return objects, nil
}

func (b *builder) weaveBridge() bool {
	if fast, runs := machine.WeaveDatapath(&b.Cluster); runs {
		return !fast
	}
	return slices.ContainsFunc(b.hosts, func(h *host) bool { return !h.Facts.Modules["openvswitch"].Loads() })
}

// fitFlannel gives flannel the pod range.
func (b *builder) fitFlannel(objects []object) ([]object, error) {
	for _, o := range objects {
		if o["kind"] != "ConfigMap" {
			continue
		}
		data := o["data"].(object)
		var conf object
		if err := json.Unmarshal([]byte(data["net-conf.json"].(string)), &conf); err != nil {
			return nil, fmt.Errorf("net-conf.json of flannel: %w", err)
		}
		conf["Network"] = b.Inventory.Kubernetes.PodCIDR.String()
		out, err := json.Marshal(conf)
		if err != nil {
			return nil, err
		}
		data["net-conf.json"] = string(out)
	}
	return objects, nil
}
