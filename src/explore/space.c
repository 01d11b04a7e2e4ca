/* SPDX-License-Identifier: MIT */
#include "src/explore/space.h"

#include <stdlib.h>

#define WALK_MIN   3
#define WALK_KINDS 4 /* a walk has WALK_MIN to WALK_MIN + WALK_KINDS - 1 decisions */

static bool has_kind(unsigned int kinds, unsigned int kind)
{
	return kinds & 1u << kind;
}

/* Returns the index-th of `all`, of which `chosen` are spread evenly. */
static uint64_t spread(uint64_t index, uint64_t chosen, uint64_t all)
{
	return chosen ? (uint64_t)((unsigned __int128)index * all / chosen) : 0;
}

/* Returns the index-th decision that is explored, in the order of their kinds. */
static struct vb_decision single(const struct space *space, uint64_t index)
{
	index = spread(index, space->singles, space->singles_all);
	for (unsigned int kind = 0; kind < VB_DECISION_KINDS; kind++) {
		const uint64_t count =
			has_kind(space->kinds, kind) ? space->seen[schedule_counted(kind)] : 0;

		if (index < count)
			return (struct vb_decision){kind, index + 1};
		index -= count;
	}
	abort();
}

void space_take_plain(struct space *space, const uint64_t seen[COUNTED])
{
	space->singles_all = 0;
	for (enum counted i = 0; i < COUNTED; i++)
		space->seen[i] = seen[i];
	for (unsigned int kind = 0; kind < VB_DECISION_KINDS; kind++)
		if (has_kind(space->kinds, kind))
			space->singles_all += seen[schedule_counted(kind)];
	space->singles = space->singles_all;
	if (space->singles_max && space->singles_max < space->singles)
		space->singles = space->singles_max;
}

/* --- pairs: a single decision, and one of a later packet of its run --- */

static unsigned int count_bits(unsigned int bits)
{
	return (unsigned int)__builtin_popcount(bits);
}

/* Returns how many pairs begin with a single decision. */
static uint64_t pairs_of(const struct space *space, uint64_t index)
{
	const struct vb_decision first = single(space, index);
	const uint64_t packets = space->single_packets[index];

	if (!has_kind(space->pair_kinds, first.kind) || packets <= first.n)
		return 0;
	return (packets - first.n) * count_bits(space->pair_kinds);
}

bool space_take_singles(struct space *space, const uint64_t *single_packets)
{
	space->single_packets = single_packets;
	space->pairs_before = calloc(space->singles + 1, sizeof(*space->pairs_before));
	if (!space->pairs_before)
		return false;
	for (uint64_t i = 0; i < space->singles; i++)
		space->pairs_before[i + 1] = space->pairs_before[i] + pairs_of(space, i);
	return true;
}

uint64_t space_pairs(const struct space *space)
{
	return space->pairs_before ? space->pairs_before[space->singles] : 0;
}

static unsigned int nth_kind(unsigned int kinds, uint64_t n)
{
	for (unsigned int kind = 0; kind < VB_DECISION_KINDS; kind++)
		if (has_kind(kinds, kind) && !n--)
			return kind;
	abort();
}

static void pair(const struct space *space, uint64_t index, struct vb_schedule *schedule)
{
	const unsigned int kinds = count_bits(space->pair_kinds);
	uint64_t low = 0, high = space->singles;

	index = spread(index, space_count(space, STAGE_PAIRS), space_pairs(space));
	while (high - low > 1) {
		const uint64_t middle = low + (high - low) / 2;

		if (space->pairs_before[middle] <= index)
			low = middle;
		else
			high = middle;
	}
	index -= space->pairs_before[low];
	schedule->count = 2;
	schedule->decisions[0] = single(space, low);
	schedule->decisions[1] = (struct vb_decision){
		nth_kind(space->pair_kinds, index % kinds),
		schedule->decisions[0].n + 1 + index / kinds,
	};
}

/* --- random schedules --- */

/* Splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators". */
static uint64_t next_random(uint64_t *state)
{
	uint64_t mixed = *state += 0x9e3779b97f4a7c15;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return mixed ^ mixed >> 31;
}

/* Returns the range for random numbers of packets: faults cause more packets than the run without a decision
 * has. */
static uint64_t reach(const struct space *space, unsigned int kind)
{
	const uint64_t seen = space->seen[schedule_counted(kind)];

	return kind <= VB_DECIDE_CORRUPT && seen ? seen + seen / 2 + 4 : seen;
}

static void walk(const struct space *space, uint64_t index, struct vb_schedule *schedule)
{
	uint64_t state = space->seed + index * 0x2545f4914f6cdd1d;
	const unsigned int wanted = WALK_MIN + (unsigned int)(next_random(&state) % WALK_KINDS);

	schedule->count = 0;
	for (unsigned int i = 0; i < wanted; i++) {
		const unsigned int kind =
			nth_kind(space->kinds, next_random(&state) % count_bits(space->kinds));
		const uint64_t end = reach(space, kind);

		if (end)
			schedule_add(schedule,
				     (struct vb_decision){kind, 1 + next_random(&state) % end});
	}
	schedule_sort(schedule);
}

/* --- stages --- */

uint64_t space_count(const struct space *space, enum stage stage)
{
	const uint64_t pairs = space_pairs(space);

	switch (stage) {
	case STAGE_PLAIN:
		return PLAIN_RUNS;
	case STAGE_SINGLES:
		return space->singles;
	case STAGE_PAIRS:
		return pairs < space->pairs_max ? pairs : space->pairs_max;
	default:
		return space->singles ? space->walks : 0;
	}
}

void space_schedule(const struct space *space, enum stage stage, uint64_t index,
		    struct vb_schedule *schedule)
{
	schedule->count = 0;
	switch (stage) {
	case STAGE_SINGLES:
		schedule->count = 1;
		schedule->decisions[0] = single(space, index);
		break;
	case STAGE_PAIRS:
		pair(space, index, schedule);
		break;
	case STAGE_WALKS:
		walk(space, index, schedule);
		break;
	default:
		break;
	}
}

void space_end(struct space *space)
{
	free(space->pairs_before);
}
