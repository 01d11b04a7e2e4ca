/* SPDX-License-Identifier: MIT */
/* Shared receive queues. Expected: ibv_create_srq(3), ibv_modify_srq(3), ibv_post_srq_recv(3). */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

static struct engine engine;
static struct sim_device *device;
static struct sim_profile small; /* limits that are low enough for a test to reach */
static struct sim_srq *srq;
static struct ibv_recv_wr *bad;

void setUp(void)
{
	engine_open_bare(&engine, 1);
	device = engine_add_device(&engine, "one", 1, NULL);
	small = *device->profile;
	small.limits.max_srq_wr = 8;
	small.limits.max_srq_sge = 3;
	device->profile = &small;
	srq = NULL;
}

void tearDown(void)
{
	if (srq)
		TEST_ASSERT_EQUAL_INT(0, sim_srq_destroy(srq));
	engine_close(&engine);
}

static int create(uint32_t max_wr, uint32_t max_sge)
{
	struct sim_srq_init init = {.pd = 1, .attr = {.max_wr = max_wr, .max_sge = max_sge}};

	return sim_srq_create(device, &init, &srq);
}

static int post(uint64_t wr_id, int num_sge)
{
	struct ibv_sge sge[8] = {{0}};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge};

	bad = NULL;
	return sim_srq_post(srq, &wr, &bad);
}

static void post_many(uint64_t first, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_INT(0, post(first + i, 1));
}

/* Takes the oldest WR, which must have the wr_id, and frees its slot. */
static void take(uint64_t wr_id)
{
	TEST_ASSERT_NOT_NULL(sim_srq_peek(srq));
	TEST_ASSERT_EQUAL_UINT64(wr_id, sim_srq_peek(srq)->wr_id);
	sim_srq_release(srq, sim_srq_take(srq));
}

static int modify(uint32_t max_wr, uint32_t limit, int mask)
{
	const struct ibv_srq_attr attr = {.max_wr = max_wr, .srq_limit = limit};

	return sim_srq_modify(srq, &attr, mask);
}

static struct ibv_srq_attr query(void)
{
	struct ibv_srq_attr attr;

	sim_srq_query(srq, &attr);
	return attr;
}

void test_sizes(void)
{
	TEST_ASSERT_EQUAL_INT(EINVAL, create(0, 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, create(9, 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, create(1, 4));
	TEST_ASSERT_NULL(srq);
	TEST_ASSERT_EQUAL_INT(0, create(8, 3));
	TEST_ASSERT_EQUAL_UINT32(8, query().max_wr);
	TEST_ASSERT_EQUAL_UINT32(3, query().max_sge);
	TEST_ASSERT_EQUAL_INT(0, sim_srq_destroy(srq));
	TEST_ASSERT_EQUAL_INT(0, create(1, 0));
	TEST_ASSERT_EQUAL_UINT32(1, query().max_sge);
	TEST_ASSERT_EQUAL_UINT32(0, query().srq_limit);
}

void test_posts_in_order_up_to_its_size(void)
{
	TEST_ASSERT_EQUAL_INT(0, create(3, 2));
	TEST_ASSERT_EQUAL_INT(EINVAL, post(9, -1));
	TEST_ASSERT_EQUAL_INT(EINVAL, post(9, 3));
	TEST_ASSERT_NOT_NULL(bad);
	TEST_ASSERT_EQUAL_INT(0, post(1, 0));
	TEST_ASSERT_EQUAL_INT(0, post(2, 2));
	TEST_ASSERT_EQUAL_INT(0, post(3, 1));
	TEST_ASSERT_EQUAL_INT(ENOMEM, post(4, 1));
	TEST_ASSERT_NOT_NULL(bad);
	take(1);
	TEST_ASSERT_EQUAL_INT(0, post(4, 1));
	take(2);
	take(3);
	take(4);
	TEST_ASSERT_NULL(sim_srq_peek(srq));
}

/*
 * ibv_modify_srq(3): the event comes when fewer WRs than the limit are left, once for each arming.
 */
void test_limit_event(void)
{
	TEST_ASSERT_EQUAL_INT(0, create(8, 1));
	post_many(1, 4);
	TEST_ASSERT_EQUAL_INT(0, modify(0, 3, IBV_SRQ_LIMIT));
	TEST_ASSERT_EQUAL_UINT32(3, query().srq_limit);
	take(1);
	TEST_ASSERT_EQUAL_UINT(0, engine_events(&engine, IBV_EVENT_SRQ_LIMIT_REACHED));
	take(2);
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_SRQ_LIMIT_REACHED));
	TEST_ASSERT_EQUAL_UINT32(0, query().srq_limit);
	take(3);
	take(4);
	TEST_ASSERT_EQUAL_UINT(1, engine_events(&engine, IBV_EVENT_SRQ_LIMIT_REACHED));
}

void test_modify_refusals_change_nothing(void)
{
	TEST_ASSERT_EQUAL_INT(0, create(4, 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, modify(6, 1, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT | 1 << 5));
	TEST_ASSERT_EQUAL_INT(EINVAL, modify(0, 5, IBV_SRQ_LIMIT));
	TEST_ASSERT_EQUAL_INT(EINVAL, modify(5, 6, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR));
	TEST_ASSERT_EQUAL_INT(EINVAL, modify(0, 0, IBV_SRQ_MAX_WR));
	TEST_ASSERT_EQUAL_INT(EINVAL, modify(9, 0, IBV_SRQ_MAX_WR));
	TEST_ASSERT_EQUAL_UINT32(4, query().max_wr);
	TEST_ASSERT_EQUAL_UINT32(0, query().srq_limit);
	TEST_ASSERT_EQUAL_INT(0, modify(0, 4, IBV_SRQ_LIMIT));
	TEST_ASSERT_EQUAL_INT(0, modify(5, 5, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR));
	TEST_ASSERT_EQUAL_UINT32(5, query().max_wr);
	TEST_ASSERT_EQUAL_UINT32(5, query().srq_limit);
}

void test_resize_keeps_what_is_posted(void)
{
	TEST_ASSERT_EQUAL_INT(0, create(3, 1));
	post_many(1, 3);
	take(1);
	post_many(4, 1);
	TEST_ASSERT_EQUAL_INT(EINVAL, modify(2, 0, IBV_SRQ_MAX_WR));
	TEST_ASSERT_EQUAL_INT(0, modify(8, 0, IBV_SRQ_MAX_WR));
	post_many(5, 5);
	TEST_ASSERT_EQUAL_INT(ENOMEM, post(10, 1));
	for (uint64_t wr_id = 2; wr_id <= 6; wr_id++)
		take(wr_id);
	TEST_ASSERT_EQUAL_INT(EINVAL, modify(2, 0, IBV_SRQ_MAX_WR));
	TEST_ASSERT_EQUAL_INT(0, modify(3, 0, IBV_SRQ_MAX_WR));
	TEST_ASSERT_EQUAL_INT(ENOMEM, post(10, 1));
	take(7);
	TEST_ASSERT_EQUAL_INT(0, post(10, 1));
	take(8);
	take(9);
	TEST_ASSERT_EQUAL_INT(0, modify(1, 0, IBV_SRQ_MAX_WR));
	TEST_ASSERT_EQUAL_INT(ENOMEM, post(11, 1));
	take(10);
}

void test_users_keep_it(void)
{
	TEST_ASSERT_EQUAL_INT(0, create(1, 1));
	srq->users = 1;
	TEST_ASSERT_EQUAL_INT(EBUSY, sim_srq_destroy(srq));
	srq->users = 0;
}

void test_xrc_holds_its_domain_and_cq(void)
{
	struct sim_srq_init init = {.pd = 1, .attr = {.max_wr = 1, .max_sge = 1}};

	TEST_ASSERT_EQUAL_INT(0, sim_xrcd_create(device, &init.xrcd));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_create(device, 1, NULL, &init.cq));
	TEST_ASSERT_EQUAL_INT(0, sim_srq_create(device, &init, &srq));
	TEST_ASSERT_EQUAL_INT(EBUSY, sim_xrcd_destroy(init.xrcd));
	TEST_ASSERT_EQUAL_INT(EBUSY, sim_cq_destroy(init.cq));
	TEST_ASSERT_EQUAL_INT(0, sim_srq_destroy(srq));
	srq = NULL;
	TEST_ASSERT_EQUAL_INT(0, sim_xrcd_destroy(init.xrcd));
	TEST_ASSERT_EQUAL_INT(0, sim_cq_destroy(init.cq));
}

/* ibv_create_srq(3) returns the actual size; with the quirk it returns the size asked for. */
void test_sizes_that_are_told(void)
{
	const uint32_t rounded = sim_queue_rounded(5);

	TEST_ASSERT_TRUE(rounded > 5);
	engine_quirk(device, "queue_sizes_round_up", true);
	for (unsigned int asked = 0; asked < 2; asked++) {
		struct sim_srq_init init = {.pd = 1, .attr = {.max_wr = 5, .max_sge = 1}};

		engine_quirk(device, "asked_sizes_told", asked);
		TEST_ASSERT_EQUAL_INT(0, sim_srq_create(device, &init, &srq));
		TEST_ASSERT_EQUAL_UINT32(asked ? 5 : rounded, init.attr.max_wr);
		TEST_ASSERT_EQUAL_UINT32(rounded, query().max_wr);
		TEST_ASSERT_EQUAL_INT(0, sim_srq_destroy(srq));
		srq = NULL;
	}
}
