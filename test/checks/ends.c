/* SPDX-License-Identifier: MIT */
/* Connected QPs whose attributes do not match. */
#include "pair.h"

static const struct plan plan = {0};

/* What the two ends have differently: 0 is the default of pair.h. */
struct difference {
	enum ibv_mtu mtu;	    /* of `there` */
	uint32_t rq_psn;	    /* of `there` */
	uint8_t max_rd_atomic;	    /* of `here` */
	uint8_t max_dest_rd_atomic; /* of `there` */
	uint32_t dest_qp_num;	    /* of `there` */
};

static void move(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	need(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), "modify");
}

static void connect_here(const struct difference *difference)
{
	struct ibv_qp_attr rtr = rtr_attr(there), rts = rts_attr();

	if (difference->max_rd_atomic)
		rts.max_rd_atomic = difference->max_rd_atomic;
	to_init(here, &plan);
	need(!ibv_modify_qp(here->qp, &rtr, RTR_MASK), "RTR"); /* @rtr-here */
	need(!ibv_modify_qp(here->qp, &rts, RTS_MASK), "RTS"); /* @rts-here */
}

static void connect_there(const struct difference *difference)
{
	struct ibv_qp_attr rtr = rtr_attr(here), rts = rts_attr();

	if (difference->mtu)
		rtr.path_mtu = difference->mtu;
	if (difference->rq_psn)
		rtr.rq_psn = difference->rq_psn;
	if (difference->max_dest_rd_atomic)
		rtr.max_dest_rd_atomic = difference->max_dest_rd_atomic;
	if (difference->dest_qp_num)
		rtr.dest_qp_num = difference->dest_qp_num;
	to_init(there, &plan);
	need(!ibv_modify_qp(there->qp, &rtr, RTR_MASK), "RTR"); /* @rtr-there */
	need(!ibv_modify_qp(there->qp, &rts, RTS_MASK), "RTS"); /* @rts-there */
}

static void connect_with(const struct difference *difference, int there_first)
{
	if (there_first)
		connect_there(difference);
	connect_here(difference);
	if (!there_first)
		connect_there(difference);
}

static void traffic(void)
{
	receive(there, 1);
	post(here, IBV_WR_SEND, 2);
	wait_for(here);
	wait_for(there);
}

/* --- path_mtu --- */

static const struct difference none = {0}, mtu = {.mtu = IBV_MTU_4096};

static void path_mtu(void)
{
	open_ends(&plan);
	connect_with(&mtu, 0);
	close_ends();
}

static void path_mtu_kept(void)
{
	open_ends(&plan);
	connect_with(&none, 0);
	traffic();
	close_ends();
}

static void path_mtu_first(void)
{
	open_ends(&plan);
	connect_with(&mtu, 1);
	close_ends();
}

/* The peer of an old connection does not count. */
static void path_mtu_first_kept(void)
{
	open_ends(&plan);
	connect_there(&mtu);
	move(there, IBV_QPS_RESET);
	connect_with(&none, 1);
	traffic();
	close_ends();
}

static void reconnect(const struct difference *difference)
{
	open_ends(&plan);
	connect_with(&none, 0);
	traffic();
	move(here, IBV_QPS_RESET);
	move(there, IBV_QPS_RESET);
	connect_with(difference, 0);
	traffic();
	close_ends();
}

static void reconnected(void)
{
	reconnect(&mtu);
}

static void reconnected_kept(void)
{
	reconnect(&none);
}

/* Both connections differ: the second finding is a repetition. */
static void connect_twice(const struct difference *second)
{
	open_ends(&plan);
	connect_with(second, 0);
	move(here, IBV_QPS_RESET);
	move(there, IBV_QPS_RESET);
	connect_with(second, 0);
	close_ends();
}

static void twice(void)
{
	connect_twice(&mtu);
}

static void twice_kept(void)
{
	connect_twice(&none);
}

/* --- PSNs --- */

static void psn_of(uint32_t rq_psn, int sends)
{
	const struct difference psn = {.rq_psn = rq_psn};

	open_ends(&plan);
	connect_with(&psn, 1);
	receive(there, 1);
	if (sends)
		post(here, IBV_WR_SEND, 2);
	close_ends();
}

static void psn(void)
{
	psn_of(200, 1);
}

/* The peer of a QP that has sent is connected again, with the next PSN. */
static void go_on(void)
{
	const struct difference next = {.rq_psn = 102};

	open_ends(&plan);
	connect_with(&none, 0);
	traffic();
	traffic();
	move(there, IBV_QPS_RESET);
	connect_there(&next);
	traffic();
	close_ends();
}

/* Both ends have the PSN; or they differ, and the end never sends. */
static void psn_kept(void)
{
	psn_of(100, 1);
	psn_of(200, 0);
	go_on();
}

/* --- RDMA READs --- */

static void reads(int count)
{
	const struct difference reads = {.max_rd_atomic = 4, .max_dest_rd_atomic = 2};

	open_ends(&plan);
	connect_with(&reads, 0);
	for (int i = 0; i < 6; i++) {
		post(here, IBV_WR_RDMA_READ, 1);
		wait_for(here);
	}
	for (int i = 0; i < count; i++)
		post(here, IBV_WR_RDMA_READ, 1);
	close_ends();
}

static void max_reads(void)
{
	reads(3);
}

static void max_reads_kept(void)
{
	reads(2);
}

/* --- the destination --- */

static void destination_of(int wrong, int sends)
{
	struct difference destination = {0};

	open_ends(&plan);
	destination.dest_qp_num = here->qp->qp_num + (uint32_t)wrong;
	connect_with(&destination, 1);
	receive(there, 1);
	if (sends)
		post(here, IBV_WR_SEND, 2);
	close_ends();
}

static void destination(void)
{
	destination_of(1, 1);
}

static void destination_kept(void)
{
	destination_of(0, 1);
	destination_of(1, 0);
}

static const struct mode modes[] = {
	{"path-mtu", path_mtu},
	{"path-mtu-kept", path_mtu_kept},
	{"path-mtu-first", path_mtu_first},
	{"path-mtu-first-kept", path_mtu_first_kept},
	{"reconnected", reconnected},
	{"reconnected-kept", reconnected_kept},
	{"twice", twice},
	{"twice-kept", twice_kept},
	{"psn", psn},
	{"psn-kept", psn_kept},
	{"max-reads", max_reads},
	{"max-reads-kept", max_reads_kept},
	{"destination", destination},
	{"destination-kept", destination_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
