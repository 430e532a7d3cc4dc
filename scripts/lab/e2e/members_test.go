package e2e

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMembers has hosts that are in other clusters, that somebody initialised by hand, and whose init or join ended
// half-way. kgpu knows its own, and touches nothing else unless it is told to take it over.
func TestMembers(t *testing.T) {
	l := newLab(t, nil, "--workers", "2")
	d := desired{version: "1.36", runtime: "containerd", network: "flannel", more: l.repositories()}
	inventory := func(hosts ...string) *cluster {
		d.hosts = hosts
		return newCluster(t, l, d)
	}
	cp1, w1, w2 := l.host("cp1", ""), l.host("w1", ""), l.host("w2", "")
	whole, pair := inventory(cp1, w1, w2), inventory(cp1, w1)
	own := l.host("w2", "role: control-plane") // w2 as the control plane of a cluster of its own

	t.Run("the data of an etcd", func(t *testing.T) {
		l.exec(t, "w2", "mkdir -p /var/lib/etcd/member/snap /var/lib/etcd/member/wal; head -c 3000000 /dev/zero >/var/lib/etcd/member/snap/db")
		before := l.snapshot(t, "w2")
		l.refuses(t, d, refusal{hosts: []string{own}, exit: 41, reasons: []string{"w2 HOST_ETCD_STALE 3 MiB, last written"}})
		l.unchanged(t, before)
		l.exec(t, "w2", "rm -r /var/lib/etcd")
	})
	must(t, "kubeadm init is killed", func(t *testing.T) {
		s := start(t, "", "up", "--output", "json", whole.inventory)
		s.await(t, "cp1 began cluster/init", func(e event) bool {
			return e.Event == "step.start" && e.Host == l.addr["cp1"] && e.Step == "cluster/init"
		})
		l.exec(t, "cp1", "timeout 300 bash -c 'until [ -e /etc/kubernetes/manifests/kube-apiserver.yaml ]; do sleep 0.1; done'; kill -9 $(pidof kubeadm)")
		if code := s.wait(t); code == 0 {
			t.Fatal("kgpu did not notice")
		}
		plan := kgpu(t, 2, "plan", whole.inventory)
		if said := plan.stdout.String(); !strings.Contains(said, "kubeadm init did not come to its end") {
			t.Errorf("the plan does not say why init begins again:\n%s", said)
		}
		whole.up(t)
		whole.ready(t, "cp1", "w1", "w2")
	})
	t.Run("a volume of an image", whole.imageVolume)
	must(t, "a node is deleted", func(t *testing.T) {
		whole.k(t, "delete", "node", "w1")
		plan := kgpu(t, 2, "plan", whole.inventory)
		if said := plan.stdout.String(); !strings.Contains(said, "join again: the cluster has no node w1") {
			t.Errorf("the plan does not say why w1 joins:\n%s", said)
		}
		whole.up(t)
		whole.ready(t, "cp1", "w1", "w2")
	})
	t.Run("a node is made anew by its kubelet", func(t *testing.T) {
		whole.k(t, "delete", "node", "w1")
		l.exec(t, "w1", "systemctl restart kubelet")
		l.exec(t, "cp1", "timeout 300 bash -c 'until kubectl --kubeconfig /etc/kubernetes/admin.conf get node w1; do sleep 0.2; done'")
		plan := kgpu(t, 2, "plan", whole.inventory)
		if said := plan.stdout.String(); !strings.Contains(said, "join again: the node object has another UID") {
			t.Errorf("the plan does not say why w1 joins:\n%s", said)
		}
		whole.up(t)
		whole.ready(t, "cp1", "w1", "w2")
		kgpu(t, 0, "plan", whole.inventory)
	})
	t.Run("hosts forget the API server's name", func(t *testing.T) {
		long(t)
		const forget = "sed -i '/ # kgpu$/d' /etc/hosts"
		l.exec(t, "cp1", forget)
		l.exec(t, "w1", forget)
		if said := kgpu(t, 2, "plan", whole.inventory).stdout.String(); strings.Count(said, "does not know api-") != 2 {
			t.Errorf("the plan does not say that two hosts lack the name:\n%s", said)
		}
		whole.up(t)
		whole.ready(t, "cp1", "w1", "w2")
		kgpu(t, 0, "plan", whole.inventory)
		l.exec(t, "w1", forget+"; systemctl start kgpu-api-name.service; systemctl is-enabled kgpu-api-name.service; grep -q ' # kgpu$' /etc/hosts")
		kgpu(t, 0, "plan", whole.inventory)
	})
	must(t, "a cluster made by hand", func(t *testing.T) {
		gone := strings.TrimSuffix(whole.k(t, "get", "node", "w2", "-o", "jsonpath={.spec.podCIDR}"), "0/24")
		whole.k(t, "delete", "node", "w2")
		l.exec(t, "w2", byHand(l.addr["w2"]))
		// Its pods, CoreDNS perhaps, are left to a garbage collector, which takes its time.
		whole.k(t, "delete", "pods", "--all-namespaces", "--field-selector=spec.nodeName=w2", "--force", "--grace-period=0")
		whole.k(t, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
		whole.ready(t, "cp1", "w1")
		for _, h := range []string{"cp1", "w1"} {
			l.exec(t, h, "for i in $(seq 300); do iptables-save -t nat | grep -qF -- '-s "+gone+"' || exit 0; sleep 0.2; done; exit 1")
		}
		before := l.snapshot(t, "cp1", "w1", "w2")
		server := strings.TrimSpace(l.exec(t, "w1", "sed -n 's/^ *server: //p' /etc/kubernetes/kubelet.conf"))
		both := fmt.Sprintf("%s (CA %s), not to this one (CA %s)", server, l.authority(t, "cp1"), l.authority(t, "w2"))
		l.refuses(t, d, refusal{hosts: []string{own}, exit: 38, reasons: []string{"w2 HOST_MADE_BY_HAND CA " + l.authority(t, "w2")}})
		l.refuses(t, d, refusal{hosts: []string{own, w1}, flags: []string{"--adopt"}, exit: 69, reasons: []string{"w1 HOST_FOREIGN_CLUSTER " + both}})
		l.refuses(t, d, refusal{hosts: []string{cp1, w1, w2}, exit: 69, reasons: []string{"w2 HOST_FOREIGN_CLUSTER the host is the control plane of a cluster of its own"}})
		kgpu(t, 69, "reset", "--yes", "--inventory", whole.inventory)
		l.unchanged(t, before)
	})
	t.Run("and taken over", func(t *testing.T) {
		before := l.exec(t, "w2", "cat /etc/kubernetes/pki/ca.crt")
		c := inventory(own)
		s := kgpu(t, 0, "up", "--adopt", "--output", "json", c.inventory)
		if did := c.did(s); !slices.Contains(did, "w2 cluster/adopt") || slices.Contains(did, "w2 cluster/init") {
			t.Errorf("steps: %v", did)
		}
		c.ready(t, "w2")
		kgpu(t, 0, "plan", c.inventory)
		if now := l.exec(t, "w2", "cat /etc/kubernetes/pki/ca.crt"); now != before {
			t.Error("it is another cluster now")
		}
		// It runs on what kgpu installed when w2 was a worker.
		kgpu(t, 38, "reset", "--yes", "--inventory", c.inventory)
		c.ready(t, "w2")
	})
	t.Run("the rest goes on", func(t *testing.T) { pair.up(t); pair.ready(t, "cp1", "w1") })
}

// authority is the beginning of the hash of a cluster's CA, as kgpu tells it and kubeadm's discovery knows it.
func (l *lab) authority(t *testing.T, host string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(l.exec(t, host, "cat /etc/kubernetes/pki/ca.crt")))
	if block == nil {
		t.Fatalf("%s: no certificate", host)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(cert.RawSubjectPublicKeyInfo))[:12]
}

// byHand is what a person does to make a worker the control plane of a cluster of its own.
func byHand(address string) string {
	return fmt.Sprintf(`
kubeadm reset -f >/dev/null
for link in cni0 flannel.1; do ip link delete $link || :; done
rm -rf /run/flannel /etc/cni/net.d/10-flannel.conflist /var/lib/cni
cat >/root/cluster.yaml <<end
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: %[1]s}
nodeRegistration: {criSocket: "unix:///run/containerd/containerd.sock", ignorePreflightErrors: [SystemVerification]}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: $(kubeadm version -o short)
networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/12}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
failCgroupV1: false
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0, min: 0}
end
kubeadm init --config /root/cluster.yaml >/root/init.log 2>&1 || { cat /root/init.log; exit 1; }
timeout 300 bash -c 'until kubectl --kubeconfig /etc/kubernetes/admin.conf get node w2; do sleep 0.2; done'
kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system rollout status daemonset/kube-proxy --timeout 60s
for _ in {1..180}; do # until kube-proxy has put its rules in the place of the former worker's
  if iptables-save -t nat | grep -qF -- '--to-destination %[1]s:6443'; then exit 0; fi
  sleep 1
done
exit 1
`, address)
}
