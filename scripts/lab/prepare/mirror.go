package prepare

import (
	"context"
	"errors"
	"slices"
	"strings"

	"kgpu.dev/kgpu/scripts/lab/problem"
)

// debianMirror is the address of the Debian archive that this machine's apt is configured with. One mirror carries every release.
func (p *preparer) debianMirror(ctx context.Context) (string, error) {
	mirror, err := configuredMirror(ctx)
	if err != nil || mirror != "" {
		return mirror, err
	}
	// apt knows what a repository is only after it has read its Release file.
	if err := (command{}).run(ctx, "apt-get", "update", "-qq"); err != nil {
		return "", err
	}
	if mirror, err = configuredMirror(ctx); err == nil && mirror == "" {
		err = &problem.Problem{Step: "find Debian's archive in apt's sources", Reason: "LAB_NO_DEBIAN",
			Advice: "The lab's hosts are Debian: run it on Debian, with its archive in /etc/apt/sources.list.d.",
			Err:    errors.New("no source has Label: Debian")}
	}
	return mirror, err
}

// configuredMirror is empty when apt has no such source, or has not read it yet.
func configuredMirror(ctx context.Context) (string, error) {
	// The security archive has the same Origin, and another Label.
	out, err := command{}.output(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)",
		"Created-By: Packages", "Component: main", "Origin: Debian", "Label: Debian")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSuffix(first, "/"), nil
}

// debootstrap makes the root of a Debian trixie system in dir. variant is one of mmdebstrap(1).
func (p *preparer) debootstrap(ctx context.Context, variant, dir string, packages []string, options ...string) error {
	mirror, err := p.debianMirror(ctx)
	if err != nil {
		return err
	}
	return command{}.run(ctx, "nice", slices.Concat([]string{"-n", "10", "mmdebstrap", "--variant=" + variant, "--include=" + strings.Join(packages, ",")}, options,
		[]string{"trixie", dir, mirror})...)
}
