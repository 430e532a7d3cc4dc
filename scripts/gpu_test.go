package scripts

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"text/template"
)

// gpuHost is a sandbox with /sys, /dev and /proc/devices of its own, which lie under /gpu and last from one script to the
// next. Its kmod loads what has a file under /gpu/modules, which holds the version; the driver and its tool say what the
// files under /gpu say.
type gpuHost struct{ *sandbox }

func newGPUHost(t *testing.T, cards ...string) gpuHost {
	t.Helper()
	s := gpuHost{newSandbox(t)}
	for _, node := range []string{"null", "zero", "full", "random", "urandom"} {
		s.write("gpu/dev/"+node, "")
		s.binds = append(s.binds, [2]string{"/dev/" + node, "gpu/dev/" + node})
	}
	s.binds = append(s.binds, [2]string{"gpu/dev", "dev"}, [2]string{"gpu/sys", "sys"}, [2]string{"gpu/devices", "proc/devices"})
	s.must(os.Symlink("/proc/self/fd", s.path("gpu/dev/fd")))
	for _, dir := range []string{"gpu/sys/module", "gpu/sys/bus/pci/devices", "gpu/modules", "gpu/lib", "gpu/used", "run/mount"} {
		s.must(os.MkdirAll(s.path(dir), 0o755))
	}
	s.pci("0000:00:02.0", "0x8086", "0x030000") // the machine's own display
	for _, card := range cards {
		s.pci(card, "0x10de", "0x030200")
		s.pci(strings.TrimSuffix(card, "0")+"1", "0x10de", "0x040300") // the sound of a card
	}
	s.write("gpu/devices", "Character devices:\n  1 mem\n195 nvidia\n")
	s.write("gpu/smi", "")
	s.write("tmp/calls", "")
	s.library("nvidia_library_dirs=(/nowhere /gpu/lib)\n")
	s.stub("modprobe", `#!/bin/bash
remove= dry=
for word; do case $word in -r) remove=yes ;; -n | --show-depends) dry=yes ;; -*) ;; *) module=$word ;; esac; done
echo "modprobe $*" >>/tmp/calls
busy() {
  [[ ! -e /gpu/used/$module ]] || return 0
  [[ $module == nvidia ]] || return 1
  [[ -e /sys/module/nvidia_uvm ]] || grep -qs ',active,' /var/units/nvidia-persistenced.service
}
if [[ -n $remove ]]; then
  if busy; then
    echo "modprobe: FATAL: Module $module is in use." >&2
    exit 1
  fi
  rm -rf "/sys/module/$module"
  exit 0
fi
if [[ -e /gpu/refused ]]; then echo "modprobe: ERROR: could not insert '$module': $(</gpu/refused)" >&2; exit 1; fi
if [[ ! -e /gpu/modules/$module ]]; then echo "modprobe: FATAL: Module $module not found in directory /lib/modules/6.8.0" >&2; exit 1; fi
if [[ -n $dry ]]; then exit; fi
mkdir -p "/sys/module/$module"
cp "/gpu/modules/$module" "/sys/module/$module/version"
if [[ $module == nvidia ]]; then touch /dev/nvidia0 /dev/nvidiactl; fi
`)
	s.stub("nvidia-modprobe", "#!/bin/sh\necho \"nvidia-modprobe $*\" >>/tmp/calls\n")
	s.stub("modinfo", "#!/bin/sh\nexec cat /gpu/modules/nvidia\n")
	s.stub("nvidia-smi", "#!/bin/sh\necho \"nvidia-smi $*\" >>/tmp/calls\ncat /gpu/smi\nexit $(cat /gpu/smi-status 2>/dev/null || echo 0)\n")
	s.stub("journalctl", "#!/bin/sh\ncase $* in *-k*) cat /gpu/kernel-log ;; esac\n")
	s.stub("update-initramfs", "#!/bin/sh\nls /etc/modprobe.d >>/tmp/initramfs 2>/dev/null || echo nothing >>/tmp/initramfs\n[ ! -e /initramfs-fails ] || { echo 'gzip: stdout: No space left on device'; exit 1; }\n")
	return s
}

// pci puts a device on the bus.
func (s gpuHost) pci(address, vendor, class string) {
	s.t.Helper()
	s.write("gpu/sys/bus/pci/devices/"+address+"/vendor", vendor+"\n")
	s.write("gpu/sys/bus/pci/devices/"+address+"/class", class+"\n")
	s.write("gpu/sys/bus/pci/devices/"+address+"/device", "0x20b0\n")
}

// bound gives a device to a kernel driver.
func (s gpuHost) bound(address, driver string) {
	s.t.Helper()
	link := s.path("gpu/sys/bus/pci/devices/" + address + "/driver")
	_ = os.Remove(link)
	s.must(os.Symlink("../../../bus/pci/drivers/"+driver, link))
}

// driver puts the libraries and the modules of a version there.
func (s gpuHost) driver(version string) {
	s.t.Helper()
	s.write("gpu/lib/libnvidia-ml.so."+version, "")
	_ = os.Remove(s.path("gpu/lib/libnvidia-ml.so.1"))
	s.must(os.Symlink("libnvidia-ml.so."+version, s.path("gpu/lib/libnvidia-ml.so.1")))
	s.write("gpu/modules/nvidia", version+"\n")
	s.write("gpu/modules/nvidia_uvm", "")
}

func (s gpuHost) loaded(module string) bool { return s.exists("gpu/sys/module/" + module) }

// detail fails the test unless the last failure says this.
func (s *sandbox) detail(want ...string) {
	s.t.Helper()
	got := s.read(stepDir + "/failure")
	for _, w := range want {
		if !strings.Contains(got, w) {
			s.t.Errorf("failure %q does not say %q", got, w)
		}
	}
}

func TestDriverNouveauGoes(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.write("gpu/modules/nouveau", "")
	s.write("gpu/sys/module/nouveau/version", "")
	s.file("/etc/modprobe.d/kgpu-nouveau.conf", "blacklist nouveau\n")
	before := s.snapshot()
	for range 2 {
		s.ok(s.step("driver-nouveau"))
		if s.loaded("nouveau") {
			t.Fatal("nouveau is still there")
		}
	}
	s.holds("tmp/initramfs", "kgpu-nouveau.conf\n")
	s.undone(before)
	s.holds("tmp/initramfs", "kgpu-nouveau.conf\nnothing\n")
}

func TestDriverNouveauInUse(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.write("gpu/modules/nouveau", "")
	s.write("gpu/sys/module/nouveau/version", "")
	s.write("gpu/used/nouveau", "")
	s.file("/etc/modprobe.d/kgpu-nouveau.conf", "blacklist nouveau\n")
	before := s.snapshot()
	r := s.ok(s.step("driver-nouveau"))
	if !s.loaded("nouveau") || !strings.Contains(r.output, "nouveau is in use: it stays until the next boot") {
		t.Errorf("it says:\n%s", r.output)
	}
	s.must(os.RemoveAll(s.path("gpu/sys/module/nouveau"))) // the next boot
	s.ok(s.step("driver-nouveau"))
	s.undone(before)
}

// The initramfs is made again by a step that comes after one which could not.
func TestDriverNouveauAfterAnInitramfsThatFailed(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.file("/etc/modprobe.d/kgpu-nouveau.conf", "blacklist nouveau\n")
	s.write("initramfs-fails", "")
	s.fails(s.step("driver-nouveau"), 1, "HOST_DISK_FULL")
	s.remove("initramfs-fails")
	s.twice("driver-nouveau")
	s.holds("tmp/initramfs", strings.Repeat("kgpu-nouveau.conf\n", 2))
}

// cudaRepository offers what a driver of NVIDIA's repository consists of, in two branches.
func (s gpuHost) cudaRepository(build string) {
	s.t.Helper()
	s.repository(
		deb{name: "linux-headers-6.8.0-40-generic", version: "6.8.0-40.40"},
		deb{name: "dkms", version: "3.0.11", postinst: "mkdir -p /var/lib/dkms; : >/var/lib/dkms/mok.key"},
		deb{name: "nvidia-driver-pinning-595", version: "595-1", files: map[string]string{
			"/etc/apt/preferences.d/nvidia-driver-pin": "Package: libnvidia-* nvidia-*\nPin: version 595.*\nPin-Priority: 1001\n",
		}},
		deb{name: "libnvidia-compute", version: "595.91.07-1ubuntu1"}, deb{name: "libnvidia-compute", version: "610.57.04-1ubuntu1"},
		deb{name: "nvidia-dkms-open", version: "595.91.07-1ubuntu1", depends: "dkms", postinst: build},
		deb{name: "nvidia-dkms-open", version: "610.57.04-1ubuntu1", depends: "dkms"},
	)
	s.value("headers", "linux-headers-6.8.0-40-generic\n")
	s.value("packages", "nvidia-driver-pinning-595\nlibnvidia-compute\nnvidia-dkms-open\n")
	s.value("version_package", "libnvidia-compute")
}

func TestDriverInstall(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.cudaRepository("echo 595.91.07 >/gpu/modules/nvidia; mkdir -p /sys/module/nvidia")
	s.write("etc/apt/preferences.d/theirs", "")
	s.file("/etc/apt/apt.conf.d/52kgpu-nvidia", "Unattended-Upgrade::Package-Blacklist {\"nvidia-\";};\n")
	before := s.snapshot()
	s.twice("driver-install")
	for name, want := range map[string]string{
		"nvidia-driver-pinning-595": "hold installed 595-1", "libnvidia-compute": "hold installed 595.91.07-1ubuntu1", "nvidia-dkms-open": "hold installed 595.91.07-1ubuntu1",
		"linux-headers-6.8.0-40-generic": "install installed 6.8.0-40.40", "dkms": "install installed 3.0.11",
	} {
		s.packageIs(name, want)
	}
	s.holds(stepDir+"/out/version", "595.91.07\n")
	s.must(os.Remove(s.path("gpu/modules/nvidia"))) // what the stand-in for dkms built
	s.undone(before)
	s.prints("apt-mark showhold", "")
}

// What dkms has for others, and the key that their owner enrolled, are not kgpu's.
func TestUndoOfADriverBesideModulesOfOthers(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.ok(s.script("claim_tree /var/lib/dkms /var/lib/shim-signed /var/lib/shim-signed/mok"))
	s.repository(deb{name: "dkms", version: "3.0.11"})
	s.ok(s.script("apt_update; apt_get install dkms"))
	s.write("var/lib/dkms/zfs/2.2.2/source", "")
	s.write("var/lib/shim-signed/mok/MOK.priv", "")
	r := s.ok(s.script("undo_all"))
	if !s.exists("var/lib/dkms/zfs/2.2.2/source") || !s.exists("var/lib/shim-signed/mok/MOK.priv") || !strings.Contains(r.output, "not undone: /var/lib/dkms: dkms is installed") {
		t.Errorf("they are gone: %s", r.output)
	}
}

func TestDriverExactVersion(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.write("gpu/modules/nvidia", "580.173.02\n")
	s.repository(deb{name: "nvidia-utils-580-server", version: "580.173.02-0ubuntu0.24.04.1"}, deb{name: "nvidia-utils-580-server", version: "580.95.05-0ubuntu0.24.04.1"})
	s.value("version_package", "nvidia-utils-580-server")
	s.value("packages", "nvidia-utils-580-server=580.95.06-0ubuntu0.24.04.1\n")
	s.fails(s.step("driver-install"), 1, "PACKAGE_MISSING")
	s.detail("nvidia-utils-580-server=580.95.06-0ubuntu0.24.04.1 is not offered; there is: 580.173.02-0ubuntu0.24.04.1 580.95.05-0ubuntu0.24.04.1")

	s.value("packages", "nvidia-utils-580-server=580.95.05-0ubuntu0.24.04.1\n")
	s.fails(s.step("driver-install"), 1, "GPU_MODULE_BUILD")
	s.detail("is 580.173.02, nvidia-utils-580-server is 580.95.05")
	s.write("gpu/modules/nvidia", "580.95.05\n")
	s.ok(s.step("driver-install"))
	s.packageIs("nvidia-utils-580-server", "hold installed 580.95.05-0ubuntu0.24.04.1")
}

// What brings the modules of kernels to come must not bring a kernel.
func TestDriverFollowsTheKernel(t *testing.T) {
	t.Parallel()
	const next = "linux-modules-nvidia-580-server-open-generic"
	for name, c := range map[string]struct {
		there []deb // installed before
		want  map[string]string
	}{
		"up to date":       {[]deb{{name: "linux-image-6.8.0-50-generic", version: "6.8.0-50.51"}}, map[string]string{next: "install installed 6.8.0-50.51"}},
		"kernel lags":      {nil, map[string]string{next: "", "linux-image-6.8.0-50-generic": ""}},
		"hardware enabled": {[]deb{{name: "linux-image-generic-hwe-24.04", version: "6.14.0-37.37"}}, map[string]string{next: "", next + "-hwe-24.04": "install installed 6.14.0-37.37"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGPUHost(t)
			s.write("gpu/modules/nvidia", "580.173.02\n")
			debs := append(c.there,
				deb{name: "libnvidia-compute-580-server", version: "580.173.02-0ubuntu0.24.04.1"},
				deb{name: next, version: "6.8.0-50.51", depends: "linux-modules-nvidia-580-server-open-6.8.0-50-generic"},
				deb{name: "linux-modules-nvidia-580-server-open-6.8.0-50-generic", version: "6.8.0-50.51", depends: "linux-image-6.8.0-50-generic"},
				deb{name: next + "-hwe-24.04", version: "6.14.0-37.37"},
			)
			if name != "up to date" {
				debs = append(debs, deb{name: "linux-image-6.8.0-50-generic", version: "6.8.0-50.51"})
			}
			s.repository(debs...)
			for _, d := range c.there {
				s.ok(s.script("apt_update; apt_get install " + d.name))
			}
			s.value("packages", "libnvidia-compute-580-server\n")
			s.value("version_package", "libnvidia-compute-580-server")
			s.value("next", next+"\n")
			s.value("line", "generic\n")
			s.twice("driver-install")
			for name, want := range c.want {
				s.packageIs(name, want)
			}
		})
	}
}

// A line of kernels may have a dash in its name, and a sister whose name ends alike.
func TestDriverFollowsALineWithADash(t *testing.T) {
	t.Parallel()
	const next = "linux-modules-nvidia-580-server-open-generic-64k"
	s := newGPUHost(t)
	s.write("gpu/modules/nvidia", "580.173.02\n")
	s.repository(
		deb{name: "libnvidia-compute-580-server", version: "580.173.02-0ubuntu0.24.04.1"},
		deb{name: "linux-image-generic-64k-hwe-24.04", version: "6.14.0-37.37"}, deb{name: "linux-image-64k-hwe-24.04", version: "1"},
		deb{name: next, version: "6.8.0-50.51"}, deb{name: next + "-hwe-24.04", version: "6.14.0-37.37"},
	)
	s.ok(s.script("apt_update; apt_get install linux-image-generic-64k-hwe-24.04"))
	s.value("packages", "libnvidia-compute-580-server\n")
	s.value("version_package", "libnvidia-compute-580-server")
	s.value("next", next+"\n")
	s.value("line", "generic-64k\n")
	s.ok(s.step("driver-install"))
	s.packageIs(next+"-hwe-24.04", "install installed 6.14.0-37.37") // what follows the kernel's line
	s.packageIs(next, "")                                            // what follows another line
}

func TestDriverThatIsNotOffered(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.repository(deb{name: "nvidia-dkms-570-open", version: "570.1-1"}, deb{name: "nvidia-dkms-575", version: "575.1-1"}, deb{name: "linux-headers-6.8.0-41-generic", version: "1"})
	s.value("version_package", "nvidia-dkms-580-open")
	s.value("packages", "nvidia-dkms-580-open\n")
	s.fails(s.step("driver-install"), 1, "PACKAGE_MISSING")
	s.detail("nvidia-dkms-580-open is not offered; there is: nvidia-dkms-575 nvidia-dkms-570-open\n")
	s.value("headers", "linux-headers-6.8.0-40-generic\n")
	s.fails(s.step("driver-install"), 1, "PACKAGE_MISSING")
	s.detail("linux-headers-6.8.0-40-generic is not offered; there is: linux-headers-6.8.0-41-generic\n")
	s.packageIs("nvidia-dkms-575", "") // or another package was installed
	s.packageIs("linux-headers-6.8.0-41-generic", "")
}

func TestDriverWhoseModuleDoesNotBuild(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.cudaRepository(`mkdir -p /var/lib/dkms/nvidia/595.91.07/build
echo "nv.c:1: error: implicit declaration of function" >/var/lib/dkms/nvidia/595.91.07/build/make.log
echo "Error! Bad return status for module build on kernel: 6.8.0-40-generic (x86_64)" >&2
echo "Consult /var/lib/dkms/nvidia/595.91.07/build/make.log for more information." >&2
exit 10`)
	s.write("etc/apt/preferences.d/theirs", "")
	before := s.snapshot()
	for range 2 { // the second time dpkg has it to finish
		r := s.step("driver-install")
		s.fails(r, 1, "GPU_MODULE_BUILD")
		contains(t, r.output, "make.log ends with:\nnv.c:1: error: implicit declaration of function\n")
	}
	s.undone(before)
	lacks(t, s.status("nvidia-dkms-open"), "half", "unpacked")
}

// Packages may come without a word although no module was built.
func TestDriverWithoutAModule(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.cudaRepository("")
	s.fails(s.step("driver-install"), 1, "GPU_MODULE_BUILD")
	s.detail("has no nvidia module")
}

func TestDriverReboot(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.value("reason", "nouveau has the cards")
	s.value("boot_id", "another boot\n")
	r := s.ok(s.step("driver-reboot"))
	if strings.Contains(r.output, "W\t") || s.exists("var/units.log") {
		t.Errorf("rebooted again:\n%s", r.output)
	}
	// The machine's end comes while the step waits for it.
	s.value("boot_id", readFile(t, "/proc/sys/kernel/random/boot_id"))
	s.stub("sleep", "#!/bin/bash\nkill -KILL $PPID\n")
	r = s.step("driver-reboot")
	if r.status == 0 || r.failure != "" || !strings.HasPrefix(r.output, "W\tthe reboot: nouveau has the cards\n") {
		t.Errorf("status %d, failure %q, output:\n%s", r.status, r.failure, r.output)
	}
	s.holds("var/units.log", "reboot \n")
	s.write(stepDir+"/timeout", "0")
	s.fails(s.step("driver-reboot"), 1, "STEP_TIMEOUT")
}

// Who looks at a host that has just booted must not see a kubelet that is on its way.
func TestRebootEndsWithTheKubelet(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.value("reason", "GPU_HUNG")
	s.value("boot_id", "another boot\n")
	s.write("etc/kubernetes/kubelet.conf", "")
	s.write("var/units/kubelet.service", "loaded,activating,enabled\n")
	s.stub("sleep", "#!/bin/sh\necho >>/tmp/slept\n[ $(wc -l </tmp/slept) -lt 4 ] || echo loaded,active,enabled >/var/units/kubelet.service\n")
	s.ok(s.step("driver-reboot"))
	if got := strings.Count(s.read("tmp/slept"), "\n"); got != 7 {
		t.Errorf("it looked %d times, want 4 until the kubelet runs and 3 more", got)
	}
	s.stub("sleep", "#!/bin/sh\n")
	s.write("var/units/kubelet.service", "loaded,failed,enabled\n")
	s.ok(s.step("driver-reboot"))
}

// twoCards is a host with a driver that sees its two cards.
func twoCards(t *testing.T) gpuHost {
	t.Helper()
	s := newGPUHost(t, "0000:17:00.0", "0000:b1:00.0")
	s.driver("595.91.07")
	s.write("gpu/smi", "00000000:17:00.0\n00000000:B1:00.0\n")
	s.write("var/units/nvidia-persistenced.service", "loaded,inactive,disabled\n")
	s.value("cards", "2\n")
	return s
}

func TestDriverLoad(t *testing.T) {
	t.Parallel()
	s := twoCards(t)
	s.write("gpu/devices", "Character devices:\n195 nvidia\n511 nvidia-uvm\n")
	s.stub("mknod", "#!/bin/sh\necho \"mknod $*\" >>/tmp/calls\n: >\"$3\"\n")
	s.file("/etc/modules-load.d/kgpu-nvidia.conf", "nvidia\nnvidia_uvm\n")
	before := s.snapshot()
	s.twice("driver-load")
	const look = "nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader\n"
	const want = "modprobe -- nvidia\nmodprobe -- nvidia_uvm\nnvidia-modprobe -u -c 0\nmknod -m 666 /dev/nvidia-uvm c 511 0\nmknod -m 666 /dev/nvidia-uvm-tools c 511 1\n" + look +
		"nvidia-modprobe -u -c 0\n" + look
	s.holds("tmp/calls", want)
	s.holds("var/units/nvidia-persistenced.service", "loaded,active,enabled\n")
	s.undone(before)
}

// A driver that was loaded before kgpu came is loaded afterwards.
func TestDriverThatIsLoadedAlready(t *testing.T) {
	t.Parallel()
	s := twoCards(t)
	s.write("var/units/nvidia-persistenced.service", "loaded,active,enabled\n")
	s.write("gpu/sys/module/nvidia/version", "595.91.07\n")
	s.write("gpu/sys/module/nvidia_uvm/version", "")
	before := s.snapshot()
	s.ok(s.step("driver-load"))
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries for nothing", n)
	}
	s.undone(before)
}

// Packages may load the module and start its daemon as they come: at the end both are gone before the packages go.
func TestDriverThatItsPackagesLoad(t *testing.T) {
	t.Parallel()
	s := twoCards(t)
	s.repository(deb{name: "nvidia-utils", version: "595.91.07-1", postinst: "/stubs/modprobe nvidia; echo loaded,active,enabled >/var/units/nvidia-persistenced.service"})
	s.value("packages", "nvidia-utils\n")
	s.value("version_package", "nvidia-utils")
	before := s.snapshot()
	s.ok(s.step("driver-install"))
	s.ok(s.step("driver-load"))
	if !s.loaded("nvidia") || !s.loaded("nvidia_uvm") {
		t.Fatal("the driver is not loaded")
	}
	r := s.ok(s.script("undo_all"))
	s.write("var/units/nvidia-persistenced.service", "loaded,inactive,disabled\n") // goes with its package
	s.same(before)
	lacks(t, r.output, "not undone")
}

func TestDriverThatDoesNotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(gpuHost)
		reason string
		detail []string
	}{
		"Secure Boot":          {func(s gpuHost) { s.write("gpu/refused", "Key was rejected by service") }, "GPU_MODULE_REJECTED", []string{"Secure Boot"}},
		"locked down":          {func(s gpuHost) { s.write("gpu/refused", "Operation not permitted") }, "GPU_MODULE_REJECTED", nil},
		"no module":            {func(s gpuHost) { s.remove("gpu/modules/nvidia") }, "GPU_MODULE_BUILD", []string{"has no module nvidia"}},
		"another module":       {func(s gpuHost) { s.write("gpu/modules/nvidia", "580.173.02\n") }, "GPU_DRIVER_MISMATCH", []string{"580.173.02", "595.91.07"}},
		"no libraries":         {func(s gpuHost) { s.remove("gpu/lib/libnvidia-ml.so.1") }, "GPU_DRIVER_MISSING", nil},
		"nvidia-smi hangs":     {func(s gpuHost) { s.write("gpu/smi-status", "124") }, "GPU_HUNG", nil},
		"nvidia-smi is killed": {func(s gpuHost) { s.write("gpu/smi-status", "137") }, "GPU_HUNG", nil},
		"nouveau": {func(s gpuHost) {
			s.write("gpu/refused", "No such device")
			s.bound("0000:b1:00.0", "nouveau")
			s.bound("0000:17:00.0", "nvidia")
			s.bound("0000:00:02.0", "nouveau")
		}, "GPU_NOUVEAU_BUSY", []string{"nouveau has the cards: 0000:b1:00.0\n"}},
		"unsupported": {func(s gpuHost) {
			s.write("gpu/refused", "No such device")
			s.write("gpu/kernel-log", "NVRM: The NVIDIA GPU 0000:17:00.0 is not supported by this driver release.\n")
		}, "GPU_NOT_ALL_CARDS", []string{"0 of 2 cards", "0000:17:00.0 0000:b1:00.0", "NVRM: The NVIDIA GPU 0000:17:00.0 is not supported"}},
		"a card is lost": {func(s gpuHost) {
			s.write("gpu/smi", "00000000:17:00.0\nUnable to determine the device handle for GPU0000:B1:00.0: GPU is lost.\n")
			s.write("gpu/smi-status", "15")
			s.write("gpu/kernel-log", "usb 1-1: new device\nNVRM: Xid (PCI:0000:b1:00): 79, GPU has fallen off the bus.\n")
		}, "GPU_NOT_ALL_CARDS", []string{"1 of 2 cards: the driver does not see 0000:b1:00.0; nvidia-smi says: Unable", "the kernel says: NVRM: Xid (PCI:0000:b1:00): 79"}},
		"no cards":                 {func(s gpuHost) { s.write("gpu/smi", "No devices were found\n") }, "GPU_NOT_ALL_CARDS", []string{"0 of 2 cards", "0000:17:00.0 0000:b1:00.0"}},
		"a card is not on the bus": {func(s gpuHost) { s.value("cards", "3\n") }, "GPU_NOT_ALL_CARDS", []string{"2 of 3 cards", "no longer on the PCI bus"}},
		"the daemon does not start": {func(s gpuHost) {
			s.stub("systemctl", strings.Replace(readFile(s.t, "testdata/systemctl"), "set -eu", "set -eu\n[[ $1 != enable ]] || exit 1", 1))
		}, "STEP_FAILED", []string{"nvidia-persistenced.service does not start"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := twoCards(t)
			c.change(s)
			before := s.snapshot()
			s.fails(s.step("driver-load"), 1, c.reason)
			s.detail(c.detail...)
			s.undone(before)
		})
	}
}

// Cards that virtual machines have are nobody's loss, and a warning of nvidia-smi is no failure.
func TestDriverCardsOfVirtualMachines(t *testing.T) {
	t.Parallel()
	s := twoCards(t)
	s.bound("0000:b1:00.0", "nvgrace-gpu-vfio-pci")
	s.write("gpu/smi", "00000000:17:00.0\nWARNING: infoROM is corrupted at gpu 0000:17:00.0\n")
	s.write("gpu/smi-status", "14")
	s.value("cards", "1\n")
	r := s.ok(s.step("driver-load"))
	contains(t, r.output, "nvidia-smi says: WARNING: infoROM is corrupted")
	s.prints("nvidia_cards", "0000:17:00.0\n")
}

// What is left out is not among the cards that the driver has lost.
func TestDriverCardsLeftOut(t *testing.T) {
	t.Parallel()
	s := twoCards(t)
	s.bound("0000:b1:00.0", "nouveau")
	s.value("left_out", "0000:b1:00.0\n")
	s.value("cards", "1\n")
	s.write("gpu/smi", "00000000:17:00.0\n")
	s.ok(s.step("driver-load"))
	s.write("gpu/smi", "No devices were found\n")
	s.fails(s.step("driver-load"), 1, "GPU_NOT_ALL_CARDS")
	s.detail("0 of 1 cards: the driver does not see 0000:17:00.0; nvidia-smi says")
}

func TestDriverReload(t *testing.T) {
	t.Parallel()
	s := twoCards(t)
	s.write("gpu/sys/module/nvidia/version", "580.173.02\n")
	s.write("gpu/sys/module/nvidia_uvm/version", "")
	s.write("gpu/sys/module/nvidia_drm/version", "")
	for _, unit := range []string{"nvidia-persistenced", "nvidia-fabricmanager"} {
		s.write("var/units/"+unit+".service", "loaded,active,enabled\n")
	}
	// Somebody uses a card: all stays as it is.
	s.write("gpu/used/nvidia_drm", "")
	before := s.snapshot()
	s.fails(s.step("driver-load"), 1, "GPU_DRIVER_MISMATCH")
	s.detail("the loaded module is 580.173.02, the libraries are 595.91.07", "in use")
	s.same(before)

	s.remove("gpu/used/nvidia_drm")
	s.ok(s.step("driver-load"))
	s.holds("gpu/sys/module/nvidia/version", "595.91.07\n")
	for _, unit := range []string{"nvidia-persistenced", "nvidia-fabricmanager"} {
		if got := s.read("var/units/" + unit + ".service"); got != "loaded,active,enabled\n" {
			t.Errorf("%s: %q", unit, got)
		}
	}
}

// No reload helps when there is no module of the libraries' version.
func TestDriverReloadWithoutAModule(t *testing.T) {
	t.Parallel()
	s := twoCards(t)
	s.write("gpu/sys/module/nvidia/version", "580.173.02\n")
	s.write("gpu/modules/nvidia", "580.173.02\n")
	s.fails(s.step("driver-load"), 1, "GPU_DRIVER_MISMATCH")
	s.holds("tmp/calls", "")
}

func TestDriverToolThatHangs(t *testing.T) {
	t.Parallel()
	s := twoCards(t)
	s.stub("timeout", "#!/bin/bash\n[[ \"$1 $2 $3\" == '-k 5 30' ]] || exit 9\nshift 3\nexec /usr/bin/timeout -k 0.1 0.1 \"$@\"\n")
	s.stub("nvidia-smi", "#!/bin/bash\ntrap '' TERM\nwhile :; do sleep 1; done\n")
	s.fails(s.step("driver-load"), 1, "GPU_HUNG")

	// No signal ends one that is stuck in the kernel; here it ends when the test lets it.
	s.stub("timeout", "#!/bin/bash\nread -r _ </tmp/stuck\n")
	s.fails(s.script("mkfifo /tmp/stuck; smi_patience=0; nvidia_smi -L"), 1, "GPU_HUNG")
	stuck, err := os.OpenFile(s.path("tmp/stuck"), os.O_WRONLY, 0)
	s.must(err)
	s.must(stuck.Close())
}

func TestDriverFabric(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.driver("580.173.02")
	s.repository(
		deb{name: "nvidia-fabricmanager-580", version: "580.200.01-1"}, deb{name: "nvidia-fabricmanager-580", version: "580.173.02-2"}, deb{name: "nvidia-fabricmanager-580", version: "580.173.02-1"},
	)
	s.write("var/units/nvidia-fabricmanager.service", "loaded,inactive,disabled\n")
	s.value("packages", "nvidia-fabricmanager-580\n")
	before := s.snapshot()
	s.twice("driver-fabric")
	s.packageIs("nvidia-fabricmanager-580", "hold installed 580.173.02-2")
	s.holds("var/units/nvidia-fabricmanager.service", "loaded,active,enabled\n")
	s.undone(before)

	s.driver("595.91.07")
	s.fails(s.step("driver-fabric"), 1, "PACKAGE_MISSING")
	s.detail("nvidia-fabricmanager-580 595.91.07 is not offered; there are: 580.200.01-1 580.173.02-2 580.173.02-1")
	s.driver("580.173.02")
	s.remove("var/units/nvidia-fabricmanager.service")
	s.fails(s.step("driver-fabric"), 1, "GPU_FABRIC_FAILED")
}

// toolkitHost has a driver and a repository with the toolkit, whose nvidia-ctk describes the cards unless the refresh
// service did.
func toolkitHost(t *testing.T, runtime string) gpuHost {
	t.Helper()
	s := newGPUHost(t)
	s.driver("595.91.07")
	s.must(os.Symlink("../run", s.path("var/run")))
	s.repository(
		deb{name: "nvidia-container-toolkit", version: "1.20.0-1", depends: "nvidia-container-toolkit-base"},
		deb{name: "nvidia-container-toolkit-base", version: "1.20.0-1", postinst: "mkdir -p /etc/nvidia-container-runtime; : >/etc/nvidia-container-runtime/config.toml"},
		deb{name: "nvidia-container-toolkit-base", version: "1.21.0-1"},
	)
	s.stub("nvidia-ctk", `#!/bin/bash
echo "nvidia-ctk $*" >>/tmp/calls
mkdir -p /var/run/cdi
echo "hostPath: /usr/lib/libcuda.so.$(cat /gpu/modules/nvidia)" >"${3#--output=}"
`)
	s.stub("containerd", "#!/bin/sh\ncat /dump\n")
	s.stub("curl", "#!/bin/sh\ncat /info\n")
	s.value("packages", "nvidia-container-toolkit=1.20.0-1\nnvidia-container-toolkit-base=1.20.0-1\n")
	s.value("runtime", runtime+"\n")
	s.write("dump", containerd2)
	s.write("info", `{"Runtimes":{"io.containerd.runc.v2":{"path":"runc"},"nvidia":{"path":"nvidia-container-runtime"},"runc":{"path":"runc"}},"DefaultRuntime":"runc"}`)
	return s
}

// What containerd 2 and 1.7 print, less what is of no concern here.
const containerd2 = `version = 3
[plugins]
  [plugins.'io.containerd.cri.v1.runtime']
    enable_cdi = true
    [plugins.'io.containerd.cri.v1.runtime'.containerd]
      default_runtime_name = 'runc'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes]
        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
          runtime_type = 'io.containerd.runc.v2'
          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
            BinaryName = '/usr/bin/nvidia-container-runtime'
            SystemdCgroup = true
        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
          runtime_type = 'io.containerd.runc.v2'
          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
            BinaryName = ''
            SystemdCgroup = true
  [plugins.'io.containerd.nri.v1.nri']
    disable = false
`

func containerd1(text string) string {
	return strings.NewReplacer("'io.containerd.cri.v1.runtime'", `"io.containerd.grpc.v1.cri"`, "version = 3", "version = 2", "'", `"`).Replace(text)
}

func TestToolkit(t *testing.T) {
	t.Parallel()
	for runtime, c := range map[string]struct{ file, units, restarts string }{
		"containerd": {"/etc/containerd/conf.d/60-kgpu-nvidia.toml", "containerd.service", "restart -- containerd.service\n"},
		"docker":     {"/etc/docker/daemon.json", "docker.service cri-docker.service cri-docker.socket", "restart -- docker.service\nrestart -- cri-docker.service\n"},
	} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			s := toolkitHost(t, runtime)
			for _, unit := range strings.Fields(c.units) {
				s.write("var/units/"+unit, "loaded,active,enabled\n")
			}
			s.file(c.file, "the runtime nvidia\n")
			before := s.snapshot()
			s.twice("gpu-toolkit")
			var restarts strings.Builder
			for line := range strings.Lines(s.read("var/units.log")) {
				if strings.HasPrefix(line, "restart") {
					restarts.WriteString(line)
				}
			}
			if restarts.String() != c.restarts {
				t.Errorf("restarts:\n%s", &restarts)
			}
			s.holds("tmp/calls", "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml\n")
			for _, name := range []string{"nvidia-container-toolkit", "nvidia-container-toolkit-base"} {
				s.packageIs(name, "hold installed 1.20.0-1")
			}
			s.write("run/cdi/k8s.device-plugin.nvidia.com-gpu.json", "{}") // the device plugin's own
			s.undone(before)
		})
	}
}

// A host that goes down in the middle comes back with a docker that starts containers: its settings name nvidia's runtime only
// while that is there.
func TestToolkitBeforeItsRuntime(t *testing.T) {
	t.Parallel()
	s := toolkitHost(t, "docker")
	s.file("/etc/docker/daemon.json", "the runtime nvidia\n")
	s.repository(deb{name: "nvidia-container-toolkit", version: "1.19.0-1"})
	s.fails(s.step("gpu-toolkit"), 1, "PACKAGE_MISSING")
	s.absent("etc/docker/daemon.json") // or docker is to use a runtime that is not there

	s = toolkitHost(t, "docker")
	s.write("var/units/docker.service", "loaded,active,enabled\n")
	s.file("/etc/docker/daemon.json", "the runtime nvidia\n")
	s.ok(s.step("gpu-toolkit"))
	s.ok(s.script(`undo_packages() { if [[ -e /etc/docker/daemon.json ]]; then touch /too-late; fi; }
undo_all`))
	s.absent("too-late") // or the runtime goes before the settings that name it
}

// The toolkit's own units describe the cards where they can; a driver that changed needs a new description.
func TestToolkitRefreshService(t *testing.T) {
	t.Parallel()
	s := toolkitHost(t, "containerd")
	for _, unit := range []string{"nvidia-cdi-refresh.service", "nvidia-cdi-refresh.path"} {
		s.write("var/units/"+unit, "loaded,inactive,disabled\n")
	}
	s.write("run/cdi/nvidia.yaml", "hostPath: /usr/lib/libcuda.so.595.91.07\n")
	before := s.snapshot()
	s.ok(s.step("gpu-toolkit"))
	if got := s.read("var/units/nvidia-cdi-refresh.service") + s.read("var/units/nvidia-cdi-refresh.path"); got != "loaded,active,enabled\nloaded,active,enabled\n" {
		t.Errorf("units: %q", got)
	}
	s.holds("tmp/calls", "")
	s.undone(before)

	s.driver("610.57.04")
	s.ok(s.step("gpu-toolkit"))
	s.holds("run/cdi/nvidia.yaml", "hostPath: /usr/lib/libcuda.so.610.57.04\n")
	s.write("gpu/modules/nvidia", "595.91.07\n") // what the stand-in for nvidia-ctk finds
	s.write("run/cdi/nvidia.yaml", "")
	s.fails(s.step("gpu-toolkit"), 1, "GPU_DRIVER_MISMATCH")
	s.stub("nvidia-ctk", "#!/bin/sh\nexit 124\n")
	s.fails(s.step("gpu-toolkit"), 1, "GPU_HUNG")
}

// By the settings the next run knows that a step came so far: they are not there before the cards are described.
func TestToolkitThatDidNotDescribeTheCards(t *testing.T) {
	t.Parallel()
	s := toolkitHost(t, "containerd")
	s.value("settings", "some-setting=false\n")
	ctk := func(describe string) {
		s.stub("nvidia-ctk", "#!/bin/bash\nif [[ $1 == config ]]; then echo \"${*:3}\"; else mkdir -p /var/run/cdi; "+describe+"; fi\n")
	}
	set := func() bool {
		return strings.Contains(s.read("etc/nvidia-container-runtime/config.toml"), "some-setting=false")
	}
	ctk("exit 1")
	s.fails(s.step("gpu-toolkit"), 1, "STEP_FAILED")
	if set() {
		t.Error("the settings say that all is done")
	}
	ctk("echo 'hostPath: /usr/lib/libcuda.so.595.91.07' >/var/run/cdi/nvidia.yaml")
	s.ok(s.step("gpu-toolkit"))
	if !set() {
		t.Error("the settings are missing")
	}
}

// A step that was killed between the configuration and the restart leaves a runtime that does not know it.
func TestToolkitRestartsWhatDoesNotKnowNVIDIA(t *testing.T) {
	t.Parallel()
	for runtime, program := range map[string]string{"containerd": "crictl", "docker": "curl"} {
		s := toolkitHost(t, runtime)
		s.write("var/units/"+runtime+".service", "loaded,active,enabled\n")
		const answer = "#!/bin/sh\ngrep -qs '^restart' /var/units.log && echo '{\"runtimes\": {\"nvidia\": {\"path\": \"\"}}}' || echo '{\"nvidia-something\": {}}'\n"
		s.stub(program, answer)
		s.ok(s.step("gpu-toolkit"))
		if n := strings.Count(s.read("var/units.log"), "restart -- "+runtime+".service\n"); n != 1 {
			t.Errorf("%d restarts of %s", n, runtime)
		}
		s.stub(program, strings.Replace(answer, "^restart", "^never", 1))
		s.fails(s.step("gpu-toolkit"), 1, "GPU_RUNTIME_MISSING")
	}
}

func TestToolkitVerifiesWhatTheRuntimeLoaded(t *testing.T) {
	t.Parallel()
	host := toolkitHost(t, "containerd")
	host.ok(host.step("gpu-toolkit"))
	nvidiaCgroup := strings.Replace(containerd2, "SystemdCgroup = true", "SystemdCgroup = false", 1)
	for name, c := range map[string]struct{ dump, detail string }{
		"containerd 2":                       {containerd2, ""},
		"containerd 1.7":                     {containerd1(containerd2), ""},
		"containerd that cannot turn it off": {strings.Replace(containerd2, "    enable_cdi = true\n", "", 1), ""},
		"no runtime":                         {strings.ReplaceAll(containerd2, ".nvidia", ".other"), "no runtime called nvidia"},
		"another cgroup driver":              {nvidiaCgroup, "differ in SystemdCgroup, which is false for nvidia"},
		"another cgroup driver, 1.7":         {containerd1(nvidiaCgroup), "differ in SystemdCgroup, which is false for nvidia"},
		"no cgroup driver":                   {strings.Replace(containerd2, "            SystemdCgroup = true\n", "", 1), "differ in SystemdCgroup, which is not set for nvidia"},
		"CDI is off":                         {strings.Replace(containerd2, "enable_cdi = true", "enable_cdi = false", 1), "CDI turned off"},
		"CDI is off, 1.7":                    {containerd1(strings.Replace(containerd2, "enable_cdi = true", "enable_cdi = false", 1)), "CDI turned off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := host.clone(t)
			s.write("dump", c.dump)
			r := s.step("gpu-toolkit")
			if c.detail == "" {
				s.ok(r)
				return
			}
			s.fails(r, 1, "GPU_RUNTIME_MISSING")
			s.detail(c.detail)
		})
	}
}

// All steps of a host with cards, twice, and then undo.
func TestGPUHostFromNouveauAndBack(t *testing.T) {
	t.Parallel()
	s := toolkitHost(t, "containerd")
	s.pci("0000:17:00.0", "0x10de", "0x030200")
	s.bound("0000:17:00.0", "nouveau")
	s.write("gpu/modules/nouveau", "")
	s.write("gpu/sys/module/nouveau/version", "")
	s.write("gpu/smi", "00000000:17:00.0\n")
	s.write("etc/apt/preferences.d/theirs", "")
	s.repository(
		deb{name: "nvidia-utils", version: "595.91.07-1"}, deb{name: "nvidia-fabricmanager", version: "595.91.07-1"},
		deb{name: "nvidia-container-toolkit", version: "1.20.0-1"}, deb{name: "theirs", version: "1"},
	)
	s.ok(s.script("apt-get update; apt-get install -y theirs"))
	for _, unit := range []string{"containerd", "nvidia-persistenced", "nvidia-fabricmanager", "nvidia-cdi-refresh"} {
		s.write("var/units/"+unit+".service", "loaded,inactive,disabled\n")
	}
	s.write("var/units/containerd.service", "loaded,active,enabled\n")
	before := s.snapshot()
	steps := []struct {
		name, packages, file string
	}{
		{"driver-nouveau", "", "/etc/modprobe.d/kgpu-nouveau.conf"},
		{"driver-install", "nvidia-utils", "/etc/apt/apt.conf.d/52kgpu-nvidia"},
		{"driver-load", "", "/etc/modules-load.d/kgpu-nvidia.conf"},
		{"driver-fabric", "nvidia-fabricmanager", ""},
		{"gpu-toolkit", "nvidia-container-toolkit=1.20.0-1", "/etc/containerd/conf.d/60-kgpu-nvidia.toml"},
	}
	s.value("version_package", "nvidia-utils")
	s.value("cards", "1")
	entries := 0
	for round := range 2 {
		for _, step := range steps {
			s.value("packages", step.packages)
			s.must(os.RemoveAll(s.path(stepDir + "/files")))
			if step.file != "" {
				s.file(step.file, "# "+step.name+"\n")
			}
			s.ok(s.step(step.name))
		}
		if round == 1 && s.entries() != entries {
			t.Errorf("%d entries, then %d", entries, s.entries())
		}
		entries = s.entries()
	}
	if s.loaded("nouveau") || !s.loaded("nvidia") {
		t.Error("nvidia is not there in place of nouveau")
	}
	// The machine of the tests may have containers of docker's.
	lacks(t, s.ok(s.script("docker_would_end() { false; }\nundo_all")).output, "not undone")
	s.same(before)
	out := s.ok(s.script("apt-mark showhold; dpkg-query -W -f '${Package} ${db:Status-Status}\\n' | grep -v not-installed")).output
	if out != "theirs installed\n" {
		t.Errorf("packages: %q", out)
	}
}

// allocatableHost has a cluster whose nodes and device plugins are in /nodes and /pods.
func allocatableHost(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.stub("kubectl", `#!/bin/bash
case "$*" in
*" get nodes "*) cat /nodes ;;
*" get pods "*config-sha256*) cat /configs ;;
*" get pods "*) cat /pods ;;
*" logs "*--previous*) echo "previous log of $*" ;;
*" logs "*) echo "log of $*" ;;
esac
`)
	s.value("nodes", "w1 2 nvidia.com/gpu\nw2 1 nvidia.com/gpu\nw2 7 nvidia.com/mig-1g.5gb\n")
	s.value("config", "c0ffee")
	s.write("configs", "w1 Running c0ffee\nw10 Pending\nw2 Failed c0ffee\nw2 Running c0ffee\n")
	s.write("nodes", offered(2, 2, 1, 1))
	s.write("pods", "")
	return s
}

// offered are the nodes w1 and w2 with so many cards and so many healthy ones, and others.
func offered(w1, w1Healthy, w2, w2Healthy int) string {
	return fmt.Sprintf(`cp capacity cpu 4
w1 capacity cpu 4
w1 capacity nvidia.com/gpu %d
w1 allocatable nvidia.com/gpu %d
w10 allocatable nvidia.com/gpu 4
w2 capacity nvidia.com/gpu %d
w2 allocatable nvidia.com/gpu %d
w2 capacity nvidia.com/mig-1g.5gb 7
w2 allocatable nvidia.com/mig-1g.5gb 7
`, w1, w1Healthy, w2, w2Healthy)
}

func TestGPUReady(t *testing.T) {
	t.Parallel()
	s := allocatableHost(t)
	r := s.ok(s.step("gpu-ready"))
	if r.output != "" {
		t.Errorf("it says:\n%s", r.output)
	}
	// Kubernetes writes 2000 as 2k.
	s.value("nodes", "w1 2000 nvidia.com/gpu\n")
	s.write("nodes", "w1 capacity nvidia.com/gpu 2k\nw1 allocatable nvidia.com/gpu 2k\n")
	s.ok(s.step("gpu-ready"))
	// A node's cards come while the step waits.
	s.value("nodes", "w1 2 nvidia.com/gpu\nw2 1 nvidia.com/gpu\n")
	s.write("nodes", offered(2, 2, 0, 0))
	s.stub("sleep", "#!/bin/sh\nsed -i '/^w2.*gpu/s/0/1/' /nodes\n")
	if r := s.ok(s.step("gpu-ready")); r.output != "W\tw2: 0 of 1 cards\n" {
		t.Errorf("it says:\n%s", r.output)
	}
}

// A proof is owed from when cards are waited for until one came to its end, whoever is killed meanwhile.
func TestProofThatIsOwed(t *testing.T) {
	t.Parallel()
	s := allocatableHost(t)
	const owed = "var/lib/kgpu/unproven"
	s.ok(s.step("gpu-ready"))
	s.absent(owed) // or a proof is owed that nobody will make
	s.value("prove", "yes\n")
	s.ok(s.step("gpu-ready"))
	if !s.facts().Unproven || !s.exists(owed) {
		t.Error("no proof is owed")
	}
	s.twice("gpu-proven")
	if s.facts().Unproven || s.exists(owed) {
		t.Error("a proof is owed still")
	}
}

// What a device plugin offers that is about to be replaced does not count, nor does what is offered instead of instances.
func TestGPUReadyWaitsForTheNewPlugin(t *testing.T) {
	t.Parallel()
	s := allocatableHost(t)
	s.write("configs", "w1 Running c0ffee\nw2 Running old\nw2 Pending c0ffee\n")
	s.write("nodes", strings.ReplaceAll(offered(2, 2, 1, 1), "w2 allocatable nvidia.com/mig-1g.5gb 7", "w2 allocatable nvidia.com/mig-1g.5gb 6"))
	s.stub("sleep", "#!/bin/sh\nif grep -q 1g.5gb.6 /nodes; then sed -i 's/1g.5gb 6/1g.5gb 7/' /nodes; else echo 'w2 Running c0ffee' >>/configs; fi\n")
	const want = "W\tw2: 6 of 7 nvidia.com/mig-1g.5gb (1 unhealthy)\nW\tw2: the device plugin starts\n"
	if r := s.ok(s.step("gpu-ready")); r.output != want {
		t.Errorf("it says:\n%s", r.output)
	}
}

func TestGPUReadyGivesUp(t *testing.T) {
	t.Parallel()
	s := allocatableHost(t)
	s.write(stepDir+"/timeout", "0")
	s.write("nodes", offered(2, 1, 0, 0))
	s.write("pods", "w2 nvidia-device-plugin-b Running CrashLoopBackOff back-off 10s (3 restarts)\nw10 nvidia-device-plugin-c Running\n")
	r := s.step("gpu-ready")
	s.fails(r, 1, "GPU_NOT_ALLOCATABLE")
	s.detail("w1: 1 of 2 cards (1 unhealthy), w2: 0 of 1 cards; no device plugin on w1; device plugin on w2: Running CrashLoopBackOff back-off 10s (3 restarts); its log ends: log of ")
	contains(t, r.output, "the log of nvidia-device-plugin-b ends with:\nlog of ", "previous log of ")
}

func TestGPUReadyWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := allocatableHost(t)
	s.write(stepDir+"/timeout", "0")
	s.remove("nodes")
	s.fails(s.step("gpu-ready"), 1, "API_UNREACHABLE")
}

// kubectl runs the templates on objects that may lack anything.
func TestGPUReadyTemplates(t *testing.T) {
	t.Parallel()
	text := stepText(t, "gpu-ready")
	type object = map[string]any
	resources := func(cards string) object { return object{"cpu": "4", "nvidia.com/gpu": cards} }
	for name, c := range map[string]struct {
		items []any
		want  string
	}{
		"nodes": {[]any{
			object{"metadata": object{"name": "w1"}, "status": object{"capacity": resources("2"), "allocatable": resources("1")}},
			object{"metadata": object{"name": "w2"}, "status": object{"capacity": object{"cpu": "4"}, "allocatable": object{"cpu": "4"}}},
			object{"metadata": object{"name": "w3"}, "status": object{}},
		}, "w1 capacity cpu 4\nw1 capacity nvidia.com/gpu 2\nw1 allocatable cpu 4\nw1 allocatable nvidia.com/gpu 1\nw2 capacity cpu 4\nw2 allocatable cpu 4\n"},
		"configs": {[]any{
			object{"metadata": object{"name": "a"}, "spec": object{}, "status": object{"phase": "Pending"}},
			object{"metadata": object{"name": "b", "annotations": object{"other": "x"}}, "spec": object{"nodeName": "w1"}, "status": object{"phase": "Running"}},
			object{"metadata": object{"name": "c", "annotations": object{"kgpu.dev/config-sha256": "c0ffee"}}, "spec": object{"nodeName": "w2"}, "status": object{"phase": "Running"}},
		}, "<no value> Pending\nw1 Running\nw2 Running c0ffee\n"},
		"pods": {[]any{
			object{"metadata": object{"name": "a"}, "spec": object{"nodeName": "w1"}, "status": object{"phase": "Pending"}},
			object{"metadata": object{"name": "b"}, "spec": object{"nodeName": "w2"}, "status": object{"phase": "Running", "containerStatuses": []any{
				object{"restartCount": 3, "state": object{"waiting": object{"reason": "CrashLoopBackOff", "message": "back-off 10s"}}},
			}}},
			object{"metadata": object{"name": "c"}, "spec": object{"nodeName": "w3"}, "status": object{"phase": "Running", "containerStatuses": []any{
				object{"restartCount": 0, "state": object{"running": object{}}},
			}}},
		}, "w1 a Pending\nw2 b Running CrashLoopBackOff back-off 10s (3 restarts)\nw3 c Running\n"},
	} {
		var out strings.Builder
		must(t, template.Must(template.New(name).Parse(strings.ReplaceAll(quoted(t, text, name+"_template"), "RESOURCE", "nvidia.com/gpu"))).Execute(&out, object{"items": c.items}))
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
	}
}
