/* SPDX-License-Identifier: MIT */
/* Sending: the messages of a communication, their repetition, and answers that belong to no communication. */
#include "sim/cm/private.h"

#include "sim/base/refuse.h"

#include <string.h>

#define STATE(state) (1u << SIM_CM_##state)

/* From which states a program can send a message, and the field of its private data. */
static const struct {
	unsigned int states;
	enum sim_cm_field private_data;
} rows[SIM_CM_MESSAGES] = {
	[SIM_CM_REQ] = {STATE(IDLE), SIM_CM_REQ_PRIVATE_DATA},
	[SIM_CM_MRA] = {STATE(REQ_RCVD) | STATE(REP_RCVD), SIM_CM_MRA_PRIVATE_DATA},
	[SIM_CM_REJ] = {STATE(REQ_SENT) | STATE(MRA_REQ_RCVD) | STATE(REQ_RCVD) |
				STATE(MRA_REQ_SENT) | STATE(REP_RCVD) | STATE(MRA_REP_SENT) |
				STATE(REP_SENT) | STATE(MRA_REP_RCVD),
			SIM_CM_REJ_PRIVATE_DATA},
	[SIM_CM_REP] = {STATE(REQ_RCVD) | STATE(MRA_REQ_SENT), SIM_CM_REP_PRIVATE_DATA},
	[SIM_CM_RTU] = {STATE(REP_RCVD) | STATE(MRA_REP_SENT), SIM_CM_RTU_PRIVATE_DATA},
	[SIM_CM_DREQ] = {STATE(ESTABLISHED), SIM_CM_DREQ_PRIVATE_DATA},
	[SIM_CM_DREP] = {STATE(DREQ_RCVD), SIM_CM_DREP_PRIVATE_DATA},
	[SIM_CM_SIDR_REQ] = {STATE(IDLE), SIM_CM_SIDR_REQ_PRIVATE_DATA},
	[SIM_CM_SIDR_REP] = {STATE(SIDR_REQ_RCVD), SIM_CM_SIDR_REP_PRIVATE_DATA},
};

/* --- checks --- */

static int refuse_length(const struct sim_cm *cm, enum sim_cm_field field, size_t bytes)
{
	const struct sim_cm_field_info *info = &sim_cm_field_info[field];

	return sim_refuse(cm->engine,
			  (struct vb_why){VB_WHY_CM_PRIVATE,
					  {bytes, info->bytes},
					  .text = sim_cm_message_info[info->message].name});
}

/* Checks the state of a communication that is to send a message, and the length of the private data. */
static int check(const struct sim_cm *cm, enum sim_cm_message message,
		 const struct sim_cm_private *private_data)
{
	const enum sim_cm_field field = rows[message].private_data;

	if (!(rows[message].states & 1u << cm->state))
		return sim_refuse(
			cm->engine,
			(struct vb_why){VB_WHY_CM_STATE,
					{cm->local_id, sim_cm_message_info[message].attribute_id},
					.text = sim_cm_state_name(cm->state)});
	return private_data->bytes > sim_cm_field_info[field].bytes
		       ? refuse_length(cm, field, private_data->bytes)
		       : 0;
}

struct value {
	enum sim_cm_field field;
	uint64_t value;
};

/* Checks that fields can hold values. */
static int check_values(const struct sim_cm *cm, const struct value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct sim_cm_field_info *info = &sim_cm_field_info[values[i].field];

		if (!sim_mad_fits(values[i].field, values[i].value))
			return sim_refuse(cm->engine, (struct vb_why){VB_WHY_CM_FIELD,
								      {values[i].value, info->bits},
								      .text = info->name});
	}
	return 0;
}

/* --- messages --- */

static void put_private(uint8_t *mad, enum sim_cm_message message,
			const struct sim_cm_private *private_data)
{
	sim_mad_put(mad, rows[message].private_data, private_data->data, private_data->bytes);
}

/* Begins a message with both communication IDs. They are at the same offsets in all messages. */
static void begin(const struct sim_cm *cm, enum sim_cm_message message, uint8_t *mad)
{
	sim_mad_begin(mad, message, cm->transaction_id);
	sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, cm->local_id);
	sim_mad_set(mad, SIM_CM_REP_REMOTE_ID, cm->remote_id);
}

static void new_transaction(struct sim_cm *cm)
{
	cm->transaction_id = (uint64_t)cm->engine->cm->random << 32 | cm->local_id;
}

void sim_cm_repeat(struct sim_cm *cm)
{
	sim_gsi_send(cm->engine, &cm->path, cm->pkey, cm->mad);
}

/* Sends the message in cm->mad in a new state. */
static void send_in(struct sim_cm *cm, enum sim_cm_state state)
{
	sim_cm_enter(cm, state);
	sim_cm_repeat(cm);
}

/* Sends the message in cm->mad in a state that waits for an answer. */
static void send_and_wait(struct sim_cm *cm, enum sim_cm_state state)
{
	struct sim_clock *clock = &cm->engine->clock;

	sim_cm_enter(cm, state);
	cm->repetitions = cm->max_cm_retries;
	cm->wait_ns = cm->timeout_ns;
	sim_timer_arm(clock, &cm->timer, sim_clock_now_ns(clock) + cm->wait_ns);
	sim_cm_repeat(cm);
}

/* The event when the last repetition of a message has got no answer, and whether the QPN then goes into
 * timewait. */
static const struct {
	enum sim_cm_event_kind event;
	bool timewait;
} failures[SIM_CM_STATES] = {
	[SIM_CM_REQ_SENT] = {SIM_CM_EVENT_REQ_ERROR, false},
	[SIM_CM_MRA_REQ_RCVD] = {SIM_CM_EVENT_REQ_ERROR, false},
	[SIM_CM_REP_SENT] = {SIM_CM_EVENT_REP_ERROR, false},
	[SIM_CM_MRA_REP_RCVD] = {SIM_CM_EVENT_REP_ERROR, false},
	[SIM_CM_DREQ_SENT] = {SIM_CM_EVENT_DREQ_ERROR, true},
	[SIM_CM_TIMEWAIT] = {SIM_CM_EVENT_TIMEWAIT_EXIT, false},
	[SIM_CM_SIDR_REQ_SENT] = {SIM_CM_EVENT_SIDR_ERROR, false},
};

void sim_cm_expire(struct sim_timer *timer)
{
	struct sim_cm *cm = (struct sim_cm *)timer;
	const enum sim_cm_state state = cm->state;

	if (state != SIM_CM_TIMEWAIT && cm->repetitions) {
		cm->repetitions--;
		sim_timer_arm(&cm->engine->clock, &cm->timer,
			      sim_clock_now_ns(&cm->engine->clock) + cm->wait_ns);
		sim_cm_repeat(cm);
		return;
	}
	if (failures[state].timewait)
		sim_cm_enter_timewait(cm);
	else
		sim_cm_enter(cm, SIM_CM_IDLE);
	sim_cm_tell_plainly(cm, failures[state].event, NULL, 0);
}

/* --- connections --- */

static int check_req(const struct sim_cm *cm, const struct sim_cm_request *request)
{
	const struct value values[] = {
		{SIM_CM_REQ_QPN, request->qpn},
		{SIM_CM_REQ_STARTING_PSN, request->starting_psn},
		{SIM_CM_REQ_REMOTE_RESPONSE_TIMEOUT, request->remote_response_timeout},
		{SIM_CM_REQ_LOCAL_RESPONSE_TIMEOUT, request->local_response_timeout},
		{SIM_CM_REQ_RETRY_COUNT, request->retry_count},
		{SIM_CM_REQ_RNR_RETRY_COUNT, request->rnr_retry_count},
		{SIM_CM_REQ_MAX_CM_RETRIES, request->max_cm_retries},
		{SIM_CM_REQ_VENDOR_ID, request->vendor_id},
		{SIM_CM_REQ_MTU, request->path.mtu},
		{SIM_CM_REQ_PACKET_RATE, request->path.attr.static_rate},
		{SIM_CM_REQ_FLOW_LABEL, request->path.attr.grh.flow_label},
	};
	const enum ibv_qp_type type = request->qp_type;
	int err = check(cm, SIM_CM_REQ, &request->private_data);

	if (!err && type != IBV_QPT_RC && type != IBV_QPT_UC && type != IBV_QPT_XRC_SEND)
		err = sim_refuse(cm->engine, (struct vb_why){VB_WHY_CM_QP_TYPE, {type}});
	return err ? err : check_values(cm, values, sizeof(values) / sizeof(values[0]));
}

int sim_cm_send_req(struct sim_cm *cm, struct sim_device *device,
		    const struct sim_cm_request *request)
{
	int err = check_req(cm, request);

	if (!err)
		err = sim_cm_resolve(cm, device, &request->path);
	if (err)
		return err;
	new_transaction(cm);
	cm->service_id = request->service_id;
	cm->timeout_ns = 2 * sim_cm_time_ns(request->path.packet_life_time) +
			 sim_cm_time_ns(request->remote_response_timeout);
	cm->max_cm_retries = request->max_cm_retries;
	sim_cm_write_req(cm, request, cm->mad);
	put_private(cm->mad, SIM_CM_REQ, &request->private_data);
	send_and_wait(cm, SIM_CM_REQ_SENT);
	return 0;
}

static void write_rep(const struct sim_cm *cm, const struct sim_cm_reply *reply, uint8_t *mad)
{
	const bool xrc = cm->qp_type == IBV_QPT_XRC_RECV;
	const struct value values[] = {
		{xrc ? SIM_CM_REP_EECN : SIM_CM_REP_QPN, reply->qpn},
		{SIM_CM_REP_QKEY, reply->qkey},
		{SIM_CM_REP_STARTING_PSN, reply->starting_psn},
		{SIM_CM_REP_RESPONDER_RESOURCES, reply->responder_resources},
		{SIM_CM_REP_INITIATOR_DEPTH, xrc ? 0 : reply->initiator_depth},
		{SIM_CM_REP_TARGET_ACK_DELAY, reply->target_ack_delay},
		/* The simulator has no path migration: 1 says that the alternate path is refused. */
		{SIM_CM_REP_FAILOVER_ACCEPTED, cm->alternate_path ? 1 : reply->failover_accepted},
		{SIM_CM_REP_FLOW_CONTROL, !xrc && reply->flow_control},
		{SIM_CM_REP_RNR_RETRY_COUNT, reply->rnr_retry_count},
		{SIM_CM_REP_SRQ, xrc || reply->srq},
		{SIM_CM_REP_CA_GUID, cm->path.source->device->node_guid},
		{SIM_CM_REP_VENDOR_ID_HIGH, reply->vendor_id >> 16},
		{SIM_CM_REP_VENDOR_ID_MIDDLE, reply->vendor_id >> 8},
		{SIM_CM_REP_VENDOR_ID_LOW, reply->vendor_id},
		{SIM_CM_NONE_ATTRIBUTE_MODIFIER, reply->ece_options},
	};

	begin(cm, SIM_CM_REP, mad);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		sim_mad_set(mad, values[i].field, values[i].value);
}

int sim_cm_send_rep(struct sim_cm *cm, const struct sim_cm_reply *reply)
{
	const struct value values[] = {
		{SIM_CM_REP_QPN, reply->qpn},
		{SIM_CM_REP_STARTING_PSN, reply->starting_psn},
		{SIM_CM_REP_TARGET_ACK_DELAY, reply->target_ack_delay},
		{SIM_CM_REP_FAILOVER_ACCEPTED, reply->failover_accepted},
		{SIM_CM_REP_RNR_RETRY_COUNT, reply->rnr_retry_count},
		{SIM_CM_REQ_VENDOR_ID, reply->vendor_id},
	};
	int err = check(cm, SIM_CM_REP, &reply->private_data);

	if (!err)
		err = check_values(cm, values, sizeof(values) / sizeof(values[0]));
	if (err)
		return err;
	write_rep(cm, reply, cm->mad);
	put_private(cm->mad, SIM_CM_REP, &reply->private_data);
	cm->local_qpn = reply->qpn;
	cm->rq_psn = reply->starting_psn;
	cm->responder_resources = reply->responder_resources;
	cm->initiator_depth = reply->initiator_depth;
	send_and_wait(cm, SIM_CM_REP_SENT);
	return 0;
}

int sim_cm_send_rtu(struct sim_cm *cm, const struct sim_cm_private *private_data)
{
	int err = check(cm, SIM_CM_RTU, private_data);

	if (err)
		return err;
	begin(cm, SIM_CM_RTU, cm->mad);
	put_private(cm->mad, SIM_CM_RTU, private_data);
	send_in(cm, SIM_CM_ESTABLISHED);
	return 0;
}

static unsigned int about(const struct sim_cm *cm)
{
	switch (cm->state) {
	case SIM_CM_REQ_RCVD:
	case SIM_CM_MRA_REQ_SENT:
		return SIM_CM_ANSWERS_REQ;
	case SIM_CM_REP_RCVD:
	case SIM_CM_MRA_REP_SENT:
		return SIM_CM_ANSWERS_REP;
	default:
		return SIM_CM_ANSWERS_OTHER;
	}
}

int sim_cm_send_rej(struct sim_cm *cm, const struct sim_cm_rejection *rejection)
{
	int err = check(cm, SIM_CM_REJ, &rejection->private_data);

	if (!err && rejection->ari_bytes > SIM_CM_REJ_ARI_BYTES)
		err = refuse_length(cm, SIM_CM_REJ_INFO, rejection->ari_bytes);
	if (err)
		return err;
	begin(cm, SIM_CM_REJ, cm->mad);
	/* The peer has not seen this side's ID yet. */
	if (cm->state == SIM_CM_REQ_RCVD)
		sim_mad_set(cm->mad, SIM_CM_REJ_LOCAL_ID, 0);
	sim_mad_set(cm->mad, SIM_CM_REJ_MESSAGE, about(cm));
	sim_mad_set(cm->mad, SIM_CM_REJ_REASON, rejection->reason);
	sim_mad_set(cm->mad, SIM_CM_REJ_INFO_LENGTH, rejection->ari_bytes);
	sim_mad_put(cm->mad, SIM_CM_REJ_INFO, rejection->ari, rejection->ari_bytes);
	put_private(cm->mad, SIM_CM_REJ, &rejection->private_data);
	if (cm->state == SIM_CM_REP_SENT || cm->state == SIM_CM_MRA_REP_RCVD)
		sim_cm_enter_timewait(cm);
	else
		sim_cm_enter(cm, SIM_CM_IDLE);
	sim_cm_repeat(cm);
	return 0;
}

/* Writes an MRA into cm->mad, and sets *next to the state that follows. */
static int write_mra(struct sim_cm *cm, uint8_t service_timeout,
		     const struct sim_cm_private *private_data, enum sim_cm_state *next)
{
	const struct value timeout = {SIM_CM_MRA_SERVICE_TIMEOUT, service_timeout};
	int err = check(cm, SIM_CM_MRA, private_data);

	if (!err)
		err = check_values(cm, &timeout, 1);
	if (err)
		return err;
	begin(cm, SIM_CM_MRA, cm->mad);
	sim_mad_set(cm->mad, SIM_CM_MRA_MESSAGE, about(cm));
	sim_mad_set(cm->mad, SIM_CM_MRA_SERVICE_TIMEOUT, service_timeout);
	put_private(cm->mad, SIM_CM_MRA, private_data);
	*next = cm->state == SIM_CM_REQ_RCVD ? SIM_CM_MRA_REQ_SENT : SIM_CM_MRA_REP_SENT;
	return 0;
}

int sim_cm_send_mra(struct sim_cm *cm, uint8_t service_timeout,
		    const struct sim_cm_private *private_data)
{
	enum sim_cm_state next;
	int err = write_mra(cm, service_timeout, private_data, &next);

	if (!err)
		send_in(cm, next);
	return err;
}

int sim_cm_prepare_mra(struct sim_cm *cm, uint8_t service_timeout)
{
	enum sim_cm_state next;
	int err = write_mra(cm, service_timeout, &(struct sim_cm_private){0}, &next);

	if (!err)
		sim_cm_enter(cm, next);
	return err;
}

int sim_cm_send_dreq(struct sim_cm *cm, const struct sim_cm_private *private_data)
{
	int err = check(cm, SIM_CM_DREQ, private_data);

	if (err)
		return err;
	new_transaction(cm);
	begin(cm, SIM_CM_DREQ, cm->mad);
	sim_mad_set(cm->mad, SIM_CM_DREQ_REMOTE_QPN, cm->remote_qpn);
	put_private(cm->mad, SIM_CM_DREQ, private_data);
	send_and_wait(cm, SIM_CM_DREQ_SENT);
	return 0;
}

int sim_cm_send_drep(struct sim_cm *cm, const struct sim_cm_private *private_data)
{
	int err = check(cm, SIM_CM_DREP, private_data);

	if (err)
		return err;
	begin(cm, SIM_CM_DREP, cm->mad);
	put_private(cm->mad, SIM_CM_DREP, private_data);
	sim_cm_enter_timewait(cm);
	sim_cm_repeat(cm);
	return 0;
}

/* --- datagram services --- */

int sim_cm_send_sidr_req(struct sim_cm *cm, struct sim_device *device,
			 const struct sim_cm_query *query)
{
	const struct value values[] = {
		{SIM_CM_REQ_LOCAL_RESPONSE_TIMEOUT, query->timeout},
		{SIM_CM_REQ_MAX_CM_RETRIES, query->max_cm_retries},
	};
	int err = check(cm, SIM_CM_SIDR_REQ, &query->private_data);

	if (!err)
		err = check_values(cm, values, sizeof(values) / sizeof(values[0]));
	if (!err)
		err = sim_cm_resolve(cm, device, &query->path);
	if (err)
		return err;
	new_transaction(cm);
	cm->service_id = query->service_id;
	cm->timeout_ns = sim_cm_time_ns(query->timeout);
	cm->max_cm_retries = query->max_cm_retries;
	sim_mad_begin(cm->mad, SIM_CM_SIDR_REQ, cm->transaction_id);
	sim_mad_set(cm->mad, SIM_CM_SIDR_REQ_REQUEST_ID, cm->local_id);
	sim_mad_set(cm->mad, SIM_CM_SIDR_REQ_PKEY, query->path.pkey);
	sim_mad_set(cm->mad, SIM_CM_SIDR_REQ_SERVICE_ID, query->service_id);
	put_private(cm->mad, SIM_CM_SIDR_REQ, &query->private_data);
	send_and_wait(cm, SIM_CM_SIDR_REQ_SENT);
	return 0;
}

int sim_cm_send_sidr_rep(struct sim_cm *cm, const struct sim_cm_answer *answer)
{
	const struct value values[] = {
		{SIM_CM_SIDR_REP_REQUEST_ID, cm->remote_id},
		{SIM_CM_SIDR_REP_STATUS, answer->status},
		{SIM_CM_SIDR_REP_QPN, answer->qpn},
		{SIM_CM_SIDR_REP_SERVICE_ID, cm->service_id},
		{SIM_CM_SIDR_REP_QKEY, answer->qkey},
		{SIM_CM_SIDR_REP_INFO_LENGTH, answer->info_bytes},
		{SIM_CM_SIDR_REP_VENDOR_ID_HIGH, answer->vendor_id >> 8},
		{SIM_CM_SIDR_REP_VENDOR_ID_LOW, answer->vendor_id & 0xff},
		{SIM_CM_NONE_ATTRIBUTE_MODIFIER, answer->ece_options},
	};
	const size_t count = sizeof(values) / sizeof(values[0]);
	int err = check(cm, SIM_CM_SIDR_REP, &answer->private_data);

	if (!err && answer->info_bytes > SIM_CM_SIDR_REP_INFO_BYTES)
		err = refuse_length(cm, SIM_CM_SIDR_REP_INFO, answer->info_bytes);
	if (!err)
		err = check_values(cm, values, count);
	if (err)
		return err;
	sim_mad_begin(cm->mad, SIM_CM_SIDR_REP, cm->transaction_id);
	for (size_t i = 0; i < count; i++)
		sim_mad_set(cm->mad, values[i].field, values[i].value);
	sim_mad_put(cm->mad, SIM_CM_SIDR_REP_INFO, answer->info, answer->info_bytes);
	put_private(cm->mad, SIM_CM_SIDR_REP, &answer->private_data);
	send_in(cm, SIM_CM_IDLE);
	return 0;
}

/* --- answers without a communication --- */

/* The index of the GID that a frame came to; -1 if the port does not have it. */
static int gid_index(const struct sim_port *port, const struct sim_route *route)
{
	enum ibv_gid_type type = route->roce_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
	union ibv_gid gid;

	memcpy(gid.raw, route->dest_gid, sizeof(gid));
	return sim_port_find_gid(port, &gid, route->infiniband ? IBV_GID_TYPE_IB : type);
}

int sim_cm_answer_attr(const struct sim_gsi_message *message, struct ibv_ah_attr *attr)
{
	const struct sim_route *route = message->route;
	const bool global = !route->infiniband || route->has_grh;
	const int index = global ? gid_index(message->port, route) : 0;

	*attr = (struct ibv_ah_attr){
		.port_num = message->port->number,
		.is_global = global,
		.dlid = route->infiniband ? route->slid : 0,
		.sl = route->sl,
	};
	if (!global || index < 0)
		return index;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.hop_limit = route->hop_limit ? route->hop_limit : 64;
	attr->grh.traffic_class = route->traffic_class;
	attr->grh.flow_label = route->flow_label;
	memcpy(attr->grh.dgid.raw, route->source_gid, sizeof(attr->grh.dgid));
	return 0;
}

int sim_cm_answer_path(const struct sim_gsi_message *message, struct sim_path *path)
{
	struct sim_engine *engine = message->port->device->engine;
	const struct vb_why why = engine->why;
	struct ibv_ah_attr attr;
	int err;

	if (sim_cm_answer_attr(message, &attr))
		return -1;
	err = sim_path_resolve(message->port->device, &attr, path);
	/* The refusal is not the program's. */
	engine->why = why;
	return err || path->multicast ? -1 : 0;
}

void sim_cm_refuse(const struct sim_gsi_message *message, const uint8_t *answer)
{
	struct sim_path path = {0};

	if (!sim_cm_answer_path(message, &path))
		sim_gsi_send(message->port->device->engine, &path, message->pkey, answer);
}
