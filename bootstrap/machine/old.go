package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/facts"
	"kgpu.dev/kgpu/inventory"
)

// OldContainerd says of a host whose pods run, or would run, in a containerd before 2 which one that is; empty: they do not.
func OldContainerd(inv *inventory.Inventory, f *facts.Host) string {
	has := cmp.Or(f.Packages["containerd.io"].Version, f.Packages["containerd"].Version)
	version := cmp.Or(has, f.Containerd.Version)
	if inv.Runtime != inventory.Containerd || version == "" || catalog.CompareDebian(version, "2") >= 0 {
		return ""
	}
	upstream, _, _ := strings.Cut(version, "-")
	upstream, _, _ = strings.Cut(upstream, "~")
	if has == "" {
		upstream += ", which apt would install"
		if f.Containerd.Why != "" {
			upstream += " (Docker's repository offers no containerd.io: " + strings.TrimSuffix(f.Containerd.Why, ".") + ")"
		}
	}
	return "containerd is " + upstream
}

// The owner of a repository extends its key beneath the same fingerprint, weeks before it ends or on its last day. The key on a
// host stays as it was fetched, and apt refuses the repository when it ends, by the host's clock. So a key that ends soon is
// fetched again by any `kgpu up`, once a week at most: until its owner has extended it that brings nothing newer.
const KeySoon = 60 * 24 * time.Hour

// KeyEnds is when the last key of a keyring expires; zero: never, or the host cannot tell.
func KeyEnds(k facts.Keyring) time.Time {
	var last time.Time
	for _, key := range k.Keys {
		if key.Until.IsZero() {
			return time.Time{}
		}
		if key.Until.After(last) {
			last = key.Until
		}
	}
	return last
}

// KeyRefused reports whether apt refuses what a keyring's keys sign, as far as is known: they have expired, and apt has taken
// nothing since. sqv, of apt 3, takes signatures from before the end of the key.
func KeyRefused(k facts.Keyring, now time.Time) bool {
	ends := KeyEnds(k)
	return !ends.IsZero() && !now.IsZero() && !now.Before(ends) && k.Accepted.Before(ends)
}

// Distribution is another kind of Kubernetes of which a host has signs.
type Distribution struct {
	Name  string
	Here  bool     // it runs, or there are two signs of another kind; else something was left of it
	Signs []string // paths, units and programs
	Away  string   // what takes it away
}

// distributionUnits are the units that run it, and programs that listen where it runs.
var distributionUnits = map[string][]string{
	"k3s":      {"k3s.service", "k3s-agent.service"},
	"rke2":     {"rke2-server.service", "rke2-agent.service"},
	"k0s":      {"k0scontroller.service", "k0sworker.service"},
	"microk8s": {"snap.microk8s.daemon-kubelite.service"},
}

var distributionPrograms = map[string][]string{
	"k3s": {"k3s", "k3s-server", "k3s-agent"}, "rke2": {"rke2"}, "k0s": {"k0s"}, "microk8s": {"kubelite"}, "rke": {"hyperkube"}, "openshift": {"openshift", "hyperkube"},
}

// Distributions are the other kinds of Kubernetes of which the host has signs. A directory that an uninstaller left is none that is
// here: for that, a unit is active, or a program listens, or there are signs of two kinds (data, a program, a unit).
func Distributions(f *facts.Host) []Distribution {
	var out []Distribution
	for _, name := range f.Foreign {
		d := Distribution{Name: name}
		var data, programs, uninstallers []string
		for _, path := range f.ForeignPaths {
			switch {
			case facts.DistributionOf(path) != name:
			case strings.HasSuffix(path, "-uninstall.sh"):
				uninstallers = append(uninstallers, path)
			case strings.Contains(path, "/bin/") || strings.HasPrefix(path, "/snap/"):
				programs = append(programs, path)
			default:
				data = append(data, path)
			}
		}
		var units []string
		for _, unit := range distributionUnits[name] {
			if u := f.Units[unit]; u.Active == "active" || u.Active == "activating" || u.Enabled != "" {
				units = append(units, unit)
				d.Here = d.Here || u.Active == "active" || u.Active == "activating"
			}
		}
		for _, s := range f.Listening {
			if slices.Contains(distributionPrograms[name], s.Process) {
				d.Here = true
				units = append(units, fmt.Sprintf("%s at port %d", s.Process, s.Addr.Port()))
			}
		}
		kinds := 0
		for _, signs := range [][]string{data, programs, units} {
			if d.Signs = append(d.Signs, signs...); len(signs) > 0 {
				kinds++
			}
		}
		d.Here = d.Here || kinds != 1 // none at all: facts that tell no paths
		d.Away = removal(d, uninstallers, data)
		out = append(out, d)
	}
	return out
}

// removal is what takes a distribution, or what is left of it, away. Its own uninstaller, where it is there, knows best.
func removal(d Distribution, uninstallers, data []string) string {
	switch {
	case len(uninstallers) > 0:
		return "`sudo " + uninstallers[0] + "`"
	case !d.Here:
		return "`sudo rm -r " + strings.Join(d.Signs, " ") + "`"
	case d.Name == "k3s":
		return "`sudo k3s-uninstall.sh`, on an agent `sudo k3s-agent-uninstall.sh`"
	case d.Name == "rke2":
		return "`sudo rke2-uninstall.sh`"
	case d.Name == "microk8s":
		return "`sudo snap remove --purge microk8s`"
	case d.Name == "k0s":
		return "`sudo k0s stop && sudo k0s reset`"
	case d.Name == "minikube":
		return "`minikube delete` as the user who made it"
	case d.Name == "rke":
		return "`rke remove` where its cluster.yml is"
	}
	return "what its own documentation says, then `sudo rm -r " + strings.Join(data, " ") + "`"
}
