package e2e

import "testing"

// aloneWithItsCard is a cluster of one host with one card: it takes pods, and the notebook and they take turns with the card.
func (c *cluster) aloneWithItsCard(t *testing.T) {
	t.Run("a pod and the notebook take turns", func(t *testing.T) {
		defer c.example(t, "nvidia-smi")()
		c.k(t, "wait", "--for=jsonpath={.status.active}=1", "job/nvidia-smi", "--timeout=60s")
		c.k(t, "wait", "--for=condition=PodScheduled=false", "pod", "--selector=job-name=nvidia-smi", "--timeout=60s")
		if w := c.status(t, 0, c.inventory).Cluster.Waiting; w.Count != 1 || len(w.Pods) != 1 || !w.Notebook {
			t.Errorf("waiting: %+v", w)
		}
		kgpu(t, 0, "notebook", "--stop", "--inventory", c.inventory)
		c.k(t, "wait", "--for=condition=complete", "job/nvidia-smi", "--timeout=150s")
	})
	t.Run("up again", func(t *testing.T) { c.nothingToDo(t, "cp1") })
}

// unusedNotebook starts the notebook and leaves it. What it returns wants that to stop by itself, after its minute.
func (c *cluster) unusedNotebook(t *testing.T) (stops func(*testing.T)) {
	s := start(t, "", "notebook", "--inventory", c.inventory)
	c.k(t, "-n", "kgpu-notebook", "wait", "--for=jsonpath={.status.readyReplicas}=1", "deployment/notebook", "--timeout=150s")
	s.kill()
	return func(t *testing.T) {
		c.k(t, "-n", "kgpu-notebook", "wait", "--for=delete", "pod", "--selector=app.kubernetes.io/name=notebook", "--timeout=170s")
		if n := c.k(t, "-n", "kgpu-notebook", "get", "deployment", "notebook", "-o", "jsonpath={.spec.replicas}"); n != "0" {
			t.Errorf("the notebook has %s pods", n)
		}
	}
}
