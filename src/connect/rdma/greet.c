/* SPDX-License-Identifier: MIT */
/*
 * Listening, accepting and connecting: the greetings that two agents exchange over a line.
 */
#include "src/connect/bytes.h"
#include "src/connect/exchange/exchange.h"
#include "src/connect/rdma/agent.h"

#include <stdio.h>
#include <string.h>

/* --- the steps: three of each end --- */

static void write_greeting(struct vb_rdma *rdma)
{
	const struct vb_rdma_options *options = &rdma->agent->options;
	const struct greeting greeting = {
		.status = GREETING_WELCOME,
		.endpoint = *vb_prepared_endpoint(rdma->prepared),
		.message_bytes = options->message_bytes,
		.slots = options->slots,
		.longest_bytes = options->longest_bytes,
	};

	greeting_encode(&greeting, rdma->line_buffer);
}

static int read_greeting(struct vb_rdma *rdma)
{
	int err = greeting_decode(rdma->line_buffer, &rdma->peer);

	if (err || !rdma->peer.status)
		return err;
	if (rdma->peer.status == GREETING_NO_ROOM)
		return fail(ECONNREFUSED, "rdma: the peer has no room");
	if (rdma->peer.status == GREETING_FAILED)
		return fail(ECONNREFUSED, "rdma: the peer has no memory for the connection, or "
					  "its device failed");
	if (rdma->peer.status == GREETING_NONSENSE)
		return fail(ECONNREFUSED, "rdma: the peer did not understand the greeting");
	return fail(ECONNREFUSED, "rdma: the peer refused: code %u", rdma->peer.status);
}

/* Tells the peer why there is no connection. The line is about to be closed. */
static void refuse(const struct vb_rdma_agent *agent, void *line, enum greeting_status status)
{
	const struct greeting greeting = {.status = status};
	uint8_t bytes[GREETING_BYTES];
	size_t moved;

	greeting_encode(&greeting, bytes);
	agent->options.exchange->send(line, bytes, sizeof(bytes), &moved);
}

/* The listening end answers when its QP is ready. A peer that does not begin with the head of this
 * version is a stranger and gets no answer. */
static int meet_client(struct vb_rdma *rdma)
{
	int err = read_greeting(rdma);

	if (err == EBADMSG)
		refuse(rdma->agent, rdma->line, GREETING_NONSENSE);
	if (err)
		return err;
	err = connection_prepare(rdma);
	if (!err) {
		write_greeting(rdma);
		err = connection_join(rdma);
	}
	if (err)
		refuse(rdma->agent, rdma->line, GREETING_FAILED);
	return err;
}

static int meet_server(struct vb_rdma *rdma)
{
	int err = read_greeting(rdma);

	if (!err)
		err = connection_join(rdma);
	if (!err)
		put_head(rdma->line_buffer, CONFIRM_HEAD);
	return err;
}

static int hear_confirm(struct vb_rdma *rdma)
{
	return check_head("confirmation", rdma->line_buffer, CONFIRM_HEAD);
}

static const struct step {
	size_t length_bytes;
	bool sends;
	enum stage next;
	int (*then)(struct vb_rdma *rdma);
} steps[] = {
	[STAGE_HEAR_GREETING] = {GREETING_BYTES, false, STAGE_ANSWER, meet_client},
	[STAGE_ANSWER] = {GREETING_BYTES, true, STAGE_HEAR_CONFIRM, NULL},
	[STAGE_HEAR_CONFIRM] = {HEAD_BYTES, false, STAGE_READY, hear_confirm},
	[STAGE_SAY_GREETING] = {GREETING_BYTES, true, STAGE_HEAR_ANSWER, NULL},
	[STAGE_HEAR_ANSWER] = {GREETING_BYTES, false, STAGE_CONFIRM, meet_server},
	[STAGE_CONFIRM] = {HEAD_BYTES, true, STAGE_READY, NULL},
};

/* Sends or receives the bytes of the present stage. Returns 0, EAGAIN or errno. */
static int move(struct vb_rdma *rdma, const struct step *step)
{
	size_t before = rdma->line_bytes;
	int err = line_move(rdma->agent->options.exchange, rdma->line, rdma->line_buffer,
			    step->length_bytes, step->sends, &rdma->line_bytes);

	if (rdma->line_bytes > before)
		agent_tell(rdma->agent);
	if (err && err != EAGAIN)
		fail(err, "rdma: the line: %s", strerrordesc_np(err));
	return err;
}

/* Takes the connection through its stages. Returns 0 when it is ready, EAGAIN, or errno. */
static int advance(struct vb_rdma *rdma)
{
	const struct step *step;
	int err = 0;

	while (!err && rdma->stage != STAGE_READY) {
		step = &steps[rdma->stage];
		err = move(rdma, step);
		if (!err && step->then)
			err = step->then(rdma);
		if (!err) {
			rdma->stage = step->next;
			rdma->line_bytes = 0;
		}
	}
	if (err == EAGAIN)
		agent_watch(rdma->agent, rdma->line_fd, steps[rdma->stage].sends, true);
	return err;
}

/* --- accepting --- */

static void accept_ready(struct vb_rdma_listener *listener)
{
	struct vb_rdma *rdma;
	struct op *op;

	while ((rdma = listener->ready) && (op = listener->accepts.first)) {
		listener->ready = rdma->next;
		rdma->next = NULL;
		rdma->listener = NULL;
		op->result.rdma = rdma;
		op_end(op, 0);
	}
}

static void is_ready(struct vb_rdma *rdma)
{
	struct vb_rdma_agent *agent = rdma->agent;
	struct vb_rdma_listener *listener = rdma->listener;
	struct vb_rdma **link;
	struct op *op = rdma->connecting;

	line_close(agent, rdma->line);
	rdma->line = NULL;
	if (op) {
		rdma->connecting = NULL;
		op->result.rdma = rdma;
		op_end(op, 0);
		return;
	}
	for (link = &listener->ready; *link; link = &(*link)->next)
		;
	*link = rdma;
	accept_ready(listener);
}

static void has_failed(struct vb_rdma *rdma, int err)
{
	struct op *op = rdma->connecting;

	if (op) {
		snprintf(op->why, sizeof(op->why), "%s", vb_last_error());
		rdma->connecting = NULL;
	}
	connection_drop(rdma);
	if (op)
		op_end(op, err);
}

/* --- lines --- */

void line_close(struct vb_rdma_agent *agent, void *line)
{
	agent->options.exchange->close_line(line);
	agent_tell(agent);
}

static int line_new(struct vb_rdma_agent *agent, void *line, enum stage stage,
		    struct vb_rdma **made)
{
	struct vb_rdma *rdma;
	int err = connection_new(agent, &rdma);

	if (err)
		return err;
	rdma->line = line;
	rdma->stage = stage;
	rdma->line_fd = agent->options.exchange->line_descriptor(line);
	/* A listening end limits the time of the greeting; a connecting end has its own timeout. */
	rdma->line_ends_ns = stage == STAGE_HEAR_GREETING
				     ? cq_deadline_ns(agent->cq, agent->options.handshake_ns)
				     : VB_FOREVER;
	agent_remind(agent, rdma->line_ends_ns);
	agent_watch(agent, rdma->line_fd, steps[stage].sends, false);
	rdma->next = agent->shaking;
	agent->shaking = rdma;
	*made = rdma;
	return 0;
}

static void let_in(struct vb_rdma_listener *listener)
{
	struct vb_rdma_agent *agent = listener->agent;
	struct vb_rdma *rdma;
	void *line;
	int err;

	while (!agent->options.exchange->accept(listener->listener, &line)) {
		err = line_new(agent, line, STAGE_HEAR_GREETING, &rdma);
		if (!err) {
			rdma->listener = listener;
			continue;
		}
		refuse(agent, line, err == ENOSPC ? GREETING_NO_ROOM : GREETING_FAILED);
		line_close(agent, line);
	}
}

static void step_line(struct vb_rdma_agent *agent, struct vb_rdma **link)
{
	struct vb_rdma *rdma = *link;
	int err = advance(rdma);

	if (err == EAGAIN && agent_now_ns(agent) >= rdma->line_ends_ns)
		err = fail(ETIMEDOUT, "rdma: the peer did not complete its greeting in time");
	if (err == EAGAIN)
		return;
	*link = rdma->next;
	rdma->next = NULL;
	/* Compute anew when the next lease or handshake ends. */
	agent->soonest_ns = 0;
	if (err)
		has_failed(rdma, err);
	else
		is_ready(rdma);
}

void greet_step(struct vb_rdma_agent *agent)
{
	struct vb_rdma_listener *listener;
	struct vb_rdma **link = &agent->shaking, *here;

	for (listener = agent->listeners; listener; listener = listener->next)
		let_in(listener);
	while ((here = *link)) {
		step_line(agent, link);
		if (*link == here)
			link = &here->next;
	}
}

/* --- operations --- */

int greet_open_line(const struct vb_rdma_request *request, void **line)
{
	const struct vb_rdma_options *options = &request->agent->options;
	int err;

	if (!request->address)
		return fail(EINVAL, "rdma: connecting needs an address");
	err = options->exchange->connect(options->exchange_arg, request->address, line);
	if (!err)
		return 0;
	return fail(err, "rdma: connecting to %s: %s", request->address, strerrordesc_np(err));
}

static int start_connect(struct op *op)
{
	struct vb_rdma_agent *agent = op->request.agent;
	struct vb_rdma *rdma;
	int err = line_new(agent, op->line, STAGE_SAY_GREETING, &rdma);

	if (err) {
		line_close(agent, op->line);
		return err;
	}
	err = connection_prepare(rdma);
	if (err) {
		connection_drop(rdma);
		return err;
	}
	write_greeting(rdma);
	agent_tell(agent);
	rdma->connecting = op;
	return 0;
}

int greet_start(struct op *op)
{
	struct vb_rdma_listener *listener = op->request.listener;

	if (op->request.operation == VB_RDMA_CONNECT)
		return start_connect(op);
	op_push(&listener->accepts, op);
	accept_ready(listener);
	return 0;
}

void greet_cancel(struct op *op)
{
	struct vb_rdma *rdma;

	for (rdma = op->agent->shaking; rdma && rdma->connecting != op; rdma = rdma->next)
		;
	if (rdma) {
		rdma->connecting = NULL;
		connection_drop(rdma);
	}
	op_end(op, ECANCELED);
}

/* --- listeners --- */

struct vb_rdma_listener *vb_rdma_listen(struct vb_rdma_agent *agent, const char *address)
{
	const struct vb_rdma_exchange *exchange = agent->options.exchange;
	struct vb_rdma_listener *listener = object_new(sizeof(*listener), "rdma");
	int err;

	if (!listener)
		return NULL;
	agent_lock(agent);
	err = exchange->listen(agent->options.exchange_arg, address, &listener->listener);
	if (!err) {
		listener->agent = agent;
		listener->next = agent->listeners;
		agent->listeners = listener;
		agent_watch(agent, exchange->listener_descriptor(listener->listener), false, false);
		agent_wake(agent);
	}
	agent_unlock(agent);
	if (!err)
		return listener;
	return object_drop(listener,
			   fail(err, "rdma: listening at %s: %s", address, strerrordesc_np(err)));
}

/* Drops the connections that were not accepted. */
static void drop_unaccepted(struct vb_rdma_listener *listener)
{
	struct vb_rdma_agent *agent = listener->agent;

	for (uint32_t i = 0; i < agent->connections.count; i++) {
		struct vb_rdma *rdma = handle_object(&agent->connections, i);

		if (rdma && rdma->listener == listener)
			connection_drop(rdma);
	}
}

int vb_rdma_listener_close(struct vb_rdma_listener *listener)
{
	struct vb_rdma_listener **link;
	struct vb_rdma_agent *agent;
	struct op *op;

	if (!listener)
		return 0;
	agent = listener->agent;
	agent_lock(agent);
	while ((op = listener->accepts.first))
		op_end(op, ECANCELED);
	drop_unaccepted(listener);
	for (link = &agent->listeners; *link != listener; link = &(*link)->next)
		;
	*link = listener->next;
	agent->options.exchange->close_listener(listener->listener);
	agent_tell(agent);
	agent_unlock(agent);
	free(listener);
	return 0;
}

int vb_rdma_listener_name(const struct vb_rdma_listener *listener, char *text, size_t text_bytes)
{
	int err = listener->agent->options.exchange->name(listener->listener, text, text_bytes);

	return err ? fail(err, "rdma: the listener's name: %s", strerrordesc_np(err)) : 0;
}
