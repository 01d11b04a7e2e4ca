/* SPDX-License-Identifier: MIT */
/*
 * Two agents in a fresh world, connected without sockets and driven in turns.
 */
#ifndef TEST_RDMA_H
#define TEST_RDMA_H

#include "test/connect/connect.h"

#include <verbena/rdma.h>

/* More turns than any operation of these tests needs. */
#define TURNS_MAX 2000000

struct ends {
	struct vb_rdma_hall *hall;
	struct vb_rdma_agent *agent[2];
	struct vb_rdma_listener *listener; /* of agent 1 */
	struct vb_rdma *rdma[2];
};

static inline struct vb_rdma_agent *agent_on(unsigned int device, struct vb_rdma_hall *hall,
					     const struct vb_rdma_options *model)
{
	struct vb_rdma_options options;
	struct vb_rdma_agent *agent;
	char name[16];

	snprintf(name, sizeof(name), "sim%u", device);
	if (model)
		options = *model;
	else
		vb_rdma_options_init(&options);
	options.backend = "sim";
	options.device = name;
	if (hall) {
		options.exchange = vb_rdma_exchange_local();
		options.exchange_arg = hall;
	}
	agent = vb_rdma_agent_open(&options);
	HAVE(agent);
	return agent;
}

static inline void ends_agents(struct ends *ends, const struct vb_rdma_options *a,
			       const struct vb_rdma_options *b)
{
	*ends = (struct ends){.hall = vb_rdma_hall_open()};
	ends->agent[0] = agent_on(0, ends->hall, a);
	ends->agent[1] = agent_on(1, ends->hall, b);
	ends->listener = vb_rdma_listen(ends->agent[1], "server");
	HAVE(ends->listener);
}

/* Drives each agent once. */
static inline void turn(const struct ends *ends)
{
	for (int i = 0; i < 2; i++)
		if (ends->agent[i])
			OK(vb_rdma_progress(ends->agent[i], 0));
}

/* Drives both ends until the operation has ended, and takes its result. */
static inline int finish(const struct ends *ends, struct vb_rdma_op op,
			 struct vb_rdma_result *result)
{
	int err = EAGAIN;

	for (int i = 0; i < TURNS_MAX && err == EAGAIN; i++) {
		turn(ends);
		err = vb_rdma_poll(op, result);
	}
	TEST_ASSERT_MESSAGE(err != EAGAIN, "it does not end");
	return err;
}

static inline struct vb_rdma_op start(const struct vb_rdma_request *request)
{
	struct vb_rdma_op op;

	OK(vb_rdma_start(request, &op));
	return op;
}

static inline struct vb_rdma *join_agents(const struct ends *ends, struct vb_rdma **server)
{
	const struct vb_rdma_request connect = {
		.operation = VB_RDMA_CONNECT, .agent = ends->agent[0], .address = "server"};
	const struct vb_rdma_request accept = {.operation = VB_RDMA_ACCEPT,
					       .listener = ends->listener};
	struct vb_rdma_op connecting = start(&connect), accepting = start(&accept);
	struct vb_rdma_result client_side, server_side;

	OK(finish(ends, connecting, &client_side));
	OK(finish(ends, accepting, &server_side));
	*server = server_side.rdma;
	return client_side.rdma;
}

static inline void ends_open(struct ends *ends, const struct vb_rdma_options *a,
			     const struct vb_rdma_options *b)
{
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	ends_agents(ends, a, b);
	ends->rdma[0] = join_agents(ends, &ends->rdma[1]);
}

static inline void ends_close(struct ends *ends)
{
	vb_fault_clear(NULL);
	OK(vb_rdma_close(ends->rdma[0]));
	OK(vb_rdma_close(ends->rdma[1]));
	OK(vb_rdma_listener_close(ends->listener));
	OK(vb_rdma_agent_close(ends->agent[0]));
	OK(vb_rdma_agent_close(ends->agent[1]));
	vb_rdma_hall_close(ends->hall);
	assert_nothing_left();
}

/* Requests a region; drives both agents meanwhile. */
static inline struct vb_remote_mr *request_mr(const struct ends *ends, int side, size_t length,
					      uint32_t access, uint64_t lease_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_REQUEST_REMOTE_MR,
						.rdma = ends->rdma[side],
						.length_bytes = length,
						.access = access,
						.lease_ns = lease_ns};
	struct vb_rdma_result result;

	OK(finish(ends, start(&request), &result));
	return result.remote;
}

static inline int run(const struct ends *ends, const struct vb_rdma_request *request,
		      struct vb_rdma_result *result)
{
	struct vb_rdma_op op;
	int err = vb_rdma_start(request, &op);

	return err ? err : finish(ends, op, result);
}

static inline void fill(uint8_t *bytes, size_t length, uint64_t seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)next_random(&seed);
}

#endif
