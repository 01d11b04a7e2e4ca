/* SPDX-License-Identifier: MIT */
/* Events that the program waits for, and acknowledges. */
#include "pair.h"

#include <errno.h>
#include <pthread.h>

static const struct plan plan = {.events = 1, .access = IBV_ACCESS_LOCAL_WRITE};

/* Of the receives, if a mode separates the two CQs of each end. */
static struct ibv_cq *receive_cqs[2];

static void arm(struct ibv_cq *cq)
{
	need(!ibv_req_notify_cq(cq, 0), "arm"); /* @arm */
}

static void arm_solicited(struct ibv_cq *cq)
{
	need(!ibv_req_notify_cq(cq, 1), "arm"); /* @arm-solicited */
}

static struct ibv_cq *get_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = NULL;
	void *context;

	need(!ibv_get_cq_event(channel, &cq, &context), "event"); /* @get */
	return cq;
}

static void acknowledge(struct ibv_cq *cq, unsigned int count)
{
	ibv_ack_cq_events(cq, count); /* @acknowledge */
}

static void await(struct end *end)
{
	acknowledge(get_event(end->channel), 1);
}

/* The completion is in the CQ already, and raises no event. */
static void wait_in_vain(struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	need(ibv_get_cq_event(end->channel, &cq, &context) && errno == EDEADLK, /* @wait */
	     "an event");
}

static int poll_once(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	return ibv_poll_cq(cq, 1, &wc);
}

static void empty(struct ibv_cq *cq)
{
	while (poll_once(cq) > 0)
		;
}

/* A message to there, which has received one before. */
static void send_two(void)
{
	receive(there, 1);
	receive(there, 2);
	post(here, IBV_WR_SEND, 3);
	wait_for(there);
	wait_for(here);
	post(here, IBV_WR_SEND, 4);
}

static void separate_cqs(struct end *end, struct ibv_cq **receive_cq)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, DEPTH, 2, 2, 64}};

	*receive_cq = ibv_create_cq(end->context, DEPTH, NULL, end->channel, 0);
	init.send_cq = end->cq;
	init.recv_cq = *receive_cq;
	ibv_destroy_qp(end->qp);
	end->qp = ibv_create_qp(end->pd, &init);
	need(*receive_cq && end->qp, "two CQs");
}

static void connect_separate(void)
{
	open_ends(&plan);
	for (int i = 0; i < 2; i++)
		separate_cqs(&ends[i], &receive_cqs[i]);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]), rts = rts_attr();

		to_init(&ends[i], &plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
}

static void close_separate(void)
{
	for (int i = 0; i < 2; i++) {
		ibv_destroy_qp(ends[i].qp);
		ends[i].qp = NULL;
		ibv_destroy_cq(receive_cqs[i]);
	}
	close_ends();
}

/* --- armed-without-poll --- */

static void send_posted(void)
{
	connect_ends(&plan);
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	arm(here->cq);
	await(here);
	empty(here->cq);
	close_ends();
}

static void send_posted_kept(void)
{
	connect_ends(&plan);
	receive(there, 8);
	arm(here->cq);
	post(here, IBV_WR_SEND, 7);
	await(here);
	empty(here->cq);
	close_ends();
}

static void polled_in_part(void)
{
	connect_ends(&plan);
	for (uint64_t i = 0; i < 3; i++) {
		receive(there, i);
		post(here, IBV_WR_SEND, i);
	}
	wait_for(here);
	arm(here->cq);
	wait_for(here);
	wait_in_vain(here);
	empty(here->cq);
	close_ends();
}

static void polled_in_part_kept(void)
{
	connect_ends(&plan);
	receive(there, 8);
	receive(there, 9);
	post(here, IBV_WR_SEND, 7);
	post(here, IBV_WR_SEND, 6);
	wait_for(here);
	arm(here->cq);
	empty(here->cq);
	receive(there, 9);
	post(here, IBV_WR_SEND, 5);
	await(here);
	empty(here->cq);
	close_ends();
}

static void receive_posted(void)
{
	connect_ends(&plan);
	send_two();
	arm(there->cq);
	await(there);
	empty(there->cq);
	close_ends();
}

static void receive_posted_kept(void)
{
	connect_ends(&plan);
	receive(there, 1);
	receive(there, 2);
	receive(here, 5);
	arm(there->cq); /* before the first message */
	post(here, IBV_WR_SEND, 3);
	await(there);
	empty(there->cq);
	arm(there->cq);
	post(there, IBV_WR_SEND, 4); /* the next message is its answer */
	post(here, IBV_WR_SEND, 6);
	await(there);
	empty(there->cq);
	close_ends();
}

static void armed_again(void)
{
	connect_ends(&plan);
	receive(there, 8);
	arm_solicited(here->cq);
	empty(here->cq);
	post(here, IBV_WR_SEND, 7);
	arm(here->cq);
	await(here);
	empty(here->cq);
	close_ends();
}

static void armed_again_kept(void)
{
	connect_ends(&plan);
	receive(there, 8);
	arm(here->cq);
	empty(here->cq);
	post(here, IBV_WR_SEND, 7);
	arm(here->cq);
	await(here);
	empty(here->cq);
	close_ends();
}

static void other_cq_polled(void)
{
	connect_separate();
	receive(there, 1);
	receive(there, 2);
	post(here, IBV_WR_SEND, 3);
	while (!poll_once(receive_cqs[1]))
		;
	post(here, IBV_WR_SEND, 4);
	wait_for(here);
	wait_for(here);
	arm(receive_cqs[1]);
	arm(there->cq);
	empty(there->cq);
	wait_in_vain(there);
	empty(receive_cqs[1]);
	close_separate();
}

static void other_cq_polled_kept(void)
{
	connect_separate();
	receive(there, 1);
	receive(there, 2);
	receive(here, 5);
	post(here, IBV_WR_SEND, 3);
	while (!poll_once(receive_cqs[1]))
		;
	arm(receive_cqs[1]);
	empty(receive_cqs[1]);
	post(there, IBV_WR_SEND, 6);
	arm(there->cq); /* an event of the other CQ comes in any case */
	post(here, IBV_WR_SEND, 4);
	await(there);
	empty(receive_cqs[1]);
	empty(there->cq);
	close_separate();
}

static void broken(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	connect_ends(&plan);
	receive(there, 8);
	need(!ibv_modify_qp(there->qp, &attr, IBV_QP_STATE), "ERR");
	arm(there->cq);
	await(there);
	empty(there->cq);
	close_ends();
}

static void broken_kept(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	connect_ends(&plan);
	receive(there, 8);
	arm(there->cq);
	need(!ibv_modify_qp(there->qp, &attr, IBV_QP_STATE), "ERR");
	await(there);
	empty(there->cq);
	close_ends();
}

/* --- event-acknowledgement --- */

static void get_one(void)
{
	receive(there, 8);
	arm(here->cq);
	post(here, IBV_WR_SEND, 7);
	get_event(here->channel);
	empty(here->cq);
}

static void not_acknowledged(void)
{
	connect_ends(&plan);
	get_one();
	ibv_destroy_qp(here->qp);
	here->qp = NULL;
	need(ibv_destroy_cq(here->cq) == EDEADLK, "a CQ with events"); /* @destroy */
	acknowledge(here->cq, 1);
	close_ends();
}

static void not_acknowledged_kept(void)
{
	connect_ends(&plan);
	get_one();
	get_one();
	acknowledge(here->cq, 2);
	close_ends();
}

static void acknowledged_twice(void)
{
	connect_ends(&plan);
	get_one();
	acknowledge(here->cq, 1);
	acknowledge(here->cq, 1);
	close_ends();
}

static void acknowledged_twice_kept(void)
{
	connect_ends(&plan);
	get_one();
	acknowledge(here->cq, 1);
	acknowledge(here->cq, 0);
	get_one();
	acknowledge(here->cq, 1);
	close_ends();
}

static void acknowledged_elsewhere(void)
{
	connect_separate();
	get_one();
	acknowledge(receive_cqs[0], 1);
	acknowledge(here->cq, 1);
	close_separate();
}

static void acknowledged_elsewhere_kept(void)
{
	connect_separate();
	get_one();
	acknowledge(here->cq, 1);
	acknowledge(receive_cqs[0], 0);
	close_separate();
}

static void *get_in_thread(void *arg)
{
	get_one();
	return arg;
}

static void got_by_thread(void)
{
	pthread_t thread;

	connect_ends(&plan);
	need(!pthread_create(&thread, NULL, get_in_thread, NULL), "thread");
	pthread_join(thread, NULL);
	ibv_destroy_qp(here->qp);
	here->qp = NULL;
	need(ibv_destroy_cq(here->cq) == EDEADLK, "a CQ with events"); /* @destroy-late */
	acknowledge(here->cq, 1);
	close_ends();
}

static void got_by_thread_kept(void)
{
	pthread_t thread;

	connect_ends(&plan);
	need(!pthread_create(&thread, NULL, get_in_thread, NULL), "thread");
	pthread_join(thread, NULL);
	acknowledge(here->cq, 1);
	close_ends();
}

static struct ibv_async_event get_drained(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_async_event event;

	need(!ibv_modify_qp(here->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), "SQD");
	need(!ibv_get_async_event(here->context, &event), "event"); /* @get-async */
	return event;
}

static void async_not_acknowledged(void)
{
	struct ibv_async_event event;

	connect_ends(&plan);
	event = get_drained();
	need(ibv_destroy_qp(here->qp) == EDEADLK, "a QP with events"); /* @destroy-qp */
	ibv_ack_async_event(&event);
	close_ends();
}

static void async_not_acknowledged_kept(void)
{
	struct ibv_async_event event;

	connect_ends(&plan);
	event = get_drained();
	ibv_ack_async_event(&event);
	close_ends();
}

static void async_acknowledged_twice(void)
{
	struct ibv_async_event event;

	connect_ends(&plan);
	event = get_drained();
	ibv_ack_async_event(&event);
	ibv_ack_async_event(&event); /* @ack-async-again */
	close_ends();
}

static void async_acknowledged_twice_kept(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_async_event event;

	connect_ends(&plan);
	for (int i = 0; i < 2; i++) {
		event = get_drained();
		ibv_ack_async_event(&event);
		need(!ibv_modify_qp(here->qp, &attr, IBV_QP_STATE), "RTS");
	}
	close_ends();
}

#define PAIR(name, function)                  \
	{name, function},                     \
	{                                     \
		name "-kept", function##_kept \
	}

static const struct mode modes[] = {
	PAIR("send-posted", send_posted),
	PAIR("polled-in-part", polled_in_part),
	PAIR("receive-posted", receive_posted),
	PAIR("armed-again", armed_again),
	PAIR("other-cq-polled", other_cq_polled),
	PAIR("broken", broken),
	PAIR("not-acknowledged", not_acknowledged),
	PAIR("acknowledged-twice", acknowledged_twice),
	PAIR("acknowledged-elsewhere", acknowledged_elsewhere),
	PAIR("got-by-thread", got_by_thread),
	PAIR("async-not-acknowledged", async_not_acknowledged),
	PAIR("async-acknowledged-twice", async_acknowledged_twice),
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
