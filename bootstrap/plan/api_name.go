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
	b.unless(h, reasons, "the host knows "+name, graph.Step{
		Ref:   graph.Ref{ID: "os/hosts"},
		Input: graph.Input{Values: map[string]string{"name": name, "address": at}, Files: files},
	})
}
