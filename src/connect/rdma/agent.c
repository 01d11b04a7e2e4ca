/* SPDX-License-Identifier: MIT */
/*
 * An agent from its options to its end: a device with one CQ for all of its connections.
 */
#include "src/connect/rdma/agent.h"

#include "src/connect/deadline.h"

#include <string.h>
#include <unistd.h>

#define CACHE_LINE_BYTES 64u

/* --- options --- */

void vb_rdma_options_init(struct vb_rdma_options *options)
{
	*options = (struct vb_rdma_options){
		.gid_index = VB_GID_INDEX_ANY,
		.message_bytes = 4096,
		.longest_bytes = 1ull << 30,
		.slots = 32,
		.connections = 16,
		.operations = 256,
		.pool_bytes = 1ull << 22,
		.peer_access = VB_MR_ALL,
		.peer_bytes = 1ull << 26,
		.peer_lease_ns = VB_FOREVER,
		.handshake_ns = 5 * NS_PER_S,
		.ack_timeout = 14,
		.retry_cnt = 7,
		.exchange = vb_rdma_exchange_tcp(),
	};
}

static int check_options(const struct vb_rdma_options *options)
{
	const struct {
		const char *name;
		uint64_t value, min, max;
	} ranges[] = {
		{"message_bytes", options->message_bytes, MESSAGE_MIN_BYTES, MESSAGE_MAX_BYTES},
		{"longest_bytes", options->longest_bytes, 0, UINT64_MAX / 2},
		{"slots", options->slots, 2, SLOTS_MAX},
		{"connections", options->connections, 1, 65536},
		{"operations", options->operations, 1, 1u << 20},
		{"pool_bytes", options->pool_bytes, 4096, SIZE_MAX / 4},
		{"peer_access", options->peer_access, 0, VB_MR_ALL},
	};

	for (size_t i = 0; i < COUNT(ranges); i++)
		if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max)
			return fail(ERANGE, "agent: %s %llu is not in %llu to %llu", ranges[i].name,
				    (unsigned long long)ranges[i].value,
				    (unsigned long long)ranges[i].min,
				    (unsigned long long)ranges[i].max);
	if (!options->exchange)
		return fail(EINVAL, "agent: options.exchange is NULL");
	return 0;
}

/* --- making --- */

static int make_verbs(struct vb_rdma_agent *agent)
{
	uint64_t each = agent->options.slots + CONTROL_RECEIVES + SENDS + FLIGHTS;
	uint64_t cqe = each * agent->options.connections;

	agent->device = vb_device_open_named(agent->options.backend, agent->options.device,
					     agent->options.port_num, agent->options.gid_index);
	if (!agent->device)
		return errno;
	agent->virtual_clock = virtual_clock_of(agent->device);
	if (agent->virtual_clock && agent->options.thread)
		return fail(ENOTSUP, "agent: options.thread needs the real clock; this device has "
				     "a virtual clock");
	if (cqe > (uint64_t)agent->device->attr.max_cqe)
		return fail(EINVAL,
			    "agent: %u connections need %llu CQ entries each; the CQ holds %d",
			    agent->options.connections, (unsigned long long)each,
			    agent->device->attr.max_cqe);
	agent->pd = vb_alloc_pd(agent->device->context);
	if (!agent->pd)
		return fail_because(errno, "agent");
	agent->cq = vb_cq_open(agent->device, (int)cqe, NULL);
	return agent->cq ? 0 : errno;
}

static int make_tables(struct vb_rdma_agent *agent)
{
	const struct vb_rdma_options *options = &agent->options;

	if (handle_table_resize(&agent->connections, options->connections,
				sizeof(struct handle_owner)) ||
	    handle_table_resize(&agent->ops, options->operations, sizeof(struct op)))
		return fail(ENOMEM, "agent: no memory for %u connections and %u operations",
			    options->connections, options->operations);
	return 0;
}

static void agent_free(struct vb_rdma_agent *agent)
{
	pool_close(&agent->pool);
	vb_cq_close(agent->cq);
	if (agent->pd)
		vb_dealloc_pd(agent->pd);
	if (agent->device)
		vb_device_close(agent->device);
	if (agent->epoll_fd >= 0)
		close(agent->epoll_fd);
	if (agent->wake_fd >= 0)
		close(agent->wake_fd);
	pthread_cond_destroy(&agent->ended);
	pthread_mutex_destroy(&agent->lock);
	free(agent->connections.rows);
	free(agent->ops.rows);
	free(agent);
}

static void *agent_thread(void *arg)
{
	struct vb_rdma_agent *agent = arg;

	agent_lock(agent);
	while (!agent->stopping)
		agent_drive(agent, VB_FOREVER);
	agent_unlock(agent);
	return NULL;
}

/* --- the public functions --- */

static int agent_make(struct vb_rdma_agent *agent)
{
	int err = check_options(&agent->options);

	if (!err)
		err = make_verbs(agent);
	if (!err)
		err = agent_make_waiting(agent);
	if (!err)
		err = make_tables(agent);
	if (err || !agent->options.thread)
		return err;
	agent->threaded = true;
	err = pthread_create(&agent->thread, NULL, agent_thread, agent);
	return err ? fail(err, "agent: its thread: %s", strerrordesc_np(err)) : 0;
}

struct vb_rdma_agent *vb_rdma_agent_open(const struct vb_rdma_options *options)
{
	struct vb_rdma_agent *agent = object_new(sizeof(*agent), "agent");
	int err;

	if (!agent)
		return NULL;
	agent->options = *options;
	/* The old values of atomics, behind the buffers, are aligned to 8 bytes. */
	agent->options.message_bytes &= ~7u;
	/* An odd number of cache lines, so that buffers do not all begin in the same cache sets. */
	agent->stride_bytes =
		(agent->options.message_bytes / CACHE_LINE_BYTES | 1) * CACHE_LINE_BYTES;
	if (agent->stride_bytes < agent->options.message_bytes)
		agent->stride_bytes += 2 * CACHE_LINE_BYTES;
	agent->epoll_fd = agent->wake_fd = -1;
	agent->soonest_ns = VB_FOREVER;
	agent->pool.piece_bytes = options->pool_bytes;
	err = agent_make(agent);
	if (!err)
		return agent;
	agent_free(agent);
	errno = err;
	return NULL;
}

int vb_rdma_agent_close(struct vb_rdma_agent *agent)
{
	uint32_t left;
	int state;

	if (!agent)
		return 0;
	agent_lock(agent);
	left = agent->connections.taken + agent->locals + agent->remotes + !!agent->listeners;
	agent->stopping = !left;
	agent_unlock(agent);
	if (left)
		return fail(EBUSY, "agent: it has %u connections, %u local and %u remote regions%s",
			    agent->connections.taken, agent->locals, agent->remotes,
			    agent->listeners ? ", and listeners" : "");
	/* A thread that is cancelled in pthread_join(3) would leave half an agent. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (agent->threaded) {
		agent_wake(agent);
		pthread_join(agent->thread, NULL);
	}
	agent_free(agent);
	pthread_setcancelstate(state, NULL);
	return 0;
}

struct vb_device *vb_rdma_agent_device(const struct vb_rdma_agent *agent)
{
	return agent->device;
}
