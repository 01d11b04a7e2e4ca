/* SPDX-License-Identifier: MIT */
/*
 * The last part of a capture: the writer writes segments, each a part of the file (src/parts/part.h), and drops all
 * but the last two. A process that is killed leaves both.
 *
 * The first segment may be the file NAME itself. NAME stays when this segment is dropped, with its header: its lock
 * says that the file is written.
 */
#ifndef BACKENDS_SIM_CAPTURE_PCAP_TAIL_H
#define BACKENDS_SIM_CAPTURE_PCAP_TAIL_H

#include "src/parts/part.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAP_TAIL_HEADER_BYTES 24 /* pcap-savefile(5) */

struct pcap_tail {
	/* The limits of a segment; 0: none. */
	uint64_t bytes_max, packets_max;
	uint64_t bytes, packets; /* of the segment that is written, with its header */
	uint64_t left_out;	 /* counts the packets that were dropped */
	char header[PCAP_TAIL_HEADER_BYTES];
	/* The segment before; fd -1: there is none. */
	struct {
		int fd;
		uint64_t packets;
		char name[PART_NAME_BYTES];
	} older;
	int whole_fd; /* of NAME, once NAME was dropped; -1: NAME was not dropped, or is not this writer's */
};

/* Keeps the last packets from now on: of at most bytes_max bytes, or packets_max of them. 0: no limit. */
void pcap_tail_limit(struct pcap_tail *tail, uint64_t bytes_max, uint64_t packets_max);

/* Returns true if a packet of so many bytes, with its header, belongs into a new segment. */
static inline bool pcap_tail_is_full(const struct pcap_tail *tail, size_t bytes)
{
	return (tail->bytes_max && tail->bytes + bytes > tail->bytes_max) ||
	       (tail->packets_max && tail->packets >= tail->packets_max);
}

/*
 * Begins a new segment. All packets have been written to fd, which is part's file: it is the new segment's
 * afterwards. If no segment can be made, the present one is emptied.
 */
void pcap_tail_turn(struct pcap_tail *tail, struct part *part, int fd);

/* Leaves out packets of the older segment that are more than the limit. fd and part are as above; all packets
 * have been written. */
void pcap_tail_trim(struct pcap_tail *tail);

/* Removes all segments but NAME. */
void pcap_tail_remove(struct pcap_tail *tail, const struct part *part);

/* Returns the descriptor that has the lock of NAME; fd, unless NAME was dropped. */
int pcap_tail_lock(const struct pcap_tail *tail, int fd);

/* Closes the files but the one that is written; unlocks them before, if told so. */
void pcap_tail_close(struct pcap_tail *tail, bool unlocks);

#endif
