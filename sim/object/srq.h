/* SPDX-License-Identifier: MIT */
/*
 * Shared receive queues. A slot is free again when the completion that used it has been polled, in
 * whatever order the QPs complete.
 */
#ifndef SIM_OBJECT_SRQ_H
#define SIM_OBJECT_SRQ_H

#include "sim/object/memory.h"
#include "sim/object/queue.h"

#include <infiniband/verbs.h>

struct sim_device;
struct sim_cq;
struct sim_xrcd;

struct sim_srq {
	struct sim_queue queue; /* the slots; first, so that a CQE's queue leads here */
	struct sim_device *device;
	void *user;
	uint32_t pd;
	uint32_t number;
	uint32_t *posted; /* slots in the order of posting: a ring of queue.mask + 1 */
	uint32_t *spare;  /* slots that are free: a stack */
	uint32_t spare_count;
	uint32_t made;	   /* slots; more than max_wr after that was lowered */
	uint32_t limit;	   /* event when fewer are posted; 0: unarmed */
	uint32_t users;	   /* QPs */
	uint32_t unpolled; /* completions that hold a slot */
	bool gone;
	struct sim_xrcd *xrcd; /* XRC: with the CQ that its completions go to */
	struct sim_cq *cq;
	struct sim_reach reach;
};

struct sim_srq_init {
	uint32_t pd;
	struct ibv_srq_attr attr;
	struct sim_xrcd *xrcd; /* XRC, with cq; else NULL */
	struct sim_cq *cq;
	void *user;
};

/* On success init->attr holds what the SRQ really has. EINVAL, ENOMEM. */
int sim_srq_create(struct sim_device *device, struct sim_srq_init *init, struct sim_srq **srq);

/* EBUSY while QPs use it. */
int sim_srq_destroy(struct sim_srq *srq);

/* ibv_modify_srq(3): EINVAL, ENOMEM; nothing is changed on an error. */
int sim_srq_modify(struct sim_srq *srq, const struct ibv_srq_attr *attr, int attr_mask);
void sim_srq_query(const struct sim_srq *srq, struct ibv_srq_attr *attr);

int sim_srq_post(struct sim_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

static inline uint32_t sim_srq_count(const struct sim_srq *srq)
{
	return srq->queue.head - srq->queue.tail;
}

/* The oldest WQE without taking it; NULL for none. */
struct sim_recv_wqe *sim_srq_peek(const struct sim_srq *srq);

/* Takes the oldest WQE, which is there; its slot. Raises the limit event where it is due. */
uint32_t sim_srq_take(struct sim_srq *srq);

/* A slot is free again: its completion has been polled, or its QP dropped it. */
void sim_srq_release(struct sim_srq *srq, uint32_t slot);

/* A completion that holds a slot was polled, or discarded with its CQ. */
void sim_srq_retire(struct sim_srq *srq, uint32_t slot);

#endif
