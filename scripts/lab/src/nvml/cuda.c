// libcuda.so.1 for hosts without NVIDIA's driver: it counts the cards of the host's table that have a node here, and runs nothing.
#include <stdio.h>
#include <unistd.h>

#include "cards.h"

enum { success = 0, invalid_value = 1, not_initialized = 3, no_device = 100, invalid_device = 101 }; // CUresult

static struct card cards[most_cards];
static int count = -1;

int cuInit(unsigned flags) {
	(void)flags;
	while (fault("hang", 0))
		sleep(1);
	count = visible(cards);
	return count > 0 ? success : no_device;
}

int cuDriverGetVersion(int *version) { return *version = CUDA, success; }

int cuDeviceGetCount(int *n) {
	if (count < 0)
		return not_initialized;
	*n = count;
	return success;
}

int cuDeviceGet(int *device, int ordinal) {
	if (ordinal < 0 || ordinal >= count)
		return invalid_device;
	*device = ordinal;
	return success;
}

int cuDeviceGetName(char *name, int size, int device) {
	if (device < 0 || device >= count)
		return invalid_device;
	return snprintf(name, size, "%s", cards[device].name) < size ? success : invalid_value;
}
