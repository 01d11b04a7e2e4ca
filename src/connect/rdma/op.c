/* SPDX-License-Identifier: MIT */
/*
 * The table of an agent's operations, and the queues that they wait in.
 */
#include "src/connect/rdma/agent.h"

#include <string.h>

void op_push(struct op_queue *queue, struct op *op)
{
	op->next = NULL;
	if (queue->last)
		queue->last->next = op;
	else
		queue->first = op;
	queue->last = op;
}

struct op *op_pop(struct op_queue *queue)
{
	struct op *op = queue->first;

	if (!op)
		return NULL;
	queue->first = op->next;
	if (!queue->first)
		queue->last = NULL;
	return op;
}

bool op_remove(struct op_queue *queue, const struct op *op)
{
	struct op *before = NULL, *at = queue->first;

	while (at && at != op) {
		before = at;
		at = at->next;
	}
	if (!at)
		return false;
	if (before)
		before->next = at->next;
	else
		queue->first = at->next;
	if (queue->last == at)
		queue->last = before;
	return true;
}

struct op *op_begin(struct vb_rdma_agent *agent, enum vb_rdma_operation operation,
		    struct vb_rdma *rdma)
{
	struct op *op = handle_take(&agent->ops);

	if (!op) {
		fail(ENOBUFS, "agent: %u operations are under way; options.operations is the limit",
		     agent->ops.count);
		return NULL;
	}
	op->request.operation = operation;
	op->request.callback = NULL;
	op->rdma = rdma;
	op->busy = true;
	op->abandoned = op->all_posted = false;
	op->in_flight = 0;
	op->moved_bytes = 0;
	op->why[0] = 0;
	memset(&op->result, 0, sizeof(op->result));
	return op;
}

void op_free(struct vb_rdma_agent *agent, struct op *op)
{
	op->busy = false;
	handle_give_back(&agent->ops, op);
}

void op_drop_result(struct op *op)
{
	if (op->result.err)
		return;
	if (op->result.local)
		local_put(op->result.local);
	if (op->result.remote)
		remote_put(op->result.remote);
}

void op_end(struct vb_rdma_agent *agent, struct op *op, int err)
{
	op->result.err = err;
	op->busy = false;
	if (op->abandoned) {
		op_drop_result(op);
		op_free(agent, op);
	} else if (op->request.callback) {
		op_push(&agent->callbacks, op);
	} else {
		agent_notify(agent);
	}
}

void op_hold(struct op *op)
{
	if (op->request.slice.mr)
		op->request.slice.mr->references++;
	if (op->request.remote)
		op->request.remote->references++;
}

void op_unhold(struct op *op)
{
	if (op->request.slice.mr)
		local_put(op->request.slice.mr);
	if (op->request.remote)
		remote_put(op->request.remote);
}

void ops_deliver(struct vb_rdma_agent *agent)
{
	struct op *op;

	while ((op = op_pop(&agent->callbacks))) {
		const struct vb_rdma_result result = op->result;
		vb_rdma_callback *callback = op->request.callback;
		void *arg = op->request.arg;

		op_free(agent, op);
		agent_unlock(agent);
		callback(arg, &result);
		agent_lock(agent);
	}
}
