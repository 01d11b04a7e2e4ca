/* SPDX-License-Identifier: MIT */
/* The REQ: how it describes a connection and its path, and the attributes of QPs that follow. */
#include "sim/cm/private.h"

#include "sim/base/refuse.h"

#include <string.h>

#define PERMISSIVE_LID 0xffffu

/* transport_service_type and extended_transport_type. */
enum {
	TRANSPORT_RC = 0,
	TRANSPORT_UC = 1,
	TRANSPORT_EXTENDED = 3,
	EXTENDED_XRC = 1,
};

/* --- the path of the sender --- */

/* Returns the index of a P_Key in the port's table; -1 if it is not there. */
static int pkey_index(const struct sim_port *port, uint16_t pkey)
{
	for (unsigned int i = 0; i < port->pkey_count; i++)
		if (!((port->pkeys[i] ^ pkey) & 0x7fff))
			return (int)i;
	return -1;
}

int sim_cm_resolve(struct sim_cm *cm, struct sim_device *device, const struct sim_cm_path *path)
{
	struct sim_path resolved = {0};
	int err = sim_path_resolve(device, &path->attr, &resolved);
	int index;

	if (err)
		return err;
	index = pkey_index(resolved.source, path->pkey);
	if (index < 0)
		return sim_refuse(
			cm->engine,
			(struct vb_why){VB_WHY_CM_PKEY, {path->pkey, resolved.source->number}});
	cm->path = resolved;
	cm->pkey = path->pkey;
	cm->pkey_index = (uint16_t)index;
	cm->attr = path->attr;
	cm->mtu = path->mtu;
	return 0;
}

static void write_path(const struct sim_cm *cm, const struct sim_cm_path *path, uint8_t *mad)
{
	const struct ibv_global_route *grh = &path->attr.grh;
	const struct sim_port *port = cm->path.source;
	const uint8_t hop_limit = path->attr.is_global ? grh->hop_limit : 0;
	const bool local = hop_limit <= 1;

	sim_mad_set(mad, SIM_CM_REQ_PKEY, path->pkey);
	sim_mad_set(mad, SIM_CM_REQ_MTU, path->mtu);
	sim_mad_put(mad, SIM_CM_REQ_LOCAL_GID, port->gids[cm->path.sgid_index].raw, 16);
	sim_mad_put(mad, SIM_CM_REQ_REMOTE_GID, grh->dgid.raw, 16);
	/* A routed path has no LIDs; the LRH of the REQ has those of the last subnet. */
	sim_mad_set(mad, SIM_CM_REQ_LOCAL_LID, local ? port->lid : PERMISSIVE_LID);
	sim_mad_set(mad, SIM_CM_REQ_REMOTE_LID, local ? path->attr.dlid : PERMISSIVE_LID);
	sim_mad_set(mad, SIM_CM_REQ_FLOW_LABEL, grh->flow_label);
	sim_mad_set(mad, SIM_CM_REQ_PACKET_RATE, path->attr.static_rate);
	sim_mad_set(mad, SIM_CM_REQ_TRAFFIC_CLASS, grh->traffic_class);
	sim_mad_set(mad, SIM_CM_REQ_HOP_LIMIT, hop_limit);
	sim_mad_set(mad, SIM_CM_REQ_SL, path->attr.sl);
	sim_mad_set(mad, SIM_CM_REQ_SUBNET_LOCAL, local);
	sim_mad_set(mad, SIM_CM_REQ_ACK_TIMEOUT,
		    sim_cm_ack_timeout(port->device->profile->limits.local_ca_ack_delay,
				       path->packet_life_time));
}

static void write_transport(enum ibv_qp_type type, uint8_t *mad)
{
	const bool xrc = type == IBV_QPT_XRC_SEND;

	sim_mad_set(mad, SIM_CM_REQ_TRANSPORT,
		    xrc			 ? TRANSPORT_EXTENDED
		    : type == IBV_QPT_UC ? TRANSPORT_UC
					 : TRANSPORT_RC);
	sim_mad_set(mad, SIM_CM_REQ_EXTENDED_TRANSPORT, xrc ? EXTENDED_XRC : 0);
}

/* An XRC_SEND QP receives nothing: its fields of a responder stay 0, as Linux's. */
static void write_depths(const struct sim_cm_request *request, uint8_t *mad)
{
	sim_mad_set(mad, SIM_CM_REQ_INITIATOR_DEPTH, request->initiator_depth);
	if (request->qp_type == IBV_QPT_XRC_SEND)
		return;
	sim_mad_set(mad, SIM_CM_REQ_RESPONDER_RESOURCES, request->responder_resources);
	sim_mad_set(mad, SIM_CM_REQ_RETRY_COUNT, request->retry_count);
	sim_mad_set(mad, SIM_CM_REQ_RNR_RETRY_COUNT, request->rnr_retry_count);
	sim_mad_set(mad, SIM_CM_REQ_SRQ, request->srq);
}

void sim_cm_write_req(struct sim_cm *cm, const struct sim_cm_request *request, uint8_t *mad)
{
	sim_mad_begin(mad, SIM_CM_REQ, cm->transaction_id);
	sim_mad_set(mad, SIM_CM_NONE_ATTRIBUTE_MODIFIER, request->ece_options);
	sim_mad_set(mad, SIM_CM_REQ_LOCAL_ID, cm->local_id);
	sim_mad_set(mad, SIM_CM_REQ_VENDOR_ID, request->vendor_id);
	sim_mad_set(mad, SIM_CM_REQ_SERVICE_ID, request->service_id);
	sim_mad_set(mad, SIM_CM_REQ_CA_GUID, cm->path.source->device->node_guid);
	sim_mad_set(mad, SIM_CM_REQ_QKEY, request->qkey);
	sim_mad_set(mad, SIM_CM_REQ_QPN, request->qpn);
	sim_mad_set(mad, SIM_CM_REQ_STARTING_PSN, request->starting_psn);
	sim_mad_set(mad, SIM_CM_REQ_REMOTE_RESPONSE_TIMEOUT, request->remote_response_timeout);
	sim_mad_set(mad, SIM_CM_REQ_LOCAL_RESPONSE_TIMEOUT, request->local_response_timeout);
	sim_mad_set(mad, SIM_CM_REQ_FLOW_CONTROL, request->flow_control);
	sim_mad_set(mad, SIM_CM_REQ_MAX_CM_RETRIES, request->max_cm_retries);
	write_transport(request->qp_type, mad);
	write_depths(request, mad);
	write_path(cm, &request->path, mad);

	cm->qp_type = request->qp_type;
	cm->local_qpn = request->qpn;
	cm->rq_psn = request->starting_psn;
	cm->responder_resources = request->responder_resources;
	cm->initiator_depth = request->initiator_depth;
	cm->retry_count = request->retry_count;
	cm->rnr_retry_count = request->rnr_retry_count;
	cm->ack_timeout = (uint8_t)(request->path.packet_life_time + 1);
}

/* --- the path of the receiver --- */

static bool read_type(const uint8_t *mad, enum ibv_qp_type *type)
{
	const uint64_t extended = sim_mad_get(mad, SIM_CM_REQ_EXTENDED_TRANSPORT);

	switch (sim_mad_get(mad, SIM_CM_REQ_TRANSPORT)) {
	case TRANSPORT_RC:
		*type = IBV_QPT_RC;
		return true;
	case TRANSPORT_UC:
		*type = IBV_QPT_UC;
		return true;
	case TRANSPORT_EXTENDED:
		*type = IBV_QPT_XRC_SEND;
		return extended == EXTENDED_XRC;
	default:
		return false;
	}
}

/* Returns a LID of the REQ; that of the LRH if the path is routed. */
static uint16_t lid_of(const uint8_t *mad, enum sim_cm_field field, uint16_t lrh)
{
	const uint16_t lid = (uint16_t)sim_mad_get(mad, field);

	return lid == PERMISSIVE_LID && !sim_mad_get(mad, SIM_CM_REQ_SUBNET_LOCAL) ? lrh : lid;
}

static void read_path(const struct sim_gsi_message *message, struct sim_cm_path *path)
{
	const struct sim_route *route = message->route;
	const uint8_t *mad = message->mad;
	const uint64_t ack_timeout = sim_mad_get(mad, SIM_CM_REQ_ACK_TIMEOUT);
	const uint64_t hop_limit = sim_mad_get(mad, SIM_CM_REQ_HOP_LIMIT);
	struct ibv_global_route *grh = &path->attr.grh;

	*path = (struct sim_cm_path){
		.pkey = (uint16_t)sim_mad_get(mad, SIM_CM_REQ_PKEY),
		.mtu = (enum ibv_mtu)sim_mad_get(mad, SIM_CM_REQ_MTU),
		.packet_life_time = (uint8_t)(ack_timeout ? ack_timeout - 1 : 0),
		.attr =
			{
				.port_num = message->port->number,
				.is_global =
					!route->infiniband || (hop_limit > 1 && route->has_grh),
				.sl = (uint8_t)sim_mad_get(mad, SIM_CM_REQ_SL),
				.static_rate = (uint8_t)sim_mad_get(mad, SIM_CM_REQ_PACKET_RATE),
			},
	};
	if (route->infiniband)
		path->attr.dlid = lid_of(mad, SIM_CM_REQ_LOCAL_LID, route->slid);
	memcpy(grh->dgid.raw, sim_mad_bytes(mad, SIM_CM_REQ_LOCAL_GID), sizeof(grh->dgid));
	grh->flow_label = (uint32_t)sim_mad_get(mad, SIM_CM_REQ_FLOW_LABEL);
	grh->traffic_class = (uint8_t)sim_mad_get(mad, SIM_CM_REQ_TRAFFIC_CLASS);
	grh->hop_limit = (uint8_t)(route->hop_limit ? route->hop_limit : hop_limit);
}

/* Finds the GID that the REQ names in the port's table. On InfiniBand, a REQ without a GRH may name none. */
static bool find_gid(const struct sim_gsi_message *message, struct sim_cm_path *path)
{
	static const union ibv_gid none;
	const struct sim_route *route = message->route;
	const enum ibv_gid_type roce = route->roce_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
	union ibv_gid gid;
	int index;

	memcpy(gid.raw, sim_mad_bytes(message->mad, SIM_CM_REQ_REMOTE_GID), sizeof(gid));
	if (!path->attr.is_global && memcmp(&gid, &none, sizeof(gid)) == 0)
		return true;
	index = sim_port_find_gid(message->port, &gid, route->infiniband ? IBV_GID_TYPE_IB : roce);
	path->attr.grh.sgid_index = (uint8_t)(index < 0 ? 0 : index);
	return index >= 0;
}

/* Returns true if the QP of this side can use the path to the peer. */
static bool leads_back(struct sim_device *device, const struct sim_cm_path *path)
{
	struct sim_path resolved = {0};
	const struct vb_why why = device->engine->why;
	const bool right = !sim_path_resolve(device, &path->attr, &resolved) && !resolved.multicast;

	/* Restores the last reason, because this refusal is not of a call of the program. */
	device->engine->why = why;
	return right;
}

static unsigned int check_path(struct sim_cm *cm, const struct sim_gsi_message *message,
			       struct sim_cm_path *path, const void **info, size_t *info_bytes)
{
	const struct sim_port *port = message->port;
	int index;

	if (path->mtu < IBV_MTU_256 || path->mtu > IBV_MTU_4096)
		return SIM_CM_REJ_INVALID_MTU;
	index = pkey_index(port, path->pkey);
	if (index < 0 || !find_gid(message, path) ||
	    (path->attr.is_global && !leads_back(port->device, path))) {
		*info = &port->gids[sim_port_first_gid(port)];
		*info_bytes = sizeof(port->gids[0]);
		return SIM_CM_REJ_INVALID_GID;
	}
	if (message->route->infiniband &&
	    (lid_of(message->mad, SIM_CM_REQ_REMOTE_LID, message->route->dlid) != port->lid ||
	     !leads_back(port->device, path)))
		return SIM_CM_REJ_INVALID_LID;
	cm->pkey_index = (uint16_t)index;
	return 0;
}

static void read_connection(const uint8_t *mad, struct sim_cm_request *request)
{
	request->service_id = sim_mad_get(mad, SIM_CM_REQ_SERVICE_ID);
	request->ca_guid = sim_mad_get(mad, SIM_CM_REQ_CA_GUID);
	request->qpn = (uint32_t)sim_mad_get(mad, SIM_CM_REQ_QPN);
	request->starting_psn = (uint32_t)sim_mad_get(mad, SIM_CM_REQ_STARTING_PSN);
	request->qkey = (uint32_t)sim_mad_get(mad, SIM_CM_REQ_QKEY);
	request->responder_resources = (uint8_t)sim_mad_get(mad, SIM_CM_REQ_RESPONDER_RESOURCES);
	request->initiator_depth = (uint8_t)sim_mad_get(mad, SIM_CM_REQ_INITIATOR_DEPTH);
	request->remote_response_timeout =
		(uint8_t)sim_mad_get(mad, SIM_CM_REQ_REMOTE_RESPONSE_TIMEOUT);
	request->local_response_timeout =
		(uint8_t)sim_mad_get(mad, SIM_CM_REQ_LOCAL_RESPONSE_TIMEOUT);
	request->retry_count = (uint8_t)sim_mad_get(mad, SIM_CM_REQ_RETRY_COUNT);
	request->rnr_retry_count = (uint8_t)sim_mad_get(mad, SIM_CM_REQ_RNR_RETRY_COUNT);
	request->max_cm_retries = (uint8_t)sim_mad_get(mad, SIM_CM_REQ_MAX_CM_RETRIES);
	request->flow_control = sim_mad_get(mad, SIM_CM_REQ_FLOW_CONTROL);
	request->srq = sim_mad_get(mad, SIM_CM_REQ_SRQ);
	request->vendor_id = (uint32_t)sim_mad_get(mad, SIM_CM_REQ_VENDOR_ID);
	request->ece_options = (uint32_t)sim_mad_get(mad, SIM_CM_NONE_ATTRIBUTE_MODIFIER);
	request->private_data = (struct sim_cm_private){sim_mad_bytes(mad, SIM_CM_REQ_PRIVATE_DATA),
							SIM_CM_REQ_PRIVATE_BYTES};
}

unsigned int sim_cm_read_req(struct sim_cm *cm, const struct sim_gsi_message *message,
			     struct sim_cm_request *request, const void **info, size_t *info_bytes)
{
	const uint8_t *mad = message->mad;
	unsigned int reason;

	*request = (struct sim_cm_request){0};
	if (!read_type(mad, &request->qp_type))
		return SIM_CM_REJ_INVALID_TRANSPORT;
	read_connection(mad, request);
	read_path(message, &request->path);
	reason = check_path(cm, message, &request->path, info, info_bytes);
	if (reason)
		return reason;
	cm->attr = request->path.attr;
	cm->mtu = request->path.mtu;
	cm->qp_type = request->qp_type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : request->qp_type;
	cm->remote_qpn = request->qpn;
	cm->sq_psn = request->starting_psn;
	cm->initiator_depth = request->responder_resources;
	cm->responder_resources = request->initiator_depth;
	cm->retry_count = request->retry_count;
	cm->rnr_retry_count = request->rnr_retry_count;
	cm->ack_timeout = (uint8_t)(request->path.packet_life_time + 1);
	cm->timeout_ns = sim_cm_time_ns(request->local_response_timeout);
	cm->max_cm_retries = request->max_cm_retries;
	cm->alternate_path = sim_mad_get(mad, SIM_CM_REQ_ALTERNATE_LOCAL_LID);
	return 0;
}

/* --- attributes of QPs: Linux drivers/infiniband/core/cm.c, ib_cm_init_qp_attr() --- */

static void init_attr(const struct sim_cm *cm, struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (cm->responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	attr->pkey_index = cm->pkey_index;
	attr->port_num = cm->path.source->number;
}

static void rtr_attr(const struct sim_cm *cm, struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	attr->ah_attr = cm->attr;
	attr->path_mtu = cm->mtu;
	attr->dest_qp_num = cm->remote_qpn;
	attr->rq_psn = cm->rq_psn;
	if (cm->qp_type != IBV_QPT_RC && cm->qp_type != IBV_QPT_XRC_RECV)
		return;
	*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	attr->max_dest_rd_atomic = cm->responder_resources;
	attr->min_rnr_timer = 0;
}

static void rts_attr(const struct sim_cm *cm, struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = cm->sq_psn;
	if (cm->qp_type == IBV_QPT_UC)
		return;
	*mask |= IBV_QP_TIMEOUT;
	attr->timeout = cm->ack_timeout;
	if (cm->qp_type == IBV_QPT_XRC_RECV)
		return;
	*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	attr->retry_cnt = cm->retry_count;
	attr->rnr_retry = cm->rnr_retry_count;
	attr->max_rd_atomic = cm->initiator_depth;
}

/* A REQ's sender knows its peer's QP with the REP. */
static bool knows_step(const struct sim_cm *cm, enum ibv_qp_state step)
{
	switch (cm->state) {
	case SIM_CM_REQ_SENT:
	case SIM_CM_MRA_REQ_RCVD:
		return step == IBV_QPS_INIT;
	case SIM_CM_REQ_RCVD:
	case SIM_CM_MRA_REQ_SENT:
	case SIM_CM_REP_SENT:
	case SIM_CM_REP_RCVD:
	case SIM_CM_MRA_REP_SENT:
	case SIM_CM_MRA_REP_RCVD:
	case SIM_CM_ESTABLISHED:
		return step == IBV_QPS_INIT || step == IBV_QPS_RTR || step == IBV_QPS_RTS;
	default:
		return false;
	}
}

int sim_cm_init_qp_attr(const struct sim_cm *cm, struct ibv_qp_attr *attr, int *attr_mask)
{
	const enum ibv_qp_state step = attr->qp_state;

	if (!knows_step(cm, step))
		return sim_refuse(cm->engine,
				  (struct vb_why){VB_WHY_CM_STEP,
						  {cm->local_id, step},
						  .text = sim_cm_state_name(cm->state)});
	if (step == IBV_QPS_INIT)
		init_attr(cm, attr, attr_mask);
	else if (step == IBV_QPS_RTR)
		rtr_attr(cm, attr, attr_mask);
	else
		rts_attr(cm, attr, attr_mask);
	return 0;
}
