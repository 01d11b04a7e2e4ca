/* SPDX-License-Identifier: MIT */
/*
 * Work requests in flight: posted, and no completion of it or of a later one has been polled. The
 * caller holds the lock of the sanitizer.
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
	uint64_t wr_id;
	uint64_t number; /* of the post, in the process, from 1 */
	bool send;	 /* false: a receive */
	bool signalled;	 /* a receive always is */
	bool inlined;	 /* the buffers are free since the post */
	bool target;	 /* the adapter writes to the buffers */
	bool done; /* of a receive that waits for earlier ones of its SRQ to leave the queue */
	enum ibv_wr_opcode opcode; /* of a send */
	uint64_t remote_addr;
	uint32_t rkey;
	const struct ibv_ah *ah; /* of a datagram; else NULL */
	uint32_t remote_qpn, remote_qkey;
	const void *wr; /* the program's structure; only for comparison */
	struct spot posted;
	uint32_t sge_count;
	struct work_sge *sges;
	/* rule_buffer.c */
	uint64_t sum;
	struct spot seen; /* the last verb at which the buffers had this sum */
	bool summed;	  /* the sum is known, and no change was reported */
	/* rule_memory.c */
	const struct ibv_mw *mw; /* that the work request binds; NULL: none */
	bool ending;		 /* a verb is about to end the address handle or MW */
	bool missing;		 /* its memory is not mapped, and this was looked into */
	/* rule_target.c */
	enum { TARGET_OPEN, TARGET_HIDDEN, TARGET_SHARED, TARGET_WHOLE, TARGET_TAIL } watch;
	uint64_t target_sum; /* of the buffers with TARGET_WHOLE, of their end with TARGET_TAIL */
	/* rule_key.c */
	bool key_reported;
	/* rule_lost.c */
	bool after_failure; /* posted by the thread that knew that the QP had failed */
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

/* Returns a new work at the end, with room for its SGEs; NULL without memory. The places of works
 * may change. */
struct work *work_add(struct work_queue *queue, uint32_t sge_count);

/* Takes the last works out, which were not accepted. */
void work_take_back(struct work_queue *queue, uint64_t count);

static inline uint64_t work_count(const struct work_queue *queue)
{
	return queue->tail - queue->head;
}

/* Returns the work that was posted after `number` others. */
static inline struct work *work_of(const struct work_queue *queue, uint64_t number)
{
	return &queue->works[number & (queue->capacity - 1)];
}

/* Returns a work in flight: index 0 is the oldest one. */
static inline struct work *work_at(const struct work_queue *queue, uint64_t index)
{
	return work_of(queue, queue->head + index);
}

/* Returns the index of the oldest work that a completion with this wr_id is of; UINT64_MAX: none.
 * failed: the completion may be of a work that is not signalled. */
uint64_t work_find(const struct work_queue *queue, uint64_t wr_id, bool failed);

/* Takes the oldest works out. */
static inline void work_leave(struct work_queue *queue, uint64_t count)
{
	queue->head += count;
}

/* Returns how many bytes the SGEs have. */
uint64_t work_length_bytes(const struct work *work);

#endif /* SRC_CHECK_WORK_H */
