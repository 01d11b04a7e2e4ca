/* SPDX-License-Identifier: MIT */
/*
 * Many processes, all to all, of which some are killed and replaced. One process starts the workers
 * and passes notes between them; it uses no verbs. Workers connect their QPs by notes:
 *
 *	new worker                          worker that was there before
 *	    OFFER, with the names of its QPs    makes its QPs, connects them
 *	    connects its QPs                    ACCEPT, with their names
 *	    READY
 */
#ifndef TEST_PAIRS_STORM_H
#define TEST_PAIRS_STORM_H

#include "test/pairs/link.h"

enum { STORM_WORKERS_MAX = 128, STORM_QPS = 4 }; /* QPs of each pair of workers */

enum storm_kind {
	STORM_OFFER,
	STORM_ACCEPT,
	STORM_READY,
	STORM_DEAD,    /* the worker `from` of this generation has been killed */
	STORM_WARM,    /* the worker has done some work */
	STORM_MEASURE, /* remember how much memory is resident */
	STORM_STOP,    /* begin nothing more; send DONE when all work has ended */
	STORM_DONE,
	STORM_REPORT, /* print the requests that have not completed */
	STORM_EXIT,
};

/* What a worker has counted. */
struct storm_sum {
	uint64_t requests, bytes; /* completed with success */
	uint64_t received;
	uint64_t dead_ended; /* requests to killed workers that ended with an error */
	uint64_t resident_before, resident_after;
};

struct storm_note {
	enum storm_kind kind;
	uint32_t from, to;
	uint32_t generation; /* of `from`: a number that no other worker has had */
	uint32_t to_generation;
	struct link_name names[STORM_QPS];
	struct storm_sum sum;
};

struct storm_worker_settings {
	uint64_t seed;
	uint32_t self, generation, workers;
	/* The generations of the workers to which this one makes offers; 0: there is no such worker. */
	uint32_t others[STORM_WORKERS_MAX];
};

/* Works until the starter sends STORM_EXIT. */
void storm_work(const struct storm_worker_settings *settings, const struct peer *starter);

#endif
