/* SPDX-License-Identifier: MIT */
/*
 * The table of an agent's operations, and the queues that they wait in.
 */
#include "src/connect/rdma/agent.h"

#include <string.h>

void op_push(struct op_queue *queue, struct op *op)
{
	op->queue = queue;
	op->next = NULL;
	if (queue->last)
		queue->last->next = op;
	else
		queue->first = op;
	queue->last = op;
	queue->count++;
}

void op_leave(struct op *op)
{
	struct op_queue *queue = op->queue;
	struct op *before = NULL;

	if (!queue)
		return;
	if (queue->first == op) {
		queue->first = op->next;
	} else {
		for (before = queue->first; before->next != op; before = before->next)
			;
		before->next = op->next;
	}
	if (queue->last == op)
		queue->last = before;
	queue->count--;
	op->queue = NULL;
}

struct op *op_begin(struct vb_rdma_agent *agent, const struct vb_rdma_request *request)
{
	struct op *op = handle_take(&agent->ops);

	if (!op) {
		fail(ENOBUFS, "agent: %u operations are under way; options.operations is the limit",
		     agent->ops.count);
		return NULL;
	}
	op->agent = agent;
	op->request = *request;
	op->rdma = request->operation > VB_RDMA_ACCEPT ? request->rdma : NULL;
	op->busy = true;
	op->abandoned = op->all_posted = op->holds = false;
	op->in_flight = 0;
	op->moved_bytes = 0;
	op->why[0] = 0;
	memset(&op->result, 0, sizeof(op->result));
	return op;
}

void op_free(struct op *op)
{
	op->busy = false;
	handle_give_back(&op->agent->ops, &op->row);
}

void op_drop_result(struct op *op)
{
	if (op->result.err)
		return;
	local_put(op->result.local);
	remote_put(op->result.remote);
}

void op_end(struct op *op, int err)
{
	op_leave(op);
	op_unhold(op);
	op->result.err = err;
	op->busy = false;
	if (op->abandoned) {
		op_drop_result(op);
		op_free(op);
	} else if (op->request.callback) {
		op_push(&op->agent->callbacks, op);
	} else {
		agent_notify(op->agent);
	}
}

void op_hold(struct op *op)
{
	op->holds = true;
	if (op->request.slice.mr)
		op->request.slice.mr->references++;
	if (op->request.remote)
		op->request.remote->references++;
}

void op_unhold(struct op *op)
{
	if (!op->holds)
		return;
	op->holds = false;
	local_put(op->request.slice.mr);
	remote_put(op->request.remote);
}

/* Calls back without the lock. */
static void call_back(struct vb_rdma_agent *agent, vb_rdma_callback *callback, void *arg,
		      const struct vb_rdma_result *result)
{
	agent_unlock(agent);
	pthread_cleanup_push(agent_relock, agent);
	callback(arg, result);
	pthread_cleanup_pop(true);
}

void ops_deliver(struct vb_rdma_agent *agent)
{
	struct op *op;

	while ((op = agent->callbacks.first)) {
		const struct vb_rdma_result result = op->result;
		vb_rdma_callback *callback = op->request.callback;
		void *arg = op->request.arg;

		op_leave(op);
		op_free(op);
		call_back(agent, callback, arg, &result);
	}
}
