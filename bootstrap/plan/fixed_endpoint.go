package plan

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/reason"
	"kgpu.dev/kgpu/bootstrap/text/plural"
	"kgpu.dev/kgpu/inventory"
)

// RefuseMoved is the error of an inventory that has the API server elsewhere than the cluster that runs.
func RefuseMoved(inv *inventory.Inventory, seen map[string]*facts.Host) error {
	b, err := newBuilder(inv, seen)
	if err != nil {
		return err
	}
	return b.refuseMoved()
}

// refuseMoved is RefuseMoved for plans that follow the inventory in nothing else of what a cluster was made with.
func (b *builder) refuseMoved() error {
	if !b.staysAsMade() {
		return nil
	}
	r := refusals{b: b}
	r.endpoint()
	return errors.Join(r.errs...)
}

// endpoint refuses another endpoint or another virtual address than the cluster has, none where it has one, and one where its nodes
// know the API server by something else than a name that kgpu keeps.
func (r *refusals) endpoint() {
	b, k := r.b, r.b.Asked.Kubernetes
	runs := b.first.Facts.ControlPlane.Endpoint
	if want := k.ControlPlaneEndpoint; !strings.EqualFold(runs, want) {
		r.clusterDiffers("kubernetes.controlPlaneEndpoint", runs, want)
	}
	has, v := b.RunningVirtualIP(), k.VirtualIP
	switch {
	case !v.IsValid() && b.KeepsVirtualIP():
		r.virtualIP(cmp.Or(printed(has), "a virtual address")+", and the inventory names none", keepAddress)
	case v.IsValid() && b.APIName() == "":
		r.virtualIP("its API server at "+runs+", and nothing would lead to "+v.String(),
			"leave the key out; a cluster whose nodes know an address: docs/troubleshooting.md, \"A cluster that cannot grow\"")
	case v.IsValid() && b.HasAnotherVirtualIP():
		r.virtualIP(has.String()+", and the inventory wants "+v.String(), keepAddress)
	}
}

// keepAddress is what to do about an address that is in more places than kgpu changes in a cluster that runs.
const keepAddress = "write the address that the cluster has into the inventory; another one, or none, takes `kgpu reset` and `kgpu up`"

// virtualIP refuses what the inventory says of the virtual address, or where it says nothing of it. It names who has the cluster's.
func (r *refusals) virtualIP(detail, advice string) {
	b := r.b
	where := cmp.Or(b.Asked.At("kubernetes.virtualIP"), b.Asked.At("kubernetes"), b.Asked.At(""))
	if has := b.keepers(b.RunningVirtualIP()); has != "" {
		detail += "; it is in " + has
	}
	r.errs = append(r.errs, &reason.Error{
		ID: reason.ClusterSettingFixed, Host: b.first.id, Doing: "planning", Detail: where + ": kubernetes.virtualIP: the cluster has " + detail, Advice: advice,
	})
}

// keepers says what in the cluster has an address; empty: nothing that hosts tell of.
func (b *builder) keepers(v netip.Addr) string {
	if !v.IsValid() {
		return ""
	}
	var serve, certified []string
	found := 0
	for _, h := range b.hosts {
		if h.IsControlPlane() && h.Facts.Files[machine.KeepalivedConf] != "" {
			serve = append(serve, h.id)
		}
		if slices.ContainsFunc(h.Facts.Certificates, func(c facts.Certificate) bool {
			return c.Path == machine.APIServerCertificate && slices.Contains(c.Names, v.String())
		}) {
			certified = append(certified, h.id)
		}
		if slices.Contains(h.Facts.Names[b.APIName()], v) {
			found++
		}
	}
	out := []string{"keepalived's configuration (" + strings.Join(serve, ", ") + ")"}
	if len(certified) > 0 {
		out = append(out, "the certificate of the API server ("+strings.Join(certified, ", ")+")")
	}
	return strings.Join(append(out, "/etc/hosts of "+plural.Of(found, "host")), ", ")
}

// printed is an address; empty: there is none.
func printed(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
