/* SPDX-License-Identifier: MIT */
/*
 * The objects of the program as the sanitizer knows them. An object that is older than the sanitizer,
 * or was made out of its sight, is entered at its first use. The caller holds the lock of the sanitizer.
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

/* rule_event.c: events that the program got and acknowledged. */
struct event_count {
	uint64_t got, acked;
	pthread_t thread;     /* of the first call */
	bool several_threads; /* another thread got or acknowledged one, too */
	bool reported;	      /* that the object is destroyed without acknowledgements */
	struct spot last_got;
};

/* Each object begins with this. */
struct object {
	struct object *next;	     /* in the bucket */
	struct object *next_of_kind; /* in the list of the kind */
	const void *handle;	     /* such as the struct ibv_qp */
	enum object_kind kind;
	struct ibv_context *context;
	struct spot made;	  /* unknown: it was made out of sight */
	struct event_count async; /* rule_event.c: asynchronous events of the object */
};

struct domain;

/* Who has polled the failure of a QP, or has moved it to ERR. */
enum qp_failure { QP_WORKS, QP_FAILED_UNSEEN, QP_FAILED };

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
		/* The last ibv_req_notify_cq(), among the ticks of QPs; 0: the CQ is not armed, or
		 * it was polled until it was empty since then. */
		uint64_t tick;
		uint64_t number; /* of the last post before it */
		struct spot spot;
		pthread_t thread;
		bool solicited_only;
		bool sure; /* the CQ is armed, and was empty at some time after that */
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
	/* What ibv_modify_qp() has set since the last reset, and where. */
	struct ibv_qp_attr attr;
	int attr_mask;
	enum ibv_qp_state state;
	struct spot modified; /* the last change of state */
	/* A failed completion of the QP has been polled. */
	bool failed;
	struct spot failure_polled;
	/* rule_memory.c */
	bool ended_live; /* a verb is about to destroy or reset the QP while its sends are carried out */
	/* rule_event.c: when the QP had its first receive completed, and when its works began to fail; 0:
	 * not yet. */
	uint64_t received_tick, broken_tick;
	/* rule_queue.c */
	uint32_t unsignalled; /* counts the last sends that were posted and are not signalled */
	bool full_reported;
	/* What makes a post worth a closer look: a rule whose functions are of rare use sets its part. */
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
	uint64_t first_send;	    /* of sends: the tail when the QP went to RTS */
	bool ends_reported;
	struct domain *domain; /* rule_thread.c; NULL: any thread may use the QP at any time */
	/* rule_receive.c */
	bool drops_receives;	/* the reset that is running has dropped receives */
	bool lost_receives;	/* the last reset has */
	uint64_t receives_then; /* of receives: the tail after the last reset */
	/* A send for which the peer had no receive: its number; 0: there is none. */
	uint64_t unreceived;
	uint64_t unreceived_ns, unreceived_naks; /* the time, and the peer's RNR NAKs until then */
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
	uint64_t addr; /* of its first byte, as work requests name it */
	uint64_t length_bytes;
	const void *memory; /* its first byte in this process; NULL: none, or unknown */
	uint32_t lkey, rkey;
	int access;
	struct spot ended; /* of an MR that has ended; its keys are remembered */
	uint64_t number;   /* of the registration, in the process, from 1 */
};

/* Returns the object, or NULL. */
struct check_cq *object_find_cq(const struct ibv_cq *cq);
struct check_qp *object_find_qp(const struct ibv_qp *qp);
struct check_srq *object_find_srq(const struct ibv_srq *srq);
struct check_mr *object_find_mr(const struct ibv_mr *mr);

/* The same, but enter an object that is unknown; NULL without memory. cap and signals_all of a QP are
 * those of its creation; cap NULL: unknown. */
struct check_cq *object_cq(struct ibv_cq *cq);
struct check_srq *object_srq(struct ibv_srq *srq);
struct check_qp *object_qp(struct ibv_qp *qp);
struct check_qp *object_enter_qp(struct ibv_qp *qp, const struct ibv_qp_cap *cap, bool signals_all);
struct check_mr *object_mr(struct ibv_mr *mr, int access);

/* Returns the QP of a completion; NULL: unknown. */
struct check_qp *object_find_qpn(const struct ibv_context *context, uint32_t qpn);

/* Returns a live MR by its lkey, of the PD if there are several; NULL: none. */
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

/* Takes an object out while a verb ends it, so that another thread may enter a new one of the same
 * address. One of the functions below follows. */
void object_hide(struct object *object);

/* The verb has failed. */
void object_show(struct object *object);

/* The verb has ended the QP, CQ or SRQ: frees it. */
void object_free(struct object *object);

/* The verb has ended the MR. Its keys are remembered; the oldest ended ones are forgotten. */
void object_end_mr(struct check_mr *mr, const struct spot *ended);

/* Returns the first object of a kind; the others are at next_of_kind. MRs that have ended are not in
 * the list. */
struct object *object_first(enum object_kind kind);

/* Returns how often an object has left: a pointer to an object is valid while this stays the same. */
uint64_t object_changes(void);

/* Forgets all. */
void object_forget_all(void);

#endif /* SRC_CHECK_OBJECT_H */
