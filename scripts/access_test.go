package scripts

import (
	"encoding/base64"
	"strings"
	"testing"
)

// userHost is a sandbox whose kubectl signs what it is asked to. Its objects are files: /namespace, /role, /request.
func userHost(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.stub("sleep", "#!/bin/sh\n")
	s.stub("openssl", "#!/bin/sh\necho 'notAfter=Dec  1 10:00:00 2026 GMT'\n")
	s.stub("kubectl", `#!/bin/bash
while [[ $1 == --* ]]; do case $1 in --request-timeout=*) shift ;; *) shift 2 ;; esac; done
echo "$*" >>/calls
case "$*" in
"get --raw /readyz") echo -n ok ;;
"get namespace lab --ignore-not-found -o name") if [[ -e /namespace ]]; then echo namespace/lab; fi ;;
"get namespace lab -o go-template="*managed-by*) [[ -e /foreign ]] || echo -n kgpu ;;
"get namespace lab -o go-template="*) echo -n baseline ;;
"get nodes -o go-template="*) printf '%s\n' cpu nvidia.com/mig-1g.5gb 'nvidia.com/x","a' nvidia.com/gpu nvidia.com/gpu ;;
"-n lab get resourcequota kgpu-gpus "*) if [[ -e /quota ]]; then echo there; fi ;;
"-n lab create quota kgpu-gpus "*) : >/quota ;;
"-n lab patch resourcequota kgpu-gpus --type=merge -p "*) echo "${@: -1}" >/quota ;;
"apply --server-side "*/limits) cp "${@: -1}" /limits ;;
"create -f "*/namespaceObject) cp "$3" /namespace ;;
"-n lab get rolebinding kgpu-user-joe --ignore-not-found "*) if [[ -e /role ]]; then cat /role; fi ;;
"apply --server-side "*) if [[ -e /refuses ]]; then cat /refuses >&2; exit 1; fi; cp "${@: -1}" /applied ;;
"delete certificatesigningrequest kgpu-user-joe --ignore-not-found") rm -f /request ;;
"create -f "*/request) [[ ! -e /request ]] || exit 1; cp "$3" /request ;;
"certificate approve kgpu-user-joe") : >/approved ;;
"get certificatesigningrequest kgpu-user-joe "*) if [[ -e /denies ]]; then cat /denies; elif [[ -e /asked ]]; then echo "yes $(printf THE-CERTIFICATE | base64)"; else : >/asked; fi ;;
esac
`)
	for name, value := range map[string]string{
		"user": "joe", "namespace": "lab", "role": "edit", "namespaceObject": "the namespace\n", "manifest": "the rights\n", "request": "the request\n",
	} {
		s.value(name, value)
	}
	return s
}

func TestUserCreate(t *testing.T) {
	t.Parallel()
	s := userHost(t)
	s.write("request", "left by another run\n")
	s.ok(s.step("user-create"))
	for path, want := range map[string]string{
		"namespace": "the namespace\n", "applied": "the rights\n", stepDir + "/out/certificate": "THE-CERTIFICATE", stepDir + "/out/enforced": "baseline",
	} {
		if got := s.read(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	calls := s.read("calls")
	if !s.exists("approved") || s.exists("request") || strings.Contains(calls, "delete rolebinding") ||
		!strings.Contains(calls, "annotate --overwrite rolebinding kgpu-user-joe kgpu.dev/certificate-end=Dec  1 10:00:00 2026 GMT\n") {
		t.Errorf("calls:\n%s", calls)
	}

	// Again, with another role: the namespace stays as it is, what leads to the former role goes.
	s.write("role", "view")
	s.write("namespace", "somebody's\n")
	s.ok(s.step("user-create"))
	if s.read("namespace") != "somebody's\n" || !strings.Contains(s.read("calls"), "-n lab delete rolebinding kgpu-user-joe\n") {
		t.Errorf("calls:\n%s", s.read("calls"))
	}

	s.write("denies", "no Denied: Policy not you")
	if r := s.step("user-create"); r.status != 1 || r.failure != "USER_REFUSED\tthe certificate is refused: Denied: Policy not you" {
		t.Errorf("%+v", r)
	}
	s.write("refuses", "no such role")
	if r := s.step("user-create"); r.status != 75 || !strings.HasPrefix(r.failure, "USER_REFUSED\t") || !strings.Contains(r.failure, "no such role") {
		t.Errorf("%+v", r)
	}
}

// What pods in the namespace of a user may have: cards where somebody said how many, no priority of the system's where kgpu made it.
func TestUserIsLimited(t *testing.T) {
	t.Parallel()
	s := userHost(t)
	s.value("limits", "the limits\n")
	s.write("foreign", "")
	s.ok(s.step("user-create"))
	s.absent("limits", "quota") // or a namespace of somebody else, or one without a limit, got one
	s.remove("foreign")
	s.value("gpus", "2")
	for range 2 {
		s.ok(s.step("user-create"))
		s.holds("limits", "the limits\n")
		if got, want := s.read("quota"), `{"spec":{"hard":{"requests.nvidia.com/gpu":2,"requests.nvidia.com/mig-1g.5gb":2}}}`+"\n"; got != want {
			t.Errorf("the quota is %s", got)
		}
	}
	if calls := s.read("calls"); strings.Count(calls, "create quota") != 1 {
		t.Errorf("calls:\n%s", calls)
	}
}

// dashboardHost is a sandbox whose Deployment and pods are those of the files /deployment.1, /pods.1 and so on.
func dashboardHost(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.stub("sleep", "#!/bin/sh\n")
	s.stub("kubectl", `#!/bin/bash
while [[ $1 == --* ]]; do case $1 in --request-timeout=*) shift ;; *) shift 2 ;; esac; done
if [[ $1 == -n ]]; then [[ $2 == kgpu-dashboard ]] || exit 1; shift 2; fi
echo "$1 $2 $3 $4" >>/calls
round() {
  local n=$(($(cat "/tmp/$1" 2>/dev/null || echo 0) + 1)); echo $n >"/tmp/$1"
  while [[ ! -e /$1.$n && $n -gt 1 ]]; do n=$((n - 1)); done
  cat "/$1.$n"
}
case "$*" in
"get --raw /readyz") echo -n ok ;;
"apply --server-side "*) cp "${@: -1}" /applied ;;
"get deployment headlamp "*) round deployment ;;
"get pods -l app.kubernetes.io/name=headlamp "*) round pods ;;
"get pods -n kgpu-dashboard -l app.kubernetes.io/name=headlamp --field-selector=status.phase=Pending "*) cat /waiting 2>/dev/null ;;
"get events "*) cat /events 2>/dev/null ;;
"logs headlamp-1 "*) echo 'no certificate' ;;
"get namespace kgpu-dashboard --ignore-not-found -o name") if [[ -e /namespace ]]; then echo namespace/kgpu-dashboard; fi ;;
"delete namespace kgpu-dashboard "*) rm -f /namespace ;;
esac
`)
	s.value("manifest", "the manifest\n")
	s.value("title", "the dashboard")
	s.value("workload", "kgpu-dashboard/deployment/headlamp")
	s.value("failed", "DASHBOARD_FAILED")
	s.value("awaited", "yes")
	s.write("deployment.1", "1 1 1 0 1")
	return s
}

func TestDashboardIsDeployed(t *testing.T) {
	t.Parallel()
	s := dashboardHost(t)
	s.write("pods.1", "")
	s.write("pods.2", "headlamp-1 headlamp-1 Pending ContainerCreating:\n")
	s.write("deployment.4", "1 1 1 1 1")
	r := s.ok(s.step("addon-apply"))
	if s.read("applied") != "the manifest\n" || !strings.Contains(r.output, "W\tthe dashboard: ContainerCreating\n") {
		t.Errorf("applied %q; output\n%s", s.read("applied"), r.output)
	}
}

func TestDashboardDoesNotCome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ pod, want string }{
		"no such image": {`headlamp-1 headlamp-1 Pending ErrImagePull: "failed to pull image ghcr.io/headlamp-k8s/headlamp:v0: not found"`, "IMAGE_UNAVAILABLE\t"},
		"no such name":  {`headlamp-1 headlamp-1 Pending ErrImagePull: "dial tcp: lookup ghcr.io on 10.0.0.2:53: no such host"`, "NET_NAME_UNRESOLVED\t"},
		"it crashes":    {`headlamp-1 headlamp-1 Running CrashLoopBackOff: "back-off restarting"`, "DASHBOARD_FAILED\tCrashLoopBackOff: back-off restarting; its log ends: no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			s := dashboardHost(t)
			s.write("pods.1", c.pod+"\n")
			if r := s.step("addon-apply"); r.status != 1 || !strings.HasPrefix(r.failure, c.want) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A pod whose image does not come says by turns that it tries and that it pauses: one cause is told once, with its reason in
// front, and the step ends with it.
func TestDashboardImage(t *testing.T) {
	t.Parallel()
	s := dashboardHost(t)
	s.write("pods.1", `headlamp-1 headlamp-1 Pending ErrImagePull: "rpc error: no such host"`+"\n")
	s.write("pods.3", `headlamp-1 headlamp-1 Pending ImagePullBackOff: "Back-off pulling image"`+"\n")
	const words = `failed to pull image "ghcr.io/x:v1": dial tcp: lookup ghcr.io on 10.0.0.2:53: no such host`
	s.write("waiting", `kgpu-dashboard headlamp-1 w1 ImagePullBackOff "`+strings.ReplaceAll(words, `"`, `\"`)+`"`+"\n")
	s.write("events", "Warning Failed: \"Error: ErrImagePull\"\n")
	r := s.step("addon-apply")
	if r.status != 1 || r.failure != "NET_NAME_UNRESOLVED\tnode w1: "+words {
		t.Errorf("%+v", r)
	}
	if n := strings.Count(r.output, "W\tthe dashboard: its image (NET_NAME_UNRESOLVED): node w1: failed"); n != 1 || strings.Count(r.output, "W\tthe dashboard") != 1 || strings.Contains(r.output, "Error: ErrImagePull") {
		t.Errorf("told %d times; output\n%s", n, r.output)
	}
}

func TestDashboardRemove(t *testing.T) {
	t.Parallel()
	s := dashboardHost(t)
	s.write("namespace", "")
	s.ok(s.step("addon-remove"))
	if s.exists("namespace") || !strings.Contains(s.read("calls"), "delete clusterrolebindings,clusterroles -l app.kubernetes.io/name=headlamp,app.kubernetes.io/managed-by=kgpu\n") {
		t.Errorf("calls:\n%s", s.read("calls"))
	}
}

// The scripts that tell how something is reached keep secrets out of arguments, and end early when kubectl does.
func TestAccessScripts(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.stub("kubectl", `#!/bin/bash
echo "$*" >>/arguments
case "$*" in
*"create token viewer --duration=8h") printf the.token ;;
*"get service headlamp "*) echo service=10.96.0.7:80 ;;
*"get service notebook "*) printf 'service=10.96.0.8:8888\nport=30061\n' ;;
*"get secret notebook "*) echo token=dG9rZW4= ;;
*"get deployment notebook "*spec.replicas*) if [[ -e /fails ]]; then exit 1; fi; if [[ -e /replicas ]]; then cat /replicas; fi ;;
*"get deployment notebook "*) echo "ready=$(</replicas)" ;;
*"scale deployment notebook --replicas="*) all=$*; echo -n "${all##*=}" >/replicas ;;
*"get pods "*len*) cat /replicas ;;
*"get pods "*) if [[ -s /waits ]]; then cat /waits; echo -n 0 >/replicas; fi ;;
esac
`)
	r := s.bash("bash -s <<'END'\n" + stubbed(Access("dashboard")) + "viewer\nEND\n")
	want := "kgpu-dashboard=1\nservice=10.96.0.7:80\ntoken=" + base64.StdEncoding.EncodeToString([]byte("the.token")) + "\nend=1\n"
	if s.ok(r); r.output != want {
		t.Errorf("the dashboard: %q, want %q", r.output, want)
	}
	notebook := func(do string) result {
		return s.bash("bash -s <<'END'\n" + stubbed(Access("notebook")) + do + "\nEND\n")
	}
	for _, c := range []struct{ replicas, do, want, scales string }{
		{"1", "start", "1", ""}, {"2", "start", "2", ""}, {"0", "start", "1", "--replicas=1\n"}, {"1", "stop", "0", "--replicas=0\n"}, {"0", "stop", "0", "--replicas=0\n"},
	} {
		s.write("replicas", c.replicas)
		s.write("arguments", "")
		want := "kgpu-notebook=1\nservice=10.96.0.8:8888\nport=30061\nready=" + c.want + "\ntoken=dG9rZW4=\npods=" + c.want + "\nwaits=\nend=1\n"
		if r := notebook(c.do); r.output != want {
			t.Errorf("%s of %s: %q, want %q", c.do, c.replicas, r.output, want)
		}
		if calls := s.read("arguments"); strings.Contains(calls, "scale") != (c.scales != "") || !strings.Contains(calls, c.scales) {
			t.Errorf("%s of %s: calls\n%s", c.do, c.replicas, calls)
		}
	}
	lacks(t, s.read("arguments"), "the.token")
	s.write("fails", "")
	if r := notebook("start"); r.status == 0 || strings.Contains(r.output, "end=1") {
		t.Errorf("%+v", r)
	}
}
