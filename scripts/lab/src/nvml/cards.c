#include "cards.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// A host has the table and the switches in /etc/kgpu-lab. Containers get them as NVIDIA's container software gives them the
// firmware of the cards, for they look like it: the driver's packages have links of these names.
#define FIRMWARE "/lib/firmware/nvidia/" VERSION "/gsp_lab_"

static FILE *either(const char *on_host, const char *in_container) {
	FILE *f = fopen(on_host, "r");
	return f ? f : fopen(in_container, "r");
}

int visible(struct card *cards) {
	FILE *table = either("/etc/kgpu-lab/gpu-cards", FIRMWARE "cards.bin");
	if (!table)
		return 0;
	char line[256], node[32];
	unsigned minor = 0;
	int seen = 0;
	while (seen < most_cards && fgets(line, sizeof line, table)) {
		struct card *c = &cards[seen];
		if (sscanf(line, "gpu %15s %47s %x %x %15s %u.%u %u %63[^\n]", c->address, c->uuid, &c->device, &c->subsystem,
			   c->architecture, &c->capability[0], &c->capability[1], &c->mebibytes, c->name) != 9)
			continue;
		c->minor = minor++;
		snprintf(node, sizeof node, "/dev/nvidia%u", c->minor);
		seen += access(node, F_OK) == 0;
	}
	fclose(table);
	return seen;
}

bool fault(const char *word, int minor) {
	FILE *switches = either("/etc/kgpu-lab/gpu-faults", FIRMWARE "faults.bin");
	if (!switches)
		return false;
	char line[64], name[16];
	int which;
	bool found = false;
	while (!found && fgets(line, sizeof line, switches)) {
		int fields = sscanf(line, "%15s %d", name, &which);
		found = fields > 0 && !strcmp(name, word) && (fields == 1 || which == minor);
	}
	fclose(switches);
	return found;
}
