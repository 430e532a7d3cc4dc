package scripts

import (
	"fmt"
	"strings"
	"testing"
)

// What container runtimes and kubeadm say when an image does not come.
func TestReasonsOfPulls(t *testing.T) {
	t.Parallel()
	const kubeadm = `failed to pull image "registry.k8s.io/pause:3.10": failed to pull image registry.k8s.io/pause:3.10: rpc error: code = Unknown desc = failed to pull and unpack image "registry.k8s.io/pause:3.10": `
	const resolve = kubeadm + `failed to resolve reference "registry.k8s.io/pause:3.10": `
	s := newSandbox(t)
	for _, c := range []struct{ words, reason string }{
		{resolve + "unexpected status from HEAD request to https://registry.k8s.io/v2/pause/manifests/3.10: 429 Too Many Requests", "REGISTRY_BUSY"},
		{resolve + "unexpected status from HEAD request to https://registry.k8s.io/v2/pause/manifests/3.10: 500 Internal Server Error", "REGISTRY_BUSY"},
		{kubeadm + "failed to copy: httpReadSeeker: failed open: unexpected status code https://registry.k8s.io/v2/pause/blobs/sha256:5005: 503 Service Unavailable - Server message: none", "REGISTRY_BUSY"},
		{"Error response from daemon: toomanyrequests: You have reached your unauthenticated pull rate limit.", "REGISTRY_BUSY"},
		{"Error response from daemon: error pulling image configuration: download failed after attempts=6: received unexpected HTTP status: 502 Bad Gateway", "REGISTRY_BUSY"},
		{resolve + "registry.k8s.io/pause:3.10: not found", "IMAGE_UNAVAILABLE"},
		{resolve + "unexpected status from HEAD request to https://registry.k8s.io/v2/pause/manifests/3.10: 403 Forbidden", "IMAGE_UNAVAILABLE"},
		{resolve + "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed", "IMAGE_UNAVAILABLE"},
		{"Error response from daemon: manifest for registry.k8s.io/pause:9 not found: manifest unknown: none", "IMAGE_UNAVAILABLE"},
		{kubeadm + `failed commit on ref "layer-sha256:aa": unexpected commit digest sha256:bb, expected sha256:aa: failed precondition`, "IMAGE_MISMATCH"},
		{kubeadm + `failed commit on ref "layer-sha256:aa": "layer-sha256:aa" failed size validation: 100 != 200: failed precondition`, "IMAGE_MISMATCH"},
		{"filesystem layer verification failed for digest sha256:aa", "IMAGE_MISMATCH"},
		// What is cut short: docker looks at the digest, containerd, which goes on where it stopped, at the size. It may be whole the next time.
		{kubeadm + "failed to read expected number of bytes: unexpected EOF", "REGISTRY_UNREACHABLE"},
		{kubeadm + `failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://registry.k8s.io/v2/pause/blobs/sha256:aa": unexpected EOF`, "REGISTRY_UNREACHABLE"},
		{kubeadm + "failed to copy: httpReadSeeker: failed open: unable to discard to offset", "REGISTRY_UNREACHABLE"},
		{"Error response from daemon: error pulling image configuration: download failed after attempts=6: unexpected EOF", "REGISTRY_UNREACHABLE"},
		{kubeadm + "failed to extract layer sha256:aa: write /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/x: no space left on device: unknown", "HOST_DISK_FULL"},
		{resolve + `failed to do request: Head "https://registry.k8s.io/v2/pause/manifests/3.10": dial tcp: lookup registry.k8s.io on 10.0.0.1:53: no such host`, "NET_NAME_UNRESOLVED"},
		{resolve + `failed to do request: Head "https://registry.k8s.io/v2/pause/manifests/3.10": dial tcp: lookup registry.k8s.io on 10.0.0.1:53: read udp 10.0.0.2:1->10.0.0.1:53: i/o timeout`, "NET_NAME_UNRESOLVED"},
		{resolve + `failed to do request: Head "https://registry.k8s.io/v2/pause/manifests/3.10": dial tcp 10.0.0.1:443: connect: connection refused`, "REGISTRY_UNREACHABLE"},
		{resolve + `failed to do request: Head "https://registry.k8s.io/v2/pause/manifests/3.10": dial tcp 10.0.0.1:443: i/o timeout`, "REGISTRY_UNREACHABLE"},
		{"container runtime is not running", "STEP_FAILED"},
	} {
		s.value("words", c.words)
		exit := 75
		if c.reason == "HOST_DISK_FULL" || c.reason == "IMAGE_MISMATCH" || c.reason == "IMAGE_UNAVAILABLE" {
			exit = 1
		}
		r := s.script(`pull_failed "$(value words)"`)
		if failure, _, _ := strings.Cut(s.read(stepDir+"/failure"), "\t"); failure != c.reason || r.status != exit {
			t.Errorf("%s: %s with status %d, want %s with %d", c.words, failure, r.status, c.reason, exit)
		}
	}
	s.value("words", resolve+"429 Too Many Requests")
	s.script(`pull_failed "$(value words)"`)
	const want = "REGISTRY_BUSY\tfailed to pull image \"registry.k8s.io/pause:3.10\": failed to resolve reference \"registry.k8s.io/pause:3.10\": 429 Too Many Requests\n"
	if got := s.read(stepDir + "/failure"); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPowerCutWhileImagesCame: where the container runtime does not sync images, those that came in a boot that ended before the step
// did come again, once nothing runs of them; those that were there before stay.
func TestPowerCutWhileImagesCame(t *testing.T) {
	t.Parallel()
	const note, boot, former = "var/lib/kgpu/unsettled-images", "proc/sys/kernel/random/boot_id", "6f1c8a52-0000-4000-8000-000000000000\n"
	const list, remove = `cat /images ;;`, `echo "rm ${@: -1}" >>/tmp/calls; sed -i '/new/d' /images ;;`
	for name, c := range map[string]struct {
		step, socket, syncs, note string
		again                     bool
	}{
		"containerd":                  {"cluster-init", "containerd/containerd.sock", "", former + "old\n", true},
		"docker":                      {"cluster-init", "cri-dockerd.sock", "true", former + "old\n", true},
		"another control plane":       {"cluster-join-plane", "containerd/containerd.sock", "false", former + "old\n", true},
		"only killed":                 {"cluster-init", "containerd/containerd.sock", "", "", false},
		"containerd syncs its images": {"cluster-init", "containerd/containerd.sock", "true", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterHost(t)
			s.value("criSocket", "unix:///run/"+c.socket)
			s.write("images", "old\n")
			s.stub("ctr", "#!/bin/bash\ncase $* in *list*) "+list+" *' rm '*) "+remove+" esac\n")
			s.stub("docker", "#!/bin/bash\ncase $* in *' ls '*) "+list+" *' rm '*) "+remove+" esac\n")
			s.write("config", "[plugins.\"io.containerd.cri.v1.images\"]\nimage_pull_with_sync_fs = "+c.syncs+"\n")
			s.stub("containerd", "#!/bin/sh\ncat /config\n")
			s.write("kubeadm-fails", "error execution phase wait-control-plane: timed out\n")
			s.step(c.step)
			if noted := s.exists(note); noted == (name == "containerd syncs its images") {
				t.Fatalf("before images come, a note is there: %v", noted)
			}
			s.write("images", "old\nnew\n")
			if c.note != "" {
				s.write(note, c.note)
				s.ok(s.script("settle_step")) // of another step
			}
			s.calls()
			s.remove("kubeadm-fails")
			s.ok(s.step(c.step))
			calls := s.calls()
			reset, gone := strings.Index(calls, "kubeadm reset"), strings.Index(calls, "rm new")
			if (gone >= 0) != c.again || c.again && gone < reset {
				t.Errorf("calls:\n%s", calls)
			}
			if c.again && !strings.HasPrefix(s.read(note), readFile(t, "/"+boot)+"old\n") {
				t.Errorf("while they come again, the note is %q", s.read(note))
			}
			s.ok(s.script("settle_step"))
			s.absent(note)
		})
	}
}

// A stand-in for kubectl: a node that is not ready, a pod that waits, and the events in /events.
const pullingKubectl = `#!/bin/bash
case $* in
  *' get nodes,'*) echo "node w1 Ready=$(</ready)" ;;
  *' get pods '*-o*go-template*) cat /pods ;;
  *' get events '*-o*go-template*) cat /events ;;
esac
`

func TestClusterReadyTellsWhichImageDoesNotCome(t *testing.T) {
	t.Parallel()
	const busy = `failed to pull image \"ghcr.io/x:1\": unexpected status from HEAD request to https://ghcr.io/v2/x/manifests/1: 500 Internal Server Error`
	const other = `failed to pull image \"ghcr.io/x:1\": unexpected commit digest sha256:bb, expected sha256:aa: failed precondition`
	for _, c := range []struct {
		name, pods, events, sleep, reason, want string
		exit                                    int
	}{
		{"the kubelet gets it in the end", `kube-system x w1 ErrImagePull "` + busy + `"`, "", "echo True >/ready; : >/pods", "", "ghcr.io/x:1", 0},
		{"only events tell", `kube-system x w1 ImagePullBackOff "Back-off pulling image \"ghcr.io/x:1\""`, `Warning Failed: "` + busy + `"` + "\nWarning Failed: \"Error: ErrImagePull\"\n", "echo True >/ready", "", "500 Internal Server Error", 0},
		{"the image of the sandbox", `kube-system x w1 ContainerCreating ""`, `Warning FailedCreatePodSandBox: "` + busy + `"` + "\n", "echo True >/ready", "", "500 Internal Server Error", 0},
		{"the registry stays busy", `kube-system x w1 ErrImagePull "` + busy + `"`, "", "echo 0 >" + stepDir + "/timeout", "REGISTRY_BUSY", "node w1: ", 1},
		{"another image", `kube-system x w1 ErrImagePull "` + other + `"`, "", ":", "IMAGE_MISMATCH", "expected sha256:aa", 1},
		{"a worker has no room", `kube-system x w1 ErrImagePull "failed to pull image \"ghcr.io/x:1\": write /var/lib/containerd/x: no space left on device"`, "", ":", "HOST_DISK_FULL", "node w1: ", 1},
		{"something else is wrong", `kube-system x w1 CrashLoopBackOff "back-off"`, "", "echo 0 >" + stepDir + "/timeout", "NODE_NOT_READY", "node w1", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.stub("kubectl", pullingKubectl)
			s.write("ready", "False\n")
			s.write("pods", c.pods+"\n")
			s.write("events", c.events)
			s.write(stepDir+"/timeout", "600\n")
			s.stub("sleep", fmt.Sprintf("#!/bin/bash\n%s\n", c.sleep))
			s.value("nodes", "w1\n")
			r := s.step("cluster-ready")
			if c.reason == "" {
				s.ok(r)
			} else {
				s.fails(r, c.exit, c.reason)
			}
			if c.reason == "HOST_DISK_FULL" && !s.exists(stepDir+"/of-other-hosts") {
				t.Error("the worker's disk would be looked for here")
			}
			contains(t, r.output, c.want)
		})
	}
}

// A registry that refuses for now is given time; whatever happens, nothing has begun before all images are there.
func TestInitWaitsForTheRegistry(t *testing.T) {
	t.Parallel()
	const image = `failed to pull image "registry.k8s.io/pause:3.10": rpc error: code = Unknown desc = `
	for _, c := range []struct {
		name, words string
		failures    int
		reason      string
		exit, pulls int
	}{
		{"it recovers", image + "unexpected status from HEAD request to https://registry.k8s.io/v2/pause/manifests/3.10: 429 Too Many Requests", 3, "", 0, 4},
		{"it does not", image + "unexpected status from HEAD request to https://registry.k8s.io/v2/pause/manifests/3.10: 503 Service Unavailable", 99, "REGISTRY_BUSY", 75, 6},
		{"another image", image + "unexpected commit digest sha256:bb, expected sha256:aa: failed precondition", 99, "IMAGE_MISMATCH", 1, 1},
		{"no such image", image + "registry.k8s.io/pause:3.10: not found", 99, "IMAGE_UNAVAILABLE", 1, 1},
		{"no room", image + "write /var/lib/containerd/x: no space left on device", 99, "HOST_DISK_FULL", 1, 1},
		{"cut short each time", image + "failed to read expected number of bytes: unexpected EOF", 99, "REGISTRY_UNREACHABLE", 75, 1},
		{"cut short in the end", image + "unexpected commit digest sha256:bb, expected sha256:aa: failed precondition\nerror: " + image + "failed to read expected number of bytes: unexpected EOF", 99, "REGISTRY_UNREACHABLE", 75, 1},
		{"the runtime is down", image + "connection error", 99, "STEP_FAILED", 75, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := clusterHost(t)
			s.value("words", c.words)
			s.stub("kubeadm", fmt.Sprintf(`#!/bin/bash
echo "kubeadm $*" >>/tmp/calls
case "$1 $2" in
"config images") [[ $(grep -c 'images pull' /tmp/calls) -gt %d ]] || { cat "$KGPU_STEP/values/words"; exit 1; } ;;
"init --config") mkdir -p /etc/kubernetes; : >/etc/kubernetes/admin.conf ;;
esac
`, c.failures))
			s.stub("sleep", "#!/bin/sh\n")
			r := s.step("cluster-init")
			calls := s.calls()
			if c.reason == "" {
				s.ok(r)
			} else {
				s.fails(r, c.exit, c.reason)
				if strings.Contains(calls, "kubeadm init") || s.entries() > 0 {
					t.Errorf("something was begun: %d entries, calls\n%s", s.entries(), calls)
				}
			}
			if n := strings.Count(calls, "images pull"); n != c.pulls {
				t.Errorf("%d pulls, want %d", n, c.pulls)
			}
			if c.pulls > 1 && !strings.Contains(r.output, "W\tthe registry, 2 s: registry.k8s.io/pause:3.10: unexpected status") {
				t.Errorf("it does not say what it waits for:\n%s", r.output)
			}
		})
	}
}
