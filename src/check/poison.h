/* SPDX-License-Identifier: MIT */
/*
 * AddressSanitizer and Valgrind's memcheck, if the process runs under one of them: what they know about
 * memory, and what they are to report. All functions do nothing in other processes.
 */
#ifndef SRC_CHECK_POISON_H
#define SRC_CHECK_POISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds out whether there is such a tool. Call this once, before the others, while the process has one
 * thread. */
void poison_start(void);

/* True if the process runs under one of the tools. poison_start() writes it. */
extern bool poison_active;

/* Returns true if the program has freed a byte of the range, or the function has returned whose variable it
 * was. */
bool poison_is_freed(const void *memory, size_t length_bytes);

/*
 * From now on, the program's reads and writes of the range are reported by AddressSanitizer: of its whole
 * groups of 8 bytes that can be accessed now. Memcheck reports reads, until the bytes are written to.
 * Returns false if nothing of the range can be watched.
 */
bool poison_hide(const void *memory, size_t length_bytes);

/* Returns false if no byte of the range is hidden. Memcheck does not know: true. */
bool poison_is_hidden(const void *memory, size_t length_bytes);

/* Ends that for the bytes that can be accessed again: those that the program has freed meanwhile stay as
 * they are. The adapter has written to the first written_bytes of the range. */
void poison_show(const void *memory, size_t length_bytes, size_t written_bytes);

/* Memcheck reports a use of these bytes, until they are written to; or never. */
void poison_make_undefined(void *memory, size_t length_bytes);
void poison_make_defined(void *memory, size_t length_bytes);

/* What AddressSanitizer is about to report. */
struct poison_access {
	const void *address;
	size_t size_bytes;
	bool writes;
	const void *caller; /* the address behind the access */
};

/* Calls `touched` when AddressSanitizer has found an access. NULL ends that. */
void poison_watch(void (*touched)(const struct poison_access *access));

#endif /* SRC_CHECK_POISON_H */
