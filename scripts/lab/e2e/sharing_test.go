package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// labelled wants what gpu-feature-discovery finds out about a node's cards as its labels.
func (c *cluster) labelled(t *testing.T, node string, want map[string]string) {
	t.Helper()
	have := map[string]string{}
	for _, line := range lines(c.k(t, "get", "node", node, "-o", `go-template={{range $k, $v := .metadata.labels}}{{$k}}={{$v}}{{"\n"}}{{end}}`)) {
		k, v, _ := strings.Cut(line, "=")
		have[k] = v
	}
	for k, v := range want {
		if got, ok := have["nvidia.com/"+k]; !ok || got != v {
			t.Errorf("label %s of %s is %q (%t), want %q", k, node, got, ok, v)
		}
	}
}

// sharedCards has every card offered twice, and then once. The notebook that somebody deleted comes back with that.
func (c *cluster) sharedCards(t *testing.T) {
	before, err := os.ReadFile(c.inventory)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(c.inventory, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(string(before) + "\ngpu: {timeSlicing: {replicas: 2}}\n")
	s := c.up(t)
	if !slices.Contains(c.did(s), "cp1 addon/notebook") {
		t.Errorf("the notebook did not come back: %v", c.did(s))
	}
	c.offers(t, "cp1= w1=4 w2=2")
	c.proven(t, s, 3)
	c.notebook(t, s)
	c.labelled(t, "w1", map[string]string{"gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED", "gpu.count": "2", "gpu.replicas": "2", "gpu.sharing-strategy": "time-slicing"})
	planned := kgpu(t, 0, "plan", "--output", "json", c.inventory).stdout.String()
	if !strings.Contains(planned, "595.91.07 stays") {
		t.Errorf("the plan does not say that the driver stays:\n%s", planned)
	}
	t.Run("and once", func(t *testing.T) {
		long(t)
		write(string(before))
		c.proven(t, c.up(t), 3)
		c.offers(t, "cp1= w1=2 w2=1")
		c.labelled(t, "w1", map[string]string{"gpu.product": "NVIDIA-A100-SXM4-40GB", "gpu.replicas": "1", "gpu.sharing-strategy": "none"})
	})
}
