/* SPDX-License-Identifier: MIT */
#include "src/check/look.h"

#include <verbena/verbs.h>

bool look_attr(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	const struct vb_backend *backend = vb_context_backend(qp->context);
	struct ibv_qp_init_attr init;

	return backend && backend->look_qp
		       ? !backend->look_qp(qp, attr)
		       : !vb_query_qp(qp, attr, IBV_QP_STATE | IBV_QP_QKEY, &init);
}

bool look_state(struct ibv_qp *qp, enum ibv_qp_state *state)
{
	struct ibv_qp_attr attr;

	if (!look_attr(qp, &attr))
		return false;
	*state = attr.qp_state;
	return true;
}

bool look_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port)
{
	const struct vb_backend *backend = vb_context_backend(context);

	return backend && backend->look_port
		       ? !backend->look_port(context, port_num, port)
		       : !vb_query_port(context, port_num, port, sizeof(*port));
}

bool look_peer(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn, struct vb_peer *peer)
{
	const struct vb_backend *backend = vb_context_backend(qp->context);

	return backend && backend->look_peer && !backend->look_peer(qp, ah, remote_qpn, peer);
}
