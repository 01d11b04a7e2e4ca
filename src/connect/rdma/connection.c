/* SPDX-License-Identifier: MIT */
/*
 * A connection from its making to its end: its QP and buffers, and the handling of completions.
 */
#include "src/connect/rdma/agent.h"

#include <string.h>

/* The peer repeats a message that found no receive after this time. */
#define RNR_TIMER VB_RNR_0_08_MS

/* --- making --- */

int connection_new(struct vb_rdma_agent *agent, struct vb_rdma **made)
{
	struct vb_rdma *rdma;

	if (agent->connections.taken == agent->connections.count)
		return fail(ENOSPC,
			    "rdma: the agent has %u connections; options.connections is the limit",
			    agent->connections.count);
	rdma = object_new(sizeof(*rdma), "rdma");
	if (!rdma)
		return ENOMEM;
	rdma->agent = agent;
	rdma->key = handle_own(&agent->connections, rdma);
	rdma->line_fd = -1;
	rdma->next_id = 1;
	*made = rdma;
	return 0;
}

static void fill(struct free_list *list, uint32_t count)
{
	while (count)
		list->indices[list->count++] = (uint8_t)--count;
}

static int make_buffers(struct vb_rdma *rdma)
{
	const struct vb_rdma_options *options = &rdma->agent->options;

	rdma->receives = options->slots + CONTROL_RECEIVES;
	rdma->buffers = pool_alloc(rdma->agent,
				   (size_t)rdma->agent->stride_bytes * (rdma->receives + SENDS) +
					   FLIGHTS * sizeof(uint64_t),
				   0);
	if (!rdma->buffers)
		return errno;
	rdma->inbox = calloc(options->slots, sizeof(*rdma->inbox));
	rdma->deferred = calloc(REQUESTS_MAX, sizeof(*rdma->deferred));
	if (!rdma->inbox || !rdma->deferred)
		return fail(ENOMEM, "rdma: no memory");
	fill(&rdma->free_sends, SENDS);
	fill(&rdma->free_flights, FLIGHTS);
	return 0;
}

/* The device's maximum of reads and atomics, at most FLIGHTS. */
static uint32_t flights_of(int device_max)
{
	return device_max > 0 && device_max < FLIGHTS ? (uint32_t)device_max : FLIGHTS;
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
	config.max_rd_atomic = flights_of(attr->max_qp_init_rd_atom);
	config.max_dest_rd_atomic = flights_of(attr->max_qp_rd_atom);
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

void connection_pump(struct vb_rdma *rdma)
{
	if (rdma->err || rdma->stage != STAGE_READY)
		return;
	if (rdma->ask_queue.first || rdma->releases || rdma->deferred_count)
		memory_pump(rdma);
	if (rdma->data_queue.first)
		transfer_pump(rdma);
	while (rdma->post_queue.first && rdma->free_flights.count && !rdma->err)
		connection_fly(rdma, rdma->post_queue.first);
	if (rdma->let_go - rdma->let_go_said >= (rdma->agent->options.slots + 1) / 2 &&
	    connection_can_say(rdma))
		connection_note(rdma, MESSAGE_CREDIT, 0);
}

/* --- completions --- */

static void hear_end(struct vb_rdma *rdma, const struct message *message)
{
	if (message->type == MESSAGE_BYE)
		connection_fail(rdma, ECONNRESET, "the peer closed the connection");
	else
		connection_fail(
			rdma, ECONNABORTED,
			"the peer closed the connection: it could not understand a message");
}

/* Keeps a request until its answer can be sent. */
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
	struct message message; /* decoding sets the fields of its type */
	const char *malformed = message_decode(buffer_at(rdma, buffer), length_bytes, &message);

	if (malformed)
		connection_accuse(rdma, malformed);
	else
		heard(rdma, &message, buffer);
}

static void flown(struct vb_rdma *rdma, uint32_t index, bool good)
{
	struct flight *flight = &rdma->flights[index];

	if (flight->op && good) {
		if (!flight->local)
			flight->op->result.before = *old_value_at(rdma, index);
		op_end(flight->op, 0);
	}
	flight_drop(flight);
	rdma->free_flights.indices[rdma->free_flights.count++] = (uint8_t)index;
}

static void sent(struct vb_rdma *rdma, uint32_t index, bool good)
{
	struct op *op = rdma->sends[index];

	if (op && good)
		transfer_sent(op);
	rdma->sends[index] = NULL;
	rdma->free_sends.indices[rdma->free_sends.count++] = (uint8_t)index;
	if (connection_is_sending(rdma))
		return;
	if (rdma->dying)
		connection_to_error(rdma);
	if (rdma->closing)
		agent_notify(rdma->agent);
}

void connection_completion(struct vb_rdma_agent *agent, const struct ibv_wc *wc)
{
	struct vb_rdma *rdma = handle_owner_of(&agent->connections, wc->wr_id);
	uint32_t number = handle_work_of(wc->wr_id);
	bool good = wc->status == IBV_WC_SUCCESS;

	if (!rdma)
		return;
	if (!good)
		connection_fail(rdma, EIO, "%s: the peer is gone, or a key does not hold",
				vb_wc_status_str(wc->status));
	good = good && !rdma->err;
	if (number >= rdma->receives + SENDS)
		flown(rdma, number - rdma->receives - SENDS, good);
	else if (number >= rdma->receives)
		sent(rdma, number - rdma->receives, good);
	else if (good)
		received(rdma, number, wc->byte_len);
	connection_pump(rdma);
}

/* --- ending --- */

static void drop_line(struct vb_rdma *rdma)
{
	struct vb_rdma **link = &rdma->agent->shaking;

	while (*link && *link != rdma)
		link = &(*link)->next;
	if (*link)
		*link = rdma->next;
	rdma->agent->options.exchange->close_line(rdma->line);
	agent_tell(rdma->agent);
}

void connection_drop(struct vb_rdma *rdma)
{
	struct vb_rdma_agent *agent = rdma->agent;

	connection_fail_with(rdma, ECANCELED, "rdma: the connection was closed", true);
	if (rdma->qp)
		vb_destroy_qp(rdma->qp);
	for (uint32_t i = 0; i < FLIGHTS; i++)
		flight_drop(&rdma->flights[i]);
	while (rdma->locals.count)
		local_put(arrivals_pop(&rdma->locals));
	while (rdma->remotes.count)
		remote_put(arrivals_pop(&rdma->remotes));
	if (rdma->line)
		drop_line(rdma);
	vb_prepared_drop(rdma->prepared);
	local_put(rdma->buffers);
	for (uint32_t i = 0; i < agent->ops.count; i++) {
		struct op *op = (struct op *)agent->ops.rows + i;

		if (op->rdma == rdma)
			op->rdma = NULL;
	}
	handle_disown(&agent->connections, rdma->key);
	free(rdma->inbox);
	free(rdma->deferred);
	free(rdma);
}

void vb_remote_mr_put(struct vb_remote_mr *mr)
{
	struct vb_rdma_agent *agent;
	struct vb_rdma *rdma;

	if (!mr)
		return;
	agent = mr->agent;
	agent_lock(agent);
	rdma = remote_connection(mr);
	remote_put(mr);
	if (rdma)
		connection_pump(rdma);
	agent_unlock(agent);
}
