/* SPDX-License-Identifier: MIT */
/* Values that ibv_modify_qp(3) refuses and that ibv_query_qp(3) returns. */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

#define INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR                                                                             \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS                                                                                    \
	(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static struct engine engine;
static struct sim_qp *qp;

void setUp(void)
{
	struct sim_qp_init init;

	engine_open(&engine, &(struct engine_config){0});
	init = (struct sim_qp_init){.type = IBV_QPT_RC,
				    .pd = 1,
				    .send_cq = engine.sides[0].send_cq,
				    .recv_cq = engine.sides[0].recv_cq,
				    .cap = {4, 5, 1, 2, 16}};
	TEST_ASSERT_EQUAL_INT(0, sim_qp_create(engine.sides[0].device, &init, &qp));
}

void tearDown(void)
{
	sim_qp_destroy(qp);
	engine_close(&engine);
}

static struct ibv_qp_attr good(void)
{
	return (struct ibv_qp_attr){
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
		.path_mtu = IBV_MTU_512,
		.dest_qp_num = 0x2345,
		.rq_psn = 0x111111,
		.sq_psn = 0x222222,
		.max_dest_rd_atomic = 3,
		.max_rd_atomic = 2,
		.min_rnr_timer = 31,
		.timeout = 30,
		.retry_cnt = 6,
		.rnr_retry = 5,
		.ah_attr = engine_ah_attr(&engine.sides[1].gid),
	};
}

static int move(struct ibv_qp_attr attr, enum ibv_qp_state to, int mask)
{
	attr.qp_state = to;
	return sim_qp_modify(qp, &attr, mask);
}

static void connect(void)
{
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_INIT, INIT));
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_RTR, RTR));
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_RTS, RTS));
}

void test_query_gives_back_what_was_set(void)
{
	struct ibv_qp_attr attr;

	connect();
	sim_qp_query(qp, &attr);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, attr.qp_state);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, attr.cur_qp_state);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_512, attr.path_mtu);
	TEST_ASSERT_EQUAL_HEX32(0x2345, attr.dest_qp_num);
	TEST_ASSERT_EQUAL_HEX32(0x111111, attr.rq_psn);
	TEST_ASSERT_EQUAL_HEX32(0x222222, attr.sq_psn);
	TEST_ASSERT_EQUAL_UINT8(3, attr.max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_UINT8(2, attr.max_rd_atomic);
	TEST_ASSERT_EQUAL_UINT8(31, attr.min_rnr_timer);
	TEST_ASSERT_EQUAL_UINT8(30, attr.timeout);
	TEST_ASSERT_EQUAL_UINT8(6, attr.retry_cnt);
	TEST_ASSERT_EQUAL_UINT8(5, attr.rnr_retry);
	TEST_ASSERT_EQUAL_UINT8(1, attr.port_num);
	TEST_ASSERT_EQUAL_HEX32(IBV_ACCESS_REMOTE_READ, attr.qp_access_flags);
	TEST_ASSERT_EQUAL_UINT32(4, attr.cap.max_send_wr);
	TEST_ASSERT_EQUAL_UINT32(5, attr.cap.max_recv_wr);
	TEST_ASSERT_EQUAL_UINT32(16, attr.cap.max_inline_data);
	TEST_ASSERT_EQUAL_MEMORY(&engine.sides[1].gid, &attr.ah_attr.grh.dgid, 16);
}

/* PSNs and QPNs of more than 24 bits are masked. */
void test_wide_numbers_are_masked(void)
{
	struct ibv_qp_attr attr = good();

	attr.dest_qp_num = 0xab123456;
	attr.rq_psn = 0xcd000001;
	attr.sq_psn = 0xffffffff;
	TEST_ASSERT_EQUAL_INT(0, move(attr, IBV_QPS_INIT, INIT));
	TEST_ASSERT_EQUAL_INT(0, move(attr, IBV_QPS_RTR, RTR));
	TEST_ASSERT_EQUAL_INT(0, move(attr, IBV_QPS_RTS, RTS));
	sim_qp_query(qp, &attr);
	TEST_ASSERT_EQUAL_HEX32(0x123456, attr.dest_qp_num);
	TEST_ASSERT_EQUAL_HEX32(1, attr.rq_psn);
	TEST_ASSERT_EQUAL_HEX32(0xffffff, attr.sq_psn);
}

/* If one value is out of range, the result is EINVAL and no attribute changes. */
static void refuse(struct ibv_qp_attr attr, enum ibv_qp_state to, int mask, const char *what)
{
	struct ibv_qp_attr before, after;

	sim_qp_query(qp, &before);
	TEST_ASSERT_EQUAL_INT_MESSAGE(EINVAL, move(attr, to, mask), what);
	sim_qp_query(qp, &after);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(&before, &after, sizeof(before), what);
}

void test_ranges(void)
{
	struct ibv_qp_attr attr;

#define REFUSE(to, mask, field, value)          \
	do {                                    \
		attr = good();                  \
		attr.field = (value);           \
		refuse(attr, to, mask, #field); \
	} while (0)
	REFUSE(IBV_QPS_INIT, INIT, port_num, 0);
	REFUSE(IBV_QPS_INIT, INIT, port_num, 2);
	REFUSE(IBV_QPS_INIT, INIT, pkey_index, 1);
	REFUSE(IBV_QPS_INIT, INIT, qp_access_flags, 1u << 30);
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_INIT, INIT));
	REFUSE(IBV_QPS_RTR, RTR, path_mtu, 0);
	REFUSE(IBV_QPS_RTR, RTR, path_mtu, IBV_MTU_4096 + 1);
	REFUSE(IBV_QPS_RTR, RTR, min_rnr_timer, 32);
	REFUSE(IBV_QPS_RTR, RTR, max_dest_rd_atomic, 17);
	REFUSE(IBV_QPS_RTR, RTR, ah_attr.is_global, 0);
	REFUSE(IBV_QPS_RTR, RTR, ah_attr.port_num, 2);
	attr = good();
	attr.ah_attr.grh.sgid_index = 4; /* an empty entry of the table */
	TEST_ASSERT_EQUAL_INT(ENODATA, move(attr, IBV_QPS_RTR, RTR));
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_RTR, RTR));
	REFUSE(IBV_QPS_RTS, RTS, timeout, 32);
	REFUSE(IBV_QPS_RTS, RTS, retry_cnt, 8);
	REFUSE(IBV_QPS_RTS, RTS, rnr_retry, 8);
	REFUSE(IBV_QPS_RTS, RTS, max_rd_atomic, 17);
#undef REFUSE
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_RTS, RTS));
}

void test_current_state_must_be_current(void)
{
	struct ibv_qp_attr attr = good();

	connect();
	attr.cur_qp_state = IBV_QPS_RTR;
	refuse(attr, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_CUR_STATE, "RTR");
	attr.cur_qp_state = IBV_QPS_RTS;
	TEST_ASSERT_EQUAL_INT(0, move(attr, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_CUR_STATE));
}

void test_missing_and_superfluous_attributes(void)
{
	refuse(good(), IBV_QPS_INIT, INIT & ~IBV_QP_PORT, "no port");
	refuse(good(), IBV_QPS_INIT, INIT | IBV_QP_QKEY, "Q_Key of an RC QP");
	refuse(good(), IBV_QPS_RTR, RTR, "RESET to RTR");
	refuse(good(), IBV_QPS_ERR, IBV_QP_STATE, "RESET to ERR");
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_INIT, INIT));
	for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
		if (bit != IBV_QP_STATE && (RTR & bit))
			refuse(good(), IBV_QPS_RTR, RTR & ~bit, "one is missing");
	refuse(good(), IBV_QPS_RTR, RTR | IBV_QP_ALT_PATH, "no alternate path");
}

void test_attributes_can_be_changed_in_rts(void)
{
	struct ibv_qp_attr attr = good();

	connect();
	attr.min_rnr_timer = 4;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	TEST_ASSERT_EQUAL_INT(0,
			      sim_qp_modify(qp, &attr, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS));
	sim_qp_query(qp, &attr);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, attr.qp_state);
	TEST_ASSERT_EQUAL_UINT8(4, attr.min_rnr_timer);
	TEST_ASSERT_EQUAL_HEX32(IBV_ACCESS_REMOTE_WRITE, attr.qp_access_flags);
}

/* Goes through all states and back many times, which must leave nothing behind. */
void test_round_and_round(void)
{
	for (unsigned int i = 0; i < 300; i++) {
		connect();
		TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_SQD, IBV_QP_STATE));
		TEST_ASSERT_EQUAL_INT(
			0, move(good(), IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC));
		TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_RTS, IBV_QP_STATE));
		TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_ERR, IBV_QP_STATE));
		TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_RESET, IBV_QP_STATE));
	}
}

/* The device's limits are accepted, and larger values are not. */
void test_limits_of_reads_and_atomics(void)
{
	struct sim_device *device = engine.sides[0].device;
	struct sim_profile small = *device->profile;
	struct ibv_qp_attr attr = good();

	small.limits.max_qp_rd_atom = 3;
	small.limits.max_qp_init_rd_atom = 2;
	device->profile = &small;
	connect();
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_SQD, IBV_QP_STATE));
	attr.max_rd_atomic = 2;
	attr.max_dest_rd_atomic = 3;
	TEST_ASSERT_EQUAL_INT(
		0, sim_qp_modify(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC));
	attr.max_rd_atomic = 3;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_modify(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC));
	attr.max_dest_rd_atomic = 4;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_modify(qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC));
}

/*
 * ibv_modify_qp(3), SQD: draining begins with the state and ends with the last send or the state.
 */
void test_draining(void)
{
	struct ibv_qp_attr attr = good();

	connect();
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_RTS, IBV_QP_STATE));
	sim_qp_query(qp, &attr);
	TEST_ASSERT_EQUAL_UINT8_MESSAGE(0, attr.sq_draining, "RTS to RTS drains nothing");
	attr = good();
	attr.en_sqd_async_notify = 1;
	TEST_ASSERT_EQUAL_INT(0,
			      move(attr, IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	sim_qp_query(qp, &attr);
	TEST_ASSERT_EQUAL_UINT8(1, attr.sq_draining);
	TEST_ASSERT_EQUAL_INT(0, move(good(), IBV_QPS_RTS, IBV_QP_STATE));
	sim_qp_query(qp, &attr);
	TEST_ASSERT_EQUAL_UINT8_MESSAGE(0, attr.sq_draining, "RTS ends it");
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT(0, engine_events(&engine, IBV_EVENT_SQ_DRAINED));
	attr = good();
	attr.en_sqd_async_notify = 1;
	TEST_ASSERT_EQUAL_INT(0,
			      move(attr, IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, engine_events(&engine, IBV_EVENT_SQ_DRAINED),
				       "an idle queue is drained at once");
	sim_qp_query(qp, &attr);
	TEST_ASSERT_EQUAL_UINT8(0, attr.sq_draining);
}
