package prepare

import (
	"context"
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"

	"kgpu.dev/kgpu/scripts/lab/problem"
)

// What the recipes run, and the Debian package that brings it.
var tools = []struct{ command, debianPackage string }{
	{"mmdebstrap", "mmdebstrap"},
	{"dpkg-deb", "dpkg"},
	{"apt-get", "apt"},
	{"apt-ftparchive", "apt-utils"},
	{"ssh-keygen", "openssh-client"},
	{"zstd", "zstd"},
}

// tools installs the missing ones with the machine's own apt.
func (p *preparer) tools(ctx context.Context) error {
	if _, err := exec.LookPath("go"); err != nil {
		return &problem.Problem{Step: "look for Go", Reason: "LAB_NO_GO", Advice: "Install it: https://go.dev/doc/install", Err: err}
	}
	var missing []string
	for _, t := range tools {
		if _, err := exec.LookPath(t.command); err != nil {
			missing = append(missing, t.debianPackage)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return p.install(ctx, append(missing, "debian-archive-keyring")...)
}

// compiler installs what programs that call C functions are built with.
func (p *preparer) compiler(ctx context.Context) error {
	if _, err := exec.LookPath("gcc"); err == nil {
		return nil
	}
	return p.install(ctx, "gcc", "libc6-dev")
}

func (p *preparer) install(ctx context.Context, packages ...string) error {
	p.report(fmt.Sprintf("apt-get install %v", packages), "…")
	apt := command{env: []string{"DEBIAN_FRONTEND=noninteractive"}}
	if err := apt.run(ctx, "apt-get", "update", "-qq"); err != nil {
		return err
	}
	return apt.run(ctx, "apt-get", append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...)...)
}

// Measured: a Kubernetes version takes 6 GB while it is compiled and 1.2 GB afterwards, the rest of the default set 2 GB.
const (
	gib            = 1 << 30
	spacePerBuild  = 6 * gib
	spaceOtherwise = 3 * gib
)

// checkSpace refuses to start what would fill the disk.
func (p *preparer) checkSpace() error {
	need := uint64(0)
	for _, r := range p.releases {
		if !p.kubernetes(r).fresh() {
			need = spacePerBuild + spaceOtherwise // one at a time
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(p.Cache, &fs); err != nil {
		return err
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < need {
		return &problem.Problem{
			Step:   fmt.Sprintf("build in %s with %d GiB free, %d GiB needed", p.Cache, free/gib, need/gib),
			Reason: "LAB_DISK_SPACE", Advice: "Make room there, or move the cache with KGPU_LAB_CACHE.",
		}
	}
	return nil
}
