package inventory

import (
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// passthrough is a key with a mapping that kgpu hands on: any keys, with references to the environment replaced.
func passthrough[T any](field func(*T) *map[string]any) setter[T] {
	return func(d *decoder, into *T, n *yaml.Node, path string) { *field(into) = d.freeMapping(n, path) }
}

func (d *decoder) freeMapping(n *yaml.Node, path string) map[string]any {
	m := map[string]any{}
	for key, value := range d.pairs(n, path) {
		at := join(path, key.Value)
		if key.Tag != "!!str" {
			d.fail(key, path, "the key %q must be a string: write it in quotes", key.Value)
			continue
		}
		d.nodes[at] = value
		m[key.Value] = d.free(value, at)
	}
	return m
}

// free decodes any value into what JSON knows.
func (d *decoder) free(n *yaml.Node, path string) any {
	switch n.Kind {
	case yaml.MappingNode:
		return d.freeMapping(n, path)
	case yaml.SequenceNode:
		list := []any{}
		d.items(n, path, func(n *yaml.Node, path string) { list = append(list, d.free(n, path)) })
		return list
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!timestamp":
		return n.Value // Kubernetes' own reader has no dates either
	case "!!str":
		return d.freeText(n, path)
	}
	var v any
	if err := n.Decode(&v); err != nil {
		d.fail(n, path, "%q is not a value", n.Value)
		return nil
	}
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		d.fail(n, path, "%s is not a number that Kubernetes can read", n.Value)
		return nil
	}
	return v
}

func (d *decoder) freeText(n *yaml.Node, path string) any {
	if n.Style == 0 && yaml11Bools[strings.ToLower(n.Value)] {
		d.fail(n, path, "%q is a string or a boolean, depending on who reads it: write true, false or quotes", n.Value)
		return nil
	}
	s, ok := d.text(n, path)
	if !ok || !fromEnvironment(n) {
		return s
	}
	// The unquoted value came from the environment: a number there is a number here.
	var v any
	if err := yaml.Unmarshal([]byte(s), &v); err == nil {
		switch v.(type) {
		case int, bool, float64:
			return v
		}
	}
	return s
}

var yaml11Bools = map[string]bool{"yes": true, "no": true, "on": true, "off": true}

// owned are the keys of passthrough mappings that kgpu writes itself, each with where the user says it instead.
var owned = map[string]map[string]string{
	"kubeletConfiguration": {
		"apiVersion":               "kgpu chooses it",
		"kind":                     "kgpu chooses it",
		"containerRuntimeEndpoint": "it follows from `runtime:`",
		"imageServiceEndpoint":     "it follows from `runtime:`",
		"podCIDR":                  "it is `kubernetes.podCIDR`",
	},
	"clusterConfiguration": {
		"apiVersion":           "kgpu chooses it",
		"kind":                 "kgpu chooses it",
		"kubernetesVersion":    "it is `kubernetes.version`",
		"clusterName":          "it is `cluster`",
		"controlPlaneEndpoint": "it is `kubernetes.controlPlaneEndpoint`",
		"imageRepository":      "it is `images.registry`",
	},
	"kubeProxyConfiguration": {
		"apiVersion": "kgpu chooses it",
		"kind":       "kgpu chooses it",
	},
}

// checkPassthrough finds settings in the passthrough mappings that contradict the rest of the inventory.
func (f *file) checkPassthrough() findings {
	var out findings
	k := &f.Kubernetes
	for section, m := range map[string]map[string]any{
		"kubeletConfiguration":   k.KubeletConfiguration,
		"clusterConfiguration":   k.ClusterConfiguration,
		"kubeProxyConfiguration": k.KubeProxyConfiguration,
	} {
		for key, where := range owned[section] {
			if _, ok := m[key]; ok {
				out.add(join("kubernetes."+section, key), "must be left out: %s", where)
			}
		}
	}
	same := func(path string, got any, want, where string) {
		if got != nil && got != any(want) {
			out.add("kubernetes."+path, "must be %s, as `%s` says, or be left out", want, where)
		}
	}
	networking, _ := k.ClusterConfiguration["networking"].(map[string]any)
	if k.PodCIDR.IsValid() {
		same("clusterConfiguration.networking.podSubnet", networking["podSubnet"], k.PodCIDR.String(), "kubernetes.podCIDR")
		same("kubeProxyConfiguration.clusterCIDR", k.KubeProxyConfiguration["clusterCIDR"], k.PodCIDR.String(), "kubernetes.podCIDR")
	}
	if k.ServiceCIDR.IsValid() {
		same("clusterConfiguration.networking.serviceSubnet", networking["serviceSubnet"], k.ServiceCIDR.String(), "kubernetes.serviceCIDR")
	}
	if driver, ok := k.KubeletConfiguration["cgroupDriver"]; ok && driver != "systemd" {
		out.add("kubernetes.kubeletConfiguration.cgroupDriver", "must be systemd: kgpu sets the container runtime up with it")
	}
	return out
}
