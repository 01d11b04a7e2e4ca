/* SPDX-License-Identifier: MIT */
/* Tests of CMocka that fail, each in its own way: check-fixtures reads the report. */
#include <verbena/fixture/cmocka.h>

#include <verbena/verbs.h>

static void test_completion(void **state)
{
	struct vb_pair *pair = vb_expect_pair(NULL);

	(void)state;
	vb_expect_completion(pair->b.cq, "RECV wr_id=1");
}

static void test_packets(void **state)
{
	struct vb_pair *pair = vb_expect_pair(NULL);

	(void)state;
	vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64);
	vb_expect_packets("SEND_ONLY ACK");
}

static void test_leak(void **state)
{
	struct vb_pair *pair = vb_expect_pair(NULL);

	(void)state;
	vb_alloc_pd(pair->a.context);
	vb_pair_close(pair);
}

static void test_good(void **state)
{
	(void)state;
	vb_pair_close(vb_expect_pair(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		vb_cmocka_test(test_completion),
		vb_cmocka_test(test_packets),
		vb_cmocka_test(test_leak),
		vb_cmocka_test(test_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
