package e2e

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// examples applies what examples/workloads has, as a user does, to a cluster with a node of two cards and one of one. The
// image that stands in for TensorFlow's has Jupyter and numpy, so what computes does so on the CPU, and says it.
func (c *cluster) examples(t *testing.T) {
	// kgpu's own notebook has a card, and the port that the example's wants.
	c.k(t, "delete", "namespace", "kgpu-notebook", "--ignore-not-found", "--timeout=120s")
	c.exampleJob(t, "nvidia-smi", `^GPU 0: .* \(UUID: GPU-[0-9a-f-]{36}\)$`)
	c.exampleJob(t, "two-gpus", `^GPU 0: .*\nGPU 1: .*$`)
	c.exampleJob(t, "mnist", `(?s)^.*device: CPU \(numpy: .*\)\nepoch 1 of .*\naccuracy: 0\.9\d*, wanted 0\.9$`)
	t.Run("cpu-or-gpu", c.exampleWithOrWithout)
	t.Run("jupyter", c.exampleJupyter)
}

// example applies a file, strictly: a misspelt field is an error. What it returns deletes the objects.
func (c *cluster) example(t *testing.T, name string) (remove func()) {
	t.Helper()
	file := filepath.Join(repository, "examples/workloads", name+".yaml")
	c.k(t, "apply", "--validate=strict", "-f", file)
	return func() { c.k(t, "delete", "-f", file, "--grace-period=1", "--timeout=60s") }
}

// exampleJob runs an example whose Job has the file's name, to its end.
func (c *cluster) exampleJob(t *testing.T, name, wantLog string) {
	t.Run(name, func(t *testing.T) {
		defer c.example(t, name)()
		c.k(t, "wait", "--for=condition=complete", "job/"+name, "--timeout=150s")
		if log := c.k(t, "logs", "job/"+name); !regexp.MustCompile(wantLog).MatchString(log) {
			t.Errorf("the log of the Job is\n%s\nwant %s", log, wantLog)
		}
	})
}

// exampleWithOrWithout looks at the same program with a card and without one.
func (c *cluster) exampleWithOrWithout(t *testing.T) {
	defer c.example(t, "cpu-or-gpu")()
	for kind, cards := range map[string]string{"cpu": "0", "gpu": "1"} {
		c.k(t, "rollout", "status", "deployment/digits-"+kind, "--timeout=150s")
		got := c.k(t, "get", "--raw", "/api/v1/namespaces/default/services/digits-"+kind+":http/proxy/predict?segments=1,1,1,0,0.2,0,0.1")
		if want := `{"digit": 7, "device": "CPU (numpy)"}`; got != want {
			t.Errorf("digits-%s answers %s, want %s", kind, got, want)
		}
		if n := c.k(t, "exec", "deployment/digits-"+kind, "-c", "serve", "--", "sh", "-c", "ls -d /dev/nvidia[0-9]* 2>/dev/null | wc -l"); n != cards {
			t.Errorf("digits-%s has %s cards, want %s", kind, n, cards)
		}
	}
}

// exampleJupyter opens Jupyter at a node's port, and runs the notebook that fails where it finds no card.
func (c *cluster) exampleJupyter(t *testing.T) {
	c.k(t, "create", "secret", "generic", "jupyter", "--from-literal=token=a-token-of-the-tests")
	defer c.k(t, "delete", "secret", "jupyter")
	defer c.example(t, "jupyter")()
	c.k(t, "rollout", "status", "deployment/jupyter", "--timeout=150s")
	c.awaitPort(t, c.addr["w2"]+":30061")
	at := "http://" + c.addr["w2"] + ":30061/api/contents/examples"
	if status, body := get(t, at, ""); status != http.StatusForbidden {
		t.Errorf("without the token: status %d, %s", status, body)
	}
	if status, body := get(t, at, "a-token-of-the-tests"); status != http.StatusOK || !strings.Contains(body, "examples/ListGPUs.ipynb") {
		t.Errorf("with the token: status %d, %s", status, body)
	}
	c.k(t, "exec", "deployment/jupyter", "--", "jupyter", "execute", "examples/ListGPUs.ipynb")
}

// awaitPort returns when something listens: kube-proxy is a moment behind the pods that are ready.
func (c *cluster) awaitPort(t *testing.T, address string) {
	t.Helper()
	for range 300 {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("nothing listens on %s", address)
}

func get(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "token "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
