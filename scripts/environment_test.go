package scripts

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/facts"
)

// TestEnvironment holds that one file says in which environment all of it runs.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	environment := []byte(readFile(t, "environment.sh"))
	all := map[string][]byte{"facts": Facts(), "reach": Reach(), "pods": Pods(), "status": Status(), "support": Support(), "doctor": Doctor(), "watch": Watch(), "lib": Lib()}
	for _, name := range []string{"dashboard", "notebook", "users"} {
		all[name] = Access(name)
	}
	for name, script := range all {
		if !bytes.HasPrefix(script, environment) {
			t.Errorf("%s does not begin with environment.sh", name)
		}
	}
	sets := regexp.MustCompile(`\b(LC_\w+|LANG|LANGUAGE|PATH)=`)
	may := map[string]int{
		"environment.sh": 1, "lib/base.sh": 1,
		"runner/start.sh": 2, "runner/runner.sh": 1, // which have no library
		"steps/cluster-ready.sh": 1, // of what runs in a pod
	}
	for _, path := range hostScripts(t) {
		lines := 0
		for line := range strings.SplitSeq(readFile(t, path), "\n") {
			if sets.MatchString(line) {
				lines++
			}
		}
		if lines != may[path] {
			t.Errorf("%s: %d lines set what environment.sh does, want %d", path, lines, may[path])
		}
	}
	path := regexp.MustCompile(`PATH=\S+`).FindString(string(environment))
	if start := readFile(t, "runner/start.sh"); !strings.Contains(start, "--setenv="+path+" ") || !strings.Contains(start, "--setenv=LANGUAGE= ") {
		t.Errorf("start.sh does not give the unit %s, without LANGUAGE", path)
	}
}

// A host whose owner speaks German, and has programs of his own in /usr/local, which his PATH has in front.
func TestEnvironmentOfAnOwner(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for _, name := range []string{"dpkg", "uname", "kubeadm"} {
		s.write("local/bin/"+name, "#!/bin/sh\necho old\n")
	}
	const owner = "mount --bind /local /usr/local; chmod -R a+x /usr/local/bin; export LANGUAGE=de_DE:de PATH=/usr/local/bin:/opt/bin:$PATH\n"
	r := s.ok(s.bash(owner + `. "$KGPU_STEP/../../lib.sh"; echo "${LANGUAGE-none} $LC_ALL $(type -P uname) $(type -P kubeadm)"`))
	if want := "none C.UTF-8 /usr/bin/uname /usr/local/bin/kubeadm\n"; r.output != want {
		t.Errorf("steps: %q, want %q", r.output, want)
	}
	s.write("local/sbin/runc", "#!/bin/sh\n")
	s.write("local/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/local/bin/containerd\n")
	s.write("etc/systemd/system/docker.service", "[Service]\nExecStart=/usr/bin/dockerd -H fd://\n")
	s.must(os.Symlink("/dev/null", s.path("etc/systemd/system/kubelet.service")))
	r = s.ok(s.bash(owner + "chmod a+x /usr/local/sbin/runc\n" + string(Facts())))
	h, err := facts.Parse([]byte(r.output))
	s.must(err)
	lacks(t, r.output, "=old\n") // or the facts are of other programs
	// What runs them does so whatever kgpu's environment is.
	if want := []string{"/usr/local/sbin/runc", "/etc/systemd/system/kubelet.service", "/usr/local/lib/systemd/system/containerd.service"}; !slices.Equal(h.Shadows, want) {
		t.Errorf("shadows: %q, want %q", h.Shadows, want)
	}
}
