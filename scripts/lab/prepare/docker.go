package prepare

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// dockerArtefacts are what download.docker.com and cri-dockerd's release page offer.
func (p *preparer) dockerArtefacts(ctx context.Context) error {
	all := []item{p.dockerForDebian()}
	if p.docker {
		all = append(all, p.criDockerdArchive())
	}
	if p.noble {
		all = append(all, p.dockerForUbuntu())
	}
	for _, i := range all {
		if err := p.do(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// criDockerdArchive is laid out as the release's own: cri-dockerd/cri-dockerd.
func (p *preparer) criDockerdArchive() item {
	v := criDockerd.version
	file := filepath.Join(p.Site("github.com"), "Mirantis/cri-dockerd/releases/download/v"+v, "cri-dockerd-"+v+".amd64.tgz")
	return item{
		name: "cri-dockerd release " + v, path: file,
		inputs: []any{p.build(criDockerd).inputs}, files: []string{"docker.go"},
		make: func(context.Context) error { return packRelease(p.built(criDockerd), "cri-dockerd/cri-dockerd", file) },
	}
}

func packRelease(program, name, file string) error {
	in, err := os.Open(program)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	folder := &tar.Header{Typeflag: tar.TypeDir, Name: filepath.Dir(name) + "/", Mode: 0o755, ModTime: packed}
	if err := archive.WriteHeader(folder); err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size(), ModTime: packed}); err != nil {
		return err
	}
	if _, err := io.Copy(archive, in); err != nil {
		return err
	}
	for _, c := range []io.Closer{archive, zipped, out} {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// repackaged is a package of Docker's, put together from files of Debian's packages and, where it has one, our own build of a program.
type repackaged struct {
	deb
	from     []string          // Debian package names
	files    map[string]string // path in Docker's package: path in Debian's
	embedded map[string]string // path in Docker's package: file of ours
	built    program           // its commands are in usr/bin, and its version is the package's; zero: the version is that of from's first
}

// The file lists follow Docker's packages; in particular containerd.io switches its CRI plugin off.
var (
	containerdIO = repackaged{
		deb: deb{name: "containerd.io", fields: []string{
			"Depends: libc6, libseccomp2", "Provides: containerd, runc", "Conflicts: containerd, runc", "Replaces: containerd, runc"},
			conffiles: []string{"/etc/containerd/config.toml", "/etc/containerd/conf.d/10-lab.toml"}, postinst: "files/containerd.io.postinst"},
		from: []string{"containerd", "runc"},
		files: map[string]string{
			"usr/bin/runc": "usr/sbin/runc",
			"usr/lib/systemd/system/containerd.service": "usr/lib/systemd/system/containerd.service",
		},
		embedded: map[string]string{
			"etc/containerd/config.toml":        "files/containerd.io.toml",
			"etc/containerd/conf.d/10-lab.toml": "files/containerd.io-stats.toml",
		},
		built: containerd,
	}
	dockerCLI = repackaged{
		deb:   deb{name: "docker-ce-cli", fields: []string{"Depends: libc6", "Conflicts: docker.io, docker-cli", "Replaces: docker-cli"}},
		from:  []string{"docker-cli"},
		files: map[string]string{"usr/bin/docker": "usr/bin/docker"},
	}
	dockerCE = repackaged{
		deb: deb{name: "docker-ce", fields: []string{
			"Depends: containerd.io (>= 1.6.24), docker-ce-cli, iptables, libc6, libsystemd0", "Conflicts: docker.io", "Replaces: docker.io"},
			postinst: "files/docker-ce.postinst"},
		from: []string{"docker.io", "tini"},
		files: map[string]string{
			"usr/bin/dockerd":                      "usr/sbin/dockerd",
			"usr/bin/docker-proxy":                 "usr/sbin/docker-proxy",
			"usr/bin/docker-init":                  "usr/bin/tini-static",
			"usr/lib/systemd/system/docker.socket": "usr/lib/systemd/system/docker.socket",
		},
		embedded: map[string]string{"usr/lib/systemd/system/docker.service": "files/docker-ce.service"},
	}
)

// dockerForDebian has containerd.io alone: for docker itself kgpu has to take the distribution's docker.io there.
func (p *preparer) dockerForDebian() item {
	return p.dockerRepository("debian", "debian.13~trixie", containerdIO)
}

func (p *preparer) dockerForUbuntu() item {
	return p.dockerRepository("ubuntu", "ubuntu.24.04~noble", containerdIO, dockerCLI, dockerCE)
}

// dockerRepository is what download.docker.com has for a distribution. release is how Docker's versions end there.
func (p *preparer) dockerRepository(distribution, release string, packages ...repackaged) item {
	root := filepath.Join(p.Site("download.docker.com"), "linux", distribution)
	pool := filepath.Join(p.Site("deb.debian.org"), "debian/pool")
	_, codename, _ := strings.Cut(release, "~")
	return item{
		name: "packages docker (" + distribution + ")", path: root,
		inputs: []any{p.archivePool(pool).inputs, p.build(containerd).inputs, p.fingerprints()},
		files: []string{"docker.go", "deb.go", "repository.go", "files/containerd.io.toml", "files/containerd.io.postinst",
			"files/docker-ce.service", "files/docker-ce.postinst"},
		make: func(ctx context.Context) error {
			if err := emptyDir(root); err != nil {
				return err
			}
			if err := copyFile(p.armoredKey(), filepath.Join(root, "gpg"), 0o644); err != nil {
				return err
			}
			for _, r := range packages {
				if err := p.repackage(ctx, r, release, pool, filepath.Join(root, "pool")); err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
			}
			return p.archive(ctx, root, suite{name: codename, components: []string{"stable"}, pool: "pool"})
		},
	}
}

// upstreamVersion is the part of a Debian file name's version that comes from the program's authors.
var upstreamVersion = regexp.MustCompile(`_([0-9.]+)[^_]*_amd64\.deb$`)

func (p *preparer) repackage(ctx context.Context, r repackaged, release, pool, to string) error {
	debian, tree := filepath.Join(p.work(), "unpacked"), filepath.Join(p.work(), "deb")
	for _, dir := range []string{debian, tree} {
		if err := emptyDir(dir); err != nil {
			return err
		}
	}
	for i, name := range r.from {
		found, err := filepath.Glob(filepath.Join(pool, name+"_*.deb"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("want one package %s in %s, found %d", name, pool, len(found))
		}
		if err := (command{}).run(ctx, "dpkg-deb", "-x", found[0], debian); err != nil {
			return err
		}
		if i == 0 {
			r.version = "5:" + upstreamVersion.FindStringSubmatch(found[0])[1]
		}
	}
	for path, from := range r.files {
		info, err := os.Stat(filepath.Join(debian, from))
		if err != nil {
			return err
		}
		if err := copyFile(filepath.Join(debian, from), filepath.Join(tree, path), info.Mode().Perm()); err != nil {
			return err
		}
	}
	for path, from := range r.embedded {
		text, err := sources.ReadFile(from)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(tree, path), text, 0o644); err != nil {
			return err
		}
	}
	if r.built.name != "" {
		if err := os.CopyFS(filepath.Join(tree, "usr/bin"), os.DirFS(p.Bin(r.built.name, r.built.version))); err != nil {
			return err
		}
		r.version = r.built.version
	}
	r.version += "-1~" + release
	r.root = tree
	return p.buildDeb(ctx, r.deb, to)
}
