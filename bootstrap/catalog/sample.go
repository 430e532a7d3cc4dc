package catalog

import "slices"

// Sample is an image with CUDA's sample vectorAdd, which adds two vectors on a GPU and compares the sums with the
// CPU's. It prints "Test PASSED" and exits with 0 only if they are equal. The image has a shell, and gets the driver's
// libraries from the host.
type Sample struct {
	Image   string
	Program string // its path in the image

	driver int // the oldest branch that runs it
}

// samples, newest first. No image suits every driver: a program runs from CUDA's least driver of its major version on, and has
// machine code for the cards of its time. What is newer gets it from the program's PTX, which a driver of the program's own CUDA or
// newer compiles.
//
// The first has code for compute capabilities 5.0 to 9.0 and PTX of 9.0, so that Blackwell and Rubin compile it, whose drivers are
// newer than CUDA 12.5. The second has 3.5 to 8.6 and runs Kepler, too. The third was made by Kubernetes for its own tests, of CUDA 8
// and for amd64 only; the two of NVIDIA are for arm64, too.
//
// They are not nvidia/cuda's images, which NVIDIA deletes six months after the end of the driver branch that they came with:
// gitlab.com/nvidia/container-images/cuda, doc/support-policy.md, which is of those images and not of the samples.
//
// Sources: github.com/NVIDIA/k8s-samples, Dockerfile.ubuntu of 11.7.1 and 12.5.0 (where the program is) and multi-arch.mk;
// github.com/NVIDIA/cuda-samples, the Makefile of vectorAdd at v11.6 and v12.0 (SMS), and issue 384 (12.5.0 was the newest tag in
// August 2025); kubernetes/kubernetes, test/images/nvidia-cuda/Dockerfile of 1.7; CUDA compatibility guide, "Minor Version
// Compatibility" (525 for 12.x, 450 for 11.x).
var samples = []Sample{
	{"nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04", "/cuda-samples/vectorAdd", 525},
	{"nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1-ubuntu20.04", "/cuda-samples/vectorAdd", 450},
	{"registry.k8s.io/cuda-vector-add:v0.1", "/usr/local/cuda/samples/0_Simple/vectorAdd/vectorAdd", 0},
}

// SampleOf returns the newest sample that a driver of this branch runs.
func SampleOf(branch int) Sample {
	s, _ := find(samples, func(s Sample) bool { return branch >= s.driver })
	return s
}

// Samples returns all samples, newest first.
func Samples() []Sample { return slices.Clone(samples) }
