// Package smoke is the proof that every GPU of every node computes for exactly one pod, or for as many as share it. It
// makes the Jobs and checks their logs. It is pure; scripts/steps/gpu-smoke.sh runs them.
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

// Node is a node with the GPUs that its host lists.
type Node struct {
	Name   string
	GPUs   []GPU
	Sample catalog.Sample        // the program that computes on them
	Driver []machine.DriverMount // mounts of the driver, for Kubernetes that gives pods only the device files
}

// GPU is a GPU, or a MIG instance of one, as the host's nvidia-smi lists it.
type GPU struct {
	UUID     string // GPU-5c6f…, MIG-c6d4…
	Name     string // NVIDIA A100-SXM4-40GB
	Resource string // resource that a pod requests; empty for nvidia.com/gpu
	Share    int    // number of pods that can share it; zero for one
}

// maxSharingJobs limits the Jobs that share a node's GPUs, as a node runs 110 pods by default. Even if there are more
// places, each GPU gets Jobs, because the device plugin prefers the GPU with the fewest pods.
// Source: k8s-device-plugin 0.20.0, internal/rm/allocate.go.
const maxSharingJobs = 32

// share is the number of Jobs for the GPU.
func (n Node) share(c GPU) int { return max(1, min(c.Share, maxSharingJobs/len(n.GPUs))) }

// expectedJobs is the least and the largest number of Jobs that may see the GPU. If not all places are requested, other pods
// influence which GPU the device plugin prefers.
func (n Node) expectedJobs(c GPU) (least, most int) {
	share := n.share(c)
	if share < c.Share {
		return 1, c.Share
	}
	return share, share
}

// requests returns the resource that each Job of the proof requests: one for every place of every GPU.
func (n Node) requests() []string {
	var out []string
	for _, c := range n.GPUs {
		for range n.share(c) {
			out = append(out, cmp.Or(c.Resource, "nvidia.com/gpu"))
		}
	}
	return out
}

// gpuJob is the name of the node's Job number i that requests a GPU. The device plugin decides which GPU it gets.
func (n Node) gpuJob(i int) string { return jobName("smi", n.Name, fmt.Sprintf("-%d", i)) }

// plainJobs are the names of the Jobs that request no GPU: one with the runtime (or driver mounts) that could give it
// one, one with the default runtime.
func (n Node) plainJobs() (nvidia, plain string) {
	return jobName("none", n.Name, ""), jobName("plain", n.Name, "")
}

// maxJobName leaves room for the suffix that the Job controller appends for a pod, whose host name has at most 63
// characters.
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
