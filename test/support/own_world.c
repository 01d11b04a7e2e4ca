/* SPDX-License-Identifier: MIT */
#include "test/support/own_world.h"

#include <verbena/sim.h>

const uint16_t ts_world_pkeys[TS_WORLD_PKEYS] = {0xffff, 0x8123, 0x8456, 0x8789};

struct world {
	struct vt *t;
	struct vb_sim *sim;
	struct vt_node a, b;		 /* of the default world */
	unsigned have;			 /* in the default world */
	struct ibv_context *contexts[2]; /* of this world */
};

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

static void end_world(void *arg)
{
	struct world *world = arg;

	for (int i = 0; i < 2; i++)
		if (world->contexts[i])
			VT_EXPECT_OK(world->t, vb_close_device(world->contexts[i]));
	world->t->a = world->a;
	world->t->b = world->b;
	world->t->have = world->have;
	VT_EXPECT_OK(world->t, vb_sim_close(world->sim));
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
	struct world *world = vt_alloc(t, sizeof(*world));
	/* On Ethernet index 1 is the IPv4 address; on InfiniBand 0 is the only GID. */
	const int gid_index = link_layer == IBV_LINK_LAYER_ETHERNET;
	struct ibv_device **list;

	ts_need_spec(t);
	*world = (struct world){.t = t, .a = t->a, .b = t->b, .have = t->have};
	*config = (struct vb_sim_config){
		.seed_given = true,
		.seed = t->seed,
		.device_count = 2,
		.devices = {config_of(link_layer, "world0"), config_of(link_layer, "world1")},
	};
	world->sim = VT_PTR(t, vb_sim_open(config));
	vt_defer(t, end_world, world);
	list = VT_PTR(t, vb_sim_device_list(world->sim, NULL));
	for (int i = 0; i < 2; i++)
		world->contexts[i] = vb_open_device(list[i]);
	vb_free_device_list(list);
	VT_CHECK(t, world->contexts[0] && world->contexts[1]);
	fill_node(t, &t->a, world->contexts[0], 1, gid_index);
	fill_node(t, &t->b, world->contexts[1], 1, gid_index);
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
