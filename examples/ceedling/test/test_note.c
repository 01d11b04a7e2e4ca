/* SPDX-License-Identifier: MIT */
/* Tests of the notes on two simulated devices, on a perfect link and on one with a fault. */
#include "note.h"
#include "unity.h"

#include <verbena/connect.h>
#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define ACK_TIMEOUT 14 /* 4.096 us * 2^14: 67 ms */
#define RNR_RETRIES 3

/* One end: all that a QP needs. */
static struct end {
	struct vb_device *device;
	struct ibv_pd *pd;
	struct vb_cq *sent, *received;
	struct vb_region *region;
	struct vb_prepared_qp *prepared;
	struct note_box box;
} ends[2];

static void end_open(struct end *end, const char *name)
{
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	config.timeout = ACK_TIMEOUT;
	config.rnr_retry = RNR_RETRIES;
	end->device = vb_device_open_named("sim", name, 0, VB_GID_INDEX_ANY);
	TEST_ASSERT_NOT_NULL_MESSAGE(end->device, vb_last_error());
	end->pd = vb_alloc_pd(end->device->context);
	end->sent = vb_cq_open(end->device, 16, NULL);
	end->received = vb_cq_open(end->device, 16, NULL);
	end->region = vb_region_alloc(end->device, end->pd, 2 * NOTE_BYTES, VB_ACCESS_DEFAULT);
	end->prepared =
		vb_qp_prepare(end->device, end->pd, end->sent->cq, end->received->cq, &config);
	TEST_ASSERT_NOT_NULL_MESSAGE(end->prepared, vb_last_error());
	end->box.mr = end->region->mr;
}

/* Each test has a new world: two devices, the virtual clock at 0, no faults. */
void setUp(void)
{
	struct vb_endpoint first;

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, vb_sim_configure(NULL), vb_last_error());
	end_open(&ends[0], "sim0");
	end_open(&ends[1], "sim1");
	first = *vb_prepared_endpoint(ends[0].prepared);
	ends[0].box.qp = vb_handshake(ends[0].prepared, vb_prepared_endpoint(ends[1].prepared));
	ends[1].box.qp = vb_handshake(ends[1].prepared, &first);
	TEST_ASSERT_NOT_NULL_MESSAGE(ends[0].box.qp, vb_last_error());
	TEST_ASSERT_NOT_NULL_MESSAGE(ends[1].box.qp, vb_last_error());
}

void tearDown(void)
{
	for (int i = 0; i < 2; i++) {
		struct end *end = &ends[i];

		vb_destroy_qp(end->box.qp);
		vb_region_free(end->region);
		vb_cq_close(end->sent);
		vb_cq_close(end->received);
		vb_dealloc_pd(end->pd);
		vb_device_close(end->device);
	}
}

void test_a_note_arrives(void)
{
	TEST_ASSERT_EQUAL_INT(0, note_expect(&ends[1].box));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, note_send(&ends[0].box, "at seven"));
	TEST_ASSERT_EQUAL_STRING("at seven", note_take(&ends[1].box));
}

/* The first packet is lost: the note arrives after the ACK timeout, which takes no real time. */
void test_a_lost_packet_is_repeated(void)
{
	const struct vb_fault_rule lose = {.action = VB_FAULT_DROP, .from = "sim0", .count = 1};
	uint64_t timeout_ns;
	unsigned int rule;

	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &lose, &rule));
	TEST_ASSERT_EQUAL_INT(0, note_expect(&ends[1].box));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, note_send(&ends[0].box, "at eight"));
	TEST_ASSERT_EQUAL_STRING("at eight", note_take(&ends[1].box));
	TEST_ASSERT_EQUAL_UINT64(1, vb_fault_hits(NULL, rule));
	TEST_ASSERT_EQUAL_INT(0, vb_ack_timeout_to_ns(ACK_TIMEOUT, &timeout_ns));
	TEST_ASSERT_EQUAL_UINT64(timeout_ns, vb_sim_now_ns(NULL));
}

/* Nobody expects the note: the sender gets an RNR NAK for each attempt, and gives up. */
void test_a_note_that_nobody_expects(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint64_t wait_ns;

	TEST_ASSERT_EQUAL_INT(0, vb_rnr_timer_to_ns(VB_RNR_2_56_MS, &wait_ns));
	TEST_ASSERT_EQUAL_INT(IBV_WC_RNR_RETRY_EXC_ERR, note_send(&ends[0].box, "at nine"));
	TEST_ASSERT_EQUAL_UINT64(RNR_RETRIES * wait_ns, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(0, vb_query_qp(ends[0].box.qp, &attr, IBV_QP_STATE, &init));
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, attr.qp_state);
}
