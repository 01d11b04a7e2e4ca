/* SPDX-License-Identifier: MIT */
/* The packets of simulated devices, as they were sent. */
#ifndef SRC_EXPECT_RECORD_H
#define SRC_EXPECT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <verbena/packet.h>

/* A packet. */
struct record {
	uint64_t time_ns;
	char device[16]; /* the port's; a longer name is cut */
	struct vb_packet packet;
};

/* Begins to record, with no packets. Returns 0 or ENOMEM. */
int record_begin(void);
void record_end(void);
bool record_is_on(void);

/* Forgets all packets. */
void record_clear(void);

/*
 * The packets, the oldest first; *count is their number. They stay as they are until the calling thread
 * calls a verb. *lost counts packets for which there was no memory.
 */
const struct record *record_packets(size_t *count, size_t *lost);

/* Forgets the oldest packets. */
void record_drop(size_t count);

#endif
