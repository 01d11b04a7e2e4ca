/* SPDX-License-Identifier: MIT */
/*
 * A connection: its QP and buffers, what is posted and completed, and how it ends.
 */
#include "src/connect/rdma/agent.h"

#include "src/base/failure.h"
#include "src/connect/cq.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a wr_id says, beside the connection's index and generation. */
enum posted { POSTED_RECEIVE, POSTED_SEND, POSTED_FLIGHT };

/* So long a goodbye is waited for. */
#define GOODBYE_NS 1000000000ull

/* A peer that does not answer is probed at most this often. */
#define PROBE_NS 100000000ull

/* A receiver that is busy is asked again this soon. */
#define RNR_TIMER VB_RNR_0_08_MS

/* --- making --- */

int connection_new(struct vb_rdma_agent *agent, struct vb_rdma **made)
{
	struct vb_rdma *rdma;
	uint32_t index = 0;

	while (index < agent->options.connections && agent->connections[index])
		index++;
	if (index == agent->options.connections)
		return fail(ENOSPC, "rdma: the agent has %u connections", index);
	rdma = calloc(1, sizeof(*rdma));
	if (!rdma)
		return fail(ENOMEM, "rdma: no memory");
	rdma->agent = agent;
	rdma->index = index;
	rdma->generation = ++agent->generations[index];
	rdma->line_fd = -1;
	rdma->next_id = 1;
	agent->connections[index] = rdma;
	agent->connection_count++;
	*made = rdma;
	return 0;
}

static uint32_t buffer_count(const struct vb_rdma *rdma)
{
	return rdma->receives + SENDS;
}

static int make_buffers(struct vb_rdma *rdma)
{
	struct vb_rdma_agent *agent = rdma->agent;
	size_t each = agent->stride_bytes;

	rdma->receives = agent->options.slots + CONTROL_RECEIVES;
	/* Behind the messages: the old values of atomics. A message that is sent may be as long as
	 * ours or as the peer takes, whichever is less. */
	rdma->buffers =
		pool_alloc(agent, each * buffer_count(rdma) + FLIGHTS * sizeof(uint64_t), 64);
	if (!rdma->buffers)
		return errno;
	rdma->inbox = calloc(agent->options.slots, sizeof(*rdma->inbox));
	rdma->deferred = calloc(REQUESTS_MAX, sizeof(*rdma->deferred));
	if (!rdma->inbox || !rdma->deferred)
		return fail(ENOMEM, "rdma: no memory");
	for (uint32_t i = 0; i < SENDS; i++)
		rdma->sends_free[rdma->sends_free_count++] = SENDS - 1 - i;
	for (uint32_t i = 0; i < FLIGHTS; i++)
		rdma->flights_free[rdma->flights_free_count++] = FLIGHTS - 1 - i;
	return 0;
}

static uint32_t lesser(int a, uint32_t b)
{
	return a > 0 && (uint32_t)a < b ? (uint32_t)a : b;
}

static struct vb_qp_config config_of(const struct vb_rdma *rdma)
{
	const struct vb_rdma_agent *agent = rdma->agent;
	const struct ibv_device_attr *attr = &agent->device->attr;
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	config.max_send_wr = SENDS + FLIGHTS;
	config.max_recv_wr = rdma->receives;
	config.max_send_sge = config.max_recv_sge = 1;
	config.timeout = agent->options.ack_timeout;
	config.retry_cnt = agent->options.retry_cnt;
	config.rnr_retry = VB_RNR_RETRY_INFINITE;
	config.min_rnr_timer = RNR_TIMER;
	config.max_rd_atomic = lesser(attr->max_qp_init_rd_atom, FLIGHTS);
	config.max_dest_rd_atomic = lesser(attr->max_qp_rd_atom, FLIGHTS);
	vb_qp_config_allow_remote_rw(&config);
	if (attr->atomic_cap != IBV_ATOMIC_NONE)
		config.access |= IBV_ACCESS_REMOTE_ATOMIC;
	return config;
}

int connection_prepare(struct vb_rdma *rdma)
{
	struct vb_rdma_agent *agent = rdma->agent;
	struct vb_qp_config config;
	int err = make_buffers(rdma);

	if (err)
		return err;
	config = config_of(rdma);
	rdma->prepared =
		vb_qp_prepare(agent->device, agent->pd, agent->cq->cq, agent->cq->cq, &config);
	return rdma->prepared ? 0 : errno;
}

/* The peer's greeting is known. Receives are posted before anything can come. */
int connection_join(struct vb_rdma *rdma)
{
	rdma->qp = vb_handshake(rdma->prepared, &rdma->peer.endpoint);
	if (!rdma->qp)
		return errno;
	rdma->prepared = NULL;
	for (uint32_t i = 0; i < rdma->receives; i++)
		receive_post(rdma, i);
	return rdma->err;
}

uint32_t connection_message_bytes(const struct vb_rdma *rdma)
{
	return lesser((int)rdma->agent->options.message_bytes, rdma->peer.message_bytes);
}

/* --- posting --- */

static uint64_t wr_id(const struct vb_rdma *rdma, enum posted kind, uint32_t index)
{
	return (uint64_t)rdma->index << 48 | (uint64_t)rdma->generation << 32 |
	       (uint64_t)kind << 24 | index;
}

static uint8_t *buffer_at(const struct vb_rdma *rdma, uint32_t index)
{
	return rdma->buffers->addr + (size_t)index * rdma->agent->stride_bytes;
}

void receive_post(struct vb_rdma *rdma, uint32_t buffer)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buffer_at(rdma, buffer),
			      .length = rdma->agent->options.message_bytes,
			      .lkey = rdma->buffers->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id(rdma, POSTED_RECEIVE, buffer),
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;
	int err;

	if (rdma->err)
		return;
	err = ibv_post_recv(rdma->qp, &wr, &bad);
	if (err)
		connection_fail(rdma, EIO, "a receive cannot be posted: %s", strerrordesc_np(err));
}

static int post(struct vb_rdma *rdma, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err;

	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	err = ibv_post_send(rdma->qp, wr, &bad);
	if (err)
		connection_fail(rdma, EIO, "a work cannot be posted: %s", strerrordesc_np(err));
	return err;
}

bool connection_can_say(const struct vb_rdma *rdma)
{
	return rdma->sends_free_count && !rdma->err;
}

/* op is of DATA. */
void connection_say(struct vb_rdma *rdma, struct message *message, struct op *op)
{
	uint32_t index = rdma->sends_free[--rdma->sends_free_count];
	uint8_t *bytes = buffer_at(rdma, rdma->receives + index);
	uint32_t length_bytes;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = wr_id(rdma, POSTED_SEND, index), .sg_list = &sge, .opcode = IBV_WR_SEND};

	message->credit = rdma->let_go_told = rdma->let_go;
	length_bytes = message_encode(message, bytes);
	sge = (struct ibv_sge){(uintptr_t)bytes, length_bytes, rdma->buffers->lkey};
	rdma->sends[index] = (struct send_slot){.op = op};
	wr.wr_id = wr_id(rdma, POSTED_SEND, index);
	wr.next = NULL;
	wr.sg_list = &sge;
	wr.opcode = IBV_WR_SEND;
	if (post(rdma, &wr)) {
		rdma->sends[index] = (struct send_slot){0};
		rdma->sends_free[rdma->sends_free_count++] = index;
	}
}

static uint64_t *old_value_at(const struct vb_rdma *rdma, uint32_t index)
{
	return (uint64_t *)(void *)buffer_at(rdma, buffer_count(rdma)) + index;
}

static enum ibv_wr_opcode opcode_of(enum vb_rdma_operation operation)
{
	switch (operation) {
	case VB_RDMA_WRITE:
		return IBV_WR_RDMA_WRITE;
	case VB_RDMA_READ:
		return IBV_WR_RDMA_READ;
	case VB_RDMA_COMPARE_SWAP:
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	default:
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	}
}

static void fly(struct vb_rdma *rdma, struct op *op)
{
	const struct vb_rdma_request *request = &op->request;
	uint32_t index = rdma->flights_free[--rdma->flights_free_count];
	struct vb_local_mr *local = request->slice.mr;
	uint64_t remote_addr = request->remote->record.addr + request->offset_bytes;
	struct ibv_sge sge = {(uintptr_t)old_value_at(rdma, index), sizeof(uint64_t),
			      rdma->buffers->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id(rdma, POSTED_FLIGHT, index),
				 .sg_list = &sge,
				 .opcode = opcode_of(request->operation)};

	rdma->flights[index] = (struct flight){op, local, request->remote};
	if (local) {
		sge = (struct ibv_sge){(uintptr_t)local->addr + request->slice.offset_bytes,
				       (uint32_t)request->slice.length_bytes, local->lkey};
		wr.wr.rdma.remote_addr = remote_addr;
		wr.wr.rdma.rkey = request->remote->record.rkey;
	} else {
		wr.wr.atomic.remote_addr = remote_addr;
		wr.wr.atomic.rkey = request->remote->record.rkey;
		wr.wr.atomic.compare_add = request->compare_add;
		wr.wr.atomic.swap = request->swap;
	}
	post(rdma, &wr);
}

void connection_pump(struct vb_rdma *rdma)
{
	struct message credit;

	if (rdma->err || rdma->stage != STAGE_READY)
		return;
	if (rdma->ask_queue.first || rdma->releases || rdma->deferred_count)
		memory_pump(rdma);
	if (rdma->data_queue.first)
		transfer_pump(rdma);
	while (rdma->post_queue.first && rdma->flights_free_count && !rdma->err)
		fly(rdma, op_pop(&rdma->post_queue));
	if (rdma->let_go - rdma->let_go_told >= (rdma->agent->options.slots + 1) / 2 &&
	    connection_can_say(rdma)) {
		credit = (struct message){.type = MESSAGE_CREDIT};
		connection_say(rdma, &credit, NULL);
	}
}

/* --- failing --- */

static bool is_sending(const struct vb_rdma *rdma)
{
	return rdma->sends_free_count < SENDS;
}

/* Where neither slots nor answers come, only a message that needs none tells whether there is
 * anybody. What is under way already tells as much. */
void connection_probe(struct vb_rdma *rdma)
{
	struct message credit = {.type = MESSAGE_CREDIT};
	uint64_t now_ns = agent_now_ns(rdma->agent);

	if (is_sending(rdma) || !connection_can_say(rdma) || now_ns < rdma->probe_again_ns)
		return;
	rdma->probe_again_ns = now_ns + PROBE_NS;
	connection_say(rdma, &credit, NULL);
}

static void to_error(struct vb_rdma *rdma)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (rdma->qp)
		vb_modify_qp(rdma->qp, &attr, IBV_QP_STATE);
	rdma->dying = false;
}

/* Whatever refers to an operation does not any more. */
static void end_operations(struct vb_rdma *rdma, int err)
{
	struct vb_rdma_agent *agent = rdma->agent;
	struct op *op;

	while ((op = op_pop(&rdma->post_queue)))
		transfer_land(op);
	memory_unask(rdma);
	rdma->data_queue = rdma->asked = (struct op_queue){0};
	rdma->receive_queue = rdma->local_queue = rdma->remote_queue = (struct op_queue){0};
	rdma->asked_count = 0;
	for (uint32_t i = 0; i < SENDS; i++)
		rdma->sends[i].op = NULL;
	for (uint32_t i = 0; i < FLIGHTS; i++)
		rdma->flights[i].op = NULL;
	for (uint32_t i = 0; i < agent->options.operations; i++) {
		op = &agent->ops[i];
		if (op->rdma == rdma && op->state == OP_BUSY)
			op_end(agent, op, err);
	}
}

static void fail_with(struct vb_rdma *rdma, int err, const char *why, bool at_once)
{
	if (rdma->err)
		return;
	rdma->err = err;
	snprintf(rdma->why, sizeof(rdma->why), "%s", why);
	if (at_once)
		to_error(rdma);
	else
		rdma->dying = true;
	memory_drop(rdma);
	end_operations(rdma, err);
	if (rdma->agent->threaded)
		pthread_cond_broadcast(&rdma->agent->ended);
}

void connection_fail(struct vb_rdma *rdma, int err, const char *format, ...)
{
	char why[WHY_BYTES - 64], whole[WHY_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	snprintf(whole, sizeof(whole), "rdma: QP 0x%x: %s", rdma->qp ? rdma->qp->qp_num : 0, why);
	fail_with(rdma, err, whole, true);
}

void connection_accuse(struct vb_rdma *rdma, const char *what)
{
	struct message complaint = {.type = MESSAGE_ERROR, .code = CODE_NOT_UNDERSTOOD};
	char whole[WHY_BYTES];

	if (rdma->err)
		return;
	if (connection_can_say(rdma))
		connection_say(rdma, &complaint, NULL);
	snprintf(whole, sizeof(whole), "rdma: QP 0x%x: the peer sent what it must not: %s",
		 rdma->qp->qp_num, what);
	fail_with(rdma, EPROTO, whole, !is_sending(rdma));
}

/* --- completions --- */

static void hear_end(struct vb_rdma *rdma, const struct message *message)
{
	if (message->type == MESSAGE_BYE)
		connection_fail(rdma, ECONNRESET, "the peer closed the connection");
	else
		connection_fail(rdma, ECONNABORTED,
				"the peer closed the connection since it could not understand it");
}

/* A request is kept until there is room for its answer. */
static void defer(struct vb_rdma *rdma, const struct message *message)
{
	uint32_t at = (rdma->deferred_first + rdma->deferred_count) % REQUESTS_MAX;

	if (rdma->deferred_count == REQUESTS_MAX) {
		connection_accuse(rdma, "more requests than may have no answer");
		return;
	}
	rdma->deferred[at] = *message;
	rdma->deferred_count++;
}

static void heard(struct vb_rdma *rdma, const struct message *message, uint32_t buffer)
{
	bool wants_answer = message->type == MESSAGE_REQUEST || message->type == MESSAGE_OFFER ||
			    message->type == MESSAGE_HAND;

	if (message->credit - rdma->peer_let_go > rdma->sent - rdma->peer_let_go) {
		connection_accuse(rdma, "a credit that lets go what was not sent");
		return;
	}
	rdma->peer_let_go = message->credit;
	if (message->type == MESSAGE_DATA) {
		transfer_arrived(rdma, message, buffer);
		return;
	}
	if (message->type == MESSAGE_BYE || message->type == MESSAGE_ERROR)
		hear_end(rdma, message);
	else if (wants_answer && (!connection_can_say(rdma) || rdma->deferred_count))
		defer(rdma, message);
	else if (message->type != MESSAGE_CREDIT)
		memory_heard(rdma, message);
	receive_post(rdma, buffer);
}

static void received(struct vb_rdma *rdma, uint32_t buffer, uint32_t length_bytes)
{
	struct message message; /* each type's fields are set */
	const char *malformed = message_decode(buffer_at(rdma, buffer), length_bytes, &message);

	if (malformed)
		connection_accuse(rdma, malformed);
	else
		heard(rdma, &message, buffer);
}

static void flight_drop(struct flight *flight)
{
	if (flight->local)
		local_put(flight->local);
	if (flight->remote)
		remote_put(flight->remote);
	*flight = (struct flight){0};
}

static void flown(struct vb_rdma *rdma, uint32_t index, bool good)
{
	struct flight *flight = &rdma->flights[index];

	if (flight->op && good) {
		if (!flight->local)
			flight->op->result.before = *old_value_at(rdma, index);
		op_end(rdma->agent, flight->op, 0);
	}
	flight_drop(flight);
	rdma->flights_free[rdma->flights_free_count++] = index;
}

static void sent(struct vb_rdma *rdma, uint32_t index, bool good)
{
	struct send_slot *slot = &rdma->sends[index];

	if (slot->op && good)
		transfer_sent(rdma, slot);
	*slot = (struct send_slot){0};
	rdma->sends_free[rdma->sends_free_count++] = index;
	if (is_sending(rdma))
		return;
	if (rdma->dying)
		to_error(rdma);
	if (rdma->closing && rdma->agent->threaded)
		pthread_cond_broadcast(&rdma->agent->ended);
}

void connection_completion(struct vb_rdma_agent *agent, const struct ibv_wc *wc)
{
	uint64_t place = wc->wr_id >> 48;
	struct vb_rdma *rdma =
		place < agent->options.connections ? agent->connections[place] : NULL;
	uint32_t index = wc->wr_id & 0xffffff;
	bool good = wc->status == IBV_WC_SUCCESS;

	/* Of a connection that is gone. */
	if (!rdma || rdma->generation != (uint16_t)(wc->wr_id >> 32))
		return;
	if (!good)
		connection_fail(rdma, EIO, "%s: the peer is gone, or a key does not hold",
				vb_wc_status_str(wc->status));
	switch ((enum posted)(wc->wr_id >> 24 & 0xff)) {
	case POSTED_RECEIVE:
		if (good && !rdma->err)
			received(rdma, index, wc->byte_len);
		break;
	case POSTED_SEND:
		sent(rdma, index, good && !rdma->err);
		break;
	case POSTED_FLIGHT:
		flown(rdma, index, good && !rdma->err);
		break;
	}
	connection_pump(rdma);
}

/* --- ending --- */

static void unlist(struct vb_rdma **list, const struct vb_rdma *rdma)
{
	while (*list && *list != rdma)
		list = &(*list)->next;
	if (*list)
		*list = rdma->next;
}

static void drop_line(struct vb_rdma *rdma)
{
	if (!rdma->line)
		return;
	unlist(&rdma->agent->shaking, rdma);
	line_close(rdma->agent, rdma->line);
	rdma->line = NULL;
}

static void detach(struct vb_rdma *rdma)
{
	struct vb_remote_mr *mr;

	while ((mr = rdma->remotes)) {
		rdma->remotes = mr->next;
		mr->rdma = NULL;
		mr->next = mr->prev = NULL;
	}
	while (rdma->arrived_local_count--)
		local_put(rdma->arrived_locals[rdma->arrived_local_first++ % ARRIVED_MAX]);
	rdma->arrived_local_count = 0;
	while (rdma->arrived_remote_count--)
		remote_put(rdma->arrived_remotes[rdma->arrived_remote_first++ % ARRIVED_MAX]);
	rdma->arrived_remote_count = 0;
}

void connection_drop(struct vb_rdma *rdma)
{
	struct vb_rdma_agent *agent = rdma->agent;

	fail_with(rdma, ECANCELED, "rdma: the connection was closed", true);
	/* Before the remote regions forget their connection. */
	if (rdma->qp)
		vb_destroy_qp(rdma->qp);
	for (uint32_t i = 0; i < FLIGHTS; i++)
		flight_drop(&rdma->flights[i]);
	detach(rdma);
	drop_line(rdma);
	if (rdma->prepared)
		vb_prepared_drop(rdma->prepared);
	if (rdma->buffers)
		local_put(rdma->buffers);
	for (uint32_t i = 0; i < agent->options.operations; i++)
		if (agent->ops[i].rdma == rdma)
			agent->ops[i].rdma = NULL;
	agent->connections[rdma->index] = NULL;
	agent->connection_count--;
	free(rdma->inbox);
	free(rdma->deferred);
	free(rdma);
}

static void say_goodbye(struct vb_rdma *rdma)
{
	struct message goodbye = {.type = MESSAGE_BYE};
	struct vb_rdma_agent *agent = rdma->agent;
	uint64_t deadline_ns = cq_deadline_ns(agent->cq, GOODBYE_NS);

	rdma->closing = true;
	if (connection_can_say(rdma))
		connection_say(rdma, &goodbye, NULL);
	while (is_sending(rdma) && cq_left_ns(agent->cq, deadline_ns)) {
		if (agent->threaded ? ops_wait_for_thread(agent, deadline_ns)
				    : agent_wait(agent, deadline_ns))
			break;
	}
}

int vb_rdma_close(struct vb_rdma *rdma)
{
	struct vb_rdma_agent *agent;

	if (!rdma)
		return 0;
	agent = rdma->agent;
	agent_lock(agent);
	if (rdma->stage == STAGE_READY && !rdma->err)
		say_goodbye(rdma);
	connection_drop(rdma);
	agent_unlock(agent);
	return 0;
}

int vb_rdma_error(const struct vb_rdma *rdma, const char **why)
{
	int err;

	agent_lock(rdma->agent);
	err = rdma->err;
	if (why)
		*why = rdma->why;
	agent_unlock(rdma->agent);
	return err;
}

struct ibv_qp *vb_rdma_qp(const struct vb_rdma *rdma)
{
	return rdma->qp;
}
