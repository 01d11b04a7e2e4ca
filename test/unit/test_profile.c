/* SPDX-License-Identifier: MIT */
#include "sim/profile.h"
#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

void test_spec_is_the_first(void)
{
	TEST_ASSERT_NOT_NULL(sim_profile_at(0));
	TEST_ASSERT_EQUAL_STRING("spec", sim_profile_at(0)->name);
	TEST_ASSERT_EQUAL_PTR(sim_profile_at(0), sim_profile_find("spec"));
}

void test_unknown_names(void)
{
	TEST_ASSERT_NULL(sim_profile_find("no-such"));
	TEST_ASSERT_NULL(sim_profile_find(""));
	TEST_ASSERT_NULL(sim_profile_find("SPEC"));
	TEST_ASSERT_NULL(sim_profile_at(1000));
}

/* Each can be found, says what it is, and has limits that the engine's own tables can hold. */
void test_every_profile_is_whole(void)
{
	const struct sim_profile *profile;

	for (unsigned int i = 0; (profile = sim_profile_at(i)); i++) {
		const struct ibv_device_attr *limits = &profile->limits;

		TEST_ASSERT_EQUAL_PTR(profile, sim_profile_find(profile->name));
		TEST_ASSERT_TRUE(profile->about && *profile->about);
		TEST_ASSERT_TRUE(limits->max_qp > 0 && limits->max_qp <= (1 << 18) - 16);
		TEST_ASSERT_TRUE(limits->max_mr > 0 && limits->max_mr < 1 << 19);
		TEST_ASSERT_TRUE(limits->max_sge > 0 && limits->max_sge <= 32);
		TEST_ASSERT_TRUE(limits->max_qp_wr > 0 && limits->max_cqe > 0);
		/* max_rd_atomic and its like are a byte in struct ibv_qp_attr. */
		TEST_ASSERT_TRUE(limits->max_qp_rd_atom > 0 && limits->max_qp_rd_atom < 256);
		TEST_ASSERT_TRUE(limits->max_qp_init_rd_atom > 0 &&
				 limits->max_qp_init_rd_atom < 256);
		TEST_ASSERT_TRUE(limits->max_pkeys > 0 && limits->max_cq > 0 && limits->max_ah > 0);
		/* fidelity.md: messages of 0 bytes to 2 GiB. */
		TEST_ASSERT_EQUAL_UINT32(0x80000000, profile->max_message_bytes);
	}
}
