/* SPDX-License-Identifier: MIT */
#include "test/support/talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "talk: %s: %s\n", what, strerror(err));
		abort();
	}
}

struct sim_cm_reply talk_reply(void)
{
	return (struct sim_cm_reply){
		.qpn = 0x222222,
		.starting_psn = 0x765432,
		.responder_resources = 3,
		.initiator_depth = 2,
		.target_ack_delay = 5,
		.rnr_retry_count = 6,
		.flow_control = true,
		.private_data = {"reply", 5},
	};
}

/* --- events --- */

static void record(struct talk_end *end, struct sim_cm *cm, const struct sim_cm_event *event)
{
	struct talk_event *own = &end->events[end->count];
	const struct sim_cm_private *data = &event->private_data;

	if (end->count == TALK_EVENTS_MAX)
		return;
	end->count++;
	*own = (struct talk_event){event->kind, sim_cm_state(cm), cm, event->listener, *event, {0},
				   {0}};
	switch (event->kind) {
	case SIM_CM_EVENT_REQ:
		data = &event->request.private_data;
		break;
	case SIM_CM_EVENT_REP:
		data = &event->reply.private_data;
		break;
	case SIM_CM_EVENT_REJ:
		data = &event->rejection.private_data;
		memcpy(own->ari, event->rejection.ari, sizeof(own->ari));
		break;
	case SIM_CM_EVENT_SIDR_REQ:
		data = &event->query.private_data;
		break;
	case SIM_CM_EVENT_SIDR_REP:
		data = &event->answer.private_data;
		memcpy(own->ari, event->answer.info, sizeof(own->ari));
		break;
	default:
		break;
	}
	if (data->data)
		memcpy(own->private_data, data->data, data->bytes);
}

static void answer(struct talk_end *end, struct sim_cm *cm, enum sim_cm_event_kind kind)
{
	struct sim_cm_reply reply = talk_reply();

	if (kind == SIM_CM_EVENT_REQ)
		must(sim_cm_send_rep(cm, &reply), "REP");
	else if (kind == SIM_CM_EVENT_REP)
		must(sim_cm_send_rtu(cm, &(struct sim_cm_private){"ready", 5}), "RTU");
	else if (kind == SIM_CM_EVENT_DREQ && !end->no_drep)
		must(sim_cm_send_drep(cm, &(struct sim_cm_private){"bye", 3}), "DREP");
}

static enum sim_cm_verdict on_event(void *arg, struct sim_cm *cm, const struct sim_cm_event *event)
{
	struct talk *talk = arg;
	const bool requests =
		event->kind == SIM_CM_EVENT_REQ || event->kind == SIM_CM_EVENT_SIDR_REQ;
	struct talk_end *end;

	if (requests)
		sim_cm_set_user(cm, &talk->ends[1]);
	end = sim_cm_user(cm);
	record(end, cm, event);
	if (requests && end->verdict != SIM_CM_TAKEN)
		return end->verdict;
	if (requests)
		end->cm = cm;
	if (!end->silent)
		answer(end, cm, event->kind);
	return SIM_CM_TAKEN;
}

/* --- the wire --- */

static void watch(void *arg, uint64_t now_ns, const uint8_t *bytes, size_t length_bytes,
		  unsigned int flags)
{
	struct talk *talk = arg;
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;

	if ((flags & SIM_FRAME_INFINIBAND ? sim_packet_decode_infiniband : sim_packet_decode)(
		    bytes, length_bytes, &packet, &span, &route) != SIM_DECODE_OK ||
	    packet.dest_qpn != SIM_GSI_QPN || packet.payload_bytes != SIM_MAD_BYTES ||
	    talk->mad_count == TALK_MADS_MAX)
		return;
	talk->mads[talk->mad_count].now_ns = now_ns;
	talk->mads[talk->mad_count].route = route;
	memcpy(talk->mads[talk->mad_count++].mad, span.base, SIM_MAD_BYTES);
}

/* Stands between QP 1 and the connection manager of an engine. */
struct tap {
	struct talk *talk;
	unsigned int engine;
	struct sim_gsi own;
};

static struct tap taps[2];

static void tapped(void *arg, const struct sim_gsi_message *message)
{
	struct tap *tap = arg;
	struct sim_gsi_message changed = *message;
	uint8_t mad[SIM_MAD_BYTES];

	memcpy(mad, message->mad, sizeof(mad));
	changed.mad = mad;
	if (!tap->talk->tamper || tap->talk->tamper(tap->talk, tap->engine, mad))
		tap->own.receive(tap->own.arg, &changed);
}

static uint64_t tap_server(void *arg, const struct sim_port *port, const uint8_t *mad)
{
	struct tap *tap = arg;

	return tap->own.server(tap->own.arg, port, mad);
}

static void tap_sent(void *arg, const uint8_t *mad, uint64_t process)
{
	struct tap *tap = arg;

	tap->own.sent(tap->own.arg, mad, process);
}

static void start(struct talk *talk, struct sim_engine *sim, unsigned int index)
{
	const struct sim_cm_owner owner = {talk, on_event};
	const struct sim_trace_sink sink = {talk, watch};

	must(sim_cm_start(sim, &owner), "start");
	taps[index] = (struct tap){talk, index, sim->net->gsi};
	sim_gsi_set(sim, &(struct sim_gsi){&taps[index], tapped, tap_server, tap_sent});
	if (!talk->config.quiet)
		sim_trace_set(sim, SIM_TRACE_FILE, &sink);
}

void talk_open(struct talk *talk, const struct talk_config *config)
{
	const struct engine_config own = {
		.infiniband = config->infiniband,
		.grh = config->grh,
		.seed = config->seed,
		.quiet = true,
		.unconnected = true,
	};

	*talk = (struct talk){.config = *config};
	if (config->joined)
		joined_open(&talk->joined, &own, JOINED_RING);
	else
		engine_open(&talk->engine, &own);
	for (unsigned int i = 0; i < 2; i++) {
		struct engine *engine = config->joined ? &talk->joined.engines[i] : &talk->engine;

		talk->ends[i].talk = talk;
		talk->ends[i].sim = engine->sim;
		talk->ends[i].device = engine->sides[config->same_device ? 0 : i].device;
		if (!i || config->joined)
			start(talk, engine->sim, i);
	}
}

static void destroy_all(struct sim_engine *sim)
{
	uint32_t cursor = 0;
	struct sim_cm *cm;

	while ((cm = sim_table_next(&sim->cm->table, &cursor)))
		sim_cm_destroy(cm);
}

void talk_close(struct talk *talk)
{
	for (unsigned int i = 0; i < 2; i++)
		if (talk->ends[i].sim && talk->ends[i].sim->cm)
			destroy_all(talk->ends[i].sim);
	if (talk->config.joined)
		joined_close(&talk->joined);
	else
		engine_close(&talk->engine);
	talk->ends[0].sim = talk->ends[1].sim = NULL;
}

void talk_listen(struct talk *talk)
{
	static const uint8_t any[16];
	struct talk_end *end = &talk->ends[1];

	must(sim_cm_create(end->sim, end, &end->listener), "create");
	must(sim_cm_listen(end->listener, TALK_SERVICE, NULL, any), "listen");
}

struct sim_cm_request talk_request(const struct talk *talk)
{
	const struct engine *engine =
		talk->config.joined ? &talk->joined.engines[0] : &talk->engine;
	const union ibv_gid *gid = &engine->sides[talk->config.same_device ? 0 : 1].gid;
	struct sim_cm_request request = {
		.service_id = TALK_SERVICE,
		.path = {.attr = engine_ah_attr(gid),
			 .pkey = 0xffff,
			 .mtu = IBV_MTU_1024,
			 .packet_life_time = 14},
		.qpn = 0x111111,
		.qp_type = talk->config.type ? talk->config.type : IBV_QPT_RC,
		.starting_psn = 0x123456,
		.responder_resources = 4,
		.initiator_depth = 7,
		.remote_response_timeout = 16,
		.local_response_timeout = 15,
		.retry_count = 5,
		.rnr_retry_count = 4,
		.max_cm_retries = 3,
		.flow_control = true,
		.srq = true,
		.vendor_id = 0x15b3,
		.ece_options = 0x1c0ffee,
		.private_data = {"hello", 5},
	};

	if (talk->config.infiniband) {
		request.path.attr.is_global = talk->config.grh;
		request.path.attr.dlid = talk->config.same_device ? 1 : 2;
	}
	return request;
}

void talk_connect(struct talk *talk)
{
	struct sim_cm_request request = talk_request(talk);
	struct talk_end *end = &talk->ends[0];

	must(sim_cm_create(end->sim, end, &end->cm), "create");
	must(sim_cm_send_req(end->cm, end->device, &request), "REQ");
}

void talk_establish(struct talk *talk)
{
	talk_listen(talk);
	talk_connect(talk);
	talk_run(talk);
	for (unsigned int i = 0; i < 2; i++)
		must(sim_cm_state(talk->ends[i].cm) != SIM_CM_ESTABLISHED, "ESTABLISHED");
}

uint64_t talk_now(const struct talk *talk)
{
	return sim_engine_now_ns(talk->ends[0].sim);
}

void talk_until(struct talk *talk, uint64_t until_ns)
{
	if (talk->config.joined) {
		joined_settle(&talk->joined, until_ns);
		for (unsigned int i = 0; i < 2; i++)
			sim_engine_advance(talk->ends[i].sim, until_ns);
		joined_run(&talk->joined);
	} else {
		sim_engine_advance(talk->engine.sim, until_ns);
	}
}

void talk_run(struct talk *talk)
{
	if (talk->config.joined)
		for (unsigned int i = 0; i < 3; i++)
			joined_run(&talk->joined);
	else
		sim_engine_run(talk->engine.sim);
}

const struct talk_event *talk_nth(const struct talk *talk, unsigned int side,
				  enum sim_cm_event_kind kind, unsigned int n)
{
	const struct talk_end *end = &talk->ends[side];

	for (unsigned int i = 0; i < end->count; i++)
		if (end->events[i].kind == kind && !n--)
			return &end->events[i];
	return NULL;
}

unsigned int talk_count(const struct talk *talk, unsigned int side, enum sim_cm_event_kind kind)
{
	unsigned int count = 0;

	while (talk_nth(talk, side, kind, count))
		count++;
	return count;
}

const struct talk_mad *talk_mad(const struct talk *talk, enum sim_cm_message message,
				unsigned int n)
{
	for (unsigned int i = 0; i < talk->mad_count; i++)
		if (sim_mad_message(talk->mads[i].mad) == message && !n--)
			return &talk->mads[i];
	return NULL;
}

unsigned int talk_sent(const struct talk *talk, enum sim_cm_message message)
{
	unsigned int count = 0;

	while (talk_mad(talk, message, count))
		count++;
	return count;
}

void talk_inject(struct talk *talk, unsigned int side, const uint8_t *mad)
{
	struct talk_end *from = &talk->ends[!side], *to = &talk->ends[side];
	const struct engine *engine =
		talk->config.joined ? &talk->joined.engines[side] : &talk->engine;
	struct ibv_ah_attr attr = engine_ah_attr(&engine->sides[!side].gid);
	struct sim_path path = {0};
	struct sim_route route;

	/* The way of an answer to the other side, turned round. */
	if (talk->config.infiniband) {
		attr.is_global = talk->config.grh;
		attr.dlid = from->device->ports[0].lid;
	}
	must(sim_path_resolve(to->device, &attr, &path), "path");
	sim_fabric_find_way(to->sim, &path);
	route = path.route;
	memcpy(route.source_gid, path.route.dest_gid, 16);
	memcpy(route.dest_gid, path.route.source_gid, 16);
	route.slid = path.route.dlid;
	route.dlid = path.route.slid;
	to->sim->net->gsi.receive(
		to->sim->net->gsi.arg,
		&(struct sim_gsi_message){&to->device->ports[0], mad, &route, 0xffff});
	talk_run(talk);
}
