/* SPDX-License-Identifier: MIT */
/*
 * A program that knows libibverbs and librdmacm only: a server and a client in one thread, which sleeps in
 * epoll_wait(2) on both event channels and both completion channels. usage: epoll ADDRESS ROUNDS
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define NEED(what) ((what) ? (void)0 : (fprintf(stderr, "%s\n", #what), exit(1)))

enum { BYTES = 64 };

static struct end {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id; /* NULL: not connected yet */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char memory[2 * BYTES];
	int received;
} server, client;

static struct rdma_cm_id *listener;
static int set, rounds, ended;

static void watch(int fd, void *place)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = place};

	NEED(!fcntl(fd, F_SETFL, O_NONBLOCK));
	NEED(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
}

static void receive(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->memory, BYTES, end->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	NEED(!ibv_post_recv(end->id->qp, &wr, &bad));
}

static void send_one(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->memory + BYTES, BYTES, end->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	NEED(!ibv_post_send(end->id->qp, &wr, &bad));
}

static void make(struct end *end, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};

	end->id = id;
	NEED(end->channel = ibv_create_comp_channel(id->verbs));
	NEED(end->cq = ibv_create_cq(id->verbs, 16, end, end->channel, 0));
	NEED(!ibv_req_notify_cq(end->cq, 0));
	init.send_cq = init.recv_cq = end->cq;
	NEED(!rdma_create_qp(id, NULL, &init));
	NEED(end->mr =
		     ibv_reg_mr(id->pd, end->memory, sizeof(end->memory), IBV_ACCESS_LOCAL_WRITE));
	receive(end);
	watch(end->channel->fd, end->channel);
}

static void on_completion(struct end *end, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	NEED(wc->status == IBV_WC_SUCCESS);
	if (wc->opcode != IBV_WC_RECV)
		return;
	end->received++;
	if (end == &client && end->received == rounds) {
		NEED(!rdma_disconnect(end->id));
		return;
	}
	receive(end);
	send_one(end);
}

static void take_completions(struct end *end)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(end->channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	NEED(!ibv_req_notify_cq(cq, 0));
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		on_completion(end, &wc);
}

static void on_event(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct rdma_conn_param parameters = {.retry_count = 7, .rnr_retry_count = 7};

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		NEED(!rdma_resolve_route(id, 1000));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make(&client, id);
		NEED(!rdma_connect(id, &parameters));
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		make(&server, id);
		NEED(!rdma_accept(id, &parameters));
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (id == client.id)
			send_one(&client);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (id == server.id)
			rdma_disconnect(id);
		ended++;
		break;
	default:
		break;
	}
}

static void take_events(struct end *end)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;

	while (!rdma_get_cm_event(end->events, &event)) {
		id = event->id;
		type = event->event;
		printf("%s\n", rdma_event_str(type));
		NEED(!rdma_ack_cm_event(event));
		on_event(id, type);
	}
}

static void begin(struct sockaddr_in *address)
{
	NEED(set = epoll_create1(EPOLL_CLOEXEC));
	NEED(server.events = rdma_create_event_channel());
	NEED(client.events = rdma_create_event_channel());
	watch(server.events->fd, server.events);
	watch(client.events->fd, client.events);
	NEED(!rdma_create_id(server.events, &listener, NULL, RDMA_PS_TCP));
	NEED(!rdma_bind_addr(listener, (struct sockaddr *)address));
	NEED(!rdma_listen(listener, 1));
	NEED(!rdma_create_id(client.events, &client.id, NULL, RDMA_PS_TCP));
	NEED(!rdma_resolve_addr(client.id, NULL, (struct sockaddr *)address, 1000));
}

static void step(void)
{
	struct epoll_event events[4];
	int count = epoll_wait(set, events, 4, 30000);

	NEED(count > 0);
	for (int i = 0; i < count; i++)
		for (struct end *end = &server; end; end = end == &server ? &client : NULL)
			if (events[i].data.ptr == end->events)
				take_events(end);
			else if (events[i].data.ptr == end->channel)
				take_completions(end);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7471)};

	NEED(argc == 3 && inet_pton(AF_INET, argv[1], &address.sin_addr) == 1);
	rounds = atoi(argv[2]);
	begin(&address);
	while (ended < 2)
		step();
	printf("%d and %d received\n", server.received, client.received);
	return server.received == rounds && client.received == rounds ? 0 : 1;
}
