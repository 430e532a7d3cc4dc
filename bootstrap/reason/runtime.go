package reason

// Reasons of the container runtime, and the images that it pulls.
const (
	HostRuntimeConflict   ID = "HOST_RUNTIME_CONFLICT"
	HostRuntimeOverridden ID = "HOST_RUNTIME_OVERRIDDEN"
	HostContainerdOld     ID = "HOST_CONTAINERD_OLD"
	RegistryUnreachable   ID = "REGISTRY_UNREACHABLE"
	RegistryBusy          ID = "REGISTRY_BUSY"
	ImageUnavailable      ID = "IMAGE_UNAVAILABLE"
	ImageMismatch         ID = "IMAGE_MISMATCH"
)

var runtimeReasons = []Reason{
	{HostRuntimeConflict, 72,
		"Something of yours is in the way of the chosen container runtime: podman-docker, docker as a snap, a package that apt would have to remove, or a daemon.json that is not valid JSON.",
		"remove the conflicting packages named above"},
	{HostRuntimeOverridden, 239,
		"A file of yours undoes what kgpu sets for the container runtime: an import of containerd's that comes after kgpu's own, which before containerd 2 replaces a section as a whole, as `nvidia-ctk runtime configure` writes it; or a drop-in of the runtime's unit with another configuration or with flags of its own.",
		"move the file named above away; what you need of it goes into /etc/containerd/config.toml or /etc/docker/daemon.json, whose settings kgpu keeps"},
	{HostContainerdOld, 242,
		"The host's containerd is older than 2: its authors support none of those since September 2026, and Kubernetes refuses it from 1.38 on. Pods have no image volumes (from containerd 2.1 on) and no user namespaces there. Up to Kubernetes 1.37 it is only a warning. kgpu takes `containerd.io` of Docker's repository, which is 2, for hosts that have no containerd, and leaves the one that is there.",
		"docs/troubleshooting.md, \"A containerd before 2\", has the commands that put containerd 2 in its place, node by node"},
	{RegistryUnreachable, 77,
		"A host could not connect to a registry that container images come from: no answer in 5 s, a refusal, or no route there; or what it sent was cut short again and again.",
		"check the firewall of the host and the proxy in between, set `proxy:`, or name your own registry: `images: {registry: …}`"},
	{RegistryBusy, 31,
		"A registry answered that it is overloaded or has a fault (429, 500 to 504), and did so again and again until the time for that was over.",
		"the registry answers, but refuses for now: run the same command again later, or name your own registry: `images: {registry: …}`"},
	{ImageUnavailable, 32,
		"A registry answered that there is no such image, or that the host may not have it (401, 403, 404).",
		"check the image's name, and that the registry lets the host have it: `images: {registry: …}`"},
	{ImageMismatch, 33,
		"What a registry delivered has another digest than the image that was asked for: it was cut off or changed on the way. Nothing of it is run.",
		"what came is not the image that was asked for: check the registry, and the proxy in between, before you try again"},
}
