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

// OldContainerd names the containerd before version 2 that runs, or will run, the host's pods; empty if there is
// none.
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

// KeySoon is how long before a key's expiry any `kgpu up` fetches it again, once a week at most. The owner of a
// repository extends its key under the same fingerprint, weeks before the expiry or on its last day. The host's copy
// stays as it was fetched, and apt refuses the repository when that copy expires.
const KeySoon = 60 * 24 * time.Hour

// KeyEnds is when the last key of a keyring expires; zero if never or unknown.
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

// KeyRefused reports whether apt refuses the signatures of a keyring: all its keys have expired and apt has accepted
// nothing since. sqv, of apt 3, still accepts signatures from before the expiry.
func KeyRefused(k facts.Keyring, now time.Time) bool {
	ends := KeyEnds(k)
	return !ends.IsZero() && !now.IsZero() && !now.Before(ends) && k.Accepted.Before(ends)
}

// Distribution is another Kubernetes distribution of which a host has traces.
type Distribution struct {
	Name      string
	Installed bool     // it is installed, rather than a remnant
	Signs     []string // paths, units and programs
	RemovedBy string   // the command that removes it
}

// distributionUnits are the systemd units of each distribution, distributionPrograms the programs that listen on
// ports.
var distributionUnits = map[string][]string{
	"k3s":      {"k3s.service", "k3s-agent.service"},
	"rke2":     {"rke2-server.service", "rke2-agent.service"},
	"k0s":      {"k0scontroller.service", "k0sworker.service"},
	"microk8s": {"snap.microk8s.daemon-kubelite.service"},
}

var distributionPrograms = map[string][]string{
	"k3s": {"k3s", "k3s-server", "k3s-agent"}, "rke2": {"rke2"}, "k0s": {"k0s"}, "microk8s": {"kubelite"}, "rke": {"hyperkube"}, "openshift": {"openshift", "hyperkube"},
}

// Distributions returns the other Kubernetes distributions of which the host has traces. One is Here if a unit is
// active, a program listens, or there are traces of two kinds (data, programs, units). A directory that an
// uninstaller forgot is not enough.
func Distributions(f *facts.Host) []Distribution {
	var out []Distribution
	for _, name := range f.OtherDistributions {
		d := Distribution{Name: name}
		var data, programs, uninstallers []string
		for _, path := range f.DistributionPaths {
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
				d.Installed = d.Installed || u.Active == "active" || u.Active == "activating"
			}
		}
		for _, s := range f.Listening {
			if slices.Contains(distributionPrograms[name], s.Process) {
				d.Installed = true
				units = append(units, fmt.Sprintf("%s at port %d", s.Process, s.Addr.Port()))
			}
		}
		kinds := 0
		for _, signs := range [][]string{data, programs, units} {
			if d.Signs = append(d.Signs, signs...); len(signs) > 0 {
				kinds++
			}
		}
		d.Installed = d.Installed || kinds != 1 // no traces at all: the facts have no paths
		d.RemovedBy = removal(d, uninstallers, data)
		out = append(out, d)
	}
	return out
}

// removal returns the command that removes a distribution, or its remnants. Its own uninstaller is preferred.
func removal(d Distribution, uninstallers, data []string) string {
	switch {
	case len(uninstallers) > 0:
		return "`sudo " + uninstallers[0] + "`"
	case !d.Installed:
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
