package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/inventory"
)

// The sockets the kubelet talks to.
const (
	containerdSocket = "unix:///run/containerd/containerd.sock"
	criDockerdSocket = "unix:///run/cri-dockerd.sock"
	dockershimSocket = "/var/run/dockershim.sock"
)

// dockershimEnd is the first minor of Kubernetes without built-in docker support.
const dockershimEnd = 24

// criDockerd reports whether docker needs the adapter: Kubernetes 1.24 removed its own.
func (b *builder) criDockerd() bool {
	return b.Inventory.Runtime == inventory.Docker && b.Inventory.Kubernetes.Version.Minor >= dockershimEnd
}

func (b *builder) criSocket() string {
	switch {
	case b.Inventory.Runtime == inventory.Containerd:
		return containerdSocket
	case b.criDockerd():
		return criDockerdSocket
	default:
		return dockershimSocket
	}
}

// webSocketFault reports whether the kubelet gate ExtendWebSocketsToKubelet has to be off: with it, all releases of
// cri-dockerd up to 0.4.4 break exec, attach and cp, and no later one is known not to.
// Source: Mirantis/cri-dockerd issues 560 and 569, open pull request 576.
func (b *builder) webSocketFault() bool { return b.criDockerd() && b.Minor.Number >= 36 }

func (b *builder) runtimeServices() []string {
	switch {
	case b.Inventory.Runtime == inventory.Containerd:
		return []string{"containerd.service"}
	case b.criDockerd():
		return []string{"docker.service", "cri-docker.service"}
	default:
		return []string{"docker.service"}
	}
}

// runtimePackages are the alternatives, best first: Docker's own packages, the distribution's.
func (b *builder) runtimePackages() [][]string { return RuntimePackages(b.Minor, b.Inventory.Runtime) }

// RuntimePackages are the sets of packages that bring a runtime for a minor, best first.
func RuntimePackages(m catalog.Minor, r inventory.Runtime) [][]string {
	if r == inventory.Docker {
		return m.DockerPackages()
	}
	return [][]string{{"containerd.io"}, {"containerd"}}
}

func (b *builder) hasRuntimePackage(h *host) bool {
	return h.HasFirstOf(b.runtimePackages())
}

func (b *builder) runtime(h *host) {
	if b.Inventory.Runtime == inventory.Docker {
		b.docker(h)
		return
	}
	b.containerd(h)
}

func (b *builder) packageSets() string {
	var out []string
	for _, set := range b.runtimePackages() {
		out = append(out, strings.Join(set, " "))
	}
	return lines(out...)
}

// outdated gives the reason why a unit has to restart, if a step was cut off before it did that.
func (h *host) outdated(unit string) []string {
	if slices.Contains(h.Facts.OutdatedUnits, unit) {
		return []string{unit + " runs with settings that have changed since"}
	}
	return nil
}

func (b *builder) docker(h *host) {
	merged, reasons := mergeDaemonJSON(h.Facts.DaemonJSON)
	reasons = slices.Concat(reasons, h.NotRunning("docker.service"), h.outdated("docker.service"))
	if info := h.Facts.DockerInfo; info != nil && info["cgroup-driver"] != "systemd" {
		reasons = append(reasons, fmt.Sprintf("docker runs with cgroup driver %q", info["cgroup-driver"]))
	}
	if !b.hasRuntimePackage(h) {
		reasons = []string{"docker is not installed"}
	}
	b.unless(h, reasons, "docker runs", graph.Step{
		Ref: graph.Ref{ID: "runtime/docker"},
		Input: graph.Input{
			Values: map[string]string{"packages": b.packageSets()},
			Files:  map[string]graph.File{"/etc/docker/daemon.json": {Mode: 0o644, Content: merged}},
		},
		Disrupts: b.dockerRestarts(),
	})
	if b.criDockerd() {
		b.criDockerdStep(h)
	}
}

// dockerRestarts is what a step that changes the runtime's settings does to containers: containerd and cri-dockerd leave them
// alone when they restart, docker takes them along.
func (b *builder) dockerRestarts() string {
	if b.Inventory.Runtime != inventory.Docker {
		return ""
	}
	return "docker restarts, and every container with it"
}

// criDockerdDownload is where the host gets it from, and what it must be.
func (b *builder) criDockerdDownload(h *host) (url, sha256 string) {
	d, r := catalog.CRIDockerd, b.Inventory.Repositories.CRIDockerd
	return cmp.Or(r.URL, fmt.Sprintf(d.URL, h.Facts.Arch)), cmp.Or(r.SHA256, d.SHA256[h.Facts.Arch])
}

func (b *builder) criDockerdStep(h *host) {
	d := catalog.CRIDockerd
	url, sum := b.criDockerdDownload(h)
	files := map[string]graph.File{
		"/etc/systemd/system/cri-docker.service": text(fmt.Sprintf(criDockerService, b.image("registry.k8s.io/pause:"+b.Minor.Pause()))),
		"/etc/systemd/system/cri-docker.socket":  text(criDockerSocket),
	}
	reasons := changed(h.Facts, files)
	version := d.Version
	if catalog.CompareDebian(h.Facts.CRIDockerd, version) > 0 {
		version = h.Facts.CRIDockerd // a newer one is good enough
	}
	if h.Facts.CRIDockerd != version {
		reasons = append(reasons, "cri-dockerd is "+h.Facts.CRIDockerd)
	}
	reasons = append(reasons, h.NotRunning("cri-docker.socket")...)
	reasons = slices.Concat(reasons, h.NotRunning("cri-docker.service"), h.outdated("cri-docker.service"))
	if h.Facts.CRIDockerd == "" {
		reasons = []string{"cri-dockerd is not installed"}
	}
	b.unless(h, reasons, "cri-dockerd runs", graph.Step{
		Ref: graph.Ref{ID: "runtime/cri-dockerd"}, Title: "install cri-dockerd " + version,
		Input: graph.Input{Values: map[string]string{"url": url, "sha256": sum, "version": version}, Files: files},
	})
}

// The units of cri-dockerd. Source of the settings: its packaging/systemd folder. A restart of docker takes cri-dockerd
// with it, and the burst limit would leave it down after three: no limit here.
const criDockerService = `[Unit]
Description=CRI interface for docker
Documentation=https://github.com/Mirantis/cri-dockerd
After=network-online.target docker.service
Wants=network-online.target
Requires=cri-docker.socket
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart=/usr/local/bin/cri-dockerd --container-runtime-endpoint fd:// --network-plugin=cni --cni-bin-dir=/opt/cni/bin --pod-infra-container-image=%s
ExecReload=/bin/kill -s HUP $MAINPID
Restart=always
RestartSec=2
LimitNOFILE=infinity
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
Delegate=yes
KillMode=process

[Install]
WantedBy=multi-user.target
`

const criDockerSocket = `[Unit]
Description=Socket of the CRI interface for docker
PartOf=cri-docker.service

[Socket]
ListenStream=/run/cri-dockerd.sock
SocketMode=0660
SocketUser=root
SocketGroup=docker

[Install]
WantedBy=sockets.target
`
