/* SPDX-License-Identifier: MIT */
/*
 * The blocking form of the operations, and closing a connection.
 */
#include "src/connect/rdma/agent.h"

/* A goodbye is waited for at most this long. */
#define GOODBYE_NS 1000000000ull

struct vb_rdma *vb_rdma_accept(struct vb_rdma_listener *listener, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_ACCEPT, .listener = listener};

	return op_run(&request, timeout_ns).rdma;
}

struct vb_rdma *vb_rdma_connect(struct vb_rdma_agent *agent, const char *address,
				uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {
		.operation = VB_RDMA_CONNECT, .agent = agent, .address = address};

	return op_run(&request, timeout_ns).rdma;
}

int vb_rdma_send(struct vb_rdma *rdma, const void *bytes, size_t length_bytes, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_SEND,
						.rdma = rdma,
						.from = bytes,
						.length_bytes = length_bytes};

	return op_run(&request, timeout_ns).err;
}

int vb_rdma_send_imm(struct vb_rdma *rdma, const void *bytes, size_t length_bytes, uint32_t imm,
		     uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_SEND,
						.rdma = rdma,
						.from = bytes,
						.length_bytes = length_bytes,
						.has_imm = true,
						.imm = imm};

	return op_run(&request, timeout_ns).err;
}

int vb_rdma_receive(struct vb_rdma *rdma, void *bytes, size_t room_bytes,
		    struct vb_rdma_message *message, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_RECEIVE,
						.rdma = rdma,
						.into = bytes,
						.length_bytes = room_bytes};
	struct vb_rdma_result result = op_run(&request, timeout_ns);

	if (message)
		*message = result.message;
	return result.err;
}

struct vb_remote_mr *vb_request_remote_mr(struct vb_rdma *rdma, size_t length_bytes,
					  size_t align_bytes, uint32_t access, uint64_t lease_ns,
					  uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_REQUEST_REMOTE_MR,
						.rdma = rdma,
						.length_bytes = length_bytes,
						.align_bytes = align_bytes,
						.access = access,
						.lease_ns = lease_ns};

	return op_run(&request, timeout_ns).remote;
}

int vb_send_mr(struct vb_rdma *rdma, struct vb_remote_mr *mr, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {
		.operation = VB_RDMA_SEND_MR, .rdma = rdma, .remote = mr};

	return op_run(&request, timeout_ns).err;
}

int vb_send_local_mr(struct vb_rdma *rdma, struct vb_local_mr *mr, uint32_t access,
		     uint64_t lease_ns, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_SEND_LOCAL_MR,
						.rdma = rdma,
						.slice = {.mr = mr},
						.access = access,
						.lease_ns = lease_ns};

	return op_run(&request, timeout_ns).err;
}

struct vb_local_mr *vb_receive_local_mr(struct vb_rdma *rdma, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_RECEIVE_LOCAL_MR,
						.rdma = rdma};

	return op_run(&request, timeout_ns).local;
}

struct vb_remote_mr *vb_receive_remote_mr(struct vb_rdma *rdma, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_RECEIVE_REMOTE_MR,
						.rdma = rdma};

	return op_run(&request, timeout_ns).remote;
}

int vb_rdma_write(struct vb_rdma *rdma, const struct vb_local_slice *from, struct vb_remote_mr *to,
		  uint64_t offset_bytes, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {VB_RDMA_WRITE, .rdma = rdma, .slice = *from,
						.remote = to, .offset_bytes = offset_bytes};

	return op_run(&request, timeout_ns).err;
}

int vb_rdma_read(struct vb_rdma *rdma, const struct vb_local_slice *into, struct vb_remote_mr *from,
		 uint64_t offset_bytes, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {VB_RDMA_READ, .rdma = rdma, .slice = *into,
						.remote = from, .offset_bytes = offset_bytes};

	return op_run(&request, timeout_ns).err;
}

static int run_atomic(const struct vb_rdma_request *request, uint64_t *before, uint64_t timeout_ns)
{
	struct vb_rdma_result result = op_run(request, timeout_ns);

	if (!result.err && before)
		*before = result.before;
	return result.err;
}

int vb_rdma_compare_swap(struct vb_rdma *rdma, struct vb_remote_mr *at, uint64_t offset_bytes,
			 uint64_t compare, uint64_t swap, uint64_t *before, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {
		VB_RDMA_COMPARE_SWAP,	      .rdma = rdma,	      .remote = at,
		.offset_bytes = offset_bytes, .compare_add = compare, .swap = swap};

	return run_atomic(&request, before, timeout_ns);
}

int vb_rdma_fetch_add(struct vb_rdma *rdma, struct vb_remote_mr *at, uint64_t offset_bytes,
		      uint64_t add, uint64_t *before, uint64_t timeout_ns)
{
	const struct vb_rdma_request request = {VB_RDMA_FETCH_ADD, .rdma = rdma, .remote = at,
						.offset_bytes = offset_bytes, .compare_add = add};

	return run_atomic(&request, before, timeout_ns);
}

static void say_goodbye(struct vb_rdma *rdma)
{
	struct vb_rdma_agent *agent = rdma->agent;
	uint64_t deadline_ns = cq_deadline_ns(agent->cq, GOODBYE_NS);

	rdma->closing = true;
	if (connection_can_say(rdma))
		connection_note(rdma, MESSAGE_BYE, 0);
	while (connection_is_sending(rdma) && cq_left_ns(agent->cq, deadline_ns))
		if (agent_wait(agent, deadline_ns))
			break;
}

static void close_cancelled(void *arg)
{
	struct vb_rdma *rdma = arg;
	struct vb_rdma_agent *agent = rdma->agent;

	connection_drop(rdma);
	agent_unlock(agent);
}

int vb_rdma_close(struct vb_rdma *rdma)
{
	struct vb_rdma_agent *agent;

	if (!rdma)
		return 0;
	agent = rdma->agent;
	agent_lock(agent);
	pthread_cleanup_push(close_cancelled, rdma);
	if (rdma->stage == STAGE_READY && !rdma->err)
		say_goodbye(rdma);
	pthread_cleanup_pop(false);
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
