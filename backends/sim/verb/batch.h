/* SPDX-License-Identifier: MIT */
/*
 * The work requests that a program gathers between ibv_wr_start() and ibv_wr_complete()
 * (ibv_wr_post(3)). ibv_wr_complete() posts all of them or none.
 */
#ifndef BACKENDS_SIM_VERB_BATCH_H
#define BACKENDS_SIM_VERB_BATCH_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <verbena/why.h>

struct qp;

/* What setters must, or may, give to a work request. */
enum {
	NEEDS_DATA = 1 << 0,
	NEEDS_ADDRESS = 1 << 1, /* UD: an AH; XRC: an SRQ's number */
	MAY_INLINE = 1 << 2,
};

/* The send_ops_flags of each enum ibv_wr_opcode; 0 for none. */
#define BATCH_OPCODES (IBV_WR_ATOMIC_WRITE + 1)
extern const uint64_t batch_flags[BATCH_OPCODES];

struct batch {
	pthread_mutex_t mutex; /* held between start and complete or abort, if `locks` is set */
	bool locks;
	bool open;	    /* set between start and complete or abort */
	int error;	    /* the first error, which ibv_wr_complete() returns */
	struct vb_why why;  /* of the error */
	uint64_t ops;	    /* the send_ops_flags of the QP */
	unsigned int lacks; /* what setters have not given to the newest work request */
	uint32_t count;
	uint32_t capacity;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t max_inline;
	/*
	 * The room of each work request in `sges` and `bytes`. An ATOMIC WRITE needs room for one
	 * SGE and 8 bytes even if max_sge and max_inline are smaller.
	 */
	uint32_t sge_room;
	uint32_t inline_room;
	struct ibv_send_wr *wrs;
	struct ibv_sge *sges;
	uint8_t *bytes;
};

/* Makes the batch of a QP; locks: only one thread at a time may have it open. 0 or ENOMEM. */
int batch_new(struct qp *qp, uint64_t send_ops_flags, bool locks);

/* Frees the batch of a QP, if it has one. */
void batch_free(struct qp *qp);

/*
 * Keeps the batch's first error and its reason, whose values are the number of the QP, the index of
 * the newest WR, its opcode, and these two.
 */
void batch_fail(struct batch *batch, enum vb_reason reason, uint64_t third, uint64_t fourth);

/* The same for a setter of `what` that the newest WR does not take. */
void batch_fail_setter(struct batch *batch, const char *what);

/* Adds a work request. NULL if the batch is lost. */
struct ibv_send_wr *batch_add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode);

/* The newest work request, for a setter that gives it the needs `what`, once. NULL if the batch is
 * lost. */
struct ibv_send_wr *batch_newest(struct ibv_qp_ex *ex, struct batch **batch, unsigned int what);

/* The room for SGEs and for inline data of the newest work request. */
struct ibv_sge *batch_sges(const struct batch *batch);
uint8_t *batch_bytes(const struct batch *batch);

/* Marks the newest work request as one whose inline data is in batch_bytes(). */
void batch_inlined(const struct batch *batch, struct ibv_send_wr *wr, uint32_t length);

/* ibv_wr_start(), ibv_wr_complete() and ibv_wr_abort(). */
void batch_start(struct ibv_qp_ex *ex);
int batch_complete(struct ibv_qp_ex *ex);
void batch_abort(struct ibv_qp_ex *ex);

#endif
