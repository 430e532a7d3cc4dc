package scripts

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/smoke"
)

var gpuNodes = []smoke.Node{
	{Name: "gpu-1.lab", Sample: catalog.SampleOf(580), GPUs: []smoke.GPU{{UUID: "GPU-a0", Name: "NVIDIA A100-SXM4-40GB"}, {UUID: "GPU-a1", Name: "NVIDIA A100-SXM4-40GB"}}},
	{Name: "w2", Sample: catalog.SampleOf(580), GPUs: []smoke.GPU{{UUID: "GPU-b0", Name: "Tesla T4"}}},
}

var smokeJobs = []string{"smi-gpu-1.lab-0", "smi-gpu-1.lab-1", "none-gpu-1.lab", "plain-gpu-1.lab", "smi-w2-0", "none-w2", "plain-w2"}

// smokeHost is a sandbox whose kubectl knows one namespace, and pods that change each time they are asked for: what it
// prints then is in the files /pods.1, /pods.2 and so on, of which the last one stays. No second passes in a sleep.
func smokeHost(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.hasty = true
	s.stub("sleep", "#!/bin/sh\necho sleep >>/tmp/calls\n")
	s.stub("kubectl", `#!/bin/bash
while [[ $1 == --* ]]; do case $1 in --request-timeout=*) shift ;; *) shift 2 ;; esac; done
if [[ $1 == -n ]]; then shift 2; fi
echo "$1 $2 $3" >>/tmp/calls
case "$*" in
"get --raw /readyz") echo -n ok ;;
"get namespace kgpu-smoke --ignore-not-found -o name") if [[ -e /namespace ]]; then echo namespace/kgpu-smoke; fi ;;
"delete namespace kgpu-smoke --ignore-not-found --wait=false") [[ -e /stuck ]] || rm -f /namespace ;;
"create -f "*) if [[ -e /namespace ]]; then echo "the namespace is there already" >&2; exit 1; fi
  : >/namespace
  if [[ -e /refuses ]]; then cat /refuses >&2; exit 1; fi
  awk '/^kind:/ { kind = $2 } /^  name:/ { print (kind == "Job" ? "job.batch" : tolower(kind)) "/" $2 }' "$3" ;;
"get pods -l kgpu.dev/smoke "*nodeSelector*) cat /asked ;;
"get pods -l kgpu.dev/smoke "*) [[ -e /namespace ]] || exit 1
  n=$(($(cat /tmp/round 2>/dev/null || echo 0) + 1)); echo $n >/tmp/round
  while [[ ! -e /pods.$n ]]; do n=$((n - 1)); done
  if [[ -x /pods.$n ]]; then . /pods.$n; else cat /pods.$n; fi ;;
"get pods --all-namespaces "*) cat /holders ;;
"get events --field-selector involvedObject.name="*) cat "/events.${4#*=}" 2>/dev/null ;;
"get pods -o wide") echo THE-PODS ;;
"get events --field-selector=type=Warning"*) echo THE-EVENTS ;;
"logs "*--limit-bytes*) cat "/logs/$2" || { echo "container is waiting to start" >&2; exit 1; } ;;
esac
`)
	minor, _ := catalog.Kubernetes(36)
	manifest, err := smoke.Manifest(gpuNodes, minor, nil)
	s.must(err)
	s.value("manifest", manifest)
	s.write("holders", "")
	var asked []any
	for _, job := range smokeJobs {
		node := "w2"
		if strings.Contains(job, "gpu-1") {
			node = "gpu-1.lab"
		}
		pod := smokePod(job, "Pending", nil)
		container := object{"name": "look"}
		if strings.HasPrefix(job, "smi-") {
			container["resources"] = object{"limits": object{"nvidia.com/gpu": 1}}
		}
		pod["spec"] = object{"nodeSelector": object{"kubernetes.io/hostname": node}, "containers": []any{container}}
		asked = append(asked, pod)
	}
	s.write("asked", rendered(t, "asked_template", asked))
	return s
}

type object = map[string]any

// smokePod is a pod of a Job; status is its status, apart from the phase.
func smokePod(job, phase string, status object) object {
	all := object{"phase": phase}
	for k, v := range status {
		all[k] = v
	}
	return object{"metadata": object{"name": job + "-x7x7x", "labels": object{"kgpu.dev/smoke": job}}, "status": all}
}

func conditions(list ...any) object { return object{"conditions": list} }

func containerState(state string, with object) object {
	return object{"containerStatuses": []any{object{"state": object{state: with}}}}
}

var ready = conditions(object{"type": "PodScheduled", "status": "True"}, object{"type": "Ready", "status": "True"})

// smokePods are the pods of all Jobs, all ready but for those that are named.
func smokePods(others map[string]object) []any {
	var out []any
	for _, job := range smokeJobs {
		pod, ok := others[job]
		switch {
		case !ok:
			out = append(out, smokePod(job, "Running", ready))
		case pod != nil:
			out = append(out, pod)
		}
	}
	return out
}

// rendered is what kubectl makes of a list by the template of this name.
func rendered(t *testing.T, name string, items []any) string {
	t.Helper()
	return renderedObject(t, name, object{"items": items})
}

// renderedObject does so for a single object.
func renderedObject(t *testing.T, name string, of object) string {
	t.Helper()
	script := Lib()
	for _, step := range []string{"gpu-smoke", "addon-notebook"} {
		text := stepText(t, step)
		script = append(script, text...)
	}
	tmpl, err := template.New(name).Parse(quoted(t, script, name))
	must(t, err)
	// Through JSON, as kubectl does.
	data, err := json.Marshal(of)
	must(t, err)
	var list any
	must(t, json.Unmarshal(data, &list))
	var out strings.Builder
	must(t, tmpl.Execute(&out, list))
	return out.String()
}

func (s *sandbox) pods(round int, items []any) {
	s.t.Helper()
	s.write(fmt.Sprintf("pods.%d", round), rendered(s.t, "pods_template", items))
}

// looked is the log of a pod that sees these cards.
func (s *sandbox) looked(job, log string) {
	s.t.Helper()
	s.write("logs/"+job+"-x7x7x", log)
}

func (s *sandbox) allLooked() {
	s.t.Helper()
	for job, uuid := range map[string]string{"smi-gpu-1.lab-0": "GPU-a1", "smi-gpu-1.lab-1": "GPU-a0", "smi-w2-0": "GPU-b0"} {
		s.looked(job, "GPU 0: some card (UUID: "+uuid+")\nkgpu-status 0\nkgpu-device /dev/nvidia0\nkgpu-sample 0\nkgpu-said Test PASSED\nkgpu-end\n")
	}
	for _, node := range []string{"gpu-1.lab", "w2"} {
		s.looked("none-"+node, "No devices found.\nkgpu-status 6\nkgpu-end\n")
		s.looked("plain-"+node, "timeout: nvidia-smi: not there\nkgpu-status 127\nkgpu-end") // the last line has no end
	}
}

// gone fails the test when the namespace stayed.
func (s *sandbox) gone() {
	s.t.Helper()
	if s.exists("namespace") {
		s.t.Errorf("the namespace stays; calls:\n%s", s.calls())
	}
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	s := smokeHost(t)
	s.write("namespace", "of a run that was killed")
	s.allLooked()
	pulling := smokePod("smi-w2-0", "Pending", containerState("waiting", object{"reason": "ContainerCreating"}))
	s.pods(1, nil)
	s.pods(2, smokePods(map[string]object{"smi-w2-0": pulling, "plain-w2": nil}))
	s.pods(3, smokePods(map[string]object{"plain-w2": smokePod("plain-w2", "Running", conditions(object{"type": "Ready", "status": "False"}))}))
	s.pods(4, smokePods(nil))
	r := s.ok(s.step("gpu-smoke"))
	s.gone()

	table, err := smoke.CheckProof(gpuNodes, s.read(stepDir+"/out/logs"))
	if err != nil {
		t.Fatalf("%v in\n%s", err, s.read(stepDir+"/out/logs"))
	}
	if len(table.Rows) != 3 || table.Rows[0].Job != "smi-gpu-1.lab-1" || table.Rows[2].Job != "smi-w2-0" {
		t.Errorf("the proof:\n%s", table)
	}

	var order []string
	for line := range strings.Lines(s.calls()) {
		if word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word == "delete" || word == "create" || word == "logs" {
			if word == "delete" {
				word, _, _ = strings.Cut(rest, " ")
			}
			order = append(order, word)
			if word == "logs" && strings.HasPrefix(rest, "smi-w2-0-x7x7x ") {
				order = append(order, "w2")
			}
		}
	}
	if got := strings.Join(order, " "); got != "jobs namespace create logs logs logs logs logs w2 logs logs jobs namespace" {
		t.Errorf("order of calls: %s", got)
	}
	for _, want := range []string{
		"W\tthe end of the pods of a former run\n",
		"W\t0 of 7 pods hold what they asked for; smi-gpu-1.lab-0: no pod yet\n",
		"W\t5 of 7 pods hold what they asked for; smi-w2-0: ContainerCreating\n",
		"W\t6 of 7 pods hold what they asked for; plain-w2: Running\n",
	} {
		contains(t, r.output, want)
	}
}

func TestSmokeThatCannotBe(t *testing.T) {
	t.Parallel()
	pulling := smokePod("smi-w2-0", "Pending", containerState("waiting", object{"reason": "ContainerCreating"}))
	unpullable := smokePod("smi-w2-0", "Pending", containerState("waiting", object{"reason": "ImagePullBackOff",
		"message": "Back-off pulling image \"reg.lan/cuda:1\":\nnot found"}))
	for _, c := range []struct {
		name       string
		job        string // the one that is not ready; empty: smi-w2-0
		pod        object // nil: there is none
		events     string
		late       bool // the time is up
		want, told string
	}{
		{name: "no free card, and nobody on this node has it", pod: noCard("smi-w2-0"),
			want: "SMOKE_FAILED\tJob smi-w2-0: Unschedulable: 0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector.; " +
				"cards are held by: default/train-0 on gpu-1.lab, lab/two on gpu-1.lab"},
		{name: "no image", pod: unpullable,
			want: `SMOKE_IMAGE` + "\t" + `Job smi-w2-0: ImagePullBackOff: Back-off pulling image "reg.lan/cuda:1": not found`},
		{name: "the device plugin refuses", pod: smokePod("smi-w2-0", "Failed", object{"reason": "UnexpectedAdmissionError", "message": "Allocate failed due to rpc error"}),
			want: "SMOKE_FAILED\tJob smi-w2-0: UnexpectedAdmissionError: Allocate failed due to rpc error"},
		{name: "the container cannot start", pod: smokePod("smi-w2-0", "Failed", containerState("terminated", object{"reason": "StartError", "exitCode": 128, "message": "unresolvable CDI devices"})),
			want: "SMOKE_FAILED\tJob smi-w2-0: StartError: exit status 128 unresolvable CDI devices"},
		{name: "a pod that ended", job: "plain-w2", pod: smokePod("plain-w2", "Succeeded", containerState("terminated", object{"reason": "Completed", "exitCode": 0})),
			want: "SMOKE_FAILED\tJob plain-w2: Completed: exit status 0"},
		{name: "no such runtime", pod: pulling,
			events: "Normal Scheduled: \"assigned\"\nWarning FailedCreatePodSandBox: \"no runtime for \\\"nvidia\\\" is configured\"\n",
			want:   "SMOKE_FAILED\tJob smi-w2-0: FailedCreatePodSandBox: no runtime for \"nvidia\" is configured"},
		{name: "no RuntimeClass", events: "Warning FailedCreate: \"pod rejected: RuntimeClass \\\"nvidia\\\" not found\"\n",
			want: "SMOKE_FAILED\tJob smi-w2-0: FailedCreate: pod rejected: RuntimeClass \"nvidia\" not found"},
		{name: "a hang", pod: smokePod("smi-w2-0", "Running", conditions(object{"type": "Ready", "status": "False"})),
			want: "SMOKE_FAILED\tJob smi-w2-0: the pod runs, and nvidia-smi or the sample in it does not come back"},
		{name: "a dead node", pod: smokePod("smi-w2-0", "Pending", conditions(object{"type": "PodScheduled", "status": "True"})), events: "Normal Scheduled: \"assigned\"\n",
			want: "SMOKE_FAILED\tJob smi-w2-0: neither the scheduler nor the kubelet of its node does anything about its pod"},
		{name: "a slow pull", pod: pulling, late: true, events: "Normal Pulling: \"Pulling image\"\n",
			want: "SMOKE_FAILED\tJob smi-w2-0: its pod is not ready (Pending)"},
		{name: "no pod and no word", late: true, want: "SMOKE_FAILED\tJob smi-w2-0: its pod is not ready (there is none)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := smokeHost(t)
			job := c.job
			if job == "" {
				job = "smi-w2-0"
			}
			s.pods(1, smokePods(map[string]object{job: c.pod}))
			name := job
			if c.pod != nil {
				name += "-x7x7x"
			}
			s.write("events."+name, c.events)
			s.write("holders", rendered(t, "holders_template", []any{
				holder("default", "train-0", "gpu-1.lab", "nvidia.com/gpu"), holder("kgpu-smoke", "smi", "w2", "nvidia.com/gpu"),
				holder("lab", "two", "gpu-1.lab", "nvidia.com/gpu", "nvidia.com/gpu"), holder("default", "web", "w2", "cpu"),
				holder("default", "unscheduled", "", "nvidia.com/gpu"),
			}))
			if c.late {
				s.write(stepDir+"/timeout", "0")
			}
			r := s.step("gpu-smoke")
			if r.status != 1 || r.failure != c.want {
				t.Errorf("status %d, failure\n%s\nwant\n%s\noutput:\n%s", r.status, r.failure, c.want, r.output)
			}
			contains(t, r.output, "THE-PODS", "THE-EVENTS")
			s.gone()
		})
	}
}

// noCard is the pod of a Job that the scheduler has no card for.
func noCard(job string) object {
	return smokePod(job, "Pending", conditions(object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
		"message": "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector."}))
}

// An instance that somebody else has is not waited for either; a Job that lacks something else is.
func TestSmokeOfHeldInstances(t *testing.T) {
	t.Parallel()
	const instance = "nvidia.com/mig-1g.5gb"
	s := smokeHost(t)
	s.allLooked()
	asks := func(job, node string) object {
		pod := smokePod(job, "Pending", nil)
		pod["spec"] = object{"nodeSelector": object{"kubernetes.io/hostname": node}, "containers": []any{object{"resources": object{"limits": object{instance: 1}}}}}
		return pod
	}
	s.write("asked", rendered(t, "asked_template", []any{asks("smi-w2-0", "w2"), asks("smi-gpu-1.lab-0", "gpu-1.lab")}))
	s.write("holders", rendered(t, "holders_template", []any{holder("default", "train-0", "w2", instance), holder("default", "whole", "gpu-1.lab", "nvidia.com/gpu")}))
	lacks := func(job, what string) object {
		return smokePod(job, "Pending", conditions(object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 1 Insufficient " + what + "."}))
	}
	s.pods(1, smokePods(map[string]object{"smi-w2-0": lacks("smi-w2-0", instance), "smi-gpu-1.lab-0": lacks("smi-gpu-1.lab-0", instance)}))
	s.write(stepDir+"/timeout", "0")
	r := s.step("gpu-smoke")
	if want := "SMOKE_FAILED\tJob smi-gpu-1.lab-0: Unschedulable: 0/3 nodes are available: 1 Insufficient " + instance + ".; cards are held by: default/train-0 on w2"; r.failure != want {
		t.Errorf("failure\n%s\nwant\n%s", r.failure, want)
	}
	s.gone()
	s.remove(stepDir + "/timeout")
	s.pods(1, smokePods(map[string]object{"smi-w2-0": lacks("smi-w2-0", instance)}))
	s.ok(s.step("gpu-smoke"))
	contains(t, s.read(stepDir+"/out/logs"), "smi-w2-0\tkgpu-held default/train-0\n")
	s.gone()
	s.pods(1, smokePods(map[string]object{"smi-w2-0": lacks("smi-w2-0", "cpu")}))
	if r := s.step("gpu-smoke"); r.status == 0 {
		t.Error("a Job without a processor is held to lack a card")
	}
}

// A node that is too busy to start a container may start it in a moment.
func TestSmokeOnABusyNode(t *testing.T) {
	t.Parallel()
	s := smokeHost(t)
	s.pods(1, smokePods(map[string]object{"plain-w2": smokePod("plain-w2", "Failed", containerState("terminated", object{"reason": "StartError", "exitCode": 128,
		"message": "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: " +
			"error during container init: error setting cgroup config for procHooks process: unable to freeze: unknown"}))}))
	s.fails(s.step("gpu-smoke"), 75, "SMOKE_FAILED")
	s.gone()
}

// A card that somebody else has is not waited for, and the proof says who; a card that nobody has is.
func TestSmokeOfHeldCards(t *testing.T) {
	t.Parallel()
	s := smokeHost(t)
	s.allLooked()
	s.looked("plain-w2", "kgpu-held nobody/believes-it\nkgpu-status 127\nkgpu-end\n")
	s.write("holders", rendered(t, "holders_template", []any{
		holder("default", "train-0", "w2", "nvidia.com/gpu"), holder("lab", "two", "gpu-1.lab", "cpu", "nvidia.com/gpu"),
		holder("kgpu-smoke", "smi", "w2", "nvidia.com/gpu"),
	}))
	s.pods(1, smokePods(map[string]object{"smi-w2-0": noCard("smi-w2-0"), "smi-gpu-1.lab-1": noCard("smi-gpu-1.lab-1")}))
	s.ok(s.step("gpu-smoke"))
	if calls := s.calls(); strings.Contains(calls[:strings.LastIndex(calls, "logs")], "sleep") {
		t.Errorf("cards that others have are waited for:\n%s", calls)
	}
	logs := s.read(stepDir + "/out/logs")
	table, err := smoke.CheckProof(gpuNodes, logs)
	if err != nil {
		t.Fatalf("%v in\n%s", err, logs)
	}
	for i, want := range []string{"held by lab/two, not tried", "smi-gpu-1.lab-0", "held by default/train-0, not tried"} {
		if got := table.Rows[i].By(); got != want {
			t.Errorf("card %s: %s, want %s", table.Rows[i].UUID, got, want)
		}
	}
	lacks(t, logs, "believes-it") // or a pod says who has cards
	s.gone()

	// One of two is held, the other is nobody's.
	s.pods(1, smokePods(map[string]object{"smi-gpu-1.lab-0": noCard("smi-gpu-1.lab-0"), "smi-gpu-1.lab-1": noCard("smi-gpu-1.lab-1")}))
	s.fails(s.step("gpu-smoke"), 1, "SMOKE_FAILED")
	s.gone()
}

// holder is a pod with a container for each of these limits.
func holder(namespace, name, node string, limits ...string) object {
	var list []any
	for _, l := range limits {
		list = append(list, object{"resources": object{"limits": object{l: "1"}}})
	}
	spec := object{"containers": append(list, object{"name": "no limits"})}
	if node != "" {
		spec["nodeName"] = node
	}
	return object{"metadata": object{"namespace": namespace, "name": name}, "spec": spec}
}

// A pull that takes long hinders nothing, and a pod that waits for it does not hide one that never will run.
func TestSmokeIsPatient(t *testing.T) {
	t.Parallel()
	s := smokeHost(t)
	s.allLooked()
	pulling := func(job string) object {
		return smokePod(job, "Pending", containerState("waiting", object{"reason": "ContainerCreating"}))
	}
	s.pods(1, smokePods(map[string]object{"smi-w2-0": pulling("smi-w2-0")}))
	s.pods(60, smokePods(nil))
	s.write("events.smi-w2-0-x7x7x", "Warning FailedMount: \"once\"\nNormal Pulling: \"Pulling image\"\n")
	s.ok(s.step("gpu-smoke"))

	s.pods(1, smokePods(map[string]object{"smi-gpu-1.lab-0": pulling("smi-gpu-1.lab-0"),
		"smi-w2-0": smokePod("smi-w2-0", "Pending", conditions(object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no such node"}))}))
	s.remove("pods.60")
	s.fails(s.step("gpu-smoke"), 1, "SMOKE_FAILED")
	s.holds(stepDir+"/failure", "SMOKE_FAILED\tJob smi-w2-0: Unschedulable: no such node\n")
	s.pods(1, smokePods(map[string]object{"smi-gpu-1.lab-0": pulling("smi-gpu-1.lab-0"),
		"smi-w2-0": smokePod("smi-w2-0", "Failed", object{"reason": "Evicted"})}))
	s.calls()
	s.fails(s.step("gpu-smoke"), 1, "SMOKE_FAILED")
	s.holds(stepDir+"/failure", "SMOKE_FAILED\tJob smi-w2-0: Evicted\n")
	lacks(t, s.calls(), "sleep")
	s.gone()
}

// A pod that is being deleted holds its card no longer: its successor is waited for.
func TestSmokeOfAPodThatGoes(t *testing.T) {
	t.Parallel()
	s := smokeHost(t)
	s.allLooked()
	going := smokePod("smi-w2-0", "Running", ready)
	going["metadata"].(object)["deletionTimestamp"] = "2026-11-21T12:00:00Z"
	s.pods(1, smokePods(map[string]object{"smi-w2-0": going}))
	s.pods(2, smokePods(nil))
	r := s.ok(s.step("gpu-smoke"))
	contains(t, r.output, "6 of 7 pods hold what they asked for; smi-w2-0: no pod yet")
}

// A kubelet that is too busy once to tell a log does not fail the proof.
func TestSmokeOfALogThatIsLate(t *testing.T) {
	t.Parallel()
	s := smokeHost(t)
	s.allLooked()
	s.pods(1, smokePods(nil))
	s.must(os.Rename(s.path("logs/plain-w2-x7x7x"), s.path("late")))
	s.stub("sleep", "#!/bin/sh\n[ ! -e /late ] || mv /late /logs/plain-w2-x7x7x\n")
	s.ok(s.step("gpu-smoke"))
	if got := s.read(stepDir + "/out/logs"); strings.Count(got, "plain-w2\tkgpu-status 127\n") != 1 {
		t.Errorf("logs:\n%s", got)
	}
}

func TestSmokeLeavesNothing(t *testing.T) {
	t.Parallel()
	s := smokeHost(t)
	s.pods(1, smokePods(nil))
	s.fails(s.step("gpu-smoke"), 1, "SMOKE_FAILED")
	if got := s.read(stepDir + "/failure"); !strings.HasPrefix(got, "SMOKE_FAILED\tthe log of Job smi-gpu-1.lab-0 cannot be read: ") || !strings.Contains(got, "container is waiting to start") {
		t.Errorf("failure %q", got)
	}
	s.gone()

	s.write("refuses", "Error from server: exceeded quota\n")
	s.fails(s.step("gpu-smoke"), 75, "SMOKE_FAILED")
	s.holds(stepDir+"/failure", "SMOKE_FAILED\tthe API server refuses the Jobs: Error from server: exceeded quota\n")
	s.gone()
	s.remove("refuses")

	// As timeout(1) ends a step: the script is the process that has no such parent.
	s.write("pods.1", `pid=$PPID
while parent=$(ps -o ppid= -p $pid) && grep -q script.sh /proc/$((parent))/cmdline; do pid=$((parent)); done
echo "$pid" >/tmp/pid; kill -TERM "$pid"
`)
	s.must(os.Chmod(s.path("pods.1"), 0o755))
	if r := s.step("gpu-smoke"); r.status == 0 || r.failure != "" {
		t.Errorf("status %d, failure %q", r.status, r.failure)
	}
	s.gone()

	s.write("namespace", "of a former run")
	s.write("stuck", "")
	s.write(stepDir+"/timeout", "0")
	s.fails(s.step("gpu-smoke"), 1, "SMOKE_FAILED")
	if calls := s.calls(); strings.Contains(calls[strings.LastIndex(calls, "/readyz"):], "create") {
		t.Errorf("a second run beside the first:\n%s", calls)
	}
}

// What the pods run tells what nvidia-smi says and how it ends, and the same of the program that computes where there is a card. A
// pod is ready only then.
func TestSmokeLooks(t *testing.T) {
	t.Parallel()
	s := smokeHost(t)
	var job struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct{ Command []string }
				}
			}
		}
	}
	for dec := yaml.NewDecoder(strings.NewReader(s.read(stepDir + "/values/manifest"))); len(job.Spec.Template.Spec.Containers) == 0; {
		s.must(dec.Decode(&job))
	}
	command := job.Spec.Template.Spec.Containers[0].Command
	if len(command) != 5 || command[0] != "sh" || command[1] != "-c" || command[4] != "/cuda-samples/vectorAdd" {
		t.Fatalf("command %q", command)
	}
	s.write("look", command[2])
	s.stub("sleep", "#!/bin/sh\necho held\nls /tmp/seen\n")
	const card = "echo 'GPU 0: Tesla T4 (UUID: GPU-b0)'"
	for _, c := range []struct{ program, sample, want, did string }{
		{card, "echo 'Test PASSED'; echo Done", "GPU 0: Tesla T4 (UUID: GPU-b0)\nkgpu-status 0\n", "\nkgpu-sample 0\nkgpu-said Test PASSED\nkgpu-said Done"},
		{card, "echo kgpu-end; printf 'no kernel image' >&2; exit 1", "GPU 0: Tesla T4 (UUID: GPU-b0)\nkgpu-status 0\n", "\nkgpu-sample 1\nkgpu-said kgpu-end\nkgpu-said no kernel image"},
		{card, "[ ! -e /tmp/seen ] || echo too early", "GPU 0: Tesla T4 (UUID: GPU-b0)\nkgpu-status 0\n", "\nkgpu-sample 0\n"},
		{"[ ! -e /tmp/seen ] || echo too early; echo 'No devices found.' >&2; exit 6", "echo 'Test PASSED'", "No devices found.\nkgpu-status 6\n", ""},
	} {
		s.stub("nvidia-smi", "#!/bin/sh\n"+c.program+"\n")
		s.write("cuda-samples/vectorAdd", "#!/bin/sh\n"+c.sample+"\n")
		s.must(os.Chmod(s.path("cuda-samples/vectorAdd"), 0o755))
		os.Remove(s.path("tmp/seen"))
		r := s.ok(s.bash("exec sh /look /cuda-samples/vectorAdd"))
		if !strings.HasPrefix(r.output, c.want) || !strings.HasSuffix(r.output, c.did+"\nkgpu-end\nheld\n/tmp/seen\n") || c.did == "" && strings.Contains(r.output, "kgpu-sample") {
			t.Errorf("it printed\n%s", r.output)
		}
	}
	os.Remove(s.path("tmp/seen"))
	lacks(t, s.ok(s.bash("exec sh /look")).output, "kgpu-sample")
}
