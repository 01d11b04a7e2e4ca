/* SPDX-License-Identifier: MIT */
#include "backends/sim/wire/shared_ring.h"

#include "backends/sim/base/bell.h"

/*
 * The word of a slot:
 *
 *	frame bytes, 16 bits | device, 8 | port, 8 | route, 4 | kind, 4 | mark, 8 | lines before the slot, 16
 *
 * The mark and the lines let the consumer find out that something else has written over the ring.
 */
#define MARK 0xb5u

/* So many long frames are handed over together. The consumer then finds the next frames when it has copied one: its
 * processor fetches them ahead. */
#define WITHHELD_MAX 8u

/* So many lines of the next slot are fetched while a long frame is copied. */
#define FETCHED_LINES 16u

/* With less room than this many frames, ring_room() reads the head again. */
#define LITTLE_ROOM 8u

static uint64_t word_make(uint32_t position, const struct ring_slot *slot)
{
	const uint32_t flags = (uint32_t)slot->route << RING_ROUTE_SHIFT | slot->kind;

	return (uint64_t)slot->frame_bytes << 48 | (uint64_t)slot->device << 40 |
	       (uint64_t)slot->port << 32 | (uint64_t)flags << 24 | (uint64_t)MARK << 16 |
	       (position / RING_LINE & 0xffff);
}

/* Returns the bytes from a position to the end of the ring. */
static uint32_t lap_left(uint32_t position, uint32_t capacity)
{
	return capacity - (position & (capacity - 1));
}

static _Atomic uint64_t *word_at(struct ring_memory *memory, uint32_t capacity, uint32_t position)
{
	return (_Atomic uint64_t *)(memory->slots + (position & (capacity - 1)));
}

/* Returns the position behind a slot. */
static uint32_t behind(uint32_t position, uint32_t frame_bytes, uint32_t capacity)
{
	const uint32_t slot_bytes = (8 + frame_bytes + RING_LINE - 1) / RING_LINE * RING_LINE;
	const uint32_t left_bytes = lap_left(position, capacity);

	return position + (slot_bytes < left_bytes ? slot_bytes : left_bytes);
}

void ring_init(struct ring_memory *memory)
{
	atomic_store_explicit(&memory->head, 0, memory_order_relaxed);
	atomic_store_explicit(&memory->wanted, 0, memory_order_relaxed);
	atomic_store_explicit((_Atomic uint64_t *)memory->slots, 0, memory_order_release);
}

/* --- the producer --- */

/* Returns the free bytes behind the tail, without the line of the word that is set to 0. A head that is no
 * position of this ring counts as no room. */
static uint32_t free_bytes(const struct ring_out *ring)
{
	const uint32_t used = ring->tail - ring->head;

	return used + RING_LINE < ring->capacity ? ring->capacity - RING_LINE - used : 0;
}

/* Acquire: the consumer has finished reading the slots before the producer writes there. */
static void read_head(struct ring_out *ring)
{
	ring->head = atomic_load_explicit(&ring->memory->head, memory_order_acquire);
}

bool ring_is_taken(struct ring_out *ring)
{
	read_head(ring);
	return ring->head == ring->tail;
}

uint32_t ring_room(struct ring_out *ring)
{
	if (free_bytes(ring) < LITTLE_ROOM * RING_SLOT_BYTES)
		read_head(ring);
	return free_bytes(ring) / RING_SLOT_BYTES;
}

uint8_t *ring_reserve(struct ring_out *ring)
{
	if (free_bytes(ring) < RING_SLOT_BYTES) {
		read_head(ring);
		if (free_bytes(ring) < RING_SLOT_BYTES)
			return NULL;
	}
	return (uint8_t *)word_at(ring->memory, ring->capacity, ring->tail) + 8;
}

uint32_t ring_longest(struct ring_out *ring)
{
	const uint32_t left_bytes = lap_left(ring->tail, ring->capacity);
	uint32_t longest = ring->capacity / 8;

	if (free_bytes(ring) < longest)
		read_head(ring);
	if (free_bytes(ring) < RING_SLOT_BYTES)
		return 0;
	if (free_bytes(ring) < longest)
		longest = free_bytes(ring);
	if (left_bytes < longest)
		longest = left_bytes;
	return longest - 8;
}

/* Takes a line from the other processors, so that a store need not wait for it. Without an option for the processor,
 * GCC makes a fetch for reading of __builtin_prefetch(), after which a store has to ask for the line once more. All
 * x86-64 processors know the instruction; old ones do nothing. */
static inline void fetch_to_write(const void *at)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

/* Fetches the lines of the next slot, which are in the consumer's cache since the last lap. The first line
 * stays there: the consumer looks at its word. */
static void fetch_ahead(const struct ring_out *ring)
{
	const uint8_t *slot = (uint8_t *)word_at(ring->memory, ring->capacity, ring->tail);

	fetch_to_write(slot + RING_LINE);
	fetch_to_write(slot + 2 * RING_LINE);
}

void ring_prepare(const struct ring_out *ring)
{
	fetch_to_write(word_at(ring->memory, ring->capacity, ring->tail));
}

static void store_word(const struct ring_out *ring, uint32_t position, uint64_t word)
{
	atomic_store_explicit(word_at(ring->memory, ring->capacity, position), word,
			      memory_order_release);
}

void ring_flush(struct ring_out *ring)
{
	if (!ring->withheld_count)
		return;
	/* The next slot's word is set to 0 before the word of the first frame is stored: a consumer that
	 * sees the first word reads on up to the tail. */
	store_word(ring, ring->tail, 0);
	store_word(ring, ring->withheld_at, ring->withheld_word);
	ring->withheld_count = 0;
}

/* Withholds the frame at the tail: the consumer will see it after the first withheld frame. */
static void withhold(struct ring_out *ring, uint32_t next, uint64_t word)
{
	if (ring->withheld_count++) {
		store_word(ring, ring->tail, word);
	} else {
		ring->withheld_at = ring->tail;
		ring->withheld_word = word;
	}
	ring->tail = next;
	if (ring->withheld_count == WITHHELD_MAX)
		ring_flush(ring);
}

void ring_publish(struct ring_out *ring, const struct ring_slot *slot)
{
	const uint32_t next = behind(ring->tail, slot->frame_bytes, ring->capacity);
	const uint64_t word = word_make(ring->tail, slot);

	if (slot->frame_bytes >= RING_LONG_BYTES && !ring_is_much(slot)) {
		withhold(ring, next, word);
		return;
	}
	/* As in ring_flush(): the consumer follows the word of this slot to the next slot. */
	store_word(ring, next, 0);
	store_word(ring, ring->tail, word);
	ring->tail = next;
	ring_flush(ring);
	fetch_ahead(ring);
}

/*
 * The consumer stores the head and then reads `wanted`; the producer stores `wanted` and then reads the
 * head. The barriers of both make sure that one of them sees the other's store. Release, with the consumer's
 * exchange: a consumer that clears `wanted` sees that the producer has begun to listen before.
 */
void ring_want(struct ring_out *ring)
{
	atomic_store_explicit(&ring->memory->wanted, 1, memory_order_release);
	bell_barrier();
	read_head(ring);
}

/* --- the consumer --- */

bool ring_is_empty(const struct ring_in *ring)
{
	return !atomic_load_explicit(word_at(ring->memory, ring->capacity, ring->head),
				     memory_order_relaxed);
}

/* Fetches all lines of a short frame at once, instead of one after the other while reading. */
static void fetch_frame(const uint8_t *slot, uint32_t frame_bytes)
{
	if (8 + frame_bytes > RING_LINE)
		__builtin_prefetch(slot + RING_LINE);
	if (8 + frame_bytes > 2 * RING_LINE)
		__builtin_prefetch(slot + 2 * RING_LINE);
}

/* The slot behind a long frame probably has one, too. */
static void fetch_next(const struct ring_in *ring, uint32_t frame_bytes)
{
	const uint8_t *slot = (const uint8_t *)word_at(
		ring->memory, ring->capacity, behind(ring->head, frame_bytes, ring->capacity));

	for (uint32_t line = 0; line < FETCHED_LINES; line++)
		__builtin_prefetch(slot + line * RING_LINE);
}

/* Returns true if a producer may have written a slot of this kind and length. Only a train is longer than a frame, and a
 * train ends before the end of the ring. */
static bool is_plausible(const struct ring_in *ring, const struct ring_slot *slot)
{
	if (slot->kind >= RING_KINDS || !slot->frame_bytes)
		return false;
	if (slot->frame_bytes <= SIM_FRAME_BYTES_MAX)
		return true;
	return slot->kind == RING_TRAIN &&
	       slot->frame_bytes <= RING_TRAIN_HEAD_BYTES + SIM_TRAIN_BYTES_MAX &&
	       8 + slot->frame_bytes <= lap_left(ring->head, ring->capacity);
}

enum ring_look ring_look(const struct ring_in *ring, struct ring_slot *slot)
{
	_Atomic uint64_t *at = word_at(ring->memory, ring->capacity, ring->head);
	const uint64_t word = atomic_load_explicit(at, memory_order_acquire);

	if (!word)
		return RING_EMPTY;
	fetch_frame((const uint8_t *)at, (uint32_t)(word >> 48));
	*slot = (struct ring_slot){.frame = (const uint8_t *)at + 8,
				   .frame_bytes = (uint32_t)(word >> 48),
				   .device = (uint8_t)(word >> 40),
				   .port = (uint8_t)(word >> 32),
				   .kind = word >> 24 & RING_KIND_MASK,
				   .route = (uint8_t)(word >> (24 + RING_ROUTE_SHIFT)) &
					    (RING_ROUTES - 1)};
	if ((word & 0xffffff) != (MARK << 16 | (ring->head / RING_LINE & 0xffff)) ||
	    !is_plausible(ring, slot))
		return RING_BROKEN;
	if (slot->frame_bytes >= RING_LONG_BYTES)
		fetch_next(ring, slot->frame_bytes);
	return RING_FRAME;
}

void ring_next(struct ring_in *ring, const struct ring_slot *slot)
{
	ring->head = behind(ring->head, slot->frame_bytes, ring->capacity);
}

/* Release: the producer overwrites the slots only after they were read. */
void ring_tell(struct ring_in *ring)
{
	if (ring->told == ring->head)
		return;
	ring->told = ring->head;
	atomic_store_explicit(&ring->memory->head, ring->head, memory_order_release);
}

bool ring_is_wanted(struct ring_in *ring)
{
	return atomic_load_explicit(&ring->memory->wanted, memory_order_relaxed) &&
	       atomic_exchange_explicit(&ring->memory->wanted, 0, memory_order_acq_rel);
}
