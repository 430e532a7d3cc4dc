package scripts

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// authority makes the certificate of a cluster's CA.
func authority(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	made := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: made, NotAfter: made.AddDate(10, 0, 0), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// joined is a host that kgpu has joined to a cluster, as node u1.
func joined(t *testing.T) *sandbox {
	t.Helper()
	return begun(t, "joined", func() *sandbox {
		s := clusterHost(t)
		s.write("var/units/kubelet.service", "loaded,active,enabled\n")
		s.write("ca", authority(t))
		s.ok(s.step("cluster-join"))
		s.calls()
		return s
	})
}

// untouched fails the test when the step does not refuse with this reason, or when it did something first.
func (s *sandbox) untouched(step, reason string) {
	s.t.Helper()
	before := s.snapshot()
	s.fails(s.step(step), 1, reason)
	s.same(before)
	if calls := s.calls(); strings.Contains(calls, "kubeadm") {
		s.t.Errorf("%s: calls:\n%s", step, calls)
	}
}

// facts are what the host says of itself.
func (s *sandbox) facts() *facts.Host { s.t.Helper(); return s.factsBy(string(Facts())) }

// factsBy are those that a script tells.
func (s *sandbox) factsBy(script string) *facts.Host {
	s.t.Helper()
	return parsed(s, script, facts.Parse)
}

// A join is remembered with the cluster and the node's UID, and facts tell both.
func TestJoinIsRemembered(t *testing.T) {
	t.Parallel()
	s := joined(t)
	s.write("var/lib/kubelet/kubeadm-flags.env", "KUBELET_KUBEADM_ARGS=\"--pod-infra-container-image=x --node-ip=10.0.0.11\"\n")
	h := s.facts()
	if h.NodeIP != netip.MustParseAddr("10.0.0.11") {
		t.Errorf("the node's address: %s", h.NodeIP)
	}
	if r := h.Recorded; r == nil || !r.Join || !r.Done || r.Init || r.Adopted || r.UID != "u1" || len(r.CAHash) != 64 {
		t.Fatalf("recorded: %+v", h.Recorded)
	}
	if !slices.Equal(h.KubeadmFiles, []string{"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"}) {
		t.Errorf("files: %q", h.KubeadmFiles)
	}
	s.write("node-is-there", "u2\n")
	s.ok(s.step("cluster-join"))
	contains(t, s.calls(), "kubeadm reset", "kubeadm join") // a node that was made anew
}

// A control plane that reboots is waited for, as long as there is time for kubeadm afterwards.
func TestJoinWaitsForTheControlPlane(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.stub("timeout", `#!/bin/bash
if [[ $* == */dev/tcp/* ]]; then [[ -e /up ]]; exit; fi
exec /usr/bin/timeout "$@"
`)
	s.stub("sleep", "#!/bin/sh\n: >/up\n")
	s.write(stepDir+"/timeout", "300")
	s.fails(s.step("cluster-join"), 1, "API_UNREACHABLE")
	if s.exists("tmp/calls") {
		t.Errorf("calls:\n%s", s.calls())
	}
	s.write(stepDir+"/timeout", "600")
	contains(t, s.ok(s.step("cluster-join")).output, "W\tthe API server at 10.0.0.10:6443\n")
}

// A join of which only the end is missing in the ledger is no reason to throw it away.
func TestJoinWhoseEndIsNotRecorded(t *testing.T) {
	t.Parallel()
	s := joined(t)
	s.ok(s.script("ledger_forget kubeadm join-done"))
	s.write("etc/kubernetes/bootstrap-kubelet.conf", "a token")
	s.ok(s.step("cluster-join"))
	if calls := s.calls(); strings.Contains(calls, "kubeadm") || s.exists("etc/kubernetes/bootstrap-kubelet.conf") {
		t.Errorf("calls:\n%s", calls)
	}
	if r := s.facts().Recorded; !r.Done || r.UID != "u1" {
		t.Errorf("recorded: %+v", r)
	}
}

// notTold are ways in which an API server does not tell about a node.
var notTold = []string{"Unable to connect to the server: net/http: TLS handshake timeout", "Error from server (TooManyRequests): the server is busy", "Error from server: etcdserver: request timed out", ""}

// An API server that is busy has not said that a host is no member: it is asked again.
func TestJoinOfAMemberThatIsNotTold(t *testing.T) {
	t.Parallel()
	s := joined(t)
	s.stub("sleep", "#!/bin/sh\n")
	fails := ""
	for _, words := range notTold {
		fails += "nodes/w1\t" + words + "\n"
	}
	s.write("fails", fails)
	if r := s.ok(s.step("cluster-join")); strings.Count(r.output, "W\twhat the API server at 10.0.0.10:6443 says of node w1\n") != 1 {
		t.Errorf("it says:\n%s", r.output)
	}
	if calls := s.calls(); strings.Contains(calls, "kubeadm") || s.read("fails") != "" {
		t.Errorf("calls:\n%s", calls)
	}
	s.stub("sleep", "#!/bin/sh\necho 300 >"+stepDir+"/timeout\n")
	s.write("fails", fails)
	s.fails(s.step("cluster-join"), 1, "API_UNREACHABLE")
	lacks(t, s.calls(), "kubeadm")
}

// One whose credentials are not the cluster's, or are broken, is none.
func TestJoinOfNoMember(t *testing.T) {
	t.Parallel()
	for _, words := range []string{
		"error: You must be logged in to the server (Unauthorized)",
		"error: You must be logged in to the server (the server has asked for the client to provide credentials)",
		`Error from server (Forbidden): nodes "w1" is forbidden: User "system:node:w3" cannot get resource`,
		"Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority",
		"error: invalid configuration: [unable to read client-cert /var/lib/kubelet/pki/kubelet-client-current.pem for default-auth: no such file or directory]",
		"error: tls: failed to find any PEM data in certificate input",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			s := joined(t)
			s.write("fails", "nodes/w1\t"+words+"\n")
			s.ok(s.step("cluster-join"))
			contains(t, s.calls(), "kubeadm reset -f", "kubeadm join --config")
		})
	}
}

// No UID is not recorded, nor taken for another one, because the API server did not tell it.
func TestUIDThatIsNotTold(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("nodes/w1\trefused\n", 20)
	s := clusterHost(t)
	s.stub("sleep", "#!/bin/sh\n")
	s.write("var/units/kubelet.service", "loaded,active,enabled\n")
	s.write("ca", authority(t))
	s.write("fails", long)
	s.fails(s.step("cluster-join"), 75, "API_UNREACHABLE")
	if r := s.facts().Recorded; r.Done {
		t.Errorf("recorded: %+v", r)
	}
	s.calls()
	s.ok(s.step("cluster-join"))
	if r := s.facts().Recorded; !r.Done || r.UID != "u1" || strings.Contains(s.calls(), "kubeadm") {
		t.Errorf("recorded: %+v", r)
	}
	// The first look is whether it is a member.
	s.write("node-is-there", "u2\n")
	s.stub("kubectl", strings.Replace(s.read("stubs/kubectl"), "if [[ -s /fails ]]", "if [[ $* == *nodes/w1 && ! -e /first ]]; then : >/first; elif [[ -s /fails ]]", 1))
	s.write("fails", long)
	s.fails(s.step("cluster-join"), 75, "API_UNREACHABLE")

	s = clusterHost(t)
	s.stub("sleep", "#!/bin/sh\n")
	s.write("etc/kubernetes/kubelet.conf", "theirs")
	s.write("node-is-there", "u1\n")
	s.value("kind", "worker")
	s.write("fails", long)
	s.fails(s.step("cluster-adopt"), 1, "API_UNREACHABLE")
}

// A host that its owner took to another cluster since is the owner's.
func TestClusterThatIsAnother(t *testing.T) {
	t.Parallel()
	s := joined(t)
	s.write("etc/kubernetes/pki/ca.crt", authority(t))
	for _, step := range []string{"cluster-join", "cluster-init", "host-reset"} {
		s.untouched(step, "HOST_FOREIGN_CLUSTER")
	}
}

// An old ledger does not say which cluster; that the host is a control plane now says enough.
func TestResetOfAControlPlaneThatKgpuDidNotMake(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.ok(s.script("record kubeadm join; record kubeadm join-done"))
	s.write("etc/kubernetes/admin.conf", "theirs")
	s.write("tmp/calls", "")
	s.untouched("host-reset", "HOST_FOREIGN_CLUSTER")
}

func TestInitOnAWorker(t *testing.T) {
	t.Parallel()
	joined(t).untouched("cluster-init", "HOST_FOREIGN_CLUSTER")
}

func TestJoinOfAControlPlane(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.ok(s.step("cluster-init"))
	s.calls()
	s.untouched("cluster-join", "HOST_FOREIGN_CLUSTER")
}

// An init that was killed after its last work has made a control plane: it is kept.
func TestInitWhoseEndIsNotRecorded(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("ca", authority(t))
	s.ok(s.step("cluster-init"))
	s.ok(s.script("ledger_forget kubeadm init-done"))
	s.calls()
	s.ok(s.step("cluster-init"))
	calls := s.calls()
	contains(t, calls, "delete secrets")
	lacks(t, calls, "kubeadm reset", "kubeadm init --config")
	if r := s.facts().Recorded; !r.Init || !r.Done || len(r.CAHash) != 64 {
		t.Errorf("recorded: %+v", r)
	}
}

// unrecorded is a control plane of whose kubeadm init nobody recorded the end. No second passes in a sleep.
func unrecorded(t *testing.T) *sandbox {
	t.Helper()
	return begun(t, "unrecorded", func() *sandbox {
		s := clusterHost(t)
		s.write("ca", authority(t))
		s.ok(s.step("cluster-init"))
		s.ok(s.script("ledger_forget kubeadm init-done"))
		s.write("var/lib/etcd/member/snap/db", "precious")
		s.write("var/units/kubelet.service", "loaded,inactive,enabled\n")
		s.stub("sleep", "#!/bin/sh\necho sleep >>/tmp/calls\n")
		s.calls()
		return s
	})
}

const waitsForInit = "W\tthe API server of an earlier kubeadm init, which may have come to its end\n"

// A control plane that is slow, or starts after a boot, may be a finished one: it is waited for before it is judged.
func TestInitWaitsForOneThatMayHaveEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(s *sandbox)
		waits   bool
	}{
		"its API server starts": {func(s *sandbox) {
			s.write("api-down", "")
			s.stub("sleep", "#!/bin/sh\nrm /api-down\n")
		}, true},
		"it is slow": {func(s *sandbox) {
			s.write("fails", "get daemonset\tUnable to connect to the server: net/http: TLS handshake timeout\nget deployment\tError from server (Timeout): the server was unable to return a response\n")
		}, false},
		"its token cannot be deleted": {func(s *sandbox) { s.write("fails", "delete secrets\tetcdserver: request timed out\n") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := unrecorded(t)
			c.prepare(s)
			r := s.ok(s.step("cluster-init"))
			if calls := s.calls(); strings.Contains(calls, "kubeadm reset") || strings.Contains(calls, "kubeadm init --config") || !s.exists("var/lib/etcd/member/snap/db") {
				t.Errorf("calls:\n%s", calls)
			}
			if strings.Contains(r.output, waitsForInit) != c.waits || c.waits && s.read("var/units/kubelet.service") != "loaded,active,enabled\n" {
				t.Errorf("the kubelet is %q; it says:\n%s", s.read("var/units/kubelet.service"), r.output)
			}
			if !s.facts().Recorded.Done {
				t.Error("its end is not recorded")
			}
		})
	}
}

// One that is half-made is made anew: after a while, where its API server may come, and at once, where it cannot.
func TestInitAfterOneThatIsHalfMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(s *sandbox)
		waits   bool
	}{
		"it does not come": {func(s *sandbox) {
			s.write("api-down", "")
			s.stub("sleep", "#!/bin/sh\necho 300 >"+stepDir+"/timeout\nmv /api-down /api-was-down\n[ -e /once ] || mv /api-was-down /api-down\n: >/once\n")
		}, true},
		"etcd never ran": {func(s *sandbox) {
			s.must(os.RemoveAll(s.path("var/lib/etcd")))
			s.write("fails", "/readyz\trefused\n")
		}, false},
		"it has no add-ons": {func(s *sandbox) { s.write("no-add-ons", "") }, false},
		"its administrator may not do anything": {func(s *sandbox) {
			s.write("fails", "get daemonset\tError from server (Forbidden): daemonsets.apps \"kube-proxy\" is forbidden\n")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := unrecorded(t)
			c.prepare(s)
			r := s.ok(s.step("cluster-init"))
			if calls := s.calls(); !strings.Contains(calls, "kubeadm reset -f") || !strings.Contains(calls, "kubeadm init --config") || !c.waits && strings.Contains(calls, "sleep") {
				t.Errorf("calls:\n%s", calls)
			}
			if strings.Contains(r.output, waitsForInit) != c.waits {
				t.Errorf("it says:\n%s", r.output)
			}
		})
	}
}

// Who stops the run, or an API server that does not tell, has not said that the control plane is half-made.
func TestInitThatIsNotTold(t *testing.T) {
	t.Parallel()
	s := unrecorded(t)
	s.write("var/units/kubelet.service", "loaded,active,enabled\n")
	s.write("var/lib/kgpu/run/test-1/stop", "")
	s.write("api-down", "")
	s.untouched("cluster-init", "API_UNREACHABLE")
	s.remove("api-down")
	s.write("fails", "get daemonset\tUnable to connect to the server: EOF\n")
	before := s.snapshot()
	delete(before, "fails")
	s.fails(s.step("cluster-init"), 1, "API_UNREACHABLE")
	s.remove("fails")
	s.same(before)
}

// That kubeadm init came to its end is recorded before anything that an API server at work may refuse.
func TestInitIsRecordedFirst(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("ca", authority(t))
	s.write("fails", "delete secrets\tetcdserver: request timed out\n")
	s.ok(s.step("cluster-init"))
	if r := s.facts().Recorded; !r.Done {
		t.Errorf("recorded: %+v", r)
	}

	s = clusterHost(t)
	s.write("ca", authority(t))
	s.write("api-down", "")
	s.write(stepDir+"/timeout", "0")
	s.fails(s.step("cluster-init"), 1, "API_UNREACHABLE")
	if r := s.facts().Recorded; !r.Done {
		t.Errorf("recorded: %+v", r)
	}
}

// The data of an etcd is removed only where kgpu's own init, which did not end, made it.
func TestEtcdData(t *testing.T) {
	t.Parallel()
	const data = "var/lib/etcd/member/snap/db"
	t.Run("somebody's", func(t *testing.T) {
		t.Parallel()
		s := clusterHost(t)
		s.write(data, "precious")
		s.write("tmp/calls", "")
		if e := s.facts().Etcd; e == nil || e.KiB == 0 || e.Changed.IsZero() {
			t.Errorf("facts: %+v", e)
		}
		s.untouched("cluster-init", "HOST_ETCD_STALE")
	})
	t.Run("on a worker", func(t *testing.T) {
		t.Parallel()
		s := joined(t)
		s.write(data, "precious")
		s.remove("node-is-there")
		s.ok(s.step("cluster-join"))
		if !strings.Contains(s.calls(), "kubeadm reset") || !s.exists(data) {
			t.Error("a worker that joins again lost data of an etcd that is not the cluster's")
		}
	})
	t.Run("of a cluster that kgpu made", func(t *testing.T) {
		t.Parallel()
		s := clusterHost(t)
		s.ok(s.step("cluster-init"))
		s.calls()
		s.remove("etc/kubernetes/admin.conf")
		s.untouched("cluster-init", "HOST_HALF_MADE")
		s.remove("etc/kubernetes/manifests/kube-apiserver.yaml")
		s.write(data, "precious")
		s.untouched("cluster-init", "HOST_ETCD_STALE")
	})
	t.Run("of an init that died", func(t *testing.T) {
		t.Parallel()
		s := clusterHost(t)
		s.write("kubeadm-fails", "error: died\n")
		s.fails(s.step("cluster-init"), 1, "STEP_FAILED")
		s.write(data, "half")
		s.remove("kubeadm-fails")
		s.ok(s.step("cluster-init"))
		s.absent(data)
	})
}

// The control plane that kgpu made was reset by hand: it is made anew.
func TestInitAfterAResetByHand(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.ok(s.step("cluster-init"))
	s.calls()
	s.remove("etc/kubernetes/admin.conf")
	s.remove("etc/kubernetes/manifests/kube-apiserver.yaml")
	s.ok(s.step("cluster-init"))
	contains(t, s.calls(), "kubeadm init --config")
}

// What was made by hand is taken over as it is, and reset undoes what kgpu changed and nothing of the owner's.
func TestAdopt(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("etc/kubernetes/admin.conf", "theirs")
	s.write("etc/kubernetes/kubelet.conf", "    server: https://10.0.0.10:6443\n")
	s.write("etc/kubernetes/pki/ca.crt", authority(t))
	s.value("kind", "control-plane")
	s.fails(s.step("cluster-adopt"), 1, "HOST_HALF_MADE")
	s.write("node-is-there", "u7\n")
	s.write("tmp/calls", "")
	before := s.snapshot()
	s.ok(s.step("cluster-adopt"))
	s.ok(s.step("cluster-adopt"))
	s.ok(s.step("cluster-init"))
	s.ok(s.step("cluster-join-plane"))
	s.same(before)
	if r := s.facts().Recorded; r == nil || !r.Adopted || r.Init || r.UID != "u7" || len(r.CAHash) != 64 {
		t.Fatalf("recorded: %+v", r)
	}
	s.ok(s.script("put_file /etc/x 644 <<<x"))
	s.ok(s.step("host-reset"))
	s.same(before)
	lacks(t, s.calls(), "kubeadm")
}

// Where the owner's cluster runs on kgpu's packages, reset would destroy it: it refuses.
func TestResetOfWhatRunsOnKgpusPackages(t *testing.T) {
	t.Parallel()
	for _, adopted := range []string{"", "record_membership adopted control-plane u7"} {
		s := clusterHost(t)
		s.ok(s.script("claim_tree /etc/kubernetes"))
		s.write("etc/kubernetes/admin.conf", "theirs")
		s.write("etc/kubernetes/pki/ca.crt", authority(t))
		s.write("tmp/calls", "")
		s.ok(s.script(adopted))
		s.untouched("host-reset", "HOST_MADE_BY_HAND")
	}
}

func TestAdoptForgetsWhatKgpuDidBefore(t *testing.T) {
	t.Parallel()
	s := joined(t)
	s.write("etc/kubernetes/pki/ca.crt", authority(t))
	s.value("kind", "worker")
	s.ok(s.step("cluster-adopt"))
	if r := s.facts().Recorded; r.Join || !r.Adopted {
		t.Errorf("recorded: %+v", r)
	}
	s.calls()
	s.ok(s.step("cluster-join"))
	lacks(t, s.calls(), "kubeadm")
}

// What flannel left goes, and what others put beside it stays.
func TestLeftoversGo(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("tmp/calls", "")
	s.write("etc/cni/net.d/10-flannel.conflist", "{}")
	s.write("etc/cni/net.d/87-podman-bridge.conflist", "{}")
	s.write("run/flannel/subnet.env", "FLANNEL_SUBNET=10.244.1.1/24\n")
	want := []string{"/etc/cni/net.d/10-flannel.conflist", "/etc/cni/net.d/87-podman-bridge.conflist", "/run/flannel/subnet.env"}
	if got := s.facts().PodNetworkFiles; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("facts: %q", got)
	}
	s.ok(s.step("host-leftovers"))
	if got := s.facts().PodNetworkFiles; !slices.Equal(got, want[1:2]) {
		t.Errorf("left: %q", got)
	}
	s.write("etc/kubernetes/kubelet.conf", "theirs")
	s.untouched("host-leftovers", "HOST_FOREIGN_CLUSTER")
}

// What the manifests of a control plane say is in the facts.
func TestFactsOfAControlPlane(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("etc/kubernetes/admin.conf", "theirs")
	s.write("etc/kubernetes/pki/ca.crt", authority(t))
	s.write("etc/kubernetes/manifests/kube-apiserver.yaml", `spec:
  containers:
  - command:
    - kube-apiserver
    - --advertise-address=10.0.0.10
    - --service-cluster-ip-range=10.96.0.0/12
    - --admission-control-config-file=/etc/kubernetes/kgpu/admission.yaml
    - --audit-log-path=/var/log/kubernetes/audit/audit.log
    - --enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs
    - --encryption-provider-config=/etc/kubernetes/kgpu/encryption.yaml
    image: registry.k8s.io/kube-apiserver:v1.36.3
`)
	s.write("etc/kubernetes/manifests/kube-controller-manager.yaml", "    - --cluster-cidr=10.244.0.0/16\n    - --cluster-name=kubernetes\n")
	s.write("etc/kubernetes/manifests/etcd.yaml", "    - --initial-cluster=cp1=https://10.0.0.10:2380,cp2=https://10.0.0.20:2380\n")
	s.write("cluster", "")
	c := s.facts().ControlPlane
	defences := facts.Defences{
		Plugins: "NodeRestriction,DenyServiceExternalIPs", Admission: "/etc/kubernetes/kgpu/admission.yaml",
		AuditLog: "/var/log/kubernetes/audit/audit.log", Encryption: "/etc/kubernetes/kgpu/encryption.yaml",
	}
	if c == nil || c.Advertised != "10.0.0.10" || c.Name != "kubernetes" || c.PodCIDR != "10.244.0.0/16" || c.ServiceCIDR != "10.96.0.0/12" || !slices.Equal(c.EtcdMembers, []string{"cp1", "cp2"}) ||
		c.Defences != defences || c.Version != "v1.36.3" || !c.Since.Equal(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)) || c.Finished {
		t.Errorf("%+v", c)
	}
}
