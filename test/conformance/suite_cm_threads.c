/* SPDX-License-Identifier: MIT */
/*
 * Connections: identifiers that change their channel, programs with several threads, and fork(2).
 */
#include "test/conformance/sources.h"
#include "test/support/manager.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/sim.h>

/* --- from channel to channel --- */

static bool is_readable(const struct rdma_event_channel *channel)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* Linux 6.1 forgets to move the request's own context (drivers/infiniband/core/ucma.c, ucma_migrate_id): the
 * request ends with the old channel. */
static void a_waiting_request_moves_with_its_listener(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_event_channel *old = VT_PTR(t, vb_cm_create_event_channel(t->backend));
	struct rdma_conn_param param = tc_param(NULL, 0);

	VT_OK(t, vb_cm_migrate_id(pair->listener, old));
	tc_qp(t, pair->a);
	VT_OK(t, vb_cm_connect(pair->a, &param));
	VT_CHECK(t, tc_has_event(t, old));
	VT_OK(t, vb_cm_migrate_id(pair->listener, pair->b_channel));
	VT_CHECK(t, !is_readable(old));
	vb_cm_destroy_event_channel(old);
	pair->b = tc_expect(t, pair->b_channel, NULL, RDMA_CM_EVENT_CONNECT_REQUEST).event.id;
	tc_keep(t, pair->b);
	VT_CHECK(t, pair->b->channel == pair->b_channel);
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, &param));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED);
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_ESTABLISHED);
	tc_send(t, pair->a, pair->b);
}

static void events_keep_their_order_in_another_channel(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_event_channel *other = tc_channel(t), *third = tc_channel(t);
	struct rdma_conn_param param = tc_param(NULL, 0);

	tc_qp(t, pair->a);
	tc_request(pair, &param);
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, &param));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED);
	VT_OK(t, vb_cm_disconnect(pair->a));
	VT_CHECK(t, tc_has_event(t, pair->b_channel));
	VT_OK(t, vb_cm_migrate_id(pair->b, other));
	VT_OK(t, vb_cm_migrate_id(pair->b, third));
	tc_expect(t, third, pair->b, RDMA_CM_EVENT_ESTABLISHED);
	tc_expect(t, third, pair->b, RDMA_CM_EVENT_DISCONNECTED);
	VT_OK(t, vb_cm_disconnect(pair->b));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED);
	VT_CHECK(t, !is_readable(pair->b_channel) && !is_readable(other));
}

/* --- threads --- */

enum { ROUNDS = 3 };

/* A thread may not call the checks, which end the test: it notes its first error. */
struct worker {
	struct vt *t;
	pthread_t thread;
	pthread_barrier_t *ready;
	void (*work)(struct worker *worker);
	char error[200];
	/* of one thread's connections */
	struct rdma_event_channel *a_channel, *b_channel;
	struct rdma_cm_id *listener, *a, *b;
	/* of the thread that takes events */
	struct rdma_cm_id *ended;
	bool acknowledged;
};

static bool note(struct worker *worker, const char *what, bool good)
{
	if (!good && !worker->error[0])
		snprintf(worker->error, sizeof(worker->error), "%s: %s", what, vb_last_error());
	return good;
}

static void *begin(void *arg)
{
	struct worker *worker = arg;
	const bool registers = ts_virtual(worker->t);

	if (registers)
		vb_sim_thread_enter(ts_sim(worker->t));
	pthread_barrier_wait(worker->ready);
	worker->work(worker);
	if (registers)
		vb_sim_thread_leave(ts_sim(worker->t));
	return NULL;
}

/* Starts the threads, which begin together with this one. */
static void start(struct vt *t, struct worker *workers, unsigned int count,
		  pthread_barrier_t *ready, void (*work)(struct worker *worker))
{
	VT_OK(t, pthread_barrier_init(ready, NULL, count + 1));
	for (unsigned int i = 0; i < count; i++) {
		workers[i].t = t;
		workers[i].ready = ready;
		workers[i].work = work;
		VT_OK(t, pthread_create(&workers[i].thread, NULL, begin, &workers[i]));
	}
	if (ts_virtual(t))
		vb_sim_thread_enter(ts_sim(t));
	pthread_barrier_wait(ready);
}

/* Between start() and join_all(), no check may end the test. */
static void join_all(struct vt *t, struct worker *workers, unsigned int count)
{
	if (ts_virtual(t))
		vb_sim_thread_leave(ts_sim(t));
	for (unsigned int i = 0; i < count; i++)
		VT_OK(t, pthread_join(workers[i].thread, NULL));
	for (unsigned int i = 0; i < count; i++)
		VT_EQ_STR(t, workers[i].error, "");
}

/* Takes the next event; returns its identifier, or NULL. */
static struct rdma_cm_id *take(struct worker *worker, struct rdma_event_channel *channel,
			       enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	bool good;

	if (!note(worker, "get_cm_event", !vb_cm_get_cm_event(channel, &event)))
		return NULL;
	id = event->id;
	good = event->event == type && !event->status;
	if (!good && !worker->error[0])
		snprintf(worker->error, sizeof(worker->error), "%s %d came, not %s",
			 vb_cm_event_str(event->event), event->status, vb_cm_event_str(type));
	vb_cm_ack_cm_event(event);
	return good ? id : NULL;
}

static bool make_qp(struct worker *worker, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};

	return note(worker, "create_qp", !vb_cm_create_qp(id, NULL, &attr));
}

static bool serve(struct worker *worker)
{
	struct tc_address here = tc_address(&worker->t->b, 0);
	const char *backend = worker->t->backend;

	worker->a_channel = vb_cm_create_event_channel(backend);
	worker->b_channel = vb_cm_create_event_channel(backend);
	return note(worker, "channels", worker->a_channel && worker->b_channel) &&
	       note(worker, "create_id",
		    !vb_cm_create_id(backend, worker->b_channel, &worker->listener, NULL,
				     RDMA_PS_TCP)) &&
	       note(worker, "bind_addr", !vb_cm_bind_addr(worker->listener, tc_sockaddr(&here))) &&
	       note(worker, "listen", !vb_cm_listen(worker->listener, 2));
}

static bool ask(struct worker *worker)
{
	struct tc_address to =
		tc_address(&worker->t->b, ntohs(vb_cm_get_src_port(worker->listener)));
	struct rdma_conn_param param = tc_param(NULL, 0);

	return note(worker, "create_id",
		    !vb_cm_create_id(worker->t->backend, worker->a_channel, &worker->a, NULL,
				     RDMA_PS_TCP)) &&
	       note(worker, "resolve_addr",
		    !vb_cm_resolve_addr(worker->a, NULL, tc_sockaddr(&to), 2000)) &&
	       take(worker, worker->a_channel, RDMA_CM_EVENT_ADDR_RESOLVED) &&
	       note(worker, "resolve_route", !vb_cm_resolve_route(worker->a, 2000)) &&
	       take(worker, worker->a_channel, RDMA_CM_EVENT_ROUTE_RESOLVED) &&
	       make_qp(worker, worker->a) &&
	       note(worker, "connect", !vb_cm_connect(worker->a, &param));
}

static bool answer(struct worker *worker)
{
	struct rdma_conn_param param = tc_param(NULL, 0);

	worker->b = take(worker, worker->b_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	return worker->b && make_qp(worker, worker->b) &&
	       note(worker, "accept", !vb_cm_accept(worker->b, &param)) &&
	       take(worker, worker->a_channel, RDMA_CM_EVENT_ESTABLISHED) == worker->a &&
	       take(worker, worker->b_channel, RDMA_CM_EVENT_ESTABLISHED) == worker->b;
}

static bool disconnect(struct worker *worker)
{
	return note(worker, "disconnect", !vb_cm_disconnect(worker->a)) &&
	       take(worker, worker->b_channel, RDMA_CM_EVENT_DISCONNECTED) == worker->b &&
	       note(worker, "disconnect", !vb_cm_disconnect(worker->b)) &&
	       take(worker, worker->a_channel, RDMA_CM_EVENT_DISCONNECTED) == worker->a;
}

static void end_id(struct rdma_cm_id **id)
{
	if (*id && (*id)->qp)
		vb_cm_destroy_qp(*id);
	if (*id)
		vb_cm_destroy_id(*id);
	*id = NULL;
}

static void connect_often(struct worker *worker)
{
	bool good = serve(worker);

	for (int i = 0; i < ROUNDS && good; i++) {
		good = ask(worker) && answer(worker) && disconnect(worker);
		end_id(&worker->a);
		end_id(&worker->b);
	}
	end_id(&worker->listener);
	if (worker->a_channel)
		vb_cm_destroy_event_channel(worker->a_channel);
	if (worker->b_channel)
		vb_cm_destroy_event_channel(worker->b_channel);
}

static void threads_connect_at_the_same_time(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);
	pthread_barrier_t ready;
	struct worker *workers = vt_alloc(t, 2 * sizeof(*workers));

	start(t, workers, 2, &ready, connect_often);
	join_all(t, workers, 2);
	pthread_barrier_destroy(&ready);
	tc_send(t, pair->a, pair->b);
}

/* Takes an event, and keeps it while another thread ends the identifier. */
static void take_late(struct worker *worker)
{
	struct rdma_cm_event *event;

	if (!note(worker, "get_cm_event", !vb_cm_get_cm_event(worker->a_channel, &event))) {
		pthread_barrier_wait(worker->ready);
		return;
	}
	pthread_barrier_wait(worker->ready);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	worker->ended = event->id;
	__atomic_store_n(&worker->acknowledged, true, __ATOMIC_SEQ_CST);
	vb_cm_ack_cm_event(event);
}

static void an_identifier_ends_when_another_thread_has_acknowledged(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);
	struct worker *worker = vt_alloc(t, sizeof(*worker));
	struct rdma_cm_id *ended = pair->a;
	pthread_barrier_t ready;
	bool acknowledged;

	vb_cm_destroy_qp(pair->a);
	worker->a_channel = pair->a_channel;
	VT_OK(t, vb_cm_disconnect(pair->b));
	VT_CHECK(t, tc_has_event(t, pair->a_channel));
	start(t, worker, 1, &ready, take_late);
	pthread_barrier_wait(&ready);
	tc_end(t, pair->a);
	acknowledged = __atomic_load_n(&worker->acknowledged, __ATOMIC_SEQ_CST);
	join_all(t, worker, 1);
	pthread_barrier_destroy(&ready);
	VT_CHECK(t, acknowledged);
	VT_CHECK(t, worker->ended == ended);
}

/* --- fork(2) --- */

/* In the child: an identifier of its own. Returns the exit status. */
static int use_own_channel(struct vt *t)
{
	struct rdma_event_channel *channel = vb_cm_create_event_channel(t->backend);
	struct tc_address here = tc_address(&t->b, 0);
	struct rdma_cm_id *id;

	if (!channel)
		return 1;
	if (vb_cm_create_id(t->backend, channel, &id, NULL, RDMA_PS_TCP))
		return 2;
	if (vb_cm_bind_addr(id, tc_sockaddr(&here)))
		return 3;
	if (vb_cm_listen(id, 1))
		return 4;
	if (vb_cm_destroy_id(id))
		return 5;
	vb_cm_destroy_event_channel(channel);
	return 0;
}

static void a_child_leaves_its_parents_connections_alone(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct rdma_cm_id *a = pair->a, *b = pair->b;

	tc_send(t, a, b);
	for (int i = 0; i < 2; i++) {
		const pid_t child = fork();
		int status = -1;

		VT_CHECK(t, child >= 0);
		if (!child)
			_exit(i ? use_own_channel(t) : 0);
		VT_EQ(t, waitpid(child, &status, 0), child);
		VT_EQ(t, status, 0);
		tc_send(t, a, b);
		tc_send(t, b, a);
		pair->a = tc_another(pair);
		tc_qp(t, pair->a);
		tc_request(pair, &param);
		VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
		tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, 28);
	}
	VT_OK(t, vb_cm_disconnect(a));
	tc_expect(t, pair->b_channel, b, RDMA_CM_EVENT_DISCONNECTED);
	VT_OK(t, vb_cm_disconnect(b));
	tc_expect(t, pair->a_channel, a, RDMA_CM_EVENT_DISCONNECTED);
}

static const struct vt_test tests[] = {
	{"a_waiting_request_moves_with_its_listener", "rdma_migrate_id(3)", VT_NEEDS_SIM,
	 a_waiting_request_moves_with_its_listener},
	{"events_keep_their_order_in_another_channel", "rdma_migrate_id(3)", 0,
	 events_keep_their_order_in_another_channel},
	{"threads_connect_at_the_same_time", "unsourced", 0, threads_connect_at_the_same_time,
	 VT_MAY_THREAD},
	{"an_identifier_ends_when_another_thread_has_acknowledged", "rdma_destroy_id(3): acked", 0,
	 an_identifier_ends_when_another_thread_has_acknowledged, VT_MAY_THREAD},
	{"a_child_leaves_its_parents_connections_alone", "unsourced", 0,
	 a_child_leaves_its_parents_connections_alone, VT_MAY_FORK},
	{NULL},
};

const struct vt_suite vt_suite_cm_threads = {"cm_threads",
					     "connections: channels, threads and forks", tests};
