/* SPDX-License-Identifier: MIT */
/*
 * What a device says it can do is what it does, and no more.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

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

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ibv_srq_init_attr init = {
			.attr = {.max_wr = rows[i].max_wr, .max_sge = rows[i].max_sge}};
		struct ibv_srq *srq;

		vt_row(t, "%s", rows[i].name);
		errno = 0;
		srq = vb_create_srq(pd, &init);
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

/* Objects that are cheap, up to the device's number and one more. */
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
	/* Windows and regions share their keys. */
	VT_EXPECT(t, i == most || i == most - 1);
	VT_EXPECT_EQ(t, errno, ENOMEM);
	while (i--)
		VT_OK(t, vb_dealloc_mw(mws[i]));
}

static void zero_of_everything(struct vt *t)
{
	struct ibv_cq *cq = ts_cq(t, &t->a, 1);
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = VT_PTR(t, vb_create_qp(pd, &init));
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = t->a.port};

	VT_OK(t,
	      vb_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
	if (!init.cap.max_recv_wr)
		VT_EXPECT_ERRNO(t, ibv_post_recv(qp, &wr, &bad), ENOMEM);
	VT_OK(t, vb_destroy_qp(qp));
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
	{"zero_of_everything",
	 "ibv_create_qp(3): greater than or equal; ENOMEM: " SRC_RVT "qp.c, rvt_post_recv", 0,
	 zero_of_everything},
	{NULL},
};

const struct vt_suite vt_suite_limits = {"limits", "the limits of devices", tests};
