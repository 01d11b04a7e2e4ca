/* SPDX-License-Identifier: MIT */
#include "src/check/sum.h"

#include "src/check/poison.h"
#include "src/guard/guard.h"

#include <string.h>

#define BLOCK_BYTES 512 /* a multiple of 8 */
#define TAIL_BYTES  256
#define FACTOR	    UINT64_C(0x9e3779b97f4a7c15)

/* A change of one word changes the sum, since the factor is odd. */
static uint64_t mix(uint64_t sum, const uint64_t *words, size_t count)
{
	for (; count >= 4; count -= 4, words += 4) {
		sum = sum * FACTOR + words[0];
		sum = sum * FACTOR + words[1];
		sum = sum * FACTOR + words[2];
		sum = sum * FACTOR + words[3];
	}
	while (count--)
		sum = sum * FACTOR + *words++;
	return sum;
}

/* At most BLOCK_BYTES bytes. Copies them first, since they may be unmapped. Returns false if they are. */
static inline bool sum_block(const char *bytes, size_t length, uint64_t *sum)
{
	uint64_t block[BLOCK_BYTES / 8];
	const size_t words = (length + 7) / 8;

	if (!length)
		return true;
	block[words - 1] = 0;
	if (guard_copy(block, bytes, length))
		return false;
	/* Targets of works in flight are undefined. */
	if (poison_active)
		poison_make_defined(block, sizeof(block));
	*sum = mix(*sum, block, words);
	return true;
}

static bool sum_bytes(const char *bytes, size_t length, uint64_t *sum)
{
	while (length > BLOCK_BYTES) {
		if (!sum_block(bytes, BLOCK_BYTES, sum))
			return false;
		bytes += BLOCK_BYTES;
		length -= BLOCK_BYTES;
	}
	return sum_block(bytes, length, sum);
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

uint32_t sum_tail(const struct work *work, uint64_t *sum)
{
	const struct work_sge *last = work->sge_count ? &work->sges[work->sge_count - 1] : NULL;
	uint32_t length;

	if (!last || !last->memory)
		return 0;
	length = last->sge.length / 2 < TAIL_BYTES ? last->sge.length / 2 : TAIL_BYTES;
	*sum = FACTOR;
	return length && sum_bytes((const char *)last->memory + last->sge.length - length, length,
				   sum)
		       ? length
		       : 0;
}

bool sum_work(const struct work *work, uint32_t bytes, uint64_t *sum, const void **missing)
{
	const struct work_sge *sge = work->sges;

	*sum = FACTOR;
	for (uint32_t i = 0; i < work->sge_count; i++, sge++) {
		if (!sge->memory || sum_sge(sge, bytes, sum))
			continue;
		*missing = sge->memory;
		return false;
	}
	return true;
}
