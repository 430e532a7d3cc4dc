// The cards of a lab's host, as its table names them. See ../../REAL.md.
#include <stdbool.h>

#pragma GCC visibility push(hidden) // programs may have functions of these names

struct card {
	unsigned minor; // its node is /dev/nvidia<minor>
	char address[16], uuid[48], architecture[16], name[64];
	unsigned device, subsystem, capability[2], mebibytes;
};

enum { most_cards = 16 };

// visible fills in the cards that have a node here and returns how many they are: a container sees those that it was given.
int visible(struct card *cards);

// fault says whether the fault switches have this word, for this card where the word concerns one.
bool fault(const char *word, int minor);

#pragma GCC visibility pop
