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
	/* A before() or a posted() sets this to have all after() of the verb called: also those that
	 * have nothing to do after a success. */
	bool wants_after;
};

struct check_hook {
	enum layer_verb verb;
	/* Before the verb and after it; after it has failed, too. Either may be NULL. */
	void (*before)(struct check_call *check);
	void (*after)(struct check_call *check);
	bool before_rarely; /* before() has nothing to do for a QP without alerts */
	/* after() has nothing to do if the verb has succeeded, unless check->wants_after was set. */
	bool after_failure_only;
};

/* A function that is not needed is NULL. */
struct check_rule {
	const struct check_hook *hooks; /* the last one has no function */
	/* A WR is given to the device: before the verb. qp is NULL for a receive of an SRQ. */
	void (*posted)(struct check_call *check, struct check_qp *qp, struct work *work);
	/* posted() is called only for works of SRQs, with SGEs that do not fit, of QPs with alerts, and
	 * while check_alerts is not 0: for other works it has nothing to do. */
	bool posted_rarely;
	/* The completion of a work has been polled, or of a later work of the same send queue. wc: of
	 * this work; NULL: it is not signalled, and a later one has succeeded. */
	void (*done)(struct check_call *check, struct check_qp *qp, struct work *work,
		     const struct ibv_wc *wc);
	/* done() is called only for works that have failed, those of QPs with alerts or an SRQ, and while
	 * check_alerts is not 0. */
	bool done_rarely;
	/* done() is called only for targets, for works that have failed, and while check_alerts is not 0. */
	bool done_targets;
	/* A failed completion, or any one while check_alerts is not 0, is in the program's memory, which
	 * the rule may change. */
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
	/* Returns false if the options do not ask for the rule: its hooks and look() are not called then. Its
	 * other functions ask for that themselves. NULL: each program has the rule. */
	bool (*wanted)(const struct vb_check_options *options);
	/* The process ends, or the sanitizer is disabled: forget all. */
	void (*end)(void);
	void (*begin)(const struct vb_check_options *options);
};

/*
 * Of a function that a rule calls rarely. What the function needs costs nothing in the common case then:
 * it is not inlined into the one that is called for each work request.
 */
#define CHECK_RARE __attribute__((noinline, cold))

/* What makes each post of the process worth a closer look: a rule whose posted() is of rare use sets its
 * part. */
enum {
	CHECK_ALERT_FAILED = 1 << 0, /* rule_completion.c */
	CHECK_ALERT_LOST = 1 << 1,   /* rule_memory.c */
	CHECK_ALERT_POISON = 1 << 2, /* rule_memory.c */
	CHECK_ALERT_ORDER = 1 << 3,  /* rule_order.c */
	CHECK_ALERT_RACE = 1 << 4,   /* race.c */
};

extern unsigned int check_alerts; /* 0: nothing does */

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

/* The rules, in the order in which they are called: rule_buffer and so on. */
#define CHECK_RULES(RULE) \
	RULE(buffer)      \
	RULE(memory)      \
	RULE(target)      \
	RULE(completion)  \
	RULE(queue)       \
	RULE(chain)       \
	RULE(lost)        \
	RULE(event)       \
	RULE(poll)        \
	RULE(receive)     \
	RULE(ends)        \
	RULE(path)        \
	RULE(datagram)    \
	RULE(key)         \
	RULE(thread)      \
	RULE(fork)        \
	RULE(limit)       \
	RULE(order)       \
	RULE(race)        \
	RULE(far)         \
	RULE(qkey)

#define CHECK_DECLARE(name) extern const struct check_rule rule_##name;
CHECK_RULES(CHECK_DECLARE)
#undef CHECK_DECLARE

#endif /* SRC_CHECK_CHECK_H */
