package plan

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/manifest"
)

// TestExamplesOf16AreAsRendered: what a user copies asks for cards and has the driver as kgpu's own manifests do, on a host
// with Ubuntu 16.04's package nvidia-375.
func TestExamplesOf16AreAsRendered(t *testing.T) {
	minor, ok := catalog.Kubernetes(6)
	if !ok {
		t.Fatal("the catalogue has no Kubernetes 1.6")
	}
	mounts := machine.DriverMounts(&facts.Host{NVIDIA: facts.NVIDIA{Files: driver375}})
	files, err := filepath.Glob("../../examples/workloads/kubernetes-1.6/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := decodeManifest(text)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		got, err := decodeManifest(text)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		pods := 0
		for _, o := range got {
			template, _ := o["spec"].(object)["template"].(object)
			pod, ok := template["spec"].(object)
			if !ok {
				continue
			}
			pods++
			container := pod["containers"].([]any)[0].(object)
			delete(pod, "volumes")
			delete(container, "volumeMounts")
			container["env"] = slices.DeleteFunc(container["env"].([]any), func(v any) bool {
				return slices.Contains([]any{"LD_LIBRARY_PATH", "PATH"}, v.(object)["name"])
			})
			container["resources"] = object{"limits": object{minor.Mechanism(minor.Gates(nil)).Resource(): 1}}
			manifest.MountDriver(pod, mounts)
		}
		if pods == 0 {
			t.Errorf("%s has no pod", f)
		}
		if got = manifest.Adapt(minor, got); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: kgpu renders\n%v\nand the example is\n%v", f, got, want)
		}
	}
}
