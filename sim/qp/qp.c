/* SPDX-License-Identifier: MIT */
/* A QP's making and end, its events, and its failing. */
#include "sim/base/refuse.h"
#include "sim/qp/private.h"

#include <errno.h>
#include <stdlib.h>

static int check_cap(const struct sim_device *device, const struct ibv_qp_cap *cap)
{
	const struct sim_profile *profile = device->profile;
	const uint32_t max_wr = (uint32_t)profile->limits.max_qp_wr;
	const uint32_t max_sge = (uint32_t)profile->limits.max_sge;
	const struct {
		enum vb_reason reason;
		uint32_t asked, limit;
	} caps[] = {
		{VB_WHY_QP_CAP_SEND_WR, cap->max_send_wr, max_wr},
		{VB_WHY_QP_CAP_RECV_WR, cap->max_recv_wr, max_wr},
		{VB_WHY_QP_CAP_SEND_SGE, cap->max_send_sge, max_sge},
		{VB_WHY_QP_CAP_RECV_SGE, cap->max_recv_sge, max_sge},
		{VB_WHY_QP_CAP_INLINE, cap->max_inline_data, profile->max_inline_bytes},
	};

	for (unsigned int i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
		if (caps[i].asked > caps[i].limit)
			return sim_refuse(
				device->engine,
				(struct vb_why){caps[i].reason, {caps[i].asked, caps[i].limit}});
	return 0;
}

static int check_type(const struct sim_device *device, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return 0;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		if (device->profile->limits.device_cap_flags & IBV_DEVICE_XRC)
			return 0;
		break;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		break;
	default:
		return sim_refuse(device->engine, (struct vb_why){VB_WHY_QP_TYPE_UNKNOWN, {type}});
	}
	return sim_refuse(device->engine, (struct vb_why){VB_WHY_QP_TYPE_LACKING, {type}});
}

/* A QP has no room for work that its type does not take. */
static void trim_cap(struct sim_qp_init *init)
{
	if (init->type == IBV_QPT_XRC_RECV)
		init->cap = (struct ibv_qp_cap){0};
	if (init->type == IBV_QPT_XRC_SEND || init->srq)
		init->cap.max_recv_wr = init->cap.max_recv_sge = 0;
}

/* Linux drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_init_req: a slot has room for the larger of both. */
static void share_room(const struct sim_device *device, struct ibv_qp_cap *cap)
{
	uint32_t room = cap->max_send_sge * (uint32_t)sizeof(struct ibv_sge);

	if (!device->quirks.inline_shares_room)
		return;
	if (room < cap->max_inline_data)
		room = cap->max_inline_data;
	cap->max_inline_data = room;
	cap->max_send_sge = room / (uint32_t)sizeof(struct ibv_sge);
}

/* Makes the sizes of a QP what the device makes of them. */
static void round_cap(const struct sim_device *device, struct ibv_qp_cap *cap)
{
	const struct sim_profile *profile = device->profile;
	const int wrs = profile->limits.max_qp_wr;

	cap->max_send_wr = sim_queue_size(device, cap->max_send_wr, wrs);
	cap->max_recv_wr = sim_queue_size(device, cap->max_recv_wr, wrs);
	if (!device->quirks.sizes_are_odd)
		return;
	cap->max_send_sge = sim_queue_size(device, cap->max_send_sge, profile->limits.max_sge);
	cap->max_recv_sge = sim_queue_size(device, cap->max_recv_sge, profile->limits.max_sge);
	cap->max_inline_data =
		sim_queue_size(device, cap->max_inline_data, (int)profile->max_inline_bytes);
}

static int init_queues(struct sim_qp *qp, const struct ibv_qp_cap *cap)
{
	/* An ATOMIC WRITE's data is in its WQE, however little inline data the program asked for. */
	uint32_t room_bytes =
		cap->max_inline_data < SIM_ATOMIC_BYTES ? SIM_ATOMIC_BYTES : cap->max_inline_data;
	int err = sim_queue_init(&qp->sq, sizeof(struct sim_send_wqe), room_bytes, cap->max_send_wr,
				 cap->max_send_sge);

	return err ? err
		   : sim_queue_init(&qp->rq, sizeof(struct sim_recv_wqe), 0, cap->max_recv_wr,
				    cap->max_recv_sge);
}

static int qp_init(struct sim_qp *qp, struct sim_device *device, const struct sim_qp_init *init)
{
	int err;

	qp->device = device;
	qp->engine = device->engine;
	qp->user = init->user;
	qp->pd = init->pd;
	qp->type = (uint8_t)init->type;
	qp->transport = (uint8_t)sim_transport_of(init->type);
	qp->reliable = init->type != IBV_QPT_UC && init->type != IBV_QPT_UD;
	qp->state = IBV_QPS_RESET;
	qp->srq = init->srq;
	qp->xrcd = init->xrcd;
	if (!device->quirks.slots_free_when_completed) {
		qp->sq_retires = &qp->sq;
		qp->rq_retires = &qp->rq;
	}
	qp->sq_reach = qp->rq_reach = qp->remote_reach =
		(struct sim_reach){.device = device, .pd = init->pd};
	qp->sig_all = init->sig_all ? IBV_SEND_SIGNALED : 0;
	qp->block_self_multicast = init->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	qp->send_cq = init->send_cq;
	qp->max_inline = init->cap.max_inline_data;
	qp->has_rq = init->recv_cq && !init->srq && !init->xrcd;
	err = init->proxy_of ? 0 : sim_qp_set_hooks(qp, device->hooks);
	if (!err && !init->proxy_of)
		err = sim_late_attach(qp);
	sim_room_follow(qp);
	sim_requester_init(qp);
	sim_completer_init(qp);
	sim_responder_init(qp);
	sim_receive_init(qp, init->recv_cq);
	if (!err)
		err = init_queues(qp, &init->cap);
	if (!err)
		err = sim_clock_reserve(&device->engine->clock);
	if (!err)
		err = sim_clock_reserve(&device->engine->clock);
	if (err)
		return sim_refuse_memory(device->engine);
	if (init->proxy_of) {
		qp->number = init->proxy_of;
		return 0;
	}
	err = sim_table_insert(&device->qps, qp, &qp->number);
	if (err == ENOSPC)
		return sim_refuse_numbers(device->engine, "QP numbers");
	if (err && !sim_table_is_full(&device->qps))
		return sim_refuse_memory(device->engine);
	if (err)
		return sim_refuse_limit(device->engine, "max_qp", device->profile->limits.max_qp);
	qp->remote_reach.qpn = qp->number;
	return 0;
}

/* Objects that a QP uses cannot be destroyed before it. */
static void count_users(struct sim_qp *qp, int by)
{
	if (qp->send_cq)
		qp->send_cq->users += (uint32_t)by;
	if (qp->rx.cq && !qp->xrcd)
		qp->rx.cq->users += (uint32_t)by;
	if (qp->srq)
		qp->srq->users += (uint32_t)by;
	if (qp->xrcd)
		qp->xrcd->users += (uint32_t)by;
}

static void free_memory(struct sim_qp *qp)
{
	if (qp->hooks)
		qp->hooks->detach(qp);
	sim_late_detach(qp);
	free(qp->sq.slots);
	free(qp->rq.slots);
	free(qp);
}

int sim_qp_create(struct sim_device *device, struct sim_qp_init *init, struct sim_qp **out)
{
	struct ibv_qp_cap asked = init->cap;
	int err = check_type(device, init->type);
	struct sim_qp *qp;

	if (err)
		return err;
	/* ibv_create_qp(3): only these take an SRQ. */
	if (init->srq && init->type != IBV_QPT_RC && init->type != IBV_QPT_UD &&
	    !(init->type == IBV_QPT_UC && !sim_device_obeys(device, SIM_RULE_SRQ_OF_TYPE)))
		return sim_refuse(device->engine,
				  (struct vb_why){VB_WHY_QP_TYPE_SRQ, {init->type}});
	trim_cap(init);
	err = check_cap(device, &init->cap);
	if (err)
		return err;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return sim_refuse_memory(device->engine);
	share_room(device, &asked);
	share_room(device, &init->cap);
	round_cap(device, &init->cap);
	err = qp_init(qp, device, init);
	if (err) {
		free_memory(qp);
		return err;
	}
	if (!sim_device_obeys(device, SIM_RULE_REAL_SIZES))
		init->cap = asked;
	count_users(qp, 1);
	*out = qp;
	return 0;
}

/* The proxy remembers as many atomics as any QP of the device. */
static int reserve_proxy(struct sim_qp *proxy)
{
	const int count = proxy->device->profile->limits.max_qp_rd_atom;
	struct sim_resource *resources = calloc((size_t)count, sizeof(*resources));

	if (!resources)
		return ENOMEM;
	sim_responder_set_resources(proxy, resources, (uint8_t)count);
	return 0;
}

int sim_qp_create_proxy(struct sim_device *device, uint32_t number, struct sim_qp **out)
{
	const struct sim_qp_init init = {.type = IBV_QPT_XRC_RECV, .proxy_of = number};
	struct sim_qp *qp = calloc(1, sizeof(*qp));
	int err;

	if (!qp)
		return ENOMEM;
	err = qp_init(qp, device, &init);
	if (err) {
		free_memory(qp);
		return err;
	}
	qp->proxy = true;
	err = reserve_proxy(qp);
	if (err) {
		sim_qp_destroy(qp);
		return err;
	}
	*out = qp;
	return 0;
}

int sim_qp_set_hooks(struct sim_qp *qp, const struct sim_hooks *hooks)
{
	if (qp->hooks && qp->hooks != hooks)
		qp->hooks->detach(qp);
	qp->hooks = hooks;
	return hooks ? hooks->attach(qp) : 0;
}

/* Ends all work without completions. */
static void drop_work(struct sim_qp *qp)
{
	/* Of an XRC target's messages the completions belong to the SRQs. */
	struct sim_cq *recv_cq = qp->xrcd ? NULL : qp->rx.cq;

	sim_send_drop(qp);
	sim_requester_stop(qp);
	sim_completer_stop(qp);
	sim_receive_reset(qp);
	if (qp->device->quirks.reset_removes_completions) {
		if (qp->send_cq)
			sim_cq_purge(qp->send_cq, qp->number);
		if (recv_cq)
			sim_cq_purge(recv_cq, qp->number);
	}
	if (qp->late)
		sim_late_reset(qp);
	sim_room_leave(qp);
	sim_turn_cancel(qp);
	sim_engine_changed(qp->engine);
}

void sim_qp_destroy(struct sim_qp *qp)
{
	drop_work(qp);
	if (qp->type == IBV_QPT_UD)
		qp->engine->outlet->forget(qp);
	sim_clock_release(&qp->engine->clock, &qp->req.rnr_timer);
	sim_clock_release(&qp->engine->clock, &qp->comp.ack_timer);
	if (!qp->proxy) {
		sim_table_remove(&qp->device->qps, qp->number);
		count_users(qp, -1);
	}
	sim_responder_free_resources(qp);
	sim_failure_forget(qp);
	free_memory(qp);
}

void sim_qp_reset(struct sim_qp *qp)
{
	bool repeating = qp->hooks && qp->hooks->reset(qp);

	drop_work(qp);
	qp->sq.head = qp->sq.tail = qp->sq.freed = 0;
	qp->sq_draining = false;
	qp->drain_event = false;
	qp->first_flush = 0;
	sim_failure_forget(qp);
	sim_requester_reset(qp);
	sim_completer_reset(qp, repeating);
	sim_responder_reset(qp);
}

void sim_qp_event(struct sim_qp *qp, enum ibv_event_type type)
{
	const struct sim_host *host = &qp->engine->host;
	const struct sim_event event = {
		.type = type, .element = qp->user, .port_num = qp->port_num};

	if (qp->proxy)
		sim_relay_event(qp, type);
	else if (!qp->hooks || !qp->hooks->withholds(qp, type))
		host->async_event(host->arg, qp->device, &event);
}

/* The field "by" of VB_EVENT_STATE. */
static const char *const by_names[SIM_BYS] = {
	[SIM_BY_MODIFY] = "modify_qp",	  [SIM_BY_SEND] = "send",
	[SIM_BY_RECEIVE] = "receive",	  [SIM_BY_CQ] = "cq_overrun",
	[SIM_BY_DEVICE] = "device_fatal", [SIM_BY_DRAINED] = "drained",
	[SIM_BY_EVENT] = "event",
};

void sim_qp_note_state(struct sim_qp *qp, enum ibv_qp_state from, enum sim_by by)
{
	struct vb_event event = {
		.kind = VB_EVENT_STATE, .values = {from, qp->state}, .texts = {by_names[by]}};

	sim_qp_note(qp, &event);
}

void sim_qp_fail(struct sim_qp *qp, enum sim_by by)
{
	const enum ibv_qp_state from = qp->state;

	sim_receive_flush_later(qp);
	if (qp->hooks)
		qp->hooks->fail(qp);
	if (qp->state != IBV_QPS_ERR) {
		sim_failure_ends_qp(qp, by);
		qp->state = IBV_QPS_ERR;
		qp->sq_draining = false;
		sim_engine_changed(qp->engine);
		sim_requester_stop(qp);
		sim_completer_stop(qp);
		sim_room_leave(qp);
		if (qp->late)
			sim_late_hurry(qp);
		sim_qp_changed_state(qp, from, by);
	}
	sim_qp_wake_requester(qp);
}

void sim_qp_cq_died(struct sim_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	sim_qp_fail(qp, SIM_BY_CQ);
	sim_qp_event(qp, IBV_EVENT_QP_FATAL);
}

struct sim_xrcd *sim_qp_xrcd(const struct sim_qp *qp)
{
	return qp->xrcd;
}

uint32_t sim_qp_number(const struct sim_qp *qp)
{
	return qp->number;
}

enum ibv_qp_type sim_qp_type(const struct sim_qp *qp)
{
	return qp->type;
}

enum ibv_qp_state sim_qp_state(const struct sim_qp *qp)
{
	return qp->state;
}

struct sim_device *sim_qp_device(const struct sim_qp *qp)
{
	return qp->device;
}

uint32_t sim_qp_pd(const struct sim_qp *qp)
{
	return qp->pd;
}

bool sim_qp_is_draining(const struct sim_qp *qp)
{
	return qp->sq_draining;
}

bool sim_qp_has_completed(const struct sim_qp *qp)
{
	const struct sim_cq *recv_cq = sim_receive_cq(qp);

	return (qp->send_cq && sim_cq_holds(qp->send_cq, qp->number, IBV_WC_SUCCESS, NULL)) ||
	       (recv_cq && sim_cq_holds(recv_cq, qp->number, IBV_WC_SUCCESS, NULL));
}

uint32_t sim_qp_sends(const struct sim_qp *qp)
{
	return qp->sq.head - qp->sq.tail;
}

uint32_t sim_qp_receives(const struct sim_qp *qp)
{
	return qp->rq.head - qp->rq.tail;
}

bool sim_qp_signals_all(const struct sim_qp *qp)
{
	return qp->sig_all;
}

void *sim_qp_user(const struct sim_qp *qp)
{
	return qp->user;
}

void sim_qp_set_user(struct sim_qp *qp, void *user)
{
	qp->user = user;
}
