package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/inventory"
)

// gpus plans the driver and the container toolkit of a host with cards. Joining the cluster does not wait for them.
func (b *builder) gpus(h *host) error {
	h.cards = len(machine.Cards(b.Inventory, h.Facts))
	if b.mechanism() == "" {
		h.cards = 0
	} else {
		b.sayLeftOut(h)
	}
	if !machine.UnloadsNouveau(b.Inventory, h.Facts) {
		display := *h.Facts
		display.NVIDIA.Nouveau = facts.Nouveau{}
		h.Facts = &display
	}
	if h.cards == 0 {
		return nil
	}
	choice, err := machine.ChooseDriver(b.Inventory, h.Facts)
	if err != nil {
		h.cards = 0 // preflight has refused it, and the user said to go on without
		b.warn("%s: no driver: %v", h.id, err)
		return nil
	}
	h.choice = choice
	joins := h.last
	b.driver(h, choice)
	if b.mechanism() == catalog.DevicePlugins {
		b.toolkit(h)
	}
	h.gpuLast, h.last = h.last, joins
	return nil
}

func (b *builder) toolkit(h *host) {
	source := effective(catalog.ToolkitSource, b.Inventory.Repositories.Toolkit, "/gpgkey", h.Facts.Arch)
	b.repository(h, repository{name: "nvidia-container-toolkit", title: "the NVIDIA container toolkit", source: source, suite: "/"})
	var specs, reasons, unheld []string
	version := toolkitVersion(h.Facts)
	for _, name := range catalog.ToolkitPackages {
		have := h.Facts.Packages[name]
		want := version
		if catalog.CompareDebian(have.Version, catalog.ToolkitVersion) >= 0 {
			want = have.Version
		}
		specs = append(specs, name+"="+want)
		switch {
		case have.Version != want:
			reasons = append(reasons, name+" is not "+want)
		case !have.Held:
			unheld = append(unheld, name+" is not held")
		}
	}
	settings := toolkitSettings[b.Inventory.Runtime]
	var unset []string // these it reads for each container
	if len(reasons) == len(specs) {
		reasons = []string{"it is not installed"}
	} else {
		unset = h.unset(settings)
	}
	if h.replaced {
		reasons = append(reasons, "what it tells containers of the driver changes")
	}
	files := map[string]graph.File{}
	if b.Inventory.Runtime == inventory.Docker {
		// Not before the toolkit is there: docker could start nothing any more.
		merged, _ := mergeDaemonJSON(h.Facts.DaemonJSON)
		content, missing := nvidiaDaemonJSON(merged)
		files["/etc/docker/daemon.json"], reasons = graph.File{Mode: 0o644, Content: content}, append(reasons, missing...)
	}
	disrupts := b.dockerRestarts()
	if len(reasons) == 0 {
		disrupts = ""
	}
	b.unless(h, slices.Concat(reasons, unset, unheld), "the container toolkit is installed", graph.Step{
		Ref: graph.Ref{ID: "gpu/toolkit"}, Title: "install the container toolkit " + version,
		Input: graph.Input{
			Values: map[string]string{"packages": lines(specs...), "runtime": string(b.Inventory.Runtime), "settings": lines(settings...)},
			Files:  files,
		},
		Disrupts: disrupts,
	})
}

// toolkitVersion is the one that a host gets: a newer one that is there is good enough, and its other packages have to be as new.
func toolkitVersion(f *facts.Host) string {
	version := catalog.ToolkitVersion
	for _, name := range catalog.ToolkitPackages {
		if have := f.Packages[name].Version; catalog.CompareDebian(have, version) > 0 {
			version = have
		}
	}
	return version
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

// unset says which of these settings the toolkit has otherwise.
func (h *host) unset(settings []string) []string {
	var reasons []string
	for _, setting := range settings {
		name, want, _ := strings.Cut(setting, "=")
		if have := h.Facts.Toolkit[name]; have != want {
			reasons = append(reasons, fmt.Sprintf("%s is %s", name, cmp.Or(have, "not set")))
		}
	}
	return reasons
}
