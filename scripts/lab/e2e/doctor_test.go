package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDoctor plants the faults that a host of the lab can have, one by one: kgpu doctor finds each and nothing else, finds
// nothing on healthy hosts and changes nothing there, and repairs what it says it can. The cluster is made while kgpu is killed
// twice and looked at by others.
func TestDoctor(t *testing.T) {
	l := newLab(t, []string{"gpu"}, "--workers", "1", "--gpus", "w1=2xH100,nvswitch,nouveau")
	l.standInForKernelLog(t, "cp1", "w1")
	d := desired{version: "1.36", runtime: "containerd", network: "flannel", more: l.forCards() + "gpu: {cuda: none}\nnotebook: {framework: none}\n",
		hosts: []string{l.host("cp1", ""), l.host("w1", "")}}
	c := newCluster(t, l, d)
	must(t, "bare", func(t *testing.T) {
		if found := c.diagnosed(t, withErrors); !slices.Contains(found, "w1 GPU_NOUVEAU_BUSY") || slices.Contains(found, "w1 GPU_DRIVER_MISSING") {
			t.Errorf("found %v", found)
		}
		l.exec(t, "w1", "rmmod nouveau")
		if found := c.diagnosed(t, withErrors); !slices.Contains(found, "w1 GPU_DRIVER_MISSING") || slices.Contains(found, "w1 GPU_NOUVEAU_BUSY") {
			t.Errorf("found %v without nouveau", found)
		}
	})
	must(t, "up, which is killed twice", func(t *testing.T) {
		c.history(t, "cp1", "w1")
		c.offers(t, "cp1= w1=2")
	})
	must(t, "healthy", func(t *testing.T) {
		before := l.settled(t, "cp1", "w1")
		c.diagnosed(t, 0)
		l.unchanged(t, before)
		if said := kgpu(t, 0, "doctor", "-i", c.inventory).stdout.String(); !strings.Contains(said, "healthy: ") || !strings.Contains(said, "0 errors, 0 warnings") {
			t.Errorf("kgpu doctor said\n%s", said)
		}
	})
	for _, faults := range together(slices.Concat(faultsOfCards, faultsOfContainers, faultsOfNodes)) {
		name := faults[0].name
		if len(faults) > 1 {
			name = faults[0].group
		}
		t.Run(name, func(t *testing.T) {
			if faults[0].long {
				long(t)
			}
			c.diagnoses(t, faults...)
		})
	}
	t.Run("a clock is wrong, and a host is not there", func(t *testing.T) {
		l.setClock(t, "w1", "1 hour ago")
		d := d
		d.hosts = append(slices.Clone(d.hosts), "{address: 127.0.0.1, name: nobody, ssh: {port: 1}}")
		s := kgpu(t, withErrors, "doctor", "--output=json", "-i", l.write(t, t.TempDir(), d))
		found := l.found(t, s)
		for _, want := range []string{"w1 HOST_CLOCK_SKEW", "nobody SSH_UNREACHABLE"} {
			if !slices.Contains(found, want) {
				t.Errorf("found %v without %s", found, want)
			}
		}
	})
	const stuck = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e2e", "namespace": "kube-system"}, "spec": {"nodeName": "cp1", "containers": [{"name": "c", "image": "nvcr.io/nvidia/none:1"}]}}`
	l.exec(t, "cp1", onCluster(stuck)) // for two minutes, it may be starting
	t.Run("a firewall between the nodes", func(t *testing.T) {
		l.exec(t, "w1", "iptables -I INPUT -p udp --dport 8472 -j DROP")
		if found := c.diagnosed(t, withErrors); !slices.Equal(found, []string{"cp1 NET_PODS_UNREACHABLE", "w1 NET_PODS_UNREACHABLE"}) {
			t.Errorf("found %v", found)
		}
		l.exec(t, "w1", "iptables -D INPUT -p udp --dport 8472 -j DROP")
	})
	t.Run("the log of the founding document", func(t *testing.T) {
		founding, err := os.ReadFile("../../../bootstrap/doctor/testdata/founding-hung.txt")
		if err != nil {
			t.Fatal(err)
		}
		l.exec(t, "w1", kernelLog(string(founding)))
		booted := l.exec(t, "w1", "cat /proc/sys/kernel/random/boot_id")
		said := start(t, "no\n", "doctor", "--fix", "-i", c.inventory, l.addr["w1"])
		if code := said.wait(t); code != withErrors || !strings.Contains(said.stdout.String(), "GPU_HUNG") || !strings.Contains(said.stdout.String(), "This drains nodes and reboots hosts:") {
			t.Errorf("status %d, it said\n%s", code, said.stdout.String())
		}
		if now := l.exec(t, "w1", "cat /proc/sys/kernel/random/boot_id"); now != booted {
			t.Fatal("w1 was rebooted although nobody agreed")
		}
		kgpu(t, 0, "doctor", "--fix", "--yes", "-i", c.inventory, l.addr["w1"])
		if now := l.exec(t, "w1", "cat /proc/sys/kernel/random/boot_id"); now == booted {
			t.Error("w1 did not reboot")
		}
		c.ready(t, "cp1", "w1")
		c.offers(t, "cp1= w1=2")
		l.exec(t, "w1", noKernelLog)
	})
	t.Run("the node watches its cards", func(t *testing.T) {
		look := func() { l.exec(t, "w1", "systemctl start kgpu-gpu-watch.service || :") } // which the timer does every minute
		kgpu(t, 0, "doctor", "--install-watch", "-i", c.inventory)
		kgpu(t, 0, "doctor", "--install-watch", "-i", c.inventory)
		c.k(t, "wait", "--for=condition=GPUHealthy", "node/w1", "--timeout=170s")
		l.exec(t, "w1", "echo lost 1 >/etc/kgpu-lab/gpu-faults")
		look()
		c.k(t, "wait", "--for=condition=GPUHealthy=False", "node/w1", "--timeout=170s")
		c.awaitOffer(t, "cp1= w1=1")
		if found := c.diagnosed(t, withErrors); !slices.Contains(found, "w1 GPU_NOT_ALL_CARDS") {
			t.Errorf("found %v of a card that is lost", found)
		}
		l.exec(t, "w1", ": >/etc/kgpu-lab/gpu-faults")
		look()
		c.k(t, "wait", "--for=condition=GPUHealthy", "node/w1", "--timeout=170s")
		// The device plugin does not take it back by itself.
		if found := c.diagnosed(t, withErrors); !slices.Contains(found, "w1 GPU_UNHEALTHY") {
			t.Errorf("found %v of a card that is back", found)
		}
		start(t, "", "doctor", "--fix", "--yes", "-i", c.inventory).wait(t) // the stuck pod stays
		c.offers(t, "cp1= w1=2")
	})
	t.Run("a pod of the cluster's is stuck", func(t *testing.T) {
		c.diagnoses(t, fault{on: "cp1", slow: true, plant: ":", heal: notOnCluster("pod", "e2e"), exit: withWarnings, want: "cp1 POD_STUCK"})
	})
}

// diagnosed returns what kgpu doctor finds, as "host ID".
func (c *cluster) diagnosed(t *testing.T, exit int) []string {
	t.Helper()
	return c.found(t, kgpu(t, exit, "doctor", "--output=json", "-i", c.inventory))
}

func (l *lab) found(t *testing.T, s *session) []string {
	t.Helper()
	var d struct {
		Schema int
		Hosts  []struct {
			Host     string
			Findings []struct{ ID string }
		}
	}
	if err := json.Unmarshal(s.stdout.Bytes(), &d); err != nil || d.Schema != 1 {
		t.Fatalf("%v: %s", err, s.stdout.String())
	}
	var out []string
	for _, h := range d.Hosts {
		name := h.Host
		for host, address := range l.addr {
			if address == h.Host {
				name = host
			}
		}
		for _, f := range h.Findings {
			out = append(out, name+" "+f.ID)
		}
	}
	return out
}
