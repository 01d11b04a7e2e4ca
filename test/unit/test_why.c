/* SPDX-License-Identifier: MIT */
/* The table of reasons, and its sentences. */
#include "unity.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <verbena/why.h>

static char text[512];

void setUp(void)
{
}

void tearDown(void)
{
}

static const char *sentence(struct vb_why why)
{
	return vb_why_text(&why, text, sizeof(text));
}

void test_a_sentence_has_verb_cause_and_remedy(void)
{
	TEST_ASSERT_EQUAL_STRING(
		"modify_qp: QP 0x11 (RC): INIT to RTR needs IBV_QP_DEST_QPN | IBV_QP_RQ_PSN; set "
		"the "
		"attributes, and add the bits to attr_mask",
		sentence((struct vb_why){VB_WHY_QP_MASK_MISSING,
					 {0x11, IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
					  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN},
					 .verb = "modify_qp"}));
}

void test_a_sentence_without_a_verb_begins_with_the_cause(void)
{
	TEST_ASSERT_EQUAL_STRING(
		"grh.dgid is 0; set grh.dgid to the peer's GID, which the peer reads "
		"by ibv_query_gid()",
		sentence((struct vb_why){.reason = VB_WHY_PATH_DGID_ZERO}));
}

void test_a_sentence_of_the_caller_stands_alone(void)
{
	TEST_ASSERT_EQUAL_STRING(
		"create_cq: the context is closed",
		sentence((struct vb_why){.reason = VB_WHY_SAID,
					 .text = "create_cq: the context is closed"}));
}

void test_bits_without_a_name_are_a_number(void)
{
	TEST_ASSERT_EQUAL_STRING("QP 0x1 (UD): INIT to RTR does not take IBV_QP_TIMEOUT | "
				 "0x40000000; remove the bits "
				 "from attr_mask",
				 sentence((struct vb_why){VB_WHY_QP_MASK_SUPERFLUOUS,
							  {1, IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR,
							   IBV_QP_TIMEOUT | 0x40000000}}));
}

void test_things_are_counted(void)
{
	TEST_ASSERT_EQUAL_STRING("port_num 3 does not exist; the device has 1 port, from 1; give "
				 "one of the device's ports",
				 sentence((struct vb_why){VB_WHY_NO_SUCH_PORT, {3, 1}}));
	TEST_ASSERT_EQUAL_STRING("port_num 3 does not exist; the device has 2 ports, from 1; give "
				 "one of the device's ports",
				 sentence((struct vb_why){VB_WHY_NO_SUCH_PORT, {3, 2}}));
}

static void expect_cause_of_size(uint64_t bytes, const char *expected)
{
	const struct vb_why why = {VB_WHY_LENGTH_RECEIVE, {bytes, 1, 8}};

	vb_why_text(&why, text, sizeof(text));
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, strncmp(expected, text, strlen(expected)), text);
}

void test_bytes_are_counted(void)
{
	expect_cause_of_size(0, "the message has 0 bytes or more");
	expect_cause_of_size(1, "the message has 1 byte or more");
	expect_cause_of_size(UINT64_C(1) << 32, "the message has 4294967296 bytes or more");
}

static void expect_wait(uint64_t ns, const char *expected)
{
	const struct vb_why why = {VB_WHY_RETRY_TIMEOUT, {0, 4, ns, 14, 3}};

	TEST_ASSERT_TRUE_MESSAGE(strstr(vb_why_text(&why, text, sizeof(text)), expected), text);
}

void test_times_have_the_largest_unit_that_fits(void)
{
	expect_wait(0, "timeouts of 0 ns each");
	expect_wait(999, "timeouts of 999 ns each");
	expect_wait(1000, "timeouts of 1 us each");
	expect_wait(1000000, "timeouts of 1 ms each");
	expect_wait(1500000000, "timeouts of 1.5 s each");
}

void test_no_reason_has_no_sentence(void)
{
	strcpy(text, "old");
	TEST_ASSERT_EQUAL_STRING("", sentence((struct vb_why){.reason = VB_WHY_NONE}));
	TEST_ASSERT_EQUAL_STRING("", sentence((struct vb_why){.reason = (enum vb_reason)0xffff}));
}

void test_a_long_sentence_is_cut(void)
{
	const struct vb_why why = {.reason = VB_WHY_PATH_DGID_ZERO};
	char small[9] = "########";

	TEST_ASSERT_EQUAL_STRING("grh.d", vb_why_text(&why, small, 6));
	TEST_ASSERT_EQUAL_INT('#', small[6]);
	vb_why_text(&why, small, 0);
	TEST_ASSERT_EQUAL_STRING("grh.d", small);
}

/* --- the table --- */

void test_each_reason_is_whole(void)
{
	const struct vb_reason_info *info, *other;

	for (unsigned int i = 0; (info = vb_reason_at(i)); i++) {
		TEST_ASSERT_TRUE_MESSAGE(info->cause[0] && info->source[0], info->name);
		TEST_ASSERT_TRUE_MESSAGE(info->remedy[0] || info->reason == VB_WHY_SAID,
					 info->name);
		/* A call that fails is refused; the cause says more. */
		if (info->error)
			TEST_ASSERT_NULL_MESSAGE(strstr(info->cause, "refuse"), info->name);
		TEST_ASSERT_EQUAL_PTR(info, vb_reason_info(info->reason));
		for (unsigned int j = 0; j < i; j++) {
			other = vb_reason_at(j);
			TEST_ASSERT_NOT_EQUAL(other->reason, info->reason);
			TEST_ASSERT_TRUE_MESSAGE(strcmp(other->cause, info->cause) != 0,
						 info->name);
		}
	}
	TEST_ASSERT_NULL(vb_reason_info(VB_WHY_NONE));
}
