package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestChangesInPlace changes an inventory key by key on a cluster that runs, each that docs/inventory.md says changes in place: kgpu up
// takes the steps that the page names and no others, and what the key says is so. TestDrivers changes drivers, TestAfternoon how pods
// share cards, and TestPlanes gives a cluster its virtual address.
func TestChangesInPlace(t *testing.T) {
	long(t)
	l := newLab(t, []string{"gpu"}, "--workers", "1", "--gpus", "w1=2xA100")
	const cards, notebook = "gpu: {cuda: none}\n", "notebook: {idleTimeout: 90s}\n"
	hosts := []string{l.host("cp1", ""), l.host("w1", "")}
	inventory := func(worker, gpu, page, more string) desired {
		return desired{version: "1.36", runtime: "containerd", network: "flannel", more: l.forCards() + gpu + page + more, hosts: []string{hosts[0], worker}}
	}
	d := inventory(hosts[1], cards, notebook, "")
	c := newCluster(t, l, d)
	must(t, "up", func(t *testing.T) { c.up(t) })
	port := func(number, want string) {
		t.Helper()
		if got := l.exec(t, "cp1", "curl -s -o /dev/null -w '%{http_code}' http://"+l.addr["w1"]+":"+number+"/api || :"); got != want {
			t.Errorf("port %s answers %s, want %s", number, got, want)
		}
	}
	node := func(want string) {
		t.Helper()
		got := c.k(t, "get", "node", "w1", "-o", `go-template={{index .metadata.labels "e2e.example.com/rack"}}{{range .spec.taints}} {{.key}}:{{.effect}}{{end}}`)
		if got != want {
			t.Errorf("w1 has %q, want %q", got, want)
		}
	}
	proof := []string{"cp1 gpu/proven", "cp1 gpu/smoke"}
	rack := l.host("w1", "labels: {e2e.example.com/rack: a1}")
	tainted := l.host("w1", "labels: {e2e.example.com/rack: a1}, taints: [e2e.example.com/kept=yes:PreferNoSchedule]")
	for _, change := range []struct {
		key   string
		d     desired
		steps []string // more of them may be taken again
		seen  func(*testing.T)
	}{
		{"hosts[].labels", inventory(rack, cards, notebook, ""), []string{"cp1 cluster/nodes"}, func(*testing.T) { node("a1") }},
		{"hosts[].taints", inventory(tainted, cards, notebook, ""), []string{"cp1 cluster/nodes"}, func(*testing.T) { node("a1 e2e.example.com/kept:PreferNoSchedule") }},
		{"timeouts.link", inventory(tainted, cards, notebook, "timeouts: {link: 9m}\n"), nil, nil},
		{"repositories.kubernetes.url", func() desired {
			d := inventory(tainted, cards, notebook, "")
			d.more = strings.Replace(d.more, "kubernetes: {fingerprint", `kubernetes: {url: "http://pkgs.k8s.io/core:/stable:/v1.36/deb/", fingerprint`, 1)
			return d
		}(), []string{"cp1 repo/kubernetes", "w1 repo/kubernetes"}, func(t *testing.T) {
			if got := l.exec(t, "w1", "cat /etc/apt/sources.list.d/kgpu-kubernetes.list"); !strings.Contains(got, "http://pkgs.k8s.io/") {
				t.Errorf("the source is %s", got)
			}
		}},
		{"back", d, []string{"cp1 repo/kubernetes", "w1 repo/kubernetes"}, nil},
		{"gpu.cuda", inventory(hosts[1], "", notebook, ""), []string{"w1 gpu/cuda"}, func(t *testing.T) { l.exec(t, "w1", "/usr/local/cuda/bin/nvcc --version") }},
		{"gpu.migStrategy", inventory(hosts[1], "gpu: {cuda: none, migStrategy: mixed}\n", notebook, ""), append(proof, "cp1 addon/device-plugin"), func(t *testing.T) {
			c.labelled(t, "w1", map[string]string{"mig.strategy": "mixed"})
		}},
		{"images.registry", inventory(hosts[1], cards, notebook, "images: {registry: mirror.example.internal}\n"), append(proof,
			"cp1 addon/flannel", "cp1 addon/device-plugin", "cp1 addon/notebook", "cp1 runtime/containerd", "w1 runtime/containerd"), func(t *testing.T) {
			for _, of := range []string{"kube-flannel daemonset/kube-flannel-ds", "kube-system daemonset/nvidia-device-plugin", "kgpu-notebook deployment/notebook"} {
				namespace, workload, _ := strings.Cut(of, " ")
				image := c.k(t, "-n", namespace, "get", workload, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
				if !strings.HasPrefix(image, "mirror.example.internal/") {
					t.Errorf("%s is of %s", of, image)
				}
			}
		}},
		{"images.registry, back", d, append(proof, "cp1 addon/flannel", "cp1 addon/device-plugin", "cp1 addon/notebook"), nil},
		{"notebook.nodePort", inventory(hosts[1], cards, "notebook: {idleTimeout: 90s, nodePort: 30077}\n", ""), []string{"cp1 addon/notebook"}, func(*testing.T) {
			port("30077", "200")
			port("30061", "000")
		}},
		{"notebook.framework", inventory(hosts[1], cards, "notebook: {framework: none}\n", ""), []string{"cp1 addon/notebook-remove"}, func(t *testing.T) {
			if left := c.k(t, "get", "namespaces", "-o", "name"); strings.Contains(left, "notebook") {
				t.Errorf("namespaces: %s", left)
			}
		}},
		{"back again", d, append(proof, "cp1 addon/notebook"), func(*testing.T) { port("30061", "200") }},
	} {
		t.Run(change.key, func(t *testing.T) {
			l.write(t, filepath.Dir(c.inventory), change.d)
			did := c.did(c.up(t))
			for _, step := range change.steps {
				if !slices.Contains(did, step) {
					t.Errorf("no %s among %q", step, did)
				}
			}
			if len(change.steps) == 0 && len(did) > 0 {
				t.Errorf("it did %q", did)
			}
			if change.seen != nil {
				change.seen(t)
			}
			kgpu(t, 0, "plan", c.inventory)
			t.Logf("%s: %q", change.key, did)
		})
	}
}
