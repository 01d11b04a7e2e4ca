/* SPDX-License-Identifier: MIT */
/*
 * Operations from their start to their result: starting, waiting and cancelling.
 */
#include "src/connect/rdma/agent.h"

#include <string.h>

/* --- starting --- */

static int (*const starts[VB_RDMA_OPERATIONS])(struct op *op) = {
	[VB_RDMA_CONNECT] = greet_start,
	[VB_RDMA_ACCEPT] = greet_start,
	[VB_RDMA_SEND] = transfer_start,
	[VB_RDMA_RECEIVE] = transfer_start,
	[VB_RDMA_WRITE] = transfer_start,
	[VB_RDMA_READ] = transfer_start,
	[VB_RDMA_COMPARE_SWAP] = transfer_start,
	[VB_RDMA_FETCH_ADD] = transfer_start,
	[VB_RDMA_REQUEST_REMOTE_MR] = memory_start,
	[VB_RDMA_SEND_MR] = memory_start,
	[VB_RDMA_SEND_LOCAL_MR] = memory_start,
	[VB_RDMA_RECEIVE_LOCAL_MR] = memory_start,
	[VB_RDMA_RECEIVE_REMOTE_MR] = memory_start,
};

static struct vb_rdma_agent *agent_of(const struct vb_rdma_request *request)
{
	if (request->operation == VB_RDMA_CONNECT)
		return request->agent;
	if (request->operation == VB_RDMA_ACCEPT)
		return request->listener ? request->listener->agent : NULL;
	return request->rdma ? request->rdma->agent : NULL;
}

static struct vb_rdma_op handle_of(struct vb_rdma_agent *agent, const struct op *op)
{
	return (struct vb_rdma_op){agent, handle_index(&agent->ops, op), op->row.generation};
}

static int start(struct vb_rdma_agent *agent, struct op *op)
{
	int err = starts[op->request.operation](op);

	if (err) {
		op_free(agent, op);
		return err;
	}
	if (op->rdma)
		connection_pump(op->rdma);
	if (agent->threaded)
		agent_wake(agent);
	return 0;
}

/* Locks the agent and takes an operation for the request. NULL with errno. */
static struct op *lock_and_begin(struct vb_rdma_agent *agent, const struct vb_rdma_request *request)
{
	bool connects = request->operation == VB_RDMA_CONNECT;
	void *line = NULL;
	struct op *op;
	int err = connects ? greet_open_line(request, &line) : 0;

	agent_lock(agent);
	if (err) {
		errno = err;
		return NULL;
	}
	op = op_begin(agent, request->operation, request->rdma);
	if (op) {
		op->request = *request;
		op->line = line;
	} else if (connects) {
		line_close(agent, line);
		errno = ENOBUFS;
	}
	return op;
}

int vb_rdma_start(const struct vb_rdma_request *request, struct vb_rdma_op *op)
{
	struct vb_rdma_agent *agent;
	struct op *begun;
	int err = 0;

	if ((unsigned int)request->operation >= VB_RDMA_OPERATIONS)
		return fail(EINVAL, "rdma: there is no operation %d", (int)request->operation);
	agent = agent_of(request);
	if (!agent || (!op && !request->callback))
		return fail(EINVAL, "rdma: %s",
			    agent ? "neither handle nor callback"
				  : "no agent, listener or connection");
	begun = lock_and_begin(agent, request);
	if (!begun)
		err = errno;
	if (begun && op)
		*op = handle_of(agent, begun);
	if (begun)
		err = start(agent, begun);
	agent_unlock(agent);
	return err;
}

/* --- ending --- */

static struct op *op_of(struct vb_rdma_op handle)
{
	struct op *op = handle_find(&handle.agent->ops, handle.slot, handle.generation);

	if (!op || op->abandoned)
		return NULL;
	return op->request.callback && !op->busy ? NULL : op;
}

static int stale(void)
{
	return fail(ESTALE, "rdma: the handle is stale: its result was taken");
}

static int taken(struct vb_rdma_agent *agent, struct op *op, struct vb_rdma_result *result)
{
	struct vb_rdma *rdma = op->rdma;
	int err = op->result.err;

	if (result)
		*result = op->result;
	if (err && rdma && rdma->err == err)
		fail(err, "%s", rdma->why);
	else if (err && op->why[0])
		fail(err, "%s", op->why);
	else if (err)
		fail(err, "rdma: %s", strerrordesc_np(err));
	op_free(agent, op);
	return err;
}

int vb_rdma_poll(struct vb_rdma_op handle, struct vb_rdma_result *result)
{
	struct vb_rdma_agent *agent = handle.agent;
	struct op *op;
	int err;

	if (!agent)
		return stale();
	agent_lock(agent);
	op = op_of(handle);
	if (op && op->busy && !agent->threaded) {
		agent_drive(agent, 0);
		op = op_of(handle);
	}
	if (!op)
		err = stale();
	else
		err = !op->busy ? taken(agent, op, result) : EAGAIN;
	agent_unlock(agent);
	return err;
}

static int wait_for(struct vb_rdma_op handle, uint64_t timeout_ns, struct vb_rdma_result *result)
{
	struct vb_rdma_agent *agent = handle.agent;
	struct op *op = op_of(handle);
	uint64_t deadline_ns = 0;
	int err = 0;

	if (op && op->busy && timeout_ns)
		deadline_ns = cq_deadline_ns(agent->cq, timeout_ns);
	while (op && op->busy && !err) {
		err = agent_wait(agent, deadline_ns);
		op = op_of(handle);
	}
	if (!op)
		return stale();
	return !op->busy ? taken(agent, op, result) : err;
}

/* Sets the sentence of a wait that ended before its operation. */
static int overdue(int err, uint64_t timeout_ns)
{
	if (err == ETIMEDOUT)
		return fail(err, "rdma: not within %llu ns", (unsigned long long)timeout_ns);
	return fail(err, "rdma: %s",
		    err == EDEADLK ? "nothing can come that would end the wait"
				   : strerrordesc_np(err));
}

int vb_rdma_wait(struct vb_rdma_op handle, uint64_t timeout_ns, struct vb_rdma_result *result)
{
	int err;

	if (!handle.agent)
		return stale();
	agent_lock(handle.agent);
	err = wait_for(handle, timeout_ns, result);
	if (err && op_of(handle))
		overdue(err, timeout_ns);
	agent_unlock(handle.agent);
	return err;
}

static void cancel(struct vb_rdma_agent *agent, struct op *op)
{
	struct vb_rdma *rdma = op->rdma;

	if (!op->busy) {
		op_remove(&agent->callbacks, op);
		if (op->result.rdma && !op->result.err)
			connection_drop(op->result.rdma);
		op_drop_result(op);
		op_free(agent, op);
	} else {
		op->abandoned = true;
		if (op->request.operation <= VB_RDMA_ACCEPT)
			greet_cancel(op);
		else if (op->request.operation <= VB_RDMA_FETCH_ADD)
			transfer_cancel(op);
		else
			memory_cancel(op);
	}
	if (rdma)
		connection_pump(rdma);
}

int vb_rdma_cancel(struct vb_rdma_op handle)
{
	struct op *op;

	if (!handle.agent)
		return stale();
	agent_lock(handle.agent);
	op = op_of(handle);
	if (op)
		cancel(handle.agent, op);
	agent_unlock(handle.agent);
	return op ? 0 : stale();
}

int op_run(struct vb_rdma_agent *agent, struct op *op, uint64_t timeout_ns,
	   struct vb_rdma_result *result)
{
	const struct vb_rdma_op handle = handle_of(agent, op);
	int err = start(agent, op);

	if (err)
		return err;
	err = wait_for(handle, timeout_ns, result);
	if (!op_of(handle))
		return err;
	cancel(agent, op);
	return overdue(err, timeout_ns);
}

int op_run_request(const struct vb_rdma_request *request, uint64_t timeout_ns,
		   struct vb_rdma_result *result)
{
	struct vb_rdma_agent *agent = agent_of(request);
	struct op *op;
	int err;

	if (!agent)
		return fail(EINVAL, "rdma: no agent, listener or connection");
	op = lock_and_begin(agent, request);
	err = op ? op_run(agent, op, timeout_ns, result) : errno;
	agent_unlock(agent);
	return err;
}
