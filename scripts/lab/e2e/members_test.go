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

// staleEtcd has the data of an etcd on a host that is to become a control plane.
func (l *lab) staleEtcd(t *testing.T, d desired, host string) {
	l.exec(t, host, "mkdir -p /var/lib/etcd/member/snap /var/lib/etcd/member/wal; head -c 3000000 /dev/zero >/var/lib/etcd/member/snap/db")
	before := l.snapshot(t, host)
	own := l.host(host, "role: control-plane")
	l.refuses(t, d, refusal{hosts: []string{own}, exit: 41, reasons: []string{host + " HOST_ETCD_STALE 3 MiB, last written"}})
	l.unchanged(t, before)
	l.exec(t, host, "rm -r /var/lib/etcd")
}

// initIsKilled kills kubeadm init half-way: kgpu up ends, and the plan says that it begins again.
func (c *cluster) initIsKilled(t *testing.T) {
	s := start(t, "", "up", "--output", "json", c.inventory)
	s.await(t, "cp1 began cluster/init", func(e event) bool {
		return e.Event == "step.start" && e.Host == c.addr["cp1"] && e.Step == "cluster/init"
	})
	c.exec(t, "cp1", "timeout 300 bash -c 'until [ -e /etc/kubernetes/manifests/kube-apiserver.yaml ]; do sleep 0.1; done'; kill -9 $(pidof kubeadm)")
	if code := s.wait(t); code == 0 {
		t.Fatal("kgpu did not notice")
	}
	plan := kgpu(t, 2, "plan", c.inventory)
	if said := plan.stdout.String(); !strings.Contains(said, "kubeadm init did not come to its end") {
		t.Errorf("the plan does not say why init begins again:\n%s", said)
	}
}

// nodesAreDeleted takes their nodes away from both workers, which join again: w1, and w2, whose kubelet made itself another one.
func (c *cluster) nodesAreDeleted(t *testing.T) {
	c.k(t, "delete", "node", "w1", "w2")
	c.exec(t, "w2", "systemctl restart kubelet")
	c.awaitNode(t, "w2")
	said := kgpu(t, 2, "plan", c.inventory).stdout.String()
	for _, why := range []string{"join again: the cluster has no node w1", "join again: the node object has another UID"} {
		if !strings.Contains(said, why) {
			t.Errorf("the plan does not say %q:\n%s", why, said)
		}
	}
	c.up(t)
	c.ready(t, "cp1", "w1", "w2")
	kgpu(t, 0, "plan", c.inventory)
}

// awaitNode returns when there is a node of this name.
func (c *cluster) awaitNode(t *testing.T, name string) {
	t.Helper()
	c.k(t, "wait", "--for=create", "node/"+name, "--timeout=170s")
}

// namesAreForgotten takes the API server's name away from hosts.
func (c *cluster) namesAreForgotten(t *testing.T) {
	const forget = "sed -i '/ # kgpu$/d' /etc/hosts"
	c.exec(t, "cp1", forget)
	c.exec(t, "w1", forget)
	if said := kgpu(t, 2, "plan", c.inventory).stdout.String(); strings.Count(said, "does not know api-") != 2 {
		t.Errorf("the plan does not say that two hosts lack the name:\n%s", said)
	}
	c.up(t)
	c.ready(t, "cp1", "w1", "w2")
	kgpu(t, 0, "plan", c.inventory)
	c.exec(t, "w1", forget+"; systemctl start kgpu-api-name.service; systemctl is-enabled kgpu-api-name.service; grep -q ' # kgpu$' /etc/hosts")
	kgpu(t, 0, "plan", c.inventory)
}

// madeByHand makes of the worker w2 the control plane of a cluster of its own, as a person does. kgpu knows its own, and touches
// nothing else.
func (c *cluster) madeByHand(t *testing.T, d desired) {
	c.awaitNode(t, "w2")
	cp1, w1, w2, own := c.host("cp1", ""), c.host("w1", ""), c.host("w2", ""), c.host("w2", "role: control-plane")
	gone := strings.TrimSuffix(c.k(t, "get", "node", "w2", "-o", "jsonpath={.spec.podCIDR}"), "0/24")
	c.k(t, "delete", "node", "w2")
	c.exec(t, "w2", byHand(c.addr["w2"]))
	c.k(t, "delete", "node", "w2", "--ignore-not-found") // its kubelet may have made it anew
	c.forgetPods(t, "w2")
	c.k(t, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	c.ready(t, "cp1", "w1")
	for _, h := range []string{"cp1", "w1"} {
		c.exec(t, h, "for i in $(seq 300); do iptables-save -t nat | grep -qF -- '-s "+gone+"' || exit 0; sleep 0.2; done; exit 1")
	}
	before := c.settled(t, "cp1", "w1", "w2")
	server := strings.TrimSpace(c.exec(t, "w1", "sed -n 's/^ *server: //p' /etc/kubernetes/kubelet.conf"))
	both := fmt.Sprintf("%s (CA %s), not to this one (CA %s)", server, c.authority(t, "cp1"), c.authority(t, "w2"))
	c.refuses(t, d, refusal{hosts: []string{own}, exit: 38, reasons: []string{"w2 HOST_MADE_BY_HAND CA " + c.authority(t, "w2")}})
	c.refuses(t, d, refusal{hosts: []string{own, w1}, flags: []string{"--adopt"}, exit: 69, reasons: []string{"w1 HOST_FOREIGN_CLUSTER " + both}})
	c.refuses(t, d, refusal{hosts: []string{cp1, w1, w2}, exit: 69, reasons: []string{"w2 HOST_FOREIGN_CLUSTER the host is the control plane of a cluster of its own"}})
	d.hosts = []string{cp1, w1, w2}
	kgpu(t, 69, "reset", "--yes", "--inventory", c.write(t, t.TempDir(), d))
	c.unchanged(t, before)
}

// forgetPods deletes those of a node that is gone, CoreDNS perhaps: Kubernetes leaves them to a garbage collector, which takes its time.
func (c *cluster) forgetPods(t *testing.T, node string) {
	t.Helper()
	c.k(t, "delete", "pods", "--all-namespaces", "--field-selector=spec.nodeName="+node, "--force", "--grace-period=0")
}

// takenOver has kgpu told to take the cluster that somebody made by hand on w2.
func (l *lab) takenOver(t *testing.T, d desired) {
	before := l.exec(t, "w2", "cat /etc/kubernetes/pki/ca.crt")
	d.hosts = []string{l.host("w2", "role: control-plane")}
	c := newCluster(t, l, d)
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
`+strings.ReplaceAll(ownDisk, "}, ", "}\n")+`
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
