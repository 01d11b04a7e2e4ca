/* SPDX-License-Identifier: MIT */
/*
 * What the rules of the sanitizer are made of. A rule is a file with a struct check_rule. Its functions
 * run under the sanitizer's lock, in any thread; they call no verb of the program's objects but
 * vb_completion_why(), queries of GIDs and P_Keys, and those of src/check/look.h.
 */
#ifndef SRC_CHECK_CHECK_H
#define SRC_CHECK_CHECK_H

#include "src/check/object.h"
#include "src/check/offence.h"

/* A call of a verb. */
struct check_call {
	const struct layer_call *call;
	uint64_t *state; /* track.c's own, from before() to after() */
	struct spot spot;
	/* The object of the verb if it is a QP or a CQ, else NULL. After a verb that ends the object: NULL. */
	struct check_qp *qp;
	struct check_cq *cq;
};

struct check_hook {
	enum layer_verb verb;
	/* Before the verb and after it; after it has failed, too. Either may be NULL. */
	void (*before)(struct check_call *check);
	void (*after)(struct check_call *check);
	bool after_failure_only; /* after() has nothing to do if the verb has succeeded */
};

/* A function that is not needed is NULL. */
struct check_rule {
	const struct check_hook *hooks; /* the last one has no function */
	/* A WR is given to the device: before the verb. qp is NULL for a receive of an SRQ. */
	void (*posted)(struct check_call *check, struct check_qp *qp, struct work *work);
	/* The completion of a work has been polled, or of a later work of the same send queue. wc: of
	 * this work; NULL: it is not signalled, and a later one has succeeded. */
	void (*done)(struct check_call *check, struct check_qp *qp, struct work *work,
		     const struct ibv_wc *wc);
	/* A completion is in the program's memory, which the rule may change. */
	void (*polled)(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc);
	/* A work leaves its queue without a completion: the QP or SRQ is destroyed or the QP is
	 * reset; qp is NULL for an SRQ. */
	void (*dropped)(struct check_call *check, struct check_qp *qp, struct work *work);
	/* A work that was posted leaves its queue: the device has not accepted it. */
	void (*refused)(struct check_call *check, struct check_qp *qp, struct work *work);
	/* Before any verb, for what is looked at each time. */
	void (*look)(struct check_call *check);
	/* The process is about to call fork(2). */
	void (*forking)(void);
	/* Returns false if the options do not ask for the rule: its other functions are not called then.
	 * NULL: each program has the rule. */
	bool (*wanted)(const struct vb_check_options *options);
	/* The process ends, or the sanitizer is disabled: forget all. */
	void (*end)(void);
	void (*begin)(const struct vb_check_options *options);
};

/* Each argument of the call as a pointer or number. */
static inline void *check_pointer(const struct check_call *check, unsigned int index)
{
	return (void *)(uintptr_t)check->call->arguments[index];
}

/* Runs fn for each work in flight, of all queues; qp is NULL for the works of an SRQ. */
void check_each_work(void (*fn)(struct check_qp *qp, struct work *work, void *arg), void *arg);

/* The name of an object, such as "QP 0x11 of sim0" or "cq1 of sim0", in text of size_bytes bytes (64 are
 * enough). */
const char *check_name(const void *handle, char *text, size_t size_bytes);

/* What a work is called in a report, such as "the SEND with wr_id 7". */
const char *check_work_name(const struct work *work, char *text, size_t size_bytes);

/* rule_memory.c: looks whether the program has unmapped memory of a work. Call it when the memory cannot
 * be read. seen: the last verb at which it could be; NULL: it cannot be read when the work is posted. */
void memory_missing(const struct check_call *check, const struct check_qp *qp, struct work *work,
		    const struct spot *seen);

/* rule_memory.c: looks whether the program has freed memory of a work since a verb, if that can be known.
 * Returns true if it has. */
bool memory_freed(const struct check_call *check, const struct check_qp *qp, struct work *work,
		  const struct spot *seen);

/* rule_buffer.c: returns true if an adapter may have written to buffers of a work for another work, or for
 * the peer, since the work was posted. */
bool buffer_may_be_written(const struct work *work);

/* Hold the lock of the sanitizer outside a verb. check_try_hold() returns false, and holds nothing, if
 * another thread does. */
void check_hold(void);
bool check_try_hold(void);
void check_release(void);

/* The rules. */
extern const struct check_rule rule_buffer, rule_memory, rule_target, rule_completion, rule_queue,
	rule_chain, rule_lost, rule_event, rule_poll, rule_receive, rule_ends, rule_path,
	rule_datagram, rule_key, rule_thread, rule_fork, rule_limit, rule_order, rule_race,
	rule_far, rule_qkey;

#endif /* SRC_CHECK_CHECK_H */
