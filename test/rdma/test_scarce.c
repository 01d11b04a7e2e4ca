/* SPDX-License-Identifier: MIT */
/* A listening end whose allocations fail: the peer learns of it, and the next peer is served. */
#include "test/rdma/rdma.h"

#include "test/support/scarce.h"

#include <limits.h>

void setUp(void)
{
}

void tearDown(void)
{
	scarce.on = false;
}

/* Drives both ends, and only agent 1 without memory, until the operation has ended. */
static int finish_scarce(const struct ends *ends, struct vb_rdma_op op,
			 struct vb_rdma_result *result)
{
	int err = EAGAIN;
	bool ran_out = false;

	for (int i = 0; i < TURNS_MAX && err == EAGAIN; i++) {
		OK(vb_rdma_progress(ends->agent[0], 0));
		scarce.on = !ran_out;
		OK(vb_rdma_progress(ends->agent[1], 0));
		ran_out = scarce.once && scarce.failures;
		scarce.on = false;
		err = vb_rdma_poll(op, result);
	}
	return err;
}

/* Connects once while agent 1 can make `good` allocations. Returns false if it needed no more. */
static bool refuses(struct ends *ends, const char *address, long good, bool once)
{
	const struct vb_rdma_request connect = {
		.operation = VB_RDMA_CONNECT, .agent = ends->agent[0], .address = address};
	const struct vb_rdma_request accept = {.operation = VB_RDMA_ACCEPT,
					       .listener = ends->listener};
	struct vb_rdma_result client, server;
	struct vb_rdma_op op = start(&connect);
	int err;

	scarce_after(good, once);
	err = finish_scarce(ends, op, &client);
	if (!err) {
		OK(run(ends, &accept, &server));
		OK(vb_rdma_close(client.rdma));
		OK(vb_rdma_close(server.rdma));
		return scarce.failures;
	}
	FAILS(ECONNREFUSED, err);
	assert_says("no memory");
	return true;
}

static void refuse_in_turn(struct ends *ends, const char *address, bool once)
{
	struct vb_sim_objects before, after;
	long good = 0;

	/* The first connection makes the agents' pools. */
	TEST_ASSERT_FALSE(refuses(ends, address, LONG_MAX, once));
	vb_sim_count_objects(NULL, &before);
	while (refuses(ends, address, good, once))
		good++;
	vb_sim_count_objects(NULL, &after);
	TEST_ASSERT_EQUAL_MEMORY(&before, &after, sizeof(before));
	/* The connection, its buffers and its QP. */
	TEST_ASSERT_GREATER_THAN(4, good);
}

static void close_all(struct ends *ends)
{
	OK(vb_rdma_listener_close(ends->listener));
	OK(vb_rdma_agent_close(ends->agent[0]));
	OK(vb_rdma_agent_close(ends->agent[1]));
	vb_rdma_hall_close(ends->hall);
	assert_nothing_left();
}

void test_one_allocation_fails(void)
{
	struct ends ends;

	if (!SCARCE)
		TEST_IGNORE_MESSAGE("the sanitizer has its own malloc()");
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	ends_agents(&ends, NULL, NULL);
	refuse_in_turn(&ends, "server", true);
	close_all(&ends);
}

void test_all_allocations_fail_from_one_on(void)
{
	struct ends ends;

	if (!SCARCE)
		TEST_IGNORE_MESSAGE("the sanitizer has its own malloc()");
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	ends_agents(&ends, NULL, NULL);
	refuse_in_turn(&ends, "server", false);
	close_all(&ends);
}

/* Without memory for the line itself, the peer waits in the listener's queue. */
void test_over_tcp_one_allocation_fails(void)
{
	struct ends ends = {.hall = NULL};
	char address[64];

	if (!SCARCE)
		TEST_IGNORE_MESSAGE("the sanitizer has its own malloc()");
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	ends.agent[0] = agent_on(0, NULL, NULL);
	ends.agent[1] = agent_on(1, NULL, NULL);
	ends.listener = vb_rdma_listen(ends.agent[1], "127.0.0.1:0");
	HAVE(ends.listener);
	OK(vb_rdma_listener_name(ends.listener, address, sizeof(address)));
	refuse_in_turn(&ends, address, true);
	close_all(&ends);
}
