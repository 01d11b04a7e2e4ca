/* SPDX-License-Identifier: MIT */
/* Remembers the objects that the program makes, for vb_expect_no_leaks(). */
#ifndef SRC_EXPECT_LEAK_H
#define SRC_EXPECT_LEAK_H

/* Begins to remember, with no objects. Returns 0 or ENOMEM. */
int leak_begin(void);
void leak_end(void);

#endif
