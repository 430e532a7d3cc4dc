package prepare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// archivePackages are what a run of kgpu may ask a distribution's archive for. The archive offers them with all they depend on
// that the base lacks; packages that they merely recommend are left out, unless listed.
var archivePackages = []string{
	"docker.io", "docker-cli", "containerd", "runc", "containernetworking-plugins",
	"iptables", "nftables", "conntrack", "socat", "ethtool", "ebtables", "ipset", "ipvsadm",
	"gpg", "gpg-agent", "gnupg", "apt-transport-https", "lsb-release", "curl", "wget", "ca-certificates",
	"chrony", "jq", "keepalived", "pciutils", "mokutil", "kmod", "xz-utils", "rsync", "nfs-common",
}

// epoch is what apt puts into a file's name before the version; an archive's file names have none.
var epoch = regexp.MustCompile(`_[0-9]+%3a`)

// archives makes the distribution's archive out of the machine's own mirror of Debian, for each kind of base.
func (p *preparer) archives(ctx context.Context) error {
	pool := filepath.Join(p.Site("deb.debian.org"), "debian/pool")
	if err := p.do(ctx, p.archivePool(pool)); err != nil {
		return err
	}
	debian := item{
		name: "archive deb.debian.org", path: filepath.Join(p.Site("deb.debian.org"), "debian/dists"),
		inputs: []any{p.archivePool(pool).inputs, p.extraDebs(), p.fingerprints()}, files: []string{"debian.go", "repository.go"},
		make: func(ctx context.Context) error {
			if err := p.copyExtraDebs(filepath.Join(pool, "extra")); err != nil {
				return err
			}
			site := p.Site("deb.debian.org")
			components := []string{"main", "contrib", "non-free", "non-free-firmware"}
			if err := p.archive(ctx, filepath.Join(site, "debian"),
				suite{name: "trixie", components: components, pool: "pool"}, suite{name: "trixie-updates", components: components}); err != nil {
				return err
			}
			return p.archive(ctx, filepath.Join(site, "debian-security"), suite{name: "trixie-security", components: components})
		},
	}
	if err := p.do(ctx, debian); err != nil || !p.noble {
		return err
	}
	return p.do(ctx, p.ubuntuArchive(pool, debian))
}

func (p *preparer) ubuntuArchive(pool string, debian item) item {
	site := p.Site("archive.ubuntu.com")
	return item{
		name: "archive archive.ubuntu.com", path: filepath.Join(site, "ubuntu/dists"),
		inputs: []any{debian.inputs}, files: debian.files,
		make: func(ctx context.Context) error {
			root := filepath.Join(site, "ubuntu")
			if err := emptyDir(root); err != nil {
				return err
			}
			if err := os.Symlink(pool, filepath.Join(root, "pool")); err != nil {
				return err
			}
			components := []string{"main", "restricted", "universe", "multiverse"}
			if err := p.archive(ctx, root, suite{name: "noble", components: components, pool: "pool/"},
				suite{name: "noble-updates", components: components}, suite{name: "noble-backports", components: components}); err != nil {
				return err
			}
			return p.archive(ctx, filepath.Join(p.Site("security.ubuntu.com"), "ubuntu"), suite{name: "noble-security", components: components})
		},
	}
}

// archivePool downloads the packages. apt works on the base's package database, so that it fetches what that base lacks.
func (p *preparer) archivePool(pool string) item {
	return item{
		name: "packages debian", path: pool,
		inputs: []any{archivePackages, basePackages}, files: []string{"debian.go"},
		make: func(ctx context.Context) error {
			dir := filepath.Join(p.work(), "apt")
			if err := emptyDir(filepath.Join(dir, "lists/partial")); err != nil {
				return err
			}
			archives := filepath.Join(dir, "archives")
			if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
				return err
			}
			mirror, err := p.debianMirror(ctx)
			if err != nil {
				return err
			}
			list := fmt.Sprintf("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s trixie main\n", mirror)
			if err := os.WriteFile(filepath.Join(dir, "sources.list"), []byte(list), 0o644); err != nil {
				return err
			}
			apt := func(args ...string) error {
				options := []string{
					"-qq", "-y", "-o", "Dir::State::status=" + filepath.Join(p.Base("trixie"), "var/lib/dpkg/status"),
					"-o", "Dir::State::lists=" + filepath.Join(dir, "lists"), "-o", "Dir::State::extended_states=/dev/null",
					"-o", "Dir::Cache::archives=" + archives, "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=",
					"-o", "Dir::Etc::sourcelist=" + filepath.Join(dir, "sources.list"), "-o", "Dir::Etc::sourceparts=-",
					"-o", "Dir::Etc::preferencesparts=-", "-o", "APT::Install-Recommends=false", "-o", "APT::Sandbox::User=root",
					"-o", "APT::Architecture=amd64", "-o", "APT::Architectures=amd64", "-o", "Debug::NoLocking=true",
				}
				return command{env: []string{"DEBIAN_FRONTEND=noninteractive"}}.run(ctx, "apt-get", append(options, args...)...)
			}
			if err := apt("update"); err != nil {
				return err
			}
			if err := apt(append([]string{"install", "--download-only", "--reinstall"}, archivePackages...)...); err != nil {
				return err
			}
			if err := emptyDir(pool); err != nil {
				return err
			}
			debs, err := filepath.Glob(filepath.Join(archives, "*.deb"))
			if err != nil {
				return err
			}
			for _, d := range debs {
				if err := os.Rename(d, filepath.Join(pool, epoch.ReplaceAllString(filepath.Base(d), "_"))); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
