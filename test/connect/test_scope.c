/* SPDX-License-Identifier: MIT */
/* Scopes, and works on many channels. */
#include "test/connect/connect.h"

#define PEERS 4

static struct node hub, peers[PEERS];
static struct vb_channel *channels[PEERS]; /* of the hub */

void setUp(void)
{
	fresh_world(PEERS + 1, VB_SIM_CLOCK_VIRTUAL);
	node_open(&hub, PEERS);
	for (unsigned int i = 0; i < PEERS; i++) {
		struct node end = {.group = hub.group};

		node_open(&peers[i], i);
		join(&end, &peers[i], NULL);
		channels[i] = end.channel;
	}
}

void tearDown(void)
{
	for (int i = 0; i < PEERS; i++) {
		OK(vb_channel_close(channels[i]));
		node_close(&peers[i]);
	}
	node_close(&hub);
	assert_nothing_left();
}

static void receive_all(struct vb_work works[PEERS], uint32_t length_bytes)
{
	for (int i = 0; i < PEERS; i++) {
		struct vb_slice into = slice(&peers[i], 0, length_bytes);

		OK(vb_channel_receive(peers[i].channel, &into, &works[i]));
	}
}

void test_a_scope_ends_when_all_of_its_works_have(void)
{
	struct vb_slice from = slice(&hub, 0, 8);
	struct vb_scope scope;
	struct vb_request request = {
		.operation = VB_SEND, .slices = &from, .slice_count = 1, .scope = &scope};
	struct vb_work kept, works[PEERS];

	receive_all(works, 8);
	vb_scope_begin(&scope, hub.group);
	for (int i = 0; i < PEERS; i++)
		OK(vb_channel_post(channels[i], &request, i ? NULL : &kept));
	OK(vb_scope_end(&scope, VB_FOREVER));
	TEST_ASSERT_EQUAL_UINT(0, vb_group_pending(hub.group));
	/* The scope took the result. */
	FAILS(ESTALE, vb_work_poll(kept, NULL));
	OK(vb_scope_end(&scope, VB_FOREVER));
	for (int i = 0; i < PEERS; i++)
		OK(vb_work_wait(works[i], VB_FOREVER, NULL));
}

void test_a_result_may_be_taken_before_the_scope_ends(void)
{
	struct vb_slice from = slice(&hub, 0, 8);
	struct vb_scope scope;
	struct vb_request request = {
		.operation = VB_SEND, .slices = &from, .slice_count = 1, .scope = &scope};
	struct vb_work sent, works[PEERS];

	receive_all(works, 8);
	vb_scope_begin(&scope, hub.group);
	OK(vb_channel_post(channels[0], &request, &sent));
	OK(vb_channel_post(channels[1], &request, &works[1]));
	OK(vb_work_wait(sent, VB_FOREVER, NULL));
	OK(vb_scope_end(&scope, VB_FOREVER));
	OK(vb_work_wait(works[0], VB_FOREVER, NULL));
}

void test_a_scope_tells_of_the_first_failure(void)
{
	struct vb_slice from = slice(&hub, 0, 8);
	struct vb_scope scope;
	struct vb_request request = {
		.operation = VB_WRITE, .slices = &from, .slice_count = 1, .scope = &scope};

	request.remote = remote(&peers[0], 0, 8);
	request.remote.rkey ^= 0x5500;
	vb_scope_begin(&scope, hub.group);
	OK(vb_channel_post(channels[0], &request, NULL));
	FAILS(EIO, vb_scope_end(&scope, VB_FOREVER));
	assert_says("write on QP 0x");
	assert_says("remote access error");
	/* The failure counts in the scope, not in vb_channel_failures(). */
	TEST_ASSERT_EQUAL_UINT64(0, vb_channel_failures(channels[0]));
}

/* The scope ends a receive for which no message comes, and its buffer is free. */
static void end_unanswered(uint64_t timeout_ns, int err)
{
	struct vb_slice into = slice(&hub, 0, 64), other = slice(&hub, 64, 64);
	struct vb_scope scope;
	struct vb_request request = {
		.operation = VB_RECEIVE, .slices = &into, .slice_count = 1, .scope = &scope};
	struct vb_work work;

	OK(vb_channel_receive(channels[1], &other, &work));
	vb_scope_begin(&scope, hub.group);
	OK(vb_channel_post(channels[0], &request, NULL));
	OK(vb_channel_post(channels[0], &request, NULL));
	FAILS(err, vb_scope_end(&scope, timeout_ns));
	assert_says("2 works did not end in time");
	TEST_ASSERT_EQUAL_UINT(0, vb_channel_pending(channels[0]));
	FAILS(ENOTCONN, vb_channel_receive(channels[0], &into, NULL));
	assert_says("broken");
	/* The other channel still works. */
	TEST_ASSERT_EQUAL_UINT(1, vb_channel_pending(channels[1]));
	OK(vb_channel_send(peers[1].channel, &(struct vb_slice){peers[1].region, 0, 8}, NULL));
	OK(vb_work_wait(work, 1 * S, NULL));
}

void test_a_scope_that_cannot_end_breaks_its_channels(void)
{
	end_unanswered(10 * MS, ETIMEDOUT);
}

void test_a_scope_without_limit_that_cannot_end(void)
{
	end_unanswered(VB_FOREVER, EDEADLK);
}

static void leave_early(struct vb_slice *into)
{
	struct vb_scope scope __attribute__((cleanup(vb_scope_cleanup)));

	vb_scope_begin(&scope, hub.group);
	OK(vb_channel_post(
		channels[0],
		&(struct vb_request){
			.operation = VB_RECEIVE, .slices = into, .slice_count = 1, .scope = &scope},
		NULL));
}

void test_a_scope_that_is_left_ends_its_works(void)
{
	struct vb_slice into = slice(&hub, 0, 64);

	leave_early(&into);
	TEST_ASSERT_EQUAL_UINT(0, vb_group_pending(hub.group));
}

void test_a_channel_of_a_scope_is_not_closed(void)
{
	struct vb_slice into = slice(&hub, 0, 64);
	struct vb_scope scope;

	vb_scope_begin(&scope, hub.group);
	OK(vb_channel_post(channels[0],
			   &(struct vb_request){.operation = VB_RECEIVE,
						.slices = &into,
						.slice_count = 1,
						.scope = &scope},
			   NULL));
	FAILS(EBUSY, vb_channel_close(channels[0]));
	FAILS(ETIMEDOUT, vb_scope_end(&scope, 0));
}

void test_a_scope_of_another_group_or_ended_is_refused(void)
{
	struct vb_slice from = slice(&hub, 0, 8);
	struct vb_scope scope;
	struct vb_request request = {
		.operation = VB_SEND, .slices = &from, .slice_count = 1, .scope = &scope};

	vb_scope_begin(&scope, peers[0].group);
	FAILS(EINVAL, vb_channel_post(channels[0], &request, NULL));
	OK(vb_scope_end(&scope, 0));
	FAILS(EINVAL, vb_channel_post(channels[0], &request, NULL));
}

void test_a_scope_on_a_dead_device(void)
{
	struct vb_slice into = slice(&hub, 0, 64);
	struct vb_scope scope;
	struct vb_request request = {
		.operation = VB_RECEIVE, .slices = &into, .slice_count = 1, .scope = &scope};

	vb_scope_begin(&scope, hub.group);
	OK(vb_channel_post(channels[0], &request, NULL));
	OK(vb_sim_kill_device(hub.device->context));
	TEST_ASSERT_TRUE(vb_scope_end(&scope, 1 * MS) != 0);
	TEST_ASSERT_EQUAL_UINT(0, vb_group_pending(hub.group));
}

/* --- many peers --- */

void test_scatter(void)
{
	struct vb_slice from = slice(&hub, 0, 8 * PEERS);
	struct vb_work works[PEERS];
	struct vb_scope scope;

	for (int i = 0; i < 8 * PEERS; i++)
		*bytes(&hub, (size_t)i) = (uint8_t)i;
	receive_all(works, 8);
	vb_scope_begin(&scope, hub.group);
	OK(vb_scatter(channels, PEERS, &from, &scope));
	OK(vb_scope_end(&scope, VB_FOREVER));
	for (int i = 0; i < PEERS; i++) {
		OK(vb_work_wait(works[i], VB_FOREVER, NULL));
		TEST_ASSERT_EQUAL_MEMORY(bytes(&hub, (size_t)i * 8), bytes(&peers[i], 0), 8);
	}
}

void test_gather(void)
{
	struct vb_slice into = slice(&hub, 0, 8 * PEERS);
	struct vb_scope scope;

	vb_scope_begin(&scope, hub.group);
	OK(vb_gather(channels, PEERS, &into, &scope));
	for (int i = PEERS - 1; i >= 0; i--) {
		struct vb_slice from = slice(&peers[i], 0, 8);

		memset(bytes(&peers[i], 0), 'a' + i, 8);
		OK(vb_channel_send(peers[i].channel, &from, NULL));
	}
	OK(vb_scope_end(&scope, VB_FOREVER));
	for (int i = 0; i < PEERS; i++)
		TEST_ASSERT_EQUAL_MEMORY(bytes(&peers[i], 0), bytes(&hub, (size_t)i * 8), 8);
}

void test_multicast(void)
{
	struct vb_slice from = slice(&hub, 0, 8);
	struct vb_work works[PEERS];
	struct vb_scope scope;

	memcpy(bytes(&hub, 0), "to all..", 8);
	receive_all(works, 8);
	vb_scope_begin(&scope, hub.group);
	OK(vb_multicast(channels, PEERS, &from, &scope));
	OK(vb_scope_end(&scope, VB_FOREVER));
	for (int i = 0; i < PEERS; i++) {
		OK(vb_work_wait(works[i], VB_FOREVER, NULL));
		TEST_ASSERT_EQUAL_MEMORY("to all..", bytes(&peers[i], 0), 8);
	}
}

void test_reads_from_and_writes_to_each(void)
{
	struct vb_request requests[PEERS];
	struct vb_slice slices[PEERS];
	struct vb_work works[PEERS];
	unsigned int posted = 99;

	for (int i = 0; i < PEERS; i++) {
		memset(bytes(&peers[i], 512), 'k' + i, 4);
		slices[i] = slice(&hub, (size_t)i * 4, 4);
		requests[i] = (struct vb_request){.operation = VB_READ,
						  .slices = &slices[i],
						  .slice_count = 1,
						  .remote = remote(&peers[i], 512, 4)};
	}
	OK(vb_post_each(channels, requests, PEERS, works, &posted));
	TEST_ASSERT_EQUAL_UINT(PEERS, posted);
	OK(vb_work_wait_all(works, PEERS, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_MEMORY("kkkkllllmmmmnnnn", bytes(&hub, 0), 16);
	requests[2].remote.length_bytes = 0;
	FAILS(EINVAL, vb_post_each(channels, requests, PEERS, works, &posted));
	TEST_ASSERT_EQUAL_UINT(2, posted);
	OK(vb_work_wait_all(works, 2, VB_FOREVER, NULL));
}

void test_pieces_that_are_not_equal(void)
{
	struct vb_slice odd = slice(&hub, 0, 8 * PEERS + 1);

	FAILS(EINVAL, vb_scatter(channels, PEERS, &odd, NULL));
	assert_says("cannot be cut into 4 equal pieces");
	FAILS(EINVAL, vb_gather(channels, 0, &odd, NULL));
}

/* One peer dies; the works of the other peers succeed. */
void test_scatter_with_a_dead_peer(void)
{
	struct vb_slice from = slice(&hub, 0, 8 * PEERS);
	struct vb_work works[PEERS];
	struct vb_scope scope;

	receive_all(works, 8);
	OK(vb_sim_kill_device(peers[2].device->context));
	vb_scope_begin(&scope, hub.group);
	OK(vb_scatter(channels, PEERS, &from, &scope));
	FAILS(EIO, vb_scope_end(&scope, VB_FOREVER));
	assert_says("transport retry counter exceeded");
	for (int i = 0; i < PEERS; i++)
		if (i != 2)
			OK(vb_work_wait(works[i], VB_FOREVER, NULL));
}
