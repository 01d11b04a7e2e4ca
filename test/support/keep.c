/* SPDX-License-Identifier: MIT */
#include "test/support/keep.h"

#include "test/support/support.h"

struct kept {
	struct vt *t;
	struct kept *next;
	enum ts_kind kind;
	void *object; /* NULL: gone */
};

static int destroy(enum ts_kind kind, void *object)
{
	switch (kind) {
	case TS_PD:
		return vb_dealloc_pd(object);
	case TS_CHANNEL:
		return vb_destroy_comp_channel(object);
	case TS_CQ:
		return vb_destroy_cq(object);
	case TS_MR:
		return vb_dereg_mr(object);
	case TS_AH:
		return vb_destroy_ah(object);
	case TS_QP:
		return vb_destroy_qp(object);
	case TS_SRQ:
		return vb_destroy_srq(object);
	case TS_XRCD:
		return vb_close_xrcd(object);
	case TS_MW:
		return vb_dealloc_mw(object);
	case TS_DM:
		return vb_free_dm(object);
	case TS_TD:
		return vb_dealloc_td(object);
	case TS_CONTEXT:
		return vb_close_device(object);
	}
	return EINVAL;
}

static void give_back(void *arg)
{
	struct kept *kept = arg;

	kept->t->support = kept->next;
	if (!kept->object)
		return;
	/* Destroying it would wait until its events are acknowledged. */
	if (kept->kind == TS_QP || kept->kind == TS_SRQ) {
		ts_drain_events(&kept->t->a);
		ts_drain_events(&kept->t->b);
	}
	VT_EXPECT_OK(kept->t, destroy(kept->kind, kept->object));
}

void ts_keep(struct vt *t, enum ts_kind kind, void *object)
{
	struct kept *kept = vt_alloc(t, sizeof(*kept));

	*kept = (struct kept){.t = t, .next = t->support, .kind = kind, .object = object};
	t->support = kept;
	vt_defer(t, give_back, kept);
}

void ts_gone(struct vt *t, const void *object)
{
	struct kept *kept;

	for (kept = t->support; kept; kept = kept->next)
		if (kept->object == object)
			kept->object = NULL;
}
