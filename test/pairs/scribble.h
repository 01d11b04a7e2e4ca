/* SPDX-License-Identifier: MIT */
/*
 * Processes of a world whose file another process overwrites. The workers of a trial exchange messages, connect and
 * call each other; the starter, which uses no verbs, is the scribbler. A worker never waits for long by itself, and
 * takes any error of a verb: so a worker that does not end waits in Verbena.
 */
#ifndef TEST_PAIRS_SCRIBBLE_H
#define TEST_PAIRS_SCRIBBLE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { SCRIBBLE_WORKERS_MAX = 3 };

/* What a worker tells the others. */
struct scribble_worker {
	_Atomic uint32_t ready; /* stored last */
	uint32_t qpn[SCRIBBLE_WORKERS_MAX];
	uint64_t address;
	uint32_t rkey;
	union ibv_gid gid;
	_Atomic uint32_t quiet;	 /* waits for the board's `go_on` */
	_Atomic uint32_t target; /* an XRC target QP; 0: none */
	/* Counts: completions with success, connections, calls that were answered. */
	_Atomic uint32_t completed, connected, answered;
};

/* Memory that the starter and the workers of a trial share. */
struct scribble_board {
	uint64_t seed;
	uint32_t workers;
	uint16_t port;
	int domain_fd; /* the file of the XRC domain */
	_Atomic uint32_t go_on;
	struct scribble_worker worker[SCRIBBLE_WORKERS_MAX];
};

static inline uint64_t scribble_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

uint64_t scribble_now_ns(void);

/* Runs a worker to its end; the caller then returns from main(), or calls exit(). */
void scribble_work(struct scribble_board *board, uint32_t self);

#endif
