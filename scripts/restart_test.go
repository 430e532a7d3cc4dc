package scripts

import (
	"slices"
	"strings"
	"testing"
)

// restarts counts how often a unit was restarted.
func (s *sandbox) restarts(unit string) int {
	s.t.Helper()
	return strings.Count(s.read("var/units.log"), "restart -- "+unit+"\n")
}

// outdated gives the units that the facts have as owed a restart.
func (s *sandbox) outdated() []string {
	s.t.Helper()
	return s.factsBy(stubbed(Facts())).OutdatedUnits
}

// A step that is killed before the restart finds the file as it should be when it begins again.
func TestRestartThatIsOwed(t *testing.T) {
	t.Parallel()
	for step, c := range map[string]struct{ unit, file string }{
		"runtime-docker":     {"docker.service", "/etc/docker/daemon.json"},
		"runtime-containerd": {"containerd.service", "/etc/containerd/conf.d/50-kgpu.toml"},
		"os-proxy":           {"docker.service", "/etc/systemd/system/docker.service.d/kgpu-proxy.conf"},
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(deb{name: "iptables", version: "1"}, deb{name: "docker.io", version: "1"}, deb{name: "containerd", version: "1"})
			s.ok(s.script("apt_update; apt_install iptables docker.io containerd"))
			s.stub("curl", "#!/bin/sh\necho '{\"CgroupDriver\":\"systemd\"}'\n")
			s.stub("containerd", "#!/bin/sh\necho '  SystemdCgroup = true'\n")
			s.stub("ctr", "#!/bin/sh\necho 'io.containerd.grpc.v1 cri linux/amd64 ok'\n")
			s.value("packages", strings.TrimPrefix(step, "runtime-")+"\n")
			if step == "runtime-docker" {
				s.value("packages", "docker.io\n")
			}
			s.write("var/units/"+c.unit, "loaded,active,enabled\n")
			s.file(c.file, "settings\n")
			systemctl := s.read("stubs/systemctl")
			s.stub("systemctl", "#!/bin/bash\ncase $1 in restart) kill -KILL $PPID; exit ;; esac\n"+strings.TrimPrefix(systemctl, "#!/usr/bin/env bash\n"))
			if r := s.step(step); r.status == 0 || s.read(c.file[1:]) != "settings\n" {
				t.Fatalf("was not killed: %s", r.output)
			}
			s.stub("systemctl", systemctl)
			if got := s.outdated(); !slices.Equal(got, []string{c.unit}) {
				t.Errorf("the facts have %q, want %s", got, c.unit)
			}
			s.twice(step)
			if n := s.restarts(c.unit); n != 1 {
				t.Errorf("%d restarts of %s", n, c.unit)
			}
			if got := s.outdated(); len(got) > 0 {
				t.Errorf("after the restart the facts have %q", got)
			}
		})
	}
}

// cri-dockerd, which gives up while docker restarts, is restarted by the next run where this one is killed in between.
func TestRestartThatDockersClientIsOwed(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.stub("cri-dockerd", "#!/bin/sh\necho 'cri-dockerd 1.0 (x)'\n")
	s.value("version", "1.0")
	for _, unit := range []string{"docker.service", "cri-docker.service", "cri-docker.socket"} {
		s.write("var/units/"+unit, "loaded,active,enabled\n")
	}
	systemctl := s.read("stubs/systemctl")
	s.stub("systemctl", "#!/bin/bash\ncase $* in 'restart -- cri-docker.service') kill -KILL $PPID; exit ;; esac\n"+strings.TrimPrefix(systemctl, "#!/usr/bin/env bash\n"))
	if r := s.script("runtime_restart docker"); r.status == 0 || s.restarts("docker.service") != 1 {
		t.Fatalf("was not killed in between: %s", r.output)
	}
	s.stub("systemctl", systemctl)
	if got := s.outdated(); !slices.Equal(got, []string{"cri-docker.service"}) {
		t.Errorf("the facts have %q", got)
	}
	step, err := Step("runtime-cri-dockerd")
	s.must(err)
	for range 2 {
		s.ok(s.bash("mount --bind /stubs /usr/local/bin\n" + string(step)))
	}
	if n, docker := s.restarts("cri-docker.service"), s.restarts("docker.service"); n != 1 || docker != 1 {
		t.Errorf("%d restarts of cri-docker.service, %d of docker.service", n, docker)
	}
	if got := s.outdated(); len(got) > 0 {
		t.Errorf("after the restart the facts have %q", got)
	}
}

// What somebody restarted since is owed nothing, and a unit that was down read the file when it began.
func TestRestartThatIsNotOwed(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("var/units/containerd.service", "loaded,active,enabled\n")
	s.write("var/units/docker.service", "loaded,inactive,enabled\n")
	s.ok(s.script(`
put_file /etc/containerd/config.toml 644 <<<ours
put_file /etc/docker/daemon.json 644 <<<ours
unit_outdated containerd.service
systemctl restart -- containerd.service
if unit_outdated containerd.service; then exit 1; fi
systemctl start -- docker.service
if unit_outdated docker.service; then exit 1; fi`))
}

// The docker of a host's owner goes on after reset: it must not look for a runtime that is gone.
func TestUndoRestartsWhatStays(t *testing.T) {
	t.Parallel()
	const none, told = "docker_would_end() { false; }\n", "not undone: docker.service runs with kgpu's settings until it is restarted"
	for name, c := range map[string]struct {
		theirs, unit, before, undo string
		restarts                   int
		tells                      bool
	}{
		"no containers":    {"{}\n", "active", "", none + "undo_all", 1, false},
		"no settings":      {"", "active", "", none + "undo_all", 1, false},
		"the same":         {"ours\n", "active", "", none + "undo_all", 0, false},
		"it does not run":  {"{}\n", "inactive", "", none + "undo_all", 0, false},
		"containers":       {"{}\n", "active", "", "docker_would_end() { true; }\nundo_all", 0, true},
		"they live on":     {"{\"live-restore\": true}\n", "active", "", "undo_all", 1, false},
		"it was cut short": {"{}\n", "active", none + "undo_restarts() { kill -KILL $$; }\nundo_all", none + "undo_all", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.write("var/units/docker.service", "loaded,"+c.unit+",enabled\n")
			s.write("var/units.log", "")
			if c.theirs != "" {
				s.write("etc/docker/daemon.json", c.theirs)
			}
			before := s.snapshot()
			s.ok(s.script("put_file /etc/docker/daemon.json 644 <<<ours; rm -rf /var/lib/kgpu/outdated"))
			if c.before != "" {
				if r := s.script(c.before); r.status == 0 || s.entries() != 0 {
					t.Fatalf("was not killed at the end: %s", r.output)
				}
			}
			r := s.ok(s.script("undo_notes_in /var/lib/kgpu/left\n" + c.undo))
			if n := s.restarts("docker.service"); n != c.restarts || strings.Contains(r.output, told) != c.tells {
				t.Errorf("%d restarts, it says:\n%s", n, r.output)
			}
			s.same(before)
		})
	}
}

func TestContainersOfDocker(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.ok(s.script(`
mkfifo /tmp/ends
shim='exec -a /usr/bin/containerd-shim-runc-v2 bash -c "read; true" bash -namespace moby -id 0123'
unshare --net bash -c "$shim" </tmp/ends >/dev/null 2>&1 &
theirs=$!
exec 5>/tmp/ends
until grep -qs containerd-shim "/proc/$theirs/cmdline" && ! in_own_network "/proc/$theirs"; do
  kill -0 "$theirs"
  sleep 0.1
done
if docker_would_end; then exit 1; fi # of a docker in a container
bash -c "$shim" </tmp/ends >/dev/null 2>&1 5>&- &
for _ in {1..50}; do
  if docker_would_end; then exit 0; fi
  sleep 0.1
done
exit 1`))
}
