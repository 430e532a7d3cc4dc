// libnvidia-ml.so.1 for hosts without NVIDIA's driver: what device plugin, container toolkit and nvidia-smi ask, answered out of
// the host's table of cards. The functions of the public nvml.h that are not here answer NVML_ERROR_NOT_SUPPORTED: see prepare.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include "nvml.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "cards.h"

#define XID_FALLEN_OFF_THE_BUS 79

static struct card cards[most_cards];
static int count;
static atomic_int users;

// A sick driver does not come back from a call into the kernel.
static void call(void) {
	while (fault("hang", 0))
		sleep(1);
}

static bool other_driver(void) {
	char loaded[64] = "";
	FILE *f = fopen("/sys/module/nvidia/version", "r");
	if (!f) // in a container
		return false;
	bool other = fscanf(f, "%63s", loaded) == 1 && strcmp(loaded, VERSION);
	fclose(f);
	return other;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
	(void)flags;
	call();
	if (access("/dev/nvidiactl", F_OK))
		return NVML_ERROR_DRIVER_NOT_LOADED;
	if (fault("mismatch", 0) || other_driver())
		return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	if (users++ == 0)
		count = visible(cards);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void) {
	if (users == 0)
		return NVML_ERROR_UNINITIALIZED;
	users--;
	return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t r) {
	switch (r) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_TIMEOUT: return "Timeout";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	default: return "Unknown Error";
	}
}

static nvmlReturn_t put(char *to, unsigned size, const char *text) {
	return snprintf(to, size, "%s", text) < (int)size ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

// CUDA is the newest version of it that the driver runs, and NVML the major version of the interface.
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned size) {
	return users ? put(version, size, VERSION) : NVML_ERROR_UNINITIALIZED;
}
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned size) { return put(version, size, "13." VERSION); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
	return users ? (*version = CUDA, NVML_SUCCESS) : NVML_ERROR_UNINITIALIZED;
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

// A handle is a card's place in the table, from 1.
static nvmlDevice_t handle(int i) { return (nvmlDevice_t)(intptr_t)(i + 1); }

static nvmlReturn_t find(nvmlDevice_t device, struct card **card) {
	intptr_t i = (intptr_t)device - 1;
	if (users == 0)
		return NVML_ERROR_UNINITIALIZED;
	if (i < 0 || i >= count)
		return NVML_ERROR_INVALID_ARGUMENT;
	call();
	*card = &cards[i];
	return NVML_SUCCESS;
}

static nvmlReturn_t reach(nvmlDevice_t device, struct card **card) {
	nvmlReturn_t r = find(device, card);
	return r == NVML_SUCCESS && fault("lost", (*card)->minor) ? NVML_ERROR_GPU_IS_LOST : r;
}

// How functions begin: KNOW in those that tell what the library keeps of a card, ASK in those for which the card must answer.
#define KNOW BEGIN(find)
#define ASK BEGIN(reach)
#define BEGIN(how)                                                                                                                 \
	struct card *card;                                                                                                         \
	nvmlReturn_t trouble = how(device, &card);                                                                                 \
	if (trouble)                                                                                                               \
		return trouble;

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) {
	if (users == 0)
		return NVML_ERROR_UNINITIALIZED;
	*n = count;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount(unsigned *n) { return nvmlDeviceGetCount_v2(n); }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
	*device = handle(index);
	struct card *card;
	return reach(*device, &card);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) { return nvmlDeviceGetHandleByIndex_v2(index, device); }

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
	for (int i = 0; i < count; i++)
		if (!strcmp(cards[i].uuid, uuid))
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device) {
	const char *bus = strlen(id) > strlen(cards[0].address) ? id + 4 : id; // domains have four digits or eight
	for (int i = 0; i < count; i++)
		if (!strcasecmp(cards[i].address, bus))
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	return NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device) { return nvmlDeviceGetHandleByPciBusId_v2(id, device); }

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
	KNOW
	*index = card - cards;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor) {
	KNOW
	*minor = card->minor;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned size) {
	KNOW
	return put(uuid, size, card->uuid);
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned size) {
	KNOW
	return put(name, size, card->name);
}
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand) {
	KNOW
	*brand = strstr(card->name, "GeForce") ? NVML_BRAND_GEFORCE : strncmp(card->name, "Tesla", 5) ? NVML_BRAND_NVIDIA : NVML_BRAND_TESLA;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture) {
	static const struct {
		const char *name;
		nvmlDeviceArchitecture_t number;
	} known[] = {
		{"Kepler", NVML_DEVICE_ARCH_KEPLER}, {"Pascal", NVML_DEVICE_ARCH_PASCAL}, {"Volta", NVML_DEVICE_ARCH_VOLTA},
		{"Turing", NVML_DEVICE_ARCH_TURING}, {"Ampere", NVML_DEVICE_ARCH_AMPERE}, {"Ada", NVML_DEVICE_ARCH_ADA},
		{"Hopper", NVML_DEVICE_ARCH_HOPPER}, {"Blackwell", NVML_DEVICE_ARCH_BLACKWELL},
	};
	ASK
	*architecture = NVML_DEVICE_ARCH_UNKNOWN;
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].name, card->architecture))
			*architecture = known[i].number;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
	ASK
	*major = card->capability[0];
	*minor = card->capability[1];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
	KNOW
	memset(pci, 0, sizeof *pci);
	sscanf(card->address, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
	pci->pciDeviceId = card->device << 16 | 0x10de;
	pci->pciSubSystemId = card->subsystem << 16 | 0x10de;
	snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT, pci->domain, pci->bus, pci->device);
	snprintf(pci->busId, sizeof pci->busId, NVML_DEVICE_PCI_BUS_ID_FMT, pci->domain, pci->bus, pci->device);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
	ASK
	memory->total = (unsigned long long)card->mebibytes << 20;
	memory->used = 0;
	memory->free = memory->total;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
	nvmlMemory_t plain;
	nvmlReturn_t r = nvmlDeviceGetMemoryInfo(device, &plain);
	if (r)
		return r;
	memory->total = memory->free = plain.total;
	memory->used = memory->reserved = 0;
	return NVML_SUCCESS;
}

// The stand-in for nvidia-persistenced has its real one's pid file while it runs.
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
	ASK
	*mode = access("/run/nvidia-persistenced/nvidia-persistenced.pid", F_OK) ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

// Ampere and Hopper data center cards can be cut into instances; the lab's are whole.
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
	ASK
	if (!strstr(card->name, "A100") && !strstr(card->name, "H100") && !strstr(card->name, "B200"))
		return NVML_ERROR_NOT_SUPPORTED;
	*current = *pending = NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *n) {
	ASK
	*n = 0;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig) {
	(void)index, (void)mig;
	ASK
	return NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *mig) {
	ASK
	*mig = 0;
	return NVML_SUCCESS;
}

// A card in a machine without a fabric is in none, which is no error.
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *fabric) {
	ASK
	memset(fabric, 0, sizeof *fabric);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level) {
	ASK
	if (other == device)
		return NVML_ERROR_NOT_SUPPORTED;
	*level = NVML_TOPOLOGY_SYSTEM;
	return NVML_SUCCESS;
}

// Events: a card that is lost says so once in each set that waits for it.
struct nvmlEventSet_st {
	bool registered[most_cards], told[most_cards];
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	*set = calloc(1, sizeof **set);
	return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
	free(set);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
	ASK
	*types = nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeSingleBitEccError;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
	(void)types;
	ASK
	set->registered[card - cards] = true;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *event, unsigned milliseconds) {
	const struct timespec tick = {.tv_nsec = 200 * 1000 * 1000};
	for (unsigned waited = 0;; waited += 200) {
		for (int i = 0; i < count; i++) {
			bool lost = fault("lost", cards[i].minor);
			if (set->registered[i] && lost && !set->told[i]) {
				set->told[i] = true;
				*event = (nvmlEventData_t){.device = handle(i), .eventType = nvmlEventTypeXidCriticalError,
							   .eventData = XID_FALLEN_OFF_THE_BUS, .gpuInstanceId = ~0u, .computeInstanceId = ~0u};
				return NVML_SUCCESS;
			}
			set->told[i] = lost;
		}
		if (waited >= milliseconds)
			return NVML_ERROR_TIMEOUT;
		nanosleep(&tick, NULL);
	}
}
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *event, unsigned milliseconds) {
	return nvmlEventSetWait_v2(set, event, milliseconds);
}
