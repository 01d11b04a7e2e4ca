/* SPDX-License-Identifier: MIT */
#include "test/support/quirks.h"

#include "test/support/other_world.h"

#include <stdio.h>
#include <string.h>

void ts_quirks_of(struct vt *t, struct ibv_context *context, const char *first, const char *second)
{
	unsigned int wanted = (*first != 0) + (second != NULL);
	const char *name;

	for (unsigned int i = 0; (name = vb_sim_quirk_name(i, NULL)); i++) {
		bool on = !strcmp(name, first) || (second && !strcmp(name, second));

		wanted -= on;
		VT_OK(t, vb_sim_set_quirk(context, name, on));
	}
	/* Each name is that of a quirk. */
	VT_EQ(t, wanted, 0);
}

void ts_quirks(struct vt *t, const char *first, const char *second)
{
	ts_quirks_of(t, t->a.ctx, first, second);
	ts_quirks_of(t, t->b.ctx, first, second);
}

void ts_prompt(struct vt *t)
{
	static const char *const late[] = {
		"completions_come_late",	  "answers_come_late", "acks_tell_credits",
		"first_attempts_find_no_receive", "writes_end_first",  "packets_overtake",
	};

	if (!(t->have & VT_NEEDS_SIM))
		return;
	for (size_t i = 0; i < TS_COUNT(late); i++) {
		VT_OK(t, vb_sim_set_quirk(t->a.ctx, late[i], false));
		VT_OK(t, vb_sim_set_quirk(t->b.ctx, late[i], false));
	}
}

struct other_world {
	struct vb_sim *sim;
	struct vt_node node;
};

static void close_world(void *arg)
{
	struct other_world *world = arg;

	if (world->node.ctx)
		vb_close_device(world->node.ctx);
	vb_sim_close(world->sim);
}

struct ts_end *ts_other_device(struct vt *t, const struct vb_sim_device_config *device,
			       const struct ts_options *options)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	struct other_world *world = vt_alloc(t, sizeof(*world));
	struct vt_node *node = &world->node;
	struct ibv_device **list;

	*config = (struct vb_sim_config){.device_count = 1, .devices = {*device}};
	world->sim = VT_PTR(t, vb_sim_open(config));
	vt_defer(t, close_world, world);
	list = VT_PTR(t, vb_sim_device_list(world->sim, NULL));
	node->ctx = vb_open_device(list[0]);
	vb_free_device_list(list);
	VT_CHECK(t, node->ctx);
	node->port = 1;
	node->gid_index = 1;
	VT_OK(t, vb_query_port(node->ctx, 1, &node->port_attr, sizeof(node->port_attr)));
	VT_OK(t, vb_query_gid(node->ctx, 1, node->gid_index, &node->gid));
	return ts_end(t, node, options);
}

void ts_profile(struct vt *t, const char *profile)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));

	*config = (struct vb_sim_config){.device_count = 2,
					 .devices = {{.name = "first"}, {.name = "second"}}};
	snprintf(config->devices[0].profile, sizeof(config->devices[0].profile), "%s", profile);
	snprintf(config->devices[1].profile, sizeof(config->devices[1].profile), "%s", profile);
	ts_other_world(t, config, 1);
}
