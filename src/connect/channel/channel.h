/* SPDX-License-Identifier: MIT */
/*
 * The insides of groups and channels.
 *
 * A channel has a slot for each work that its QP can hold. The wr_id of a work is the channel's key
 * with the number of the slot, so that a completion finds its slot, and the completion of a closed
 * channel finds none. The functions stand in the order of their files: each file calls only files
 * above it.
 */
#ifndef SRC_CONNECT_CHANNEL_CHANNEL_H
#define SRC_CONNECT_CHANNEL_CHANNEL_H

#include "src/connect/handle.h"
#include "src/connect/region.h"

#include <verbena/channel.h>

#define POLL_MAX 16

struct slot {
	struct handle_row row;
	struct vb_channel *channel;
	bool posted;	/* set until the work ends; then the result waits to be taken */
	bool detached;	/* the result is dropped */
	bool exclusive; /* the device may write the buffers */
	struct vb_scope *scope;
	struct slot *scope_next, *scope_prev;
	struct vb_result result;
	unsigned int slice_count;
	struct vb_slice *slices; /* held by the work; room for the largest request */
};

struct vb_channel {
	struct vb_group *group;
	struct vb_prepared_qp *prepared; /* NULL after connecting */
	struct ibv_qp *qp;		 /* NULL until connecting */
	struct vb_endpoint endpoint;
	uint32_t max_send_sge, max_recv_sge, max_inline_bytes;
	bool broken;
	uint64_t key;
	struct handle_table slots;
	unsigned int pending; /* counts posted slots */
	unsigned int scoped;  /* counts slots in a scope */
	uint64_t failures;
	struct vb_slice *slices; /* of all slots */
	struct ibv_sge *sges;	 /* of the request that is being posted */
};

struct vb_group {
	struct vb_device *device;
	struct ibv_pd *pd;
	bool owns_pd;
	struct vb_cq *cq;
	struct handle_table channels; /* struct handle_owner */
	uint64_t reserved;	      /* counts CQ entries */
	unsigned int pending;
	struct ibv_wc wc[POLL_MAX];
};

static inline struct slot *slot_at(const struct vb_channel *channel, uint32_t i)
{
	return (struct slot *)channel->slots.rows + i;
}

/* slot.c: the works of a channel */

/* Gives a slot back, whose result has been taken, and removes it from its scope. */
void slot_free(struct slot *slot);

/* The slot of a handle; NULL if the handle is stale. */
struct slot *slot_of(struct vb_work work);

/* Holds or releases the buffers of the slot in their regions. */
void slot_hold_buffers(struct slot *slot, enum hold change);

/* Ends a posted work with its completion. */
void slot_complete(struct slot *slot, const struct ibv_wc *wc);

/* Takes the result of a slot, as vb_work_poll(). */
int slot_result(struct slot *slot, struct vb_result *result);

void scope_add(struct vb_scope *scope, struct slot *slot);

/* Fails with the status and the operation of a work that ended badly. */
int work_failed(const struct vb_result *result, uint32_t qpn);

const char *operation_name(enum vb_operation operation);

/* group.c */

/* Reserves CQ entries for works, or returns them. 0 or errno. */
int group_reserve(struct vb_group *group, uint32_t works);
void group_unreserve(struct vb_group *group, uint32_t works);

/* Gives the channel a key, with which completions find it. 0 or errno. */
int group_enter(struct vb_group *group, struct vb_channel *channel);

/* Polls the CQ once without waiting. 0 or errno. */
int group_poll(struct vb_group *group);

/* Takes completions until over(arg) returns true. 0, ETIMEDOUT, EDEADLK or EIO. */
typedef bool group_over(const void *arg);
int group_wait(struct vb_group *group, group_over *over, const void *arg, uint64_t timeout_ns);

/* channel.c */

/* Ends all works of the channel, if need be by destroying its QP. The channel can then only be
 * closed. */
void channel_break(struct vb_channel *channel);

#endif /* SRC_CONNECT_CHANNEL_CHANNEL_H */
