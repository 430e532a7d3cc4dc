package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/netip"

	"kgpu.dev/kgpu/scripts/lab/network"
)

//go:embed thin.sh
var thinScript string

// A lab gives its own hosts addresses below firstThin. The port is thin.sh's.
const (
	firstThin = 101
	thinPort  = 2222
)

// thinHosts makes thin hosts inside the worker, and their nodes.
func (l *lab) thinHosts(ctx context.Context, prefix netip.Prefix, count int) ([]host, error) {
	var thin []host
	args := []string{"bash", "-s", "--"}
	for n := range count {
		h := host{name: fmt.Sprintf("thin%d", n+1), address: network.At(prefix, byte(firstThin+n))}
		h.sshd = netip.AddrPortFrom(h.address, thinPort)
		thin = append(thin, h)
		args = append(args, h.name, h.address.String())
	}
	keys, err := l.exec(ctx, l.hosts[1].name, thinScript, args...)
	if err != nil {
		return nil, err
	}
	for i := range thin {
		if thin[i].key, err = keyOf([]byte(keys), thin[i].address.String()); err != nil {
			return nil, err
		}
	}
	nodes, err := nodeList(thin)
	if err != nil {
		return nil, err
	}
	_, err = l.exec(ctx, l.hosts[0].name, nodes, "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "create", "-f", "-")
	return thin, err
}

// nodeList is the nodes of these workers, labelled as kgpu does.
func nodeList(workers []host) (string, error) {
	type object = map[string]any
	var items []object
	for _, h := range workers {
		items = append(items, object{
			"apiVersion": "v1", "kind": "Node",
			"metadata": object{"name": h.name, "labels": object{"node-role.kubernetes.io/worker": ""}},
		})
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": items})
	return string(text), err
}
