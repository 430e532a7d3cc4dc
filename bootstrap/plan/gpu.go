package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/inventory"
	"kgpu.dev/kgpu/scripts/manifests"
)

// gpuLabel is on the nodes with cards, for the device plugin and for people.
const gpuLabel = "kgpu.dev/gpu"

// Files of the steps for cards.
const (
	nouveauBlacklist = "/etc/modprobe.d/kgpu-nouveau.conf"
	driverUpgrades   = "/etc/apt/apt.conf.d/52kgpu-nvidia"
	driverModules    = "/etc/modules-load.d/kgpu-nvidia.conf"
)

var (
	nouveauFile = text("# The cards are for NVIDIA's driver, written by kgpu.\nblacklist nouveau\noptions nouveau modeset=0\n")
	// An upgrade beneath running containers breaks them: library and module would differ until a reboot. A kernel that
	// comes by itself may have no module.
	upgradesFile = text("// Drivers are not replaced beneath running containers, written by kgpu.\n" +
		`Unattended-Upgrade::Package-Blacklist { "^nvidia-"; "^libnvidia-"; "^cuda-drivers"; "^linux-(image|headers|modules)-"; };` + "\n")
	modulesFile = text("# Containers need it before anybody asks for it, written by kgpu.\nnvidia\nnvidia_uvm\n")
)

// gpus plans the driver and the container toolkit of a host with cards. Joining the cluster does not wait for them.
func (b *builder) gpus(h *host) error {
	h.cards = len(Cards(h.facts))
	if h.cards == 0 {
		return nil
	}
	choice, err := ChooseDriver(b.inv, h.facts)
	if err != nil {
		h.cards = 0 // preflight has refused it, and the user said to go on without
		b.graph.Warnings = append(b.graph.Warnings, h.id+": no driver: "+err.Error())
		return nil
	}
	joins := h.last
	b.driver(h, choice)
	b.toolkit(h)
	h.gpuLast, h.last = h.last, joins
	return nil
}

func (b *builder) driver(h *host, c Choice) {
	if c.Keep {
		b.skip(h, "driver/install", fmt.Sprintf("driver %s stays: %s", h.facts.NVIDIA.Loaded, c.Why))
		b.loadDriver(h, nil)
		return
	}
	b.nouveau(h)
	if c.Source == catalog.FromCUDA {
		b.repository(h, repository{name: "cuda", title: "NVIDIA's drivers and CUDA", source: b.cudaSource(h), suite: "/"})
	}
	p := c.Packages(h.facts.OS.ID, h.facts.Kernel)
	files := map[string]File{driverUpgrades: upgradesFile}
	reasons := changed(h.facts, files)
	missing := h.missing(append(p.First, p.Driver...))
	if len(missing) > 0 {
		reasons = []string{fmt.Sprintf("driver %s for %s", c.Driver, c.Why)}
	}
	b.unless(h, reasons, fmt.Sprintf("driver %s is installed", c.Driver), Step{
		Ref: Ref{ID: "driver/install"}, Title: fmt.Sprintf("install the driver %d", c.Branch), Script: "driver-install",
		Input: Input{
			Values: map[string]string{"headers": lines(p.First...), "packages": lines(p.Driver...), "next": lines(p.Next...), "version_package": p.Library},
			Files:  files,
		},
		Retry: Transient, Timeout: 45 * time.Minute, // DKMS compiles for minutes on a small machine
	})
	if h.facts.NVIDIA.Nouveau.Users > 0 {
		b.add(h, Step{
			Ref: Ref{ID: "driver/reboot"}, Title: "reboot", Reason: "the driver nouveau is in use, only a reboot gets rid of it", Script: "driver-reboot",
			Input:  Input{Values: map[string]string{"boot_id": h.facts.BootID, "reason": "nouveau is in use"}},
			Serial: "reboot", Timeout: 20 * time.Minute,
		})
	}
	b.loadDriver(h, map[string]File{driverModules: modulesFile})
	if h.facts.NVIDIA.Switches > 0 {
		b.fabricManager(h, c)
	}
}

func (b *builder) nouveau(h *host) {
	files := map[string]File{nouveauBlacklist: nouveauFile}
	reasons := changed(h.facts, files)
	if n := h.facts.NVIDIA.Nouveau; n.Loaded && n.Users == 0 {
		reasons = append(reasons, "nouveau is loaded")
	} else if n.Loaded {
		reasons = append(reasons, "nouveau is in use")
	}
	b.unless(h, reasons, "nouveau is off", Step{
		Ref: Ref{ID: "driver/nouveau"}, Title: "keep nouveau off the cards", Script: "driver-nouveau",
		Input: Input{Files: files}, Timeout: medium,
	})
}

// loadDriver plans the step that ends with all cards in nvidia-smi's list.
func (b *builder) loadDriver(h *host, files map[string]File) {
	reasons := changed(h.facts, files)
	if !works(h.facts) {
		reasons = append(reasons, whatIsThere(h.facts))
	}
	if u, ok := h.facts.Units[persistence]; ok && u.Active != "active" {
		reasons = append(reasons, persistence+" is not running")
	}
	b.unless(h, reasons, fmt.Sprintf("the driver sees %d of %d cards", len(h.facts.NVIDIA.Seen), h.cards), Step{
		Ref: Ref{ID: "driver/load"}, Title: "load the driver and see all cards", Script: "driver-load",
		Input: Input{Values: map[string]string{"cards": strconv.Itoa(h.cards), "persistence": persistence}, Files: files}, Timeout: medium,
	})
}

const persistence = "nvidia-persistenced.service"

func (b *builder) fabricManager(h *host, c Choice) {
	name := c.FabricManager(h.facts.OS.ID)
	reasons := h.notRunning("nvidia-fabricmanager.service")
	if missing := h.missing([]string{name}); len(missing) > 0 {
		reasons = []string{fmt.Sprintf("%d NVSwitches, and no fabric manager", h.facts.NVIDIA.Switches)}
	}
	b.unless(h, reasons, "the fabric manager runs", Step{
		Ref: Ref{ID: "driver/fabric"}, Title: "run the fabric manager", Script: "driver-fabric",
		Input: Input{Values: map[string]string{"packages": name, "version_package": c.Packages(h.facts.OS.ID, h.facts.Kernel).Library}},
		Retry: Transient, Timeout: medium,
	})
}

// cudaArch is NVIDIA's word for dpkg's architectures.
var cudaArch = map[string]string{"amd64": "x86_64", "arm64": "sbsa"}

func (b *builder) cudaSource(h *host) catalog.Source {
	release := h.facts.OS.ID + strings.ReplaceAll(h.facts.OS.VersionID, ".", "")
	return effective(catalog.CUDASource, b.inv.Repositories.CUDA, "/3bf863cc.pub", release, cudaArch[h.facts.Arch])
}

func (b *builder) toolkit(h *host) {
	source := effective(catalog.ToolkitSource, b.inv.Repositories.Toolkit, "/gpgkey", h.facts.Arch)
	b.repository(h, repository{name: "nvidia-container-toolkit", title: "the NVIDIA container toolkit", source: source, suite: "/"})
	var specs, reasons []string
	for _, name := range catalog.ToolkitPackages {
		specs = append(specs, name+"="+catalog.ToolkitVersion)
		if have := h.facts.Packages[name].Version; have != catalog.ToolkitVersion {
			reasons = append(reasons, name+" is not "+catalog.ToolkitVersion)
		}
	}
	if len(reasons) == len(specs) {
		reasons = []string{"it is not installed"}
	}
	files := map[string]File{}
	if b.inv.Runtime == inventory.Docker {
		// Not before the toolkit is there: docker could start nothing any more.
		merged, _ := mergeDaemonJSON(h.facts.DaemonJSON)
		content, missing := nvidiaDaemonJSON(merged)
		files["/etc/docker/daemon.json"], reasons = File{Mode: 0o644, Content: content}, append(reasons, missing...)
	}
	b.unless(h, reasons, "the container toolkit is installed", Step{
		Ref: Ref{ID: "gpu/toolkit"}, Title: "install the container toolkit " + catalog.ToolkitVersion, Script: "gpu-toolkit",
		Input: Input{
			Values: map[string]string{"packages": lines(specs...), "runtime": string(b.inv.Runtime), "settings": lines(toolkitSettings[b.inv.Runtime]...)},
			Files:  files,
		},
		Retry: Transient, Timeout: medium,
	})
}

// toolkitSettings keep cards from pods that did not ask for them: an image may set NVIDIA_VISIBLE_DEVICES, as NVIDIA's own do.
// Source: the device plugin's README, "Preventing unprivileged access to GPUs".
var toolkitSettings = map[inventory.Runtime][]string{
	inventory.Containerd: {"accept-nvidia-visible-devices-envvar-when-unprivileged=false"},
	inventory.Docker: {
		"accept-nvidia-visible-devices-envvar-when-unprivileged=false",
		"accept-nvidia-visible-devices-as-volume-mounts=true",
	},
}

// missing are those of the packages that the host does not have.
func (h *host) missing(names []string) []string {
	var out []string
	for _, name := range names {
		if _, ok := h.facts.Packages[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}

// devicePlugin plans what makes Kubernetes schedule cards, and returns its step.
func (b *builder) devicePlugin(started []Ref) ([]Ref, error) {
	if !b.hasCards() {
		return nil, nil
	}
	objects, err := decodeManifest(manifests.DevicePlugin)
	if err != nil {
		return nil, err
	}
	if b.inv.Runtime == inventory.Docker {
		// Docker's default runtime adds the cards that the mounts of a pod name.
		containers(objects, func(c object) { setEnv(c, "DEVICE_LIST_STRATEGY", "volume-mounts") })
		for _, o := range objects {
			if o["kind"] == "RuntimeClass" {
				o["handler"] = "docker"
			}
		}
	}
	b.pullFromRegistry(objects)
	manifest, hash, err := encodeManifest(objects)
	if err != nil {
		return nil, err
	}
	reason := b.networkMissing(devicePluginWorkload, hash)
	if reason == "" {
		b.skip(b.cp, "gpu/device-plugin", "the device plugin is applied")
		return nil, nil
	}
	return []Ref{b.side(b.cp, Step{
		Ref: Ref{ID: "gpu/device-plugin"}, Title: "let Kubernetes schedule cards", Reason: reason, Script: "network-apply", Needs: started,
		Input: Input{Values: map[string]string{"manifest": manifest}}, Retry: Transient, Timeout: medium,
	})}, nil
}

const devicePluginWorkload = "kube-system/daemonset/nvidia-device-plugin"

func (b *builder) hasCards() bool {
	for _, h := range b.hosts {
		if h.cards > 0 {
			return true
		}
	}
	return false
}

// cardsReady plans the wait until every node offers as many cards as the host has.
func (b *builder) cardsReady(needs []Ref) {
	if !b.hasCards() {
		return
	}
	var want, reasons []string
	for _, h := range b.hosts {
		if h.cards == 0 {
			continue
		}
		want = append(want, fmt.Sprintf("%s %d", h.node, h.cards))
		needs = append(needs, h.gpuLast...)
		if n := b.nodeOf(h); n == nil || n.GPUs != h.cards {
			have := 0
			if n != nil {
				have = n.GPUs
			}
			reasons = append(reasons, fmt.Sprintf("%s offers %d of %d cards", h.node, have, h.cards))
		}
	}
	if len(reasons) == 0 {
		b.skip(b.cp, "gpu/ready", "all cards can be had")
		return
	}
	b.side(b.cp, Step{
		Ref: Ref{ID: "gpu/ready"}, Title: "wait until all cards can be had", Reason: strings.Join(reasons, ", "), Script: "gpu-ready",
		Needs: needs, Input: Input{Values: map[string]string{"nodes": lines(want...)}}, Timeout: 15 * time.Minute,
	})
}
