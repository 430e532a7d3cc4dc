package catalog

import (
	"cmp"
	"slices"
)

// GPUResource is what pods ask for when they want a card of the device plugin.
const GPUResource = "nvidia.com/gpu"

// NotebookNamespace has the notebook and nothing else.
const NotebookNamespace = "kgpu-notebook"

// Framework is what the notebook's image computes with.
type Framework string

// The frameworks.
const (
	TensorFlow  Framework = "tensorflow"
	PyTorch     Framework = "pytorch"
	NoFramework Framework = "none" // no notebook
)

// NotebookFrameworks are those that kgpu has an image with Jupyter for, the first one first.
var NotebookFrameworks = []Framework{TensorFlow, PyTorch}

// notebook is the image with Jupyter of a framework, and what it computes on.
type notebook struct {
	before, after string       // around the framework's version in the image's name
	version       string       // the one to take
	oldest        Architecture // of the cards that this version has code for
	newest        Architecture // of the cards that any version so far computes on; empty: the newest there are
	hosts         []string     // dpkg's words for the processors that its images are made for
}

// notebooks as of 2026-11-25.
//
// TensorFlow: https://hub.docker.com/r/tensorflow/tensorflow/tags, amd64 only. Later images want cuDNN 9 and have cuDNN 8, so that
// they see no card: https://github.com/tensorflow/build/issues/217 and 221, both open. Its code begins with sm_60
// (TF_CUDA_COMPUTE_CAPABILITIES="sm_60,sm_70,sm_80,sm_89,compute_90" of its release builds). On Blackwell no version up to 2.21
// computes, CUDA_ERROR_INVALID_PTX and the like: https://github.com/tensorflow/tensorflow/issues/97387 (open), 89272, 99592, 101746.
//
// PyTorch: https://jupyter-docker-stacks.readthedocs.io/en/latest/using/selecting.html#cuda-enabled-variant, for arm64 since
// 2025-12-02 (its CHANGELOG, "Enable CUDA build for ARM64"). It has the wheels of cu128, with code from sm_75 to sm_120 and none
// for Maxwell, Pascal and Volta: images/pytorch-notebook/cuda12/Dockerfile there, https://github.com/pytorch/pytorch/issues/172352.
var notebooks = map[Framework]notebook{
	TensorFlow: {
		before: "docker.io/tensorflow/tensorflow:", after: "-gpu-jupyter", version: "2.17.0",
		oldest: Pascal, newest: Hopper, hosts: []string{"amd64"},
	},
	PyTorch: {
		before: "quay.io/jupyter/pytorch-notebook:cuda12-pytorch-", version: "2.11.0",
		oldest: Turing, hosts: []string{"amd64", "arm64"},
	},
}

// NotebookImage is the image of a framework in a version; empty: the one that kgpu takes. It is empty for no framework.
func NotebookImage(f Framework, version string) string {
	n, ok := notebooks[f]
	if !ok {
		return ""
	}
	return n.before + cmp.Or(version, n.version) + n.after
}

// NotebookHosts reports whether the image of a framework is made for processors of this kind, in dpkg's word.
func NotebookHosts(f Framework, processor string) bool {
	return slices.Contains(notebooks[f].hosts, processor)
}

// NotebookComputes reports whether the image of a framework in a version (empty: the one that kgpu takes) computes on cards of an
// architecture. How old the cards may be is known of kgpu's version only: another one is taken at its word.
func NotebookComputes(f Framework, version string, card Architecture) bool {
	n, ok := notebooks[f]
	if !ok {
		return false
	}
	own := version == "" || version == n.version
	return !(own && card.Before(n.oldest)) && (n.newest == "" || !n.newest.Before(card))
}
