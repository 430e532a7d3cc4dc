package prepare

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestToolkitPackageSaysWhatItsAuthorsWrote(t *testing.T) {
	const theirs = `Source: nvidia-container-toolkit
Section: @SECTION@utils

Package: nvidia-container-toolkit
Architecture: any
Depends: ${misc:Depends}, nvidia-container-toolkit-base (= @VERSION@), libnvidia-container-tools (<< 2.0.0)
Description: NVIDIA Container toolkit
 Provides tools.

Package: nvidia-container-toolkit-base
Architecture: any
Pre-Depends: ${misc:Pre-Depends}
Depends: ${misc:Depends}
Description: NVIDIA Container Toolkit Base
`
	for name, want := range map[string]string{
		"nvidia-container-toolkit": `Package: nvidia-container-toolkit
Version: 1.20.0-1
Maintainer: kgpu lab <lab@example.internal>
Section: utils
Priority: optional
Architecture: amd64
Depends: nvidia-container-toolkit-base (= 1.20.0-1), libnvidia-container-tools (<< 2.0.0)
Description: NVIDIA Container toolkit
 Provides tools.
`,
		"nvidia-container-toolkit-base": `Package: nvidia-container-toolkit-base
Version: 1.20.0-1
Maintainer: kgpu lab <lab@example.internal>
Section: utils
Priority: optional
Architecture: amd64
Description: NVIDIA Container Toolkit Base
`,
	} {
		if got, err := toolkitControl(theirs, name); err != nil || got != want {
			t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
		}
	}
	if got, err := toolkitControl(theirs, "nvidia-container"); err == nil {
		t.Errorf("a package that is not there: %s", got)
	}
}

func TestToolkitStandInsHaveTheVersionThatTheToolkitWants(t *testing.T) {
	for _, name := range []string{"libnvidia-container1", "libnvidia-container-tools"} {
		control, err := toolkitControl(toolkitStandIns, name)
		if err != nil || !strings.Contains(control, "\nVersion: 1.20.0-1\n") || !strings.Contains(control, "stand-in") {
			t.Errorf("%s: %s, %v", name, control, err)
		}
	}
}

func TestMaintainerScriptKeepsItsAuthorsPart(t *testing.T) {
	for _, c := range []struct{ theirs, ours, want string }{
		{"first\n#DEBHELPER#\nexit 0\n", "units\n", "first\nunits\nexit 0\n"},
		{"first\n#DEBHELPER#\nexit 0\n", "", "first\nexit 0\n"},
		{"", "units\n", "units\n"},
		{"", "", ""},
	} {
		if got := maintainerScript(c.theirs, c.ours); got != c.want {
			t.Errorf("%q and %q: got %q, want %q", c.theirs, c.ours, got, c.want)
		}
	}
}

func TestToolkitFilesLieWhereTheirListSays(t *testing.T) {
	p, module := newPreparer(t), t.TempDir()
	list := filepath.Join(module, "base.install")
	for path, text := range map[string]string{
		list: "nvidia-ctk /usr/bin\nnvidia-cdi-refresh.service /lib/systemd/system/\nnvidia-cdi-refresh.env /etc/nvidia-container-toolkit/\n",
		filepath.Join(p.Bin("nvidia-container-toolkit", "1.20.0"), "nvidia-ctk"):          "program",
		filepath.Join(module, "deployments/systemd/nvidia-cdi-refresh.service"):           "unit",
		filepath.Join(module, "deployments/systemd/nvidia-cdi-refresh.env"):               "settings",
		filepath.Join(module, "deployments/systemd/90-nvidia-container-toolkit.preset"):   "not in the list",
		filepath.Join(p.Bin("nvidia-container-toolkit", "1.20.0"), "not-in-the-list-too"): "program",
	} {
		if err := writeFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree := t.TempDir()
	if err := p.installToolkit(module, list, tree); err != nil {
		t.Fatal(err)
	}
	want := map[string]os.FileMode{
		"usr/bin/nvidia-ctk": 0o755, "lib/systemd/system/nvidia-cdi-refresh.service": 0o644,
		"etc/nvidia-container-toolkit/nvidia-cdi-refresh.env": 0o644, "DEBIAN/conffiles": 0o644,
	}
	got := map[string]os.FileMode{}
	err := filepath.WalkDir(tree, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(tree, path)
		got[name] = info.Mode()
		return err
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("files %v, %v, want %v", got, err, want)
	}
	if text, err := os.ReadFile(filepath.Join(tree, "DEBIAN/conffiles")); err != nil || string(text) != "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env\n" {
		t.Errorf("conffiles %s, %v", text, err)
	}
}

func TestImageForCardsAsksForThem(t *testing.T) {
	plain, err := assemble(v1.Config{Cmd: []string{"/bin/bash"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	image, err := withEnvironment(plain, []string{"CUDA_VERSION=12.9.1"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := file.Config; !slices.Equal(c.Env, []string{searchPath, "CUDA_VERSION=12.9.1"}) || !slices.Equal(c.Cmd, []string{"/bin/bash"}) || file.Architecture != "amd64" {
		t.Errorf("config %+v", file)
	}
}
