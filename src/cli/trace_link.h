/* SPDX-License-Identifier: MIT */
/* Link types of captures: what stands before the packet of a frame. */
#ifndef SRC_CLI_TRACE_LINK_H
#define SRC_CLI_TRACE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins with {.type = a DLT_ of libpcap}. */
struct trace_link {
	int type;
	uint8_t *copy; /* of a frame whose header was replaced */
	size_t room;
};

/* What can be read, for messages. */
#define TRACE_LINKS "captures of Ethernet, of Linux cooked frames and of ERF can be read"

bool trace_link_is_known(int type);

/* Returns the frame, whose length may change. A Linux cooked frame (tcpdump -i any) gets an Ethernet header without
 * addresses; it stays until the next call. NULL: the frame is too short, or there is no memory. */
const uint8_t *trace_link_frame(struct trace_link *link, const uint8_t *frame, size_t *length);

void trace_link_end(struct trace_link *link);

#endif /* SRC_CLI_TRACE_LINK_H */
