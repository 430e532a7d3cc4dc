package scripts

import (
	"strings"
	"testing"
)

const (
	oursTOML = `version = 2

[plugins]
[plugins.'io.containerd.grpc.v1.cri']
enable_cdi = true
image_pull_with_sync_fs = true
sandbox_image = 'registry.k8s.io/pause:3.10'

[plugins.'io.containerd.grpc.v1.cri'.cni]
bin_dir = '/opt/cni/bin'

[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
SystemdCgroup = true
`
	// What `nvidia-ctk runtime configure` leaves beside a configuration without the CRI plugin, and beside containerd's own.
	toolkitTOML = `version = 2
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
      BinaryName = "/usr/bin/nvidia-container-runtime"
`
	defaultTOML = `version = 2
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    enable_cdi = false
    sandbox_image = "registry.k8s.io/pause:3.8"
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
`
)

// containerdHost is a sandbox whose containerd makes of its configuration what those before 2 do: the last import that has the
// section of the CRI plugin gives all of it, and the last that turns plugins off says which.
func containerdHost(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t)
	s.repository(deb{name: "containerd", version: "1"})
	s.stub("containerd", `#!/bin/bash
config=/etc/containerd/config.toml
if [[ $1 == --config ]]; then config=$2; fi
files=("$config" $(sed -n 's/^imports = \["\(.*\)"\]/\1/p' "$config"))
grep -h '^disabled_plugins' "${files[@]}" | tail -n 1
last=$(grep -l '^ *\[plugins.*grpc.v1.cri' "${files[@]}" | tail -n 1)
[[ -z $last ]] || grep -v '^disabled_plugins' "$last"
exit 0
`)
	s.stub("ctr", "#!/bin/sh\necho 'io.containerd.grpc.v1 cri linux/amd64 ok'\n")
	s.value("packages", "containerd\n")
	s.write("var/units/containerd.service", "loaded,active,enabled\n")
	s.file("/etc/containerd/config.toml", "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n")
	s.file("/etc/containerd/conf.d/50-kgpu.toml", oursTOML)
	return s
}

// What undoes kgpu's settings is named, with what it sets, before containerd starts with it; what only adds to them is not.
func TestImportsThatUndoSettings(t *testing.T) {
	t.Parallel()
	const theirs = "etc/containerd/conf.d/99-nvidia.toml"
	for name, c := range map[string]struct{ path, text, want string }{
		"nothing":         {"", "", ""},
		"sorts before":    {"etc/containerd/conf.d/10-mine.toml", defaultTOML, ""},
		"another section": {theirs, "version = 2\n[plugins.\"io.containerd.snapshotter.v1.devmapper\"]\n  root_path = \"/data\"\n", ""},
		"other plugins":   {theirs, "disabled_plugins = [\"io.containerd.snapshotter.v1.btrfs\"]\n", ""},
		"nothing else":    {theirs, toolkitTOML, "sandbox_image is not set, not registry.k8s.io/pause:3.10"},
		"containerd's own": {theirs, defaultTOML,
			"bin_dir is /usr/lib/cni, not /opt/cni/bin, enable_cdi is false, not true, sandbox_image is registry.k8s.io/pause:3.8, not registry.k8s.io/pause:3.10"},
		"images are not synced": {theirs, strings.ReplaceAll(oursTOML, "sync_fs = true", "sync_fs = false"), "image_pull_with_sync_fs is false, not true"},
		"docker's own":          {theirs, "disabled_plugins = [\"cri\"]\n", "disabled_plugins has cri"},
		"by another name":       {theirs, "disabled_plugins = [ 'io.containerd.grpc.v1.cri' ]\n", "disabled_plugins has io.containerd.grpc.v1.cri"},
		"no import of any":      {"etc/containerd/conf.d/60.toml", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := containerdHost(t)
			if c.path != "" {
				s.write(c.path, c.text)
			}
			r := s.step("runtime-containerd")
			if c.want == "" {
				s.ok(r)
				return
			}
			s.fails(r, 1, "HOST_RUNTIME_OVERRIDDEN")
			s.detail("/" + c.path + " undoes settings of /etc/containerd/conf.d/50-kgpu.toml: ")
			s.detail(c.want)
			lacks(t, s.read("var/units.log"), "start -- containerd")
		})
	}
}

// Of containerd 2 the parts of the CRI plugin may run without what the kubelet talks to.
func TestContainerdRunsWithoutCRI(t *testing.T) {
	t.Parallel()
	s := containerdHost(t)
	s.stub("ctr", "#!/bin/sh\nprintf '%s\n' 'io.containerd.cri.v1 images - ok' 'io.containerd.cri.v1 runtime linux/amd64 ok' 'io.containerd.grpc.v1 cri - error'\n")
	s.fails(s.step("runtime-containerd"), 1, "STEP_FAILED")
	s.detail("containerd runs without its CRI plugin")
}

// Where no one file is to blame, all are named; a unit that reads another file is, too.
func TestContainerdReadsAnotherConfiguration(t *testing.T) {
	t.Parallel()
	s := containerdHost(t)
	s.write("etc/containerd/conf.d/98.toml", defaultTOML)
	s.write("etc/containerd/conf.d/99.toml", defaultTOML)
	s.fails(s.step("runtime-containerd"), 1, "HOST_RUNTIME_OVERRIDDEN")
	s.detail("and /etc/containerd/conf.d/98.toml /etc/containerd/conf.d/99.toml")

	s = containerdHost(t)
	s.startedBy("containerd.service", "/usr/bin/containerd --config /etc/mine.toml")
	s.fails(s.step("runtime-containerd"), 1, "HOST_RUNTIME_OVERRIDDEN")
	s.detail("containerd.service reads /etc/mine.toml, not /etc/containerd/config.toml (/etc/systemd/system/containerd.service.d/mine.conf)")
}

// startedBy has systemd start a unit by this command, as a drop-in of its says.
func (s *sandbox) startedBy(unit, command string) {
	s.t.Helper()
	systemctl := strings.TrimPrefix(s.read("stubs/systemctl"), "#!/usr/bin/env bash\n")
	s.stub("systemctl", `#!/bin/bash
case "$*" in
*'-p ExecStart -- `+unit+`') echo '{ path=x ; argv[]=`+command+` ; ignore_errors=no ; pid=0 }'; exit ;;
*'-p DropInPaths -- `+unit+`') echo '/etc/systemd/system/`+unit+`.d/mine.conf'; exit ;;
esac
`+systemctl)
}

// A unit of docker's with flags of its own keeps kgpu's settings from being written, where docker would not start with both.
func TestDockerUnitOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ command, want string }{
		"as packaged":           {"/stubs/dockerd -H fd:// --containerd=/run/containerd/containerd.sock", ""},
		"with a log driver":     {"/stubs/dockerd -H fd:// --log-driver=journald", "docker.service (/etc/systemd/system/docker.service.d/mine.conf) and /etc/docker/daemon.json exclude each other: unable to configure the Docker daemon: the following directives are specified both as a flag and in the configuration file: log-driver"},
		"another configuration": {"/stubs/dockerd --config-file=/etc/mine.json", "docker.service reads /etc/mine.json, not /etc/docker/daemon.json (/etc/systemd/system/docker.service.d/mine.conf)"},
		"too old to say":        {"/stubs/dockerd --old", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.repository(deb{name: "iptables", version: "1"}, deb{name: "docker.io", version: "1"})
			s.stub("curl", "#!/bin/sh\necho '{\"CgroupDriver\":\"systemd\"}'\n")
			s.stub("dockerd", `#!/bin/bash
[[ $* == *--validate* && -f ${!#} ]] || exit 9
case $* in
*--old*) echo 'unknown flag: --validate' >&2; exit 125 ;;
*--log-driver=*) echo 'unable to configure the Docker daemon: the following directives are specified both as a flag and in the configuration file: log-driver' >&2; exit 1 ;;
esac
`)
			s.value("packages", "docker.io\n")
			s.write("var/units/docker.service", "loaded,active,enabled\n")
			s.startedBy("docker.service", c.command)
			s.file("/etc/docker/daemon.json", "{}\n")
			r := s.step("runtime-docker")
			if c.want == "" {
				s.ok(r)
				return
			}
			s.fails(r, 1, "HOST_RUNTIME_OVERRIDDEN")
			s.detail(c.want)
			s.absent("etc/docker/daemon.json") // or the file was written, with which docker does not start
		})
	}
}
