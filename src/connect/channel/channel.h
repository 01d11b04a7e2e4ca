/* SPDX-License-Identifier: MIT */
/*
 * The insides of groups and channels.
 *
 * A channel has a slot for each work that its QP can hold. The number of a slot and the key of its
 * channel are the work's wr_id, so that a completion finds its way, and one of a channel that is
 * gone finds none.
 */
#ifndef SRC_CONNECT_CHANNEL_CHANNEL_H
#define SRC_CONNECT_CHANNEL_CHANNEL_H

#include <verbena/channel.h>

#define POLL_MAX 16

enum slot_state { SLOT_FREE, SLOT_POSTED, SLOT_DONE };

struct slot {
	struct vb_channel *channel;
	enum slot_state state;
	bool detached;	     /* nobody asks for its result */
	bool exclusive;	     /* the device may write its buffers */
	uint32_t generation; /* counts its works, from 1 */
	uint32_t next_free;
	struct vb_scope *scope;
	struct slot *scope_next, *scope_prev;
	struct vb_result result;
	unsigned int slice_count;
	struct vb_slice *slices; /* what it holds; room for the most that a request has */
};

struct vb_channel {
	struct vb_group *group;
	struct vb_prepared_qp *prepared; /* until it is connected */
	struct ibv_qp *qp;		 /* from then on, until it is broken */
	struct vb_endpoint endpoint;
	uint32_t max_send_sge, max_recv_sge, max_inline_bytes;
	bool broken;
	uint64_t key;
	uint32_t slot_count, first_free;
	unsigned int pending; /* slots that are posted */
	unsigned int scoped;  /* slots of a scope that is not at its end */
	uint64_t failures;
	struct slot *slots;
	struct vb_slice *slices;
	struct ibv_sge *sges; /* of the request that is being posted */
};

struct vb_group {
	struct vb_device *device;
	struct ibv_pd *pd;
	bool owns_pd;
	struct vb_cq *cq;
	struct vb_channel **channels; /* by the index in their keys; NULL: free */
	uint16_t *uses;		      /* of each index */
	uint32_t channel_capacity, channel_count;
	uint64_t reserved; /* entries of the CQ */
	unsigned int pending;
	struct ibv_wc wc[POLL_MAX];
};

#define NO_SLOT UINT32_MAX

/* Entries of the CQ for so many works more, and back. 0 or errno. */
int group_reserve(struct vb_group *group, uint32_t works);
void group_unreserve(struct vb_group *group, uint32_t works);

/* A key for a channel, which completions find from then on. 0 or errno. */
int group_enter(struct vb_group *group, struct vb_channel *channel);
void group_leave(struct vb_group *group, struct vb_channel *channel);

/* Looks at the CQ once, without waiting. 0 or errno. */
int group_poll(struct vb_group *group);

typedef bool group_over(const void *arg);

/* Takes completions until over(arg). 0, ETIMEDOUT, EDEADLK or EIO. */
int group_wait(struct vb_group *group, group_over *over, const void *arg, uint64_t timeout_ns);

/* A free slot, no longer free, or NULL; and back, its result taken. */
struct slot *slot_take(struct vb_channel *channel);
void slot_free(struct slot *slot);

/* The wr_id of its present work. */
uint64_t slot_wr_id(const struct slot *slot);

/* The slot of a handle; NULL where the handle is stale. */
struct slot *slot_of(struct vb_work work);

/* A posted work has ended. */
void slot_complete(struct slot *slot, const struct ibv_wc *wc);

/* The result of a slot that is done, as vb_work_poll(). */
int slot_result(struct slot *slot, struct vb_result *result);

void scope_add(struct vb_scope *scope, struct slot *slot);

/* Ends all of its works, by whatever it takes; it is good only for closing then. */
void channel_break(struct vb_channel *channel);

const char *operation_name(enum vb_operation operation);

#endif /* SRC_CONNECT_CHANNEL_CHANNEL_H */
