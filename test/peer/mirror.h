/* SPDX-License-Identifier: MIT */
/*
 * The mirrors of the objects of B's process. A mirror is as public as its object: the test reads its
 * fields, and calls its functions, which are the relay's. A mirror stays when its object ends, so that
 * a test may use a stale pointer as it may in one process.
 */
#ifndef TEST_PEER_MIRROR_H
#define TEST_PEER_MIRROR_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum kind {
	KIND_NONE,
	KIND_LIST, /* of devices */
	KIND_DEVICE,
	KIND_CONTEXT,
	KIND_PD,
	KIND_TD,
	KIND_XRCD,
	KIND_MR,
	KIND_MW,
	KIND_DM,
	KIND_CHANNEL,
	KIND_CQ,
	KIND_CQ_EX,
	KIND_SRQ,
	KIND_QP,
	KIND_QP_EX,
	KIND_AH,
	KIND_WQ,
	KIND_IND_TABLE,
	KIND_CM_CHANNEL,
	KIND_CM_ID,
	KIND_CM_EVENT,
	KINDS,
};

/* Devices in a list, and its end. */
#define MIRROR_LIST_MAX 128

struct mirror {
	struct mirror *next; /* with the same hash */
	void *real;	     /* in B's process */
	enum kind kind;
	bool extended; /* a QP or CQ whose functions the test may call */
	bool ended;    /* the real object has been destroyed */
	union {
		struct ibv_device device;
		struct ibv_device *list[MIRROR_LIST_MAX];
		struct verbs_context verbs;
		struct ibv_pd pd;
		struct ibv_td td;
		struct ibv_xrcd xrcd;
		struct ibv_mr mr;
		struct ibv_mw mw;
		struct ibv_dm dm;
		struct ibv_comp_channel channel;
		struct ibv_cq_ex cq;
		struct ibv_srq srq;
		struct ibv_qp_ex qp;
		struct ibv_ah ah;
		struct ibv_wq wq;
		struct ibv_rwq_ind_table table;
		struct rdma_event_channel cm_channel;
		struct mirror_id {
			struct rdma_cm_id id;
			struct ibv_sa_path_rec path;
		} cm_id;
		struct mirror_event {
			struct rdma_cm_event event;
			uint8_t private_data[256];
		} cm_event;
	} object;
};

/* Gives the room for the table of mirrors. False: no memory. */
bool mirror_begin(void);

/* What the test has of a mirror. */
void *mirror_object(struct mirror *mirror);
/* Returns the mirror whose object it is; NULL if it is none. */
struct mirror *mirror_of(const void *object);
/* Returns the newest mirror of a real object as the test has it; the argument if there is none. */
void *mirror_shown(void *real);

/* --- in B's process --- */

/* Returns what the test gets for an object of the kind; NULL: no room. */
void *mirror_make(void *real, enum kind kind);
/* The same for an object that may have a mirror. NULL for NULL. */
void *mirror_for(void *real, enum kind kind);
/*
 * Copies what the test may have changed to the object: fields of an extended QP, and the rkey of a window,
 * which a program sets itself where the provider leaves that to it (rdma-core providers/rxe/rxe.c).
 */
void mirror_push(const struct mirror *mirror);
/* Copies what the verb may have changed. */
void mirror_pull(struct mirror *mirror);
void mirror_pull_channel(const struct mirror *cq);

#endif
