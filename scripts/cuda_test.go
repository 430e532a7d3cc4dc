package scripts

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// cudaHost is a sandbox whose /usr/local can be written to and lasts from one script to the next, with a toolkit to install.
type cudaHost struct{ *sandbox }

func newCUDAHost(t *testing.T, nvcc string) cudaHost {
	t.Helper()
	s := cudaHost{newSandbox(t)}
	for _, dir := range []string{"local", "run/mount", "var/lib/dpkg/alternatives"} {
		s.must(os.MkdirAll(s.path(dir), 0o755))
	}
	s.repository(
		deb{name: "cuda-toolkit-12-9", version: "12.9.2-1", depends: "cuda-nvcc-12-9"},
		deb{name: "cuda-nvcc-12-9", version: "12.9.86-1", files: map[string]string{"/usr/local/cuda-12.9/bin/nvcc": "#!/bin/sh\n" + nvcc + "\n"},
			// What the real packages do, and what a program may leave.
			postinst: "chmod 755 /usr/local/cuda-12.9/bin/nvcc; mkdir -p /opt/nvidia/cache; : >/usr/local/cuda-12.9/left\n" +
				"for name in cuda cuda-12; do update-alternatives --quiet --install /usr/local/$name $name /usr/local/cuda-12.9 129; done"},
		deb{name: "cudnn9-cuda-12", version: "9.22.0.52-1"},
	)
	s.value("packages", "cuda-toolkit-12-9\ncudnn9-cuda-12\n")
	s.value("version", "12.9")
	return s
}

func (s cudaHost) script(text string) result {
	s.t.Helper()
	return s.bash("mount --bind /local /usr/local\n. \"$KGPU_STEP/../../lib.sh\"\n" + text)
}

func (s cudaHost) cuda() result {
	s.t.Helper()
	text, err := Step("gpu-cuda")
	s.must(err)
	return s.bash("mount --bind /local /usr/local\n" + string(text))
}

func TestCUDAComesAndGoes(t *testing.T) {
	t.Parallel()
	s := newCUDAHost(t, "echo 'Cuda compilation tools, release 12.9'")
	before := s.snapshot()
	for range 2 {
		r := s.ok(s.cuda())
		contains(t, r.output, "release 12.9\nCUDA 12.9 is in /usr/local/cuda-12.9: its programs are in /usr/local/cuda/bin")
	}
	s.ok(s.script("/usr/local/cuda/bin/nvcc --version"))
	contains(t, s.status("cudnn9-cuda-12"), "installed")
	s.ok(s.script("undo_all"))
	s.same(before)
	s.absent("var/lib/dpkg/alternatives/cuda", "local/cuda-12.9") // or the toolkit left something
}

// Folders that were there before are the owner's.
func TestCUDABesideTheOwners(t *testing.T) {
	t.Parallel()
	s := newCUDAHost(t, "true")
	s.write("local/cuda-12.8/bin/nvcc", "theirs")
	s.write("opt/nvidia/theirs", "theirs")
	s.must(os.Symlink("/usr/local/cuda-12.8", s.path("local/cuda")))
	s.ok(s.cuda())
	s.ok(s.script("undo_all"))
	if s.read("local/cuda-12.8/bin/nvcc") != "theirs" || s.read("opt/nvidia/theirs") != "theirs" {
		t.Error("what was there is gone")
	}
	if target, err := os.Readlink(s.path("local/cuda")); err != nil || target != "/usr/local/cuda-12.8" {
		t.Errorf("/usr/local/cuda leads to %q, %v", target, err)
	}
}

func TestCUDAThatDoesNotCome(t *testing.T) {
	t.Parallel()
	s := newCUDAHost(t, "echo 'cannot execute: required file not found'; exit 127")
	s.fails(s.cuda(), 1, "STEP_FAILED")
	contains(t, s.read(stepDir+"/failure"), "required file not found")
	s = newCUDAHost(t, "true")
	s.value("packages", "cuda-toolkit-13-9\n")
	s.fails(s.cuda(), 1, "PACKAGE_MISSING")
}

// A repository of which some packages are not wanted is known to apt only together with that.
func TestRepositoryWithPreferences(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "nvidia-utils-580", version: "580.1-0ubuntu0.24.04.1"})
	if out, err := exec.Command("cp", "-a", s.path("repo"), s.path("archive")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.repository(deb{name: "nvidia-utils-580", version: "580.2-0ubuntu1"}, deb{name: "libnvjitlink-12-9", version: "12.9.86-1"}, deb{name: "libcuda1", version: "580.2-1"})
	s.write("etc/apt/sources.list", "deb [trusted=yes] file:/archive ./\n")
	home, fingerprint := s.keyring()
	s.signAs(home, "repo", "Origin: NVIDIA\nLabel: NVIDIA CUDA\nArchitecture: x86_64\n")
	for name, v := range map[string]string{
		"name": "cuda", "key_url": "file:///repo/key", "keyring": "/etc/apt/keyrings/kgpu-cuda.gpg", "list": "/etc/apt/sources.list.d/kgpu-cuda.list",
		"line": "deb [signed-by=/etc/apt/keyrings/kgpu-cuda.gpg] file:///repo/ /", "fingerprint": fingerprint,
		"preferences": "/etc/apt/preferences.d/zz-kgpu-cuda", "packages": strings.Join(catalog.CUDASource.Packages, "\n"),
	} {
		s.value(name, v)
	}
	s.file("/etc/apt/preferences.d/kgpu-nvidia", "Package: nvidia-* libnvidia-* libcuda1\nPin: release l=NVIDIA CUDA\nPin-Priority: -1\n")
	before := s.snapshot()
	s.ok(s.step("repository"))
	r := s.ok(s.script("apt-get -q update; apt-cache policy nvidia-utils-580 libnvjitlink-12-9 libcuda1 | grep -E '^[a-z]|Candidate'"))
	contains(t, r.output, "nvidia-utils-580:\n  Candidate: 580.1-0ubuntu0.24.04.1",
		"libnvjitlink-12-9:\n  Candidate: 12.9.86-1", "libcuda1:\n  Candidate: (none)")
	s.undone(before)
}
