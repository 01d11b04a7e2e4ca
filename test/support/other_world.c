/* SPDX-License-Identifier: MIT */
#include "test/support/other_world.h"

struct place {
	struct vt *t;
	struct vb_sim *sim;
	struct vt_node a, b; /* as they were */
	unsigned have;
};

static void leave(void *arg)
{
	struct place *place = arg;
	struct vt *t = place->t;

	if (t->b.ctx != place->b.ctx)
		VT_EXPECT_OK(t, vb_close_device(t->b.ctx));
	if (t->a.ctx != place->a.ctx)
		VT_EXPECT_OK(t, vb_close_device(t->a.ctx));
	t->a = place->a;
	t->b = place->b;
	t->have = place->have;
	VT_EXPECT_OK(t, vb_sim_close(place->sim));
}

static void enter(struct vt *t, struct vt_node *node, struct ibv_device *device, uint8_t port)
{
	struct ibv_context *ctx = VT_PTR(t, vb_open_device(device));
	struct ibv_port_attr *attr = &node->port_attr;

	*node = (struct vt_node){.ctx = ctx, .port = port};
	VT_OK(t, vb_query_device(ctx, &node->device_attr));
	VT_OK(t, vb_query_port(ctx, port, attr, sizeof(*attr)));
	vt_node_choose(node);
}

void ts_other_world(struct vt *t, const struct vb_sim_config *config, uint8_t port)
{
	struct place *place = vt_alloc(t, sizeof(*place));
	struct ibv_device **list;

	*place = (struct place){
		.t = t,
		.sim = VT_PTR(t, vb_sim_open(config)),
		.a = t->a,
		.b = t->b,
		.have = t->have,
	};
	vt_defer(t, leave, place);
	list = VT_PTR(t, vb_sim_device_list(place->sim, NULL));
	enter(t, &t->a, list[0], port);
	enter(t, &t->b, list[1], port);
	vb_free_device_list(list);
}
