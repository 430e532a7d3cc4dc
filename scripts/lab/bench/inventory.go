package main

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
)

// inventory writes the inventory of these hosts, the first of which is the control plane, with its known_hosts file
// beside it. It is JSON, which is YAML too. Certificates have the address of the control plane's relay from the start: kgpu
// renews those that lack an address of the inventory.
func (l *lab) inventory(name string, list []host) (path, trust string, err error) {
	trust = filepath.Join(l.dir, name+".known_hosts")
	if err := os.WriteFile(trust, knownHosts(list), 0o600); err != nil {
		return "", "", err
	}
	type object = map[string]any
	var entries []object
	for i, h := range list {
		role := "worker"
		if i == 0 {
			role = "control-plane"
		}
		entries = append(entries, object{
			"address": h.sshd.Addr(), "name": h.name, "role": role, "privateAddress": h.address,
			"ssh": object{"port": h.sshd.Port()},
		})
	}
	text, err := json.MarshalIndent(object{
		"cluster": "bench",
		"kubernetes": object{
			"clusterConfiguration": object{"apiServer": object{"certSANs": []netip.Addr{relayAddress(list[0])}}},
			// For a machine with cgroup v1, and for hosts that share a kernel: as in examples/lab.yaml.
			"kubeletConfiguration":   object{"failCgroupV1": false},
			"ignorePreflightErrors":  []string{"SystemVerification"},
			"kubeProxyConfiguration": object{"conntrack": object{"maxPerCore": 0, "min": 0}},
		},
		"runtime": "containerd",
		"network": "none",
		"repositories": object{
			"kubernetes": object{"fingerprint": l.fingerprint},
			"docker":     object{"fingerprint": l.fingerprint},
		},
		"preflight": object{"ignore": []string{"HOST_PRODUCT_UUID_DUPLICATE"}},
		"ssh":       object{"user": user, "key": l.ClientKey(), "knownHosts": trust},
		"hosts":     entries,
	}, "", "  ")
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(l.dir, name+".json")
	return path, trust, os.WriteFile(path, text, 0o600)
}
