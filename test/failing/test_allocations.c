/* SPDX-License-Identifier: MIT */
/*
 * Each allocation inside the library fails in turn, while a good program runs: each call succeeds, or is
 * refused with ENOMEM and a sentence; the program can end what it has made, and no memory is left.
 */
#include "unity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define ALLOCATIONS_MAX 2000

void setUp(void)
{
}

void tearDown(void)
{
	vb_fail_clear();
	vb_sim_reset();
}

/* Makes the allocation behind the next `skip` ones fail. */
static unsigned int fail_allocation(uint64_t skip)
{
	const struct vb_fail_rule rule = {.action = VB_FAIL_ALLOCATION, .skip = skip, .count = 1};
	unsigned int id;

	TEST_ASSERT_EQUAL_INT(0, vb_fail_add(&rule, &id));
	return id;
}

void test_allocations_are_counted_and_fail(void)
{
	unsigned int id;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	id = fail_allocation(UINT64_MAX - 1);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	TEST_ASSERT_GREATER_THAN(0, vb_fail_seen(id));
	TEST_ASSERT_EQUAL_UINT64(0, vb_fail_hits(id));
	TEST_ASSERT_EQUAL_INT(0, vb_fail_remove(id));
	id = fail_allocation(0);
	TEST_ASSERT_EQUAL_INT(ENOMEM, vb_sim_configure(NULL));
	TEST_ASSERT_EQUAL_UINT64(1, vb_fail_hits(id));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
}
