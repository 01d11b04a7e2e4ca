/* SPDX-License-Identifier: MIT */
/*
 * The other process of `verbena test --two-processes`: it has node B's device, and answers the verbs that
 * the test calls on it.
 *
 *	the test's process                          B's process
 *	relay.c    a backend that translates        serve.c   calls the verb of the real backend
 *	           objects and asks
 *	             |                                 ^
 *	             +------ exchange.c, in shared memory: a call and its answer
 *
 * B's process is a child of the test's process, so that both have their code and their constants at the
 * same addresses. What a verb reads and writes is shared: the test runs on a stack in shared memory, and
 * the memory that it allocates is shared, too (memory.c). For each object of B's process there is a
 * mirror in shared memory (mirror.c, mirror_cm.c), which is what the test sees: a copy of the object's public
 * structure, whose functions are those of the relay.
 *
 * A process has one peer at a time. Only the thread of peer_run() may call verbs on its objects.
 */
#ifndef TEST_PEER_PEER_H
#define TEST_PEER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <verbena/backend.h>
#include <verbena/sim.h>

/* The name of the backend whose devices are B's process's. */
#define PEER_BACKEND "peer"

struct peer_setup {
	const char *backend;		 /* of B's process */
	const struct vb_sim_config *sim; /* its simulated world; NULL: it has none */
	const char *network;		 /* the path of its network namespace; NULL: the same */

	/*
	 * The test does what two processes cannot: it passes B memory or an object that only its own
	 * process has. Does not return.
	 */
	void (*leave_out)(void *arg, const char *reason);
	/* B's process has ended in the middle of a call. Does not return. */
	void (*died)(void *arg, const char *sentence);
	void *arg;
};

/*
 * Starts B's process. The calling process has one thread. Returns false after a sentence of up to
 * size_bytes in error.
 */
bool peer_begin(const struct peer_setup *setup, char *error, size_t size_bytes);

/* Calls fn(arg) on a stack that B's process has, too, and returns when it has returned. */
void peer_run(void (*fn)(void *arg), void *arg);

/* Returns true between peer_begin() and peer_end(). */
bool peer_active(void);

/* Returns true if the test has moved a QP of B's process to RTR, in which it can receive. */
bool peer_can_receive(void);

/* Returns zeroed memory that B's process has at the same address, up to peer_end(); NULL: no room. */
void *peer_alloc(size_t length_bytes);
/* The same, in whole pages, at the places that conformance tests have for their buffers. */
void *peer_place(size_t length_bytes);

/* mprotect(2) in B's process. */
int peer_protect(void *memory, size_t length_bytes, int protection);

/* Counts the simulated objects that are left in B's process; zeros if that is not simulated. */
void peer_count_objects(struct vb_sim_objects *left);

/* Ends B's process. Returns false after a sentence if it has ended in another way than it should. */
bool peer_end(char *error, size_t size_bytes);

#endif
