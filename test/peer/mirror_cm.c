/* SPDX-License-Identifier: MIT */
#include "test/peer/mirror_cm.h"

#include <string.h>

/* The order counts: a mirror names those of the objects that its object refers to. */
static void show_objects(struct rdma_cm_id *shown)
{
	shown->verbs = mirror_for(shown->verbs, KIND_CONTEXT);
	shown->channel = mirror_for(shown->channel, KIND_CM_CHANNEL);
	shown->pd = mirror_for(shown->pd, KIND_PD);
	shown->send_cq_channel = mirror_for(shown->send_cq_channel, KIND_CHANNEL);
	shown->recv_cq_channel = mirror_for(shown->recv_cq_channel, KIND_CHANNEL);
	shown->send_cq = mirror_for(shown->send_cq, KIND_CQ);
	shown->recv_cq = mirror_for(shown->recv_cq, KIND_CQ);
	shown->srq = mirror_for(shown->srq, KIND_SRQ);
	shown->qp = mirror_for(shown->qp, KIND_QP);
}

void mirror_pull_id(struct mirror *mirror)
{
	struct mirror_id *shown = &mirror->object.cm_id;

	shown->id = *(const struct rdma_cm_id *)mirror->real;
	show_objects(&shown->id);
	if (!shown->id.route.path_rec)
		return;
	shown->path = *shown->id.route.path_rec;
	shown->id.route.path_rec = &shown->path;
}

/* Returns the copy of private data; the pointer itself if there are none, which is the context of a group. */
static const void *keep(struct mirror_event *shown, const void *data, uint8_t bytes)
{
	return bytes ? memcpy(shown->private_data, data, bytes) : data;
}

void mirror_pull_event(struct mirror *mirror)
{
	struct mirror_event *shown = &mirror->object.cm_event;
	const bool is_datagram =
		((const struct rdma_cm_event *)mirror->real)->id->ps == RDMA_PS_UDP;
	struct rdma_conn_param *conn = &shown->event.param.conn;
	struct rdma_ud_param *ud = &shown->event.param.ud;

	shown->event = *(const struct rdma_cm_event *)mirror->real;
	if (is_datagram)
		ud->private_data = keep(shown, ud->private_data, ud->private_data_len);
	else
		conn->private_data = keep(shown, conn->private_data, conn->private_data_len);
	shown->event.id = mirror_for(shown->event.id, KIND_CM_ID);
	shown->event.listen_id = mirror_for(shown->event.listen_id, KIND_CM_ID);
}
