package scripts

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"

	"kgpu.dev/kgpu/bootstrap/doctor"
)

// examined runs doctor.sh on a host with cards, with the sandbox's stubs in front and little patience.
func (s gpuHost) examined() *doctor.Evidence {
	s.t.Helper()
	return parsed(s.sandbox, strings.ReplaceAll(stubbed(Doctor()), "patience=8", "patience=1"), doctor.ParseEvidence)
}

func newPatient(t *testing.T) gpuHost {
	t.Helper()
	s := newGPUHost(t, "0000:17:00.0", "0000:65:00.0")
	s.write("gpu/sys/module/nvidia/version", "595.91.07\n")
	s.write("gpu/dev/nvidia0", "")
	s.write("gpu/kernel-log", "")
	s.stub("nvidia-smi", `#!/bin/sh
case $* in
*mig.mode*) printf '00000000:17:00.0, Disabled, Enabled\n00000000:65:00.0, [N/A], [N/A]\n' ;;
*) printf '00000000:17:00.0, Enabled\n00000000:65:00.0, Disabled\n' ;;
esac
`)
	s.stub("systemctl", "#!/bin/sh\nprintf 'LoadState=loaded\\nId=kubelet.service\\nActiveState=failed\\nResult=start-limit-hit\\nNRestarts=5\\nUnitFileState=enabled\\n\\n"+
		"Id=docker.service\\nLoadState=not-found\\nActiveState=inactive\\n'\n")
	return s
}

// TestDoctor holds that the script changes nothing, and tells what there is.
func TestDoctor(t *testing.T) {
	t.Parallel()
	s := newPatient(t)
	s.write("gpu/kernel-log", "2026-11-20T13:00:00+00:00 w1 kernel: usb 1-1: new device\n2026-11-20T13:00:01+00:00 w1 kernel: NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus.\n"+
		"w1 kernel: INFO: task kworker/2:3:1275 blocked for more than 120 seconds.\nw1 kernel: Workqueue: events os_execute_work_item\n")
	s.stub("journalctl", "#!/bin/sh\ncase $* in *-k*) cat /gpu/kernel-log ;; *kubelet*) echo 'kubelet: no such flag' ;; esac\n")
	s.write("var/run/cdi/nvidia.yaml", "hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.173.02\nhostPath: /usr/lib/libnvidia-ml.so.580.173.02\n")
	s.write("etc/containerd/config.d/99-nvidia.toml", "")
	s.write("etc/apt/sources.list.d/docker.list", "deb [arch=amd64 signed-by=/etc/apt/keyrings/docker.gpg] https://download.docker.com/linux/debian trixie stable\n")
	s.write("etc/apt/sources.list.d/docker.sources", "Types: deb\nURIs: https://ada:hidden@download.docker.com/linux/debian\nSuites: trixie\nComponents: stable\nSigned-By: /etc/apt/keyrings/docker.asc\n")
	s.write("etc/apt/sources.list.d/off.sources", "Types: deb\nURIs: https://download.docker.com/linux/debian\nSuites: trixie\nComponents: stable\nEnabled: no\n")
	s.write("etc/apt/sources.list.d/other.list", "deb https://example.org/debian trixie main\n")
	s.write("var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncgroupDriver: systemd\n")
	s.write("etc/kubernetes/pki/ca.key", "the-key\n")
	before := s.snapshot()
	e := s.examined()
	s.same(before)
	if len(e.KernelLog) != 3 || !strings.Contains(e.KernelLog[0], "Xid") || !strings.Contains(e.KernelLog[2], "Workqueue") {
		t.Errorf("the kernel's log: %q", e.KernelLog)
	}
	if !e.Asked || e.SMI != 0 || len(e.Cards) != 2 || e.Cards[1].Persistent || len(e.MIG) != 1 || e.MIG[0].Pending != "Enabled" {
		t.Errorf("the cards: %+v, %+v, status %d", e.Cards, e.MIG, e.SMI)
	}
	if u := e.Units["kubelet"]; len(e.Units) != 1 || u.State != "failed" || u.Result != "start-limit-hit" || u.Restarts != 5 || !slices.Equal(u.Log, []string{"kubelet: no such flag"}) {
		t.Errorf("the units: %+v", e.Units)
	}
	if len(e.Sources) != 2 || e.Sources[0].SignedBy != "/etc/apt/keyrings/docker.gpg" || e.Sources[1].SignedBy != "/etc/apt/keyrings/docker.asc" || e.Sources[0].URL != e.Sources[1].URL {
		t.Errorf("the repositories: %+v", e.Sources)
	}
	if want := "Conflicting values set for option Signed-By regarding source https://download.docker.com/linux/debian/ trixie: /etc/apt/keyrings/docker.gpg != /etc/apt/keyrings/docker.asc"; e.AptRefuses != want {
		t.Errorf("apt refuses %q, want %q", e.AptRefuses, want)
	}
	if e.CDI["/var/run/cdi/nvidia.yaml"] != "580.173.02" || len(e.ContainerdStray) != 1 || e.KubeletCgroup != "systemd" || len(e.DeviceNodes) != 1 {
		t.Errorf("%+v", e)
	}
}

// The control plane asks one question about its objects, and what device plugins say where there are any.
func TestDoctorOfACluster(t *testing.T) {
	t.Parallel()
	s := newPatient(t)
	s.write("etc/kubernetes/admin.conf", "")
	s.stub("kubectl", `#!/bin/sh
echo "$4 $5 $6 $7" >>/asked
case "$*" in
  *'get nodes,pods,events --all-namespaces '*)
    [ ! -f /first ] || cat /first
    printf 'waiting-pod=\tkube-system\tnew\t\t\t\t\n\nwaiting-pod=\tkgpu-dashboard\tweb\tw1\t2026-11-20T13:00:00Z\t\t\tc ImagePullBackOff m\n'
    printf 'event=\t2026-11-20T13:00:00Z\tw1\tFailed\tx/p\tno NVML\nevent=\t2026-11-20T13:00:00Z\tw1\tFailed\tx/p\tof no concern\n'
    printf 'node\tw1\t\tTrue\t\t\t\t\t\t\t\tnvidia.com/gpu=2 \tnvidia.com/gpu=2 \n'
    for i in $(seq 3000); do printf 'waiting-pod=\tkgpu-notebook\tn%s\t\t\t2026-11-20T13:00:00Z\tno card\n' "$i"; done
    [ ! -f /more ] || cat /more ;;
  *'logs -l app.kubernetes.io/name=nvidia-device-plugin '*) echo '[pod/plugin/c] No devices found. Waiting indefinitely.'; echo '[pod/plugin/c] well' ;;
  *'-n kube-system logs crashes -c c '*) printf 'begins\nplugin/loop: \033Loop\n' ;;
  *) exit 1 ;;
esac
`)
	e := s.examined()
	if e.Cluster == nil || len(e.Cluster.Waiting) != 400 || e.Cluster.Waiting[0].Name != "web" || e.Cluster.Waiting[1].Scheduler != "no card" || len(e.Cluster.Nodes) != 1 || len(e.Cluster.Events) != 1 {
		t.Errorf("%+v", e.Cluster)
	}
	if asked := s.read("asked"); strings.Count(asked, "\n") != 1 {
		t.Errorf("it asked\n%s", asked)
	}
	s.write("more", "pod=\tw1\tplugin\tRunning\t\nweave-pod=weave-net-x w1\n")
	e = s.examined()
	if len(e.Cluster.Pods) != 1 || !slices.Equal(e.Cluster.PluginLog, []string{"[pod/plugin/c] No devices found. Waiting indefinitely."}) || len(e.Cluster.WeavePods) != 1 {
		t.Errorf("%+v", e.Cluster)
	}
	if asked := s.read("asked"); strings.Count(asked, "\n") != 4 {
		t.Errorf("it asked\n%s", asked)
	}
	s.write("first", "waiting-pod=\tkube-system\tcrashes\tw1\t\t\t\ti PodInitializing \tc CrashLoopBackOff back-off 5m0s\n")
	if e = s.examined(); len(e.Cluster.Waiting) == 0 || e.Cluster.Waiting[0].LogEnd != "plugin/loop: Loop" {
		t.Errorf("the log of a pod that crashes: %+v", e.Cluster.Waiting[:1])
	}
}

// An API server that is slow is waited for, longer than a program of the host.
func TestDoctorOfASlowCluster(t *testing.T) {
	t.Parallel()
	s := newPatient(t)
	s.write("etc/kubernetes/admin.conf", "")
	s.stub("kubectl", "#!/bin/sh\ncase $* in *=20s*) sleep 2.5 ;; *) exit 1 ;; esac\nprintf 'node\\tw1\\t\\tTrue\\t\\t\\t\\t\\t\\t\\t\\tnvidia.com/gpu=2 \\tnvidia.com/gpu=2 \\n'\n")
	if e := s.examined(); e.Cluster == nil || len(e.Cluster.Nodes) != 1 {
		t.Errorf("%+v", e.Cluster)
	}
}

// A nvidia-smi that nobody can end keeps nothing else from being told, and one whose log never ends is cut.
func TestDoctorOfASickHost(t *testing.T) {
	t.Parallel()
	s := newPatient(t)
	s.stub("nvidia-smi", "#!/bin/sh\nsetsid sh -c 'trap \"\" TERM; sleep 20' &\nwait\n")
	s.stub("dkms", "#!/bin/sh\nexec yes\n")
	s.stub("journalctl", "#!/bin/sh\ncase $* in *-k*) for i in $(seq 3000); do echo \"NVRM: line $i\"; done ;; esac\n")
	e := s.examined()
	if !e.Asked || e.SMI != 124 {
		t.Errorf("nvidia-smi: %d", e.SMI)
	}
	if n := len(e.DKMS); n == 0 || n > 400 {
		t.Errorf("dkms: %d lines", n)
	}
	if n := len(e.KernelLog); n != 400 || e.KernelLog[0] != "NVRM: line 1" || e.KernelLog[n-1] != "NVRM: line 3000" || e.KernelLog[150] != "NVRM: line 2751" {
		t.Errorf("the kernel's log: %d lines, the last is %q", n, e.KernelLog[n-1])
	}
}

// A journal that cannot be read in time is no reason to miss what the kernel has said since.
func TestDoctorOfALongJournal(t *testing.T) {
	t.Parallel()
	s := newPatient(t)
	s.stub("journalctl", "#!/bin/sh\ncase $* in *-k*) echo 'NVRM: long ago'; exec sleep 20 ;; esac\n")
	s.stub("dmesg", "#!/bin/sh\necho '[ 9.1] NVRM: lately'\n")
	if got := s.examined().KernelLog; !slices.Equal(got, []string{"NVRM: long ago", "[ 9.1] NVRM: lately"}) {
		t.Errorf("the kernel's log: %q", got)
	}
	s.stub("journalctl", "#!/bin/sh\ncase $* in *-k*) echo 'NVRM: all of it' ;; esac\n")
	if got := s.examined().KernelLog; !slices.Equal(got, []string{"NVRM: all of it"}) {
		t.Errorf("the kernel's log: %q", got)
	}
}

// Facts come of such a host, too.
func TestFactsOfASickHost(t *testing.T) {
	t.Parallel()
	s := newPatient(t)
	// Nobody can end what left the group, and it holds the pipe until the test lets it go: as if it were stuck in the kernel.
	s.stub("nvidia-smi", "#!/bin/sh\nsetsid sh -c 'trap \"\" TERM; for i in $(seq 150); do [ -e /tmp/over ] && exit; sleep 0.2; done; touch /tmp/waited-for' &\nwait\n")
	for _, id := range []string{"0000:17:00.0", "0000:65:00.0"} {
		s.write("gpu/sys/bus/pci/devices/"+id+"/device", "0x20b0\n")
	}
	text := strings.NewReplacer("-k 2 28", "-k 1 3", "-k 5 20", "-k 1 1").Replace(stubbed(Facts()))
	r := s.ok(s.bash(text))
	s.write("tmp/over", "")
	if s.exists("tmp/waited-for") || !strings.Contains(r.output, "\nnvidia-smi=124\n") || !strings.HasSuffix(r.output, "end=1\n") {
		t.Errorf("it says:\n%s", r.output)
	}
}

// The holds of kgpu's ledger are compared with dpkg's.
func TestDoctorHolds(t *testing.T) {
	t.Parallel()
	s := newPatient(t)
	s.repository(deb{name: "kubelet", version: "1.36.3-1.1"}, deb{name: "kubectl", version: "1.36.3-1.1"})
	s.stub("systemctl", readFile(t, "testdata/systemctl"))
	s.ok(s.script("apt-get update; apt-get install -y kubelet kubectl; hold kubelet kubectl; apt-mark unhold kubelet"))
	if got := s.examined().HoldsLost; !slices.Equal(got, []string{"kubelet"}) {
		t.Errorf("lost: %v", got)
	}
	s.value("packages", "kubelet\n")
	s.ok(s.step("doctor-hold"))
	if got := s.examined().HoldsLost; len(got) > 0 {
		t.Errorf("lost after it was held again: %v", got)
	}
	s.value("packages", "bash\n")
	s.fails(s.step("doctor-hold"), 1, "STEP_FAILED")
}

// The answers of the API server are read by templates, which go through objects that lack anything.
func TestDoctorTemplates(t *testing.T) {
	t.Parallel()
	plugin := stepText(t, "doctor-plugin")
	_, quantities, _ := strings.Cut(string(plugin), "quantities='")
	quantities, _, _ = strings.Cut(quantities, "'\n")
	cluster := clusterTemplate(t, Doctor())
	for name, c := range map[string]struct{ source, object, want string }{
		"nodes": {cluster, `{"items":[{"kind":"Node","metadata":{"name":"new"},"spec":{},"status":{}},
			{"kind":"Node","metadata":{"name":"w1","labels":{"kgpu.dev/drained":"kgpu"}},"spec":{"unschedulable":true},
			 "status":{"capacity":{"nvidia.com/gpu":"2"},"allocatable":{"nvidia.com/gpu":"1"},"conditions":[{"type":"Ready","status":"True","message":"fine\nnode=\tcp1"},{"type":"GPUHealthy","status":"False","message":"lost"}]}}]}`,
			"node\tnew" + strings.Repeat("\t", 19) + "\nnode\tw1\t\tTrue\t\t\t\t\ttrue\tkgpu.dev/drained=kgpu \t\tnvidia.com/gpu=2 \tnvidia.com/gpu=1 \t\tReady=True GPUHealthy=False \t\t\tfine\\u000Anode\\u003D\\u0009cp1\tlost\t\t\n"},
		"device plugins": {cluster, `{"items":[{"kind":"Pod","metadata":{"namespace":"kube-system","name":"p","labels":{"app.kubernetes.io/name":"nvidia-device-plugin"}},"spec":{"nodeName":"w1"},"status":{"phase":"Running","containerStatuses":[{"name":"c","ready":false,"state":{"waiting":{"reason":"CrashLoopBackOff"}}},{"name":"d","ready":true,"state":{}}]}}]}`,
			"pod=\tw1\tp\tRunning\tc CrashLoopBackOff ; \nwaiting-pod=\tkube-system\tp\tw1\t\t\t\tc CrashLoopBackOff \n"},
		"weave": {cluster, `{"items":[{"kind":"Pod","metadata":{"namespace":"kube-system","name":"weave-net-x","labels":{"name":"weave-net"}},"spec":{"nodeName":"w1"},"status":{}},
			{"kind":"Pod","metadata":{"namespace":"ml","name":"weave-net-y","labels":{"name":"weave-net","app.kubernetes.io/name":"nvidia-device-plugin"}},"spec":{"nodeName":"w1"},"status":{}}]}`,
			"weave-pod=weave-net-x w1\nwaiting-pod=\tkube-system\tweave-net-x\tw1\t\t\t\n"},
		"pods that wait": {cluster, `{"items":[{"kind":"Pod","metadata":{"namespace":"ml","name":"p"},"status":{"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"ErrImagePull"}}}]}},
			{"kind":"Pod","metadata":{"namespace":"kube-system","name":"goes","deletionTimestamp":"2026-11-20T13:00:00Z"},"status":{}},
			{"kind":"Pod","metadata":{"namespace":"kube-system","name":"new"},"spec":{},"status":{}},
			{"kind":"Pod","metadata":{"namespace":"kgpu-notebook","name":"waits"},"spec":{},"status":{"conditions":[{"type":"PodScheduled","status":"False","lastTransitionTime":"2026-11-20T13:00:00Z","reason":"Unschedulable","message":"0/1 nodes are available."}]}},
			{"kind":"Pod","metadata":{"namespace":"kgpu-dashboard","name":"web"},"spec":{"nodeName":"w1"},"status":{"conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"False","lastTransitionTime":"2026-11-20T13:00:00Z"}],
			 "initContainerStatuses":[{"name":"i","state":{"terminated":{"reason":"Completed"}}}],
			 "containerStatuses":[{"name":"c","state":{"waiting":{"reason":"ImagePullBackOff","message":"m\nwaiting-pod=\t"}}},{"name":"d","state":{"waiting":{}}},{"name":"e","state":{"running":{}}}]}}]}`,
			"waiting-pod=\tkube-system\tnew\t\t\t\t\n" +
				"waiting-pod=\tkgpu-notebook\twaits\t\t\t2026-11-20T13:00:00Z\t0/1 nodes are available.\n" +
				"waiting-pod=\tkgpu-dashboard\tweb\tw1\t2026-11-20T13:00:00Z\t\t\tc ImagePullBackOff m\\u000Awaiting-pod\\u003D\\u0009\n"},
		"quantities": {quantities, `{"status":{"capacity":{"cpu":"8","nvidia.com/gpu":"0","nvidia.com/mig-1g.5gb":"7"},"allocatable":{"cpu":"8","nvidia.com/gpu":"0","nvidia.com/mig-1g.5gb":"6"}}}`,
			"have 0\nhave 7\ncan 0\ncan 6\n"},
		"warnings": {cluster, `{"items":[{"kind":"Event","type":"Normal","metadata":{"namespace":"x"},"reason":"Started"},{"kind":"Event","metadata":{"namespace":"x"},"reason":"Started"},{"kind":"Event","type":"Warning","metadata":{"namespace":"x"},"reason":"Failed","eventTime":null},{"kind":"Event","type":"Warning","metadata":{"namespace":"x"},"lastTimestamp":"2026-11-20T13:00:00Z","source":{"host":"w1"},"reason":"Failed","involvedObject":{"name":"p"},"message":"m\nevent=\t"}]}`,
			"event=\t<no value>\t\tFailed\tx/\t\nevent=\t2026-11-20T13:00:00Z\tw1\tFailed\tx/p\tm\\u000Aevent\\u003D\\u0009\n"},
	} {
		var object any
		must(t, json.Unmarshal([]byte(c.object), &object))
		var out strings.Builder
		must(t, template.Must(template.New(name).Parse(c.source)).Execute(&out, object))
		if got := strings.ReplaceAll(out.String(), "<nil>", "<no value>"); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}

// Units that are down start, and those that would disturb containers are not started anew.
func TestDoctorUnits(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("var/units/kubelet.service", "loaded,inactive,enabled\n")
	s.write("var/units/nvidia-persistenced.service", "loaded,failed,enabled\n")
	s.value("units", "kubelet.service\nnvidia-persistenced.service") // as the planner writes it
	s.value("node", "w1\n")
	s.value("cards", "2\n")
	s.ok(s.step("doctor-units"))
	log := s.read("var/units.log")
	contains(t, log, "start -- kubelet.service\n", "restart -- nvidia-persistenced.service\n")
	lacks(t, log, "restart -- kubelet")
	s.absent("var/lib/kgpu/ledger/000001") // or what does not last is in the ledger
	s.value("units", "docker.service\n")
	s.fails(s.step("doctor-units"), 1, "STEP_FAILED")
}

// A kubelet that starts anew offers no card for some seconds, and before it speaks the cluster has what it said last: who
// looked then would find a node that is well, or one without cards.
func TestDoctorUnitsUntilTheNodeHasSettled(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/kubernetes/kubelet.conf", "")
	s.write("var/units/kubelet.service", "loaded,inactive,enabled\n")
	s.value("units", "kubelet.service\n")
	s.value("node", "w1\n")
	s.value("cards", "2\n")
	s.stub("kubectl", `#!/bin/bash
echo >>/asked
case $(wc -l </asked) in
1) echo 'True 2020-01-01T00:00:00Z 2' ;; # what it said before it went down
2) exit 1 ;;
3) echo "False $(date -u +%FT%TZ) 2" ;;
4) echo "True $(date -u +%FT%TZ) 0" ;;
*) echo "True $(date -u +%FT%TZ) 2" ;;
esac
`)
	r := s.ok(s.step("doctor-units"))
	var waits []string
	for line := range strings.Lines(r.output) {
		if what, ok := strings.CutPrefix(strings.TrimSpace(line), "W\t"); ok {
			waits = append(waits, what)
		}
	}
	if want := []string{"the node w1", "the cards of w1: 0 of 2"}; !slices.Equal(waits, want) {
		t.Errorf("it waited for %q, want %q", waits, want)
	}
	if got := strings.Count(s.read("asked"), "\n"); got != 5 {
		t.Errorf("it asked %d times, want 5", got)
	}
}

// A node whose driver hangs is drained of what can go; what was told to end and cannot is no hindrance.
func TestDoctorDrain(t *testing.T) {
	t.Parallel()
	s := nodeHost(t)
	s.value("patience", "120\n")
	s.write("stuck", "There are pending pods in node \"w1\" when an error occurred: global timeout reached: 2m0s\n")
	s.write("pods", "default/train-1 Running ReplicaSet Ready=True ending\nkube-system/kube-proxy-y Running DaemonSet Ready=True\nkube-system/etcd-w1 Running mirror Node\ndefault/done Succeeded\n")
	s.ok(s.step("node-drain"))
	s.called("label --overwrite node w1 kgpu.dev/drained=kgpu", "cordon w1", drainCall, "label --overwrite node w1 kgpu.dev/gpu=drained")

	s = nodeHost(t)
	s.value("patience", "120\n")
	s.write("stuck", "Cannot evict pod as it would violate the pod's disruption budget.\n")
	s.write("pods", "default/train-1 Running\n")
	s.fails(s.step("node-drain"), 1, "NODE_DRAIN_BLOCKED")
	s.detail("disruption budget", "default/train-1")
	s.called("label --overwrite node w1 kgpu.dev/drained=kgpu", "cordon w1", drainCall, "uncordon w1", "label node w1 kgpu.dev/drained-")
}

// The device plugin is waited for until another pod runs and no card is unhealthy.
func TestDoctorPlugin(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.value("node", "w1\n")
	s.write("calls", "")
	s.stub("sleep", "#!/bin/sh\n")
	s.stub("kubectl", `#!/bin/bash
case "$* " in
*" /readyz "*) printf ok ;;
*" get pods "*deletionTimestamp*) if [[ -e /young ]]; then echo 'b True'; else touch /young; echo 'b False'; fi ;;
*" get pods "*) printf 'a ' ;;
*" delete pods "*) call=$*; echo "${call#*--request-timeout=30s }" >>/calls ;;
*" get node w1 "*) if [[ -e /healthy ]]; then printf 'have 0\nhave 2\ncan 0\ncan 2\n'; else touch /healthy; printf 'have 0\nhave 2\ncan 0\ncan 1\n'; fi ;;
esac
`)
	r := s.ok(s.step("doctor-plugin"))
	s.called("delete pods -n kube-system -l app.kubernetes.io/name=nvidia-device-plugin --field-selector spec.nodeName=w1 --wait=false")
	contains(t, r.output, "the device plugin of w1", "the cards of w1: 1 of 2 can be had")
}

// The check that runs on the node tells the cluster whether its cards answer, and says since when.
func TestGPUWatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ smi, log, before, want string }{
		"well":         {"printf '00000000:17:00.0\\n00000000:65:00.0\\n'", "", "True 2026-01-01T00:00:00Z", `"status":"True","reason":"AllCardsAnswer","message":"the driver reaches 2 of 2 cards"`},
		"one is lost":  {"echo 00000000:17:00.0; exit 15", "", "", `"status":"False","reason":"CardLost","message":"the driver reaches 1 of 2 cards"`},
		"off the bus":  {"printf '00000000:17:00.0\\n00000000:65:00.0\\n'", `NVRM: Xid (PCI:0000:65:00): 79, pid='"x\`, "", `"reason":"CardLost","message":"NVRM: Xid (PCI:0000:65:00): 79, pid='x"`},
		"it hangs":     {"exec sleep 30", "", "", `"status":"False","reason":"DriverHangs","message":"nvidia-smi does not answer"`},
		"driver fails": {"echo 'Failed to initialize NVML: Driver/library version mismatch'; echo 'NVML library version: 580.159'; exit 18", "", "", `"reason":"DriverFails","message":"nvidia-smi: Failed to initialize NVML: Driver/library version mismatch"`},
		"nothing said": {"exit 9", "", "", `"reason":"CardLost","message":"the driver reaches 0 of 2 cards"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGPUHost(t, "0000:17:00.0", "0000:65:00.0")
			s.stub("nvidia-smi", "#!/bin/sh\n"+c.smi+"\n")
			s.write("gpu/kernel-log", c.log+"\n")
			s.write("before", c.before+"\n")
			s.stub("kubectl", "#!/bin/bash\ncase $* in *' get node '*) cat /before ;; *) exit 1 ;; esac\n")
			s.stub("curl", "#!/bin/bash\n{ echo \"$*\"; cat; } >>/patched\n")
			s.write("etc/kubernetes/kubelet.conf", "clusters:\n- cluster:\n    certificate-authority-data: Y2E=\n    server: https://10.0.0.1:6443\nusers:\n- user:\n    client-certificate: /pki/current.pem\n")
			text := strings.NewReplacer("patience=20", "patience=1", "name=$1", "name=w1").Replace(stubbed(Watch()))
			s.ok(s.bash(text))
			said := s.read("patched")
			if !strings.Contains(said, c.want) || !strings.Contains(said, "--cert /pki/current.pem https://10.0.0.1:6443/api/v1/nodes/w1/status\n") {
				t.Fatalf("it says:\n%s\nwant %s", said, c.want)
			}
			if kept := strings.Contains(said, `"lastTransitionTime":"2026-01-01T00:00:00Z"`); kept != (c.before != "") {
				t.Errorf("the time of the transition: %s", said)
			}
			_, patch, _ := strings.Cut(said, "\n")
			if !json.Valid([]byte(patch)) {
				t.Errorf("no JSON: %s", patch)
			}
		})
	}
}

// A check that hangs in the kernel is not joined by another each minute.
func TestGPUWatchOfAHungDriver(t *testing.T) {
	t.Parallel()
	s := newGPUHost(t, "0000:17:00.0")
	s.stub("nvidia-smi", "#!/bin/sh\ntouch /asked\necho 00000000:17:00.0\n")
	s.stub("kubectl", "#!/bin/sh\n")
	s.stub("curl", "#!/bin/sh\ncat >/patched\n")
	s.write("etc/kubernetes/kubelet.conf", "")
	text := strings.NewReplacer("name=$1", "name=w1").Replace(stubbed(Watch()))
	for processes, hangs := range map[string]bool{"D 75 nvidia-smi": true, "D 2 nvidia-smi": false, "S 75 nvidia-smi": false, "D 75 kworker/2:3": false} {
		s.stub("ps", "#!/bin/sh\necho 'S 900 systemd'\necho '"+processes+"'\n")
		s.ok(s.bash("rm -f /asked; " + text))
		if said := s.read("patched"); strings.Contains(said, "DriverHangs") != hangs || s.exists("asked") == hangs {
			t.Errorf("%s: it says\n%s", processes, said)
		}
	}
}

// The check is put there, and undo takes it away.
func TestDoctorWatch(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.must(os.MkdirAll(s.path("etc/systemd/system"), 0o755))
	s.file("/opt/kgpu-gpu-watch", "#!/bin/sh\n")
	s.write("var/units/kgpu-gpu-watch.timer", "loaded,inactive,disabled\n") // systemd's view of the file that comes
	s.write("var/units/kgpu-gpu-watch.service", "loaded,inactive,static\n")
	before := s.snapshot()
	s.twice("doctor-watch")
	s.write("var/units/kgpu-gpu-watch.service", "loaded,failed,static\n") // its last check came to no end
	s.holds("var/units/kgpu-gpu-watch.timer", "loaded,active,enabled\n")
	lacks(t, s.read("var/units.log"), "daemon-reload")
	s.absent("var/units.outdated")
	s.undone(before)
}
