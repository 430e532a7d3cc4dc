package plan

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// A cluster whose nodes know its API server by the address of one control plane can never have another control plane: kubeadm writes
// the controlPlaneEndpoint into certificates and kubeconfigs when it makes the cluster. So a new cluster gets a name, which
// leads to its only control plane for now, by a line in every host's /etc/hosts: no server has to know the name.
// Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/create-cluster-kubeadm/.

// apiDomain ends the names that kgpu makes up. ICANN has set internal aside for private use: no public server resolves it.
const apiDomain = "kgpu.internal"

// apiName is the name of the API server that kgpu keeps in every host's /etc/hosts. It is empty where the inventory names an
// endpoint for a new cluster, which its owner looks after, and for a cluster that was made without: that stays as it is.
func (b *builder) apiName() string {
	if b.runs() {
		if name, _ := b.runningEndpoint(); machine.OwnAPIName(name) {
			return name
		}
		return ""
	}
	if b.inv.Kubernetes.ControlPlaneEndpoint != "" || !b.minor.NamesAPI() {
		return ""
	}
	sum := sha256.Sum256([]byte(b.inv.Cluster + "\n" + b.apiAddress().String()))
	return fmt.Sprintf("api-%x.%s.%s", sum[:3], b.inv.Cluster, apiDomain)
}

// runs reports whether there is a cluster that goes on as it is. One that is half made may have come to its end by itself, which its
// host finds out: it keeps its endpoint either way.
func (b *builder) runs() bool {
	c := b.first.Facts.ControlPlane
	return c != nil && (c.Endpoint != "" || b.standing(b.first).Membership != Again)
}

// runningEndpoint is the name and the port by which the nodes of a cluster that goes on know its API server; empty: they know it by
// an address.
func (b *builder) runningEndpoint() (name, port string) {
	if !b.runs() {
		return "", ""
	}
	name, port, err := net.SplitHostPort(b.first.Facts.ControlPlane.Endpoint)
	if _, isAddress := netip.ParseAddr(name); err != nil || isAddress == nil {
		return "", ""
	}
	return name, port
}

// controlPlaneEndpoint is the name, with a port, by which the nodes know the API server: a cluster keeps the one that it was made
// with, a new one gets the inventory's, or else kgpu's own. It is empty where they know an address.
func (b *builder) controlPlaneEndpoint() string {
	if name, port := b.runningEndpoint(); name != "" {
		return net.JoinHostPort(name, port)
	}
	if e := b.inv.Kubernetes.ControlPlaneEndpoint; e != "" {
		return e
	}
	if name := b.apiName(); name != "" {
		return net.JoinHostPort(name, strconv.Itoa(apiPort))
	}
	return ""
}

// apiAddress is where the name of the API server leads.
func (b *builder) apiAddress() netip.Addr { return b.first.addr }

// endpoint is where the kubelets reach the API server.
func (b *builder) endpoint() string {
	if e := b.controlPlaneEndpoint(); e != "" {
		return e
	}
	return netip.AddrPortFrom(b.apiAddress(), apiPort).String()
}

// The unit puts the line back before the kubelet starts: where cloud-init manages /etc/hosts, it makes the file anew at every boot.
// Source: https://docs.cloud-init.io/en/latest/reference/modules.html#update-etc-hosts.
const (
	apiNameUnit    = "kgpu-api-name.service"
	apiNameFile    = "/etc/systemd/system/kgpu-api-name.service"
	apiNameService = `# Written by kgpu.
[Unit]
Description=The name of the cluster's API server in /etc/hosts
After=cloud-init.service cloud-init-network.service
Before=kubelet.service

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'grep -qxF "$$0" /etc/hosts || sed -i "1i $$0" /etc/hosts' "%s"

[Install]
WantedBy=multi-user.target
`
)

// hostNames plans that the host knows the cluster's API server by its name.
func (b *builder) hostNames(h *host) {
	name := b.apiName()
	if name == "" {
		return
	}
	at := b.apiAddress().String()
	files := map[string]graph.File{apiNameFile: text(fmt.Sprintf(apiNameService, at+" "+name+" # kgpu"))}
	var reasons []string
	switch to := h.Facts.Names[name]; {
	case len(to) == 0:
		reasons = append(reasons, "it does not know "+name)
	case !b.leadsToAPI(h.Facts, name):
		reasons = append(reasons, fmt.Sprintf("%s leads to %s, not to %s", name, to[0], at))
	}
	reasons = append(reasons, changed(h.Facts, files)...)
	if len(reasons) == 0 && h.Facts.Units[apiNameUnit].Enabled != "enabled" {
		reasons = append(reasons, apiNameUnit+" is not enabled")
	}
	b.unless(h, reasons, "the host knows "+name, graph.Step{
		Ref:   graph.Ref{ID: "os/hosts"},
		Input: graph.Input{Values: map[string]string{"name": name, "address": at}, Files: files},
	})
}

// APIName is the name that kgpu keeps on the hosts for their cluster's API server, and the address that it is to lead to; empty:
// there is none. Facts are those of Up.
func APIName(inv *inventory.Inventory, seen map[string]*facts.Host) (name string, at netip.Addr) {
	b := &builder{inv: inv}
	b.enter(seen)
	if b.first == nil {
		return "", netip.Addr{}
	}
	return b.apiName(), b.apiAddress()
}

// leadsToAPI reports whether a name leads the host to the control plane, and nowhere else.
func (b *builder) leadsToAPI(f *facts.Host, name string) bool {
	to := f.Names[name]
	return len(to) > 0 && !slices.ContainsFunc(to, func(a netip.Addr) bool { return a != b.apiAddress() })
}
