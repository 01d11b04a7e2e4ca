/* SPDX-License-Identifier: MIT */
/* Limits of devices. */
#include "pair.h"

#include <errno.h>

static const struct plan plan;

static void query(void)
{
	struct ibv_device_attr attr;

	need(!ibv_query_device(here->context, &attr), "query");
}

static void query_extended(void)
{
	struct ibv_device_attr_ex attr;

	need(!ibv_query_device_ex(here->context, NULL, &attr), "query");
}

static void make_cq(void)
{
	need(!ibv_create_cq(here->context, 1 << 28, NULL, NULL, 0), "CQ"); /* @cq */
}

static void make_qp(const struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = here->cq, .recv_cq = here->cq, .cap = *cap};

	need(!ibv_create_qp(here->pd, &init), "QP"); /* @qp */
}

static void cq(void)
{
	open_ends(&plan);
	make_cq();
	close_ends();
}

static void cq_kept(void)
{
	open_ends(&plan);
	query();
	make_cq();
	close_ends();
}

static void qp(void)
{
	open_ends(&plan);
	make_qp(&(struct ibv_qp_cap){1 << 24, 1, 1, 1, 0});
	close_ends();
}

static void qp_kept(void)
{
	open_ends(&plan);
	query_extended();
	make_qp(&(struct ibv_qp_cap){1 << 24, 1, 1, 1, 0});
	close_ends();
}

static void sges(void)
{
	open_ends(&plan);
	make_qp(&(struct ibv_qp_cap){1, 1, 1, 4096, 0});
	close_ends();
}

/* No query shows how many bytes a QP may send inline. */
static void sges_kept(void)
{
	open_ends(&plan);
	make_qp(&(struct ibv_qp_cap){1, 1, 1, 1, 1 << 20});
	need(!ibv_create_cq(here->context, 0, NULL, NULL, 0), "CQ");
	close_ends();
}

static void shared(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1 << 24, .max_sge = 1}};

	open_ends(&plan);
	need(!ibv_create_srq(here->pd, &attr), "SRQ"); /* @srq */
	close_ends();
}

static void shared_kept(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 0, .max_sge = 1}};

	open_ends(&plan);
	need(!ibv_create_srq(here->pd, &attr), "SRQ");
	close_ends();
}

static void reads(void)
{
	struct ibv_qp_attr rtr, rts = rts_attr();

	open_ends(&plan);
	rtr = rtr_attr(there);
	to_init(here, &plan);
	to_rtr(here, &rtr);
	rts.max_rd_atomic = 255;
	need(ibv_modify_qp(here->qp, &rts, RTS_MASK) == EINVAL, "RTS"); /* @reads */
	close_ends();
}

static void reads_kept(void)
{
	connect_ends(&plan);
	close_ends();
}

#define PAIR(name, function)                  \
	{name, function},                     \
	{                                     \
		name "-kept", function##_kept \
	}

static const struct mode modes[] = {
	PAIR("cq", cq),		PAIR("qp", qp),	      PAIR("sges", sges),
	PAIR("shared", shared), PAIR("reads", reads), {0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
