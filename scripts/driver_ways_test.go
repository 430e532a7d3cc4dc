package scripts

import (
	"os"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// The kernel that runs, and the newest one of its line.
const (
	oldKernel = "6.8.0-31-generic"
	newKernel = "6.8.0-146-generic"
)

// The ways to a driver, as plan writes them.
const (
	builtWay = "built libnvidia-compute-580-server - linux-modules-nvidia-580-server-open-" + oldKernel + " nvidia-utils-580-server libnvidia-compute-580-server"
	newerWay = "newer libnvidia-compute-580-server linux-modules-nvidia-580-server-open-generic linux-modules-nvidia-580-server-open-" + oldKernel +
		" nvidia-utils-580-server libnvidia-compute-580-server"
	dkmsWay = "dkms libnvidia-compute-580-server - linux-headers-" + oldKernel + " nvidia-dkms-580-server-open nvidia-utils-580-server libnvidia-compute-580-server"
)

// ubuntuDriver is what Ubuntu's archive has of one version of the driver, of which all parts belong together.
func ubuntuDriver(version string) []deb {
	v := version + "-0ubuntu0.24.04.1"
	return []deb{
		{name: "nvidia-kernel-common-580-server", version: v}, {name: "libnvidia-compute-580-server", version: v},
		{name: "nvidia-utils-580-server", version: v, depends: "libnvidia-compute-580-server (= " + v + ")"},
		{name: "nvidia-dkms-580-server-open", version: v, depends: "nvidia-kernel-common-580-server (= " + v + ")"},
		{name: "nvidia-fabricmanager-580", version: v, depends: "nvidia-kernel-common-580-server (= " + v + ")"},
	}
}

// modulesFor are those of a version that are built for a kernel.
func modulesFor(kernel, version string) deb {
	return deb{
		name: "linux-modules-nvidia-580-server-open-" + kernel, version: strings.TrimSuffix(kernel, "-generic") + ".1",
		depends: "linux-image-" + kernel + ", nvidia-kernel-common-580-server (= " + version + "-0ubuntu0.24.04.1)",
	}
}

// newest is what follows the line of kernels, and the newest of them.
func newest(version string) []deb {
	return []deb{
		modulesFor(newKernel, version), {name: "linux-image-" + newKernel, version: "6.8.0-146.1"}, {name: "linux-modules-extra-" + newKernel, version: "6.8.0-146.1"},
		{name: "linux-modules-nvidia-580-server-open-generic", version: "6.8.0-146.1", depends: "linux-modules-nvidia-580-server-open-" + newKernel + " (= 6.8.0-146.1)"},
	}
}

// oldKernelHost runs an old kernel, of which it has all parts, beside what its archive has.
func oldKernelHost(t *testing.T, archive ...deb) gpuHost {
	t.Helper()
	there := []deb{{name: "linux-image-" + oldKernel, version: "6.8.0-31.31"}, {name: "linux-modules-extra-" + oldKernel, version: "6.8.0-31.31"}}
	s := gpuHost{begun(t, "old kernel", func() *sandbox {
		s := newGPUHost(t)
		s.stub("uname", "#!/bin/sh\necho "+oldKernel+"\n")
		s.stub("modinfo", "#!/bin/bash\nk=$(uname -r); [[ $1 != -k ]] || k=$2\nexec cat \"/gpu/modules/nvidia-$k\"\n")
		s.write("boot/vmlinuz-"+oldKernel, "")
		s.repository(there...)
		s.ok(s.script("apt_update; apt_get install linux-image-" + oldKernel + " linux-modules-extra-" + oldKernel))
		return s.sandbox
	})}
	s.repository(append(there, archive...)...)
	s.value("version_package", "libnvidia-compute-580-server")
	s.value("packages", "")
	s.value("next", "linux-modules-nvidia-580-server-open-generic\n")
	s.value("line", "generic\n")
	s.value("ways", builtWay+"\n"+newerWay+"\n"+dkmsWay+"\n")
	return s
}

func debs(lists ...[]deb) (all []deb) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func TestDriverWays(t *testing.T) {
	t.Parallel()
	const newVersion, oldVersion = "580.178.04", "580.173.02"
	headers := []deb{{name: "linux-headers-" + oldKernel, version: "6.8.0-31.31"}, {name: "linux-headers-generic", version: "6.8.0-146.1"}}
	for name, c := range map[string]struct {
		archive []deb
		ways    string // empty: all
		besides string
		want    map[string]string // what dpkg says of packages
		kernel  string            // that the modules are for
		version string
		event   string
	}{
		"modules for the kernel that runs": {
			archive: debs(ubuntuDriver(newVersion), []deb{modulesFor(oldKernel, newVersion)}, newest(newVersion), headers),
			want:    map[string]string{"linux-modules-nvidia-580-server-open-" + oldKernel: "hold installed 6.8.0-31.1", "linux-image-" + newKernel: "", "nvidia-dkms-580-server-open": ""},
			kernel:  oldKernel, version: newVersion,
		},
		"none for it": {
			archive: debs(ubuntuDriver(newVersion), newest(newVersion), headers),
			want: map[string]string{
				"linux-modules-nvidia-580-server-open-" + newKernel: "hold installed 6.8.0-146.1", "linux-image-" + newKernel: "install installed 6.8.0-146.1",
				"linux-modules-extra-" + newKernel: "install installed 6.8.0-146.1", "nvidia-dkms-580-server-open": "", "linux-modules-nvidia-580-server-open-generic": "install installed 6.8.0-146.1",
			},
			kernel: newKernel, version: newVersion,
			event: "W\tthe newest kernel of its line, for there is no other way: modules built for kernel " + oldKernel + ": Unable to locate package linux-modules-nvidia-580-server-open-" + oldKernel,
		},
		"those for it are of a driver that is gone": {
			archive: debs(ubuntuDriver(newVersion), []deb{modulesFor(oldKernel, oldVersion)}, newest(newVersion), headers), ways: builtWay + "\n" + dkmsWay + "\n",
			want: map[string]string{
				"linux-modules-nvidia-580-server-open-" + oldKernel: "", "nvidia-dkms-580-server-open": "hold installed 580.178.04-0ubuntu0.24.04.1",
				"linux-headers-" + oldKernel: "install installed 6.8.0-31.31", "linux-headers-generic": "install installed 6.8.0-146.1", "linux-image-" + newKernel: "",
			},
			kernel: oldKernel, version: newVersion,
			event: "W\tmodules built here by DKMS, for there is no other way: modules built for kernel " + oldKernel + ": linux-modules-nvidia-580-server-open-" + oldKernel + " : Depends: nvidia-kernel-common-580-server (= 580.173.02-0ubuntu0.24.04.1)",
		},
		"the fabric manager is not out yet": {
			archive: debs(ubuntuDriver(newVersion)[:4], ubuntuDriver(oldVersion), []deb{modulesFor(oldKernel, oldVersion)}), besides: "nvidia-fabricmanager-580\n",
			ways: builtWay + " nvidia-fabricmanager-580\n",
			want: map[string]string{
				"libnvidia-compute-580-server": "hold installed 580.173.02-0ubuntu0.24.04.1", "nvidia-utils-580-server": "hold installed 580.173.02-0ubuntu0.24.04.1", "nvidia-fabricmanager-580": "",
			},
			kernel: oldKernel, version: oldVersion,
		},
		"the newest kernel has none either": {
			archive: debs(ubuntuDriver(newVersion), newest(oldVersion), headers),
			want:    map[string]string{"linux-image-" + newKernel: "", "nvidia-dkms-580-server-open": "hold installed 580.178.04-0ubuntu0.24.04.1"},
			kernel:  oldKernel, version: newVersion, event: "; the newest kernel of its line: linux-modules-nvidia-580-server-open-" + newKernel + " : Depends: nvidia-kernel-common-580-server",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := oldKernelHost(t, c.archive...)
			s.write("gpu/modules/nvidia-"+c.kernel, c.version+"\n")
			if c.ways != "" {
				s.value("ways", c.ways)
			}
			s.value("besides", c.besides)
			for i := range 2 {
				r := s.ok(s.step("driver-install"))
				if i == 0 && !strings.Contains(r.output, c.event) || c.event == "" && strings.Contains(r.output, "W\t") {
					t.Errorf("no event %q:\n%s", c.event, r.output)
				}
			}
			for name, want := range c.want {
				s.packageIs(name, want)
			}
			s.holds(stepDir+"/out/version", c.version+"\n")
		})
	}
}

func TestDriverWithoutAWay(t *testing.T) {
	t.Parallel()
	s := oldKernelHost(t, ubuntuDriver("580.178.04")...)
	s.fails(s.step("driver-install"), 1, "GPU_NO_MODULES")
	s.detail("modules built for kernel "+oldKernel+": Unable to locate package linux-modules-nvidia-580-server-open-"+oldKernel,
		"the newest kernel of its line: linux-modules-nvidia-580-server-open-generic is not offered", "modules built here by DKMS: Unable to locate package linux-headers-"+oldKernel)
	s.write("boot/vmlinuz-6.8.0-150-generic", "")
	s.repository(debs(ubuntuDriver("580.178.04"), newest("580.178.04"))...)
	s.fails(s.step("driver-install"), 1, "GPU_NO_MODULES")
	s.detail("is for kernel " + newKernel + ", and the next boot would start 6.8.0-150-generic")
	s.packageIs("libnvidia-compute-580-server", "") // or a part of the driver came
}

// The kernel that came is started, and stays when all else goes.
func TestDriverWithANewerKernel(t *testing.T) {
	t.Parallel()
	s := oldKernelHost(t, debs(ubuntuDriver("580.178.04"), newest("580.178.04"))...)
	s.write("gpu/modules/nvidia-"+newKernel, "580.178.04\n")
	s.ok(s.step("driver-install"))
	s.write("gpu/lib/libnvidia-ml.so.580.178.04", "")
	s.must(os.Symlink("libnvidia-ml.so.580.178.04", s.path("gpu/lib/libnvidia-ml.so.1")))
	s.value("reason", "a newer kernel is to run")
	s.value("stale", "yes")
	s.value("boot_id", readFile(t, "/proc/sys/kernel/random/boot_id"))
	s.stub("sleep", "#!/bin/bash\nkill -KILL $PPID\n")
	if r := s.step("driver-reboot"); r.status == 0 || !strings.Contains(r.output, "W\tthe reboot: the driver is for another kernel than the one that runs, "+oldKernel+"\n") {
		t.Errorf("status %d:\n%s", r.status, r.output)
	}
	s.value("boot_id", "another boot\n")
	s.fails(s.step("driver-reboot"), 1, "GPU_KERNEL_NOT_BOOTED")
	s.stub("uname", "#!/bin/sh\necho "+newKernel+"\n")
	s.ok(s.step("driver-reboot"))
	r := s.ok(s.script("undo_all"))
	if s.status("linux-image-"+newKernel) != "install installed 6.8.0-146.1" || !strings.Contains(r.output, "not undone: package linux-image-"+newKernel) {
		t.Errorf("the kernel that runs was removed:\n%s", r.output)
	}
	s.packageIs("libnvidia-compute-580-server", "")
}

// A host is asked before anything is changed on it, while the driver that is to go is there.
func TestWaysAreTold(t *testing.T) {
	t.Parallel()
	s := oldKernelHost(t, debs(ubuntuDriver("580.178.04"), newest("580.178.04"), []deb{{name: "libnvidia-compute-570-server", version: "570.1-1"},
		{name: "nvidia-utils-570-server", version: "570.1-1", depends: "libnvidia-compute-570-server", conflicts: "nvidia-utils-580-server"}})...)
	s.ok(s.script("apt_update; apt_get install nvidia-utils-570-server; hold nvidia-utils-570-server; rm -f /var/cache/apt/*.bin"))
	ask := func(more string) []facts.Way {
		s.write("tmp/asked", stubbed(Reach())+"way "+builtWay+more+"\nway "+newerWay+more+"\nway "+dkmsWay+more+"\n")
		ways, err := facts.ParseWays([]byte(s.ok(s.script("bash -s </tmp/asked")).output))
		must(t, err)
		return ways
	}
	const gone = " libnvidia-compute-570-server- nvidia-utils-570-server-"
	got := ask(gone)
	if len(got) != 2 || got[0] != (facts.Way{Name: "built", Why: "Unable to locate package linux-modules-nvidia-580-server-open-" + oldKernel}) ||
		got[1] != (facts.Way{Name: "newer", Kernel: newKernel}) {
		t.Errorf("%+v", got)
	}
	if got := ask(""); len(got) != 3 || !strings.HasPrefix(got[1].Why, "nvidia-utils-570-server ") {
		t.Errorf("a driver that nobody gave up: %+v", got)
	}
	if strings.Contains(s.status("nvidia-utils-580-server"), " installed") || s.exists("var/cache/apt/pkgcache.bin") {
		t.Error("who was asked wrote something")
	}
}
