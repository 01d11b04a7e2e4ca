/* SPDX-License-Identifier: MIT */
/*
 * Asks AddressSanitizer or Valgrind's memcheck about memory, and makes them report accesses, if the process
 * runs under one of them. In other processes the functions do nothing.
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

/* Returns true if the program has freed a byte of the range, or if the range is in a variable of a function
 * that has returned. */
bool poison_is_freed(const void *memory, size_t length_bytes);

/*
 * Makes the tool report the program's accesses to the range from now on. AddressSanitizer reports reads and
 * writes, for whole groups of 8 bytes that can be accessed now. Memcheck reports reads until the bytes are
 * written to. Returns false if no part of the range can be watched.
 */
bool poison_hide(const void *memory, size_t length_bytes);

/* Returns true if a byte of the range is hidden; always true under memcheck, which cannot tell. */
bool poison_is_hidden(const void *memory, size_t length_bytes);

/* Ends poison_hide(). Bytes that the program has freed meanwhile stay inaccessible. The adapter has written
 * to the first written_bytes of the range. */
void poison_show(const void *memory, size_t length_bytes, size_t written_bytes);

/* Under memcheck: report, or do not report, uses of these bytes until they are written to. */
void poison_make_undefined(void *memory, size_t length_bytes);
void poison_make_defined(void *memory, size_t length_bytes);

/* What AddressSanitizer is about to report. */
struct poison_access {
	const void *address;
	size_t size_bytes;
	bool writes;
	const void *caller; /* the address behind the access */
};

/* Calls `touched` when AddressSanitizer has found a wrong access. NULL: stops that. */
void poison_watch(void (*touched)(const struct poison_access *access));

#endif /* SRC_CHECK_POISON_H */
