package scripts

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
)

// replacedHost is a host whose owner installed a driver of branch 595, which runs.
func replacedHost(t *testing.T) gpuHost {
	t.Helper()
	return gpuHost{begun(t, "replaced", func() *sandbox {
		s := newGPUHost(t, "0000:17:00.0")
		s.driver("595.91.07")
		s.write("gpu/sys/module/nvidia/version", "595.91.07\n")
		s.write("gpu/sys/module/nvidia_uvm/version", "")
		s.write("gpu/dev/nvidiactl", "")
		s.write("etc/apt/preferences.d/theirs", "")
		s.repository(
			deb{name: "libnvidia-compute", version: "595.91.07-1"}, deb{name: "nvidia-dkms-open", version: "595.91.07-1", depends: "libnvidia-compute"},
			deb{name: "nvidia-persistenced", version: "595.91.07-1"},
			deb{name: "libnvoptix1", version: "595.91.07-1", depends: "libnvidia-compute"},
			deb{name: "nvidia-container-toolkit", version: "1.17.8-1"},
			deb{name: "libnvidia-compute-580", version: "580.173.02-1"},
		)
		s.ok(s.script("apt-get update; apt-get install -y nvidia-dkms-open nvidia-persistenced libnvoptix1 nvidia-container-toolkit; apt-mark hold nvidia-dkms-open"))
		s.write("opt/libnvidia-compute/conf", "edited by the owner")
		s.write("var/units/nvidia-persistenced.service", "loaded,active,enabled\n")
		// The sandbox's /usr takes no files of packages.
		s.stub("dpkg-query", "#!/bin/sh\ncase $* in -L*nvidia-persistenced*) echo /lib/systemd/system/nvidia-persistenced.service ;; esac\nexec /usr/bin/dpkg-query \"$@\"\n")
		s.value("packages", "libnvidia-compute\nnvidia-dkms-open\nnvidia-persistenced\n")
		return s.sandbox
	})}
}

// packagesOf prints what a host has installed, held and automatically installed.
func (s gpuHost) packagesOf() string {
	s.t.Helper()
	return s.ok(s.script("dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\\n' | grep '^.i' || true; echo auto: $(apt-mark showauto)")).output
}

// Another driver takes the place of the owner's, and undo brings that back: packages, holds, configuration, modules, units.
func TestDriverRemove(t *testing.T) {
	t.Parallel()
	s := replacedHost(t)
	before, packages := s.snapshot(), s.packagesOf()
	s.twice("driver-remove")
	if got := s.packagesOf(); got != "ii  nvidia-container-toolkit 1.17.8-1\nauto:\n" {
		t.Errorf("left are:\n%s", got)
	}
	if s.loaded("nvidia") || s.exists("gpu/dev/nvidiactl") {
		t.Error("the modules or their nodes are still there")
	}
	s.value("packages", "libnvidia-compute-580\n")
	s.value("version_package", "libnvidia-compute-580")
	s.driver("580.173.02")
	s.ok(s.step("driver-install"))
	s.ok(s.script("modprobe nvidia"))

	s.driver("595.91.07") // what the owner's packages bring
	s.remove("gpu/lib/libnvidia-ml.so.580.173.02")
	lacks(t, s.ok(s.script("undo_all")).output, "not undone")
	if got := s.packagesOf(); got != packages {
		t.Errorf("packages:\n%s\nwant:\n%s", got, packages)
	}
	if !s.loaded("nvidia") || s.read("gpu/sys/module/nvidia/version") != "595.91.07\n" {
		t.Error("the owner's module is not loaded")
	}
	s.must(os.RemoveAll(s.path("gpu/dev/nvidia0"))) // the owner's module made it
	s.same(before)
}

// download has apt take packages from the repository before it installs them; of a file: there is nothing to be fetched.
func (s gpuHost) download() {
	s.t.Helper()
	s.write("etc/apt/sources.list", "deb [trusted=yes] copy:/repo ./\n")
	s.ok(s.script("apt-get clean; apt-get update"))
}

// fetched prints the packages that apt has here.
func (s gpuHost) fetched() string {
	s.t.Helper()
	return s.ok(s.script("ls /var/cache/apt/archives | sed -n 's/_.*//p' | paste -sd' '")).output
}

// What cannot be installed is found out while the owner's driver works, and what can is here before that goes.
func TestDriverFetch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values map[string]string
		debs   []deb
		want   string // the failure, or the packages that are here
	}{
		"of another branch": {map[string]string{"packages": "libnvidia-compute-580\nnvidia-utils-580\n"}, nil, "libnvidia-compute-580 nvidia-utils-580\n"},
		"by a way": {map[string]string{"packages": "libnvidia-compute-580\n", "ways": "built libnvidia-compute-580 - libnvidia-compute-580 gone-580\ndkms libnvidia-compute-580 - libnvidia-compute-580 nvidia-utils-580\n"}, nil,
			"libnvidia-compute-580 nvidia-utils-580\n"},
		"by no way": {map[string]string{"packages": "libnvidia-compute-580\n", "ways": "built libnvidia-compute-580 - libnvidia-compute-580 gone-580\n"}, nil,
			"GPU_DRIVER_STAYS\tgone-580 580.173.02 is not offered"},
		"that is not offered": {map[string]string{"packages": "gone-580\n"}, nil, "GPU_DRIVER_STAYS\tUnable to locate package gone-580"},
		"that lacks something": {map[string]string{"packages": "nvidia-utils-580\n"}, []deb{{name: "nvidia-utils-580", version: "580.173.02-1", depends: "gone"}},
			"GPU_DRIVER_STAYS\tnvidia-utils-580 : Depends: gone but it is not installable"},
		"with the same names, of another branch": {map[string]string{"packages": "libnvidia-compute\n", "headers": "nvidia-driver-pinning-580\n"},
			[]deb{{name: "libnvidia-compute", version: "580.173.02-1"}}, "libnvidia-compute\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := replacedHost(t)
			debs := append([]deb{{name: "libnvidia-compute-580", version: "580.173.02-1", conflicts: "libnvidia-compute"}}, c.debs...)
			if len(c.debs) == 0 {
				debs = append(debs, deb{name: "nvidia-utils-580", version: "580.173.02-1"})
			}
			s.repository(debs...)
			s.write("etc/apt/preferences.d/nvidia-driver-pin", "Package: *nvidia*\nPin: version 595.*\nPin-Priority: 1000\n")
			s.download()
			packages, before := s.packagesOf(), s.snapshot()
			s.value("gone", s.read(stepDir+"/values/packages"))
			s.value("branch", "580")
			for name, value := range c.values {
				s.value(name, value)
			}
			r := s.step("driver-fetch")
			if strings.HasPrefix(c.want, "GPU_") {
				s.fails(r, 1, "GPU_DRIVER_STAYS")
				if !strings.HasPrefix(r.failure, c.want) {
					t.Errorf("failure %q, want %q", r.failure, c.want)
				}
			} else if s.ok(r); s.fetched() != c.want {
				t.Errorf("fetched are %q, want %q; output:\n%s", s.fetched(), c.want, r.output)
			}
			if got := s.packagesOf(); got != packages || s.entries() != 0 {
				t.Errorf("%d entries, packages:\n%s\nwant:\n%s", s.entries(), got, packages)
			}
			s.same(before)
		})
	}
}

// A desktop has the libraries of 32 bits, too, for games: they go with the driver, and come back with it.
func TestDriverOfTwoArchitectures(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t, "0000:17:00.0")
	s.driver("550.163.01")
	native := arch()
	s.write("var/lib/dpkg/arch", native+"\ni386\n")
	s.remove(onlyArchitecture)
	s.repository(
		deb{name: "libnvidia-compute-550", version: "550.163.01-1", arch: native}, deb{name: "libnvidia-compute-550", version: "550.163.01-1", arch: "i386"},
		deb{name: "libnvidia-gl-550", version: "550.163.01-1", arch: "i386", depends: "libnvidia-compute-550"}, // which is no name of a library of the driver's
		deb{name: "libnvidia-compute-580", version: "580.173.02-1", arch: native, conflicts: "libnvidia-compute-550"},
		deb{name: "libnvidia-compute-580", version: "580.173.02-1", arch: "i386"},
	)
	s.ok(s.script("apt-get update; apt-get install -y libnvidia-compute-550 libnvidia-compute-550:i386 libnvidia-gl-550:i386; apt-mark hold libnvidia-compute-550:i386"))
	s.download()
	packages := s.packagesOf()
	h := s.factsBy(stubbed(Facts()))
	if got := slices.Sorted(maps.Keys(h.Packages)); !slices.Equal(got, []string{"libnvidia-compute-550", "libnvidia-compute-550:i386", "libnvidia-gl-550:i386"}) {
		t.Errorf("the facts have %q", got)
	}
	s.value("gone", "libnvidia-compute-550\nlibnvidia-compute-550:i386\n")
	s.value("packages", "libnvidia-compute-580\n")
	s.value("branch", "580")
	s.ok(s.step("driver-fetch"))
	if got := s.fetched(); got != "libnvidia-compute-580\n" {
		t.Errorf("fetched are %q", got)
	}
	s.value("packages", "libnvidia-compute-550\nlibnvidia-compute-550:i386\n")
	s.ok(s.step("driver-remove"))
	s.ok(s.script("apt_install libnvidia-compute-580; installed libnvidia-compute-580=580.173.02-1"))
	// Steam brings its own again.
	s.ok(s.script("apt-get install -y libnvidia-compute-580:i386; installed libnvidia-compute-580=580.173.02-1; [[ $(driver_version libnvidia-compute-580) == 580.173.02 ]]; apt-get purge -y libnvidia-compute-580:i386"))
	s.ok(s.script("undo_all"))
	if got := s.packagesOf(); got != packages {
		t.Errorf("packages:\n%s\nwant:\n%s", got, packages)
	}
}

func TestDriverRemoveWhatIsNoLongerOffered(t *testing.T) {
	t.Parallel()
	s := replacedHost(t)
	s.ok(s.step("driver-remove"))
	s.repository(deb{name: "libnvidia-compute", version: "610.57.04-1"}, deb{name: "nvidia-persistenced", version: "595.91.07-1"})
	r := s.ok(s.script("undo_all"))
	for _, name := range []string{"libnvidia-compute 595.91.07-1", "nvidia-dkms-open 595.91.07-1"} {
		if !strings.Contains(r.output, "not undone: package "+name+", which another driver replaced: it is not offered any more\n") {
			t.Errorf("nothing is said of %s:\n%s", name, r.output)
		}
	}
	if got := s.status("nvidia-persistenced"); !strings.HasPrefix(got, "install installed") {
		t.Errorf("nvidia-persistenced: %q", got)
	}
}

// What cannot be had today may be there tomorrow: the entry, which is all that knows of the owner's driver, stays until then.
func TestDriverComesBackWhenItCan(t *testing.T) {
	t.Parallel()
	const fails = "#!/bin/sh\ncase \" $* \" in *' install '*) echo %q; exit 100 ;; esac\nexec /usr/bin/apt-get \"$@\"\n"
	for name, c := range map[string]struct {
		status         int
		reason, detail string
		hinder         func(gpuHost)
	}{
		"no network": {75, "REPO_UNREACHABLE", "bringing back ", func(s gpuHost) {
			s.stub("apt-get", fmt.Sprintf(fails, "E: Failed to fetch http://mirror/libnvidia.deb  Connection timed out"))
		}},
		"no room": {1, "HOST_DISK_FULL", "bringing back ", func(s gpuHost) {
			s.stub("apt-get", fmt.Sprintf(fails, "dpkg: error: No space left on device\nE: Sub-process /usr/bin/dpkg returned an error code (1)"))
		}},
		"the mirror is down": {75, "REPO_UNREACHABLE", "bringing back libnvidia-compute 595.91.07-1: ", func(s gpuHost) {
			s.stub("apt-get", "#!/bin/sh\ncase \" $* \" in *' update '*) echo 'W: Failed to fetch http://mirror/Packages  Connection failed' ;; esac\n")
			s.stub("apt-cache", "#!/bin/sh\n")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := replacedHost(t)
			packages := s.packagesOf()
			s.ok(s.step("driver-remove"))
			c.hinder(s)
			s.fails(s.script("undo_all"), c.status, c.reason)
			s.detail(c.detail)
			s.ok(s.script("ledger_has removed"))
			for _, stub := range []string{"apt-get", "apt-cache"} {
				_ = os.Remove(s.path("stubs/" + stub))
			}
			lacks(t, s.ok(s.script("undo_all")).output, "not undone")
			if got := s.packagesOf(); got != packages || s.read("opt/libnvidia-compute/conf") != "edited by the owner" {
				t.Errorf("packages:\n%s\nwant:\n%s", got, packages)
			}
		})
	}
}

// Packages that have no place here any more are told, and keep no reset from its end.
func TestDriverThatDoesNotFitAnyMore(t *testing.T) {
	t.Parallel()
	s := replacedHost(t)
	s.ok(s.step("driver-remove"))
	s.repository(
		deb{name: "libnvidia-compute", version: "595.91.07-1", depends: "gone"}, deb{name: "nvidia-dkms-open", version: "595.91.07-1"},
		deb{name: "nvidia-persistenced", version: "595.91.07-1"}, deb{name: "libnvoptix1", version: "595.91.07-1"},
	)
	if r := s.ok(s.script("undo_all")); !strings.Contains(r.output, "which another driver replaced: E: Unable to ") || s.entries() != 0 {
		t.Errorf("%d entries, it says:\n%s", s.entries(), r.output)
	}
}

// What kgpu installed does not come back.
func TestDriverRemoveOfKgpus(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t, "0000:17:00.0")
	s.driver("580.173.02")
	s.repository(deb{name: "libnvidia-compute-580", version: "580.173.02-1"}, deb{name: "libnvidia-compute", version: "595.91.07-1"})
	before := s.snapshot()
	for _, name := range []string{"libnvidia-compute-580", "libnvidia-compute"} {
		s.value("packages", name)
		s.value("version_package", name)
		s.ok(s.step("driver-install"))
		s.ok(s.script("modprobe nvidia"))
		if name == "libnvidia-compute-580" {
			s.ok(s.step("driver-remove"))
			s.driver("595.91.07")
		}
	}
	if s.status("libnvidia-compute-580") != "" && !strings.Contains(s.status("libnvidia-compute-580"), "not-installed") {
		t.Errorf("the first is %q", s.status("libnvidia-compute-580"))
	}
	s.remove("gpu/lib/libnvidia-ml.so.595.91.07")
	s.driver("580.173.02")
	lacks(t, s.ok(s.script("undo_all")).output, "not undone")
	s.same(before)
	if got := s.packagesOf(); got != "auto:\n" {
		t.Errorf("packages: %q", got)
	}
}

// A driver is not removed where something else would go with it.
func TestDriverRemoveThatTakesOthers(t *testing.T) {
	t.Parallel()
	s := replacedHost(t)
	s.repository(deb{name: "cuda-12-9", version: "12.9.1-1", depends: "libnvidia-compute"}, deb{name: "theirs", version: "1", depends: "cuda-12-9"})
	s.ok(s.script("apt-get update; apt-get install -y theirs"))
	before, packages := s.snapshot(), s.packagesOf()
	s.fails(s.step("driver-remove"), 1, "GPU_DRIVER_OTHER")
	s.detail(" cuda-12-9", " theirs")
	lacks(t, s.read(stepDir+"/failure"), "libnvoptix1") // or a part of the driver counts as something else
	s.same(before)
	if got := s.packagesOf(); got != packages || s.entries() > 0 {
		t.Errorf("packages:\n%s\n%d entries", got, s.entries())
	}
}

func TestDriverRebootOnlyIfStale(t *testing.T) {
	t.Parallel()
	s := replacedHost(t)
	s.value("stale", "yes")
	s.value("reason", "the modules of driver 595.91.07 are in use")
	s.value("boot_id", readFile(t, "/proc/sys/kernel/random/boot_id"))
	s.ok(s.step("driver-reboot")) // the driver in the kernel is the one that is installed
	s.driver("580.173.02")
	s.write("gpu/used/nvidia_uvm", "")
	s.stub("sleep", "#!/bin/bash\nkill -KILL $PPID\n")
	if r := s.step("driver-reboot"); !strings.Contains(r.output, "W\tthe reboot: the modules of driver 595.91.07 are in use\n") || !strings.Contains(s.read("var/units.log"), "reboot \n") {
		t.Errorf("it says:\n%s", r.output)
	}
	s.write("var/units.log", "")
	s.remove("gpu/used/nvidia_uvm")
	if r := s.ok(s.step("driver-reboot")); s.loaded("nvidia") || strings.Contains(s.read("var/units.log"), "reboot") {
		t.Errorf("it says:\n%s", r.output)
	}
	s.ok(s.step("driver-reboot")) // nothing is loaded
}

// A fabric manager that was stopped to unload the driver runs again.
func TestDriverLoadStartsTheFabricManager(t *testing.T) {
	t.Parallel()
	s := twoCards(t)
	s.write("var/units/nvidia-fabricmanager.service", "loaded,inactive,enabled\n")
	s.ok(s.step("driver-load"))
	s.holds("var/units/nvidia-fabricmanager.service", "loaded,active,enabled\n")
}

// nodeHost has a control plane with a node w1, whose state is in files. Each line of /fails is a part of a call that fails, once.
func nodeHost(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.stub("kubectl", `#!/bin/bash
call="$* "
if [[ -s /fails && $call == *"$(head -n 1 /fails)"* ]]; then sed -i 1d /fails; echo "Unable to connect to the server: net/http: timeout" >&2; exit 1; fi
case $call in
*" /readyz "*) printf ok; exit ;;
*" get node w1 --ignore-not-found "*) if [[ -e /node ]]; then echo node/w1; fi; exit ;;
*" get node w1 "*unschedulable*) cat /unschedulable; exit ;;
*" get node w1 "*kgpu.dev/drained*) cat /drained; exit ;;
*" get node w1 "*'"kgpu.dev/gpu"'*) cat /served; exit ;;
*" get node w1 "*) cat /node; exit ;;
*" get pods "*) cat /pods; exit ;;
*" kgpu.dev/drained="*) by=${call##*=} && printf %s "${by% }" >/drained ;;
*" kgpu.dev/drained- ") : >/drained ;;
*" cordon "*) printf true >/unschedulable ;;
*" uncordon "*) : >/unschedulable ;;
*" kgpu.dev/gpu="*) sed -i '/ cards/d' /pods ;;
esac
call=${call#*--request-timeout=30s }
echo "${call% }" >>/calls
case $call in "drain "*) if [[ -e /stuck ]]; then cat /stuck; exit 1; fi; sed -i '/ReplicaSet/d' /pods ;; esac
`)
	s.value("node", "w1\n")
	s.value("cards", "2\n")
	s.write("calls", "")
	s.write("node", "True cpu=4 nvidia.com/gpu=2\n")
	s.write("unschedulable", "")
	s.write("drained", "")
	s.write("served", "true")
	s.write("pods", "default/train-1 Running ReplicaSet Ready=True\nkube-system/nvidia-device-plugin-x Running DaemonSet cards Ready=True\nkube-system/kube-proxy-y Running DaemonSet Ready=True\n"+
		"kube-system/etcd-w1 Running mirror Node Ready=True\ndefault/done Succeeded\n")
	return s
}

// patience is for the pods of a node whose driver hangs; empty: it does not.
func (s *sandbox) patience(seconds string) {
	if seconds != "" {
		s.value("patience", seconds)
	}
}

func (s *sandbox) called(want ...string) {
	s.t.Helper()
	got := strings.Split(strings.TrimSpace(drainTimeout.ReplaceAllString(s.read("calls"), "--timeout …")), "\n")
	if !slices.Equal(got, want) {
		s.t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	s.write("calls", "")
}

const drainCall = "drain w1 --ignore-daemonsets --delete-emptydir-data --timeout …"

var drainTimeout = regexp.MustCompile(`--timeout [1-9]\d*s`)

// Before 1.20 the flag for pods with files of their own had another name.
func TestDrainsOfOldVersions(t *testing.T) {
	t.Parallel()
	for _, patience := range []string{"", "120\n"} {
		s := nodeHost(t)
		s.write("var/lib/dpkg/status", oldPackage("1.19.16-00"))
		s.patience(patience)
		s.ok(s.step("node-drain"))
		s.called("label --overwrite node w1 kgpu.dev/drained=kgpu", "cordon w1", "drain w1 --ignore-daemonsets --delete-local-data --timeout …", "label --overwrite node w1 kgpu.dev/gpu=drained")
	}
}

func TestDriverDrainAndBack(t *testing.T) {
	t.Parallel()
	s := nodeHost(t)
	s.ok(s.step("node-drain"))
	s.called("label --overwrite node w1 kgpu.dev/drained=kgpu", "cordon w1", drainCall, "label --overwrite node w1 kgpu.dev/gpu=drained")
	s.ok(s.step("node-drain")) // once more, after an interruption
	s.called("cordon w1", drainCall, "label --overwrite node w1 kgpu.dev/gpu=drained")

	s.write("pods", "kube-system/nvidia-device-plugin-x Running DaemonSet cards Ready=True\n")
	s.stub("kubectl", strings.Replace(s.read("stubs/kubectl"), "sed -i '/ cards/d' /pods", ":", 1))
	s.ok(s.step("node-uncordon"))
	s.called("label --overwrite node w1 kgpu.dev/gpu=true", "uncordon w1", "label node w1 kgpu.dev/drained-")
}

// A node that somebody else cordoned stays cordoned.
func TestDriverDrainOfACordonedNode(t *testing.T) {
	t.Parallel()
	s := nodeHost(t)
	s.write("unschedulable", "true")
	s.ok(s.step("node-drain"))
	s.called("label --overwrite node w1 kgpu.dev/drained=other", "cordon w1", drainCall, "label --overwrite node w1 kgpu.dev/gpu=drained")
	s.stub("kubectl", strings.Replace(s.read("stubs/kubectl"), "sed -i '/ cards/d' /pods", "echo 'p Running DaemonSet cards Ready=True' >/pods", 1))
	if r := s.ok(s.step("node-uncordon")); !strings.Contains(r.output, "stays cordoned") || s.read("unschedulable") != "true" {
		t.Errorf("it says:\n%s", r.output)
	}
}

// A pod that nothing starts again is not deleted, and a disruption budget is kept; the node goes on as before.
func TestDriverDrainBlocked(t *testing.T) {
	t.Parallel()
	s := nodeHost(t)
	s.write("pods", s.read("pods")+"default/mine Running Ready=True\ndefault/yours Pending\n")
	s.fails(s.step("node-drain"), 1, "NODE_DRAIN_BLOCKED")
	s.detail("node w1 has pods without a controller, which would be lost: default/mine, default/yours")
	s.holds("calls", "")

	s = nodeHost(t)
	s.write("stuck", "evicting pod default/train-1\nerror when evicting pods/\"train-1\" -n \"default\": Cannot evict pod as it would violate the pod's disruption budget.\n")
	s.fails(s.step("node-drain"), 1, "NODE_DRAIN_BLOCKED")
	s.detail("Cannot evict pod as it would violate the pod's disruption budget")
	s.called("label --overwrite node w1 kgpu.dev/drained=kgpu", "cordon w1", drainCall, "uncordon w1", "label node w1 kgpu.dev/drained-")
}

// A node that had no pods when the plan was shown was nobody's worry. One that has pods with cards by the time of its turn is
// left alone, unless somebody agreed to all drains.
func TestDrainNobodyAgreedTo(t *testing.T) {
	t.Parallel()
	const harmless = "default/train-0 Running ReplicaSet limit=cpu\ndefault/done Succeeded Job limit=nvidia.com/gpu\nkube-system/x Running DaemonSet limit=nvidia.com/gpu\n" +
		"kube-system/y Running mirror Node limit=nvidia.com/gpu\ndefault/other Running ReplicaSet limit=example.com/nvidia.com\n"
	const come = "ml/train-1 Running Job limit=cpu limit=nvidia.com/gpu Ready=True\nml/train-2 Pending ReplicaSet limit=nvidia.com/mig-1g.5gb\nml/old Running ReplicaSet limit=alpha.kubernetes.io/nvidia-gpu\n"
	drained := []string{"label --overwrite node w1 kgpu.dev/drained=kgpu", "cordon w1", drainCall, "label --overwrite node w1 kgpu.dev/gpu=drained"}
	for _, patience := range []string{"", "120\n"} {
		s := nodeHost(t)
		s.patience(patience)
		s.write("pods", harmless)
		s.ok(s.step("node-drain"))
		s.called(drained...)

		s.write("pods", harmless+come)
		s.write("drained", "")
		s.write("unschedulable", "")
		s.fails(s.step("node-drain"), 1, "NODE_DRAIN_BLOCKED")
		s.detail("pods have come to node w1 since the plan was shown: ml/train-1, ml/train-2, ml/old")
		if got := s.read("calls"); got != "" {
			t.Errorf("%q: calls:\n%s", patience, got)
		}

		s.value("agreed", "yes") // as the planner writes it
		s.ok(s.step("node-drain"))
		s.called(drained...)

		// One that is there by the time when no more can come.
		s.value("agreed", "no")
		s.write("pods", "")
		s.write("drained", "")
		s.write("unschedulable", "")
		s.stub("kubectl", strings.Replace(s.read("stubs/kubectl"), "printf true >/unschedulable", "printf true >/unschedulable; echo ml/late Running Job limit=nvidia.com/gpu >/pods", 1))
		s.fails(s.step("node-drain"), 1, "NODE_DRAIN_BLOCKED")
		s.detail("since the plan was shown: ml/late")
		s.called("label --overwrite node w1 kgpu.dev/drained=kgpu", "cordon w1", "uncordon w1", "label node w1 kgpu.dev/drained-")
	}
}

// A node without cards has no device plugin that goes and comes back.
func TestDriverDrainWithoutCards(t *testing.T) {
	t.Parallel()
	s := nodeHost(t)
	s.value("cards", "0\n")
	s.write("node", "True cpu=4\n")
	s.write("served", "")
	s.write("pods", "default/train-1 Running ReplicaSet Ready=True\n")
	s.ok(s.step("node-drain"))
	s.called("label --overwrite node w1 kgpu.dev/drained=kgpu", "cordon w1", drainCall)
	s.ok(s.step("node-uncordon"))
	s.called("uncordon w1", "label node w1 kgpu.dev/drained-")
}

func TestDriverDrainOfNoNode(t *testing.T) {
	t.Parallel()
	s := nodeHost(t)
	s.remove("node")
	s.ok(s.step("node-drain"))
	s.ok(s.step("node-uncordon"))
	s.holds("calls", "")
}

// An API server that does not tell whether there is a node has not said that there is none: it is asked again.
func TestDrainWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ step, patience, want string }{
		{"node-drain", "", "drain w1 "}, {"node-drain", "120\n", "drain w1 "}, {"node-evict", "", "drain w1 "}, {"node-uncordon", "", "uncordon w1\n"},
	} {
		t.Run(c.step+c.patience, func(t *testing.T) {
			t.Parallel()
			s := nodeHost(t)
			s.stub("sleep", "#!/bin/sh\n")
			s.patience(c.patience)
			s.value("cards", "0\n")
			s.write("drained", "kgpu")
			s.write("fails", "node w1 --ignore-not-found\nnode w1 --ignore-not-found\n")
			s.ok(s.step(c.step))
			contains(t, s.read("calls"), c.want)
			s.write("calls", "")
			s.write("fails", "node w1 --ignore-not-found\n")
			s.write(stepDir+"/timeout", "0")
			s.fails(s.step(c.step), 1, "API_UNREACHABLE")
			if calls := s.read("calls"); calls != "" {
				t.Errorf("calls:\n%s", calls)
			}
		})
	}
}

// Who cordoned a node is not lost when the API server does not answer.
func TestCordonWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, drained, unschedulable, fails string }{
		"who did, before it is cordoned":       {"cordon w1", "other", "true", "kgpu.dev/drained"},
		"whether somebody did":                 {"cordon w1", "", "true", "unschedulable"},
		"who did, in a step that gives up":     {"uncordon w1 || exit 1", "kgpu", "true", "kgpu.dev/drained"},
		"to uncordon, in a step that gives up": {"uncordon w1 || exit 1", "kgpu", "true", "uncordon w1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := nodeHost(t)
			s.write("drained", c.drained)
			s.write("unschedulable", c.unschedulable)
			s.write("fails", c.fails+"\n")
			if r := s.script(c.script); r.status == 0 {
				t.Errorf("it is taken for done:\n%s", r.output)
			}
			if calls := s.read("calls"); calls != "" || s.read("drained") != c.drained || s.read("fails") != "" {
				t.Errorf("drained by %q; calls:\n%s", s.read("drained"), calls)
			}
		})
	}
}

// A drain leaves time to let the node in again.
func TestDriverDrainLeavesTime(t *testing.T) {
	t.Parallel()
	s := nodeHost(t)
	for limit, most := range map[string]int{"300": 300 - 15 - 60, "60": 1} {
		s.write(stepDir+"/timeout", limit)
		s.write("calls", "")
		s.ok(s.step("node-drain"))
		found := regexp.MustCompile(`--timeout (\d+)s`).FindStringSubmatch(s.read("calls"))
		if found == nil {
			t.Fatalf("calls:\n%s", s.read("calls"))
		}
		if seconds, err := strconv.Atoi(found[1]); err != nil || seconds < 1 || seconds > most {
			t.Errorf("of %s s it takes %s for the drain, want %d at most", limit, found[1], most)
		}
	}
}

// The node is let in only when its cards can be had.
func TestDriverUncordonWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ node, pods, reason, detail string }{
		"not ready":   {"False nvidia.com/gpu=2", "p Running DaemonSet cards Ready=True", "NODE_NOT_READY", "node w1 is not ready; it stays cordoned"},
		"no plugin":   {"True nvidia.com/gpu=2", "p Running DaemonSet Ready=True", "GPU_NOT_ALLOCATABLE", "the device plugin of w1 is not ready"},
		"plugin late": {"True nvidia.com/gpu=2", "p Pending DaemonSet cards", "GPU_NOT_ALLOCATABLE", "the device plugin of w1 is not ready"},
		"one card":    {"True nvidia.com/gpu=1", "p Running DaemonSet cards Ready=True", "GPU_NOT_ALLOCATABLE", "w1: 1 of 2 cards; the node stays cordoned"},
		"thousands":   {"True nvidia.com/gpu=1k", "p Running DaemonSet cards Ready=True", "", ""},
		"in parts":    {"True cpu=4 nvidia.com/gpu=1 nvidia.com/mig-1g.5gb=7", "p Running DaemonSet cards Ready=True", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := nodeHost(t)
			s.stub("kubectl", strings.Replace(s.read("stubs/kubectl"), "sed -i '/ cards/d' /pods", ":", 1))
			s.write(stepDir+"/timeout", "0")
			s.write("drained", "kgpu")
			s.write("node", c.node+"\n")
			s.write("pods", c.pods+"\n")
			r := s.step("node-uncordon")
			if c.reason == "" {
				s.ok(r)
				return
			}
			s.fails(r, 1, c.reason)
			s.detail(c.detail)
			lacks(t, s.read("calls"), "uncordon") // or it was let in
		})
	}
}

// A plugin that holds a card for unhealthy is restarted, once.
func TestGPUReadyRestartsAPlugin(t *testing.T) {
	t.Parallel()
	s := allocatableHost(t)
	s.write("nodes", offered(2, 1, 1, 1))
	s.write("pods", "w10 nvidia-device-plugin-c Running\nw1 nvidia-device-plugin-a Running\n")
	s.stub("kubectl", s.read("stubs/kubectl")+"case \"$*\" in *' delete pod '*) call=$*; echo \"${call#*--request-timeout=30s }\" >>/calls ;; esac\n")
	s.stub("sleep", "#!/bin/sh\nif [ -e /second ]; then sed -i '/^w1 allocatable/s/1$/2/' /nodes; fi\ntouch /second\n")
	contains(t, s.ok(s.step("gpu-ready")).output, "restarting the device plugin of w1: ")
	s.called("-n kube-system delete pod nvidia-device-plugin-a --wait=false")
}

// kubectl runs the templates on objects that may lack anything.
func TestDrainTemplates(t *testing.T) {
	t.Parallel()
	text := Lib()
	uncordon := stepText(t, "node-uncordon")
	text = append(text, uncordon...)
	type object = map[string]any
	controller := []any{object{"kind": "ReplicaSet", "controller": true}}
	for name, c := range map[string]struct {
		data object
		want string
	}{
		"node_pods": {object{"items": []any{
			object{"metadata": object{"namespace": "default", "name": "a"}, "spec": object{}, "status": object{"phase": "Pending"}},
			object{"metadata": object{"namespace": "default", "name": "b", "ownerReferences": controller, "annotations": object{"x": "y"}}, "spec": object{"nodeSelector": object{"kgpu.dev/gpu": "true"}},
				"status": object{"phase": "Running", "conditions": []any{object{"type": "PodScheduled", "status": "True"}, object{"type": "Ready", "status": "False"}}}},
			object{"metadata": object{"namespace": "default", "name": "d", "deletionTimestamp": "2026-11-20T13:00:00Z"}, "spec": object{"containers": []any{object{"resources": object{}}, object{"resources": object{"limits": object{"cpu": "1", "nvidia.com/gpu": "1"}}}}},
				"status": object{"phase": "Running"}},
			object{"metadata": object{"namespace": "kube-system", "name": "c", "annotations": object{"kubernetes.io/config.mirror": "1"}, "ownerReferences": []any{object{"kind": "Node", "controller": true}}},
				"spec": object{"nodeSelector": object{"disk": "fast"}}, "status": object{"phase": "Running"}},
		}}, "default/a Pending\ndefault/b Running ReplicaSet cards Ready=False\ndefault/d Running limit=cpu limit=nvidia.com/gpu ending\nkube-system/c Running mirror Node\n"},
		"node": {object{"status": object{"conditions": []any{object{"type": "DiskPressure", "status": "False"}, object{"type": "Ready", "status": "True"}},
			"allocatable": object{"cpu": "4", "nvidia.com/gpu": "2"}}}, "True cpu=4 nvidia.com/gpu=2\n"},
	} {
		var out strings.Builder
		must(t, template.Must(template.New(name).Parse(quoted(t, text, name+"_template"))).Execute(&out, c.data))
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
	}
}

// Cards are all display controllers of NVIDIA's, as in facts.sh; NVSwitches are bridges.
func TestCardsByClass(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t, "0000:17:00.0")
	s.pci("0000:18:00.0", "0x10de", "0x030000")
	s.pci("0000:19:00.0", "0x10de", "0x038000")
	s.pci("0000:05:00.0", "0x10de", "0x068000")
	s.prints("nvidia_cards", "0000:17:00.0\n0000:18:00.0\n0000:19:00.0\n")
}
