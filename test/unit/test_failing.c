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

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <verbena/cm.h>
#include <verbena/explain.h>
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

/* --- lists of WRs --- */

#define LIST 4

static struct ibv_recv_wr receives[LIST];

static struct ibv_recv_wr *list_of_receives(void)
{
	static struct ibv_sge sge;

	sge = sge_of(&a, 0, 64);
	for (unsigned int i = 0; i < LIST; i++)
		receives[i] = (struct ibv_recv_wr){.wr_id = i,
						   .next = i + 1 < LIST ? &receives[i + 1] : NULL,
						   .sg_list = &sge,
						   .num_sge = 1};
	return receives;
}

/* The WRs before the one that is refused are posted: ibv_post_recv(3), bad_wr. */
void test_the_third_receive_of_a_list_is_refused(void)
{
	struct ibv_recv_wr *wr = list_of_receives(), *bad = NULL;
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp *qp = vb_create_qp_ex(a.context, &attr);
	const unsigned int id = add_rule((struct vb_fail_rule){.call = "post_recv", .at = 2});

	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(qp, &init,
					      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						      IBV_QP_ACCESS_FLAGS));
	TEST_ASSERT_EQUAL_INT(ENOMEM, ibv_post_recv(qp, wr, &bad));
	TEST_ASSERT_EQUAL_PTR(&receives[2], bad);
	expect_reason(
		VB_WHY_FAIL_INJECTED,
		"post_recv: rule %u of the failing calls, 'post_recv,at=2,errno=ENOMEM', makes "
		"this call fail with ENOMEM (Cannot allocate memory); handle the failure as one "
		"of a device; without the rule the call is made",
		id);
	/* The list is as it was, and a shorter one is not refused. */
	TEST_ASSERT_EQUAL_PTR(&receives[2], receives[1].next);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(qp, &receives[2], &bad));
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(qp, &error, IBV_QP_STATE));
	for (unsigned int i = 0; i < LIST; i++)
		expect_wc(&a, i, IBV_WC_WR_FLUSH_ERR);
	expect_nothing(&a);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(qp));
}

void test_the_second_receive_of_an_srq_is_refused(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 2, .max_sge = 1}};
	struct ibv_srq *srq = vb_create_srq(a.pd, &attr);
	struct ibv_recv_wr *wr = list_of_receives(), *bad = NULL;
	const unsigned int id =
		add_rule((struct vb_fail_rule){.call = "post_srq_recv", .at = 1, .err = EIO});

	TEST_ASSERT_EQUAL_INT(EIO, ibv_post_srq_recv(srq, wr, &bad));
	TEST_ASSERT_EQUAL_PTR(&receives[1], bad);
	TEST_ASSERT_EQUAL_INT(0, vb_fail_remove(id));
	/* One slot is taken. */
	TEST_ASSERT_EQUAL_INT(0, vb_query_srq(srq, &attr.attr));
	receives[attr.attr.max_wr - 1].next = NULL;
	TEST_ASSERT_EQUAL_INT(ENOMEM, ibv_post_srq_recv(srq, wr, &bad));
	TEST_ASSERT_EQUAL_PTR(&receives[attr.attr.max_wr - 1], bad);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_srq(srq));
}

static struct ibv_send_wr *list_of_sends(void)
{
	static struct ibv_send_wr sends[LIST];
	static struct ibv_sge sge;

	sge = sge_of(&a, 0, 64);
	for (unsigned int i = 0; i < LIST; i++)
		sends[i] = (struct ibv_send_wr){.wr_id = i,
						.next = i + 1 < LIST ? &sends[i + 1] : NULL,
						.sg_list = &sge,
						.num_sge = 1,
						.opcode = IBV_WR_SEND,
						.send_flags = IBV_SEND_SIGNALED};
	return sends;
}

void test_the_second_send_of_a_list_is_refused(void)
{
	struct ibv_send_wr *wr = list_of_sends(), *bad = NULL;
	struct ibv_recv_wr *bad_recv;
	struct ibv_qp *from, *to;

	connect_pair(&from, &to);
	add_rule((struct vb_fail_rule){.call = "post_send", .at = 1, .err = ENOSPC});
	receives[0] = (struct ibv_recv_wr){
		.sg_list = &(struct ibv_sge){(uintptr_t)b.buffer, 64, b.mr->lkey}, .num_sge = 1};
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, receives, &bad_recv));
	TEST_ASSERT_EQUAL_INT(ENOSPC, ibv_post_send(from, wr, &bad));
	TEST_ASSERT_EQUAL_PTR(wr->next, bad);
	expect_wc(&a, 0, IBV_WC_SUCCESS);
	expect_nothing(&a);
	/* The QP itself refuses the first WR: the rule changes nothing of that. */
	wr->num_sge = 1000;
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_send(from, wr, &bad));
	TEST_ASSERT_EQUAL_PTR(wr, bad);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_SEND_SGES, vb_last_reason());
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(from));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(to));
}

/* --- completions --- */

static void post_both(struct ibv_qp *from, struct ibv_qp *to, uint64_t wr_id)
{
	struct ibv_sge out = sge_of(&a, 0, 64), in = sge_of(&b, 0, 64);
	struct ibv_recv_wr *bad, recv = {.wr_id = wr_id, .sg_list = &in, .num_sge = 1};
	struct ibv_send_wr send = {
		.wr_id = wr_id, .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND};

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &recv, &bad));
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &send));
}

void test_a_completion_gets_another_status(void)
{
	struct ibv_qp *from, *to;
	char sentence[256];
	struct ibv_wc wc;

	connect_pair(&from, &to);
	add_rule((struct vb_fail_rule){.action = VB_FAIL_COMPLETION,
				       .status = IBV_WC_RETRY_EXC_ERR,
				       .qpn = from->qp_num,
				       .skip = 1,
				       .count = 1});
	for (unsigned int i = 0; i < 3; i++)
		post_both(from, to, i);
	expect_wc(&a, 0, IBV_WC_SUCCESS);
	wc = wait_wc(&a);
	TEST_ASSERT_EQUAL_UINT64(1, wc.wr_id);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RETRY_EXC_ERR, wc.status);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_FAIL_COMPLETION, wc.vendor_err);
	snprintf(sentence, sizeof(sentence),
		 "sim0 QP 0x%x, wr_id 1: IBV_WC_RETRY_EXC_ERR: a rule of the failing calls has "
		 "given "
		 "this status to the completion, which the device has ended with success; handle "
		 "the "
		 "failure as one of a device",
		 from->qp_num);
	TEST_ASSERT_EQUAL_STRING(sentence, vb_explain(a.context, &wc));
	expect_wc(&a, 2, IBV_WC_SUCCESS);
	for (unsigned int i = 0; i < 3; i++)
		expect_wc(&b, i, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(from));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(to));
}

void test_a_completion_by_its_wr_id(void)
{
	struct ibv_qp *from, *to;
	struct ibv_wc wc;

	connect_pair(&from, &to);
	add_rule((struct vb_fail_rule){.action = VB_FAIL_COMPLETION,
				       .vendor_err = 0x81,
				       .device = "sim1",
				       .wr_id_given = true,
				       .wr_id = 1});
	post_both(from, to, 0);
	post_both(from, to, 1);
	expect_wc(&a, 0, IBV_WC_SUCCESS);
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	expect_wc(&b, 0, IBV_WC_SUCCESS);
	wc = wait_wc(&b);
	TEST_ASSERT_EQUAL_INT(IBV_WC_GENERAL_ERR, wc.status);
	TEST_ASSERT_EQUAL_HEX(0x81, wc.vendor_err);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(from));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(to));
}

/* Through ibv_start_poll(), the program reads the changed status from the CQ. */
void test_a_completion_of_start_poll(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_poll_cq_attr none = {0};
	struct ibv_cq *own = a.cq;
	struct ibv_qp *from, *to;
	struct ibv_cq_ex *ex;

	add_rule((struct vb_fail_rule){.action = VB_FAIL_COMPLETION,
				       .status = IBV_WC_REM_OP_ERR,
				       .vendor_err = 0x81,
				       .count = 1});
	ex = vb_create_cq_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(ex);
	a.cq = ibv_cq_ex_to_cq(ex);
	connect_pair(&from, &to);
	post_both(from, to, 5);
	post_both(from, to, 6);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(ex, &none));
	TEST_ASSERT_EQUAL_UINT64(5, ex->wr_id);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_OP_ERR, ex->status);
	TEST_ASSERT_EQUAL_HEX(0x81, ibv_wc_read_vendor_err(ex));
	TEST_ASSERT_EQUAL_INT(0, ibv_next_poll(ex));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ex->status);
	ibv_end_poll(ex);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(from));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(to));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_cq(a.cq));
	a.cq = own;
}

void test_a_completion_is_made_up(void)
{
	struct ibv_wc wc[2];
	char sentence[256];

	add_rule((struct vb_fail_rule){.action = VB_FAIL_MADE,
				       .skip = 1,
				       .count = 1,
				       .wr_id = 77,
				       .qpn = 0x123,
				       .status = IBV_WC_REM_ACCESS_ERR});
	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 2, wc));
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(a.cq, 2, wc));
	TEST_ASSERT_EQUAL_UINT64(77, wc[0].wr_id);
	TEST_ASSERT_EQUAL_HEX(0x123, wc[0].qp_num);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, wc[0].status);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_FAIL_MADE, wc[0].vendor_err);
	snprintf(sentence, sizeof(sentence),
		 "sim0 QP 0x123, wr_id 77: IBV_WC_REM_ACCESS_ERR: a rule of the failing calls has "
		 "made "
		 "up this completion, which belongs to no WR; check the wr_id and the QPN of a "
		 "completion before you use them");
	TEST_ASSERT_EQUAL_STRING(sentence, vb_explain(a.context, wc));
	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 2, wc));
}

/* --- events --- */

static void expect_event(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	TEST_ASSERT_EQUAL_INT(0, vb_get_async_event(context, &event));
	TEST_ASSERT_EQUAL_INT(type, event.event_type);
	vb_ack_async_event(&event);
}

/* The event comes with the second alloc_pd on the device, which succeeds. */
void test_a_call_raises_an_event(void)
{
	static const enum ibv_event_type types[] = {
		IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_SM_CHANGE,
		IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_DEVICE_FATAL};

	for (unsigned int i = 0; i < 5; i++) {
		const unsigned int id = add_rule((struct vb_fail_rule){.action = VB_FAIL_EVENT,
								       .call = "alloc_pd",
								       .device = "sim1",
								       .skip = 1,
								       .count = 1,
								       .event = types[i]});
		struct ibv_pd *pds[3] = {vb_alloc_pd(a.context), vb_alloc_pd(b.context)};

		TEST_ASSERT_EQUAL_UINT64(0, vb_fail_hits(id));
		pds[2] = vb_alloc_pd(b.context);
		TEST_ASSERT_EQUAL_UINT64(1, vb_fail_hits(id));
		expect_event(b.context, types[i]);
		for (unsigned int j = 0; j < 3; j++)
			TEST_ASSERT_EQUAL_INT(0, vb_dealloc_pd(pds[j]));
		vb_fail_clear();
	}
}

/* --- events of QPs, CQs and SRQs --- */

/* Takes the event of an object, which has to be the next one, and acknowledges it. */
static void expect_event_of(struct ibv_context *context, enum ibv_event_type type,
			    const void *object)
{
	struct ibv_async_event event;

	TEST_ASSERT_EQUAL_INT(0, vb_get_async_event(context, &event));
	TEST_ASSERT_EQUAL_INT(type, event.event_type);
	TEST_ASSERT_EQUAL_PTR(object, event.element.cq);
	vb_ack_async_event(&event);
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);
	struct ibv_qp *qp = vb_create_qp_ex(a.context, &attr);

	TEST_ASSERT_NOT_NULL(qp);
	return qp;
}

/* Each event of a QP comes with the second query of that QP. Three of them move the QP to ERR. */
void test_a_call_raises_an_event_of_its_qp(void)
{
	static const enum ibv_event_type types[] = {
		IBV_EVENT_COMM_EST,	IBV_EVENT_SQ_DRAINED,	       IBV_EVENT_PATH_MIG,
		IBV_EVENT_PATH_MIG_ERR, IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_QP_FATAL,
		IBV_EVENT_QP_REQ_ERR,	IBV_EVENT_QP_ACCESS_ERR};

	for (unsigned int i = 0; i < 8; i++) {
		const unsigned int id = add_rule((struct vb_fail_rule){.action = VB_FAIL_EVENT,
								       .call = "query_qp",
								       .skip = 1,
								       .count = 1,
								       .event = types[i]});
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct ibv_qp *from, *to;

		connect_pair(&from, &to);
		for (unsigned int j = 0; j < 2; j++) {
			TEST_ASSERT_EQUAL_UINT64(0, vb_fail_hits(id));
			TEST_ASSERT_EQUAL_INT(0, vb_query_qp(from, &attr, IBV_QP_STATE, &init));
		}
		expect_event_of(a.context, types[i], from);
		TEST_ASSERT_EQUAL_INT(0, vb_query_qp(from, &attr, IBV_QP_STATE, &init));
		TEST_ASSERT_EQUAL_INT(i < 5 ? IBV_QPS_RTS : IBV_QPS_ERR, attr.qp_state);
		vb_fail_clear();
		TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(from));
		TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(to));
	}
}

/* The objects of a kind count from the rule on; a QP may also be named by its number. */
void test_an_event_of_the_second_object(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 2, .max_sge = 1}};
	const unsigned int counter = add_rule((struct vb_fail_rule){.call = "fork_init"});
	const unsigned int id = add_rule((struct vb_fail_rule){.action = VB_FAIL_EVENT,
							       .call = "query_gid",
							       .count = 1,
							       .event = IBV_EVENT_SRQ_LIMIT_REACHED,
							       .object = 2});
	struct ibv_srq *srqs[2];
	struct ibv_qp *qps[2];

	TEST_ASSERT_TRUE(counter);
	srqs[0] = vb_create_srq(a.pd, &attr);
	/* There is no second SRQ: the call does not match. */
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(a.context, 1, 1, &a.gid));
	TEST_ASSERT_EQUAL_UINT64(0, vb_fail_seen(id));
	srqs[1] = vb_create_srq(a.pd, &attr);
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(a.context, 1, 1, &a.gid));
	expect_event_of(a.context, IBV_EVENT_SRQ_LIMIT_REACHED, srqs[1]);
	for (unsigned int i = 0; i < 2; i++)
		qps[i] = make_qp();
	add_rule((struct vb_fail_rule){.action = VB_FAIL_EVENT,
				       .call = "query_gid",
				       .count = 1,
				       .event = IBV_EVENT_COMM_EST,
				       .qpn = qps[0]->qp_num});
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(a.context, 1, 1, &a.gid));
	expect_event_of(a.context, IBV_EVENT_COMM_EST, qps[0]);
	for (unsigned int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(qps[i]));
		TEST_ASSERT_EQUAL_INT(0, vb_destroy_srq(srqs[i]));
	}
}

static const struct ibv_async_event *to_acknowledge;
static pthread_barrier_t both_are_registered;
static atomic_bool acknowledged;

static void *acknowledge(void *arg)
{
	struct ibv_async_event event = *to_acknowledge;

	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(&both_are_registered);
	vb_sim_run(NULL, 1000);
	atomic_store(&acknowledged, true);
	vb_ack_async_event(&event);
	vb_sim_thread_leave(NULL);
	return NULL;
}

/* ibv_get_async_event(3): destroying the CQ waits until its event is acknowledged. */
void test_destroying_waits_for_the_acknowledgement(void)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	pthread_t thread;

	add_rule((struct vb_fail_rule){
		.action = VB_FAIL_EVENT, .call = "create_cq", .event = IBV_EVENT_CQ_ERR});
	cq = vb_create_cq(a.context, 16, NULL, NULL, 0);
	TEST_ASSERT_EQUAL_INT(0, vb_get_async_event(a.context, &event));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_CQ_ERR, event.event_type);
	TEST_ASSERT_EQUAL_PTR(cq, event.element.cq);
	/* Without another thread, the wait cannot end. */
	TEST_ASSERT_EQUAL_INT(EDEADLK, vb_destroy_cq(cq));
	to_acknowledge = &event;
	vb_sim_thread_enter(NULL);
	TEST_ASSERT_EQUAL_INT(0, pthread_barrier_init(&both_are_registered, NULL, 2));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, acknowledge, NULL));
	pthread_barrier_wait(&both_are_registered);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_cq(cq));
	TEST_ASSERT_TRUE(atomic_load(&acknowledged));
	TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, NULL));
	pthread_barrier_destroy(&both_are_registered);
	vb_sim_thread_leave(NULL);
}

/* --- made completions of extended CQs --- */

/* Makes an extended CQ in the place of a's, which keep_cq() puts back. */
static struct ibv_cq_ex *make_extended(struct ibv_cq **own)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_ex *ex = vb_create_cq_ex(a.context, &attr);

	TEST_ASSERT_NOT_NULL(ex);
	*own = a.cq;
	a.cq = ibv_cq_ex_to_cq(ex);
	return ex;
}

static void expect_made(struct ibv_cq_ex *ex)
{
	TEST_ASSERT_EQUAL_UINT64(77, ex->wr_id);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, ex->status);
	TEST_ASSERT_EQUAL_HEX(0x123, ibv_wc_read_qp_num(ex));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_FAIL_MADE, ibv_wc_read_vendor_err(ex));
	TEST_ASSERT_EQUAL_UINT32(0, ibv_wc_read_byte_len(ex));
}

static struct vb_fail_rule made_rule(uint64_t skip)
{
	return (struct vb_fail_rule){.action = VB_FAIL_MADE,
				     .skip = skip,
				     .count = 1,
				     .wr_id = 77,
				     .qpn = 0x123,
				     .status = IBV_WC_REM_ACCESS_ERR};
}

/* The CQ is empty. Behind the made completion, the poll goes on with those of the CQ. */
void test_start_poll_finds_a_made_completion(void)
{
	struct ibv_poll_cq_attr none = {0};
	struct ibv_qp *from, *to;
	struct ibv_cq_ex *ex;
	struct ibv_cq *own;

	add_rule(made_rule(1));
	ex = make_extended(&own);
	connect_pair(&from, &to);
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_start_poll(ex, &none));
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(ex, &none));
	expect_made(ex);
	post_both(from, to, 5);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, ibv_next_poll(ex));
	TEST_ASSERT_EQUAL_UINT64(5, ex->wr_id);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, ex->status);
	TEST_ASSERT_EQUAL_HEX(from->qp_num, ibv_wc_read_qp_num(ex));
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_next_poll(ex));
	ibv_end_poll(ex);
	/* The CQ is not locked. */
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_start_poll(ex, &none));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(from));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(to));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_cq(a.cq));
	a.cq = own;
}

/* A provider's CQ whose functions check that the program's polls are whole. */
static struct {
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr);
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
	void (*end_poll)(struct ibv_cq_ex *cq);
	bool polling; /* set between a start_poll() that returned 0 and its end_poll() */
} provider;

static int start_provider(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int err;

	TEST_ASSERT_FALSE(provider.polling);
	err = provider.start_poll(cq, attr);
	provider.polling = !err;
	return err;
}

static int next_of_provider(struct ibv_cq_ex *cq)
{
	TEST_ASSERT_TRUE(provider.polling);
	return provider.next_poll(cq);
}

static void end_provider(struct ibv_cq_ex *cq)
{
	TEST_ASSERT_TRUE(provider.polling);
	provider.polling = false;
	provider.end_poll(cq);
}

/* Makes an extended CQ of the provider in the place of a's. The layer finds the CQ as its provider made it. */
static struct ibv_cq_ex *create_watched(struct ibv_context *context,
					struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *ex = provider.create_cq_ex(context, attr);

	TEST_ASSERT_NOT_NULL(ex);
	provider.start_poll = ex->start_poll;
	provider.next_poll = ex->next_poll;
	provider.end_poll = ex->end_poll;
	provider.polling = false;
	ex->start_poll = start_provider;
	ex->next_poll = next_of_provider;
	ex->end_poll = end_provider;
	return ex;
}

/* ibv_create_cq_ex(3): ibv_next_poll() and ibv_end_poll() follow an ibv_start_poll() that succeeded. A made
 * completion opens no poll of the provider. */
void test_the_provider_sees_whole_polls(void)
{
	struct verbs_context *verbs_of_a = verbs_get_ctx(a.context);
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_poll_cq_attr none = {0};
	struct ibv_cq *own = a.cq;
	struct ibv_qp *from, *to;
	struct ibv_cq_ex *ex;

	provider.create_cq_ex = verbs_of_a->create_cq_ex;
	verbs_of_a->create_cq_ex = create_watched;
	add_rule(made_rule(0));
	ex = ibv_create_cq_ex(a.context, &attr);
	a.cq = ibv_cq_ex_to_cq(ex);
	connect_pair(&from, &to);
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(ex, &none));
	expect_made(ex);
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_next_poll(ex));
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_next_poll(ex));
	post_both(from, to, 5);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, ibv_next_poll(ex));
	TEST_ASSERT_EQUAL_UINT64(5, ex->wr_id);
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_next_poll(ex));
	ibv_end_poll(ex);
	TEST_ASSERT_FALSE(provider.polling);
	add_rule(made_rule(0));
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(ex, &none));
	ibv_end_poll(ex);
	post_both(from, to, 6);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(ex, &none));
	ibv_end_poll(ex);
	TEST_ASSERT_FALSE(provider.polling);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(from));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(to));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_cq(a.cq));
	a.cq = own;
	vb_fail_clear();
	verbs_of_a->create_cq_ex = provider.create_cq_ex;
}

void test_next_poll_finds_a_made_completion(void)
{
	struct ibv_poll_cq_attr none = {0};
	struct ibv_qp *from, *to;
	struct ibv_cq_ex *ex;
	struct ibv_cq *own;

	add_rule(made_rule(0));
	ex = make_extended(&own);
	connect_pair(&from, &to);
	post_both(from, to, 5);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(ex, &none));
	TEST_ASSERT_EQUAL_UINT64(5, ex->wr_id);
	TEST_ASSERT_EQUAL_INT(0, ibv_next_poll(ex));
	expect_made(ex);
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_next_poll(ex));
	ibv_end_poll(ex);
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_start_poll(ex, &none));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(from));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(to));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_cq(a.cq));
	a.cq = own;
}

/* --- calls that wait --- */

/* A signal interrupts a wait: the call fails, and the event stays. */
void test_waits_for_events_are_interrupted(void)
{
	struct ibv_comp_channel *channel = vb_create_comp_channel(a.context);
	struct rdma_event_channel *connections = vb_cm_create_event_channel("sim");
	struct rdma_cm_event *of_cm;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	TEST_ASSERT_NOT_NULL(channel);
	TEST_ASSERT_NOT_NULL(connections);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_event(a.context, 1, IBV_EVENT_SM_CHANGE));
	add_rule((struct vb_fail_rule){.call = "get_cq_event", .err = EINTR});
	add_rule((struct vb_fail_rule){.call = "get_async_event", .count = 1, .err = EINTR});
	add_rule((struct vb_fail_rule){.call = "cm_get_cm_event", .err = EINTR});
	TEST_ASSERT_EQUAL_INT(-1, vb_get_cq_event(channel, &cq, &context));
	TEST_ASSERT_EQUAL_INT(EINTR, errno);
	TEST_ASSERT_EQUAL_INT(-1, vb_get_async_event(a.context, &event));
	TEST_ASSERT_EQUAL_INT(EINTR, errno);
	expect_event(a.context, IBV_EVENT_SM_CHANGE);
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_get_cm_event(connections, &of_cm));
	TEST_ASSERT_EQUAL_INT(EINTR, errno);
	vb_fail_clear();
	vb_cm_destroy_event_channel(connections);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_comp_channel(channel));
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
	expect_refused((struct vb_fail_rule){.action = VB_FAIL_COMPLETION, .err = EIO}, EINVAL,
		       VB_WHY_FAIL_FIELD,
		       "fail_add: a rule of this action has no err; leave the field 0");
	expect_refused((struct vb_fail_rule){.call = "create_qp", .at = 1}, EINVAL,
		       VB_WHY_FAIL_FIELD,
		       "fail_add: a rule of this action has no at; leave the field 0");
	expect_refused((struct vb_fail_rule){.action = VB_FAIL_MADE, .status = 999}, EINVAL,
		       VB_WHY_FAIL_STATUS,
		       "fail_add: 999 is no status of a completion; set status to a value of enum "
		       "ibv_wc_status");
	expect_refused(
		(struct vb_fail_rule){.action = VB_FAIL_EVENT, .event = IBV_EVENT_WQ_FATAL}, EINVAL,
		VB_WHY_FAIL_EVENT,
		"fail_add: a rule cannot raise the event 19; set event to one of a port or device "
		"(PORT_ERR, PORT_ACTIVE, SM_CHANGE, CLIENT_REREGISTER, DEVICE_FATAL), or to one of "
		"a QP, CQ or SRQ");
	expect_refused((struct vb_fail_rule){.action = VB_FAIL_EVENT,
					     .event = IBV_EVENT_PORT_ERR,
					     .object = 1},
		       EINVAL, VB_WHY_FAIL_FIELD,
		       "fail_add: a rule of this action has no object; leave the field 0");
	expect_refused(
		(struct vb_fail_rule){.action = VB_FAIL_EVENT, .event = IBV_EVENT_CQ_ERR, .qpn = 1},
		EINVAL, VB_WHY_FAIL_FIELD,
		"fail_add: a rule of this action has no qpn; leave the field 0");
	expect_refused(
		(struct vb_fail_rule){.action = VB_FAIL_ALLOCATION}, EOPNOTSUPP, VB_WHY_FAIL_STATIC,
		"fail_add: allocations, descriptors and threads cannot fail in this program, since "
		"it is linked with Verbena statically; link the program with libverbena.so");
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
