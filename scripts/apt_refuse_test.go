package scripts

import (
	"strings"
	"testing"
)

// kubernetes is a repository with a version of Kubernetes and the one that was before it.
func (s *sandbox) kubernetes() {
	s.t.Helper()
	var debs []deb
	for _, name := range []string{"kubelet", "kubeadm", "kubectl"} {
		debs = append(debs, deb{name: name, version: "1.36.3-1.1"}, deb{name: name, version: "1.30.2-1.1"})
	}
	debs[0].depends = "kubernetes-cni (>= 1.4)"
	s.repository(append(debs, deb{name: "kubernetes-cni", version: "1.4.0-1.1"}, deb{name: "kubernetes-cni", version: "1.0.0-1.1"})...)
	s.write("var/units/kubelet.service", "loaded,inactive,disabled\n")
	s.value("version", "1.36.3")
	s.ok(s.script("apt-get update"))
}

// A hold that is not kgpu's is never overruled, and one that fits stays its owner's.
func TestHoldOfTheOwners(t *testing.T) {
	t.Parallel()
	host := newSandbox(t)
	host.kubernetes()
	t.Run("at another version", func(t *testing.T) {
		t.Parallel()
		s := host.clone(t)
		s.ok(s.script("apt-get install -y kubelet=1.30.2-1.1; apt-mark hold kubelet"))
		r := s.step("kube-packages")
		s.fails(r, 1, "HOST_PACKAGE_HELD")
		if !strings.HasSuffix(r.failure, "kubelet is held at 1.30.2-1.1, kgpu wants 1.36.3-1.1") {
			t.Errorf("failure %q", r.failure)
		}
		s.packageIs("kubelet", "hold installed 1.30.2-1.1")
		s.ok(s.script("apt-mark unhold kubelet"))
		s.ok(s.step("kube-packages"))
		s.packageIs("kubelet", "hold installed 1.36.3-1.1")
	})
	t.Run("that is not there", func(t *testing.T) {
		t.Parallel()
		s := host.clone(t)
		s.ok(s.script("apt-mark hold kubelet"))
		s.fails(s.step("kube-packages"), 1, "HOST_PACKAGE_HELD")
	})
	t.Run("of what a package depends on", func(t *testing.T) {
		t.Parallel()
		s := host.clone(t)
		s.ok(s.script("apt-get install -y kubernetes-cni=1.0.0-1.1; apt-mark hold kubernetes-cni"))
		r := s.step("kube-packages")
		s.fails(r, 1, "HOST_PACKAGE_HELD")
		contains(t, r.failure, "kubernetes-cni is held at 1.0.0-1.1")
	})
	t.Run("at the version wanted", func(t *testing.T) {
		t.Parallel()
		s := host.clone(t)
		s.ok(s.script("apt-get install -y kubelet=1.36.3-1.1; apt-mark hold kubelet"))
		s.ok(s.step("kube-packages"))
		s.ok(s.script("undo_all"))
		s.packageIs("kubelet", "hold installed 1.36.3-1.1") // after undo
	})
	t.Run("which kgpu made", func(t *testing.T) {
		t.Parallel()
		s := host.clone(t)
		s.ok(s.script("apt_install kubelet=1.30.2-1.1; hold kubelet"))
		s.ok(s.step("kube-packages"))
		s.packageIs("kubelet", "hold installed 1.36.3-1.1")
	})
}

// No package is replaced by an older one, held or not, and another revision of the version wanted is good enough.
func TestNewerPackages(t *testing.T) {
	t.Parallel()
	host := newSandbox(t)
	host.repository(deb{name: "kubelet", version: "1.36.4-1.1"}, deb{name: "kubelet", version: "1.36.3-2.1"}, deb{name: "kubelet", version: "1.30.2-1.1"})
	host.ok(host.script("apt-get update"))
	for name, c := range map[string]struct{ before, failure, after string }{
		"newer":                   {"apt-get install -y kubelet=1.36.4-1.1", "HOST_PACKAGE_NEWER\tkubelet is 1.36.4-1.1, which is newer than the 1.36.3-1.1 that kgpu wants", "install installed 1.36.4-1.1"},
		"newer and held":          {"apt-get install -y kubelet=1.36.4-1.1; apt-mark hold kubelet", "HOST_PACKAGE_NEWER\t", "hold installed 1.36.4-1.1"},
		"of another origin":       {"apt-get install -y kubelet=1.36.3-2.1", "", "hold installed 1.36.3-2.1"},
		"held, of another origin": {"apt-get install -y kubelet=1.36.3-2.1; apt-mark hold kubelet", "", "hold installed 1.36.3-2.1"},
		"older":                   {"apt-get install -y kubelet=1.30.2-1.1", "", "hold installed 1.36.3-1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := host.clone(t)
			s.ok(s.script(c.before))
			s.kubernetes()
			r := s.step("kube-packages")
			if got := s.status("kubelet"); got != c.after || !strings.HasPrefix(r.failure, c.failure) || (r.status != 0) != (c.failure != "") {
				t.Errorf("kubelet: %q, status %d, failure %q; output:\n%s", got, r.status, r.failure, r.output)
			}
			if c.failure != "" && strings.Contains(r.output, "downgraded") {
				t.Errorf("apt was called:\n%s", r.output)
			}
		})
	}
}

// The refusal names the file that keeps a package away.
func TestPinOfTheOwners(t *testing.T) {
	t.Parallel()
	const other = "# nothing to do with it\nPackage: nginx*\nPin: release *\nPin-Priority: -1\n\nPackage: *\nPin: origin example.org\nPin-Priority: 200\n"
	for name, c := range map[string]struct{ pin, script, want string }{
		"forbidden": {
			"Package: containerd runc\nPin: release *\nPin-Priority: -10\n", "apt_install_first packages",
			"HOST_PACKAGE_PINNED\tapt offers none of: containerd.io;containerd: a pin keeps containerd at (none): /etc/apt/preferences.d/theirs",
		},
		"forbidden, wanted by name": {
			other + "\nPackage: container*\nPin: release *\nPin-Priority: -10\n", "apt_install containerd",
			"HOST_PACKAGE_PINNED\tinstalling containerd: a pin keeps containerd at (none): /etc/apt/preferences.d/theirs",
		},
		"a dependency, forbidden": {
			"Package: kubernetes-cni\nPin: release *\nPin-Priority: -10\n", "apt_install kubelet=1.36.3-1.1",
			"HOST_PACKAGE_PINNED\tinstalling kubelet=1.36.3-1.1: a pin keeps kubernetes-cni at (none): /etc/apt/preferences.d/theirs",
		},
		"a dependency, at another version": {
			"Package: kubernetes-cni\nPin: version 1.0*\nPin-Priority: 1001\n", "apt_install kubelet=1.36.3-1.1",
			"HOST_PACKAGE_PINNED\tinstalling kubelet=1.36.3-1.1: a pin keeps kubernetes-cni at 1.0.0-1.1: /etc/apt/preferences.d/theirs",
		},
		"a package that is not there": {
			"Package: containerd\nPin: release *\nPin-Priority: -10\n", "apt_install no-such-package", "PACKAGE_MISSING\t",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(deb{name: "containerd", version: "2"}, deb{name: "kubelet", version: "1.36.3-1.1", depends: "kubernetes-cni (>= 1.4)"},
				deb{name: "kubernetes-cni", version: "1.4.0-1.1"}, deb{name: "kubernetes-cni", version: "1.0.0-1.1"})
			s.value("packages", "containerd.io\ncontainerd\n")
			s.write("etc/apt/preferences.d/theirs", c.pin)
			s.write("etc/apt/preferences.d/others", other)
			r := s.script("apt-get update; " + c.script)
			if r.status != 1 || !strings.HasPrefix(r.failure, c.want) {
				t.Errorf("status %d, failure %q, want %q; output:\n%s", r.status, r.failure, c.want, r.output)
			}
			if s.entries() != 0 {
				t.Errorf("%d entries", s.entries())
			}
		})
	}
	// An exact version is wanted in spite of what the pin prefers, and held there.
	s := newSandbox(t)
	s.kubernetes()
	s.write("etc/apt/preferences.d/theirs", "Package: kube*\nPin: version 1.30*\nPin-Priority: 900\n")
	s.ok(s.step("kube-packages"))
	s.packageIs("kubelet", "hold installed 1.36.3-1.1")
}

// apt works for nobody while a file of its configuration is broken: the refusal names file and line.
func TestBrokenConfigurationOfApt(t *testing.T) {
	t.Parallel()
	host := newSandbox(t)
	host.repository(deb{name: "one", version: "1"})
	host.value("packages", "one\n")
	host.ok(host.script("apt-get update"))
	for name, c := range map[string]struct{ file, content, want string }{
		"list":        {"etc/apt/sources.list.d/theirs.list", "# ours\n\ndeb http://example.org\n", "Malformed entry 3 in list file /etc/apt/sources.list.d/theirs.list"},
		"type":        {"etc/apt/sources.list.d/theirs.list", "dep http://example.org stable main\n", "Type 'dep' is not known on line 1 in source list /etc/apt/sources.list.d/theirs.list"},
		"sources":     {"etc/apt/sources.list.d/theirs.sources", "Types: deb\nSuites: stable\nComponents: main\n", "Malformed entry 1 in sources file /etc/apt/sources.list.d/theirs.sources"},
		"preferences": {"etc/apt/preferences.d/theirs", "Pin: release *\nPin-Priority: 1\n", "Invalid record in the preferences file /etc/apt/preferences.d/theirs"},
		"settings":    {"etc/apt/apt.conf.d/99theirs", "Acquire::Retries \"1\"\n", "Syntax error /etc/apt/apt.conf.d/99theirs:"},
		"two keys": {"etc/apt/sources.list.d/theirs.list", "deb [signed-by=/etc/apt/keyrings/a.gpg] http://example.org/x ./\ndeb [signed-by=/etc/apt/keyrings/b.gpg] http://example.org/x ./\n",
			"Conflicting values set for option Signed-By regarding source http://example.org/x/ ./: /etc/apt/keyrings/a.gpg != /etc/apt/keyrings/b.gpg (/etc/apt/sources.list.d/theirs.list)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := host.clone(t)
			s.write(c.file, c.content)
			for _, script := range []string{"apt_install one", "apt_install_first packages"} {
				r := s.script(script)
				s.fails(r, 1, "HOST_APT_CONFIG")
				if !strings.Contains(r.failure, c.want) {
					t.Errorf("%s: failure %q, want %q", script, r.failure, c.want)
				}
			}
			s.remove(c.file)
			s.ok(s.script("apt_install one"))
		})
	}
	t.Run("components", func(t *testing.T) {
		t.Parallel()
		s := newSandbox(t)
		s.debianArchive(deb{name: "nvidia-smi", version: "535.261.03-1"})
		s.write("etc/apt/sources.list", "deb nonsense\n")
		s.value("components", "non-free\n")
		s.value("list", "/etc/apt/sources.list.d/kgpu-debian.sources")
		s.fails(s.step("repo-debian"), 1, "HOST_APT_CONFIG")
	})
}

// The kubeadm of a newer version comes before the rest of it.
func TestKubeadmOfAnUpgrade(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.kubernetes()
	s.ok(s.script("apt_install_version 1.30.2 kubelet kubeadm"))
	s.value("packages", "kubeadm\n")
	s.ok(s.step("kube-packages"))
	s.packageIs("kubeadm", "hold installed 1.36.3-1.1")
	s.packageIs("kubelet", "hold installed 1.30.2-1.1")
}

// On a node only what is missing comes: what its owner upgraded stays, and is held there, and so does what an upgrade that was cut off
// has installed by then.
func TestPackagesOfANode(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "kubectl", version: "1.36.4-1.1"}, deb{name: "kubelet", version: "1.36.3-1.1"})
	s.ok(s.script("apt-get update; apt-get install -y kubelet kubectl"))
	s.kubernetes()
	s.value("missing", "kubeadm\nkubectl\n")
	s.ok(s.step("kube-packages"))
	for name, want := range map[string]string{"kubelet": "hold installed 1.36.3-1.1", "kubeadm": "hold installed 1.36.3-1.1", "kubectl": "hold installed 1.36.4-1.1"} {
		s.packageIs(name, want)
	}
}
