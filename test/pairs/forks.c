/* SPDX-License-Identifier: MIT */
/*
 * A process listens by the connection manager, and its children connect to it: each child opens a channel of its
 * own, while its parent has a listener, a connection and QPs. Plain librdmacm: it runs under `verbena run`.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 3, MESSAGE_BYTES = 64, RESOLVE_MS = 5000, LIMIT_S = 60 };

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char buffer[MESSAGE_BYTES];
};

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "forks: process %d: %s: ", (int)getpid(), what);
	perror(NULL);
	exit(EXIT_FAILURE);
}

/* Takes the next event of the channel, which is of the type. An earlier connection may leave its time-wait state at
 * any time. */
static struct rdma_cm_event *next(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	check(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	while (event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT) {
		rdma_ack_cm_event(event);
		check(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	}
	if (event->event != type)
		fprintf(stderr, "%s came, with the status %d\n", rdma_event_str(event->event),
			event->status);
	check(event->event == type, rdma_event_str(type));
	return event;
}

static void expect(struct end *end, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(next(end->channel, type));
}

static void make_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};

	check(!rdma_create_qp(end->id, NULL, &attr), "rdma_create_qp");
	end->mr = ibv_reg_mr(end->id->pd, end->buffer, sizeof(end->buffer), IBV_ACCESS_LOCAL_WRITE);
	check(end->mr, "ibv_reg_mr");
}

static void wait_for(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc))
		;
	check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

static void close_end(struct end *end)
{
	ibv_dereg_mr(end->mr);
	rdma_destroy_qp(end->id);
	check(!rdma_destroy_id(end->id), "rdma_destroy_id");
}

/* --- a child --- */

static void send_message(struct end *end, int number)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, sizeof(end->buffer), end->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	snprintf(end->buffer, sizeof(end->buffer), "child %d", number);
	check(!ibv_post_send(end->id->qp, &wr, &bad), "ibv_post_send");
	wait_for(end->id->send_cq);
}

static void run_child(struct sockaddr_in *server, int number)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct end end = {.channel = rdma_create_event_channel()};

	alarm(LIMIT_S);
	check(end.channel, "rdma_create_event_channel");
	check(!rdma_create_id(end.channel, &end.id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_resolve_addr(end.id, NULL, (struct sockaddr *)server, RESOLVE_MS),
	      "rdma_resolve_addr");
	expect(&end, RDMA_CM_EVENT_ADDR_RESOLVED);
	check(!rdma_resolve_route(end.id, RESOLVE_MS), "rdma_resolve_route");
	expect(&end, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(&end);
	check(!rdma_connect(end.id, &param), "rdma_connect");
	expect(&end, RDMA_CM_EVENT_ESTABLISHED);
	send_message(&end, number);
	check(!rdma_disconnect(end.id), "rdma_disconnect");
	expect(&end, RDMA_CM_EVENT_DISCONNECTED);
	close_end(&end);
	rdma_destroy_event_channel(end.channel);
	exit(EXIT_SUCCESS);
}

/* --- the parent --- */

static void take_message(struct end *end, int number)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, sizeof(end->buffer), end->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	char wanted[MESSAGE_BYTES];

	check(!ibv_post_recv(end->id->qp, &wr, &bad), "ibv_post_recv");
	check(!rdma_accept(end->id, &param), "rdma_accept");
	expect(end, RDMA_CM_EVENT_ESTABLISHED);
	wait_for(end->id->recv_cq);
	snprintf(wanted, sizeof(wanted), "child %d", number);
	check(strcmp(end->buffer, wanted) == 0, "the message");
}

/* The QP stays: the next child is a fork of a process that has it. */
static void serve_child(struct end *end, struct sockaddr_in *here, int number)
{
	const pid_t child = fork();
	struct rdma_cm_event *event;
	int status;

	check(child >= 0, "fork");
	if (!child)
		run_child(here, number);
	event = next(end->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	end->id = event->id;
	rdma_ack_cm_event(event);
	make_qp(end);
	take_message(end, number);
	expect(end, RDMA_CM_EVENT_DISCONNECTED);
	check(!rdma_disconnect(end->id), "rdma_disconnect");
	check(waitpid(child, &status, 0) == child && !status, "the end of the child");
}

int main(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	static struct end ends[CHILDREN];
	struct rdma_cm_id *listener;

	alarm(LIMIT_S);
	check(channel, "rdma_create_event_channel");
	check(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_bind_addr(listener, (struct sockaddr *)&here), "rdma_bind_addr");
	check(!rdma_listen(listener, CHILDREN), "rdma_listen");
	here.sin_port = rdma_get_src_port(listener);
	for (int i = 0; i < CHILDREN; i++) {
		ends[i].channel = channel;
		serve_child(&ends[i], &here, i);
	}
	for (int i = 0; i < CHILDREN; i++)
		close_end(&ends[i]);
	check(!rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
	puts("ok");
	return 0;
}
