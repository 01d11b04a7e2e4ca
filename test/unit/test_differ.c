/* SPDX-License-Identifier: MIT */
/* The differential walk's generator and reducer. */
#include "src/differ/compare/compare.h"
#include "src/differ/generate/generate.h"
#include "src/differ/machine/run.h"
#include "src/differ/walk/reduce.h"
#include "src/differ/walk/walk.h"
#include "unity.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct vd_program program, other;
static struct vd_record left;

void setUp(void)
{
	memset(&program, 0, sizeof(program));
	memset(&other, 0, sizeof(other));
}

void tearDown(void)
{
}

/* --- generator --- */

void test_programs_follow_their_seed(void)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		vd_generate(&program, seed, 0);
		vd_generate(&other, seed, 0);
		/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		TEST_ASSERT_EQUAL_INT(0, memcmp(&program, &other, sizeof(program)));
		vd_generate(&other, seed + 1, 0);
		/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		TEST_ASSERT_TRUE(memcmp(program.steps, other.steps, sizeof(program.steps)) != 0);
	}
}

void test_programs_are_within_their_bounds(void)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		vd_generate(&program, seed, 0);
		TEST_ASSERT_TRUE(program.count >= 20 && program.count <= VD_STEPS_MAX);
		for (unsigned int i = 0; i < program.count; i++) {
			const struct vd_step *step = &program.steps[i];

			TEST_ASSERT_TRUE(step->verb < VD_VERBS);
			TEST_ASSERT_TRUE(step->slot < vd_kinds[vd_verbs[step->verb].kind].slots);
			TEST_ASSERT_TRUE(step->wr_count <= VD_WRS_MAX);
			for (unsigned int wr = 0; wr < step->wr_count; wr++)
				TEST_ASSERT_TRUE(step->wrs[wr].sge_count <= VD_SGES_MAX);
		}
	}
}

static unsigned int count_verb(const struct vd_program *of, enum vd_verb verb)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < of->count; i++)
		count += of->steps[i].verb == verb;
	return count;
}

void test_what_is_avoided_is_not_generated(void)
{
	unsigned int freely = 0, avoided = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		vd_generate(&program, seed, 0);
		freely += count_verb(&program, VD_DEREG_MR) + count_verb(&program, VD_REREG_MR);
		vd_generate(&program, seed, VD_AVOID_DEREG | VD_AVOID_REREG);
		avoided += count_verb(&program, VD_DEREG_MR) + count_verb(&program, VD_REREG_MR);
	}
	TEST_ASSERT_TRUE(freely > 100);
	TEST_ASSERT_EQUAL_INT(0, avoided);
}

/* --- reducer --- */

/* A program shows the difference if it destroys an AH and later posts a READ. */
static bool shows(void *arg, const struct vd_program *tried)
{
	unsigned int *calls = arg;
	bool destroyed = false;

	++*calls;
	for (unsigned int i = 0; i < tried->count; i++) {
		destroyed |= tried->steps[i].verb == VD_DESTROY_AH;
		for (unsigned int wr = 0; destroyed && wr < tried->steps[i].wr_count; wr++)
			if (tried->steps[i].verb == VD_POST_SEND &&
			    tried->steps[i].wrs[wr].opcode == IBV_WR_RDMA_READ)
				return true;
	}
	return false;
}

void test_reduces_to_what_is_needed(void)
{
	unsigned int calls = 0, used;
	struct vd_step *post;

	vd_generate(&program, 5, 0);
	program.count = 40;
	for (unsigned int i = 0; i < program.count; i++)
		if (program.steps[i].verb == VD_DESTROY_AH || program.steps[i].verb == VD_POST_SEND)
			program.steps[i].verb = VD_QUERY_QP;
	program.steps[7].verb = VD_DESTROY_AH;
	post = &program.steps[33];
	post->verb = VD_POST_SEND;
	post->wr_count = 5;
	for (unsigned int i = 0; i < 5; i++)
		post->wrs[i] = (struct vd_wr){.opcode = i == 3 ? IBV_WR_RDMA_READ : IBV_WR_SEND,
					      .flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED,
					      .sge_count = 3};
	used = vd_reduce(&program, 10000, shows, &calls);
	TEST_ASSERT_EQUAL_INT(used, calls);
	TEST_ASSERT_EQUAL_INT(2, program.count);
	TEST_ASSERT_EQUAL_INT(VD_DESTROY_AH, program.steps[0].verb);
	TEST_ASSERT_EQUAL_INT(VD_POST_SEND, program.steps[1].verb);
	TEST_ASSERT_EQUAL_INT(1, program.steps[1].wr_count);
	TEST_ASSERT_EQUAL_INT(IBV_WR_RDMA_READ, program.steps[1].wrs[0].opcode);
	TEST_ASSERT_EQUAL_INT(1, program.steps[1].wrs[0].sge_count);
	TEST_ASSERT_EQUAL_INT(IBV_SEND_SIGNALED, program.steps[1].wrs[0].flags);
	TEST_ASSERT_TRUE(calls < 300);
}

void test_reduces_within_its_tries(void)
{
	unsigned int calls = 0;

	vd_generate(&program, 6, 0);
	program.count = 40;
	program.steps[0].verb = VD_DESTROY_AH;
	program.steps[39].verb = VD_POST_SEND;
	program.steps[39].wr_count = 1;
	program.steps[39].wrs[0].opcode = IBV_WR_RDMA_READ;
	TEST_ASSERT_EQUAL_INT(3, vd_reduce(&program, 3, shows, &calls));
	TEST_ASSERT_EQUAL_INT(3, calls);
	TEST_ASSERT_TRUE(shows(&calls, &program));
}

/* --- the whole walk --- */

/* The left side loses its quirks after so many runs, like a difference that depends on timing. */
static unsigned int runs_with_quirks;

int __real_vd_run(struct vd_site *site, const struct vd_program *tried,
		  const struct vd_record *expected, struct vd_record *record);
int __wrap_vd_run(struct vd_site *site, const struct vd_program *tried,
		  const struct vd_record *expected, struct vd_record *record);

int __wrap_vd_run(struct vd_site *site, const struct vd_program *tried,
		  const struct vd_record *expected, struct vd_record *record)
{
	if (!runs_with_quirks)
		site->quirk_count = 0;
	else if (site->quirk_count)
		runs_with_quirks--;
	return __real_vd_run(site, tried, expected, record);
}

static struct vd_walk *new_walk(uint64_t seed, unsigned long steps)
{
	struct vd_walk *walk = calloc(1, sizeof(*walk));

	TEST_ASSERT_NOT_NULL(walk);
	TEST_ASSERT_TRUE(vd_site_read(&walk->left, "sim:sim0"));
	TEST_ASSERT_TRUE(vd_site_read(&walk->right, "sim:sim1"));
	walk->left.mtu = walk->right.mtu = IBV_MTU_1024;
	walk->seed = seed;
	walk->steps = steps;
	walk->tries = 500;
	walk->out = tmpfile();
	TEST_ASSERT_NOT_NULL(walk->out);
	printf("seed %llu\n", (unsigned long long)seed);
	return walk;
}

static void end_walk(struct vd_walk *walk)
{
	fclose(walk->out);
	free(walk);
}

void test_two_devices_of_a_kind_do_not_differ(void)
{
	struct vd_walk *walk = new_walk(4000, 500);

	TEST_ASSERT_EQUAL_INT(0, vd_walk(walk));
	TEST_ASSERT_EQUAL_INT(0, walk->differences);
	TEST_ASSERT_TRUE(walk->coverage.steps >= 500);
	TEST_ASSERT_TRUE(walk->coverage.counts[VD_STATUSES][IBV_WC_SUCCESS][0] > 10);
	end_walk(walk);
}

void test_a_planted_quirk_is_reduced(void)
{
	struct vd_walk *walk = new_walk(1, 10000);

	walk->left.quirks[walk->left.quirk_count++] = "bad_lkey_is_operation_error";
	runs_with_quirks = UINT_MAX;
	TEST_ASSERT_EQUAL_INT(0, vd_walk(walk));
	TEST_ASSERT_EQUAL_INT(1, walk->differences);
	/* A domain, queues, two QPs, an address handle, their connection and a send. */
	TEST_ASSERT_TRUE(walk->program.count <= 9);
	TEST_ASSERT_EQUAL_INT(VD_POST_SEND, walk->program.steps[walk->program.count - 1].verb);
	end_walk(walk);
}

void test_what_does_not_come_again_is_no_difference(void)
{
	struct vd_walk *walk = new_walk(1, 2000);
	unsigned int programs = 0;
	static struct vd_record expected;

	/* The first program that shows the quirk. */
	do {
		vd_generate(&program, walk->seed + programs++, 0);
		runs_with_quirks = 0;
		TEST_ASSERT_EQUAL_INT(0, vd_run(&walk->left, &program, NULL, &expected));
		walk->left.quirks[0] = "bad_lkey_is_operation_error";
		walk->left.quirk_count = 1;
		runs_with_quirks = 1;
		TEST_ASSERT_EQUAL_INT(0, vd_run(&walk->left, &program, NULL, &left));
	} while (vd_compare(&program, &left, &expected, NULL) != VD_DIFFERENT);
	runs_with_quirks = programs;
	TEST_ASSERT_EQUAL_INT(0, vd_walk(walk));
	TEST_ASSERT_EQUAL_INT(0, walk->differences);
	TEST_ASSERT_EQUAL_INT(1, walk->unrepeated);
	TEST_ASSERT_TRUE(walk->coverage.steps >= 2000);
	end_walk(walk);
}

/* The left side runs whole programs; what it does behind a difference was not compared. */
void test_coverage_ends_where_the_sides_differ(void)
{
	unsigned int step = 0;
	char line[512];

	for (uint64_t seed = 1; !step; seed++) {
		struct vd_walk *walk = new_walk(seed, 1);

		runs_with_quirks = UINT_MAX;
		walk->left.quirks[walk->left.quirk_count++] = "no_affiliated_events";
		walk->keep_going = true;
		TEST_ASSERT_EQUAL_INT(0, vd_walk(walk));
		rewind(walk->out);
		while (walk->differences && fgets(line, sizeof(line), walk->out))
			if (sscanf(line, "seed %*u differs at step %u", &step) == 1)
				break;
		if (step) {
			TEST_ASSERT_TRUE(walk->coverage.steps <= step);
			TEST_ASSERT_EQUAL_UINT(1, walk->coverage.programs);
		}
		fclose(walk->out);
		free(walk);
		TEST_ASSERT_TRUE(seed < 1000);
	}
}

void test_a_device_that_is_not_there_is_an_error(void)
{
	struct vd_walk *walk = new_walk(1, 100);

	TEST_ASSERT_TRUE(vd_site_read(&walk->right, "sim:none"));
	TEST_ASSERT_EQUAL_INT(ENODEV, vd_walk(walk));
	TEST_ASSERT_FALSE(vd_site_read(&walk->right, "none:none"));
	end_walk(walk);
}

void test_minima_hold_from_their_number_of_steps_on(void)
{
	static struct vd_coverage coverage;
	FILE *out = tmpfile();

	TEST_ASSERT_NOT_NULL(out);
	coverage.steps = VD_MINIMA_STEPS - 1;
	TEST_ASSERT_EQUAL_INT(0, vd_check_minima(&coverage, true, out));
	coverage.steps++;
	TEST_ASSERT_TRUE(vd_check_minima(&coverage, true, out) >
			 vd_check_minima(&coverage, false, out));
	TEST_ASSERT_TRUE(vd_check_minima(&coverage, false, out) > 50);
	fclose(out);
}
