/* SPDX-License-Identifier: MIT */
/*
 * Devices, ports, and making and destroying objects: limits, bad arguments, EBUSY.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/support.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <verbena/error.h>
#include <verbena/sim.h>

static void device_list_ends_with_null(struct vt *t)
{
	struct ibv_device **list;
	const char *name;
	int count = -1, i;

	list = VT_PTR(t, vb_get_device_list(t->backend, &count));
	VT_CHECK(t, count >= 1);
	for (i = 0; i < count; i++) {
		VT_CHECK(t, list[i] != NULL);
		name = vb_get_device_name(list[i]);
		VT_CHECK(t, name && *name);
	}
	VT_CHECK(t, list[count] == NULL);
	vb_free_device_list(list);
}

static void device_list_without_a_count(struct vt *t)
{
	struct ibv_device **list = VT_PTR(t, vb_get_device_list(t->backend, NULL));

	VT_CHECK(t, list[0] != NULL);
	vb_free_device_list(list);
}

static void open_device_outlives_the_list(struct vt *t)
{
	struct ibv_device **list = VT_PTR(t, vb_get_device_list(t->backend, NULL));
	struct ibv_context *context = VT_PTR(t, vb_open_device(list[0]));
	struct ibv_device_attr attr;

	vb_free_device_list(list);
	VT_CHECK(t, *vb_get_device_name(context->device));
	VT_OK(t, vb_query_device(context, &attr));
	VT_OK(t, vb_close_device(context));
}

/* The devices live on, and a later list may have the address of the freed one. */
static void device_list_may_be_freed_with_free(struct vt *t)
{
	for (int i = 0; i < 100; i++) {
		struct ibv_device **list = VT_PTR(t, vb_get_device_list(t->backend, NULL));
		struct ibv_device *device = list[0];
		struct ibv_context *context;

		free(list);
		VT_CHECK(t, *vb_get_device_name(device));
		context = VT_PTR(t, vb_open_device(device));
		VT_OK(t, vb_close_device(context));
		list = VT_PTR(t, vb_get_device_list(t->backend, NULL));
		VT_CHECK(t, list[0] == device);
		vb_free_device_list(list);
	}
}

static void device_reports_its_limits(struct vt *t)
{
	struct ibv_device_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	VT_OK(t, vb_query_device(t->a.ctx, &attr));
	VT_CHECK(t, attr.phys_port_cnt >= 1);
	VT_CHECK(t, attr.max_qp > 0 && attr.max_qp_wr > 0 && attr.max_sge > 0);
	VT_CHECK(t, attr.max_cq > 0 && attr.max_cqe > 0 && attr.max_mr > 0 && attr.max_pd > 0);
	VT_CHECK(t, attr.max_qp_rd_atom > 0 && attr.max_qp_init_rd_atom > 0);
	VT_CHECK(t, attr.max_pkeys >= 1);
	VT_EQ(t, attr.node_guid, vb_get_device_guid(t->a.ctx->device));
}

static void query_device_ex_agrees(struct vt *t)
{
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_device_attr_ex attr;

	VT_OK(t, vb_query_device_ex(t->a.ctx, NULL, &attr, sizeof(attr)));
	VT_EQ(t, attr.orig_attr.max_qp, t->a.device_attr.max_qp);
	VT_EQ(t, attr.orig_attr.max_cqe, t->a.device_attr.max_cqe);
	VT_ERRNO(t, vb_query_device_ex(t->a.ctx, &input, &attr, sizeof(attr)), EINVAL);
}

static void port_reports_its_attributes(struct vt *t)
{
	struct ibv_port_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	VT_OK(t, vb_query_port(t->a.ctx, t->a.port, &attr, sizeof(attr)));
	VT_EQ(t, attr.state, IBV_PORT_ACTIVE);
	VT_CHECK(t, attr.active_mtu >= IBV_MTU_256 && attr.active_mtu <= attr.max_mtu);
	VT_CHECK(t, attr.max_mtu <= IBV_MTU_4096);
	VT_CHECK(t, attr.gid_tbl_len >= 1 && attr.pkey_tbl_len >= 1);
	VT_CHECK(t, attr.max_msg_sz >= 1024 * 1024);
	VT_CHECK(t, attr.link_layer == IBV_LINK_LAYER_ETHERNET ||
			    attr.link_layer == IBV_LINK_LAYER_INFINIBAND);
}

static void no_such_port_is_einval(struct vt *t)
{
	uint8_t past = t->a.device_attr.phys_port_cnt + 1;
	struct ibv_port_attr attr;

	VT_ERRNO(t, vb_query_port(t->a.ctx, 0, &attr, sizeof(attr)), EINVAL);
	VT_ERRNO(t, vb_query_port(t->a.ctx, past, &attr, sizeof(attr)), EINVAL);
}

static void gid_table(struct vt *t)
{
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	VT_OK(t, vb_query_gid(t->a.ctx, t->a.port, t->a.gid_index, &gid));
	VT_EQ_MEM(t, &gid, &t->a.gid, sizeof(gid));
	VT_OK(t, vb_query_gid_ex(t->a.ctx, t->a.port, (uint32_t)t->a.gid_index, &entry, 0,
				 sizeof(entry)));
	VT_EQ_MEM(t, &entry.gid, &t->a.gid, sizeof(gid));
	VT_EQ(t, entry.gid_index, t->a.gid_index);
	VT_EQ(t, entry.port_num, t->a.port);
}

static void gid_outside_the_table(struct vt *t)
{
	int past = t->a.port_attr.gid_tbl_len;
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	VT_CHECK(t, vb_query_gid(t->a.ctx, t->a.port, past, &gid) == -1);
	VT_CHECK(t, vb_query_gid(t->a.ctx, t->a.port, -1, &gid) == -1);
	VT_CHECK(t, vb_query_gid(t->a.ctx, 0, 0, &gid) == -1);
	VT_ERRNO(t, vb_query_gid_ex(t->a.ctx, t->a.port, (uint32_t)past, &entry, 0, sizeof(entry)),
		 EINVAL);
	VT_ERRNO(t, vb_query_gid_ex(t->a.ctx, t->a.port, 0, &entry, 1, sizeof(entry)), EINVAL);
}

static void gid_table_lists_the_valid_ones(struct vt *t)
{
	struct ibv_gid_entry entries[64];
	ssize_t count, i;
	bool found = false;

	count = vb_query_gid_table(t->a.ctx, entries, 64, 0, sizeof(*entries));
	VT_CHECK(t, count >= 1);
	for (i = 0; i < count; i++)
		found |= entries[i].port_num == t->a.port &&
			 (int)entries[i].gid_index == t->a.gid_index &&
			 !memcmp(&entries[i].gid, &t->a.gid, sizeof(t->a.gid));
	VT_CHECK(t, found);
	VT_EQ(t, vb_query_gid_table(t->a.ctx, entries, 64, 1, sizeof(*entries)), -EINVAL);
}

static void pkey_table(struct vt *t)
{
	int past = t->a.port_attr.pkey_tbl_len;
	__be16 pkey;

	VT_OK(t, vb_query_pkey(t->a.ctx, t->a.port, t->a.pkey_index, &pkey));
	VT_EQ(t, ntohs(pkey) & 0x7fff, 0x7fff);
	VT_EQ(t, vb_get_pkey_index(t->a.ctx, t->a.port, pkey), t->a.pkey_index);
	VT_CHECK(t, vb_query_pkey(t->a.ctx, t->a.port, past, &pkey) == -1);
	VT_CHECK(t, vb_query_pkey(t->a.ctx, t->a.port, -1, &pkey) == -1);
	VT_CHECK(t, vb_get_pkey_index(t->a.ctx, t->a.port, htons(0x1234)) == -1);
}

/* --- queue pairs --- */

static struct ibv_qp_init_attr good_init(struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

static void qp_begins_in_reset(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_cq *cq = ts_cq(t, &t->a, 4);
	struct ibv_qp *qp = ts_qp(t, pd, cq, IBV_QPT_RC);

	VT_STATE(t, qp->state, IBV_QPS_RESET);
	VT_STATE(t, ts_query_state(t, qp), IBV_QPS_RESET);
	VT_EQ(t, qp->qp_type, IBV_QPT_RC);
	VT_CHECK(t, qp->pd == pd && qp->send_cq == cq && qp->recv_cq == cq && !qp->srq);
	VT_CHECK(t, qp->context == t->a.ctx);
	VT_CHECK(t, qp->qp_num > 1 && qp->qp_num < 0xffffff);
}

static void qp_numbers_differ(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_cq *cq = ts_cq(t, &t->a, 4);
	uint32_t numbers[50];
	int i, j;

	for (i = 0; i < 50; i++) {
		numbers[i] = ts_qp(t, pd, cq, IBV_QPT_RC)->qp_num;
		for (j = 0; j < i; j++)
			VT_CHECK(t, numbers[i] != numbers[j]);
	}
}

static void qp_gets_at_least_the_sizes_asked_for(struct vt *t)
{
	static const uint32_t wrs[] = {1, 2, 3, 7, 10, 100};
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_cq *cq = ts_cq(t, &t->a, 4);
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;
	size_t i;

	for (i = 0; i < TS_COUNT(wrs); i++) {
		vt_row(t, "%u", wrs[i]);
		init = good_init(cq);
		init.cap = (struct ibv_qp_cap){wrs[i], wrs[i], 2, 3, 40};
		qp = VT_PTR(t, vb_create_qp(pd, &init));
		VT_EXPECT(t, init.cap.max_send_wr >= wrs[i] && init.cap.max_recv_wr >= wrs[i]);
		VT_EXPECT(t, init.cap.max_send_sge >= 2 && init.cap.max_recv_sge >= 3);
		VT_EXPECT(t, init.cap.max_inline_data >= 40);
		VT_EXPECT_OK(t, vb_destroy_qp(qp));
	}
}

static void qp_above_the_limits_is_einval(struct vt *t)
{
	uint32_t wr = (uint32_t)t->a.device_attr.max_qp_wr + 1;
	uint32_t sge = (uint32_t)t->a.device_attr.max_sge + 1;
	const struct {
		const char *name;
		struct ibv_qp_cap cap;
	} rows[] = {
		{"max_send_wr", {wr, 1, 1, 1, 0}},	    {"max_recv_wr", {1, wr, 1, 1, 0}},
		{"max_send_sge", {1, 1, sge, 1, 0}},	    {"max_recv_sge", {1, 1, 1, sge, 0}},
		{"max_inline_data", {1, 1, 1, 1, 1 << 30}},
	};
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp_init_attr init;
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		init = good_init(ts_cq(t, &t->a, 4));
		init.cap = rows[i].cap;
		VT_EXPECT_NULL_ERRNO(t, vb_create_qp(pd, &init), EINVAL);
	}
}

static void qp_at_the_limits(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp_init_attr init = good_init(ts_cq(t, &t->a, 4));
	struct ibv_qp *qp;

	init.cap.max_send_sge = (uint32_t)t->a.device_attr.max_sge;
	init.cap.max_recv_sge = (uint32_t)t->a.device_attr.max_sge;
	qp = VT_PTR(t, vb_create_qp(pd, &init));
	VT_OK(t, vb_destroy_qp(qp));
}

static void qp_without_a_cq_is_einval(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp_init_attr init = good_init(ts_cq(t, &t->a, 4));

	init.recv_cq = NULL;
	VT_NULL_ERRNO(t, vb_create_qp(pd, &init), EINVAL);
	init = good_init(init.send_cq);
	init.send_cq = NULL;
	VT_NULL_ERRNO(t, vb_create_qp(pd, &init), EINVAL);
}

static void qp_of_an_unknown_type(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp_init_attr init = good_init(ts_cq(t, &t->a, 4));

	init.qp_type = 77;
	VT_CHECK(t, !vb_create_qp(pd, &init));
	VT_CHECK(t, errno == EINVAL || errno == EOPNOTSUPP);
}

static void qp_number_is_not_reused_soon(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;
	uint32_t last = 0;
	int i;

	for (i = 0; i < 10; i++) {
		init = good_init(ts_cq(t, &t->a, 4));
		qp = VT_PTR(t, vb_create_qp(pd, &init));
		VT_CHECK(t, qp->qp_num != last);
		last = qp->qp_num;
		VT_OK(t, vb_destroy_qp(qp));
	}
}

/* --- EBUSY --- */

static void pd_with_a_region_is_ebusy(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_mr *mr = ts_mr(t, pd, ts_memory(t, 4096), 4096, 0);

	VT_ERRNO(t, vb_dealloc_pd(pd), EBUSY);
	VT_OK(t, vb_dereg_mr(mr));
	ts_gone(t, mr);
	VT_OK(t, vb_dealloc_pd(pd));
	ts_gone(t, pd);
}

static void pd_with_a_qp_is_ebusy(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp *qp = ts_qp(t, pd, ts_cq(t, &t->a, 4), IBV_QPT_RC);

	VT_ERRNO(t, vb_dealloc_pd(pd), EBUSY);
	VT_OK(t, vb_destroy_qp(qp));
	ts_gone(t, qp);
	VT_OK(t, vb_dealloc_pd(pd));
	ts_gone(t, pd);
}

static void pd_with_an_ah_is_ebusy(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_ah *ah = ts_ah(t, pd, &t->a, &t->b);

	VT_ERRNO(t, vb_dealloc_pd(pd), EBUSY);
	VT_OK(t, vb_destroy_ah(ah));
	ts_gone(t, ah);
	VT_OK(t, vb_dealloc_pd(pd));
	ts_gone(t, pd);
}

static void busy_destroy_changes_nothing(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	VT_ERRNO(t, vb_dealloc_pd(pair->a.pd), EBUSY);
	VT_ERRNO(t, vb_destroy_cq(pair->a.send_cq), EBUSY);
	ts_transfer(pair, IBV_WR_SEND, 5000);
	ts_transfer(pair, IBV_WR_RDMA_READ, 5000);
}

/* --- address handles --- */

static void ah_with_bad_attributes_is_einval(struct vt *t)
{
	static const char *const rows[] = {"port 0", "port past the last", "GID index", "no GRH"};
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_ah_attr attr;
	int row;

	for (row = 0; row < 4; row++) {
		vt_row(t, "%s", rows[row]);
		attr = ts_av(&t->a, &t->b);
		if (row == 0)
			attr.port_num = 0;
		if (row == 1)
			attr.port_num = t->a.device_attr.phys_port_cnt + 1;
		if (row == 2)
			attr.grh.sgid_index = (uint8_t)t->a.port_attr.gid_tbl_len;
		if (row == 3)
			attr.is_global = 0;
		if (row == 2 && t->a.port_attr.gid_tbl_len > 255)
			continue;
		VT_EXPECT_NULL_ERRNO(t, vb_create_ah(pd, &attr), EINVAL);
	}
}

static void many_objects_come_and_go(struct vt *t)
{
	struct ibv_pd *pds[20];
	struct ibv_cq *cqs[20];
	struct ibv_comp_channel *channels[20];
	int round, i;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 20; i++) {
			pds[i] = VT_PTR(t, vb_alloc_pd(t->a.ctx));
			channels[i] = VT_PTR(t, vb_create_comp_channel(t->a.ctx));
			cqs[i] = VT_PTR(t, vb_create_cq(t->a.ctx, 10, NULL, channels[i], 0));
		}
		for (i = 0; i < 20; i++) {
			VT_OK(t, vb_destroy_cq(cqs[i]));
			VT_OK(t, vb_destroy_comp_channel(channels[i]));
			VT_OK(t, vb_dealloc_pd(pds[i]));
		}
	}
}

/* vb_free_device_list() returns nothing, so only vb_last_error() tells of a misuse. */
static bool freed_before(struct ibv_device **list)
{
	vb_free_device_list(list);
	return strstr(vb_last_error(), "freed already") != NULL;
}

static void list_of_a_world_is_freed_once(struct vt *t)
{
	struct vb_sim *sim = VT_PTR(t, vb_sim_open(NULL));
	struct ibv_device **first = VT_PTR(t, vb_sim_device_list(sim, NULL));
	struct ibv_device **second = VT_PTR(t, vb_sim_device_list(sim, NULL));
	struct ibv_context *context = VT_PTR(t, vb_open_device(first[0]));

	VT_CHECK(t, !freed_before(first));
	VT_OK(t, vb_close_device(context));
	VT_OK(t, vb_sim_close(sim));
	/* The list stays valid when its world is closed. */
	VT_CHECK(t, second[0] != NULL);
	VT_CHECK(t, !freed_before(second));
	VT_CHECK(t, freed_before(second));
}

/* Nobody can say that the list is gone: the devices of its world live on. */
static void freed_list_keeps_its_world(struct vt *t)
{
	struct ibv_device *devices[20];

	for (int i = 0; i < 20; i++) {
		struct vb_sim *sim = VT_PTR(t, vb_sim_open(NULL));
		struct ibv_device **list = VT_PTR(t, vb_sim_device_list(sim, NULL));

		devices[i] = list[0];
		free(list);
		VT_OK(t, vb_sim_close(sim));
		VT_CHECK(t, *vb_get_device_name(devices[i]));
		VT_CHECK(t, !vb_open_device(devices[i]));
		list = VT_PTR(t, vb_get_device_list(t->backend, NULL));
		VT_CHECK(t, !freed_before(list));
		/* Not even if the list of the closed world had its address. */
		VT_CHECK(t, freed_before(list));
	}
}

static struct vb_sim *open_world(struct vt *t, enum vb_sim_clock clock, uint64_t seed,
				 struct ibv_context **ctx)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	struct ibv_device **list;
	struct vb_sim *sim;

	config->clock = clock;
	config->seed = seed;
	config->seed_given = seed;
	sim = VT_PTR(t, vb_sim_open(config));
	list = VT_PTR(t, vb_sim_device_list(sim, NULL));
	*ctx = vb_open_device(list[0]);
	vb_free_device_list(list);
	VT_CHECK(t, *ctx);
	return sim;
}

/* The numbers by which peers reach the first objects of a world. */
struct numbers {
	union ibv_gid gids[3];
	uint32_t qpn, lkey, rkey;
};

static struct numbers numbers_of(struct vt *t, enum vb_sim_clock clock, uint64_t seed)
{
	static char memory[64];
	struct numbers numbers;
	struct ibv_context *ctx;
	struct vb_sim *sim = open_world(t, clock, seed, &ctx);
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(ctx));
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(ctx, 4, NULL, NULL, 0));
	struct ibv_qp_init_attr init = good_init(cq);
	struct ibv_qp *qp = VT_PTR(t, vb_create_qp(pd, &init));
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd, memory, 64, IBV_ACCESS_LOCAL_WRITE));

	memset(&numbers, 0, sizeof(numbers));
	for (int i = 0; i < 3; i++)
		VT_OK(t, vb_query_gid(ctx, 1, i, &numbers.gids[i]));
	numbers.qpn = qp->qp_num;
	numbers.lkey = mr->lkey;
	numbers.rkey = mr->rkey;
	VT_OK(t, vb_close_device(ctx));
	VT_OK(t, vb_sim_close(sim));
	return numbers;
}

static void numbers_repeat_if_a_run_can_be_repeated(struct vt *t)
{
	const struct numbers first = numbers_of(t, VB_SIM_CLOCK_VIRTUAL, 0);
	union ibv_gid defaults[2];
	struct numbers again;

	vb_sim_default_gids(1, defaults);
	VT_EQ_MEM(t, &first.gids[1], defaults, sizeof(defaults));
	again = numbers_of(t, VB_SIM_CLOCK_VIRTUAL, 77);
	VT_EQ_MEM(t, &again, &first, sizeof(first));
	again = numbers_of(t, VB_SIM_CLOCK_REAL, 78);
	VT_EQ_MEM(t, &again, &first, sizeof(first));
}

/* On the real clock without a seed: two worlds stand for two processes. */
static void numbers_of_others_differ(struct vt *t)
{
	const struct numbers a = numbers_of(t, VB_SIM_CLOCK_REAL, 0);
	const struct numbers b = numbers_of(t, VB_SIM_CLOCK_REAL, 0);

	VT_CHECK(t, memcmp(&a.gids[0], &b.gids[0], 16) != 0);
	VT_CHECK(t, memcmp(&a.gids[2], &b.gids[2], 16) != 0);
	/* IPv4 addresses of 10.0.0.0/8, for the first device. */
	VT_EQ_MEM(t, &a.gids[1], &b.gids[1], 13);
	VT_EQ(t, a.gids[1].raw[15], 1);
	VT_CHECK(t, a.qpn != b.qpn && a.lkey != b.lkey && a.rkey != b.rkey);
	VT_CHECK(t, a.lkey != a.rkey && a.qpn >= 16 && a.qpn < 0xffffff);
}

static const struct vt_test tests[] = {
	{"device_list_ends_with_null", "ibv_get_device_list(3)", 0, device_list_ends_with_null},
	{"device_list_without_a_count", "ibv_get_device_list(3)", 0, device_list_without_a_count},
	{"open_device_outlives_the_list", "ibv_get_device_list(3), Notes", 0,
	 open_device_outlives_the_list},
	{"device_list_may_be_freed_with_free",
	 SRC_RDMA_CORE "libibverbs/device.c, ibv_get_device_list: one block of calloc()", 0,
	 device_list_may_be_freed_with_free},
	{"device_reports_its_limits", "ibv_query_device(3)", 0, device_reports_its_limits},
	{"query_device_ex_agrees", "ibv_query_device_ex(3)", 0, query_device_ex_agrees},
	{"port_reports_its_attributes", "ibv_query_port(3)", 0, port_reports_its_attributes},
	{"no_such_port_is_einval", "ibv_query_port(3); EINVAL: " SRC_CORE "device.c, ib_query_port",
	 0, no_such_port_is_einval},
	{"gid_table", "ibv_query_gid(3), ibv_query_gid_ex(3)", 0, gid_table},
	{"gid_outside_the_table", "ibv_query_gid(3); ibv_query_gid_ex(3)", 0,
	 gid_outside_the_table},
	{"gid_table_lists_the_valid_ones", "ibv_query_gid_table(3)", 0,
	 gid_table_lists_the_valid_ones},
	{"pkey_table", "ibv_query_pkey(3), ibv_get_pkey_index(3)", 0, pkey_table},
	{"qp_begins_in_reset", "ibv_create_qp(3)", 0, qp_begins_in_reset},
	{"qp_numbers_differ", "ibv_create_qp(3)", 0, qp_numbers_differ},
	{"qp_gets_at_least_the_sizes_asked_for",
	 "ibv_create_qp(3): greater than or equal to the values requested", 0,
	 qp_gets_at_least_the_sizes_asked_for},
	{"qp_above_the_limits_is_einval",
	 "ibv_query_device(3); EINVAL: " SRC_RXE "rxe_qp.c, rxe_qp_chk_cap", 0,
	 qp_above_the_limits_is_einval},
	{"qp_at_the_limits", "ibv_query_device(3): max_sge", 0, qp_at_the_limits},
	{"qp_without_a_cq_is_einval", SRC_RXE "rxe_qp.c, rxe_qp_chk_init: missing cq", VT_NEEDS_SIM,
	 qp_without_a_cq_is_einval},
	{"qp_of_an_unknown_type", "ibv_create_qp(3): qp_type", 0, qp_of_an_unknown_type},
	{"qp_number_is_not_reused_soon", SRC_RVT "qp.c, alloc_qpn: on from the last one", 0,
	 qp_number_is_not_reused_soon},
	{"pd_with_a_region_is_ebusy", "ibv_alloc_pd(3), Notes; EBUSY: " SRC_FREE_PD, 0,
	 pd_with_a_region_is_ebusy},
	{"pd_with_a_qp_is_ebusy", "ibv_alloc_pd(3), Notes; EBUSY: " SRC_FREE_PD, 0,
	 pd_with_a_qp_is_ebusy},
	{"pd_with_an_ah_is_ebusy",
	 SRC_CORE "verbs.c, _rdma_create_ah: pd->usecnt; EBUSY: " SRC_FREE_PD, 0,
	 pd_with_an_ah_is_ebusy},
	{"busy_destroy_changes_nothing",
	 SRC_FREE_PD "; " SRC_CORE "verbs.c, ib_destroy_cq: they return first", 0,
	 busy_destroy_changes_nothing},
	{"ah_with_bad_attributes_is_einval",
	 "ibv_create_ah(3), Notes: GRH required; EINVAL: " SRC_CORE
	 "verbs.c, rdma_check_ah_attr, and " SRC_RVT "ah.c, rvt_check_ah",
	 VT_NEEDS_ETHERNET, ah_with_bad_attributes_is_einval},
	{"many_objects_come_and_go", "unsourced", 0, many_objects_come_and_go},
	{"list_of_a_world_is_freed_once", "verbena/sim.h, vb_sim_device_list", VT_NEEDS_SIM,
	 list_of_a_world_is_freed_once},
	{"freed_list_keeps_its_world", "verbena/verbs.h, vb_get_device_list", VT_NEEDS_SIM,
	 freed_list_keeps_its_world},
	{"numbers_repeat_if_a_run_can_be_repeated", "verbena/sim.h, struct vb_sim_config",
	 VT_NEEDS_SIM, numbers_repeat_if_a_run_can_be_repeated},
	{"numbers_of_others_differ", "verbena/sim.h, struct vb_sim_config; RFC 4193: Global ID",
	 VT_NEEDS_SIM, numbers_of_others_differ},
	{NULL},
};

const struct vt_suite vt_suite_objects = {"objects", "devices, ports and their objects", tests};
