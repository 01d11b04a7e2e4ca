/* SPDX-License-Identifier: MIT */
/*
 * Operations from their start to their result: starting, waiting and cancelling.
 */
#include "src/connect/rdma/agent.h"

#include <string.h>

/* --- starting --- */

static struct vb_rdma_agent *agent_of(const struct vb_rdma_request *request)
{
	if (request->operation == VB_RDMA_CONNECT)
		return request->agent;
	if (request->operation == VB_RDMA_ACCEPT)
		return request->listener ? request->listener->agent : NULL;
	return request->rdma ? request->rdma->agent : NULL;
}

static int start(struct op *op)
{
	enum vb_rdma_operation operation = op->request.operation;
	int err;

	if (operation <= VB_RDMA_ACCEPT)
		err = greet_start(op);
	else
		err = operation <= VB_RDMA_FETCH_ADD ? transfer_start(op) : memory_start(op);
	if (err) {
		op_free(op);
		return err;
	}
	if (op->rdma)
		connection_pump(op->rdma);
	if (op->agent->threaded)
		agent_wake(op->agent);
	return 0;
}

/* Starts an operation. Returns 0 with the agent locked, or errno. */
static int begin(const struct vb_rdma_request *request, struct op **begun)
{
	struct vb_rdma_agent *agent = agent_of(request);
	void *line = NULL;
	struct op *op;
	int err = 0;

	if (!agent) {
		fail(EINVAL, "rdma: no agent, listener or connection");
		return EINVAL;
	}
	if (request->operation == VB_RDMA_CONNECT)
		err = greet_open_line(request, &line);
	if (err)
		return err;
	agent_lock(agent);
	op = op_begin(agent, request);
	if (op) {
		op->line = line;
		*begun = op;
		err = start(op);
	} else {
		err = ENOBUFS;
		if (line)
			line_close(agent, line);
	}
	if (err)
		agent_unlock(agent);
	return err;
}

int vb_rdma_start(const struct vb_rdma_request *request, struct vb_rdma_op *op)
{
	struct op *begun;
	int err;

	if ((unsigned int)request->operation >= VB_RDMA_OPERATIONS)
		return fail(EINVAL, "rdma: there is no operation %d", (int)request->operation);
	if (!op && !request->callback)
		return fail(EINVAL, "rdma: neither handle nor callback");
	err = begin(request, &begun);
	if (err)
		return err;
	if (op)
		*op = (struct vb_rdma_op){begun->agent, begun->row.index, begun->row.generation};
	agent_unlock(begun->agent);
	return 0;
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

/* Drops the objects in a result that nobody takes. */
static void drop_result(struct op *op)
{
	if (op->result.err)
		return;
	if (op->result.rdma)
		connection_drop(op->result.rdma);
	op_drop_result(op);
}

static int taken(struct op *op, struct vb_rdma_result *result)
{
	struct vb_rdma *rdma = op->rdma;
	int err = op->result.err;

	if (result) {
		*result = op->result;
	} else {
		drop_result(op);
		/* The owner of a region learns that the region is released. */
		if (rdma)
			connection_pump(rdma);
	}
	if (err && rdma && rdma->err == err)
		fail(err, "%s", rdma->why);
	else if (err && op->why[0])
		fail(err, "%s", op->why);
	else if (err)
		fail(err, "rdma: %s", strerrordesc_np(err));
	op_free(op);
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
		err = !op->busy ? taken(op, result) : EAGAIN;
	agent_unlock(agent);
	return err;
}

/* Waits until the operation has ended. Returns 0, or the errno that ended the wait earlier. */
static int wait_for(const struct op *op, uint64_t timeout_ns)
{
	uint32_t generation = op->row.generation;
	uint64_t deadline_ns = 0;
	int err = 0;

	if (op->busy && timeout_ns)
		deadline_ns = cq_deadline_ns(op->agent->cq, timeout_ns);
	while (!err && op->busy && op->row.generation == generation)
		err = agent_wait(op->agent, deadline_ns);
	return err;
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
	struct op *op;
	int err;

	if (!handle.agent)
		return stale();
	agent_lock(handle.agent);
	op = op_of(handle);
	pthread_cleanup_push(agent_leave, handle.agent);
	err = op ? wait_for(op, timeout_ns) : 0;
	pthread_cleanup_pop(false);
	/* Meanwhile another thread may have taken the result. */
	if (op_of(handle) != op || !op)
		err = stale();
	else
		err = op->busy ? overdue(err, timeout_ns) : taken(op, result);
	agent_unlock(handle.agent);
	return err;
}

static void cancel_busy(struct op *op)
{
	enum vb_rdma_operation operation = op->request.operation;

	op->abandoned = true;
	if (operation <= VB_RDMA_ACCEPT)
		greet_cancel(op);
	else if (operation <= VB_RDMA_FETCH_ADD)
		transfer_cancel(op);
	else
		memory_cancel(op);
}

static void cancel(struct op *op)
{
	struct vb_rdma *rdma = op->rdma;

	if (op->busy) {
		cancel_busy(op);
	} else {
		op_leave(op);
		drop_result(op);
		op_free(op);
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
		cancel(op);
	agent_unlock(handle.agent);
	return op ? 0 : stale();
}

static void run_cancelled(void *arg)
{
	struct op *op = arg;
	struct vb_rdma_agent *agent = op->agent;

	cancel(op);
	agent_unlock(agent);
}

/* The wait of op_run(): if the thread is cancelled, the operation is, too. */
static int wait_or_cancel(struct op *op, uint64_t timeout_ns)
{
	int err;

	if (__libc_single_threaded)
		return wait_for(op, timeout_ns);
	pthread_cleanup_push(run_cancelled, op);
	err = wait_for(op, timeout_ns);
	pthread_cleanup_pop(false);
	return err;
}

struct vb_rdma_result op_run(const struct vb_rdma_request *request, uint64_t timeout_ns)
{
	struct vb_rdma_result result = {0};
	struct vb_rdma_agent *agent;
	struct op *op;

	result.err = begin(request, &op);
	if (result.err)
		return result;
	agent = op->agent;
	result.err = wait_or_cancel(op, timeout_ns);
	if (op->busy) {
		cancel(op);
		overdue(result.err, timeout_ns);
	} else {
		taken(op, &result);
	}
	agent_unlock(agent);
	return result;
}
