package scripts

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
)

// debianArchive puts packages into the component non-free of a distribution's archive at /archive; its main has another.
func (s *sandbox) debianArchive(debs ...deb) {
	s.t.Helper()
	s.repository(debs...)
	index := strings.ReplaceAll(s.read("repo/Packages"), "Filename: ./", "Filename: pool/")
	s.must(os.MkdirAll(s.path("archive"), 0o755))
	s.must(os.Rename(s.path("repo"), s.path("archive/pool")))
	release := "Origin: Debian\nCodename: bookworm\nSuite: oldstable\nArchitectures: amd64 arm64\nComponents: main contrib non-free\nDate: Fri, 20 Nov 2026 12:00:00 UTC\nSHA256:\n"
	for _, c := range [][2]string{{"main", strings.ReplaceAll(index, "Package: nvidia-smi", "Package: hello")}, {"contrib", ""}, {"non-free", index}} {
		component, text := c[0], c[1]
		for _, arch := range []string{"amd64", "arm64"} {
			name := component + "/binary-" + arch + "/Packages"
			s.write("archive/dists/bookworm/"+name, text)
			release += fmt.Sprintf(" %x %d %s\n", sha256.Sum256([]byte(text)), len(text), name)
		}
	}
	s.write("archive/dists/bookworm/Release", release)
	s.write("etc/os-release", "ID=debian\nVERSION_CODENAME=bookworm\n")
	s.remove("etc/apt/sources.list")
	home, _ := s.keyring()
	s.clearsign(home, "archive/dists/bookworm")
	s.must(os.Rename(s.path("repo/key"), s.path("etc/apt/keyrings/archive.asc")))
}

// Components come from the mirror and with the key that the host has, however its sources are written.
func TestDebianComponents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, sources, want string }{
		"paragraphs": {"etc/apt/sources.list.d/debian.sources", `# The archive.

Types: deb
URIs: file:///nowhere
Suites: sid
Components: main
Enabled: no

Types: deb
# a mirror
URIs: file:///archive
Suites: bookworm
Components:
 main
Signed-By: /etc/apt/keyrings/archive.asc
`, `# Where drivers are, written by kgpu.
Types: deb
URIs: file:///archive
Suites: bookworm
Signed-By: /etc/apt/keyrings/archive.asc
Components: contrib non-free
`},
		"lines": {"etc/apt/sources.list", "# The archive.\ndeb-src file:///archive bookworm main\ndeb [ arch=amd64,arm64 signed-by=/etc/apt/keyrings/archive.asc ] file:///archive bookworm main # ours\n",
			`# Where drivers are, written by kgpu.
Types: deb
Architectures: amd64 arm64
Signed-By: /etc/apt/keyrings/archive.asc
URIs: file:///archive
Suites: bookworm
Components: contrib non-free
`},
		"a line with settings": {"etc/apt/sources.list", "\tdeb\t[check-valid-until=no lang=none signed-by=/etc/apt/keyrings/archive.asc]\tfile:///archive bookworm main\r\n",
			`# Where drivers are, written by kgpu.
Types: deb
check-valid-until: no
Languages: none
Signed-By: /etc/apt/keyrings/archive.asc
URIs: file:///archive
Suites: bookworm
Components: contrib non-free
`},
		"ends of lines of Windows": {"etc/apt/sources.list.d/debian.sources", strings.ReplaceAll(`Types: deb
URIs: file:///nowhere
Suites: sid
Components: main
Enabled: no

Types: deb
URIs: file:///archive
Suites: bookworm
Components: main
Check-Valid-Until: no
Signed-By: /etc/apt/keyrings/archive.asc
`, "\n", "\r\n"), `# Where drivers are, written by kgpu.
Types: deb
URIs: file:///archive
Suites: bookworm
Check-Valid-Until: no
Signed-By: /etc/apt/keyrings/archive.asc
Components: contrib non-free
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.debianArchive(deb{name: "nvidia-smi", version: "535.261.03-1"})
			s.write(c.path, c.sources)
			s.ok(s.script("apt-get update"))
			s.value("components", "contrib\nnon-free\n")
			s.value("list", "/etc/apt/sources.list.d/kgpu-debian.sources")
			before := s.snapshot()
			s.twice("repo-debian")
			s.holds("etc/apt/sources.list.d/kgpu-debian.sources", c.want)
			s.ok(s.script("apt_install nvidia-smi"))
			s.undone(before)
		})
	}
}

// Debian's packages name the module's file after themselves.
func TestDebianModules(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for _, name := range []string{"nvidia-current", "nvidia-tesla-470"} {
		s.stub("modinfo", "#!/bin/sh\n[ \"$3\" = "+name+" ] || { echo \"modinfo: ERROR: Module $3 not found.\" >&2; exit 1; }\necho 535.261.03\n")
		if r := s.ok(s.script("nvidia_module_file")); r.output != "535.261.03\n" {
			t.Errorf("%s: %q", name, r.output)
		}
	}
	s.stub("modinfo", "#!/bin/sh\nexit 1\n")
	if r := s.script("nvidia_module_file"); r.status == 0 {
		t.Errorf("there is a module: %q", r.output)
	}
}

func TestDebianComponentsWithoutAnArchive(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.debianArchive(deb{name: "nvidia-smi", version: "535.261.03-1"})
	s.value("components", "non-free\n")
	s.value("list", "/etc/apt/sources.list.d/kgpu-debian.sources")
	before := s.snapshot()
	s.fails(s.step("repo-debian"), 1, "PACKAGE_MISSING")
	s.same(before)
}
