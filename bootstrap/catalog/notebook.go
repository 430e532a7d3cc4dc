package catalog

// GPUResource is what pods ask for when they want a card of the device plugin.
const GPUResource = "nvidia.com/gpu"

// Framework is what the notebook's image computes with.
type Framework string

// The frameworks.
const (
	TensorFlow  Framework = "tensorflow"
	PyTorch     Framework = "pytorch"
	NoFramework Framework = "none" // no notebook
)

// notebooks are the images with Jupyter of the frameworks, in two parts around the framework's version, and the version to
// take. Both are made for x86-64 only.
//
// TensorFlow: https://hub.docker.com/r/tensorflow/tensorflow/tags. Later images want cuDNN 9 and have cuDNN 8, so that they
// see no card: https://github.com/tensorflow/build/issues/217 and 221, both open.
// PyTorch: https://jupyter-docker-stacks.readthedocs.io/en/latest/using/selecting.html#cuda-enabled-variant.
var notebooks = map[Framework]struct{ before, after, version string }{
	TensorFlow: {"docker.io/tensorflow/tensorflow:", "-gpu-jupyter", "2.17.0"},
	PyTorch:    {"quay.io/jupyter/pytorch-notebook:cuda12-pytorch-", "", "2.11.0"},
}

// NotebookImage is the image of a framework in a version; empty: the one that kgpu takes. It is empty for no framework.
func NotebookImage(f Framework, version string) string {
	n, ok := notebooks[f]
	if !ok {
		return ""
	}
	if version == "" {
		version = n.version
	}
	return n.before + version + n.after
}
