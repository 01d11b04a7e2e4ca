/* SPDX-License-Identifier: MIT */
/* Failing calls, on simulated devices: <verbena/fault.h>, vb_fail_add() and its like. */
#include <verbena/verbs.h>

static struct ibv_device **list_devices(int *count)
{
	return vb_get_device_list("sim", count);
}

/* Only contexts that vb_open_device() has opened are known to the verbs layer. */
static const struct vb_backend verbs = {
	.get_device_list = list_devices,
	.free_device_list = vb_free_device_list,
	.open_device = vb_open_device,
	.close_device = vb_close_device,
	.alloc_pd = vb_alloc_pd,
	.create_cq = vb_create_cq,
	.reg_mr = vb_reg_mr,
	.query_gid = vb_query_gid,
	.query_port = vb_query_port,
	.create_qp_ex = vb_create_qp_ex,
	.modify_qp = vb_modify_qp,
};

#define B verbs
#include "src/layer/layer.h"
#include "test/unit/last_sentence.h"
#include "test/unit/sim_pair.h"

#include <string.h>
#include <verbena/cm.h>
#include <verbena/fault.h>

void setUp(void)
{
	open_pair();
}

void tearDown(void)
{
	vb_fail_clear();
	close_pair();
}

static unsigned int add_rule(struct vb_fail_rule rule)
{
	unsigned int id = 0;

	TEST_ASSERT_EQUAL_INT(0, vb_fail_add(&rule, &id));
	TEST_ASSERT_TRUE(id);
	return id;
}

/* --- the n-th call of a verb --- */

void test_the_third_alloc_pd_fails(void)
{
	const unsigned int id = add_rule(
		(struct vb_fail_rule){.call = "alloc_pd", .skip = 2, .count = 1, .err = EPERM});
	struct ibv_pd *pds[4];

	for (unsigned int i = 0; i < 4; i++) {
		errno = 0;
		pds[i] = vb_alloc_pd(a.context);
		TEST_ASSERT_EQUAL_INT(i == 2, !pds[i]);
		if (i != 2)
			continue;
		TEST_ASSERT_EQUAL_INT(EPERM, errno);
		expect_reason(VB_WHY_FAIL_INJECTED,
			      "alloc_pd: rule %u of the failing calls, 'alloc_pd,skip=2,count=1,"
			      "errno=EPERM', makes this call fail with EPERM (Operation not "
			      "permitted); handle the failure as one of a device; without the rule "
			      "the call is made",
			      id);
	}
	TEST_ASSERT_EQUAL_UINT64(1, vb_fail_hits(id));
	TEST_ASSERT_EQUAL_UINT64(4, vb_fail_seen(id));
}

/* One verb of each convention that can fail. */
void test_each_convention_reports_the_failure(void)
{
	struct rdma_cm_id *id = NULL;
	struct rdma_addrinfo *res = NULL;
	struct ibv_gid_entry entry;
	struct ibv_wc wc;

	add_rule((struct vb_fail_rule){.call = "query_port", .err = EIO});
	add_rule((struct vb_fail_rule){.call = "create_qp", .err = EAGAIN});
	add_rule((struct vb_fail_rule){.call = "query_gid", .err = EIO});
	add_rule((struct vb_fail_rule){.call = "query_gid_table", .err = EPERM});
	add_rule((struct vb_fail_rule){.call = "rereg_mr", .err = EBUSY});
	add_rule((struct vb_fail_rule){.call = "poll_cq"});
	add_rule((struct vb_fail_rule){.call = "cm_create_id", .err = ENODEV});
	add_rule((struct vb_fail_rule){.call = "cm_getaddrinfo", .err = ENODEV});
	TEST_ASSERT_EQUAL_INT(EIO, vb_query_port(a.context, 1, &(struct ibv_port_attr){0},
						 sizeof(struct ibv_port_attr)));
	expect_null(EAGAIN, vb_create_qp(a.pd, &(struct ibv_qp_init_attr){0}));
	TEST_ASSERT_EQUAL_INT(-1, vb_query_gid(a.context, 1, 0, &a.gid));
	TEST_ASSERT_EQUAL_INT(EIO, errno);
	TEST_ASSERT_EQUAL_INT(-EPERM, vb_query_gid_table(a.context, &entry, 1, 0, sizeof(entry)));
	TEST_ASSERT_TRUE(vb_rereg_mr(a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) < 0);
	TEST_ASSERT_EQUAL_INT(EBUSY, errno);
	TEST_ASSERT_TRUE(ibv_poll_cq(a.cq, 1, &wc) < 0);
	TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_create_id("sim", NULL, &id, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(ENODEV, errno);
	TEST_ASSERT_NULL(id);
	TEST_ASSERT_TRUE(vb_cm_getaddrinfo("sim", "10.0.0.1", "7", NULL, &res));
	TEST_ASSERT_EQUAL_INT(ENODEV, errno);
}

void test_a_call_that_fails_does_nothing(void)
{
	struct vb_sim_objects before, after;

	vb_sim_count_objects(NULL, &before);
	add_rule((struct vb_fail_rule){.call = "create_cq"});
	add_rule((struct vb_fail_rule){.call = "destroy_cq", .err = EBUSY});
	expect_null(ENOMEM, vb_create_cq(a.context, 16, NULL, NULL, 0));
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_destroy_cq(a.cq));
	vb_sim_count_objects(NULL, &after);
	TEST_ASSERT_EQUAL_MEMORY(&before, &after, sizeof(before));
	vb_fail_clear();
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_cq(a.cq));
}

/* --- which calls a rule matches --- */

/* Among the calls of a program, a rule without a name matches those that an adapter may refuse. */
void test_any_call(void)
{
	const unsigned int id = add_rule((struct vb_fail_rule){.skip = UINT64_MAX});
	struct ibv_wc wc;
	struct ibv_pd *pd = vb_alloc_pd(a.context);

	TEST_ASSERT_EQUAL_UINT64(1, vb_fail_seen(id));
	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(0, vb_dealloc_pd(pd));
	TEST_ASSERT_EQUAL_UINT64(1, vb_fail_seen(id));
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(a.cq, 0));
	TEST_ASSERT_EQUAL_UINT64(2, vb_fail_seen(id));
	TEST_ASSERT_EQUAL_UINT64(0, vb_fail_hits(id));
	TEST_ASSERT_TRUE(vb_fail_is_any("post_send"));
	TEST_ASSERT_TRUE(vb_fail_is_any("wr_complete"));
	TEST_ASSERT_TRUE(vb_fail_is_any("cm_connect"));
	TEST_ASSERT_FALSE(vb_fail_is_any("poll_cq"));
	TEST_ASSERT_FALSE(vb_fail_is_any("dereg_mr"));
	TEST_ASSERT_FALSE(vb_fail_is_any("cm_destroy_id"));
	TEST_ASSERT_FALSE(vb_fail_is_any("no_such_call"));
}

void test_a_rule_of_a_device(void)
{
	struct ibv_pd *pd;

	add_rule((struct vb_fail_rule){.call = "alloc_pd", .device = "sim1"});
	pd = vb_alloc_pd(a.context);
	TEST_ASSERT_NOT_NULL(pd);
	TEST_ASSERT_EQUAL_INT(0, vb_dealloc_pd(pd));
	expect_null(ENOMEM, vb_alloc_pd(b.context));
}

void test_the_first_rule_that_fires_decides(void)
{
	const unsigned int first =
		add_rule((struct vb_fail_rule){.call = "alloc_pd", .count = 1, .err = EIO});
	const unsigned int second = add_rule((struct vb_fail_rule){.err = EPERM});

	expect_null(EIO, vb_alloc_pd(a.context));
	TEST_ASSERT_EQUAL_UINT64(0, vb_fail_seen(second));
	expect_null(EPERM, vb_alloc_pd(a.context));
	TEST_ASSERT_EQUAL_UINT64(2, vb_fail_seen(first));
	TEST_ASSERT_EQUAL_UINT64(1, vb_fail_hits(first));
	TEST_ASSERT_EQUAL_UINT64(1, vb_fail_hits(second));
}

void test_a_removed_rule_fails_nothing(void)
{
	const unsigned int id = add_rule((struct vb_fail_rule){.call = "alloc_pd"});
	struct ibv_pd *pd;

	expect_null(ENOMEM, vb_alloc_pd(a.context));
	TEST_ASSERT_EQUAL_INT(0, vb_fail_remove(id));
	pd = vb_alloc_pd(a.context);
	TEST_ASSERT_NOT_NULL(pd);
	TEST_ASSERT_EQUAL_INT(0, vb_dealloc_pd(pd));
	TEST_ASSERT_EQUAL_UINT64(0, vb_fail_hits(id));
}

/* While no rule of a call exists, contexts have their own functions: nothing is in the way. */
void test_without_a_rule_nothing_is_in_the_way(void)
{
	const void *own = a.context->ops.post_send;
	const unsigned int id = add_rule((struct vb_fail_rule){.call = "alloc_pd"});

	TEST_ASSERT_TRUE(own != a.context->ops.post_send);
	TEST_ASSERT_EQUAL_INT(0, vb_fail_remove(id));
	TEST_ASSERT_TRUE(own == a.context->ops.post_send);
}

/* --- refusals --- */

static void expect_refused(struct vb_fail_rule rule, int err, enum vb_reason reason,
			   const char *sentence)
{
	unsigned int id = 7;

	TEST_ASSERT_EQUAL_INT(err, vb_fail_add(&rule, &id));
	expect_reason(reason, "%s", sentence);
	TEST_ASSERT_EQUAL_UINT(7, id);
}

void test_rules_that_are_refused(void)
{
	expect_refused((struct vb_fail_rule){.call = "ibv_create_qp"}, EINVAL, VB_WHY_FAIL_NO_CALL,
		       "fail_add: there is no call 'ibv_create_qp' that can fail; take a name of "
		       "vb_fail_call_name(), such as create_qp or cm_connect");
	expect_refused((struct vb_fail_rule){.err = 5000}, EINVAL, VB_WHY_FAIL_ERRNO,
		       "fail_add: err is 5000, which is no errno value; set err to a value such as "
		       "ENOMEM, or to 0");
	expect_refused((struct vb_fail_rule){.action = 77}, EINVAL, VB_WHY_FAIL_ACTION,
		       "fail_add: 77 is no action of a rule; set action to a value of enum "
		       "vb_fail_action");
	expect_refused((struct vb_fail_rule){.action = VB_FAIL_ALLOCATION, .call = "create_qp"},
		       EINVAL, VB_WHY_FAIL_FIELD,
		       "fail_add: a rule of this action has no call; leave the field 0");
	expect_refused((struct vb_fail_rule){.action = VB_FAIL_ALLOCATION}, EOPNOTSUPP,
		       VB_WHY_FAIL_STATIC,
		       "fail_add: allocations cannot fail in this program, since it is linked with "
		       "Verbena statically; link the program with libverbena.so");
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_fail_remove(0xffffff));
	expect_reason(VB_WHY_FAIL_NO_RULE, "fail_remove: no rule of the failing calls has the id "
					   "16777215; take the id that vb_fail_add() has returned, "
					   "of a rule that is not removed");
}

void test_too_many_rules_are_refused(void)
{
	for (unsigned int i = 0; i < VB_FAIL_RULES_MAX; i++)
		add_rule((struct vb_fail_rule){.call = "fork_init"});
	expect_refused((struct vb_fail_rule){0}, ENOSPC, VB_WHY_FAIL_FULL,
		       "fail_add: there are 64 rules of failing calls, and no more are possible; "
		       "remove rules with vb_fail_remove() or vb_fail_clear()");
}

/* --- the layer among others --- */

static int pass(struct layer_call *call)
{
	return 0;
}

void test_too_many_layers_are_refused(void)
{
	static struct layer layers[LAYERS_MAX];
	unsigned int count = 0;

	for (; count < LAYERS_MAX; count++) {
		layers[count] = (struct layer){.name = "pass", .before = pass};
		if (layer_add(&layers[count]))
			break;
	}
	expect_refused((struct vb_fail_rule){0}, ENOMEM, VB_WHY_FAIL_LAYERS,
		       "fail_add: too many layers watch the calls of the process; remove a layer, "
		       "such as the sanitizer or the explanations");
	while (count--)
		layer_remove(&layers[count]);
}

static enum vb_reason seen_reason;

static void note_reason(const struct layer_call *call)
{
	seen_reason = call->why ? call->why->reason : VB_WHY_NONE;
}

/* A log that is opened later sees the failure all the same. */
void test_a_later_layer_sees_the_failure(void)
{
	static struct layer later = {.name = "later", .after = note_reason};

	seen_reason = VB_WHY_NONE;
	add_rule((struct vb_fail_rule){.call = "alloc_pd"});
	TEST_ASSERT_EQUAL_INT(0, layer_add(&later));
	expect_null(ENOMEM, vb_alloc_pd(a.context));
	layer_remove(&later);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_FAIL_INJECTED, seen_reason);
}
