package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/bootstrap/machine"
	"kgpu.dev/kgpu/bootstrap/manifest"
	"kgpu.dev/kgpu/scripts/manifests"
)

const mirrors = `
repositories:
  kubernetes: {url: "https://mirror.example.com/kubernetes", fingerprint: DE15B14486CD377B9E876E1A234654DA9A296436}
  docker: {url: "https://mirror.example.com/docker", fingerprint: 9DC858229FC7DD38854AE2D88D81803C0EBFCD88}
`

// driver375 is where Ubuntu 16.04's package nvidia-375 kept the driver: all in a directory of its own, but for libcuda.
var driver375 = map[string]string{
	"libcuda.so.1":                        "/usr/lib/x86_64-linux-gnu/libcuda.so.375.82",
	"libnvidia-ml.so.1":                   "/usr/lib/nvidia-375/libnvidia-ml.so.375.82",
	"libnvidia-fatbinaryloader.so.375.82": "/usr/lib/nvidia-375/libnvidia-fatbinaryloader.so.375.82",
	"libnvidia-ptxjitcompiler.so.1":       "/usr/lib/nvidia-375/libnvidia-ptxjitcompiler.so.375.82",
	"nvidia-smi":                          "/usr/lib/nvidia-375/bin/nvidia-smi",
}

// ofVersion is a new cluster of a version with the defaults, but for what more says.
func ofVersion(name, version, more string) scenario {
	return scenario{
		name: name, inventory: threeHosts + fmt.Sprintf("kubernetes:\n  version: %q\n  allowEndOfLife: true\n", version) + more,
		facts: func(f map[string]*facts.Host) {
			f["cp1"].Hostname, f["w1"].Hostname, f["w2"].Hostname = "cp1", "w1", "w2"
			f["w1"].NVIDIA = facts.NVIDIA{Cards: cards("102d", "102d"), Loaded: "470.256.02", Library: "470.256.02"}
			f["w1"].NVIDIA.GPUs, f["w1"].NVIDIA.Files = make([]facts.GPU, 2), driver375
		},
	}
}

var versions = []scenario{
	ofVersion("1.6", "1.6", mirrors),
	ofVersion("1.7", "1.7", mirrors),
	ofVersion("1.8", "1.8", mirrors),
	ofVersion("1.8-device-plugins", "1.8", "  featureGates: {DevicePlugins: true}\n"+mirrors),
	ofVersion("1.9", "1.9", "  ignorePreflightErrors: [SystemVerification]\nimages: {registry: registry.example.com/old}\n"+mirrors),
	ofVersion("1.10", "1.10", mirrors),
	ofVersion("1.10-without-accelerators", "1.10", "  featureGates: {Accelerators: false}\n"+mirrors),
	ofVersion("1.11", "1.11", "  featureGates: {ExpandPersistentVolumes: true}\nnetwork: flannel\n"+mirrors),
	ofVersion("1.12", "1.12", "  featureGates: {RuntimeClass: true}\n"+mirrors),
	ofVersion("1.14", "1.14", mirrors),
	ofVersion("1.16-flannel", "1.16", "network: flannel\n"+mirrors),
	ofVersion("1.28-containerd", "1.28", "runtime: containerd\nnetwork: flannel\n"+mirrors),
	ofVersion("1.23", "1.23", mirrors),
	ofVersion("1.35", "1.35", ""),
	ofVersion("1.36", "1.36", ""),
	ofVersion("1.37", "1.37", "  featureGates: {DRAFractionalCapacityRange: false}\n"),
}

// TestVersions writes down which steps make a cluster of each version with the defaults, and what the plan warns of;
// carrying it out leaves nothing to do. What the steps are given is in the goldens of TestInputs.
func TestVersions(t *testing.T) {
	var out strings.Builder
	for _, c := range versions {
		inv, seen, g := c.planned(t)
		fmt.Fprintf(&out, "# %s", c.name)
		host := ""
		for _, s := range g.Steps {
			if s.Host != host {
				fmt.Fprintf(&out, "\n%s", s.Host)
			}
			host = s.Host
			fmt.Fprintf(&out, " %s", s.ID)
		}
		out.WriteString("\n")
		for _, w := range g.Warnings {
			fmt.Fprintf(&out, "warning %s\n", w)
		}
		t.Run(c.name, func(t *testing.T) { settles(t, inv, seen, g) })
	}
	golden(t, "versions/steps", out.String())
}

func TestDriverMounts(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []machine.DriverMount
	}{
		{"none", nil, nil},
		{"no libcuda", map[string]string{"nvidia-smi": "/usr/bin/nvidia-smi"}, nil},
		{"nvidia-375 of Ubuntu 16.04", driver375, []machine.DriverMount{
			{Name: "lib-x86-64-linux-gnu-libcuda-so-375-82", From: "/usr/lib/x86_64-linux-gnu/libcuda.so.375.82", To: "/usr/local/nvidia/lib64/libcuda.so.1"},
			{Name: "lib-nvidia-375", From: "/usr/lib/nvidia-375", To: "/usr/local/nvidia/lib"},
			{Name: "lib-nvidia-375-bin", From: "/usr/lib/nvidia-375/bin", To: "/usr/local/nvidia/bin"},
		}},
		{"a driver of today", map[string]string{
			"libcuda.so.1": "/usr/lib/x86_64-linux-gnu/libcuda.so.470.256.02", "libnvidia-ml.so.1": "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.470.256.02",
			"nvidia-smi": "/usr/bin/nvidia-smi",
		}, []machine.DriverMount{
			{Name: "lib-x86-64-linux-gnu-libcuda-so-470-256-02", From: "/usr/lib/x86_64-linux-gnu/libcuda.so.470.256.02", To: "/usr/local/nvidia/lib64/libcuda.so.1"},
			{Name: "lib-x86-64-linux-gnu-libnvidia-ml-so-470-256-02", From: "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.470.256.02", To: "/usr/local/nvidia/lib64/libnvidia-ml.so.1"},
			{Name: "bin-nvidia-smi", From: "/usr/bin/nvidia-smi", To: "/usr/local/nvidia/bin/nvidia-smi"},
		}},
	} {
		if got := machine.DriverMounts(&facts.Host{NVIDIA: facts.NVIDIA{Files: c.files}}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestForAccelerators shows what pods of Kubernetes 1.6 mount of the driver.
func TestForAccelerators(t *testing.T) {
	minor, _ := catalog.Kubernetes(6)
	for name, today := range map[string]string{"nvidia-smi": smiToday, "jupyter": jupyterToday} {
		objects := objectsIn(t, []byte(today))
		manifest.ForAccelerators(objects, machine.DriverMounts(&facts.Host{NVIDIA: facts.NVIDIA{Files: driver375}}))
		got, err := manifests.Encode(manifest.Adapt(minor, objects)...)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "versions/1.6-"+name, got)
	}
}

const smiToday = `
apiVersion: batch/v1
kind: Job
metadata: {name: nvidia-smi}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      runtimeClassName: nvidia
      containers:
        - {name: nvidia-smi, image: "registry.k8s.io/cuda-vector-add:v0.1", command: [nvidia-smi], resources: {limits: {nvidia.com/gpu: 1}}}
`

const jupyterToday = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: tf-jupyter}
spec:
  replicas: 1
  selector: {matchLabels: {app: tf-jupyter}}
  template:
    metadata: {labels: {app: tf-jupyter}}
    spec:
      runtimeClassName: nvidia
      containers:
        - name: tensorflow
          image: docker.io/tensorflow/tensorflow:1.4.0-gpu
          ports: [{containerPort: 8888}]
          resources: {limits: {nvidia.com/gpu: 1}}
---
apiVersion: v1
kind: Service
metadata: {name: tf-jupyter, labels: {app: tf-jupyter}}
spec:
  type: NodePort
  selector: {app: tf-jupyter}
  ports: [{port: 8888, protocol: TCP, nodePort: 30061}]
`

// TestPortsHaveTheirProtocol: API servers before 1.21 do not merge ports without one.
func TestPortsHaveTheirProtocol(t *testing.T) {
	count := 0
	var look func(any)
	look = func(v any) {
		switch v := v.(type) {
		case object:
			ports, _ := v["ports"].([]any)
			for _, p := range ports {
				if p, ok := p.(object); ok {
					count++
					if p["protocol"] == nil {
						t.Errorf("a port without a protocol: %v", p)
					}
				}
			}
			for _, inside := range v {
				look(inside)
			}
		case []any:
			for _, inside := range v {
				look(inside)
			}
		}
	}
	for _, text := range [][]byte{manifests.Notebook, manifests.Dashboard, manifests.Weave, manifests.Flannel, manifests.DevicePlugin} {
		objects := objectsIn(t, text)
		for _, o := range objects {
			look(o)
		}
	}
	if count < 4 {
		t.Errorf("%d ports were looked at", count)
	}
}
