/* SPDX-License-Identifier: MIT */
#include "src/check/sum.h"

#include "src/check/poison.h"
#include "src/guard/guard.h"

#include <string.h>

#define BLOCK_BYTES 512 /* a multiple of 8 */
#define TAIL_BYTES  256
#define FACTOR	    UINT64_C(0x9e3779b97f4a7c15)

/*
 * A change of one word changes the sum, since the factor is odd. The last word is filled up with zeros.
 * Returns false if the bytes are unmapped.
 */
static inline bool sum_words(const char *bytes, size_t length, uint64_t *sum)
{
	const size_t rest = length % 8;
	uint64_t word = 0;

	if (guard_sum(sum, bytes, length / 8, FACTOR))
		return false;
	if (!rest)
		return true;
	if (guard_copy(&word, bytes + length - rest, rest))
		return false;
	*sum = *sum * FACTOR + word;
	return true;
}

/* The same from a copy: targets of works in flight are undefined for memcheck. */
static __attribute__((noinline)) bool sum_copy(const char *bytes, size_t length, uint64_t *sum)
{
	uint64_t block[BLOCK_BYTES / 8];
	size_t part;

	for (; length; bytes += part, length -= part) {
		part = length < BLOCK_BYTES ? length : BLOCK_BYTES;
		if (guard_copy(block, bytes, part))
			return false;
		poison_make_defined(block, sizeof(block));
		sum_words((const char *)block, part, sum);
	}
	return true;
}

static inline bool sum_bytes(const char *bytes, size_t length, uint64_t *sum)
{
	return poison_active ? sum_copy(bytes, length, sum) : sum_words(bytes, length, sum);
}

static bool sum_sge(const struct work_sge *sge, uint32_t bytes, uint64_t *sum)
{
	const char *memory = sge->memory;
	const size_t length = sge->sge.length;

	if (length <= bytes)
		return sum_bytes(memory, length, sum);
	return sum_bytes(memory, bytes / 2, sum) &&
	       sum_bytes(memory + length - bytes / 2, bytes / 2, sum);
}

static __attribute__((noinline)) bool sum_sges(const struct work *work, uint32_t bytes,
					       uint64_t *sum, const void **missing)
{
	const struct work_sge *sge = work->sges;

	for (uint32_t i = 0; i < work->sge_count; i++, sge++) {
		if (!sge->memory || sum_sge(sge, bytes, sum))
			continue;
		*missing = sge->memory;
		return false;
	}
	return true;
}

/* Most buffers are in one SGE and have whole words. */
bool sum_work(const struct work *work, uint32_t bytes, uint64_t *sum, const void **missing)
{
	const struct work_sge *sge = work->sges;
	const uint64_t length = work->length_bytes;

	*sum = FACTOR;
	if (work->sge_count != 1 || length > bytes || length % 8 || !sge->memory || poison_active)
		return sum_sges(work, bytes, sum, missing);
	*missing = sge->memory;
	return !guard_sum(sum, sge->memory, (size_t)length / 8, FACTOR);
}

static __attribute__((noinline)) uint32_t sum_end(const struct work_sge *sge, uint32_t length,
						  uint64_t *sum)
{
	return sum_bytes((const char *)sge->memory + sge->sge.length - length, length, sum) ? length
											    : 0;
}

uint32_t sum_tail(const struct work *work, uint64_t *sum)
{
	const struct work_sge *last = work->sge_count ? &work->sges[work->sge_count - 1] : NULL;
	uint32_t length;

	if (!last || !last->memory)
		return 0;
	length = last->sge.length / 2 < TAIL_BYTES ? last->sge.length / 2 : TAIL_BYTES;
	*sum = FACTOR;
	if (!length || length % 8 || poison_active)
		return length ? sum_end(last, length, sum) : 0;
	return guard_sum(sum, (const char *)last->memory + last->sge.length - length, length / 8,
			 FACTOR)
		       ? 0
		       : length;
}
