/* SPDX-License-Identifier: MIT */
/* The capabilities of the calling thread: see capabilities(7). */
#ifndef TEST_SUPPORT_CAPABILITY_H
#define TEST_SUPPORT_CAPABILITY_H

#include <stdbool.h>

/* Takes an effective capability (CAP_* of <linux/capability.h>) away. Returns false if the thread did not
 * have it. */
bool capability_drop(unsigned int capability);

/* Makes a capability that is permitted effective again. */
void capability_restore(unsigned int capability);

#endif
