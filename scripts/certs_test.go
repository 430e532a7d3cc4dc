package scripts

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// processes stand in for those of static pods: a file for each has what tells it from others, and the kubelet starts one anew that
// was ended. A step may die at its n-th sync, and kubeadm may let it die.
const processes = `
echo $$ >/tmp/step-pid
static_pod() { [[ ! -e /pods/$1 ]] || cat "/pods/$1"; }
` + living + `
reached=0
may_die() {
  reached=$((reached + 1))
  [[ ! -e /dies-at || $reached != "$(</dies-at)" ]] || builtin kill -KILL $$
}
kill() {
  local pod n
  may_die
  read -r _ n _ <<<"$(grep -hE "^boot $1 " /pods/*)"
  pod=$(grep -lE "^boot $1 " /pods/*)
  echo "restart ${pod##*/}" >>/tmp/calls
  echo "boot $((n + 100)) 1" >"$pod"
  cp /etc/kubernetes/pki/apiserver.crt "/read-by/${pod##*/}"
  may_die
}
pause() { :; }
sync() { may_die; }
`

// living stands in for the look at processes, in the facts, too.
const living = `process_lives() { grep -qxF "$1" /pods/* 2>/dev/null; }`

// staticPods are the pods whose processes read certificates, in the order in which they begin anew.
var staticPods = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// renewedFiles are what kubeadm renews, and the files of authorities, which stay.
var renewedFiles = []string{
	"pki/apiserver.crt", "pki/apiserver.key", "pki/apiserver-etcd-client.crt", "pki/etcd/server.crt", "pki/front-proxy-client.crt",
	"admin.conf", "controller-manager.conf", "scheduler.conf",
}

// certifiedPlane is a control plane whose certificates are old. kubeadm renews unless /external is there, fails when /kubeadm-fails is,
// and when /kubeadm-dies is there it leaves half a file and the step is killed.
func certifiedPlane(t *testing.T) *sandbox {
	t.Helper()
	s := clusterHost(t)
	s.library(processes)
	s.stub("kubeadm", `#!/bin/bash
echo "kubeadm ${*:1:4}" >>/tmp/calls
cat /etc/kubernetes/pki/apiserver.crt >>/tmp/seen 2>/dev/null
cd /etc/kubernetes
if [[ -e /kubeadm-dies ]]; then rm /kubeadm-dies; : >pki/apiserver.crt; echo new >pki/apiserver.key; kill -KILL "$(</tmp/step-pid)"; exit 1; fi
if [[ -e /kubeadm-fails ]]; then echo new >pki/apiserver.crt; cat /kubeadm-fails; exit 1; fi
if [[ -e /external ]]; then echo '[renew] Detected external CA'; exit 0; fi
case "$*" in
"certs renew all "*) for file in `+strings.Join(renewedFiles, " ")+`; do echo "new $(wc -l </tmp/calls)" >"$file"; done ;;
"init phase certs apiserver "*) [[ ! -e pki/apiserver.crt ]] || exit 1; echo 'new with names' >pki/apiserver.crt; echo new >pki/apiserver.key ;;
"init phase kubeconfig kubelet "*) echo 'made here' >"${*: -1}/kubelet.conf" ;;
"init phase kubelet-finalize all "*) echo 'finalized' >kubelet.conf ;;
esac
`)
	s.write("etc/kubernetes/pki/ca.crt", authority(t))
	for _, file := range append([]string{"pki/ca.key"}, renewedFiles...) {
		s.write("etc/kubernetes/"+file, "old\n")
	}
	for i, pod := range staticPods {
		s.write("pods/"+pod, fmt.Sprintf("boot %d 1\n", i+1))
		s.write("read-by/"+pod, "old\n")
	}
	s.write("var/units/kubelet.service", "loaded,active,enabled\n")
	s.value("renew", "all\n")
	s.value("restart", "")
	return s
}

// allRenewed wants everything new, no copy left, and nobody owed a restart.
func (s *sandbox) allRenewed() {
	s.t.Helper()
	for _, file := range renewedFiles {
		if got := s.read("etc/kubernetes/" + file); !strings.HasPrefix(got, "new") {
			s.t.Errorf("%s is %q", file, got)
		}
	}
	s.holds("etc/kubernetes/pki/ca.key", "old\n")
	s.absent("var/lib/kgpu/certificates", "var/lib/kgpu/certificates.new", "var/lib/kgpu/certificates.old")
	for _, pod := range staticPods {
		if owed, err := os.ReadFile(s.path("var/lib/kgpu/stale-pods/" + pod)); err == nil && string(owed) == s.read("pods/"+pod) {
			s.t.Errorf("%s is owed a restart", pod)
		}
		if got, want := s.read("read-by/"+pod), s.read("etc/kubernetes/pki/apiserver.crt"); got != want {
			s.t.Errorf("%s runs on with what is %q, and %q is there", pod, got, want)
		}
	}
}

func TestRenewCertificates(t *testing.T) {
	t.Parallel()
	s := certifiedPlane(t)
	s.ok(s.step("certs-renew"))
	s.allRenewed()
	var did []string
	for line := range strings.Lines(s.calls()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "kubectl") {
			did = append(did, line)
		}
	}
	want := []string{"kubeadm certs renew all --config", "restart etcd", "restart kube-apiserver", "restart kube-controller-manager", "restart kube-scheduler"}
	if !slices.Equal(did, want) {
		t.Errorf("it did %q", did)
	}
}

// The API server's certificate gets other names only when it is made anew; only that one restarts then.
func TestRenewNames(t *testing.T) {
	t.Parallel()
	s := certifiedPlane(t)
	s.value("renew", "apiserver\n")
	s.ok(s.step("certs-renew"))
	s.holds("etc/kubernetes/pki/apiserver.crt", "new with names\n")
	s.holds("etc/kubernetes/scheduler.conf", "old\n")
	if calls := s.calls(); !strings.Contains(calls, "restart kube-apiserver\n") || strings.Contains(calls, "restart etcd") {
		t.Errorf("calls:\n%s", calls)
	}
}

// Where etcd has no majority before other control planes have new certificates, too, nobody waits for this one's API server.
func TestRenewWithoutAMajority(t *testing.T) {
	t.Parallel()
	s := certifiedPlane(t)
	s.write("api-down", "")
	s.value("alone", "yes")
	s.ok(s.step("certs-renew"))
	s.allRenewed()
}

// What kubeadm cannot renew stays as it was, whatever it had begun.
func TestRenewThatFails(t *testing.T) {
	t.Parallel()
	for file, says := range map[string]string{"kubeadm-fails": "error execution phase: no key", "external": "Detected external CA"} {
		s := certifiedPlane(t)
		s.write(file, says+"\n")
		before := s.snapshot()
		r := s.step("certs-renew")
		s.fails(r, 1, "CERTIFICATE_NOT_RENEWED")
		if !strings.Contains(r.failure, says) {
			t.Errorf("%s: %s", file, r.failure)
		}
		s.same(before)
		s.absent("var/lib/kgpu/certificates")
		if calls := s.calls(); strings.Contains(calls, "restart") {
			t.Errorf("calls:\n%s", calls)
		}
	}
}

// nextRun is what the next run makes of what a step that was cut off left: kgpu certs renew, which renews all in any case, or kgpu up,
// which does what facts tell of. It fails where facts tell of nothing and something is half done.
func (s *sandbox) nextRun(asked bool) {
	s.t.Helper()
	s.run("rm", "-rf", s.path(stepDir+"/renewed"), s.path(stepDir+"/owed"), s.path("dies-at"))
	h := &facts.Host{RenewalBegun: true}
	if !asked {
		const stale = "for path in /var/lib/kgpu/stale-pods/"
		h = s.factsBy(strings.Replace(string(Facts()), stale, living+"\n"+stale, 1))
	}
	s.value("renew", "")
	if h.RenewalBegun {
		s.value("renew", "all\n")
	}
	switch {
	case h.RenewalBegun || len(h.StalePods) > 0:
		s.ok(s.step("certs-renew"))
	case s.read("etc/kubernetes/admin.conf") == "old\n":
		s.notRenewed()
		return
	}
	s.allRenewed()
}

// notRenewed wants that nothing was renewed and nothing restarted.
func (s *sandbox) notRenewed() {
	s.t.Helper()
	for _, file := range renewedFiles {
		s.holds("etc/kubernetes/"+file, "old\n")
	}
	for _, pod := range staticPods {
		s.holds("read-by/"+pod, "old\n")
	}
}

// A kubeadm that dies leaves half a certificate: the next run puts back what was there, and renews that.
func TestRenewThatIsKilledInKubeadm(t *testing.T) {
	t.Parallel()
	s := certifiedPlane(t)
	s.write("kubeadm-dies", "")
	if r := s.step("certs-renew"); r.status == 0 {
		t.Fatalf("it was not killed:\n%s", r.output)
	}
	if h := s.facts(); !h.RenewalBegun || s.read("etc/kubernetes/pki/apiserver.crt") != "" {
		t.Fatalf("begun: %t", h.RenewalBegun)
	}
	s.nextRun(false)
	s.holds("tmp/seen", "old\nold\n")
}

// Killed at any place where it says that something is durable, and before and after it ends a process, the next run brings it to its
// end, whichever command that is, or finds that nothing was begun: no process runs on with what was replaced.
func TestRenewThatIsKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		t.Run(fmt.Sprintf("asked again %t", asked), func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				s := certifiedPlane(t)
				s.write("dies-at", fmt.Sprint(n))
				r := s.step("certs-renew")
				if r.status == 0 {
					if n < 20 {
						t.Errorf("there are %d places only", n-1)
					}
					return
				}
				s.nextRun(asked)
				if t.Failed() {
					t.Fatalf("after a kill at place %d: %s", n, r.output)
				}
			}
		})
	}
}

// What the plan says is owed is done without a renewal.
func TestRenewThatOwesARestart(t *testing.T) {
	t.Parallel()
	s := certifiedPlane(t)
	s.value("renew", "")
	s.value("restart", "kube-apiserver\n")
	s.ok(s.step("certs-renew"))
	if calls := s.calls(); strings.Contains(calls, "kubeadm") || !strings.Contains(calls, "restart kube-apiserver") || strings.Contains(calls, "restart etcd") {
		t.Errorf("calls:\n%s", calls)
	}
	s.holds("etc/kubernetes/admin.conf", "old\n")
}

// A static pod is found by its process, and another one of the same number is another.
func TestStaticPod(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/kubernetes/scheduler.conf", "")
	s.prints(`
(exec -a kube-scheduler tail -f /dev/null /etc/kubernetes/scheduler.conf >/dev/null) &
pod=$!
disown
until [[ -n $(static_pod kube-scheduler) ]]; do sleep 0.05; done
is=$(static_pod kube-scheduler)
process_lives "$is" && echo lives
[[ -n $(static_pod etcd) ]] || echo 'no etcd'
! process_lives "${is}0" && echo 'not another'
kill -KILL $pod
while process_lives "$is"; do sleep 0.05; done
echo gone
process_lives 'boot ../self 1' || echo 'no number'
`, "lives\nno etcd\nnot another\ngone\nno number\n")
}

// sleeper is a worker whose kubelet's certificate has ended. systemctl restart gives it another, if there is a token.
func sleeper(t *testing.T) *sandbox {
	t.Helper()
	s := joined(t)
	s.stub("openssl", `#!/bin/bash
[[ $(<"${*: -1}") == new ]]
`)
	s.stub("systemctl-real", readFile(t, "testdata/systemctl"))
	s.stub("systemctl", `#!/bin/bash
if [[ "$*" == "restart -- kubelet.service" && -e /etc/kubernetes/bootstrap-kubelet.conf ]]; then
  cp /etc/kubernetes/bootstrap-kubelet.conf /tmp/asked
  stat -c %a /etc/kubernetes/bootstrap-kubelet.conf >/tmp/mode
  [[ -e /refused ]] || echo new >/var/lib/kubelet/pki/kubelet-client-current.pem
fi
exec systemctl-real "$@"
`)
	s.write("var/lib/kubelet/pki/kubelet-client-current.pem", "ended\n")
	s.value("token", "abcdef.0123456789abcdef\n")
	s.remove(strings.TrimPrefix(stepDir, "/") + "/values/kubeadm")
	return s
}

func TestKubeletComesBack(t *testing.T) {
	t.Parallel()
	s := sleeper(t)
	s.ok(s.step("certs-kubelet"))
	s.holds("tmp/mode", "600\n")
	contains(t, s.read("tmp/asked"), "    server: https://10.0.0.10:6443\n", "    token: abcdef.0123456789abcdef\n")
	s.absent("etc/kubernetes/bootstrap-kubelet.conf")
	if calls := s.calls(); strings.Contains(calls, "kubeadm") || strings.Contains(calls, "abcdef") {
		t.Errorf("calls:\n%s", calls)
	}
	if h := s.facts(); h.Kubelet == nil || h.Recorded == nil || !h.Recorded.Done {
		t.Errorf("it is no member any more: %+v", h.Recorded)
	}
}

// Killed after it got its certificate, the token that is left goes without another restart.
func TestKubeletThatIsBack(t *testing.T) {
	t.Parallel()
	s := sleeper(t)
	s.write("var/lib/kubelet/pki/kubelet-client-current.pem", "new\n")
	s.write("etc/kubernetes/bootstrap-kubelet.conf", "a token")
	s.ok(s.step("certs-kubelet"))
	s.absent("etc/kubernetes/bootstrap-kubelet.conf", "tmp/asked")
}

func TestKubeletThatGetsNone(t *testing.T) {
	t.Parallel()
	s := sleeper(t)
	s.write("refused", "")
	s.write(stepDir+"/timeout", "17")
	s.fails(s.step("certs-kubelet"), 1, "KUBELET_CERTIFICATE_ENDED")
}

// On a control plane kubeadm makes the kubelet's certificate, with the authority's key.
func TestKubeletOfAControlPlane(t *testing.T) {
	t.Parallel()
	s := certifiedPlane(t)
	s.stub("openssl", "#!/bin/bash\nexit 0\n")
	s.write("etc/kubernetes/kubelet.conf", "old\n")
	s.ok(s.step("certs-kubelet"))
	s.holds("etc/kubernetes/kubelet.conf", "finalized\n")
	contains(t, s.calls(), "kubeadm init phase kubeconfig", "kubeadm init phase kubelet-finalize")
	contains(t, s.read("var/units.log"), "restart -- kubelet.service")
}

// Facts have the certificates of all who have some, never their keys; what is no certificate is told, not hidden.
func TestFactsOfCertificates(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/kubernetes/pki/apiserver.crt", authority(t))
	s.write("etc/kubernetes/pki/ca.key", "the-key")
	s.write("etc/kubernetes/pki/etcd/ca.crt", "-----BEGIN CERTIFICATE-----\nbm90\n-----END CERTIFICATE-----\n")
	s.write("var/lib/kubelet/pki/kubelet-client-current.pem", "-----BEGIN EC PRIVATE KEY-----\nthe-key\n-----END EC PRIVATE KEY-----\n"+authority(t))
	s.write("var/lib/kubelet/pki/kubelet.crt", authority(t))
	before := s.snapshot()
	r := s.ok(s.bash(string(Facts())))
	s.same(before)
	if strings.Contains(r.output, "the-key") {
		t.Error("a key is told")
	}
	h, err := facts.Parse([]byte(r.output))
	must(t, err)
	var got []string
	for _, c := range h.Certificates {
		got = append(got, fmt.Sprintf("%s %t", c.Path, c.Ends.IsZero()))
	}
	want := []string{
		"/etc/kubernetes/pki/apiserver.crt false", "/etc/kubernetes/pki/etcd/ca.crt true",
		"/var/lib/kubelet/pki/kubelet-client-current.pem false", "/var/lib/kubelet/pki/kubelet.crt false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("certificates: %q", got)
	}
}
