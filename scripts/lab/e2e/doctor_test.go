package e2e

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDoctor plants the faults that a host of the lab can have, one by one: kgpu doctor finds each and nothing else, finds
// nothing on healthy hosts and changes nothing there, and repairs what it says it can. The kernel's log is a stand-in: the
// hosts share the machine's.
func TestDoctor(t *testing.T) {
	l := newLab(t, []string{"gpu"}, "--workers", "1", "--gpus", "w1=2xA100")
	for _, host := range []string{"cp1", "w1"} {
		l.exec(t, host, `cat >/usr/local/sbin/journalctl <<'END'
#!/bin/bash
read -r boot </proc/sys/kernel/random/boot_id
case " $* " in *" -k "*) cat "/etc/kgpu-lab/kernel-log-$boot" 2>/dev/null; exit 0 ;; esac
exec /usr/bin/journalctl "$@"
END
chmod 755 /usr/local/sbin/journalctl; mkdir -p /etc/kgpu-lab`)
	}
	fresh := l.snapshot(t, "cp1", "w1")
	d := desired{version: "1.36", runtime: "containerd", network: "flannel", more: l.forCards() + "gpu: {cuda: none}\nnotebook: {framework: none}\n",
		hosts: []string{l.host("cp1", ""), l.host("w1", "")}}
	c := newCluster(t, l, d)
	must(t, "up", func(t *testing.T) {
		c.up(t)
		c.offers(t, "cp1= w1=2")
	})
	must(t, "healthy", func(t *testing.T) {
		before := l.snapshot(t, "cp1", "w1")
		c.diagnosed(t, 0)
		l.unchanged(t, before)
		if said := kgpu(t, 0, "doctor", "-i", c.inventory).stdout.String(); !strings.Contains(said, "healthy: ") || !strings.Contains(said, "0 errors, 0 warnings") {
			t.Errorf("kgpu doctor said\n%s", said)
		}
	})
	log := func(text string) string {
		return "read -r boot </proc/sys/kernel/random/boot_id; base64 -d >/etc/kgpu-lab/kernel-log-$boot <<<" + base64.StdEncoding.EncodeToString([]byte(text))
	}
	founding, err := os.ReadFile("../../../bootstrap/doctor/testdata/founding-hung.txt")
	if err != nil {
		t.Fatal(err)
	}
	const noLog = "rm -f /etc/kgpu-lab/kernel-log-*"
	const errors, warnings = 1, 2
	for _, fault := range []struct {
		name, plant, heal string // scripts on w1; no heal: --fix does it
		exit              int
		want              string
		also              []string // what may come with it
	}{
		{"persistence is off", "systemctl stop nvidia-persistenced", "", warnings, "GPU_PERSISTENCE_OFF", []string{"HOST_DRIFT"}},
		{"a hold is lost", "apt-mark unhold kubelet", "", warnings, "HOST_HOLD_LOST", []string{"HOST_DRIFT"}},
		{"the kubelet is down", "systemctl stop kubelet", "", errors, "KUBELET_DOWN", nil},
		{"repositories contradict each other", "echo 'deb [signed-by=/etc/a.gpg] https://download.docker.com/linux/debian trixie stable' >/etc/apt/sources.list.d/zz-a.list; " +
			"echo 'deb [signed-by=/etc/b.gpg] https://download.docker.com/linux/debian trixie stable' >/etc/apt/sources.list.d/zz-b.list",
			"rm /etc/apt/sources.list.d/zz-*", errors, "APT_SIGNED_BY_CONFLICT", nil},
		{"the drivers for cgroups differ", "sed -i.was 's/^cgroupDriver: systemd/cgroupDriver: cgroupfs/' /var/lib/kubelet/config.yaml", "mv /var/lib/kubelet/config.yaml.was /var/lib/kubelet/config.yaml",
			errors, "CGROUP_DRIVER_MISMATCH", nil},
		{"the cards are described of another driver", "cp -a /var/run/cdi/nvidia.yaml /root/cdi.was; sed -i -E 's/\\.so\\.[0-9]{3}\\.[0-9.]+/.so.580.11.22/' /var/run/cdi/nvidia.yaml",
			"mv /root/cdi.was /var/run/cdi/nvidia.yaml", errors, "GPU_CDI_STALE", nil},
		{"a card fell off the bus", log("2026-11-20T13:00:01+00:00 w1 kernel: NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"), noLog, errors, "GPU_FELL_OFF_BUS", nil},
		{"the firmware does not answer", log("NVRM: Xid (PCI:0000:17:00): 119, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"), noLog, errors, "GPU_GSP_TIMEOUT", nil},
		{"a card has an error", log("NVRM: Xid (PCI:0000:17:00): 94, pid=4711, name=python, Contained\n"), noLog, warnings, "GPU_XID", nil},
		{"a file system is read-only", log("EXT4-fs (sda1): Remounting filesystem read-only\n"), noLog, errors, "HOST_FILES_READONLY", nil},
		{"the host has no memory left", log("Out of memory: Killed process 4711 (python)\n"), noLog, warnings, "HOST_MEMORY_EXHAUSTED", nil},
		{"the driver hangs", "echo hang >/etc/kgpu-lab/gpu-faults", ": >/etc/kgpu-lab/gpu-faults", errors, "GPU_HUNG", nil},
		{"the library is another", "echo mismatch >/etc/kgpu-lab/gpu-faults", ": >/etc/kgpu-lab/gpu-faults", errors, "GPU_DRIVER_MISMATCH", nil},
		{"a card is lost", "echo lost 1 >/etc/kgpu-lab/gpu-faults", "", errors, "GPU_NOT_ALL_CARDS", []string{"GPU_OFFERED_LOST"}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			l.exec(t, "w1", fault.plant)
			found := c.diagnosed(t, fault.exit)
			if !slices.Contains(found, "w1 "+fault.want) {
				t.Errorf("found %v, want %s", found, fault.want)
			}
			for _, id := range found {
				if _, name, _ := strings.Cut(id, " "); name != fault.want && !slices.Contains(fault.also, name) {
					t.Errorf("found %s, too", id)
				}
			}
			if fault.want == "GPU_NOT_ALL_CARDS" { // it comes back, and the device plugin does not take it back by itself
				c.awaitOffer(t, "cp1= w1=1")
				l.exec(t, "w1", ": >/etc/kgpu-lab/gpu-faults")
				if found := c.diagnosed(t, errors); !slices.Equal(found, []string{"w1 GPU_UNHEALTHY"}) {
					t.Errorf("found %v of a card that is back", found)
				}
			}
			if fault.heal != "" {
				l.exec(t, "w1", fault.heal)
				start(t, "", "doctor", "--fix", "--yes", "-i", c.inventory).wait(t) // what the device plugin gave up meanwhile
			} else {
				kgpu(t, 0, "doctor", "--fix", "--yes", "-i", c.inventory, l.addr["w1"])
			}
			c.diagnosed(t, 0)
		})
	}
	t.Run("a node is cordoned", func(t *testing.T) {
		c.k(t, "cordon", "w1")
		if found := c.diagnosed(t, warnings); !slices.Equal(found, []string{"w1 NODE_CORDONED"}) {
			t.Errorf("found %v", found)
		}
		c.k(t, "uncordon", "w1")
	})
	t.Run("a host that is not there", func(t *testing.T) {
		d := d
		d.hosts = append(slices.Clone(d.hosts), "{address: 127.0.0.1, name: nobody, ssh: {port: 1}}")
		s := kgpu(t, errors, "doctor", "--output=json", "-i", l.write(t, t.TempDir(), d))
		if found := l.found(t, s); !slices.Equal(found, []string{"nobody SSH_UNREACHABLE"}) {
			t.Errorf("found %v", found)
		}
	})
	t.Run("the log of the founding document", func(t *testing.T) {
		l.exec(t, "w1", log(string(founding)))
		booted := l.exec(t, "w1", "cat /proc/sys/kernel/random/boot_id")
		said := start(t, "no\n", "doctor", "--fix", "-i", c.inventory, l.addr["w1"])
		if code := said.wait(t); code != errors || !strings.Contains(said.stdout.String(), "GPU_HUNG") || !strings.Contains(said.stdout.String(), "This drains nodes and reboots hosts:") {
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
		l.exec(t, "w1", noLog)
	})
	t.Run("the node watches its cards", func(t *testing.T) {
		kgpu(t, 0, "doctor", "--install-watch", "-i", c.inventory)
		kgpu(t, 0, "doctor", "--install-watch", "-i", c.inventory)
		c.k(t, "wait", "--for=condition=GPUHealthy", "node/w1", "--timeout=170s")
		l.exec(t, "w1", "echo lost 1 >/etc/kgpu-lab/gpu-faults")
		c.k(t, "wait", "--for=condition=GPUHealthy=False", "node/w1", "--timeout=170s")
		l.exec(t, "w1", ": >/etc/kgpu-lab/gpu-faults")
		c.k(t, "wait", "--for=condition=GPUHealthy", "node/w1", "--timeout=170s")
	})
	t.Run("reset", func(t *testing.T) {
		l.exec(t, "w1", "chmod -x /usr/local/sbin/kgpu-gpu-watch; systemctl start kgpu-gpu-watch.service || :") // a check that failed
		kgpu(t, 0, "reset", "--yes", "--inventory", c.inventory)
		if left := l.exec(t, "w1", "systemctl list-units --all --plain --no-legend 'kgpu-gpu-watch*'"); left != "" {
			t.Errorf("systemd still knows %s", left)
		}
		delete(fresh, "w1") // it was booted anew, which changes its units and mounts
		l.unchanged(t, fresh)
		if left := l.exec(t, "w1", "ls -d /usr/local/sbin/kgpu-* /etc/systemd/system/kgpu-* 2>/dev/null || :"); left != "" {
			t.Errorf("the watch is left: %s", left)
		}
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
