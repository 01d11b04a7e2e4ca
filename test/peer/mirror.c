/* SPDX-License-Identifier: MIT */
#include "test/peer/mirror.h"

#include "test/peer/memory.h"
#include "test/peer/mirror_cm.h"
#include "test/peer/relay.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BUCKETS	     4096
#define POINTERS_MAX 5

_Static_assert(sizeof(struct mirror) <= MEMORY_SLOT_BYTES, "a mirror has a slot");

/* A kind's public structure: its size, and the pointers to other objects in it. */
struct layout {
	size_t size_bytes;
	size_t pointers[POINTERS_MAX];
	unsigned int pointer_count;
};

#define LAYOUT(structure, count, ...)                          \
	{                                                      \
		sizeof(struct structure), {__VA_ARGS__}, count \
	}
#define AT(structure, field) offsetof(struct structure, field)

static const struct layout layouts[KINDS] = {
	[KIND_PD] = LAYOUT(ibv_pd, 1, AT(ibv_pd, context)),
	[KIND_TD] = LAYOUT(ibv_td, 1, AT(ibv_td, context)),
	[KIND_XRCD] = LAYOUT(ibv_xrcd, 1, AT(ibv_xrcd, context)),
	[KIND_MR] = LAYOUT(ibv_mr, 2, AT(ibv_mr, context), AT(ibv_mr, pd)),
	[KIND_MW] = LAYOUT(ibv_mw, 2, AT(ibv_mw, context), AT(ibv_mw, pd)),
	[KIND_DM] = LAYOUT(ibv_dm, 1, AT(ibv_dm, context)),
	[KIND_CQ] = LAYOUT(ibv_cq, 2, AT(ibv_cq, context), AT(ibv_cq, channel)),
	[KIND_SRQ] = LAYOUT(ibv_srq, 2, AT(ibv_srq, context), AT(ibv_srq, pd)),
	[KIND_QP] = LAYOUT(ibv_qp, 5, AT(ibv_qp, context), AT(ibv_qp, pd), AT(ibv_qp, send_cq),
			   AT(ibv_qp, recv_cq), AT(ibv_qp, srq)),
	[KIND_AH] = LAYOUT(ibv_ah, 2, AT(ibv_ah, context), AT(ibv_ah, pd)),
	[KIND_WQ] = LAYOUT(ibv_wq, 3, AT(ibv_wq, context), AT(ibv_wq, pd), AT(ibv_wq, cq)),
	[KIND_IND_TABLE] = LAYOUT(ibv_rwq_ind_table, 1, AT(ibv_rwq_ind_table, context)),
};

static struct table {
	struct mirror *buckets[BUCKETS];
} * table; /* shared; only B's process writes */

bool mirror_begin(void)
{
	table = memory_alloc(sizeof(*table));
	return table;
}

/* --- in both processes --- */

void *mirror_object(struct mirror *mirror)
{
	return mirror->kind == KIND_CONTEXT ? (void *)&mirror->object.verbs.context
					    : (void *)&mirror->object;
}

struct mirror *mirror_of(const void *object)
{
	struct mirror *mirror = memory_slot_of(object);

	return mirror && mirror->real && mirror_object(mirror) == object ? mirror : NULL;
}

static struct mirror **bucket_of(const void *real)
{
	uintptr_t bits = (uintptr_t)real;

	return &table->buckets[((bits >> 4) ^ (bits >> 14)) % BUCKETS];
}

static struct mirror *find(const void *real)
{
	struct mirror *mirror = *bucket_of(real);

	while (mirror && mirror->real != real)
		mirror = mirror->next;
	return mirror;
}

void *mirror_shown(void *real)
{
	struct mirror *mirror = find(real);

	return mirror ? mirror_object(mirror) : real;
}

/* --- in B's process --- */

static struct mirror *new_mirror(void *real, enum kind kind)
{
	struct mirror **bucket = bucket_of(real);
	struct mirror *mirror = memory_slot();

	if (!mirror)
		return NULL;
	mirror->real = real;
	mirror->kind = kind;
	mirror->next = *bucket;
	*bucket = mirror;
	return mirror;
}

/* A device is in many lists, and has one mirror. */
static struct ibv_device *show_device(struct ibv_device *device)
{
	struct mirror *mirror = find(device);

	if (!mirror) {
		mirror = new_mirror(device, KIND_DEVICE);
		if (mirror) {
			mirror->object.device = *device;
			/* By this field, the simulator knows its own devices. */
			memset(&mirror->object.device._ops, 0, sizeof(mirror->object.device._ops));
		}
	}
	return mirror ? &mirror->object.device : NULL;
}

static void show_list(struct mirror *mirror)
{
	struct ibv_device **list = mirror->real;

	for (size_t i = 0; list[i] && i + 1 < MIRROR_LIST_MAX; i++)
		mirror->object.list[i] = show_device(list[i]);
}

static void show_context(struct mirror *mirror)
{
	const struct ibv_context *real = mirror->real;
	struct ibv_context *shown = &mirror->object.verbs.context;

	shown->device = mirror_shown(real->device);
	shown->num_comp_vectors = real->num_comp_vectors;
	shown->cmd_fd = real->cmd_fd;
	shown->async_fd = real->async_fd;
	relay_dress_context(&mirror->object.verbs);
}

static void show_channel(struct mirror *mirror)
{
	const struct ibv_comp_channel *real = mirror->real;

	mirror->object.channel = *real;
	mirror->object.channel.context = mirror_shown(real->context);
}

/* The kind of the structure that an extended object begins with. */
static enum kind base_of(enum kind kind)
{
	return kind == KIND_QP_EX ? KIND_QP : kind == KIND_CQ_EX ? KIND_CQ : kind;
}

/* ibv_qp_to_qp_ex() returns the address of the QP itself. */
static struct mirror *same_object(void *real, enum kind kind)
{
	struct mirror *mirror = kind == KIND_QP_EX ? find(real) : NULL;

	return mirror && mirror->kind == KIND_QP ? mirror : NULL;
}

static void extend(struct mirror *mirror, enum kind kind)
{
	mirror->extended = true;
	if (kind == KIND_CQ_EX)
		relay_dress_cq(&mirror->object.cq, mirror->real);
	else
		relay_dress_qp(&mirror->object.qp, mirror->real);
}

void *mirror_make(void *real, enum kind kind)
{
	struct mirror *mirror = same_object(real, kind);

	if (!mirror)
		mirror = new_mirror(real, base_of(kind));
	if (!mirror)
		return NULL;
	if (kind == KIND_LIST)
		show_list(mirror);
	else if (kind == KIND_CONTEXT)
		show_context(mirror);
	else if (kind == KIND_CHANNEL)
		show_channel(mirror);
	else if (kind == KIND_CM_CHANNEL)
		mirror->object.cm_channel = *(const struct rdma_event_channel *)real;
	if (kind != base_of(kind) && !mirror->extended)
		extend(mirror, kind);
	mirror_pull(mirror);
	mirror_pull_channel(mirror);
	return mirror_object(mirror);
}

void *mirror_for(void *real, enum kind kind)
{
	struct mirror *mirror = real ? find(real) : NULL;

	if (!real)
		return NULL;
	if (!mirror || mirror->ended || mirror->kind != kind)
		return mirror_make(real, kind);
	mirror_pull(mirror);
	return mirror_object(mirror);
}

static void push_qp(struct ibv_qp_ex *real, const struct ibv_qp_ex *shown)
{
	real->wr_id = shown->wr_id;
	real->wr_flags = shown->wr_flags;
}

void mirror_push(const struct mirror *mirror)
{
	if (mirror->ended)
		return;
	if (mirror->kind == KIND_QP && mirror->extended)
		push_qp(mirror->real, &mirror->object.qp);
	else if (mirror->kind == KIND_MW)
		((struct ibv_mw *)mirror->real)->rkey = mirror->object.mw.rkey;
}

/* A CQ that is made or ends changes the count of its channel. */
void mirror_pull_channel(const struct mirror *cq)
{
	struct mirror *channel = cq->kind == KIND_CQ ? mirror_of(cq->object.cq.channel) : NULL;

	if (channel)
		channel->object.channel.refcnt =
			((const struct ibv_comp_channel *)channel->real)->refcnt;
}

void mirror_pull(struct mirror *mirror)
{
	const struct layout *layout = &layouts[mirror->kind];
	unsigned char *shown = (unsigned char *)&mirror->object;

	if (mirror->kind == KIND_CM_ID)
		mirror_pull_id(mirror);
	else if (mirror->kind == KIND_CM_EVENT)
		mirror_pull_event(mirror);
	if (!layout->size_bytes)
		return;
	memcpy(shown, mirror->real, layout->size_bytes);
	for (unsigned int i = 0; i < layout->pointer_count; i++) {
		void **pointer = (void **)(shown + layout->pointers[i]);

		*pointer = mirror_shown(*pointer);
	}
	if (mirror->kind == KIND_DM)
		relay_dress_dm(&mirror->object.dm, mirror->real);
	if (mirror->kind == KIND_CQ && mirror->extended) {
		const struct ibv_cq_ex *real = mirror->real;

		mirror->object.cq.status = real->status;
		mirror->object.cq.wr_id = real->wr_id;
	}
}
