package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// TestTenFaults plants ten faults of all kinds into the lab's internet and wants these ten to be found, and no other. The lab has
// a part of what kgpu names: what is dead before is dead after.
func TestTenFaults(t *testing.T) {
	const (
		kubernetes = "pkgs.k8s.io/core:/stable:/v1.36/deb"
		toolkit    = "nvidia.github.io/libnvidia-container/stable/deb/amd64"
		cuda24     = "developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64"
		cuda13     = "developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64"
		docker     = "download.docker.com/linux/"
		criDockerd = "github.com/Mirantis/cri-dockerd/releases/download/v0.4.4/cri-dockerd-0.4.4.amd64.tgz"
	)
	l := newLab(t)
	before := l.survey()
	other, err := openpgp.NewEntity("somebody else", "", "", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	month := time.Since(l.signer.PrimaryKey.CreationTime) + 30*24*time.Hour

	l.change(kubernetes, func(s string) string { return s + "\nPackage: kubeadm\nVersion: 1.36.99-1.1\n" })
	l.change(toolkit, func(s string) string {
		return strings.ReplaceAll(s, "Package: nvidia-container-toolkit\n", "Package: renamed\n")
	})
	l.change(cuda24, func(s string) string { return s + "\nPackage: cuda-toolkit-99-1\nVersion: 99.1.0-1\n" })
	l.fault(cuda13+"/InRelease", "tamper")
	l.put(docker+"debian/gpg", l.armored(other, 0))
	l.put(docker+"ubuntu/gpg", l.armored(l.signer, month))
	l.fault(criDockerd, "tamper")
	l.fault("registry.k8s.io/v2/pause/manifests/3.10.2", "status=404")
	l.fault("nvcr.io/v2/nvidia/k8s-device-plugin/manifests/", "hang")
	l.fault("archive.ubuntu.com/ubuntu/dists/noble-updates/restricted/binary-amd64/Packages.gz", "truncate")

	after := l.survey()
	for id, want := range map[string]string{
		"kubeadm 1.36.3 https://" + kubernetes:                                                 "newer there is 1.36.99",
		"nvidia-container-toolkit 1.20.0-1 https://" + toolkit:                                 "dead there are []",
		"newest cuda-toolkit-13-4 https://" + cuda24:                                           "newer there is cuda-toolkit-99-1",
		"packages of NVIDIA for debian 13 amd64 https://" + cuda13:                             "changed InRelease: ",
		"key of docker for debian https://" + docker + "debian/gpg":                            "changed the key is " + fingerprint(other),
		"key of docker for ubuntu https://" + docker + "ubuntu/gpg":                            "aged the key ends on ",
		"cri-dockerd-0.4.4.amd64.tgz https://" + criDockerd:                                    "changed its SHA-256 is ",
		"image registry.k8s.io/pause:3.10.2":                                                   "dead the registry answers Not Found",
		"image " + catalog.DevicePluginImage:                                                   "dead ",
		"packages of noble-updates amd64 http://archive.ubuntu.com/ubuntu/dists/noble-updates": "dead restricted/binary-amd64/Packages.gz is not",
	} {
		if was := before[id]; was == "" || was == after[id] {
			t.Errorf("%s was %q and is %q: this fault is no change", id, was, after[id])
		}
		if !strings.HasPrefix(after[id], want) {
			t.Errorf("%s is %q, want %q", id, after[id], want)
		}
		delete(after, id)
	}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		if after[id] != before[id] {
			t.Errorf("no fault was planted at %s: it was %q and is %q", id, before[id], after[id])
		}
	}
}

// TestModulesOfTheNewestKernel holds that the modules of a driver are asked for by the kernel that its line's package leads to.
func TestModulesOfTheNewestKernel(t *testing.T) {
	archive := offer{}
	archive.read([]byte(`Package: linux-image-generic
Version: 6.8.0-31.31
Depends: linux-image-6.8.0-31-generic, linux-modules-extra-6.8.0-31-generic, linux-firmware

Package: linux-image-generic
Version: 6.8.0-146.146+2
Depends: linux-image-6.8.0-146-generic, linux-firmware
`))
	kernels := archive.kernels([]string{"linux-image-generic", "linux-image-generic-hwe-24.04"})
	if !slices.Equal(kernels, []string{"6.8.0-146-generic"}) {
		t.Errorf("the kernels are %v", kernels)
	}
	packages := drivers(catalog.FromUbuntu, releases[1], kernels)
	for _, want := range []string{"linux-modules-nvidia-580-server-6.8.0-146-generic", "linux-modules-nvidia-580-server-open-6.8.0-146-generic", "nvidia-utils-580-server"} {
		if !slices.Contains(packages, want) {
			t.Errorf("%s is not asked for: %v", want, packages)
		}
	}
	if without := drivers(catalog.FromUbuntu, releases[1], nil); slices.ContainsFunc(without, func(p string) bool { return strings.Contains(p, "KERNEL") }) {
		t.Errorf("without a kernel there are %v", without)
	}
}

func TestStatus(t *testing.T) {
	for want, states := range map[int][]state{0: {ok, ok}, 3: {ok, newer, ok}, 1: {newer, aged, ok}} {
		var rows []row
		for _, s := range states {
			rows = append(rows, row{state: s})
		}
		if got := status(rows); got != want {
			t.Errorf("%v: exit status %d, want %d", states, got, want)
		}
	}
}

func TestNewestLike(t *testing.T) {
	for _, c := range []struct {
		this string
		all  []string
		want string
	}{
		{"v0.19.1", []string{"v0.19.3", "v0.20.0-rc.1", "v0.9.0", "latest"}, "v0.19.3"},
		{"cuda12-pytorch-2.11.0", []string{"cuda12-pytorch-2.12.0", "cuda13-pytorch", "x86_64-cuda12-pytorch-9.0.0"}, "cuda12-pytorch-2.12.0"},
		{"1.20.0-1", []string{"1.20.0-1", "1.19.9-1", "1.20.0~rc.3-1"}, ""},
	} {
		if got := newestLike(c.this, c.all); got != c.want {
			t.Errorf("%s: %q, want %q", c.this, got, c.want)
		}
	}
}

// TestImagesOfTheProof holds that the registries are asked for every image that may prove a card.
func TestImagesOfTheProof(t *testing.T) {
	for _, s := range catalog.Samples() {
		if !slices.Contains(imageNames(), s.Image) {
			t.Errorf("%s is not asked for", s.Image)
		}
	}
}
