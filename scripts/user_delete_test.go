package scripts

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/template"
)

// bindingsHost is a sandbox whose cluster has bindings: a line in /bindings for each subject, as the step's own template prints
// them. A binding without subjects is none. In the namespaces that /made lists, which kgpu made, joe has kgpu's rights while
// /given is there; so has ann where /anns says so. joe may what /finalizer says as long as a binding leads to them.
func bindingsHost(t *testing.T, lines ...string) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.stub("sleep", "#!/bin/sh\n")
	s.stub("kubectl", `#!/bin/bash
while [[ $1 == --* ]]; do case $1 in --request-timeout=*) shift ;; *) shift 2 ;; esac; done
echo "$*" >>/calls
mine='-l kgpu.dev/user=joe,app.kubernetes.io/managed-by=kgpu'
case "$*" in
"get --raw /readyz") echo -n ok ;;
"get rolebindings --all-namespaces $mine -o go-template="*annotations*) [[ ! -e /given ]] || echo 'Dec  1 10:00:00 2026 GMT' ;;
"get rolebindings --all-namespaces $mine "*) [[ ! -e /given ]] || cat /made ;;
"get rolebindings --all-namespaces -l kgpu.dev/user,kgpu.dev/user!=joe,"*) cat /anns ;;
"get rolebindings --all-namespaces -o "*) grep -v '^""' /bindings ;;
"get clusterrolebindings -o "*) grep '^""' /bindings ;;
"-n "*" get rolebindings $mine -o name"|"get clusterrolebindings $mine -o name") [[ ! -e /given ]] || echo there ;;
"get namespaces -l app.kubernetes.io/managed-by=kgpu "*) cat /made ;;
"-n "*" get pods -o "*) echo "$2/train-1" ;;
"-n "*" patch "*'{"subjects":null} -- '*)
  name=$(printf %s "${@: -1}" | od -An -v -tx1 | tr -d ' \n') ns=$2
  awk -F'\t' -v ns="\"$ns\"" -v name="$name" '$1 != ns || $2 != name' /bindings >/bindings.new; mv /bindings.new /bindings ;;
"auth can-i --list --no-headers -n "*" --as kgpu:nobody "*) echo 'selfsubjectreviews   []   []   [create]' ;;
"auth can-i --list --no-headers -n "*" --as joe --as-group kgpu:users --as-group system:authenticated")
  echo 'selfsubjectreviews []     []   [create]'
  if grep -E "^(\"\"|\"$6\")	.*\"joe\"$" /bindings >&2; then echo 'pods   []   []   [get list]'; fi ;;
"delete clusterrolebindings $mine") rm -f /given ;;
esac
exit 0
`)
	s.value("user", "joe")
	s.write("given", "")
	s.write("made", "lab\n")
	s.write("anns", "")
	s.write("bindings", strings.Join(lines, ""))
	return s
}

// subject is a line of /bindings.
func subject(namespace, name, kind, of, whom string) string {
	return fmt.Sprintf("%q\t%x\t%q\t%q\t%q\n", namespace, name, kind, of, whom)
}

func (s *sandbox) said(name string) string {
	s.t.Helper()
	return strings.Join(strings.Fields(s.read(stepDir+"/out/"+name)), " ")
}

// What a user gave themselves in a namespace of their own goes with what kgpu gave, and what was given to them alone anywhere.
func TestUserDelete(t *testing.T) {
	t.Parallel()
	const odd = "-a \"b\"\\\n"
	s := bindingsHost(t,
		subject("lab", odd, "User", "", "joe"), subject("lab", "helpers", "ServiceAccount", "lab", "helper"), subject("lab", "default", "ServiceAccount", "lab", "default"),
		subject("lab", "all", "Group", "", "system:authenticated"), subject("lab", "mixed", "User", "", "ann"), subject("lab", "mixed", "User", "", "joe"),
		subject("lab", "anns", "User", "", "ann"), subject("ops", "joes", "User", "", "joe"), subject("", "joes", "User", "", "joe"),
		subject("ops", "authenticated", "Group", "", "system:authenticated"), subject("", "helper", "ServiceAccount", "lab", "helper"),
	)
	s.ok(s.step("user-delete"))
	want := subject("lab", "anns", "User", "", "ann") + subject("ops", "authenticated", "Group", "", "system:authenticated")
	s.holds("bindings", want)
	for output, want := range map[string]string{
		"found": "yes", "namespaces": "lab ops", "may": "", "bindings": "", "accounts": "", "pods": "lab/train-1", "end": "Dec 1 10:00:00 2026 GMT",
	} {
		if got := s.said(output); got != want {
			t.Errorf("%s: %q, want %q", output, got, want)
		}
	}
	calls := s.read("calls")
	disarmed, swept := strings.Index(calls, `-n lab patch rolebinding --type=merge -p {"subjects":null} kgpu-user-joe`), strings.Index(calls, "-n lab delete serviceaccount --ignore-not-found --wait=false -- helper\n")
	ended, last := strings.Index(calls, "-n lab delete rolebindings -l kgpu.dev/user=joe,"), strings.Index(calls, "\ndelete clusterrolebindings -l kgpu.dev/user=joe,")
	if order := []int{disarmed, swept, ended, last}; disarmed < 0 || !slices.IsSorted(order) || strings.Contains(calls, "-- default\n") != strings.Contains(calls, "rolebinding --ignore-not-found --wait=false -- default\n") {
		t.Errorf("%v of\n%s", order, calls)
	}
	s.ok(s.step("user-delete"))
	if got := s.said("found"); got != "" {
		t.Errorf("of nobody it found %q", got)
	}
}

// What is for others, too, stays and is told, with what the user may by it.
func TestUserDeleteTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	team := subject("ops", "team", "User", "", "ann") + subject("ops", "team", "User", "", "joe")
	users := subject("", "every user", "Group", "", "kgpu:users")
	helper := subject("lab", "helper", "ServiceAccount", "lab", "helper")
	s := bindingsHost(t, team, users, helper)
	s.write("anns", "lab\n")
	s.ok(s.step("user-delete"))
	s.holds("bindings", team+users+helper)
	for output, want := range map[string]string{
		"may": "ops pods [] [] [get list]", "bindings": `-n ops rolebinding team clusterrolebinding every\ user`, "accounts": "lab/helper", "pods": "", "namespaces": "lab ops",
	} {
		if got := s.said(output); got != want {
			t.Errorf("%s: %q, want %q", output, got, want)
		}
	}
}

// The template's lines are what the step reads, whatever the names are.
func TestSubjectsOfBindings(t *testing.T) {
	t.Parallel()
	step := stepText(t, "user-delete")
	_, text, _ := strings.Cut(string(step), "\nsubjects_template='")
	text, _, _ = strings.Cut(text, "'\n")
	var out strings.Builder
	items := map[string]any{"items": []any{
		map[string]any{"metadata": map[string]any{"name": "a\n\tb\"", "namespace": "lab"}, "subjects": []any{map[string]any{"kind": "User", "name": "x\t\"\n\"joe"}}},
		map[string]any{"metadata": map[string]any{"name": "none"}},
		map[string]any{"metadata": map[string]any{"name": "c"}, "subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "d", "namespace": "e"}}},
	}}
	must(t, template.Must(template.New("").Parse(text)).Execute(&out, items))
	want := "\"lab\"\t" + hex.EncodeToString([]byte("a\n\tb\"")) + "\t\"User\"\t\"\"\t\"x\\t\\\"\\n\\\"joe\"\n" + subject("", "c", "ServiceAccount", "e", "d")
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
