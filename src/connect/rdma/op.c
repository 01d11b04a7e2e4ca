/* SPDX-License-Identifier: MIT */
/*
 * Operations: a table of the agent, handles with a generation, waiting and taking back.
 */
#include "src/connect/rdma/agent.h"

#include "src/base/failure.h"
#include "src/connect/cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NS_PER_S     1000000000ull

/* --- queues --- */

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
	struct op *before = NULL;

	for (struct op *at = queue->first; at; before = at, at = at->next) {
		if (at != op)
			continue;
		if (before)
			before->next = at->next;
		else
			queue->first = at->next;
		if (queue->last == at)
			queue->last = before;
		return true;
	}
	return false;
}

/* --- the table --- */

int ops_make(struct vb_rdma_agent *agent)
{
	uint32_t count = agent->options.operations;

	agent->ops = calloc(count, sizeof(*agent->ops));
	if (!agent->ops)
		return fail(ENOMEM, "agent: no memory for %u operations", count);
	for (uint32_t i = count; i-- > 0;) {
		agent->ops[i].next = agent->free_ops;
		agent->free_ops = &agent->ops[i];
	}
	return 0;
}

struct op *op_begin(struct vb_rdma_agent *agent, enum vb_rdma_operation operation,
		    struct vb_rdma *rdma)
{
	struct op *op = agent->free_ops;

	if (!op) {
		fail(ENOBUFS, "agent: %u operations are under way", agent->options.operations);
		return NULL;
	}
	agent->free_ops = op->next;
	op->request.operation = operation;
	op->request.callback = NULL;
	op->rdma = rdma;
	op->state = OP_BUSY;
	op->abandoned = op->all_posted = false;
	op->generation++;
	op->in_flight = 0;
	op->moved_bytes = 0;
	op->why[0] = 0;
	memset(&op->result, 0, sizeof(op->result));
	return op;
}

void op_free(struct vb_rdma_agent *agent, struct op *op)
{
	op->state = OP_FREE;
	op->next = agent->free_ops;
	agent->free_ops = op;
}

/* What came too late for the one who asked. */
static void let_go(struct op *op)
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
	op->state = OP_ENDED;
	if (op->abandoned) {
		let_go(op);
		op_free(agent, op);
	} else if (op->request.callback) {
		op_push(&agent->callbacks, op);
	} else if (agent->threaded) {
		pthread_cond_broadcast(&agent->ended);
	}
}

void ops_deliver(struct vb_rdma_agent *agent)
{
	struct vb_rdma_result result;
	vb_rdma_callback *callback;
	struct op *op;
	void *arg;

	while ((op = op_pop(&agent->callbacks))) {
		result = op->result;
		callback = op->request.callback;
		arg = op->request.arg;
		op_free(agent, op);
		agent_unlock(agent);
		callback(arg, &result);
		agent_lock(agent);
	}
}

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
	return (struct vb_rdma_op){agent, (uint32_t)(op - agent->ops), op->generation};
}

static int start(struct vb_rdma_agent *agent, struct op *op)
{
	int err = starts[op->request.operation](op);

	if (err)
		op_free(agent, op);
	else if (agent->threaded)
		agent_wake(agent);
	return err;
}

/* Takes the lock, and begins an operation that is not started yet; NULL with errno. */
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
		return fail(EINVAL, "rdma: operation %d", (int)request->operation);
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
	struct op *op;

	if (!handle.agent || handle.slot >= handle.agent->options.operations)
		return NULL;
	op = &handle.agent->ops[handle.slot];
	if (op->generation != handle.generation || op->state == OP_FREE || op->abandoned)
		return NULL;
	return op->request.callback && op->state == OP_ENDED ? NULL : op;
}

static int stale(void)
{
	return fail(ESTALE, "rdma: a handle whose result was taken");
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
	if (op && op->state != OP_ENDED && !agent->threaded) {
		agent_wait(agent, 0);
		op = op_of(handle);
	}
	if (!op)
		err = stale();
	else
		err = op->state == OP_ENDED ? taken(agent, op, result) : EAGAIN;
	agent_unlock(agent);
	return err;
}

/* With an agent thread: until it says so. */
int ops_wait_for_thread(struct vb_rdma_agent *agent, uint64_t deadline_ns)
{
	struct timespec limit = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
				 .tv_nsec = (long)(deadline_ns % NS_PER_S)};

	if (deadline_ns == VB_FOREVER)
		return pthread_cond_wait(&agent->ended, &agent->lock);
	if (pthread_cond_timedwait(&agent->ended, &agent->lock, &limit))
		return fail(ETIMEDOUT, "rdma: not within the time");
	return 0;
}

static int wait_once(struct vb_rdma_agent *agent, uint64_t deadline_ns)
{
	return agent->threaded ? ops_wait_for_thread(agent, deadline_ns)
			       : agent_wait(agent, deadline_ns);
}

static int wait_for(struct vb_rdma_op handle, uint64_t timeout_ns, struct vb_rdma_result *result)
{
	struct vb_rdma_agent *agent = handle.agent;
	struct op *op = op_of(handle);
	uint64_t deadline_ns = 0;
	int err = 0;

	if (op && op->state != OP_ENDED && timeout_ns)
		deadline_ns = cq_deadline_ns(agent->cq, timeout_ns);
	while (op && op->state != OP_ENDED && !err) {
		err = wait_once(agent, deadline_ns);
		op = op_of(handle);
	}
	if (!op)
		return stale();
	return op->state == OP_ENDED ? taken(agent, op, result) : err;
}

/* The operation goes on, or is taken back; the sentence is of the wait. */
static int overdue(int err, uint64_t timeout_ns)
{
	if (err == ETIMEDOUT)
		return fail(err, "rdma: not within %llu ns", (unsigned long long)timeout_ns);
	return fail(err, "rdma: %s",
		    err == EDEADLK ? "nothing can come that would end it" : strerrordesc_np(err));
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
	if (op->state == OP_ENDED) {
		op_remove(&agent->callbacks, op);
		if (op->result.rdma && !op->result.err)
			connection_drop(op->result.rdma);
		let_go(op);
		op_free(agent, op);
		return;
	}
	op->abandoned = true;
	if (op->request.operation <= VB_RDMA_ACCEPT)
		greet_cancel(op);
	else if (op->request.operation <= VB_RDMA_FETCH_ADD)
		transfer_cancel(op);
	else
		memory_cancel(op);
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

/* Nobody else has the handle, so it need not be looked up: this is on the path of each message. */
int op_run(struct vb_rdma_agent *agent, struct op *op, uint64_t timeout_ns,
	   struct vb_rdma_result *result)
{
	uint64_t deadline_ns = 0;
	int err = start(agent, op);

	if (err)
		return err;
	if (op->state != OP_ENDED && timeout_ns)
		deadline_ns = cq_deadline_ns(agent->cq, timeout_ns);
	while (op->state != OP_ENDED && !err)
		err = wait_once(agent, deadline_ns);
	if (op->state == OP_ENDED)
		return taken(agent, op, result);
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
