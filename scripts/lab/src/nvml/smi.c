// nvidia-smi of the lab: lists cards (-L), fields of them (--query-gpu=… --format=csv,noheader[,nounits]) or their fabric (-q), and
// nothing else.
#include "nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The library is opened, not linked: the program then says what the real one says where it is missing.
#define OPEN(f) __typeof__(&f) f##_ = (__typeof__(&f))dlsym(library, #f)

static void *library;

static int check(nvmlReturn_t r) {
	if (r == NVML_SUCCESS)
		return 0;
	OPEN(nvmlErrorString);
	if (r == NVML_ERROR_DRIVER_NOT_LOADED)
		puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
		     "driver is installed and running.\n");
	else
		printf("Failed to initialize NVML: %s\n", nvmlErrorString_(r));
	if (r == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
		printf("NVML library version: %.*s\n", (int)(strrchr(VERSION, '.') - VERSION), VERSION);
	return r;
}

// field prints one value of a card and answers what the library did.
static nvmlReturn_t field(nvmlDevice_t card, const char *name, int units) {
	char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	nvmlReturn_t r = NVML_SUCCESS;
	if (!strcmp(name, "index")) {
		unsigned index;
		OPEN(nvmlDeviceGetIndex);
		if (!(r = nvmlDeviceGetIndex_(card, &index)))
			printf("%u", index);
	} else if (!strcmp(name, "uuid") || !strcmp(name, "gpu_uuid")) {
		OPEN(nvmlDeviceGetUUID);
		if (!(r = nvmlDeviceGetUUID_(card, text, sizeof text)))
			fputs(text, stdout);
	} else if (!strcmp(name, "name") || !strcmp(name, "gpu_name")) {
		OPEN(nvmlDeviceGetName);
		if (!(r = nvmlDeviceGetName_(card, text, sizeof text)))
			fputs(text, stdout);
	} else if (!strcmp(name, "pci.bus_id") || !strcmp(name, "gpu_bus_id")) {
		nvmlPciInfo_t pci;
		OPEN(nvmlDeviceGetPciInfo_v3);
		if (!(r = nvmlDeviceGetPciInfo_v3_(card, &pci)))
			fputs(pci.busId, stdout);
	} else if (!strcmp(name, "memory.total")) {
		nvmlMemory_t memory;
		OPEN(nvmlDeviceGetMemoryInfo);
		if (!(r = nvmlDeviceGetMemoryInfo_(card, &memory)))
			printf("%llu%s", memory.total >> 20, units ? " MiB" : "");
	} else if (!strcmp(name, "driver_version")) {
		OPEN(nvmlSystemGetDriverVersion);
		if (!(r = nvmlSystemGetDriverVersion_(text, sizeof text)))
			fputs(text, stdout);
	} else if (!strcmp(name, "compute_cap")) {
		int major, minor;
		OPEN(nvmlDeviceGetCudaComputeCapability);
		if (!(r = nvmlDeviceGetCudaComputeCapability_(card, &major, &minor)))
			printf("%d.%d", major, minor);
	} else if (!strcmp(name, "persistence_mode")) {
		nvmlEnableState_t mode;
		OPEN(nvmlDeviceGetPersistenceMode);
		if (!(r = nvmlDeviceGetPersistenceMode_(card, &mode)))
			fputs(mode == NVML_FEATURE_ENABLED ? "Enabled" : "Disabled", stdout);
	} else if (!strcmp(name, "mig.mode.current")) {
		unsigned current, pending;
		OPEN(nvmlDeviceGetMigMode);
		if (!(r = nvmlDeviceGetMigMode_(card, &current, &pending)))
			fputs(current == NVML_DEVICE_MIG_ENABLE ? "Enabled" : "Disabled", stdout);
	} else {
		printf("Field \"%s\" is not a valid field to query.\n\n", name);
		exit(2);
	}
	if (r == NVML_ERROR_NOT_SUPPORTED)
		fputs("[N/A]", stdout);
	else if (r)
		fputs(r == NVML_ERROR_GPU_IS_LOST ? "[GPU is lost]" : "[Unknown Error]", stdout);
	return r == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : r;
}

// lost is what the real program says of a card that it cannot reach, before it goes on with the others or gives up.
static int lost(nvmlReturn_t r, unsigned index) {
	OPEN(nvmlErrorString);
	printf("Unable to determine the device handle for GPU%u: %s\n", index, nvmlErrorString_(r));
	return r;
}

static int list(unsigned count) {
	OPEN(nvmlDeviceGetHandleByIndex_v2);
	for (unsigned i = 0; i < count; i++) {
		nvmlDevice_t card;
		nvmlReturn_t r = nvmlDeviceGetHandleByIndex_v2_(i, &card);
		if (r)
			return lost(r, i);
		printf("GPU %u: ", i);
		field(card, "name", 0);
		fputs(" (UUID: ", stdout);
		field(card, "uuid", 0);
		puts(")");
	}
	return 0;
}

static int query(unsigned count, const char *fields, int units) {
	OPEN(nvmlDeviceGetHandleByIndex_v2);
	int status = 0;
	for (unsigned i = 0; i < count; i++) {
		nvmlDevice_t card;
		nvmlReturn_t r = nvmlDeviceGetHandleByIndex_v2_(i, &card);
		if (r)
			return lost(r, i);
		char names[256];
		snprintf(names, sizeof names, "%s", fields);
		const char *gap = "";
		for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
			fputs(gap, stdout);
			if ((r = field(card, name, units)))
				status = r;
			gap = ", ";
		}
		putchar('\n');
	}
	return status;
}

// has says whether the host's table of cards has a line of this kind.
static int has(const char *kind) {
	FILE *table = fopen("/etc/kgpu-lab/gpu-cards", "r");
	char line[256];
	int found = 0;
	while (table && !found && fgets(line, sizeof line, table))
		found = !strncmp(line, kind, strlen(kind));
	if (table)
		fclose(table);
	return found;
}

// runs says whether the program that wrote this pid file does.
static int runs(const char *file) {
	char path[64];
	int pid, read = 0;
	FILE *f = fopen(file, "r");
	if (f) {
		read = fscanf(f, "%d", &pid) == 1;
		fclose(f);
	}
	if (read)
		snprintf(path, sizeof path, "/proc/%d", pid);
	return read && access(path, F_OK) == 0;
}

static int fabric(unsigned count) {
	OPEN(nvmlDeviceGetHandleByIndex_v2);
	const char *state = "N/A", *status = "N/A";
	if (has("switch ") || has("bridge ")) {
		int done = runs("/run/nvidia-fabricmanager/nv-fabricmanager.pid") &&
			   (!has("bridge ") || runs("/run/nvidia-fabricmanager/nvlsm.pid"));
		state = done ? "Completed" : "In Progress";
		status = done ? "Success" : "N/A";
	}
	puts("\n==============NVSMI LOG==============\n");
	for (unsigned i = 0; i < count; i++) {
		nvmlDevice_t card;
		nvmlReturn_t r = nvmlDeviceGetHandleByIndex_v2_(i, &card);
		if (r)
			return lost(r, i);
		fputs("GPU ", stdout);
		field(card, "pci.bus_id", 0);
		printf("\n    Fabric\n        %-47s: %s\n        %-47s: %s\n", "State", state, "Status", status);
	}
	return 0;
}

int main(int argc, char **argv) {
	static const char asks[] = "--query-gpu=", formats[] = "--format=csv,noheader";
	const char *fields = NULL, *format = NULL;
	int names = 0, whole = 0;
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], asks, strlen(asks)))
			fields = argv[i] + strlen(asks);
		else if (!strncmp(argv[i], formats, strlen(formats)))
			format = argv[i] + strlen(formats);
		else if (!strcmp(argv[i], "-L") || !strcmp(argv[i], "--list-gpus"))
			names = 1;
		else if (!strcmp(argv[i], "-q"))
			whole = 1;
		else {
			printf("ERROR: Option %s is not recognized. The lab's nvidia-smi does not know it.\n", argv[i]);
			return 255;
		}
	}
	if ((fields == NULL) != (format == NULL)) {
		puts("The lab's nvidia-smi wants --query-gpu=… with --format=csv,noheader[,nounits].");
		return 2;
	}
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library) {
		puts("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver "
		     "is properly installed and present in your system.\n"
		     "Please also try adding directory that contains libnvidia-ml.so to your system PATH.");
		return NVML_ERROR_LIBRARY_NOT_FOUND;
	}
	OPEN(nvmlInit_v2);
	OPEN(nvmlDeviceGetCount_v2);
	unsigned count = 0;
	int status = check(nvmlInit_v2_());
	if (status || (status = check(nvmlDeviceGetCount_v2_(&count))))
		return status;
	if (count == 0 && names) { // which is no error
		puts("No devices found.");
		return 0;
	}
	if (count == 0) {
		puts("No devices were found");
		return NVML_ERROR_NOT_FOUND;
	}
	if (whole)
		return fabric(count);
	return names || !fields ? list(count) : query(count, fields, strcmp(format, ",nounits") != 0);
}
