/* SPDX-License-Identifier: MIT */
#include "src/check/peer_qp.h"

#include "src/check/look.h"

#include <string.h>
#include <verbena/verbs.h>

static bool has_gid(const struct check_qp *qp, const union ibv_gid *gid)
{
	struct ibv_port_attr port;
	union ibv_gid entry;

	if (!look_port(qp->object.context, qp->attr.port_num, &port))
		return false;
	for (int i = 0; i < port.gid_tbl_len; i++)
		if (!vb_query_gid(qp->object.context, qp->attr.port_num, i, &entry) &&
		    !memcmp(&entry, gid, sizeof(entry)))
			return true;
	return false;
}

static bool has_lid(const struct check_qp *qp, uint16_t lid)
{
	struct ibv_port_attr port;

	return look_port(qp->object.context, qp->attr.port_num, &port) && lid >= port.lid &&
	       lid < port.lid + (1 << port.lmc);
}

bool peer_is_connected(const struct check_qp *qp)
{
	return (qp->type == IBV_QPT_RC || qp->type == IBV_QPT_UC) &&
	       (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS) &&
	       qp->attr_mask & IBV_QP_DEST_QPN && qp->attr_mask & IBV_QP_AV &&
	       qp->attr_mask & IBV_QP_PORT;
}

bool peer_leads_to(const struct check_qp *qp, const struct check_qp *peer)
{
	if (!peer_is_connected(peer) || peer->type != qp->type || peer->qpn != qp->attr.dest_qp_num)
		return false;
	return qp->attr.ah_attr.is_global ? has_gid(peer, &qp->attr.ah_attr.grh.dgid)
					  : has_lid(peer, qp->attr.ah_attr.dlid);
}

struct check_qp *peer_find(const struct check_qp *qp)
{
	if (!peer_is_connected(qp))
		return NULL;
	for (struct object *object = object_first(OBJECT_QP); object; object = object->next_of_kind)
		if (peer_leads_to(qp, (struct check_qp *)object))
			return (struct check_qp *)object;
	return NULL;
}
