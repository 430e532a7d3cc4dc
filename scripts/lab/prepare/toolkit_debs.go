package prepare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// toolkitRevision is PACKAGE_REVISION in the module's versions.mk.
const toolkitRevision = "-1"

// toolkitStandIns are the packages that the toolkit's depend on and whose sources, in C, no Go module has.
const toolkitStandIns = `Package: libnvidia-container1
Architecture: any
Description: a stand-in for the lab with nothing in it

Package: libnvidia-container-tools
Architecture: any
Depends: libnvidia-container1 (>= @VERSION@)
Description: a stand-in for the lab with nothing in it
`

// toolkitRepository is laid out as NVIDIA's: one flat repository for all distributions, and its key above.
func (p *preparer) toolkitRepository() item {
	site := filepath.Join(p.Site("nvidia.github.io"), "libnvidia-container")
	files := []string{"toolkit_debs.go", "repository.go"}
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		files = append(files, "files/nvidia-container-toolkit-base."+name)
	}
	return item{
		name: "packages nvidia-container-toolkit", path: site,
		inputs: []any{p.buildWithC(containerToolkit).inputs, p.fingerprints()}, files: files,
		make: func(ctx context.Context) error {
			fresh := filepath.Join(p.work(), "toolkit")
			packages := filepath.Join(fresh, "stable/deb/amd64")
			if err := emptyDir(packages); err != nil {
				return err
			}
			module, err := download(ctx, containerToolkit.module+"@v"+containerToolkit.version)
			if err != nil {
				return err
			}
			for _, name := range []string{"nvidia-container-toolkit-base", "nvidia-container-toolkit"} {
				if err := p.toolkitDeb(ctx, module, name, packages); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			for _, name := range []string{"libnvidia-container1", "libnvidia-container-tools"} {
				control, err := toolkitControl(toolkitStandIns, name)
				if err != nil {
					return err
				}
				tree := filepath.Join(p.work(), "deb")
				if err := emptyDir(tree); err != nil {
					return err
				}
				if err := packDeb(ctx, tree, control, packages); err != nil {
					return err
				}
			}
			if err := p.flatRepository(ctx, packages); err != nil {
				return err
			}
			if err := copyFile(p.armoredKey(), filepath.Join(fresh, "gpgkey"), 0o644); err != nil {
				return err
			}
			return replaceDir(fresh, site)
		},
	}
}

// toolkitDeb does with the module's own packaging folder what debhelper does.
func (p *preparer) toolkitDeb(ctx context.Context, module, name, pool string) error {
	tree, packaging := filepath.Join(p.work(), "deb"), filepath.Join(module, "packaging/debian")
	if err := emptyDir(tree); err != nil {
		return err
	}
	if err := p.installToolkit(module, filepath.Join(packaging, name+".install"), tree); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(packaging, "copyright"), filepath.Join(tree, "usr/share/doc", name, "copyright"), 0o644); err != nil {
		return err
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		theirs, err := optional(os.ReadFile(filepath.Join(packaging, name+"."+script)))
		if err != nil {
			return err
		}
		ours, err := optional(sources.ReadFile("files/" + name + "." + script))
		if err != nil {
			return err
		}
		if text := maintainerScript(theirs, ours); text != "" {
			if err := writeFile(filepath.Join(tree, "DEBIAN", script), []byte(text), 0o755); err != nil {
				return err
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(packaging, "control"))
	if err != nil {
		return err
	}
	control, err := toolkitControl(string(text), name)
	if err != nil {
		return err
	}
	return packDeb(ctx, tree, control+" Rebuilt for the lab from its Go module.\n", pool)
}

// installToolkit follows a debhelper list of lines "FILE FOLDER". The module's Makefile gathers programs and units in one place first.
func (p *preparer) installToolkit(module, list, tree string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	var conffiles string
	for line := range strings.Lines(string(text)) {
		name, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		from, mode := filepath.Join(p.Bin(containerToolkit.name, containerToolkit.version), name), fs.FileMode(0o755)
		if path.Clean(folder) != "/usr/bin" {
			from, mode = filepath.Join(module, "deployments/systemd", name), 0o644
		}
		to := path.Join(folder, name)
		if err := copyFile(from, filepath.Join(tree, to), mode); err != nil {
			return err
		}
		if strings.HasPrefix(to, "/etc/") {
			conffiles += to + "\n"
		}
	}
	if conffiles == "" {
		return nil
	}
	return writeFile(filepath.Join(tree, "DEBIAN/conffiles"), []byte(conffiles), 0o644)
}

// maintainerScript puts ours in the place that theirs leaves for debhelper's, or is ours alone.
func maintainerScript(theirs, ours string) string {
	if theirs == "" {
		return ours
	}
	return strings.Replace(theirs, "#DEBHELPER#\n", ours, 1)
}

// toolkitControl makes a binary package's control file out of its paragraph in a source package's.
func toolkitControl(text, name string) (string, error) {
	version := containerToolkit.version + toolkitRevision
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		fields, found := strings.CutPrefix(paragraph, "Package: "+name+"\n")
		if !found {
			continue
		}
		control := "Package: " + name + "\nVersion: " + version + "\nMaintainer: kgpu lab <lab@example.internal>\nSection: utils\nPriority: optional\n"
		fields = strings.NewReplacer("${misc:Depends}, ", "", "@VERSION@", version, "Architecture: any", "Architecture: amd64").Replace(fields)
		for line := range strings.Lines(strings.TrimSpace(fields) + "\n") {
			// What debhelper would still fill in is empty for these packages.
			if !strings.Contains(line, "${misc:") {
				control += line
			}
		}
		return control, nil
	}
	return "", fmt.Errorf("no paragraph about the package %s", name)
}

// packDeb packs a tree; dpkg-deb makes the file's name of what the control file says.
func packDeb(ctx context.Context, tree, control, pool string) error {
	if err := writeFile(filepath.Join(tree, "DEBIAN/control"), []byte(control), 0o644); err != nil {
		return err
	}
	return command{}.run(ctx, "dpkg-deb", "--root-owner-group", "-Zzstd", "-z1", "-b", tree, pool)
}

// optional makes an empty text of a file that does not exist.
func optional(text []byte, err error) (string, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}
