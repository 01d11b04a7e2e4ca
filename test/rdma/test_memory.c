/* SPDX-License-Identifier: MIT */
/* Regions: allocating, requesting, handing over, leasing, releasing, and operations on them. */
#include "test/rdma/rdma.h"

static struct ends ends;

void setUp(void)
{
	ends_open(&ends, NULL, NULL);
}

void tearDown(void)
{
}

static uint32_t keys_at(int side)
{
	struct vb_sim_objects objects;

	(void)side;
	vb_sim_count_objects(NULL, &objects);
	return objects.mrs;
}

/* Drives both agents until the world has this many MRs. */
static void until_keys(uint32_t wanted)
{
	for (int i = 0; i < 1000 && keys_at(1) != wanted; i++)
		turn(&ends);
	TEST_ASSERT_EQUAL_UINT32(wanted, keys_at(1));
}

static struct vb_local_mr *receive_local(int side)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_RECEIVE_LOCAL_MR,
						.rdma = ends.rdma[side]};
	struct vb_rdma_result result;

	OK(run(&ends, &request, &result));
	return result.local;
}

static struct vb_remote_mr *receive_remote(int side)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_RECEIVE_REMOTE_MR,
						.rdma = ends.rdma[side]};
	struct vb_rdma_result result;

	OK(run(&ends, &request, &result));
	return result.remote;
}

static int hand_over(int side, struct vb_remote_mr *mr)
{
	const struct vb_rdma_request request = {
		.operation = VB_RDMA_SEND_MR, .rdma = ends.rdma[side], .remote = mr};

	return run(&ends, &request, NULL);
}

static int offer(int side, struct vb_local_mr *mr, uint32_t access, uint64_t lease_ns)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_SEND_LOCAL_MR,
						.rdma = ends.rdma[side],
						.slice = {.mr = mr},
						.access = access,
						.lease_ns = lease_ns};

	return run(&ends, &request, NULL);
}

void test_regions_of_the_pool_do_not_overlap(void)
{
	struct vb_local_mr *mrs[200];
	uint64_t seed = 42;

	printf("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 200; i++) {
		size_t length = 1 + next_random(&seed) % 5000,
		       align = 1u << next_random(&seed) % 13;

		mrs[i] = vb_alloc_local_mr(ends.agent[0], length, align);
		HAVE(mrs[i]);
		TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)vb_local_mr_addr(mrs[i]) % align);
		TEST_ASSERT_EQUAL_UINT64(length, vb_local_mr_bytes(mrs[i]));
		for (size_t j = 0; j < length; j++)
			TEST_ASSERT_EQUAL_UINT8(0, ((uint8_t *)vb_local_mr_addr(mrs[i]))[j]);
		memset(vb_local_mr_addr(mrs[i]), i + 1, length);
		if (i % 3 == 2) {
			vb_local_mr_put(mrs[i - 1]);
			mrs[i - 1] = NULL;
		}
	}
	for (int i = 0; i < 200; i++) {
		for (size_t j = 0; mrs[i] && j < vb_local_mr_bytes(mrs[i]); j++)
			TEST_ASSERT_EQUAL_UINT8((uint8_t)(i + 1),
						((uint8_t *)vb_local_mr_addr(mrs[i]))[j]);
		vb_local_mr_put(mrs[i]);
	}
	ends_close(&ends);
}

void test_many_small_regions_are_one_registration(void)
{
	struct vb_local_mr *mrs[100], *large;
	uint32_t before = keys_at(0);

	for (int i = 0; i < 100; i++)
		mrs[i] = vb_alloc_local_mr(ends.agent[0], 100, 0);
	TEST_ASSERT_EQUAL_UINT32(before, keys_at(0));
	large = vb_alloc_local_mr(ends.agent[0], 5u << 20, 0);
	HAVE(large);
	TEST_ASSERT_EQUAL_UINT32(before + 1, keys_at(0));
	vb_local_mr_put(large);
	TEST_ASSERT_EQUAL_UINT32(before, keys_at(0));
	for (int i = 0; i < 100; i++)
		vb_local_mr_put(mrs[i]);
	ends_close(&ends);
}

void test_invalid_regions(void)
{
	TEST_ASSERT_NULL(vb_alloc_local_mr(ends.agent[0], 0, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_NULL(vb_alloc_local_mr(ends.agent[0], 8, 3));
	TEST_ASSERT_NULL(vb_alloc_local_mr(ends.agent[0], 8, 8192));
	FAILS(EINVAL,
	      vb_rdma_start(&(struct vb_rdma_request){.operation = VB_RDMA_REQUEST_REMOTE_MR,
						      .rdma = ends.rdma[0]},
			    &(struct vb_rdma_op){0}));
	ends_close(&ends);
}

void test_write_into_a_requested_region_and_hand_it_over(void)
{
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 0);
	struct vb_local_mr *local = vb_alloc_local_mr(ends.agent[0], 64, 0), *seen;
	struct vb_local_slice slice = {local, 0, 12};

	TEST_ASSERT_EQUAL_UINT64(64, vb_remote_mr_bytes(remote));
	TEST_ASSERT_EQUAL_UINT64(VB_FOREVER, vb_remote_mr_left_ns(remote));
	strcpy(vb_local_mr_addr(local), "hello world");
	OK(vb_rdma_write(ends.rdma[0], &slice, remote, 8, S));
	OK(hand_over(0, remote));
	seen = receive_local(1);
	TEST_ASSERT_EQUAL_STRING("hello world", (char *)vb_local_mr_addr(seen) + 8);
	memset(vb_local_mr_addr(local), 0, 64);
	OK(vb_rdma_read(ends.rdma[0], &slice, remote, 8, S));
	TEST_ASSERT_EQUAL_STRING("hello world", vb_local_mr_addr(local));
	vb_local_mr_put(seen);
	vb_local_mr_put(local);
	vb_remote_mr_put(remote);
	ends_close(&ends);
}

void test_a_handed_over_region_outlives_its_key_and_its_connection(void)
{
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 0);
	uint32_t keys = keys_at(1);
	struct vb_local_mr *seen;

	OK(hand_over(0, remote));
	vb_remote_mr_put(remote);
	until_keys(keys - 1);
	seen = receive_local(1);
	memset(vb_local_mr_addr(seen), 1, 64);
	OK(vb_rdma_close(ends.rdma[1]));
	ends.rdma[1] = NULL;
	memset(vb_local_mr_addr(seen), 2, 64);
	FAILS(EBUSY, vb_rdma_agent_close(ends.agent[1]));
	vb_local_mr_put(seen);
	ends_close(&ends);
}

void test_a_local_region_that_is_sent(void)
{
	struct vb_local_mr *mine = vb_alloc_local_mr(ends.agent[1], 4096, 0);
	struct vb_local_mr *local = vb_alloc_local_mr(ends.agent[0], 4096, 0);
	struct vb_local_slice slice = {local, 0, 4096};
	struct vb_remote_mr *remote;
	uint32_t keys = keys_at(1);

	fill(vb_local_mr_addr(mine), 4096, 3);
	OK(offer(1, mine, VB_MR_READ, 0));
	remote = receive_remote(0);
	TEST_ASSERT_EQUAL_UINT32(VB_MR_READ, vb_remote_mr_access(remote));
	OK(vb_rdma_read(ends.rdma[0], &slice, remote, 0, S));
	TEST_ASSERT_EQUAL_MEMORY(vb_local_mr_addr(mine), vb_local_mr_addr(local), 4096);
	FAILS(EACCES, vb_rdma_write(ends.rdma[0], &slice, remote, 0, S));
	FAILS(EINVAL, hand_over(0, remote));
	vb_local_mr_put(mine);
	vb_remote_mr_put(remote);
	until_keys(keys);
	vb_local_mr_put(local);
	ends_close(&ends);
}

void test_atomics(void)
{
	struct vb_remote_mr *remote = request_mr(&ends, 0, 16, VB_MR_ALL, 0);
	uint64_t before = 99;

	OK(vb_rdma_fetch_add(ends.rdma[0], remote, 8, 41, &before, S));
	TEST_ASSERT_EQUAL_UINT64(0, before);
	OK(vb_rdma_compare_swap(ends.rdma[0], remote, 8, 41, 7, &before, S));
	TEST_ASSERT_EQUAL_UINT64(41, before);
	OK(vb_rdma_compare_swap(ends.rdma[0], remote, 8, 41, 9, &before, S));
	TEST_ASSERT_EQUAL_UINT64(7, before);
	FAILS(EINVAL, vb_rdma_fetch_add(ends.rdma[0], remote, 4, 1, &before, S));
	FAILS(EINVAL, vb_rdma_fetch_add(ends.rdma[0], remote, 16, 1, &before, S));
	vb_remote_mr_put(remote);
	ends_close(&ends);
}

void test_slices_that_are_not_in_their_regions(void)
{
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 0);
	struct vb_local_mr *local = vb_alloc_local_mr(ends.agent[0], 64, 0);
	struct vb_local_mr *other = vb_alloc_local_mr(ends.agent[1], 64, 0);
	const struct vb_local_slice wrong[] = {
		{local, 0, 65}, {local, 65, 0}, {local, SIZE_MAX, 2}, {other, 0, 8}, {NULL, 0, 8},
	};
	struct vb_local_slice all = {local, 0, 64};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		FAILS(EINVAL, vb_rdma_write(ends.rdma[0], &wrong[i], remote, 0, S));
	FAILS(EINVAL, vb_rdma_write(ends.rdma[0], &all, remote, 1, S));
	FAILS(EINVAL, vb_rdma_write(ends.rdma[0], &all, remote, UINT64_MAX, S));
	FAILS(ESTALE,
	      vb_rdma_write(ends.rdma[1], &(struct vb_local_slice){other, 0, 8}, remote, 0, S));
	OK(vb_rdma_write(ends.rdma[0], &all, remote, 0, S));
	vb_local_mr_put(local);
	vb_local_mr_put(other);
	vb_remote_mr_put(remote);
	ends_close(&ends);
}

void test_a_region_that_is_put_is_released_at_its_owner(void)
{
	uint32_t before = keys_at(1);
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_READ, 0);

	TEST_ASSERT_EQUAL_UINT32(before + 1, keys_at(1));
	vb_remote_mr_get(remote);
	vb_remote_mr_put(remote);
	turn(&ends);
	TEST_ASSERT_EQUAL_UINT32(before + 1, keys_at(1));
	vb_remote_mr_put(remote);
	until_keys(before);
	ends_close(&ends);
}

/* Uses a key that is not valid, as a hostile peer would. */
static int write_by_hand(struct vb_rdma *rdma, struct vb_local_mr *local,
			 const struct vb_remote *key)
{
	struct vb_region *region =
		vb_region_alloc(vb_rdma_agent_device(ends.agent[0]), vb_rdma_qp(rdma)->pd, 4096,
				IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {(uintptr_t)region->addr, 8, region->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = UINT64_MAX >> 16,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = 0,
				 .wr.rdma = {key->addr, key->rkey}},
			   *bad;
	int err;

	(void)local;
	OK(ibv_post_send(vb_rdma_qp(rdma), &wr, &bad));
	err = vb_rdma_send(rdma, "x", 1, S);
	OK(vb_region_free(region));
	return err;
}

void test_the_key_of_a_dropped_region_does_not_work(void)
{
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 0);
	uint32_t keys = keys_at(1);
	struct vb_remote key;

	vb_remote_mr_key(remote, &key);
	OK(write_by_hand(ends.rdma[0], NULL, &key));
	vb_remote_mr_put(remote);
	until_keys(keys - 1);
	FAILS(EIO, write_by_hand(ends.rdma[0], NULL, &key));
	ends_close(&ends);
}

void test_a_lease_ends_at_both_ends(void)
{
	uint32_t before = keys_at(1);
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 5 * MS);
	struct vb_local_mr *local = vb_alloc_local_mr(ends.agent[0], 64, 0);
	struct vb_local_slice slice = {local, 0, 64};
	struct vb_remote key;

	TEST_ASSERT_TRUE(vb_remote_mr_left_ns(remote) <= 5 * MS);
	OK(vb_rdma_write(ends.rdma[0], &slice, remote, 0, S));
	OK(vb_sim_run(NULL, 5 * MS));
	FAILS(ESTALE, vb_rdma_write(ends.rdma[0], &slice, remote, 0, S));
	FAILS(ESTALE, hand_over(0, remote));
	TEST_ASSERT_EQUAL_UINT64(0, vb_remote_mr_left_ns(remote));
	turn(&ends);
	TEST_ASSERT_EQUAL_UINT32(before, keys_at(1));
	vb_remote_mr_key(remote, &key);
	FAILS(EIO, write_by_hand(ends.rdma[0], NULL, &key));
	vb_local_mr_put(local);
	vb_remote_mr_put(remote);
	ends_close(&ends);
}

void test_an_owner_that_waits_wakes_for_the_end_of_a_lease(void)
{
	uint32_t before = keys_at(1);
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 5 * MS);

	/* It may see other things first. */
	for (int i = 0; i < 5 && keys_at(1) != before; i++)
		OK(vb_rdma_progress(ends.agent[1], 10 * MS));
	TEST_ASSERT_EQUAL_UINT32(before, keys_at(1));
	vb_remote_mr_put(remote);
	ends_close(&ends);
}

void test_the_lease_of_an_offer(void)
{
	struct vb_local_mr *mine = vb_alloc_local_mr(ends.agent[1], 64, 0);
	uint32_t before = keys_at(1);
	struct vb_remote_mr *remote;

	OK(offer(1, mine, VB_MR_READ, 3 * MS));
	remote = receive_remote(0);
	TEST_ASSERT_TRUE(vb_remote_mr_left_ns(remote) > 0);
	OK(vb_sim_run(NULL, 3 * MS));
	turn(&ends);
	TEST_ASSERT_EQUAL_UINT64(0, vb_remote_mr_left_ns(remote));
	TEST_ASSERT_EQUAL_UINT32(before, keys_at(1));
	vb_remote_mr_put(remote);
	vb_local_mr_put(mine);
	ends_close(&ends);
}

void test_what_the_owner_does_not_allow(void)
{
	struct vb_rdma_options strict;
	const struct vb_rdma_request requests[] = {
		{.length_bytes = 64, .access = VB_MR_WRITE, .lease_ns = MS},
		{.length_bytes = 2000, .access = VB_MR_READ, .lease_ns = MS},
		{.length_bytes = 64, .access = VB_MR_READ, .lease_ns = 2 * S},
		{.length_bytes = 64, .access = VB_MR_READ},
	};
	static const int errors[] = {EACCES, EDQUOT, EDQUOT, EDQUOT};
	struct vb_rdma_request request;
	struct vb_remote_mr *remote;

	ends_close(&ends);
	vb_rdma_options_init(&strict);
	strict.peer_access = VB_MR_READ;
	strict.peer_bytes = 1024;
	strict.peer_lease_ns = S;
	ends_open(&ends, NULL, &strict);
	for (size_t i = 0; i < 4; i++) {
		request = requests[i];
		request.operation = VB_RDMA_REQUEST_REMOTE_MR;
		request.rdma = ends.rdma[0];
		FAILS(errors[i], run(&ends, &request, NULL));
	}
	remote = request_mr(&ends, 0, 1024, VB_MR_READ, S);
	request = requests[0];
	request.access = VB_MR_READ;
	request.operation = VB_RDMA_REQUEST_REMOTE_MR;
	request.rdma = ends.rdma[0];
	FAILS(EDQUOT, run(&ends, &request, NULL));
	vb_remote_mr_put(remote);
	ends_close(&ends);
}

void test_a_request_taken_back_leaves_nothing_at_the_owner(void)
{
	uint32_t before = keys_at(1);

	/* The owner is not driven meanwhile. */
	TEST_ASSERT_NULL(vb_request_remote_mr(ends.rdma[0], 64, 0, VB_MR_ALL, 0, MS));
	TEST_ASSERT_EQUAL_INT(ETIMEDOUT, errno);
	turn(&ends);
	until_keys(before);
	ends_close(&ends);
}

void test_more_requests_than_are_asked_at_once(void)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_REQUEST_REMOTE_MR,
						.rdma = ends.rdma[0],
						.length_bytes = 64,
						.access = VB_MR_ALL};
	struct vb_rdma_result result;
	struct vb_rdma_op ops[100];

	for (int i = 0; i < 100; i++)
		ops[i] = start(&request);
	for (int i = 0; i < 100; i++) {
		OK(finish(&ends, ops[i], &result));
		vb_remote_mr_put(result.remote);
	}
	ends_close(&ends);
}

void test_nobody_receives_what_is_handed_over(void)
{
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 0);

	for (int i = 0; i < 64; i++)
		OK(hand_over(0, remote));
	FAILS(EBUSY, hand_over(0, remote));
	vb_local_mr_put(receive_local(1));
	OK(hand_over(0, remote));
	vb_remote_mr_put(remote);
	ends_close(&ends);
}

void test_regions_of_a_connection_that_is_gone_are_stale(void)
{
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 0);

	OK(vb_rdma_close(ends.rdma[0]));
	ends.rdma[0] = NULL;
	TEST_ASSERT_EQUAL_UINT64(0, vb_remote_mr_left_ns(remote));
	FAILS(EBUSY, vb_rdma_agent_close(ends.agent[0]));
	vb_remote_mr_put(remote);
	ends_close(&ends);
}

void test_many_one_sided_operations_at_once_with_lost_packets(void)
{
	const struct vb_fault_rule rule = {.action = VB_FAULT_DROP, .probability = 0.05};
	struct vb_remote_mr *remote = request_mr(&ends, 0, 65536, VB_MR_ALL, 0);
	struct vb_local_mr *local = vb_alloc_local_mr(ends.agent[0], 65536, 0), *seen;
	struct vb_rdma_request request = {
		.operation = VB_RDMA_WRITE, .rdma = ends.rdma[0], .remote = remote};
	struct vb_rdma_op ops[128];
	unsigned int id;

	OK(vb_fault_add(NULL, &rule, &id));
	fill(vb_local_mr_addr(local), 65536, 5);
	for (size_t i = 0; i < 128; i++) {
		request.slice = (struct vb_local_slice){local, i * 512, 512};
		request.offset_bytes = i * 512;
		ops[i] = start(&request);
	}
	for (int i = 0; i < 128; i++)
		OK(finish(&ends, ops[i], NULL));
	OK(hand_over(0, remote));
	seen = receive_local(1);
	TEST_ASSERT_EQUAL_MEMORY(vb_local_mr_addr(local), vb_local_mr_addr(seen), 65536);
	vb_local_mr_put(seen);
	vb_local_mr_put(local);
	vb_remote_mr_put(remote);
	ends_close(&ends);
}

/* ends_close() fails with EBUSY if a region or a connection is kept. */
void test_regions_that_nobody_takes(void)
{
	const struct vb_rdma_request ask = {.operation = VB_RDMA_REQUEST_REMOTE_MR,
					    .rdma = ends.rdma[0],
					    .length_bytes = 64,
					    .access = VB_MR_ALL};
	const struct vb_rdma_request take_local = {.operation = VB_RDMA_RECEIVE_LOCAL_MR,
						   .rdma = ends.rdma[1]};
	const struct vb_rdma_request take_remote = {.operation = VB_RDMA_RECEIVE_REMOTE_MR,
						    .rdma = ends.rdma[1]};
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 0);
	struct vb_local_mr *local = vb_alloc_local_mr(ends.agent[0], 64, 0);
	uint32_t keys = keys_at(1);

	OK(hand_over(0, remote));
	OK(offer(0, local, VB_MR_ALL, 0));
	TEST_ASSERT_EQUAL_UINT32(keys + 1, keys_at(1));
	OK(run(&ends, &ask, NULL));
	OK(run(&ends, &take_local, NULL));
	OK(run(&ends, &take_remote, NULL));
	/* The owners learn that: the keys of the request and of the offer end. */
	until_keys(keys);
	vb_remote_mr_put(remote);
	vb_local_mr_put(local);
	ends_close(&ends);
}

void test_connections_that_nobody_takes(void)
{
	const struct vb_rdma_request connect = {
		.operation = VB_RDMA_CONNECT, .agent = ends.agent[0], .address = "server"};
	const struct vb_rdma_request accept = {.operation = VB_RDMA_ACCEPT,
					       .listener = ends.listener};
	struct vb_rdma_op connecting = start(&connect), accepting = start(&accept);
	struct vb_sim_objects before, after;

	vb_sim_count_objects(NULL, &before);
	for (int i = 0; i < 100; i++)
		turn(&ends);
	OK(vb_rdma_wait(connecting, S, NULL));
	OK(vb_rdma_wait(accepting, S, NULL));
	vb_sim_count_objects(NULL, &after);
	TEST_ASSERT_EQUAL_UINT32(before.qps - 1, after.qps);
	ends_close(&ends);
}
