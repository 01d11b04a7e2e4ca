/* SPDX-License-Identifier: MIT */
/*
 * The interface between the sanitizer and its rules. A rule is a file with a struct check_rule. Its
 * functions are called with the sanitizer's lock held, by any thread. They call no verb of the program's
 * objects but vb_completion_why(), queries of GIDs and P_Keys, and those of src/check/look.h. A "work" is a
 * work request in flight (work.h).
 */
#ifndef SRC_CHECK_CHECK_H
#define SRC_CHECK_CHECK_H

#include "src/check/object.h"
#include "src/check/offence.h"

/* A call of a verb. */
struct check_call {
	const struct layer_call *call;
	uint64_t *state; /* for track_*.c only: a number that they keep from before() to after() */
	struct spot spot;
	/* The first argument of the verb if it is a QP or a CQ; else NULL. NULL after a verb that has ended
	 * it. */
	struct check_qp *qp;
	struct check_cq *cq;
	/* A before() or posted() sets this so that after() is called also after a success, when hooks with
	 * after_failure_only would be skipped. */
	bool wants_after;
};

struct check_hook {
	enum layer_verb verb;
	/* Called before the verb, and after it, whether it has succeeded or failed. Either may be NULL. */
	void (*before)(struct check_call *check);
	void (*after)(struct check_call *check);
	bool before_rarely; /* before() has nothing to do for a QP without alerts */
	/* after() has nothing to do if the verb has succeeded, unless check->wants_after was set. */
	bool after_failure_only;
};

/* Functions that a rule does not need are NULL. */
struct check_rule {
	const struct check_hook *hooks; /* ended by a hook without functions */
	/* Called for each WR of a post, before the verb. qp is NULL for a receive of an SRQ. */
	void (*posted)(struct check_call *check, struct check_qp *qp, struct work *work);
	/*
	 * Set if posted() has nothing to do for most works. It is then called only for works of SRQs, works
	 * with SGEs that are not in MRs of their PD, works of QPs with alerts, and all works while
	 * check_alerts is not 0.
	 */
	bool posted_rarely;
	/*
	 * Called when the completion of a work has been polled, or that of a later work of the same send
	 * queue. wc is the work's own completion; NULL if the work is unsignalled and a later one has
	 * succeeded.
	 */
	void (*done)(struct check_call *check, struct check_qp *qp, struct work *work,
		     const struct ibv_wc *wc);
	/* Set if done() needs to be called only for failed works, works of QPs with alerts or of SRQs, and
	 * all works while check_alerts is not 0. */
	bool done_rarely;
	/* Set if done() needs to be called only for works that the adapter writes to, failed works, and all
	 * works while check_alerts is not 0. */
	bool done_targets;
	/* Called when a failed completion has been polled, or any completion while check_alerts is not 0. wc
	 * is in the program's memory, and the rule may change it. */
	void (*polled)(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc);
	/* Called when a work leaves its queue without a completion, because the QP or SRQ is destroyed or
	 * the QP is reset. qp is NULL for an SRQ. */
	void (*dropped)(struct check_call *check, struct check_qp *qp, struct work *work);
	/* Called when a work leaves its queue because the device has refused it after posted() was called. */
	void (*refused)(struct check_call *check, struct check_qp *qp, struct work *work);
	/* Called before each verb. */
	void (*look)(struct check_call *check);
	/* Called before fork(2). */
	void (*forking)(void);
	/* Returns false if the options do not ask for the rule: then its hooks and look() are never called.
	 * The other functions must check this themselves. NULL: the rule is always on. */
	bool (*wanted)(const struct vb_check_options *options);
	/* Called when the process ends or the sanitizer is disabled: the rule forgets all. */
	void (*end)(void);
	void (*begin)(const struct vb_check_options *options);
};

/*
 * For functions that a rule calls rarely. They are not inlined into the function that is called for each
 * work request, so that the common case does not pay for them.
 */
#define CHECK_RARE __attribute__((noinline, cold))

/* The bits of check_alerts. A rule sets its bit while posted_rarely and done_rarely must not skip any work. */
enum {
	CHECK_ALERT_FAILED = 1 << 0, /* rule_completion.c */
	CHECK_ALERT_LOST = 1 << 1,   /* rule_memory.c */
	CHECK_ALERT_POISON = 1 << 2, /* rule_memory.c */
	CHECK_ALERT_ORDER = 1 << 3,  /* rule_order.c */
	CHECK_ALERT_RACE = 1 << 4,   /* race.c */
};

extern unsigned int check_alerts; /* 0: nothing does */

/* Returns an argument of the call, as a pointer. */
static inline void *check_pointer(const struct check_call *check, unsigned int index)
{
	return (void *)(uintptr_t)check->call->arguments[index];
}

/* Returns the QP of the identifier that is a call's first argument; NULL: unknown. A program may give any pointer: one
 * that the layers do not know is not read. */
struct check_qp *check_qp_of_id(const struct check_call *check);

/* Calls fn for each work in flight, of all queues. qp is NULL for the works of an SRQ. */
void check_each_work(void (*fn)(struct check_qp *qp, struct work *work, void *arg), void *arg);

/* Writes the name of an object, such as "QP 0x11 of sim0" or "cq1 of sim0", to `text` of size_bytes bytes
 * (64 are enough). Returns `text`. */
const char *check_name(const void *handle, char *text, size_t size_bytes);

/* Writes the name of a work in reports, such as "the SEND with wr_id 0x7", to `text`. Returns `text`. */
const char *check_work_name(const struct work *work, char *text, size_t size_bytes);

/* rule_memory.c: reports if the program has unmapped memory of a work. Call it when the memory cannot be
 * read. `seen` is the last verb before which it could be read; NULL: it could not when the work was posted. */
void memory_missing(const struct check_call *check, const struct check_qp *qp, struct work *work,
		    const struct spot *seen);

/* rule_memory.c: reports if the program has freed memory of a work since the verb `seen`. Returns true if it
 * has; false also if that cannot be known. */
bool memory_freed(const struct check_call *check, const struct check_qp *qp, struct work *work,
		  const struct spot *seen);

/* rule_buffer.c: returns true if an adapter may have written to buffers of a work for another work, or for
 * the peer, since the work was posted. */
bool buffer_may_be_written(const struct work *work);

/* Take and release the sanitizer's lock outside a verb. check_try_hold() returns false if another thread has
 * the lock. */
void check_hold(void);
bool check_try_hold(void);
void check_release(void);

/* The names of all rules, in the order of their calls: rule_buffer and so on. */
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
