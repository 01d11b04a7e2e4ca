/* SPDX-License-Identifier: MIT */
/* For libraries that define functions of libc: the definition that such a function calls itself. */
#ifndef SRC_WAIT_NEXT_H
#define SRC_WAIT_NEXT_H

#define EXPORT __attribute__((visibility("default")))

/* A function of libc. Its alignment is its size, so that the section is an array. */
struct wait_next {
	const char *symbol;
	void *definition; /* behind this library's; NULL: not looked up yet */
} __attribute__((aligned(2 * sizeof(void *))));

/* The definition behind this library's: libc's, or that of a sanitizer. It is looked up when the library is loaded. */
#define REAL(name)                                                                        \
	({                                                                                \
		static struct wait_next next_                                             \
			__attribute__((section("libc_next"), used)) = {#name, (void *)0}; \
		(__typeof__(&(name)))wait_next(&next_);                                   \
	})

/* Declares `next`, that definition. */
#define NEXT(name) __typeof__(&(name)) next = REAL(name)

/* Returns the definition behind this library's. Any thread may call it, and any signal handler. */
void *wait_next(struct wait_next *next);

#endif /* SRC_WAIT_NEXT_H */
