/* SPDX-License-Identifier: MIT */
/*
 * FNV-1a, a hash of 64 bits: start with FNV_BASIS and add. It is fast and gives the same number on each
 * machine; it is no protection against somebody who looks for two equal hashes.
 * http://www.isthe.com/chongo/tech/comp/fnv/
 */
#ifndef SRC_BASE_FNV_H
#define SRC_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static inline uint64_t fnv_add(uint64_t hash, const void *bytes, size_t length_bytes)
{
	for (size_t i = 0; i < length_bytes; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * FNV_PRIME;
	return hash;
}

/* Adds a string without its terminating 0. */
static inline uint64_t fnv_add_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * FNV_PRIME;
	return hash;
}

#endif /* SRC_BASE_FNV_H */
