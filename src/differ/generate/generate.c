/* SPDX-License-Identifier: MIT */
#include "src/differ/generate/generate.h"

#include "src/differ/generate/generator.h"

#include <string.h>

#define STEPS_MIN 20

/* One action is drawn by weight until the program is long enough: a step with its verb on a
 * random slot, which fill completes, or steps that belong together. The rows' order decides the
 * program of a seed. */
static const struct {
	unsigned int weight;
	vd_action_fn *together;
	enum vd_verb verb;
	vd_fill_fn *fill;
} actions[] = {
	{300, vd_send},
	{130, vd_receive},
	{40, .verb = VD_POST_SRQ_RECV, .fill = vd_fill_shared_receives},
	{80, .verb = VD_MODIFY_QP, .fill = vd_fill_modify},
	{40, vd_join_qp},
	{30, .verb = VD_CREATE_QP, .fill = vd_fill_qp},
	{25, .verb = VD_QUERY_QP},
	{20, .verb = VD_DESTROY_QP},
	{35, .verb = VD_REG_MR, .fill = vd_fill_mr},
	{15, .verb = VD_REREG_MR, .fill = vd_fill_rereg},
	{20, .verb = VD_DEREG_MR},
	{20, .verb = VD_ALLOC_MW, .fill = vd_fill_mw},
	{25, vd_bind_mw},
	{10, .verb = VD_DEALLOC_MW},
	{15, .verb = VD_CREATE_CQ, .fill = vd_fill_cq},
	{15, .verb = VD_RESIZE_CQ, .fill = vd_fill_resize},
	{30, .verb = VD_REQ_NOTIFY_CQ, .fill = vd_fill_notify},
	{30, .verb = VD_POLL_CQ, .fill = vd_fill_poll},
	{16, .verb = VD_DESTROY_CQ},
	{10, .verb = VD_CREATE_SRQ, .fill = vd_fill_srq},
	{70, vd_change_srq},
	{14, .verb = VD_QUERY_SRQ},
	{12, .verb = VD_DESTROY_SRQ},
	{14, .verb = VD_CREATE_AH, .fill = vd_fill_ah},
	{14, .verb = VD_DESTROY_AH},
	{8, .verb = VD_ALLOC_PD},
	{8, vd_end_pd},
	{14, .verb = VD_ATTACH_MCAST, .fill = vd_fill_attach},
	{12, .verb = VD_DETACH_MCAST, .fill = vd_fill_detach},
	{30, vd_climb_qp},
	{45, vd_use_window},
	{16, vd_drain},
	{14, vd_send_to_group},
	{40, vd_intrude},
	{14, vd_part_mtus},
	{8, vd_drain_slowly},
	{8, vd_send_in_error},
	{8, vd_overfill},
	{12, vd_cut_write},
	{10, vd_read_twice},
	{10, vd_bind_behind},
	{14, vd_touch_nothing},
	{8, vd_send_unawaited},
};

static void add_filled(struct vd_generator *g, enum vd_verb verb, vd_fill_fn *fill)
{
	struct vd_step *step = vd_add_any(g, verb);

	if (step && fill)
		fill(g, step);
}

/* Most programs need a connection and memory for anything else to happen. */
static void begin(struct vd_generator *g)
{
	vd_add(g, VD_ALLOC_PD, 0);
	if (vd_chance(g, 45))
		vd_add(g, VD_ALLOC_PD, 1);
	vd_add_cq(g, 0, false);
	vd_add_cq(g, 1, vd_chance(g, 20));
	vd_add_whole_mr(g);
	add_filled(g, VD_REG_MR, vd_fill_mr);
	if (vd_chance(g, 45))
		add_filled(g, VD_CREATE_SRQ, vd_fill_srq);
	for (unsigned int slot = 0; slot < 2; slot++)
		vd_fill_qp_of_type(g, vd_add(g, VD_CREATE_QP, slot), g->type);
	if (g->type == IBV_QPT_UD)
		add_filled(g, VD_CREATE_AH, vd_fill_ah);
	if (vd_chance(g, 60))
		add_filled(g, VD_ALLOC_MW, vd_fill_mw);
	if (vd_chance(g, 95))
		vd_connect(g, 0, 1);
}

void vd_generate(struct vd_program *program, uint64_t seed, unsigned int avoid)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC,
						 IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_UD};
	static const uint8_t mtus[] = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_1024};
	struct vd_generator g = {.program = program, .avoid = avoid, .random = seed};
	unsigned int sum = 0, target;

	memset(program, 0, sizeof(*program));
	program->seed = seed;
	program->avoid = avoid;
	for (unsigned int i = 0; i < COUNT(actions); i++)
		sum += actions[i].weight;
	target = STEPS_MIN + vd_below(&g, VD_STEPS_MAX - STEPS_MIN);
	g.type = vd_one_of(&g, types);
	g.mtu = vd_one_of(&g, mtus);
	begin(&g);
	while (program->count < target) {
		unsigned int draw = vd_below(&g, sum), i = 0;

		while (draw >= actions[i].weight)
			draw -= actions[i++].weight;
		if (actions[i].together)
			actions[i].together(&g);
		else
			add_filled(&g, actions[i].verb, actions[i].fill);
	}
}
