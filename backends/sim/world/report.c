/* SPDX-License-Identifier: MIT */
/* <verbena/sim.h>: what a program has left, and what happened. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/wire/udp.h"
#include "backends/sim/world/process.h"

/* --- data --- */

/* Names of the kinds of objects; QPs have findings of their own. */
static const char *const names[KINDS] = {
	[KIND_SRQ] = "SRQ",	    [KIND_CQ] = "CQ",
	[KIND_AH] = "AH",	    [KIND_MW] = "MW",
	[KIND_MR] = "MR",	    [KIND_DM] = "DM",
	[KIND_XRCD] = "XRCD",	    [KIND_PD] = "PD",
	[KIND_TD] = "TD",	    [KIND_CHANNEL] = "completion channel",
	[KIND_CONTEXT] = "context",
};

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	{"packets sent", offsetof(struct sim_counters, sent_packets)},
	{"packets received", offsetof(struct sim_counters, received_packets)},
	{"packets lost on the way", offsetof(struct sim_counters, lost_packets)},
	{"packets retransmitted", offsetof(struct sim_counters, retransmitted_packets)},
	{"requests received twice", offsetof(struct sim_counters, duplicate_requests)},
	{"requests received out of sequence",
	 offsetof(struct sim_counters, out_of_sequence_requests)},
	{"RNR NAKs sent", offsetof(struct sim_counters, rnr_naks_sent)},
	{"RNR NAKs received", offsetof(struct sim_counters, rnr_naks_received)},
	{"sequence NAKs sent", offsetof(struct sim_counters, sequence_naks_sent)},
	{"sequence NAKs received", offsetof(struct sim_counters, sequence_naks_received)},
	{"ACK timeouts", offsetof(struct sim_counters, ack_timeouts)},
	{"sends out of retries", offsetof(struct sim_counters, retries_exceeded)},
	{"sends out of RNR retries", offsetof(struct sim_counters, rnr_retries_exceeded)},
	{"accesses to memory that is not mapped", offsetof(struct sim_counters, guarded_faults)},
};

/* --- findings --- */

struct report {
	vb_sim_finding_fn *fn;
	void *arg;
	const char *device;
	unsigned int left;
};

static void find(struct report *report, struct vb_sim_finding finding)
{
	if (!finding.count)
		return;
	finding.device = report->device;
	report->left += finding.kind < VB_SIM_CQ_OVERRUN;
	if (report->fn)
		report->fn(report->arg, &finding);
}

static void find_async_acks(struct report *report, enum kind kind, void *object, const char *name,
			    uint32_t number)
{
	find(report, (struct vb_sim_finding){
			     .kind = VB_SIM_LEFT_ASYNC_ACKS,
			     .name = name,
			     .number = number,
			     .count = *object_events_read(kind, object) -
				      *object_events_acked(kind, object),
		     });
}

static void report_qp(struct report *report, struct qp *qp)
{
	const uint32_t number = sim_qp_number(qp->engine);

	find(report, (struct vb_sim_finding){
			     .kind = VB_SIM_LEFT_QP,
			     .name = "QP",
			     .number = number,
			     .count = 1,
			     .qp_type = sim_qp_type(qp->engine),
			     .qp_state = sim_qp_state(qp->engine),
		     });
	find(report, (struct vb_sim_finding){
			     .kind = VB_SIM_LEFT_SENDS,
			     .name = "QP",
			     .number = number,
			     .count = sim_qp_sends(qp->engine),
		     });
	find(report, (struct vb_sim_finding){
			     .kind = VB_SIM_LEFT_RECEIVES,
			     .name = "QP",
			     .number = number,
			     .count = sim_qp_receives(qp->engine),
		     });
	find_async_acks(report, KIND_QP, qp, "QP", number);
}

static void report_srq(struct report *report, struct srq *srq)
{
	find(report, (struct vb_sim_finding){
			     .kind = VB_SIM_LEFT_RECEIVES,
			     .name = "SRQ",
			     .number = srq->ibv.handle,
			     .count = sim_srq_count(srq->engine),
		     });
	find_async_acks(report, KIND_SRQ, srq, "SRQ", srq->ibv.handle);
}

static void report_cq(struct report *report, struct cq *cq)
{
	find(report, (struct vb_sim_finding){
			     .kind = VB_SIM_LEFT_COMPLETIONS,
			     .name = "CQ",
			     .number = cq->ibv.handle,
			     .count = sim_cq_count(cq->engine),
		     });
	find(report, (struct vb_sim_finding){
			     .kind = VB_SIM_CQ_OVERRUN,
			     .name = "CQ",
			     .number = cq->ibv.handle,
			     .count = cq->engine->overrun,
		     });
	find(report, (struct vb_sim_finding){
			     .kind = VB_SIM_LEFT_ACKS,
			     .name = "CQ",
			     .number = cq->ibv.handle,
			     .count = cq->comp_events_read - cq->ibv.comp_events_completed,
		     });
	find_async_acks(report, KIND_CQ, cq, "CQ", cq->ibv.handle);
}

static void report_async(struct report *report, const struct event_queue *queue)
{
	uint64_t counts[IBV_EVENT_WQ_FATAL + 1] = {0};

	for (uint32_t i = 0; i < queue->count; i++)
		counts[queue->ring[(queue->head + i) % queue->capacity].type]++;
	for (int type = 0; type <= IBV_EVENT_WQ_FATAL; type++)
		find(report, (struct vb_sim_finding){
				     .kind = VB_SIM_LEFT_ASYNC_EVENTS,
				     .event = (enum ibv_event_type)type,
				     .count = counts[type],
			     });
}

static void report_context(struct report *report, struct context *context)
{
	uint32_t qps = 0, srqs = 0, cqs = 0, channels = 0;
	const struct channel *channel;
	void *object;

	while ((object = handles_next(&context->handles[KIND_QP], &qps)))
		report_qp(report, object);
	while ((object = handles_next(&context->handles[KIND_SRQ], &srqs)))
		report_srq(report, object);
	while ((object = handles_next(&context->handles[KIND_CQ], &cqs)))
		report_cq(report, object);
	while ((channel = handles_next(&context->handles[KIND_CHANNEL], &channels)))
		find(report, (struct vb_sim_finding){
				     .kind = VB_SIM_LEFT_EVENTS,
				     .name = "completion channel",
				     .number = (uint32_t)channel->ibv.fd,
				     .count = channel->events.count,
			     });
	report_async(report, &context->async);
}

/* --- devices --- */

/* Datagrams of a device whose wire is udp. */
static void report_datagrams(struct report *report, const struct vb_sim *world,
			     const struct device *device)
{
	const struct udp_counters *counted;
	const char *name;
	uint64_t count;

	if (!world->udp || !world->udp->has(world->udp, device->engine))
		return;
	counted = udp_counters(world->udp, device->engine);
	for (unsigned int i = 0; (name = udp_counter(counted, i, &count)); i++)
		find(report, (struct vb_sim_finding){
				     .kind = VB_SIM_COUNTED,
				     .name = name,
				     .count = count,
			     });
}

/* Counts the objects of a kind in all contexts of a device. A context of the connection manager is not the
 * program's, which cannot close it. */
static void report_kind(struct report *report, const struct vb_sim *world,
			const struct device *device, enum kind kind)
{
	const struct context *context;
	uint64_t count = 0;
	uint32_t at = 0;

	while ((context = handles_next(&world->store.contexts, &at)))
		if (context->device == device)
			count += kind == KIND_CONTEXT ? !context->of_cm
						      : context->handles[kind].live;
	find(report, (struct vb_sim_finding){
			     .kind = VB_SIM_LEFT_OBJECTS,
			     .name = names[kind],
			     .count = count,
		     });
}

static void report_device(struct report *report, const struct vb_sim *world,
			  const struct device *device)
{
	const struct sim_counters *counted = &device->engine->counters;
	struct context *context;
	uint32_t at = 0;

	report->device = device->ibv.name;
	while ((context = handles_next(&world->store.contexts, &at)))
		if (context->device == device)
			report_context(report, context);
	for (enum kind kind = 0; kind < KINDS; kind++)
		if (names[kind])
			report_kind(report, world, device, kind);
	for (size_t i = 1; i < SIM_DISCARDS; i++)
		find(report, (struct vb_sim_finding){
				     .kind = VB_SIM_DROPS,
				     .name = sim_discard_info[i].name,
				     .about = sim_discard_info[i].about,
				     .count = counted->discarded[i],
			     });
	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		find(report, (struct vb_sim_finding){
				     .kind = VB_SIM_COUNTED,
				     .name = counters[i].name,
				     .count = *(const uint64_t *)((const char *)counted +
								  counters[i].offset),
			     });
	report_datagrams(report, world, device);
}

static void report_world(void *arg, struct vb_sim *world)
{
	HOLD hold = world_hold(world);
	const int state = cancel_off();

	for (unsigned int i = 0; i < hold.world->device_count; i++)
		report_device(arg, world, &world->devices[i]);
	cancel_restore(state);
}

unsigned int vb_sim_report(struct vb_sim *sim, vb_sim_finding_fn *fn, void *arg)
{
	struct report report = {.fn = fn, .arg = arg};

	if (sim)
		report_world(&report, sim);
	else
		process_each(report_world, &report);
	return report.left;
}
