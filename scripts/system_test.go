package scripts

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestFstabSwap(t *testing.T) {
	t.Parallel()
	const mark = "# off while kgpu runs Kubernetes here: "
	for name, c := range map[string]struct{ before, want string }{
		"plain":             {"/swap.img none swap sw 0 0\n", mark + "/swap.img none swap sw 0 0\n"},
		"tabs and blanks":   {"  UUID=2\tnone\tswap\tsw,x-systemd.device-timeout=5\t0\t0\n", mark + "  UUID=2\tnone\tswap\tsw,x-systemd.device-timeout=5\t0\t0\n"},
		"comment":           {"# /swap.img none swap sw\n", "# /swap.img none swap sw\n"},
		"noauto":            {"/dev/sdb2 none swap noauto 0 0\n", "/dev/sdb2 none swap noauto 0 0\n"},
		"name says swap":    {"UUID=3 /swap ext4 defaults 0 2\n", "UUID=3 /swap ext4 defaults 0 2\n"},
		"option says swap":  {"UUID=3 /data btrfs subvol=swap 0 0\n", "UUID=3 /data btrfs subvol=swap 0 0\n"},
		"no final newline":  {"/a / ext4\n/b none swap sw", "/a / ext4\n" + mark + "/b none swap sw\n"},
		"two, and an empty": {"/a none swap sw\n\n/b none swap sw\n", mark + "/a none swap sw\n\n" + mark + "/b none swap sw\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.write("etc/fstab", c.before)
			s.ok(s.script("fstab_swap_off; fstab_swap_off"))
			if got := s.read("etc/fstab"); got != c.want {
				t.Errorf("off: %q, want %q", got, c.want)
			}
			s.write("etc/fstab", s.read("etc/fstab")+"tmpfs /x tmpfs defaults 0 0\n")
			s.ok(s.script("undo_all"))
			want := strings.TrimSuffix(c.before, "\n") + "\ntmpfs /x tmpfs defaults 0 0\n"
			s.holds("etc/fstab", want)
		})
	}
}

// Without room for a new fstab the old one stays, and so does the entry, for the next try.
func TestFstabOfAFullDisk(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("etc/fstab", "UUID=1 / ext4 defaults 0 1\n/swap.img none swap sw 0 0\n")
	s.ok(s.script("fstab_swap_off"))
	off := s.read("etc/fstab")
	if r := s.script("awk() { return 2; }; undo_all"); r.status == 0 {
		t.Error("it says nothing")
	}
	if got := s.read("etc/fstab"); got != off || s.entries() != 1 {
		t.Errorf("fstab is %q, with %d entries", got, s.entries())
	}
	s.ok(s.script("undo_all"))
	lacks(t, s.read("etc/fstab"), "off while")
}

func TestSwapUnits(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.stub("swapoff", "#!/bin/sh\n")
	s.write("etc/fstab", "/swap.img none swap sw 0 0\n")
	s.write("var/units/dev-zram0.swap", "loaded,active,generated\n")
	s.write("var/units/dev-sdb1.swap", "loaded,inactive,masked\n")
	s.write("var/units/zramswap.service", "loaded,active,enabled\n")
	before := s.snapshot()
	s.ok(s.step("os-swap"))
	for unit, want := range map[string]string{"dev-zram0.swap": "loaded,inactive,masked\n", "zramswap.service": "loaded,inactive,masked\n"} {
		if got := s.read("var/units/" + unit); got != want {
			t.Errorf("%s is %q, want %q", unit, got, want)
		}
	}
	s.ok(s.step("os-swap"))
	s.ok(s.script("undo_all"))
	s.write("var/units/dev-zram0.swap", strings.Replace(s.read("var/units/dev-zram0.swap"), "disabled", "generated", 1)) // the stub knows no generators
	s.same(before)
}

func TestUnitsComeBackToWhatTheyWere(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for unit, state := range map[string]string{
		"stopped.service": "loaded,inactive,disabled\n", "running.service": "loaded,active,enabled\n", "masked.service": "masked,inactive,masked\n",
	} {
		s.write("var/units/"+unit, state)
	}
	before := s.snapshot()
	s.ok(s.script(`
unit_enable stopped.service running.service
unit_off running.service
unit_restart stopped.service
unit_off stopped.service
remember_unit masked.service
systemctl unmask masked.service`))
	s.undone(before)
}

// A unit whose file went with its package has no state to come back to, and nobody is warned of it.
func TestUnitsThatAreGone(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for _, state := range []string{"loaded,active,enabled\n", "loaded,inactive,disabled\n"} {
		s.write("var/units/gone.service", state)
		s.ok(s.script("unit_restart gone.service; unit_off gone.service"))
		s.must(os.Remove(s.path("var/units/gone.service")))
		if r := s.ok(s.script("undo_all")); strings.Contains(r.output, "not undone") {
			t.Errorf("of one that was %s: %s", state, r.output)
		}
	}
}

// A unit that comes up by itself, as the kubelet of a host that has just booted, is none of kgpu's changes.
func TestUnitThatComesByItself(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("var/units/coming.service", "loaded,activating,enabled\n")
	s.write("var/units/later.service", "loaded,queued,enabled\n")
	s.write("var/units/once.service", "loaded,activating,disabled\n")
	s.ok(s.script("unit_enable coming.service later.service once.service"))
	for _, unit := range []string{"coming", "later", "once"} {
		if got := s.read("var/units/" + unit + ".service"); got != "loaded,active,enabled\n" {
			t.Errorf("%s is %q", unit, got)
		}
	}
	if n := s.entries(); n != 1 {
		t.Errorf("%d entries, want that of the unit that kgpu enabled", n)
	}
}

// TestUnitThatKgpuBrought: a package whose script was cut off has not enabled its unit.
func TestUnitThatKgpuBrought(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.repository(deb{name: "one", version: "1"})
	s.stub("dpkg-query", "#!/bin/sh\ncase $* in -L*one*) echo /lib/systemd/system/ours.service ;; esac\nexec /usr/bin/dpkg-query \"$@\"\n")
	s.ok(s.script("apt_install one"))
	s.write("var/units/ours.service", "loaded,inactive,disabled\n")
	s.write("var/units/theirs.service", "loaded,inactive,disabled\n")
	s.ok(s.script("unit_enable ours.service theirs.service"))
	for _, unit := range []string{"ours", "theirs"} {
		if got := s.read("var/units/" + unit + ".service"); got != "loaded,active,enabled\n" {
			t.Errorf("%s is %q", unit, got)
		}
	}
	s.prints("ledger_find unit ours.service; ledger_find unit theirs.service", "000002\n")
	s.ok(s.script("undo_all"))
	for _, unit := range []string{"ours", "theirs"} {
		if got := s.read("var/units/" + unit + ".service"); got != "loaded,inactive,disabled\n" {
			t.Errorf("after undo, %s is %q", unit, got)
		}
	}
}

// A systemd that is too busy to answer tells nothing that reset could bring a unit back to.
func TestUnitOfWhichSystemdDoesNotTell(t *testing.T) {
	t.Parallel()
	for property, answer := range map[string]string{"LoadState": "exit 1", "ActiveState": "exit 1", "UnitFileState": "exit 1", "-p ActiveState": "exit 0"} {
		s := newSandbox(t)
		s.write("var/units/theirs.service", "loaded,active,enabled\n")
		s.write("systemctl", s.read("stubs/systemctl"))
		s.stub("systemctl", "#!/bin/sh\ncase $* in show*"+property+"*) "+answer+" ;; esac\nexec bash /systemctl \"$@\"\n")
		s.fails(s.script("unit_restart theirs.service"), 75, "STEP_FAILED")
		if n := s.entries(); n != 0 {
			t.Errorf("%s, %s: %d entries", property, answer, n)
		}
	}
}

func TestSysctls(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.file("/etc/sysctl.d/90-kgpu.conf", "# a comment\nnet.ipv4.ip_forward = 1\nnet.ipv4.tcp_rmem=4096 87380 6291456\n-net.ipv4.conf.all.rp_filter = 2\n")
	step, err := Step("os-sysctl")
	s.must(err)
	const keys = "net.ipv4.ip_forward net.ipv4.conf.all.accept_redirects net.ipv4.conf.default.forwarding net.ipv4.tcp_rmem net.ipv4.conf.all.rp_filter"
	s.write("step.sh", string(step))
	// All in one script: the values belong to the sandbox's network, which ends with it.
	r := s.ok(s.script(`
sysctl -q -w net.ipv4.conf.all.accept_redirects=0
sysctl ` + keys + ` >/tmp/before
bash /step.sh
bash /step.sh
remember_sysctls net.ipv4.ip_forward net.ipv4.tcp_rmem
sysctl net.ipv4.ip_forward net.ipv4.tcp_rmem net.ipv4.conf.all.rp_filter
find /var/lib/kgpu/ledger -name kind -exec cat {} +
undo_all
sysctl ` + keys + ` | diff /tmp/before -`))
	contains(t, r.output, "net.ipv4.ip_forward = 1\n",
		"net.ipv4.tcp_rmem = 4096\t87380\t6291456\n", "net.ipv4.conf.all.rp_filter = 2\n")
	if n := strings.Count(r.output, "sysctl\n"); n != 1 {
		t.Errorf("%d sysctl entries, want 1 (the second run changes nothing, and what is there since the first is not what was):\n%s", n, r.output)
	}
	s.fails(s.script("echo 'net.ipv4.no_such_key = 1' >/tmp/f; apply_sysctls /tmp/f"), 1, "HOST_MODULE_MISSING")
}

// TestSysctlsBeforeTheirFile: a boot that finds the file sets the values, and what they were would be lost.
func TestSysctlsBeforeTheirFile(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.stub("sysctl", "#!/bin/sh\n[ \"$2\" = -w ] || { echo 0; exit; }\n[ ! -e /etc/sysctl.d/90-kgpu.conf ] || echo 'there is the file' >&2\nexit 1\n")
	s.file("/etc/sysctl.d/90-kgpu.conf", "net.ipv4.ip_forward = 1\n")
	r := s.step("os-sysctl")
	s.fails(r, 1, "STEP_FAILED")
	if strings.Contains(r.output, "there is the file") || s.exists("etc/sysctl.d/90-kgpu.conf") || s.entries() != 1 {
		t.Errorf("%d entries:\n%s", s.entries(), r.output)
	}
}

func TestModuleThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.fails(s.script("load_module no_such_module_at_all"), 1, "HOST_MODULE_MISSING")
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries for nothing", n)
	}
}

// theirs are rules of the host's owner, some of which name Kubernetes' things without being Kubernetes'.
const theirs = `*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:MY-KUBE-THING - [0:0]
:WEAVERS - [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment "ssh for KUBE-admins" -j ACCEPT
-A INPUT -j MY-KUBE-THING
-A FORWARD -i eth0 -o cni01 -j ACCEPT
-A MY-KUBE-THING -s 10.1.0.0/16 -j WEAVERS
-A WEAVERS -j RETURN
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -s 192.168.7.0/24 -o eth0 -j MASQUERADE
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
COMMIT
`

// kubernetes are rules as kube-proxy, kubelet, weave, flannel, the portmap plugin and calico write them.
const kubernetes = `*filter
:KUBE-FIREWALL - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:WEAVE-NPC - [0:0]
:WEAVE-NPC-DEFAULT - [0:0]
:WEAVE-NPC-EGRESS - [0:0]
:FLANNEL-FWD - [0:0]
:cali-FORWARD - [0:0]
:cali-from-wl-dispatch - [0:0]
-I INPUT 1 -m comment --comment "cali:Cz_u1IQiXIMmKD4c" -j KUBE-FIREWALL
-I INPUT 2 -d 127.0.0.1/32 -p tcp -m tcp --dport 6784 -m addrtype ! --src-type LOCAL -m conntrack ! --ctstate RELATED,ESTABLISHED -m comment --comment "Block non-local access to Weave Net control port" -j DROP
-A INPUT -i weave -j WEAVE-NPC-EGRESS
-I FORWARD 1 -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -i weave -m comment --comment "NOTE: this must go before '-j KUBE-FORWARD'" -j WEAVE-NPC-EGRESS
-A FORWARD -o weave -j WEAVE-NPC
-A FORWARD -o weave -j DROP
-A FORWARD -m comment --comment "flanneld forward" -j FLANNEL-FWD
-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD
-A FORWARD -s 10.244.0.0/16 -m comment --comment "flanneld forward" -j ACCEPT
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -j DROP
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A WEAVE-NPC -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A WEAVE-NPC -m conntrack --ctstate NEW -j WEAVE-NPC-DEFAULT
-A cali-FORWARD -i cali+ -j cali-from-wl-dispatch
COMMIT
*nat
:KUBE-SERVICES - [0:0]
:KUBE-SVC-TCOU7JCQXEZGVUNU - [0:0]
:KUBE-SEP-6E7XQMQ4RAYOWTTM - [0:0]
:WEAVE - [0:0]
:WEAVE-CANARY - [0:0]
:FLANNEL-POSTRTG - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
-I PREROUTING 1 -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -j WEAVE
-A POSTROUTING -m comment --comment "flanneld masq" -j FLANNEL-POSTRTG
-A KUBE-SERVICES -d 10.96.0.10/32 -p udp -m udp --dport 53 -j KUBE-SVC-TCOU7JCQXEZGVUNU
-A KUBE-SVC-TCOU7JCQXEZGVUNU -m statistic --mode random --probability 0.5 -j KUBE-SEP-6E7XQMQ4RAYOWTTM
-A KUBE-SEP-6E7XQMQ4RAYOWTTM -p udp -m udp -j DNAT --to-destination 10.244.0.2:53
-A WEAVE -s 10.244.0.0/16 ! -d 10.244.0.0/16 -j MASQUERADE
COMMIT
*mangle
:KUBE-IPTABLES-HINT - [0:0]
:KUBE-PROXY-CANARY - [0:0]
COMMIT
`

// ofIPv6 are the same rules for ip6tables.
func ofIPv6(rules string) string {
	rules = strings.ReplaceAll(rules, "10.244.0.2:53", "[fd00::2]:53")
	return regexp.MustCompile(`\d+\.\d+\.\d+\.\d+(/\d+)?`).ReplaceAllString(rules, "fd00::/64")
}

func TestRulesOfOthersStay(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"nft", "legacy"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.write("theirs/iptables", theirs)
			s.write("theirs/ip6tables", ofIPv6(theirs))
			s.write("kubernetes/iptables", kubernetes)
			s.write("kubernetes/ip6tables", ofIPv6(kubernetes))
			s.ok(s.script("tools='iptables-" + backend + " ip6tables-" + backend + "'" + `
rules() { for tool in $tools; do $tool-save; done | sed -E '/^#/d; s/\[[0-9:]+\]$//'; }
for tool in $tools; do $tool-restore </theirs/${tool%-*}; done
rules >/tmp/before
for tool in $tools; do
  $tool-restore --noflush </kubernetes/${tool%-*}
  [[ $($tool-save | grep -cE 'KUBE-|WEAVE|cali-|FLANNEL') -gt 30 ]]
done
rules_drop "$kubernetes_chains" "$kubernetes_rules"
rules | diff /tmp/before -
rules_drop "$kubernetes_chains" "$kubernetes_rules"
rules | diff /tmp/before -`))
		})
	}
}

func TestDockerNetwork(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("theirs", theirs)
	s.ok(s.script(`
rules() { iptables-save | sed -E '/^#/d; s/\[[0-9:]+\]$//'; }
iptables-restore </theirs
rules >/tmp/before
record docker-network "iptables=$(forward_policy iptables)"
iptables-restore --noflush <<'X'
*filter
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-USER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
-I FORWARD 1 -j DOCKER-USER
-I FORWARD 2 -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A DOCKER-USER -j RETURN
COMMIT
*nat
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
COMMIT
X
ip link add docker0 type bridge
undo_all
rules | diff /tmp/before -
[[ ! -e /sys/class/net/docker0 ]]`))
}

func TestPodNetworkFilesOfOthersStay(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for _, name := range []string{
		"etc/cni/net.d/87-podman-bridge.conflist", "etc/cni/net.d/10-weave.conflist", "etc/cni/net.d/10-flannel.conflist",
		"opt/cni/bin/bridge", "opt/cni/bin/weave-net", "opt/cni/bin/weave-plugin-2.9.0", "var/lib/weave/weave-netdata.db", "run/flannel/subnet.env", "var/lib/cni/networks/cbr0/10.244.0.2",
	} {
		s.write(name, "x")
	}
	s.ok(s.script("for l in weave cni0 other0; do ip link add $l type bridge; done; pod_network_mute; pod_network_off; ls /sys/class/net"))
	var left []string
	for name, what := range s.snapshot() {
		if strings.HasPrefix(what, "-") && (strings.Contains(name, "cni") || strings.Contains(name, "weave") || strings.Contains(name, "flannel")) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	if want := []string{"etc/cni/net.d/87-podman-bridge.conflist", "opt/cni/bin/bridge"}; !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
	r := s.ok(s.script("ip link add weave type bridge; ip link add other0 type bridge; pod_network_off; ls /sys/class/net"))
	contains(t, r.output, "other0")
	lacks(t, r.output, "weave")
}

// A module that the kernel had stays; one that kgpu loaded goes with those that came along, each by itself and after those that
// need it, or is told of while it is in use. modprobe -r would take those along that nothing counts as theirs: a bridge does not.
func TestModules(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.stub("modprobe", `#!/bin/bash
name=${*: -1}
case $* in
"-n -q -- "*) [[ $name != absent ]] ;;
"--show-depends -- "*)
  case $name in
  br-netfilter) printf 'insmod /lib/modules/6/kernel/%s \n' 802/stp.ko.zst owners-own.ko bridge/bridge.ko br_netfilter.ko.xz ;;
  busy) printf 'builtin inside\ninsmod /lib/modules/6/kernel/held.ko x=1\ninsmod /lib/modules/6/kernel/busy.ko\n' ;;
  inside) echo 'builtin inside' ;;
  command) echo 'install /sbin/modprobe --ignore-install command' ;;
  esac ;;
"-r "*) exit 9 ;;
*) for module in $name $(sed -n "s/^$name: //p" /needs); do mkdir -p "/sys/module/${module//-/_}"; done; rmdir /sys/module/inside 2>/dev/null || true ;;
esac
`)
	s.write("needs", "br-netfilter: bridge stp\nbusy: held\n")
	s.stub("rmmod", "#!/bin/bash\necho \"${*: -1}\" >>/tried\n[[ ${*: -1} != @(busy|held) ]] && rmdir \"/sys/module/${*: -1}\"\n")
	// The tests' machine has networks that are none of the sandbox's.
	const begin = `
eval "$(declare -f network_spaces | sed '1s/network/all/')"
network_spaces() { echo /proc/self/ns/net; }
mount -t tmpfs none /sys/module
mkdir /sys/module/owners_own
`
	const end = `
undo_all
ls /sys/module >/after
printf '%s\n' "${undo_incomplete[@]}" >/told`
	check := func(file, want string) {
		t.Helper()
		if got := s.read(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
		s.remove(file)
	}
	const inUse = " is in use: it stays until the next boot\n"

	s.ok(s.script(begin + `
load_module owners-own br-netfilter busy inside command
load_module br-netfilter
ls /sys/module >/loaded` + end))
	check("loaded", "br_netfilter\nbridge\nbusy\ncommand\nheld\nowners_own\nstp\n")
	check("tried", "command\nbusy\nheld\nbr_netfilter\nbridge\nstp\n")
	check("after", "busy\nheld\nowners_own\n")
	check("told", "module busy"+inUse+"module held"+inUse)

	// What an older kgpu recorded, as it was told the name.
	s.ok(s.script(begin + "record module br-netfilter; modprobe br-netfilter" + end))
	check("tried", "br_netfilter\n")
	check("after", "bridge\nowners_own\nstp\n")
	check("told", "\n")

	for _, bridge := range []string{"ip link add br0 type bridge\n", `
mkdir -p /run/netns
touch /run/netns/theirs
unshare --net=/run/netns/theirs ip link add br0 type bridge
grep -qxF /run/netns/theirs <<<"$(all_spaces)"
network_spaces() { printf '%s\n' /proc/self/ns/net /run/netns/theirs; }
`} {
		s.ok(s.script(begin + "load_module br-netfilter\n" + bridge + end))
		check("tried", "br_netfilter\nstp\n")
		check("after", "bridge\nowners_own\n")
		check("told", "module bridge"+inUse)
	}

	s.fails(s.script("load_module absent"), 1, "HOST_MODULE_MISSING")
	if n := s.entries(); n != 0 {
		t.Errorf("%d entries for nothing", n)
	}
}

// A module that somebody keeps out is not loaded, whatever modprobe makes of that, and who does is said with file and line.
func TestModulesKeptOut(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	// As kmod does: a command in the place of the module; blacklists are for the boot, aliases for nothing.
	s.stub("modprobe", `#!/bin/bash
name=${*: -1}
command=$(sed -nE "s/^ *install +$name +//p" /etc/modprobe.d/*.conf | head -n 1)
case $* in
-n*) ;;
--show-depends*) printf 'insmod /lib/modules/6/kernel/%s.ko \n' "$name" ;;
*) if [[ -n $command ]]; then $command; else mkdir -p "/sys/module/$name"; fi ;;
esac
`)
	const begin = "mount -t tmpfs none /sys/module\n"
	for name, c := range map[string]struct{ conf, why string }{
		"a command that fails":         {"# CIS 3.1\ninstall overlay /bin/false\n", "HOST_MODULE_DISABLED\tmodule overlay_x is kept out by /etc/modprobe.d/cis.conf:2:install overlay_x /bin/false\n"},
		"a command that does nothing":  {"  install overlay /bin/true\n", "HOST_MODULE_DISABLED\tmodule overlay_x is kept out by /etc/modprobe.d/cis.conf:1:  install overlay_x /bin/true\n"},
		"a command that loads it":      {"install overlay mkdir /sys/module/overlay\n", ""},
		"another module":               {"install overlayfs /bin/false\ninstall my-overlay /bin/false\n", ""},
		"a blacklist, which is no bar": {"blacklist overlay\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			// Of another name than the machine's own, which may be built in.
			s.write("etc/modprobe.d/cis.conf", strings.ReplaceAll(strings.ReplaceAll(c.conf, "overlay\n", "overlay_x\n"), "overlay ", "overlay_x "))
			if c.why == "" {
				s.ok(s.script(begin + "load_module overlay_x"))
				return
			}
			s.fails(s.script(begin+"load_module overlay_x"), 1, "HOST_MODULE_DISABLED")
			if got := s.read(stepDir + "/failure"); got != c.why {
				t.Errorf("%q, want %q", got, c.why)
			}
		})
	}
	s.remove("etc/modprobe.d/cis.conf")
	s.write("run/modprobe.d/a.conf", "install overlay_x /bin/false\n")
	s.write("etc/modprobe.d/a.conf", "")
	if r := s.script("module_off overlay_x"); r.status == 0 {
		t.Errorf("/etc's a.conf takes the place of /run's, and it says %s", r.output)
	}
	s.stub("modprobe", "#!/bin/bash\n")
	s.fails(s.script(begin+"load_module overlay_x"), 1, "HOST_MODULE_MISSING")
}

// An agent makes ipsets without the program, which the host may lack, and the kernel keeps what is in use: it is told.
func TestSetsThatStay(t *testing.T) {
	t.Parallel()
	const program = `#!/bin/bash
case $1 in
list) grep -xF -e "${3:-$(</sets)}" /sets ;;
destroy) %s || exit; grep -vxF -e "$2" /sets >/left; cat /left >/sets ;;
esac
`
	for name, c := range map[string]struct{ link, destroyed, want string }{
		"flannel makes none":    {link: "cni0"},
		"kube-proxy's, without": {link: "kube-ipvs0", want: "the ipsets of the pod network, which this host has no program for: they stay until the next boot"},
		"without the program":   {link: "weave", want: "the ipsets of the pod network, which this host has no program for: they stay until the next boot"},
		"destroyed":             {link: "weave", destroyed: "true"},
		"named by a list":       {link: "cali1", destroyed: "[[ $2 == cali40all || $(</sets) != *cali40all* ]]"},
		"in use":                {link: "weave", destroyed: "[[ $2 != weave-1 ]]", want: "the ipset weave-1 is in use: it stays until the next boot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			hide := "command() { [[ $* != '-v ipset' ]] && builtin command \"$@\"; }\n"
			if c.destroyed != "" {
				s.stub("ipset", fmt.Sprintf(program, c.destroyed))
				hide = ""
			}
			s.write("sets", "cali40a\nweave-1\ncali40all\nf2b-sshd\n")
			r := s.ok(s.script(hide + "ip link add " + c.link + " type bridge; pod_network_off; echo --; printf '%s' \"${undo_incomplete[*]}\""))
			if got := r.output[strings.Index(r.output, "--\n")+3:]; got != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
			if sets := s.read("sets"); c.destroyed != "" && c.want == "" && sets != "f2b-sshd\n" || !strings.Contains(sets, "f2b-sshd") {
				t.Errorf("left: %q", sets)
			}
		})
	}
}

// kgpu brings the program that destroys ipsets, and reset takes it away: not before the cluster's sets are gone.
func TestProgramOfTheSetsGoesLast(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.repository(deb{name: "ipset", version: "1"})
	s.stub("ipset", `#!/bin/bash
[[ $(dpkg-query -W -f '${db:Status-Status}' ipset 2>/dev/null) == installed ]] || exit 1
case $1 in
list) cat /sets ;;
destroy) : >/sets ;;
esac
`)
	s.value("packages", "ipset\n")
	s.ok(s.step("os-packages"))
	s.ok(s.script("record kubeadm init"))
	s.write("sets", "weave-1\n")
	s.ok(s.step("host-reset"))
	if sets, status := s.read("sets"), s.status("ipset"); sets != "" || strings.HasPrefix(status, "install") || s.entries() > 0 {
		t.Errorf("sets %q, ipset is %q, %d entries", sets, status, s.entries())
	}
}

// The plugins that podman uses name their chains, addresses and namespaces like those of a pod network.
func TestContainersOfOthersKeepTheirNetwork(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for _, name := range []string{"networks/podman/10.88.0.2", "networks/podman/last_reserved_ip.0", "networks/cbr0/10.244.0.2", "results/podman-1-eth0", "results/cbr0-2-eth0"} {
		s.write("var/lib/cni/"+name, "")
	}
	s.write("rules", `*nat
:CNI-DN-podman - [0:0]
:KUBE-SERVICES - [0:0]
-A PREROUTING -j CNI-DN-podman
-A PREROUTING -j KUBE-SERVICES
COMMIT
`)
	found := func(r result) string { return r.output[strings.Index(r.output, "--\n"):] }
	r := s.ok(s.script(`
iptables-restore </rules
mkdir -p /run/netns
touch /run/netns/cni-theirs /run/netns/cni-ours
unshare --net sleep 60 &
theirs=$!
until [[ ! /proc/$theirs/ns/net -ef /proc/$$/ns/net ]]; do sleep 0.1; done
mount --bind "/proc/$theirs/ns/net" /run/netns/cni-theirs
containers_off
pod_network_off
echo --
iptables-save -t nat | grep '^-A'
find /var/lib/cni /run/netns -type f | sort
echo "${undo_incomplete[@]}"
kill "$theirs"`))
	want := `--
-A PREROUTING -j CNI-DN-podman
/run/netns/cni-theirs
/var/lib/cni/networks/podman/10.88.0.2
/var/lib/cni/networks/podman/last_reserved_ip.0
/var/lib/cni/results/podman-1-eth0
the packet filter chains CNI-*: containers that are not the cluster's have theirs among them
`
	if got := found(r); got != want {
		t.Errorf("beside podman there is left:\n%s", got)
	}
	r = s.ok(s.script("iptables-restore </rules; pod_network_off; echo --; iptables-save -t nat | grep '^-A' || true; find /var/lib/cni -type f"))
	if got := found(r); got != "--\n" {
		t.Errorf("without its containers there is left:\n%s", got)
	}
}

// What a cluster left goes, and what is others' stays as it is, whether kubeadm reset does its part or not.
func TestLeaving(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"after kubeadm reset": "exit 0", "after a kubeadm reset that fails": "exit 1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterHost(t)
			s.stub("kubeadm", "#!/bin/bash\nls /etc/cni/net.d >/tmp/networks\n"+end+"\n")
			// A container with a process cannot be deleted, and a kubelet that runs starts it again.
			s.stub("ctr", `#!/bin/bash
[[ $1 == -n ]] && cd "/ctr/$2" || exit
case "$3 $4" in
"tasks list" | "containers list") ls "$3" ;;
"tasks delete") [[ $(</var/units/kubelet.service) == *,active,* ]] || rm "tasks/$6" ;;
"containers delete") [[ ! -e tasks/$5 ]] && rm "containers/$5" ;;
esac
`)
			// The kernel keeps a set that rules name.
			s.stub("ipset", `#!/bin/bash
case $1 in
list) grep -xF -e "${3:-$(</sets)}" /sets ;;
destroy) ! iptables-save | grep -q WEAVE-NPC && grep -vxF -e "$2" /sets >/tmp/sets && cat /tmp/sets >/sets ;;
esac
`)
			const sets = "f2b-sshd\nmy-weave-set\nKUBELIKE\n"
			files := func(names ...string) {
				for _, name := range names {
					s.write(name, "")
				}
			}
			files("etc/cni/net.d/87-podman-bridge.conflist", "opt/cni/bin/bridge", "ctr/moby/tasks/theirs", "ctr/moby/containers/theirs", "ctr/default/tasks/theirs", "ctr/default/containers/theirs")
			for _, dir := range []string{"ctr/k8s.io/tasks", "ctr/k8s.io/containers", "etc/kubernetes/manifests", "var/lib/kubelet", "var/lib/cni", "run/containerd"} {
				s.must(os.MkdirAll(s.path(dir), 0o755))
			}
			s.must(syscall.Mknod(s.path("run/containerd/containerd.sock"), syscall.S_IFSOCK|0o600, 0))
			s.write("sets", sets)
			s.write("var/units/kubelet.service", "loaded,inactive,enabled\n")
			before := s.snapshot()

			files("etc/cni/net.d/10-weave.conflist", "opt/cni/bin/weave-net", "var/lib/weave/weave-netdata.db", "var/lib/cni/networks/weave/10.32.0.2", "etc/kubernetes/kubelet.conf",
				"etc/kubernetes/pki/ca.crt", "etc/kubernetes/manifests/kube-apiserver.yaml", "var/lib/kubelet/config.yaml",
				"ctr/k8s.io/tasks/a", "ctr/k8s.io/tasks/b", "ctr/k8s.io/containers/a", "ctr/k8s.io/containers/b", "ctr/k8s.io/containers/ended")
			s.write("sets", "weave-k?Z;25^M}|1s7P3|H9i;*;MhG\nweaver-no-masq-local\nKUBE-CLUSTER-IP\nKUBE-6-CLUSTER-IP\ncali40masq-ipam-pools\n"+sets)
			s.write("var/units/kubelet.service", "loaded,active,enabled\n")
			s.write("tmp/kubernetes", kubernetes)
			r := s.ok(s.script(`
iptables-restore --noflush </tmp/kubernetes
ip link add weave type bridge
leave_cluster "$(value criSocket)"
[[ ! -e /sys/class/net/weave ]]
if iptables-save | grep -E 'KUBE-|WEAVE'; then exit 1; fi`))
			s.same(before)
			s.holds("tmp/networks", "00-kgpu-leave.conflist\n87-podman-bridge.conflist\n")
			if strings.Contains(r.output, "kubeadm reset failed") != (end == "exit 1") {
				t.Errorf("it says:\n%s", r.output)
			}
		})
	}
}

// Whoever gave /var/lib/kubelet a file system of its own has it in fstab.
func TestKubeletsFileSystemStaysMounted(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.ok(s.script(`
mkdir -p /var/lib/kubelet
mount -t tmpfs none /var/lib/kubelet
mkdir -p /var/lib/kubelet/pods/1
mount -t tmpfs none /var/lib/kubelet/pods/1
echo x >/var/lib/kubelet/config.yaml
kubelet_off
mountpoint -q /var/lib/kubelet
[[ -z $(ls -A /var/lib/kubelet) ]]`))
}

// The cluster's containers in docker are those with kubelet's label; kubeadm reset may have been cut short.
func TestLeavingEndsContainersInDocker(t *testing.T) {
	t.Parallel()
	s := clusterHost(t)
	s.stub("kubeadm", "#!/bin/bash\nexit 1\n")
	s.stub("docker", `#!/bin/bash
echo "$*" >>/tmp/docker
[[ ! -e /docker-hangs ]] || exit 1
case $* in
"ps -aq --filter label=io.kubernetes.pod.uid") cat /pods ;;
"rm -fv "*) shift 2; for id; do [[ $id == stuck ]] || sed -i "/^$id\$/d" /pods; done ;;
*) exit 1 ;;
esac
`)
	const told = "\nprintf '%s' \"${undo_incomplete[*]}\" >/told"
	s.value("criSocket", "unix:///run/cri-dockerd.sock")
	s.write("var/lib/docker/theirs", "")
	s.write("pods", "one\ntwo\n")
	s.write("var/units/docker.service", "loaded,active,enabled\n")
	s.ok(s.script(`images_stay() { :; }; leave_cluster "$(value criSocket)"` + told))
	if pods, told := s.read("pods"), s.read("told"); pods != "" || told != "" {
		t.Errorf("there is left %q, told %q", pods, told)
	}
	contains(t, s.read("tmp/docker"), "\nrm -fv one two\n")
	s.write("pods", "stuck\nthree\n")
	s.ok(s.script("docker_containers_off" + told))
	if pods, told := s.read("pods"), s.read("told"); pods != "stuck\n" || told != "containers of the cluster in docker: docker rm -f stuck" {
		t.Errorf("with one that stays there is left %q, told %q", pods, told)
	}
	s.write("docker-hangs", "")
	s.ok(s.script("docker_containers_off" + told))
	if told := s.read("told"); !strings.HasPrefix(told, "containers of the cluster, perhaps") {
		t.Errorf("where docker does not say, told %q", told)
	}
	s.remove("tmp/docker")
	s.write("var/units/docker.service", "loaded,inactive,enabled\n")
	if s.ok(s.script("docker_containers_off" + told)); s.exists("tmp/docker") || s.read("told") != "" {
		t.Error("a docker that does not run was asked")
	}
}

// BIRD is no part of calico where there is no calico, and tunl0 is LVS' as well.
func TestRoutesOfOthersStay(t *testing.T) {
	t.Parallel()
	const leave = "leave_cluster unix:///run/containerd/containerd.sock"
	for name, c := range map[string]struct {
		begin, leave string
		stay         bool
	}{
		"flannel":                    {"ip link add cni0 type bridge", "pod_network_off", true},
		"no calico, leaving":         {"mkdir -p /etc/cni/net.d; : >/etc/cni/net.d/10-flannel.conflist", leave, true},
		"calico's links":             {"ip link add cali1 type bridge", "pod_network_off", false},
		"calico's data":              {"mkdir -p /var/lib/calico", "pod_network_off", false},
		"calico's settings, leaving": {"mkdir -p /etc/cni/net.d; : >/etc/cni/net.d/10-calico.conflist", leave, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clusterHost(t)
			s.ok(s.script(c.begin + `
ip link add tunl0 type bridge
ip address add 192.0.2.1/32 dev tunl0
ip route add 198.51.100.0/24 dev lo proto 12
ip route add 203.0.113.0/24 dev lo proto 80
` + c.leave + `
{ ip -o -4 address show dev tunl0; ip route show; } >/left`))
			left := s.read("left")
			for _, what := range []string{"192.0.2.1", "198.51.100.0/24", "203.0.113.0/24"} {
				if strings.Contains(left, what) != c.stay {
					t.Errorf("%s: left is\n%s", what, left)
				}
			}
		})
	}
}
