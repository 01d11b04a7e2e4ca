/* SPDX-License-Identifier: MIT */
/*
 * The steps of a communication for each message, by its state: chapter 12.9 of the InfiniBand specification,
 * as Linux drivers/infiniband/core/cm.c implements it. A message for which the state has no step is dropped
 * and counted.
 */
#include "sim/cm/private.h"

#include <string.h>

/* ap_status of an APR: Linux include/rdma/ib_cm.h, enum ib_cm_apr_status. */
enum {
	APR_INVALID_ID = 1,
	APR_UNSUPPORTED = 2,
};

typedef void step_fn(struct sim_cm *cm, const struct sim_gsi_message *message);

static uint64_t get(const struct sim_gsi_message *message, enum sim_cm_field field)
{
	return sim_mad_get(message->mad, field);
}

static void drop_in_state(const struct sim_cm *cm, const struct sim_gsi_message *message)
{
	sim_gsi_drop(message, SIM_DISCARD_CM_STATE, VB_WHY_DROP_CM_STATE, cm->local_id, cm->state);
}

static struct sim_cm_private private_of(const struct sim_gsi_message *message,
					enum sim_cm_field field)
{
	return (struct sim_cm_private){sim_mad_bytes(message->mad, field),
				       sim_cm_field_info[field].bytes};
}

static void tell(struct sim_cm *cm, enum sim_cm_event_kind kind,
		 const struct sim_gsi_message *message, enum sim_cm_field private_data)
{
	sim_cm_tell_plainly(cm, kind, sim_mad_bytes(message->mad, private_data),
			    sim_cm_field_info[private_data].bytes);
}

/* --- answers without a communication --- */

/* Begins an answer, which has the two IDs of the message in reverse. */
static void begin_answer(const struct sim_gsi_message *message, enum sim_cm_message answer,
			 uint8_t *mad)
{
	sim_mad_begin(mad, answer, get(message, SIM_CM_NONE_TRANSACTION_ID));
	sim_mad_set(mad, SIM_CM_REP_REMOTE_ID, get(message, SIM_CM_REP_LOCAL_ID));
	if (sim_mad_message(message->mad) != SIM_CM_REQ)
		sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, get(message, SIM_CM_REP_REMOTE_ID));
}

static void reject(const struct sim_gsi_message *message, unsigned int about, unsigned int reason,
		   const void *info, size_t info_bytes)
{
	uint8_t mad[SIM_MAD_BYTES];

	begin_answer(message, SIM_CM_REJ, mad);
	sim_mad_set(mad, SIM_CM_REJ_MESSAGE, about);
	sim_mad_set(mad, SIM_CM_REJ_REASON, reason);
	sim_mad_set(mad, SIM_CM_REJ_INFO_LENGTH, info_bytes);
	sim_mad_put(mad, SIM_CM_REJ_INFO, info, info_bytes);
	sim_cm_refuse(message, mad);
}

static void refuse_path(const struct sim_gsi_message *message, unsigned int status)
{
	uint8_t mad[SIM_MAD_BYTES];

	begin_answer(message, SIM_CM_APR, mad);
	sim_mad_set(mad, SIM_CM_APR_STATUS, status);
	sim_cm_refuse(message, mad);
}

static void answer_dreq(const struct sim_gsi_message *message)
{
	uint8_t mad[SIM_MAD_BYTES];

	begin_answer(message, SIM_CM_DREP, mad);
	sim_cm_refuse(message, mad);
}

static void refuse_query(const struct sim_gsi_message *message, unsigned int status)
{
	uint8_t mad[SIM_MAD_BYTES];

	sim_mad_begin(mad, SIM_CM_SIDR_REP, get(message, SIM_CM_NONE_TRANSACTION_ID));
	sim_mad_set(mad, SIM_CM_SIDR_REP_REQUEST_ID, get(message, SIM_CM_SIDR_REQ_REQUEST_ID));
	sim_mad_set(mad, SIM_CM_SIDR_REP_SERVICE_ID, get(message, SIM_CM_SIDR_REQ_SERVICE_ID));
	sim_mad_set(mad, SIM_CM_SIDR_REP_STATUS, status);
	sim_cm_refuse(message, mad);
}

/* --- steps of connections --- */

static void repeat(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	(void)message;
	sim_cm_repeat(cm);
}

/* Rejects a REQ that arrives late for a connection that has ended. */
static void refuse_stale(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	(void)cm;
	reject(message, SIM_CM_ANSWERS_REQ, SIM_CM_REJ_STALE_CONNECTION, NULL, 0);
}

/* Repeats the RTU after a repeated REP. Only the active side has sent an RTU. */
static void repeat_rtu(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	if (sim_mad_message(cm->mad) == SIM_CM_RTU)
		sim_cm_repeat(cm);
	else
		drop_in_state(cm, message);
}

static void ignore(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	(void)cm;
	(void)message;
}

static void take_mra(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	const uint64_t about =
		cm->state == SIM_CM_REQ_SENT ? SIM_CM_ANSWERS_REQ : SIM_CM_ANSWERS_REP;

	if (get(message, SIM_CM_MRA_MESSAGE) != about) {
		drop_in_state(cm, message);
		return;
	}
	cm->wait_ns = sim_cm_time_ns((unsigned int)get(message, SIM_CM_MRA_SERVICE_TIMEOUT)) +
		      sim_cm_time_ns(cm->ack_timeout);
	sim_timer_arm(&cm->engine->clock, &cm->timer,
		      sim_clock_now_ns(&cm->engine->clock) + cm->wait_ns);
	cm->state = cm->state == SIM_CM_REQ_SENT ? SIM_CM_MRA_REQ_RCVD : SIM_CM_MRA_REP_RCVD;
	tell(cm, SIM_CM_EVENT_MRA, message, SIM_CM_MRA_PRIVATE_DATA);
}

static void tell_rej(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	const uint64_t length = get(message, SIM_CM_REJ_INFO_LENGTH);
	const struct sim_cm_event event = {
		.kind = SIM_CM_EVENT_REJ,
		.rejection =
			{
				.reason = (uint16_t)get(message, SIM_CM_REJ_REASON),
				.ari = sim_mad_bytes(message->mad, SIM_CM_REJ_INFO),
				.ari_bytes = length < SIM_CM_REJ_ARI_BYTES ? length
									   : SIM_CM_REJ_ARI_BYTES,
				.private_data = private_of(message, SIM_CM_REJ_PRIVATE_DATA),
			},
	};

	sim_cm_tell(cm, &event);
}

/* Ends an attempt to connect. */
static void take_rej(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	if (get(message, SIM_CM_REJ_REASON) == SIM_CM_REJ_STALE_CONNECTION)
		sim_cm_enter_timewait(cm);
	else
		sim_cm_enter(cm, SIM_CM_IDLE);
	tell_rej(cm, message);
}

/* Ends an attempt after this side's QP may have been used. */
static void take_late_rej(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	sim_cm_enter_timewait(cm);
	tell_rej(cm, message);
}

static void read_rep(const struct sim_cm *cm, const struct sim_gsi_message *message,
		     struct sim_cm_reply *reply)
{
	const bool xrc = cm->qp_type == IBV_QPT_XRC_SEND;

	*reply = (struct sim_cm_reply){
		.ca_guid = get(message, SIM_CM_REP_CA_GUID),
		.qpn = (uint32_t)get(message, xrc ? SIM_CM_REP_EECN : SIM_CM_REP_QPN),
		.starting_psn = (uint32_t)get(message, SIM_CM_REP_STARTING_PSN),
		.qkey = (uint32_t)get(message, SIM_CM_REP_QKEY),
		.responder_resources = (uint8_t)get(message, SIM_CM_REP_RESPONDER_RESOURCES),
		.initiator_depth = (uint8_t)get(message, SIM_CM_REP_INITIATOR_DEPTH),
		.target_ack_delay = (uint8_t)get(message, SIM_CM_REP_TARGET_ACK_DELAY),
		.failover_accepted = (uint8_t)get(message, SIM_CM_REP_FAILOVER_ACCEPTED),
		.rnr_retry_count = (uint8_t)get(message, SIM_CM_REP_RNR_RETRY_COUNT),
		.flow_control = get(message, SIM_CM_REP_FLOW_CONTROL),
		.srq = get(message, SIM_CM_REP_SRQ),
		.vendor_id = (uint32_t)(get(message, SIM_CM_REP_VENDOR_ID_HIGH) << 16 |
					get(message, SIM_CM_REP_VENDOR_ID_MIDDLE) << 8 |
					get(message, SIM_CM_REP_VENDOR_ID_LOW)),
		.ece_options = (uint32_t)get(message, SIM_CM_NONE_ATTRIBUTE_MODIFIER),
		.private_data = private_of(message, SIM_CM_REP_PRIVATE_DATA),
	};
}

/* Returns true if another connection of this engine has the peer's QP. The peer has forgotten that connection, which
 * is ended if it is established. */
static bool is_stale(struct sim_cm *cm, struct sim_cm_key qpn)
{
	struct sim_cm_manager *manager = cm->engine->cm;
	struct sim_cm_node *other = sim_cm_index_find(&manager->by_remote_qpn, qpn);

	if (!other)
		return false;
	if (other->cm->state == SIM_CM_ESTABLISHED)
		sim_cm_send_dreq(other->cm, &(struct sim_cm_private){0});
	return true;
}

static void know_peer(struct sim_cm *cm, uint64_t ca_guid, uint32_t remote_id, uint32_t remote_qpn)
{
	struct sim_cm_manager *manager = cm->engine->cm;

	cm->remote_id = remote_id;
	cm->remote_qpn = remote_qpn;
	sim_cm_index_add(&manager->by_remote_id, &cm->by_remote_id, cm,
			 (struct sim_cm_key){ca_guid, remote_id});
	sim_cm_index_add(&manager->by_remote_qpn, &cm->by_remote_qpn, cm,
			 (struct sim_cm_key){ca_guid, remote_qpn});
}

static void take_rep(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	const uint32_t remote_id = (uint32_t)get(message, SIM_CM_REP_LOCAL_ID);
	struct sim_cm_event event = {.kind = SIM_CM_EVENT_REP};
	struct sim_cm_reply *reply = &event.reply;

	read_rep(cm, message, reply);
	if (!remote_id || sim_cm_index_find(&cm->engine->cm->by_remote_id,
					    (struct sim_cm_key){reply->ca_guid, remote_id})) {
		sim_gsi_drop(message, SIM_DISCARD_CM_FIELD, VB_WHY_DROP_CM_FIELD, remote_id, 0);
		return;
	}
	if (is_stale(cm, (struct sim_cm_key){reply->ca_guid, reply->qpn})) {
		reject(message, SIM_CM_ANSWERS_REP, SIM_CM_REJ_STALE_CONNECTION, NULL, 0);
		return;
	}
	know_peer(cm, reply->ca_guid, remote_id, reply->qpn);
	cm->initiator_depth = reply->responder_resources;
	cm->responder_resources = reply->initiator_depth;
	cm->sq_psn = reply->starting_psn;
	cm->rnr_retry_count = reply->rnr_retry_count;
	cm->ack_timeout = sim_cm_ack_timeout(reply->target_ack_delay, cm->ack_timeout - 1u);
	sim_cm_enter(cm, SIM_CM_REP_RCVD);
	sim_cm_tell(cm, &event);
}

static void take_rtu(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	sim_cm_enter(cm, SIM_CM_ESTABLISHED);
	tell(cm, SIM_CM_EVENT_RTU, message, SIM_CM_RTU_PRIVATE_DATA);
}

/* Lets the peer end the connection, also while this side ends it. */
static void take_dreq(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	cm->transaction_id = get(message, SIM_CM_NONE_TRANSACTION_ID);
	sim_cm_enter(cm, SIM_CM_DREQ_RCVD);
	tell(cm, SIM_CM_EVENT_DREQ, message, SIM_CM_DREQ_PRIVATE_DATA);
}

static void repeat_drep(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	if (sim_mad_message(cm->mad) == SIM_CM_DREP)
		sim_cm_repeat(cm);
	else
		answer_dreq(message);
}

static void take_drep(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	sim_cm_enter_timewait(cm);
	tell(cm, SIM_CM_EVENT_DREP, message, SIM_CM_DREP_PRIVATE_DATA);
}

/* Refuses a LAP: the simulator has no path migration. */
static void refuse_lap(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	(void)cm;
	refuse_path(message, APR_UNSUPPORTED);
}

/* --- steps of datagram services --- */

static void take_sidr_rep(struct sim_cm *cm, const struct sim_gsi_message *message)
{
	const uint64_t length = get(message, SIM_CM_SIDR_REP_INFO_LENGTH);
	const size_t most = SIM_CM_SIDR_REP_INFO_BYTES;
	const struct sim_cm_event event = {
		.kind = SIM_CM_EVENT_SIDR_REP,
		.answer =
			{
				.status = (uint8_t)get(message, SIM_CM_SIDR_REP_STATUS),
				.vendor_id =
					(uint32_t)(get(message, SIM_CM_SIDR_REP_VENDOR_ID_HIGH)
							   << 8 |
						   get(message, SIM_CM_SIDR_REP_VENDOR_ID_LOW)),
				.ece_options =
					(uint32_t)get(message, SIM_CM_NONE_ATTRIBUTE_MODIFIER),
				.qpn = (uint32_t)get(message, SIM_CM_SIDR_REP_QPN),
				.qkey = (uint32_t)get(message, SIM_CM_SIDR_REP_QKEY),
				.info = sim_mad_bytes(message->mad, SIM_CM_SIDR_REP_INFO),
				.info_bytes = length < most ? length : most,
				.private_data = private_of(message, SIM_CM_SIDR_REP_PRIVATE_DATA),
			},
	};

	sim_cm_enter(cm, SIM_CM_IDLE);
	sim_cm_tell(cm, &event);
}

/* --- the table --- */

/* Linux drivers/infiniband/core/cm.c, cm_dup_req_handler: a REQ that comes again is answered in MRA_REQ_SENT and in
 * TIMEWAIT only. In REP_SENT the timer repeats the REP. */
static step_fn *const steps[SIM_CM_STATES][SIM_CM_MESSAGES] = {
	[SIM_CM_REQ_SENT] =
		{[SIM_CM_MRA] = take_mra, [SIM_CM_REJ] = take_rej, [SIM_CM_REP] = take_rep},
	[SIM_CM_MRA_REQ_RCVD] = {[SIM_CM_REJ] = take_rej, [SIM_CM_REP] = take_rep},
	[SIM_CM_REQ_RCVD] = {[SIM_CM_REQ] = ignore, [SIM_CM_REJ] = take_rej},
	[SIM_CM_MRA_REQ_SENT] = {[SIM_CM_REQ] = repeat, [SIM_CM_REJ] = take_rej},
	[SIM_CM_REP_SENT] = {[SIM_CM_REQ] = ignore,
			     [SIM_CM_MRA] = take_mra,
			     [SIM_CM_REJ] = take_rej,
			     [SIM_CM_RTU] = take_rtu,
			     [SIM_CM_DREQ] = take_dreq},
	[SIM_CM_MRA_REP_RCVD] =
		{[SIM_CM_REJ] = take_rej, [SIM_CM_RTU] = take_rtu, [SIM_CM_DREQ] = take_dreq},
	[SIM_CM_REP_RCVD] = {[SIM_CM_REJ] = take_late_rej, [SIM_CM_REP] = ignore},
	[SIM_CM_MRA_REP_SENT] = {[SIM_CM_REJ] = take_late_rej, [SIM_CM_REP] = repeat},
	[SIM_CM_ESTABLISHED] = {[SIM_CM_REQ] = ignore,
				[SIM_CM_REJ] = take_late_rej,
				[SIM_CM_REP] = repeat_rtu,
				[SIM_CM_RTU] = ignore,
				[SIM_CM_DREQ] = take_dreq,
				[SIM_CM_LAP] = refuse_lap},
	[SIM_CM_DREQ_SENT] = {[SIM_CM_REJ] = take_late_rej,
			      [SIM_CM_DREQ] = take_dreq,
			      [SIM_CM_DREP] = take_drep},
	[SIM_CM_DREQ_RCVD] = {[SIM_CM_DREQ] = ignore, [SIM_CM_DREP] = take_drep},
	[SIM_CM_TIMEWAIT] = {[SIM_CM_REQ] = refuse_stale, [SIM_CM_DREQ] = repeat_drep},
	[SIM_CM_SIDR_REQ_SENT] = {[SIM_CM_SIDR_REP] = take_sidr_rep},
	[SIM_CM_SIDR_REQ_RCVD] = {[SIM_CM_SIDR_REQ] = ignore},
};

/* What each step does, in the words of docs/cm-messages.md. */
static const struct {
	step_fn *fn;
	const char *about;
} abouts[] = {
	{take_mra, "waits longer"},	{take_rej, "IDLE; TIMEWAIT if stale"},
	{take_late_rej, "TIMEWAIT"},	{take_rep, "REP_RCVD"},
	{take_rtu, "ESTABLISHED"},	{take_dreq, "DREQ_RCVD"},
	{take_drep, "TIMEWAIT"},	{take_sidr_rep, "IDLE"},
	{repeat, "answers again"},	{repeat_rtu, "answers again"},
	{repeat_drep, "answers again"}, {refuse_stale, "REJ 10"},
	{refuse_lap, "APR 2"},		{ignore, "nothing"},
};

const char *sim_cm_step_about(enum sim_cm_state state, enum sim_cm_message message)
{
	for (size_t i = 0; i < sizeof(abouts) / sizeof(abouts[0]); i++)
		if (abouts[i].fn == steps[state][message])
			return abouts[i].about;
	return NULL;
}

void sim_cm_step(struct sim_cm *cm, enum sim_cm_message kind, const struct sim_gsi_message *message)
{
	step_fn *fn = steps[cm->state][kind];

	if (!fn) {
		drop_in_state(cm, message);
		return;
	}
	sim_cm_watch(cm, message->process);
	fn(cm, message);
}

/* --- requests --- */

/* Makes a communication for a request. Returns NULL if there is no room; the peer then repeats its request. */
static struct sim_cm *make(struct sim_cm_manager *manager, const struct sim_gsi_message *message)
{
	const struct vb_why why = manager->engine->why;
	struct sim_cm *cm;

	if (sim_cm_create(manager->engine, NULL, &cm)) {
		/* Restores the last reason, because this refusal is not of a call of the program. */
		manager->engine->why = why;
		sim_gsi_drop(message, SIM_DISCARD_CM_FULL, VB_WHY_DROP_CM_FULL, manager->table.live,
			     0);
		return NULL;
	}
	if (sim_cm_answer_path(message, &cm->path)) {
		sim_cm_destroy(cm);
		sim_gsi_drop(message, SIM_DISCARD_CM_FIELD, VB_WHY_DROP_CM_FIELD, 0, 0);
		return NULL;
	}
	cm->pkey = message->pkey;
	cm->transaction_id = get(message, SIM_CM_NONE_TRANSACTION_ID);
	return cm;
}

/* Gives the owner a communication that a request has made, or ends it. Linux drivers/infiniband/core/cm.c,
 * cm_destroy_id: an owner without memory does not answer a REQ. */
static void offer(struct sim_cm *cm, const struct sim_gsi_message *message,
		  struct sim_cm_event *event, struct sim_cm *listener)
{
	enum sim_cm_verdict verdict;

	event->listener = listener;
	verdict = sim_cm_tell(cm, event);
	if (verdict == SIM_CM_TAKEN)
		return;
	if (verdict == SIM_CM_NO_ROOM && cm->state == SIM_CM_REQ_RCVD) {
		sim_gsi_drop(message, SIM_DISCARD_CM_BACKLOG, VB_WHY_DROP_CM_BACKLOG,
			     cm->service_id, 0);
		sim_cm_enter(cm, SIM_CM_IDLE);
	}
	sim_cm_destroy(cm);
}

static struct sim_cm *listener_for(const struct sim_cm_manager *manager,
				   const struct sim_gsi_message *message)
{
	const struct sim_gsi_target target = sim_cm_request_target(message->mad);

	return sim_cm_find_listener(manager, message->port->device, &target);
}

static void new_connection(struct sim_cm *cm, const struct sim_gsi_message *message,
			   struct sim_cm *listener)
{
	struct sim_cm_event event = {.kind = SIM_CM_EVENT_REQ};
	const void *info = NULL;
	size_t info_bytes = 0;
	const unsigned int reason =
		sim_cm_read_req(cm, message, &event.request, &info, &info_bytes);

	if (reason) {
		reject(message, SIM_CM_ANSWERS_REQ, reason, info, info_bytes);
		sim_cm_destroy(cm);
		return;
	}
	cm->service_id = event.request.service_id;
	sim_cm_enter(cm, SIM_CM_REQ_RCVD);
	know_peer(cm, event.request.ca_guid, (uint32_t)get(message, SIM_CM_REQ_LOCAL_ID),
		  event.request.qpn);
	sim_cm_take_request(cm, message->process);
	sim_cm_watch(cm, message->process);
	offer(cm, message, &event, listener);
}

static void receive_req(struct sim_cm_manager *manager, const struct sim_gsi_message *message)
{
	const uint32_t remote_id = (uint32_t)get(message, SIM_CM_REQ_LOCAL_ID);
	const uint64_t guid = get(message, SIM_CM_REQ_CA_GUID);
	struct sim_cm *known = sim_cm_find_taken(manager, message->mad, message->route);
	struct sim_cm *listener, *cm;

	if (known) {
		sim_cm_step(known, SIM_CM_REQ, message);
		return;
	}
	if (!remote_id) {
		sim_gsi_drop(message, SIM_DISCARD_CM_FIELD, VB_WHY_DROP_CM_FIELD, remote_id, 0);
		return;
	}
	listener = listener_for(manager, message);
	cm = make(manager, message);
	if (!cm)
		return;
	if (is_stale(cm, (struct sim_cm_key){guid, (uint32_t)get(message, SIM_CM_REQ_QPN)}))
		reject(message, SIM_CM_ANSWERS_REQ, SIM_CM_REJ_STALE_CONNECTION, NULL, 0);
	else if (!listener)
		reject(message, SIM_CM_ANSWERS_REQ, SIM_CM_REJ_INVALID_SERVICE_ID, NULL, 0);
	else {
		new_connection(cm, message, listener);
		return;
	}
	sim_cm_destroy(cm);
}

static void receive_sidr_req(struct sim_cm_manager *manager, const struct sim_gsi_message *message)
{
	struct sim_cm *known = sim_cm_find_taken(manager, message->mad, message->route);
	struct sim_cm_event event = {
		.kind = SIM_CM_EVENT_SIDR_REQ,
		.query =
			{
				.service_id = get(message, SIM_CM_SIDR_REQ_SERVICE_ID),
				.path = {.pkey = (uint16_t)get(message, SIM_CM_SIDR_REQ_PKEY)},
				.private_data = private_of(message, SIM_CM_SIDR_REQ_PRIVATE_DATA),
			},
	};
	struct sim_cm *listener, *cm;

	if (known) {
		sim_cm_step(known, SIM_CM_SIDR_REQ, message);
		return;
	}
	listener = listener_for(manager, message);
	if (!listener) {
		refuse_query(message, SIM_CM_SIDR_UNSUPPORTED);
		return;
	}
	cm = make(manager, message);
	if (!cm)
		return;
	cm->service_id = event.query.service_id;
	cm->remote_id = (uint32_t)get(message, SIM_CM_SIDR_REQ_REQUEST_ID);
	sim_cm_enter(cm, SIM_CM_SIDR_REQ_RCVD);
	sim_cm_index_add(&manager->by_request, &cm->by_request, cm,
			 sim_cm_request_key(message->mad, message->route));
	sim_cm_take_request(cm, message->process);
	sim_cm_answer_attr(message, &event.query.path.attr);
	offer(cm, message, &event, listener);
}

/* --- all messages --- */

/* Answers a message that belongs to no communication. */
static void receive_unknown(const struct sim_gsi_message *message, enum sim_cm_message kind)
{
	if (kind == SIM_CM_DREQ)
		answer_dreq(message);
	else if (kind == SIM_CM_LAP)
		refuse_path(message, APR_INVALID_ID);
	sim_gsi_drop(message, SIM_DISCARD_CM_UNKNOWN, VB_WHY_DROP_CM_UNKNOWN,
		     get(message, SIM_CM_REP_REMOTE_ID), get(message, SIM_CM_REP_LOCAL_ID));
}

/* A DREQ and a LAP name the QP of the receiver. */
static bool names_other_qp(const struct sim_cm *cm, const struct sim_gsi_message *message,
			   enum sim_cm_message kind)
{
	if (kind == SIM_CM_DREQ)
		return get(message, SIM_CM_DREQ_REMOTE_QPN) != cm->local_qpn;
	return kind == SIM_CM_LAP && get(message, SIM_CM_LAP_REMOTE_QPN) != cm->local_qpn;
}

void sim_cm_receive(struct sim_cm_manager *manager, const struct sim_gsi_message *message)
{
	const enum sim_cm_message kind = sim_mad_message(message->mad);
	struct sim_cm *cm;

	if (kind == SIM_CM_NONE) {
		sim_gsi_drop(message, SIM_DISCARD_MAD_ATTRIBUTE, VB_WHY_DROP_MAD_ATTRIBUTE,
			     get(message, SIM_CM_NONE_ATTRIBUTE_ID), 0);
	} else if (kind == SIM_CM_REQ) {
		receive_req(manager, message);
	} else if (kind == SIM_CM_SIDR_REQ) {
		receive_sidr_req(manager, message);
	} else if (!(cm = sim_cm_find(manager, message->mad, kind))) {
		receive_unknown(message, kind);
	} else if (names_other_qp(cm, message, kind)) {
		sim_gsi_drop(message, SIM_DISCARD_CM_FIELD, VB_WHY_DROP_CM_FIELD,
			     get(message, SIM_CM_DREQ_REMOTE_QPN), 0);
	} else {
		sim_cm_step(cm, kind, message);
	}
}
