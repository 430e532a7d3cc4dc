package catalog

import (
	"fmt"
	"slices"
)

// Source is an apt repository and the keys that sign it.
type Source struct {
	URL          string   // base URL; %s stands for the Kubernetes minor or the distribution
	KeyURL       string   // URL of the armoured public key
	SameKeyURLs  []string // other URLs of the same key, tried in order if the key at KeyURL has expired
	Fingerprints []string // the keys that may sign it: 40 hexadecimal digits, upper case
	Packages     []string // apt patterns of the packages that may be taken from it
}

// KubernetesSource is the community's repository of a minor; %s stands for the minor. It has nothing older than 1.24.
// Source: https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/install-kubeadm/,
// key isv:kubernetes OBS Project.
var KubernetesSource = Source{
	URL:          "https://pkgs.k8s.io/core:/stable:/v%s/deb",
	KeyURL:       "https://pkgs.k8s.io/core:/stable:/v%s/deb/Release.key",
	Fingerprints: []string{"DE15B14486CD377B9E876E1A234654DA9A296436"},
	Packages:     slices.Concat(KubernetesPackages, []string{"kubernetes-cni", "cri-tools"}),
}

// KubernetesPackages are pinned to the cluster's version and held. A node's are never replaced by another version.
var KubernetesPackages = []string{"kubelet", "kubeadm", "kubectl"}

// KubernetesKeyURLs lists where the two newest other minors have the key of KubernetesSource. It signs all minors, but
// the Release.key of an unsupported minor is not always extended with it. If these minors are unsupported too by then,
// they serve no worse than the minor's own.
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

// DockerSource is Docker's repository; %s stands for ubuntu or debian.
// Source: https://docs.docker.com/engine/install/ubuntu/.
var DockerSource = Source{
	URL:          "https://download.docker.com/linux/%s",
	KeyURL:       "https://download.docker.com/linux/%s/gpg",
	Fingerprints: []string{"9DC858229FC7DD38854AE2D88D81803C0EBFCD88"},
	Packages: []string{"docker-ce", "docker-ce-cli", "containerd.io", "docker-buildx-plugin", "docker-compose-plugin", "docker-ce-rootless-extras",
		"docker-engine"}, // its name up to 2017, in mirrors for old Kubernetes
}

// CUDASource is NVIDIA's repository of drivers and CUDA. Its verbs stand for the distribution with its version
// (ubuntu2404, debian13), NVIDIA's name of the CPU architecture (x86_64, sbsa) and, in KeyURL, the file from
// CUDAKeyFile.
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

// driverPatterns are apt patterns of a driver's packages. Source: as of driverNames; the pinning packages of the driver
// installation guide have much the same.
var driverPatterns = []string{"*nvidia*", "libcuda1", "libcudadebugger1", "libnvcuvid1", "libnvoptix1", "libxnvctrl*"}

// CUDAKeyFile is the file of CUDASource's key for a release such as "debian 13". Newer releases have their own keys,
// because apt refuses signatures that rest on SHA-1, as the first key does.
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

// ToolkitSource is the repository of the NVIDIA container toolkit for all distributions; %s stands for dpkg's
// architecture.
// Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html.
var ToolkitSource = Source{
	URL:          "https://nvidia.github.io/libnvidia-container/stable/deb/%s",
	KeyURL:       "https://nvidia.github.io/libnvidia-container/gpgkey",
	Fingerprints: []string{"C95B321B61E88C1809C4F759DDCAE044F796ECB0"},
	Packages:     ToolkitPackages,
}

// ToolkitVersion is the version of all packages of the NVIDIA container toolkit, which belong together.
const ToolkitVersion = "1.20.0-1"

// ToolkitPackages are the packages of the NVIDIA container toolkit.
var ToolkitPackages = []string{"libnvidia-container1", "libnvidia-container-tools", "nvidia-container-toolkit-base", "nvidia-container-toolkit"}

// DevicePluginImage is NVIDIA's device plugin for Kubernetes: the first that names Rubin GPUs, and instances of
// profiles with a suffix (1g.10gb+me) apart. Its environment and configuration are compatible with 0.19.1.
// Source: https://github.com/NVIDIA/k8s-device-plugin, CHANGELOG.md of v0.20.0; kgpu's lab runs 0.19.3.
const DevicePluginImage = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"

// Download is a file that is verified by its SHA-256, for each dpkg architecture, or "all".
type Download struct {
	Version string
	URL     string // %s stands for the architecture
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
