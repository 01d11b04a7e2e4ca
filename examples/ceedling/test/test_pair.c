/* SPDX-License-Identifier: MIT */
/* The notes again, with Verbena's fixture: a connected pair in one call, packets, and a check for leaks. */
#include "note.h"
#include "unity.h"

#include <verbena/fault.h>
#include <verbena/fixture/unity.h>

void setUp(void)
{
	vb_unity_setUp();
}

void tearDown(void)
{
	vb_unity_tearDown();
}

void test_a_note_is_one_packet(void)
{
	struct vb_pair *pair = vb_expect_pair(NULL);
	const struct note_box from = {pair->a.qp, pair->a.mr}, to = {pair->b.qp, pair->b.mr};

	TEST_ASSERT_EQUAL_INT(0, note_expect(&to));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, note_send(&from, "at ten"));
	TEST_ASSERT_EQUAL_STRING("at ten", note_take(&to));
	vb_expect_packets("sim0:SEND_ONLY[bytes=%d] sim1:ACK", NOTE_BYTES);
	TEST_ASSERT_EQUAL_INT(0, vb_pair_close(pair));
}

void test_a_note_that_is_lost_once(void)
{
	const struct vb_fault_rule lose = {.action = VB_FAULT_DROP, .from = "sim0", .count = 1};
	struct vb_pair *pair = vb_expect_pair(NULL);
	const struct note_box from = {pair->a.qp, pair->a.mr}, to = {pair->b.qp, pair->b.mr};

	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &lose, NULL));
	TEST_ASSERT_EQUAL_INT(0, note_expect(&to));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, note_send(&from, "at eleven"));
	TEST_ASSERT_EQUAL_STRING("at eleven", note_take(&to));
	vb_expect_packets("SEND_ONLY[lost] SEND_ONLY ACK");
	vb_expect_no_completion(pair->b.cq, 1000000000);
	TEST_ASSERT_EQUAL_INT(0, vb_pair_close(pair));
}
