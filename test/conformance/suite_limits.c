/* SPDX-License-Identifier: MIT */
/*
 * The limits that a device reports: it reaches them, and refuses what is beyond.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/support.h"

#include <verbena/sim.h>

static void srq_limits(struct vt *t)
{
	const struct ibv_device_attr *most = &t->a.device_attr;
	const struct {
		const char *name;
		uint32_t max_wr, max_sge;
		bool fits;
	} rows[] = {
		{"the most", (uint32_t)most->max_srq_wr, (uint32_t)most->max_srq_sge, true},
		{"one WR too many", (uint32_t)most->max_srq_wr + 1, 1, false},
		{"one SGE too many", 1, (uint32_t)most->max_srq_sge + 1, false},
		{"far too many", UINT32_MAX, UINT32_MAX, false},
	};
	struct ibv_pd *pd = ts_pd(t, &t->a);
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		struct ibv_srq_init_attr init = {
			.attr = {.max_wr = rows[i].max_wr, .max_sge = rows[i].max_sge}};
		struct ibv_srq *srq;

		vt_row(t, "%s", rows[i].name);
		errno = 0;
		srq = vb_create_srq(pd, &init);
		/*
		 * The host's memory may be used up before the limit is reached:
		 * ibv_query_device(3).
		 */
		if (!srq && rows[i].fits && errno == ENOMEM)
			continue;
		VT_EXPECT_EQ(t, srq != NULL, rows[i].fits);
		if (srq)
			VT_OK(t, vb_destroy_srq(srq));
		else
			VT_EXPECT_EQ(t, errno, EINVAL);
	}
}

static void cq_resize_limit(struct vt *t)
{
	struct ibv_cq *cq = ts_cq(t, &t->a, 4);
	int had = cq->cqe;

	VT_ERRNO(t, vb_resize_cq(cq, t->a.device_attr.max_cqe + 1), EINVAL);
	VT_EQ(t, cq->cqe, had);
	VT_OK(t, vb_resize_cq(cq, t->a.device_attr.max_cqe));
	VT_CHECK(t, cq->cqe >= t->a.device_attr.max_cqe);
}

static void most_sges_of_a_read(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	uint32_t i, most = (uint32_t)t->a.device_attr.max_sge_rd;
	struct ts_pair *pair;
	struct ibv_sge *sges;

	if (!most || most > (uint32_t)t->a.device_attr.max_sge)
		VT_SKIP(t, "max_sge_rd is %u", most);
	options.send_sge = most;
	pair = ts_pair(t, &options);
	sges = vt_alloc(t, most * sizeof(*sges));
	for (i = 0; i < most; i++)
		sges[i] = (struct ibv_sge){(uintptr_t)pair->a.buffer + 100 * i, 100,
					   pair->a.mr->lkey};
	ts_fill(pair->b.buffer, 100 * most, 3);
	ts_read(&pair->a, .wr_id = 1, .sge = sges, .num_sge = (int)most);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
	ts_verify(t, pair->a.buffer, 100 * most, 3);
}

static void message_above_the_ports_limit(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint32_t most = t->a.port_attr.max_msg_sz;
	struct ibv_sge sges[2] = {{(uintptr_t)pair->a.buffer, most, pair->a.mr->lkey},
				  {(uintptr_t)pair->a.buffer, 1, pair->a.mr->lkey}};
	struct ibv_wc wc;
	int error;

	VT_CHECK(t, most >= 1);
	error = ts_post(&pair->a, &(struct ts_wr){.wr_id = 1,
						  .opcode = IBV_WR_RDMA_WRITE,
						  .sge = sges,
						  .num_sge = 2});
	if (!error) {
		VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
		VT_STATUS(t, wc.status, IBV_WC_LOC_LEN_ERR);
	} else {
		VT_EQ(t, error, EINVAL);
	}
	ts_blank(t, pair->b.buffer, 100);
}

/* Makes cheap objects up to the limit of the device, and one more, which is refused. */
static void number_of_pds(struct vt *t)
{
	int i, most = t->a.device_attr.max_pd;
	struct ibv_pd **pds = vt_alloc(t, sizeof(struct ibv_pd *) * (size_t)(most + 1));

	for (i = 0; i <= most; i++) {
		pds[i] = vb_alloc_pd(t->a.ctx);
		if (!pds[i])
			break;
	}
	VT_EXPECT_EQ(t, i, most);
	VT_EXPECT_EQ(t, errno, ENOMEM);
	while (i--)
		VT_OK(t, vb_dealloc_pd(pds[i]));
	pds[0] = VT_PTR(t, vb_alloc_pd(t->a.ctx));
	VT_OK(t, vb_dealloc_pd(pds[0]));
}

static void number_of_ahs(struct vt *t)
{
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b);
	struct ibv_pd *pd = ts_pd(t, &t->a);
	int i, most = t->a.device_attr.max_ah;
	struct ibv_ah **ahs = vt_alloc(t, sizeof(struct ibv_ah *) * (size_t)(most + 1));

	for (i = 0; i <= most; i++) {
		ahs[i] = vb_create_ah(pd, &attr);
		if (!ahs[i])
			break;
	}
	VT_EXPECT_EQ(t, i, most);
	VT_EXPECT_EQ(t, errno, ENOMEM);
	while (i--)
		VT_OK(t, vb_destroy_ah(ahs[i]));
	ahs[0] = VT_PTR(t, vb_create_ah(pd, &attr));
	VT_OK(t, vb_destroy_ah(ahs[0]));
}

static void number_of_windows(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	int i, most = t->a.device_attr.max_mw;
	struct ibv_mw **mws = vt_alloc(t, sizeof(struct ibv_mw *) * (size_t)(most + 1));

	for (i = 0; i <= most; i++) {
		mws[i] = vb_alloc_mw(pd, IBV_MW_TYPE_1);
		if (!mws[i])
			break;
	}
	/* Windows and regions share one table of keys. */
	VT_EXPECT(t, i == most || i == most - 1);
	VT_EXPECT_EQ(t, errno, ENOMEM);
	while (i--)
		VT_OK(t, vb_dealloc_mw(mws[i]));
}

static void limits_of_zero(struct vt *t)
{
	struct ibv_cq *cq = ts_cq(t, &t->a, 1);
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = VT_PTR(t, vb_create_qp(pd, &init));
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .pkey_index = t->a.pkey_index, .port_num = t->a.port};

	VT_OK(t,
	      vb_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
	if (!init.cap.max_recv_wr)
		VT_EXPECT_ERRNO(t, ibv_post_recv(qp, &wr, &bad), ENOMEM);
	VT_OK(t, vb_destroy_qp(qp));
}

/* --- limits that are lowered, then exhausted --- */

struct room {
	struct vt *t;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_ah_attr ah;
	void *memory;
};

static struct room room_on(struct vt *t, struct ibv_context *ctx)
{
	struct room room = {.t = t, .ctx = ctx, .ah = ts_av(&t->a, &t->b)};

	room.pd = VT_PTR(t, vb_alloc_pd(ctx));
	ts_keep(t, TS_PD, room.pd);
	room.cq = VT_PTR(t, vb_create_cq(ctx, 1, NULL, NULL, 0));
	ts_keep(t, TS_CQ, room.cq);
	room.memory = ts_memory(t, 4096);
	return room;
}

static void *make_pd(struct room *room)
{
	return vb_alloc_pd(room->ctx);
}

static int end_pd(void *pd)
{
	return vb_dealloc_pd(pd);
}

static void *make_cq(struct room *room)
{
	return vb_create_cq(room->ctx, 1, NULL, NULL, 0);
}

static int end_cq(void *cq)
{
	return vb_destroy_cq(cq);
}

static void *make_mr(struct room *room)
{
	return vb_reg_mr(room->pd, room->memory, 4096, 0);
}

static int end_mr(void *mr)
{
	return vb_dereg_mr(mr);
}

static void *make_mw(struct room *room)
{
	return vb_alloc_mw(room->pd, IBV_MW_TYPE_1);
}

static int end_mw(void *mw)
{
	return vb_dealloc_mw(mw);
}

static void *make_qp(struct room *room)
{
	struct ibv_qp_init_attr init = {
		.send_cq = room->cq, .recv_cq = room->cq, .qp_type = IBV_QPT_UD};

	return vb_create_qp(room->pd, &init);
}

static int end_qp(void *qp)
{
	return vb_destroy_qp(qp);
}

static void *make_srq(struct room *room)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};

	return vb_create_srq(room->pd, &init);
}

static int end_srq(void *srq)
{
	return vb_destroy_srq(srq);
}

static void *make_ah(struct room *room)
{
	return vb_create_ah(room->pd, &room->ah);
}

static int end_ah(void *ah)
{
	return vb_destroy_ah(ah);
}

#define FIT 3

/*
 * The limit holds for all contexts of the device together. Destroying an object makes room for
 * one.
 */
static void one_object_beyond_the_limit_is_refused(struct vt *t)
{
	static const struct {
		const char *limit;
		int there; /* how many room_on() has made */
		void *(*make)(struct room *room);
		int (*end)(void *object);
	} rows[] = {
		{"max_pd", 2, make_pd, end_pd}, {"max_cq", 2, make_cq, end_cq},
		{"max_mr", 0, make_mr, end_mr}, {"max_mw", 0, make_mw, end_mw},
		{"max_qp", 0, make_qp, end_qp}, {"max_srq", 0, make_srq, end_srq},
		{"max_ah", 0, make_ah, end_ah},
	};
	struct room rooms[2] = {room_on(t, t->a.ctx), room_on(t, ts_context(t, &t->a))};
	void *objects[FIT + 1];

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].limit);
		VT_OK(t, vb_sim_lower_limit(t->a.ctx, rows[i].limit, rows[i].there + FIT));
		for (int j = 0; j < FIT; j++)
			objects[j] = VT_PTR(t, rows[i].make(&rooms[j % 2]));
		VT_NULL_ERRNO(t, rows[i].make(&rooms[0]), ENOMEM);
		VT_NULL_ERRNO(t, rows[i].make(&rooms[1]), ENOMEM);
		VT_OK(t, rows[i].end(objects[1]));
		objects[1] = VT_PTR(t, rows[i].make(&rooms[0]));
		VT_NULL_ERRNO(t, rows[i].make(&rooms[0]), ENOMEM);
		for (int j = 0; j < FIT; j++)
			VT_OK(t, rows[i].end(objects[j]));
	}
}

static int set_depths(struct ts_end *end, uint8_t initiator, uint8_t responder)
{
	struct ibv_qp_attr attr;
	int error, mask;

	end->options.max_rd_atomic = initiator;
	end->options.max_dest_rd_atomic = responder;
	if (ts_query_state(end->t, end->qp) == IBV_QPS_RESET)
		ts_to_init(end);
	if (ts_query_state(end->t, end->qp) == IBV_QPS_INIT) {
		mask = ts_rtr_attr(end, &attr);
		error = vb_modify_qp(end->qp, &attr, mask);
		if (error)
			return error;
	}
	mask = ts_rts_attr(end, &attr);
	return vb_modify_qp(end->qp, &attr, mask);
}

static void limits_of_outstanding_reads_and_atomics(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_qp_init_rd_atom", 3));
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_qp_rd_atom", 5));
	VT_ERRNO(t, set_depths(&pair->a, 3, 6), EINVAL);
	ts_state(&pair->a, IBV_QPS_INIT);
	VT_ERRNO(t, set_depths(&pair->a, 4, 5), EINVAL);
	ts_state(&pair->a, IBV_QPS_RTR);
	VT_OK(t, set_depths(&pair->a, 3, 5));
}

/*
 * max_res_rd_atom is for all QPs together; a QP gives its part back when it is reset or destroyed.
 */
static void limit_of_outstanding_reads_of_all_qps(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *one = ts_end(t, &t->a, &options);
	struct ts_end *two = ts_end(t, &t->a, &options);
	struct ts_end *three = ts_end(t, &t->a, &options);

	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_res_rd_atom", 9));
	VT_OK(t, set_depths(one, 1, 5));
	VT_ERRNO(t, set_depths(two, 1, 5), ENOMEM);
	ts_state(two, IBV_QPS_INIT);
	VT_OK(t, set_depths(two, 1, 4));
	VT_ERRNO(t, set_depths(three, 1, 1), ENOMEM);
	VT_OK(t, set_depths(three, 1, 0));
	VT_OK(t, ts_to(one, IBV_QPS_RESET));
	VT_OK(t, ts_to(three, IBV_QPS_RESET));
	VT_OK(t, set_depths(three, 1, 3));
	ts_destroy_qp(two);
	VT_OK(t, set_depths(one, 1, 5));
	VT_OK(t, ts_to(three, IBV_QPS_RESET));
	VT_ERRNO(t, set_depths(three, 1, 5), ENOMEM);
	VT_OK(t, set_depths(three, 1, 3));
}

static int join(struct vt *t, struct ibv_qp *qp, uint8_t group, bool attach)
{
	union ibv_gid gid = {.raw = {0xff, 0x0e, [15] = group}};
	uint16_t lid = t->a.port_attr.link_layer == IBV_LINK_LAYER_ETHERNET ? 0 : 0xc000 + group;

	return attach ? vb_attach_mcast(qp, &gid, lid) : vb_detach_mcast(qp, &gid, lid);
}

static void groups_and_members(struct vt *t)
{
	struct room room = room_on(t, t->a.ctx);
	struct ibv_qp *qps[3];

	for (int i = 0; i < 3; i++) {
		qps[i] = VT_PTR(t, make_qp(&room));
		ts_keep(t, TS_QP, qps[i]);
	}
	vt_row(t, "max_mcast_grp");
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_mcast_grp", 2));
	VT_OK(t, join(t, qps[0], 1, true));
	VT_OK(t, join(t, qps[1], 1, true));
	VT_OK(t, join(t, qps[0], 2, true));
	VT_ERRNO(t, join(t, qps[0], 3, true), ENOMEM);
	VT_OK(t, join(t, qps[2], 2, true));
	VT_OK(t, join(t, qps[0], 1, false));
	VT_ERRNO(t, join(t, qps[0], 3, true), ENOMEM);
	VT_OK(t, join(t, qps[1], 1, false));
	VT_OK(t, join(t, qps[0], 3, true));
	vt_row(t, "max_mcast_qp_attach");
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_mcast_qp_attach", 2));
	VT_ERRNO(t, join(t, qps[1], 2, true), ENOMEM);
	VT_OK(t, join(t, qps[0], 2, true)); /* it is a member already */
	VT_OK(t, join(t, qps[0], 2, false));
	VT_OK(t, join(t, qps[1], 2, true));
	vt_row(t, "max_total_mcast_qp_attach");
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_total_mcast_qp_attach", 3));
	VT_ERRNO(t, join(t, qps[1], 3, true), ENOMEM);
	VT_OK(t, join(t, qps[2], 2, false));
	VT_OK(t, join(t, qps[1], 3, true));
	/* Another device has groups of its own. */
	VT_OK(t, join(t, qps[0], 3, false));
	VT_OK(t, join(t, qps[1], 3, false));
	VT_OK(t, join(t, qps[1], 2, false));
}

static void lowered_limit_is_reported(struct vt *t)
{
	struct ibv_device_attr attr;
	int was = t->a.device_attr.max_mr;

	VT_ERRNO(t, vb_sim_lower_limit(t->a.ctx, "max_mr", was + 1), EINVAL);
	VT_ERRNO(t, vb_sim_lower_limit(t->a.ctx, "max_mr", -1), EINVAL);
	VT_ERRNO(t, vb_sim_lower_limit(t->a.ctx, "max_nothing", 1), EINVAL);
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_mr", 7));
	VT_ERRNO(t, vb_sim_lower_limit(t->a.ctx, "max_mr", 8), EINVAL);
	VT_OK(t, vb_query_device(t->a.ctx, &attr));
	VT_EQ(t, attr.max_mr, 7);
	VT_EQ(t, attr.max_qp, t->a.device_attr.max_qp);
	VT_OK(t, vb_query_device(t->b.ctx, &attr));
	if (t->have & VT_NEEDS_TWO_DEVICES)
		VT_EQ(t, attr.max_mr, was);
}

#define MAN "ibv_query_device(3): "

static const struct vt_test tests[] = {
	{"srq_limits",
	 "ibv_query_device(3): max_srq_wr, max_srq_sge; EINVAL: " SRC_RXE
	 "rxe_srq.c, rxe_srq_chk_init",
	 VT_NEEDS_SRQ, srq_limits},
	{"cq_resize_limit",
	 "ibv_query_device(3): max_cqe; ibv_resize_cq(3); EINVAL: " SRC_RXE
	 "rxe_cq.c, rxe_cq_chk_attr",
	 0, cq_resize_limit},
	{"most_sges_of_a_read", MAN "max_sge_rd", 0, most_sges_of_a_read},
	{"message_above_the_ports_limit", "ibv_query_port(3): max_msg_sz; the status: unsourced", 0,
	 message_above_the_ports_limit},
	{"number_of_pds", "ibv_query_device(3): max_pd; ENOMEM: " SRC_RVT "pd.c, rvt_alloc_pd",
	 VT_NEEDS_SIM, number_of_pds},
	{"number_of_ahs", "ibv_query_device(3): max_ah; ENOMEM: " SRC_RVT "ah.c, rvt_create_ah",
	 VT_NEEDS_SIM, number_of_ahs},
	{"number_of_windows", MAN "max_mw; ENOMEM: unsourced", VT_NEEDS_SIM, number_of_windows},
	{"one_object_beyond_the_limit_is_refused", MAN "max_pd and others; ENOMEM: unsourced",
	 VT_NEEDS_SIM | VT_NEEDS_SRQ, one_object_beyond_the_limit_is_refused},
	{"limits_of_outstanding_reads_and_atomics",
	 MAN "max_qp_rd_atom, max_qp_init_rd_atom; EINVAL: Linux rxe_qp.c, rxe_qp_chk_attr",
	 VT_NEEDS_SIM, limits_of_outstanding_reads_and_atomics},
	{"limit_of_outstanding_reads_of_all_qps", MAN "max_res_rd_atom; ENOMEM: unsourced",
	 VT_NEEDS_SIM, limit_of_outstanding_reads_of_all_qps},
	{"groups_and_members",
	 MAN "max_mcast_grp and others; ENOMEM: Linux drivers/infiniband/sw/rxe/rxe_mcast.c",
	 VT_NEEDS_SIM, groups_and_members},
	{"lowered_limit_is_reported", "include/verbena/sim.h, vb_sim_lower_limit", VT_NEEDS_SIM,
	 lowered_limit_is_reported},
	{"limits_of_zero",
	 "ibv_create_qp(3): greater than or equal; ENOMEM: " SRC_RVT "qp.c, rvt_post_recv", 0,
	 limits_of_zero},
	{NULL},
};

const struct vt_suite vt_suite_limits = {"limits", "limits that a device reports", tests};
