/* SPDX-License-Identifier: MIT */
/*
 * Calls between the processes of a shared world: a process asks the process of an object to do a verb on the
 * object, and waits for the answer. The process of the object does the verb while it receives from the wire.
 *
 * The caller of each function holds the world.
 */
#ifndef BACKENDS_SIM_WORLD_CALL_H
#define BACKENDS_SIM_WORLD_CALL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <verbena/why.h>

struct qp;
struct sim_device;
struct target;
struct vb_sim;
struct world_wait;

/* A question, its answer, or a notice, which has no answer. The bytes of another process are untrusted. */
struct world_call {
	uint32_t what;	 /* enum verb_call in backends/sim/verb/verbs.h */
	uint32_t serial; /* of a question and its answer; 0: a notice */
	bool is_answer;
	int32_t error; /* of an answer: an errno value, or 0 */
	uint32_t device, number, mask;
	uint64_t key[2], stamp;
	struct ibv_qp_attr attr;
	/* Of an answer with an error: the reason, and its text. */
	struct vb_why why;
	char text[160];
};

struct world_calls {
	/* Does the verb of a question and writes the answer into the question, or takes a notice. NULL
	 * before verb_serve_calls(). */
	void (*serve)(struct vb_sim *world, uint64_t process, struct world_call *call);
	/* A target QP has raised an event. The function sends the event to the processes that have handles of
	 * the QP. */
	void (*event)(struct vb_sim *world, const struct qp *handle, enum ibv_event_type type);
	struct target *targets;	  /* target QPs of this process that others have opened */
	struct world_wait *waits; /* questions without an answer */
	uint32_t last_serial;
};

/* The longest time that a process waits for an answer. */
#define WORLD_CALL_S 2

/*
 * Asks a process, and waits for its answer, which replaces the question. The world is released meanwhile:
 * objects may end. 0: the answer has come. EIO: the process has ended. ETIMEDOUT: it has not answered.
 */
int world_ask(struct vb_sim *world, uint64_t process, struct world_call *call);

/* Sends a notice. */
void world_tell(struct vb_sim *world, uint64_t process, const struct world_call *call);

/* Returns the process that has a QP number of a device; 0: this one, or none. */
uint64_t world_qp_process(const struct vb_sim *world, const struct sim_device *device,
			  uint32_t number);

/* From now on, the world serves the calls of other processes. */
void world_take_calls(struct vb_sim *world);

#endif
