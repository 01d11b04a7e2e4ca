/* SPDX-License-Identifier: MIT */
/*
 * Quirks of a device's tables and numbers, which it is made with. The profile hostile has them all.
 */
#include "test/conformance/sources.h"
#include "test/support/other_world.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"
#include "test/support/xrc.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>

/* Returns a configuration of two devices with a quirk. */
static struct vb_sim_config *two_devices(struct vt *t, const char *quirk, int link_layer)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));

	*config = (struct vb_sim_config){.device_count = 2,
					 .devices = {{.name = "first"}, {.name = "second"}}};
	for (int i = 0; i < 2; i++) {
		config->devices[i].link_layer = link_layer;
		snprintf(config->devices[i].quirks, sizeof(config->devices[i].quirks), "%s", quirk);
	}
	return config;
}

static void enter_world(struct vt *t, const char *quirk, int link_layer)
{
	ts_other_world(t, two_devices(t, quirk, link_layer), 1);
}

/* A QP that takes index 0 reaches nobody; the index that ibv_get_pkey_index(3) tells is right. */
static void default_pkey_is_last(struct vt *t)
{
	static const uint16_t table[] = {0, 0x1235, 0xffff};
	struct ts_pair *pair;
	__be16 pkey = 0;

	enter_world(t, "default_pkey_is_last", IBV_LINK_LAYER_ETHERNET);
	VT_EQ(t, t->a.port_attr.pkey_tbl_len, TS_COUNT(table));
	for (int i = 0; i < (int)TS_COUNT(table); i++) {
		VT_OK(t, vb_query_pkey(t->a.ctx, 1, i, &pkey));
		VT_EQ(t, ntohs(pkey), table[i]);
	}
	VT_EQ(t, t->a.pkey_index, 2);
	ts_transfer(ts_connected(t, IBV_QPT_RC), IBV_WR_SEND, 100);
	t->a.pkey_index = t->b.pkey_index = 0;
	pair = ts_connected(t, IBV_QPT_RC);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
}

/* The quirk does not change a P_Key table that the program has configured. */
static void configured_pkeys_stay(struct vt *t)
{
	struct vb_sim_config *config =
		two_devices(t, "default_pkey_is_last", IBV_LINK_LAYER_ETHERNET);
	__be16 pkey = 0;

	config->devices[0].pkey_count = 1;
	config->devices[0].pkeys[0] = 0x8001;
	ts_other_world(t, config, 1);
	VT_EQ(t, t->a.port_attr.pkey_tbl_len, 1);
	VT_OK(t, vb_query_pkey(t->a.ctx, 1, 0, &pkey));
	VT_EQ(t, ntohs(pkey), 0x8001);
}

static void gids_have_holes(struct vt *t)
{
	struct ibv_gid_entry entry, entries[64];
	ssize_t count;

	enter_world(t, "gids_have_holes", IBV_LINK_LAYER_ETHERNET);
	VT_ERRNO(t, vb_query_gid_ex(t->a.ctx, 1, 0, &entry, 0, sizeof(entry)), ENODATA);
	count = vb_query_gid_table(t->a.ctx, entries, TS_COUNT(entries), 0, sizeof(entries[0]));
	VT_EQ(t, count, 6);
	for (ssize_t i = 0; i < count; i++)
		VT_EQ(t, entries[i].gid_index, 3 + 2 * i);
	VT_EQ(t, t->a.gid_index, 5);
	ts_transfer(ts_connected(t, IBV_QPT_RC), IBV_WR_SEND, 100);
}

/* A GID table that is full has no room for holes: the quirk leaves the table unchanged. */
static void long_gid_tables_have_no_holes(struct vt *t)
{
	struct vb_sim_config *config = two_devices(t, "gids_have_holes", IBV_LINK_LAYER_ETHERNET);
	struct vb_sim_device_config *device = &config->devices[0];
	struct ibv_gid_entry entry;

	/* The profile doubles the table, for RoCE v1. */
	snprintf(device->profile, sizeof(device->profile), "mlx5");
	device->gid_count = VB_SIM_GIDS_MAX;
	for (unsigned int i = 0; i < device->gid_count; i += 2) {
		vb_sim_default_gids(1, device->gids + i);
		device->gids[i].raw[15] = (uint8_t)(i + 1);
		device->gids[i + 1].raw[15] = (uint8_t)(i + 1);
	}
	ts_other_world(t, config, 1);
	for (uint32_t i = 0; i < 2 * (VB_SIM_GIDS_MAX + 1); i++)
		VT_OK(t, vb_query_gid_ex(t->a.ctx, 1, i, &entry, 0, sizeof(entry)));
}

/* The link-local GID of an InfiniBand port is at index 0, with the port's GUID. */
static void gids_of_infiniband_begin_at_0(struct vt *t)
{
	enter_world(t, "gids_have_holes", IBV_LINK_LAYER_INFINIBAND);
	VT_EQ(t, t->a.gid_index, 0);
	VT_EQ(t, t->a.gid.raw[0], 0xfe);
}

static void numbers_are_scattered(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *one, *two;
	uint32_t first;

	enter_world(t, "numbers_are_scattered", IBV_LINK_LAYER_ETHERNET);
	one = ts_end(t, &t->a, &options);
	two = ts_end(t, &t->a, &options);
	first = one->qp->qp_num;
	VT_CHECK(t, first > 0x10000);
	VT_EQ(t, two->qp->qp_num, first + 37);
	ts_destroy_qp(one);
	VT_EQ(t, ts_end(t, &t->a, &options)->qp->qp_num, first + UINT32_C(2) * 37);
	ts_transfer(ts_connected(t, IBV_QPT_RC), IBV_WR_SEND, 100);
}

static void numbers_of_srqs_are_scattered(struct vt *t)
{
	struct ibv_xrcd *xrcd;
	uint32_t first;

	enter_world(t, "numbers_are_scattered", IBV_LINK_LAYER_ETHERNET);
	xrcd = ts_xrcd(t, t->b.ctx, -1, O_CREAT);
	first = ts_srqn(t, ts_xrc_srq(t, xrcd, ts_cq(t, &t->b, 4))->srq);
	VT_CHECK(t, first > 0x10000);
	VT_EQ(t, ts_srqn(t, ts_xrc_srq(t, xrcd, ts_cq(t, &t->b, 4))->srq), first + 37);
}

static void lids_are_high(struct vt *t)
{
	enter_world(t, "lids_are_high", IBV_LINK_LAYER_INFINIBAND);
	VT_EQ(t, t->a.port_attr.lid, 0xa001);
	VT_EQ(t, t->b.port_attr.lid, 0xa002);
	ts_transfer(ts_connected(t, IBV_QPT_RC), IBV_WR_SEND, 100);
}

static void sizes_are_odd(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ts_rr rr = {.length = 8};

	ts_quirks(t, "sizes_are_odd", NULL);
	options.recv_wr = 16;
	options.send_wr = 13;
	options.send_sge = (uint32_t)t->a.device_attr.max_sge;
	options.recv_cqe = 64;
	options.inline_bytes = 16;
	options.recv_sge = 1;
	pair = ts_pair(t, &options);
	VT_EQ(t, pair->b.cap.max_recv_wr, 19);
	VT_EQ(t, pair->b.cap.max_send_wr, 15);
	VT_EQ(t, pair->b.cap.max_send_sge, t->a.device_attr.max_sge);
	VT_EQ(t, pair->b.cap.max_recv_sge, 3);
	VT_EQ(t, pair->b.cap.max_inline_data, 19);
	VT_EQ(t, pair->b.recv_cq->cqe, 67);
	for (int i = 0; i < 19; i++)
		VT_OK(t, ts_post_rr(&pair->b, &rr));
	VT_EQ(t, ts_post_rr(&pair->b, &rr), ENOMEM);
	options.inline_bytes = 0;
	VT_EQ(t, ts_pair(t, &options)->b.cap.max_inline_data, 0);
}

/* The limit of the profile spec is 1024 bytes. */
static void odd_sizes_end_at_the_limit(struct vt *t)
{
	struct ts_options options;

	enter_world(t, "sizes_are_odd", IBV_LINK_LAYER_ETHERNET);
	options = ts_defaults(t, IBV_QPT_RC);
	options.inline_bytes = 1022;
	VT_EQ(t, ts_end(t, &t->a, &options)->cap.max_inline_data, 1024);
}

/* The profile has no limit that is a power of 2. */
static void limits_of_hostile_are_odd(struct vt *t)
{
	const struct ibv_device_attr *attr = &t->a.device_attr;

	ts_profile(t, "hostile");
	VT_EQ(t, attr->max_qp_wr, 1023);
	VT_EQ(t, attr->max_cqe, 2047);
	VT_EQ(t, attr->max_sge, 5);
	VT_EQ(t, attr->max_sge_rd, 1);
	VT_EQ(t, attr->max_qp_rd_atom, 5);
	VT_EQ(t, t->a.port_attr.gid_tbl_len, 67);
	ts_transfer(ts_connected(t, IBV_QPT_RC), IBV_WR_SEND, 100);
}

#define NEEDS (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"default_pkey_is_last", "ibv_query_pkey(3), ibv_get_pkey_index(3)", NEEDS,
	 default_pkey_is_last},
	{"configured_pkeys_stay", "ibv_query_pkey(3)", NEEDS, configured_pkeys_stay},
	{"gids_have_holes", "ibv_query_gid_table(3)", NEEDS, gids_have_holes},
	{"long_gid_tables_have_no_holes", "ibv_query_gid_table(3)", NEEDS,
	 long_gid_tables_have_no_holes},
	{"gids_of_infiniband_begin_at_0", "unsourced", NEEDS, gids_of_infiniband_begin_at_0},
	{"numbers_are_scattered", "ibv_create_qp(3)", NEEDS, numbers_are_scattered},
	{"numbers_of_srqs_are_scattered", "ibv_get_srq_num(3)", NEEDS,
	 numbers_of_srqs_are_scattered},
	{"sizes_are_odd", "ibv_create_qp(3), ibv_create_cq(3)", NEEDS, sizes_are_odd},
	{"odd_sizes_end_at_the_limit", "ibv_create_qp(3)", NEEDS, odd_sizes_end_at_the_limit},
	{"lids_are_high", "ibv_query_port(3): lid", NEEDS, lids_are_high},
	{"limits_of_hostile_are_odd", "ibv_query_device(3)", NEEDS, limits_of_hostile_are_odd},
	{NULL},
};

const struct vt_suite vt_suite_quirks_device = {"quirks_device", "quirks: tables and numbers",
						tests, .simulator = true};
