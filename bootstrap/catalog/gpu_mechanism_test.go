package catalog

import (
	"maps"
	"testing"
)

func TestMechanism(t *testing.T) {
	on, off := true, false
	gate := func(name string, value *bool) map[string]bool {
		if value == nil {
			return nil
		}
		return map[string]bool{name: *value}
	}
	for _, c := range []struct {
		minor int
		name  string
		value *bool
		want  Mechanism
	}{
		{6, "", nil, Accelerators},
		{6, "Accelerators", &off, ""},
		{8, "", nil, Accelerators},
		{9, "DevicePlugins", &on, Accelerators}, // the plugin is somebody else's
		{10, "", nil, DevicePlugins},
		{10, "Accelerators", &off, DevicePlugins},
		{10, "DevicePlugins", &off, Accelerators},
		{11, "DevicePlugins", &off, ""},
		{36, "", nil, DevicePlugins},
	} {
		m, _ := Kubernetes(c.minor)
		if got := m.Mechanism(gate(c.name, c.value)); got != c.want {
			t.Errorf("1.%d with %s: %q, want %q", c.minor, c.name, got, c.want)
		}
	}
}

// TestDefaultGates: kgpu sets the gate Accelerators only if the kubelet has it, and the user's value wins.
func TestDefaultGates(t *testing.T) {
	for n := oldestMinor; n <= newestMinor; n++ {
		m, _ := Kubernetes(n)
		_, exists := Gate("Accelerators", m.Version())
		if got := m.Gates(nil)["Accelerators"]; got != exists {
			t.Errorf("1.%d: %t, the kubelet has it: %t", n, got, exists)
		}
	}
	m, _ := Kubernetes(8)
	user := map[string]bool{"Accelerators": false, "DevicePlugins": true}
	if got := m.Gates(user); !maps.Equal(got, user) {
		t.Errorf("gates %v, the user said %v", got, user)
	}
}

func TestImages(t *testing.T) {
	for minor, want := range map[int]string{
		6: "gcr.io/google_containers/pause-amd64:3.0", 9: "gcr.io/google_containers/pause-amd64:3.0", 10: "k8s.gcr.io/pause-amd64:3.1",
		11: "k8s.gcr.io/pause:3.1", 21: "k8s.gcr.io/pause:3.4.1", 23: "registry.k8s.io/pause:3.6", 37: "registry.k8s.io/pause:3.10.2",
	} {
		m, _ := Kubernetes(minor)
		if got := m.PauseImage(m.ImageRepository()); got != want {
			t.Errorf("1.%d: %s, want %s", minor, got, want)
		}
	}
}
