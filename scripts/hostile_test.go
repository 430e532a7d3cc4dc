package scripts

import (
	"os"
	"strings"
	"testing"
	"text/template"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// nasty are texts that a shell, a program's options or a format would do something with.
var nasty = []string{
	"$(touch /tmp/pwned)", "`touch /tmp/pwned`", "'; touch /tmp/pwned; '", "\"; touch /tmp/pwned; \"", "a\ntouch /tmp/pwned", "x[$(touch /tmp/pwned)]",
	"--kubeconfig=/tmp/pwned", "-o/tmp/pwned", "%n%s%x", "\\n\\0", "*", "~root", "ünï", "a b", "|touch /tmp/pwned", "&touch /tmp/pwned&", "${IFS}", "",
}

// A name that a host tells of itself is no option to kubectl and no command, in whatever step it is used.
func TestNodesThatAreNoNames(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	for step, input := range map[string][]string{
		"node-delete": {"node", ""}, "node-evict": {"node", ""}, "node-drain": {"node", ""}, "node-uncordon": {"node", ""},
		"cluster-ready": {"nodes", ""}, "gpu-ready": {"nodes", " 1 nvidia.com/gpu"}, "cluster-nodes": {"nodes", "\tlabel\ta=b"},
	} {
		s.value("cards", "1")
		for _, name := range []string{"--all", "-A", "$(touch /tmp/pwned)", "a;b", "w1\\n", "W1", "w1-"} {
			s.write("tmp/calls", "")
			s.value(input[0], name+input[1])
			r := s.step(step)
			if r.status != 1 || !strings.HasPrefix(r.failure, "HOST_NAME_INVALID\t") {
				t.Errorf("%s of %q: status %d, failure %q:\n%s", step, name, r.status, r.failure, r.output)
			}
			if calls := s.calls(); calls != "" {
				t.Errorf("%s of %q called %s", step, name, calls)
			}
			os.Remove(s.path(stepDir + "/values/" + input[0]))
		}
	}
	s.value("nodes", "w1\tlabel\t--all")
	s.fails(s.step("cluster-nodes"), 1, "STEP_FAILED")
	s.absent("tmp/pwned") // or a command was run
}

// Values go through the library as they are, and run nothing.
func TestValuesThatAShellWouldRun(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	var script strings.Builder
	script.WriteString(`value text | cmp - "$KGPU_STEP/values/text"
value_or text nothing | cmp - "$KGPU_STEP/values/text"
text=$(value text)
waiting "$text"
output copy <"$KGPU_STEP/values/text"
cmp "$KGPU_STEP/out/copy" "$KGPU_STEP/values/text"
mapfile -t list < <(value_lines text)
record test "$text" "${list[@]}"
ledger_has test "${text%%$'\n'*}" || [[ -z $text ]]
put_file /etc/kgpu-test 644 < <(value text)
cmp /etc/kgpu-test "$KGPU_STEP/values/text"
changed '/etc/kgpu-*'
ledger_forget test
rm -rf "$ledger" /etc/kgpu-test
(fail STEP_FAILED "$text") 2>/dev/null || true
`)
	for _, text := range nasty {
		s.value("text", text)
		s.ok(s.script(script.String()))
		if failure := s.read(stepDir + "/failure"); strings.Count(failure, "\n") != 1 || strings.Count(failure, "\t") != 1 {
			t.Errorf("%q makes the failure %q", text, failure)
		}
	}
	s.absent("tmp/pwned") // or a command was run
}

// A kubelet may write into its node what it likes. What it writes stays in its own line of the facts of the control plane.
func TestANodeThatLiesAboutAnother(t *testing.T) {
	t.Parallel()
	const lie = "x\tTrue\nnode\tcp1\tuid\tTrue\nkube-system\nrun=evil-1\nend=1\n"
	var out strings.Builder
	err := template.Must(template.New("").Parse(clusterTemplate(t, Facts()))).Execute(&out, object{"items": []any{object{
		"kind": "Node", "metadata": object{"name": "w1", "uid": "u", "labels": object{}, "annotations": object{"kgpu.dev/gpu-labels": lie}}, "spec": object{},
		"status": object{
			"nodeInfo":   object{"kubeletVersion": lie, "containerRuntimeVersion": lie},
			"conditions": []any{object{"type": "Ready", "status": lie}, object{"type": "NetworkUnavailable", "status": lie}},
			"addresses":  []any{object{"type": "InternalIP", "address": lie}},
		},
	}}})
	must(t, err)
	text := "kgpu-facts=1\nnow=1.0\ncpus=1\nmemory-kib=1\nledger=0\ncontrol-plane=1\napi=1\n"
	for line := range strings.Lines(out.String()) {
		if strings.TrimSpace(line) != "" {
			text += "cluster=" + line
		}
	}
	h, err := facts.Parse([]byte(text + "end=1\n"))
	must(t, err)
	if c := h.Cluster; len(c.Nodes) != 1 || c.Nodes[0].Name != "w1" || c.Nodes[0].Ready || h.Run != nil {
		t.Errorf("%+v, run %+v", c.Nodes, h.Run)
	}
}

// So does what it writes about its pods.
func TestAPodThatSpeaksForAnother(t *testing.T) {
	t.Parallel()
	const lie = "Evicted\nother --kubeconfig=/x Failed"
	var out strings.Builder
	err := template.Must(template.New("").Parse(quoted(t, Lib(), "pods_template"))).Execute(&out, object{"items": []any{object{
		"metadata": object{"name": "p", "labels": object{"kgpu.dev/smoke": "job-1"}},
		"status": object{
			"phase": lie, "reason": lie, "message": lie,
			"conditions":        []any{object{"type": "PodScheduled", "status": "False", "reason": lie, "message": lie}},
			"containerStatuses": []any{object{"state": object{"waiting": object{"reason": lie, "message": lie}}}, object{"state": object{"terminated": object{"reason": lie, "message": lie, "exitCode": 1}}}},
		},
	}}})
	must(t, err)
	if got := strings.TrimSpace(out.String()); strings.Contains(got, "\n") || !strings.HasPrefix(got, "job-1 p ") {
		t.Errorf("%q", got)
	}
}
