package scripts

import (
	"strings"
	"testing"
)

// allowed is what a repository's preferences say where it tells itself from others.
func allowed(pin string) string {
	return "Package: *\nPin: " + pin + "\nPin-Priority: 1\n\nPackage: kubelet kubernetes-cni\nPin: " + pin + "\nPin-Priority: 500\n"
}

// A repository that kgpu adds replaces no package at the next upgrade but those that kgpu takes from it, whatever it calls itself.
func TestOnlyWhatIsWantedFromARepository(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fields, server, url, want string }{
		"named":          {"Origin: obs://build.example.org/isv:kubernetes:v1.36/deb\nLabel: isv:kubernetes:v1.36\n", "", "file:///repo/", allowed("release o=obs://build.example.org/isv:kubernetes:v1.36/deb,l=isv:kubernetes:v1.36")},
		"an origin":      {"Origin: Docker\n", "", "file:///repo/", allowed("release o=Docker")},
		"a label":        {"Label: NVIDIA CUDA\n", "", "file:///repo/", allowed("release l=NVIDIA CUDA")},
		"with a comma":   {"Origin: Ärger, \"Inc.\" [x]\nLabel: /a*b/\n", "", "file:///repo/", allowed("release o=*rger* *Inc.* *x*,l=*a*b/")},
		"no name":        {"", overHTTP, "http://127.0.0.1:8000/", allowed("origin \"127.0.0.1\"")},
		"as another one": {"Origin: Archive\n", "", "file:///repo/", ""},
		"no name at all": {"", "", "file:///repo/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.signedRepository(
				deb{name: "kubelet", version: "1.36.3-1.1"}, deb{name: "kubelet", version: "1.36.4-1.1"}, deb{name: "kubernetes-cni", version: "2"},
				deb{name: "openssh-server", version: "99"}, deb{name: "sudo", version: "99"}, deb{name: "plugin", version: "1"})
			s.repositoryOf("archive", deb{name: "openssh-server", version: "9"}, deb{name: "sudo", version: "9"})
			home, fingerprint := s.keyring()
			s.signAs(home, "archive", "Origin: Archive\n")
			s.repositoryOf("other", deb{name: "docker-ce", version: "1"}) // in a mirror that calls all of it the same
			s.signAs(home, "other", c.fields)
			s.write("etc/apt/sources.list.d/kgpu-other.list", "deb [trusted=yes] file:/other ./\n")
			s.value("fingerprint", fingerprint)
			s.signAs(home, "repo", c.fields)
			s.write("etc/apt/sources.list", "deb [trusted=yes] file:/archive ./\n")
			s.ok(s.script("apt-get -q update; apt-get install -y openssh-server"))
			s.value("line", "deb [signed-by=/etc/apt/keyrings/kgpu.gpg] "+c.url+" /")
			s.value("packages", "kubelet\nkubernetes-cni\n")
			before := s.snapshot()
			text, err := Step("repository")
			s.must(err)
			for range 2 {
				s.ok(s.bash(c.server + string(text)))
			}
			preferences := s.read("etc/apt/preferences.d/zz-kgpu")
			if !strings.HasSuffix(preferences, c.want) || c.want == "" && strings.Contains(preferences, "Package:") {
				t.Errorf("the preferences are\n%s", preferences)
			}
			r := s.ok(s.script(c.server + "apt-get install -y kubelet=1.36.3-1.1 >/dev/null; apt-get -s dist-upgrade | grep ^Inst; apt-get -s install sudo plugin | grep ^Inst; " +
				"apt-get -s install openssh-server=99 | grep ^Inst"))
			upgraded, installed := "Inst kubelet [1.36.3-1.1] (1.36.4-1.1", "Inst plugin (1 "
			if !strings.Contains(r.output, upgraded) || !strings.Contains(r.output, installed) || !strings.Contains(r.output, "Inst openssh-server [9] (99 ") {
				t.Errorf("apt would not upgrade what kgpu takes, or not do what it is asked to:\n%s", r.output)
			}
			open := strings.Count(r.output, "(99 ") > 1
			if open != (c.want == "") {
				t.Errorf("apt would take what nobody asked for: %t\n%s", open, r.output)
			}
			s.ok(s.script("apt-get purge -y kubelet >/dev/null; undo_all"))
			s.same(before)
		})
	}
}

// What the owner of a host says of a package counts more, in whatever file.
func TestPreferencesOfTheOwnersCountMore(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.value("fingerprint", s.signedRepository(deb{name: "kubelet", version: "1.36.3-1.1"}, deb{name: "kubelet", version: "1.36.4-1.1"}))
	s.write("etc/apt/preferences.d/theirs", "Package: kubelet\nPin: version 1.36.3*\nPin-Priority: 1000\n")
	s.ok(s.step("repository"))
	contains(t, s.ok(s.script("apt-cache policy kubelet")).output, "Candidate: 1.36.3-1.1")
}
