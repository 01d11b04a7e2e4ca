/* SPDX-License-Identifier: MIT */
/* For libraries that define functions of libc: the definition that such a function calls itself. */
#ifndef SRC_WAIT_NEXT_H
#define SRC_WAIT_NEXT_H

#define EXPORT __attribute__((visibility("default")))

/* The definition behind this library's: libc's, or that of a sanitizer. It is looked up once. */
#define REAL(name)                                             \
	({                                                     \
		static void *next_;                            \
		(__typeof__(&(name)))wait_next(&next_, #name); \
	})

/* Declares `next`, that definition. */
#define NEXT(name) __typeof__(&(name)) next = REAL(name)

/* Returns the next definition of a symbol, and keeps it in *found. Any thread may call it. */
void *wait_next(void **found, const char *symbol);

#endif /* SRC_WAIT_NEXT_H */
