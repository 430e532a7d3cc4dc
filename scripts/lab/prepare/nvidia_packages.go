package prepare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// standIn is a package with the name and version of one of NVIDIA's or Ubuntu's, and with what stands in for its content.
type standIn struct {
	name, version string
	depends       []string
	only          string // a virtual package: of all that provide it one can be installed
	parts         []part
}

// part puts files, maintainer scripts among them, into a package's tree.
type part func(tree string) error

func (p *preparer) packStandIn(ctx context.Context, s standIn, pool string) error {
	tree := filepath.Join(p.work(), "deb")
	if err := emptyDir(tree); err != nil {
		return err
	}
	for _, fill := range s.parts {
		if err := fill(tree); err != nil {
			return err
		}
	}
	control := []string{"Package: " + s.name, "Version: " + s.version, "Architecture: amd64", "Maintainer: kgpu lab <lab@example.internal>",
		"Section: admin", "Priority: optional"}
	if len(s.depends) > 0 {
		control = append(control, "Depends: "+strings.Join(s.depends, ", "))
	}
	if s.only != "" {
		control = append(control, "Provides: "+s.only, "Conflicts: "+s.only, "Replaces: "+s.only)
	}
	control = append(control, "Description: a stand-in of the kgpu lab", " Has the original's name and version, and nothing of NVIDIA's in it.", "")
	return packDeb(ctx, tree, strings.Join(control, "\n"), pool)
}

// embedded is one of our files, with the driver's version for @VERSION@.
func embedded(from, to string, mode os.FileMode, d driver) part {
	return func(tree string) error {
		text, err := sources.ReadFile(from)
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(tree, to), []byte(strings.ReplaceAll(string(text), "@VERSION@", d.version)), mode)
	}
}

func text(to, format string, args ...any) part {
	return func(tree string) error {
		return writeFile(filepath.Join(tree, to), fmt.Appendf(nil, format, args...), 0o644)
	}
}

func link(to, target string) part {
	return func(tree string) error {
		path := filepath.Join(tree, to)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.Symlink(target, path)
	}
}

func copied(from, to string, mode os.FileMode) part {
	return func(tree string) error { return copyFile(from, filepath.Join(tree, to), mode) }
}

const libraries = "usr/lib/x86_64-linux-gnu/"

// library is a shared library with its links. The firmware beside it carries the host's cards into containers: see src/nvml/cards.c.
func (p *preparer) library(d driver, name string) []part {
	file := name + ".so." + d.version
	return []part{
		copied(filepath.Join(p.Bin("nvml", d.version), name+".so"), libraries+file, 0o644),
		link(libraries+name+".so.1", file), link(libraries+name+".so", name+".so.1"),
		text("DEBIAN/triggers", "activate-noawait ldconfig\n"),
	}
}

func firmware(d driver) []part {
	dir := "usr/lib/firmware/nvidia/" + d.version
	const etc = "../../../../../etc/kgpu-lab/" // relative: the device plugin sees the host's root below a folder
	return []part{link(dir+"/gsp_lab_cards.bin", etc+"gpu-cards"), link(dir+"/gsp_lab_faults.bin", etc+"gpu-faults")}
}

func (p *preparer) computeLibraries(d driver) []part {
	return append(append(p.library(d, "libnvidia-ml"), p.library(d, "libcuda")...), firmware(d)...)
}

func (p *preparer) smi(d driver) part {
	return copied(filepath.Join(p.Bin("nvml", d.version), "nvidia-smi"), "usr/bin/nvidia-smi", 0o755)
}

func persistenced(d driver) []part {
	return []part{
		embedded("files/nvidia-persistenced.sh", "usr/bin/nvidia-persistenced", 0o755, d),
		embedded("files/nvidia-persistenced.service", "usr/lib/systemd/system/nvidia-persistenced.service", 0o644, d),
		embedded("files/nvidia-units.postinst", "DEBIAN/postinst", 0o755, d),
	}
}

func fabricManager(d driver) []part {
	return []part{
		embedded("files/nvidia-fabricmanager.sh", "usr/bin/nv-fabricmanager", 0o755, d),
		embedded("files/nvidia-fabricmanager.service", "usr/lib/systemd/system/nvidia-fabricmanager.service", 0o644, d),
		embedded("files/nvidia-units.postinst", "DEBIAN/postinst", 0o755, d),
	}
}

// module is what the hosts' modprobe takes for a kernel module: see hosts/cards/kmod.sh.
func module(to string, d driver, flavour, signed string) part {
	return text(to, "# A stand-in of the kgpu lab for NVIDIA's kernel module.\nversion=%s\nflavour=%s\nsigned=%s\n", d.version, flavour, signed)
}

func dkms(d driver, flavour string) []part {
	dir := "usr/src/nvidia-" + d.version
	return []part{
		module(dir+"/nvidia.ko", d, flavour, "no"),
		text(dir+"/dkms.conf", "# A stand-in of the kgpu lab.\nPACKAGE_NAME=nvidia\nPACKAGE_VERSION=%s\n", d.version),
		embedded("files/nvidia-dkms.postinst", "DEBIAN/postinst", 0o755, d), embedded("files/nvidia-dkms.prerm", "DEBIAN/prerm", 0o755, d),
	}
}

// flavours are the two kinds of kernel modules and what they add to names.
var flavours = []struct{ name, suffix string }{{"proprietary", ""}, {"open", "-open"}}

// cudaUbuntu is NVIDIA's repository for Ubuntu: its driver installation guide, "Compute-only (headless) installation". From 590 on
// the names do not have the branch any more; the pinning package and the fabric manager are so since 580.
func (p *preparer) cudaUbuntu(drivers []driver) []standIn {
	all := []standIn{subnetManager()}
	for _, d := range drivers {
		v, b, same := d.version+"-1ubuntu1", "-"+d.branch(), func(name string) string { return name + " (= " + d.version + "-1ubuntu1)" }
		persistence := "nvidia-compute-utils" + b
		all = append(all, pinning(d, v))
		if d.branch() >= "590" {
			b, persistence = "", "nvidia-persistenced"
		}
		library := "libnvidia-compute" + b
		all = append(all,
			standIn{library, v, []string{same("nvidia-utils" + b)}, "libnvidia-ml.so.1", p.computeLibraries(d)},
			standIn{"nvidia-utils" + b, v, nil, "nvidia-lab-smi", []part{p.smi(d)}},
			standIn{persistence, v, []string{same(library)}, "nvidia-lab-persistence", persistenced(d)},
			standIn{"nvidia-fabricmanager", v, nil, "nvidia-lab-fabric", fabricManager(d)}, imex("nvidia-imex", v, d))
		for _, f := range flavours {
			all = append(all, standIn{"nvidia-dkms" + b + f.suffix, v, nil, "nvidia-lab-dkms", dkms(d, f.name)})
		}
	}
	return all
}

// cudaDebian is NVIDIA's repository for Debian: one name for all branches, told apart by their versions.
func (p *preparer) cudaDebian(drivers []driver) []standIn {
	all := []standIn{subnetManager()}
	for _, d := range drivers {
		v, same := d.version+"-1", func(name string) string { return name + " (= " + d.version + "-1)" }
		all = append(all, pinning(d, v),
			standIn{"libnvidia-ml1", v, nil, "", append(p.library(d, "libnvidia-ml"), firmware(d)...)},
			standIn{"libcuda1", v, []string{same("libnvidia-ml1")}, "", p.library(d, "libcuda")},
			standIn{"nvidia-driver-cuda", v, []string{same("libnvidia-ml1"), same("libcuda1")}, "", []part{p.smi(d)}},
			standIn{"nvidia-persistenced", v, []string{same("libnvidia-ml1")}, "", persistenced(d)},
			standIn{"nvidia-fabricmanager", v, nil, "", fabricManager(d)}, imex("nvidia-imex", v, d))
		for _, f := range flavours {
			all = append(all, standIn{"nvidia-kernel" + f.suffix + "-dkms", v, nil, "nvidia-lab-dkms", dkms(d, f.name)})
		}
	}
	return all
}

// pinning keeps a host on a branch.
func pinning(d driver, version string) standIn {
	return standIn{"nvidia-driver-pinning-" + d.branch(), version, nil, "nvidia-lab-pinning", []part{
		text("etc/apt/preferences.d/nvidia-driver-pin", "Package: *nvidia* libcuda*\nPin: version %s.*\nPin-Priority: 1000\n", d.branch()),
	}}
}

// ubuntuDrivers are those of Ubuntu's archive, with modules that Ubuntu built and signed for each of its kernels.
func (p *preparer) ubuntuDrivers(drivers []driver) []standIn {
	kernel := kernelRelease()
	all := append(headers(), diagnostics())
	for _, d := range drivers {
		v, server := d.version+"-0ubuntu0.24.04.1", "-"+d.branch()+"-server"
		same := func(name string) string { return name + " (= " + v + ")" }
		library := "libnvidia-compute" + server
		all = append(all,
			standIn{library, v, nil, "libnvidia-ml.so.1", p.computeLibraries(d)},
			standIn{"nvidia-utils" + server, v, []string{same(library)}, "nvidia-lab-smi", []part{p.smi(d)}},
			standIn{"nvidia-compute-utils" + server, v, []string{same(library)}, "nvidia-lab-persistence", persistenced(d)},
			standIn{"nvidia-fabricmanager-" + d.branch(), v, nil, "nvidia-lab-fabric", fabricManager(d)}, imex("nvidia-imex-"+d.branch(), v, d))
		for _, f := range flavours {
			modules := "linux-modules-nvidia" + server + f.suffix + "-"
			all = append(all,
				standIn{"nvidia-headless-no-dkms" + server + f.suffix, v, []string{same(library), same("nvidia-compute-utils" + server)}, "", nil},
				standIn{modules + kernel, kernelPackageVersion(), nil, "",
					[]part{module("usr/lib/modules/"+kernel+"/kernel/nvidia-"+d.branch()+"srv"+f.suffix+"/nvidia.ko", d, f.name, "yes")}},
				standIn{modules + kernelLine(), kernelPackageVersion(), []string{modules + kernel}, "", nil})
		}
	}
	return all
}

// headers are the packages with the running kernel's headers, without any.
func headers() []standIn {
	kernel := kernelRelease()
	dir := "usr/src/linux-headers-" + kernel
	return []standIn{
		{"linux-headers-" + kernel, kernelPackageVersion(), nil, "", []part{
			text(dir+"/Makefile", "# A stand-in of the kgpu lab: there are no headers.\n"), link("usr/lib/modules/"+kernel+"/build", "/"+dir),
		}},
		{"linux-headers-" + kernelLine(), kernelPackageVersion(), []string{"linux-headers-" + kernel}, "", nil},
	}
}

// kernelLine is what the names of the kernel's meta packages end with, such as generic or cloud-amd64.
func kernelLine() string {
	return regexp.MustCompile(`^[0-9][^-]*(-[0-9][^-]*)*-`).ReplaceAllString(kernelRelease(), "")
}

func kernelPackageVersion() string {
	version, _, _ := strings.Cut(kernelRelease(), "-")
	return version + "-1"
}
