package catalog

import (
	"fmt"
	"slices"
)

// Source is an apt repository: where it is and whose key signs it.
type Source struct {
	URL          string   // base URL; %s is the Kubernetes minor or the distribution
	KeyURL       string   // of the armoured public key
	SameKeyURLs  []string // that serve the same key, and are asked in order where that of KeyURL has expired
	Fingerprints []string // of the keys that may sign it: 40 hexadecimal digits, upper case
	Packages     []string // that are wanted from it, with what they bring along; apt's patterns
}

// KubernetesSource is the community-owned repository, one per minor; %s is the minor. It has nothing older than 1.24.
// Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/,
// key isv:kubernetes OBS Project.
var KubernetesSource = Source{
	URL:          "https://pkgs.k8s.io/core:/stable:/v%s/deb",
	KeyURL:       "https://pkgs.k8s.io/core:/stable:/v%s/deb/Release.key",
	Fingerprints: []string{"DE15B14486CD377B9E876E1A234654DA9A296436"},
	Packages:     slices.Concat(KubernetesPackages, []string{"kubernetes-cni", "cri-tools"}),
}

// KubernetesPackages are pinned to the cluster's version and held. Those of a node are never changed for another version.
var KubernetesPackages = []string{"kubelet", "kubeadm", "kubectl"}

// KubernetesKeyURLs lists where the two newest minors but this one have the key of KubernetesSource: it signs all minors, and the
// Release.key of one that gets no more fixes is not always extended with it. A minor of the catalog that is too old by then
// serves no worse than its own.
// Source: kubernetes/kubernetes issue 128609, kubernetes/release issue 3818.
func KubernetesKeyURLs(minor string) []string {
	var urls []string
	for n := newestMinor; n >= firstPublished && len(urls) < 2; n-- {
		if other := minors[n].Version().MinorString(); other != minor {
			urls = append(urls, fmt.Sprintf(KubernetesSource.KeyURL, other))
		}
	}
	return urls
}

// DockerSource is Docker's repository; %s is ubuntu or debian.
// Source: https://docs.docker.com/engine/install/ubuntu/.
var DockerSource = Source{
	URL:          "https://download.docker.com/linux/%s",
	KeyURL:       "https://download.docker.com/linux/%s/gpg",
	Fingerprints: []string{"9DC858229FC7DD38854AE2D88D81803C0EBFCD88"},
	Packages: []string{"docker-ce", "docker-ce-cli", "containerd.io", "docker-buildx-plugin", "docker-compose-plugin", "docker-ce-rootless-extras",
		"docker-engine"}, // its name of old, in mirrors for Kubernetes that old
}

// CUDASource is NVIDIA's repository of drivers and CUDA; the URL's verbs are the distribution with its version (ubuntu2404,
// debian13), NVIDIA's word for the architecture (x86_64, sbsa) and, of the key, the file that CUDAKeyFile names.
// Source: driver installation guide, "Network repository installation".
var CUDASource = Source{
	URL:    "https://developer.download.nvidia.com/compute/cuda/repos/%s/%s",
	KeyURL: "https://developer.download.nvidia.com/compute/cuda/repos/%s/%s/%s",
	Fingerprints: []string{
		"EB693B3035CD5710E231E123A4B469963BF863CC", // cudatools, since 2022
		"02182E60104FCDC26EAE1B8597A5D4CB8793F200", // Kitmaker (Debian 13 Trixie)
		"14BAFBC7562AD710CA04E69905FBB6DA60DF8A40", // Kitmaker (Ubuntu 26.04)
	},
	// A toolkit is a hundred packages, among them libraries that Ubuntu and Debian have too, under other names. dkms is there for
	// Debian 12, whose own is too old for the driver.
	Packages: slices.Concat(driverPatterns, []string{"nvlsm", "libnvsdm*", "dkms", "cuda-*", "gds-tools-*", "nsight-*", "cudnn*", "libcudnn*", "libcublas*", "libcufft*",
		"libcufile*", "libcuobjclient*", "libcurand*", "libcusolver*", "libcusparse*", "libnpp*", "libnvfatbin*", "libnvjitlink*", "libnvjpeg*", "libnvptxcompiler*", "libnvvm*"}),
}

// driverPatterns are apt's patterns of what a driver consists of. Source: as of driverNames; the pinning packages of the driver
// installation guide have much the same.
var driverPatterns = []string{"*nvidia*", "libcuda1", "libcudadebugger1", "libnvcuvid1", "libnvoptix1", "libxnvctrl*"}

// CUDAKeyFile is where CUDASource has the key for a release, such as "debian 13". Newer ones have a key each: apt takes no
// signature any more that rests on SHA-1, as the first key does.
// Source: NVIDIA/cuda-repo-management issues 30 and 39.
func CUDAKeyFile(release string) string {
	switch release {
	case "debian 13":
		return "8793F200.pub"
	case "ubuntu 26.04":
		return "60DF8A40.pub"
	}
	return "3bf863cc.pub"
}

// GraphicsDriversSource is the graphics-drivers PPA of Ubuntu's developers.
// Source: https://launchpad.net/~graphics-drivers/+archive/ubuntu/ppa, key "Launchpad PPA for Graphics Drivers Team".
var GraphicsDriversSource = Source{
	URL:          "https://ppa.launchpadcontent.net/graphics-drivers/ppa/ubuntu",
	KeyURL:       "https://keyserver.ubuntu.com/pks/lookup?op=get&search=0x2388FF3BE10A76F638F80723FCAE110B1118213C",
	Fingerprints: []string{"2388FF3BE10A76F638F80723FCAE110B1118213C"},
	Packages:     driverPatterns,
}

// ToolkitSource is the repository of the NVIDIA container toolkit, the same for all distributions; %s is dpkg's word for
// the architecture.
// Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html.
var ToolkitSource = Source{
	URL:          "https://nvidia.github.io/libnvidia-container/stable/deb/%s",
	KeyURL:       "https://nvidia.github.io/libnvidia-container/gpgkey",
	Fingerprints: []string{"C95B321B61E88C1809C4F759DDCAE044F796ECB0"},
	Packages:     ToolkitPackages,
}

// ToolkitVersion is that of all packages of the NVIDIA container toolkit: they belong together.
const ToolkitVersion = "1.20.0-1"

// ToolkitPackages are the packages of the NVIDIA container toolkit.
var ToolkitPackages = []string{"libnvidia-container1", "libnvidia-container-tools", "nvidia-container-toolkit-base", "nvidia-container-toolkit"}

// DevicePluginImage is NVIDIA's device plugin for Kubernetes: the first that names cards of Rubin, and instances of profiles with a
// suffix (1g.10gb+me) apart. Its environment and its configuration are those of 0.19.1 and more.
// Source: https://github.com/NVIDIA/k8s-device-plugin, CHANGELOG.md of v0.20.0; kgpu's lab runs 0.19.3.
const DevicePluginImage = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"

// Download is a file whose content is known by its SHA-256, per dpkg architecture ("all" where it does not matter).
type Download struct {
	Version string
	URL     string // %s is the architecture
	SHA256  map[string]string
}

// CRIDockerd is the adapter between the kubelet (Kubernetes ≥ 1.24) and docker.
// Sums: the Arch User Repository's PKGBUILD of cri-dockerd-bin 0.4.4 (both architectures; the arm64 one was found
// independently as well). Releases up to 0.4.4 have the fault that ExtendWebSocketsToKubelet runs into. 0.4.10 of 2026-10-30 is the
// newest; no sums of it for both architectures were found by 2026-11-25.
var CRIDockerd = Download{
	Version: "0.4.4",
	URL:     "https://github.com/Mirantis/cri-dockerd/releases/download/v0.4.4/cri-dockerd-0.4.4.%s.tgz",
	SHA256: map[string]string{
		"amd64": "109b7540053a507dd85ad7b9fee9cee9caae55feedcc28365d3e7ab4fb2172d5",
		"arm64": "4f96b4e9b7fcb1c90f78470325c2197a67fa28c0e0c901509437b791f5588a37",
	},
}

// Calico is the manifest of its release. Sum: of manifests/calico.yaml at the tag.
var Calico = Download{
	Version: "3.32.1",
	URL:     "https://raw.githubusercontent.com/projectcalico/calico/v3.32.1/manifests/calico.yaml",
	SHA256:  map[string]string{"all": "a1df919d9721cf667accdc3e72848911b0cb25cfab7d2478ad0c996302c95744"},
}

// CRIDockerdWebSocketFault says whether a cri-dockerd version (without v) breaks exec, attach and cp on Kubernetes ≥ 1.36
// unless the kubelet gate ExtendWebSocketsToKubelet is off: every release up to 0.4.4 does, and of later ones nobody says otherwise.
// Source: Mirantis/cri-dockerd issues 560 and 569, open pull request 576.
func CRIDockerdWebSocketFault(string) bool { return true }
