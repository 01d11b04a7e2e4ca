/* SPDX-License-Identifier: MIT */
/*
 * The file of a shared world, as processes map it:
 *
 *	header | places | rows of block owners | areas' table | XRC domains | text of the devices |
 *	services | requests | areas
 *
 * The file is sparse: a process allocates pages before anybody touches them, so that a full /dev/shm is
 * an error of fallocate(2) and never SIGBUS.
 *
 * Everything here is untrusted: another process may write any byte at any time. Whoever reads a number
 * reads it once, and checks it before it becomes an index or a length. No wait and no loop ends by a word of the file
 * alone. A process that finds the file shortened goes on with zeros (guard_add_mapping): for it, all others have ended.
 *
 * Behind all data are bytes that are only locked (fcntl(2), open file description locks): one byte that
 * is locked during rare changes, and one for each place, which its process locks as long as it lives.
 * The kernel releases the locks of a process that is killed.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_LAYOUT_H
#define BACKENDS_SIM_WIRE_SHARED_LAYOUT_H

#include "backends/sim/base/bell.h"
#include "backends/sim/wire/shared.h"

#include "sim/object/key.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#define SEGMENT_FOLDER		     "/dev/shm"
#define SEGMENT_MAGIC		     UINT64_C(0x0a616e6562726556) /* "Verbena\n" */
#define SEGMENT_LAYOUT		     6
#define SEGMENT_DEVICES		     64
#define SEGMENT_DEVICES_TEXT	     (256u << 10)
#define SEGMENT_AREAS		     65536
#define SEGMENT_DOMAINS		     4096
#define SEGMENT_COMMUNICATION_BLOCKS 1024

/* The offsets of the locked bytes are the same in each version of the layout, so that a process of one
 * version sees that processes of another one live. */
#define SEGMENT_LOCK_BYTE   (INT64_C(1) << 40)
#define SEGMENT_PLACE_BYTES (SEGMENT_LOCK_BYTE + 1)

/* Names a process: a place and the place's generation; 0: no process. A place that is used again has another
 * generation. */
typedef uint64_t segment_id;

static inline segment_id segment_id_make(uint32_t place, uint32_t generation)
{
	return (uint64_t)generation << 32 | place;
}

static inline uint32_t segment_id_place(segment_id id)
{
	return (uint32_t)id;
}

static inline uint32_t segment_id_generation(segment_id id)
{
	return (uint32_t)(id >> 32);
}

/* magic and layout keep their offsets in each version. The maker stores magic last. */
struct segment_header {
	_Atomic uint64_t magic;
	uint32_t layout;
	uint32_t header_bytes; /* SEGMENT_HEADER_BYTES */
	uint64_t identity;
	uint64_t base_ns, wall_base_ns;
	uint32_t devices_bytes;	      /* of the text of the devices, without its 0 */
	_Atomic uint32_t lock_pid;    /* the process that took the lock last; for messages only */
	_Atomic uint32_t places_used; /* the places from this number on were never used */
	_Atomic uint32_t areas_used;  /* the same for the table of areas */
	struct bell unlocked;	      /* the bell for processes that wait for the lock */
	_Atomic uint64_t rows;	      /* a bit for each device whose row is allocated */
	_Atomic uint64_t service_chunks; /* a bit for each chunk of services that is allocated */
	_Atomic uint32_t domains;	 /* 1 once the table of XRC domains is allocated */
	/* A bit for each block of communication IDs whose requests are allocated. */
	_Atomic uint64_t request_pages[SEGMENT_COMMUNICATION_BLOCKS / 64];
	/* Odd while the place is used. */
	_Atomic uint32_t generations[SHARED_PROCESSES_MAX];
	/* Where the search for a free block begins. */
	_Atomic uint32_t next_block[SEGMENT_DEVICES][SIM_NUMBERS];
};

/* What others read and write of a process. */
struct segment_place {
	/* The line of the sleeper and its callers, apart from what each packet reads. */
	alignas(128) struct bell bell;
	/* Counts changes of the rings from and to this process. */
	alignas(128) _Atomic uint32_t news;
	uint32_t pid; /* for messages only */
	alignas(128) _Atomic uint32_t memberships[SEGMENT_DEVICES];
};

/* Blocks of each kind of numbers, in the row of a device. An entry: generation of the owner's place, 32
 * bits | claims of the block, 16 bits | place of the owner + 1, 16 bits. */
#define SEGMENT_QP_BLOCKS  1024
#define SEGMENT_SRQ_BLOCKS 1024
#define SEGMENT_KEY_BLOCKS ((1u << SIM_KEY_PLACE_BITS) / SIM_BLOCK_PLACES)

struct segment_row {
	_Atomic uint64_t qp[SEGMENT_QP_BLOCKS];
	_Atomic uint64_t srq[SEGMENT_SRQ_BLOCKS];
	_Atomic uint64_t key[SEGMENT_KEY_BLOCKS];
	_Atomic uint64_t communication[SEGMENT_COMMUNICATION_BLOCKS];
};

/*
 * An area holds a ring. Both ends hold the area, and it is free when both have released it. The bit of an
 * end is cleared by that end, or by the process that buries it, under the lock.
 */
enum area_state {
	AREA_TAKEN = 1 << 0,
	AREA_PRODUCER = 1 << 1,
	AREA_CONSUMER = 1 << 2,
};

struct segment_area {
	_Atomic segment_id producer, consumer;
	_Atomic uint32_t state; /* enum area_state; stored last by the process that takes an area */
	_Atomic uint32_t size_class; /* see shared_areas.h */
	uint64_t spare;
};

/* An entry means that a process has the XRC domain of an inode open. `owner` is stored last; 0: the entry is
 * free. */
struct segment_domain {
	_Atomic segment_id owner;
	uint64_t st_dev, st_ino;
	uint32_t device;
};

/* A flag of an entry that is not in enum sim_service_flag. */
enum service_flag {
	SERVICE_LISTENS = 1 << 30,
};

/* A service ID that a process has reserved. The search for an entry begins at a place that follows from the
 * ID (shared_services.c). */
struct segment_service {
	_Atomic segment_id owner; /* 0: a free entry; stored last */
	_Atomic uint64_t service_id;
	_Atomic uint64_t address[2];
	_Atomic uint32_t flags; /* enum sim_service_flag, enum service_flag */
	uint32_t spare[7];
};

#define SEGMENT_SERVICES       65536u
#define SEGMENT_SERVICES_CHUNK 1024u /* entries whose pages are allocated together */

/* The place of a communication ID. An entry means that a process has taken a request of this ID: its sender, the owner
 * of the block, repeats the request to that process (shared_requests.c). */
struct segment_request {
	_Atomic segment_id taker; /* 0: nobody; stored last */
	_Atomic uint32_t communication_id;
	uint32_t spare;
};

#define SEGMENT_PAGE 4096u

#define SEGMENT_PLACES_AT   (SEGMENT_PAGE)
#define SEGMENT_ROWS_AT	    (SEGMENT_PLACES_AT + SHARED_PROCESSES_MAX * sizeof(struct segment_place))
#define SEGMENT_TABLE_AT    (SEGMENT_ROWS_AT + SEGMENT_DEVICES * sizeof(struct segment_row))
#define SEGMENT_DOMAINS_AT  (SEGMENT_TABLE_AT + SEGMENT_AREAS * sizeof(struct segment_area))
#define SEGMENT_TEXT_AT	    (SEGMENT_DOMAINS_AT + SEGMENT_DOMAINS * sizeof(struct segment_domain))
#define SEGMENT_SERVICES_AT (SEGMENT_TEXT_AT + SEGMENT_DEVICES_TEXT)
#define SEGMENT_REQUESTS_AT \
	(SEGMENT_SERVICES_AT + SEGMENT_SERVICES * sizeof(struct segment_service))
#define SEGMENT_HEADER_BYTES (SEGMENT_REQUESTS_AT + SEGMENT_COMMUNICATION_BLOCKS * SEGMENT_PAGE)

_Static_assert(sizeof(struct segment_header) <= SEGMENT_PAGE, "the header is one page");
_Static_assert(sizeof(struct segment_place) == 512, "places do not straddle pages");
_Static_assert(sizeof(struct segment_row) % SEGMENT_PAGE == 0, "a row has pages of its own");
_Static_assert(sizeof(struct segment_area) == 32, "entries do not straddle pages");
_Static_assert(sizeof(struct segment_domain) == 32, "entries do not straddle pages");
_Static_assert(sizeof(struct segment_service) == 64, "entries do not straddle pages");
_Static_assert(SEGMENT_SERVICES / SEGMENT_SERVICES_CHUNK == 64, "a chunk has a bit");
_Static_assert(SIM_BLOCK_PLACES * sizeof(struct segment_request) == SEGMENT_PAGE,
	       "the requests of a block are a page");

#endif
