/* SPDX-License-Identifier: MIT */
/* A call of the test's process and its answer, in shared memory. */
#ifndef TEST_PEER_EXCHANGE_H
#define TEST_PEER_EXCHANGE_H

#include "src/layer/pack.h"
#include "test/peer/mirror.h"

#include <stdatomic.h>
#include <sys/types.h>
#include <verbena/sim.h>
#include <verbena/why.h>

/* What B's process is asked: a function of an object, a verb, a function of the connection manager, or one of the last
 * rows. */
enum row {
#define PEER_INLINE(owner, result, name, parameters, arguments, convention) ROW_##name,
#include "test/peer/inline.def"
#define VB_VERB(result, name, parameters, arguments, convention, by, object) ROW_##name,
#include <verbena/verbs.def>
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) ROW_cm_##name,
#include <verbena/cm.def>
	ROW_COUNT_OBJECTS,
	ROW_PROTECT,
	ROW_END,
	ROWS,
};

const char *exchange_name(enum row row);

#define ARGUMENTS_MAX 6
#define MIRRORS_MAX   32

struct exchange {
	_Atomic uint32_t turn; /* futex: enum turn */
	_Atomic bool ready;    /* B's process serves; else `text` says why not */

	/* The call. Objects among the arguments are the real ones. */
	enum row row;
	uint64_t arguments[ARGUMENTS_MAX];
	/* Of the arguments that are objects; behind them, of the windows that a list binds. */
	struct mirror *mirrors[MIRRORS_MAX];
	enum kind makes; /* the kind of the result */
	bool ends;	 /* the first argument's object */
	bool with_fd;	 /* a descriptor comes with the call */

	/* The answer. */
	uint64_t result;  /* an object is its mirror */
	int err;	  /* errno afterwards; 0: unchanged */
	unsigned int fds; /* that come with the answer */
	struct vb_why why;
	char text[512];
	struct vb_sim_objects left;
};

enum turn { TURN_NOBODY, TURN_ASKED, TURN_ANSWERED };

/* Makes the exchange and its socket, before B's process is forked. False with errno. */
bool exchange_begin(void);
void exchange_end(void);
struct exchange *exchange(void);

/* --- the test's process --- */

/* Asks and waits. Returns false if B's process has ended without an answer. */
bool exchange_ask(pid_t peer);
/* Waits until B's process serves. The same. */
bool exchange_wait_ready(pid_t peer);

/* --- B's process --- */

/* Call this first: the other end of the socket is the test's. */
void exchange_be_served(void);
void exchange_take(void);
void exchange_answer(void);

/* --- both --- */

/* Send descriptors, and receive as many. False with errno. */
bool exchange_send(const int *fds, unsigned int count);
bool exchange_receive(int *fds, unsigned int count);

#endif
