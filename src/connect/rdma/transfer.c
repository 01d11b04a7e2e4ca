/* SPDX-License-Identifier: MIT */
/*
 * Messages of any length in pieces, and one-sided operations.
 */
#include "src/connect/rdma/agent.h"

#include <string.h>

/* --- sending --- */

/* A message between agents is as long as both ends allow. */
static uint32_t piece_most(const struct vb_rdma *rdma)
{
	uint32_t own = rdma->agent->options.message_bytes, peer = rdma->peer.message_bytes;

	return (own < peer ? own : peer) - HEADER_BYTES - DATA_HEAD_BYTES;
}

static bool can_say_data(const struct vb_rdma *rdma)
{
	return !rdma->err && rdma->free_sends.count > CONTROL_SENDS &&
	       rdma->sent - rdma->peer_let_go < rdma->peer.slots;
}

/* Tells the peer that the rest of the message will not follow. */
static void say_void(struct vb_rdma *rdma, struct op *op)
{
	struct message message = {.type = MESSAGE_DATA,
				  .length_bytes = op->request.length_bytes,
				  .offset_bytes = op->moved_bytes,
				  .flags = DATA_VOID};

	op->all_posted = true;
	rdma->sent++;
	connection_say(rdma, &message, NULL);
}

static void say_piece(struct vb_rdma *rdma, struct op *op)
{
	const struct vb_rdma_request *request = &op->request;
	uint64_t left = request->length_bytes - op->moved_bytes;
	struct message message; /* not cleared, to be fast */

	message.type = MESSAGE_DATA;
	message.tag = 0;
	message.length_bytes = request->length_bytes;
	message.offset_bytes = op->moved_bytes;
	message.imm = request->imm;
	message.flags = request->has_imm ? DATA_IMM : 0;
	message.piece = left ? (const uint8_t *)request->from + op->moved_bytes : NULL;
	message.piece_bytes = left < piece_most(rdma) ? (uint32_t)left : piece_most(rdma);
	op->moved_bytes += message.piece_bytes;
	op->all_posted = op->moved_bytes == request->length_bytes;
	op->in_flight++;
	rdma->sent++;
	connection_say(rdma, &message, op);
}

void transfer_pump(struct vb_rdma *rdma)
{
	struct op *op;

	while ((op = rdma->data_queue.first) && can_say_data(rdma)) {
		if (op->abandoned)
			say_void(rdma, op);
		else
			say_piece(rdma, op);
		if (rdma->err)
			return;
		if (!op->all_posted)
			continue;
		op_leave(op);
		if (op->abandoned && !op->in_flight)
			op_end(op, 0);
	}
}

void transfer_sent(struct op *op)
{
	op->in_flight--;
	if (op->all_posted && !op->in_flight)
		op_end(op, 0);
}

/* --- receiving --- */

/* Returns NULL if the piece is the next one of its message, else what is wrong with it. */
static const char *is_wrong(const struct vb_rdma *rdma, const struct message *message)
{
	bool is_void = message->flags & DATA_VOID;

	if (rdma->inbox_count == rdma->agent->options.slots)
		return "DATA beyond the slots";
	if (message->length_bytes > rdma->agent->options.longest_bytes)
		return "DATA of a longer message than this end takes";
	if (!rdma->in_message)
		return message->offset_bytes ? "DATA that does not begin at 0" : NULL;
	if (message->length_bytes != rdma->in_total_bytes)
		return "DATA of another length than its message";
	if (message->offset_bytes != rdma->in_next_bytes)
		return is_void ? "void DATA at another place" : "DATA with a gap";
	return NULL;
}

/* Lets the oldest piece go. */
static void pop_piece(struct vb_rdma *rdma)
{
	uint32_t buffer = rdma->inbox[rdma->inbox_first].buffer;

	rdma->inbox_first = (rdma->inbox_first + 1) % rdma->agent->options.slots;
	rdma->inbox_count--;
	rdma->let_go++;
	receive_post(rdma, buffer);
}

/* Copies a piece to the operation that waits for it. Returns false if the piece stays, since its
 * message is longer than the operation takes. */
static bool take_piece(struct vb_rdma *rdma, struct op *op, const struct arrived_piece *piece)
{
	struct vb_rdma_message *message = &op->result.message;

	if (piece->flags & DATA_VOID) {
		op->moved_bytes = 0;
		return true;
	}
	*message =
		(struct vb_rdma_message){piece->total_bytes, piece->flags & DATA_IMM, piece->imm};
	if (piece->total_bytes > op->request.length_bytes) {
		op_end(op, EMSGSIZE);
		return false;
	}
	if (piece->piece_bytes)
		memcpy((uint8_t *)op->request.into + piece->offset_bytes,
		       buffer_at(rdma, piece->buffer) + HEADER_BYTES + DATA_HEAD_BYTES,
		       piece->piece_bytes);
	op->moved_bytes += piece->piece_bytes;
	if (op->moved_bytes == piece->total_bytes)
		op_end(op, 0);
	return true;
}

static bool is_last(const struct arrived_piece *piece)
{
	return piece->flags & DATA_VOID ||
	       piece->offset_bytes + piece->piece_bytes == piece->total_bytes;
}

static void deliver(struct vb_rdma *rdma)
{
	const struct arrived_piece *piece;

	while (rdma->inbox_count) {
		piece = &rdma->inbox[rdma->inbox_first];
		if (rdma->discarding)
			rdma->discarding = !is_last(piece);
		else if (!rdma->receive_queue.first)
			return;
		else if (!take_piece(rdma, rdma->receive_queue.first, piece))
			continue;
		pop_piece(rdma);
	}
}

void transfer_arrived(struct vb_rdma *rdma, const struct message *message, uint32_t buffer)
{
	uint32_t at = (rdma->inbox_first + rdma->inbox_count) % rdma->agent->options.slots;
	const char *wrong = is_wrong(rdma, message);

	if (wrong) {
		connection_accuse(rdma, wrong);
		return;
	}
	rdma->in_total_bytes = message->length_bytes;
	rdma->in_next_bytes = message->offset_bytes + message->piece_bytes;
	rdma->in_message =
		rdma->in_next_bytes < message->length_bytes && !(message->flags & DATA_VOID);
	rdma->inbox[at] = (struct arrived_piece){
		.buffer = buffer,
		.flags = message->flags,
		.imm = message->imm,
		.piece_bytes = message->piece_bytes,
		.total_bytes = message->length_bytes,
		.offset_bytes = message->offset_bytes,
	};
	rdma->inbox_count++;
	deliver(rdma);
}

/* --- one-sided --- */

static int check_remote(const struct op *op, uint64_t length_bytes, uint32_t access)
{
	const struct vb_rdma_request *request = &op->request;
	const struct vb_remote_mr *remote = request->remote;

	if (!remote || request->offset_bytes > remote->record.length_bytes ||
	    length_bytes > remote->record.length_bytes - request->offset_bytes)
		return fail(EINVAL, "rdma: %llu bytes from %llu are not in the remote region",
			    (unsigned long long)length_bytes,
			    (unsigned long long)request->offset_bytes);
	if (!(remote->record.access & access))
		return fail(EACCES, "rdma: the remote region has access 0x%x, which lacks 0x%x",
			    remote->record.access, access);
	return remote_check(remote, op->rdma);
}

static int check_slice(const struct op *op)
{
	const struct vb_local_slice *slice = &op->request.slice;
	const struct vb_rdma_agent *agent = op->rdma->agent;

	if (!slice->mr || slice->mr->agent != agent ||
	    slice->offset_bytes > slice->mr->length_bytes ||
	    slice->length_bytes > slice->mr->length_bytes - slice->offset_bytes)
		return fail(EINVAL, "rdma: the slice is not in a region of this agent");
	if (slice->length_bytes > agent->device->port_attr.max_msg_sz ||
	    slice->length_bytes > UINT32_MAX)
		return fail(EMSGSIZE, "rdma: %zu bytes in one operation; the port allows %u",
			    slice->length_bytes, agent->device->port_attr.max_msg_sz);
	return check_remote(op, slice->length_bytes,
			    op->request.operation == VB_RDMA_READ ? VB_MR_READ : VB_MR_WRITE);
}

static int start_one_sided(struct op *op)
{
	bool atomic = op->request.operation >= VB_RDMA_COMPARE_SWAP;
	int err;

	if (atomic) {
		op->request.slice.mr = NULL;
		err = op->request.offset_bytes % sizeof(uint64_t)
			      ? fail(EINVAL,
				     "rdma: an atomic at offset %llu; it must be a multiple of 8",
				     (unsigned long long)op->request.offset_bytes)
			      : check_remote(op, sizeof(uint64_t), VB_MR_ATOMIC);
	} else {
		err = check_slice(op);
	}
	if (err)
		return err;
	op_hold(op);
	op_push(&op->rdma->post_queue, op);
	return 0;
}

/* --- starting and cancelling --- */

int transfer_start(struct op *op)
{
	const struct vb_rdma_request *request = &op->request;
	struct vb_rdma *rdma = op->rdma;

	if (request->operation == VB_RDMA_RECEIVE) {
		/* A failed connection still delivers what had arrived. */
		op_push(&rdma->receive_queue, op);
		deliver(rdma);
	}
	if (op->busy && rdma->err)
		op_end(op, rdma->err);
	if (!op->busy || request->operation == VB_RDMA_RECEIVE)
		return 0;
	if (request->operation != VB_RDMA_SEND)
		return start_one_sided(op);
	if (request->length_bytes > rdma->peer.longest_bytes)
		return fail(EMSGSIZE, "rdma: a message of %zu bytes; the peer takes %llu",
			    request->length_bytes, (unsigned long long)rdma->peer.longest_bytes);
	op_push(&rdma->data_queue, op);
	return 0;
}

void transfer_cancel(struct op *op)
{
	bool sends = op->request.operation == VB_RDMA_SEND;
	struct vb_rdma *rdma = op->rdma;

	if (sends && (op->moved_bytes || op->in_flight)) {
		/* The operation ends when its sends have ended and the peer knows that it is
		 * void. */
		transfer_pump(rdma);
		connection_probe(rdma);
		return;
	}
	if (op->queue == &rdma->receive_queue && op->moved_bytes)
		rdma->discarding = true;
	for (uint32_t i = 0; i < FLIGHTS; i++)
		if (rdma->flights[i].op == op)
			rdma->flights[i].op = NULL;
	op_end(op, ECANCELED);
	if (sends)
		connection_probe(rdma);
}
