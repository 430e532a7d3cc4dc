package facts

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
)

// recorded parses an answer of a real host.
func recorded(t *testing.T, name string) *Host {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	h, err := Parse(data)
	must(t, err)
	return h
}

// parse parses what a host without anything special answers, with more lines.
func parse(t *testing.T, lines ...string) *Host {
	t.Helper()
	h, err := Parse(answerOf(lines...))
	must(t, err)
	return h
}

func answerOf(lines ...string) []byte {
	return []byte("kgpu-facts=1\nnow=1795181171.626436\ncpus=2\nmemory-kib=2048\nledger=0\n" + strings.Join(append(lines, "end=1"), "\n") + "\n")
}

func TestControlPlane(t *testing.T) {
	h := recorded(t, "control-plane.txt")
	c := h.ControlPlane
	const ca = "ce6af9d99f54264d174406dba2e0af2990247adb3c8f971528ccf3bade51785b" // as kubeadm printed it
	if c == nil || h.Cluster == nil || c.CAHash != ca || c.Version != "v1.36.3" || c.AdminConfSHA256 != "71ceeabcf106ff574151acf75cc55bfc88c552dbe47658d119c2b5b37bcc7bfa" {
		t.Fatalf("%+v", c)
	}
	if want := (Member{Server: "https://10.199.1.10:6443", CAHash: ca, NodeName: "cp1"}); *h.Kubelet != want {
		t.Errorf("kubelet: %+v", *h.Kubelet)
	}
	want := Node{
		Name: "w1", UID: "b88690b5-738e-4577-b15c-fdb6a32e4a25", Ready: true, Version: "v1.36.3", Runtime: "containerd://1.7.24", InternalIP: "10.199.1.11",
		Labels: map[string]string{
			"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "disk": "fast", "kubernetes.io/arch": "amd64",
			"kubernetes.io/hostname": "w1", "kubernetes.io/os": "linux", "node-role.kubernetes.io/worker": "",
		},
		Taints: []string{"gpu=yes:NoSchedule"},
	}
	if len(h.Cluster.Nodes) != 2 || !reflect.DeepEqual(h.Cluster.Nodes[1], want) {
		t.Errorf("nodes: %+v", h.Cluster.Nodes)
	}
	if got := h.Cluster.Nodes[0].Taints; !reflect.DeepEqual(got, []string{"node-role.kubernetes.io/control-plane:NoSchedule"}) {
		t.Errorf("taints: %q", got)
	}
	if got := h.Cluster.Workloads["kube-system/deployment/coredns"]; got != (Workload{Desired: 2, Ready: 2}) {
		t.Errorf("coredns: %+v", got)
	}
	if _, ok := h.Files["/etc/kubernetes/admin.conf"]; ok || len(h.Files) != 6 {
		t.Errorf("files: %v", h.Files)
	}
}

func TestWorker(t *testing.T) {
	h := recorded(t, "worker.txt")
	if h.ControlPlane != nil || h.Kubelet == nil || h.Kubelet.NodeName != "w1" || h.Kubelet.CAHash != "ce6af9d99f54264d174406dba2e0af2990247adb3c8f971528ccf3bade51785b" {
		t.Errorf("kubelet %+v, control plane %+v", h.Kubelet, h.ControlPlane)
	}
	if h.Hostname != "w1" || h.OS != (OS{ID: "debian", VersionID: "13", Codename: "trixie", PrettyName: "Debian GNU/Linux 13 (trixie)"}) || h.Arch != "amd64" || h.Virt != "container-other" || !h.Systemd || h.CgroupV2 {
		t.Errorf("%+v", h)
	}
	if want := map[string]string{"SystemdCgroup": "true", "bin_dir": "/opt/cni/bin", "cri": "enabled", "sandbox": "registry.k8s.io/pause:3.10.1"}; !reflect.DeepEqual(h.ContainerdLoaded, want) {
		t.Errorf("containerd: %v", h.ContainerdLoaded)
	}
	if got := h.Packages["kubelet"]; got != (Package{Version: "1.36.3-1.1", Held: true}) {
		t.Errorf("kubelet: %+v", got)
	}
	if got := h.Units["kubelet.service"]; got != (Unit{Active: "active", Enabled: "enabled"}) {
		t.Errorf("kubelet.service: %+v", got)
	}
	if h.Modules["br_netfilter"] != ModuleLoaded || h.Modules["dummy"] != ModuleMissing || h.Sysctls["net.ipv4.ip_forward"] != "1" {
		t.Errorf("modules %v, sysctls %v", h.Modules, h.Sysctls)
	}
	found := false
	for _, a := range h.Addresses {
		found = found || a == Address{Interface: "eth0", Prefix: netip.MustParsePrefix("10.199.1.11/24")}
	}
	if !found {
		t.Errorf("addresses: %v", h.Addresses)
	}
}

func TestDockerWorker(t *testing.T) {
	h := recorded(t, "docker-worker.txt")
	if want := map[string]string{"version": "26.1.5+dfsg1", "cgroup-driver": "systemd", "cgroup-version": "1", "storage-driver": "overlay2"}; !reflect.DeepEqual(h.DockerInfo, want) {
		t.Errorf("docker: %v", h.DockerInfo)
	}
	if h.CRIDockerd != "0.4.4" || !strings.Contains(string(h.DaemonJSON), "native.cgroupdriver=systemd") {
		t.Errorf("cri-dockerd %q, daemon.json %s", h.CRIDockerd, h.DaemonJSON)
	}
	if h.Kubelet == nil || h.Kubelet.NodeName != "w1" || h.Units["cri-docker.socket"].Active != "active" {
		t.Errorf("kubelet %+v, units %v", h.Kubelet, h.Units)
	}
}

func TestTruncated(t *testing.T) {
	whole, err := os.ReadFile("testdata/worker.txt")
	must(t, err)
	for _, cut := range []int{0, 5, len(whole) / 2, len(whole) - 2, len(whole) - 1} {
		if _, err := Parse(whole[:cut]); !errors.Is(err, ErrTruncated) {
			t.Errorf("cut at %d of %d: %v", cut, len(whole), err)
		}
	}
	if _, err := Parse(append([]byte("Welcome to w1\nend=1\n"), whole...)); err != nil {
		t.Errorf("with a banner: %v", err)
	}
}

func TestBadLines(t *testing.T) {
	for _, line := range []string{
		"address=2: eth0 inet 10.0.0.300/24", "route=nowhere dev eth0", "file-system=x 1 1 1 / /", "listen=LISTEN 0 1 *:http *:*", "kubelet-server=x\nkubelet-ca=!",
		"containerd-dump=!", "daemon-json=!", "control-plane=1\napi=1\ncluster=node", "control-plane=1\napi=1\ncluster=daemonset\ta\tb\tx\t1", "run=a-1\nrun-since-ms=x", "operator=held\noperator=since=yesterday",
	} {
		if _, err := Parse(answerOf(line)); err == nil || errors.Is(err, ErrTruncated) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	h := parse(t)
	if want := time.Unix(1795181171, 626436000); !h.Now.Equal(want) || h.CPUs != 2 || h.MemoryKiB != 2048 {
		t.Errorf("%v %d %d", h.Now, h.CPUs, h.MemoryKiB)
	}
}

func TestSwap(t *testing.T) {
	const header = "swap-active=Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority"
	for name, c := range map[string]struct {
		lines []string
		want  []Swap
	}{
		"none":                  {[]string{header}, nil},
		"file in fstab":         {[]string{header, "swap-active=/swap.img                               file\t\t2097148\t\t0\t\t-2", "swap-fstab=/swap.img", "swap-unit=swap.img.swap generated -"}, []Swap{{"/swap.img", true, "fstab"}}},
		"off, but back at boot": {[]string{header, "swap-fstab=/swap.img"}, []Swap{{"/swap.img", false, "fstab"}}},
		"by UUID, off":          {[]string{header, "swap-fstab=UUID=1-2", `swap-unit=dev-disk-by\x2duuid-1\x2d2.swap generated -`}, []Swap{{"UUID=1-2", false, "fstab"}}},
		"zram":                  {[]string{header, "swap-active=/dev/zram0                              partition\t4194300\t0\t100"}, []Swap{{"/dev/zram0", true, "zram"}}},
		"unit of the owner":     {[]string{header, `swap-unit=dev-disk-by\x2did-x.swap enabled enabled`}, []Swap{{"/dev/disk/by-id/x", false, `dev-disk-by\x2did-x.swap`}}},
		"masked":                {[]string{header, "swap-unit=dev-zram0.swap masked enabled", "swap-unit=dev-sdb.swap disabled enabled"}, nil},
	} {
		if got := parse(t, c.lines...).Swap; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestPackages(t *testing.T) {
	h := parse(t,
		"apt-lock=812 unattended-upgr", "package=curl install installed ok 8.5.0", "package=kubelet hold installed ok 1.36.3-1.1",
		"package=linux-image install half-configured ok 6.8", "package=docker.io deinstall config-files ok 26", "package=bad install installed reinstreq 1", "unsettled=1",
	)
	if want := map[string]Package{"curl": {Version: "8.5.0"}, "kubelet": {Version: "1.36.3-1.1", Held: true}}; !reflect.DeepEqual(h.Packages, want) {
		t.Errorf("%v", h.Packages)
	}
	if h.Apt.LockHolder != "unattended-upgr (pid 812)" || !reflect.DeepEqual(h.Apt.Broken, []string{"linux-image", "bad"}) || !h.Apt.Unsettled {
		t.Errorf("%+v", h.Apt)
	}
}

// TestPackagesOfForeignArchitectures: older scripts do not print the architecture.
func TestPackagesOfForeignArchitectures(t *testing.T) {
	h := parse(t, "arch=amd64", "package=libnvidia-compute-550 install installed ok 550.163.01-1 amd64", "package=libnvidia-compute-550 hold installed ok 550.163.01-1 i386",
		"package=curl install installed ok 8.5.0 all", "package=runc install installed ok 1.3")
	if want := map[string]Package{
		"libnvidia-compute-550": {Version: "550.163.01-1"}, "libnvidia-compute-550:i386": {Version: "550.163.01-1", Held: true}, "curl": {Version: "8.5.0"}, "runc": {Version: "1.3"},
	}; !reflect.DeepEqual(h.Packages, want) {
		t.Errorf("%v", h.Packages)
	}
}

func TestServices(t *testing.T) {
	h := parse(t, "unit=chrony.service active enabled", "unit=ufw.service active enabled", "unit=run.service active", "ufw=ENABLED=no")
	if h.TimeSync != "chrony" || h.Firewall != "" || h.Units["run.service"] != (Unit{Active: "active"}) {
		t.Errorf("%q %q %v", h.TimeSync, h.Firewall, h.Units)
	}
	if h := parse(t, "unit=ufw.service active enabled", "ufw=ENABLED=yes"); h.Firewall != "ufw" {
		t.Errorf("firewall %q", h.Firewall)
	}
	if h := parse(t, "unit=firewalld.service active enabled"); h.Firewall != "firewalld" {
		t.Errorf("firewall %q", h.Firewall)
	}
}

func TestNetwork(t *testing.T) {
	h := parse(t,
		`address=3: eth0@if7    inet6 fe80::1/64 scope link \       valid_lft forever`,
		"route=default via 10.0.0.1 dev eth0", "route=10.0.0.0/24 dev eth0 proto kernel", "route=blackhole 10.244.1.0/26 proto 80", "route=192.168.1.7 via 10.0.0.1 dev eth0",
		`listen=LISTEN 0 4096 127.0.0.53%lo:53 0.0.0.0:* users:(("systemd-resolve",pid=600,fd=15))`, "listen=LISTEN 0 128 *:6443 *:*", "listen=LISTEN 0 128 [fe80::1]%eth0:80 *:*",
	)
	if len(h.Addresses) != 1 || h.Addresses[0].Interface != "eth0" {
		t.Errorf("addresses: %v", h.Addresses)
	}
	routes := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("10.244.1.0/26"), netip.MustParsePrefix("192.168.1.7/32")}
	if !reflect.DeepEqual(h.Routes, routes) {
		t.Errorf("routes: %v", h.Routes)
	}
	want := []Socket{
		{netip.MustParseAddrPort("127.0.0.53:53"), "systemd-resolve"}, {netip.MustParseAddrPort("[::]:6443"), ""}, {netip.MustParseAddrPort("[fe80::1%eth0]:80"), ""},
	}
	if !reflect.DeepEqual(h.Listening, want) {
		t.Errorf("listening: %v", h.Listening)
	}
}

func TestResolvers(t *testing.T) {
	h := parse(t, "resolv-conf=/etc/resolv.conf 127.0.0.1 fe80::1%eth0 x", "resolv-conf=/etc/shadow 10.0.0.1", "resolv-conf=", "resolv-conf=/run/dnsmasq/resolv.conf")
	want := map[string][]netip.Addr{"/etc/resolv.conf": {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fe80::1%eth0")}, "/run/dnsmasq/resolv.conf": {}}
	if !reflect.DeepEqual(h.Resolvers, want) {
		t.Errorf("%v", h.Resolvers)
	}
	if h := parse(t); h.Resolvers != nil {
		t.Errorf("a host that did not tell: %v", h.Resolvers)
	}
}

func TestReach(t *testing.T) {
	found, err := ParseReach([]byte("Welcome!\nkgpu-reach=1\nreach=pkgs.k8s.io 443 open\nreach=10.0.0.10 6443 refused\nend=1\n"))
	if want := map[Endpoint]Reach{{"pkgs.k8s.io", 443}: Open, {"10.0.0.10", 6443}: Refused}; err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("%v, %v", found, err)
	}
	for _, wrong := range []string{"reach=10.0.0.10 open\nend=1\n", "reach=10.0.0.10 70000 open\nend=1\n", "reach=10.0.0.10 6443 open\n"} {
		if found, err := ParseReach([]byte("kgpu-reach=1\n" + wrong)); err == nil {
			t.Errorf("%q was read as %v", wrong, found)
		}
	}
}

func TestParseAvailableVersions(t *testing.T) {
	offer, err := ParseAvailableVersions([]byte("kgpu-reach=1\noffers=1.36 yes 1.36.3 1.36.10\nend=1\n"))
	if want := []catalog.Version{{Major: 1, Minor: 36, Patch: 10}, {Major: 1, Minor: 36, Patch: 3}}; err != nil || !reflect.DeepEqual(offer.Versions, want) {
		t.Errorf("%+v, %v", offer, err)
	}
	if offer, err = ParseAvailableVersions([]byte("kgpu-reach=1\noffers=1.36 no it is not signed\nend=1\n")); err != nil || len(offer.Versions) > 0 || offer.Why != "it is not signed" {
		t.Errorf("%+v, %v", offer, err)
	}
	if offer, err = ParseAvailableVersions([]byte("kgpu-reach=1\nend=1\n")); err != nil || offer != nil {
		t.Errorf("%+v, %v", offer, err)
	}
	if offer, err = ParseAvailableVersions([]byte("kgpu-reach=1\noffers=1.36 no \x1b[2J" + strings.Repeat("x", 1<<20) + "\nend=1\n")); err != nil || len(offer.Why) > 1000 || strings.Contains(offer.Why, "\x1b") {
		t.Errorf("%+v, %v", offer, err)
	}
	for _, wrong := range []string{"1.36 yes", "1.36 yes 1.35.3", "1.36 yes 1.36.3-1.1", "1.36", "1.36.3 yes 1.36.3", "1.36 maybe 1.36.3"} {
		if offer, err := ParseAvailableVersions([]byte("kgpu-reach=1\noffers=" + wrong + "\nend=1\n")); err == nil {
			t.Errorf("%q was read as %+v", wrong, offer)
		}
	}
}

func TestFileSystems(t *testing.T) {
	h := parse(t, "file-system=Avail 1K-blocks IFree Inodes Mounted on File", "file-system=1000 4000 50 200 / /", "file-system=7 9 - - /boot /boot",
		"file-system=7 9 0 0 /srv/big /var", "file-system=7 9 0 0 /srv/big /var", "file-system=7 9 0 0 /a b /a b", "noexec=/srv/big", "noexec=/srv")
	if want := []FileSystem{{"/", "/", 1000, 4000, 25, false}, {"/boot", "/boot", 7, 9, 100, false}, {"/var", "/srv/big", 7, 9, 100, true}}; !reflect.DeepEqual(h.FileSystems, want) {
		t.Errorf("%+v", h.FileSystems)
	}
}

func TestOtherKeys(t *testing.T) {
	h := parse(t,
		"run=20261120-130501-a1b2c3-2", "run-step=runtime/docker", "run-since-ms=1795181171626", "run-by=ada@laptop",
		"foreign=/var/lib/rancher/k3s", "foreign=/usr/local/bin/k3s", "foreign=/var/lib/rancher/rke2",
		"docker-info=ServerVersion 26.1.5", "docker-info=CgroupDriver systemd", "cri-dockerd=cri-dockerd 0.4.4 (HEAD)", "reboot-required=1",
		"toolkit-setting=accept-nvidia-visible-devices-envvar-when-unprivileged = true # as it comes", "toolkit-setting=accept-nvidia-visible-devices-as-volume-mounts=false",
		"control-plane=1", "api=1", "kubeadm=init", "kubeadm=init-done", "token=YWJjZGVm a2dwdSBqb2lu", "token=Z2hpamts <no value>",
	)
	if want := (Run{ID: "20261120-130501-a1b2c3-2", Unit: "kgpu-20261120-130501-a1b2c3-2.service", Step: "runtime/docker", Since: time.UnixMilli(1795181171626), By: "ada@laptop"}); *h.Run != want {
		t.Errorf("run: %+v", *h.Run)
	}
	if !reflect.DeepEqual(h.OtherDistributions, []string{"k3s", "rke2"}) || h.CRIDockerd != "0.4.4" || !h.RebootPending {
		t.Errorf("%v %q %v", h.OtherDistributions, h.CRIDockerd, h.RebootPending)
	}
	if want := map[string]string{"accept-nvidia-visible-devices-envvar-when-unprivileged": "true", "accept-nvidia-visible-devices-as-volume-mounts": "false"}; !reflect.DeepEqual(h.Toolkit, want) {
		t.Errorf("toolkit: %v", h.Toolkit)
	}
	if want := map[string]string{"version": "26.1.5", "cgroup-driver": "systemd"}; !reflect.DeepEqual(h.DockerInfo, want) {
		t.Errorf("docker: %v", h.DockerInfo)
	}
	if h.ControlPlane == nil || !h.ControlPlane.Finished || h.Cluster == nil || !reflect.DeepEqual(h.Cluster.Tokens, []string{"abcdef"}) {
		t.Errorf("control plane: %+v, cluster: %+v", h.ControlPlane, h.Cluster)
	}
}

func TestAPIServerWithoutAnAnswer(t *testing.T) {
	if h := parse(t, "control-plane=1", "control-plane-server=https://10.0.0.10:6443"); h.Cluster != nil || h.ControlPlane == nil || h.ControlPlane.Endpoint != "10.0.0.10:6443" {
		t.Errorf("control plane: %+v, cluster: %+v", h.ControlPlane, h.Cluster)
	}
}

// TestParseContainerd: the containerd that apt would install, and why it is not Docker's.
func TestParseContainerd(t *testing.T) {
	for line, want := range map[string]Containerd{
		"containerd=2.3.7-1~debian.13~trixie\n":          {Version: "2.3.7-1~debian.13~trixie"},
		"containerd=1.7.24~ds1-6+deb13u1 it has none\n":  {Version: "1.7.24~ds1-6+deb13u1", Why: "it has none"},
		"containerd=- Could not resolve \x1b[2J'host'\n": {Why: "Could not resolve 'host'"},
		"": {},
	} {
		if got, err := ParseContainerd([]byte("kgpu-reach=1\n" + line + "end=1\n")); err != nil || got != want {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
	if got, err := ParseContainerd([]byte("kgpu-reach=1\ncontainerd=$(id) x\nend=1\n")); err == nil {
		t.Errorf("taken for a version: %q", got)
	}
}

// TestContainerdTwoWithoutCRI: the dump of containerd 2 has all plugins of the CRI even if one of them is disabled,
// under any name.
func TestContainerdTwoWithoutCRI(t *testing.T) {
	const dump = `version = 4
disabled_plugins = [%s]
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = 'registry.k8s.io/pause:3.10.2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dir = ''
bin_dirs = ['/opt/cni/bin']
`
	for disabled, want := range map[string]string{"": "enabled", "'io.containerd.grpc.v1.cri'": "disabled", "'io.containerd.cri.v1.images'": "disabled", "'io.containerd.nri.v1.nri'": "enabled"} {
		loaded := parse(t, "containerd-dump="+base64.StdEncoding.EncodeToString(fmt.Appendf(nil, dump, disabled))).ContainerdLoaded
		if loaded["cri"] != want || want == "enabled" && (loaded["bin_dir"] != "/opt/cni/bin" || loaded["SystemdCgroup"] != "true" || loaded["sandbox"] != "registry.k8s.io/pause:3.10.2") {
			t.Errorf("disabled %s: %v", disabled, loaded)
		}
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
