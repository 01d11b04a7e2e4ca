/* SPDX-License-Identifier: MIT */
/* The memory that the test's process shares with B's. */
#ifndef TEST_PEER_MEMORY_H
#define TEST_PEER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Returns false with errno. */
bool memory_begin(void);
void memory_end(void);

/* Zeroed, aligned to 64 bytes; NULL if there is no room. */
void *memory_alloc(size_t length_bytes);
void *memory_place(size_t length_bytes);

/* Slots of MEMORY_SLOT_BYTES for mirrors. Only B's process takes them; NULL: no room. */
#define MEMORY_SLOT_BYTES 2048
void *memory_slot(void);
/* Returns the slot that the address lies in; NULL if it lies in none. */
void *memory_slot_of(const void *address);

/* The stack of peer_run(). */
void *memory_stack(size_t *length_bytes);

/*
 * Returns true if both processes have the same bytes at the address: shared memory, a constant of the
 * program, or no memory at all.
 */
bool memory_is_common(const void *address);

#endif
