package scripts

import (
	"bytes"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// planeHost is a host that kubeadm makes a control plane, as it makes a worker elsewhere. Its API server does not live while /api-dead
// is there.
func planeHost(t *testing.T) *sandbox {
	t.Helper()
	s := clusterHost(t)
	s.write("plane", `mkdir -p /etc/kubernetes/manifests /var/lib/etcd/member
for f in manifests/etcd.yaml manifests/kube-apiserver.yaml admin.conf; do echo x >/etc/kubernetes/$f; done
echo data >/var/lib/etcd/member/wal
`)
	s.stub("curl", "#!/bin/sh\n[ -e /api-dead ] || printf ok\n")
	s.stub("sleep", "#!/bin/sh\necho 20 >"+stepDir+"/timeout\n")
	s.write("ca", authority(t))
	s.value("kubeadm", "certificateKey: hidden-secret\n")
	s.value("encryption", "/etc/kubernetes/kgpu/encryption.yaml")
	s.value("encryptionConfig", "dGhlIGtleQo=")
	return s
}

// A control plane joins once, with the key for Secrets that the others have, and facts tell it.
func TestJoinAsAControlPlane(t *testing.T) {
	t.Parallel()
	s := planeHost(t)
	r := s.ok(s.step("cluster-join-plane"))
	calls := s.calls()
	contains(t, calls, "kubeadm join --config "+stepDir+"/values/kubeadm")
	lacks(t, calls+r.output, "hidden-secret", "kubeadm reset")
	s.holds("etc/kubernetes/kgpu/encryption.yaml", "the key\n")
	if h := s.facts(); h.Recorded == nil || !h.Recorded.Plane || !h.Recorded.Join || !h.Recorded.Done || h.Recorded.UID != "u1" || h.ControlPlane == nil || !h.ControlPlane.Finished {
		t.Errorf("recorded: %+v, %+v", h.Recorded, h.ControlPlane)
	}
	contains(t, s.ok(s.step("cluster-join-plane")).output, "this host is a control plane already")
	lacks(t, s.calls(), "kubeadm")
	s.write("api-dead", "")
	s.fails(s.step("cluster-join-plane"), 1, "API_UNREACHABLE")
}

// What a join has left that was killed decides what becomes of it: it is at its end when the node is marked, after etcd has its member;
// else the host leaves, and joins anew.
func TestJoinAsAControlPlaneThatDied(t *testing.T) {
	t.Parallel()
	marked := `{"kubernetes.io/hostname":"w1","node-role.kubernetes.io/control-plane":""}`
	for name, c := range map[string]struct {
		labels, also string
		again        bool
	}{
		"at its end":                     {marked, "", false},
		"before the node was marked":     {`{"kubernetes.io/hostname":"w1"}`, "", true},
		"before etcd":                    {marked, "rm -rf /var/lib/etcd/member", true},
		"its API server does not live":   {marked, "touch /api-dead", true},
		"before the static pods":         {"", "rm -r /etc/kubernetes/manifests", true},
		"before anything of the cluster": {"", "rm -rf /etc/kubernetes/* /var/lib/etcd/member", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := planeHost(t)
			s.ok(s.step("cluster-join-plane"))
			s.calls()
			s.write("labels", c.labels)
			s.ok(s.script("ledger_forget kubeadm join-plane-done; " + c.also))
			s.write(stepDir+"/timeout", "600")
			r := s.step("cluster-join-plane")
			s.ok(r)
			calls := s.calls()
			if again := strings.Contains(calls, "kubeadm join"); again != c.again || again != strings.Contains(calls, "kubeadm reset") {
				t.Errorf("calls:\n%s", calls)
			}
			if r := s.facts().Recorded; !r.Plane || !r.Done {
				t.Errorf("recorded: %+v", r)
			}
		})
	}
}

// One that the cluster has no node of any more leaves, whatever it is a part of still, and joins. Where that is cut off, facts tell that
// it is in no cluster: the ledger says so before anything goes.
func TestJoinAsAControlPlaneThatWasTakenOut(t *testing.T) {
	t.Parallel()
	for _, made := range []string{"", "ledger_forget kubeadm; record kubeadm init; record_membership kubeadm init-done u1"} {
		s := planeHost(t)
		s.ok(s.step("cluster-join-plane"))
		s.ok(s.script(made))
		s.calls()
		s.value("leaves", "yes")
		s.write("stubs/kubeadm", strings.Replace(s.read("stubs/kubeadm"), "\n", "\n[[ $1 != reset ]] || grep -hs -e -done /var/lib/kgpu/ledger/*/args >>/tmp/calls\n", 1))
		s.ok(s.step("cluster-join-plane"))
		calls := s.calls()
		contains(t, calls, "kubeadm reset", "kubeadm join")
		lacks(t, calls, "-done")
		if r := s.facts().Recorded; !r.Plane || r.Init || !r.Done {
			t.Errorf("recorded: %+v", r)
		}
	}
}

// Nobody's cluster is taken apart for a control plane, and no data of an etcd.
func TestJoinAsAControlPlaneElsewhere(t *testing.T) {
	t.Parallel()
	s := planeHost(t)
	s.write("tmp/calls", "")
	s.write("var/lib/etcd/member/wal", "data")
	s.untouched("cluster-join-plane", "HOST_ETCD_STALE")
	s = planeHost(t)
	s.write("tmp/calls", "")
	s.write("etc/kubernetes/admin.conf", "theirs")
	s.untouched("cluster-join-plane", "HOST_FOREIGN_CLUSTER")
}

// TestMemberLeavesEtcd: a control plane that leaves others takes its own member out of etcd first: kubeadm does not where the node is
// deleted already. The only member stays, and so do those where the whole cluster goes.
func TestMemberLeavesEtcd(t *testing.T) {
	t.Parallel()
	const one, two = `{"header":{"member_id":"7"},"members":[{"ID":"7"}]}`, `{"header":{"member_id":"7"},"members":[{"ID":"5"},{"ID":"7"}]}`
	for _, c := range []struct {
		members, how string
		removed      bool
	}{{two, "", true}, {one, "", false}, {two, " gone", false}} {
		s := planeHost(t)
		s.ok(s.step("cluster-join-plane"))
		s.write("etc/kubernetes/manifests/etcd.yaml", "image: registry.k8s.io/etcd:3.6.8-0\n")
		s.stub("curl", "#!/bin/bash\necho \"$*\" >>/asked\n[[ $* != */member/list ]] || echo '"+c.members+"'\n")
		s.ok(s.script("leave_cluster unix:///run/containerd/containerd.sock" + c.how))
		removed := s.exists("asked") && strings.Contains(s.read("asked"), `{"ID":"7"} https://127.0.0.1:2379/v3/cluster/member/remove`)
		if removed != c.removed {
			t.Errorf("%s%s: removed is %v", c.members, c.how, removed)
		}
	}
}

// Leaving with the cluster asks etcd for nothing, and takes its data.
func TestLeavingOfAControlPlane(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{"": "", " gone": " --skip-phases=remove-etcd-member"} {
		s := planeHost(t)
		s.ok(s.step("cluster-join-plane"))
		s.calls()
		s.ok(s.script("leave_cluster unix:///run/containerd/containerd.sock" + how))
		contains(t, s.calls(), "kubeadm reset -f --cri-socket unix:///run/containerd/containerd.sock"+want+"\n")
		if s.exists("var/lib/etcd/member") {
			t.Error("etcd's data is left")
		}
	}
}

// What control planes have in common is laid out encrypted, and its key is in no log.
func TestTokenForControlPlanes(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	key := strings.Repeat("0123456789abcdef", 4)
	s.write("printed", "[upload-certs] Storing the certificates in Secret \"kubeadm-certs\"\n[upload-certs] Using certificate key:\n"+key+"\n")
	s.write("etc/kubernetes/pki/ca.crt", authority(t))
	s.write("keys", "the key\n")
	s.value("ttl", "24h")
	s.value("certificates", "kind: InitConfiguration\n")
	s.value("encryption", "/keys")
	r := s.ok(s.step("cluster-token"))
	s.holds(stepDir+"/out/certificate_key", key+"\n")
	s.holds(stepDir+"/out/encryption", "dGhlIGtleQo=")
	contains(t, s.calls(), "kubeadm init phase upload-certs --upload-certs --config "+stepDir+"/values/certificates")
	lacks(t, r.output, key)
	if s.exists(stepDir + "/values/.printed") {
		t.Error("what kubeadm printed is left")
	}
}

// Names that have come to the cluster get into the configuration by which kubeadm makes certificates of control planes that join, once.
func TestNamesOfPlanesThatJoin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ list, want string }{
		"new ones":     {"10.0.0.100\n*.example.org\n", "  certSANs:\n  - \"*.example.org\"\n  - \"10.0.0.100\"\n  - 10.0.0.10\n"},
		"all is there": {"10.0.0.10\n::1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterHost(t)
			s.write("etc/kubernetes/pki/ca.crt", authority(t))
			s.write("configuration", "apiServer:\n  certSANs:\n  - 10.0.0.10\n  - '::1'\n  extraArgs:\n  - name: v\n    value: \"2\"\nkind: ClusterConfiguration\n")
			s.stub("kubectl", `#!/bin/bash
case "$*" in
*"get --raw /readyz") echo -n ok ;;
*"get configmap kubeadm-config"*) cat /configuration ;;
*"create configmap kubeadm-config"*) for a in "$@"; do [[ $a != --from-file=ClusterConfiguration=* ]] || cat "${a#*=ClusterConfiguration=}"; done ;;
*apply*) for a in "$@"; do :; done; cp "$a" /applied ;;
esac
`)
			s.value("ttl", "24h")
			s.value("names", c.list)
			s.ok(s.step("cluster-token"))
			if c.want == "" {
				if s.exists("applied") {
					t.Errorf("applied: %s", s.read("applied"))
				}
				return
			}
			contains(t, s.read("applied"), "apiServer:\n"+c.want+"  - '::1'\n  extraArgs:\n")
			s.write("configuration", s.read("applied"))
			s.ok(s.script("rm /applied"))
			if s.ok(s.step("cluster-token")); s.exists("applied") {
				t.Errorf("again: %s", s.read("applied"))
			}
			s.write("configuration", "")
			s.fails(s.step("cluster-token"), 75, "API_UNREACHABLE")
		})
	}
}

// A member that a machine had which is lost goes from etcd, when another machine comes in its place; no other does.
func TestMembersOfLostMachines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ alive, want string }{
		"lost":       {"", `{"ID":"17"}`},
		"it answers": {"yes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterHost(t)
			s.write("etc/kubernetes/pki/ca.crt", authority(t))
			s.stub("curl", `#!/bin/bash
while [[ $# -gt 0 ]]; do
  if [[ $1 == -d ]]; then data=$2; fi
  url=$1
  shift
done
case $url in
https://127.0.0.1:2379/v3/cluster/member/list)
  echo '{"header":{"cluster_id":"1","member_id":"5"},"members":[{"ID":"5","name":"cp2","peerURLs":["https://10.0.0.10:2380"],"clientURLs":["https://10.0.0.10:2379"]},{"ID":"17","name":"cp3","peerURLs":["https://10.0.0.13:2380"]},{"ID":"18","name":"cp4","peerURLs":["https://10.0.0.130:2380"]}]}' ;;
https://127.0.0.1:2379/v3/cluster/member/remove) echo "$data" >>/removed ;;
esac
`)
			s.stub("timeout", "#!/bin/bash\n[[ $* != */dev/tcp/* ]] || { [[ -e /alive ]]; exit; }\nexec /usr/bin/timeout \"$@\"\n")
			s.value("ttl", "24h")
			s.value("fresh", "cp3 10.0.0.13\n")
			if c.alive != "" {
				s.write("alive", "")
				s.fails(s.step("cluster-token"), 1, "HOST_ETCD_STALE")
			} else {
				s.ok(s.step("cluster-token"))
			}
			if c.want == "" {
				if s.exists("removed") {
					t.Errorf("removed: %s", s.read("removed"))
				}
				return
			}
			s.holds("removed", c.want+"\n")
		})
	}
}

// neighbours is a network of two machines: the host, 10.9.9.1, and another, 10.9.9.2, which is a VRRP router with the number 77.
const neighbours = `set -e
mount -t tmpfs tmpfs /run
ip link set lo up
ip netns add other
ip link add eth0 type veth peer name eth0 netns other
ip address add 10.9.9.1/24 dev eth0
ip link set eth0 up
ip -n other address add 10.9.9.2/24 dev eth0
ip -n other link set eth0 up
ip -n other route add 224.0.0.0/4 dev eth0
ip netns exec other perl -e 'socket(my $s, 2, 3, 112) or die; for (1 .. 12) { select(undef, undef, undef, 0.5);
  send($s, pack("C8", 0x31, 77, 100, 1, 0, 25, 0, 0), 0, pack("S n C4 x8", 2, 0, 224, 0, 0, 18)) }' &
bash -s
wait
`

// TestVirtualIP: a machine that has the address answers, and a router is heard by its number.
func TestVirtualIP(t *testing.T) {
	t.Parallel()
	router := []facts.VirtualRouter{{ID: 77, Source: netip.MustParseAddr("10.9.9.2")}}
	for address, answers := range map[string]bool{"10.9.9.2": true, "10.9.9.3": false} {
		cmd := exec.Command("unshare", "--net", "--mount", "bash", "-c", neighbours)
		cmd.Stdin = bytes.NewReader(fmt.Appendf(VirtualIP(), "%s 10.9.9.1\n", address))
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		told, err := facts.ParseVirtualIP(out)
		if err != nil || (told.Answers != "") != answers || told.Deaf || !slices.Equal(told.Routers, router) {
			t.Errorf("%s: %+v, %v in\n%s", address, told, err, out)
		}
	}
}
