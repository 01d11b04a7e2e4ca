/* SPDX-License-Identifier: MIT */
/* Turns the events of communications in the engine into events of identifiers. */
#include "backends/sim/cm/infiniband.h"

#include <errno.h>
#include <string.h>

/* --- making events --- */

struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *event = pool_take(&id->cm->events);

	if (!event)
		return NULL;
	event->rdma.id = &id->rdma;
	event->rdma.event = type;
	event->rdma.status = status;
	event->id = id;
	return event;
}

/* A program learns nothing of a request that it has not accepted; the call of rdma_accept(3) fails: Linux
 * drivers/infiniband/core/ucma.c, ucma_event_handler. */
void cm_event_push(struct cm_event *event)
{
	struct cm_id *id = event->id;

	if (id->unaccepted || id->orphaned) {
		pool_give(&id->cm->events, event);
		return;
	}
	event_queue_push(&id->channel->queue, &(struct queued_event){.object = event});
	driver_changed(&id->cm->world->driver);
}

void cm_event_tell(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct cm_event *event = cm_event_new(id, type, status);

	if (event)
		cm_event_push(event);
}

/* Copies the private data of a message into an event, behind the first `skip` bytes, and returns its
 * length. */
static uint8_t keep_private(struct cm_event *event, const struct sim_cm_private *data, size_t skip)
{
	const size_t bytes = data->bytes - skip;

	memcpy(event->private_data, (const uint8_t *)data->data + skip, bytes);
	return (uint8_t)bytes;
}

static void keep_conn_private(struct cm_event *event, const struct sim_cm_private *data,
			      size_t skip)
{
	event->rdma.param.conn.private_data = event->private_data;
	event->rdma.param.conn.private_data_len = keep_private(event, data, skip);
}

static void keep_datagram_private(struct cm_event *event, const struct sim_cm_private *data,
				  size_t skip)
{
	event->rdma.param.ud.private_data = event->private_data;
	event->rdma.param.ud.private_data_len = keep_private(event, data, skip);
}

/* --- requests --- */

/* Linux cma.c, cma_check_req_qp_type. The target of an XRC connection serves its initiator. */
static bool serves(const struct cm_id *listener, const struct sim_cm_event *event)
{
	if (event->kind == SIM_CM_EVENT_SIDR_REQ)
		return cm_is_datagram(listener);
	if (event->request.qp_type == IBV_QPT_XRC_SEND)
		return listener->rdma.qp_type == IBV_QPT_XRC_RECV;
	return event->request.qp_type == listener->rdma.qp_type;
}

static const struct sim_cm_private *private_of(const struct sim_cm_event *event)
{
	return event->kind == SIM_CM_EVENT_SIDR_REQ ? &event->query.private_data
						    : &event->request.private_data;
}

static const struct sim_cm_path *path_of(const struct sim_cm_event *event)
{
	return event->kind == SIM_CM_EVENT_SIDR_REQ ? &event->query.path : &event->request.path;
}

/* Linux cma.c, cma_match_private_data: a listener for one family takes no other. */
static bool takes_family(const struct cm_id *listener, const struct sim_cm_ip *ip)
{
	const int family = ip->ipv6 ? AF_INET6 : AF_INET;

	return !listener->afonly || listener->source.ss_family == family;
}

/* Returns how many bytes precede the program's private data. */
static size_t skipped_by(const struct cm_id *listener)
{
	return cm_is_infiniband(listener) ? 0 : SIM_CM_IP_BYTES;
}

/* Linux cma.c, cma_save_ip_info, cma_match_private_data and cma_match_net_dev. A listener of the family AF_IB takes
 * requests with and without an IP header; the first byte is the version, 0. */
static bool takes_header(const struct cm_id *listener, const struct sim_cm_event *event,
			 struct sim_cm_ip *ip)
{
	const uint8_t *bytes = private_of(event)->data;

	if (cm_is_infiniband(listener))
		return bytes[0] == 0 &&
		       (!listener->port || listener->port->number == path_of(event)->attr.port_num);
	return sim_cm_ip_read(bytes, ip) && takes_family(listener, ip);
}

static void fill_addresses(struct cm_id *id, const struct sim_cm_ip *ip, uint16_t port)
{
	const int family = ip->ipv6 ? AF_INET6 : AF_INET;
	union ibv_gid gid;

	memcpy(gid.raw, ip->dest, sizeof(gid.raw));
	cm_address_from_gid(&gid, family, &id->source);
	cm_address_set_port((struct sockaddr *)&id->source, port);
	memcpy(gid.raw, ip->source, sizeof(gid.raw));
	cm_address_from_gid(&gid, family, &id->dest);
	cm_address_set_port((struct sockaddr *)&id->dest, ip->source_port);
}

/* Returns the identifier of a request; NULL if out of memory. */
static struct cm_id *new_request(struct cm_id *listener, struct sim_cm *comm,
				 const struct sim_cm_event *event, const struct sim_cm_ip *ip)
{
	struct sim_device *device = sim_cm_device(comm);
	struct cm_id *id = cm_id_new(listener->cm, listener->channel, listener->rdma.context,
				     listener->rdma.ps, listener->rdma.qp_type);

	if (!id)
		return NULL;
	id->state = CM_CONNECT;
	id->device = cm_device_of(id->cm, device);
	id->path = *path_of(event);
	id->routed = true;
	id->port = sim_device_port(device, id->path.attr.port_num);
	id->dgid = id->path.attr.grh.dgid;
	if (cm_is_infiniband(listener))
		cm_ib_fill_request(id, listener, event);
	else
		fill_addresses(id, ip, cm_address_port((struct sockaddr *)&listener->source));
	return id;
}

/* The initiator depth of the sender becomes the responder resources of the receiver, and the reverse: Linux
 * drivers/infiniband/core/cm.c, cm_format_req_event. */
static void fill_request(struct cm_event *event, const struct sim_cm_request *request,
			 size_t skipped)
{
	struct rdma_conn_param *param = &event->rdma.param.conn;

	param->responder_resources = request->initiator_depth;
	param->initiator_depth = request->responder_resources;
	param->flow_control = request->flow_control;
	param->retry_count = request->retry_count;
	param->rnr_retry_count = request->rnr_retry_count;
	param->srq = request->srq;
	param->qp_num = request->qpn;
	event->fresh->initiator_depth = param->initiator_depth;
	event->fresh->responder_resources = param->responder_resources;
	event->fresh->remote_ece.vendor_id = request->vendor_id;
	event->fresh->remote_ece.options = request->ece_options;
	keep_conn_private(event, &request->private_data, skipped);
}

/* A REQ or SIDR_REQ for a listener. Linux ucma.c, ucma_connect_event_handler: a full backlog has
 * the effect of a lack of memory. */
static enum sim_cm_verdict hear_request(struct cm_id *listener, struct sim_cm *comm,
					const struct sim_cm_event *event)
{
	struct cm_event *told;
	struct sim_cm_ip ip;

	if (listener->state != CM_LISTEN || !serves(listener, event) ||
	    !takes_header(listener, event, &ip))
		return SIM_CM_REFUSED;
	told = listener->backlog ? cm_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;
	if (!told)
		return SIM_CM_NO_ROOM;
	told->fresh = new_request(listener, comm, event, &ip);
	if (!told->fresh) {
		pool_give(&listener->cm->events, told);
		return SIM_CM_NO_ROOM;
	}
	told->fresh->comm = comm;
	told->fresh->unaccepted = true;
	sim_cm_set_user(comm, told->fresh);
	told->rdma.id = &told->fresh->rdma;
	told->rdma.listen_id = &listener->rdma;
	if (event->kind == SIM_CM_EVENT_REQ) {
		fill_request(told, &event->request, skipped_by(listener));
		/* Linux cma.c, cma_ib_req_handler. */
		sim_cm_prepare_mra(comm, CM_SERVICE_TIMEOUT);
	} else {
		keep_datagram_private(told, &event->query.private_data, skipped_by(listener));
	}
	listener->backlog--;
	cm_event_push(told);
	return SIM_CM_TAKEN;
}

/* --- answers --- */

static void hear_reply(struct cm_id *id, const struct sim_cm_reply *reply)
{
	struct cm_event *event = cm_event_new(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	struct rdma_conn_param *param;

	/* Linux cma.c, cma_ib_handler. */
	sim_cm_prepare_mra(id->comm, CM_SERVICE_TIMEOUT);
	if (!event)
		return;
	param = &event->rdma.param.conn;
	param->responder_resources = reply->initiator_depth;
	param->initiator_depth = reply->responder_resources;
	param->flow_control = reply->flow_control;
	param->rnr_retry_count = reply->rnr_retry_count;
	param->srq = reply->srq;
	param->qp_num = reply->qpn;
	id->remote_ece.vendor_id = reply->vendor_id;
	id->remote_ece.options = reply->ece_options;
	keep_conn_private(event, &reply->private_data, 0);
	cm_event_push(event);
}

static void hear_rejection(struct cm_id *id, const struct sim_cm_rejection *rejection)
{
	struct cm_event *event = cm_event_new(id, RDMA_CM_EVENT_REJECTED, rejection->reason);

	if (!event)
		return;
	keep_conn_private(event, &rejection->private_data, 0);
	cm_event_push(event);
}

/* Handles the answer of a datagram service: Linux cma.c, cma_sidr_rep_handler. */
static void hear_answer(struct cm_id *id, const struct sim_cm_answer *answer)
{
	struct cm_event *event = cm_event_new(
		id, answer->status ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_ESTABLISHED,
		answer->status);
	struct rdma_ud_param *param;

	if (!event)
		return;
	param = &event->rdma.param.ud;
	keep_datagram_private(event, &answer->private_data, 0);
	if (!answer->status) {
		param->ah_attr = id->path.attr;
		param->qp_num = answer->qpn;
		param->qkey = answer->qkey;
	}
	cm_event_push(event);
}

/* A connection raises one DISCONNECTED event, whichever side disconnects: Linux cma.c, cma_ib_handler. */
static void hear_end(struct cm_id *id, int status, bool by_peer)
{
	if (id->state != CM_CONNECT)
		return;
	id->state = CM_DISCONNECT;
	if (by_peer)
		cm_ending_tell(id);
	else
		cm_event_tell(id, RDMA_CM_EVENT_DISCONNECTED, status);
}

static void hear(struct cm_id *id, const struct sim_cm_event *event)
{
	const bool connected = id->state == CM_CONNECT;

	if (event->kind == SIM_CM_EVENT_TIMEWAIT_EXIT && id->state == CM_DISCONNECT)
		cm_event_tell(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	if (!connected)
		return;
	switch (event->kind) {
	case SIM_CM_EVENT_REP:
		hear_reply(id, &event->reply);
		break;
	case SIM_CM_EVENT_RTU:
		cm_event_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0);
		break;
	case SIM_CM_EVENT_REJ:
		hear_rejection(id, &event->rejection);
		break;
	case SIM_CM_EVENT_DREQ:
		hear_end(id, 0, true);
		break;
	case SIM_CM_EVENT_DREP:
		hear_end(id, 0, false);
		break;
	case SIM_CM_EVENT_DREQ_ERROR:
		hear_end(id, -ETIMEDOUT, false);
		break;
	case SIM_CM_EVENT_REQ_ERROR:
	case SIM_CM_EVENT_REP_ERROR:
	case SIM_CM_EVENT_SIDR_ERROR:
		cm_event_tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		break;
	case SIM_CM_EVENT_SIDR_REP:
		hear_answer(id, &event->answer);
		break;
	default:
		break;
	}
}

enum sim_cm_verdict cm_event_heard(void *arg, struct sim_cm *comm, const struct sim_cm_event *event)
{
	if (event->kind == SIM_CM_EVENT_REQ || event->kind == SIM_CM_EVENT_SIDR_REQ)
		return hear_request(sim_cm_user(event->listener), comm, event);
	hear(sim_cm_user(comm), event);
	return SIM_CM_TAKEN;
}

/* --- devices --- */

static bool has_source(const struct cm_id *id)
{
	const union ibv_gid gid = cm_address_gid((const struct sockaddr *)&id->source);

	/* On InfiniBand this event comes from a net device. */
	if (cm_is_infiniband(id))
		return true;
	return memcmp(&id->port->gids[id->path.attr.grh.sgid_index], &gid, sizeof(gid)) == 0;
}

/* Tells the program of a device that was removed, and of a source address that its device has lost. Linux
 * drivers/infiniband/core/cma.c, cma_process_remove and cma_netdev_change. */
void cm_event_of_device(void *arg, const struct sim_device *device, enum ibv_event_type type)
{
	const struct cm *cm = arg;

	for (struct cm_id *id = cm->first_id; id; id = id->next) {
		if (!id->device || id->device->device->engine != device ||
		    id->state == CM_DEVICE_REMOVAL)
			continue;
		if (type == IBV_EVENT_DEVICE_FATAL) {
			id->state = CM_DEVICE_REMOVAL;
			cm_event_tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		} else if (type == IBV_EVENT_GID_CHANGE && id->own_address && !has_source(id)) {
			id->own_address = false;
			cm_event_tell(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		}
	}
}
