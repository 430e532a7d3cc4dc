package scripts

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// habits are what no script may do, each a defect that was found in the wild.
var habits = []struct{ why, never string }{
	{"tracing prints secrets", `set -[a-wyz]*x|xtrace|bash -[a-z]*x`},
	{"flushing rules takes the owner's away, and may lock everybody out", `ip6?tables(-legacy|-nft)?( -t \S+)? (-F|--flush|-X|--delete-chain)( *$| *[;&|])|nft flush ruleset`},
	{"packages and downloads are authenticated", `(?i:allow-?unauthenticated)|trusted=yes|allow-insecure|curl .* (-[a-zA-Z]*k|--insecure)\b|--no-check-certificate|apt-key`},
	{"a pattern may match any process that mentions it", `\b(pkill|killall)\b|pgrep -f`},
	{"fstab is the owner's: lines are marked, not deleted", `sed -i.*fstab|>+ */etc/fstab`},
	{"a reset that failed must not look like one that did not", `kubeadm reset.*\|\| *(true|:)`},
	{"kubeadm's checks are not all ignored", `ignore-preflight-errors[= ]all`},
	{"Kubernetes is joined by the hash of its certificate", `unsafe-skip-ca-verification`},
	{"others have files there", `rm -rf? (-- )?/etc/cni( |$|/ )|rm -rf? (-- )?/etc/cni/net\.d/?( |$)`},
	{"what a pipe starts with may fail", `set \+o pipefail`},
	{"files of /proc and /sys have no size", `-s +"?/(proc|sys)/|=/(proc|sys)/\S+.*\B-s\b`},
	{"SECONDS follows the clock, which somebody may set; the uptime does not", `\bSECONDS\b`},
	// The next are of uutils 0.8 to 0.12, coreutils of Ubuntu 25.10 and later: src/uu/{sync,tail,cut}/src.
	{"uutils' sync writes all disks for a file, and hides errors, unless it has -d", `(^|[\s;(])sync +[^-;&|\s]`},
	{"uutils' tail does not follow its standard input", `\btail [^|]*(--follow|\B-[a-zA-Z0-9]*[fF]\b|--pid)`},
	{"uutils' cut keeps back what it writes", `\bstdbuf\b`},
	{"systemd 255 says of every unit that it changed on disk, until it is reloaded", `systemctl .*--no-reload`},
	{"a server's page of an error is no answer", `(^|[|;&(])\s*curl +([^-]|--[a-z]|-[a-eg-zA-Z]+ )`},
}

// hostScripts are the paths of the scripts that run on hosts.
func hostScripts(t *testing.T) (paths []string) {
	t.Helper()
	must(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "lab" || path == "testdata" || path == "runner/runnertest"):
			return fs.SkipDir
		case filepath.Ext(path) == ".sh":
			paths = append(paths, path)
		}
		return nil
	}))
	if len(paths) < 60 {
		t.Errorf("only %d scripts were found", len(paths))
	}
	return paths
}

// TestHabits reads every script that runs on hosts.
func TestHabits(t *testing.T) {
	t.Parallel()
	comment := regexp.MustCompile(`^\s*#`)
	for _, h := range habits {
		never := regexp.MustCompile(h.never)
		for _, path := range hostScripts(t) {
			for i, line := range strings.Split(readFile(t, path), "\n") {
				if !comment.MatchString(line) && never.MatchString(line) {
					t.Errorf("%s:%d: %s: %s", path, i+1, h.why, strings.TrimSpace(line))
				}
			}
		}
	}
}

// TestHabitsAreFound holds that the patterns see what they are for.
func TestHabitsAreFound(t *testing.T) {
	t.Parallel()
	for i, bad := range []string{
		"set -xe", "iptables -t nat -F", "apt-get -y --allow-unauthenticated install x", "pgrep -f kubelet | xargs kill -9", "sed -i /swap/d /etc/fstab",
		"kubeadm reset -f || true", "kubeadm init --ignore-preflight-errors=all", "kubeadm join --discovery-token-unsafe-skip-ca-verification", "rm -rf /etc/cni/net.d", "set +o pipefail", "if [[ -s /proc/net/ip_tables_names ]]; then", "end=$((SECONDS + 60))",
		`[[ -L $1 ]] || sync "$1"`, `tail --bytes=+1 --follow --pid=$! <&5`, "stdbuf -oL cut --bytes=1-16384",
		"systemctl enable -q --no-reload -- x.timer",
		"curl -sSL https://example.org/x | tar -xz",
	} {
		if !regexp.MustCompile(habits[i].never).MatchString(bad) {
			t.Errorf("%q is not seen", bad)
		}
	}
}

// TestCardsWithoutLspci holds that a host without pciutils is no host without cards.
func TestCardsWithoutLspci(t *testing.T) {
	t.Parallel()
	lacks(t, string(Facts()), "lspci") // or the facts are of lspci, which a fresh machine does not have
	s := newGPUHost(t, "0000:17:00.0")
	s.write("gpu/sys/bus/pci/devices/0000:17:00.0/device", "0x20b0\n")
	s.write("gpu/sys/bus/pci/devices/0000:17:00.1/device", "0x1aef\n")
	s.write("gpu/sys/bus/pci/devices/0000:00:02.0/device", "0x9bc4\n")
	h := s.facts()
	if len(h.NVIDIA.Cards) != 1 || h.NVIDIA.Cards[0].Address != "0000:17:00.0" {
		t.Errorf("cards: %+v", h.NVIDIA.Cards)
	}
}
