/* SPDX-License-Identifier: MIT */
/* Writes a capture file of several link types (pcapng, draft-ietf-opsawg-pcapng), with times in nanoseconds. */
#ifndef SRC_CLI_PCAPNG_H
#define SRC_CLI_PCAPNG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Numbers of link types in files, https://www.tcpdump.org/linktypes.html. */
enum {
	PCAPNG_ETHERNET = 1,
	PCAPNG_USER15 = 162,
	PCAPNG_ERF = 197,
};

/* Begins the file; @program wrote it. */
void pcapng_begin(FILE *out, const char *program);

/* Adds an interface. The first one has the number 0. */
void pcapng_add_interface(FILE *out, unsigned int link_type, const char *name, const char *about);

struct pcapng_frame {
	unsigned int interface;
	uint64_t time_ns;
	const void *bytes;
	size_t length;
	size_t whole; /* the frame's length on the wire */
};

void pcapng_add_frame(FILE *out, const struct pcapng_frame *frame);

#endif /* SRC_CLI_PCAPNG_H */
