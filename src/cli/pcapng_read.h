/* SPDX-License-Identifier: MIT */
/* Reads the captures of several link types that `verbena trace annotate` writes (libpcap reads one link type only). */
#ifndef SRC_CLI_PCAPNG_READ_H
#define SRC_CLI_PCAPNG_READ_H

#include "src/cli/pcapng.h"

#include <stdbool.h>

#define PCAPNG_INTERFACES_MAX 16

enum pcapng_read { PCAPNG_END, PCAPNG_FRAME, PCAPNG_DAMAGED };

/* Begins with {.file = FILE}. */
struct pcapng_reader {
	FILE *file;
	unsigned int
		link_types[PCAPNG_INTERFACES_MAX]; /* of interfaces: PCAPNG_ETHERNET and so on */
	unsigned int interface_count;
	uint8_t *block; /* the last one, */
	size_t bytes;	/* and its length without type and lengths */
	size_t room;
};

/* Reads the next frame, whose bytes stay until the next call. */
enum pcapng_read pcapng_read(struct pcapng_reader *reader, struct pcapng_frame *frame);

void pcapng_read_end(struct pcapng_reader *reader);

/* Returns true if the file has an interface for the events of logs. The file is at its beginning afterwards. */
bool pcapng_has_events(FILE *file);

#endif /* SRC_CLI_PCAPNG_READ_H */
