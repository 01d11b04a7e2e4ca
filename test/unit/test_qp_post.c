/* SPDX-License-Identifier: MIT */
/* Posting. Expected: ibv_post_send(3), ibv_post_recv(3). */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

static struct engine engine;
static struct ibv_sge sges[8];
static struct ibv_send_wr sends[8], *bad_send;
static struct ibv_recv_wr recvs[8], *bad_recv;

void setUp(void)
{
	engine_open(&engine, &(struct engine_config){.max_wr = 4, .max_sge = 2, .max_inline = 32});
	for (unsigned int i = 0; i < 8; i++) {
		sges[i] = (struct ibv_sge){(uintptr_t)engine.sides[0].memory + 64 * i, 16,
					   engine.sides[0].mr->lkey};
		sends[i] = (struct ibv_send_wr){.wr_id = i,
						.next = i < 7 ? &sends[i + 1] : NULL,
						.sg_list = sges,
						.num_sge = 1,
						.opcode = IBV_WR_SEND,
						.send_flags = IBV_SEND_SIGNALED};
		recvs[i] = (struct ibv_recv_wr){.wr_id = i,
						.next = i < 7 ? &recvs[i + 1] : NULL,
						.sg_list = sges,
						.num_sge = 1};
	}
	bad_send = NULL;
	bad_recv = NULL;
}

void tearDown(void)
{
	engine_close(&engine);
}

static struct sim_qp *qp(void)
{
	return engine.sides[0].qp;
}

/* A list is posted up to the first WR that does not fit, which *bad_wr names. */
void test_full_queue(void)
{
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_qp_post_send(qp(), sends, &bad_send));
	TEST_ASSERT_EQUAL_PTR(&sends[4], bad_send);
	TEST_ASSERT_EQUAL_UINT32(4, qp()->sq.head);
	TEST_ASSERT_EQUAL_INT(ENOMEM, sim_qp_post_recv(qp(), recvs, &bad_recv));
	TEST_ASSERT_EQUAL_PTR(&recvs[4], bad_recv);
	TEST_ASSERT_EQUAL_UINT32(4, qp()->rq.head);
}

void test_bad_wr_in_the_middle(void)
{
	sends[2].num_sge = 3;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_post_send(qp(), sends, &bad_send));
	TEST_ASSERT_EQUAL_PTR(&sends[2], bad_send);
	TEST_ASSERT_EQUAL_UINT32(2, qp()->sq.head);
	recvs[1].num_sge = -1;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_post_recv(qp(), recvs, &bad_recv));
	TEST_ASSERT_EQUAL_PTR(&recvs[1], bad_recv);
	TEST_ASSERT_EQUAL_UINT32(1, qp()->rq.head);
}

void test_states(void)
{
	static const struct {
		enum ibv_qp_state state;
		int send, recv;
	} rows[] = {{IBV_QPS_RESET, EINVAL, EINVAL},
		    {IBV_QPS_INIT, EINVAL, 0},
		    {IBV_QPS_RTR, EINVAL, 0},
		    {IBV_QPS_RTS, 0, 0},
		    {IBV_QPS_SQD, 0, 0},
		    {IBV_QPS_ERR, 0, 0}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sim_qp_reset(qp());
		qp()->state = (uint8_t)rows[i].state;
		sends[0].next = NULL;
		recvs[0].next = NULL;
		TEST_ASSERT_EQUAL_INT(rows[i].send, sim_qp_post_send(qp(), sends, &bad_send));
		TEST_ASSERT_EQUAL_INT(rows[i].recv, sim_qp_post_recv(qp(), recvs, &bad_recv));
		TEST_ASSERT_EQUAL_UINT32(rows[i].send ? 0 : 1, qp()->sq.head);
		TEST_ASSERT_EQUAL_UINT32(rows[i].recv ? 0 : 1, qp()->rq.head);
	}
}

void test_inline(void)
{
	sends[0].next = NULL;
	sends[0].send_flags |= IBV_SEND_INLINE;
	sends[0].num_sge = 2;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_send(qp(), sends, &bad_send));
	sges[1].length = 17;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_post_send(qp(), sends, &bad_send));
	TEST_ASSERT_EQUAL_PTR(sends, bad_send);
	sges[1].length = 16;
	sends[0].opcode = IBV_WR_RDMA_READ; /* a READ cannot be inline */
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_post_send(qp(), sends, &bad_send));
	sends[0].opcode = IBV_WR_SEND;
	engine_poison(engine.sides[0].memory, 1);
	TEST_ASSERT_EQUAL_INT(EFAULT, sim_qp_post_send(qp(), sends, &bad_send));
	TEST_ASSERT_EQUAL_UINT32(1, qp()->sq.head);
}

void test_inline_pieces_are_joined(void)
{
	memcpy(engine.sides[0].memory, "0123456789abcdef", 16);
	memcpy(engine.sides[0].memory + 64, "ghijklmnopqrstu", 16);
	TEST_ASSERT_EQUAL_INT(0, engine_recv(&engine, 1, 1, 0, 64));
	sends[0].next = NULL;
	sends[0].send_flags |= IBV_SEND_INLINE;
	sends[0].num_sge = 2;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_send(qp(), sends, &bad_send));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_STRING("0123456789abcdefghijklmnopqrstu", (char *)engine.sides[1].memory);
}

/* Messages may have 0 bytes to 2 GiB; with one byte more the WR fails. */
void test_longest_message(void)
{
	struct ibv_wc wc;

	sges[0].length = UINT32_C(1) << 31;
	sges[1].length = 1;
	sends[0].num_sge = 2;
	sends[0].next = NULL;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_send(qp(), sends, &bad_send));
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_LEN_ERR, wc.status);
}

/* SGEs that do not end at the ends of packets, with empty SGEs between. */
void test_scatter_and_gather(void)
{
	struct ibv_sge pieces[4];
	uint8_t *from;
	struct ibv_recv_wr recv = {.sg_list = pieces, .num_sge = 4};
	uint32_t lkey;

	engine_close(&engine);
	engine_open(&engine, &(struct engine_config){0});
	from = engine.sides[0].memory;
	for (unsigned int i = 0; i < 2000; i++)
		from[i] = (uint8_t)(i * 31 >> 3);
	lkey = engine.sides[1].mr->lkey;
	pieces[0] = (struct ibv_sge){(uintptr_t)engine.sides[1].memory, 300, lkey};
	pieces[1] = (struct ibv_sge){0, 0, 0};
	pieces[2] = (struct ibv_sge){(uintptr_t)engine.sides[1].memory + 5000, 7, lkey};
	pieces[3] = (struct ibv_sge){(uintptr_t)engine.sides[1].memory + 9000, 3000, lkey};
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_recv(engine.sides[1].qp, &recv, &bad_recv));
	lkey = engine.sides[0].mr->lkey;
	pieces[0] = (struct ibv_sge){(uintptr_t)from, 1, lkey};
	pieces[2] = (struct ibv_sge){(uintptr_t)from + 1, 511, lkey};
	pieces[3] = (struct ibv_sge){(uintptr_t)from + 512, 1000, lkey};
	sends[0].sg_list = pieces;
	sends[0].num_sge = 4;
	sends[0].next = NULL;
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_send(engine.sides[0].qp, sends, &bad_send));
	sim_engine_run(engine.sim);
	TEST_ASSERT_EQUAL_MEMORY(from, engine.sides[1].memory, 300);
	TEST_ASSERT_EQUAL_MEMORY(from + 300, engine.sides[1].memory + 5000, 7);
	TEST_ASSERT_EQUAL_MEMORY(from + 307, engine.sides[1].memory + 9000, 1512 - 307);
	TEST_ASSERT_EQUAL_HEX8(0, engine.sides[1].memory[9000 + 1512 - 307]);
}

void test_sig_all_signals_everything(void)
{
	struct ibv_wc wc;

	engine_close(&engine);
	engine_open(&engine, &(struct engine_config){.sig_all = true});
	TEST_ASSERT_EQUAL_INT(0, engine_send(&engine, 0,
					     &(struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
								   .bytes = 1,
								   .unsignalled = true}));
	sim_engine_run(engine.sim);
	TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
}

/* The longest message of the profile is sent; one byte more ends with LOC_LEN_ERR. */
void test_longest_message_of_the_profile(void)
{
	struct sim_device *device = engine.sides[0].device;
	struct sim_profile small = *device->profile;

	small.max_message_bytes = 64;
	device->profile = &small;
	for (uint32_t bytes = 64; bytes <= 65; bytes++) {
		struct ibv_wc wc;

		TEST_ASSERT_EQUAL_INT(0,
				      engine_send(&engine, 0,
						  &(struct engine_send){.opcode = IBV_WR_RDMA_WRITE,
									.bytes = bytes}));
		sim_engine_run(engine.sim);
		TEST_ASSERT_TRUE(engine_poll(engine.sides[0].send_cq, &wc));
		TEST_ASSERT_EQUAL_INT(bytes == 64 ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR, wc.status);
	}
}

/* ibv_post_send(3): a binding needs a window of type 2. */
void test_binding_needs_a_window_of_type_2(void)
{
	struct ibv_mw window = {.type = IBV_MW_TYPE_1};

	sends[0].next = NULL;
	sends[0].num_sge = 0;
	sends[0].opcode = IBV_WR_BIND_MW;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_post_send(qp(), sends, &bad_send));
	sends[0].bind_mw.mw = &window;
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_post_send(qp(), sends, &bad_send));
	TEST_ASSERT_EQUAL_PTR(sends, bad_send);
	TEST_ASSERT_EQUAL_UINT32(0, qp()->sq.head);
}

/* ibv_bind_mw(3): windows of type 1, from RTS on, on QP types that have windows. */
void test_post_bind_refusals(void)
{
	const struct ibv_mw_bind bind = {.wr_id = 1};
	struct sim_mr *one, *two;
	uint32_t rkey;

	TEST_ASSERT_EQUAL_INT(0, sim_mw_create(engine.sides[0].device, 1, IBV_MW_TYPE_1, &one));
	TEST_ASSERT_EQUAL_INT(0, sim_mw_create(engine.sides[0].device, 1, IBV_MW_TYPE_2, &two));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_post_bind(qp(), two, &bind, 0, &rkey));
	TEST_ASSERT_EQUAL_INT(0, sim_qp_post_bind(qp(), one, &bind, 0, &rkey));
	TEST_ASSERT_EQUAL_INT(0,
			      sim_qp_modify(qp(), &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
					    IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_qp_post_bind(qp(), one, &bind, 0, &rkey));
	sim_mw_destroy(one);
	sim_mw_destroy(two);
}
