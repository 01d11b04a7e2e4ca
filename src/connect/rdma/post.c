/* SPDX-License-Identifier: MIT */
/*
 * The works of a connection, and how a connection fails.
 */
#include "src/connect/rdma/agent.h"

#include "src/connect/qp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A peer that does not answer is probed at most this often. */
#define PROBE_NS 100000000ull

/* --- failing --- */

void connection_to_error(struct vb_rdma *rdma)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (rdma->qp)
		vb_modify_qp(rdma->qp, &attr, IBV_QP_STATE);
	rdma->dying = false;
}

/* Ends the keys of the peer and drops the releases that were not sent. */
static void drop_regions(struct vb_rdma *rdma)
{
	struct vb_remote_mr *mr;

	while (rdma->grants)
		grant_end(rdma, &rdma->grants);
	while ((mr = rdma->releases)) {
		rdma->releases = mr->next;
		free(mr);
	}
}

/* Ends all operations; nothing refers to them afterwards. */
static void end_operations(struct vb_rdma *rdma, int err)
{
	struct vb_rdma_agent *agent = rdma->agent;

	memset(rdma->sends, 0, sizeof(rdma->sends));
	for (uint32_t i = 0; i < FLIGHTS; i++)
		rdma->flights[i].op = NULL;
	for (uint32_t i = 0; i < agent->ops.count; i++) {
		struct op *op = (struct op *)agent->ops.rows + i;

		if (op->rdma == rdma && op->busy)
			op_end(op, err);
	}
}

void connection_fail_with(struct vb_rdma *rdma, int err, const char *why, bool at_once)
{
	if (rdma->err)
		return;
	rdma->err = err;
	snprintf(rdma->why, sizeof(rdma->why), "%s", why);
	if (at_once)
		connection_to_error(rdma);
	else
		rdma->dying = true;
	drop_regions(rdma);
	end_operations(rdma, err);
	agent_notify(rdma->agent);
}

void connection_fail(struct vb_rdma *rdma, int err, const char *format, ...)
{
	char why[WHY_BYTES - 64], whole[WHY_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	snprintf(whole, sizeof(whole), "rdma: QP 0x%x: %s", rdma->qp ? rdma->qp->qp_num : 0, why);
	connection_fail_with(rdma, err, whole, true);
}

/* --- buffers and receives --- */

uint8_t *buffer_at(const struct vb_rdma *rdma, uint32_t index)
{
	return rdma->buffers->addr + (size_t)index * rdma->agent->stride_bytes;
}

uint64_t *old_value_at(const struct vb_rdma *rdma, uint32_t flight)
{
	return (uint64_t *)(void *)buffer_at(rdma, rdma->receives + SENDS) + flight;
}

void receive_post(struct vb_rdma *rdma, uint32_t buffer)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buffer_at(rdma, buffer),
			      .length = rdma->agent->options.message_bytes,
			      .lkey = rdma->buffers->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = rdma->key | buffer, .sg_list = &sge, .num_sge = 1};
	int err;

	if (rdma->err)
		return;
	err = ibv_post_recv(rdma->qp, &wr, &bad);
	if (err)
		connection_fail(rdma, EIO, "a receive cannot be posted: %s", strerrordesc_np(err));
}

/* --- sends --- */

/* Posts a work; number is the number of the work for its wr_id. Returns 0 or errno. */
static int post(struct vb_rdma *rdma, uint32_t number, struct ibv_sge *sge, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err;

	wr->wr_id = rdma->key | number;
	wr->next = NULL;
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	err = ibv_post_send(rdma->qp, wr, &bad);
	if (err)
		connection_fail(rdma, EIO, "a work cannot be posted: %s", strerrordesc_np(err));
	return err;
}

bool connection_can_say(const struct vb_rdma *rdma)
{
	return rdma->free_sends.count && !rdma->err;
}

bool connection_is_sending(const struct vb_rdma *rdma)
{
	return rdma->free_sends.count < SENDS;
}

void connection_say(struct vb_rdma *rdma, struct message *message, struct op *op)
{
	uint32_t index = rdma->free_sends.indices[--rdma->free_sends.count];
	uint8_t *bytes = buffer_at(rdma, rdma->receives + index);
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	message->credit = rdma->let_go_said = rdma->let_go;
	sge = (struct ibv_sge){(uintptr_t)bytes, message_encode(message, bytes),
			       rdma->buffers->lkey};
	rdma->sends[index] = op;
	wr.opcode = IBV_WR_SEND;
	if (post(rdma, rdma->receives + index, &sge, &wr))
		rdma->free_sends.indices[rdma->free_sends.count++] = (uint8_t)index;
}

void connection_note(struct vb_rdma *rdma, enum message_type type, enum message_code code)
{
	struct message message = {.type = type, .code = code};

	connection_say(rdma, &message, NULL);
}

void connection_accuse(struct vb_rdma *rdma, const char *what)
{
	char whole[WHY_BYTES];

	if (rdma->err)
		return;
	if (connection_can_say(rdma))
		connection_note(rdma, MESSAGE_ERROR, CODE_NOT_UNDERSTOOD);
	snprintf(whole, sizeof(whole), "rdma: QP 0x%x: the peer broke the protocol: it sent %s",
		 rdma->qp->qp_num, what);
	connection_fail_with(rdma, EPROTO, whole, !connection_is_sending(rdma));
}

/* Without credit and answers, only a message that needs neither shows whether the peer is alive.
 * Sends that are under way show it as well. */
void connection_probe(struct vb_rdma *rdma)
{
	uint64_t now_ns = agent_now_ns(rdma->agent);

	if (connection_is_sending(rdma) || !connection_can_say(rdma) ||
	    now_ns < rdma->probe_again_ns)
		return;
	rdma->probe_again_ns = now_ns + PROBE_NS;
	connection_note(rdma, MESSAGE_CREDIT, 0);
}

/* --- one-sided operations --- */

static const enum ibv_wr_opcode opcodes[VB_RDMA_OPERATIONS] = {
	[VB_RDMA_WRITE] = IBV_WR_RDMA_WRITE,
	[VB_RDMA_READ] = IBV_WR_RDMA_READ,
	[VB_RDMA_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[VB_RDMA_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
};

void connection_fly(struct vb_rdma *rdma, struct op *op)
{
	const struct vb_rdma_request *request = &op->request;
	const struct vb_local_slice *slice = &request->slice;
	const struct region_record *remote = &request->remote->record;
	uint32_t index = rdma->free_flights.indices[--rdma->free_flights.count];
	struct ibv_send_wr wr = {.opcode = opcodes[request->operation]};
	struct ibv_sge sge = {(uintptr_t)old_value_at(rdma, index), sizeof(uint64_t),
			      rdma->buffers->lkey};

	if (slice->mr)
		sge = (struct ibv_sge){(uintptr_t)slice->mr->addr + slice->offset_bytes,
				       (uint32_t)slice->length_bytes, slice->mr->lkey};
	op_leave(op);
	op->holds = false; /* the flight has the references */
	rdma->flights[index] = (struct flight){op, slice->mr, request->remote};
	wr_set_remote(&wr, remote->addr + request->offset_bytes, remote->rkey, request->compare_add,
		      request->swap);
	post(rdma, rdma->receives + SENDS + index, &sge, &wr);
}

void flight_drop(struct flight *flight)
{
	local_put(flight->local);
	remote_put(flight->remote);
	*flight = (struct flight){0};
}
