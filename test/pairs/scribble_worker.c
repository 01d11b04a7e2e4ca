/* SPDX-License-Identifier: MIT */
#include "test/pairs/scribble.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

enum {
	MEMORY_BYTES = 1 << 16,
	DEPTH = 8,
	RECEIVES = 32,
	WORK_MS = 40,
	PATIENCE_MS = 2000, /* for another worker, which may have ended at once */
};

struct link {
	struct ibv_qp *qp;
	uint32_t pending;
	bool broken;
};

struct worker {
	struct scribble_board *board;
	struct scribble_worker *own;
	uint32_t self;
	uint64_t random, end_ns;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *events;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *target, *opened;
	struct link links[SCRIBBLE_WORKERS_MAX];
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	char memory[MEMORY_BYTES];
};

uint64_t scribble_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint32_t choose(struct worker *worker, uint32_t count)
{
	return (uint32_t)(scribble_random(&worker->random) % count);
}

/* Sleeps for a moment; returns false at the end of the time. */
static bool wait_ms(uint64_t end_ns)
{
	if (scribble_now_ns() >= end_ns)
		return false;
	poll(NULL, 0, 1);
	return true;
}

/* --- objects --- */

static bool open_device(struct worker *worker)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list)
		return false;
	worker->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!worker->context)
		return false;
	worker->pd = ibv_alloc_pd(worker->context);
	worker->events = ibv_create_comp_channel(worker->context);
	worker->cq = ibv_create_cq(worker->context, 512, NULL, worker->events, 0);
	worker->mr = ibv_reg_mr(worker->pd, worker->memory, MEMORY_BYTES,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!worker->pd || !worker->events || !worker->cq || !worker->mr)
		return false;
	fcntl(worker->events->fd, F_SETFL, fcntl(worker->events->fd, F_GETFL) | O_NONBLOCK);
	return true;
}

static struct ibv_qp *create_qp(struct worker *worker)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = worker->cq,
		.recv_cq = worker->cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(worker->pd, &attr);
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	if (qp)
		ibv_modify_qp(qp, &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	return qp;
}

/* Timers are short, so that requests to nobody end soon. */
static bool connect_qp(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 1}},
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 5,
	};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return false;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 9,
				    .retry_cnt = 3,
				    .rnr_retry = 3,
				    .max_rd_atomic = 4};
	return !ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void post_receive(struct worker *worker, struct link *link)
{
	struct ibv_sge sge = {(uintptr_t)worker->memory, 4096, worker->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	if (!link->broken)
		ibv_post_recv(link->qp, &wr, &bad);
}

/* The other workers may have ended. */
static void link_to(struct worker *worker, uint32_t other)
{
	const struct scribble_worker *there = &worker->board->worker[other];
	const uint64_t until_ns = scribble_now_ns() + PATIENCE_MS * MS;
	struct link *link = &worker->links[other];

	while (!atomic_load(&there->ready))
		if (!wait_ms(until_ns))
			break;
	link->broken = !atomic_load(&there->ready) ||
		       !connect_qp(link->qp, &there->gid, there->qpn[worker->self]);
	for (unsigned int i = 0; i < RECEIVES; i++)
		post_receive(worker, link);
}

static bool make_links(struct worker *worker)
{
	for (uint32_t i = 0; i < worker->board->workers; i++) {
		if (i == worker->self)
			continue;
		worker->links[i].qp = create_qp(worker);
		if (!worker->links[i].qp)
			return false;
		worker->own->qpn[i] = worker->links[i].qp->qp_num;
	}
	worker->own->address = (uintptr_t)worker->memory;
	worker->own->rkey = worker->mr->rkey;
	if (ibv_query_gid(worker->context, 1, 0, &worker->own->gid))
		return false;
	atomic_store(&worker->own->ready, 1);
	for (uint32_t i = 0; i < worker->board->workers; i++)
		if (i != worker->self)
			link_to(worker, i);
	return true;
}

/* --- messages --- */

static void post(struct worker *worker, uint32_t other)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
						     IBV_WR_ATOMIC_FETCH_AND_ADD};
	const struct scribble_worker *there = &worker->board->worker[other];
	const enum ibv_wr_opcode opcode = opcodes[choose(worker, 5)];
	struct ibv_sge sge = {(uintptr_t)worker->memory, choose(worker, 4096), worker->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = other,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = there->address;
		wr.wr.atomic.rkey = there->rkey;
	} else {
		wr.wr.rdma.remote_addr = there->address;
		wr.wr.rdma.rkey = there->rkey;
	}
	if (ibv_post_send(worker->links[other].qp, &wr, &bad))
		worker->links[other].broken = true;
	else
		worker->links[other].pending++;
}

static struct link *link_of(struct worker *worker, uint32_t qpn)
{
	for (uint32_t i = 0; i < worker->board->workers; i++)
		if (worker->links[i].qp && worker->links[i].qp->qp_num == qpn)
			return &worker->links[i];
	return NULL;
}

static void take(struct worker *worker, const struct ibv_wc *wc)
{
	struct link *link = link_of(worker, wc->qp_num);

	if (!link)
		return;
	if (wc->status)
		link->broken = true;
	else
		atomic_fetch_add(&worker->own->completed, 1);
	if (wc->status == IBV_WC_SUCCESS && wc->opcode & IBV_WC_RECV)
		post_receive(worker, link);
	else if (link->pending)
		link->pending--;
}

static void poll_all(struct worker *worker)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(worker->cq, 1, &wc) > 0)
		take(worker, &wc);
}

/* Sleeps until the CQ has an event, or for 2 ms: the progress thread has to work alone meanwhile. */
static void await_event(struct worker *worker)
{
	struct pollfd fd = {.fd = worker->events->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	ibv_req_notify_cq(worker->cq, 0);
	poll(&fd, 1, 2);
	if (fd.revents && !ibv_get_cq_event(worker->events, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

static void exchange(struct worker *worker)
{
	for (uint32_t i = 0; i < worker->board->workers; i++)
		while (i != worker->self && !worker->links[i].broken &&
		       worker->links[i].pending < DEPTH)
			post(worker, i);
	poll_all(worker);
	if (choose(worker, 2))
		await_event(worker);
}

/* --- calls: an XRC target QP of the first worker, which the others open --- */

static void open_domain(struct worker *worker)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask =
						  IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = worker->board->domain_fd,
					  .oflags = O_CREAT};

	worker->xrcd = ibv_open_xrcd(worker->context, &attr);
}

static void make_target(struct worker *worker)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					   .xrcd = worker->xrcd};

	worker->target = worker->xrcd ? ibv_create_qp_ex(worker->context, &attr) : NULL;
	if (worker->target)
		atomic_store(&worker->own->target, worker->target->qp_num);
}

static void call(struct worker *worker)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						     IBV_QP_OPEN_ATTR_TYPE,
					.qp_num = atomic_load(&worker->board->worker[0].target),
					.xrcd = worker->xrcd,
					.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr state;

	if (!worker->opened && attr.qp_num && worker->xrcd)
		worker->opened = ibv_open_qp(worker->context, &attr);
	if (worker->opened && !ibv_query_qp(worker->opened, &state, IBV_QP_STATE, &init))
		atomic_fetch_add(&worker->own->answered, 1);
}

/* --- connections --- */

static struct sockaddr_in address_of(const struct scribble_board *board)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(board->port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void begin_connecting(struct worker *worker)
{
	struct sockaddr_in address = address_of(worker->board);

	if (!rdma_create_id(worker->channel, &worker->id, NULL, RDMA_PS_TCP) &&
	    rdma_resolve_addr(worker->id, NULL, (struct sockaddr *)&address, 20)) {
		rdma_destroy_id(worker->id);
		worker->id = NULL;
	}
}

static void begin_listening(struct worker *worker)
{
	struct sockaddr_in address = address_of(worker->board);

	if (!rdma_create_id(worker->channel, &worker->listener, NULL, RDMA_PS_TCP) &&
	    !rdma_bind_addr(worker->listener, (struct sockaddr *)&address))
		rdma_listen(worker->listener, 8);
}

/* Returns true if the identifier has ended. */
static bool follow(struct worker *worker, const struct rdma_cm_event *event)
{
	struct rdma_conn_param param = {.qp_num = 77};

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(event->id, 20);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return rdma_connect(event->id, &param);
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return rdma_accept(event->id, &param);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return rdma_establish(event->id);
	case RDMA_CM_EVENT_ESTABLISHED:
		atomic_fetch_add(&worker->own->connected, 1);
		return event->id == worker->id && rdma_disconnect(event->id);
	default:
		return event->id != worker->listener;
	}
}

static void follow_connections(struct worker *worker)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(worker->channel, &event)) {
		struct rdma_cm_id *id = event->id;
		const bool ended = follow(worker, event);

		rdma_ack_cm_event(event);
		if (!ended)
			continue;
		if (id == worker->id)
			worker->id = NULL;
		rdma_destroy_id(id);
	}
	if (worker->self && !worker->id)
		begin_connecting(worker);
}

static bool open_channel(struct worker *worker)
{
	worker->channel = rdma_create_event_channel();
	if (!worker->channel)
		return false;
	fcntl(worker->channel->fd, F_SETFL, fcntl(worker->channel->fd, F_GETFL) | O_NONBLOCK);
	if (!worker->self)
		begin_listening(worker);
	return true;
}

/* --- a life --- */

/* Makes and ends objects whose numbers come from the world's file. */
static void churn(struct worker *worker)
{
	struct ibv_mr *mr = ibv_reg_mr(worker->pd, worker->memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qp = create_qp(worker);

	if (mr)
		ibv_dereg_mr(mr);
	if (qp)
		ibv_destroy_qp(qp);
}

static void be_quiet(struct worker *worker)
{
	const uint64_t until_ns = scribble_now_ns() + PATIENCE_MS * MS;

	atomic_store(&worker->own->quiet, 1);
	while (!atomic_load(&worker->board->go_on))
		if (!wait_ms(until_ns))
			break;
}

static void close_all(struct worker *worker)
{
	for (uint32_t i = 0; i < worker->board->workers; i++)
		if (worker->links[i].qp)
			ibv_destroy_qp(worker->links[i].qp);
	if (worker->opened)
		ibv_destroy_qp(worker->opened);
	if (worker->target)
		ibv_destroy_qp(worker->target);
	if (worker->xrcd)
		ibv_close_xrcd(worker->xrcd);
	if (worker->id)
		rdma_destroy_id(worker->id);
	if (worker->listener)
		rdma_destroy_id(worker->listener);
	if (worker->channel)
		rdma_destroy_event_channel(worker->channel);
	if (worker->mr)
		ibv_dereg_mr(worker->mr);
	if (worker->cq)
		ibv_destroy_cq(worker->cq);
	if (worker->events)
		ibv_destroy_comp_channel(worker->events);
	if (worker->pd)
		ibv_dealloc_pd(worker->pd);
	ibv_close_device(worker->context);
}

static void work(struct worker *worker)
{
	while (scribble_now_ns() < worker->end_ns) {
		exchange(worker);
		follow_connections(worker);
		if (worker->self && !choose(worker, 4))
			call(worker);
		if (!choose(worker, 8))
			churn(worker);
	}
}

void scribble_work(struct scribble_board *board, uint32_t self)
{
	static struct worker worker;

	worker = (struct worker){.board = board, .self = self, .own = &board->worker[self]};
	worker.random = board->seed + self + 1;
	for (unsigned int i = 0; i < 8; i++)
		scribble_random(&worker.random);
	if (!open_device(&worker)) {
		atomic_store(&worker.own->quiet, 1);
		return;
	}
	open_domain(&worker);
	if (!self)
		make_target(&worker);
	if (make_links(&worker) && open_channel(&worker)) {
		worker.end_ns = scribble_now_ns() + WORK_MS * MS;
		work(&worker);
	}
	be_quiet(&worker);
	if (choose(&worker, 2))
		close_all(&worker);
}
