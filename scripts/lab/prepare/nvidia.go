package prepare

import (
	"context"
	"path/filepath"
)

// The drivers: the newest of the long-term branch and of two whose packages are named in the new way. NVIDIA's repository for
// Debian 13 began with those.
var (
	nvidiaReleases = []driver{{"580.173.02", 13000}, {"595.91.07", 13020}, {"610.57.04", 13030}}
	forTrixie      = nvidiaReleases[1:]
	forUbuntu      = nvidiaReleases[:2]
)

var nvidiaFiles = []string{
	"nvidia.go", "nvidia_packages.go", "nvidia_cuda.go", "toolkit_debs.go", "repository.go", "files/nvidia-dkms.postinst", "files/nvidia-dkms.prerm",
	"files/nvidia-units.postinst", "files/nvidia-persistenced.sh", "files/nvidia-persistenced.service", "files/nvidia-fabricmanager.sh",
	"files/nvidia-fabricmanager.service", "files/nvlsm.sh", "files/ibstat.sh", "files/nvidia-imex.sh", "files/nvidia-imex.service", "nvidia_fabric.go",
	"files/nvcc.sh", "files/cuda-toolkit.postinst", "files/cuda-toolkit.prerm",
}

// nvidiaDrivers makes the stand-ins for NVIDIA's driver and the repositories that offer them.
func (p *preparer) nvidiaDrivers(ctx context.Context) error {
	var compiled []any
	for _, d := range nvidiaReleases {
		library := p.nvidiaLibrary(d)
		if err := p.do(ctx, library); err != nil {
			return err
		}
		key, err := library.key()
		if err != nil {
			return err
		}
		compiled = append(compiled, key)
	}
	all := []item{
		p.cudaRepository("debian13", "8793F200.pub", p.cudaDebian(forTrixie), compiled), p.cudaRepository("ubuntu2404", "3bf863cc.pub", p.cudaUbuntu(forUbuntu), compiled),
		p.inArchive("deb.debian.org/debian", "trixie-updates", []string{"main", "contrib", "non-free", "non-free-firmware"}, append(headers(), diagnostics()), nil),
	}
	if p.noble {
		all = append(all, p.inArchive("archive.ubuntu.com/ubuntu", "noble-updates", []string{"restricted", "main", "universe", "multiverse"},
			p.ubuntuDrivers(forUbuntu), compiled))
	}
	for _, i := range all {
		if err := p.do(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// cudaRepository is NVIDIA's flat repository for a distribution, with its key in it.
func (p *preparer) cudaRepository(distribution, key string, packages []standIn, compiled []any) item {
	root := filepath.Join(p.Site("developer.download.nvidia.com"), "compute/cuda/repos", distribution, "x86_64")
	return item{
		name: "packages cuda " + distribution, path: root,
		inputs: []any{compiled, p.fingerprints()}, files: nvidiaFiles,
		make: func(ctx context.Context) error {
			if err := p.packStandIns(ctx, append(packages, toolkits()...), root); err != nil {
				return err
			}
			// By its label NVIDIA's repository is told from others.
			if err := p.flatRepository(ctx, root, "Origin=NVIDIA", "Label=NVIDIA CUDA"); err != nil {
				return err
			}
			return copyFile(p.armoredKey(), filepath.Join(root, key), 0o644)
		},
	}
}

// inArchive offers packages in a suite that a distribution's archive has without any. It is made again whenever the archive is.
func (p *preparer) inArchive(archive, name string, components []string, packages []standIn, compiled []any) item {
	root := filepath.Join(p.Cache, "www", archive)
	return item{
		name: "drivers in " + name, path: filepath.Join(root, "nvidia"),
		inputs: []any{identities(stampOf(filepath.Join(root, "dists"))), compiled, p.fingerprints(), kernelRelease()}, files: nvidiaFiles,
		make: func(ctx context.Context) error {
			if err := p.packStandIns(ctx, packages, filepath.Join(root, "nvidia")); err != nil {
				return err
			}
			return p.archive(ctx, root, suite{name: name, components: components, pool: "nvidia"})
		},
	}
}

func (p *preparer) packStandIns(ctx context.Context, packages []standIn, pool string) error {
	if err := emptyDir(pool); err != nil {
		return err
	}
	for _, s := range packages {
		if err := p.packStandIn(ctx, s, pool); err != nil {
			return err
		}
	}
	return nil
}
