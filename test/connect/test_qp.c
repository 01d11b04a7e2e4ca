/* SPDX-License-Identifier: MIT */
/* Completion queues, prepared queue pairs and the handshake. */
#include "test/connect/connect.h"

#include <time.h>

struct end {
	struct vb_device *device;
	struct ibv_pd *pd;
	struct vb_cq *cq;
	struct vb_region *region;
	struct vb_prepared_qp *prepared;
	struct ibv_qp *qp;
};

static struct end a, b;
static struct vb_qp_config config;

static void open_end(struct end *end, const char *name)
{
	*end = (struct end){.device = vb_device_open_named("sim", name, 0, VB_GID_INDEX_ANY)};
	HAVE(end->device);
	end->pd = vb_alloc_pd(end->device->context);
	end->cq = vb_cq_open(end->device, 64, end);
	HAVE(end->cq);
	end->region = vb_region_alloc(end->device, end->pd, 4096, VB_ACCESS_DEFAULT);
	HAVE(end->region);
}

static void close_end(struct end *end)
{
	OK(vb_prepared_drop(end->prepared));
	if (end->qp)
		OK(vb_destroy_qp(end->qp));
	OK(vb_region_free(end->region));
	OK(vb_cq_close(end->cq));
	OK(vb_dealloc_pd(end->pd));
	OK(vb_device_close(end->device));
}

void setUp(void)
{
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	open_end(&a, "sim0");
	open_end(&b, "sim1");
	vb_qp_config_init(&config);
	config.access = 15;
}

void tearDown(void)
{
	close_end(&a);
	close_end(&b);
	assert_nothing_left();
}

static void prepare(struct end *end)
{
	end->prepared = vb_qp_prepare(end->device, end->pd, end->cq->cq, end->cq->cq, &config);
	HAVE(end->prepared);
}

static void shake(struct end *end, const struct vb_endpoint *to)
{
	end->qp = vb_handshake(end->prepared, to);
	HAVE(end->qp);
	end->prepared = NULL;
}

static void join_ends(void)
{
	struct vb_endpoint of_a, of_b;

	prepare(&a);
	prepare(&b);
	of_a = *vb_prepared_endpoint(a.prepared);
	of_b = *vb_prepared_endpoint(b.prepared);
	shake(&a, &of_b);
	shake(&b, &of_a);
}

static void post_recv(struct end *end, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)end->region->addr, 2048, end->region->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	OK(vb_post_recv(end->qp, &wr, &bad));
}

static void post_send(struct end *end, uint64_t wr_id, const char *text)
{
	struct ibv_sge sge = {(uintptr_t)end->region->addr + 2048, (uint32_t)strlen(text) + 1,
			      end->region->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	memcpy((char *)end->region->addr + 2048, text, strlen(text) + 1);
	OK(vb_post_send(end->qp, &wr, &bad));
}

static void expect(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {0};

	TEST_ASSERT_EQUAL_INT_MESSAGE(1, vb_cq_wait(end->cq, &wc, 1, 100 * S), vb_last_error());
	TEST_ASSERT_EQUAL_UINT64(wr_id, wc.wr_id);
	TEST_ASSERT_EQUAL_STRING(vb_wc_status_str(status), vb_wc_status_str(wc.status));
}

static void exchange_text(void)
{
	post_recv(&b, 1);
	post_send(&a, 2, "a word");
	expect(&b, 1, IBV_WC_SUCCESS);
	expect(&a, 2, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_STRING("a word", b.region->addr);
}

/* --- connecting --- */

void test_an_rc_pair(void)
{
	join_ends();
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, a.qp->state);
	exchange_text();
}

void test_the_settings_are_in_force(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	config.min_rnr_timer = VB_RNR_0_12_MS;
	config.timeout = 13;
	config.retry_cnt = 3;
	config.rnr_retry = 2;
	config.sq_psn = 0x111;
	config.path_mtu = IBV_MTU_512;
	config.max_rd_atomic = 3;
	config.max_dest_rd_atomic = 4;
	config.hop_limit = 9;
	config.traffic_class = 8;
	config.service_level = 5;
	config.max_send_wr = 9;
	config.qp_context = &config;
	join_ends();
	OK(vb_query_qp(a.qp, &attr, IBV_QP_STATE, &init));
	TEST_ASSERT_EQUAL_UINT(VB_RNR_0_12_MS, attr.min_rnr_timer);
	TEST_ASSERT_EQUAL_UINT(13, attr.timeout);
	TEST_ASSERT_EQUAL_UINT(3, attr.retry_cnt);
	TEST_ASSERT_EQUAL_UINT(2, attr.rnr_retry);
	TEST_ASSERT_EQUAL_UINT(0x111, attr.sq_psn);
	TEST_ASSERT_EQUAL_UINT(0x111, attr.rq_psn);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_512, attr.path_mtu);
	TEST_ASSERT_EQUAL_UINT(3, attr.max_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(4, attr.max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(9, attr.ah_attr.grh.hop_limit);
	TEST_ASSERT_EQUAL_UINT(8, attr.ah_attr.grh.traffic_class);
	TEST_ASSERT_EQUAL_UINT(5, attr.ah_attr.sl);
	TEST_ASSERT_EQUAL_UINT(15, attr.qp_access_flags);
	TEST_ASSERT_TRUE(init.cap.max_send_wr >= 9);
	TEST_ASSERT_EQUAL_PTR(&config, a.qp->qp_context);
}

void test_the_smaller_mtu_is_taken(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct vb_endpoint of_b;

	prepare(&a);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, vb_prepared_endpoint(a.prepared)->mtu);
	config.path_mtu = IBV_MTU_256;
	prepare(&b);
	of_b = *vb_prepared_endpoint(b.prepared);
	shake(&a, &of_b);
	OK(vb_query_qp(a.qp, &attr, IBV_QP_PATH_MTU, &init));
	TEST_ASSERT_EQUAL_INT(IBV_MTU_256, attr.path_mtu);
}

void test_a_receive_psn_of_ones_own(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	config.rq_psn = 5;
	config.sq_psn = 5;
	join_ends();
	OK(vb_query_qp(b.qp, &attr, IBV_QP_RQ_PSN, &init));
	TEST_ASSERT_EQUAL_UINT(5, attr.rq_psn);
	exchange_text();
}

void test_a_pair_over_another_gid(void)
{
	config.gid_index = 0;
	config.port_num = 1;
	join_ends();
	exchange_text();
}

void test_a_qp_connected_to_itself(void)
{
	struct vb_endpoint own;

	prepare(&a);
	own = *vb_prepared_endpoint(a.prepared);
	shake(&a, &own);
	post_recv(&a, 1);
	post_send(&a, 2, "self");
	expect(&a, 1, IBV_WC_SUCCESS);
	expect(&a, 2, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_STRING("self", a.region->addr);
}

void test_a_uc_pair(void)
{
	config.type = IBV_QPT_UC;
	join_ends();
	exchange_text();
}

void test_ud_needs_no_endpoint_to_be_ready_and_one_to_send(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};
	struct vb_endpoint of_b;
	struct ibv_ah *ah;

	config.type = IBV_QPT_UD;
	prepare(&a);
	prepare(&b);
	of_b = *vb_prepared_endpoint(b.prepared);
	shake(&a, NULL);
	shake(&b, NULL);
	ah = vb_endpoint_ah(a.device, a.pd, &config, &of_b);
	HAVE(ah);
	post_recv(&b, 1);
	sge = (struct ibv_sge){(uintptr_t)a.region->addr, 8, a.region->mr->lkey};
	memcpy(a.region->addr, "datagram", 8);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = of_b.qpn;
	wr.wr.ud.remote_qkey = config.qkey;
	OK(vb_post_send(a.qp, &wr, &bad));
	expect(&b, 1, IBV_WC_SUCCESS);
	expect(&a, 0, IBV_WC_SUCCESS);
	/* The first 40 bytes are the GRH: man ibv_post_recv(3). */
	TEST_ASSERT_EQUAL_MEMORY("datagram", (char *)b.region->addr + 40, 8);
	OK(vb_destroy_ah(ah));
}

void test_an_srq_feeds_the_qp(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = vb_create_srq(b.pd, &attr);
	struct ibv_sge sge = {(uintptr_t)b.region->addr, 64, b.region->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};
	struct vb_endpoint of_a, of_b;

	prepare(&a);
	config.srq = srq;
	prepare(&b);
	of_a = *vb_prepared_endpoint(a.prepared);
	of_b = *vb_prepared_endpoint(b.prepared);
	shake(&a, &of_b);
	shake(&b, &of_a);
	OK(vb_post_srq_recv(srq, &wr, &bad));
	post_send(&a, 2, "shared");
	expect(&b, 9, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_STRING("shared", b.region->addr);
	OK(vb_destroy_qp(b.qp));
	b.qp = NULL;
	OK(vb_destroy_srq(srq));
}

/* --- what is refused --- */

static void not_prepared(int err, const char *says)
{
	struct vb_prepared_qp *prepared =
		vb_qp_prepare(a.device, a.pd, a.cq->cq, a.cq->cq, &config);

	TEST_ASSERT_NULL(prepared);
	TEST_ASSERT_EQUAL_INT(err, errno);
	assert_says(says);
}

void test_a_field_out_of_range_is_refused_by_name(void)
{
	config.rnr_retry = 8;
	not_prepared(ERANGE, "rnr_retry 8 is not in 0..7");
	vb_qp_config_init(&config);
	config.type = IBV_QPT_RAW_PACKET;
	not_prepared(ERANGE, "type");
}

void test_more_than_the_device_has_is_refused(void)
{
	config.max_send_wr = 1 << 20;
	not_prepared(EINVAL, "invalid input: qp_prepare: RC QP: create_qp");
	vb_qp_config_init(&config);
	config.port_num = 7;
	not_prepared(EINVAL, "port 7");
}

void test_a_missing_cq_is_refused(void)
{
	TEST_ASSERT_NULL(vb_qp_prepare(a.device, a.pd, NULL, a.cq->cq, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	assert_says("no send CQ");
	TEST_ASSERT_NULL(vb_qp_prepare(a.device, a.pd, a.cq->cq, NULL, NULL));
	assert_says("no receive CQ");
}

void test_an_srq_with_uc_is_refused(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};

	config.srq = vb_create_srq(a.pd, &attr);
	config.type = IBV_QPT_UC;
	not_prepared(EINVAL, "UC");
	OK(vb_destroy_srq(config.srq));
}

void test_a_port_that_went_down_is_refused(void)
{
	OK(vb_sim_port_state(a.device->context, 1, false));
	not_prepared(ENETDOWN, "port 1 is ");
	OK(vb_sim_port_state(a.device->context, 1, true));
}

void test_a_new_lid_or_gid_is_in_the_endpoint(void)
{
	union ibv_gid fresh = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9, [15] = 1}};

	OK(vb_sim_set_gid(a.device->context, 1, (unsigned int)a.device->gid_index, &fresh));
	prepare(&a);
	TEST_ASSERT_EQUAL_MEMORY(&fresh, &vb_prepared_endpoint(a.prepared)->gid, sizeof(fresh));
}

/* Opens both ends in a world of the profile hostile, where the default P_Key is at index 2. */
static void enter_hostile_world(void)
{
	struct vb_sim_config *world = calloc(1, sizeof(*world));

	close_end(&a);
	close_end(&b);
	world->device_count = 2;
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(world->devices[i].name, sizeof(world->devices[i].name), "sim%u", i);
		snprintf(world->devices[i].profile, sizeof(world->devices[i].profile), "hostile");
	}
	OK(vb_sim_configure(world));
	free(world);
	open_end(&a, "sim0");
	open_end(&b, "sim1");
	config.max_send_sge = config.max_recv_sge = 4;
}

static unsigned int pkey_index_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	OK(vb_query_qp(qp, &attr, IBV_QP_PKEY_INDEX, &init));
	return attr.pkey_index;
}

void test_the_default_pkey_is_found_where_it_stands(void)
{
	enter_hostile_world();
	join_ends();
	TEST_ASSERT_EQUAL_UINT(2, pkey_index_of(a.qp));
	TEST_ASSERT_EQUAL_UINT(2, pkey_index_of(b.qp));
	exchange_text();
}

void test_a_pkey_index_of_the_caller_stays(void)
{
	enter_hostile_world();
	config.pkey_index = 1;
	join_ends();
	TEST_ASSERT_EQUAL_UINT(1, pkey_index_of(a.qp));
}

void test_a_failed_handshake_leaves_the_qp_to_be_tried_again(void)
{
	struct vb_endpoint of_a, of_b, wrong;

	prepare(&a);
	prepare(&b);
	of_a = *vb_prepared_endpoint(a.prepared);
	of_b = *vb_prepared_endpoint(b.prepared);
	wrong = of_b;
	wrong.qpn = 1 << 24;
	TEST_ASSERT_NULL(vb_handshake(a.prepared, &wrong));
	TEST_ASSERT_EQUAL_INT(EBADMSG, errno);
	TEST_ASSERT_NULL(vb_handshake(a.prepared, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	shake(&a, &of_b);
	shake(&b, &of_a);
	exchange_text();
}

void test_the_step_that_the_device_refuses_is_named(void)
{
	struct vb_endpoint of_a, of_b;

	config.pkey_index = 60000;
	prepare(&a);
	config.pkey_index = 0;
	prepare(&b);
	of_a = *vb_prepared_endpoint(a.prepared);
	of_b = *vb_prepared_endpoint(b.prepared);
	TEST_ASSERT_NULL(vb_handshake(a.prepared, &of_b));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	assert_says("invalid input: handshake: QP 0x");
	assert_says(" to INIT: modify_qp");
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RESET, vb_prepared_qp(a.prepared)->state);
	config.max_rd_atomic = 255;
	OK(vb_prepared_drop(a.prepared));
	prepare(&a);
	TEST_ASSERT_NULL(vb_handshake(a.prepared, &of_b));
	assert_says(" to RTS: modify_qp");
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RESET, vb_prepared_qp(a.prepared)->state);
	shake(&b, &of_a);
}

/* --- wrong endpoints and lost packets --- */

void test_an_endpoint_with_another_qpn_fails_at_the_first_message(void)
{
	struct vb_endpoint wrong;

	prepare(&a);
	prepare(&b);
	wrong = *vb_prepared_endpoint(b.prepared);
	wrong.qpn += 1000;
	shake(&a, &wrong);
	post_send(&a, 2, "nobody");
	expect(&a, 2, IBV_WC_RETRY_EXC_ERR);
}

void test_an_endpoint_with_another_gid_fails_in_the_handshake_or_at_the_first_message(void)
{
	struct vb_endpoint wrong;

	prepare(&a);
	prepare(&b);
	wrong = *vb_prepared_endpoint(b.prepared);
	wrong.gid.raw[15] = 99;
	a.qp = vb_handshake(a.prepared, &wrong);
	if (!a.qp) {
		TEST_ASSERT_TRUE(errno == ENETUNREACH || errno == ETIMEDOUT || errno == EINVAL);
		return;
	}
	a.prepared = NULL;
	post_send(&a, 2, "nobody");
	expect(&a, 2, IBV_WC_RETRY_EXC_ERR);
}

void test_an_endpoint_with_another_psn_is_not_answered(void)
{
	struct vb_endpoint of_a, of_b;

	prepare(&a);
	prepare(&b);
	of_a = *vb_prepared_endpoint(a.prepared);
	of_b = *vb_prepared_endpoint(b.prepared);
	of_a.psn = 0x7000;
	shake(&a, &of_b);
	shake(&b, &of_a);
	post_recv(&b, 1);
	post_send(&a, 2, "late");
	expect(&a, 2, IBV_WC_RETRY_EXC_ERR);
}

void test_lost_packets_are_sent_again(void)
{
	join_ends();
	OK(vb_fault_add(NULL, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .count = 3}, NULL));
	exchange_text();
	TEST_ASSERT_TRUE(vb_sim_now_ns(NULL) >= 3 * 65536);
}

/* --- completion queues --- */

void test_a_cq_carries_the_callers_id(void)
{
	TEST_ASSERT_EQUAL_PTR(&a, a.cq->id);
	TEST_ASSERT_EQUAL_PTR(&a, a.cq->cq->cq_context);
	TEST_ASSERT_TRUE(a.cq->cq->cqe >= 64);
}

void test_a_cq_of_a_wrong_size(void)
{
	TEST_ASSERT_NULL(vb_cq_open(a.device, 0, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_NULL(vb_cq_open(a.device, a.device->attr.max_cqe + 1, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	assert_says("the device allows 1 to");
}

void test_a_cq_in_use_stays(void)
{
	prepare(&a);
	FAILS(EBUSY, vb_cq_close(a.cq));
	TEST_ASSERT_EQUAL_INT(VB_ERROR_RESOURCE, vb_last_error_kind());
}

void test_polling_takes_at_most_what_the_array_holds(void)
{
	struct ibv_wc wc[4];

	join_ends();
	for (uint64_t i = 0; i < 5; i++)
		post_recv(&b, i);
	for (uint64_t i = 0; i < 5; i++)
		post_send(&a, i, "x");
	OK(vb_sim_run(NULL, 1 * MS));
	TEST_ASSERT_EQUAL_INT(4, vb_cq_poll(b.cq, wc, 4));
	TEST_ASSERT_EQUAL_INT(1, vb_cq_wait(b.cq, wc, 4, 0));
	TEST_ASSERT_EQUAL_UINT64(4, wc[0].wr_id);
	TEST_ASSERT_EQUAL_INT(0, vb_cq_poll(b.cq, wc, 4));
}

/* The ack timeout ends after 65.536 us; the wait ends earlier, exact to the nanosecond. */
void test_a_virtual_wait_ends_on_time(void)
{
	struct ibv_wc wc;
	uint64_t began_ns;

	join_ends();
	OK(vb_fault_add(NULL, &(struct vb_fault_rule){.action = VB_FAULT_DROP}, NULL));
	post_send(&a, 1, "lost");
	began_ns = vb_sim_now_ns(NULL);
	FAILS(-ETIMEDOUT, vb_cq_wait(b.cq, &wc, 1, 1000));
	TEST_ASSERT_EQUAL_UINT64(began_ns + 1000, vb_sim_now_ns(NULL));
	FAILS(-ETIMEDOUT, vb_cq_wait(b.cq, &wc, 1, 0));
	TEST_ASSERT_EQUAL_UINT64(began_ns + 1000, vb_sim_now_ns(NULL));
	expect(&a, 1, IBV_WC_RETRY_EXC_ERR);
}

void test_a_virtual_wait_without_limit_for_nothing_is_a_deadlock(void)
{
	struct ibv_wc wc;

	FAILS(-EDEADLK, vb_cq_wait(a.cq, &wc, 1, VB_FOREVER));
	assert_says("was awaited, and none can come");
	FAILS(-ETIMEDOUT, vb_cq_wait(a.cq, &wc, 1, 5 * S));
	TEST_ASSERT_EQUAL_UINT64(5 * S, vb_sim_now_ns(NULL));
}

void test_waiting_on_what_is_no_virtual_cq(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(-1, vb_sim_wait_cq(NULL, 1, &wc, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(-1, vb_sim_wait_cq(a.cq->cq, 0, &wc, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

static void *tell(void *arg)
{
	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(arg);
	OK(vb_sim_run(NULL, MS));
	vb_sim_tell(NULL);
	vb_sim_thread_leave(NULL);
	return NULL;
}

void test_a_virtual_wait_ends_when_another_thread_tells(void)
{
	uint64_t told = vb_sim_told(NULL);
	pthread_barrier_t entered;
	pthread_t thread;
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(-1, vb_sim_wait_cq_told(a.cq->cq, 1, &wc, VB_FOREVER, told));
	TEST_ASSERT_EQUAL_INT(EDEADLK, errno);
	pthread_barrier_init(&entered, NULL, 2);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, tell, &entered));
	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(&entered);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_wait_cq_told(a.cq->cq, 1, &wc, VB_FOREVER, told));
	TEST_ASSERT_EQUAL_UINT64(MS, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_UINT64(told + 1, vb_sim_told(NULL));
	vb_sim_thread_leave(NULL);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&entered);
	/* vb_sim_tell() was called before the wait. */
	TEST_ASSERT_EQUAL_INT(0, vb_sim_wait_cq_told(a.cq->cq, 1, &wc, VB_FOREVER, told));
}

/* The port is asked for each; another thread's time would be over. */
void test_preparing_many_qps_moves_no_time(void)
{
	struct vb_prepared_qp *prepared[4];
	static const struct vb_fault_rule all = {.action = VB_FAULT_DROP};
	unsigned int id;

	OK(vb_fault_add(NULL, &all, &id));
	join_ends();
	post_send(&a, 1, "lost");
	OK(vb_sim_run(NULL, 0));
	TEST_ASSERT_TRUE(vb_sim_next_ns(NULL) != VB_SIM_NEVER);
	for (int i = 0; i < 4; i++) {
		prepared[i] = vb_qp_prepare(a.device, a.pd, a.cq->cq, a.cq->cq, NULL);
		HAVE(prepared[i]);
	}
	TEST_ASSERT_EQUAL_UINT64(0, vb_sim_now_ns(NULL));
	for (int i = 0; i < 4; i++)
		vb_prepared_drop(prepared[i]);
}

/* --- the real clock --- */

static void real_world(void)
{
	close_end(&a);
	close_end(&b);
	fresh_world(2, VB_SIM_CLOCK_REAL);
	open_end(&a, "sim0");
	open_end(&b, "sim1");
	config.timeout = 14;
}

void test_a_real_wait_ends_on_time(void)
{
	struct timespec began, ended;
	struct ibv_wc wc;

	real_world();
	clock_gettime(CLOCK_MONOTONIC, &began);
	FAILS(-ETIMEDOUT, vb_cq_wait(a.cq, &wc, 1, 3 * MS));
	clock_gettime(CLOCK_MONOTONIC, &ended);
	TEST_ASSERT_TRUE((ended.tv_sec - began.tv_sec) * 1000000000ll + ended.tv_nsec -
				 began.tv_nsec >=
			 3000000);
	TEST_ASSERT_EQUAL_INT(-1, vb_sim_wait_cq(a.cq->cq, 1, &wc, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

static void *send_later(void *arg)
{
	OK(pthread_barrier_wait(arg) > 0);
	nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
	post_send(&a, 2, "late");
	return NULL;
}

void test_a_real_wait_is_woken_from_its_sleep(void)
{
	pthread_barrier_t start;
	pthread_t thread;

	real_world();
	join_ends();
	post_recv(&b, 1);
	pthread_barrier_init(&start, NULL, 2);
	OK(pthread_create(&thread, NULL, send_later, &start));
	pthread_barrier_wait(&start);
	expect(&b, 1, IBV_WC_SUCCESS);
	OK(pthread_join(thread, NULL));
	pthread_barrier_destroy(&start);
	expect(&a, 2, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_STRING("late", b.region->addr);
}

/* --- InfiniBand --- */

void test_a_pair_on_infiniband(void)
{
	struct vb_sim_config *world = calloc(1, sizeof(*world));

	close_end(&a);
	close_end(&b);
	world->device_count = 2;
	for (int i = 0; i < 2; i++) {
		snprintf(world->devices[i].name, sizeof(world->devices[i].name), "sim%d", i);
		world->devices[i].link_layer = IBV_LINK_LAYER_INFINIBAND;
	}
	OK(vb_sim_configure(world));
	free(world);
	open_end(&a, "sim0");
	open_end(&b, "sim1");
	join_ends();
	exchange_text();
}
