/* SPDX-License-Identifier: MIT */
/*
 * Arm, poll, wait: with this order of calls no completion is missed (ibv_get_cq_event(3)). Many
 * threads do it at once; a lost wake-up leaves one of them waiting for ever.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/sim.h>

#define PAIRS	     4
#define THREADS	     (2 * PAIRS)
#define MESSAGES     300
#define DEPTH	     8 /* of each queue */
#define LOST_MS	     10000
#define EVENTS_ACKED 16 /* as ibv_get_cq_event(3) advises, several at once */

/* A thread may not call the checks, which end the test: it notes its first error. */
struct worker {
	struct vt *t;
	pthread_t thread;
	pthread_barrier_t *start;
	struct ts_end *end;
	bool sends;
	bool solicited; /* arms for solicited completions */
	char error[200];
};

static bool worker_failed(struct worker *worker, const char *what, int error)
{
	if (!worker->error[0])
		snprintf(worker->error, sizeof(worker->error), "%s of %s: %s (%s)", what,
			 worker->sends ? "a sender" : "a receiver", vt_errno_name(error),
			 vb_last_error());
	return false;
}

/* On a real clock, a limit shows the lost wake-up; the virtual clock finds that nothing can come. */
static bool event_comes(struct vt *t, const struct ibv_comp_channel *channel)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};

	return ts_virtual(t) || poll(&readable, 1, LOST_MS) == 1;
}

static bool await_event(struct worker *worker, struct ibv_comp_channel *channel)
{
	if (!event_comes(worker->t, channel))
		return worker_failed(worker, "no event in ten seconds", ETIMEDOUT);
	return true;
}

/* Takes completions, and waits for the next event when there are none. Returns how many; 0: failed.
 */
static int next_completions(struct worker *worker, struct ibv_comp_channel *channel,
			    struct ibv_cq *cq, struct ibv_wc *wc, unsigned int *unacked)
{
	void *context;
	struct ibv_cq *of;
	int got;

	for (;;) {
		if (ibv_req_notify_cq(cq, worker->solicited))
			return worker_failed(worker, "req_notify_cq", errno);
		got = ibv_poll_cq(cq, DEPTH, wc);
		if (got < 0)
			return worker_failed(worker, "poll_cq", errno);
		if (got)
			return got;
		if (!await_event(worker, channel))
			return 0;
		if (vb_get_cq_event(channel, &of, &context))
			return worker_failed(worker, "get_cq_event", errno);
		if (++*unacked == EVENTS_ACKED) {
			vb_ack_cq_events(cq, *unacked);
			*unacked = 0;
		}
	}
}

static bool post(struct worker *worker, unsigned int number)
{
	const struct ts_wr wr = {
		.wr_id = number, .opcode = IBV_WR_SEND, .length = 64, .flags = IBV_SEND_SOLICITED};
	const struct ts_rr rr = {.wr_id = number, .length = 64};
	int err = worker->sends ? ts_post(worker->end, &wr) : ts_post_rr(worker->end, &rr);

	return !err || worker_failed(worker, "posting", err);
}

/* Keeps DEPTH WRs posted until MESSAGES have completed, in order. */
static void work(struct worker *worker)
{
	struct ts_end *end = worker->end;
	struct ibv_comp_channel *channel = worker->sends ? end->send_channel : end->recv_channel;
	struct ibv_cq *cq = worker->sends ? end->send_cq : end->recv_cq;
	unsigned int posted = worker->sends ? 0 : DEPTH, done = 0, unacked = 0;
	struct ibv_wc wc[DEPTH];
	int got;

	while (done < MESSAGES) {
		while (posted < MESSAGES && posted - done < DEPTH)
			if (!post(worker, posted++))
				return;
		got = next_completions(worker, channel, cq, wc, &unacked);
		if (!got)
			break;
		for (int i = 0; i < got; i++, done++)
			if (wc[i].status || wc[i].wr_id != done) {
				worker_failed(worker, vt_wc_status_name(wc[i].status), 0);
				return;
			}
	}
	vb_ack_cq_events(cq, unacked);
}

static void *begin(void *arg)
{
	struct worker *worker = arg;
	bool registers = ts_virtual(worker->t);

	if (registers)
		vb_sim_thread_enter(ts_sim(worker->t));
	pthread_barrier_wait(worker->start);
	work(worker);
	if (registers)
		vb_sim_thread_leave(ts_sim(worker->t));
	return NULL;
}

static void let_block(struct vt *t, struct ibv_comp_channel *channel)
{
	VT_OK(t, fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) & ~O_NONBLOCK));
}

static struct ts_pair *make_pair(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.channels = true;
	pair = ts_pair(t, &options);
	let_block(t, pair->a.send_channel);
	let_block(t, pair->b.recv_channel);
	for (unsigned int i = 0; i < DEPTH; i++)
		ts_recv(&pair->b, .wr_id = i, .length = 64);
	return pair;
}

static void run(struct vt *t, bool solicited)
{
	struct worker *workers = vt_alloc(t, THREADS * sizeof(*workers));
	pthread_barrier_t start;
	unsigned int i;

	VT_OK(t, pthread_barrier_init(&start, NULL, THREADS));
	for (i = 0; i < THREADS; i++) {
		struct ts_pair *pair = i % 2 ? NULL : make_pair(t);

		workers[i] = (struct worker){.t = t, .start = &start, .sends = i % 2};
		/* A send's completion is never solicited. */
		workers[i].solicited = solicited && !workers[i].sends;
		workers[i].end = pair ? &pair->b : workers[i - 1].end->peer;
	}
	for (i = 0; i < THREADS; i++)
		VT_OK(t, pthread_create(&workers[i].thread, NULL, begin, &workers[i]));
	for (i = 0; i < THREADS; i++)
		VT_OK(t, pthread_join(workers[i].thread, NULL));
	pthread_barrier_destroy(&start);
	for (i = 0; i < THREADS; i++)
		VT_EXPECT_EQ_STR(t, workers[i].error, "");
}

static void no_wakeup_is_lost(struct vt *t)
{
	run(t, false);
}

static void no_solicited_wakeup_is_lost(struct vt *t)
{
	run(t, true);
}

/* Events wait in the channel until they are read, however many there are. */
static void each_cq_of_a_channel_has_its_event(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);
	struct ibv_comp_channel *channel = ts_channel(t, &t->b);
	struct ibv_cq *cqs[] = {ts_cq_on(t, &t->b, 8, channel), ts_cq_on(t, &t->b, 8, channel)};
	const struct ibv_qp_init_attr_ex init = {.send_cq = cqs[0], .recv_cq = cqs[1]};
	struct ibv_cq *of[2];
	void *context;

	ts_remake_qp(&pair->b, &init);
	ts_connect_both(pair);
	for (unsigned int i = 0; i < 2; i++)
		VT_OK(t, ibv_req_notify_cq(cqs[i], 0));
	ts_recv(&pair->b, .wr_id = 1, .length = 64);
	/* Not into the bytes that A sends. */
	ts_write(&pair->b, .wr_id = 2, .offset = 4096, .length = 64, .remote_offset = 4096);
	ts_send(&pair->a, .wr_id = 3, .length = 64);
	ts_settle(t);
	for (unsigned int i = 0; i < 2; i++) {
		VT_CHECK(t, event_comes(t, channel));
		VT_OK(t, vb_get_cq_event(channel, &of[i], &context));
		vb_ack_cq_events(of[i], 1);
	}
	VT_CHECK(t, of[0] != of[1]);
	ts_done(t, cqs[0], 2, IBV_WC_RDMA_WRITE);
	ts_received(t, cqs[1], 1, 64);
}

#define NOTES "ibv_get_cq_event(3), Examples: request, then poll, then wait"

static const struct vt_test tests[] = {
	{"no_wakeup_is_lost", NOTES, 0, no_wakeup_is_lost, VT_MAY_THREAD},
	{"no_solicited_wakeup_is_lost", NOTES, 0, no_solicited_wakeup_is_lost, VT_MAY_THREAD},
	{"each_cq_of_a_channel_has_its_event",
	 "ibv_create_comp_channel(3), Notes: one channel can serve many CQs; " SRC_CORE
	 "uverbs_main.c, ib_uverbs_comp_handler: it queues an event for each",
	 0, each_cq_of_a_channel_has_its_event},
	{NULL},
};

const struct vt_suite vt_suite_wakeups = {"wakeups", "arming, polling and waiting in many threads",
					  tests};
