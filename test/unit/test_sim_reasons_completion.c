/* SPDX-License-Identifier: MIT */
/*
 * Why completions fail: each mistake, and the whole sentence of vb_explain() on each side.
 */
#include "backends/sim/guard/guard.h"
#include "test/unit/sim_explain.h"

#include <sys/mman.h>
#include <unistd.h>

static struct ibv_qp *from, *to; /* at a and at b */

void setUp(void)
{
	open_pair();
	connect_pair(&from, &to);
	guard_install(); /* above the test framework's own handler */
}

void tearDown(void)
{
	close_pair();
}

static void send_sges(struct ibv_sge *sges, int count, struct ibv_send_wr wr)
{
	wr.sg_list = sges;
	wr.num_sge = count;
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
}

static void send_bytes(uint32_t length, struct ibv_send_wr wr)
{
	struct ibv_sge sge = sge_of(&a, 0, length);

	send_sges(&sge, 1, wr);
}

static struct ibv_send_wr remote(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = opcode};

	if (opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return wr;
}

static uint64_t there(size_t offset)
{
	return (uintptr_t)b.buffer + offset;
}

/* --- refused by the peer's memory --- */

/* The sentence of a remote access at PSN 0, without "sim1 QP 0x.. refused " and behind the PSN. */
static void expect_access(enum vb_reason reason, const char *what, const char *format, ...)
{
	char words[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	expect_explained(&a, 7, IBV_WC_REM_ACCESS_ERR, reason,
			 "sim0 QP 0x%x, wr_id 7: IBV_WC_REM_ACCESS_ERR: sim1 QP 0x%x refused %s at "
			 "PSN 0: %s",
			 from->qp_num, to->qp_num, what, words);
}

void test_a_region_that_lacks_a_right(void)
{
	struct ibv_mr *mr = B.reg_mr(b.pd, b.buffer, 64, IBV_ACCESS_LOCAL_WRITE);

	send_bytes(8, remote(IBV_WR_RDMA_WRITE, there(0), mr->rkey));
	expect_access(VB_WHY_RKEY_RIGHT, "RDMA WRITE",
		      "rkey 0x%x is valid, but the region lacks IBV_ACCESS_REMOTE_WRITE; register "
		      "the region with IBV_ACCESS_REMOTE_WRITE",
		      mr->rkey);
}

void test_a_range_outside_the_region(void)
{
	struct ibv_mr *mr = B.reg_mr(b.pd, b.buffer + 64, 64, ACCESS_ALL);

	send_bytes(64, remote(IBV_WR_RDMA_READ, there(72), mr->rkey));
	expect_access(
		VB_WHY_RKEY_BEHIND, "RDMA READ",
		"its 64 bytes at 0x%" PRIx64 " end 8 bytes behind the region of the rkey 0x%x, "
		"which ends before 0x%" PRIx64 "; access fewer bytes, or register more memory",
		there(72), mr->rkey, there(128));
}

/* --- retries --- */

void test_a_peer_in_init(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(to, &attr, IBV_QP_STATE));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(to, &attr,
					     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						     IBV_QP_ACCESS_FLAGS));
	send_bytes(8, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	expect_explained(
		&a, 7, IBV_WC_RETRY_EXC_ERR, VB_WHY_RETRY_TIMEOUT,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_RETRY_EXC_ERR: no answer to PSN 0 came in 4 "
		"ack timeout(s) of 67.1089 ms each (timeout 14, retry_cnt 3); sim1 QP 0x%x "
		"is in INIT and drops requests; move the peer QP to RTR first",
		from->qp_num, to->qp_num);
}
