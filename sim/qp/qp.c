/* SPDX-License-Identifier: MIT */
/* A QP's making and end, its completions and events, and its failing. */
#include "sim/qp/qp.h"

#include "sim/qp/qp.h"

#include <errno.h>
#include <stdlib.h>

static bool cap_fits(const struct sim_profile *profile, const struct ibv_qp_cap *cap)
{
	const struct ibv_device_attr *limits = &profile->limits;

	return cap->max_send_wr <= (uint32_t)limits->max_qp_wr &&
	       cap->max_recv_wr <= (uint32_t)limits->max_qp_wr &&
	       cap->max_send_sge <= (uint32_t)limits->max_sge &&
	       cap->max_recv_sge <= (uint32_t)limits->max_sge &&
	       cap->max_inline_data <= profile->max_inline_bytes;
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
		return device->profile->limits.device_cap_flags & IBV_DEVICE_XRC ? 0 : EOPNOTSUPP;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
}

/* What a QP of its type does not have, it does not have room for. */
static void trim_cap(struct sim_qp_init *init)
{
	if (init->type == IBV_QPT_XRC_RECV)
		init->cap = (struct ibv_qp_cap){0};
	if (init->type == IBV_QPT_XRC_SEND || init->srq)
		init->cap.max_recv_wr = init->cap.max_recv_sge = 0;
}

/* Linux drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_init_req: a slot has the larger of both. */
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

static void round_cap(const struct sim_device *device, struct sim_qp_init *init)
{
	if (!device->quirks.queue_sizes_round_up)
		return;
	init->cap.max_send_wr = sim_queue_rounded(init->cap.max_send_wr);
	init->cap.max_recv_wr = sim_queue_rounded(init->cap.max_recv_wr);
}

/* The PD that the memory of receives has to be of. */
static struct sim_reach *reach_of_receives(struct sim_qp *qp)
{
	if (qp->srq && !qp->device->quirks.srq_memory_is_of_the_qp)
		return &qp->srq->reach;
	return &qp->rq_reach;
}

static void start_responder(struct sim_qp *qp, uint32_t ack_psn)
{
	qp->resp = (struct sim_responder){
		.srq = qp->srq,
		.recv_reach = reach_of_receives(qp),
		.ack_psn = ack_psn,
	};
}

static int qp_init(struct sim_qp *qp, struct sim_device *device, const struct sim_qp_init *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
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
	start_responder(qp, 0xffffff);
	if (!device->quirks.slots_free_when_completed) {
		qp->sq_retires = &qp->sq;
		qp->rq_retires = &qp->rq;
	}
	qp->sq_reach = qp->rq_reach = qp->remote_reach =
		(struct sim_reach){.device = device, .pd = init->pd};
	qp->sig_all = init->sig_all ? IBV_SEND_SIGNALED : 0;
	qp->block_self_multicast = init->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->max_inline = cap->max_inline_data;
	sim_timer_init(&qp->req.rnr_timer, sim_requester_rnr_over);
	sim_timer_init(&qp->comp.ack_timer, sim_completer_timeout);
	/* An ATOMIC WRITE's data is in its WQE, whatever was asked for. */
	err = sim_queue_init(&qp->sq, sizeof(struct sim_send_wqe),
			     cap->max_inline_data < SIM_ATOMIC_BYTES ? SIM_ATOMIC_BYTES
								     : cap->max_inline_data,
			     cap->max_send_wr, cap->max_send_sge);
	if (!err)
		err = sim_queue_init(&qp->rq, sizeof(struct sim_recv_wqe), 0, cap->max_recv_wr,
				     cap->max_recv_sge);
	if (!err)
		err = sim_clock_reserve(&device->engine->clock);
	if (!err)
		err = sim_clock_reserve(&device->engine->clock);
	if (!err)
		err = sim_table_insert(&device->qps, qp, &qp->number);
	qp->remote_reach.qpn = qp->number;
	return err;
}

/* What the QP stands on is kept while it stands. */
static void count_users(struct sim_qp *qp, int by)
{
	if (qp->send_cq)
		qp->send_cq->users += (uint32_t)by;
	if (qp->recv_cq && !qp->xrcd)
		qp->recv_cq->users += (uint32_t)by;
	if (qp->srq)
		qp->srq->users += (uint32_t)by;
	if (qp->xrcd)
		qp->xrcd->users += (uint32_t)by;
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
	    !(init->type == IBV_QPT_UC && device->quirks.srqs_on_uc))
		return EINVAL;
	trim_cap(init);
	if (!cap_fits(device->profile, &init->cap))
		return EINVAL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return ENOMEM;
	share_room(device, &asked);
	share_room(device, &init->cap);
	round_cap(device, init);
	err = qp_init(qp, device, init);
	if (err) {
		free(qp->sq.slots);
		free(qp->rq.slots);
		free(qp);
		return err;
	}
	if (device->quirks.asked_sizes_told)
		init->cap = asked;
	count_users(qp, 1);
	*out = qp;
	return 0;
}

static void unlist(struct sim_qp *qp)
{
	struct sim_engine *engine = qp->engine;
	struct sim_qp **link;
	struct sim_qp *last = NULL;

	if (qp->requester_listed) {
		for (link = &engine->requesters.head; *link != qp; link = &(*link)->next_requester)
			last = *link;
		*link = qp->next_requester;
		if (engine->requesters.tail == qp)
			engine->requesters.tail = last;
	}
	last = NULL;
	if (qp->responder_listed) {
		for (link = &engine->responders.head; *link != qp; link = &(*link)->next_responder)
			last = *link;
		*link = qp->next_responder;
		if (engine->responders.tail == qp)
			engine->responders.tail = last;
	}
	qp->requester_listed = false;
	qp->responder_listed = false;
}

/* Ends all work without completions. */
static void drop_work(struct sim_qp *qp)
{
	for (; qp->sq.tail != qp->sq.head; qp->sq.tail++) {
		struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

		if (qp->type == IBV_QPT_UD && wqe->ah)
			sim_ah_release(wqe->ah);
	}
	sim_timer_disarm(&qp->req.rnr_timer);
	sim_timer_disarm(&qp->comp.ack_timer);
	if (qp->send_cq)
		sim_cq_forget(qp->send_cq, &qp->sq);
	if (qp->recv_cq && !qp->xrcd)
		sim_cq_forget(qp->recv_cq, &qp->rq);
	if (qp->device->quirks.reset_removes_completions) {
		if (qp->send_cq)
			sim_cq_purge(qp->send_cq, qp->number);
		if (qp->recv_cq)
			sim_cq_purge(qp->recv_cq, qp->number);
	}
	if (qp->resp.recv_held)
		sim_srq_release(qp->resp.srq, qp->resp.recv_slot);
	qp->resp.recv_held = false;
	unlist(qp);
	sim_engine_changed(qp->engine);
}

static void free_resources(struct sim_qp *qp)
{
	qp->device->resource_count -= qp->resp.resource_size;
	free(qp->resp.resources);
}

void sim_qp_destroy(struct sim_qp *qp)
{
	drop_work(qp);
	if (qp->type == IBV_QPT_UD)
		qp->engine->outlet->forget(qp);
	sim_clock_release(&qp->engine->clock, &qp->req.rnr_timer);
	sim_clock_release(&qp->engine->clock, &qp->comp.ack_timer);
	sim_table_remove(&qp->device->qps, qp->number);
	count_users(qp, -1);
	free_resources(qp);
	free(qp->sq.slots);
	free(qp->rq.slots);
	free(qp);
}

void sim_qp_reset(struct sim_qp *qp)
{
	uint32_t unfinished = qp->sq.head - qp->sq.tail;

	drop_work(qp);
	qp->sq.head = qp->sq.tail = qp->sq.freed = 0;
	qp->rq.head = qp->rq.tail = qp->rq.freed = 0;
	qp->sq_draining = false;
	qp->drain_event = false;
	free_resources(qp);
	qp->req = (struct sim_requester){
		.rnr_timer = qp->req.rnr_timer,
		.ghosts = qp->device->quirks.resets_leave_ghosts ? unfinished : 0,
	};
	qp->comp = (struct sim_completer){
		.repeating = qp->comp.repeating && qp->device->quirks.repeats_outlive_reset,
		.ack_timer = qp->comp.ack_timer,
	};
	start_responder(qp, qp->resp.ack_psn);
}

void sim_qp_list_requester(struct sim_qp *qp)
{
	struct sim_qp_list *list = &qp->engine->requesters;

	qp->requester_listed = true;
	qp->next_requester = NULL;
	if (list->head)
		list->tail->next_requester = qp;
	else
		list->head = qp;
	list->tail = qp;
}

void sim_qp_list_responder(struct sim_qp *qp)
{
	struct sim_qp_list *list = &qp->engine->responders;

	qp->responder_listed = true;
	qp->next_responder = NULL;
	if (list->head)
		list->tail->next_responder = qp;
	else
		list->head = qp;
	list->tail = qp;
}

static bool event_withheld(const struct sim_quirks *quirks, enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
		return quirks->no_affiliated_events;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return quirks->no_last_wqe_event;
	default:
		return false;
	}
}

void sim_qp_event(struct sim_qp *qp, enum ibv_event_type type)
{
	const struct sim_host *host = &qp->engine->host;
	const struct sim_event event = {
		.type = type, .element = qp->user, .port_num = qp->port_num};

	if (!event_withheld(&qp->device->quirks, type))
		host->async_event(host->arg, qp->device, &event);
}

/* A requester that waits at a fence is called once more when a send before it ends: Linux
 * drivers/infiniband/sw/rxe/rxe_comp.c, do_complete. */
static bool waits_at_fence(const struct sim_qp *qp)
{
	const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->req.next);

	if (qp->req.next == qp->sq.head || qp->req.next == qp->sq.tail)
		return false;
	return wqe->opcode == IBV_WR_LOCAL_INV ||
	       (wqe->send_flags & IBV_SEND_FENCE && qp->req.reads_outstanding);
}

void sim_qp_fail(struct sim_qp *qp)
{
	qp->flush_recvs = true;
	qp->req.flush_due = true;
	if (qp->state == IBV_QPS_ERR) {
		sim_qp_wake_requester(qp);
		return;
	}
	qp->state = IBV_QPS_ERR;
	qp->req.ring_place = qp->req.next + waits_at_fence(qp);
	qp->sq_draining = false;
	sim_engine_changed(qp->engine);
	sim_timer_disarm(&qp->req.rnr_timer);
	sim_timer_disarm(&qp->comp.ack_timer);
	sim_qp_wake_requester(qp);
}

void sim_qp_fail_again(struct sim_qp *qp)
{
	qp->resp.last_wqe_told = false;
	sim_qp_fail(qp);
}

/* A CQ that is dead takes the QP with it, so that no completion is lost in silence. */
static void cq_refused(struct sim_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	sim_qp_fail(qp);
	sim_qp_event(qp, IBV_EVENT_QP_FATAL);
}

static bool has_immediate(const struct sim_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND_WITH_IMM || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void push_send(struct sim_qp *qp, const struct sim_send_wqe *wqe, enum ibv_wc_status status)
{
	struct sim_cqe *cqe = sim_cq_begin(qp->send_cq);

	if (!cqe) {
		if (!qp->device->quirks.overrun_loses_completions)
			cq_refused(qp);
		return;
	}
	cqe->wc = (struct ibv_wc){
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = wqe->wc_opcode,
		.byte_len = wqe->length,
		.qp_num = qp->number,
	};
	if (qp->device->quirks.sends_tell_immediate && has_immediate(wqe))
		cqe->wc.wc_flags = IBV_WC_WITH_IMM;
	if (wqe->info_flags & SIM_WR_ATOMIC && qp->device->quirks.atomics_tell_all_bytes)
		cqe->wc.byte_len = wqe->sge_bytes;
	cqe->timestamp_ns = qp->engine->clock.now_ns;
	cqe->retires = qp->sq_retires;
	cqe->retire_to = qp->sq.tail;
	cqe->solicited = false;
	sim_cq_commit(qp->send_cq, cqe);
}

void sim_qp_complete_send(struct sim_qp *qp, enum ibv_wc_status status)
{
	struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);

	if (wqe->credited)
		qp->req.reads_outstanding--;
	if (qp->type == IBV_QPT_UD && wqe->ah)
		sim_ah_release(wqe->ah);
	qp->device->counters.completed[wqe->wc_opcode]++;
	qp->sq.tail++;
	if (!qp->sq_retires)
		qp->sq.freed = qp->sq.tail;
	/* What is acknowledged needs not be sent again. */
	if ((int32_t)(qp->sq.tail - qp->req.next) > 0) {
		qp->req.next = qp->sq.tail;
		qp->req.offset = 0;
	}
	if (status != IBV_WC_SUCCESS || (wqe->send_flags & IBV_SEND_SIGNALED))
		push_send(qp, wqe, status);
}

struct sim_recv_wqe *sim_qp_peek_recv(const struct sim_qp *qp)
{
	if (!qp->resp.srq)
		return qp->rq.tail == qp->rq.head ? NULL : sim_qp_recv_wqe(qp, qp->rq.tail);
	return qp->resp.recv_held ? qp->resp.recv : sim_srq_peek(qp->resp.srq);
}

bool sim_qp_take_shared(struct sim_qp *qp)
{
	struct sim_responder *resp = &qp->resp;

	if (!resp->recv_held) {
		if (sim_srq_count(resp->srq) == 0)
			return false;
		resp->recv_slot = sim_srq_take(resp->srq);
		resp->recv = sim_queue_slot(&resp->srq->queue, resp->recv_slot);
		resp->recv_held = true;
	}
	resp->recv_taken = true;
	return true;
}

/* A slot that no completion will give back. */
static void drop_recv(struct sim_qp *qp)
{
	if (qp->resp.recv_held)
		sim_srq_release(qp->resp.srq, qp->resp.recv_slot);
	else if (!qp->resp.srq)
		qp->rq.tail++;
	if (!qp->resp.srq && !qp->rq_retires)
		qp->rq.freed = qp->rq.tail;
	qp->resp.recv_held = false;
}

/* The completion gives the slot back once it is polled, or the slot is free at once. */
static void retire_shared(struct sim_qp *qp, struct sim_cqe *cqe)
{
	struct sim_srq *srq = qp->resp.srq;

	qp->resp.recv_held = false;
	cqe->retires = qp->rq_retires ? &srq->queue : NULL;
	cqe->retire_to = qp->resp.recv_slot;
	if (qp->rq_retires)
		srq->unpolled++;
	else
		sim_srq_release(srq, qp->resp.recv_slot);
}

static inline void retire_recv(struct sim_qp *qp, struct sim_cqe *cqe)
{
	if (qp->resp.srq) {
		retire_shared(qp, cqe);
		return;
	}
	qp->rq.tail++;
	cqe->retires = qp->rq_retires;
	cqe->retire_to = qp->rq.tail;
	if (!qp->rq_retires)
		qp->rq.freed = qp->rq.tail;
}

/* The immediate data or the key. */
static void set_extra(struct ibv_wc *wc, const struct sim_packet *packet)
{
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		wc->imm_data = packet->imm_data;
	else
		wc->invalidated_rkey = packet->rkey;
}

void sim_qp_complete_recv(struct sim_qp *qp, const struct sim_packet *packet,
			  enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t byte_len,
			  unsigned int wc_flags)
{
	const struct sim_recv_wqe *wqe = qp->resp.recv;
	struct sim_cqe *cqe = sim_cq_begin(qp->recv_cq);

	qp->resp.recv_taken = false;
	if (!cqe) {
		drop_recv(qp);
		cq_refused(qp);
		return;
	}
	cqe->wc = (struct ibv_wc){
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = opcode,
		.byte_len = byte_len,
		.qp_num = qp->number,
		.wc_flags = wc_flags,
	};
	if (packet) {
		cqe->wc.src_qp = packet->source_qpn;
		if (wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK))
			set_extra(&cqe->wc, packet);
		cqe->wc.pkey_index = qp->pkey_index;
		cqe->wc.slid = packet->slid;
		cqe->wc.sl = packet->sl;
		cqe->solicited = packet->flags & SIM_PACKET_SOLICITED;
	} else {
		cqe->solicited = status == IBV_WC_WR_FLUSH_ERR &&
				 qp->device->quirks.flushed_receives_are_solicited;
	}
	cqe->timestamp_ns = qp->engine->clock.now_ns;
	retire_recv(qp, cqe);
	sim_cq_commit(qp->recv_cq, cqe);
}

void sim_qp_flush_sends(struct sim_qp *qp)
{
	while (qp->sq.tail != qp->sq.head)
		sim_qp_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
}

void sim_qp_flush_recvs(struct sim_qp *qp)
{
	qp->flush_recvs = false;
	while (qp->resp.recv_held || (!qp->resp.srq && sim_qp_take_recv(qp)))
		sim_qp_complete_recv(qp, NULL, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0, 0);
	/* Those on an SRQ stay for the other QPs. */
	if (qp->srq && !qp->resp.last_wqe_told) {
		qp->resp.last_wqe_told = true;
		sim_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}
