package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// growsToThree makes a cluster with one control plane, one worker and no virtual address, and gives it the address and two more
// control planes while it runs: its nodes stay ready, and all hosts find the API server at the address.
func (c *cluster) growsToThree(t *testing.T, d desired, virtual string) {
	t.Helper()
	small := d
	small.virtualIP, small.hosts = "", []string{c.host("cp1", ""), c.host("w3", "")}
	c.inventory = c.write(t, filepath.Dir(c.inventory), small)
	c.up(t)
	c.ready(t, "cp1", "w3")
	readySince := func() string {
		return c.k(t, "get", "nodes", "cp1", "w3", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].lastTransitionTime}{"\n"}{end}`)
	}
	before := readySince()
	if s := kgpu(t, 3, "add-control-plane", "--yes", "-i", c.inventory, c.addr["w1"], c.addr["w2"]); !strings.Contains(s.stderr.String(), "kubernetes.virtualIP") {
		t.Errorf("without an address: %s", s.stderr.String())
	}
	kgpu(t, 0, "add-control-plane", "--yes", "-i", c.inventory, "--virtual-ip", virtual, c.addr["w1"], c.addr["w2"])
	c.answers(t, virtual)
	c.ready(t, "cp1", "w1", "w2", "w3")
	if now := readySince(); now != before {
		t.Errorf("nodes were not ready meanwhile: %s, then %s", before, now)
	}
	for _, h := range []string{"cp1", "w1", "w2", "w3"} {
		if line := c.exec(t, h, "grep '# kgpu$' /etc/hosts"); !strings.HasPrefix(line, virtual+" ") {
			t.Errorf("%s has %q", h, line)
		}
	}
	if text, err := os.ReadFile(c.kubeconfig); err != nil || !strings.Contains(string(text), "https://"+virtual+":6443") {
		t.Errorf("the kubeconfig: %v\n%s", err, text)
	}
	grown := d
	grown.hosts = d.hosts[:4]
	c.inventory = c.write(t, filepath.Dir(c.inventory), grown)
	c.nothingToDo(t, "cp1", "w1", "w2", "w3")
	c.inventory = c.write(t, filepath.Dir(c.inventory), d)
}
