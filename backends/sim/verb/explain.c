/* SPDX-License-Identifier: MIT */
/* Why a completion failed: <verbena/explain.h>. */
#include "backends/sim/verb/verbs.h"

#include <verbena/explain.h>

static int refuse(int error, enum vb_reason reason, const struct ibv_wc *wc)
{
	const struct vb_why why = {reason, {wc->qp_num, wc->wr_id}, .verb = "completion_why"};

	return say_why(error, &why);
}

int verb_completion_why(struct ibv_context *ibv, const struct ibv_wc *wc,
			struct vb_completion_why *why)
{
	HOLD hold = context_hold(ibv);
	const struct sim_device *device = context_of(ibv)->device->engine;
	const struct sim_qp *qp = sim_table_find(&device->qps, wc->qp_num);

	*why = (struct vb_completion_why){
		.send = !(wc->opcode & IBV_WC_RECV),
		.device = device->name,
		.qpn = wc->qp_num,
	};
	if (wc->status == IBV_WC_SUCCESS)
		return refuse(EINVAL, VB_WHY_COMPLETION_SUCCEEDED, wc);
	if (qp && sim_qp_why(qp, wc, why))
		return 0;
	/* A profile with measured values has other numbers there. */
	if (device->profile->codes == SIM_CODES_SPEC)
		why->why.reason = (enum vb_reason)wc->vendor_err;
	return refuse(ENOENT, VB_WHY_COMPLETION_UNKNOWN, wc);
}
