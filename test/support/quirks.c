/* SPDX-License-Identifier: MIT */
#include "test/support/quirks.h"

#include <string.h>
#include <verbena/sim.h>

void ts_only_on(struct vt *t, struct ibv_context *context, const char *first, const char *second)
{
	const char *name;

	for (unsigned int i = 0; (name = vb_sim_quirk_name(i, NULL)); i++) {
		bool on = !strcmp(name, first) || (second && !strcmp(name, second));

		VT_OK(t, vb_sim_set_quirk(context, name, on));
	}
}

void ts_only(struct vt *t, const char *first, const char *second)
{
	ts_only_on(t, t->a.ctx, first, second);
	ts_only_on(t, t->b.ctx, first, second);
}
