/* SPDX-License-Identifier: MIT */
/* A QP's making and end, its completions and events, and its failing. */
#include "sim/qp.h"

#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>

#define SLOT_ALIGN 16u

static uint32_t round_up(uint32_t value, uint32_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static int queue_init(struct sim_queue *queue, uint32_t header_bytes, uint32_t room_bytes,
		      uint32_t max_wr, uint32_t max_sge)
{
	uint32_t capacity = 1;

	if (room_bytes < max_sge * sizeof(struct ibv_sge))
		room_bytes = (uint32_t)(max_sge * sizeof(struct ibv_sge));
	while (capacity < max_wr)
		capacity *= 2;
	*queue = (struct sim_queue){
		.stride = round_up(header_bytes + room_bytes, SLOT_ALIGN),
		.mask = capacity - 1,
		.max_wr = max_wr,
		.max_sge = max_sge,
	};
	if (max_wr == 0)
		return 0;
	queue->slots = malloc((size_t)capacity * queue->stride);
	return queue->slots ? 0 : ENOMEM;
}

static bool cap_fits(const struct sim_profile *profile, const struct ibv_qp_cap *cap)
{
	const struct ibv_device_attr *limits = &profile->limits;

	return cap->max_send_wr <= (uint32_t)limits->max_qp_wr &&
	       cap->max_recv_wr <= (uint32_t)limits->max_qp_wr &&
	       cap->max_send_sge <= (uint32_t)limits->max_sge &&
	       cap->max_recv_sge <= (uint32_t)limits->max_sge &&
	       cap->max_inline_data <= profile->max_inline_bytes;
}

static int check_type(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return 0;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
	case IBV_QPT_DRIVER:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
}

static int qp_init(struct sim_qp *qp, struct sim_device *device, const struct sim_qp_init *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
	int err;

	qp->device = device;
	qp->world = device->world;
	qp->user = init->user;
	qp->pd = init->pd;
	qp->type = (uint8_t)init->type;
	qp->transport = (uint8_t)sim_transport_of(init->type);
	qp->state = IBV_QPS_RESET;
	qp->sig_all = init->sig_all ? IBV_SEND_SIGNALED : 0;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->max_inline = cap->max_inline_data;
	sim_timer_init(&qp->req.rnr_timer, sim_requester_rnr_over);
	sim_timer_init(&qp->comp.ack_timer, sim_completer_timeout);
	err = queue_init(&qp->sq, sizeof(struct sim_send_wqe), cap->max_inline_data,
			 cap->max_send_wr, cap->max_send_sge);
	if (!err)
		err = queue_init(&qp->rq, sizeof(struct sim_recv_wqe), 0, cap->max_recv_wr,
				 cap->max_recv_sge);
	if (!err)
		err = sim_clock_reserve(&device->world->clock);
	if (!err)
		err = sim_clock_reserve(&device->world->clock);
	if (!err)
		err = sim_table_insert(&device->qps, qp, &qp->number);
	return err;
}

int sim_qp_create(struct sim_device *device, struct sim_qp_init *init, struct sim_qp **out)
{
	int err = check_type(init->type);
	struct sim_qp *qp;

	if (err)
		return err;
	if (!cap_fits(device->profile, &init->cap))
		return EINVAL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return ENOMEM;
	err = qp_init(qp, device, init);
	if (err) {
		free(qp->sq.slots);
		free(qp->rq.slots);
		free(qp);
		return err;
	}
	qp->send_cq->users++;
	qp->recv_cq->users++;
	*out = qp;
	return 0;
}

static void unlist(struct sim_qp *qp)
{
	struct sim_world *world = qp->world;
	struct sim_qp **link;
	struct sim_qp *last = NULL;

	if (qp->requester_listed) {
		for (link = &world->requesters.head; *link != qp; link = &(*link)->next_requester)
			last = *link;
		*link = qp->next_requester;
		if (world->requesters.tail == qp)
			world->requesters.tail = last;
	}
	last = NULL;
	if (qp->responder_listed) {
		for (link = &world->responders.head; *link != qp; link = &(*link)->next_responder)
			last = *link;
		*link = qp->next_responder;
		if (world->responders.tail == qp)
			world->responders.tail = last;
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
	sim_cq_forget(qp->send_cq, &qp->sq);
	sim_cq_forget(qp->recv_cq, &qp->rq);
	unlist(qp);
	sim_world_changed(qp->world);
}

void sim_qp_destroy(struct sim_qp *qp)
{
	drop_work(qp);
	sim_clock_release(&qp->world->clock, &qp->req.rnr_timer);
	sim_clock_release(&qp->world->clock, &qp->comp.ack_timer);
	sim_table_remove(&qp->device->qps, qp->number);
	qp->send_cq->users--;
	qp->recv_cq->users--;
	free(qp->resp.resources);
	free(qp->sq.slots);
	free(qp->rq.slots);
	free(qp);
}

void sim_qp_reset(struct sim_qp *qp)
{
	drop_work(qp);
	qp->sq.head = qp->sq.tail = qp->sq.freed = 0;
	qp->rq.head = qp->rq.tail = qp->rq.freed = 0;
	qp->sq_draining = false;
	qp->drain_event = false;
	free(qp->resp.resources);
	qp->req = (struct sim_requester){.rnr_timer = qp->req.rnr_timer};
	qp->comp = (struct sim_completer){.ack_timer = qp->comp.ack_timer};
	qp->resp = (struct sim_responder){0};
}

void sim_qp_list_requester(struct sim_qp *qp)
{
	struct sim_qp_list *list = &qp->world->requesters;

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
	struct sim_qp_list *list = &qp->world->responders;

	qp->responder_listed = true;
	qp->next_responder = NULL;
	if (list->head)
		list->tail->next_responder = qp;
	else
		list->head = qp;
	list->tail = qp;
}

void sim_qp_event(struct sim_qp *qp, enum ibv_event_type type)
{
	const struct sim_host *host = &qp->world->host;
	const struct sim_event event = {
		.type = type, .element = qp->user, .port_num = qp->port_num};

	host->async_event(host->arg, qp->device, &event);
}

void sim_qp_fail(struct sim_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	qp->state = IBV_QPS_ERR;
	qp->sq_draining = false;
	sim_world_changed(qp->world);
	sim_timer_disarm(&qp->req.rnr_timer);
	sim_timer_disarm(&qp->comp.ack_timer);
	sim_qp_wake_requester(qp);
}

/* A CQ that is dead takes the QP with it, so that no completion is lost in silence. */
static void cq_refused(struct sim_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	sim_qp_fail(qp);
	sim_qp_event(qp, IBV_EVENT_QP_FATAL);
}

static void push_send(struct sim_qp *qp, const struct sim_send_wqe *wqe, enum ibv_wc_status status)
{
	struct sim_cqe *cqe = sim_cq_begin(qp->send_cq);

	if (!cqe) {
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
	cqe->timestamp_ns = qp->world->clock.now_ns;
	cqe->retires = &qp->sq;
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
	qp->sq.tail++;
	/* What is acknowledged needs not be sent again. */
	if ((int32_t)(qp->sq.tail - qp->req.next) > 0) {
		qp->req.next = qp->sq.tail;
		qp->req.offset = 0;
	}
	if (status != IBV_WC_SUCCESS || (wqe->send_flags & IBV_SEND_SIGNALED))
		push_send(qp, wqe, status);
}

void sim_qp_complete_recv(struct sim_qp *qp, const struct sim_recv_done *done)
{
	const struct sim_recv_wqe *wqe = sim_qp_recv_wqe(qp, qp->rq.tail);
	struct sim_cqe *cqe = sim_cq_begin(qp->recv_cq);

	qp->rq.tail++;
	qp->resp.recv_taken = false;
	if (!cqe) {
		cq_refused(qp);
		return;
	}
	cqe->wc = (struct ibv_wc){
		.wr_id = wqe->wr_id,
		.status = done->status,
		.opcode = done->opcode,
		.byte_len = done->byte_len,
		.qp_num = qp->number,
		.wc_flags = done->wc_flags,
	};
	cqe->solicited = false;
	if (done->packet) {
		const struct sim_packet *packet = done->packet;

		cqe->wc.src_qp = packet->source_qpn;
		if (done->wc_flags & IBV_WC_WITH_IMM)
			cqe->wc.imm_data = packet->imm_data;
		else if (done->wc_flags & IBV_WC_WITH_INV)
			cqe->wc.invalidated_rkey = packet->rkey;
		cqe->wc.pkey_index = qp->pkey_index;
		cqe->solicited = packet->flags & SIM_PACKET_SOLICITED;
	}
	cqe->timestamp_ns = qp->world->clock.now_ns;
	cqe->retires = &qp->rq;
	cqe->retire_to = qp->rq.tail;
	sim_cq_commit(qp->recv_cq, cqe);
}

void sim_qp_flush_sends(struct sim_qp *qp)
{
	while (qp->sq.tail != qp->sq.head)
		sim_qp_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
}

void sim_qp_flush_recvs(struct sim_qp *qp)
{
	static const struct sim_recv_done flushed = {.status = IBV_WC_WR_FLUSH_ERR,
						     .opcode = IBV_WC_RECV};

	while (qp->rq.tail != qp->rq.head)
		sim_qp_complete_recv(qp, &flushed);
}
