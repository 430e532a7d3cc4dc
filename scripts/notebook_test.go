package scripts

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/scripts/manifests"
)

// notebookHost is a sandbox whose kubectl knows the notebook's namespace, Secret and Deployment. What the Deployment and the
// pods are, each time they are asked for, is in the files /deployment.1, /pods.1 and so on, of which the last one stays. No
// second passes in a sleep.
func notebookHost(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.hasty = true
	s.stub("sleep", "#!/bin/sh\necho sleep >>/tmp/calls\n")
	s.stub("kubectl", `#!/bin/bash
echo "$*" >>/tmp/arguments
while [[ $1 == --* ]]; do case $1 in --request-timeout=*) shift ;; *) shift 2 ;; esac; done
if [[ $1 == -n ]]; then [[ $2 == kgpu-notebook ]] || exit 1; shift 2; fi
echo "$1 $2 $3" >>/tmp/calls
round() {
  local n=$(($(cat "/tmp/$1" 2>/dev/null || echo 0) + 1)); echo $n >"/tmp/$1"
  while [[ ! -e /$1.$n && $n -gt 1 ]]; do n=$((n - 1)); done
  cat "/$1.$n"
}
case "$*" in
"get --raw /readyz") echo -n ok ;;
"get namespace kgpu-notebook --ignore-not-found -o name") if [[ -e /namespace ]]; then echo namespace/kgpu-notebook; fi ;;
"create namespace kgpu-notebook") : >/namespace ;;
"delete namespace kgpu-notebook --ignore-not-found --wait=false") rm -f /namespace /secret ;;
"get secret notebook --ignore-not-found "*) if [[ -e /secret ]]; then base64 -w 0 /secret; fi ;;
"create secret generic notebook --from-file=token="*) [[ -e /namespace ]] || exit 1
  stat -c %a "${5#*=token=}" >/tmp/mode; cp "${5#*=token=}" /secret ;;
"apply --server-side "*) if [[ -e /refuses ]]; then cat /refuses >&2; exit 1; fi; cp "${@: -1}" /applied ;;
"get deployment notebook --ignore-not-found "*) cat /ready 2>/dev/null ;;
"get service notebook --ignore-not-found -o name") if [[ ! -e /no-door ]]; then echo service/notebook; fi ;;
"get service notebook -o jsonpath={.spec.clusterIP}:{.spec.ports[0].port}") echo -n 10.96.0.8:8888 ;;
"get service notebook -o jsonpath={.spec.ports[0].nodePort}") echo -n 30061 ;;
"get deployment notebook "*) round deployment ;;
"get pods -l app.kubernetes.io/name=notebook -o go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.spec.nodeName}}"*) echo w2 ;;
"get pods -l app.kubernetes.io/name=notebook "*) round pods ;;
"get pods --all-namespaces "*) cat /holders ;;
"get events --field-selector involvedObject.name="*) cat "/events.${4#*=}" 2>/dev/null ;;
"get pods -o wide") echo THE-PODS ;;
"get events --field-selector=type=Warning"*) echo THE-EVENTS ;;
"logs "*) echo "open http://notebook:8888/?token=$(cat /secret)" ;;
esac
`)
	s.value("manifest", "the manifest\n")
	s.value("resource", "nvidia.com/gpu")
	s.value("title", "the notebook")
	s.value("workload", "kgpu-notebook/deployment/notebook")
	s.value("failed", "NOTEBOOK_FAILED")
	s.write("holders", "")
	s.write("deployment.1", deployment(t, object{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}))
	return s
}

// deployment is what kubectl prints of the Deployment in its first generation, with this status.
func deployment(t *testing.T, status object) string {
	t.Helper()
	return renderedObject(t, "deployment_template", object{"metadata": object{"generation": 1}, "status": status})
}

var deployed = object{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}

// notebookPod is the notebook's pod in this state.
func notebookPod(t *testing.T, phase string, status object) string {
	t.Helper()
	pod := smokePod("", phase, status)
	pod["metadata"] = object{"name": "notebook-5f-x7", "labels": object{"app.kubernetes.io/name": "notebook"}}
	return rendered(t, "pods_template", []any{pod})
}

var creating = containerState("waiting", object{"reason": "ContainerCreating"})

func TestNotebook(t *testing.T) {
	t.Parallel()
	s := notebookHost(t)
	s.write("pods.1", "")
	s.write("pods.2", notebookPod(t, "Pending", creating))
	s.write("pods.3", notebookPod(t, "Running", nil))
	s.write("deployment.4", deployment(t, deployed))
	s.write("events.notebook-5f-x7", "Normal Scheduled: \"assigned\"\nNormal Pulling: \"Pulling image \\\"docker.io/tensorflow/tensorflow\\\"\"\n")
	r := s.ok(s.step("addon-notebook"))
	for _, want := range []string{
		"W\tthe notebook: no pod yet\n", "W\tthe notebook: Pulling: Pulling image \"docker.io/tensorflow/tensorflow\"\n", "W\tthe notebook: Running\n",
	} {
		contains(t, r.output, want)
	}
	token := strings.TrimSpace(s.read(stepDir + "/out/token"))
	if !regexp.MustCompile(`^[0-9a-f]{48}$`).MatchString(token) || s.read("secret") != token {
		t.Errorf("the token is %q, in the Secret %q", token, s.read("secret"))
	}
	s.holds(stepDir+"/out/node", "w2\n")
	if s.read("applied") != "the manifest\n" {
		t.Errorf("applied:\n%s", s.read("applied"))
	}
	if mode := s.read("tmp/mode"); mode != "600\n" {
		t.Errorf("the token's file had mode %s", mode)
	}
	if strings.Contains(s.read("tmp/arguments"), token) || strings.Contains(r.output, token) || s.exists(stepDir+"/token") {
		t.Errorf("the token is told, or left; output:\n%s", r.output)
	}

	// The next run keeps it.
	s.ok(s.step("addon-notebook"))
	if again := strings.TrimSpace(s.read(stepDir + "/out/token")); again != token {
		t.Errorf("the token was %q and is %q", token, again)
	}
	s.write("secret", "my own")
	s.ok(s.step("addon-notebook"))
	if again := s.read(stepDir + "/out/token"); again != "my own\n" {
		t.Errorf("the user's token became %q", again)
	}
}

// Another manifest would end the pod of a notebook that serves: a proof that nobody planned that for leaves it alone.
func TestNotebookStaysAsItIs(t *testing.T) {
	t.Parallel()
	for ready, applied := range map[string]bool{"": true, "0": true, "1": false, "1 without a door": true} {
		s := notebookHost(t)
		s.value("manifest", string(manifests.Notebook))
		s.write("pods.1", notebookPod(t, "Running", nil))
		s.write("deployment.1", deployment(t, object{"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1})) // two are wanted
		if ready != "1" {
			s.write("deployment.1", deployment(t, deployed))
		}
		var door string
		if ready, door, _ = strings.Cut(ready, " "); door != "" {
			s.write("no-door", "")
		}
		s.write("ready", ready)
		s.value("keep", "yes")
		s.ok(s.step("addon-notebook"))
		if s.exists("applied") != applied {
			t.Errorf("of %q ready: applied is %t", ready, !applied)
		}
		if door != "" && (!strings.Contains(s.read("applied"), "kind: Service") || strings.Contains(s.read("applied"), "kind: Deployment")) {
			t.Errorf("its Service was to come back, and nothing else: applied\n%s", s.read("applied"))
		}
		if s.read(stepDir+"/out/token") == "" || s.read(stepDir+"/out/node") != "w2\n" || s.read(stepDir+"/out/port") != "30061" {
			t.Errorf("of %q ready: there is no token, no node, or no port", ready)
		}
		if got := s.read(stepDir + "/out/service"); got != "10.96.0.8:8888" {
			t.Errorf("of %q ready: service %q", ready, got)
		}
	}
}

func TestNotebookThatCannotBe(t *testing.T) {
	t.Parallel()
	const pod = "notebook-5f-x7"
	waits := func(reason, message string) object {
		return containerState("waiting", object{"reason": reason, "message": message})
	}
	for _, c := range []struct {
		name, pods, deployment, events string
		late                           bool
		want                           string
	}{
		{name: "all cards are held", pods: notebookPod(t, "Pending", conditions(object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
			"message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."})),
			want: "NOTEBOOK_NO_CARD\tUnschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.; cards are held by: default/train-0 on w2"},
		{name: "no image", pods: notebookPod(t, "Pending", waits("ImagePullBackOff", `Back-off pulling image "reg.lan/nb:1"`)),
			want: "SMOKE_IMAGE\tImagePullBackOff: Back-off pulling image \"reg.lan/nb:1\""},
		{name: "no Jupyter", pods: notebookPod(t, "Running", waits("CrashLoopBackOff", "back-off 10s restarting failed container")),
			want: "NOTEBOOK_FAILED\tCrashLoopBackOff: back-off 10s restarting failed container; its log ends: open http://notebook:8888/?token=…"},
		{name: "no answer", pods: notebookPod(t, "Running", nil), want: "NOTEBOOK_FAILED\tthe pod runs, and the notebook in it does not answer"},
		{name: "no volume", pods: notebookPod(t, "Pending", conditions(object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
			"message": "pod has unbound immediate PersistentVolumeClaims"})),
			want: "NOTEBOOK_FAILED\tUnschedulable: pod has unbound immediate PersistentVolumeClaims"},
		{name: "no runtime", pods: notebookPod(t, "Pending", creating), events: "Warning FailedCreatePodSandBox: \"no runtime for \\\"nvidia\\\" is configured\"\n",
			want: "NOTEBOOK_FAILED\tFailedCreatePodSandBox: no runtime for \"nvidia\" is configured"},
		{name: "no pod", deployment: deployment(t, object{"observedGeneration": 1, "conditions": []any{
			object{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "x"},
			object{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": `RuntimeClass "nvidia" not found`},
		}}), want: "NOTEBOOK_FAILED\tFailedCreate: RuntimeClass \"nvidia\" not found"},
		{name: "a slow pull", pods: notebookPod(t, "Pending", creating), late: true, events: "Normal Pulling: \"Pulling image\"\n",
			want: "NOTEBOOK_FAILED\tthe notebook is not ready (Pending)"},
		{name: "nothing at all", late: true, deployment: "", want: "NOTEBOOK_FAILED\tthe notebook is not ready (there is no pod)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := notebookHost(t)
			s.write("pods.1", c.pods)
			if c.deployment != "" {
				s.write("deployment.1", c.deployment)
			}
			s.write("events."+pod, c.events)
			s.write("holders", rendered(t, "holders_template", []any{holder("default", "train-0", "w2", "nvidia.com/gpu"), holder("default", "web", "w1", "cpu")}))
			if c.late {
				s.write(stepDir+"/timeout", "0")
			}
			r := s.step("addon-notebook")
			if r.status != 1 || r.failure != c.want {
				t.Errorf("status %d, failure\n%s\nwant\n%s\noutput:\n%s", r.status, r.failure, c.want, r.output)
			}
			contains(t, r.output, "THE-PODS", "THE-EVENTS")
			lacks(t, r.output, s.read("secret"))
		})
	}
	t.Run("the API server refuses it", func(t *testing.T) {
		t.Parallel()
		s := notebookHost(t)
		s.write("refuses", "provided port is already allocated\n")
		s.fails(s.step("addon-notebook"), 75, "NOTEBOOK_FAILED")
	})
}

// A pull that takes long hinders nothing.
func TestNotebookIsPatient(t *testing.T) {
	t.Parallel()
	s := notebookHost(t)
	s.write("pods.1", notebookPod(t, "Pending", creating))
	s.write("events.notebook-5f-x7", "Normal Pulling: \"Pulling image\"\n")
	s.write("deployment.60", deployment(t, deployed))
	s.ok(s.step("addon-notebook"))
}

func TestNotebookRemove(t *testing.T) {
	t.Parallel()
	s := notebookHost(t)
	s.write("namespace", "")
	s.write("secret", "token")
	s.ok(s.step("addon-remove"))
	s.absent("namespace", "secret")
	s.ok(s.step("addon-remove"))
}

// What the container runs takes the program that the image has, whatever its generation.
func TestNotebookCommand(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("command", notebookCommand(t, manifests.Notebook))
	for i, program := range []string{"jupyter-server", "jupyter-notebook", "jupyter-lab"} { // the last one is preferred
		s.stub(program, fmt.Sprintf("#!/bin/sh\necho %s \"$@\"\n", program))
		r := s.ok(s.bash("exec sh /command"))
		if want := program + " --ip=0.0.0.0 --port=8888 --no-browser --allow-root\n"; r.output != want {
			t.Errorf("%d: %q, want %q", i, r.output, want)
		}
	}
	for _, program := range []string{"jupyter-server", "jupyter-notebook", "jupyter-lab"} {
		s.must(os.Remove(s.path("stubs/" + program)))
	}
	if r := s.bash("exec sh /command"); r.status != 127 || !strings.Contains(r.output, "the image has none of") {
		t.Errorf("status %d:\n%s", r.status, r.output)
	}
}

// notebookCommand is the last word of the command of the container in a manifest.
func notebookCommand(t *testing.T, manifest []byte) string {
	t.Helper()
	for dec := yaml.NewDecoder(bytes.NewReader(manifest)); ; {
		var o struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Command []string }
					}
				}
			}
		}
		must(t, dec.Decode(&o))
		if o.Kind != "Deployment" {
			continue
		}
		command := o.Spec.Template.Spec.Containers[0].Command
		if len(command) < 3 || command[0] != "sh" || command[1] != "-c" {
			t.Fatalf("command %q", command)
		}
		return command[len(command)-1]
	}
}

// A notebook that nobody uses is scaled to nothing, by who alone has the token for it; one whose kernel computes is used.
func TestNotebookStopsIdle(t *testing.T) {
	t.Parallel()
	python := exec.Command("python3", "-c", notebookCommand(t, manifests.NotebookIdle))
	long := time.Now().UTC().Add(-time.Hour).Format("2006-01-02T15:04:05.000000Z")
	var state, last atomic.Value
	var asked atomic.Int32
	state.Store("busy")
	last.Store(long)
	jupyter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "token jupyters" {
			w.WriteHeader(http.StatusForbidden)
		}
		switch r.URL.String() {
		case "/api/kernels?no_track_activity=1":
			fmt.Fprintf(w, `[{"execution_state": "idle"}, {"execution_state": %q}]`, state.Load())
		case "/api/status?no_track_activity=1":
			fmt.Fprintf(w, `{"last_activity": %q}`, last.Load())
		}
	}))
	t.Cleanup(jupyter.Close)
	scaled := make(chan string, 100)
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		scaled <- strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)}, " ")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(api.Close)
	folder := t.TempDir()
	for name, text := range map[string][]byte{"token": []byte("kubernetes\n"), "ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})} {
		must(t, os.WriteFile(folder+"/"+name, text, 0o600))
	}
	host, port, _ := net.SplitHostPort(api.Listener.Addr().String())
	python.Args[2] = strings.Replace(python.Args[2], "http://127.0.0.1:8888", jupyter.URL, 1)
	python.Env = append(os.Environ(), "IDLE_SECONDS=1", "IDLE_TOKEN="+folder, "JUPYTER_TOKEN=jupyters", "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port,
		"http_proxy=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1")
	var said bytes.Buffer
	python.Stdout, python.Stderr = &said, &said
	must(t, python.Start())
	quiet := func(why string) {
		for before := asked.Load(); asked.Load() < before+5; time.Sleep(10 * time.Millisecond) {
			if t.Context().Err() != nil {
				t.Fatal(said.String())
			}
		}
		if len(scaled) > 0 {
			t.Errorf("%s, and it stops", why)
		}
	}
	quiet("a kernel computes")
	last.Store(time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04:05Z"))
	state.Store("idle")
	quiet("somebody was there just now")
	last.Store(long)
	if got, want := <-scaled, `PATCH /apis/apps/v1/namespaces/kgpu-notebook/deployments/notebook/scale Bearer kubernetes application/merge-patch+json {"spec": {"replicas": 0}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	must(t, python.Process.Signal(syscall.SIGTERM))
	if err := python.Wait(); err != nil {
		t.Errorf("%v: %s", err, said.String())
	}
}
