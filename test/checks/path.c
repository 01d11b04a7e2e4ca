/* SPDX-License-Identifier: MIT */
/* Addresses. The GIDs 0 to 2 of a port are of RoCE v2, the GIDs 3 to 5 are the same ones of RoCE v1. */
#include "pair.h"

#define LINK_LOCAL  0
#define IPV4	    1
#define IPV4_ROCE_1 4
#define EMPTY	    9

static const struct plan plan;

static void choose_gid(struct end *end, int index)
{
	end->gid_index = index;
	need(!ibv_query_gid(end->context, 1, index, &end->gid), "GID");
}

/* Connects the ends by these indices. */
static void connect_by(int index, int peer_index)
{
	open_ends(&plan);
	choose_gid(here, index);
	choose_gid(there, peer_index);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]);

		rtr.ah_attr.grh.sgid_index = (uint8_t)ends[i].gid_index;
		to_init(&ends[i], &plan);
		ibv_modify_qp(ends[i].qp, &rtr, RTR_MASK); /* @connect */
	}
	close_ends();
}

static void roce_versions(void)
{
	connect_by(IPV4, IPV4_ROCE_1);
}

static void roce_versions_kept(void)
{
	connect_by(IPV4_ROCE_1, IPV4_ROCE_1);
}

static void families(void)
{
	connect_by(LINK_LOCAL, IPV4);
}

static void families_kept(void)
{
	connect_by(LINK_LOCAL, LINK_LOCAL);
}

static void make_ah(int index)
{
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	open_ends(&plan);
	attr = path_to(there);
	attr.grh.sgid_index = (uint8_t)index;
	ah = ibv_create_ah(here->pd, &attr); /* @create-ah */
	if (ah)
		ibv_destroy_ah(ah);
	close_ends();
}

static void empty(void)
{
	make_ah(EMPTY);
}

static void empty_kept(void)
{
	make_ah(IPV4);
}

static void empty_of_qp(void)
{
	connect_by(EMPTY, EMPTY);
}

static void empty_of_qp_kept(void)
{
	connect_by(IPV4, IPV4);
}

#define PAIR(name, function)                  \
	{name, function},                     \
	{                                     \
		name "-kept", function##_kept \
	}

static const struct mode modes[] = {
	PAIR("roce-versions", roce_versions),
	PAIR("families", families),
	PAIR("empty", empty),
	PAIR("empty-of-qp", empty_of_qp),
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
