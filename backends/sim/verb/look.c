/* SPDX-License-Identifier: MIT */
/* What layers look at: <verbena/backend.h>. Time stands still, and no refusal is kept. */
#include "backends/sim/verb/verbs.h"

int verb_look_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr)
{
	HOLD hold = context_hold(ibv->context);
	const struct qp *qp = qp_of(ibv);

	/* The process of another process's target QP would have to be asked. */
	if (!qp || qp->process)
		return ENOENT;
	sim_qp_query(qp->engine, attr);
	return 0;
}

int verb_look_port(struct ibv_context *ibv, uint8_t port_num, struct ibv_port_attr *attr)
{
	HOLD hold = context_hold(ibv);
	const struct context *context = context_of(ibv);
	struct sim_port *port =
		context_live(context) ? sim_device_port(context->device->engine, port_num) : NULL;

	if (!port)
		return ENOENT;
	sim_port_query(port, attr);
	return 0;
}
