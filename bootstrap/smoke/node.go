// Package smoke is the proof that every card of every node can be used by exactly one pod: what the cluster is asked to
// run, and what its answers mean. It is pure; scripts/steps/gpu-smoke.sh is what happens in between.
package smoke

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/plan"
)

// Node is a node of the cluster and the cards that its host lists.
type Node struct {
	Name   string
	Cards  []Card
	Driver []plan.DriverMount // that pods need where Kubernetes gives them the devices only
}

// Card is a card as its host's own nvidia-smi names it.
type Card struct {
	UUID string // GPU-5c6f…
	Name string // NVIDIA A100-SXM4-40GB
}

// cardJob is the Job that asks for one card of the node, the one with this number among its Jobs. Which card it gets is
// up to the device plugin.
func (n Node) cardJob(i int) string { return jobName("smi", n.Name, fmt.Sprintf("-%d", i)) }

// freeJobs are the Jobs that ask for no card: with the runtime (or the driver) that could give them one, and
// with the cluster's own.
func (n Node) freeJobs() (nvidia, plain string) {
	return jobName("none", n.Name, ""), jobName("plain", n.Name, "")
}

// maxJobName leaves room for what the Job controller appends to name a pod, whose host name has 63 characters.
const maxJobName = 57

func jobName(prefix, node, suffix string) string {
	room := maxJobName - len(prefix) - len("-") - len(suffix)
	if len(node) > room {
		sum := sha256.Sum256([]byte(node))
		hash := "-" + hex.EncodeToString(sum[:4])
		node = strings.TrimRight(node[:room-len(hash)], "-.") + hash
	}
	return prefix + "-" + node + suffix
}
