/* SPDX-License-Identifier: MIT */
/*
 * Too little room for the file of a shared world: in /dev/shm, or by the limit of the size of files (RLIMIT_FSIZE). A
 * program sees the lack as a verb that fails, or as packets that never arrive, and blames the peer: so a line on stderr
 * says what is short, once for each need.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_SHORT_H
#define BACKENDS_SIM_WIRE_SHARED_SHORT_H

#include "backends/sim/wire/shared_file.h"

#include <verbena/why.h>

/* What the room is for. */
enum segment_need {
	SEGMENT_NEED_RING,
	SEGMENT_NEED_NUMBERS,
	SEGMENT_NEED_SERVICE,
	SEGMENT_NEED_DOMAIN,
};

/* Returns why an allocation of `needed` bytes that end at an offset of the file has failed with err. */
struct vb_why segment_why(const struct segment *segment, int err, uint64_t end, uint64_t needed);

/* Returns why such an allocation would fail now; VB_WHY_NONE: it would not. */
struct vb_why segment_lack(const struct segment *segment, uint64_t end, uint64_t needed);

/* Returns the errno value of an allocation that has failed, with a sentence. */
int segment_refuse(const struct segment *segment, int err, uint64_t end, uint64_t needed);

/* Prints a line on stderr, unless one was printed for the same need. */
void segment_tell(struct segment *segment, enum segment_need need, const struct vb_why *why);

#endif
