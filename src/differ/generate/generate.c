/* SPDX-License-Identifier: MIT */
#include "src/differ/generate/generate.h"

#include <string.h>

#define STEPS_MIN 20

static const struct {
	unsigned int weight;
	vd_action *action;
} actions[] = {
	{300, vd_send},		{130, vd_receive},    {40, vd_receive_shared},
	{80, vd_change_qp},	{40, vd_join_qp},     {30, vd_make_qp},
	{25, vd_ask_qp},	{20, vd_end_qp},      {35, vd_make_mr},
	{15, vd_change_mr},	{20, vd_end_mr},      {20, vd_make_mw},
	{25, vd_bind_mw},	{10, vd_end_mw},      {15, vd_make_cq},
	{15, vd_resize_cq},	{30, vd_arm_cq},      {30, vd_poll_cq},
	{16, vd_end_cq},	{10, vd_make_srq},    {70, vd_change_srq},
	{14, vd_ask_srq},	{12, vd_end_srq},     {14, vd_make_ah},
	{14, vd_end_ah},	{8, vd_make_pd},      {8, vd_end_pd},
	{14, vd_attach},	{12, vd_detach},      {30, vd_climb_qp},
	{45, vd_use_window},	{16, vd_drain},	      {14, vd_send_to_group},
	{40, vd_intrude},	{14, vd_part_mtus},   {8, vd_drain_slowly},
	{8, vd_send_in_error},	{8, vd_overfill},     {12, vd_cut_write},
	{10, vd_read_twice},	{10, vd_bind_behind}, {14, vd_touch_nothing},
	{8, vd_send_unawaited},
};

struct vd_step *vd_add(struct vd_generator *g, enum vd_verb verb, unsigned int slot)
{
	struct vd_step *step;

	if (g->program->count == VD_STEPS_MAX)
		return NULL;
	step = &g->program->steps[g->program->count++];
	*step = (struct vd_step){.verb = verb, .slot = slot};
	if (vd_verbs[verb].makes)
		g->used[vd_verbs[verb].kind][slot] = true;
	return step;
}

int vd_pick(struct vd_generator *g, enum vd_kind kind, bool used)
{
	unsigned int count = 0, nth;

	for (unsigned int i = 0; i < vd_slots[kind]; i++)
		count += g->used[kind][i] == used;
	if (!count)
		return -1;
	nth = vd_below(g, count);
	for (unsigned int i = 0;; i++)
		if (g->used[kind][i] == used && !nth--)
			return (int)i;
}

static enum ibv_qp_type choose_type(struct vd_generator *g)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC,
						 IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_UD};

	return vd_one_of(g, types);
}

/* Most programs need a connection and memory for anything else to happen. */
static void begin(struct vd_generator *g)
{
	static const unsigned int all = IBV_ACCESS_LOCAL_WRITE | VD_REMOTE_ALL | IBV_ACCESS_MW_BIND;

	vd_add(g, VD_ALLOC_PD, 0);
	if (vd_chance(g, 45))
		vd_add(g, VD_ALLOC_PD, 1);
	vd_add_cq(g, 0, false);
	vd_add_cq(g, 1, vd_chance(g, 20));
	vd_add_mr(g, 0, 0, VD_REGIONS * VD_REGION_BYTES, all, 0);
	vd_make_mr(g);
	if (vd_chance(g, 45))
		vd_make_srq(g);
	vd_add_qp(g, 0, g->type);
	vd_add_qp(g, 1, g->type);
	if (g->type == IBV_QPT_UD)
		vd_make_ah(g);
	if (vd_chance(g, 60))
		vd_make_mw(g);
	if (vd_chance(g, 95))
		vd_connect(g, 0, 1);
}

void vd_generate(struct vd_program *program, uint64_t seed, unsigned int avoid)
{
	static const uint8_t mtus[] = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_1024};
	struct vd_generator g = {.program = program, .avoid = avoid, .random = seed};
	unsigned int sum = 0;

	memset(program, 0, sizeof(*program));
	program->seed = seed;
	program->avoid = avoid;
	for (unsigned int i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		sum += actions[i].weight;
	g.target = STEPS_MIN + vd_below(&g, VD_STEPS_MAX - STEPS_MIN);
	g.type = choose_type(&g);
	g.mtu = vd_one_of(&g, mtus);
	begin(&g);
	while (program->count < g.target) {
		unsigned int draw = vd_below(&g, sum), i = 0;

		while (draw >= actions[i].weight)
			draw -= actions[i++].weight;
		actions[i].action(&g);
	}
}
