package scripts

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"

	"kgpu.dev/kgpu/bootstrap/facts"
)

const featuresFile = "etc/kubernetes/node-feature-discovery/features.d/gfd"

// What was found out with another driver does not count.
func TestFeatures(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.write("gpu/sys/module/nvidia/version", "580.173.02\n")
	s.write(featuresFile, "nvidia.com/cuda.driver-version.full=570.133.20\n")
	s.stub("sleep", "#!/bin/sh\nprintf 'nvidia.com/gpu.product=Tesla-T4\\nnvidia.com/cuda.driver-version.full=580.173.02\\n' >/"+featuresFile+"\n")
	if r := s.ok(s.step("gpu-features")); r.output != "W\tgpu-feature-discovery\n" {
		t.Errorf("it says:\n%s", r.output)
	}
	if got, want := s.read(stepDir+"/out/features"), s.read(featuresFile); got != want || !strings.Contains(got, "Tesla-T4") {
		t.Errorf("output %q of %q", got, want)
	}
}

func TestFeaturesGivesUp(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.fails(s.step("gpu-features"), 1, "GPU_DRIVER_MISSING")
	s.write("gpu/sys/module/nvidia/version", "580.173.02\n")
	s.write(stepDir+"/timeout", "0")
	s.fails(s.step("gpu-features"), 1, "STEP_FAILED")
	s.detail("gpu-feature-discovery does not tell of the cards with driver 580.173.02")
}

func TestNodesGetAndLoseLabels(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.write("node-is-there", "")
	s.value("nodes", "w1\tlabel\tnvidia.com/gpu.count=2\nw1\tlabel\tnvidia.com/mig.strategy-\nw1\tannotation\tkgpu.dev/gpu-labels=nvidia.com/gpu.count\n")
	s.ok(s.step("cluster-nodes"))
	calls := s.calls()
	for _, want := range []string{
		"label --overwrite node w1 nvidia.com/gpu.count=2 nvidia.com/mig.strategy-\n", "annotate --overwrite node w1 kgpu.dev/gpu-labels=nvidia.com/gpu.count\n",
	} {
		contains(t, calls, want)
	}
}

// By hand a host labels its own node, with the kubelet's rights, as the control plane does for kgpu.
func TestHostsLabelTheirNode(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.stub("kubectl", "#!/bin/sh\necho \"$*\" >>/tmp/calls\ncase $* in *' get node w1 '*) cat /before ;; esac\n")
	s.value("node", "w1")
	s.value("keys", `^nvidia\.com/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	s.value("texts", `^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
	s.value("own", "nvidia.com/gpu.product\n")
	const kubelet = "--kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=30s "
	for _, c := range []struct{ name, features, before, label, annotate string }{
		{
			"a new node", "nvidia.com/gpu.count=2\nnvidia.com/gpu.product=Tesla-T4\nnvidia.com/gpu.family=\n", "",
			"nvidia.com/gpu.count=2 nvidia.com/gpu.family=", "nvidia.com/gpu.count,nvidia.com/gpu.family",
		},
		{
			"labels that nobody reports any more, and some that are not kgpu's", "nvidia.com/gpu.count=2\n",
			"--all,kgpu.dev/gpu,nvidia.com/gpu.count,nvidia.com/gpu.product,nvidia.com/mig.strategy", "nvidia.com/gpu.count=2 nvidia.com/mig.strategy-", "nvidia.com/gpu.count",
		},
		{
			"what is no label", "=x\n\nnvidia.com/gpu.count=2\nnvidia.com/a=b c\nnvidia.com/b=$(touch /bad)\nnvidia.com/$(touch /bad)=x\n--all=x\nkubernetes.io/a=b\n", "nvidia.com/gpu.count",
			"nvidia.com/gpu.count=2", "",
		},
		{"nothing at all", "", "", "", ""},
	} {
		s.write(featuresFile, c.features)
		s.write("before", c.before)
		s.write("tmp/calls", "")
		s.ok(s.step("gpu-labels"))
		var label, annotate string
		for line := range strings.Lines(s.read("tmp/calls")) {
			line, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), kubelet)
			if !ok {
				t.Errorf("%s: kubectl %s", c.name, line)
			}
			if words, ok := strings.CutPrefix(line, "label --overwrite node w1 "); ok {
				label = strings.Join(slices.Sorted(strings.FieldsSeq(words)), " ")
			}
			if words, ok := strings.CutPrefix(line, "annotate --overwrite node w1 kgpu.dev/gpu-labels="); ok {
				annotate = words
			}
		}
		if label != c.label || annotate != c.annotate {
			t.Errorf("%s: the labels are %q, annotated %q", c.name, label, annotate)
		}
	}
	s.absent("bad") // or what the host says was run
}

// What the device plugin's pods leave on a host goes with kgpu; what was there before them stays.
func TestToolkitClaimsWhatPodsWrite(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]string{"nothing before": "", "features of somebody else": "etc/kubernetes/node-feature-discovery/features.d/theirs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := toolkitHost(t, "containerd")
			s.must(os.MkdirAll(s.path("etc/kubernetes"), 0o755)) // the kubelet's package brings it
			if there != "" {
				s.write(there, "a=b\n")
			}
			before := s.snapshot()
			s.ok(s.step("gpu-toolkit"))
			for _, left := range []string{featuresFile, "run/nvidia/mps/nvidia.com/gpu/log/control.log", "run/nvidia/mps/shm/x"} {
				s.write(left, "")
			}
			lacks(t, s.ok(s.script("undo_all")).output, "not undone")
			s.same(before)
		})
	}
}

// MPS keeps cards to itself until its control daemon ends in peace.
func TestLeavingGivesCardsBack(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t)
	s.must(os.MkdirAll(s.path("run/nvidia/mps/nvidia.com/gpu"), 0o755))
	s.ok(s.script("mps_off"))
	if calls := s.read("tmp/calls"); calls != "" {
		t.Errorf("without MPS:\n%s", calls)
	}
	s.write("run/nvidia/mps/nvidia.com/gpu/.started", "")
	s.ok(s.script("mps_off"))
	if calls := s.read("tmp/calls"); calls != "nvidia-smi -c DEFAULT\n" {
		t.Errorf("with MPS:\n%s", calls)
	}
	s.write("gpu/smi-status", "9")
	s.ok(s.script("mps_off"))

	// No signal ends one that is stuck in the kernel, and who waits for it waits as long; here it ends when the test lets it.
	s.stub("timeout", "#!/bin/bash\nread -r -t 20 _ <>/tmp/stuck || : >/tmp/waited\nexit 1\n")
	r := s.ok(s.script("mkfifo /tmp/stuck; smi_patience=0; mps_off"))
	if s.exists("tmp/waited") || !strings.Contains(r.output, "the cards stay in the compute mode") {
		t.Errorf("with a driver that hangs:\n%s", r.output)
	}
	stuck, err := os.OpenFile(s.path("tmp/stuck"), os.O_RDWR, 0)
	s.must(err)
	_, err = stuck.WriteString("\n")
	s.must(err)
	s.must(stuck.Close())
}

// newHostForFacts is a host whose cards facts.sh can look at.
func newHostForFacts(t *testing.T) gpuHost {
	s := newGPUHost(t, "0000:17:00.0")
	s.write("gpu/sys/bus/pci/devices/0000:17:00.0/device", "0x20b0\n")
	s.write("gpu/sys/bus/pci/devices/0000:17:00.1/device", "0x1aef\n")
	s.write("gpu/sys/bus/pci/devices/0000:00:02.0/device", "0x9bc4\n")
	s.write("gpu/sys/module/nvidia/version", "580.173.02\n")
	return s
}

// factsScript is facts.sh with the stubs before what the host has.
func factsScript() string {
	return stubbed(Facts())
}

// facts.sh lists instances only where a card is in MIG mode, and reads what was found out about the cards.
func TestFactsOfInstancesAndFeatures(t *testing.T) {
	t.Parallel()
	s := newHostForFacts(t)
	s.write(featuresFile, "nvidia.com/gpu.product=A100\nnvidia.com/cuda.driver.rev=02\n")
	s.write("etc/nvidia-container-runtime/config.toml", "#accept-nvidia-visible-devices-envvar-when-unprivileged = true\naccept-nvidia-visible-devices-as-volume-mounts = true\nmode = \"auto\"\n")
	const list = "GPU 0: A100 (UUID: GPU-0)\n  MIG 1g.5gb      Device  0: (UUID: MIG-0)\n"
	for mode, want := range map[string]string{"Disabled": "", "Enabled": "mig=GPU 0: A100 (UUID: GPU-0)\nmig=  MIG 1g.5gb      Device  0: (UUID: MIG-0)\n"} {
		s.stub("nvidia-smi", "#!/bin/sh\nif [ \"$1\" = -L ]; then printf '"+strings.ReplaceAll(list, "\n", "\\n")+"'; else echo 'GPU-0, A100, 00000000:17:00.0, 40960 MiB, "+mode+"'; fi\n")
		r := s.bash(factsScript())
		want = "gpu=GPU-0, A100, 00000000:17:00.0, 40960 MiB, " + mode + "\n" + want + "gpu-feature=nvidia.com/gpu.product=A100\ngpu-feature=nvidia.com/cuda.driver.rev=02\n"
		if settings := "\ntoolkit-setting=accept-nvidia-visible-devices-as-volume-mounts = true\n"; !strings.Contains(r.output, settings) || strings.Count(r.output, "toolkit-setting=") != 1 {
			t.Errorf("the toolkit's settings are not in\n%s", r.output)
		}
		if !strings.Contains(r.output, want) {
			t.Errorf("%s: no\n%s\nin\n%s", mode, want, r.output)
		}
	}
}

// What nvidia-smi warns of does not hide the cards that work.
func TestFactsOfCardsWithAWarning(t *testing.T) {
	t.Parallel()
	s := newHostForFacts(t)
	for status, want := range map[string][]string{
		"0":  {"gpu=GPU-0, A100, 00000000:17:00.0, 40960 MiB, Disabled"},
		"14": {"gpu=GPU-0, A100, 00000000:17:00.0, 40960 MiB, Disabled"},
		"15": {"nvidia-smi=15"},
	} {
		s.write("gpu/smi-status", status)
		s.write("gpu/smi", "GPU-0, A100, 00000000:17:00.0, 40960 MiB, Disabled\nWARNING: infoROM is corrupted at gpu 0000:17:00.0\n")
		var got []string
		for line := range strings.Lines(s.bash(factsScript()).output) {
			if strings.HasPrefix(line, "gpu=") || strings.HasPrefix(line, "nvidia-smi=") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("status %s: %q, want %q", status, got, want)
		}
	}
}

// What kubectl makes of a node has its instances of cards and the labels that kgpu put there, and no words for what is not there.
func TestFactsTemplateOfNodes(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	node := func(name string, annotations, allocatable object) object {
		return object{"kind": "Node", "metadata": object{"name": name, "uid": "u", "annotations": annotations}, "spec": object{}, "status": object{"allocatable": allocatable, "nodeInfo": object{}}}
	}
	var out strings.Builder
	err := template.Must(template.New("").Parse(clusterTemplate(t, Facts()))).Execute(&out, object{"items": []any{
		node("w1", object{"kgpu.dev/gpu-labels": "nvidia.com/gpu.count"}, object{"nvidia.com/gpu": "2", "nvidia.com/mig-1g.5gb": "7"}),
		node("w2", nil, nil),
	}})
	must(t, err)
	lines := strings.Split(out.String(), "\n")
	n, _ := facts.ParseNode(strings.Split(lines[0], "\t"))
	if want := map[string]int{"nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 7}; !maps.Equal(n.Allocatable, want) || !slices.Equal(n.GPULabels, []string{"nvidia.com/gpu.count"}) {
		t.Errorf("%+v of %q", n, lines[0])
	}
	if want := "node\tw2\tu" + strings.Repeat("\t", 18); lines[1] != want {
		t.Errorf("%q, want %q", lines[1], want)
	}
}
