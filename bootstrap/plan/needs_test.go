package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
)

func TestNeeds(t *testing.T) {
	for _, c := range []struct {
		name string
		more string
		set  func(seen map[string]*facts.Host)
		want map[string]string
	}{
		{
			name: "docker and weave",
			want: map[string]string{
				"cp1": "packages pkgs.k8s.io 443 https!, packages download.docker.com 443 https!, packages github.com 443 https!, images registry.k8s.io 443!, images registry-1.docker.io 443!, another node 10.0.0.11 10250, another node 10.0.0.12 10250",
				"w1":  "packages pkgs.k8s.io 443 https!, packages download.docker.com 443 https!, packages github.com 443 https!, images registry.k8s.io 443!, images registry-1.docker.io 443!, the API server 10.0.0.10 6443",
			},
		},
		{
			name: "a registry and mirrors of one's own",
			more: `
runtime: containerd
network: flannel
images: {registry: "registry.lan:5000/mirror"}
repositories:
  kubernetes: {url: "http://mirror.lan/kubernetes/", fingerprint: DE15B14486CD377B9E876E1A234654DA9A296436}
  docker: {url: "http://mirror.lan/docker", fingerprint: DE15B14486CD377B9E876E1A234654DA9A296436}
kubernetes: {controlPlaneEndpoint: "api.lan:8443"}
`,
			want: map[string]string{"w1": "packages mirror.lan 80 http!, images registry.lan 5000!, the API server api.lan 8443"},
		},
		{
			name: "calico, and a runtime that is there",
			more: "network: calico\n",
			set: func(seen map[string]*facts.Host) {
				for _, f := range seen {
					f.Packages["docker-ce"], f.CRIDockerd = facts.Package{Version: "29"}, "0.4.4"
				}
			},
			want: map[string]string{
				"cp1": "packages pkgs.k8s.io 443 https!, packages raw.githubusercontent.com 443 https!, images registry.k8s.io 443!, another node 10.0.0.11 10250, another node 10.0.0.12 10250",
				"w1":  "packages pkgs.k8s.io 443 https!, images registry.k8s.io 443!, the API server 10.0.0.10 6443",
			},
		},
		{
			name: "cards",
			more: "runtime: containerd\nnetwork: flannel\n",
			set:  func(seen map[string]*facts.Host) { seen["w1"].NVIDIA.Cards = cards("1eb8") },
			want: map[string]string{
				"w1": "packages pkgs.k8s.io 443 https!, packages download.docker.com 443 https!, packages nvidia.github.io 443 https!, packages developer.download.nvidia.com 443 https!, images registry.k8s.io 443!, images registry-1.docker.io 443!, images ghcr.io 443!, images nvcr.io 443!, the API server 10.0.0.10 6443",
				"w2": "packages pkgs.k8s.io 443 https!, packages download.docker.com 443 https!, images registry.k8s.io 443!, images ghcr.io 443!, the API server 10.0.0.10 6443",
			},
		},
		{
			name: "cards, and a notebook of one's own",
			more: "runtime: containerd\nnetwork: flannel\nnotebook: {image: \"registry.lan:5000/ours/jupyter:1\"}\n",
			set:  func(seen map[string]*facts.Host) { seen["w1"].NVIDIA.Cards = cards("1eb8") },
			want: map[string]string{
				"w1": "packages pkgs.k8s.io 443 https!, packages download.docker.com 443 https!, packages nvidia.github.io 443 https!, packages developer.download.nvidia.com 443 https!, images registry.k8s.io 443!, images registry.lan 5000!, images ghcr.io 443!, images nvcr.io 443!, the API server 10.0.0.10 6443",
			},
		},
		{
			name: "cards that get no driver",
			more: "runtime: containerd\nnetwork: flannel\ngpu: {driver: {branch: \"580\"}}\n",
			set:  func(seen map[string]*facts.Host) { seen["w1"].NVIDIA.Cards = cards("102d") },
			want: map[string]string{
				"w1": "packages pkgs.k8s.io 443 https!, packages download.docker.com 443 https!, packages nvidia.github.io 443 https!, images registry.k8s.io 443!, images ghcr.io 443!, the API server 10.0.0.10 6443",
			},
		},
		{
			name: "a proxy",
			more: "proxy: {https: \"http://proxy.lan:3128\"}\n",
			want: map[string]string{"w1": "the proxy proxy.lan 3128!, the API server 10.0.0.10 6443"},
		},
		{
			name: "a new worker in a cluster",
			more: "proxy: {http: \"http://proxy.lan:3128\"}\n",
			set: func(seen map[string]*facts.Host) {
				seen["cp1"].ControlPlane, seen["cp1"].Cluster, seen["cp1"].Kubelet = &facts.ControlPlane{}, &facts.Cluster{}, &facts.Member{}
				seen["w1"].Kubelet = &facts.Member{}
			},
			want: map[string]string{"cp1": "another node 10.0.0.12 10250", "w1": "", "w2": "the proxy proxy.lan 3128!, the API server 10.0.0.10 6443 awaited!"},
		},
		{
			name: "a control plane that is half made",
			set: func(seen map[string]*facts.Host) {
				seen["cp1"].ControlPlane, seen["cp1"].Kubelet = &facts.ControlPlane{}, &facts.Member{}
			},
			more: "proxy: {http: \"http://proxy.lan:3128\"}\n",
			want: map[string]string{"w2": "the proxy proxy.lan 3128!, the API server 10.0.0.10 6443"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := decode(t, threeHosts+c.more)
			seen := hostFacts(inv)
			if c.set != nil {
				c.set(seen)
			}
			needs, err := RequiredEndpoints(inv, seen)
			if err != nil {
				t.Fatal(err)
			}
			for id, want := range c.want {
				var got []string
				for _, n := range needs[id] {
					listens := ""
					if n.Listens {
						listens = "!"
					}
					got = append(got, fmt.Sprintf("%s %s%s", n.Purpose, n, listens))
				}
				if !slices.Equal(got, strings.Split(want, ", ")) && strings.Join(got, "")+want != "" {
					t.Errorf("%s needs\n%s\nwant\n%s", id, strings.Join(got, ", "), want)
				}
			}
		})
	}
}

// TestControlPlanesReachEtcd: whoever joins has a way to etcd of each other, and those that have joined have one to it.
func TestControlPlanesReachEtcd(t *testing.T) {
	inv := decode(t, fourHosts)
	seen := hostFacts(inv)
	seen["cp2"].ControlPlane, seen["cp2"].Cluster, seen["cp2"].Kubelet = &facts.ControlPlane{}, &facts.Cluster{}, &facts.Member{}
	needs, err := RequiredEndpoints(inv, seen)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"cp2": "10.0.0.12:2379 10.0.0.12:2380 10.0.0.13:2379 10.0.0.13:2380",
		"cp3": "10.0.0.10:2379 10.0.0.10:2380 10.0.0.12:2379 10.0.0.12:2380",
		"w1":  "",
	} {
		var got []string
		for _, n := range needs[id] {
			if n.Purpose == machine.ToEtcd {
				got = append(got, fmt.Sprintf("%s:%d", n.Host, n.Port))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s asks etcd at %q, want %q", id, got, want)
		}
	}
}
