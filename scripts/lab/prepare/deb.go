package prepare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// deb is a binary package to be built: control fields, and its files in a folder.
type deb struct {
	name, version string
	fields        []string // further control fields, "Depends: …"
	conffiles     []string // absolute paths
	postinst      string   // file under files/; empty for none
	root          string   // the tree with the package's files
}

// buildDeb writes pool/NAME_VERSION_amd64.deb. It compresses lightly: these packages travel no further than this machine.
func (p *preparer) buildDeb(ctx context.Context, d deb, pool string) error {
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: kgpu lab <lab@example.internal>\nSection: admin\nPriority: optional\n",
		d.name, d.version)
	for _, f := range d.fields {
		control += f + "\n"
	}
	control += "Description: " + d.name + ", rebuilt for the lab\n"
	if err := writeFile(filepath.Join(d.root, "DEBIAN/control"), []byte(control), 0o644); err != nil {
		return err
	}
	if len(d.conffiles) > 0 {
		list := strings.Join(d.conffiles, "\n") + "\n"
		if err := writeFile(filepath.Join(d.root, "DEBIAN/conffiles"), []byte(list), 0o644); err != nil {
			return err
		}
	}
	if d.postinst != "" {
		text, err := sources.ReadFile(d.postinst)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(d.root, "DEBIAN/postinst"), text, 0o755); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(pool, 0o755); err != nil {
		return err
	}
	path := filepath.Join(pool, d.name+"_"+strings.TrimPrefix(d.version, "5:")+"_amd64.deb")
	return command{}.run(ctx, "dpkg-deb", "--root-owner-group", "-Zzstd", "-z1", "-b", d.root, path)
}
