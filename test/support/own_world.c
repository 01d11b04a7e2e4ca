/* SPDX-License-Identifier: MIT */
#include "test/support/own_world.h"

#include "test/support/other_world.h"

#include <verbena/sim.h>

const uint16_t ts_world_pkeys[TS_WORLD_PKEYS] = {0xffff, 0x8123, 0x8456, 0x8789};

static bool has_quirks(struct ibv_context *context)
{
	const char *name;
	bool on = false;

	for (unsigned int i = 0; !on && (name = vb_sim_quirk_name(i, NULL)); i++)
		if (vb_sim_quirk(context, name, &on))
			on = true;
	return on;
}

bool ts_is_spec(const struct vt *t)
{
	return t->have & VT_NEEDS_SIM && !has_quirks(t->a.ctx) && !has_quirks(t->b.ctx);
}

void ts_need_spec(struct vt *t)
{
	if (!ts_is_spec(t))
		VT_SKIP(t, "the device has quirks; the test is about devices of the profile spec");
}

static struct vb_sim_device_config config_of(int link_layer, const char *name)
{
	struct vb_sim_device_config config = {
		.ports = 2,
		.link_layer = link_layer,
		.pkey_count = TS_WORLD_PKEYS,
	};

	memcpy(config.name, name, strlen(name) + 1);
	memcpy(config.pkeys, ts_world_pkeys, sizeof(ts_world_pkeys));
	return config;
}

static void fill_node(struct vt *t, struct vt_node *node, struct ibv_context *context, uint8_t port,
		      int gid_index)
{
	*node = (struct vt_node){.ctx = context, .port = port, .gid_index = gid_index};
	VT_OK(t, vb_query_device(context, &node->device_attr));
	VT_OK(t, vb_query_port(context, port, &node->port_attr, sizeof(node->port_attr)));
	VT_OK(t, vb_query_gid(context, port, gid_index, &node->gid));
}

void ts_world(struct vt *t)
{
	ts_world_of(t, t->a.port_attr.link_layer);
}

void ts_world_of(struct vt *t, int link_layer)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));

	ts_need_spec(t);
	*config = (struct vb_sim_config){
		.seed_given = true,
		.seed = t->seed,
		.device_count = 2,
		.devices = {config_of(link_layer, "world0"), config_of(link_layer, "world1")},
	};
	ts_other_world(t, config, 1);
	t->have &= ~(unsigned)(VT_NEEDS_ETHERNET | VT_NEEDS_INFINIBAND);
	t->have |=
		VT_NEEDS_TWO_DEVICES |
		(link_layer == IBV_LINK_LAYER_ETHERNET ? VT_NEEDS_ETHERNET : VT_NEEDS_INFINIBAND);
}

struct vt_node ts_second_port(struct vt *t, const struct vt_node *node)
{
	struct vt_node second;

	fill_node(t, &second, node->ctx, 2, 0);
	return second;
}

void ts_untraced(struct vt *t)
{
	VT_OK(t, vb_sim_trace_close(ts_sim(t)));
}
