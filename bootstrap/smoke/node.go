// Package smoke is the proof that every card of every node computes for exactly one pod, or as many as share it: what the cluster is
// asked to run, and what its answers mean. It is pure; scripts/steps/gpu-smoke.sh is what happens in between.
package smoke

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"kgpu.dev/kgpu/bootstrap/catalog"
	"kgpu.dev/kgpu/bootstrap/machine"
)

// Node is a node of the cluster and the cards that its host lists.
type Node struct {
	Name   string
	Cards  []Card
	Sample catalog.Sample        // what computes on them
	Driver []machine.DriverMount // that pods need where Kubernetes gives them the devices only
}

// Card is a card, or an instance of one that is cut by MIG, as its host's own nvidia-smi names it.
type Card struct {
	UUID     string // GPU-5c6f…, MIG-c6d4…
	Name     string // NVIDIA A100-SXM4-40GB
	Resource string // what a pod asks for; empty: nvidia.com/gpu
	Share    int    // how many pods have it at the same time; zero: one
}

// mostShares bounds how many Jobs share the cards of a node: it runs 110 pods at most, by default. Where that is less than the
// cards' places, each card still gets Jobs: the device plugin prefers the card that has the fewest pods.
// Source: k8s-device-plugin 0.20.0, internal/rm/allocate.go.
const mostShares = 32

// share is how many Jobs there are for the card.
func (n Node) share(c Card) int { return max(1, min(c.Share, mostShares/len(n.Cards))) }

// sights is how many Jobs at least, and at most, see the card. Where not all places are asked for, the device plugin also
// counts the pods of others when it looks for the card that has the fewest.
func (n Node) sights(c Card) (least, most int) {
	share := n.share(c)
	if share < c.Share {
		return 1, c.Share
	}
	return share, share
}

// asked are the resources that the Jobs of the proof ask for, one each: every card as often as it is shared.
func (n Node) asked() []string {
	var out []string
	for _, c := range n.Cards {
		for range n.share(c) {
			out = append(out, cmp.Or(c.Resource, "nvidia.com/gpu"))
		}
	}
	return out
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
