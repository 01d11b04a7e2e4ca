/* SPDX-License-Identifier: MIT */
/*
 * Shared receive queues (SRQ). A slot may be posted again after its completion has been polled; the
 * QPs complete receives in any order.
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
	uint32_t *posted; /* slots in the order of posting: a ring of queue.mask + 1 entries */
	uint32_t *spare;  /* the free slots: a stack */
	uint32_t spare_count;
	uint32_t made;	       /* slots that exist; more than max_wr after max_wr was lowered */
	uint32_t limit;	       /* IBV_EVENT_SRQ_LIMIT_REACHED when fewer are posted; 0: unarmed */
	uint32_t users;	       /* counts QPs */
	uint32_t unpolled;     /* completions that hold a slot */
	bool gone;	       /* destroyed; freed when `unpolled` is 0 */
	struct sim_xrcd *xrcd; /* of an XRC SRQ; else NULL */
	struct sim_cq *cq;     /* takes the completions of an XRC SRQ; else NULL */
	struct sim_reach reach;
};

struct sim_srq_init {
	uint32_t pd;
	struct ibv_srq_attr attr;
	struct sim_xrcd *xrcd; /* both set for an XRC SRQ; else NULL */
	struct sim_cq *cq;
	void *user;
};

/* Makes an SRQ and writes its real sizes to init->attr. EINVAL for sizes beyond the device,
 * ENOMEM. */
int sim_srq_create(struct sim_device *device, struct sim_srq_init *init, struct sim_srq **srq);

/* Destroys an SRQ. Its memory lives on until all its completions have been polled. EBUSY while QPs
 * use it. */
int sim_srq_destroy(struct sim_srq *srq);

/* ibv_modify_srq(3). EINVAL, ENOMEM; an error changes nothing. */
int sim_srq_modify(struct sim_srq *srq, const struct ibv_srq_attr *attr, int attr_mask);
void sim_srq_query(const struct sim_srq *srq, struct ibv_srq_attr *attr);

/* ibv_post_srq_recv(3): ENOMEM for a full SRQ, EINVAL for too many SGEs; *bad is the refused WR. */
int sim_srq_post(struct sim_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Returns the number of receives that are posted and not taken. */
static inline uint32_t sim_srq_count(const struct sim_srq *srq)
{
	return srq->queue.head - srq->queue.tail;
}

/* Returns the oldest WQE; NULL if the SRQ is empty. */
struct sim_recv_wqe *sim_srq_peek(const struct sim_srq *srq);

/* Takes the oldest WQE of an SRQ that is not empty and returns its slot. Raises the limit event if
 * fewer than the limit are left. */
uint32_t sim_srq_take(struct sim_srq *srq);

/* Frees a slot that a QP took and that has no completion. */
void sim_srq_release(struct sim_srq *srq, uint32_t slot);

/* Frees the slot of a completion that was polled, or discarded with its CQ. */
void sim_srq_retire(struct sim_srq *srq, uint32_t slot);

#endif
