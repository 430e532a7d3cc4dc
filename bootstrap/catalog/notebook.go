package catalog

import (
	"cmp"
	"slices"
)

// GPUResource is the resource of the device plugin's GPUs.
const GPUResource = "nvidia.com/gpu"

// NotebookNamespace is the namespace of the notebook alone.
const NotebookNamespace = "kgpu-notebook"

// Framework is the framework of the notebook's image.
type Framework string

const (
	TensorFlow  Framework = "tensorflow"
	PyTorch     Framework = "pytorch"
	NoFramework Framework = "none" // no notebook
)

// NotebookFrameworks are those for which kgpu has an image with Jupyter, the preferred one first.
var NotebookFrameworks = []Framework{TensorFlow, PyTorch}

// notebook is a framework's image with Jupyter, and the GPUs that it supports.
type notebook struct {
	before, after string       // the image's name before and after the framework's version
	version       string       // the version that kgpu uses
	oldest        Architecture // the oldest architecture that this version supports
	newest        Architecture // the newest architecture that any version supports; empty if there is no limit
	hosts         []string     // dpkg's names of the CPU architectures that the image is made for
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

// NotebookImage is the image of a framework in a version, or in kgpu's if it is empty; empty for NoFramework.
func NotebookImage(f Framework, version string) string {
	n, ok := notebooks[f]
	if !ok {
		return ""
	}
	return n.before + cmp.Or(version, n.version) + n.after
}

// NotebookHosts reports whether a framework's image is made for a CPU architecture, in dpkg's name.
func NotebookHosts(f Framework, processor string) bool {
	return slices.Contains(notebooks[f].hosts, processor)
}

// NotebookComputes reports whether a framework's image in a version (empty for kgpu's) computes on GPUs of an
// architecture. The oldest architecture is known only of kgpu's version; others are assumed to support it.
func NotebookComputes(f Framework, version string, card Architecture) bool {
	n, ok := notebooks[f]
	if !ok {
		return false
	}
	own := version == "" || version == n.version
	return !(own && card.Before(n.oldest)) && (n.newest == "" || !n.newest.Before(card))
}
