/* SPDX-License-Identifier: MIT */
/*
 * Regions that are requested, handed over, leased and released.
 */
#include "src/connect/rdma/agent.h"

#include "src/base/failure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- keys for the peer --- */

static int flags_of(uint32_t access)
{
	int flags = 0;

	if (access & VB_MR_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & VB_MR_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (access & VB_MR_ATOMIC)
		flags |= IBV_ACCESS_REMOTE_ATOMIC;
	/* ibv_reg_mr(3): writing from afar needs local write. */
	return access & (VB_MR_WRITE | VB_MR_ATOMIC) ? flags | IBV_ACCESS_LOCAL_WRITE : flags;
}

static uint64_t ends_ns(const struct vb_rdma_agent *agent, uint64_t began_ns, uint64_t lease_ns)
{
	(void)agent;
	return !lease_ns || began_ns + lease_ns < began_ns ? VB_FOREVER : began_ns + lease_ns;
}

/* The grant has the caller's reference of local from now on. 0 or errno. */
static int grant_new(struct vb_rdma *rdma, struct vb_local_mr *local, uint32_t access,
		     struct grant **made)
{
	struct grant *grant;

	if (rdma->grant_count == GRANTS_MAX)
		return fail(EDQUOT, "rdma: the peer has %u keys", GRANTS_MAX);
	grant = calloc(1, sizeof(*grant));
	if (!grant)
		return fail(ENOMEM, "rdma: no memory");
	grant->key = vb_reg_mr(rdma->agent->pd, local->addr, local->length_bytes, flags_of(access));
	if (!grant->key) {
		free(grant);
		return fail_because(errno, "rdma: a key for the peer");
	}
	grant->id = rdma->next_id++;
	grant->local = local;
	grant->ends_ns = VB_FOREVER;
	grant->next = rdma->grants;
	rdma->grants = grant;
	rdma->grant_count++;
	rdma->granted_bytes += local->length_bytes;
	*made = grant;
	return 0;
}

/* The key does not hold any more. */
static void grant_end(struct vb_rdma *rdma, struct grant **link)
{
	struct grant *grant = *link;

	*link = grant->next;
	rdma->grant_count--;
	rdma->granted_bytes -= grant->local->length_bytes;
	vb_dereg_mr(grant->key);
	local_put(grant->local);
	free(grant);
}

static struct grant **grant_find(struct vb_rdma *rdma, uint64_t id)
{
	struct grant **link = &rdma->grants;

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return *link ? link : NULL;
}

static struct region_record record_of(const struct grant *grant, uint32_t access, uint64_t lease_ns)
{
	return (struct region_record){
		.access = access,
		.id = grant->id,
		.addr = (uintptr_t)grant->local->addr,
		.length_bytes = grant->local->length_bytes,
		.lease_ns = lease_ns,
		.rkey = grant->key->rkey,
	};
}

static void lease(struct vb_rdma *rdma, struct grant *grant, uint64_t lease_ns)
{
	if (!lease_ns)
		return;
	grant->ends_ns = ends_ns(rdma->agent, agent_now_ns(rdma->agent), lease_ns);
	agent_remind(rdma->agent, grant->ends_ns);
}

void memory_expire(struct vb_rdma *rdma, uint64_t now_ns)
{
	struct grant **link = &rdma->grants;

	while (*link) {
		if ((*link)->ends_ns <= now_ns) {
			grant_end(rdma, link);
			continue;
		}
		agent_remind(rdma->agent, (*link)->ends_ns);
		link = &(*link)->next;
	}
	if (rdma->line)
		agent_remind(rdma->agent, rdma->line_ends_ns);
}

void memory_drop(struct vb_rdma *rdma)
{
	struct vb_remote_mr *mr;

	while (rdma->grants)
		grant_end(rdma, &rdma->grants);
	while ((mr = rdma->releases)) {
		rdma->releases = mr->next;
		free(mr);
	}
}

/* --- what the peer asks --- */

static uint32_t code_of(int err)
{
	return err == EDQUOT || err == EINVAL ? CODE_ABOVE_LIMIT : CODE_NO_MEMORY;
}

/* Each refusal before anything is allocated. */
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
	if (err || !grant) {
		local_put(local);
		return code_of(err);
	}
	lease(rdma, grant, message->lease_ns);
	*record = record_of(grant, message->access, message->lease_ns);
	return CODE_DONE;
}

static uint32_t take_hand(struct vb_rdma *rdma, const struct message *message)
{
	struct grant **link = grant_find(rdma, message->id);
	struct vb_local_mr *local;

	if (!link)
		return CODE_NO_REGION;
	if (rdma->arrived_local_count == ARRIVED_MAX)
		return CODE_TOO_MANY;
	local = (*link)->local;
	local->references++;
	rdma->arrived_locals[(rdma->arrived_local_first + rdma->arrived_local_count++) %
			     ARRIVED_MAX] = local;
	return CODE_DONE;
}

static struct vb_remote_mr *remote_new(struct vb_rdma *rdma, const struct region_record *record,
				       uint64_t began_ns, bool requested)
{
	struct vb_remote_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->agent = rdma->agent;
	mr->rdma = rdma;
	mr->record = *record;
	mr->requested = requested;
	mr->references = 1;
	mr->ends_ns = ends_ns(rdma->agent, began_ns, record->lease_ns);
	mr->next = rdma->remotes;
	if (mr->next)
		mr->next->prev = mr;
	rdma->remotes = mr;
	rdma->agent->remotes++;
	return mr;
}

static uint32_t take_offer(struct vb_rdma *rdma, const struct message *message)
{
	struct vb_remote_mr *mr;

	if (rdma->arrived_remote_count == ARRIVED_MAX)
		return CODE_TOO_MANY;
	mr = remote_new(rdma, &message->region, agent_now_ns(rdma->agent), false);
	if (!mr)
		return CODE_NO_MEMORY;
	rdma->arrived_remotes[(rdma->arrived_remote_first + rdma->arrived_remote_count++) %
			      ARRIVED_MAX] = mr;
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
	memory_deliver(rdma);
}

/* --- what it answers --- */

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
	int err;

	if (!op || wants_grant != (message->type == MESSAGE_GRANT)) {
		connection_accuse(rdma, "an answer that nobody waits for");
		return;
	}
	if (wants_grant)
		wrong = hear_grant(rdma, op, message);
	if (wrong) {
		connection_accuse(rdma, wrong);
		return;
	}
	if (op->request.operation == VB_RDMA_SEND_LOCAL_MR) {
		link = grant_find(rdma, op->moved_bytes);
		if (link && message->code)
			grant_end(rdma, link);
		else if (link)
			lease(rdma, *link, op->request.lease_ns);
	}
	op_remove(&rdma->asked, op);
	rdma->asked_count--;
	err = message_errno(message->code);
	if (!err && wants_grant && !op->result.remote)
		err = ENOMEM;
	op_end(rdma->agent, op, err);
}

static void hear_release(struct vb_rdma *rdma, const struct message *message)
{
	struct grant **link = grant_find(rdma, message->id);

	if (link)
		grant_end(rdma, link);
}

void memory_heard(struct vb_rdma *rdma, const struct message *message)
{
	bool names_id = message->type == MESSAGE_HAND || message->type == MESSAGE_RELEASE;

	if (names_id && (!message->id || message->id >= rdma->next_id))
		connection_accuse(rdma, "the id of a region that was never given");
	else if (message->type == MESSAGE_OFFER && !message->region.length_bytes)
		connection_accuse(rdma, "an offer without bytes");
	else if (message->type == MESSAGE_RELEASE)
		hear_release(rdma, message);
	else if (message->type == MESSAGE_GRANT || message->type == MESSAGE_ANSWER)
		hear_answer(rdma, message);
	else
		answer(rdma, message);
}

/* --- asking --- */

/* A key for the peer is made only once its offer can be sent. */
static int make_offer(struct vb_rdma *rdma, struct op *op, struct message *message)
{
	struct vb_local_mr *local = op->request.slice.mr;
	struct grant *grant = NULL;
	int err = grant_new(rdma, local, op->request.access, &grant);

	if (err || !grant)
		return err;
	local->references++;
	op->moved_bytes = grant->id;
	message->region = record_of(grant, op->request.access, op->request.lease_ns);
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

/* The regions that an operation names are held until it has been asked. */
static void unhold(struct op *op)
{
	if (op->request.operation == VB_RDMA_SEND_MR)
		remote_put(op->request.remote);
	else if (op->request.operation == VB_RDMA_SEND_LOCAL_MR)
		local_put(op->request.slice.mr);
}

static void ask_next(struct vb_rdma *rdma)
{
	struct op *op = op_pop(&rdma->ask_queue);
	int err = ask(rdma, op);

	unhold(op);
	if (rdma->err)
		return;
	if (err) {
		op_end(rdma->agent, op, err);
		return;
	}
	op_push(&rdma->asked, op);
	rdma->asked_count++;
}

void memory_pump(struct vb_rdma *rdma)
{
	struct message message = {.type = MESSAGE_RELEASE};
	struct vb_remote_mr *mr;
	uint32_t at;

	while (rdma->deferred_count && connection_can_say(rdma)) {
		at = rdma->deferred_first;
		rdma->deferred_first = (at + 1) % REQUESTS_MAX;
		rdma->deferred_count--;
		memory_heard(rdma, &rdma->deferred[at]);
	}
	while ((mr = rdma->releases) && connection_can_say(rdma)) {
		message.id = mr->record.id;
		rdma->releases = mr->next;
		free(mr);
		connection_say(rdma, &message, NULL);
	}
	while (rdma->ask_queue.first && rdma->asked_count < REQUESTS_MAX &&
	       connection_can_say(rdma))
		ask_next(rdma);
}

void memory_deliver(struct vb_rdma *rdma)
{
	struct op *op;

	while (rdma->arrived_local_count && rdma->local_queue.first) {
		op = op_pop(&rdma->local_queue);
		op->result.local = rdma->arrived_locals[rdma->arrived_local_first++ % ARRIVED_MAX];
		rdma->arrived_local_count--;
		op_end(rdma->agent, op, 0);
	}
	while (rdma->arrived_remote_count && rdma->remote_queue.first) {
		op = op_pop(&rdma->remote_queue);
		op->result.remote =
			rdma->arrived_remotes[rdma->arrived_remote_first++ % ARRIVED_MAX];
		rdma->arrived_remote_count--;
		op_end(rdma->agent, op, 0);
	}
}

/* --- starting and taking back --- */

static int check(const struct op *op)
{
	const struct vb_rdma_request *request = &op->request;
	size_t align = request->align_bytes;

	if (request->access & ~VB_MR_ALL)
		return fail(EINVAL, "rdma: access 0x%x", request->access);
	if (request->operation == VB_RDMA_REQUEST_REMOTE_MR &&
	    (!request->length_bytes || align & (align - 1) || align > 4096))
		return fail(EINVAL, "rdma: a region of %zu bytes, aligned to %zu",
			    request->length_bytes, align);
	if (request->operation == VB_RDMA_SEND_LOCAL_MR &&
	    (!request->slice.mr || request->slice.mr->agent != op->rdma->agent))
		return fail(EINVAL, "rdma: not a region of this agent");
	if (request->operation == VB_RDMA_SEND_MR &&
	    (!request->remote || !request->remote->requested))
		return fail(EINVAL, "rdma: not a region that was requested from the peer");
	if (request->operation == VB_RDMA_SEND_MR &&
	    (request->remote->rdma != op->rdma || !vb_remote_mr_left_ns(request->remote)))
		return fail(ESTALE, "rdma: the region is not this connection's any more");
	return 0;
}

static void start_taking(struct op *op, struct op_queue *queue)
{
	struct vb_rdma *rdma = op->rdma;

	op_push(queue, op);
	memory_deliver(rdma);
	if (op->state != OP_BUSY || !rdma->err)
		return;
	op_remove(queue, op);
	op_end(rdma->agent, op, rdma->err);
}

int memory_start(struct op *op)
{
	struct vb_rdma *rdma = op->rdma;
	int err;

	if (op->request.operation == VB_RDMA_RECEIVE_LOCAL_MR) {
		start_taking(op, &rdma->local_queue);
		return 0;
	}
	if (op->request.operation == VB_RDMA_RECEIVE_REMOTE_MR) {
		start_taking(op, &rdma->remote_queue);
		return 0;
	}
	err = check(op);
	if (err)
		return err;
	if (rdma->err) {
		op_end(rdma->agent, op, rdma->err);
		return 0;
	}
	if (op->request.operation == VB_RDMA_SEND_MR)
		op->request.remote->references++;
	else if (op->request.operation == VB_RDMA_SEND_LOCAL_MR)
		op->request.slice.mr->references++;
	op_push(&rdma->ask_queue, op);
	connection_pump(rdma);
	return 0;
}

/* The connection failed before these were asked. */
void memory_unask(struct vb_rdma *rdma)
{
	struct op *op;

	while ((op = op_pop(&rdma->ask_queue)))
		unhold(op);
}

void memory_cancel(struct op *op)
{
	struct vb_rdma *rdma = op->rdma;
	bool was_to_be_asked;

	/* What was asked is answered; until then the tag is taken. */
	if (asker(rdma, op->tag) == op) {
		connection_probe(rdma);
		return;
	}
	was_to_be_asked = op_remove(&rdma->ask_queue, op);
	if (was_to_be_asked)
		unhold(op);
	op_remove(&rdma->local_queue, op);
	op_remove(&rdma->remote_queue, op);
	op_end(rdma->agent, op, ECANCELED);
	if (was_to_be_asked)
		connection_probe(rdma);
}

/* --- remote regions --- */

static void forget(struct vb_remote_mr *mr)
{
	if (mr->prev)
		mr->prev->next = mr->next;
	else if (mr->rdma)
		mr->rdma->remotes = mr->next;
	if (mr->next)
		mr->next->prev = mr->prev;
}

void remote_put(struct vb_remote_mr *mr)
{
	struct vb_rdma *rdma = mr->rdma;

	if (--mr->references)
		return;
	mr->agent->remotes--;
	forget(mr);
	if (!rdma || rdma->err) {
		free(mr);
		return;
	}
	mr->next = rdma->releases;
	rdma->releases = mr;
	connection_pump(rdma);
}

struct vb_remote_mr *vb_remote_mr_get(struct vb_remote_mr *mr)
{
	agent_lock(mr->agent);
	mr->references++;
	agent_unlock(mr->agent);
	return mr;
}

void vb_remote_mr_put(struct vb_remote_mr *mr)
{
	struct vb_rdma_agent *agent;

	if (!mr)
		return;
	agent = mr->agent;
	agent_lock(agent);
	remote_put(mr);
	agent_unlock(agent);
}

uint64_t vb_remote_mr_bytes(const struct vb_remote_mr *mr)
{
	return mr->record.length_bytes;
}

uint32_t vb_remote_mr_access(const struct vb_remote_mr *mr)
{
	return mr->record.access;
}

void vb_remote_mr_key(const struct vb_remote_mr *mr, struct vb_remote *key)
{
	*key = (struct vb_remote){mr->record.addr, mr->record.length_bytes, mr->record.rkey};
}

uint64_t vb_remote_mr_left_ns(const struct vb_remote_mr *mr)
{
	uint64_t now_ns;

	if (!mr->rdma || mr->rdma->err)
		return 0;
	if (mr->ends_ns == VB_FOREVER)
		return VB_FOREVER;
	now_ns = agent_now_ns(mr->agent);
	return now_ns < mr->ends_ns ? mr->ends_ns - now_ns : 0;
}
