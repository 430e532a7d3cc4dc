package e2e

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// private are the addresses in a second network.
var private = map[string]string{"cp1": "192.168.50.10", "w1": "192.168.50.11"}

// TestRender makes a cluster as those do who may not automate: the folders are carried to the hosts, and the scripts in them
// run by hand, in the order of the README. What comes of it is what kgpu would have made: it has nothing left to do. The hosts
// have a second network, which the inventory names, and the first lets no packets of pods through.
func TestRender(t *testing.T) {
	l := newLab(t, []string{"gpu"}, "--workers", "1", "--gpus", "w1=1xT4")
	for host, peer := range map[string]string{"cp1": "w1", "w1": "cp1"} {
		l.exec(t, host, "ip link add priv0 type vxlan id 77 dstport 4790 dev eth0 remote "+l.addr[peer]+"; ip address add "+private[host]+"/24 dev priv0; ip link set priv0 up; "+
			"iptables -I INPUT -i eth0 -p udp --dport 8472 -j DROP")
	}
	fresh := l.snapshot(t, "cp1", "w1")
	c := newCluster(t, l, desired{
		version: "1.36", runtime: "containerd", network: "flannel", more: l.forCards() + "gpu: {cuda: none}\n",
		hosts: []string{l.host("cp1", "name: cp1, privateAddress: "+private["cp1"]), l.host("w1", "name: w1, privateAddress: "+private["w1"])},
	})
	out := filepath.Join(t.TempDir(), "by-hand")
	kgpu(t, 0, "render", "--out", out, c.inventory)
	l.unchanged(t, fresh)
	for _, host := range []string{"cp1", "w1"} {
		l.carry(t, out, host)
	}

	must(t, "init-master.sh", func(t *testing.T) { l.exec(t, "cp1", "bash /root/cp1/init-master.sh 2>&1") })
	join := l.exec(t, "cp1", "cat /root/cp1/join.env")
	must(t, "init-worker.sh", func(t *testing.T) {
		l.exec(t, "w1", "umask 077; cat >/root/w1/join.env <<'end'\n"+join+"\nend\nbash /root/w1/init-worker.sh 2>&1")
	})
	must(t, "init-master-2.sh", func(t *testing.T) {
		l.exec(t, "cp1", "bash /root/cp1/init-master-2.sh 2>&1; [ ! -e /root/cp1/join.env ]")
	})
	must(t, "init-worker-2.sh", func(t *testing.T) { l.exec(t, "w1", "bash /root/w1/init-worker-2.sh 2>&1") })
	if labels := l.exec(t, "cp1", "HOME=/proc/none kubectl --kubeconfig /etc/kubernetes/admin.conf get node w1 --show-labels"); !strings.Contains(labels, "nvidia.com/gpu.product=Tesla-T4") {
		t.Errorf("the labels of the cards are not among\n%s", labels)
	}
	if nodes := l.exec(t, "cp1", "HOME=/proc/none kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes --no-headers"); strings.Count(nodes, " Ready ") != 2 {
		t.Errorf("the nodes are\n%s", nodes)
	}
	kgpu(t, 0, "plan", c.inventory)
	t.Run("the second network", func(t *testing.T) {
		kgpu(t, 0, "status", c.inventory)
		const blocked = "INPUT -i priv0 -p udp --dport 8472 -j DROP"
		l.exec(t, "w1", "iptables -I "+blocked)
		if said := kgpu(t, 2, "status", c.inventory).stdout.String(); !strings.Contains(said, "NET_PODS_UNREACHABLE") {
			t.Errorf("pods do not reach each other, and it says\n%s", said)
		}
		l.exec(t, "w1", "iptables -D "+blocked)
	})
	if said := kgpu(t, 0, "render", "--out", out, c.inventory).stdout.String(); !strings.Contains(said, "nothing was written") {
		t.Errorf("rendered once more, kgpu says\n%s", said)
	}
	if secrets := l.exec(t, "cp1", "HOME=/proc/none kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get secrets -o name"); strings.Contains(secrets, "bootstrap-token-") {
		t.Errorf("a token is left:\n%s", secrets)
	}
	// What was made by hand goes as if kgpu had made it.
	for host := range fresh {
		l.exec(t, host, "rm -rf /root/"+host)
	}
	kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
	l.unchanged(t, fresh)
}

// carry puts a host's folder into root's home there.
func (l *lab) carry(t *testing.T, dir, host string) {
	t.Helper()
	packed, err := exec.CommandContext(t.Context(), "tar", "-czf", "-", "-C", dir, host).Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := labCommand(t.Context(), l.Name, "exec", host, "tar", "-xzpf", "-", "-C", "/root")
	cmd.Stdin = bytes.NewReader(packed)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", host, err, said)
	}
}
