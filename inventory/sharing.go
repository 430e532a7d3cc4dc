package inventory

// MIGStrategy says how the device plugin offers the instances that a card is cut into. Cutting is the administrator's.
// Source: https://github.com/NVIDIA/k8s-device-plugin, README, "MIG_STRATEGY".
type MIGStrategy string

// The strategies.
const (
	MIGNone   MIGStrategy = "none"   // whole cards, cut or not
	MIGSingle MIGStrategy = "single" // instances as nvidia.com/gpu; all cards of a host are cut into the same
	MIGMixed  MIGStrategy = "mixed"  // instances as nvidia.com/mig-1g.5gb and so on
)

// Sharing lets several pods have the same card.
type Sharing struct {
	Replicas int // how often each card is offered; zero: not shared in this way
}

// Share is how often each card is offered: once, unless it is shared.
func (g GPU) Share() int { return max(1, g.TimeSlicing.Replicas, g.MPS.Replicas) }

// Limits of replicas. Source of MPS's: k8s-device-plugin 0.20.0, cmd/mps-control-daemon/mps/device.go, for Turing and newer.
const (
	minReplicas  = 2
	maxReplicas  = 1000
	maxMPSShares = 48
)

func sharingKeys(most int) keys[Sharing] {
	return keys[Sharing]{
		"replicas": integer(func(s *Sharing) *int { return &s.Replicas }, minReplicas, most),
	}
}

// devicePluginMinor is the first minor version of Kubernetes in which cards are the device plugin's.
const devicePluginMinor = 10

// checkSharing finds ways to share cards that exclude each other.
func (f *file) checkSharing() findings {
	var out findings
	sliced, mps := f.GPU.TimeSlicing.Replicas > 0, f.GPU.MPS.Replicas > 0
	instances := f.GPU.MIGStrategy == MIGSingle || f.GPU.MIGStrategy == MIGMixed
	if sliced && mps {
		const message = "a card is shared in one way only: remove either this or %s"
		out.add("gpu.timeSlicing", message, "gpu.mps")
		out.add("gpu.mps", message, "gpu.timeSlicing")
	}
	if mps && instances {
		out.add("gpu.mps", "the device plugin does not share MIG instances by MPS: remove this or `migStrategy: %s`", f.GPU.MIGStrategy)
	}
	if v := f.Kubernetes.Version; !v.IsZero() && v.Minor < devicePluginMinor {
		for path, set := range map[string]bool{"gpu.timeSlicing": sliced, "gpu.mps": mps, "gpu.migStrategy": instances} {
			if set {
				out.add(path, "Kubernetes %s has no device plugin for NVIDIA's cards, which does this: it comes with 1.%d", v.MinorString(), devicePluginMinor)
			}
		}
	}
	return out
}
