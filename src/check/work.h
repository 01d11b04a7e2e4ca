/* SPDX-License-Identifier: MIT */
/*
 * Works: work requests in flight. A work request is in flight until its completion, or that of a later work
 * request of its send queue, has been polled. The caller holds the sanitizer's lock.
 */
#ifndef SRC_CHECK_WORK_H
#define SRC_CHECK_WORK_H

#include "src/check/spot.h"

#include <infiniband/verbs.h>

struct work_sge {
	struct ibv_sge sge;
	const void *memory; /* where its bytes are in this process; NULL: unknown */
	uint64_t mr_number; /* of the lkey's MR; 0: unknown */
};

struct work {
	/* work_add() leaves these members unset: they are set before they are read. */
	struct spot posted;
	struct spot seen;    /* rule_buffer.c: the last verb at which the buffers had this sum */
	uint64_t sum;	     /* rule_buffer.c */
	uint64_t target_sum; /* of the buffers with TARGET_WHOLE, of their end with TARGET_TAIL */
	/* work_add() sets the other members to 0, or the post sets them. */
	uint64_t wr_id;
	uint64_t number; /* of the post, in the process, from 1 */
	uint64_t remote_addr;
	const struct ibv_ah *ah; /* of a datagram; else NULL */
	const void *wr;		 /* the program's structure; only for comparison */
	struct work_sge *sges;
	uint64_t length_bytes;	 /* of all SGEs */
	const struct ibv_mw *mw; /* rule_memory.c: that the work request binds; NULL: none */
	uint32_t sge_count;
	uint32_t rkey;
	uint32_t remote_qpn, remote_qkey;
	enum ibv_wr_opcode opcode; /* of a send */
	/* rule_target.c */
	enum { TARGET_OPEN, TARGET_HIDDEN, TARGET_SHARED, TARGET_WHOLE, TARGET_TAIL } watch;
	bool send;	/* false: a receive */
	bool signalled; /* a receive always is */
	bool inlined;	/* inline data: the buffers may be used again after the post */
	bool target;	/* the adapter writes to the buffers */
	bool done;	/* of a receive that waits for earlier ones of its SRQ to leave the queue */
	bool fits;	/* all SGEs are in MRs of the queue's PD */
	bool summed;	/* rule_buffer.c: the sum is known, and no change was reported */
	bool ending;	/* rule_memory.c: a verb is about to end the address handle or MW */
	bool missing;	/* rule_memory.c: its memory is not mapped, and this was looked into */
	bool key_reported;  /* rule_key.c */
	bool after_failure; /* rule_lost.c: posted by the thread that knew that the QP had failed */
};

/* rule_chain.c: what the last failed call of a queue had accepted. */
struct chain {
	const void *head,
		*bad;	     /* the program's structures: the first WR, and the first refused one */
	uint64_t first;	     /* the number of the first accepted work */
	uint64_t accepted;   /* counts the accepted works; 0: nothing is remembered */
	const void *repeats; /* the arguments of the call that repeats them, while it runs */
};

/* A queue of work requests, in the order of their posts. */
struct work_queue {
	struct work *works; /* a ring */
	struct work_sge *sges;
	uint32_t capacity; /* a power of two */
	uint32_t sges_each;
	uint64_t head, tail; /* counts the works that left, and those that were posted */
	struct chain chain;
};

/* Makes room for as many WRs of as many SGEs; both may be 0. Returns false without memory. */
bool work_queue_init(struct work_queue *queue, uint32_t works, uint32_t sges_each);
void work_queue_free(struct work_queue *queue);

/* Makes the ring larger. Returns false without memory. The places of works change. */
bool work_queue_grow(struct work_queue *queue, uint32_t sge_count);

/* Removes the last works of the queue, which the device has not accepted. */
void work_take_back(struct work_queue *queue, uint64_t count);

static inline uint64_t work_count(const struct work_queue *queue)
{
	return queue->tail - queue->head;
}

/* Returns the work that was posted as number `number` of its queue, from 0. */
static inline struct work *work_of(const struct work_queue *queue, uint64_t number)
{
	return &queue->works[number & (queue->capacity - 1)];
}

/* Returns a work in flight: index 0 is the oldest one. */
static inline struct work *work_at(const struct work_queue *queue, uint64_t index)
{
	return work_of(queue, queue->head + index);
}

/* Sets the members that a post does not always set. Clearing the whole structure would take a loop. */
static inline void work_reset(struct work *work)
{
	work->seen.frames[0] = NULL;
	work->remote_addr = 0;
	work->ah = NULL;
	work->mw = NULL;
	work->length_bytes = 0;
	work->rkey = 0;
	work->remote_qpn = work->remote_qkey = 0;
	work->opcode = (enum ibv_wr_opcode)0;
	work->watch = TARGET_OPEN;
	work->send = work->signalled = work->inlined = work->target = work->done = false;
	work->fits = work->summed = work->ending = work->missing = false;
	work->key_reported = work->after_failure = false;
}

/* Returns a new work at the end, with room for its SGEs; NULL without memory. The places of works
 * may change. */
static inline struct work *work_add(struct work_queue *queue, uint32_t sge_count)
{
	struct work *work;

	if ((work_count(queue) == queue->capacity || sge_count > queue->sges_each) &&
	    !work_queue_grow(queue, sge_count))
		return NULL;
	work = work_of(queue, queue->tail);
	work_reset(work);
	work->sge_count = sge_count;
	work->sges = &queue->sges[(queue->tail & (queue->capacity - 1)) * queue->sges_each];
	queue->tail++;
	return work;
}

/* Returns true if a completion with this wr_id is of the work. failed: the completion may be of a work that
 * is not signalled. */
static inline bool work_ends(const struct work *work, uint64_t wr_id, bool failed)
{
	return work->wr_id == wr_id && !work->done && (work->signalled || failed);
}

/* Returns the index of the oldest such work; UINT64_MAX: none. */
uint64_t work_find(const struct work_queue *queue, uint64_t wr_id, bool failed);

/* Removes the oldest works. */
static inline void work_leave(struct work_queue *queue, uint64_t count)
{
	queue->head += count;
}

#endif /* SRC_CHECK_WORK_H */
