package scripts

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// factsOf is facts.sh on a host that has the stubs in /usr/local/bin, with other times.
func factsOf(times ...string) string {
	return "mount --bind /stubs /usr/local/bin\n" + strings.NewReplacer(times...).Replace(stubbed(Facts()))
}

// busyHost has all that the facts ask programs about.
func busyHost(t *testing.T) gpuHost {
	t.Helper()
	s := newHostForFacts(t)
	s.stub("systemctl", "#!/bin/sh\nfor unit in containerd docker; do printf 'Id=%s.service\\nLoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\n' $unit; done\n")
	for _, program := range []string{"containerd", "cri-dockerd", "curl", "kubectl"} {
		s.stub(program, "#!/bin/sh\n")
	}
	s.stub("nvidia-smi", "#!/bin/sh\necho 'GPU-0, A100, 00000000:17:00.0, 40960 MiB, Enabled'\n")
	s.write("var/lib/etcd/member/wal/0", "")
	s.write("etc/kubernetes/admin.conf", "")
	return s
}

// A program that hangs, on a disk that stands still, is no answer: a host without packages or addresses would be another one.
func TestFactsOfAHostThatStandsStill(t *testing.T) {
	t.Parallel()
	for program, name := range map[string]string{
		"nproc": "nproc", "ip": "ip", "df": "df", "grep": "grep", "modinfo": "modinfo", "ldconfig": "ldconfig", "dpkg": "dpkg", "dpkg-query": "dpkg-query",
		"systemctl": "systemd", "sha256sum": "sha256sum", "containerd": "containerd", "cri-dockerd": "cri-dockerd",
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := busyHost(t)
			s.stub(program, "#!/bin/sh\nexec sleep 60\n")
			if r := s.bash(factsOf("timeout 30", "timeout 5", "timeout 20", "timeout 5")); r.status != 1 || !strings.HasSuffix(r.output, name+" did not answer in time\n") {
				t.Errorf("status %d, it says:\n%s", r.status, r.output)
			}
		})
	}
}

// What hangs and is not needed for a plan does not keep the rest.
func TestFactsWithoutWhatHangs(t *testing.T) {
	t.Parallel()
	s := busyHost(t)
	s.stub("nvidia-smi", "#!/bin/sh\n[ \"$1\" != -L ] || exec sleep 20\necho 'GPU-0, A100, 00000000:17:00.0, 40960 MiB, Enabled'\n")
	s.stub("curl", "#!/bin/sh\nexec sleep 60\n")
	s.stub("du", "#!/bin/sh\nexec sleep 60\n")
	h := s.factsBy(factsOf("timeout 10", "timeout 1", "timeout 30 \"${ask", "timeout 1 \"${ask", "-k 5 8", "-k 1 1"))
	if len(h.NVIDIA.GPUs) != 1 || h.DockerInfo != nil || h.Etcd == nil || h.Etcd.KiB != 0 || h.Etcd.Changed.IsZero() {
		t.Errorf("%+v, %+v, %+v", h.NVIDIA, h.DockerInfo, h.Etcd)
	}
}

// A docker that is slow is asked again, with more patience; one that refuses is not.
func TestFactsOfASlowDocker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		curl  string // before it answers
		asked int
		said  map[string]string
	}{
		"at once":  {"", 1, map[string]string{"version": "28.0.1"}},
		"slow":     {"[ -e /again ] || { : >/again; exec sleep 60; }\n", 2, map[string]string{"version": "28.0.1"}},
		"refusing": {"exit 7\n", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := busyHost(t)
			s.stub("curl", "#!/bin/sh\necho curl >>/tmp/calls\n"+c.curl+`echo '{"ServerVersion":"28.0.1"}'`+"\n")
			h := s.factsBy(factsOf("timeout 10", "timeout 1"))
			if asked := strings.Count(s.read("tmp/calls"), "curl\n"); asked != c.asked || !maps.Equal(h.DockerInfo, c.said) {
				t.Errorf("asked %d times, it says %q", asked, h.DockerInfo)
			}
		})
	}
}

// Where images go is what runtimes say of themselves, else what their files say; the file systems are those of the places that there are.
func TestFactsOfRoots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files              map[string]string
		runs               bool
		docker, containerd string
	}{
		"nothing":      {nil, false, "/var/lib/docker", "/var/lib/containerd"},
		"as they come": {map[string]string{"docker/daemon.json": "{}", "containerd/config.toml": "version = 2\n[plugins]\nroot = \"/no\"\n"}, false, "/var/lib/docker", "/var/lib/containerd"},
		"configured": {map[string]string{"docker/daemon.json": "{\n  \"log-driver\": \"json-file\",\n  \"data-root\" : \"/data/docker\"}", "containerd/config.toml": "# root = \"/no\"\nroot = '/data/containerd'\n"}, false,
			"/data/docker", "/data/containerd"},
		"in the words of old":   {map[string]string{"docker/daemon.json": `{"graph": "/data/docker"}`}, false, "/data/docker", "/var/lib/containerd"},
		"by what they run with": {map[string]string{"docker/daemon.json": `{"data-root": "/no"}`}, true, "/data/running", "/data/dumped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHostForFacts(t)
			if c.runs {
				s = busyHost(t)
				s.stub("curl", `#!/bin/sh
echo '{"DockerRootDir":"/data/running","Driver":"overlay2"}'
`)
				s.stub("containerd", "#!/bin/sh\nprintf 'version = 3\\nroot = \"/data/dumped\"\\n'\n")
			}
			s.write("data/here", "")
			for file, text := range c.files {
				s.write("etc/"+file, text)
			}
			h := s.factsBy(factsOf())
			if h.DockerRoot != c.docker || h.ContainerdRoot != c.containerd {
				t.Errorf("docker's root %q, containerd's %q, want %q and %q", h.DockerRoot, h.ContainerdRoot, c.docker, c.containerd)
			}
			for _, fs := range h.FileSystems {
				if fs.SizeKiB == 0 || fs.AvailableKiB == 0 || fs.On == "" {
					t.Errorf("%+v", fs)
				}
			}
			if told := slices.ContainsFunc(h.FileSystems, func(fs facts.FileSystem) bool { return fs.Path == "/data" }); told != strings.HasPrefix(c.docker, "/data") {
				t.Errorf("file systems: %+v", h.FileSystems)
			}
		})
	}
}

// What keeps modules out is told with file and line, of files with the same name of the first only.
func TestFactsOfModulesKeptOut(t *testing.T) {
	t.Parallel()
	s := newHostForFacts(t)
	s.write("etc/modprobe.d/cis.conf", "# 3.1\n  install overlay /bin/true\nblacklist br-netfilter\ninstall vxlan /sbin/modprobe --ignore-install vxlan\ninstall my_dummy /bin/false\n")
	s.write("etc/modprobe.d/driver.conf", "")
	s.write("run/modprobe.d/driver.conf", "blacklist nvidia\n")
	s.write("run/modprobe.d/uvm.conf", "alias nvidia-uvm off\n")
	h := s.factsBy(factsOf())
	want := map[string]string{
		"overlay":      "/etc/modprobe.d/cis.conf:2: install overlay /bin/true",
		"br_netfilter": "/etc/modprobe.d/cis.conf:3: blacklist br-netfilter",
		"nvidia_uvm":   "/run/modprobe.d/uvm.conf:1: alias nvidia-uvm off",
	}
	if !maps.Equal(h.ModulesOff, want) {
		t.Errorf("%q, want %q", h.ModulesOff, want)
	}
}

// An API server that is slow is asked once more, with more patience, and so is one that is there and fails; one that refuses is not.
func TestFactsOfASlowCluster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kubectl string
		answers bool
		least   int // times that it is asked; a shell that a busy machine holds up for a second asks once more
	}{
		"it answers":       {"cat /cluster", true, 1},
		"it is slow":       {"case $* in *=28s*) cat /cluster ;; *) sleep 3; exit 1 ;; esac", true, 2},
		"its etcd elects":  {"case $* in *--raw*) exit ;; esac; [ $(grep -c x /asked) -ge 5 ] || exit 1; cat /cluster", true, 5},
		"it never answers": {"sleep 3; exit 1", false, 2},
		"it refuses":       {"exit 1", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := busyHost(t)
			s.stub("kubectl", "#!/bin/sh\ncase $* in *secrets*) exit ;; esac\necho x >>/asked\n"+c.kubectl+"\n")
			s.write("cluster", "deployment\tkgpu-notebook\tnotebook\t1\t1\n")
			h := s.factsBy(factsOf())
			if asked := strings.Count(s.read("asked"), "x"); (h.Cluster != nil) != c.answers || c.answers && len(h.Cluster.Workloads) == 0 || asked < c.least || c.answers && asked > c.least {
				t.Errorf("asked %d times: %+v", asked, h.Cluster)
			}
		})
	}
}

// The facts tell when the keys end that kgpu has put on a host, of others nothing, and looking leaves nothing behind.
func TestFactsOfKeyrings(t *testing.T) {
	t.Parallel()
	s := newHostForFacts(t)
	s.write("repo/Packages", "")
	k := s.endedRepository()
	s.value("keyring", "/etc/apt/keyrings/kgpu-kubernetes.gpg")
	s.value("line", "deb [signed-by=/etc/apt/keyrings/kgpu-kubernetes.gpg] file:///repo/ /")
	s.write("etc/apt/keyrings/kgpu-theirs.gpg", k.gpg("--export"))
	look := func() map[string]facts.Keyring {
		t.Helper()
		before := s.snapshot()
		h := s.factsBy(factsOf())
		s.same(before)
		return h.Keyrings
	}
	s.fails(s.step("repository"), 1, "REPO_KEY_EXPIRED")
	got := look()["/etc/apt/keyrings/kgpu-kubernetes.gpg"]
	if len(got.Keys) != 1 || got.Keys[0].Fingerprint != k.fingerprint || got.Keys[0].Until.UTC().Format(time.DateOnly) != "2025-06-01" || !got.Accepted.IsZero() {
		t.Errorf("of a key that has expired: %+v", got)
	}
	s.value("key_url", "file:///repo/new")
	s.ok(s.step("repository"))
	all := look()
	got = all["/etc/apt/keyrings/kgpu-kubernetes.gpg"]
	if len(all) != 1 || len(got.Keys) != 1 || time.Until(got.Keys[0].Until) < 364*24*time.Hour || time.Since(got.Accepted) > time.Hour {
		t.Errorf("of a key that was extended: %+v", all)
	}
	s.stub("gpg", "#!/bin/sh\nexit 127\n")
	if got := look()["/etc/apt/keyrings/kgpu-kubernetes.gpg"]; got.Keys != nil {
		t.Errorf("without gpg: %+v", got)
	}
}

// Packages are looked at again when the host went down while they were installed, not while that goes on.
func TestFactsOfUnsettledPackages(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.ok(s.script("unsettled_begin one"))
	if s.factsBy(stubbed(Facts())).Apt.Unsettled {
		t.Error("in the same boot, packages count as lost")
	}
	s.write("var/lib/kgpu/unsettled", "6f1c8a52-0000-4000-8000-000000000000\none\n")
	if !s.factsBy(stubbed(Facts())).Apt.Unsettled {
		t.Error("after a power cut, nobody looks at the packages")
	}
}

// Of what the kernel came with, and of other kernels nothing.
func TestFactsOfTheKernel(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	release := strings.TrimSpace(readFile(t, "/proc/sys/kernel/osrelease"))
	var status strings.Builder
	for _, name := range []string{"linux-image-unsigned-" + release, "proxmox-headers-" + release, "linux-image-6.1.0-1-other"} {
		status.WriteString("Package: " + name + "\nStatus: install ok installed\nMaintainer: x\nArchitecture: all\nVersion: 1\nDescription: x\n\n")
	}
	s.write("var/lib/dpkg/status", status.String())
	h := s.factsBy(stubbed(Facts()))
	if _, image := h.Packages["linux-image-unsigned-"+release]; !image || len(h.Packages) != 2 {
		t.Errorf("packages: %v", h.Packages)
	}
}

// A driver may be in a folder of its own, to which links lead from where the linker looks: facts and steps see the same version.
func TestFactsOfADriverBehindLinks(t *testing.T) {
	t.Parallel()
	s := newHostForFacts(t)
	s.write("opt/driver/libnvidia-ml.so.580.159.04", "")
	s.must(os.Symlink("libnvidia-ml.so.580.159.04", s.path("opt/driver/libnvidia-ml.so.1")))
	s.write("gpu/lib/libnvidia-ml.so.570.1", "") // of a driver that is gone
	_ = os.Remove(s.path("gpu/lib/libnvidia-ml.so.1"))
	s.must(os.Symlink("/opt/driver/libnvidia-ml.so.1", s.path("gpu/lib/libnvidia-ml.so.1")))
	h := s.factsBy(factsOf("/usr/lib{,64}/", "/gpu/lib/"))
	if of := strings.TrimSpace(s.ok(s.script("nvidia_library")).output); h.NVIDIA.Library != of || of != "580.159.04" {
		t.Errorf("the facts say %q, the steps %q", h.NVIDIA.Library, of)
	}
}

// Signs of other kinds of Kubernetes: what they keep, their programs and their uninstallers.
func TestFactsOfOtherDistributions(t *testing.T) {
	t.Parallel()
	s := newHostForFacts(t)
	signs := []string{"/etc/rancher/k3s", "/opt/rke2/bin/rke2-uninstall.sh", "/usr/local/bin/k3s-uninstall.sh", "/var/lib/minikube", "/var/lib/rancher/k3s"}
	for _, path := range signs {
		if strings.HasSuffix(path, ".sh") {
			s.write(path[1:], "")
		} else {
			s.write(path[1:]+"/file", "")
		}
	}
	s.stub("k3s-uninstall.sh", "#!/bin/sh\n") // the stubs are what the host has in /usr/local/bin
	h := s.factsBy(factsOf())
	slices.Sort(h.DistributionPaths)
	if !slices.Equal(h.DistributionPaths, signs) || strings.Join(h.OtherDistributions, " ") != "k3s rke2 minikube" {
		t.Errorf("%q of %q", h.DistributionPaths, h.OtherDistributions)
	}
}
