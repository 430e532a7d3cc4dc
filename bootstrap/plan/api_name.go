package plan

import (
	"fmt"

	"kgpu.dev/kgpu/bootstrap/graph"
)

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

// apiNameUnit is the unit that keeps the line for the API server's name.
func (b *builder) apiNameUnit() graph.File {
	return text(fmt.Sprintf(apiNameService, b.APIAddress().String()+" "+b.APIName()+" # kgpu"))
}

// hostNames plans that the host knows the cluster's API server by its name.
func (b *builder) hostNames(h *host) {
	name := b.APIName()
	if name == "" {
		return
	}
	at := b.APIAddress().String()
	files := map[string]graph.File{apiNameFile: b.apiNameUnit()}
	var reasons []string
	switch to := h.Facts.Names[name]; {
	case len(to) == 0:
		reasons = append(reasons, "it does not know "+name)
	case !b.LeadsToAPI(h.Facts, name):
		reasons = append(reasons, fmt.Sprintf("%s leads to %s, not to %s", name, to[0], at))
	}
	reasons = append(reasons, changed(h.Facts, files)...)
	if len(reasons) == 0 && h.Facts.Units[apiNameUnit].Enabled != "enabled" {
		reasons = append(reasons, apiNameUnit+" is not enabled")
	}
	values := map[string]string{"name": name, "address": at}
	var needs []graph.Ref
	if b.nameMoves(h) {
		needs = b.virtualIPHeld(h)
		if b.APIAnswers() {
			values["awaited"] = "yes"
		}
	}
	b.unless(h, reasons, "the host knows "+name, graph.Step{
		Ref: graph.Ref{ID: "os/hosts"}, Needs: needs,
		Input: graph.Input{Values: values, Files: files},
	})
}

// nameMoves reports whether the name of a running cluster's API server leads elsewhere on the host than to the virtual address: that
// has to be there before the name leads to it.
func (b *builder) nameMoves(h *host) bool {
	name := b.APIName()
	return b.Inventory.Kubernetes.VirtualIP.IsValid() && b.ClusterExists() && len(h.Facts.Names[name]) > 0 && !b.LeadsToAPI(h.Facts, name)
}

// virtualIPHeld are the steps with which other hosts get the virtual address.
func (b *builder) virtualIPHeld(of *host) (held []graph.Ref) {
	for _, h := range b.planes {
		if step, reasons := b.keepalivedStep(h); h != of && b.mayHold(h) && len(reasons) > 0 {
			held = append(held, graph.Ref{Host: h.id, ID: step.ID})
		}
	}
	return held
}
