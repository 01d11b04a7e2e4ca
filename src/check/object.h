/* SPDX-License-Identifier: MIT */
/*
 * The program's objects as the sanitizer knows them. An object that existed before the sanitizer, or that
 * was made without a verb, is entered at its first use. The caller holds the sanitizer's lock.
 */
#ifndef SRC_CHECK_OBJECT_H
#define SRC_CHECK_OBJECT_H

#include "src/check/work.h"

#include <pthread.h>

enum object_kind {
	OBJECT_CQ,
	OBJECT_QP,
	OBJECT_SRQ,
	OBJECT_MR,
	OBJECT_KINDS,
};

/* rule_event.c: counts the events that the program got and acknowledged. */
struct event_count {
	uint64_t got, acked;
	pthread_t thread;     /* of the first call */
	bool several_threads; /* another thread got or acknowledged one, too */
	bool reported;	      /* the destruction without acknowledgements was reported */
	struct spot last_got;
};

/* Each object begins with this. */
struct object {
	struct object *next;	     /* in the bucket */
	struct object *next_of_kind; /* in the list of the kind */
	const void *handle;	     /* such as the struct ibv_qp */
	enum object_kind kind;
	struct ibv_context *context;
	struct spot made; /* where the object was made; unknown if it was not made by a verb */
	struct event_count async; /* rule_event.c: asynchronous events of the object */
};

struct domain;

/* rule_lost.c: what the thread check_qp.failure_thread knows of a failure of the QP. */
enum qp_failure {
	QP_WORKS,	  /* the QP has not failed */
	QP_FAILED_UNSEEN, /* the QP has failed; the thread may not have seen that yet */
	QP_FAILED,	  /* the thread has seen that the QP has failed */
};

struct check_cq {
	struct object object;
	uint32_t cqe; /* entries; 0: unknown */
	const struct ibv_comp_channel *channel;
	bool single_threaded; /* created with IBV_CREATE_CQ_ATTR_SINGLE_THREADED */
	uint64_t in_flight;   /* counts the works that complete into it */
	bool overrun_reported;
	/* rule_event.c */
	struct event_count events;
	struct {
		/* The tick of the last ibv_req_notify_cq(); 0: the CQ is not armed, or was polled until it
		 * was empty since then. */
		uint64_t tick;
		uint64_t number; /* of the last post before it */
		struct spot spot;
		pthread_t thread;
		bool solicited_only;
		bool sure; /* the CQ is armed, and was empty at some moment after that */
	} armed;
	bool event_unpolled; /* an event was got, and the CQ has not been polled since */
	bool polled;	     /* polled_by is known */
	pthread_t polled_by; /* the first thread that polled it */
	bool polled_by_several;
	/* rule_poll.c */
	enum { CQ_IDLE, CQ_POLLING } polling;
	struct spot poll_started; /* the last ibv_start_poll(), also one that has failed */
	pthread_t poll_thread;	  /* that has called it */
	bool poll_ended;	  /* ibv_end_poll() has been called since */
	/* rule_queue.c */
	bool ignores_overrun;  /* created with IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN */
	uint64_t shared;       /* counts the receives of SRQs that complete into this CQ alone */
	struct domain *domain; /* rule_thread.c; NULL: any thread may use the CQ at any time */
};

struct check_srq {
	struct object object;
	struct ibv_pd *pd;
	struct work_queue receives;
	bool xrc; /* completions do not name an XRC SRQ: the rules look at its receives only when they are posted */
	/* rule_queue.c */
	struct check_cq *cq; /* into which all receives complete; NULL: unknown, or several */
	bool several_cqs;
};

struct check_qp {
	struct object object;
	struct check_qp *next_number; /* in the bucket of the number */
	uint32_t qpn;
	enum ibv_qp_type type;
	struct ibv_qp_cap cap; /* all 0: unknown */
	bool signals_all;
	bool knows_caps;
	struct ibv_pd *pd;
	struct check_cq *send_cq, *recv_cq; /* NULL: none */
	struct check_srq *srq;		    /* NULL: none */
	struct work_queue sends, receives;
	/* The attributes that ibv_modify_qp() has set since the last reset, and their mask. */
	struct ibv_qp_attr attr;
	int attr_mask;
	enum ibv_qp_state state;
	struct spot modified; /* the last change of state */
	/* A failed completion of the QP has been polled. */
	bool failed;
	struct spot failure_polled;
	/* rule_memory.c */
	bool ended_live; /* a verb is about to destroy or reset the QP while its sends are carried out */
	/* rule_event.c: the ticks when the first receive of the QP completed, and when its works began to
	 * fail; 0: not yet. */
	uint64_t received_tick, broken_tick;
	/* rule_queue.c */
	uint32_t
		unsignalled; /* counts the unsignalled sends that were posted last, without a gap */
	bool full_reported;
	/* Alerts: while one is set, rules with posted_rarely, done_rarely or before_rarely are called for
	 * the QP. Each rule sets its own. */
	union {
		struct {
			uint8_t failure;     /* rule_lost.c: enum qp_failure */
			bool awaits_message; /* rule_event.c: posted a receive, received nothing */
			bool keeps_chain;    /* rule_chain.c: a failed call on one of the queues */
			bool has_domain;     /* rule_thread.c: domain is not NULL */
			bool ends_differ;    /* rule_ends.c: a send may show that the ends differ */
			/* rule_receive.c: rnr_retry is 7, and min_rnr_timer of the peer is 0 */
			bool waits_long;
			bool is_datagram; /* rule_datagram.c */
		};
		uint64_t alerts; /* 0: nothing does */
	};
	/* rule_lost.c */
	pthread_t failure_thread;
	struct spot failed_at;
	/* rule_ends.c */
	struct spot rtr_at, rts_at; /* where the QP went to these states */
	uint64_t first_send;	    /* sends.tail when the QP went to RTS */
	bool ends_reported;
	struct domain *domain; /* rule_thread.c; NULL: any thread may use the QP at any time */
	/* rule_receive.c */
	bool drops_receives;	/* the reset that is running has dropped receives */
	bool lost_receives;	/* the last reset has dropped receives */
	uint64_t receives_then; /* receives.tail after the last reset */
	/* The number of a send for which the peer had no receive when it was posted; 0: none. */
	uint64_t unreceived;
	uint64_t unreceived_ns;	  /* when that send was posted */
	uint64_t unreceived_naks; /* counts the RNR NAKs that the peer had sent by then */
	/* rule_order.c: counts the posted messages that take a receive of the peer, and the completed
	 * receives. */
	uint64_t messages, received;
	/* race.c: the threads of ThreadSanitizer that stand for the queues; NULL: none */
	void *send_fiber, *receive_fiber;
};

struct check_mr {
	struct object object;
	struct check_mr *next_lkey; /* in the bucket of the lkey */
	const struct ibv_pd *pd;
	uint64_t addr; /* of the first byte, as work requests name it (iova) */
	uint64_t length_bytes;
	const void *
		memory; /* the first byte in this process; NULL if it is not in this process, or unknown */
	uint32_t lkey, rkey;
	int access;
	struct spot ended; /* where the MR has ended; an ended MR is kept for its keys */
	uint64_t number;   /* counts the registrations of the process, from 1 */
};

/* Find an object. Return NULL if it is unknown. */
struct check_cq *object_find_cq(const struct ibv_cq *cq);
struct check_qp *object_find_qp(const struct ibv_qp *qp);
struct check_srq *object_find_srq(const struct ibv_srq *srq);
struct check_mr *object_find_mr(const struct ibv_mr *mr);

/* As above, but enter an object that is unknown. Return NULL without memory. cap and signals_all of a QP are
 * those of its creation; a NULL cap means that they are unknown. */
struct check_cq *object_cq(struct ibv_cq *cq);
struct check_srq *object_srq(struct ibv_srq *srq);
struct check_qp *object_qp(struct ibv_qp *qp);
struct check_qp *object_enter_qp(struct ibv_qp *qp, const struct ibv_qp_cap *cap, bool signals_all);
struct check_mr *object_mr(struct ibv_mr *mr, int access);

/* Returns the QP of a completion; NULL: unknown. */
struct check_qp *object_find_qpn(const struct ibv_context *context, uint32_t qpn);

/* Returns a live MR by its lkey; if several have the lkey, that of the PD. NULL: none. */
struct check_mr *object_find_lkey(const struct ibv_context *context, uint32_t lkey,
				  const struct ibv_pd *pd);

/* Returns true if all these bytes, as work requests name them, are in the MR. */
static inline bool object_contains(const struct check_mr *mr, uint64_t addr, uint64_t length_bytes)
{
	return addr - mr->addr <= mr->length_bytes &&
	       length_bytes <= mr->length_bytes - (addr - mr->addr);
}

/* Copies the attributes that the mask names. */
void object_set_attr(struct check_qp *qp, const struct ibv_qp_attr *attr, int mask);

/* Returns an MR of the device, live or ended, that `matches` accepts; NULL: none. */
struct check_mr *object_search_mr(bool (*matches)(const struct check_mr *mr, const void *arg),
				  const void *arg);

/* Removes an object from the tables while a verb ends it, because another thread may enter a new object at
 * the same address. One of the three functions below must follow. */
void object_hide(struct object *object);

/* Enters the object again: the verb has failed. */
void object_show(struct object *object);

/* Frees the object: the verb has ended the QP, CQ or SRQ. */
void object_free(struct object *object);

/* Keeps the MR that the verb has ended, for its keys. Only the last ones are kept. */
void object_end_mr(struct check_mr *mr, const struct spot *ended);

/* Returns the first object of a kind; next_of_kind leads to the others. Ended MRs are not in this list. */
struct object *object_first(enum object_kind kind);

/* Counts the removals of objects: a pointer to an object is valid while this number stays the same. */
uint64_t object_changes(void);

/* Forgets all. */
void object_forget_all(void);

#endif /* SRC_CHECK_OBJECT_H */
