/* SPDX-License-Identifier: MIT */
/*
 * Held memory: ranges of the program's memory whose new bytes adapters keep aside until they are released. The
 * program sees the old bytes until then, and adapters the new ones. Whole pages of new bytes are protected, so
 * that the program's first access to one of them is noticed.
 */
#ifndef SRC_GUARD_HELD_H
#define SRC_GUARD_HELD_H

#include "src/guard/guard.h"

#define HELD_MAX       1024	  /* ranges at a time */
#define HELD_BYTES_MAX (64 << 20) /* of a range */

/* What happens to held ranges, by the number of the range. */
struct held_watch {
	bool protects; /* protect whole pages of new bytes */
	/* An adapter has written new bytes for this part of a range. No function of this file may be
	 * called. */
	void (*came)(unsigned int number, const void *memory, size_t length_bytes);
	/*
	 * The program has touched a protected page, and will see the new bytes of the range when the
	 * function returns. It is called in a signal handler, in the thread of the access.
	 */
	void (*touched)(unsigned int number, const struct guard_fault *fault);
};

/* Lets worlds that are made from now on hold ranges. *watch must stay valid until held_stop(). */
void held_start(const struct held_watch *watch);

/* Releases all ranges, and ends what held_start() began. */
void held_stop(void);

/* Returns true between held_start() and held_stop(). */
bool held_wanted(void);

/* Holds a range. The ranges that it overlaps are released. Returns its number; -1 if
 * there is no room, or the range is longer than HELD_BYTES_MAX. */
int held_add(void *memory, size_t length_bytes);

/* Writes the new bytes to the memory, and forgets the range. */
void held_release(unsigned int number);

/* Returns true if an adapter has written new bytes for the range, and the program has not touched them. */
bool held_has_come(unsigned int number);

/* Copies for an adapter: new bytes of held ranges are kept aside, and read from there. copy: as guard_copy(),
 * for all other bytes. */
int held_copy(int (*copy)(void *dst, const void *src, size_t length_bytes), void *dst,
	      const void *src, size_t length_bytes);

#endif
