package plan

import (
	"slices"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/graph"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// driverPin keeps apt from taking drivers out of the CUDA repository where they come from elsewhere. A mirror has
// NVIDIA's Release file, and so its label.
// Source: apt_preferences(5); NVIDIA's own cuda-ubuntu2404.pin tells the repository by this label.
const driverPin = "/etc/apt/preferences.d/kgpu-nvidia"

var driverPinFile = text("# The driver does not come from NVIDIA's CUDA repository, written by kgpu.\n" +
	"Package: nvidia-* libnvidia-* cuda-drivers* firmware-nvidia-* xserver-xorg-video-nvidia* libcuda1 libcudadebugger1 libnvcuvid1 libnvoptix1\n" +
	"Pin: release l=NVIDIA CUDA\nPin-Priority: -1\n")

// cudaKeyring is NVIDIA's own package of the repository and its key: apt refuses the same repository with two keys.
const cudaKeyring = "cuda-keyring"

// cudaRepository plans NVIDIA's repository, which has the CUDA toolkit and may be where the driver comes from.
func (b *builder) cudaRepository(h *host, driver machine.DriverChoice) {
	if slices.ContainsFunc(b.graph.Steps, func(s *graph.Step) bool { return s.Ref == graph.Ref{Host: h.id, ID: "repo/cuda"} }) {
		return // the driver's fabric wants it, too
	}
	if _, ok := h.Facts.Packages[cudaKeyring]; ok {
		b.skip(h, "repo/cuda", "the package "+cudaKeyring+" has set it up")
		return
	}
	r := repository{name: "cuda", title: "NVIDIA's drivers and CUDA", source: b.cudaSource(h), suite: "/"}
	if h.pinned(driver) {
		r.files = map[string]graph.File{driverPin: driverPinFile}
	}
	b.repository(h, r)
}

// pinned reports whether the driver does not come from the CUDA repository. A former run knew where the driver that stays
// came from: what it did is left as it is.
func (h *host) pinned(driver machine.DriverChoice) bool {
	_, before := h.Facts.Files[listOf("cuda")]
	_, pinned := h.Facts.Files[driverPin]
	if before && driver.Keep {
		return pinned
	}
	return driver.Source != catalog.FromCUDA
}

// cudaArch is NVIDIA's word for dpkg's architectures.
var cudaArch = map[string]string{"amd64": "x86_64", "arm64": "sbsa"}

func (b *builder) cudaSource(h *host) catalog.Source {
	release := h.Facts.OS.ID + strings.ReplaceAll(h.Facts.OS.VersionID, ".", "")
	key := catalog.CUDAKeyFile(h.Facts.OS.ID + " " + h.Facts.OS.VersionID)
	return effective(catalog.CUDASource, b.Inventory.Repositories.CUDA, "/"+key, release, cudaArch[h.Facts.Arch], key)
}
