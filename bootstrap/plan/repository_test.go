package plan

import (
	"path"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/inventory"
)

// Whatever kgpu installs apt may take from the repository that has it, unless it is the distribution's.
func TestRepositoriesGiveWhatIsWanted(t *testing.T) {
	wanted := func(source catalog.Source, names ...string) {
		t.Helper()
		for _, name := range names {
			given := func(pattern string) bool { ok, err := path.Match(pattern, name); return ok && err == nil }
			if !slices.ContainsFunc(source.Packages, given) {
				t.Errorf("%s is installed, and apt may not take it from %s", name, source.URL)
			}
		}
	}
	wanted(catalog.KubernetesSource, catalog.KubernetesPackages...)
	wanted(catalog.ToolkitSource, catalog.ToolkitPackages...)
	for n := range 100 {
		minor, ok := catalog.Kubernetes(n)
		if !ok {
			continue
		}
		for _, runtime := range []inventory.Runtime{inventory.Docker, inventory.Containerd} {
			for _, set := range RuntimePackages(minor, runtime) {
				if !slices.Contains([]string{"docker.io", "containerd"}, set[0]) {
					wanted(catalog.DockerSource, set...)
				}
			}
		}
	}
	for _, toolkit := range catalog.CUDAToolkits() {
		wanted(catalog.CUDASource, toolkit.Package(), toolkit.CUDNN().Package)
	}
	tried := 0
	for source, repository := range map[catalog.DriverSource]catalog.Source{catalog.FromCUDA: catalog.CUDASource, catalog.FromPPA: catalog.GraphicsDriversSource} {
		for _, release := range releases {
			for _, number := range catalog.DriverOffer(source, release.ID+" "+release.VersionID) {
				for _, fabric := range []catalog.Fabric{catalog.NoFabric, catalog.NVSwitches, catalog.NVLinkSwitches, catalog.NVLinkRack} {
					f := bare(10)
					f.OS = release
					d := catalog.Driver{Source: source, Branch: number, Flavour: catalog.Open}
					p := d.Packages(f.OS.ID, f.Kernel)
					names := slices.Concat(p.First, p.Driver, p.Next)
					if catalog.HasFabricManager(source) {
						more := d.FabricPackages(fabric)
						names = slices.Concat(names, more.Driver, more.Others)
					}
					wanted(repository, slices.DeleteFunc(names, func(name string) bool {
						return strings.HasPrefix(name, "linux-headers-") || name == "infiniband-diags" // the distribution's
					})...)
					tried++
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d drivers were tried", tried)
	}
}
