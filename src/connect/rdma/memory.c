/* SPDX-License-Identifier: MIT */
/*
 * Requests for regions, in both directions: a region is asked for (REQUEST, answered by GRANT),
 * offered (OFFER) or handed over (HAND), both answered by ANSWER, and released (RELEASE).
 */
#include "src/connect/rdma/agent.h"

/* Gives the regions that arrived to the operations that wait for them. */
static void deliver(struct vb_rdma *rdma)
{
	struct op *op;

	while (rdma->locals.count && (op = rdma->locals.waiting.first)) {
		op->result.local = arrivals_pop(&rdma->locals);
		op_end(op, 0);
	}
	while (rdma->remotes.count && (op = rdma->remotes.waiting.first)) {
		op->result.remote = arrivals_pop(&rdma->remotes);
		op_end(op, 0);
	}
}

static void arrive(struct arrivals *arrivals, void *region)
{
	arrivals->regions[(arrivals->first + arrivals->count++) % ARRIVED_MAX] = region;
}

/* --- requests of the peer --- */

static uint32_t code_of(int err)
{
	return err == EDQUOT || err == EINVAL ? CODE_ABOVE_LIMIT : CODE_NO_MEMORY;
}

/* Checks a request of the peer before memory is allocated. Returns the code of the answer. */
static uint32_t check_request(const struct vb_rdma *rdma, const struct message *message)
{
	const struct vb_rdma_options *options = &rdma->agent->options;

	if (message->access & ~options->peer_access)
		return CODE_NOT_ALLOWED;
	if (message->length_bytes > options->peer_bytes ||
	    rdma->granted_bytes > options->peer_bytes - message->length_bytes)
		return CODE_ABOVE_LIMIT;
	if (options->peer_lease_ns != VB_FOREVER &&
	    (!message->lease_ns || message->lease_ns > options->peer_lease_ns))
		return CODE_ABOVE_LIMIT;
	return CODE_DONE;
}

static uint32_t grant_request(struct vb_rdma *rdma, const struct message *message,
			      struct region_record *record)
{
	uint32_t code = check_request(rdma, message);
	struct vb_local_mr *local;
	struct grant *grant = NULL;
	int err;

	if (code)
		return code;
	local = pool_alloc(rdma->agent, message->length_bytes, message->align_bytes);
	if (!local)
		return code_of(errno);
	err = grant_new(rdma, local, message->access, &grant);
	if (err) {
		local_put(local);
		return code_of(err);
	}
	grant_lease(rdma, grant, message->lease_ns);
	*record = grant_record(grant, message->access, message->lease_ns);
	return CODE_DONE;
}

static uint32_t take_hand(struct vb_rdma *rdma, const struct message *message)
{
	struct grant **link = grant_find(rdma, message->id);

	if (!link)
		return CODE_NO_REGION;
	if (rdma->locals.count == ARRIVED_MAX)
		return CODE_TOO_MANY;
	(*link)->local->references++;
	arrive(&rdma->locals, (*link)->local);
	return CODE_DONE;
}

static uint32_t take_offer(struct vb_rdma *rdma, const struct message *message)
{
	struct vb_remote_mr *mr;

	if (rdma->remotes.count == ARRIVED_MAX)
		return CODE_TOO_MANY;
	mr = remote_new(rdma, &message->region, agent_now_ns(rdma->agent), false);
	if (!mr)
		return CODE_NO_MEMORY;
	arrive(&rdma->remotes, mr);
	return CODE_DONE;
}

static void answer(struct vb_rdma *rdma, const struct message *message)
{
	struct message reply = {.type = MESSAGE_ANSWER, .tag = message->tag};

	if (message->type == MESSAGE_REQUEST) {
		reply.type = MESSAGE_GRANT;
		reply.code = grant_request(rdma, message, &reply.region);
	} else if (message->type == MESSAGE_HAND) {
		reply.code = take_hand(rdma, message);
	} else {
		reply.code = take_offer(rdma, message);
	}
	connection_say(rdma, &reply, NULL);
	deliver(rdma);
}

/* --- answers of the peer --- */

static struct op *asker(struct vb_rdma *rdma, uint32_t tag)
{
	for (struct op *op = rdma->asked.first; op; op = op->next)
		if (op->tag == tag)
			return op;
	return NULL;
}

static const char *hear_grant(struct vb_rdma *rdma, struct op *op, const struct message *message)
{
	const struct region_record *region = &message->region;

	if (message->code)
		return NULL;
	if (region->length_bytes != op->request.length_bytes)
		return "a region of another length than asked";
	if (region->access != op->request.access)
		return "a region with another access than asked";
	if (region->lease_ns != op->request.lease_ns)
		return "a region with another lease than asked";
	op->result.remote = remote_new(rdma, region, op->began_ns, true);
	return NULL;
}

static void hear_answer(struct vb_rdma *rdma, const struct message *message)
{
	struct op *op = asker(rdma, message->tag);
	bool wants_grant = op && op->request.operation == VB_RDMA_REQUEST_REMOTE_MR;
	const char *wrong = NULL;
	struct grant **link;
	int err = message_errno(message->code);

	if (!op || wants_grant != (message->type == MESSAGE_GRANT))
		wrong = "an answer to a request that does not exist";
	else if (wants_grant)
		wrong = hear_grant(rdma, op, message);
	if (wrong) {
		connection_accuse(rdma, wrong);
		return;
	}
	if (op->request.operation == VB_RDMA_SEND_LOCAL_MR) {
		link = grant_find(rdma, op->granted_id);
		if (message->code)
			grant_end(rdma, link);
		else if (link)
			grant_lease(rdma, *link, op->request.lease_ns);
	}
	if (!err && wants_grant && !op->result.remote)
		err = ENOMEM;
	op_end(op, err);
}

void memory_heard(struct vb_rdma *rdma, const struct message *message)
{
	bool names_id = message->type == MESSAGE_HAND || message->type == MESSAGE_RELEASE;

	if (names_id && (!message->id || message->id >= rdma->next_id))
		connection_accuse(rdma, "the id of a region that was never given");
	else if (message->type == MESSAGE_OFFER && !message->region.length_bytes)
		connection_accuse(rdma, "an offer without bytes");
	else if (message->type == MESSAGE_RELEASE)
		grant_end(rdma, grant_find(rdma, message->id));
	else if (message->type == MESSAGE_GRANT || message->type == MESSAGE_ANSWER)
		hear_answer(rdma, message);
	else
		answer(rdma, message);
}

/* --- asking --- */

/* The key for the peer is made when the offer can be sent, not earlier. */
static int make_offer(struct vb_rdma *rdma, struct op *op, struct message *message)
{
	struct vb_local_mr *local = op->request.slice.mr;
	struct grant *grant = NULL;
	int err = grant_new(rdma, local, op->request.access, &grant);

	if (err)
		return err;
	local->references++;
	op->granted_id = grant->id;
	message->region = grant_record(grant, op->request.access, op->request.lease_ns);
	return 0;
}

static int ask(struct vb_rdma *rdma, struct op *op)
{
	const struct vb_rdma_request *request = &op->request;
	struct message message = {.tag = op->tag = ++rdma->next_tag};
	int err = 0;

	if (request->operation == VB_RDMA_REQUEST_REMOTE_MR) {
		message.type = MESSAGE_REQUEST;
		message.length_bytes = request->length_bytes;
		message.align_bytes = request->align_bytes;
		message.access = request->access;
		message.lease_ns = request->lease_ns;
		op->began_ns = agent_now_ns(rdma->agent);
	} else if (request->operation == VB_RDMA_SEND_MR) {
		message.type = MESSAGE_HAND;
		message.id = request->remote->record.id;
	} else {
		message.type = MESSAGE_OFFER;
		err = make_offer(rdma, op, &message);
	}
	if (!err)
		connection_say(rdma, &message, NULL);
	return err;
}

static void ask_next(struct vb_rdma *rdma)
{
	struct op *op = rdma->ask_queue.first;
	int err = ask(rdma, op);

	if (rdma->err)
		return;
	if (err) {
		op_end(op, err);
		return;
	}
	op_unhold(op);
	op_leave(op);
	op_push(&rdma->asked, op);
}

static void say_releases(struct vb_rdma *rdma)
{
	struct message message = {.type = MESSAGE_RELEASE};
	struct vb_remote_mr *mr;

	while ((mr = rdma->releases) && connection_can_say(rdma)) {
		message.id = mr->record.id;
		rdma->releases = mr->next;
		free(mr);
		connection_say(rdma, &message, NULL);
	}
}

void memory_pump(struct vb_rdma *rdma)
{
	while (rdma->deferred_count && connection_can_say(rdma)) {
		uint32_t at = rdma->deferred_first;

		rdma->deferred_first = (at + 1) % REQUESTS_MAX;
		rdma->deferred_count--;
		memory_heard(rdma, &rdma->deferred[at]);
	}
	say_releases(rdma);
	while (rdma->ask_queue.first && rdma->asked.count < REQUESTS_MAX &&
	       connection_can_say(rdma))
		ask_next(rdma);
	/* A request may have held the last reference of its region. */
	say_releases(rdma);
}

/* --- starting and cancelling --- */

static int check(const struct op *op)
{
	const struct vb_rdma_request *request = &op->request;
	size_t align = request->align_bytes;

	if (request->access & ~VB_MR_ALL)
		return fail(EINVAL, "rdma: access 0x%x has bits beside VB_MR_ALL", request->access);
	if (request->operation == VB_RDMA_REQUEST_REMOTE_MR &&
	    (!request->length_bytes || align & (align - 1) || align > 4096))
		return fail(EINVAL, "rdma: a region cannot have %zu bytes, aligned to %zu",
			    request->length_bytes, align);
	if (request->operation == VB_RDMA_SEND_LOCAL_MR &&
	    (!request->slice.mr || request->slice.mr->agent != op->rdma->agent))
		return fail(EINVAL, "rdma: the local region is not of this agent");
	if (request->operation == VB_RDMA_SEND_MR &&
	    (!request->remote || !request->remote->requested))
		return fail(EINVAL, "rdma: the remote region was not requested from the peer");
	return request->operation == VB_RDMA_SEND_MR ? remote_check(request->remote, op->rdma) : 0;
}

int memory_start(struct op *op)
{
	enum vb_rdma_operation operation = op->request.operation;
	struct vb_rdma *rdma = op->rdma;
	int err;

	if (operation >= VB_RDMA_RECEIVE_LOCAL_MR) {
		op_push(operation == VB_RDMA_RECEIVE_LOCAL_MR ? &rdma->locals.waiting
							      : &rdma->remotes.waiting,
			op);
		deliver(rdma);
	} else {
		err = check(op);
		if (err)
			return err;
	}
	if (op->busy && rdma->err)
		op_end(op, rdma->err);
	if (!op->busy || operation >= VB_RDMA_RECEIVE_LOCAL_MR)
		return 0;
	/* The regions that the request names are held until the request has been sent. */
	if (operation != VB_RDMA_SEND_MR)
		op->request.remote = NULL;
	if (operation != VB_RDMA_SEND_LOCAL_MR)
		op->request.slice.mr = NULL;
	op_hold(op);
	op_push(&rdma->ask_queue, op);
	return 0;
}

void memory_cancel(struct op *op)
{
	struct vb_rdma *rdma = op->rdma;
	bool needs_peer = op->request.operation < VB_RDMA_RECEIVE_LOCAL_MR;

	/* The tag of a request that was sent is taken until its answer. */
	if (op->queue != &rdma->asked)
		op_end(op, ECANCELED);
	if (needs_peer)
		connection_probe(rdma);
}
