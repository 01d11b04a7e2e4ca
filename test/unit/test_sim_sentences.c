/* SPDX-License-Identifier: MIT */
/* Which failures leave a sentence for vb_last_error(): all of them, on a thread's first call, too. */
#include "unity.h"

#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static struct ibv_context *context;

static void open_first(const char *profile)
{
	struct vb_sim_config config = {.device_count = 1, .devices = {{.name = "d"}}};
	struct ibv_device **list;

	snprintf(config.devices[0].profile, VB_SIM_NAME_MAX, "%s", profile);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	list = vb_get_device_list("sim", NULL);
	context = vb_open_device(list[0]);
	vb_free_device_list(list);
	TEST_ASSERT_NOT_NULL(context);
}

void setUp(void)
{
	context = NULL;
}

void tearDown(void)
{
	vb_sim_reset();
}

/* A call that fails, and what its sentence says. */
struct call {
	int (*run)(void);
	int err;
	enum vb_reason reason;
	const char *says;
};

static int wrong_profile(void)
{
	const struct vb_sim_config config = {.device_count = 1,
					     .devices = {{.name = "d", .profile = "mlx4"}}};

	return vb_sim_configure(&config);
}

static int wrong_world(void)
{
	const struct vb_sim_config config = {.device_count = 1, .devices = {{.name = ""}}};

	return vb_sim_open(&config) ? 0 : errno;
}

static int closing_none(void)
{
	return vb_sim_close(NULL);
}

static int wrong_fault(void)
{
	return vb_fault_add(NULL, &(struct vb_fault_rule){.from = "nobody"}, NULL);
}

static int removed_fault(void)
{
	return vb_fault_remove(NULL, 77);
}

static int wrong_trace(void)
{
	return vb_sim_trace_open(NULL, "/none/none.pcap");
}

static int wrong_counter(void)
{
	return vb_sim_counters(NULL, NULL);
}

static int wrong_wait(void)
{
	struct ibv_wc wc;

	return vb_sim_wait_cq(NULL, 1, &wc, 0) < 0 ? errno : 0;
}

static int wrong_quirk(void)
{
	return vb_sim_set_quirk(NULL, "none", true);
}

static const struct call calls[] = {
	{wrong_profile, EINVAL, VB_WHY_WORLD_PROFILE, "no profile is called \"mlx4\""},
	{wrong_world, EINVAL, VB_WHY_WORLD_DEVICE_NAME, "the name of devices[0] is empty"},
	{closing_none, EINVAL, VB_WHY_WORLD_NOT_OPENED,
	 "vb_sim_close: the world is NULL or the default world"},
	{wrong_fault, EINVAL, VB_WHY_FAULT_DEVICE, "vb_fault_add: the world has no device nobody"},
	{removed_fault, ENOENT, VB_WHY_FAULT_NONE, "vb_fault_remove: the world has no rule 77"},
	{wrong_trace, ENOENT, VB_WHY_TRACE_OPEN, "/none/none.pcap"},
	{wrong_counter, EINVAL, VB_WHY_SIM_FOREIGN, "vb_sim_counters: the context is NULL"},
	{wrong_wait, EINVAL, VB_WHY_OBJECT_NULL, "vb_sim_wait_cq: the CQ is NULL"},
	{wrong_quirk, EINVAL, VB_WHY_SIM_FOREIGN, "vb_sim_set_quirk: "},
};

struct outcome {
	const struct call *call;
	int err;
	enum vb_error_kind kind;
	enum vb_reason reason_before, reason;
	char before[64], after[256];
};

static void *call_it(void *arg)
{
	struct outcome *outcome = arg;

	snprintf(outcome->before, sizeof(outcome->before), "%s", vb_last_error());
	outcome->reason_before = vb_last_reason();
	outcome->err = outcome->call->run();
	outcome->reason = vb_last_reason();
	snprintf(outcome->after, sizeof(outcome->after), "%s", vb_last_error());
	outcome->kind = vb_last_error_kind();
	return NULL;
}

/* Each call is the first of its thread, so that no verb has failed there. */
void test_first_failure_of_a_thread_has_a_sentence(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct outcome outcome = {.call = &calls[i]};
		pthread_t thread;

		TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, call_it, &outcome));
		TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
		TEST_ASSERT_EQUAL_STRING("", outcome.before);
		TEST_ASSERT_EQUAL_INT(calls[i].err, outcome.err);
		TEST_ASSERT_EQUAL_INT(VB_ERROR_INVALID_INPUT, outcome.kind);
		TEST_ASSERT_EQUAL_HEX(VB_WHY_NONE, outcome.reason_before);
		TEST_ASSERT_EQUAL_HEX(calls[i].reason, outcome.reason);
		if (!strstr(outcome.after, calls[i].says))
			TEST_FAIL_MESSAGE(outcome.after);
	}
}

/* Inline functions call the context's pointers, and the verbs layer does not see them. */
void test_inline_verbs_that_a_profile_lacks(void)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_pd *pd;

	open_first("rxe-6.1");
	pd = vb_alloc_pd(context);
	errno = 0;
	TEST_ASSERT_NULL(ibv_alloc_td(context, &td));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, errno);
	TEST_ASSERT_EQUAL_STRING(
		"alloc_td: d with the profile \"rxe-6.1\" does not have this verb, like the device "
		"that it imitates; do without the verb when it fails with EOPNOTSUPP, or use a "
		"simulated device with the profile spec",
		vb_last_error());
	TEST_ASSERT_NULL(vb_alloc_td(context, &td));
	TEST_ASSERT_NULL(ibv_alloc_dm(context, &dm));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "alloc_dm: d with"));
	TEST_ASSERT_NULL(ibv_alloc_null_mr(pd));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "alloc_null_mr: d with"));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, ibv_query_rt_values_ex(context, &values));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "query_rt_values_ex: d with"));
}

void test_inline_verbs_that_the_simulator_lacks(void)
{
	struct ibv_wq_init_attr init = {0};
	struct ibv_counters_init_attr counters = {0};

	open_first("spec");
	errno = 0;
	TEST_ASSERT_NULL(ibv_create_wq(context, &init));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, errno);
	TEST_ASSERT_EQUAL_STRING(
		"create_wq: a simulated device does not have this verb; do without the verb when "
		"it fails with EOPNOTSUPP, or use a device that has it",
		vb_last_error());
	TEST_ASSERT_NULL(ibv_create_counters(context, &counters));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "create_counters: "));
}

/* An earlier sentence does not stand for a later failure. */
void test_each_failure_has_its_own_sentence(void)
{
	struct ibv_send_wr wr = {0}, *bad;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp;
	struct ibv_pd *pd;

	open_first("spec");
	pd = vb_alloc_pd(context);
	init.send_cq = init.recv_cq = vb_create_cq(context, 4, NULL, NULL, 0);
	init.cap = (struct ibv_qp_cap){1, 1, 1, 1, 0};
	qp = vb_create_qp(pd, &init);
	TEST_ASSERT_NOT_NULL(qp);
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_dealloc_pd(pd));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "dealloc_pd: "));
	TEST_ASSERT_EQUAL_INT(VB_ERROR_RESOURCE, vb_last_error_kind());
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_send(qp, &wr, &bad));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "post_send: "));
	TEST_ASSERT_EQUAL_INT(VB_ERROR_INVALID_INPUT, vb_last_error_kind());
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, vb_set_ece(qp, &(struct ibv_ece){0}));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "set_ece: "));
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_fault_remove(NULL, 3));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "vb_fault_remove: "));
}
