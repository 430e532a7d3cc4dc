package preflight

import (
	"fmt"
	"strings"
	"testing"
)

// on is a file system as facts.sh tells of it, with so many GiB free of so many, at these paths.
func on(at string, free, size int, paths ...string) []string {
	var lines []string
	for _, path := range paths {
		lines = append(lines, fmt.Sprintf("file-system=%d %d 90 100 %s %s", free<<20, size<<20, at, path))
	}
	return lines
}

// TestDisksHaveRoomForTheKubelet: space is checked where it will be used and by the kubelet's limits, once for each
// file system.
func TestDisksHaveRoomForTheKubelet(t *testing.T) {
	const docker, containerd = "runtime: docker\nnetwork: flannel\n", "runtime: containerd\nnetwork: flannel\n"
	kubelet := func(inventory, settings string) string {
		return inventory + "kubernetes: {kubeletConfiguration: {" + settings + "}}\n"
	}
	whole := []string{"/", "/var", "/var/lib", "/var/cache/apt", "/tmp"}
	small := on("/", 3, 10, whole...)
	for _, c := range []struct {
		name, inventory string
		lines           [][]string
		want            string
	}{
		{"room", docker, [][]string{on("/", 300, 1000, whole...)}, ""},
		{"4 % of much", docker, [][]string{on("/", 40, 1000, whole...)},
			"HOST_DISK_FULL / has 40960 MiB free, 157696 MiB are needed: the kubelet evicts pods below 15 % (imagefs.available)"},
		{"12 % of much, images elsewhere", docker, [][]string{on("/", 120, 1000, whole...), on("/data", 300, 1000, "/data"), {"docker-root=/data/docker"}}, ""},
		{"8 % of much, images elsewhere", docker, [][]string{on("/", 80, 1000, whole...), on("/data", 300, 1000, "/data"), {"docker-root=/data/docker"}},
			"HOST_DISK_FULL / has 81920 MiB free, 103424 MiB are needed: the kubelet evicts pods below 10 % (nodefs.available)"},
		{"less is wanted", kubelet(docker, "evictionHard: {nodefs.available: 1Gi, imagefs.available: 1Gi}"), [][]string{on("/", 40, 1000, whole...)}, ""},
		{"more is wanted, in bytes", kubelet(docker, "evictionHard: {imagefs.available: 45Gi}"), [][]string{on("/", 40, 1000, whole...)},
			"HOST_DISK_FULL / has 40960 MiB free, 50176 MiB are needed: the kubelet evicts pods below 46080 MiB (imagefs.available)"},
		{"more is wanted, by percent", kubelet(docker, "evictionHard: {nodefs.available: 60%}"), [][]string{on("/", 500, 1000, whole...)},
			"HOST_DISK_FULL / has 512000 MiB free, 615424 MiB are needed: the kubelet evicts pods below 60 % (nodefs.available)"},
		{"the defaults are gone with one of them", kubelet(docker, "evictionHard: {memory.available: 5%}"), [][]string{on("/", 40, 1000, whole...)}, ""},
		{"unless they are kept", kubelet(docker, "evictionHard: {memory.available: 5%}, mergeDefaultEvictionSettings: true"), [][]string{on("/", 40, 1000, whole...)}, "HOST_DISK_FULL / has 40960"},
		{"none", kubelet(docker, "evictionHard: {nodefs.available: 0%, imagefs.available: 100%}"), [][]string{on("/", 40, 1000, whole...)}, ""},
		{"too little for anything", docker, [][]string{on("/", 2, 4, whole...)}, "HOST_DISK_FULL / has 2048 MiB free, 4710 MiB are needed: the kubelet"},
		{"docker's data-root", docker, [][]string{small, on("/data", 80, 100, "/data/docker"), {"docker-root=/data/docker"}}, ""},
		{"docker's data-root is full", docker, [][]string{on("/", 80, 100, whole...), on("/data", 3, 100, "/data/docker"), {"docker-root=/data/docker"}}, "HOST_DISK_FULL /data has 3072 MiB free"},
		{"docker's data-root, of facts that do not say where", docker, [][]string{small, {`daemon-json=eyJkYXRhLXJvb3QiOiAiL2RhdGEvZG9ja2VyIn0=`}}, ""},
		{"few inodes of /boot", docker, [][]string{on("/", 300, 1000, whole...), {"file-system=300000 400000 4 100 /boot /boot"}}, "HOST_INODES_FULL /boot has 4 % of its inodes free"},
		{"a link to the data", docker, [][]string{small, on("/data", 80, 100, "/var/lib/docker"), {"docker-root=/var/lib/docker"}}, ""},
		{"containerd's root", containerd, [][]string{small, on("/data", 80, 100, "/data"), {"containerd-root=/data/containerd"}}, ""},
		{"docker's, and containerd is asked for", containerd, [][]string{small, on("/data", 80, 100, "/data"), {"docker-root=/data/docker", "containerd-root=/var/lib/containerd"}}, "HOST_DISK_FULL / has 3072 MiB free"},
		{"docker with containerd's images", docker, [][]string{small, on("/data", 80, 100, "/data"), {"docker-root=/var/lib/docker", "containerd-root=/data/containerd", "docker-info=Driver overlayfs"}}, ""},
		{"few inodes", docker, [][]string{{"file-system=300000000 400000000 4 100 / /", "file-system=300000000 400000000 4 100 / /var/lib/kubelet"}}, "HOST_INODES_FULL / has 4 % of its inodes free"},
		{"fewer inodes than wanted", kubelet(docker, "evictionHard: {nodefs.inodesFree: 20%}"), [][]string{{"file-system=300000000 400000000 12 100 / /"}}, "HOST_INODES_FULL / has 12 %"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []string
			for _, more := range c.lines {
				lines = append(lines, more...)
			}
			found, _ := judged(t, decode(t, c.inventory), saying(t, lines...))
			if got := strings.Join(found, "; "); !strings.HasPrefix(got, c.want) || len(found) > 1 || c.want == "" && got != "" {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestWantedSwap: swap is no problem if the inventory's KubeletConfiguration allows it, or if kgpu turns it off.
func TestWantedSwap(t *testing.T) {
	swap := []string{"swap-active=/swap.img file 8388604 0 -2", "swap-active=/dev/zram0 partition 4194300 0 100", "swap-fstab=/swap.img"}
	for inventory, want := range map[string]string{
		"": "HOST_SWAP_ON swap is on: /dev/zram0, /swap.img",
		"kubernetes: {kubeletConfiguration: {failSwapOn: true}}\n":                                           "HOST_SWAP_ON swap is on: /dev/zram0, /swap.img",
		"kubernetes: {kubeletConfiguration: {failSwapOn: false, memorySwap: {swapBehavior: LimitedSwap}}}\n": "",
		"swap: disable\n": "",
	} {
		found, g := judged(t, decode(t, "network: flannel\n"+inventory), saying(t, swap...))
		if got := strings.Join(found, "; "); got != want {
			t.Errorf("%q: found %q, want %q", inventory, got, want)
		}
		if off := g.Has("os/swap"); off != (inventory == "swap: disable\n") {
			t.Errorf("%q: swap is turned off: %t", inventory, off)
		}
	}
}
