// libcuda.so.1 for hosts without NVIDIA's driver: it counts the cards of the host's table that have a node here, and runs nothing.
// The memory that it gives, fills and copies is the process's own.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cards.h"

enum { success = 0, invalid_value = 1, not_initialized = 3, no_device = 100, invalid_device = 101, not_ready = 802 }; // CUresult

static struct card cards[most_cards];
static int count = -1;

int cuInit(unsigned flags) {
	(void)flags;
	while (fault("hang", 0))
		sleep(1);
	if (fault("not-ready", 0))
		return not_ready;
	int seen = access("/dev/nvidiactl", F_OK) ? 0 : visible(cards);
	if (seen == 0)
		return no_device; // and not initialized
	count = seen;
	return success;
}

int cuDriverGetVersion(int *version) { return *version = CUDA, success; }

int cuDeviceGetCount(int *n) {
	if (count < 0)
		return not_initialized;
	*n = count;
	return success;
}

int cuDeviceGet(int *device, int ordinal) {
	if (count < 0)
		return not_initialized;
	if (ordinal < 0 || ordinal >= count)
		return invalid_device;
	*device = ordinal;
	return success;
}

int cuDeviceGetName(char *name, int size, int device) {
	if (device < 0 || device >= count)
		return invalid_device;
	snprintf(name, size, "%s", cards[device].name); // what is too long is cut
	return success;
}

// cuDeviceGetUuid_v2 gives the sixteen bytes that NVML writes as GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
int cuDeviceGetUuid_v2(unsigned char uuid[16], int device) {
	if (device < 0 || device >= count)
		return invalid_device;
	int bytes = 0;
	for (const char *c = cards[device].uuid + strlen("GPU-"); bytes < 16 && sscanf(c, "%2hhx", &uuid[bytes]) == 1; bytes++)
		c += c[2] == '-' ? 3 : 2;
	return bytes == 16 ? success : invalid_value;
}

int cuDeviceGetUuid(unsigned char uuid[16], int device) { return cuDeviceGetUuid_v2(uuid, device); }

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
	if (device < 0 || device >= count)
		return invalid_device;
	*bytes = (size_t)cards[device].mebibytes << 20;
	return success;
}

// CUresult: cuMemAlloc, cuMemcpyDtoH of a card whose memory has errors, and what needs a context and has none.
enum { out_of_memory = 2, invalid_context = 201, ecc_uncorrectable = 214 };

static struct card *current; // a context is the card

int cuDevicePrimaryCtxRetain(struct card **context, int device) {
	if (device < 0 || device >= count)
		return invalid_device;
	*context = &cards[device];
	return success;
}

int cuCtxSetCurrent(struct card *context) { return current = context, success; }

int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
	if (count < 0)
		return not_initialized;
	if (!current)
		return invalid_context;
	if (bytes == 0)
		return invalid_value;
	*memory = (uintptr_t)malloc(bytes);
	return *memory ? success : out_of_memory;
}

int cuMemsetD32_v2(uint64_t memory, unsigned value, size_t words) {
	if (!current)
		return invalid_context;
	for (uint32_t *word = (uint32_t *)(uintptr_t)memory; words > 0; words--)
		*word++ = value;
	return success;
}

int cuMemcpyDtoH_v2(void *to, uint64_t memory, size_t bytes) {
	if (!current)
		return invalid_context;
	if (fault("ecc", current->minor))
		return ecc_uncorrectable;
	memcpy(to, (void *)(uintptr_t)memory, bytes);
	return success;
}
