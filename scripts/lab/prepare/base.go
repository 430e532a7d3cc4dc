package prepare

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kgpu.dev/kgpu/scripts/lab/problem"
	"kgpu.dev/kgpu/scripts/lab/process"
)

// basePackages are what a small cloud image has. Neither gpg nor a container runtime is among them: installing those is kgpu's.
var basePackages = []string{
	"systemd", "systemd-sysv", "dbus", "libpam-systemd", "openssh-server", "sudo", "iproute2", "iputils-ping", "procps", "kmod",
	"iptables", "netbase", "curl", "ca-certificates",
}

func (p *preparer) bases(ctx context.Context) error {
	trixie := p.trixie()
	if err := p.do(ctx, trixie); err != nil {
		return err
	}
	if !p.noble {
		return nil
	}
	return p.do(ctx, p.nobleBase(trixie))
}

func (p *preparer) trixie() item {
	dir := p.Base("trixie")
	return item{
		name: "base trixie", path: dir,
		inputs: []any{basePackages, p.fingerprints(), kernelRelease(), p.build(runcWrapper).inputs},
		files:  []string{"files/configure-base.sh"},
		make: func(ctx context.Context) error {
			fresh := filepath.Join(p.work(), "base-trixie")
			if err := os.RemoveAll(fresh); err != nil {
				return err
			}
			if err := p.debootstrap(ctx, "minbase", fresh, basePackages); err != nil {
				return err
			}
			if err := p.script(ctx, "files/configure-base.sh", fresh, p.ClientKey()+".pub", p.caCertificate(), p.archiveKey(),
				p.built(runcWrapper)); err != nil {
				return err
			}
			return replaceBase(fresh, dir)
		},
	}
}

// nobleBase is the trixie base under another name.
func (p *preparer) nobleBase(trixie item) item {
	dir := p.Base("noble")
	return item{
		name: "base noble", path: dir,
		inputs: []any{trixie.inputs}, files: append(trixie.files, "files/present-as-noble.sh"),
		make: func(ctx context.Context) error {
			fresh := filepath.Join(p.work(), "base-noble")
			if err := os.RemoveAll(fresh); err != nil {
				return err
			}
			if err := (command{}).run(ctx, "cp", "-a", "--reflink=auto", p.Base("trixie"), fresh); err != nil {
				return err
			}
			if err := p.script(ctx, "files/present-as-noble.sh", fresh); err != nil {
				return err
			}
			return replaceBase(fresh, dir)
		},
	}
}

// script runs one of the embedded bash files.
func (p *preparer) script(ctx context.Context, name string, args ...string) error {
	text, err := sources.ReadFile(name)
	if err != nil {
		return err
	}
	path := filepath.Join(p.work(), filepath.Base(name))
	if err := os.WriteFile(path, text, 0o755); err != nil {
		return err
	}
	return command{}.run(ctx, "bash", append([]string{path}, args...)...)
}

// replaceBase puts a fresh tree in place of dir, unless hosts run on it: each of them holds a lock on its base.
func replaceBase(fresh, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		unlock, err := process.TryLock(dir)
		if err != nil {
			return &problem.Problem{Step: "replace a base whose recipe has changed", Reason: "LAB_BASE_IN_USE",
				Advice: "Stop the labs whose hosts run on it: `lab down`.", Err: err}
		}
		defer unlock()
	}
	return replaceDir(fresh, dir)
}

// kernelRelease is in the base's stamp because the base lists that kernel's built-in modules.
func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		panic(err) // uname(2) fails only for a bad address
	}
	return unix.ByteSliceToString(u.Release[:])
}
