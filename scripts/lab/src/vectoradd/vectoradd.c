// vectorAdd of the lab stands in for CUDA's sample of that name: it opens the driver's library and the first card as CUDA's runtime
// does, says what the sample says, in the same order (into a file, what went wrong comes first), and ends as it ends. It adds the
// vectors on the processor: the lab's cards compute nothing.
#include <dlfcn.h>
#include <stdio.h>

enum { elements = 50000, no_device = 100, not_ready = 802 }; // the last two are CUresult's

static float a[elements], b[elements], sums[elements];

// cannot says why the first allocation fails, in the words of cudaGetErrorString.
static int cannot(const char *why) {
	fprintf(stderr, "Failed to allocate device vector A (error code %s)!\n", why);
	return 1;
}

int main(void) {
	puts("[Vector addition of 50000 elements]");
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
	int (*get)(int *, int) = library ? (int (*)(int *, int))dlsym(library, "cuDeviceGet") : NULL;
	if (!init || !get)
		return cannot("CUDA driver version is insufficient for CUDA runtime version");
	int card, result = init(0);
	if (!result)
		result = get(&card, 0);
	if (result)
		return cannot(result == not_ready ? "system not yet initialized" :
			      result == no_device ? "no CUDA-capable device is detected" : "unknown error");
	for (int i = 0; i < elements; i++) {
		a[i] = i;
		b[i] = elements - i;
		sums[i] = a[i] + b[i];
	}
	puts("Copy input data from the host memory to the CUDA device\nCUDA kernel launch with 196 blocks of 256 threads\n"
	     "Copy output data from the CUDA device to the host memory");
	for (int i = 0; i < elements; i++)
		if (sums[i] != elements) {
			fprintf(stderr, "Result verification failed at element %d!\n", i);
			return 1;
		}
	puts("Test PASSED\nDone");
	return 0;
}
