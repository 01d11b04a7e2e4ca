/* SPDX-License-Identifier: MIT */
/*
 * The table of taken requests has an entry for each place of a communication ID. Only the process that has taken the
 * request of the ID writes the entry, and only the process that owns the ID reads it. An entry of an earlier ID of the
 * place, or of a dead process, counts as free.
 */
#include "backends/sim/wire/shared_requests.h"

#include "backends/sim/wire/shared_blocks.h"
#include "backends/sim/wire/shared_places.h"

#define PLACES (SEGMENT_COMMUNICATION_BLOCKS * SIM_BLOCK_PLACES)

static uint32_t block_of(uint32_t communication_id)
{
	return communication_id % PLACES / SIM_BLOCK_PLACES;
}

/* Returns true if the page of a block's requests is allocated: only then may it be touched. */
static bool has_page(const struct segment *segment, uint32_t block)
{
	return atomic_load_explicit(&segment->header->request_pages[block / 64],
				    memory_order_acquire) >>
		       block % 64 &
	       1;
}

/* Needs no lock: it does no harm if two processes allocate one page. */
static bool make_page(const struct segment *segment, uint32_t block)
{
	if (has_page(segment, block))
		return true;
	if (segment_allocate(segment, SEGMENT_REQUESTS_AT + (uint64_t)block * SEGMENT_PAGE,
			     SEGMENT_PAGE))
		return false;
	atomic_fetch_or_explicit(&segment->header->request_pages[block / 64],
				 UINT64_C(1) << block % 64, memory_order_release);
	return true;
}

static struct segment_request *at(const struct segment *segment, uint32_t communication_id)
{
	return (struct segment_request *)(segment->map + SEGMENT_REQUESTS_AT) +
	       communication_id % PLACES;
}

static void take(const struct segment *segment, uint32_t communication_id)
{
	struct segment_request *request = at(segment, communication_id);

	atomic_store_explicit(&request->taker, 0, memory_order_release);
	atomic_store_explicit(&request->communication_id, communication_id, memory_order_relaxed);
	atomic_store_explicit(&request->taker, segment->id, memory_order_release);
}

/* Leaves the entry to a process that has taken a later request of the place. */
static void forget(const struct segment *segment, uint32_t communication_id)
{
	struct segment_request *request = at(segment, communication_id);
	segment_id own = segment->id;

	if (atomic_load_explicit(&request->communication_id, memory_order_relaxed) ==
	    communication_id)
		atomic_compare_exchange_strong_explicit(&request->taker, &own, 0,
							memory_order_release, memory_order_relaxed);
}

void requests_take(const struct segment *segment, segment_id sender, uint32_t communication_id,
		   bool on)
{
	const uint32_t block = block_of(communication_id);

	if (!on) {
		if (has_page(segment, block))
			forget(segment, communication_id);
	} else if (blocks_owner(segment, 0, SIM_NUMBERS_COMMUNICATION, block) == sender &&
		   make_page(segment, block)) {
		take(segment, communication_id);
	}
}

segment_id requests_taker(const struct segment *segment, uint32_t communication_id)
{
	const struct segment_request *request = at(segment, communication_id);
	segment_id taker;

	if (!has_page(segment, block_of(communication_id)))
		return 0;
	taker = atomic_load_explicit(&request->taker, memory_order_acquire);
	if (!taker || taker == segment->id ||
	    atomic_load_explicit(&request->communication_id, memory_order_relaxed) !=
		    communication_id)
		return 0;
	return places_live(segment, taker) ? taker : 0;
}
