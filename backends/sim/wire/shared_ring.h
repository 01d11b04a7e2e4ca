/* SPDX-License-Identifier: MIT */
/*
 * A ring of frames in shared memory, from one producer to one consumer.
 *
 * A slot is a word and a frame, and begins at a cache line. The word is 0 until the frame is whole; it
 * says how long the frame is. So the consumer looks at the word only, which comes in one cache line with
 * the begin of the frame. Before the producer stores the word of a slot, it makes that of the next slot 0.
 *
 * The producer hands several long frames over together: it withholds the word of the first one, so that the
 * consumer finds none of them, and stores the words of the others. Meanwhile, the consumer does not read the
 * lines that the producer writes.
 *
 * Positions count bytes and never go back. The last slot before the end of the ring may reach beyond it,
 * where the memory has room for one more frame; the next slot begins at the ring's begin.
 *
 * Both ends keep their own position private, and believe only the other end's: the consumer checks
 * each word, and the producer checks the head. A wrong one costs packets.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_RING_H
#define BACKENDS_SIM_WIRE_SHARED_RING_H

#include "sim/wire/packet.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RING_LINE 64u

/* Lines that different ends write are 128 bytes apart, because processors fetch pairs of lines. */
struct ring_memory {
	/* The consumer has taken all frames before this position. */
	alignas(128) _Atomic uint32_t head;
	/* 1 while the producer waits for room. The producer sets it, the consumer clears it. */
	alignas(128) _Atomic uint32_t wanted;
	alignas(128) uint8_t slots[];
};

/* The bytes of the largest slot. */
#define RING_SLOT_BYTES ((8u + SIM_FRAME_BYTES_MAX + RING_LINE - 1) / RING_LINE * RING_LINE)

/* The bytes of the memory of a ring: whole pages. */
#define RING_BYTES(capacity) ((uint32_t)(capacity) + 8192u)

_Static_assert(sizeof(struct ring_memory) + RING_SLOT_BYTES <= 8192, "a slot fits behind the end");

struct ring_out {
	struct ring_memory *memory;
	uint32_t capacity; /* a power of two */
	uint32_t tail;
	uint32_t head; /* as it was read last */
	uint32_t withheld_count;
	uint32_t withheld_at;	/* the position of the first withheld frame */
	uint64_t withheld_word; /* the word of that frame */
};

struct ring_in {
	struct ring_memory *memory;
	uint32_t capacity;
	uint32_t head;
	uint32_t told; /* the head as the producer sees it */
};

/* What a slot holds. */
enum ring_kind {
	RING_WHOLE,  /* a frame without checksums */
	RING_SEALED, /* a frame whose checksums are to be checked */
	RING_RELAY,  /* bytes for the process's relay (sim/qp/relay.h) */
	RING_CALL,   /* bytes for shared_called_fn; device and port mean nothing */
	/* A packet without checksums, and without the headers before its BTH. The headers are equal to those of
	 * the last RING_WHOLE of the same route number. */
	RING_BARE,
	RING_TRAIN, /* the number of packets, 4 bytes, and the bytes of a train (sim/wire/packet.h), as RING_BARE */
	RING_KINDS
};

/* The kind and the number of a frame's route share a byte. */
#define RING_ROUTE_SHIFT 4
#define RING_ROUTES	 16u
#define RING_KIND_MASK	 (RING_ROUTES - 1)

_Static_assert(RING_KINDS <= RING_KIND_MASK + 1, "a kind has four bits");

/* What stands before the payload of a train: the number of packets, the BTH, and XRC's header. */
#define RING_TRAIN_COUNT_BYTES 4u
#define RING_TRAIN_HEAD_BYTES  (RING_TRAIN_COUNT_BYTES + 12u + 4u)

/* A frame that has arrived. Its bytes are in the ring, where the producer may change them at any time. */
struct ring_slot {
	const uint8_t *frame;
	uint32_t frame_bytes;
	uint8_t device, port;
	uint8_t kind; /* enum ring_kind */
	uint8_t route;
};

enum ring_look {
	RING_EMPTY,
	RING_FRAME,
	RING_BROKEN, /* the word is not one that a producer stores: the ring cannot be read any further */
};

/* Initialises memory as an empty ring. */
void ring_init(struct ring_memory *memory);

/* --- the producer --- */

/* Returns how many frames of any length the ring has room for. Reads the head if the last known room
 * was small. */
uint32_t ring_room(struct ring_out *ring);

/* Returns true if the consumer has taken all frames. Looks at the head. */
bool ring_is_taken(struct ring_out *ring);

/* Returns the address for the next frame, of SIM_FRAME_BYTES_MAX bytes; NULL if there is no room. */
uint8_t *ring_reserve(struct ring_out *ring);

/* Returns how long a frame may be now, which may be more than SIM_FRAME_BYTES_MAX: it has room, is no more than an eighth
 * of the ring, and ends before the ring does. 0: ring_reserve() would return NULL. */
uint32_t ring_longest(struct ring_out *ring);

/* Call this shortly before a frame is written: fetches the line of its slot's word, which the consumer looks
 * at, while the frame is made. */
void ring_prepare(const struct ring_out *ring);

/* Frames from this length on are handed over several at a time. */
#define RING_LONG_BYTES 1024u

/* Hands the reserved frame of a slot to the consumer, and the withheld frames before it. Withholds a long frame until
 * more frames or ring_flush() follow; one longer than SIM_FRAME_BYTES_MAX is many already. slot->frame has no
 * meaning. */
void ring_publish(struct ring_out *ring, const struct ring_slot *slot);

/* Hands the withheld frames to the consumer. */
void ring_flush(struct ring_out *ring);

/* Asks the consumer to tell when there is room. Check the room once more after this call. */
void ring_want(struct ring_out *ring);

/* --- the consumer --- */

/* Returns true if ring_look() would find no frame. */
bool ring_is_empty(const struct ring_in *ring);

/* Returns true if the frame is as much as several ones. */
static inline bool ring_is_much(const struct ring_slot *slot)
{
	return slot->frame_bytes > SIM_FRAME_BYTES_MAX;
}

enum ring_look ring_look(const struct ring_in *ring, struct ring_slot *slot);

/* Advances past the slot that ring_look() has found. */
void ring_next(struct ring_in *ring, const struct ring_slot *slot);

/* Publishes the head to the producer. */
void ring_tell(struct ring_in *ring);

/* Returns true, once, if the producer waits for room. A full barrier stands between ring_tell() and this
 * call. */
bool ring_is_wanted(struct ring_in *ring);

#endif
