/* SPDX-License-Identifier: MIT */
#include "src/connect/channel/channel.h"

#include "src/base/failure.h"
#include "src/connect/qp.h"
#include "src/verbs/inline.h"

#include <arpa/inet.h>
#include <errno.h>

#define ATOMIC_BYTES 8

/* A message is at most 2^31 bytes: man ibv_query_port(3), max_msg_sz. */
#define MESSAGE_MAX (1ull << 31)

static const struct {
	enum ibv_wr_opcode plain, with_imm;
	bool takes_imm, remote, exclusive, atomic;
} operations[VB_OPERATIONS] = {
	[VB_SEND] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, .takes_imm = true},
	[VB_RECEIVE] = {.exclusive = true},
	[VB_WRITE] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, .takes_imm = true,
		      .remote = true},
	[VB_READ] = {IBV_WR_RDMA_READ, .remote = true, .exclusive = true},
	[VB_COMPARE_SWAP] = {IBV_WR_ATOMIC_CMP_AND_SWP, .remote = true, .exclusive = true,
			     .atomic = true},
	[VB_FETCH_ADD] = {IBV_WR_ATOMIC_FETCH_AND_ADD, .remote = true, .exclusive = true,
			  .atomic = true},
};

/* --- checking --- */

/* Makes the SGEs of the slices and their total length. */
static int gather_slices(const struct vb_channel *channel, const struct vb_request *request,
			 uint64_t *total_bytes)
{
	uint32_t max =
		request->operation == VB_RECEIVE ? channel->max_recv_sge : channel->max_send_sge;

	if (request->slice_count > max)
		return fail(EINVAL, "%u slices; at most %u", request->slice_count, max);
	for (unsigned int i = 0; i < request->slice_count; i++) {
		const struct vb_slice *slice = &request->slices[i];
		const struct vb_region *region = slice->region;

		if (!region)
			return fail(EINVAL, "slice %u has no region", i);
		if (region->mr->pd != channel->group->pd)
			return fail(EINVAL, "slice %u is of another protection domain", i);
		if (slice->offset_bytes > region->length_bytes ||
		    slice->length_bytes > region->length_bytes - slice->offset_bytes)
			return fail(EINVAL,
				    "slice %u, %u bytes from %zu, is not in its region of %zu", i,
				    slice->length_bytes, slice->offset_bytes, region->length_bytes);
		channel->sges[i] = (struct ibv_sge){
			.addr = (uintptr_t)region->addr + slice->offset_bytes,
			.length = slice->length_bytes,
			.lkey = region->mr->lkey,
		};
		*total_bytes += slice->length_bytes;
	}
	return 0;
}

static int check_lengths(const struct vb_request *request, unsigned long long total_bytes)
{
	if (total_bytes > MESSAGE_MAX)
		return fail(EINVAL, "%llu bytes; a message has at most %llu", total_bytes,
			    MESSAGE_MAX);
	if (operations[request->operation].atomic &&
	    (total_bytes != ATOMIC_BYTES || request->slice_count != 1))
		return fail(EINVAL, "%u slices of %llu bytes; an atomic takes one of 8",
			    request->slice_count, total_bytes);
	if (operations[request->operation].remote && total_bytes > request->remote.length_bytes)
		return fail(EINVAL, "%llu bytes; the remote piece has %llu", total_bytes,
			    (unsigned long long)request->remote.length_bytes);
	return 0;
}

/* vb_channel_post() puts the operation and the QP in front of these sentences. */
static int check_request(const struct vb_channel *channel, const struct vb_request *request,
			 uint64_t *total_bytes)
{
	int err;

	if ((unsigned int)request->operation >= VB_OPERATIONS)
		return fail(EINVAL, "there is no operation %d", (int)request->operation);
	if (!channel->qp || channel->broken)
		return fail(ENOTCONN, "the channel is %s",
			    channel->prepared ? "not connected yet" : "broken");
	if (request->with_imm && !operations[request->operation].takes_imm)
		return fail(EINVAL, "the operation has no immediate data");
	if (request->scope && request->scope->group != channel->group)
		return fail(EINVAL, "the scope is of another group, or has ended");
	err = gather_slices(channel, request, total_bytes);
	return err ? err : check_lengths(request, *total_bytes);
}

/* --- posting --- */

static int post_recv(struct vb_channel *channel, const struct vb_request *request, uint64_t wr_id)
{
	struct ibv_recv_wr *bad, wr = {
					 .wr_id = wr_id,
					 .sg_list = channel->sges,
					 .num_sge = (int)request->slice_count,
				 };

	return vb_post_recv(channel->qp, &wr, &bad);
}

static int post_send(struct vb_channel *channel, const struct vb_request *request, uint64_t wr_id,
		     uint64_t total_bytes)
{
	bool reads_here = !operations[request->operation].exclusive;
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = wr_id,
			.sg_list = channel->sges,
			.num_sge = (int)request->slice_count,
			.opcode = request->with_imm ? operations[request->operation].with_imm
						    : operations[request->operation].plain,
			.send_flags = IBV_SEND_SIGNALED,
			.imm_data = htonl(request->imm),
		};

	if (request->solicited)
		wr.send_flags |= IBV_SEND_SOLICITED;
	if (request->fenced)
		wr.send_flags |= IBV_SEND_FENCE;
	if (reads_here && total_bytes && total_bytes <= channel->max_inline_bytes)
		wr.send_flags |= IBV_SEND_INLINE;
	wr_set_remote(&wr, request->remote.addr, request->remote.rkey, request->compare_add,
		      request->swap);
	return vb_post_send(channel->qp, &wr, &bad);
}

/* Makes the slot a posted work, and its handle for the caller. */
static void begin(struct slot *slot, const struct vb_request *request, struct vb_work *work)
{
	struct vb_channel *channel = slot->channel;

	slot->posted = true;
	slot->detached = !work;
	slot->result = (struct vb_result){.operation = request->operation};
	channel->pending++;
	channel->group->pending++;
	if (request->scope)
		scope_add(request->scope, slot);
	if (work)
		*work = (struct vb_work){channel, slot->row.index, slot->row.generation};
}

int vb_channel_post(struct vb_channel *channel, const struct vb_request *request,
		    struct vb_work *work)
{
	uint64_t total_bytes = 0, wr_id;
	struct slot *slot;
	int err;

	err = check_request(channel, request, &total_bytes);
	if (err)
		return fail_because(err, "%s on QP 0x%x", operation_name(request->operation),
				    channel->endpoint.qpn);
	slot = handle_take(&channel->slots);
	if (!slot)
		return fail(ENOMEM, "%s on QP 0x%x: all of its %u works are in use",
			    operation_name(request->operation), channel->endpoint.qpn,
			    channel->slots.count);
	slot->exclusive = operations[request->operation].exclusive;
	slot->slice_count = request->slice_count;
	for (unsigned int i = 0; i < request->slice_count; i++)
		slot->slices[i] = request->slices[i];
	slot_hold_buffers(slot, REGION_HOLD);
	wr_id = channel->key | slot->row.index;
	if (request->operation == VB_RECEIVE)
		err = post_recv(channel, request, wr_id);
	else
		err = post_send(channel, request, wr_id, total_bytes);
	if (err) {
		slot_hold_buffers(slot, REGION_RELEASE);
		slot_free(slot);
		return fail_inline(err, channel->qp->context, "%s on QP 0x%x",
				   operation_name(request->operation), channel->endpoint.qpn);
	}
	begin(slot, request, work);
	return 0;
}

/* --- the common requests --- */

static int post_one(struct vb_channel *channel, struct vb_request request,
		    const struct vb_slice *slice, struct vb_work *work)
{
	request.slices = slice;
	request.slice_count = 1;
	return vb_channel_post(channel, &request, work);
}

int vb_channel_send(struct vb_channel *channel, const struct vb_slice *slice, struct vb_work *work)
{
	return post_one(channel, (struct vb_request){.operation = VB_SEND}, slice, work);
}

int vb_channel_send_imm(struct vb_channel *channel, const struct vb_slice *slice, uint32_t imm,
			struct vb_work *work)
{
	struct vb_request request = {.operation = VB_SEND, .with_imm = true, .imm = imm};

	return post_one(channel, request, slice, work);
}

int vb_channel_receive(struct vb_channel *channel, const struct vb_slice *slice,
		       struct vb_work *work)
{
	return post_one(channel, (struct vb_request){.operation = VB_RECEIVE}, slice, work);
}

int vb_channel_write(struct vb_channel *channel, const struct vb_slice *slice,
		     const struct vb_remote *remote, struct vb_work *work)
{
	struct vb_request request = {.operation = VB_WRITE, .remote = *remote};

	return post_one(channel, request, slice, work);
}

int vb_channel_write_imm(struct vb_channel *channel, const struct vb_slice *slice,
			 const struct vb_remote *remote, uint32_t imm, struct vb_work *work)
{
	struct vb_request request = {
		.operation = VB_WRITE, .remote = *remote, .with_imm = true, .imm = imm};

	return post_one(channel, request, slice, work);
}

int vb_channel_read(struct vb_channel *channel, const struct vb_slice *slice,
		    const struct vb_remote *remote, struct vb_work *work)
{
	struct vb_request request = {.operation = VB_READ, .remote = *remote};

	return post_one(channel, request, slice, work);
}

int vb_channel_compare_swap(struct vb_channel *channel, const struct vb_slice *slice,
			    const struct vb_remote *remote, uint64_t compare, uint64_t swap,
			    struct vb_work *work)
{
	struct vb_request request = {.operation = VB_COMPARE_SWAP,
				     .remote = *remote,
				     .compare_add = compare,
				     .swap = swap};

	return post_one(channel, request, slice, work);
}

int vb_channel_fetch_add(struct vb_channel *channel, const struct vb_slice *slice,
			 const struct vb_remote *remote, uint64_t add, struct vb_work *work)
{
	struct vb_request request = {
		.operation = VB_FETCH_ADD, .remote = *remote, .compare_add = add};

	return post_one(channel, request, slice, work);
}
