/* SPDX-License-Identifier: MIT */
/* A layer on simulated devices: it sees what a program calls through the inline functions of
 * <infiniband/verbs.h>. */
#include <verbena/verbs.h>

#define B (*vb_find_backend("sim"))
#include "src/layer/layer.h"
#include "src/layer/watch.h"
#include "test/unit/sim_pair.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <verbena/error.h>

#define RECORDS 256
#define WRS	16
#define SGES	2
#define POSTING \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define ALL_OPS                                                                    \
	(POSTING | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |       \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)

/* What the layer has seen of a call. */
struct record {
	enum layer_verb verb;
	uint64_t arguments[LAYER_ARGUMENTS_MAX];
	uint64_t result;
	int err;
	enum vb_reason reason;
	const struct ibv_context *context;
	char device[32];
	struct ibv_wc wc;      /* of start_poll and next_poll */
	unsigned int wr_count; /* of wr_complete */
	struct ibv_send_wr wrs[WRS];
	struct ibv_sge sges[WRS][SGES];
};

static struct record records[RECORDS];
static atomic_uint record_count;
static enum layer_verb refused_verb; /* LAYER_VERBS: none */

static sem_t arrived; /* posted when another thread completes a batch */
static pthread_t main_thread;

static int before(struct layer_call *call)
{
	if (call->verb == LAYER_wr_complete && !pthread_equal(main_thread, pthread_self()))
		sem_post(&arrived);
	return call->verb == refused_verb ? ENOMEM : 0;
}

static void copy_wrs(struct record *record, const struct ibv_send_wr *wr)
{
	for (; wr && record->wr_count < WRS; wr = wr->next) {
		unsigned int i = record->wr_count++;

		record->wrs[i] = *wr;
		for (int j = 0; j < wr->num_sge && j < SGES; j++)
			record->sges[i][j] = wr->sg_list[j];
	}
}

static void after(const struct layer_call *call)
{
	struct record *record = &records[atomic_fetch_add(&record_count, 1) % RECORDS];

	*record = (struct record){
		.verb = call->verb,
		.result = call->result,
		.err = call->err,
		.reason = call->why ? call->why->reason : VB_WHY_NONE,
		.context = call->context,
	};
	memcpy(record->arguments, call->arguments,
	       layer_verb_info(call->verb)->parameter_count * sizeof(uint64_t));
	if (call->device)
		strncpy(record->device, call->device, sizeof(record->device) - 1);
	if (call->verb == LAYER_wr_complete)
		copy_wrs(record, (void *)(uintptr_t)call->arguments[1]);
	if ((call->verb == LAYER_start_poll || call->verb == LAYER_next_poll) && call->arguments[1])
		record->wc = *(struct ibv_wc *)(uintptr_t)call->arguments[1];
}

static struct layer layer = {.name = "recorder", .before = before, .after = after};

/* The last record must be of this verb, and there must be one record only. */
static const struct record *only(enum layer_verb verb)
{
	const struct record *record = &records[0];

	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, record_count, layer_verb_info(verb)->name);
	TEST_ASSERT_EQUAL_STRING(layer_verb_info(verb)->name, layer_verb_info(record->verb)->name);
	record_count = 0;
	return record;
}

static unsigned int count_of(enum layer_verb verb)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < record_count && i < RECORDS; i++)
		count += records[i].verb == verb;
	return count;
}

static const struct record *last_of(enum layer_verb verb)
{
	for (unsigned int i = record_count; i--;)
		if (records[i].verb == verb)
			return &records[i];
	TEST_FAIL_MESSAGE(layer_verb_info(verb)->name);
	return NULL;
}

static void add(void)
{
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer));
	record_count = 0;
}

void setUp(void)
{
	refused_verb = LAYER_VERBS;
	record_count = 0;
	main_thread = pthread_self();
	sem_init(&arrived, 0, 0);
}

void tearDown(void)
{
	layer_remove(&layer);
	close_pair();
	sem_destroy(&arrived);
}

/* --- context->ops --- */

static struct ibv_qp *from, *to;

static void start(void)
{
	add();
	open_pair();
	connect_pair(&from, &to);
	record_count = 0;
}

static void send_one(uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&b, 512, 256), source = sge_of(&a, 0, 16);
	struct ibv_recv_wr *bad, recv = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr send = {
		.wr_id = wr_id, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND};

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &recv, &bad));
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &send));
	expect_wc(&a, wr_id, IBV_WC_SUCCESS);
	expect_wc(&b, wr_id, IBV_WC_SUCCESS);
}

void test_layer_sim_sees_the_data_path(void)
{
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1, .num_sge = 1};
	struct ibv_send_wr *bad_send,
		send = {.num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge, source;
	const struct record *record;
	struct ibv_wc wc;

	start();
	source = sge_of(&a, 0, 16);
	send.sg_list = &source;
	sge = sge_of(&b, 512, 256);
	recv.sg_list = &sge;
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &recv, &bad_recv));
	record = only(LAYER_post_recv);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)to, record->arguments[0]);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)&recv, record->arguments[1]);
	TEST_ASSERT_EQUAL_STRING("sim1", record->device);
	TEST_ASSERT_EQUAL_PTR(b.context, record->context);
	TEST_ASSERT_EQUAL_INT(0, vb_post_send(from, &send, &bad_send));
	record = only(LAYER_post_send);
	TEST_ASSERT_EQUAL_STRING("sim0", record->device);
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(a.cq, 0));
	only(LAYER_req_notify_cq);
	vb_sim_run(NULL, 0);
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(a.cq, 4, &wc));
	record = only(LAYER_poll_cq);
	TEST_ASSERT_EQUAL_UINT64(1, record->result);
	TEST_ASSERT_EQUAL_INT(0, record->err);
	TEST_ASSERT_EQUAL_UINT64(4, record->arguments[1]);
}

void test_layer_sim_sees_windows_and_srqs(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_mw_bind bind = {.wr_id = 3};
	struct ibv_recv_wr *bad, recv = {.wr_id = 1};
	struct ibv_srq *srq;
	struct ibv_mw *mw;

	start();
	mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)mw, only(LAYER_alloc_mw)->result);
	bind.bind_info = (struct ibv_mw_bind_info){.mr = a.mr,
						   .addr = (uintptr_t)a.buffer,
						   .length = 16,
						   .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	TEST_ASSERT_EQUAL_INT(0, ibv_bind_mw(from, mw, &bind));
	only(LAYER_bind_mw);
	TEST_ASSERT_EQUAL_INT(0, ibv_dealloc_mw(mw));
	only(LAYER_dealloc_mw);
	srq = vb_create_srq(a.pd, &init);
	only(LAYER_create_srq);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_srq_recv(srq, &recv, &bad));
	only(LAYER_post_srq_recv);
}

/* --- struct verbs_context --- */

void test_layer_sim_sees_extended_verbs(void)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_parent_domain_init_attr parent = {0};
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_xrcd_init_attr xrcd_attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_device_attr_ex device_attr;
	struct ibv_port_attr port;
	struct ibv_xrcd *xrcd;
	struct ibv_pd *pd;
	struct ibv_td *td;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	start();
	TEST_ASSERT_EQUAL_INT(
		0, verbs_get_ctx_op(a.context, query_device_ex)
			   ->query_device_ex(a.context, NULL, &device_attr, sizeof(device_attr)));
	only(LAYER_query_device_ex);
	TEST_ASSERT_EQUAL_INT(0, verbs_get_ctx_op(a.context, query_port)
					 ->query_port(a.context, 1, &port, sizeof(port)));
	TEST_ASSERT_EQUAL_UINT64(1, only(LAYER_query_port)->arguments[1]);
	TEST_ASSERT_EQUAL_INT(0, ibv_query_rt_values_ex(a.context, &values));
	only(LAYER_query_rt_values_ex);
	td = ibv_alloc_td(a.context, &td_attr);
	only(LAYER_alloc_td);
	parent.pd = a.pd;
	parent.td = td;
	pd = ibv_alloc_parent_domain(a.context, &parent);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)pd, only(LAYER_alloc_parent_domain)->result);
	TEST_ASSERT_EQUAL_INT(0, vb_dealloc_pd(pd));
	only(LAYER_dealloc_pd);
	TEST_ASSERT_EQUAL_INT(0, ibv_dealloc_td(td));
	only(LAYER_dealloc_td);
	dm = ibv_alloc_dm(a.context, &dm_attr);
	only(LAYER_alloc_dm);
	mr = ibv_reg_dm_mr(a.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)mr, only(LAYER_reg_dm_mr)->result);
	TEST_ASSERT_EQUAL_INT(0, vb_dereg_mr(mr));
	only(LAYER_dereg_mr);
	TEST_ASSERT_EQUAL_INT(0, ibv_free_dm(dm));
	only(LAYER_free_dm);
	xrcd = ibv_open_xrcd(a.context, &xrcd_attr);
	only(LAYER_open_xrcd);
	TEST_ASSERT_EQUAL_INT(0, ibv_close_xrcd(xrcd));
	only(LAYER_close_xrcd);
	mr = ibv_alloc_null_mr(a.pd);
	only(LAYER_alloc_null_mr);
	TEST_ASSERT_EQUAL_INT(0, vb_dereg_mr(mr));
	only(LAYER_dereg_mr);
}

/* Old programs call these two pointers; query_port fills a short structure. */
void test_layer_sim_sees_old_programs(void)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;

	start();
	TEST_ASSERT_EQUAL_INT(0, a.context->ops._compat_query_device(a.context, &attr));
	only(LAYER_query_device);
	memset(&port, 0x5a, sizeof(port));
	TEST_ASSERT_EQUAL_INT(0, a.context->ops._compat_query_port(
					 a.context, 1, (struct _compat_ibv_port_attr *)&port));
	TEST_ASSERT_EQUAL_UINT64(1, only(LAYER_query_port)->arguments[1]);
	TEST_ASSERT_EQUAL_INT(IBV_PORT_ACTIVE, port.state);
	TEST_ASSERT_EQUAL_HEX16(0x5a5a, port.port_cap_flags2);
}

/* --- struct ibv_qp_ex --- */

static struct ibv_qp_ex *start_ex(void)
{
	struct ibv_qp_init_attr_ex attr;

	start();
	attr = qp_attr(&a, IBV_QPT_RC);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = ALL_OPS;
	from = vb_create_qp_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(from);
	connect_qp(from, &b, to->qp_num);
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(to, &(struct ibv_qp_attr){0}, IBV_QP_STATE));
	connect_qp(to, &a, from->qp_num);
	record_count = 0;
	return vb_qp_to_qp_ex(from);
}

static void recv_one(uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&b, 512, 256);
	struct ibv_recv_wr *bad, recv = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &recv, &bad));
}

void test_layer_sim_sees_a_batch_as_a_list(void)
{
	const struct ibv_sge list[2] = {{1, 2, 3}, {4, 5, 6}};
	struct ibv_qp_ex *ex = start_ex();
	const struct ibv_send_wr *wr;
	const struct record *record;

	record_count = 0;
	ibv_wr_start(ex);
	only(LAYER_wr_start);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, 0x77, 0x1000);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 32);
	ex->wr_id = 2;
	ibv_wr_send_imm(ex, htobe32(0x1234));
	ibv_wr_set_inline_data(ex, a.buffer, 8);
	ex->wr_id = 3;
	ex->wr_flags = IBV_SEND_FENCE;
	ibv_wr_atomic_cmp_swp(ex, 0x78, 0x2000, 5, 6);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 8);
	ex->wr_id = 4;
	ibv_wr_local_inv(ex, 0x79);
	ex->wr_id = 5;
	ibv_wr_rdma_read(ex, 0x7a, 0x3000);
	ibv_wr_set_sge_list(ex, 2, list);
	TEST_ASSERT_EQUAL_UINT(0, record_count);
	ibv_wr_abort(ex);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)ex, only(LAYER_wr_abort)->arguments[0]);

	/* The aborted WRs are not part of the next batch. */
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, 0x77, 0x1000);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 32);
	ex->wr_id = 2;
	ibv_wr_send_imm(ex, htobe32(0x1234));
	ibv_wr_set_inline_data(ex, a.buffer, 8);
	ex->wr_id = 3;
	ex->wr_flags = IBV_SEND_FENCE;
	ibv_wr_atomic_cmp_swp(ex, 0x78, 0x2000, 5, 6);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 8);
	ex->wr_id = 4;
	ibv_wr_rdma_read(ex, 0x7a, 0x3000);
	ibv_wr_set_sge_list(ex, 2, list);
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	record = only(LAYER_wr_complete);
	TEST_ASSERT_EQUAL_UINT(4, record->wr_count);
	wr = record->wrs;
	TEST_ASSERT_EQUAL_UINT64(1, wr[0].wr_id);
	TEST_ASSERT_EQUAL_INT(IBV_WR_RDMA_WRITE, wr[0].opcode);
	TEST_ASSERT_EQUAL_UINT(IBV_SEND_SIGNALED, wr[0].send_flags);
	TEST_ASSERT_EQUAL_HEX32(0x77, wr[0].wr.rdma.rkey);
	TEST_ASSERT_EQUAL_HEX64(0x1000, wr[0].wr.rdma.remote_addr);
	TEST_ASSERT_EQUAL_INT(1, wr[0].num_sge);
	TEST_ASSERT_EQUAL_UINT(32, record->sges[0][0].length);
	TEST_ASSERT_EQUAL_HEX32(a.mr->lkey, record->sges[0][0].lkey);
	TEST_ASSERT_EQUAL_INT(IBV_WR_SEND_WITH_IMM, wr[1].opcode);
	TEST_ASSERT_EQUAL_HEX32(htobe32(0x1234), wr[1].imm_data);
	TEST_ASSERT_EQUAL_UINT(IBV_SEND_SIGNALED | IBV_SEND_INLINE, wr[1].send_flags);
	TEST_ASSERT_EQUAL_UINT(8, record->sges[1][0].length);
	TEST_ASSERT_EQUAL_INT(IBV_WR_ATOMIC_CMP_AND_SWP, wr[2].opcode);
	TEST_ASSERT_EQUAL_UINT(IBV_SEND_FENCE, wr[2].send_flags);
	TEST_ASSERT_EQUAL_UINT64(5, wr[2].wr.atomic.compare_add);
	TEST_ASSERT_EQUAL_UINT64(6, wr[2].wr.atomic.swap);
	TEST_ASSERT_EQUAL_INT(2, wr[3].num_sge);
	TEST_ASSERT_EQUAL_UINT64(4, record->sges[3][1].addr);
}

void test_layer_sim_batch_is_posted_as_without_a_layer(void)
{
	struct ibv_qp_ex *ex = start_ex();

	memcpy(a.buffer, "a batch", 8);
	recv_one(7);
	ibv_wr_start(ex);
	ex->wr_id = 8;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 8);
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	expect_wc(&a, 8, IBV_WC_SUCCESS);
	expect_wc(&b, 7, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_STRING("a batch", (char *)b.buffer + 512);
}

void test_layer_sim_sees_a_batch_fail(void)
{
	struct ibv_qp_ex *ex = start_ex();
	const struct record *record;

	ibv_wr_start(ex);
	ibv_wr_start(ex); /* wrong */
	ibv_wr_send(ex);
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_wr_complete(ex));
	record = only(LAYER_wr_complete);
	TEST_ASSERT_EQUAL_INT(EINVAL, record->err);
	TEST_ASSERT_TRUE(record->reason != VB_WHY_NONE);
	/* More than max_send_wr: the list has those that fit. */
	ibv_wr_start(ex);
	for (unsigned int i = 0; i < 9; i++) {
		ibv_wr_rdma_write(ex, 0, 0);
		ibv_wr_set_sge(ex, 0, 0, 0);
	}
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(ENOMEM, ibv_wr_complete(ex));
	TEST_ASSERT_EQUAL_UINT(8, only(LAYER_wr_complete)->wr_count);
}

static void send_by_calls(struct ibv_qp_ex *ex, uint64_t wr_id)
{
	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 8);
}

static void expect_posting(struct ibv_qp_ex *ex)
{
	expect_nothing(&a);
	recv_one(1);
	send_by_calls(ex, 2);
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	expect_wc(&a, 2, IBV_WC_SUCCESS);
	expect_wc(&b, 1, IBV_WC_SUCCESS);
}

/* A batch that a layer fails is lost, and the QP can be used again. */
void test_layer_sim_refuses_wr_complete(void)
{
	struct ibv_qp_ex *ex = start_ex();

	refused_verb = LAYER_wr_complete;
	send_by_calls(ex, 9);
	TEST_ASSERT_EQUAL_INT(ENOMEM, ibv_wr_complete(ex));
	TEST_ASSERT_EQUAL_STRING("wr_complete: the layer recorder makes the call fail with ENOMEM",
				 vb_last_error());
	refused_verb = LAYER_VERBS;
	expect_posting(ex);
}

void test_layer_sim_refuses_wr_start(void)
{
	struct ibv_qp_ex *ex = start_ex();

	refused_verb = LAYER_wr_start;
	send_by_calls(ex, 9);
	TEST_ASSERT_EQUAL_INT(ENOMEM, ibv_wr_complete(ex));
	TEST_ASSERT_EQUAL_STRING("wr_complete: a layer has made wr_start fail with ENOMEM, so that "
				 "no WR is posted",
				 vb_last_error());
	/* The failure is over: this is a call without wr_start, which the simulator refuses. */
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_wr_complete(ex));
	send_by_calls(ex, 9);
	ibv_wr_abort(ex);
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_wr_complete(ex));
	refused_verb = LAYER_VERBS;
	expect_posting(ex);
}

/* An abort releases the QP, whatever a layer says. */
void test_layer_sim_refuses_no_abort(void)
{
	struct ibv_qp_ex *ex = start_ex();

	refused_verb = LAYER_wr_abort;
	send_by_calls(ex, 9);
	record_count = 0;
	ibv_wr_abort(ex);
	TEST_ASSERT_EQUAL_INT(0, only(LAYER_wr_abort)->err);
	refused_verb = LAYER_VERBS;
	expect_posting(ex);
}

/* A thread that completes a batch without having begun one waits for the QP, and then fails. */
static void *complete_without_start(void *ex)
{
	return (void *)(uintptr_t)ibv_wr_complete(ex);
}

void test_layer_sim_keeps_the_batch_of_another_thread(void)
{
	struct ibv_qp_ex *ex = start_ex();
	unsigned int count = 0;
	pthread_t thread;
	void *err;

	recv_one(1);
	send_by_calls(ex, 2);
	record_count = 0;
	pthread_create(&thread, NULL, complete_without_start, ex);
	sem_wait(&arrived);
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	pthread_join(thread, &err);
	TEST_ASSERT_EQUAL_INT(EINVAL, (uintptr_t)err);
	TEST_ASSERT_EQUAL_UINT(2, record_count);
	for (unsigned int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_UINT(records[i].err ? 0 : 1, records[i].wr_count);
		count += records[i].wr_count;
	}
	TEST_ASSERT_EQUAL_UINT(1, count);
	expect_wc(&a, 2, IBV_WC_SUCCESS);
}

/* --- struct ibv_cq_ex --- */

static struct ibv_cq_ex *extend_cq(uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16, .wc_flags = wc_flags};
	struct ibv_qp_init_attr_ex attr;
	struct ibv_cq_ex *cq;

	start();
	cq = ibv_create_cq_ex(b.context, &cq_attr);
	TEST_ASSERT_NOT_NULL(cq);
	attr = qp_attr(&b, IBV_QPT_RC);
	attr.recv_cq = attr.send_cq = ibv_cq_ex_to_cq(cq);
	to = vb_create_qp_ex(b.context, &attr);
	connect_qp(to, &a, from->qp_num);
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(from, &(struct ibv_qp_attr){0}, IBV_QP_STATE));
	connect_qp(from, &b, to->qp_num);
	return cq;
}

static void send_imm(uint64_t wr_id)
{
	struct ibv_sge source = sge_of(&a, 0, 16);
	struct ibv_send_wr send = {.wr_id = wr_id,
				   .sg_list = &source,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND_WITH_IMM,
				   .imm_data = htobe32(9)};

	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &send));
	expect_wc(&a, wr_id, IBV_WC_SUCCESS);
}

void test_layer_sim_sees_completions_of_an_extended_cq(void)
{
	struct ibv_cq_ex *cq = extend_cq(IBV_WC_STANDARD_FLAGS);
	struct ibv_poll_cq_attr attr = {0};
	const struct record *record;

	recv_one(5);
	recv_one(6);
	send_imm(1);
	send_imm(2);
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(cq, &attr));
	record = only(LAYER_start_poll);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)cq, record->arguments[0]);
	TEST_ASSERT_EQUAL_UINT64(5, record->wc.wr_id);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, record->wc.status);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RECV, record->wc.opcode);
	TEST_ASSERT_EQUAL_UINT(16, record->wc.byte_len);
	TEST_ASSERT_EQUAL_UINT(IBV_WC_WITH_IMM, record->wc.wc_flags);
	TEST_ASSERT_EQUAL_HEX32(htobe32(9), record->wc.imm_data);
	TEST_ASSERT_EQUAL_HEX32(to->qp_num, record->wc.qp_num);
	TEST_ASSERT_EQUAL_INT(0, ibv_next_poll(cq));
	TEST_ASSERT_EQUAL_UINT64(6, only(LAYER_next_poll)->wc.wr_id);
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_next_poll(cq));
	record = only(LAYER_next_poll);
	TEST_ASSERT_EQUAL_UINT64(0, record->arguments[1]);
	TEST_ASSERT_EQUAL_INT(0, record->err); /* the CQ is empty */
	TEST_ASSERT_EQUAL_UINT64(ENOENT, record->result);
	ibv_end_poll(cq);
	only(LAYER_end_poll);
}

static uint32_t read_nothing(struct ibv_cq_ex *cq)
{
	return 0xdead;
}

/* A provider has no function for a field that the CQ was not created with, or one that must not be
 * called. */
void test_layer_sim_reads_only_the_fields_of_the_cq(void)
{
	struct ibv_cq_ex *cq = extend_cq(IBV_WC_EX_WITH_QP_NUM);
	struct ibv_poll_cq_attr attr = {0};
	const struct record *record;

	cq->read_byte_len = read_nothing;
	cq->read_imm_data = NULL;
	cq->read_src_qp = NULL;
	cq->read_slid = NULL;
	cq->read_sl = NULL;
	cq->read_dlid_path_bits = NULL;
	recv_one(5);
	send_imm(1);
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(cq, &attr));
	record = only(LAYER_start_poll);
	TEST_ASSERT_EQUAL_UINT64(5, record->wc.wr_id);
	TEST_ASSERT_EQUAL_HEX32(to->qp_num, record->wc.qp_num);
	TEST_ASSERT_EQUAL_UINT(0, record->wc.byte_len);
	ibv_end_poll(cq);
}

/* Of a failed completion only wr_id, status, qp_num and vendor_err are valid: ibv_poll_cq(3). */
void test_layer_sim_sees_a_failed_completion(void)
{
	struct ibv_cq_ex *cq = extend_cq(IBV_WC_STANDARD_FLAGS);
	struct ibv_poll_cq_attr attr = {0};
	const struct record *record;

	recv_one(5);
	TEST_ASSERT_EQUAL_INT(
		0, vb_modify_qp(to, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	vb_sim_run(NULL, 0);
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(cq, &attr));
	record = only(LAYER_start_poll);
	TEST_ASSERT_EQUAL_INT(IBV_WC_WR_FLUSH_ERR, record->wc.status);
	TEST_ASSERT_EQUAL_UINT64(5, record->wc.wr_id);
	TEST_ASSERT_EQUAL_HEX32(to->qp_num, record->wc.qp_num);
	TEST_ASSERT_EQUAL_UINT(ibv_wc_read_vendor_err(cq), record->wc.vendor_err);
	ibv_end_poll(cq);
}

void test_layer_sim_refuses_a_poll(void)
{
	struct ibv_cq_ex *cq = extend_cq(IBV_WC_STANDARD_FLAGS);
	struct ibv_poll_cq_attr attr = {0};

	recv_one(5);
	send_imm(1);
	refused_verb = LAYER_start_poll;
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(ENOMEM, ibv_start_poll(cq, &attr));
	TEST_ASSERT_EQUAL_UINT(0, record_count);
	refused_verb = LAYER_VERBS;
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(cq, &attr));
	TEST_ASSERT_EQUAL_UINT64(5, cq->wr_id);
	ibv_end_poll(cq);
}

/* end_poll releases the lock of the CQ: a layer cannot keep it. */
void test_layer_sim_refuses_no_end_of_a_poll(void)
{
	struct ibv_cq_ex *cq = extend_cq(IBV_WC_STANDARD_FLAGS);
	struct ibv_poll_cq_attr attr = {0};

	recv_one(5);
	send_imm(1);
	TEST_ASSERT_EQUAL_INT(0, ibv_start_poll(cq, &attr));
	refused_verb = LAYER_end_poll;
	record_count = 0;
	ibv_end_poll(cq);
	TEST_ASSERT_EQUAL_INT(0, only(LAYER_end_poll)->err);
	refused_verb = LAYER_VERBS;
}

/* --- adding and removing in the middle --- */

void test_layer_sim_comes_and_goes_between_messages(void)
{
	struct ibv_device **list;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	list = vb_get_device_list("sim", NULL);
	open_end(&a, list[0]);
	open_end(&b, list[1]);
	/* Of the dispatched verbs, so that the verbs layer knows the contexts. */
	B.close_device(a.context);
	B.close_device(b.context);
	a.context = vb_open_device(list[0]);
	b.context = vb_open_device(list[1]);
	vb_free_device_list(list);
	for (struct end *end = &a; end; end = end == &a ? &b : NULL) {
		end->pd = vb_alloc_pd(end->context);
		end->cq = vb_create_cq(end->context, 64, NULL, NULL, 0);
		end->mr = vb_reg_mr(end->pd, end->buffer, sizeof(end->buffer), ACCESS_ALL);
	}
	connect_pair(&from, &to);
	for (unsigned int i = 0; i < 3; i++) {
		int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *) = a.context->ops.poll_cq;

		send_one(i);
		TEST_ASSERT_EQUAL_UINT(0, record_count);
		add();
		send_one(i);
		TEST_ASSERT_EQUAL_UINT(1, count_of(LAYER_post_send));
		TEST_ASSERT_EQUAL_UINT(1, count_of(LAYER_post_recv));
		TEST_ASSERT_GREATER_OR_EQUAL(2, count_of(LAYER_poll_cq));
		TEST_ASSERT_EQUAL_STRING("sim0", last_of(LAYER_post_send)->device);
		layer_remove(&layer);
		TEST_ASSERT_TRUE(poll_cq == a.context->ops.poll_cq);
		record_count = 0;
	}
	vb_close_device(a.context);
	vb_close_device(b.context);
	a.context = b.context = NULL;
}

/* The program asks for the functions of a QP that is older than the layer. */
static void count(void *arg, const struct vb_event *event)
{
	if (event->kind == VB_EVENT_STATE)
		++*(unsigned int *)arg;
}

/* Counts the events of one change of a QP's state that two watchers see. */
static void expect_watched(unsigned int seen[2], unsigned int first, unsigned int second)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	seen[0] = seen[1] = 0;
	connect_pair(&from, &to);
	seen[0] = seen[1] = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(from, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_UINT(first, seen[0]);
	TEST_ASSERT_EQUAL_UINT(second, seen[1]);
}

/* A watcher is a function with its argument: the same function may watch twice. */
void test_layer_sim_watchers_come_and_go(void)
{
	unsigned int seen[2];

	open_pair();
	TEST_ASSERT_EQUAL_INT(0, layer_watch(count, &seen[0]));
	TEST_ASSERT_EQUAL_INT(EEXIST, layer_watch(count, &seen[0]));
	TEST_ASSERT_EQUAL_INT(0, layer_watch(count, &seen[1]));
	expect_watched(seen, 1, 1);
	layer_unwatch(count, &seen[0]);
	expect_watched(seen, 0, 1);
	layer_unwatch(count, &seen[0]);
	TEST_ASSERT_EQUAL_INT(0, layer_watch(count, &seen[0]));
	layer_unwatch(count, &seen[1]);
	expect_watched(seen, 1, 0);
	layer_unwatch(count, &seen[0]);
	expect_watched(seen, 0, 0);
}

void test_layer_sim_sees_an_older_qp(void)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp_ex *ex;

	open_pair();
	connect_pair(&from, &to);
	attr = qp_attr(&a, IBV_QPT_RC);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = POSTING;
	from = B.create_qp_ex(a.context, &attr);
	connect_qp(from, &b, to->qp_num);
	add();
	ex = vb_qp_to_qp_ex(from);
	record_count = 0;
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 8);
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	TEST_ASSERT_EQUAL_UINT(1, last_of(LAYER_wr_complete)->wr_count);
	layer_remove(&layer);
	record_count = 0;
	ibv_wr_start(ex);
	ibv_wr_abort(ex);
	TEST_ASSERT_EQUAL_UINT(0, record_count);
}

/* A CQ or a QP that cannot be destroyed is still seen; one that is destroyed has its own functions. */
void test_layer_sim_objects_end_with_their_own_functions(void)
{
	struct ibv_cq_ex *cq = extend_cq(IBV_WC_STANDARD_FLAGS);
	struct ibv_poll_cq_attr attr = {0};
	int (*start_poll)(struct ibv_cq_ex *, struct ibv_poll_cq_attr *) = cq->start_poll;
	void (*wr_start)(struct ibv_qp_ex *);
	struct ibv_qp_init_attr_ex init;
	struct ibv_qp_ex *ex;

	TEST_ASSERT_EQUAL_INT(EBUSY, vb_destroy_cq(ibv_cq_ex_to_cq(cq)));
	TEST_ASSERT_TRUE(start_poll == cq->start_poll);
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_start_poll(cq, &attr));
	only(LAYER_start_poll);
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(to));
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_cq(ibv_cq_ex_to_cq(cq)));
	TEST_ASSERT_TRUE(start_poll != cq->start_poll); /* the simulator keeps the memory */
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_start_poll(cq, &attr));
	TEST_ASSERT_EQUAL_UINT(0, record_count);

	init = qp_attr(&a, IBV_QPT_RC);
	init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.send_ops_flags = POSTING;
	ex = vb_qp_to_qp_ex(vb_create_qp_ex(a.context, &init));
	wr_start = ex->wr_start;
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(a.context));
	a.context = NULL;
	TEST_ASSERT_TRUE(wr_start != ex->wr_start);
}

/* A world that is reset takes its contexts along; the layer is removed afterwards. */
void test_layer_sim_survives_a_reset(void)
{
	start();
	vb_sim_reset();
	TEST_ASSERT_TRUE(ibv_poll_cq(a.cq, 1, &(struct ibv_wc){0}) <= 0);
	layer_remove(&layer);
	a.context = b.context = NULL;
}

/* --- failures --- */

void test_layer_sim_tells_the_reason_of_this_call(void)
{
	struct ibv_send_wr *bad, send = {.opcode = IBV_WR_SEND};
	struct ibv_qp_init_attr_ex attr;
	const struct record *record;
	struct ibv_qp *idle;

	start();
	attr = qp_attr(&a, IBV_QPT_RC);
	idle = vb_create_qp_ex(a.context, &attr);
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_send(idle, &send, &bad));
	record = only(LAYER_post_send);
	TEST_ASSERT_EQUAL_INT(EINVAL, record->err);
	TEST_ASSERT_TRUE(record->reason != VB_WHY_NONE);
	TEST_ASSERT_EQUAL_INT(vb_last_reason(), record->reason);
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(a.cq, 0));
	record = only(LAYER_req_notify_cq);
	TEST_ASSERT_EQUAL_INT(0, record->err);
	TEST_ASSERT_EQUAL_INT(VB_WHY_NONE, record->reason);
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_destroy_cq(a.cq));
	record = only(LAYER_destroy_cq);
	TEST_ASSERT_EQUAL_INT(EBUSY, record->err);
	TEST_ASSERT_TRUE(record->reason != VB_WHY_NONE);
	/* A verb that the simulator lacks has a reason of the verbs layer, and not the last reason. */
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_send(idle, &send, &bad));
	record_count = 0;
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, vb_set_ece(idle, NULL));
	record = only(LAYER_set_ece);
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, record->err);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_VERB_LACKING, record->reason);
}

/* --- names --- */

void test_layer_sim_names_objects(void)
{
	char text[32], before_text[32];
	struct layer_object found;
	struct ibv_pd *pd;

	start();
	layer_object_name(a.pd, before_text, sizeof(before_text));
	TEST_ASSERT_EQUAL_INT(0, strncmp(before_text, "pd", 2));
	TEST_ASSERT_TRUE(layer_object_find(from, &found));
	TEST_ASSERT_EQUAL_HEX32(from->qp_num, found.qpn);
	TEST_ASSERT_EQUAL_STRING("sim0", found.device);
	pd = vb_alloc_pd(a.context);
	TEST_ASSERT_TRUE(layer_object_find(pd, &found));
	TEST_ASSERT_EQUAL_STRING("pd", found.kind);
	TEST_ASSERT_EQUAL_INT(0, vb_dealloc_pd(pd));
	TEST_ASSERT_EQUAL_STRING("", layer_object_name(pd, text, sizeof(text)));
	layer_remove(&layer);
	TEST_ASSERT_EQUAL_STRING("", layer_object_name(a.pd, text, sizeof(text)));
}
