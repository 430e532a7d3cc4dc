package hosts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/scripts/lab/hosts"
	"kgpu.dev/kgpu/scripts/lab/prepare"
)

func TestDeal(t *testing.T) {
	specs, err := hosts.Wanted(2, "trixie", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := hosts.Deal(specs, []string{"w1=2xT4,nouveau,secureboot", "cp1=1xH100,nouveau-busy,nvswitch", "w2=8xB200,nvlink5,oldkernel"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]hosts.Cards{
		"w1":  {Count: 2, Model: "T4", Nouveau: true, SecureBoot: true},
		"cp1": {Count: 1, Model: "H100", Nouveau: true, NouveauUsers: 1, NVSwitch: true},
		"w2":  {Count: 8, Model: "B200", NVLink5: true, OldKernel: true},
	}
	for _, s := range specs {
		if w, ok := want[s.Name]; ok != (s.Cards != nil) || ok && *s.Cards != w {
			t.Errorf("%s has %+v, want %+v", s.Name, s.Cards, w)
		}
	}
	for _, hand := range []string{"", "w2", "w2=", "w2=T4", "w2=0xT4", "w2=9xT4", "w2=2xVoodoo", "w2=2xT4,disco", "w2=2xT4,nvswitch", "w2=2xH100,nvlink5", "w7=1xT4", "w1=1xT4"} {
		if err := hosts.Deal(specs, []string{hand}); err == nil {
			t.Errorf("%q is accepted", hand)
		}
	}
}

const install = "DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends -y "

// TestCards takes a Debian host with NVIDIA's CUDA repository, and an Ubuntu host with Ubuntu's drivers and Secure Boot, through
// what happens to cards.
func TestCards(t *testing.T) {
	l := newLab(t, "labtest-g")
	if err := prepare.Run(t.Context(), prepare.Options{Place: l.Place, What: []string{"noble", "gpu"}, Out: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	machine := machinesView(t)
	up := []string{"up", "--workers", "0", "--with", "ubuntu", "--gpus", "cp1=2xA100,nouveau,nvswitch", "--gpus", "ubuntu1=1xB200,secureboot"}
	l.must(up...)
	l.must(up...)
	l.fails("LAB_HOST_CARDS", "up", "--workers", "0", "--gpus", "cp1=1xT4")

	t.Run("before the driver", func(t *testing.T) {
		l := testLab{l.Place, t}
		l.says("cp1", "cd /sys/bus/pci/devices; for d in *; do echo $d $(cat $d/vendor $d/class $d/device) $(basename $(readlink -f $d/driver)); done", `
0000:05:00.0 0x10de 0x068000 0x1af1 driver
0000:06:00.0 0x10de 0x068000 0x1af1 driver
0000:07:00.0 0x10de 0x068000 0x1af1 driver
0000:08:00.0 0x10de 0x068000 0x1af1 driver
0000:17:00.0 0x10de 0x030200 0x20b0 nouveau
0000:3d:00.0 0x10de 0x030200 0x20b0 nouveau`)
		l.says("cp1", "cat /sys/module/nouveau/refcnt; lsmod | grep nouveau", "0\nnouveau              1048576  0")
		l.says("cp1", "systemctl is-system-running --wait; ls /dev | grep nvidia; cat /sys/module/nvidia/version", `
running
cat: /sys/module/nvidia/version: No such file or directory`)
		l.says("cp1", "modprobe nvidia; echo $?; modinfo nvidia; rmmod nvidia; modprobe -q overlay && echo the rest is the real kmod", `
modprobe: FATAL: Module nvidia not found in directory /lib/modules/`+kernel(t)+`
1
modinfo: ERROR: Module nvidia not found.
rmmod: ERROR: Module nvidia is not currently loaded
the rest is the real kmod`)
		l.says("ubuntu1", "od -An -tu1 /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "6   0   0   0   1")
	})

	t.Run("the CUDA repository's driver", func(t *testing.T) {
		l := testLab{l.Place, t}
		l.repository("cp1", "debian13")
		// Without headers DKMS builds nothing, and says so.
		l.must("exec", "cp1", "bash", "-c", install+"nvidia-driver-pinning-595")
		l.must("exec", "cp1", "bash", "-c", install+"nvidia-kernel-open-dkms nvidia-driver-cuda nvidia-persistenced")
		l.says("cp1", "modinfo -F version nvidia", "modinfo: ERROR: Module nvidia not found.")
		l.must("exec", "cp1", "bash", "-c", install+"linux-headers-$(uname -r) && "+install+"--reinstall nvidia-kernel-open-dkms")
		l.says("cp1", "modinfo -F version nvidia; nvidia-smi -L >/dev/null; echo $?", "595.91.07\n9")
		l.says("cp1", "modprobe nvidia; rmmod nouveau; modprobe nvidia nvidia_uvm; echo $?; ls -d /dev/nvidia* /proc/driver/nvidia/gpus/*", `
modprobe: ERROR: could not insert 'nvidia': No such device
0
/dev/nvidia-nvswitchctl
/dev/nvidia0
/dev/nvidia1
/dev/nvidiactl
/proc/driver/nvidia/gpus/0000:17:00.0
/proc/driver/nvidia/gpus/0000:3d:00.0`)
		l.says("cp1", "modprobe -a nvidia-uvm; lsmod; basename $(readlink -f /sys/bus/pci/devices/0000:3d:00.0/driver)", `
Module                  Size  Used by
nvidia_uvm           1048576  0
nvidia               1048576  1 nvidia_uvm
nvidia`)
		l.says("cp1", "nvidia-smi -L", cards)
		l.says("cp1", "nvidia-smi --query-gpu=index,name,pci.bus_id,memory.total,driver_version,persistence_mode,mig.mode.current --format=csv,noheader", `
0, NVIDIA A100-SXM4-40GB, 00000000:17:00.0, 40960 MiB, 595.91.07, Disabled, Disabled
1, NVIDIA A100-SXM4-40GB, 00000000:3D:00.0, 40960 MiB, 595.91.07, Disabled, Disabled`)
	})

	t.Run("all drivers can be installed", func(t *testing.T) {
		l := testLab{l.Place, t}
		l.repository("ubuntu1", "ubuntu2404")
		line := kernelLine(t)
		for _, c := range []struct{ host, packages string }{
			{"cp1", "linux-headers-LINE nvidia-driver-pinning-610 nvidia-kernel-dkms nvidia-driver-cuda libnvidia-ml1 nvidia-persistenced nvidia-fabricmanager"},
			{"cp1", "nvidia-driver-pinning-595 nvidia-kernel-open-dkms nvidia-driver-cuda libnvidia-ml1 nvidia-persistenced nvidia-fabricmanager"},
			{"ubuntu1", "linux-headers-LINE nvidia-driver-pinning-580 nvidia-dkms-580 libnvidia-compute-580 nvidia-utils-580 nvidia-compute-utils-580 nvidia-fabricmanager"},
			{"ubuntu1", "nvidia-dkms-580-open libnvidia-compute-580 nvidia-utils-580 nvidia-compute-utils-580"},
			{"ubuntu1", "nvidia-driver-pinning-595 nvidia-dkms libnvidia-compute nvidia-persistenced nvidia-fabricmanager"},
			{"ubuntu1", "nvidia-driver-pinning-595 nvidia-dkms-open libnvidia-compute nvidia-persistenced"},
			{"ubuntu1", "linux-modules-nvidia-580-server-LINE nvidia-headless-no-dkms-580-server nvidia-utils-580-server libnvidia-compute-580-server nvidia-fabricmanager-580"},
			{"ubuntu1", "linux-modules-nvidia-580-server-open-LINE nvidia-headless-no-dkms-580-server-open nvidia-utils-580-server libnvidia-compute-580-server"},
			{"ubuntu1", "linux-modules-nvidia-595-server-LINE nvidia-headless-no-dkms-595-server nvidia-utils-595-server libnvidia-compute-595-server nvidia-fabricmanager-595"},
			{"ubuntu1", "linux-modules-nvidia-595-server-open-LINE nvidia-headless-no-dkms-595-server-open nvidia-utils-595-server libnvidia-compute-595-server"},
		} {
			l.must("exec", c.host, "bash", "-c", install+"--simulate "+strings.ReplaceAll(c.packages, "LINE", line))
		}
	})

	t.Run("a sick driver", func(t *testing.T) {
		l := testLab{l.Place, t}
		for _, c := range []struct{ fault, want string }{
			{"lost 1", strings.Split(cards, "\n")[0] + "\nUnable to determine the device handle for GPU1: GPU is lost\n15"},
			{"mismatch", "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 595.91\n18"},
			{"hang", "124"},
			{"not-ready", cards + "\n0"},
			{"", cards + "\n0"},
		} {
			l.says("cp1", "echo '"+c.fault+"' > /etc/kgpu-lab/gpu-faults; timeout 5 nvidia-smi -L; echo $?", c.want)
		}
	})

	t.Run("reboot and unload", func(t *testing.T) {
		l := testLab{l.Place, t}
		l.must("exec", "cp1", "systemctl", "enable", "-q", "nvidia-persistenced")
		l.must("reboot", "cp1")
		l.says("cp1", "nvidia-smi -L; nvidia-smi --query-gpu=persistence_mode --format=csv,noheader,nounits; ls -d /dev/nvidia-uvm", cards+`
Enabled
Enabled
ls: cannot access '/dev/nvidia-uvm': No such file or directory`)
		l.says("cp1", "rmmod nvidia; systemctl stop nvidia-persistenced; modprobe nvidia_uvm; rmmod nvidia; modprobe -r nvidia_uvm; lsmod; ls /dev /proc/driver | grep nvidia", `
rmmod: ERROR: Module nvidia is in use
rmmod: ERROR: Module nvidia is in use by: nvidia_uvm
Module                  Size  Used by`)
	})

	t.Run("fabric manager", func(t *testing.T) {
		l := testLab{l.Place, t}
		l.must("exec", "cp1", "bash", "-c", "modprobe nvidia && "+install+"nvidia-fabricmanager && systemctl start nvidia-fabricmanager")
		l.must("exec", "ubuntu1", "bash", "-c", install+"nvidia-fabricmanager")
		l.says("ubuntu1", "systemctl -q start nvidia-fabricmanager 2>/dev/null; journalctl --sync; journalctl -u nvidia-fabricmanager | grep -o NV_WARN_.*", "NV_WARN_NOTHING_TO_DO]")
	})

	t.Run("nouveau comes back when nothing is in its way", func(t *testing.T) {
		l := testLab{l.Place, t}
		l.must("exec", "cp1", "bash", "-c", "apt-get -qq purge -y nvidia-kernel-open-dkms && ! ls /lib/modules/*/updates /var/lib/dkms 2>/dev/null")
		l.must("reboot", "cp1")
		l.says("cp1", "lsmod", "Module                  Size  Used by\nnouveau              1048576  0")
		l.must("exec", "cp1", "bash", "-c", "echo blacklist nouveau > /etc/modprobe.d/no-nouveau.conf")
		l.must("kill", "cp1")
		l.must("start", "cp1")
		l.says("cp1", "lsmod", "Module                  Size  Used by")
	})

	t.Run("Secure Boot takes what Ubuntu signed, and Blackwell the open modules", func(t *testing.T) {
		l := testLab{l.Place, t}
		modules := install + "--allow-downgrades nvidia-utils-580-server linux-modules-nvidia-580-server"
		l.must("exec", "ubuntu1", "bash", "-c", modules+"-$(uname -r)")
		l.says("ubuntu1", "modprobe nvidia", "modprobe: ERROR: could not insert 'nvidia': No such device")
		l.must("exec", "ubuntu1", "bash", "-c", "apt-get -qq purge -y linux-modules-nvidia-580-server-$(uname -r); "+modules+"-open-"+kernelLine(t))
		l.says("ubuntu1", "modprobe nvidia; modinfo -F license nvidia; nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader; rmmod nvidia",
			"Dual MIT/GPL\nNVIDIA B200, 10.0")
		l.must("exec", "ubuntu1", "bash", "-c", install+"linux-headers-$(uname -r) nvidia-dkms-580-open")
		l.says("ubuntu1", "modprobe nvidia", "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service")
	})

	if after := machinesView(t); !slices.Equal(machine, after) {
		t.Errorf("the machine has\n%q\nand had\n%q", after, machine)
	}
}

// The cards of cp1, whose UUIDs are the same in every lab.
const cards = `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-69e114d7-4910-67e1-c146-cc0d12cb6373)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-dc7a85c5-c08e-9342-228c-3b6a86ca1fc8)`

// says compares all that a command in a host prints.
func (l testLab) says(host, command, want string) {
	l.t.Helper()
	out, _, _ := l.run("exec", host, "bash", "-c", "exec 2>&1; "+command)
	if got := strings.TrimSpace(out); got != strings.TrimSpace(want) {
		l.t.Errorf("%s: %s\nprints\n%s\nwant\n%s", host, command, got, strings.TrimSpace(want))
	}
}

// repository adds NVIDIA's repository as its installation guide says.
func (l testLab) repository(host, distribution string) {
	l.t.Helper()
	url := "https://developer.download.nvidia.com/compute/cuda/repos/" + distribution + "/x86_64/"
	l.must("exec", host, "bash", "-c", "curl -fsS -o /usr/share/keyrings/cuda.asc "+url+"Release.key && "+
		"echo 'deb [signed-by=/usr/share/keyrings/cuda.asc] "+url+" /' > /etc/apt/sources.list.d/cuda.list && apt-get -qq update")
}

func kernel(t *testing.T) string {
	t.Helper()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(release))
}

// kernelLine is what the names of the machine's kernel packages end with.
func kernelLine(t *testing.T) string {
	t.Helper()
	return regexp.MustCompile(`^[0-9][^-]*(-[0-9][^-]*)*-`).ReplaceAllString(kernel(t), "")
}

// machinesView is what the machine has where hosts have cards.
func machinesView(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{"/sys/bus/pci/devices", "/sys/bus/pci/drivers", "/sys/module", "/sys/firmware", "/proc/driver"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, dir+"/"+e.Name())
		}
	}
	return all
}
